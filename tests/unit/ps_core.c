/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core.c -- ps 0's lane and its controller: the stream between them is as any other, and breaks
 * as any other. */

#include "unit.h"
#include "controller_state.h"
#include "handlers.h"
#include "peer_state.h"
#include "lane_talk.h"
#include "ps_core_check.h"
#include "ps_core_state.h"
#include "requests.h"

/* The only ps of a cluster that lists nobody, and what its calls were answered. */
struct ps_0 {
    struct talk *talk;
    uint64_t calls;
    uint64_t replied, failed; /* the last calls that were */
    uint8_t session[16];      /* of the last join */
    bool has_exited;
    int exit_code;
};

static struct ps_0 begin_with(void **state, uint32_t ps_count, bool records)
{
    static const char *const addresses[] = {"h0:1"};
    struct lane_config config = talk_config();

    config.index = 0;
    config.ps_addresses = addresses;
    config.ps_count = ps_count;
    config.records = records;
    struct ps_0 ps = {.talk = *state};
    ps.talk->shows_logs = true;
    talk_start(ps.talk, &config);
    talk_forget(ps.talk);
    return ps;
}

static struct ps_0 begin(void **state, uint32_t ps_count)
{
    return begin_with(state, ps_count, false);
}

static void note(struct ps_0 *ps, const struct lane_effect *effect)
{
    if (effect->kind == LANE_EFFECT_FAIL)
        ps->failed = effect->call;
    if (effect->kind == LANE_EFFECT_EXIT) {
        ps->has_exited = true;
        ps->exit_code = effect->exit_code;
    }
    if (effect->kind != LANE_EFFECT_REPLY)
        return;
    ps->replied = effect->call;
    if (effect->reply->descriptor == &sumac__v1__join_reply__descriptor)
        memcpy(
            ps->session, ((const wire_join_reply *)effect->reply)->session_id.data,
            sizeof ps->session);
}

static void step(struct ps_0 *ps, struct lane_event event)
{
    struct lane_effects effects;

    event.now_us = ps->talk->now_us;
    ps_core_step(ps->talk->core, &event, &effects);
    for (uint32_t i = 0; i < effects.count; i++)
        note(ps, &effects.items[i]);
}

static void call(struct ps_0 *ps, enum lane_call_kind kind, const wire_message *request)
{
    step(
        ps, (struct lane_event){
                .kind = LANE_EVENT_CALL,
                .random = {ps->talk->now_us, ps->calls},
                .call = ++ps->calls,
                .call_kind = kind,
                .request = request});
}

static void tick(struct ps_0 *ps, uint64_t later_ms)
{
    ps->talk->now_us += later_ms * 1000;
    step(ps, (struct lane_event){.kind = LANE_EVENT_TICK});
}

static void join(struct ps_0 *ps, uint32_t index)
{
    static char *addresses[] = {"h0:1", "h1:1"};
    struct join_request request;

    join_request_init(&request, index);
    request.message.ps_addresses = addresses;
    request.message.n_ps_addresses = ps->talk->lane->ps_count == 2 ? 2 : 1;
    call(ps, LANE_CALL_JOIN, &request.message.base);
}

STATE_TEST(
    a_ps_0_that_is_told_only_itself_meets_itself_with_the_first_join, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 0);

    assert_null(ps.talk->lane->controller);

    join(&ps, 0);

    assert_int_equal(ps.replied, 1);
    assert_non_null(ps.talk->lane->controller);
    assert_true(ps.talk->lane->controller->id == LANE_STREAM_OWN);
    assert_int_equal(ps.talk->lane->controller->place, PLACE_CONTROLLER);
}

