/* SPDX-License-Identifier: Apache-2.0 */
/* session.c -- a session whose ps say anything: answers, greetings and pulled bytes, valid and
 * mangled.
 *
 * The caller's bytes are in buffers of just their size, which are freed as soon as the session has
 * answered: reading or writing elsewhere, or later, is what the address sanitizer sees. Every push
 * and every pull is answered once, and all memory comes back. The first letters of each alphabet
 * are what a well-behaved ps says. The first byte says how far the session has come when the input
 * takes over: as a rule it has joined and its streams were greeted, at times with little room; else
 * its ps are found; else it has just begun to look for them, as a member, an observer or a reader.
 */
#include "session.h"

#include <string.h>

#include "fuzz.h"
#include "input.h"
#include "session_asks.h"

#define PS 2u
#define TOKENS_MAX 128u
#define PIECES_MAX 4u
#define SENT_MAX 64u
#define PAYLOAD_BYTES_MAX 8192u
#define FOLLOWING_STEPS_MAX 10000u
#define CLUSTER_ID 42u

static const char *const addresses[] = {"h0:1", "h1:1"};

/* A push or a pull that the caller waits for. */
struct asked {
    bool waits;
    uint32_t count;
    uint8_t *data[PIECES_MAX];
};

struct pulled {
    uint64_t request, bytes;
    uint64_t shard_id;
    size_t pieces;
};

struct peer {
    uint64_t generation[2]; /* of the streams that were asked for, by kind; 0: none */
    bool writable_due[2];
    bool held; /* its streams are not told that they are writable */
    uint64_t sequences[SENT_MAX];
    uint32_t sent, staged, done; /* parts that came whole; how many were answered so far */
    struct asks asks;
    uint64_t commit_through;
    struct pulled pulls[SENT_MAX];
    uint32_t pull_count;
};

struct world {
    struct memory memory;
    uint64_t bytes_taken, takes_left;
    struct session *session;
    uint64_t now_us, drawn, tokens;
    struct asked asked[TOKENS_MAX];
    struct peer peers[PS];
    uint64_t calls[WIRE_SESSIONS_METHODS]; /* the call of each method that is under way; 0: none */
    uint64_t finds[PS];                    /* the calls that ask who is who */
    uint64_t given_call;       /* the last that was made for the caller; 0: none, or it is over */
    bool ended, tight, scarce; /* there is: little room; no memory to open a stream or call */
};

static void *take(void *context, size_t bytes)
{
    struct world *world = context;

    if (world->takes_left == 0)
        return NULL;
    if (world->takes_left != UINT64_MAX)
        world->takes_left--;
    world->bytes_taken += bytes;
    return memory_take(&memory_heap, bytes);
}

static void give(void *context, void *data, size_t bytes)
{
    struct world *world = context;

    world->bytes_taken -= bytes;
    memory_give(&memory_heap, data, bytes);
}

/* ---- what the session wants */

static void answered(struct world *world, uint64_t token)
{
    MUST(token > 0 && token <= world->tokens);
    struct asked *asked = &world->asked[token];
    MUST(asked->waits); /* once */
    asked->waits = false;
    for (uint32_t i = 0; i < asked->count; i++)
        free(asked->data[i]);
}

/* The session had no memory to answer with: its end is the answer to everything. */
static void give_up(struct world *world)
{
    for (uint64_t token = 1; token <= world->tokens; token++)
        if (world->asked[token].waits)
            answered(world, token);
}

