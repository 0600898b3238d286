/* SPDX-License-Identifier: Apache-2.0 */
/* out.c -- the effects of a step, when the source has no memory for more of them. */

#include "unit.h"
#include "out.h"

static void *take(void *context, size_t bytes)
{
    const bool *empty = context;

    return *empty ? NULL : memory_take(&memory_heap, bytes);
}

static void give(void *context, void *data, size_t bytes)
{
    (void)context;
    memory_give(&memory_heap, data, bytes);
}

struct fixture {
    bool empty; /* the source */
    struct memory memory;
    struct arena arena;
    struct out out;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){.memory = {take, give, &fixture.empty}};
    arena_init(&fixture.arena, &fixture.memory, 65536);
    assert_true(out_init(&fixture.out, &fixture.memory, &fixture.arena));
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *const fixture = *state;

    out_deinit(&fixture->out);
    arena_deinit(&fixture->arena);
    return 0;
}

FIXTURE_TEST(
    effects_have_no_bound_while_there_is_memory, struct fixture *const fixture, set_up, tear_down)
{
    for (uint32_t i = 1; i <= 5000; i++)
        out_fail(&fixture->out, i, SUMAC_ABORTED, SUMAC_REASON_UNSPECIFIED, "call %u", i);

    const struct lane_effects said = out_effects(&fixture->out);
    assert_int_equal(said.count, 5000);
    assert_int_equal(said.items[4999].call, 5000);
    assert_string_equal(said.items[16].error.text, "call 17");
    assert_false(fixture->out.effects.lost);
}

static void log_numbered(struct out *out, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        out_log(out, "worker %u deletes w", i);
}

/* Whatever causes a line, lines of another kind are said beside it. */
FIXTURE_TEST(
    lines_of_one_kind_are_said_once_a_second_after_many, struct fixture *const fixture, set_up,
    tear_down)
{
    struct out *const out = &fixture->out;

    out->now_us = 5000000;
    fixture->arena.bytes_max = 1u << 20;
    log_numbered(out, LOG_LINES_AT_ONCE_MAX + 100);
    assert_int_equal(out_effects(out).count, LOG_LINES_AT_ONCE_MAX);

    out_log(out, "ps 0 was told to terminate");
    assert_int_equal(out_effects(out).count, LOG_LINES_AT_ONCE_MAX + 1);
    out_reset(out);
    out->now_us += 3000000;
    log_numbered(out, 10);

    assert_int_equal(out_effects(out).count, 3);
    assert_string_equal(
        out_effects(out).items[0].text, "worker 0 deletes w (100 more such lines were left out)");
    assert_string_equal(out_effects(out).items[1].text, "worker 1 deletes w");
}

/* However often lines come meanwhile, none of that time is lost. */
FIXTURE_TEST(
    time_that_makes_no_whole_line_counts_for_the_next, struct fixture *const fixture, set_up,
    tear_down)
{
    struct out *const out = &fixture->out;

    out->now_us = 5000000;
    fixture->arena.bytes_max = 1u << 20;
    log_numbered(out, LOG_LINES_AT_ONCE_MAX); /* given */
    out_reset(out);

    out->now_us += 1500000;
    log_numbered(out, 2); /* when */
    assert_int_equal(out_effects(out).count, 1);
    out_reset(out);
    out->now_us += 500000;
    log_numbered(out, 2);

    assert_int_equal(out_effects(out).count, 1); /* then: the second of two seconds is whole */
}

#define EIGHT_KINDS(out, name)                                                                     \
    out_log(out, name "0"), out_log(out, name "1"), out_log(out, name "2"),                        \
        out_log(out, name "3"), out_log(out, name "4"), out_log(out, name "5"),                    \
        out_log(out, name "6"), out_log(out, name "7")

/* Nothing is written behind the places. */
FIXTURE_TEST(
    kinds_beyond_the_places_share_the_last_one, struct fixture *const fixture, set_up, tear_down)
{
    struct out *const out = &fixture->out;
    const struct log_kind *const kinds = out->log_limit.kinds;

    EIGHT_KINDS(out, "a"), EIGHT_KINDS(out, "b"), EIGHT_KINDS(out, "c"), EIGHT_KINDS(out, "d");
    EIGHT_KINDS(out, "e"), EIGHT_KINDS(out, "f"), EIGHT_KINDS(out, "g"), EIGHT_KINDS(out, "h");
    assert_string_equal(kinds[LOG_KINDS_MAX - 1].format, "h7");
    assert_int_equal(kinds[LOG_KINDS_MAX - 1].lines, 1);

    EIGHT_KINDS(out, "i");

    assert_int_equal(out_effects(out).count, 72);
    assert_int_equal(kinds[LOG_KINDS_MAX - 1].lines, 9);
}

