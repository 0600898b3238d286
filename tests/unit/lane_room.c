/* SPDX-License-Identifier: Apache-2.0 */
/* lane_room.c -- large parts share a pool: they ask, wait in their order, and give way. */
#include <stdio.h>

#include "lane_pool.h"

/* ---- a part asks */

TALK_TEST(a_large_part_is_taken_when_its_room_is_kept)
{
    const struct members members = open_three(talk, POOL);
    const struct talk_part part = large(1, 0, 10);

    talk_ask(talk, members.push[1], &part); /* when */
    talk_expect(talk, "resend 1\n");
    assert_int_equal(talk->lane->claims.bytes, ROOM); /* all of it, before its elements come */
    talk_part(talk, members.push[1], &part);
    talk_expect(talk, "staged 1\n");
    talk_commit(talk, members.push[1], 1, 0, 0);

    talk_expect(talk, "done 1 [1]\n"); /* then */
    assert_int_equal(talk->lane->claims.bytes, 0);
    assert_int_equal(talk->lane->staged_bytes, 0);
}

TALK_TEST(elements_that_were_not_asked_for_are_passed_over)
{
    const struct members members = open_three(talk, POOL);
    struct talk_part part = large(1, 0, 10);

    talk_ask(talk, members.push[1], &part);
    talk_withdraw(talk, members.push[1], 1, 1);
    talk_part(talk, members.push[1], &part); /* in the round before */
    talk_expect(talk, "resend 1\nresend 1\n");
    assert_int_equal(talk->lane->staged_bytes, ROOM);
    part.resend = 1;
    talk_part(talk, members.push[1], &part);

    talk_expect(talk, "staged 1\n");
    assert_int_equal(talk->staged_resend, 1);
}

TALK_TEST(elements_that_wait_for_room_are_passed_over)
{
    const struct members members = open_three(talk, POOL);
    const struct talk_part waits = large(1, 0, 30);

    stage(talk, &members, 1, 10);
    stage(talk, &members, 2, 20);
    ask(talk, &members, 3, 30);
    talk_expect(talk, "room wait 1\n");

    talk_part(talk, members.push[3], &waits); /* when */

    talk_expect(talk, ""); /* then */
    talk_commit(talk, members.push[1], 1, 0, 0);
    talk_expect(talk, "resend 1\ndone 1 [1]\n");
    talk_part(talk, members.push[3], &waits);
    talk_expect(talk, "staged 1\n");
}

TALK_TEST(elements_of_a_part_that_never_asked_end_the_stream)
{
    const struct members members = open_three(talk, POOL);
    const struct talk_part part = large(1, 0, 10);

    talk_part(talk, members.push[1], &part); /* when */

    talk_expect(talk, "end of stream MALFORMED\n"); /* then */
    assert_non_null(strstr(
        talk->closed.text,
        "push 1 of session worker 1 takes 1891 bytes on ps 1, and its elements came before it had "
        "asked for room: above 1700 bytes send its header alone"));
    assert_int_equal(talk->lane->staged_bytes, 0);
}

TALK_TEST(a_part_that_takes_more_than_it_asked_for_is_refused)
{
    const struct members members = open_three(talk, POOL);
    struct talk_part part = large(1, 0, 10);

    part.room = ROOM - 330; /* its answers are in it, which it does not take here */
    part.count = COUNT;
    part.room = part.room > FLOOR ? part.room : FLOOR + 1;
    part.count = 2 * COUNT;
    talk_ask(talk, members.push[1], &part);

    talk_expect(talk, "refused 1 MALFORMED\n");
    assert_non_null(strstr(talk->refused, "asked for 1701 bytes of staging on ps 1"));
    assert_int_equal(talk->lane->claims.bytes, 0);
}

