/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c -- the session's effects carried out: streams opened, messages sent, calls made; and
 * what comes back, as events. */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

/* ---- a ps */

static struct rpc_channel *channel_of(struct sumac_client *client, uint32_t ps, int kind)
{
    assert(client_is_locked(client));
    assert(ps < client->peer_count);
    struct peer *peer = &client->peers[ps];
    if (peer->channels[kind] == NULL && peer->address[0] != '\0')
        (void)rpc_channel_open(client->poller, peer->address, &peer->channels[kind]);
    return peer->channels[kind];
}

const char *
client_peer_text(const struct sumac_client *client, uint32_t ps, char *text, size_t text_bytes)
{
    assert(ps < client->peer_count);
    const struct peer *peer = &client->peers[ps];
    const bool heard = peer->heard_us != 0;
    (void)text_print(
        text, text_bytes, "ps %" PRIu32 " at %s, which was %s%s%s", ps, peer->address,
        heard ? "last heard from " : "never heard from",
        heard ? text_time_us(client_now_us() - peer->heard_us).text : "", heard ? " ago" : "");
    return text;
}

/* ---- streams */

/* Whose stream a call is. From its opening until it is closed. */
struct stream_tag {
    struct sumac_client *client;
    uint32_t ps;
    enum session_stream_kind stream_kind;
    uint64_t generation;
};

static uint64_t random_bits(struct sumac_client *client)
{
    client->random_state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t bits = client->random_state;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

static struct stream_place *place_of(const struct stream_tag *tag)
{
    assert(tag->ps < tag->client->peer_count);
    return &tag->client->peers[tag->ps].streams[tag->stream_kind];
}

static struct session_event stream_event(const struct stream_tag *tag, enum session_event_kind kind)
{
    return (struct session_event){
        .kind = kind,
        .now_us = client_now_us(),
        .ps = tag->ps,
        .stream_kind = tag->stream_kind,
        .generation = tag->generation};
}

static void stream_writable(struct rpc_call *call)
{
    const struct stream_tag *tag = rpc_call_user(call);

    if (place_of(tag)->call != call || !rpc_call_writable(call))
        return;
    struct session_event event = stream_event(tag, SESSION_EVENT_STREAM_WRITABLE);
    client_step(tag->client, &event);
}

static void stream_answered(struct rpc_call *call, const struct wire_received *received)
{
    const struct stream_tag *tag = rpc_call_user(call);
    struct sumac_client *client = tag->client;
    const bool pushes = tag->stream_kind == SESSION_PUSH_STREAM;
    struct session_event event =
        stream_event(tag, pushes ? SESSION_EVENT_PUSH_ANSWER : SESSION_EVENT_PULL_ANSWER);

    client->peers[tag->ps].heard_us = event.now_us;
    event.push_answer = pushes ? (const wire_push_answer *)received->message : NULL;
    event.pull_answer = pushes ? NULL : (const wire_pull_answer *)received->message;
    event.payload = received->payload;
    event.payload_spans = received->payload_spans;
    const bool greeted = pushes && event.push_answer->greeting != NULL;
    client_step(client, &event);
    if (greeted)
        client_say_rooms(client);
}

static void stream_closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct stream_tag *tag = rpc_call_user(call);
    struct session_event event = stream_event(tag, SESSION_EVENT_STREAM_LOST);

    event.error = error;
    place_of(tag)->call = NULL; /* one that takes its place is opened after this */
    client_step(tag->client, &event);
    free(tag);
}

static const struct rpc_handler stream_handler = {
    .message = stream_answered,
    .opened = stream_writable,
    .writable = stream_writable,
    .closed = stream_closed};

/* False: there is no memory. */
static bool open_stream(struct sumac_client *client, const struct session_effect *effect)
{
    assert(client->session != NULL); /* what begins then would be nobody's */
    assert(effect->ps < client->peer_count);
    const enum session_stream_kind kind = effect->stream_kind;
    struct stream_place *place = &client->peers[effect->ps].streams[kind];
    assert(effect->generation > place->generation); /* an older stream is never begun again */
    place->generation = effect->generation;
    struct rpc_channel *channel = channel_of(client, effect->ps, (int)kind);
    struct stream_tag *tag = malloc(sizeof *tag);
    if (tag != NULL)
        *tag = (struct stream_tag){
            .client = client,
            .ps = effect->ps,
            .stream_kind = kind,
            .generation = place->generation};
    assert(place->call == NULL); /* what carried an older one has been closed */
    const unsigned method = kind == SESSION_PUSH_STREAM ? WIRE_TRANSFER_PUSH : WIRE_TRANSFER_PULL;
    if (channel != NULL && tag != NULL &&
        rpc_channel_call(
            channel,
            &(struct rpc_start){
                .service = WIRE_TRANSFER,
                .method = method,
                .handler = &stream_handler,
                .user = tag},
            &place->call) == SUMAC_OK)
        return true;
    free(tag);
    return false;
}

/* ---- calls */

/* From its beginning until it is closed. */
struct call_tag {
    LINKS(struct call_tag) in_client;
    struct sumac_client *client;
    struct rpc_call *call;
    uint64_t number; /* the session's */
    uint32_t ps;
    bool answered;
};