static void note_push(struct world *world, const struct session_effect *effect)
{
    struct peer *peer = &world->peers[effect->ps];
    const wire_push_request *request = effect->push_request;
    uint64_t named = 0, came = 0;

    volatile uint8_t read = 0;

    MUST(wire_packed_bytes(&request->base, 0) > 0 || effect->payload_count > 0);
    for (size_t i = 0; i < request->n_parts; i++) {
        const wire_part *part = request->parts[i];
        for (size_t j = 0; j < part->n_pieces; j++)
            named += part->pieces[j]->bytes;
        if (part->last && !asks_is_ask(part) && peer->sent < SENT_MAX)
            peer->sequences[peer->sent++] = part->sequence;
    }
    asks_note(&peer->asks, request);
    for (uint32_t i = 0; i < effect->payload_count; i++) {
        const struct session_bytes *bytes = &effect->payload[i];
        came += bytes->bytes.bytes;
        MUST(world->asked[bytes->token].waits);
        for (size_t j = 0; j < bytes->bytes.bytes; j++)
            read = (uint8_t)(read + bytes->bytes.data[j]);
    }
    MUST(named == came);
    if (request->commit != NULL && request->commit->commit_through > peer->commit_through)
        peer->commit_through = request->commit->commit_through;
}

static void note_pull(struct world *world, const struct session_effect *effect)
{
    struct peer *peer = &world->peers[effect->ps];
    const wire_pull_request *request = effect->pull_request;

    (void)wire_packed_bytes(&request->base, 0);
    if (request->request == 0 || request->cancel || request->n_pieces == 0 ||
        peer->pull_count == SENT_MAX)
        return;
    struct pulled *pull = &peer->pulls[peer->pull_count++];
    *pull = (struct pulled){.request = request->request, .pieces = request->n_pieces};
    pull->bytes = request->pieces[0]->bytes;
    pull->shard_id = request->pieces[0]->shard_id;
}

static void forget_call(struct world *world, uint64_t call)
{
    MUST(call > 0);
    for (uint32_t method = 0; method < WIRE_SESSIONS_METHODS; method++)
        if (world->calls[method] == call)
            world->calls[method] = 0;
    for (uint32_t ps = 0; ps < PS; ps++)
        if (world->finds[ps] == call)
            world->finds[ps] = 0;
    if (world->given_call == call)
        world->given_call = 0;
}

static void carry_out(struct world *world, const struct session_effect *effect)
{
    static const wire_type *const types[] = {
        &sumac__v1__join_request__descriptor, &sumac__v1__renew_request__descriptor,
        &sumac__v1__leave_request__descriptor};
    struct peer *peer = effect->ps < PS ? &world->peers[effect->ps] : NULL;

    switch (effect->kind) {
    case SESSION_EFFECT_ADDRESSES:
        MUST(effect->address_count <= PS);
        break;
    case SESSION_EFFECT_CALL:
        MUST(effect->call > 0 && effect->at_us > world->now_us);
        if (effect->service == WIRE_VARIABLES &&
            ((const wire_list_request *)effect->request)->after_id == UINT64_MAX) {
            MUST(effect->ps < PS);
            world->finds[effect->ps] = effect->call;
            break;
        }
        if (effect->service == WIRE_VARIABLES) {
            world->given_call = effect->call;
            break;
        }
        MUST(effect->request->descriptor == types[effect->method]);
        world->calls[effect->method] = effect->call;
        break;
    case SESSION_EFFECT_CANCEL_CALL:
        forget_call(world, effect->call);
        break;
    case SESSION_EFFECT_OPEN_STREAM:
        MUST(peer != NULL);
        peer->generation[effect->stream_kind] = effect->generation;
        peer->writable_due[effect->stream_kind] = true;
        if (effect->stream_kind == SESSION_PUSH_STREAM) {
            peer->staged = peer->done = peer->sent = 0;
            peer->asks = (struct asks){0};
        }
        break;
    case SESSION_EFFECT_SEND_PUSH:
        MUST(peer != NULL && effect->generation == peer->generation[SESSION_PUSH_STREAM]);
        note_push(world, effect);
        peer->writable_due[SESSION_PUSH_STREAM] = true;
        break;
    case SESSION_EFFECT_SEND_PULL:
        MUST(peer != NULL && effect->generation == peer->generation[SESSION_PULL_STREAM]);
        note_pull(world, effect);
        peer->writable_due[SESSION_PULL_STREAM] = true;
        break;
    case SESSION_EFFECT_PUSHED:
    case SESSION_EFFECT_PULLED:
    case SESSION_EFFECT_ANSWERED:
        answered(world, effect->token);
        break;
    case SESSION_EFFECT_LEFT:
    case SESSION_EFFECT_ENDED:
        MUST(!world->ended);
        world->ended = true;
        if (effect->error.reason == SUMAC_REASON_OUT_OF_MEMORY)
            give_up(world);
        break;
    case SESSION_EFFECT_CLOSE_STREAM:
    case SESSION_EFFECT_JOINED:
    case SESSION_EFFECT_LOG:
    case SESSION_EFFECT_WAKE:
        break;
    }
}

