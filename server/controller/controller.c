/* SPDX-License-Identifier: Apache-2.0 */
/* controller.c -- one event in, its effects out: each takes note of the time, does its file's work,
 * and gives the ps what is due. */
#include "controller_collectives.h"
#include "barrier.h"
#include "catalogue.h"
#include "row_bytes.h"

#include <assert.h>
#include <string.h>

#include "error.h"
#include "text.h"
#include "controller_orders.h"
#include "controller_members.h"

#define TICK_MS_MAX 1000u
#define ARENA_BYTES_MAX (64u << 20)

/* ---- creation ---- */

static uint32_t smallest(const uint32_t *values, size_t count)
{
    assert(count > 0);
    uint32_t least = values[0];
    for (size_t i = 1; i < count; i++)
        if (values[i] < least)
            least = values[i];
    return least;
}

/* Often enough that no deadline is a quarter late, and that a pause of half a lease is no ordinary
 * one. */
static uint64_t choose_tick_us(const struct lane_config *config)
{
    const uint32_t bounds[] = {
        4u * TICK_MS_MAX, config->lease_ms, config->rejoin_ms, config->ps_lost_ms,
        config->report_ms};
    const uint32_t ms = smallest(bounds, sizeof bounds / sizeof bounds[0]) / 4u;

    return controller_ms(ms == 0 ? 1 : ms);
}

static void init_pools(struct controller *controller, const struct memory *memory)
{
    pool_init(&controller->tasks_pool, memory, sizeof(struct controller_task), 32);
    pool_init(&controller->sessions_pool, memory, sizeof(struct controller_session), 16);
    pool_init(&controller->orders_pool, memory, sizeof(struct controller_order), 64);
    pool_init(&controller->calls_pool, memory, sizeof(struct controller_call), 64);
    pool_init(&controller->waiting_pool, memory, sizeof(struct controller_waiting), 64);
    pool_init(&controller->held_pool, memory, sizeof(struct controller_held), 16);
}

static const size_t peers_bytes = LANE_PS_MAX * sizeof(struct controller_peer);

struct controller *controller_create(const struct lane_config *config, const struct memory *memory)
{
    struct controller *controller = memory_take_zeroed(memory, sizeof *controller);

    if (controller == NULL)
        return NULL;
    assert(config->lease_ms > 0);
    assert(config->ps_lost_ms > 0);
    controller->config = config;
    controller->memory = memory;
    controller->row_functions = row_functions;
    controller->tick_us = choose_tick_us(config);
    controller->membership_epoch = 1;
    init_pools(controller, memory);
    controller->peers = memory_take_zeroed(memory, peers_bytes);
    controller->row.kind = CONTROLLER_ROW_CLUSTER;
    controller->step_row.kind = CONTROLLER_ROW_STEP;
    for (uint32_t i = 0; i < UPDATE_DEFINED_MAX; i++)
        controller->defined[i].row.kind = CONTROLLER_ROW_FUNCTION;
    for (uint32_t ps = 0; controller->peers != NULL && ps < LANE_PS_MAX; ps++)
        controller->peers[ps].row.kind = CONTROLLER_ROW_PS;
    key_map_init(&controller->tasks_by_key, memory);
    key_map_init(&controller->sessions_by_id, memory);
    key_map_init(&controller->sessions_by_nonce, memory);
    key_map_init(&controller->variables_by_name, memory);
    key_map_init(&controller->barriers_by_name, memory);
    id_map_init(&controller->variables_by_id, memory);
    arena_init(&controller->arena, memory, ARENA_BYTES_MAX);
    controller->out = &controller->effects;
    const bool whole = functions_init(&controller->functions, memory, config->plugins);
    if (out_init(controller->out, memory, &controller->arena) && controller->peers != NULL && whole)
        return controller;
    controller_destroy(controller);
    return NULL;
}

