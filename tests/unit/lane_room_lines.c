/* SPDX-License-Identifier: Apache-2.0 */
/* lane_room_lines.c -- an ordinary part behind a contribution of its session waits in the line of
 * later ones. No other part gives way to it, not even a younger one. */
#include "lane_pool.h"
#include "part_state.h"
#include "peer.h"

/* Sessions 2 and 3 have staged ordinary parts, which are younger than what session 1 asks for. */
static struct members begin_full(struct talk *talk, uint64_t pool_bytes)
{
    const struct members members = open_three(talk, pool_bytes);

    stage(talk, &members, 2, 10);
    stage(talk, &members, 3, 20);
    return members;
}

static void ask_behind_a_contribution(struct talk *talk, const struct members *members)
{
    const struct talk_part oldest = large(2, 1, 5);

    talk_ask(talk, members->push[1], &oldest);
}

TALK_TEST(without_a_contribution_before_it_the_youngest_gives_way)
{
    const struct members members = begin_full(talk, POOL);
    const struct talk_part before = small(1, 0);

    talk_part(talk, members.push[1], &before);
    talk_expect(talk, "staged 1\n");

    ask_behind_a_contribution(talk, &members);

    talk_expect(talk, "give way 1 (resend 0)\nroom wait 2\n");
}

TALK_TEST(nobody_gives_way_to_one_behind_a_contribution_that_is_staged)
{
    const struct members members = begin_full(talk, POOL);
    const struct talk_part before = contribution(1, ones, 1);

    talk_part(talk, members.push[1], &before);
    talk_expect(talk, "staged 1\n");

    ask_behind_a_contribution(talk, &members);

    talk_expect(talk, "room wait 2\n");
}

TALK_TEST(nobody_gives_way_to_one_behind_a_contribution_that_has_room)
{
    const struct members members = begin_full(talk, 3 * ROOM);
    struct talk_part before = large(1, 0, 0);

    before.step = 1;
    talk_ask(talk, members.push[1], &before);
    talk_expect(talk, "resend 1\n");

    ask_behind_a_contribution(talk, &members);

    talk_expect(talk, "room wait 2\n");
}

TALK_TEST(room_that_becomes_free_is_shared_at_once)
{
    const struct members members = open_three(talk, POOL);
    struct talk_part whole = large(1, 0, 1);

    whole.room = 2 * ROOM;
    talk_ask(talk, members.push[3], &whole); /* given */
    talk_part(talk, members.push[3], &whole);
    ask(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);
    talk_expect(talk, "resend 1\nstaged 1\nroom wait 1\nroom wait 1\n");

    talk_commit(talk, members.push[3], 1, 0, 0); /* when */

    assert_int_equal(talk_times_said(talk, "resend 1\n"), 2); /* then */
}

TALK_TEST(one_that_waits_has_no_room_said_on_a_new_stream)
{
    const struct members members = begin_full(talk, POOL);

    ask(talk, &members, 1, 30);
    talk_expect(talk, "room wait 1\n");

    (void)talk_push_stream(talk, 1, 2);

    assert_int_equal(talk_times_said(talk, "resend"), 0);
}

/* The part between the two asks for room, too. */
TALK_TEST(nobody_gives_way_to_the_second_one_behind_a_contribution)
{
    const struct members members = begin_full(talk, POOL);
    const struct talk_part before = contribution(1, ones, 1), second = large(3, 2, 5);

    talk_part(talk, members.push[1], &before);
    ask_behind_a_contribution(talk, &members);
    talk_expect(talk, "staged 1\nroom wait 2\n");

    talk_ask(talk, members.push[1], &second);

    talk_expect(talk, "room wait 3\n");
}

static enum claim_state state_of(struct talk *talk, const struct lane_session *session)
{
    return lane_claim_find(talk->lane, session, 1)->state;
}