STATE_TEST(the_numbers_of_ps_0_are_its_controllers_too, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL,
        .now_us = ps.talk->now_us,
        .call = 1,
        .call_kind = LANE_CALL_STATS,
        .request = &request.base};
    struct lane_effects effects;
    const uint64_t of_lane = lane_sessions_bytes_max(ps.talk->lane);
    const uint64_t of_both =
        of_lane + controller_sessions_bytes_max(ps_core_controller(ps.talk->core));

    ps_core_step(ps.talk->core, &call, &effects);

    const wire_stats_reply *said = (const wire_stats_reply *)effects.items[0].reply;
    assert_true(of_both > of_lane);
    assert_int_equal(of_both, said->memory->sessions_bytes_max);
}

/* The lane has no memory for a report, so it ends the stream; the controller gives its orders again
 * on the next one. */
STATE_TEST(
    a_stream_to_itself_that_breaks_is_dialled_again_and_no_order_is_lost, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    struct pool *const reports = &ps.talk->lane->peers->reports;
    void *kept[64];
    uint32_t taken = 0;

    join(&ps, 0);
    while (reports->free != NULL) /* given */
        kept[taken++] = pool_take(reports);
    ps.talk->out_of_memory = true;

    join(&ps, 1); /* when */

    assert_int_equal(ps.replied, 1); /* then */
    assert_null(ps.talk->lane->controller);
    while (taken > 0)
        pool_give(reports, kept[--taken]);
    ps.talk->out_of_memory = false;
    tick(&ps, 1000);
    assert_int_equal(ps.replied, 2);
    assert_non_null(ps.talk->lane->controller);
}

/* Nobody but its lane hears of a client that only pulls. */
STATE_TEST(a_session_lives_by_what_the_lane_beside_reports, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);

    join(&ps, 0);
    const uint64_t stream = talk_stream(ps.talk, LANE_STREAM_PUSH);
    wire_hello hello = WIRE_HELLO_INIT;
    wire_push_request greet = WIRE_PUSH_REQUEST_INIT;
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.epoch = 1;
    hello.ps_incarnation = ps.talk->lane->config.incarnation;
    hello.session_id = (wire_bytes){sizeof ps.session, ps.session};
    hello.generation = 1;
    greet.hello = &hello;
    request.commit = &commit;

    talk_push(ps.talk, stream, &greet, NULL, 0);
    for (int i = 0; i < 30; i++) { /* three leases */
        talk_push(ps.talk, stream, &request, NULL, 0);
        talk_tick(ps.talk, 1000);
    }

    talk_expect(ps.talk, "greeting\n");
    for (int i = 0; i < 14; i++) /* silent for a lease, and the quarter in which reports come */
        talk_tick(ps.talk, 1000);
    assert_non_null(strstr(ps.talk->text, "log ps 0 closes the session of worker 0"));
}

/* In the step's effects: first why, then the end, and the code is the one that the controller has
 * chosen. */
STATE_TEST(ps_0_exits_when_its_lane_has_answered_the_end, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    wire_leave_request leave = WIRE_LEAVE_REQUEST_INIT;

    join(&ps, 0);
    leave.session_id = (wire_bytes){sizeof ps.session, ps.session};
    leave.done = true;

    call(&ps, LANE_CALL_LEAVE, &leave.base);
    assert_int_equal(ps.replied, 2);
    talk_forget(ps.talk);
    for (int i = 0; i < 11; i++)
        talk_tick(ps.talk, 1000);

    talk_expect(
        ps.talk,
        "log no worker is left; the run ends in 5 s unless another worker joins\n"
        "log run ends with code 0: no worker has been in the run for 10 s, one has left as done\n"
        "exit 0 RUN_ENDED\n");
    talk_tick(ps.talk, 1000); /* and nothing more is done, or said */
    talk_expect(ps.talk, "");
    const uint64_t failed = ps.failed;
    join(&ps, 1);
    assert_int_equal(ps.failed, failed);
}

/* ---- a disk that does not write ---- */

static bool is_written(const struct ps_0 *ps)
{
    const struct lane *lane = ps->talk->lane;
    const struct controller *controller = ps_core_controller(ps->talk->core);

    return lane->recorded == lane->last_record && controller->recorded == controller->last_record;
}