static void step(struct world *world, struct session_event *event)
{
    struct session_effects effects;
    bool undone = false;

    event->now_us = world->now_us;
    event->wall_us = world->now_us;
    event->random[0] = ++world->drawn;
    event->random[1] = ++world->drawn;
    session_step(world->session, event, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        const enum session_effect_kind kind = effects.items[i].kind;
        effects.items[i].undone =
            world->scarce && (kind == SESSION_EFFECT_CALL || kind == SESSION_EFFECT_OPEN_STREAM);
        undone = undone || effects.items[i].undone;
        if (!effects.items[i].undone)
            carry_out(world, &effects.items[i]);
    }
    if (undone)
        step(world, &(struct session_event){.kind = SESSION_EVENT_UNDONE});
}

static bool follow_one(struct world *world)
{
    for (uint32_t ps = 0; ps < PS; ps++) {
        struct peer *peer = &world->peers[ps];
        for (uint32_t kind = 0; kind < 2 && !peer->held; kind++) {
            struct session_event writable = {
                .kind = SESSION_EVENT_STREAM_WRITABLE,
                .ps = ps,
                .stream_kind = (enum session_stream_kind)kind,
                .generation = peer->generation[kind]};
            if (!peer->writable_due[kind])
                continue;
            peer->writable_due[kind] = false;
            step(world, &writable);
            return true;
        }
    }
    return false;
}

static void world_step(struct world *world, struct session_event *event)
{
    uint32_t steps = 0;

    step(world, event);
    while (follow_one(world))
        MUST(++steps < FOLLOWING_STEPS_MAX);
}

static void tick(struct world *world, uint64_t later_us)
{
    world->now_us += later_us;
    world_step(world, &(struct session_event){.kind = SESSION_EVENT_TICK});
}

/* ---- what the ps say */

/* Who it is, and who the others are; or that it cannot be asked. */
static void find(struct world *world, struct input *input, uint32_t ps)
{
    static const uint64_t clusters[] = {CLUSTER_ID, 0, 7};
    static const uint64_t statuses[] = {
        SUMAC_UNAVAILABLE, SUMAC_FAILED_PRECONDITION, SUMAC_UNIMPLEMENTED};
    wire_list_reply reply = WIRE_LIST_REPLY_INIT;
    struct session_event event = {
        .kind = SESSION_EVENT_CALL_ANSWERED, .call = world->finds[ps], .reply = &reply.base};
    struct sumac_error error = {.text = "it is not found"};

    if (event.call == 0)
        return;
    world->finds[ps] = 0;
    reply.cluster_id = CLUSTER_ID;
    reply.epoch = 1;
    reply.ps_incarnation = 100 + ps;
    reply.ps_addresses = (char **)(uintptr_t)addresses;
    if (input != NULL && sometimes(input)) {
        error.status = (enum sumac_status)one_of(input, statuses, 3);
        error.reason = (enum sumac_reason)below(input, 70);
        event.kind = SESSION_EVENT_CALL_FAILED;
        event.error = &error;
    } else if (input != NULL) {
        reply.cluster_id = one_of(input, clusters, 3);
        reply.epoch = 1 + sometimes(input);
        reply.ps_incarnation += sometimes(input);
        reply.n_ps_addresses = below(input, PS + 1);
    }
    world_step(world, &event);
}