TALK_TEST(a_part_above_the_pool_is_refused_with_both_figures)
{
    const struct members members = open_three(talk, POOL);
    struct talk_part part = large(1, 0, 10);

    part.room = POOL + 1;
    talk_ask(talk, members.push[1], &part);

    talk_expect(talk, "refused 1 PART_TOO_LARGE\n");
    assert_non_null(strstr(talk->refused, "takes 4001 bytes of staging on ps 1"));
    assert_non_null(strstr(talk->refused, "share 4000"));
    assert_string_equal(talk->expected, "4000");
    assert_string_equal(talk->given, "4001");
}

/* What the floors leave over by their division is the pool's. */
TALK_TEST(the_pool_has_what_the_floors_leave)
{
    struct lane_config config = config_of(POOL);
    const uint64_t over = config.sessions_max - 1;

    config.staging_bytes_max += over;
    const struct members members = begin_as(talk, 1, 0, config);
    talk_variable(talk, VARIABLE, 2 * COUNT, UPDATE_ASSIGN_ADD);
    struct talk_part part = large(1, 0, 10);
    talk_forget(talk);

    part.room = POOL + over + 1;
    talk_ask(talk, members.push[1], &part);
    talk_expect(talk, "refused 1 PART_TOO_LARGE\n");
    part = large(2, 1, 10);
    part.room = POOL + over;
    talk_ask(talk, members.push[1], &part);

    talk_expect(talk, "resend 2\n");
}

/* A part of exactly the floor asks for nothing. */
TALK_TEST(a_part_of_a_whole_floor_is_not_large)
{
    const struct members members = open_three(talk, POOL);
    struct talk_part part = small(1, 0);

    part.room = FLOOR;
    talk_part(talk, members.push[1], &part);
    talk_expect(talk, "staged 1\n");
    part = small(2, 1);
    part.room = FLOOR + 1;
    talk_part(talk, members.push[1], &part);

    talk_expect(talk, "end of stream MALFORMED\n"); /* it has to ask */
}

/* Others have claims of their own. */
TALK_TEST(of_several_each_may_ask_for_as_many)
{
    const struct members members = open_three(talk, POOL);

    for (uint8_t session = 1; session <= 2; session++) {
        struct talk_part part = large(1, 0, 10);
        for (uint32_t i = 0; i < CLAIMS_PER_SESSION_MAX; i++) {
            talk_ask(talk, members.push[session], &part);
            part.previous = part.sequence++;
        }
    }

    assert_null(strstr(talk->text, "end of stream"));
}

TALK_TEST(whoever_asks_for_too_many_at_a_time_has_its_stream_ended)
{
    const struct members members = open_three(talk, POOL);
    const struct talk_part before = small(1, 0);
    struct talk_part part = large(2, 1, 10);

    talk_part(talk, members.push[1], &before);
    for (uint32_t i = 0; i < CLAIMS_PER_SESSION_MAX; i++) {
        talk_ask(talk, members.push[1], &part);
        talk_ask(talk, members.push[1], &part); /* once more is not one more */
        part.previous = part.sequence++;
    }
    assert_null(strstr(talk->text, "end of stream"));
    talk_forget(talk);

    talk_ask(talk, members.push[1], &part);

    talk_expect(talk, "end of stream TOO_MANY_IN_FLIGHT\n");
    assert_non_null(strstr(talk->closed.text, "has 4 parts on ps 1 that wait for their room"));
}

/* ---- it waits */

TALK_TEST(a_part_within_its_floor_does_not_wait_behind_large_ones)
{
    const struct members members = open_three(talk, POOL);
    const struct talk_part second = small(2, 1);

    stage(talk, &members, 1, 10);
    stage(talk, &members, 2, 20);
    ask(talk, &members, 3, 30);
    talk_expect(talk, "room wait 1\n");

    talk_part(talk, members.push[3], &second);

    talk_expect(talk, "staged 2\n");
}