/* All records reach the disk, and those that follow from it. */
static void write_down(struct ps_0 *ps)
{
    struct lane_event written[] = {
        {.kind = LANE_EVENT_RECORDED, .journal = LANE_JOURNAL_OWN},
        {.kind = LANE_EVENT_RECORDED, .journal = LANE_JOURNAL_CONTROLLER}};

    while (!is_written(ps)) {
        written[0].record = ps->talk->lane->last_record;
        step(ps, written[0]);
        written[1].record = ps_core_controller(ps->talk->core)->last_record;
        step(ps, written[1]);
    }
}

static void expect_exit_when_time_to_terminate_is_over(struct ps_0 *ps)
{
    const uint32_t terminate_ms = ps->talk->lane->config.terminate_ms;

    step(ps, (struct lane_event){.kind = LANE_EVENT_TERMINATE});
    tick(ps, terminate_ms - 1);
    assert_false(ps->has_exited);
    tick(ps, 1);
    assert_true(ps->has_exited);
    assert_int_equal(ps->exit_code, 143);
}

/* Nobody may hear of an end that is not written: what bounds the wait is the signal. */
STATE_TEST(an_end_that_is_never_written_waits_until_ps_0_is_terminated, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin_with(state, 1, true);
    wire_leave_request leave = WIRE_LEAVE_REQUEST_INIT;

    join(&ps, 0); /* given */
    assert_int_equal(ps.replied, 0);
    write_down(&ps);
    assert_int_equal(ps.replied, 1);
    leave.session_id = (wire_bytes){sizeof ps.session, ps.session};
    leave.done = true;
    call(&ps, LANE_CALL_LEAVE, &leave.base);
    write_down(&ps);
    assert_int_equal(ps.replied, 2);

    for (int i = 0; i < 60; i++) /* when */
        tick(&ps, 1000);

    assert_int_not_equal(ps_core_controller(ps.talk->core)->phase, CONTROLLER_RUNNING); /* then */
    assert_false(ps.has_exited);
    expect_exit_when_time_to_terminate_is_over(&ps);
}

STATE_TEST(
    a_ps_0_of_which_nothing_is_written_exits_when_its_time_to_terminate_is_over, talk_setup,
    talk_teardown)
{
    struct ps_0 ps = begin_with(state, 1, true);

    join(&ps, 0);

    expect_exit_when_time_to_terminate_is_over(&ps);
    assert_int_equal(ps.replied, 0);
}

/* A ps without a controller answers each call in its step, so no call waits any more. */
TALK_TEST(a_call_that_is_given_up_concerns_no_ps_but_ps_0)
{
    const struct lane_config config = talk_config();
    const struct lane_event given_up = {.kind = LANE_EVENT_CALL_CANCELLED, .now_us = 1, .call = 7};
    struct lane_effects effects = {.count = 1};

    talk_start(talk, &config);
    assert_int_not_equal(config.index, 0);
    ps_core_step(talk->core, &given_up, &effects);

    assert_int_equal(effects.count, 0);
}

/* It is dialled, and lost, in here: no driver has anything of it. */
STATE_TEST(what_a_driver_says_of_ps_0s_stream_to_itself_is_not_heard, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    const struct lane_event down = {
        .kind = LANE_EVENT_PEER_DOWN,
        .now_us = ps.talk->now_us,
        .ps = 0,
        .text = "it ended the stream"};
    struct lane_effects effects;

    join(&ps, 0); /* given */
    assert_int_equal(ps.replied, 1);

    ps_core_step(ps.talk->core, &down, &effects); /* when */

    assert_int_equal(effects.count, 0); /* then */
    assert_non_null(ps.talk->lane->controller);
    join(&ps, 1); /* its lane hears of the next session at once */
    assert_int_equal(ps.replied, 2);
}