/* As many of that kind as there are places for. */
static void fill(struct out *out, enum lane_effect_kind kind)
{
    uint32_t before;

    do {
        assert_false(out->effects.lost);
        before = out_effects(out).count;
        assert_non_null(out_add(out, kind));
    } while (out_effects(out).count > before);
}

/* The log goes first; who waits is answered from the reserve; the end has the last place. */
FIXTURE_TEST(
    without_memory_the_log_is_left_out_first_and_the_end_has_a_place, struct fixture *const fixture,
    set_up, tear_down)
{
    struct out *const out = &fixture->out;

    fixture->empty = true;
    fill(out, LANE_EFFECT_LOG);
    const uint32_t logged = out_effects(out).count;
    assert_false(out->effects.lost); /* nobody waits for a line */

    fill(out, LANE_EFFECT_FAIL);
    const uint32_t answered = out_effects(out).count;
    assert_true(out->effects.lost);
    assert_true(answered > logged + 1);

    (void)out_add(out, LANE_EFFECT_EXIT);
    (void)out_add(out, LANE_EFFECT_EXIT);
    assert_int_equal(out_effects(out).count, answered + 1);
    assert_int_equal(out_effects(out).items[answered].kind, LANE_EFFECT_EXIT);
}

/* A line that there is no room for is not an empty line, and costs nobody the answer; the last line
 * has a place of its own. */
FIXTURE_TEST(
    without_room_for_texts_there_is_no_log_but_a_last_line, struct fixture *const fixture, set_up,
    tear_down)
{
    struct out *const out = &fixture->out;
    const wire_leave_reply reply = WIRE_LEAVE_REPLY_INIT;

    fixture->empty = true;

    out_log(out, "ps %u does something", 1u);
    out_reply_or_fail(out, 1, &reply.base);
    out_exit(out, 3, SUMAC_REASON_TERMINATED, "why", "ps 1 ends");

    const struct lane_effects said = out_effects(out);
    assert_int_equal(said.count, 2);
    assert_int_equal(said.items[0].kind, LANE_EFFECT_REPLY);
    assert_string_equal(said.items[1].text, "ps 1 ends");
    assert_string_equal(said.items[1].error.text, "why");
}

FIXTURE_TEST(
    an_answer_that_could_not_be_made_fails_its_call, struct fixture *const fixture, set_up,
    tear_down)
{
    struct out *const out = &fixture->out;
    const wire_leave_reply reply = WIRE_LEAVE_REPLY_INIT;

    fixture->empty = true; /* the arena has taken nothing yet */

    out_reply_or_fail(out, 1, NULL);
    out_reply_or_fail(out, 2, &reply.base);
    assert_string_equal(out_text(out, "%s", "worker"), "");
    out_reply_or_fail(out, 3, &reply.base); /* a text of it is missing */

    const struct lane_effects said = out_effects(out);
    assert_int_equal(said.items[0].kind, LANE_EFFECT_FAIL);
    assert_int_equal(said.items[0].error.status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(said.items[0].error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_int_equal(said.items[1].kind, LANE_EFFECT_REPLY);
    assert_int_equal(said.items[2].kind, LANE_EFFECT_FAIL);
    assert_int_equal(said.items[2].call, 3);
}

/* A message that has no room is written into a spare place, which no reply reads. Later parts of
 * messages of the step have no room either. */
FIXTURE_TEST(
    a_message_without_room_fails_the_replies_of_its_step, struct fixture *const fixture, set_up,
    tear_down)
{
    struct out *const out = &fixture->out;
    wire_renew_reply *reply = OUT_MESSAGE(out, renew_reply);

    reply->epoch = 7; /* given: one that has room */
    assert_false(out->is_short);
    assert_string_equal(out_copy(out, "w", 2), "w");
    out_reply_or_fail(out, 1, &reply->base);

    fixture->arena.room = 8; /* when: of the bytes that a small one needs */
    fixture->empty = true;
    wire_join_reply *lost = OUT_MESSAGE(out, join_reply);

    assert_true(out->is_short); /* then */
    assert_ptr_equal(lost, out->spare);
    assert_ptr_equal(lost->base.descriptor, &sumac__v1__join_reply__descriptor);
    assert_int_equal(lost->lease_ms, 0);
    assert_null(out_take(out, 1));
    assert_null(out_copy(out, "w", 2));
    out_reply_or_fail(out, 2, &lost->base);
    const struct lane_effects said = out_effects(out);
    assert_int_equal(said.items[0].kind, LANE_EFFECT_REPLY);
    assert_int_equal(said.items[1].kind, LANE_EFFECT_FAIL);
    assert_int_equal(said.items[1].error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    out_reset(out); /* the next step */
    fixture->empty = false;
    assert_ptr_not_equal(OUT_MESSAGE(out, join_reply), out->spare);
}