TALK_TEST(the_oldest_gets_the_room_that_becomes_free)
{
    const struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 10);
    ask(talk, &members, 3, 30);
    ask(talk, &members, 2, 20);
    talk_expect(talk, "room wait 1\nroom wait 1\n");

    talk_commit(talk, members.push[1], 1, 0, 0);

    talk_expect(talk, "done 1 [1]\nresend 1\n");
    assert_int_equal(
        lane_claim_find(talk->lane, talk->lane->sessions.first->in_lane.next, 1)->state,
        CLAIM_RESERVED);
}

TALK_TEST(a_wait_names_who_holds_the_room)
{
    const struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);

    const struct claim *const waits = talk->lane->claims.all.last;
    const char *const text = lane_claims_describe(talk->lane, waits);
    assert_non_null(strstr(text, "by push 1 of worker 1 (0 MiB), which is to be committed"));
}

TALK_TEST(the_statistics_say_who_waits_for_room)
{
    const struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);
    talk_forget(talk);

    const wire_stats_reply *const reply = talk_stats(talk);

    assert_int_equal(reply->n_waits, 1);
    assert_non_null(strstr(reply->waits[0], "worker 2: push 1 waits for 0 MiB of the pool"));
}

TALK_TEST(a_session_that_ends_gives_its_room_to_who_waits)
{
    const struct members members = open_three(talk, ROOM);

    ask(talk, &members, 1, 10); /* its elements never come */
    ask(talk, &members, 2, 20);
    talk_expect(talk, "resend 1\nroom wait 1\n");

    talk_close(talk, 1);

    assert_true(talk_times_said(talk, "resend 1\n") == 1);
}

/* As one that is closed before: of a session that is decided nothing is waited for. */
TALK_TEST(a_session_that_is_decided_gives_its_room_to_who_waits)
{
    const struct members members = open_three(talk, ROOM);

    ask(talk, &members, 1, 10); /* its elements never come */
    ask(talk, &members, 2, 20);
    ask(talk, &members, 3, 30);
    talk_expect(talk, "resend 1\nroom wait 1\nroom wait 1\n");

    talk_decide(talk, 3, 0, 0);
    talk_decide(talk, 1, 0, 0);

    assert_int_equal(talk_times_said(talk, "resend 1\n"), 1);
    assert_int_equal(talk->lane->claims.waiting, 0);
}

TALK_TEST(on_a_new_stream_the_room_that_is_kept_is_said_again)
{
    struct members members = open_three(talk, POOL);

    ask(talk, &members, 1, 10);
    talk_expect(talk, "resend 1\n");

    (void)talk_push_stream(talk, 1, 2);

    assert_true(talk_times_said(talk, "resend 1\n") == 1);
    assert_int_equal(talk->lane->claims.bytes, ROOM);
}

/* ---- it gives way */

TALK_TEST(the_youngest_that_is_not_committed_gives_way_to_an_older_one)
{
    const struct members members = open_three(talk, POOL);
    struct talk_part part = large(1, 0, 20);

    stage(talk, &members, 1, 10);
    stage(talk, &members, 2, 20);
    ask(talk, &members, 3, 5);
    talk_expect(talk, "give way 1 (resend 0)\nroom wait 1\n");
    assert_int_equal(talk->lane->claims.bytes, 2 * ROOM); /* it is asked first */
    talk_withdraw(talk, members.push[2], 1, 1);
    talk_expect(talk, "resend 1\nroom wait 1\n");
    talk_part(
        talk, members.push[3],
        &(struct talk_part){
            .sequence = 1,
            .shard = VARIABLE,
            .shards = 1,
            .values = ones,
            .count = COUNT,
            .room = ROOM,
            .started = 5});
    talk_expect(talk, "staged 1\n");

    talk_commit(talk, members.push[3], 1, 0, 0);

    talk_expect(talk, "resend 1\ndone 1 [1]\n");
    part.resend = 1;
    talk_part(talk, members.push[2], &part);
    talk_commit(talk, members.push[2], 1, 0, 0);
    talk_expect(talk, "staged 1\ndone 1 [2]\n");
}