static void joined(struct world *world, struct input *input)
{
    static uint8_t id[17] = {7};
    uint64_t incarnations[] = {100, 101, 102};
    wire_join_reply reply = WIRE_JOIN_REPLY_INIT;
    struct session_event event = {
        .kind = SESSION_EVENT_CALL_ANSWERED,
        .call = world->calls[WIRE_SESSIONS_JOIN],
        .reply = &reply.base};

    if (event.call == 0)
        return;
    world->calls[WIRE_SESSIONS_JOIN] = 0;
    reply.cluster_id = CLUSTER_ID;
    reply.epoch = 1;
    reply.session_id = (wire_bytes){.len = 16, .data = id};
    reply.attempt = 1;
    reply.lease_ms = 9000;
    reply.ps_lost_ms = 60000;
    reply.n_ps_addresses = reply.n_ps_incarnations = PS;
    reply.ps_addresses = (char **)(uintptr_t)addresses;
    reply.ps_incarnations = incarnations;
    if (input != NULL && sometimes(input)) {
        reply.session_id.len = below(input, 18);
        reply.lease_ms = 4500 * below(input, 3); /* longer than a tick here, or each were a sleep */
        reply.ps_lost_ms = below(input, 3);
        reply.n_ps_addresses = below(input, 3);
        reply.n_ps_incarnations = below(input, 4);
        reply.epoch = below(input, 3);
    }
    world_step(world, &event);
}

/* A renewal or a leave is answered. */
static void called(struct world *world, unsigned method)
{
    const wire_renew_reply renewed = WIRE_RENEW_REPLY_INIT;
    const wire_leave_reply left = WIRE_LEAVE_REPLY_INIT;
    struct session_event event = {
        .kind = SESSION_EVENT_CALL_ANSWERED,
        .call = world->calls[method],
        .reply = method == WIRE_SESSIONS_RENEW ? &renewed.base : &left.base};

    if (event.call == 0)
        return;
    world->calls[method] = 0;
    world_step(world, &event);
}

static void call_failed(struct world *world, struct input *input)
{
    static const uint64_t statuses[] = {
        SUMAC_UNAVAILABLE, SUMAC_DEADLINE_EXCEEDED, SUMAC_ABORTED, SUMAC_FAILED_PRECONDITION,
        SUMAC_RESOURCE_EXHAUSTED};
    const struct sumac_error error = {
        .status = (enum sumac_status)one_of(input, statuses, 5),
        .reason = (enum sumac_reason)below(input, 70),
        .text = "it failed"};
    struct session_event event = {.kind = SESSION_EVENT_CALL_FAILED, .error = &error};
    const uint32_t method = below(input, WIRE_SESSIONS_METHODS);

    event.call = world->calls[method];
    if (event.call == 0)
        event.call = world->given_call;
    if (event.call == 0)
        return;
    if (world->calls[method] != 0)
        world->calls[method] = 0;
    else
        world->given_call = 0;
    world_step(world, &event);
}

/* A call of the caller's is answered, or made. */
static void call_a_list(struct world *world, struct input *input)
{
    static const wire_list_request request = WIRE_LIST_REQUEST_INIT;
    const wire_list_reply reply = WIRE_LIST_REPLY_INIT;
    const struct session_call wanted = {
        .token = world->tokens + 1,
        .ps = below(input, PS + 1),
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_LIST,
        .request = &request.base,
        .timeout_ms = 1 + 1000 * below(input, 64),
        .needs_session = below(input, 2) == 1,
        .once = sometimes(input)};
    struct session_event event = {
        .kind = SESSION_EVENT_CALL_ANSWERED, .call = world->given_call, .reply = &reply.base};

    world->given_call = 0;
    if (event.call == 0 && world->tokens + 1 < TOKENS_MAX) {
        world->asked[++world->tokens] = (struct asked){.waits = true};
        event = (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &wanted};
    }
    if (event.kind == SESSION_EVENT_CALL || event.call != 0)
        world_step(world, &event);
}