/* One call for so many variables of so many shards: two orders for each, one after the other. */
static void create_many(struct ps_0 *ps, uint32_t count, uint32_t shards)
{
    static char names[WIRE_CREATE_VARIABLES_MAX][16];
    static wire_variable variables[WIRE_CREATE_VARIABLES_MAX];
    wire_variable *list[WIRE_CREATE_VARIABLES_MAX];
    uint64_t shape[] = {shards};
    wire_function function;
    wire_partitioner partitioner = WIRE_PARTITIONER_INIT;
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;

    partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_FIXED_SHARDS;
    partitioner.num_shards = shards;
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "v%u", i);
        vector_init(&variables[i], names[i], shape, &function);
        variables[i].partitioner = &partitioner;
        list[i] = &variables[i];
    }
    request.session_id = (wire_bytes){sizeof ps->session, ps->session};
    request.variables = list;
    request.n_variables = count;
    call(ps, LANE_CALL_CREATE, &request.base);
}

static void expect_consistent(const struct ps_0 *ps)
{
    struct check check = {.text = ""};

    ps_core_check(ps->talk->core, &check);
    assert_string_equal(check.text, "");
}

/* The most that one step did of each. */
struct most {
    uint32_t messages; /* delivered */
    uint64_t shards;   /* made */
};

/* Its own ps answers an order at once, and the controller has the next one ready. Counts the steps
 * from the create to its answer. Each of them asks for the next step at once. */
static uint32_t go_on(struct ps_0 *ps, struct most *most)
{
    const uint64_t answered = ps->replied;
    uint32_t steps = 1;
    bool at_once = true;

    *most = (struct most){ps->talk->core->delivered, ps->talk->lane->store.shard_count};
    while (ps->replied == answered && at_once) {
        const struct lane_event tick = {.kind = LANE_EVENT_TICK, .now_us = ps->talk->now_us};
        const bool fills = ps->talk->lane->store.unfilled.first != NULL;
        const uint64_t shards = ps->talk->lane->store.shard_count;
        struct lane_effects effects;
        expect_consistent(ps); /* what the next step has no memory of does not wait for it */
        ps_core_step(ps->talk->core, &tick, &effects);
        at_once = false;
        for (uint32_t i = 0; i < effects.count; i++) {
            note(ps, &effects.items[i]);
            at_once |= effects.items[i].kind == LANE_EFFECT_WAKE &&
                       effects.items[i].at_us <= ps->talk->now_us;
        }
        assert_true(ps->talk->core->delivered > 0 || fills);
        const struct most did = {
            ps->talk->core->delivered, ps->talk->lane->store.shard_count - shards};
        most->messages = did.messages > most->messages ? did.messages : most->messages;
        most->shards = did.shards > most->shards ? did.shards : most->shards;
        steps++;
    }
    return steps;
}

STATE_TEST(
    so_many_orders_are_given_in_a_step_and_the_rest_goes_on_with_the_next, talk_setup,
    talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    struct most most;

    join(&ps, 0);
    create_many(&ps, WIRE_CREATE_VARIABLES_MAX, 1);
    assert_int_equal(ps.replied, 1);

    const uint32_t steps = go_on(&ps, &most);

    assert_int_equal(ps.replied, 2);
    assert_int_equal(ps.talk->lane->store.variable_count, WIRE_CREATE_VARIABLES_MAX);
    assert_in_range(most.messages, PS_DELIVERIES_MAX / 2, PS_DELIVERIES_MAX + 2);
    assert_in_range(steps, 4 * 2 * WIRE_CREATE_VARIABLES_MAX / (PS_DELIVERIES_MAX + 2), 1000);
}