TALK_TEST(the_largest_part_is_named_where_one_waits_for_room)
{
    const struct members members = open_three(talk, POOL);
    struct talk_part larger = large(1, 0, 20);

    larger.room = POOL - ROOM;
    ask(talk, &members, 1, 10);
    talk_ask(talk, members.push[2], &larger);
    ask(talk, &members, 3, 30);

    const wire_stats_reply *stats = talk_stats(talk);

    assert_int_equal(stats->n_waits, 1);
    assert_non_null(strstr(stats->waits[0], "most of them by push 1 of worker 2"));
    assert_non_null(strstr(stats->waits[0], ", which is being received"));
}

TALK_TEST(what_is_committed_is_not_asked_to_give_way)
{
    const struct members members = open_three(talk, ROOM);
    const struct talk_part second = large(2, 1, 20); /* its push 1 never comes here */

    talk_ask(talk, members.push[2], &second);
    talk_part(talk, members.push[2], &second);
    talk_commit(talk, members.push[2], 2, 0, 0);
    talk_expect(talk, "resend 2\nstaged 2\n");

    ask(talk, &members, 1, 10);

    talk_expect(talk, "room wait 1\n");
    talk_withdraw(talk, members.push[2], 2, 1); /* nor may it */
    talk_expect(talk, "");
    assert_int_equal(talk->lane->claims.bytes, ROOM);
}

/* ---- steps */

static struct talk_part large_contribution(uint64_t step)
{
    struct talk_part part = large(step, step - 1, step);

    part.step = step;
    return part;
}

TALK_TEST(a_contribution_is_refused_when_those_of_all_members_do_not_fit)
{
    const struct members members = open_three(talk, POOL);
    const struct talk_part part = large_contribution(1);

    talk_ask(talk, members.push[1], &part);

    talk_expect(talk, "refused 1 PART_TOO_LARGE\n");
    assert_non_null(strstr(talk->refused, "a contribution of 1891 bytes"));
    assert_non_null(strstr(talk->refused, "those of all 3 members a step takes 5673 of the 4000"));
    assert_string_equal(talk->expected, "1333");
    assert_string_equal(talk->given, "1891");
}

/* As it asks for that room; false: it is refused. */
static bool is_taken(struct talk *talk, uint64_t stream, uint64_t room)
{
    struct talk_part part = large_contribution(1);

    part.room = room;
    talk_forget(talk);
    talk_ask(talk, stream, &part);
    return strstr(talk->text, "refused 1 PART_TOO_LARGE") == NULL;
}

TALK_TEST(contributions_of_all_members_may_fill_the_pool)
{
    const struct members members = open_three(talk, 3 * ROOM + 2);

    assert_false(is_taken(talk, members.push[1], ROOM + 1));

    assert_true(is_taken(talk, members.push[2], ROOM));
}

/* Room is kept for it from the start. */
TALK_TEST(who_is_yet_to_join_is_one_of_the_members)
{
    const struct members members = begin_as(talk, 2, 3, config_of(3 * ROOM));

    talk->aggregation = SUM;
    talk_variable(talk, VARIABLE, 2 * COUNT, UPDATE_ASSIGN_ADD);
    assert_false(is_taken(talk, members.push[1], ROOM + 1));

    assert_true(is_taken(talk, members.push[2], ROOM));
}

/* Its contribution waits for those of the others, with its room. */
TALK_TEST(a_closed_session_that_waits_is_one_of_the_members)
{
    const struct members members = open_three(talk, 3 * ROOM);
    const struct talk_part part = large_contribution(1);

    talk_ask(talk, members.push[1], &part);
    talk_part(talk, members.push[1], &part);
    talk_commit(talk, members.push[1], 1, 0, 0);
    talk_close(talk, 1);
    talk_decide(talk, 1, 1, 0);
    assert_false(is_taken(talk, members.push[2], ROOM + 1));

    assert_true(is_taken(talk, members.push[3], ROOM));
}