static void greet(struct world *world, struct input *input, uint32_t ps, bool pull)
{
    wire_greeting greeting = WIRE_GREETING_INIT;
    wire_push_answer push_answer = WIRE_PUSH_ANSWER_INIT;
    wire_pull_answer pull_answer = WIRE_PULL_ANSWER_INIT;
    const enum session_stream_kind kind = pull ? SESSION_PULL_STREAM : SESSION_PUSH_STREAM;
    struct session_event event = {
        .kind = pull ? SESSION_EVENT_PULL_ANSWER : SESSION_EVENT_PUSH_ANSWER,
        .ps = ps,
        .stream_kind = kind,
        .generation = world->peers[ps].generation[kind]};

    greeting.epoch = 1;
    greeting.ps_incarnation = 100 + ps;
    greeting.cluster_id = CLUSTER_ID;
    greeting.staging_grant_bytes = world->tight ? 1500 : 1000000;
    greeting.part_bytes_max = 8000;
    if (input != NULL && sometimes(input)) {
        greeting.epoch = below(input, 3);
        greeting.ps_incarnation = 99 + below(input, 3);
        greeting.mark = below(input, 4) * 1000;
        greeting.staging_grant_bytes = below(input, 4) * 60;
        greeting.part_bytes_max = below(input, 4) * 3000;
    }
    push_answer.greeting = pull_answer.greeting = &greeting;
    event.push_answer = pull ? NULL : &push_answer;
    event.pull_answer = pull ? &pull_answer : NULL;
    world_step(world, &event);
}

/* An answer as a ps would give it, unless the input says otherwise. */
static void answer(struct world *world, struct input *input)
{
    static const uint64_t odd[] = {0, 1, 2, UINT64_MAX, 7, 1000};
    const uint32_t ps = below(input, PS), pick = below(input, 16);
    struct peer *peer = &world->peers[ps];
    uint64_t versions[8] = {1, 2, 3, 4, 5, 6, 7, 8}, voided[2], resend;
    wire_staged staged = WIRE_STAGED_INIT, *all_staged[] = {&staged, &staged};
    wire_refused refused = WIRE_REFUSED_INIT, *all_refused[] = {&refused};
    wire_done done = WIRE_DONE_INIT, *all_done[] = {&done, &done};
    wire_give_way give_way = WIRE_GIVE_WAY_INIT, *all_give_way[] = {&give_way};
    wire_room_wait room_wait = WIRE_ROOM_WAIT_INIT, *all_room_waits[] = {&room_wait};
    wire_closed closed = WIRE_CLOSED_INIT;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    struct session_event event = {
        .kind = SESSION_EVENT_PUSH_ANSWER, .ps = ps, .push_answer = &answer};

    staged.sequence = peer->staged < peer->sent ? peer->sequences[peer->staged] : 0;
    done.sequence = peer->done < peer->sent ? peer->sequences[peer->done] : 0;
    if (pick >= 12) {
        staged.sequence = one_of(input, odd, 6);
        done.sequence = one_of(input, odd, 6);
    }
    refused.sequence = room_wait.sequence = staged.sequence;
    give_way.sequence = peer->staged > 0 ? peer->sequences[peer->staged - 1] : staged.sequence;
    staged.resend = give_way.resend = below(input, 2);
    done.versions = versions;
    done.n_versions = sometimes(input) ? below(input, 9) : 1;
    done.voided = sometimes(input);
    refused.status = SUMAC_INVALID_ARGUMENT;
    refused.reason = (Sumac__V1__Reason)SUMAC_REASON_NON_FINITE;
    closed.final = one_of(input, odd, 6);
    closed.decided = below(input, 2) == 1;
    closed.n_voided = below(input, 3);
    closed.voided = voided;
    voided[0] = voided[1] = staged.sequence;
    answer.staged = all_staged;
    answer.refused = all_refused;
    answer.done = all_done;
    answer.give_way = all_give_way;
    answer.resend = &resend;
    answer.room_waits = all_room_waits;
    if (pick == 4 || pick == 11) {
        resend = asks_resend(&peer->asks, done.sequence);
        answer.n_resend = 1;
        answer.n_give_way = answer.n_room_waits = pick == 11 ? below(input, 2) : 0;
    } else if (pick < 5 || pick == 12) {
        answer.n_staged = 1;
        peer->staged += peer->staged < peer->sent;
    } else if (pick < 9 || pick == 13) {
        answer.n_done = 1;
        peer->done += peer->done < peer->sent;
    } else if (pick == 9) {
        answer.n_refused = 1;
        peer->staged += peer->staged < peer->sent;
    } else if (pick == 10) {
        answer.n_staged = answer.n_done = 2;
    } else if (pick == 14) {
        answer.closed = &closed;
    } else {
        answer.rejoin = sometimes(input);
        answer.durable_through = done.sequence;
    }
    event.generation = peer->generation[SESSION_PUSH_STREAM] - sometimes(input);
    world_step(world, &event);
}