/* Every ps gives room in the same order, whichever session asked first. */
TALK_TEST(of_parts_of_one_age_that_of_the_session_with_the_lower_id_comes_first)
{
    const struct members members = open_three(talk, ROOM);
    const struct lane_session *const first = talk->lane->sessions.first;

    stage(talk, &members, 3, 1);
    ask(talk, &members, 2, 10);
    ask(talk, &members, 1, 10);
    talk_expect(talk, "room wait 1\nroom wait 1\n");

    talk_commit(talk, members.push[3], 1, 0, 0);

    assert_int_equal(state_of(talk, first), CLAIM_RESERVED);
    assert_int_equal(state_of(talk, first->in_lane.next), CLAIM_WAITS);
}

TALK_TEST(one_that_is_to_give_way_hears_of_which_round)
{
    const struct members members = open_three(talk, ROOM);
    struct talk_part younger = large(1, 0, 20);

    younger.resend = 2;
    talk_ask(talk, members.push[2], &younger);
    talk_part(talk, members.push[2], &younger);
    talk_expect(talk, "resend 1\nstaged 1\n");

    ask(talk, &members, 1, 10);

    talk_expect(talk, "give way 1 (resend 2)\nroom wait 1\n");
}

TALK_TEST(one_that_is_withdrawn_while_it_waits_has_no_room_said)
{
    const struct members members = begin_full(talk, POOL);

    ask(talk, &members, 1, 30);
    talk_expect(talk, "room wait 1\n");

    talk_withdraw(talk, members.push[1], 1, 1);

    talk_expect(talk, "");
}

/* Else the first of the others would wait for ever. */
TALK_TEST(one_behind_a_contribution_takes_no_room_while_another_waits)
{
    const struct members members = begin_full(talk, POOL);
    const uint64_t observer = open_observer(talk);
    const struct talk_part before = contribution(1, ones, 1);
    struct talk_part whole = large(1, 0, 30);

    whole.room = 2 * ROOM;
    talk_ask(talk, observer, &whole); /* given: it waits for all of the pool */
    talk_part(talk, members.push[1], &before);
    ask_behind_a_contribution(talk, &members);
    talk_expect(talk, "room wait 1\nstaged 1\nroom wait 2\n");

    talk_commit(talk, members.push[2], 1, 0, 0); /* when half of it is free */

    talk_expect(talk, "done 1 [1]\n"); /* then */
    talk_commit(talk, members.push[3], 1, 0, 0);
    talk_expect(talk, "resend 1\ndone 1 [2]\n");
}

/* The part before it may yet be voided. */
TALK_TEST(a_contribution_behind_a_part_that_is_not_committed_is_not_due)
{
    const struct members members = open_three(talk, 4 * ROOM);
    const uint64_t observer = open_observer(talk);
    const struct talk_part before = large(2, 1, 20), other = large(1, 0, 30);
    struct talk_part behind = large(3, 2, 0);

    talk_ask(talk, members.push[3], &before); /* given */
    talk_part(talk, members.push[3], &before);
    behind.step = 1;
    talk_ask(talk, members.push[3], &behind);
    talk_expect(talk, "resend 2\nstaged 2\nresend 3\n");

    talk_ask(talk, observer, &other); /* when */

    talk_expect(talk, "resend 1\n"); /* then: no room is kept for a step */
}

/* Some of them; the others are counted. */
TALK_TEST(the_statistics_say_eight_of_those_that_wait_for_room)
{
    const struct members members = open_three(talk, ROOM);

    for (uint8_t session = 1; session <= 3; session++)
        for (uint64_t sequence = 1; sequence <= CLAIMS_PER_SESSION_MAX; sequence++) {
            const struct talk_part part = large(sequence, sequence - 1, session);
            talk_ask(talk, members.push[session], &part);
        }
    talk_forget(talk);

    const wire_stats_reply *const reply = talk_stats(talk);

    assert_int_equal(reply->n_waits, 8);
    assert_int_equal(reply->waits_left_out, 3 * CLAIMS_PER_SESSION_MAX - 1 - 8);
}

