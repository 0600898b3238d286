/* SPDX-License-Identifier: Apache-2.0 */
/* ps_fixture.h -- a ps that serves on a port that the system picks, without a core: what its core
 * would be told is kept, and what its core would say the test has carried out. A client on the same
 * poller; all of it in one thread.
 *
 * For programs that wrap ps_core_step, ps_core_lane, lane_stream_has_pulls and ps_log. */
#pragma once

#include "unit.h"

#include "ps_state.h"
#include "text.h"

#define PATIENCE_US 120000000u /* of a test that waits for what must come */
#define TOLD_MAX 256u

/* An event, ticks aside, and what was lent with it. */
struct told {
    struct lane_event event;
    char text[256];
    uint64_t number; /* of a pull, an order, or the order that a report answers */
};

struct served {
    struct ps *ps;
    struct rpc_channel *channel; /* its client's */
    struct told told[TOLD_MAX];
    uint32_t told_count;
    bool has_pulls; /* so the lane would say of any stream */
    char logged[1024];
    bool over; /* the test has returned, or failed: what its calls told is gone */
};

/* What a client has seen of one call. */
struct heard {
    unsigned opened, messages, closed;
    struct sumac_error error;
    struct rpc_call *call;
};

static struct served *served; /* the present test's */

void __wrap_ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects);

void __wrap_ps_core_step(
    struct ps_core *core, const struct lane_event *event, struct lane_effects *effects)
{
    (void)core;
    *effects = (struct lane_effects){0};
    if (event->kind == LANE_EVENT_TICK)
        return;
    assert_true(served->told_count < TOLD_MAX);
    struct told *const told = &served->told[served->told_count++];
    *told = (struct told){.event = *event};
    if (event->text != NULL)
        (void)text_print(told->text, sizeof told->text, "%s", event->text);
    if (event->kind == LANE_EVENT_PULL)
        told->number = event->pull_request->request;
    if (event->kind == LANE_EVENT_ORDER)
        told->number = event->order->number;
    if (event->kind == LANE_EVENT_REPORT)
        told->number = event->report->answers;
}

struct lane *__wrap_ps_core_lane(const struct ps_core *core);

struct lane *__wrap_ps_core_lane(const struct ps_core *core)
{
    (void)core;
    return NULL;
}

bool __wrap_lane_stream_has_pulls(const struct lane *lane, uint64_t id);

bool __wrap_lane_stream_has_pulls(const struct lane *lane, uint64_t id)
{
    (void)lane;
    (void)id;
    return served->has_pulls;
}

void __wrap_ps_log(uint32_t index, const char *format, ...);

void __wrap_ps_log(uint32_t index, const char *format, ...)
{
    va_list arguments;
    (void)index;

    va_start(arguments, format);
    (void)text_print_values(served->logged, sizeof served->logged, format, arguments);
    va_end(arguments);
}

/* ---- what was told */

static inline uint32_t count_of(enum lane_event_kind kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < served->told_count; i++)
        count += served->told[i].event.kind == kind;
    return count;
}

/* The last of that kind. */
static inline const struct told *last_of(enum lane_event_kind kind)
{
    uint32_t i = served->told_count;

    while (i > 0 && served->told[i - 1].event.kind != kind)
        i--;
    assert_true(i > 0);
    return &served->told[i - 1];
}

/* Rounds of the loop, until that many of the kind were told. One that exits only polls. */
static inline void turn(void)
{
    if (served->ps->exiting)
        (void)rpc_poll(served->ps->poller, ps_now_us() + 10000);
    else
        ps_turn(served->ps);
}

static inline const struct told *await_told(enum lane_event_kind kind, uint32_t count)
{
    const uint64_t end_us = ps_now_us() + PATIENCE_US;

    while (count_of(kind) < count && ps_now_us() < end_us)
        turn();
    assert_int_equal(count_of(kind), count);
    return last_of(kind);
}

static inline void await(const unsigned *count, unsigned wanted)
{
    const uint64_t end_us = ps_now_us() + PATIENCE_US;

    while (*count < wanted && ps_now_us() < end_us)
        turn();
    assert_int_equal(*count, wanted);
}

/* All places are free, and nobody is counted any more. */
static inline void await_no_links(void)
{
    const uint64_t end_us = ps_now_us() + PATIENCE_US;
    uint32_t open = 1;

    while (open > 0 && ps_now_us() < end_us) {
        turn();
        open = 0;
        for (uint32_t i = 0; i < served->ps->links.used; i++)
            open += served->ps->links.places[i].call != NULL;
    }
    assert_int_equal(open, 0);
    assert_int_equal(served->ps->links.half_closed, 0);
    assert_int_equal(served->ps->turns.bulky, 0);
    assert_null(served->ps->turns.waiting.first);
}