static void pull_answer(struct world *world, struct input *input)
{
    static uint8_t payload[PAYLOAD_BYTES_MAX];
    const uint32_t ps = below(input, PS), pick = below(input, 8);
    struct peer *peer = &world->peers[ps];
    wire_piece pieces[2] = {WIRE_PIECE_INIT, WIRE_PIECE_INIT},
               *pointers[] = {&pieces[0], &pieces[1]};
    uint64_t versions[PIECES_MAX + 1] = {1, 2, 3, 4, 5};
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    struct span spans[2];
    struct session_event event = {
        .kind = SESSION_EVENT_PULL_ANSWER,
        .ps = ps,
        .stream_kind = SESSION_PULL_STREAM,
        .pull_answer = &answer,
        .payload = spans};

    if (peer->pull_count == 0)
        return;
    struct pulled *pull = &peer->pulls[below(input, 2) % peer->pull_count];
    answer.request = pull->request + (pick == 7);
    answer.position = 1 + sometimes(input);
    answer.pieces = pointers;
    answer.n_pieces = pick == 6 ? below(input, 3) : 1;
    answer.versions = versions;
    answer.n_versions = pick == 5 ? below(input, PIECES_MAX + 2) : pull->pieces;
    answer.last = pick != 4;
    answer.version_epoch = 1;
    pieces[0].shard_id = pieces[1].shard_id = pull->shard_id + sometimes(input);
    pieces[0].bytes = sometimes(input) ? next(input) * 4u : pull->bytes;
    pieces[0].offset_bytes = sometimes(input) ? next(input) * 4u : 0;
    pieces[1].bytes = sometimes(input) ? UINT64_MAX : 8;
    pieces[1].offset_bytes = sometimes(input) ? UINT64_MAX : pieces[0].bytes;
    if (sometimes(input)) {
        answer.status = SUMAC_ABORTED;
        answer.reason = (Sumac__V1__Reason)SUMAC_REASON_VIEW_ENDED;
    }
    uint64_t bytes = pieces[0].bytes + (answer.n_pieces > 1 ? pieces[1].bytes : 0);
    if (answer.n_pieces == 0 || sometimes(input))
        bytes = next(input);
    if (bytes > PAYLOAD_BYTES_MAX)
        bytes = 0;
    spans[0] = (struct span){.data = payload, .bytes = bytes / 2};
    spans[1] = (struct span){.data = payload + bytes / 2, .bytes = bytes - bytes / 2};
    event.payload_spans = bytes == 0 ? 0 : bytes == 1 ? 1 : 2;
    if (bytes == 1)
        spans[0] = spans[1];
    event.generation = peer->generation[SESSION_PULL_STREAM];
    if (answer.last && pick < 4)
        *pull = peer->pulls[--peer->pull_count];
    world_step(world, &event);
}