/* ---- who comes first ---- */

static struct claim *claim_of(struct talk *talk, uint8_t session, uint64_t sequence)
{
    uint8_t id[16];

    const struct lane_session *const of = lane_session_find(talk->lane, talk_id(session, id).data);
    return lane_claim_find(talk->lane, of, sequence);
}

/* Though the later one has asked first. */
TALK_TEST(of_two_parts_of_one_session_and_age_the_first_comes_first)
{
    const struct members members = open_three(talk, ROOM);
    const struct talk_part first = large(1, 0, 10), second = large(2, 1, 10);

    stage(talk, &members, 3, 1); /* given */
    talk_ask(talk, members.push[2], &second);
    talk_ask(talk, members.push[2], &first);

    talk_commit(talk, members.push[3], 1, 0, 0); /* when */

    assert_int_equal(claim_of(talk, 2, 1)->state, CLAIM_RESERVED); /* then */
    assert_int_equal(claim_of(talk, 2, 2)->state, CLAIM_WAITS);
}

/* The same where both are behind a contribution of their session. */
TALK_TEST(of_two_parts_behind_a_contribution_the_first_comes_first)
{
    const struct members members = open_three(talk, ROOM);
    const struct talk_part before = contribution(1, ones, 1);
    const struct talk_part first = large(2, 1, 10), second = large(3, 2, 10);

    stage(talk, &members, 3, 1); /* given */
    talk_part(talk, members.push[2], &before);
    talk_ask(talk, members.push[2], &second);
    talk_ask(talk, members.push[2], &first);

    talk_commit(talk, members.push[3], 1, 0, 0); /* when */

    assert_int_equal(claim_of(talk, 2, 2)->state, CLAIM_RESERVED); /* then */
    assert_int_equal(claim_of(talk, 2, 3)->state, CLAIM_WAITS);
}

/* Parts 2, 3, … of an observer: they are committed, and wait for its push 1. */
static uint64_t fill_with_committed(struct talk *talk, uint64_t count)
{
    const uint64_t observer = open_observer(talk);

    for (uint64_t sequence = 2; sequence < 2 + count; sequence++) {
        const struct talk_part part = large(sequence, sequence - 1, 1);
        talk_ask(talk, observer, &part);
        talk_part(talk, observer, &part);
    }
    talk_commit(talk, observer, 1 + count, 0, 0);
    assert_int_equal(talk_times_said(talk, "staged"), count);
    talk_forget(talk);
    return observer;
}

TALK_TEST(of_contributions_to_a_step_the_chiefs_comes_first_then_the_lower_index)
{
    static const uint8_t order[] = {3, 1, 2};
    struct members members = begin_as(talk, 2, 3, config_of(3 * ROOM)); /* given */
    const struct talk_part before = small(1, 0);
    struct talk_part part = large(1, 0, 10);

    talk->job = "chief";
    talk_open(talk, 3);
    members.push[3] = talk_push_stream(talk, 3, 1);
    talk->aggregation = SUM;
    talk_variable(talk, VARIABLE, 2 * COUNT, UPDATE_ASSIGN_ADD);
    const uint64_t observer = fill_with_committed(talk, 3);
    part.step = 1;
    for (size_t i = 3; i > 0; i--)
        talk_ask(talk, members.push[order[i - 1]], &part);

    talk->holds_compute = true; /* when: one after the other leaves its room */
    talk_part(talk, observer, &before);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(claim_of(talk, order[i], 1)->state, CLAIM_WAITS);
        talk_compute(talk);
        assert_int_equal(claim_of(talk, order[i], 1)->state, CLAIM_RESERVED); /* then */
    }
}

