/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c -- one event in, its effects out: each takes note of the time, does its file's work, and
 * gives the ps what is due. */
#include "meet.h"
#include "barrier.h"
#include "define.h"
#include "quorum.h"

#include <assert.h>
#include <string.h>

#include "text.h"

#define TICK_MS_MAX 1000u

uint64_t judge_ms(uint64_t ms) { return ms * 1000u; }

const char *judge_ago(const struct judge *judge, uint64_t when_us)
{
    assert(when_us <= judge->now_us);
    if (when_us == 0)
        return "never";
    return judge_text(judge, "%s ago", text_time_us(judge->now_us - when_us).text);
}

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

    return judge_ms(ms == 0 ? 1 : ms);
}

static void init_pools(struct judge *judge, const struct memory *memory)
{
    pool_init(&judge->tasks_pool, memory, sizeof(struct judge_task), 32);
    pool_init(&judge->sessions_pool, memory, sizeof(struct judge_session), 16);
    pool_init(&judge->orders_pool, memory, sizeof(struct judge_order), 64);
    pool_init(&judge->calls_pool, memory, sizeof(struct judge_call), 64);
    pool_init(&judge->waiting_pool, memory, sizeof(struct judge_waiting), 64);
    pool_init(&judge->held_pool, memory, sizeof(struct judge_held), 16);
}

static void *take_zeroed(const struct memory *memory, size_t bytes)
{
    void *data = memory_take(memory, bytes);

    if (data != NULL)
        memset(data, 0, bytes);
    return data;
}

static const size_t peers_bytes = LANE_PS_MAX * sizeof(struct judge_peer);

struct judge *judge_create(const struct lane_config *config, const struct memory *memory)
{
    struct judge *judge = take_zeroed(memory, sizeof *judge);

    if (judge == NULL)
        return NULL;
    assert(config->lease_ms > 0);
    assert(config->ps_lost_ms > 0);
    judge->config = config;
    judge->memory = memory;
    judge->tick_us = choose_tick_us(config);
    judge->membership_epoch = 1;
    init_pools(judge, memory);
    judge->peers = take_zeroed(memory, peers_bytes);
    key_map_init(&judge->tasks_by_key, memory);
    key_map_init(&judge->sessions_by_id, memory);
    key_map_init(&judge->sessions_by_nonce, memory);
    key_map_init(&judge->variables_by_name, memory);
    key_map_init(&judge->barriers_by_name, memory);
    id_map_init(&judge->variables_by_id, memory);
    const bool whole = functions_init(&judge->functions, memory, config->plugins);
    if (judge_effects_init(judge) && judge->peers != NULL && whole)
        return judge;
    judge_destroy(judge);
    return NULL;
}