static void lose(struct world *world, struct input *input)
{
    static const uint64_t statuses[] = {
        SUMAC_UNAVAILABLE, SUMAC_ABORTED, SUMAC_RESOURCE_EXHAUSTED, SUMAC_INVALID_ARGUMENT,
        SUMAC_FAILED_PRECONDITION};
    const uint32_t ps = below(input, PS), kind = below(input, 2);
    const struct sumac_error error = {
        .status = (enum sumac_status)one_of(input, statuses, 5),
        .reason = (enum sumac_reason)(sometimes(input) ? below(input, 70) : 0),
        .text = "reset"};
    struct session_event event = {
        .kind = SESSION_EVENT_STREAM_LOST,
        .ps = ps,
        .stream_kind = (enum session_stream_kind)kind,
        .generation = world->peers[ps].generation[kind],
        .error = &error};

    world->peers[ps].writable_due[kind] = false;
    world->peers[ps].pull_count = 0;
    world_step(world, &event);
}

/* ---- what the caller wants */

static uint32_t make_pieces(struct asked *asked, struct session_piece *pieces, struct input *input)
{
    static const uint64_t sizes[] = {16, 4, 64, 256, 0, 1024};
    const uint32_t count = 1 + below(input, PIECES_MAX);

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t ps = below(input, PS);
        const uint64_t bytes = one_of(input, sizes, 6);
        asked->data[i] = calloc(1, bytes == 0 ? 1 : bytes);
        MUST(asked->data[i] != NULL);
        pieces[i] = (struct session_piece){
            .ps = ps,
            .shard_id = 10 + ps,
            .layout_epoch = 1,
            .bytes = bytes,
            .data = asked->data[i]};
    }
    asked->count = count;
    return count;
}

static void ask(struct world *world, struct input *input, bool pull)
{
    struct session_piece pieces[PIECES_MAX];
    struct session_push push = {.pieces = pieces, .weight = 1};
    struct session_pull request = {.pieces = pieces, .timeout_ms = 5000};
    struct session_event event = {
        .kind = pull ? SESSION_EVENT_PULL : SESSION_EVENT_PUSH, .push = &push, .pull = &request};

    if (world->tokens + 1 >= TOKENS_MAX)
        return;
    struct asked *asked = &world->asked[++world->tokens];
    asked->waits = true;
    push.token = request.token = world->tokens;
    push.finishes_step = world->tokens % 2 == 0;
    request.bounded = world->tokens % 3 == 0;
    request.lag_max = world->tokens % 5;
    push.piece_count = request.piece_count = make_pieces(asked, pieces, input);
    push.finishes_step = below(input, 2) == 1;
    request.after_own_pushes = push.finishes_step;
    world_step(world, &event);
}

static void caller(struct world *world, struct input *input)
{
    const uint32_t pick = below(input, 16);
    struct session_event event = {
        .kind = pick < 2 ? SESSION_EVENT_CANCEL_PULL : SESSION_EVENT_CANCEL_PUSH};

    switch (pick) {
    case 0:
    case 6:
    case 7:
        if (world->tokens == 0)
            return;
        event.token = world->tokens - below(input, 4) % world->tokens;
        break;
    case 1:
        event.kind = SESSION_EVENT_LEAVE;
        event.done = below(input, 2) == 1;
        break;
    case 2:
    case 3:
        called(world, sometimes(input) ? WIRE_SESSIONS_LEAVE : WIRE_SESSIONS_RENEW);
        return;
    case 4:
    case 5:
        call_a_list(world, input);
        return;
    default:
        event.kind = SESSION_EVENT_TICK;
        break;
    }
    world_step(world, &event);
}