void controller_destroy(struct controller *controller)
{
    if (controller == NULL)
        return;
    while (controller->variables.first != NULL) {
        struct controller_variable *variable = controller->variables.first;
        LIST_REMOVE(&controller->variables, variable, in_controller);
        memory_give(controller->memory, variable, variable->bytes);
    }
    LIST_FOREACH(struct controller_task, task, &controller->tasks, in_controller)
        controller_voided_drop(controller, &task->voided);
    LIST_FOREACH(struct controller_session, session, &controller->sessions, in_controller)
        controller_voided_drop(controller, &session->voided);
    pool_deinit(&controller->tasks_pool);
    pool_deinit(&controller->sessions_pool);
    pool_deinit(&controller->orders_pool);
    LIST_FOREACH(struct controller_call, call, &controller->calls, in_controller)
        controller_list_give(controller, call->list);
    pool_deinit(&controller->calls_pool);
    controller_barriers_deinit(controller);
    controller_collectives_deinit(controller);
    controller_held_deinit(controller);
    out_deinit(controller->out);
    arena_deinit(&controller->arena);
    memory_give(controller->memory, controller->peers, peers_bytes);
    key_map_deinit(&controller->tasks_by_key);
    key_map_deinit(&controller->sessions_by_nonce);
    key_map_deinit(&controller->sessions_by_id);
    key_map_deinit(&controller->variables_by_name);
    id_map_deinit(&controller->variables_by_id);
    functions_deinit(&controller->functions);
    memory_give(controller->memory, controller, sizeof *controller);
}

/* A list of what was voided is its session's until that is settled, and then its task's; while one
 * grows there are two. */
uint64_t controller_sessions_bytes_max(const struct controller *controller)
{
    const uint64_t sessions_max = controller_sessions_max(controller);
    const uint64_t lists = controller->config->sessions_max + controller->tasks_pool.used + 1;

    return sessions_max * sizeof(struct controller_session) +
           controller->tasks_pool.used * sizeof(struct controller_task) +
           (2 * sessions_max + controller->tasks_pool.used) * ID_MAP_ENTRY_BYTES_MAX +
           lists * controller_voided_bytes_max(controller) + controller_held_bytes_max(controller) +
           controller_barriers_bytes_max(controller) + controller_collectives_bytes_max() +
           FUNCTIONS_BYTES;
}

uint64_t controller_cluster_id(const struct controller *controller)
{
    return controller->cluster_id;
}

/* ---- events ---- */

static void want_tick(struct controller *controller)
{
    controller_wake(controller, controller->now_us + controller->tick_us);
}

/* From its records: everybody is heard from now on, and what was under way is done again. */
static void begin_again(struct controller *controller)
{
    controller->beginnings++;
    controller->orders_given = controller->beginnings << CONTROLLER_ORDERS_OF_BEGINNING_BITS;
    controller->first_join_us = controller->memberless_since_us =
        controller->member_joined ? controller->now_us : 0;
    LIST_FOREACH(struct controller_session, session, &controller->sessions, in_controller) {
        session->heard_us = controller->now_us;
        session->joined_us = session->settling_us = controller->now_us;
    }
    controller_barriers_begin_again(controller);
    if (controller->phase == CONTROLLER_RUNNING) {
        controller_collectives_begin_again(controller);
        controller_steps_begin_again(controller);
        controller_defines_order(controller);
        controller_orders_begin_again(controller);
    } else {
        controller_run_end_again(controller);
    }
}

static void started(struct controller *controller, const struct lane_event *event)
{
    const bool again = controller->cluster_id != 0;

    controller->records = controller->config->records;
    if (!again) {
        controller->cluster_id = event->random[0] == 0 ? 1 : event->random[0];
        controller->secret = event->random[1];
    }
    controller_row_changed(controller, &controller->row);
    controller_reports_begin(controller);
    controller_tasks_start(controller);
    controller_peers_start(controller);
    if (again)
        begin_again(controller);
    want_tick(controller);
}