static void call_answered(struct rpc_call *call, const struct wire_received *received)
{
    struct call_tag *tag = rpc_call_user(call);
    struct session_event event = {
        .kind = SESSION_EVENT_CALL_ANSWERED, .call = tag->number, .reply = received->message};

    tag->answered = true;
    tag->client->peers[tag->ps].heard_us = client_now_us();
    client_step(tag->client, &event);
}

static void call_closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct call_tag *tag = rpc_call_user(call);
    struct sumac_client *client = tag->client;

    LIST_REMOVE(&client->calls, tag, in_client);
    if (!tag->answered) {
        struct sumac_error none;
        if (error->status == SUMAC_OK) {
            (void)fail(
                &none, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
                "ps %" PRIu32
                " at %s ended a call well and did not answer it: is it a ps of this release?",
                tag->ps, client->peers[tag->ps].address);
            error = &none;
        }
        struct session_event event = {
            .kind = SESSION_EVENT_CALL_FAILED, .call = tag->number, .error = error};
        client_step(client, &event);
    }
    free(tag);
}

static const struct rpc_handler call_handler = {.message = call_answered, .closed = call_closed};

/* False: there is no memory. */
static bool make_call(struct sumac_client *client, const struct session_effect *effect)
{
    assert(client->session != NULL);
    assert(effect->ps < client->peer_count);
    struct rpc_channel *channel = channel_of(client, effect->ps, SESSION_PULL_STREAM);
    struct call_tag *tag = malloc(sizeof *tag);
    if (tag != NULL)
        *tag = (struct call_tag){.client = client, .number = effect->call, .ps = effect->ps};
    if (channel == NULL || tag == NULL ||
        rpc_channel_call(
            channel,
            &(struct rpc_start){
                .service = effect->service,
                .method = effect->method,
                .message = effect->request,
                .deadline_us = effect->at_us,
                .handler = &call_handler,
                .user = tag},
            &tag->call) != SUMAC_OK) {
        free(tag);
        return false;
    }
    LIST_PREPEND(&client->calls, tag, in_client);
    return true;
}

static void cancel_call(struct sumac_client *client, uint64_t number)
{
    assert(number > 0);
    struct call_tag *tag = client->calls.first;
    while (tag != NULL && tag->number != number)
        tag = tag->in_client.next;
    if (tag != NULL)
        rpc_call_cancel(tag->call);
}

/* ---- effects */

static void hang_up_on(struct peer *peer)
{
    for (int kind = SESSION_PUSH_STREAM; kind <= SESSION_PULL_STREAM; kind++) {
        rpc_channel_close(peer->channels[kind]);
        peer->channels[kind] = NULL;
        peer->streams[kind].call = NULL;
    }
}

static void do_addresses(struct sumac_client *client, const struct session_effect *effect)
{
    assert(effect->address_count > 0);
    assert(effect->address_count <= SESSION_PS_MAX);
    client->peer_count = effect->address_count;
    for (uint32_t i = 0; i < effect->address_count; i++) {
        struct peer *peer = &client->peers[i];
        if (peer->address != NULL && strcmp(peer->address, effect->addresses[i]) != 0)
            hang_up_on(peer);
        peer->address = effect->addresses[i];
    }
}

static void do_close_stream(struct sumac_client *client, const struct session_effect *effect)
{
    assert(effect->ps < client->peer_count);
    struct stream_place *place = &client->peers[effect->ps].streams[effect->stream_kind];
    if (place->call != NULL)
        rpc_call_cancel(place->call);
    place->call = NULL;
}

static bool reserve_payload(struct sumac_client *client, uint32_t count)
{
    if (count <= client->payload_capacity)
        return true;
    struct rpc_payload *payload = realloc(client->payload, 2 * count * sizeof *payload);
    if (payload == NULL)
        return false;
    client->payload = payload;
    client->payload_capacity = 2 * count;
    return true;
}

/* Small runs are copied into the message; of larger ones the transfer counts how many gRPC holds.
 */
static void do_send(
    struct sumac_client *client, const struct session_effect *effect, const wire_message *message)
{
    assert(effect->ps < client->peer_count);
    struct rpc_call *call = client->peers[effect->ps].streams[effect->stream_kind].call;
    if (call == NULL || !rpc_call_writable(call))
        return; /* it has just ended, and the session will be told */
    if (!reserve_payload(client, effect->payload_count)) {
        rpc_call_cancel(call);
        return;
    }
    assert(effect->payload_count <= client->payload_capacity);
    for (uint32_t i = 0; i < effect->payload_count; i++) {
        const struct session_bytes *run = &effect->payload[i];
        client->payload[i] = (struct rpc_payload){.bytes = run->bytes};
        if (run->bytes.bytes <= RPC_COPIED_BYTES_MAX)
            continue;
        struct transfer *transfer = (struct transfer *)(uintptr_t)run->token;
        assert(transfer->client == client); /* its handles are its own */
        atomic_fetch_add_explicit(&transfer->lent, 1, memory_order_relaxed);
        client->payload[i].released = transfer_released;
        client->payload[i].context = transfer;
    }
    rpc_call_send(call, message, client->payload, effect->payload_count);
}

