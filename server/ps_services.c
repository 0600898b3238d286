/* SPDX-License-Identifier: Apache-2.0 */
/* ps_services.c -- rpc's handlers: what arrives becomes an event of the lane. */
#include <assert.h>

#include "ps_state.h"

/* Which unary call it is: a request's type is that of one method. */
static enum lane_call_kind kind_of(const wire_message *request)
{
    static const struct {
        const wire_service *service;
        unsigned number; /* of its methods */
        enum lane_call_kind kind;
    } calls[] = {
#define X(SERVICE, METHOD, method, what, bytes_max, who)                                           \
    RPC_IF_CALL(what, {WIRE_##SERVICE, WIRE_##SERVICE##_##METHOD, LANE_CALL_##METHOD}, )
        RPC_LIST(X)
#undef X
    };
    const size_t count = sizeof calls / sizeof calls[0];
    size_t i = 0;
    while (i < count && calls[i].service->methods[calls[i].number].input != request->descriptor)
        i++;
    assert(i < count);
    return calls[i].kind;
}

/* An exit that no event of the lane decided (no memory, a second signal) has no reason of its
 * own. */
static void tell_end(const struct ps *ps, struct rpc_call *call)
{
    if (ps->end.status != SUMAC_OK)
        rpc_call_finish(call, ps->end.status, ps->end.reason, ps->end.text);
    else
        rpc_call_finish(
            call, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED, "the ps is about to exit");
}

/* The call's link; until it has one it is the newcomer's. NULL: there is no room for it, or the ps
 * is about to exit. */
static struct ps_link *enter(struct rpc_call *call)
{
    const struct ps_link *const newcomer = rpc_call_user(call);
    struct ps *const ps = newcomer->ps;
    struct ps_link *const link = ps->exiting ? NULL : ps_links_add(&ps->links, ps, call);

    if (link != NULL)
        rpc_call_set_user(call, link);
    else if (ps->exiting)
        tell_end(ps, call);
    else
        rpc_call_finish(
            call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "the ps has too many calls and streams open; close some, or try again later");
    return link;
}

/* ---- unary calls */

static void call_arrived(struct rpc_call *call, const struct wire_received *received)
{
    struct ps_link *const link = enter(call);

    if (link == NULL)
        return;
    link->ps->unheard_us += received->arena_bytes / PS_UNPACKED_PER_US;
    struct lane_event event = {
        .kind = LANE_EVENT_CALL,
        .call = link->id,
        .call_kind = kind_of(received->message),
        .request = received->message,
    };
    ps_step(link->ps, &event);
}

/* ---- streams */

/* Nothing more will be said on it: its pulls are answered or cancelled, or its pushes are, as far
 * as one can tell. */
static bool is_over(const struct ps_link *link, uint64_t now_us)
{
    if (!link->half_closed)
        return false;
    if (link->stream_kind == LANE_STREAM_PULL)
        return !lane_stream_has_pulls(ps_core_lane(link->ps->core), link->id) &&
               rpc_call_writable(link->call);
    return now_us >= link->spoke_us + (uint64_t)PS_HALF_CLOSED_MS * 1000u;
}

static void finish_if_over(struct ps_link *link, uint64_t now_us)
{
    if (link->finished || !is_over(link, now_us))
        return;
    link->finished = true;
    rpc_call_finish(link->call, SUMAC_OK, SUMAC_REASON_UNSPECIFIED, NULL);
}

/* What was said last is out: its client may wait for the end. */
static void tell_writable(struct ps_link *link)
{
    struct lane_event event = {
        .kind = LANE_EVENT_STREAM_WRITABLE, .stream = link->id, .stream_kind = link->stream_kind};
    struct ps *const ps = link->ps;

    ps_step(ps, &event);
    struct ps_link *const still = ps_links_find(&ps->links, event.stream);
    if (still != NULL && still->half_closed)
        finish_if_over(still, still->spoke_us);
}

static void stream_writable(struct rpc_call *call)
{
    struct ps_link *const link = rpc_call_user(call);

    if (link->call != call || link->ps->exiting)
        return;
    if (!ps_turns_wait(&link->ps->turns, link))
        tell_writable(link);
}

void ps_services_turn(struct ps *ps)
{
    bool was_long = false;

    ps_turns_looked(&ps->turns);
    for (uint32_t i = 0; i < PS_UNASKED_PER_TURN_MAX && !was_long && !ps->exiting; i++) {
        struct ps_link *const link = ps_turns_take(&ps->turns);
        if (link == NULL)
            break;
        was_long = link->bulky;
        if (rpc_call_writable(link->call))
            tell_writable(link);
    }
}

static void stream_opened(struct rpc_call *call, enum lane_stream_kind kind)
{
    struct ps_link *const link = enter(call);

    if (link == NULL)
        return;
    link->is_stream = true;
    link->stream_kind = kind;
    struct lane_event event = {
        .kind = LANE_EVENT_STREAM_OPENED, .stream = link->id, .stream_kind = kind};
    ps_step(link->ps, &event);
    if (rpc_call_writable(call))
        stream_writable(call);
}

static void push_opened(struct rpc_call *call) { stream_opened(call, LANE_STREAM_PUSH); }

static void pull_opened(struct rpc_call *call) { stream_opened(call, LANE_STREAM_PULL); }

static void attend_opened(struct rpc_call *call) { stream_opened(call, LANE_STREAM_PEER); }

static void stream_message(struct rpc_call *call, const struct wire_received *received)
{
    struct ps_link *const link = rpc_call_user(call);

    link->ps->unheard_us += received->arena_bytes / PS_UNPACKED_PER_US;
    if (link->call != call || link->finished || link->ps->exiting)
        return;
    struct lane_event event = {
        .stream = link->id,
        .stream_kind = link->stream_kind,
        .payload = received->payload,
        .payload_spans = received->payload_spans,
    };
    switch (link->stream_kind) {
    case LANE_STREAM_PUSH:
        event.kind = LANE_EVENT_PUSH;
        event.push_request = (const wire_push_request *)received->message;
        break;
    case LANE_STREAM_PULL:
        event.kind = LANE_EVENT_PULL;
        ps_turns_asked(&link->ps->turns);
        event.pull_request = (const wire_pull_request *)received->message;
        break;
    case LANE_STREAM_PEER:
        event.kind = LANE_EVENT_ORDER;
        event.order = (const wire_peer_order *)received->message;
        break;
    }
    ps_step(link->ps, &event);
}

/* The client has said all it wants to, and may still wait for answers. */
static void stream_half_closed(struct rpc_call *call)
{
    struct ps_link *const link = rpc_call_user(call);

    if (link->call != call || link->half_closed)
        return;
    link->half_closed = true;
    link->spoke_us = ps_now_us();
    link->ps->links.half_closed++;
    finish_if_over(link, link->spoke_us);
}

/* The newcomer hears of a call that was refused before it had a link. A call that was answered is
 * over for the lane. */
static void closed(struct rpc_call *call, const struct sumac_error *error)
{
    (void)error;
    struct ps_link *const link = rpc_call_user(call);

    if (link->call != call)
        return;
    struct ps *const ps = link->ps;
    const bool told = !link->is_stream && link->finished;
    struct lane_event event = {.kind = LANE_EVENT_CALL_CANCELLED, .call = link->id};
    if (link->is_stream)
        event = (struct lane_event){
            .kind = LANE_EVENT_STREAM_CLOSED, .stream = link->id, .stream_kind = link->stream_kind};
    ps_turns_forget(&ps->turns, link);
    ps_links_remove(&ps->links, link);
    if (!told && !ps->exiting)
        ps_step(ps, &event);
}

#define HANDLER_CALL(bytes_max)                                                                    \
    {                                                                                              \
        .message = call_arrived, .closed = closed, .calls_max = PS_CALLS_PER_METHOD_MAX,           \
        .message_bytes_max = bytes_max                                                             \
    }
#define HANDLER_STREAM(opens, bytes_max)                                                           \
    {                                                                                              \
        .opened = opens, .message = stream_message, .writable = stream_writable,                   \
        .half_closed = stream_half_closed, .closed = closed, .message_bytes_max = bytes_max        \
    }
#define HANDLER_PUSH_STREAM(bytes_max) HANDLER_STREAM(push_opened, bytes_max)
#define HANDLER_PULL_STREAM(bytes_max) HANDLER_STREAM(pull_opened, bytes_max)
/* ps 0 half-closes as it goes: nothing more is owed to it. */
#define HANDLER_PEER_STREAM(bytes_max)                                                             \
    {                                                                                              \
        .opened = attend_opened, .message = stream_message, .writable = stream_writable,           \
        .closed = closed, .message_bytes_max = bytes_max                                           \
    }

/* The rows, a service's together and in the order of its methods, and the handler of each. */
static const struct {
    const wire_service *service;
    unsigned method;
} rows[WIRE_METHODS] = {
#define X(SERVICE, METHOD, method, what, bytes_max, who)                                           \
    {WIRE_##SERVICE, WIRE_##SERVICE##_##METHOD},
    RPC_LIST(X)
#undef X
};
static const struct rpc_handler handlers[WIRE_METHODS] = {
#define X(SERVICE, METHOD, method, what, bytes_max, who) HANDLER_##what(bytes_max),
    RPC_LIST(X)
#undef X
};

enum sumac_status ps_services_add(struct ps *ps, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (size_t i = 0, first = 0; status == SUMAC_OK && i < WIRE_METHODS; i++) {
        assert(rows[i].service == rows[first].service && rows[i].method == i - first);
        if (rows[i].method + 1 < rows[i].service->n_methods)
            continue;
        status =
            rpc_server_add(ps->server, rows[i].service, &handlers[first], &ps->newcomer, error);
        first = i + 1;
    }
    return status;
}

void ps_services_tick(struct ps *ps, uint64_t now_us)
{
    for (uint32_t i = 0; ps->links.half_closed > 0 && i < ps->links.used; i++) {
        struct ps_link *const link = &ps->links.places[i];
        if (link->call != NULL)
            finish_if_over(link, now_us);
    }
}

uint32_t ps_services_end(struct ps *ps)
{
    uint32_t streams = 0;

    for (uint32_t i = 0; i < ps->links.used; i++) {
        struct ps_link *const link = &ps->links.places[i];
        if (link->call == NULL || link->finished)
            continue;
        link->finished = true;
        tell_end(ps, link->call);
        streams += link->is_stream && link->stream_kind != LANE_STREAM_PEER;
    }
    return streams;
}