/* Each fits beside what is kept for the step, and the two together do not. */
TALK_TEST(ordinary_parts_share_what_steps_leave)
{
    static const struct {
        uint64_t left;
        bool staged; /* else the first is being received */
        const char *said;
    } cases[] = {
        {2 * ROOM - 1, true, "room wait 2\n"},
        {2 * ROOM - 1, false, "room wait 2\n"},
        {2 * ROOM, true, "resend 2\n"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *other = talk;
        if (i > 0)
            assert_int_equal(talk_setup(&other), 0);
        struct talk *const here = other;
        const struct members members = open_three(here, 3 * ROOM + cases[i].left); /* given */
        const uint64_t observer = open_observer(here);
        const struct talk_part part = large_contribution(1);
        const struct talk_part first = large(1, 0, 1), second = large(2, 1, 2);
        talk_ask(here, members.push[1], &part);
        talk_ask(here, observer, &first);
        if (cases[i].staged)
            talk_part(here, observer, &first);
        talk_forget(here);

        talk_ask(here, observer, &second); /* when */

        talk_expect(here, cases[i].said); /* then */
        if (i > 0)
            assert_int_equal(talk_teardown(&other), 0);
    }
}

TALK_TEST(ordinary_parts_leave_room_for_a_step)
{
    const struct members members = open_three(talk, 3 * ROOM + 1000);
    const uint64_t observer = open_observer(talk);
    const struct talk_part part = large_contribution(1), ordinary = large(1, 0, 1);

    talk_ask(talk, members.push[1], &part);
    talk_expect(talk, "resend 1\n");

    talk_ask(talk, observer, &ordinary);

    talk_expect(talk, "refused 1 PART_TOO_LARGE\n");
    assert_non_null(strstr(talk->refused, "keeps 5673 for the contributions of members"));
    assert_non_null(strstr(talk->refused, "has 1000 for others"));
    assert_string_equal(talk->expected, "1000");
    assert_string_equal(talk->given, "1891");
    assert_non_null(strstr(talk->refused, "push again between two steps"));
}

/* The step needs its session, whose contribution comes after the part. */
TALK_TEST(a_members_ordinary_part_takes_the_room_of_its_own_contribution)
{
    const struct members members = open_three(talk, 3 * ROOM + 1000);
    const struct talk_part part = large_contribution(1), ordinary = large(1, 0, 1);
    struct talk_part next = large_contribution(1);

    for (uint8_t member = 1; member <= 2; member++) { /* given: all but one have contributed */
        talk_ask(talk, members.push[member], &part);
        talk_part(talk, members.push[member], &part);
    }
    talk_expect(talk, "resend 1\nstaged 1\nresend 1\nstaged 1\n");

    talk_ask(talk, members.push[3], &ordinary); /* when */

    talk_expect(talk, "resend 1\n"); /* then */
    talk_part(talk, members.push[3], &ordinary);
    talk_commit(talk, members.push[3], 1, 0, 0);
    talk_expect(talk, "staged 1\ndone 1 [1]\n");
    next.sequence = 2;
    next.previous = 1;
    talk_ask(talk, members.push[3], &next);
    talk_expect(talk, "resend 2\n");
}

TALK_TEST(a_members_ordinary_part_that_others_contributions_leave_no_room_is_refused)
{
    const struct members members = open_three(talk, 3 * ROOM);
    const struct talk_part part = large_contribution(1);
    struct talk_part ordinary = large(1, 0, 1);

    talk_ask(talk, members.push[1], &part);
    talk_expect(talk, "resend 1\n");

    ordinary.room = ROOM + 1;
    talk_ask(talk, members.push[3], &ordinary);

    talk_expect(talk, "refused 1 PART_TOO_LARGE\n");
    assert_non_null(strstr(talk->refused, "keeps 3782 for the contributions of members"));
}

TALK_TEST(a_part_that_is_refused_beside_steps_has_its_turn)
{
    const struct members members = open_three(talk, 3 * ROOM);
    const struct talk_part contribution = large_contribution(1);
    struct talk_part small = {
        .sequence = 1, .eager = true, .shard = VARIABLE, .shards = 1, .values = ones, .count = 1};
    struct talk_part ordinary = large(2, 1, 1);

    talk_part(talk, members.push[3], &small); /* given */
    talk_ask(talk, members.push[1], &contribution);
    talk_expect(talk, "staged 1\ndone 1 [1]\nresend 1\n");
    ordinary.room = ROOM + 1;
    talk_ask(talk, members.push[3], &ordinary);
    talk_expect(talk, "refused 2 PART_TOO_LARGE\n");

    talk_commit(talk, members.push[3], 2, 2, 0); /* when */
    small.sequence = 3;
    small.previous = 2;
    talk_part(talk, members.push[3], &small);

    talk_expect(talk, "done 2 voided\nstaged 3\ndone 3 [2]\n"); /* then */
}

TALK_TEST(a_contribution_behind_a_part_that_is_committed_is_due)
{
    const struct members members = open_three(talk, 3 * ROOM);
    const uint64_t observer = open_observer(talk);
    const struct talk_part before = large(2, 1, 20); /* its push 1 never comes here */
    const struct talk_part other = large(1, 0, 30);
    struct talk_part contribution = large_contribution(1);

    talk_ask(talk, members.push[3], &before); /* given */
    talk_part(talk, members.push[3], &before);
    talk_commit(talk, members.push[3], 2, 0, 0);
    contribution.sequence = 3;
    contribution.previous = 2;
    talk_ask(talk, members.push[3], &contribution);
    talk_expect(talk, "resend 2\nstaged 2\nresend 3\n");

    talk_ask(talk, observer, &other); /* when */

    talk_expect(talk, "refused 1 PART_TOO_LARGE\n"); /* then */
}

TALK_TEST(an_ordinary_part_gives_way_to_a_contribution_however_old_it_is)
{
    const struct members members = open_three(talk, 3 * ROOM);
    const uint64_t observer = open_observer(talk);
    const struct talk_part part = large_contribution(1), ordinary = large(1, 0, 0);

    talk_ask(talk, observer, &ordinary);
    talk_part(talk, observer, &ordinary);
    for (uint8_t member = 1; member <= 2; member++) {
        talk_ask(talk, members.push[member], &part);
        talk_part(talk, members.push[member], &part);
    }
    talk_expect(talk, "resend 1\nstaged 1\nresend 1\nstaged 1\nresend 1\nstaged 1\n");

    talk_ask(talk, members.push[3], &part);

    talk_expect(talk, "give way 1 (resend 0)\nroom wait 1\n");
}

TALK_TEST(contributions_to_a_later_step_give_way_to_those_of_the_open_one)
{
    const struct members members = open_three(talk, 3 * ROOM);
    const struct talk_part first = large_contribution(1), second = large_contribution(2);

    talk_ask(talk, members.push[1], &first);
    talk_part(talk, members.push[1], &first);
    talk_commit(talk, members.push[1], 1, 0, 0); /* it waits for those of the others */
    talk_ask(talk, members.push[1], &second);
    talk_part(talk, members.push[1], &second);
    talk_ask(talk, members.push[2], &first);
    talk_part(talk, members.push[2], &first);
    talk_expect(talk, "resend 1\nstaged 1\nresend 2\nstaged 2\nresend 1\nstaged 1\n");

    talk_ask(talk, members.push[3], &first);

    talk_expect(talk, "give way 2 (resend 0)\nroom wait 1\n");
}

/* ---- a client that contradicts itself */

/* Push 1 waits for room, push 3 asks after it. */
TALK_TEST(a_part_that_contradicts_one_that_asks_ends_the_stream)
{
    struct talk_part again = large_contribution(1);

    again.sequence = 3;
    again.previous = 1;
    const struct {
        const char *why;
        struct talk_part part;
        const char *says;
    } parts[] = {
        {"it asked for room, and has none", small(3, 1), NULL},
        {"its number is not that of the asking part's predecessor", small(2, 1),
         "follows an earlier one than this: 3;"},
        {"it passes over the asking part", small(4, 1), "asks for room: 3;"},
        {"it asks again after another part", large(3, 2, 10), "it followed another: 1;"},
        {"it asks again as a contribution", again, NULL},
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        void *other = talk;
        if (i > 0)
            assert_int_equal(talk_setup(&other), 0);
        struct talk *const here = other;
        const struct members members = open_three(here, 3 * ROOM); /* given */
        const struct talk_part first = small(1, 0), second = large(3, 1, 10);
        talk_part(here, members.push[1], &first);
        talk_ask(here, members.push[1], &second);
        talk_forget(here);

        if (parts[i].part.room != 0) /* when */
            talk_ask(here, members.push[1], &parts[i].part);
        else
            talk_part(here, members.push[1], &parts[i].part);

        if (strcmp(here->text, "end of stream MALFORMED\n") != 0) /* then */
            fail_msg("%s: %s", parts[i].why, here->text);
        if (parts[i].says != NULL && strstr(here->closed.text, parts[i].says) == NULL)
            fail_msg("%s: %s", parts[i].why, here->closed.text);
        if (i > 0)
            assert_int_equal(talk_teardown(&other), 0);
    }
}

TALK_TEST(the_room_of_a_contribution_that_is_refused_when_it_comes_again_is_free)
{
    const struct members members = open_three(talk, 3 * ROOM);
    struct talk_part part = large_contribution(1);

    talk_ask(talk, members.push[1], &part);
    talk_expect(talk, "resend 1\n");
    assert_int_equal(talk->lane->claims.bytes, ROOM);

    part.weight = 1e-30;
    talk_part(talk, members.push[1], &part);

    talk_expect(talk, "refused 1 MALFORMED\n");
    assert_int_equal(talk->lane->claims.bytes, 0);
}

/* Each that asks may be refused, and then has a place among the parts. */
TALK_TEST(parts_that_ask_count_among_those_that_a_session_may_have)
{
    struct lane_config config = config_of(3 * ROOM + 1000);

    config.parts_per_session_max = 3;
    const struct members members = begin_as(talk, 3, 3, config); /* given */
    talk->aggregation = SUM;
    talk_variable(talk, VARIABLE, 2 * COUNT, UPDATE_ASSIGN_ADD);
    const uint64_t observer = open_observer(talk);
    struct talk_part asks = large(1, 0, 1);
    asks.room = 3 * ROOM + 1000;
    const struct talk_part others[] = {small(2, 1), small(3, 2), small(4, 3)};
    stage(talk, &members, 2, 10); /* the room that it asks for is taken */
    talk_ask(talk, observer, &asks);
    talk_part(talk, observer, &others[0]);
    talk_part(talk, observer, &others[1]);
    talk_forget(talk);

    talk_part(talk, observer, &others[2]); /* when */

    talk_expect(talk, "end of stream TOO_MANY_IN_FLIGHT\n"); /* then */
    assert_non_null(strstr(talk->closed.text, "has 3 parts on ps 1 that are not done"));
}

/* The first that asked has more than the second. */
TALK_TEST(the_largest_part_is_named_though_it_came_first)
{
    const struct members members = open_three(talk, POOL);
    struct talk_part larger = large(1, 0, 10);

    larger.room = POOL - ROOM;
    talk_ask(talk, members.push[1], &larger);
    ask(talk, &members, 2, 20);
    ask(talk, &members, 3, 30);

    const wire_stats_reply *stats = talk_stats(talk);

    assert_int_equal(stats->n_waits, 1);
    assert_non_null(strstr(stats->waits[0], "most of them by push 1 of worker 1"));
}