/* The second contribution of session 1 is behind its first one, too. */
TALK_TEST(of_two_behind_contributions_that_of_the_earlier_step_comes_first)
{
    const struct members members = open_three(talk, 6 * ROOM);
    const uint64_t observer = fill_with_committed(talk, 5); /* given: the pool is full */
    const struct talk_part before = contribution(1, ones, 1), first = small(1, 0);
    struct talk_part due = large(1, 0, 10), second = large(2, 1, 10);

    due.step = 1;
    second.step = 2;
    talk_ask(talk, members.push[1], &due);
    talk_part(talk, members.push[1], &due);
    talk_ask(talk, members.push[1], &second);
    talk_part(talk, members.push[2], &before);
    talk_ask(
        talk, members.push[2],
        &(struct talk_part){
            .sequence = 2,
            .previous = 1,
            .shard = VARIABLE,
            .shards = 1,
            .values = ones,
            .count = COUNT,
            .room = ROOM});

    talk->holds_compute = true; /* when: as much becomes free as either asks for */
    talk_part(talk, observer, &first);
    talk_compute(talk);

    /* then: what is kept for steps leaves none of it to session 2, which is the first */
    assert_int_equal(claim_of(talk, 1, 2)->state, CLAIM_WAITS);
    talk_compute(talk);
    assert_int_equal(claim_of(talk, 2, 2)->state, CLAIM_RESERVED);
    assert_int_equal(claim_of(talk, 1, 2)->state, CLAIM_RESERVED);
}

/* ---- who gives way ---- */

TALK_TEST(of_two_that_may_give_way_the_younger_one_is_asked)
{
    static const uint64_t ages[][2] = {{10, 20}, {20, 10}}; /* of session 1, of session 2 */
    static const char *const said[] = {
        "give way 2 (resend 0)\nroom wait 1\n", "give way 1 (resend 0)\nroom wait 1\n"};

    for (size_t i = 0; i < 2; i++) {
        void *other = talk;
        if (i > 0)
            assert_int_equal(talk_setup(&other), 0);
        struct talk *const here = other;
        const struct members members = open_three(here, POOL); /* given */
        const struct talk_part second = large(2, 1, ages[i][1]);
        stage(here, &members, 1, ages[i][0]);
        talk_ask(here, members.push[2], &second);
        talk_part(here, members.push[2], &second);
        talk_forget(here);

        ask(here, &members, 3, 5); /* when */

        talk_expect(here, said[i]); /* then */
        if (i > 0)
            assert_int_equal(talk_teardown(&other), 0);
    }
}

TALK_TEST(a_part_that_gave_way_is_asked_again_when_it_is_back)
{
    const struct members members = open_three(talk, ROOM);
    struct talk_part older = large(1, 0, 10), younger = large(1, 0, 20);

    stage(talk, &members, 2, 20); /* given */
    ask(talk, &members, 3, 10);
    talk_withdraw(talk, members.push[2], 1, 1);
    older.eager = true;
    talk_part(talk, members.push[3], &older);
    younger.resend = 1;
    talk_part(talk, members.push[2], &younger);
    assert_int_equal(talk_times_said(talk, "staged 1\n"), 2);
    talk_forget(talk);

    ask(talk, &members, 1, 5); /* when */

    talk_expect(talk, "give way 1 (resend 1)\nroom wait 1\n"); /* then */
}

/* Its client may have heard nothing of it, and still takes the part back in its next header. */
TALK_TEST(a_header_of_a_later_round_takes_back_what_is_staged)
{
    struct members members = open_three(talk, ROOM);
    struct talk_part part = large(1, 0, 20);

    stage(talk, &members, 1, 20); /* given: an older one waits for the room */
    ask(talk, &members, 2, 10);
    talk_hang_up(talk, members.push[1]);
    members.push[1] = talk_push_stream(talk, 1, 2);
    talk_forget(talk);

    part.resend = 1;
    talk_ask(talk, members.push[1], &part); /* when */

    assert_int_equal(claim_of(talk, 1, 1)->state, CLAIM_WAITS); /* then */
    assert_int_equal(claim_of(talk, 2, 1)->state, CLAIM_RESERVED);
}

