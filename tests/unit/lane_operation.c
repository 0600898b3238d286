/* SPDX-License-Identifier: Apache-2.0 */
/* lane_operation.c -- an operation of several parts runs at one position, and one of none takes its
 * position.
 *
 * turn.c puts one part into an operation, so these put more into one themselves: parts that are
 * staged, of two sessions, whose turn has come.
 */

#include "unit.h"
#include "operation_state.h"
#include "lane_talk.h"

#define VARIABLE 5u
#define ELEMENTS 16u

/* A variable of zeros, and a part of each of two sessions that has yet to be committed. */
struct two {
    struct talk *talk;
    struct operation *operation; /* of the first session */
    uint64_t streams[2];
};

static struct two stage(void **state, uint32_t inline_bytes)
{
    static const float ones[ELEMENTS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct two two = {.talk = *state};
    struct lane_config config = talk_config();
    const struct talk_part part = {
        .sequence = 1, .shard = VARIABLE, .shards = 1, .values = ones, .count = ELEMENTS};

    config.inline_bytes = inline_bytes;
    talk_start(two.talk, &config);
    talk_variable(two.talk, VARIABLE, ELEMENTS, UPDATE_ASSIGN_ADD);
    for (uint8_t i = 0; i < 2; i++) {
        talk_open(two.talk, (uint8_t)(i + 1));
        two.streams[i] = talk_push_stream(two.talk, (uint8_t)(i + 1), 1);
        talk_part(two.talk, two.streams[i], &part);
    }
    two.operation = operation_of(two.talk->lane->sessions.first);
    talk_forget(two.talk);
    return two;
}

/* As turn.c does when a part's turn has come. */
static void take(struct two *two, struct lane_session *session)
{
    struct lane_part *part = session->parts.first;

    session->commit_through = part->sequence;
    lane_part_move(part, PART_APPLYING);
    session->applying = part;
    session->turn = TURN_RUNNING;
    lane_operation_add(two->operation, part);
}

static void assert_elements_are(const struct talk *talk, float expected)
{
    float values[ELEMENTS];

    assert_int_equal(
        lane_peek(talk->lane, VARIABLE, (uint8_t *)values, sizeof values), sizeof values);
    for (uint32_t i = 0; i < ELEMENTS; i++)
        assert_true(values[i] == expected);
}

/* Two parts for one shard: the slices of the second wait for those of the first, and meanwhile
 * nobody reads. */
STATE_TEST(parts_of_two_sessions_are_applied_at_one_position, talk_setup, talk_teardown)
{
    struct two two = stage(state, 1);
    struct lane *lane = two.talk->lane;
    uint8_t bytes[ELEMENTS * sizeof(float)];
    uint32_t rounds = 0;

    take(&two, lane->sessions.first);
    take(&two, lane->sessions.last);

    assert_false(lane_operation_begin(lane, two.operation));
    while (two.operation->state == OPERATION_OUT) {
        const struct lane_compute compute = two.operation->compute;
        const struct lane_event computed = {.kind = LANE_EVENT_COMPUTED, .job = compute.job};
        assert_int_equal(lane_peek(lane, VARIABLE, bytes, sizeof bytes), 0); /* busy */
        for (uint32_t i = 0; i < compute.slice_count; i++)
            update_run(&compute.slices[i]);
        rounds++;
        two.talk->holds_compute = true;
        talk_step(two.talk, &computed);
    }

    assert_true(rounds >= 2);
    assert_int_equal(lane->store.position, 1);
    assert_elements_are(two.talk, 2);
    assert_null(lane->turns->operations.first);
    talk_expect(two.talk, "done 1 [2]\ndone 1 [2]\n");
    assert_int_equal(lane->sessions.first->mark, 1);
    assert_int_equal(lane->sessions.last->mark, 1);
}

/* A session's next part goes on when the operation that it was in is over. */
STATE_TEST(sessions_of_an_operation_go_on_after_it, talk_setup, talk_teardown)
{
    static const float ones[ELEMENTS] = {1};
    struct two two = stage(state, 1);
    struct lane *lane = two.talk->lane;
    const struct talk_part next = {
        .sequence = 2,
        .previous = 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = 1,
        .values = ones,
        .count = ELEMENTS};

    take(&two, lane->sessions.first);
    take(&two, lane->sessions.last);
    assert_false(lane_operation_begin(lane, two.operation));
    for (uint32_t i = 0; i < 2; i++)
        talk_part(two.talk, two.streams[i], &next);
    talk_forget(two.talk);

    for (uint32_t rounds = 0; two.operation->position == 1 && rounds < 100; rounds++) {
        const struct lane_compute compute = two.operation->compute;
        const struct lane_event computed = {.kind = LANE_EVENT_COMPUTED, .job = compute.job};
        for (uint32_t i = 0; i < compute.slice_count; i++)
            update_run(&compute.slices[i]);
        talk_step(two.talk, &computed);
    }

    assert_int_equal(lane->store.position, 3);
    assert_int_equal(lane->sessions.first->mark, 2);
    assert_int_equal(lane->sessions.last->mark, 2);
    assert_null(lane->sessions.first->parts.first);
}

STATE_TEST(small_parts_are_applied_in_the_step, talk_setup, talk_teardown)
{
    struct two two = stage(state, 2 * ELEMENTS * sizeof(float));
    struct lane *lane = two.talk->lane;
    struct lane_session *const sessions[] = {lane->sessions.first, lane->sessions.last};

    take(&two, sessions[0]);
    take(&two, sessions[1]);

    assert_true(lane_operation_begin(lane, two.operation));

    assert_int_equal(lane->store.position, 1);
    assert_elements_are(two.talk, 2);
    for (uint32_t i = 0; i < 2; i++) { /* nothing is left behind */
        struct lane_part *part = sessions[i]->parts.first;
        lane_operation_remove(two.operation, part);
        sessions[i]->applying = NULL;
        sessions[i]->turn = TURN_IDLE;
        lane_session_remove(lane, sessions[i], part);
        lane_part_destroy(lane, part);
    }
}

/* What has nothing to write, as a cut of what is there, has its place in the order all the same. */
STATE_TEST(an_operation_of_no_parts_takes_its_position, talk_setup, talk_teardown)
{
    struct two two = stage(state, 1);

    assert_true(lane_operation_begin(two.talk->lane, two.operation));

    assert_int_equal(two.operation->position, 1);
    assert_int_equal(two.talk->lane->store.position, 1);
    assert_int_equal(two.operation->state, OPERATION_OVER);
    assert_elements_are(two.talk, 0);
}

/* The whereabouts of push 2, as long as push 1 is missing. */
STATE_TEST(a_part_that_is_committed_waits_for_its_turn, talk_setup, talk_teardown)
{
    struct two two = stage(state, 1);
    struct lane_session *const session = two.talk->lane->sessions.first;
    const struct talk_part behind = {
        .sequence = 4,
        .previous = 3,
        .shard = VARIABLE,
        .shards = 1,
        .values = (const float[ELEMENTS]){1},
        .count = ELEMENTS};

    talk_part(two.talk, two.streams[0], &behind);
    assert_string_equal(lane_turn_whereabouts(session, 4), "has arrived and is not committed");
    assert_string_equal(lane_turn_whereabouts(session, 3), "is missing");

    talk_commit(two.talk, two.streams[0], 4, 0, 0);

    assert_string_equal(lane_turn_whereabouts(session, 4), "waits for its turn");
    talk_forget(two.talk);
}

/* A client may name a version that its shard does not have yet. */
STATE_TEST(what_is_based_on_a_later_version_has_no_staleness, talk_setup, talk_teardown)
{
    struct two two = stage(state, 2 * ELEMENTS * sizeof(float));
    struct talk *const talk = two.talk;
    struct talk_part part = {
        .sequence = 2,
        .previous = 1,
        .eager = true,
        .shard = VARIABLE,
        .shards = 1,
        .values = (const float[ELEMENTS]){1},
        .count = ELEMENTS,
        .based_on = 99};

    talk_commit(talk, two.streams[0], 1, 0, 0);
    talk_part(talk, two.streams[0], &part);
    assert_int_equal(talk->lane->counts.staleness.count, 0);
    part.previous = part.sequence++;
    part.based_on = 1;
    talk_part(talk, two.streams[0], &part);

    assert_int_equal(talk->lane->counts.staleness.count, 1);
    talk_forget(talk);
}
