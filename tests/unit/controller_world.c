/* SPDX-License-Identifier: Apache-2.0 */
/* controller_world.c -- the controller among ps that obey it; see controller_world.h. */

#include "unit.h"
#include "end_status.h"
#include "controller_check.h"
#include "controller_proposal.h"
#include "controller_told.h"
#include "controller_transcript.h"
#include "controller_world.h"

#define WORLD_PIECE_BYTES_MAX 2048u /* no chunk of a pool, but a variable of a few shards */
#define WORLD_ORDERS_OF_CHUNK 64u   /* orders in one chunk of their pool */

static const char *const addresses[WORLD_PS_MAX] = {"h0:1", "h1:1", "h2:1", "h3:1"};
static const char *const jobs[8] = {"worker", "worker", "worker", "worker",
                                    "worker", "worker", "worker", "worker"};
static const uint32_t indices[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/* ---- effects ---- */

static void keep_order(struct world *world, uint32_t ps, const wire_peer_order *order)
{
    const struct world_order kept = told_order(order);
    struct world_ps *to = &world->ps[ps];

    assert_true(to->up);
    assert_true(to->queued < WORLD_ORDERS_MAX);
    to->queue[to->queued++] = kept;
    to->alive += kept.kind == ORDER_ALIVE;
    if (kept.kind != ORDER_ALIVE)
        transcript_order(world, ps, &kept);
    if (kept.kind != ORDER_ALIVE && to->told_count < WORLD_ORDERS_MAX * 4)
        to->told[to->told_count++] = kept;
}

/* The reply has every rule that binds its client. */
static void
keep_join(const struct lane_config *config, struct world_answer *kept, const wire_join_reply *reply)
{
    assert_int_equal(
        reply->on_loss, config->loss_fails ? SUMAC__V1__ON_LOSS__ON_LOSS_FAIL
                                           : SUMAC__V1__ON_LOSS__ON_LOSS_CONTINUE);
    assert_int_equal(reply->step_quorum, config->step_quorum);
    assert_int_equal(reply->step_deadline_ms, config->step_deadline_ms);
    assert_int_equal(reply->lease_ms, config->lease_ms);
    assert_int_equal(reply->ps_lost_ms, config->ps_lost_ms);
    memcpy(kept->session_id, reply->session_id.data, 16);
    kept->cluster_id = reply->cluster_id;
}

static void keep_create(struct world_answer *kept, const wire_create_reply *reply)
{
    kept->variable_count = reply->n_variables;
    if (reply->variable != NULL)
        kept->variable_id = reply->variable->variable_id;
}

static void keep_answer(struct world *world, const struct lane_effect *effect)
{
    assert_null(world_answer(world, effect->call)); /* a call is answered once */
    assert_true(world->answer_count < WORLD_ANSWERS_MAX);
    struct world_answer *kept = &world->answers[world->answer_count++];
    *kept = (struct world_answer){.call = effect->call};
    if (effect->kind == LANE_EFFECT_FAIL) {
        assert_int_not_equal(effect->error.reason, SUMAC_REASON_UNSPECIFIED);
        kept->status = effect->error.status;
        kept->reason = effect->error.reason;
        snprintf(kept->text, sizeof kept->text, "%s", effect->error.text);
        return;
    }
    const wire_type *type = effect->reply->descriptor;
    if (type == &sumac__v1__join_reply__descriptor)
        keep_join(&world->config, kept, (const wire_join_reply *)effect->reply);
    if (type == &sumac__v1__create_reply__descriptor)
        keep_create(kept, (const wire_create_reply *)effect->reply);
}

static void keep_effect(struct world *world, const struct lane_effect *effect)
{
    const size_t used = strlen(world->log);

    switch (effect->kind) {
    case LANE_EFFECT_ORDER:
        keep_order(world, effect->ps, effect->order);
        break;
    case LANE_EFFECT_REPLY:
    case LANE_EFFECT_FAIL:
        transcript_answer(world, effect);
        keep_answer(world, effect);
        break;
    case LANE_EFFECT_DIAL:
        transcript_say(world, "dial ps %u\n", effect->ps);
        world->dialled[effect->ps] = true;
        break;
    case LANE_EFFECT_LOG:
        snprintf(world->log + used, sizeof world->log - used, "%s\n", effect->text);
        break;
    case LANE_EFFECT_EXIT:
        assert_true(world->out_of_memory || world->bad_take != 0);
        transcript_say(world, "lost: %s\n", effect->error.text);
        assert_int_equal(effect->exit_code, LANE_EXIT_NO_MEMORY);
        assert_string_equal(effect->text, effect->error.text);
        world->lost = effect->error;
        break;
    case LANE_EFFECT_RECORD:
        written_keep(&world->written, effect);
        break;
    case LANE_EFFECT_RUN_OVER:
        break;
    case LANE_EFFECT_WAKE:
        if (effect->at_us < world->wake_us)
            world->wake_us = effect->at_us;
        break;
    case LANE_EFFECT_ANSWER:
    case LANE_EFFECT_PULLED:
    case LANE_EFFECT_CLOSE_STREAM:
    case LANE_EFFECT_REPORT:
    case LANE_EFFECT_COMPUTE:
    case LANE_EFFECT_SERVING:
        fail_msg("effect %d is the lane's", (int)effect->kind);
    }
}

/* The controller's state is consistent after every step. */
static void look_inside(const struct world *world)
{
    struct check check = {.text = ""};

    if (world->holds_orders)
        return;
    controller_check(world->controller, &check);
    if (!check_is_good(&check))
        fail_msg("%s", check.text);
}

static struct lane_event event_of(struct world *world, enum lane_event_kind kind)
{
    world->drawn++;
    return (struct lane_event){
        .kind = kind,
        .now_us = world->now_us,
        .random = {0x1000 + world->drawn, 0x2000 + world->drawn}};
}

static bool obey_one(struct world *world, uint32_t ps);
static void step(struct world *world, const struct lane_event *event);

/* The disk has written what there is at once. */
static void write_down(struct world *world)
{
    if (world->on_disk == world->written.count)
        return;
    struct lane_event event = event_of(world, LANE_EVENT_RECORDED);
    event.record = world->on_disk = world->written.count;
    step(world, &event);
}

/* One event, and all that the controller says. ps 0 takes its stream to itself, and the hello on
 * it, at once. */
static void step(struct world *world, const struct lane_event *event)
{
    struct lane_effects effects;

    controller_step(world->controller, event, &effects);
    look_inside(world);
    for (uint32_t i = 0; i < effects.count; i++)
        keep_effect(world, &effects.items[i]);
    write_down(world);
    if (!world->dialled[0] || world->met_itself)
        return;
    world->met_itself = true;
    world_up(world, 0);
    while (obey_one(world, 0)) {
    }
}

/* ---- the world ---- */

static void *take(void *context, size_t bytes)
{
    struct world *world = context;
    const bool chunk = bytes > WORLD_PIECE_BYTES_MAX;

    if (++world->takes == world->bad_take)
        return NULL;
    if (world->out_of_memory || (world->out_of_pools && chunk))
        return NULL;
    world->bytes_taken += bytes;
    return memory_take(&memory_heap, bytes);
}

static void give(void *context, void *data, size_t bytes)
{
    struct world *world = context;

    world->bytes_taken -= data == NULL ? 0 : bytes;
    memory_give(&memory_heap, data, bytes);
}

struct world *world_prepare(uint32_t ps_count, uint32_t workers)
{
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    world->now_us = 100 * SECOND;
    world->wake_us = UINT64_MAX;
    world->config = (struct lane_config){
        .ps_addresses = addresses,
        .ps_count = ps_count,
        .members_jobs = jobs,
        .members_indices = indices,
        .member_count = workers,
        .incarnation = 70,
        .started_us = 100 * SECOND,
        .lease_ms = 10000,
        .rejoin_ms = 10000,
        .rejoin_first_ms = 60000,
        .ps_lost_ms = 60000,
        .report_ms = 5000,
        .terminate_ms = 5000,
        .sessions_max = 8,
        .records = true,
    };
    for (uint32_t ps = 0; ps < WORLD_PS_MAX; ps++)
        world->ps[ps].incarnation = 70 + ps;
    world->ps[0].up = true; /* with the controller */
    world->memory = (struct memory){.take = take, .give = give, .context = world};
    return world;
}

void world_begin(struct world *world)
{
    world->controller = controller_create(&world->config, &world->memory);
    assert_non_null(world->controller);
    const struct lane_event event = event_of(world, LANE_EVENT_START);
    step(world, &event);
}

struct world *world_new(uint32_t ps_count, uint32_t workers)
{
    struct world *world = world_prepare(ps_count, workers);

    world_begin(world);
    return world;
}

struct world *world_of_two(void)
{
    struct world *world = world_new(2, 2);

    world_all_up(world);
    return world;
}

/* A controller that is made of its records would be the same. */
void world_free(struct world *world)
{
    const bool whole = world->controller != NULL && world->lost.status == SUMAC_OK;

    if (whole && world->config.records && world->config.broken == 0)
        written_compare(&world->written, &world->config, world->controller);
    written_forget(&world->written);
    controller_destroy(world->controller);
    assert_int_equal(world->bytes_taken, 0);
    free(world);
}

static void peer_up(struct world *world, uint32_t ps)
{
    struct lane_event event = event_of(world, LANE_EVENT_PEER_UP);

    event.ps = ps;
    step(world, &event);
}

void world_up(struct world *world, uint32_t ps)
{
    world->ps[ps].up = true;
    world->ps[ps].queued = 0;
    peer_up(world, ps);
}

void world_all_up(struct world *world)
{
    for (uint32_t ps = 1; ps < world->config.ps_count; ps++)
        world_up(world, ps);
    world_settle_down(world);
}

void world_down(struct world *world, uint32_t ps)
{
    world_ended(world, ps, SUMAC_REASON_UNSPECIFIED, "connection refused");
}

void world_ended(struct world *world, uint32_t ps, enum sumac_reason reason, const char *why)
{
    struct lane_event event = event_of(world, LANE_EVENT_PEER_DOWN);

    event.ps = ps;
    event.text = why;
    event.reason = reason;
    world->ps[ps].up = false;
    world->ps[ps].queued = 0;
    step(world, &event);
}

void world_report(struct world *world, uint32_t ps, wire_peer_report *message)
{
    struct lane_event event = event_of(world, LANE_EVENT_REPORT);

    event.ps = ps;
    event.report = message;
    message->ps_incarnation = world->ps[ps].incarnation;
    message->epoch = 1;
    step(world, &event);
}

static void answer_order(struct world *world, uint32_t ps, const struct world_order *order)
{
    struct world_ps *from = &world->ps[ps];
    wire_peer_report message = WIRE_PEER_REPORT_INIT;
    wire_close_report close = WIRE_CLOSE_REPORT_INIT;

    message.answers = order->number;
    const bool needs_memory = order->kind == ORDER_ADD_SHARDS || order->kind == ORDER_CLOSE ||
                              order->kind == ORDER_DECIDE;
    from->adds += order->kind == ORDER_ADD_SHARDS;
    const bool bad = order->kind == ORDER_ADD_SHARDS && from->adds == from->bad_add;
    if ((needs_memory && from->out_of_memory) || (order->kind == ORDER_OPEN && from->full) || bad) {
        message.status = SUMAC_RESOURCE_EXHAUSTED;
        message.reason = (Sumac__V1__Reason)SUMAC_REASON_OUT_OF_MEMORY;
        message.message = (char *)"no memory";
    }
    if (order->kind == ORDER_DEFINE && from->refuses_functions) {
        message.status = SUMAC_INVALID_ARGUMENT;
        message.reason = (Sumac__V1__Reason)SUMAC_REASON_BAD_EXPRESSION;
        message.message = (char *)"line 1, column 9: g";
    }
    if (order->kind == ORDER_HELLO && from->refuses != NULL) {
        message.status = SUMAC_FAILED_PRECONDITION;
        message.message = (char *)from->refuses;
    }
    message.clock = order->kind == ORDER_OPEN ? from->clock : 0;
    message.seen_step = order->kind == ORDER_OPEN ? from->seen_step : 0;
    if (order->kind == ORDER_CLOSE && !from->out_of_memory) {
        close.session_id = (wire_bytes){16, (uint8_t *)order->session_id};
        close.commit_through = from->commit_through;
        close.acked_through = from->acked_through;
        close.connected = from->connected;
        close.made_step = from->made_step;
        close.made_sequence = from->made_sequence;
        close.voided = from->voided;
        close.n_voided = from->voided_count;
        message.close_report = &close;
    }
    world_report(world, ps, &message);
}

/* As its lane does. */
static void exit_as_told(struct world *world, const struct world_order *end)
{
    world->exited = true;
    world->exit_code = (int)end->exit_code;
    world->exit_error.status = status_of_end(end->reason);
    world->exit_error.reason = end->reason;
    snprintf(world->exit_error.text, sizeof world->exit_error.text, "%s", end->text);
    transcript_say(
        world, "exit %u %s %s\n", end->exit_code, sumac_reason_name(end->reason), end->text);
}

/* The oldest order of a ps is out, obeyed and answered. False: there is none. */
static bool obey_one(struct world *world, uint32_t ps)
{
    struct world_ps *from = &world->ps[ps];

    if (from->queued == 0 || !from->up || from->silent)
        return false;
    const struct world_order order = from->queue[0];
    from->queued--;
    memmove(&from->queue[0], &from->queue[1], from->queued * sizeof order);
    peer_up(world, ps);
    const bool answered = !from->mute && !(from->never_opens && order.kind == ORDER_OPEN) &&
                          !(from->never_ends && order.kind == ORDER_END) &&
                          !(from->never_defines && order.kind == ORDER_DEFINE);
    if (answered)
        answer_order(world, ps, &order);
    if (answered && ps == 0 && order.kind == ORDER_END)
        exit_as_told(world, &order);
    return true;
}

void world_settle_down(struct world *world)
{
    bool any = true;

    while (any) {
        any = false;
        for (uint32_t ps = 0; ps < WORLD_PS_MAX; ps++)
            any = obey_one(world, ps) || any;
    }
}

void world_sleep(struct world *world, uint64_t us)
{
    world->now_us += us;
    struct lane_event event = event_of(world, LANE_EVENT_TICK);
    event.cpu_us = world->cpu_us;
    step(world, &event);
}

void world_pass(struct world *world, uint64_t us)
{
    const uint64_t until_us = world->now_us + us;

    while (world->now_us < until_us) {
        const uint64_t left_us = until_us - world->now_us;
        world_sleep(world, left_us < SECOND / 4 ? left_us : SECOND / 4);
        world_settle_down(world);
    }
}

bool world_tick_as_asked(struct world *world, uint64_t until_us)
{
    if (world->wake_us > until_us)
        return false;
    const uint64_t wait_us = world->wake_us > world->now_us ? world->wake_us - world->now_us : 0;
    world->wake_us = UINT64_MAX;
    world_sleep(world, wait_us);
    return true;
}

void world_terminate(struct world *world)
{
    const struct lane_event event = event_of(world, LANE_EVENT_TERMINATE);

    step(world, &event);
}

void world_signal(struct world *world, enum lane_signal number)
{
    struct lane_event event = event_of(world, LANE_EVENT_TERMINATE);

    event.signal = number;
    step(world, &event);
}

void world_use_up_orders(struct world *world)
{
    world->ps[1].mute = true;
    for (uint32_t i = 0; i < WORLD_ORDERS_OF_CHUNK; i++) {
        world_cancel(world, world_join(world, NULL, 0, 1000 + i));
        world_settle_down(world);
    }
    world->ps[1].mute = false;
    world->out_of_pools = true;
}

/* ---- calls ---- */

wire_bytes world_id(struct world *world, uint32_t session)
{
    static uint8_t nobodys[16] = {0xee, 0xee};

    assert_true(session <= world->session_count);
    return (wire_bytes){16, session == WORLD_NOBODY ? nobodys : world->sessions[session - 1]};
}

static uint64_t call(struct world *world, enum lane_call_kind kind, const wire_message *request)
{
    struct lane_event event = event_of(world, LANE_EVENT_CALL);

    event.call = ++world->calls;
    event.call_kind = kind;
    event.request = request;
    step(world, &event);
    return event.call;
}

uint64_t world_ask(struct world *world, enum lane_call_kind kind, const wire_message *request)
{
    return call(world, kind, request);
}

uint64_t world_join_as(struct world *world, const wire_join_request *request)
{
    return call(world, LANE_CALL_JOIN, &request->base);
}

uint64_t world_join(struct world *world, const char *job, uint32_t index, uint32_t nonce)
{
    uint8_t bytes[16] = {(uint8_t)nonce, (uint8_t)(nonce >> 8), 1};
    wire_task_name task = WIRE_TASK_NAME_INIT;
    wire_join_request request = WIRE_JOIN_REQUEST_INIT;

    task.job = (char *)job;
    task.index = index;
    request.protocol_version = WIRE_PROTOCOL_VERSION;
    request.nonce = (wire_bytes){sizeof bytes, bytes};
    request.role = job == NULL ? SUMAC__V1__ROLE__ROLE_OBSERVER : SUMAC__V1__ROLE__ROLE_MEMBER;
    request.task = job == NULL ? NULL : &task;
    return world_join_as(world, &request);
}

uint64_t world_renew(struct world *world, uint32_t session)
{
    wire_renew_request request = WIRE_RENEW_REQUEST_INIT;

    request.session_id = world_id(world, session);
    return call(world, LANE_CALL_RENEW, &request.base);
}

uint64_t world_leave(struct world *world, uint32_t session, bool done)
{
    wire_leave_request request = WIRE_LEAVE_REQUEST_INIT;

    request.session_id = world_id(world, session);
    request.done = done;
    return call(world, LANE_CALL_LEAVE, &request.base);
}

uint64_t world_leave_after(struct world *world, uint32_t session, uint64_t last_sequence)
{
    wire_leave_request request = WIRE_LEAVE_REQUEST_INIT;

    request.session_id = world_id(world, session);
    request.done = true;
    request.last_sequence = last_sequence;
    return call(world, LANE_CALL_LEAVE, &request.base);
}

uint64_t world_create(
    struct world *world, uint32_t session, const wire_variable *variable, uint32_t timeout_ms)
{
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;

    request.session_id = world_id(world, session);
    request.variable = (wire_variable *)variable;
    request.timeout_ms = timeout_ms;
    return call(world, LANE_CALL_CREATE, &request.base);
}

uint64_t
world_create_many(struct world *world, uint32_t session, wire_variable **variables, size_t count)
{
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;

    request.session_id = world_id(world, session);
    request.variable = (wire_variable *)world->beside;
    request.variables = variables;
    request.n_variables = count;
    return call(world, LANE_CALL_CREATE, &request.base);
}

uint64_t world_define(struct world *world, uint32_t session, const char *name, const char *function)
{
    wire_define_request request = WIRE_DEFINE_REQUEST_INIT;

    request.session_id = world_id(world, session);
    request.name = (char *)(uintptr_t)name;
    request.text = (char *)(uintptr_t)function;
    request.timeout_ms = 5000;
    return call(world, LANE_CALL_DEFINE, &request.base);
}

uint64_t world_functions(struct world *world)
{
    const wire_functions_request request = WIRE_FUNCTIONS_REQUEST_INIT;

    return call(world, LANE_CALL_FUNCTIONS, &request.base);
}

uint64_t world_delete(struct world *world, uint32_t session, const char *name)
{
    wire_delete_request request = WIRE_DELETE_REQUEST_INIT;

    request.session_id = world_id(world, session);
    request.name = (char *)name;
    return call(world, LANE_CALL_DELETE, &request.base);
}

uint64_t world_come(struct world *world, uint32_t session, const struct world_arrival *arrival)
{
    wire_task_name names[WORLD_COMERS_MAX], *tasks[WORLD_COMERS_MAX];
    wire_barrier_request request = WIRE_BARRIER_REQUEST_INIT;

    for (const uint32_t *at = arrival->workers; at != NULL && *at != UINT32_MAX; at++) {
        assert_true(request.n_tasks < WORLD_COMERS_MAX);
        names[request.n_tasks] = (wire_task_name)WIRE_TASK_NAME_INIT;
        names[request.n_tasks].job = (char *)"worker";
        names[request.n_tasks].index = *at;
        tasks[request.n_tasks] = &names[request.n_tasks];
        request.n_tasks++;
    }
    request.session_id = world_id(world, session);
    request.name = (char *)(uintptr_t)arrival->name;
    request.round = arrival->round;
    request.tasks = tasks;
    request.timeout_ms = arrival->timeout_ms;
    return call(world, LANE_CALL_BARRIER, &request.base);
}

void world_cancel(struct world *world, uint64_t number)
{
    struct lane_event event = event_of(world, LANE_EVENT_CALL_CANCELLED);

    event.call = number;
    step(world, &event);
}

void world_report_assigned(struct world *world, uint32_t ps, uint64_t variable_id)
{
    wire_peer_report message = WIRE_PEER_REPORT_INIT;

    message.assigned = &variable_id;
    message.n_assigned = 1;
    world_report(world, ps, &message);
}

void world_report_answer(struct world *world, uint32_t ps, uint64_t number)
{
    wire_peer_report message = WIRE_PEER_REPORT_INIT;

    message.answers = number;
    world_report(world, ps, &message);
}

void world_report_come(
    struct world *world, uint32_t ps, uint32_t session, uint64_t step, bool voided)
{
    wire_peer_report message = WIRE_PEER_REPORT_INIT;
    wire_contributed one = WIRE_CONTRIBUTED_INIT;
    wire_contributed *all[] = {&one};

    one.session_id = world_id(world, session);
    one.step = step;
    one.voided = voided;
    message.contributed = all;
    message.n_contributed = 1;
    world_report(world, ps, &message);
}

void world_report_collective(
    struct world *world, uint32_t ps, const char *name, uint64_t round, enum sumac_status status)
{
    struct proposal proposal;

    propose(&proposal, name, round, status);
    world_report(world, ps, &proposal.report);
}

void world_report_over(struct world *world, uint32_t ps, uint64_t step)
{
    wire_peer_report message = WIRE_PEER_REPORT_INIT;

    message.step_over = step;
    world_report(world, ps, &message);
}

void world_report_renewed(struct world *world, uint32_t ps, uint32_t session)
{
    wire_peer_report message = WIRE_PEER_REPORT_INIT;
    wire_bytes id = world_id(world, session);

    message.renewed = &id;
    message.n_renewed = 1;
    world_report(world, ps, &message);
}

/* ---- looking ---- */

const struct world_answer *world_answer(const struct world *world, uint64_t number)
{
    for (size_t i = 0; i < world->answer_count; i++)
        if (world->answers[i].call == number)
            return &world->answers[i];
    return NULL;
}

uint32_t world_joined(struct world *world, const char *job, uint32_t index, uint32_t nonce)
{
    const uint64_t number = world_join(world, job, index, nonce);

    world_settle_down(world);
    const struct world_answer *answer = world_answer(world, number);
    assert_non_null(answer);
    assert_string_equal(answer->text, "");
    return transcript_session(world, answer->session_id);
}

const struct world_order *
world_told(const struct world *world, uint32_t ps, enum world_order_kind kind)
{
    for (size_t i = world->ps[ps].told_count; i > 0; i--)
        if (world->ps[ps].told[i - 1].kind == kind)
            return &world->ps[ps].told[i - 1];
    return NULL;
}

bool world_waits(struct world *world, const char *text)
{
    struct controller_waits waits;

    controller_list_waits(world->controller, world->now_us, &waits);
    while (waits.count > 0 && strstr(waits.items[waits.count - 1], text) == NULL)
        waits.count--;
    return waits.count > 0;
}

bool world_logged(const struct world *world, const char *text)
{
    return strstr(world->log, text) != NULL;
}
