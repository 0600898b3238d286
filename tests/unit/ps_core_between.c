/* SPDX-License-Identifier: Apache-2.0 */
/* ps_core_between.c -- what ps_core hands on between the driver of ps 0, its lane and its
 * controller: each with all that goes with it, and nothing to who should not hear it.
 *
 * Lane and controller say what the test says, and keep what they were told.
 */

#include "unit.h"
#include "lane_talk.h"
#include "ps_core_state.h"

#define TOLD_MAX 16u

/* One of the two. */
struct half {
    uint32_t told_count, says_count;
};

static struct between {
    struct half of_controller, of_lane;
    struct lane_event controller_told[TOLD_MAX];
    struct lane_event lane_told[TOLD_MAX];
    struct lane_effect controller_says[4]; /* with its next step */
    struct lane_effect lane_says[4];       /* likewise */
    struct lane_told told;                 /* with the statistics */
} between;

void __wrap_controller_step(
    struct controller *controller, const struct lane_event *event, struct lane_effects *effects);

void __wrap_controller_step(
    struct controller *controller, const struct lane_event *event, struct lane_effects *effects)
{
    struct half *const half = &between.of_controller;
    (void)controller;

    assert_true(half->told_count < TOLD_MAX);
    between.controller_told[half->told_count++] = *event;
    *effects = (struct lane_effects){.items = between.controller_says, .count = half->says_count};
    half->says_count = 0;
}

void __wrap_lane_step(
    struct lane *lane, const struct lane_event *event, struct lane_effects *effects);

void __wrap_lane_step(
    struct lane *lane, const struct lane_event *event, struct lane_effects *effects)
{
    struct half *const half = &between.of_lane;
    (void)lane;

    assert_true(half->told_count < TOLD_MAX);
    between.lane_told[half->told_count++] = *event;
    if (event->told != NULL)
        between.told = *event->told;
    *effects = (struct lane_effects){.items = between.lane_says, .count = half->says_count};
    half->says_count = 0;
}

static char *waits[] = {(char *)(uintptr_t) "one", (char *)(uintptr_t) "another"};

void __wrap_controller_list_waits(
    struct controller *controller, uint64_t now_us, struct controller_waits *listed);

void __wrap_controller_list_waits(
    struct controller *controller, uint64_t now_us, struct controller_waits *listed)
{
    (void)controller;
    assert_int_equal(now_us, 1000);
    *listed = (struct controller_waits){.items = waits, .count = 2, .left_out = 33};
}

uint64_t __wrap_controller_cluster_id(const struct controller *controller);

uint64_t __wrap_controller_cluster_id(const struct controller *controller)
{
    (void)controller;
    return 0xC1;
}

static int set_up(void **state)
{
    struct lane_config config = talk_config();

    config.index = 0;
    between = (struct between){.of_controller = {0}};
    struct ps_core *const core = ps_core_create(&config, &memory_heap);
    assert_non_null(core);
    *state = core;
    return 0;
}

static int tear_down(void **state)
{
    ps_core_destroy(*state);
    return 0;
}

/* One event of the driver, and its effects. Both have forgotten what they were told before. */
static struct lane_effects step(struct ps_core *core, struct lane_event event)
{
    struct lane_effects effects;

    between.of_controller.told_count = between.of_lane.told_count = 0;
    event.now_us = 1000;
    ps_core_step(core, &event, &effects);
    return effects;
}

static void controller_says(const struct lane_effect *effect)
{
    between.controller_says[between.of_controller.says_count++] = *effect;
}

static void lane_says(const struct lane_effect *effect)
{
    between.lane_says[between.of_lane.says_count++] = *effect;
}

/* ---- what the driver tells ---- */

#define BETWEEN_TEST(name) FIXTURE_TEST(name, struct ps_core *const core, set_up, tear_down)