static void turn_a_knob(struct world *world, struct input *input)
{
    static const uint64_t times_us[] = {1000, 0, 300000, 3000000, 11000000, 61000000};
    struct session_event tick_event = {.kind = SESSION_EVENT_TICK};
    const uint32_t pick = below(input, 8);
    struct peer *peer = &world->peers[pick == 4];

    if (pick < 2) {
        world->takes_left = pick == 0 ? next(input) : UINT64_MAX;
    } else if (pick < 5) {
        peer->held = !peer->held;
        world_step(world, &tick_event);
    } else if (pick == 5) {
        world->scarce = !world->scarce;
    } else {
        tick(world, one_of(input, times_us, 6));
    }
}

/* ---- its life */

static void begin(struct world *world, struct input *input, bool finds)
{
    const uint32_t who = finds ? below(input, 8) : 0; /* a reader, an observer, and of how much */
    const struct session_config config = {
        .reader = (who & 1) != 0,
        .any_ps = (who & 4) != 0,
        .role = (who & 2) != 0 ? WIRE_ROLE_OBSERVER : WIRE_ROLE_MEMBER,
        .job = "worker",
        .ps_addresses = addresses,
        .ps_count = (who & 4) != 0 ? 1 : PS,
        .chunk_bytes = 64};
    struct session_event start = {.kind = SESSION_EVENT_START};

    memset(world, 0, sizeof *world);
    world->memory = (struct memory){.take = take, .give = give, .context = world};
    world->takes_left = UINT64_MAX;
    world->now_us = 1000000;
    world->session = session_create(&config, &world->memory);
    MUST(world->session != NULL);
    world_step(world, &start);
    for (uint32_t ps = PS; ps-- > 0 && !finds;)
        find(world, NULL, ps);
}

static void end(struct world *world)
{
    world->takes_left = UINT64_MAX;
    world->scarce = false;
    world->peers[0].held = world->peers[1].held = false;
    for (int i = 0; i < 60 && !world->ended; i++)
        tick(world, 3000000);
    for (uint64_t token = 1; token <= world->tokens; token++)
        MUST(!world->asked[token].waits);
    session_destroy(world->session);
    MUST(world->bytes_taken == 0);
}

static void any_event(struct world *world, struct input *input)
{
    const uint32_t pick = below(input, 16);

    if (pick < 12 && (world->finds[0] | world->finds[1]) != 0) {
        find(world, input, world->finds[0] == 0 || (world->finds[1] != 0 && pick % 2 == 1));
        return;
    }
    switch (pick) {
    case 0:
    case 1:
        ask(world, input, false);
        break;
    case 2:
        ask(world, input, true);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        answer(world, input);
        break;
    case 7:
    case 8:
    case 9:
        pull_answer(world, input);
        break;
    case 10:
    case 11:
        greet(world, input, below(input, PS), below(input, 2) == 1);
        break;
    case 12:
        lose(world, input);
        break;
    case 13:
        turn_a_knob(world, input);
        break;
    case 14:
        caller(world, input);
        break;
    default:
        if (world->calls[WIRE_SESSIONS_JOIN] != 0)
            joined(world, input);
        else
            call_failed(world, input);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct world world;
    struct input input = {.data = data, .left = bytes};

    const uint32_t stage = below(&input, 8);
    begin(&world, &input, stage == 6);
    world.tight = stage == 5;
    if (stage < 6) { /* else the join is the input's as well */
        joined(&world, NULL);
        greet(&world, NULL, 0, false);
        greet(&world, NULL, 1, false);
    }
    while (input.left > 0 && !world.ended)
        any_event(&world, &input);
    end(&world);
    return 0;
}