TALK_TEST(a_message_may_take_back_several_parts)
{
    const struct members members = open_three(talk, POOL);
    const struct talk_part second = large(2, 1, 20);
    wire_withdraw withdraws[] = {WIRE_WITHDRAW_INIT, WIRE_WITHDRAW_INIT};
    wire_withdraw *both[] = {&withdraws[0], &withdraws[1]};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    stage(talk, &members, 1, 10); /* given */
    talk_ask(talk, members.push[1], &second);
    talk_part(talk, members.push[1], &second);
    talk_forget(talk);
    for (uint32_t i = 0; i < 2; i++) {
        withdraws[i].sequence = 1 + i;
        withdraws[i].resend = 1;
    }
    request.withdraws = both;
    request.n_withdraws = 2;

    talk_push(talk, members.push[1], &request, NULL, 0); /* when */

    talk_expect(talk, "resend 1\nresend 2\n"); /* then */
}

/* Five staged parts give way, and the pool then has room for all five again. The limit counts parts
 * that ask for room; each of these five has asked before. */
TALK_TEST(more_parts_than_may_ask_at_a_time_come_again_after_they_gave_way)
{
    enum { GAVE_WAY = CLAIMS_PER_SESSION_MAX + 1 };
    const struct members members = open_three(talk, GAVE_WAY * ROOM);
    struct talk_part whole = large(1, 0, 10);

    for (uint64_t sequence = 1; sequence <= GAVE_WAY; sequence++) { /* given */
        const struct talk_part part = large(sequence, sequence - 1, 20);
        talk_ask(talk, members.push[2], &part);
        talk_part(talk, members.push[2], &part);
    }
    whole.room = GAVE_WAY * ROOM;
    talk_ask(talk, members.push[1], &whole);
    for (uint64_t sequence = GAVE_WAY; sequence > 0; sequence--)
        talk_withdraw(talk, members.push[2], sequence, 1);
    talk_part(talk, members.push[1], &whole);
    talk_commit(talk, members.push[1], 1, 0, 0);
    assert_int_equal(talk->lane->claims.bytes, GAVE_WAY * ROOM);
    talk_forget(talk);

    for (uint64_t sequence = 1; sequence <= GAVE_WAY; sequence++) { /* when */
        struct talk_part part = large(sequence, sequence - 1, 20);
        part.resend = 1;
        talk_part(talk, members.push[2], &part);
    }

    talk_expect(talk, "staged 1\nstaged 2\nstaged 3\nstaged 4\nstaged 5\n"); /* then */
}

/* It carries its own commit, which no commit_through says. */
TALK_TEST(an_eager_part_that_is_being_applied_does_not_give_way)
{
    const struct members members = open_three(talk, ROOM);
    struct talk_part eager = large(1, 0, 20);

    talk->holds_compute = true; /* given */
    eager.eager = true;
    talk_ask(talk, members.push[2], &eager);
    talk_part(talk, members.push[2], &eager);
    talk_forget(talk);

    ask(talk, &members, 1, 10); /* when */
    talk_withdraw(talk, members.push[2], 1, 1);

    talk_expect(talk, "room wait 1\n"); /* then */
    talk_compute(talk);
    talk_expect(talk, "done 1 [1]\nresend 1\n");
}

/* Its step needs it, though another session's comes first in the line. */
TALK_TEST(a_contribution_that_is_due_does_not_give_way_to_another)
{
    const struct members members = open_three(talk, 3 * ROOM);
    struct talk_part part = large(1, 0, 10);

    (void)fill_with_committed(talk, 2); /* given */
    part.step = 1;
    talk_ask(talk, members.push[2], &part);
    talk_part(talk, members.push[2], &part);
    talk_expect(talk, "resend 1\nstaged 1\n");

    talk_ask(talk, members.push[1], &part); /* when */

    talk_expect(talk, "room wait 1\n"); /* then */
}