void judge_destroy(struct judge *judge)
{
    if (judge == NULL)
        return;
    while (judge->variables.first != NULL) {
        struct judge_variable *variable = judge->variables.first;
        LIST_REMOVE(&judge->variables, variable, in_judge);
        memory_give(judge->memory, variable, variable->bytes);
    }
    for (struct judge_task *task = judge->tasks.first; task != NULL; task = task->in_judge.next)
        judge_voided_drop(judge, &task->voided);
    for (struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        judge_voided_drop(judge, &session->voided);
    pool_deinit(&judge->tasks_pool);
    pool_deinit(&judge->sessions_pool);
    pool_deinit(&judge->orders_pool);
    for (struct judge_call *call = judge->calls.first; call != NULL; call = call->in_judge.next)
        judge_list_give(judge, call->list);
    pool_deinit(&judge->calls_pool);
    judge_barriers_deinit(judge);
    judge_meetings_deinit(judge);
    judge_held_deinit(judge);
    judge_effects_deinit(judge);
    memory_give(judge->memory, judge->peers, peers_bytes);
    key_map_deinit(&judge->tasks_by_key);
    key_map_deinit(&judge->sessions_by_nonce);
    key_map_deinit(&judge->sessions_by_id);
    key_map_deinit(&judge->variables_by_name);
    id_map_deinit(&judge->variables_by_id);
    functions_deinit(&judge->functions);
    memory_give(judge->memory, judge, sizeof *judge);
}

bool judge_run_is_over(const struct judge *judge) { return judge->phase != JUDGE_RUNNING; }

uint64_t judge_cluster_id(const struct judge *judge) { return judge->cluster_id; }

/* ---- time ---- */

/* The judge's time stands still while this process is suspended, so that everyone's silence is not
 * taken from its own sleep: all leases and deadlines are extended by the jump. Ticks come every
 * quarter of a lease; half of one without any event is a suspension. */
static void notice_time(struct judge *judge, uint64_t event_us)
{
    const uint64_t passed = event_us - judge->last_event_us;
    const uint64_t pause_us = judge_ms(judge->config->lease_ms) / 2u;
    const bool jumped = judge->last_event_us != 0 && passed > pause_us;

    if (jumped && rule_holds(judge->config->broken, RULE_time_jump)) {
        judge->slept_us += passed;
        judge->sleep_to_tell_us += passed;
    }
    judge->last_event_us = event_us;
    judge->now_us = event_us - judge->slept_us;
    if (judge->now_us == 0) /* 0 means never */
        judge->now_us = 1;
    assert(judge->now_us > 0);
}

void judge_look(struct judge *judge, uint64_t now_us)
{
    judge_effects_begin(judge, false);
    notice_time(judge, now_us);
}

/* ---- events ---- */

void judge_wake(struct judge *judge, uint64_t at_us)
{
    judge_effect_add(judge, JUDGE_EFFECT_WAKE)->at_us = at_us + judge->slept_us;
}

static void want_tick(struct judge *judge) { judge_wake(judge, judge->now_us + judge->tick_us); }

/* From its records: everybody is heard from now on, and what was under way is done again. */
static void begin_again(struct judge *judge)
{
    judge->beginnings++;
    judge->orders_given = judge->beginnings << JUDGE_ORDERS_OF_BEGINNING_BITS;
    judge->first_join_us = judge->memberless_since_us = judge->member_joined ? judge->now_us : 0;
    for (struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next) {
        session->heard_us = judge->now_us;
        session->joined_us = session->settling_us = judge->now_us;
    }
    judge_barriers_begin_again(judge);
    if (judge->phase == JUDGE_RUNNING)
        judge_orders_begin_again(judge);
    else
        judge_run_end_again(judge);
}

static void started(struct judge *judge, const struct judge_event *event)
{
    const bool again = judge->cluster_id != 0;

    judge->records = judge->config->records;
    if (!again) {
        judge->cluster_id = event->random[0] == 0 ? 1 : event->random[0];
        judge->secret = event->random[1];
    }
    judge_cluster_changed(judge);
    judge_reports_begin(judge);
    judge_tasks_start(judge);
    judge_peers_start(judge);
    if (again)
        begin_again(judge);
    want_tick(judge);
}

/* judge_join_call of Join … */
#define CALL_OF_JUDGE(METHOD, method) [LANE_CALL_##METHOD] = judge_##method##_call,
#define CALL_OF_LANE(METHOD, method)
#define X(SERVICE, METHOD, method, what, bytes_max, who)                                           \
    RPC_IF_CALL(what, CALL_OF_##who(METHOD, method))
static void (*const calls[])(struct judge *judge, const struct judge_event *event) = {RPC_LIST(X)};
#undef X

static void called(struct judge *judge, const struct judge_event *event)
{
    assert(event->call != 0);
    assert(event->request != NULL);
    assert(rpc_is_the_judges(event->call_kind));
    calls[event->call_kind](judge, event);
}

static void call_cancelled(struct judge *judge, uint64_t call)
{
    for (struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next) {
        if (session->join_call == call)
            session->join_call = 0;
        if (session->leave_call == call)
            session->leave_call = 0;
    }
    judge_call_forget(judge, call);
    judge_barrier_call_forget(judge, call);
    judge_held_forget(judge, call);
}

/* A process whose thread has worked for half of that time was not suspended: something kept it from
 * its events. After the run's end there are no leases. */
static void tell_sleep(struct judge *judge, uint64_t cpu_us)
{
    if (judge->sleep_to_tell_us == 0 || judge_run_is_over(judge))
        return;
    if (cpu_us >= judge->sleep_to_tell_us / 2)
        judge_log(
            judge,
            "ps 0 was kept busy for %s (its thread used %s of processor time) and heard nobody: "
            "all leases are extended by that",
            text_time_us(judge->sleep_to_tell_us).text, text_time_us(cpu_us).text);
    else
        judge_log(
            judge, "ps 0 was suspended for %s: all leases are extended by that",
            text_time_us(judge->sleep_to_tell_us).text);
    judge->sleep_to_tell_us = 0;
}

/* What is in flight on ps 0 itself is not waited for any longer; the others were told, or are
 * gone. */
static bool must_end(const struct judge *judge)
{
    return judge->terminating && judge->phase != JUDGE_ENDED &&
           judge->last_event_us >= judge->end_by_us;
}

static void ticked(struct judge *judge, const struct judge_event *event)
{
    tell_sleep(judge, event->cpu_us);
    if (judge->phase == JUDGE_RUNNING) {
        judge_leases_tick(judge);
        judge_joins_tick(judge);
        judge_calls_tick(judge);
        judge_barriers_tick(judge);
        judge_steps_tick(judge);
        judge_orders_tick(judge);
    }
    judge_peers_tick(judge);
    judge_run_tick(judge);
    if (must_end(judge))
        judge_run_end_now(judge);
    judge_report_waits(judge);
    want_tick(judge);
}

static void terminated(struct judge *judge, bool interrupted)
{
    if (judge->terminating)
        return;
    judge->terminating = true;
    judge->interrupted = interrupted;
    judge->end_by_us = judge->last_event_us + judge_ms(judge->config->terminate_ms);
    judge_joins_fail(
        judge, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
        "ps 0 was told to stop and takes no more joins");
    judge_calls_fail(
        judge, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
        "ps 0 was told to stop and changes the catalogue no more");
    judge_barriers_fail(
        judge, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED,
        "ps 0 was told to stop and ends every barrier");
    judge_run_check(judge);
}

static void take(struct judge *judge, const struct judge_event *event)
{
    switch (event->kind) {
    case JUDGE_EVENT_START:
        started(judge, event);
        break;
    case JUDGE_EVENT_CALL:
        called(judge, event);
        break;
    case JUDGE_EVENT_CALL_CANCELLED:
        call_cancelled(judge, event->call);
        break;
    case JUDGE_EVENT_PEER_UP:
        if (event->ps < judge->ps_count)
            judge_stream_up(judge, event->ps);
        break;
    case JUDGE_EVENT_PEER_DOWN:
        if (event->ps < judge->ps_count)
            judge_stream_down(judge, event->ps, event->text, event->reason);
        break;
    case JUDGE_EVENT_REPORT:
        assert(event->report != NULL);
        if (event->ps < judge->ps_count)
            judge_hear_report(judge, event->ps, event->report);
        break;
    case JUDGE_EVENT_RECORDED:
        assert(event->record <= judge->last_record);
        if (event->record > judge->recorded)
            judge->recorded = event->record; /* what waited for it is said at the step's end */
        break;
    case JUDGE_EVENT_TICK:
        ticked(judge, event);
        break;
    case JUDGE_EVENT_TERMINATE:
        terminated(judge, event->interrupted);
        break;
    }
}

void judge_step(struct judge *judge, const struct judge_event *event, struct judge_effects *effects)
{
    assert(event->now_us >= judge->last_event_us);
    judge_effects_begin(judge, event->follows);
    notice_time(judge, event->now_us);
    judge->random[0] = event->random[0];
    judge->random[1] = event->random[1];
    assert(judge->packed_order == NULL);
    take(judge, event);
    if (judge_record_step(judge)) {
        judge_held_say(judge);
        judge_run_over_say(judge);
        judge_peers_give(judge);
    }
    judge->packed_order = NULL;
    judge_effects_end(judge, effects);
}