/* A shard takes longer to make than its few bytes to fill. */
STATE_TEST(a_step_makes_some_of_4096_shards_and_more_with_the_next, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    struct most most;

    join(&ps, 0);
    create_many(&ps, 8, PLACEMENT_SHARDS_MAX);
    assert_int_equal(ps.replied, 1);

    const uint32_t steps = go_on(&ps, &most);

    assert_int_equal(ps.replied, 2);
    assert_int_equal(ps.talk->lane->store.shard_count, 8 * PLACEMENT_SHARDS_MAX);
    assert_in_range(steps, 8 * PLACEMENT_SHARDS_MAX / 512, 1000);
    assert_in_range(most.messages, 1, PS_DELIVERIES_MAX / 2);
    assert_in_range(most.shards, 64, 512);
}

/* Of variables of 128 shards each, those that a step has time for: as many orders as it might give
 * would make 4096. */
STATE_TEST(what_is_filled_is_work_of_the_step, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    struct most most;

    join(&ps, 0);
    create_many(&ps, WIRE_CREATE_VARIABLES_MAX, 128);
    assert_int_equal(ps.replied, 1);

    (void)go_on(&ps, &most);

    assert_int_equal(ps.replied, 2);
    assert_in_range(most.shards, 512, 2048);
}

/* As ps 0 of two, whose ps 1 is not there: so many joins wait for it. */
static struct ps_0 begin_with_joins(void **state, uint32_t count)
{
    static const char *const addresses[] = {"h0:1", "h1:1"};
    struct lane_config config = talk_config();
    struct ps_0 ps = {.talk = *state};

    config.index = 0;
    config.ps_addresses = addresses;
    config.sessions_max = 1024;
    talk_start(ps.talk, &config);
    for (uint32_t i = 0; i < count; i++)
        join(&ps, i);
    return ps;
}

/* More joins are to be answered than there is memory for: ps 0 ends, and its controller with it. */
STATE_TEST(after_an_exit_of_the_controller_nobody_decides_anything, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin_with_joins(state, 300);

    ps.talk->out_of_memory = true;
    step(&ps, (struct lane_event){.kind = LANE_EVENT_TERMINATE});
    ps.talk->out_of_memory = false;
    assert_true(ps.has_exited);
    assert_int_equal(ps.exit_code, LANE_EXIT_NO_MEMORY);
    const uint64_t failed = ps.failed;

    join(&ps, 301);

    assert_int_equal(ps.failed, failed);
    assert_int_equal(ps.replied, 0);
}

/* A variable that its creator assigns: whoever creates it, too, waits for that. */
static void create_assigned(struct ps_0 *ps)
{
    static uint64_t shape[] = {1};
    wire_initializer initializer = WIRE_INITIALIZER_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT;
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;

    initializer.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ASSIGNED;
    variable.name = "assigned";
    variable.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable.shape = shape;
    variable.n_shape = 1;
    variable.initializer = &initializer;
    request.session_id = (wire_bytes){.data = ps->session, .len = sizeof ps->session};
    request.variable = &variable;
    request.timeout_ms = 1000;
    call(ps, LANE_CALL_CREATE, &request.base);
}

/* Each half has places for what it says, and of both together there are fewer. */
STATE_TEST(what_there_is_no_place_for_ends_ps_0, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    struct reserved_array *const places = &ps.talk->core->out.effects;
    const uint32_t capacity = places->capacity;

    join(&ps, 0);
    create_assigned(&ps);
    join(&ps, 1);
    const uint64_t answered = ps.calls;
    for (int i = 0; i < 40; i++)
        create_assigned(&ps);
    assert_int_equal(ps.replied, answered);
    ps.talk->out_of_memory = true; /* given: they wait */
    places->capacity = 2 * RESERVED_ARRAY_RESERVE;

    tick(&ps, 1001); /* when: they do not any longer */

    places->capacity = capacity;
    ps.talk->out_of_memory = false;
    assert_true(ps.has_exited); /* then: those have an answer that have a place, and it ends */
    assert_int_equal(ps.exit_code, LANE_EXIT_NO_MEMORY);
    assert_in_range(ps.failed - answered, RESERVED_ARRAY_RESERVE, 2 * RESERVED_ARRAY_RESERVE - 1);
}