BETWEEN_TEST(what_is_for_the_controller_is_told_with_all_that_goes_with_it)
{
    static const struct {
        enum lane_event_kind kind;
        uint32_t to_lane;
    } cases[] = {{LANE_EVENT_START, 1},    {LANE_EVENT_CALL, 0},    {LANE_EVENT_CALL_CANCELLED, 0},
                 {LANE_EVENT_REPORT, 0},   {LANE_EVENT_PEER_UP, 0}, {LANE_EVENT_PEER_DOWN, 0},
                 {LANE_EVENT_RECORDED, 0}, {LANE_EVENT_TICK, 1},    {LANE_EVENT_TERMINATE, 1}};
    static const wire_join_request join = WIRE_JOIN_REQUEST_INIT;
    static const wire_peer_report report = WIRE_PEER_REPORT_INIT;
    static const char text[] = "its connection broke";
    const struct lane_event event = {
        .random = {11, 12},
        .call = 13,
        .call_kind = LANE_CALL_JOIN,
        .request = &join.base,
        .ps = 2,
        .text = text,
        .reason = SUMAC_REASON_STATE_LOST,
        .report = &report,
        .journal = LANE_JOURNAL_CONTROLLER,
        .record = 14,
        .cpu_us = 15};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lane_event given = event;
        const struct lane_event *const told = &between.controller_told[0];
        given.kind = cases[i].kind;

        const struct lane_effects effects = step(core, given);

        assert_int_equal(effects.count, 0);
        assert_int_equal(between.of_controller.told_count, 1);
        assert_int_equal(between.of_lane.told_count, cases[i].to_lane);
        assert_int_equal(told->kind, given.kind);
        assert_int_equal(told->now_us, 1000);
        assert_false(told->follows);
        const bool is_call = told->kind == LANE_EVENT_CALL;
        if (is_call || told->kind == LANE_EVENT_START)
            assert_true(told->random[0] == 11 && told->random[1] == 12);
        if (is_call || told->kind == LANE_EVENT_CALL_CANCELLED)
            assert_int_equal(told->call, 13);
        if (is_call)
            assert_true(told->call_kind == LANE_CALL_JOIN && told->request == &join.base);
        if (told->kind == LANE_EVENT_REPORT)
            assert_ptr_equal(told->report, &report);
        if (told->kind == LANE_EVENT_REPORT || told->kind == LANE_EVENT_PEER_UP ||
            told->kind == LANE_EVENT_PEER_DOWN)
            assert_int_equal(told->ps, 2);
        if (told->kind == LANE_EVENT_PEER_DOWN) {
            assert_ptr_equal(told->text, text);
            assert_int_equal(told->reason, SUMAC_REASON_STATE_LOST);
        }
        if (told->kind == LANE_EVENT_RECORDED)
            assert_int_equal(told->record, 14);
        if (told->kind == LANE_EVENT_TICK)
            assert_int_equal(told->cpu_us, 15);
        if (told->kind == LANE_EVENT_START)
            assert_int_equal(between.lane_told[0].cluster_id, 0xC1);
    }
}

BETWEEN_TEST(statistics_are_asked_of_the_lane_with_what_the_controller_adds)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;

    (void)step(
        core, (struct lane_event){
                  .kind = LANE_EVENT_CALL,
                  .call = 13,
                  .call_kind = LANE_CALL_STATS,
                  .request = &request.base});

    assert_int_equal(between.of_controller.told_count, 0);
    assert_int_equal(between.of_lane.told_count, 1);
    assert_int_equal(between.lane_told[0].call, 13);
    assert_ptr_equal(between.lane_told[0].request, &request.base);
    assert_ptr_equal(between.told.waits, waits);
    assert_int_equal(between.told.wait_count, 2);
    assert_int_equal(between.told.waits_left_out, 33);
    assert_true(between.told.sessions_bytes_max > 0);
    assert_int_equal(
        between.told.sessions_bytes_max, controller_sessions_bytes_max(core->controller));
}

/* ---- what the controller says ---- */

BETWEEN_TEST(what_the_controller_says_to_others_is_said_with_all_that_goes_with_it)
{
    static const enum lane_effect_kind kinds[] = {
        LANE_EFFECT_REPLY, LANE_EFFECT_FAIL,   LANE_EFFECT_DIAL, LANE_EFFECT_ORDER,
        LANE_EFFECT_LOG,   LANE_EFFECT_RECORD, LANE_EFFECT_WAKE, LANE_EFFECT_EXIT};
    static const wire_join_reply reply = WIRE_JOIN_REPLY_INIT;
    static const wire_peer_order order = WIRE_PEER_ORDER_INIT;
    static const struct span body;
    static const char text[] = "h2:1";

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        controller_says(&(struct lane_effect){
            .kind = kinds[i],
            .ps = 2,
            .call = 13,
            .at_us = 14,
            .record = 15,
            .journal = LANE_JOURNAL_CONTROLLER,
            .exit_code = 16,
            .text = text,
            .reply = &reply.base,
            .order = &order,
            .body = &body,
            .body_count = 3,
            .error = {.status = SUMAC_ABORTED, .reason = SUMAC_REASON_BUSY, .text = "later"}});

        const struct lane_effects effects =
            step(core, (struct lane_event){.kind = LANE_EVENT_PEER_UP, .ps = 2});

        assert_int_equal(effects.count, 1);
        const struct lane_effect *const said = &effects.items[0];
        assert_int_equal(said->kind, kinds[i]);
        assert_int_equal(said->ps, 2);
        assert_int_equal(said->call, 13);
        assert_int_equal(said->at_us, 14);
        assert_int_equal(said->record, 15);
        assert_int_equal(said->journal, LANE_JOURNAL_CONTROLLER);
        assert_ptr_equal(said->reply, &reply.base);
        assert_ptr_equal(said->order, &order);
        assert_ptr_equal(said->body, &body);
        assert_int_equal(said->body_count, 3);
        assert_int_equal(said->error.status, SUMAC_ABORTED);
        assert_int_equal(said->error.reason, SUMAC_REASON_BUSY);
        assert_ptr_equal(said->text, text);
        assert_int_equal(said->exit_code, 16);
    }
}

/* ---- ps 0's stream to itself ---- */