/* ---- beside steps ---- */

TALK_TEST(one_behind_a_contribution_takes_no_room_while_a_contribution_waits)
{
    const struct members members = open_three(talk, 6 * ROOM);
    struct talk_part first = large(1, 0, 10), second = large(2, 1, 10);

    (void)fill_with_committed(talk, 4); /* given: room for two more, and not for three */
    first.step = 1;
    talk_ask(talk, members.push[1], &first);
    talk_part(talk, members.push[1], &first);
    first.room = 2 * ROOM;
    talk_ask(talk, members.push[2], &first);
    talk_expect(talk, "resend 1\nstaged 1\nroom wait 1\n");

    second.step = 2; /* when */
    talk_ask(talk, members.push[1], &second);

    talk_expect(talk, "room wait 2\n"); /* then */
}

/* It waits for the end of the step anyway. */
TALK_TEST(one_behind_a_contribution_is_not_refused_beside_steps)
{
    const struct members members = open_three(talk, 3 * ROOM);
    struct talk_part part = large(1, 0, 10), behind = large(2, 1, 5);

    part.step = 1; /* given */
    talk_ask(talk, members.push[1], &part);
    talk_expect(talk, "resend 1\n");

    behind.room = 2 * ROOM; /* when */
    talk_ask(talk, members.push[1], &behind);

    talk_expect(talk, "room wait 2\n"); /* then */
}

/* One has joined since the contribution asked. */
TALK_TEST(where_a_steps_contributions_take_more_than_the_pool_others_get_none_of_it)
{
    const struct members members = begin_as(talk, 2, 2, config_of(2 * ROOM));
    struct talk_part part = large(1, 0, 10), ordinary = large(1, 0, 1);

    talk->aggregation = SUM; /* given */
    talk_variable(talk, VARIABLE, 2 * COUNT, UPDATE_ASSIGN_ADD);
    part.step = 1;
    talk_ask(talk, members.push[1], &part);
    talk_open(talk, 3);
    talk_first_step(talk, 3, 2);
    const uint64_t observer = open_observer(talk);

    talk_ask(talk, observer, &ordinary); /* when */

    talk_expect(talk, "refused 1 PART_TOO_LARGE\n"); /* then */
    assert_string_equal(talk->expected, "0");
}

TALK_TEST(one_whose_stream_is_gone_is_refused_beside_steps_when_it_is_back)
{
    const struct members members = open_three(talk, 3 * ROOM);
    const uint64_t observer = open_observer(talk);
    struct talk_part part = large(1, 0, 10), ordinary = large(1, 0, 20);

    stage(talk, &members, 1, 1); /* given: it waits, for all of the pool */
    ordinary.room = 3 * ROOM;
    talk_ask(talk, observer, &ordinary);
    talk_hang_up(talk, observer);
    part.step = 1;
    talk_ask(talk, members.push[2], &part);
    talk_forget(talk);
    assert_non_null(claim_of(talk, OBSERVER, 1));

    (void)talk_push_stream(talk, OBSERVER, 2); /* when */

    talk_expect(talk, "greeting\nrefused 1 PART_TOO_LARGE\n"); /* then */
}

TALK_TEST(a_large_part_that_was_passed_over_is_done_when_it_asks_again)
{
    const struct members members = open_three(talk, ROOM);
    const struct talk_part part = large(1, 0, 10);

    stage(talk, &members, 1, 10);
    talk_commit(talk, members.push[1], 1, 1, 0); /* given: voided */
    const uint64_t again = talk_push_stream(talk, 1, 2);
    talk_forget(talk);

    talk_ask(talk, again, &part); /* when */

    talk_expect(talk, "done 1 voided\n"); /* then: its elements are not asked for */
}