/* ---- its client */

static inline void client_opened(struct rpc_call *call)
{
    if (!served->over)
        ((struct heard *)rpc_call_user(call))->opened++;
}

static inline void client_message(struct rpc_call *call, const struct wire_received *received)
{
    (void)received;
    if (!served->over)
        ((struct heard *)rpc_call_user(call))->messages++;
}

static inline void client_closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct heard *const heard = rpc_call_user(call);

    if (served->over)
        return;
    heard->closed++;
    heard->error = *error;
    heard->call = NULL;
}

static const struct rpc_handler client_handler = {
    .opened = client_opened, .message = client_message, .closed = client_closed};

/* `message` NULL: of a stream. */
static inline void begin_call(
    struct heard *heard, const wire_service *service, unsigned method, const wire_message *message)
{
    *heard = (struct heard){0};
    assert_int_equal(
        rpc_channel_call(
            served->channel,
            &(struct rpc_start){
                .service = service,
                .method = method,
                .message = message,
                .wait_for_ready = true,
                .handler = &client_handler,
                .user = heard},
            &heard->call),
        SUMAC_OK);
}

static inline void begin_stats(struct heard *heard)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;

    begin_call(heard, WIRE_OBSERVE, WIRE_OBSERVE_STATS, &request.base);
}

static const struct {
    const wire_service *service;
    unsigned method;
} stream_methods[] = {
    [LANE_STREAM_PUSH] = {WIRE_TRANSFER, WIRE_TRANSFER_PUSH},
    [LANE_STREAM_PULL] = {WIRE_TRANSFER, WIRE_TRANSFER_PULL},
    [LANE_STREAM_PEER] = {WIRE_PEER, WIRE_PEER_ATTEND}};

/* The lane's number for it, once it was told that it is writable. */
static inline uint64_t begin_stream(struct heard *heard, enum lane_stream_kind kind)
{
    const uint32_t count = count_of(LANE_EVENT_STREAM_WRITABLE);

    begin_call(heard, stream_methods[kind].service, stream_methods[kind].method, NULL);
    await(&heard->opened, 1);
    const struct told *const told = await_told(LANE_EVENT_STREAM_WRITABLE, count + 1);
    assert_int_equal(told->event.stream_kind, kind);
    return told->event.stream;
}

/* ---- given */

static inline int ps_set_up(void **state)
{
    struct served *const made = calloc(1, sizeof *made);
    struct ps *const ps = calloc(1, sizeof *ps);
    const struct rpc_server_options options = {.bind_host = "127.0.0.1"};
    struct sumac_error error;
    char target[64];

    assert_non_null(made);
    assert_non_null(ps);
    served = made;
    made->ps = ps;
    ps->newcomer.ps = ps;
    ps->wake_us = ps->redial_us = ps->probe.due_us = UINT64_MAX;
    ps->ticked_us = ps->looked_round_us = ps_now_us();
    rpc_init();
    release_queue_init(&ps->released);
    pool_init(&ps->helds, &memory_heap, sizeof(struct ps_held), 4);
    assert_true(ps_links_init(&ps->links));
    assert_true(ps_random_init(&ps->random));
    assert_true(compute_pool_create(0, &ps->pool));
    assert_int_equal(rpc_poller_create(&ps->poller), SUMAC_OK);
    assert_int_equal(rpc_server_open(ps->poller, &options, &ps->server, &error), SUMAC_OK);
    assert_int_equal(ps_services_add(ps, &error), SUMAC_OK);
    assert_int_equal(rpc_server_start(ps->server, &error), SUMAC_OK);
    snprintf(target, sizeof target, "127.0.0.1:%u", rpc_server_port(ps->server));
    assert_int_equal(rpc_channel_open(ps->poller, target, &made->channel), SUMAC_OK);
    *state = made;
    return 0;
}

static inline int ps_tear_down(void **state)
{
    struct served *const made = *state;
    struct ps *const ps = made->ps;

    made->over = ps->exiting = true;
    rpc_channel_close(made->channel);
    ps_peers_close(ps);
    rpc_server_close(ps->server);
    rpc_poller_destroy(ps->poller);
    compute_pool_destroy(ps->pool);
    rpc_deinit();
    ps_take_released(ps);
    pool_deinit(&ps->helds);
    ps_links_deinit(&ps->links);
    free(ps->payload);
    free(ps);
    free(made);
    served = NULL;
    return 0;
}

#define SERVED_TEST(name) FIXTURE_TEST(name, void *none, ps_set_up, ps_tear_down)