static void dial_own(struct ps_core *core)
{
    controller_says(&(struct lane_effect){.kind = LANE_EFFECT_DIAL, .ps = 0, .text = "h0:1"});
    (void)step(core, (struct lane_event){.kind = LANE_EVENT_PEER_UP, .ps = 2});
}

/* The order that its lane does not obey is out, and lost with the stream: the controller hears why,
 * and nothing else of it until it is dialled again. */
BETWEEN_TEST(the_end_of_its_own_stream_is_told_with_its_reason_and_then_nothing)
{
    static const wire_peer_order order = WIRE_PEER_ORDER_INIT;

    dial_own(core);
    assert_int_equal(between.of_lane.told_count, 2);
    assert_int_equal(between.lane_told[0].kind, LANE_EVENT_STREAM_OPENED);
    assert_int_equal(between.lane_told[1].kind, LANE_EVENT_STREAM_WRITABLE);
    assert_int_equal(between.controller_told[1].kind, LANE_EVENT_PEER_UP);
    assert_int_equal(between.controller_told[1].ps, 0);

    controller_says(&(struct lane_effect){.kind = LANE_EFFECT_ORDER, .ps = 0, .order = &order});
    lane_says(&(struct lane_effect){
        .kind = LANE_EFFECT_CLOSE_STREAM,
        .stream = LANE_STREAM_OWN,
        .error = {.status = SUMAC_ABORTED, .reason = SUMAC_REASON_OUT_OF_MEMORY, .text = "short"}});
    const struct lane_effects effects =
        step(core, (struct lane_event){.kind = LANE_EVENT_PEER_UP, .ps = 2});

    assert_int_equal(effects.count, 0);
    assert_int_equal(between.of_lane.told_count, 2);
    assert_ptr_equal(between.lane_told[0].order, &order);
    assert_int_equal(between.lane_told[1].kind, LANE_EVENT_STREAM_CLOSED);
    assert_int_equal(between.of_controller.told_count, 2);
    const struct lane_event *const down = &between.controller_told[1];
    assert_int_equal(down->kind, LANE_EVENT_PEER_DOWN);
    assert_int_equal(down->ps, 0);
    assert_string_equal(down->text, "short");
    assert_int_equal(down->reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_true(down->follows);

    (void)step(core, (struct lane_event){.kind = LANE_EVENT_TICK});
    assert_int_equal(between.lane_told[0].kind, LANE_EVENT_STREAM_OPENED);
}

/* It ends as an order on its way is out: of that the controller hears no more. */
BETWEEN_TEST(a_stream_that_has_ended_is_not_up)
{
    dial_own(core);
    controller_says(&(struct lane_effect){.kind = LANE_EFFECT_DIAL, .ps = 0, .text = "h0:1"});
    lane_says(&(struct lane_effect){
        .kind = LANE_EFFECT_CLOSE_STREAM,
        .stream = LANE_STREAM_OWN,
        .error = {.status = SUMAC_ABORTED, .reason = SUMAC_REASON_OUT_OF_MEMORY}});

    (void)step(core, (struct lane_event){.kind = LANE_EVENT_PEER_UP, .ps = 2});

    assert_int_equal(between.of_controller.told_count, 2);
    assert_int_equal(between.controller_told[1].kind, LANE_EVENT_PEER_DOWN);
}

BETWEEN_TEST(the_end_of_the_run_is_told_to_the_lane)
{
    controller_says(&(struct lane_effect){.kind = LANE_EFFECT_RUN_OVER, .ps = 7});

    const struct lane_effects effects =
        step(core, (struct lane_event){.kind = LANE_EVENT_PEER_UP, .ps = 2});

    assert_int_equal(effects.count, 0);
    assert_int_equal(between.of_lane.told_count, 1);
    assert_int_equal(between.lane_told[0].kind, LANE_EVENT_RUN_OVER);
}

/* ---- the end ---- */

BETWEEN_TEST(after_an_exit_of_the_lane_its_controller_hears_nothing)
{
    lane_says(&(struct lane_effect){.kind = LANE_EFFECT_EXIT, .exit_code = 143});
    const struct lane_effects effects =
        step(core, (struct lane_event){.kind = LANE_EVENT_TERMINATE});

    assert_int_equal(effects.count, 1);
    assert_int_equal(effects.items[0].exit_code, 143);
    assert_int_equal(between.of_controller.told_count, 0);
    (void)step(core, (struct lane_event){.kind = LANE_EVENT_TICK});
    assert_int_equal(between.of_controller.told_count, 0);
}

/* Whoever asks the clock may be told of an earlier moment than was known. */
BETWEEN_TEST(time_does_not_go_back_for_either)
{
    struct lane_effects effects;

    (void)step(core, (struct lane_event){.kind = LANE_EVENT_TICK});
    ps_core_step(core, &(struct lane_event){.kind = LANE_EVENT_TICK, .now_us = 500}, &effects);

    assert_int_equal(between.controller_told[1].now_us, 1000);
    assert_int_equal(between.lane_told[1].now_us, 1000);
}