static void do_transferred(const struct sumac_client *client, const struct session_effect *effect)
{
    struct transfer *transfer = (struct transfer *)(uintptr_t)effect->token;

    assert(transfer->client == client);
    assert(!transfer->over); /* it is told once what it came to */
    transfer->over = true;
    if (effect->error.status != SUMAC_OK)
        transfer_fail(transfer, &effect->error);
    else if (effect->result != NULL)
        transfer_note_result(transfer, effect);
    else if (effect->kind == SESSION_EFFECT_PULLED)
        transfer_note_pulled(transfer, effect->versions, effect->version_count);
    else
        transfer_note_pushed(transfer, effect->versions, effect->version_count);
}

static void do_answered(const struct session_effect *effect)
{
    struct client_unary *unary = (struct client_unary *)(uintptr_t)effect->token;

    assert(!unary->over);
    unary->over = true;
    unary->ps = effect->ps;
    unary->error = effect->error;
    if (effect->error.status == SUMAC_OK && unary->call->take != NULL)
        unary->call->take(unary->call->context, effect->reply);
}

void client_fail_calls(struct sumac_client *client, const struct sumac_error *error)
{
    assert(client->ended);
    LIST_FOREACH(struct client_unary, unary, &client->unaries, links)
        if (!unary->over) {
            unary->over = true;
            unary->error = *error;
        }
}

/* A session that ends for want of memory says nothing more of what was under way: whoever waits for
 * it is told here. */
static void do_ended(struct sumac_client *client, const struct sumac_error *error)
{
    assert(!client->ended);
    assert(error->status != SUMAC_OK); /* whoever waits is told this */
    client->ended = true;
    client->end = *error;
    LIST_FOREACH(struct transfer, transfer, &client->live_transfers, among_live)
        if (!transfer->over)
            transfer_fail(transfer, error);
    client_fail_calls(client, error);
    if (client->joined) /* else the open, or the join, that comes to nothing says so */
        client_log(client, "the session ended; the program's next call fails and says why");
}

/* False: it could not be begun. */
static bool do_effect(struct sumac_client *client, const struct session_effect *effect)
{
    switch (effect->kind) {
    case SESSION_EFFECT_ADDRESSES:
        do_addresses(client, effect);
        break;
    case SESSION_EFFECT_CALL:
        return make_call(client, effect);
    case SESSION_EFFECT_CANCEL_CALL:
        cancel_call(client, effect->call);
        break;
    case SESSION_EFFECT_JOINED:
        client->joined = true;
        break;
    case SESSION_EFFECT_OPEN_STREAM:
        return open_stream(client, effect);
    case SESSION_EFFECT_CLOSE_STREAM:
        do_close_stream(client, effect);
        break;
    case SESSION_EFFECT_SEND_PUSH:
        assert(effect->stream_kind == SESSION_PUSH_STREAM);
        do_send(client, effect, &effect->push_request->base);
        break;
    case SESSION_EFFECT_SEND_PULL:
        assert(effect->stream_kind == SESSION_PULL_STREAM);
        do_send(client, effect, &effect->pull_request->base);
        break;
    case SESSION_EFFECT_PUSHED:
    case SESSION_EFFECT_PULLED:
        do_transferred(client, effect);
        break;
    case SESSION_EFFECT_ANSWERED:
        do_answered(effect);
        break;
    case SESSION_EFFECT_LEFT:
        assert(!client->left);
        client->left = true;
        break;
    case SESSION_EFFECT_ENDED:
        do_ended(client, &effect->error);
        break;
    case SESSION_EFFECT_LOG:
        client_log(client, "%s", effect->text);
        break;
    case SESSION_EFFECT_WAKE:
        if (effect->at_us < client->wake_us)
            client->wake_us = effect->at_us;
        break;
    }
    return true;
}

void client_step(struct sumac_client *client, struct session_event *event)
{
    struct session_effects effects;

    if (client->session == NULL)
        return;
    assert(client_is_locked(client));
    assert(client_is_here(client));
    assert(!client->stepping); /* the effects of the step before are done with */
    client->stepping = true;
    if (event->now_us == 0)
        event->now_us = client_now_us();
    event->random[0] = random_bits(client);
    event->random[1] = random_bits(client);
    session_step(client->session, event, &effects);
    client->acknowledging = session_is_acknowledging(client->session);
    bool undone = false;
    for (uint32_t i = 0; i < effects.count; i++) {
        effects.items[i].undone = !do_effect(client, &effects.items[i]);
        undone = undone || effects.items[i].undone;
    }
    client->stepping = false;
    if (undone) /* it is tried again when the session sees fit */
        client_step(client, &(struct session_event){.kind = SESSION_EVENT_UNDONE});
}

void client_hang_up(struct sumac_client *client)
{
    assert(client_is_locked(client));
    for (uint32_t i = 0; i < SESSION_PS_MAX; i++)
        hang_up_on(&client->peers[i]);
}