/* The lane is stepped for the call, and once more for what waits of the step before. */
STATE_TEST(what_was_said_first_in_a_step_is_said, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    wire_stats_request request = WIRE_STATS_REQUEST_INIT;

    join(&ps, 0);
    create_many(&ps, WIRE_CREATE_VARIABLES_MAX, 1);
    assert_true(ps.talk->core->queued > 0); /* given */

    call(&ps, LANE_CALL_STATS, &request.base);

    assert_int_equal(ps.replied, ps.calls);
}

/* Statistics that say for how many waits there was no room, whoever waits. */
STATE_TEST(
    waits_that_the_controller_leaves_out_are_counted_in_the_statistics, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct lane_event stats = {
        .kind = LANE_EVENT_CALL,
        .now_us = ps.talk->now_us,
        .call = 9999,
        .call_kind = LANE_CALL_STATS,
        .request = &request.base};
    struct lane_effects effects;

    join(&ps, 0);
    create_assigned(&ps);
    join(&ps, 1);
    for (int i = 0; i < 300; i++) /* these wait until the first has assigned it */
        create_assigned(&ps);

    ps_core_step(ps.talk->core, &stats, &effects);

    const wire_stats_reply *said = (const wire_stats_reply *)effects.items[0].reply;
    assert_int_equal(said->n_waits, 256);
    assert_int_equal(said->waits_left_out, 300 - 256);
}

/* The only sentence of the statistics. */
static const char *ask_for_waits(const struct ps_0 *ps)
{
    wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const wire_stats_reply *said = NULL;
    struct lane_effects effects;
    const struct lane_event stats = {
        .kind = LANE_EVENT_CALL,
        .now_us = ps->talk->now_us,
        .call = 9999,
        .call_kind = LANE_CALL_STATS,
        .request = &request.base};

    ps_core_step(ps->talk->core, &stats, &effects);
    for (uint32_t i = 0; i < effects.count; i++)
        if (effects.items[i].kind == LANE_EFFECT_REPLY && effects.items[i].call == 9999)
            said = (const wire_stats_reply *)effects.items[i].reply;
    assert_non_null(said);
    assert_int_equal(said->n_waits, 1);
    return said->waits[0];
}

/* A step can answer Stats and carry out other work of the controller: here 256 creates go on. */
STATE_TEST(statistics_are_readable_while_the_controller_goes_on, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);

    join(&ps, 0);
    create_many(&ps, WIRE_CREATE_VARIABLES_MAX, 1);

    for (uint32_t asked = 0; asked < 4; asked++)
        assert_string_equal(
            ask_for_waits(&ps),
            "create of v0 waits for ps 0 at h0:1, last heard from 0 µs ago; gives up in 60 s");
}

STATE_TEST(statistics_are_asked_as_often_as_one_likes, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);
    uint64_t bytes = 0;

    for (uint32_t asked = 0; asked < 500; asked++) {
        assert_non_null(strstr(
            ask_for_waits(&ps), "ps 0 waits for the first join, of any chief or worker, its "
                                "configuration lists none; this wait has no limit, so far "));
        bytes = bytes == 0 ? ps.talk->bytes_taken : bytes;
    }

    assert_int_equal(ps.talk->bytes_taken, bytes);
}

/* Whoever asks the clock may be told of an earlier moment than was known. */
STATE_TEST(time_does_not_go_back, talk_setup, talk_teardown)
{
    struct ps_0 ps = begin(state, 1);

    join(&ps, 0);
    talk_tick(ps.talk, 100);
    ps.talk->now_us -= 50000;
    join(&ps, 1);

    assert_int_equal(ps.replied, 2);
    assert_int_equal(ps.talk->core->now_us, ps.talk->now_us + 50000);
}