/* controller_join_call of Join … */
#define CALL_OF_CONTROLLER(METHOD, method) [LANE_CALL_##METHOD] = controller_##method##_call,
#define CALL_OF_LANE(METHOD, method)
#define X(SERVICE, METHOD, method, what, bytes_max, who)                                           \
    RPC_IF_CALL(what, CALL_OF_##who(METHOD, method))
static void (*const calls[])(struct controller *controller, const struct lane_event *event) = {
    RPC_LIST(X)};
#undef X

static void called(struct controller *controller, const struct lane_event *event)
{
    assert(event->call != 0);
    assert(event->request != NULL);
    assert(rpc_is_the_controllers(event->call_kind));
    calls[event->call_kind](controller, event);
}

static void call_cancelled(struct controller *controller, const struct lane_event *event)
{
    const uint64_t call = event->call;

    LIST_FOREACH(struct controller_session, session, &controller->sessions, in_controller) {
        if (session->join_call == call)
            session->join_call = 0;
        if (session->leave_call == call)
            session->leave_call = 0;
    }
    controller_call_forget(controller, call);
    controller_barrier_call_forget(controller, call);
    controller_held_forget(controller, call);
}

/* A process whose thread has worked for half of that time was not suspended: something kept it from
 * its events. After the run's end there are no leases. */
static void tell_sleep(struct controller *controller, uint64_t cpu_us)
{
    if (controller->sleep_to_tell_us == 0 || controller->phase != CONTROLLER_RUNNING)
        return;
    if (cpu_us >= controller->sleep_to_tell_us / 2)
        out_log(
            controller->out,
            "ps 0 was kept busy for %s (its thread used %s of processor time) and heard no one: "
            "all leases are extended by that",
            text_time_us(controller->sleep_to_tell_us).text, text_time_us(cpu_us).text);
    else
        out_log(
            controller->out, "ps 0 was suspended for %s: all leases are extended by that",
            text_time_us(controller->sleep_to_tell_us).text);
    controller->sleep_to_tell_us = 0;
}

/* What is in flight on ps 0 itself is not waited for any longer; the others were told, or are
 * gone. */
static bool must_end(const struct controller *controller)
{
    return controller->terminating && controller->phase != CONTROLLER_ENDED &&
           controller->last_event_us >= controller->end_by_us;
}

static void ticked(struct controller *controller, const struct lane_event *event)
{
    tell_sleep(controller, event->cpu_us);
    if (controller->phase == CONTROLLER_RUNNING) {
        controller_leases_tick(controller);
        controller_joins_tick(controller);
        controller_calls_tick(controller);
        controller_barriers_tick(controller);
        controller_steps_tick(controller);
        controller_defines_order(controller);
        controller_orders_tick(controller);
    }
    controller_streams_tick(controller);
    controller_run_tick(controller);
    if (must_end(controller))
        controller_run_end_now(controller);
    controller_report_waits(controller);
    want_tick(controller);
}

static void terminated(struct controller *controller, const struct lane_event *event)
{
    struct sumac_error why = {0};

    if (controller->terminating)
        return;
    controller->terminating = true;
    controller->signal = event->signal;
    controller->end_by_us =
        controller->last_event_us + controller_ms(controller->config->terminate_ms);
    (void)fail(
        &why, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
        "ps 0 was told to stop and takes no more joins");
    controller_joins_fail(controller, &why);
    (void)fail(
        &why, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
        "ps 0 was told to stop and changes the catalogue no more");
    controller_calls_fail(controller, &why);
    (void)fail(
        &why, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
        "ps 0 was told to stop and ends every barrier");
    controller_barriers_fail(controller, &why);
    controller_run_check(controller);
}

/* The step's end gives the answers and orders that waited for the record. */
static void recorded(struct controller *controller, const struct lane_event *event)
{
    assert(event->record <= controller->last_record);
    if (event->record > controller->recorded)
        controller->recorded = event->record;
}

/* By the kind of event; the others are the lane's. */
static void (*const handlers[])(struct controller *controller, const struct lane_event *event) = {
    [LANE_EVENT_START] = started,
    [LANE_EVENT_CALL] = called,
    [LANE_EVENT_CALL_CANCELLED] = call_cancelled,
    [LANE_EVENT_PEER_UP] = controller_stream_up,
    [LANE_EVENT_PEER_DOWN] = controller_stream_down,
    [LANE_EVENT_REPORT] = controller_hear_report,
    [LANE_EVENT_RECORDED] = recorded,
    [LANE_EVENT_TERMINATE] = terminated,
    [LANE_EVENT_TICK] = ticked,
};

void controller_step(
    struct controller *controller, const struct lane_event *event, struct lane_effects *effects)
{
    assert((size_t)event->kind < sizeof handlers / sizeof *handlers);
    assert(handlers[event->kind] != NULL);
    assert(event->now_us >= controller->last_event_us);
    controller_begin(controller, event->follows);
    controller_notice_time(controller, event->now_us);
    assert(controller->packed_order == NULL);
    handlers[event->kind](controller, event);
    if (controller_record_step(controller)) {
        controller_held_say(controller);
        if (controller->phase != CONTROLLER_RUNNING)
            controller_run_over_say(controller);
        controller_streams_give(controller);
    }
    controller->packed_order = NULL;
    if (controller->out->effects.lost)
        out_end_lost(controller->out, controller->config->index);
    *effects = out_effects(controller->out);
}
