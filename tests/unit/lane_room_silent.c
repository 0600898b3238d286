/* SPDX-License-Identifier: Apache-2.0 */
/* lane_room_silent.c -- a client keeps room in the pool, and does not do what it is asked to. */
#include <stdio.h>

#include "lane_pool.h"

/* Half a lease at a time, so that it is no sleep of the ps, and with the ticks between. */
static void pass_half_leases(struct talk *talk, uint32_t count)
{
    for (uint32_t i = 0; i < 4 * count; i++)
        talk_tick(talk, talk_config().lease_ms / 8);
}

TALK_TEST(elements_that_do_not_come_end_the_stream_and_are_reported)
{
    const struct members members = open_three(talk, ROOM);

    ask(talk, &members, 1, 10); /* given */
    ask(talk, &members, 2, 20);
    talk_forget(talk);

    pass_half_leases(talk, 3); /* when */
    assert_true(talk_has_ended(talk, members.push[1]));
    assert_int_equal(talk->closed.reason, SUMAC_REASON_BUSY);
    assert_non_null(
        strstr(talk->closed.text, "asked session worker 1 for all of push 1, and too little came"));
    assert_int_equal(talk_times_said(talk, "stalled"), 0);
    assert_true(talk_times_said(talk, "waiting 2\n") > 0);
    pass_half_leases(talk, 2);

    assert_true(talk_times_said(talk, "stalled 1 waiting 2\n") > 0); /* then */
    assert_int_equal(talk_times_said(talk, "end of stream"), 1);
}

TALK_TEST(what_another_client_sends_is_no_answer)
{
    const struct members members = open_three(talk, POOL);
    const struct talk_part part = large(1, 0, 20);

    ask(talk, &members, 1, 10); /* given */
    ask(talk, &members, 2, 20);
    pass_half_leases(talk, 1);

    talk_part(talk, members.push[2], &part); /* when */
    pass_half_leases(talk, 2);

    assert_true(talk_has_ended(talk, members.push[1])); /* then */
    assert_false(talk_has_ended(talk, members.push[2]));
}

TALK_TEST(a_ps_that_slept_ends_no_stream)
{
    const struct members members = open_three(talk, ROOM);

    ask(talk, &members, 1, 10);

    talk_tick(talk, 3 * talk_config().lease_ms);

    assert_false(talk_has_ended(talk, members.push[1]));
}

/* It has answered on another stream in between. */
TALK_TEST(who_is_silent_again_loses_its_stream_again)
{
    const struct members members = open_three(talk, ROOM);
    const struct talk_part part = large(1, 0, 20);

    ask(talk, &members, 1, 20); /* given */
    pass_half_leases(talk, 3);
    assert_true(talk_has_ended(talk, members.push[1]));
    const uint64_t next = talk_push_stream(talk, 1, 2);
    talk_part(talk, next, &part);

    ask(talk, &members, 2, 10); /* when its room is wanted */
    pass_half_leases(talk, 3);

    assert_true(talk_has_ended(talk, next)); /* then */
}

TALK_TEST(a_staged_part_that_does_not_give_way_is_reported)
{
    const struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 20); /* given */
    ask(talk, &members, 2, 10);
    talk_forget(talk);

    pass_half_leases(talk, 3); /* when */
    assert_true(talk_has_ended(talk, members.push[1]));
    assert_non_null(
        strstr(talk->closed.text, "asked session worker 1 to withdraw push 1, and no answer came"));
    assert_int_equal(talk_times_said(talk, "stalled"), 0);
    pass_half_leases(talk, 2);

    assert_true(talk_times_said(talk, "stalled 1 waiting 2\n") > 0); /* then */
}

/* The commit was under way when the part was asked to give way. Its push 1 never comes. */
TALK_TEST(a_staged_part_that_is_committed_need_not_give_way)
{
    const struct members members = open_three(talk, ROOM);
    const struct talk_part second = large(2, 1, 20);

    talk_ask(talk, members.push[1], &second); /* given */
    talk_part(talk, members.push[1], &second);
    ask(talk, &members, 2, 10);
    assert_int_equal(talk_times_said(talk, "give way 2"), 1);
    for (uint32_t i = 0; i < 7; i++)
        talk_tick(talk, talk_config().lease_ms / 8);

    talk_commit(talk, members.push[1], 2, 0, 0); /* when */
    for (uint32_t i = 0; i < 2; i++)
        talk_tick(talk, talk_config().lease_ms / 8);

    assert_false(talk_has_ended(talk, members.push[1])); /* then */
}

/* The one that wanted its room first has left long ago. */
TALK_TEST(a_staged_part_has_a_lease_each_time_that_its_room_is_wanted)
{
    const struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 20); /* given */
    ask(talk, &members, 2, 10);
    pass_half_leases(talk, 1);
    talk_close(talk, 2);
    talk_decide(talk, 2, 0, 0);
    pass_half_leases(talk, 3);

    ask(talk, &members, 3, 5); /* when */
    talk_tick(talk, talk_config().lease_ms / 8);

    assert_false(talk_has_ended(talk, members.push[1])); /* then */
    pass_half_leases(talk, 3);
    assert_true(talk_has_ended(talk, members.push[1]));
}

/* It waits for its other parts, and only younger ones want its room. */
TALK_TEST(an_older_staged_part_is_not_reported)
{
    const struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);
    talk_forget(talk);

    pass_half_leases(talk, 6);

    assert_int_equal(talk_times_said(talk, "stalled"), 0);
    assert_int_equal(talk_times_said(talk, "end of stream"), 0);
}

TALK_TEST(whoever_answers_on_a_new_stream_goes_on)
{
    struct members members = open_three(talk, ROOM);
    const struct talk_part part = large(1, 0, 10);

    ask(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);
    pass_half_leases(talk, 3);
    talk_forget(talk);

    members.push[1] = talk_push_stream(talk, 1, 2); /* when */
    assert_int_equal(talk_times_said(talk, "resend 1\n"), 1);
    talk_tick(talk, talk_config().lease_ms / 8);
    assert_false(talk_has_ended(talk, members.push[1])); /* there is time for the answer */
    talk_part(talk, members.push[1], &part);
    talk_forget(talk);
    pass_half_leases(talk, 6);

    assert_int_equal(talk_times_said(talk, "stalled"), 0); /* then */
}

TALK_TEST(a_contribution_whose_elements_do_not_come_is_reported)
{
    const struct members members = open_three(talk, 3 * ROOM);
    struct talk_part part = large(1, 0, 10);

    part.step = 1; /* given */
    talk_ask(talk, members.push[1], &part);
    talk_forget(talk);

    pass_half_leases(talk, 6); /* when */

    assert_true(talk_times_said(talk, "stalled 1\n") > 0); /* then */
    assert_int_equal(talk_times_said(talk, "end of stream"), 1);
}

#define MANY 1100000u /* elements of a part that takes longer than a lease to send */
#define SMALL_COUNT                                                                                \
    132000u /* elements of a part that is progress by itself, and no more than a floor */

static float many[MANY];

/* A pool that `count` parts of MANY fill; *part is such a part. */
static struct members open_many(struct talk *talk, uint32_t count, struct talk_part *part)
{
    struct lane_config config = talk_config();

    config.block_bytes = 1u << 16;
    config.pool_bytes_max = count * wire_part_cost(sizeof many, 1, 0);
    config.staging_bytes_max =
        config.sessions_max * (wire_part_cost(SMALL_COUNT * sizeof(float), 1, 0) + 1000) +
        config.pool_bytes_max;
    const struct members members = begin_as(talk, 3, 3, config);
    talk->aggregation = SUM;
    talk_variable(talk, VARIABLE, MANY, UPDATE_ASSIGN_ADD);
    for (int i = 0; i < 400; i++) /* its memory is made step by step */
        talk_tick(talk, 5);
    *part = large(1000, 999, 10);
    part->values = many;
    part->count = MANY;
    part->room = config.pool_bytes_max / count;
    talk_forget(talk);
    return members;
}

/* The same of one part, which session 1 has room for and session 2 waits for. */
static struct members open_slow(struct talk *talk, struct talk_part *part)
{
    const struct members members = open_many(talk, 1, part);

    talk_ask(talk, members.push[1], part);
    part->started = 20;
    talk_ask(talk, members.push[2], part);
    assert_int_equal(talk_times_said(talk, "resend 1000\n"), 1);
    talk_forget(talk);
    return members;
}

TALK_TEST(a_large_part_may_take_longer_than_a_lease_to_send)
{
    struct talk_part part;
    struct members members = open_slow(talk, &part); /* given */
    const uint32_t step = MANY / 20;

    for (uint32_t stream = 2; stream < 4; stream++) { /* when: the first stream breaks */
        for (uint32_t at = 0; at < 19 * step; at += step) {
            talk_part_step(talk, members.push[1], &part, at, step);
            talk_tick(talk, talk_config().lease_ms / 4);
        }
        assert_false(talk_has_ended(talk, members.push[1])); /* then */
        members.push[1] = talk_push_stream(talk, 1, stream);
    }

    assert_int_equal(talk_times_said(talk, "stalled"), 0);
}

/* More than 256 KiB in each lease, for two and a half leases. */
static void send_slowly(struct talk *talk, uint64_t stream, const struct talk_part *part)
{
    const uint32_t step = MANY / 20;

    for (uint32_t at = 0; at < MANY; at += step) {
        talk_part_step(talk, stream, part, at, step);
        talk_tick(talk, talk_config().lease_ms / 8);
        assert_false(talk_has_ended(talk, stream));
    }
}

TALK_TEST(the_second_of_two_large_parts_comes_when_the_first_is_whole)
{
    struct talk_part one;
    const struct members members = open_many(talk, 2, &one); /* given */

    one.sequence = 1;
    one.previous = 0;
    struct talk_part two = one;
    two.sequence = 2;
    two.previous = 1;
    talk_ask(talk, members.push[1], &one);
    talk_ask(talk, members.push[1], &two);
    talk_ask(talk, members.push[2], &one);
    assert_int_equal(talk_times_said(talk, "resend 2\n"), 1);

    send_slowly(talk, members.push[1], &one); /* when */
    send_slowly(talk, members.push[1], &two);

    assert_int_equal(talk_times_said(talk, "staged 2\n"), 1); /* then */
    assert_int_equal(talk_times_said(talk, "stalled"), 0);
}

/* Part 1 gives way and has its room again while part 2 is on its way. */
TALK_TEST(a_part_that_gave_way_may_come_behind_the_next_one)
{
    struct talk_part one;
    const struct members members = open_many(talk, 2, &one); /* given */

    one.sequence = 1;
    one.previous = 0;
    one.started = 20;
    struct talk_part two = one, older = one;
    two.sequence = 2;
    two.previous = 1;
    two.started = 30;
    older.started = 10;
    older.eager = true;
    talk_ask(talk, members.push[1], &one);
    talk_part(talk, members.push[1], &one);
    talk_ask(talk, members.push[1], &two);
    talk_ask(talk, members.push[2], &older);
    talk_withdraw(talk, members.push[1], 1, 1);
    talk_part(talk, members.push[2], &older);
    for (uint32_t tick = 0; tick < 20; tick++)
        talk_tick(talk, 5);
    assert_int_equal(talk_times_said(talk, "resend 1\n"), 3); /* two of session 1 */

    send_slowly(talk, members.push[1], &two); /* when, then */
}

TALK_TEST(a_large_part_comes_slowly_behind_more_small_ones_than_a_floor)
{
    struct talk_part part;
    const struct members members = open_slow(talk, &part);

    for (uint64_t n = 1; n < 4; n++) { /* given */
        struct talk_part before = small(n, n - 1);
        before.values = many;
        before.count = SMALL_COUNT;
        before.eager = true;
        talk_part(talk, members.push[1], &before);
    }

    send_slowly(talk, members.push[1], &part); /* when, then */
}

TALK_TEST(other_large_parts_are_no_answer_without_end)
{
    struct talk_part part;
    const struct members members = open_many(talk, 2, &part); /* given */
    bool has_ended = false;
    uint64_t n = 1;

    talk_ask(talk, members.push[1], &part);

    for (; n < 26 && !has_ended; n++) { /* when */
        struct talk_part other = part;
        other.sequence = n;
        other.previous = n - 1;
        other.eager = true;
        talk_ask(talk, members.push[1], &other);
        talk_part(talk, members.push[1], &other);
        if (n <= 16)
            talk_tick(talk, talk_config().lease_ms / 16);
        else
            pass_half_leases(talk, 1);
        has_ended = talk_has_ended(talk, members.push[1]);
    }

    assert_true(has_ended && n > 16); /* then */
    assert_int_equal(talk->closed.reason, SUMAC_REASON_BUSY);
}

/* It sends parts that ask later for as long as that counts. */
TALK_TEST(after_other_large_parts_the_elements_of_a_part_are_an_answer)
{
    struct talk_part part;
    const struct members members = open_many(talk, 2, &part); /* given */

    talk_ask(talk, members.push[1], &part);
    for (uint64_t n = 1; n <= 17; n++) {
        struct talk_part other = part;
        other.sequence = n;
        other.previous = n - 1;
        other.eager = true;
        talk_ask(talk, members.push[1], &other);
        talk_part(talk, members.push[1], &other);
        talk_tick(talk, talk_config().lease_ms / 16);
    }
    assert_false(talk_has_ended(talk, members.push[1]));

    send_slowly(talk, members.push[1], &part); /* when */

    assert_int_equal(talk_times_said(talk, "staged 1000\n"), 1); /* then */
}

TALK_TEST(small_parts_are_no_answer_without_end)
{
    struct talk_part part;
    const struct members members = open_slow(talk, &part); /* given */
    bool has_ended = false;

    for (uint64_t n = 1; n < 12 && !has_ended; n++) { /* when */
        struct talk_part before = small(n, n - 1);
        before.values = many;
        before.count = SMALL_COUNT;
        before.eager = true;
        talk_part(talk, members.push[1], &before);
        pass_half_leases(talk, 1);
        has_ended = talk_has_ended(talk, members.push[1]);
    }

    assert_true(has_ended); /* then */
    assert_int_equal(talk->closed.reason, SUMAC_REASON_BUSY);
}

/* An element for each eighth of a lease is too little. */
TALK_TEST(elements_that_trickle_end_the_stream)
{
    struct talk_part part;
    const struct members members = open_slow(talk, &part); /* given */

    for (uint32_t at = 0; at < 24 && !talk_has_ended(talk, members.push[1]); at++) { /* when */
        talk_part_step(talk, members.push[1], &part, at, 1);
        talk_tick(talk, talk_config().lease_ms / 8);
    }

    assert_true(talk_has_ended(talk, members.push[1])); /* then */
    assert_int_equal(talk->closed.reason, SUMAC_REASON_BUSY);
}

/* The client has lost the answer, and its stream is there. */
TALK_TEST(who_asks_again_for_room_that_is_kept_is_told_again)
{
    const struct members members = open_three(talk, ROOM);
    struct talk_part part = large(1, 0, 10);

    part.resend = 2;
    talk_ask(talk, members.push[1], &part);
    talk_expect(talk, "resend 1\n");
    part.resend = 1; /* as it was before */
    talk_ask(talk, members.push[1], &part);

    talk_expect(talk, "resend 1\n");
    assert_int_equal(lane_claim_find(talk->lane, talk->lane->sessions.first, 1)->resend, 2);
}

TALK_TEST(who_asks_again_for_room_that_it_waits_for_is_told_again)
{
    const struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 10);
    ask(talk, &members, 2, 20);
    talk_expect(talk, "room wait 1\n");

    ask(talk, &members, 2, 20);

    talk_expect(talk, "room wait 1\n");
}

/* What was asked of a client, and what it waits for, is said on the stream that takes the place. */
TALK_TEST(on_a_new_stream_all_about_room_is_said_again)
{
    struct members members = open_three(talk, ROOM);

    stage(talk, &members, 1, 20); /* given */
    ask(talk, &members, 2, 10);
    assert_int_equal(talk_times_said(talk, "give way 1"), 1);
    assert_int_equal(talk_times_said(talk, "room wait 1"), 1);
    talk_forget(talk);

    talk_hang_up(talk, members.push[1]); /* when */
    talk_hang_up(talk, members.push[2]);
    (void)talk_push_stream(talk, 1, 2);
    assert_int_equal(talk_times_said(talk, "give way 1"), 1); /* then */
    (void)talk_push_stream(talk, 2, 2);
    assert_int_equal(talk_times_said(talk, "room wait 1"), 1);
}

TALK_TEST(nothing_is_said_there_of_what_another_client_has_asked_for)
{
    const struct members members = open_three(talk, POOL);

    ask(talk, &members, 1, 10); /* given: its room is kept */
    talk_hang_up(talk, members.push[2]);
    talk_forget(talk);

    (void)talk_push_stream(talk, 2, 2);

    assert_int_equal(talk_times_said(talk, "resend"), 0);
}

/* It is an ordinary part, whatever step it names. */
TALK_TEST(a_part_that_is_not_synchronous_asks_again_with_a_step)
{
    const struct members members = open_three(talk, POOL);
    wire_part header = WIRE_PART_INIT;

    header.sequence = header.step = 1;
    header.bytes = COUNT * sizeof(float);
    header.room_bytes = ROOM;
    header.first = header.last = true;
    talk_push_part(talk, members.push[1], &header, NULL, 0);
    talk_expect(talk, "resend 1\n");

    talk_push_part(talk, members.push[1], &header, NULL, 0);

    talk_expect(talk, "resend 1\n");
}

/* Its header alone names no shards, and the answer says the versions of those that are named. */
TALK_TEST(a_large_part_that_is_done_is_to_come_again_whole)
{
    struct members members = open_three(talk, POOL);
    const struct talk_part part = large(1, 0, 10);

    talk_ask(talk, members.push[1], &part);
    talk_part(talk, members.push[1], &part);
    talk_commit(talk, members.push[1], 1, 0, 0);
    members.push[1] = talk_push_stream(talk, 1, 2); /* given: the answer was lost */
    talk_forget(talk);

    talk_ask(talk, members.push[1], &part);
    talk_expect(talk, "resend 1\n");
    talk_part(talk, members.push[1], &part);

    talk_expect(talk, "done 1 [1]\n");
}

/* A ps that starts again knows which request for room the part is the answer to. */
TALK_TEST(the_round_of_a_staged_part_is_in_its_record)
{
    const struct members members = open_three(talk, ROOM);
    struct talk_part part = large(1, 0, 10);

    part.resend = 2;
    talk_ask(talk, members.push[1], &part);
    talk_part(talk, members.push[1], &part);
    struct lane *const again = talk_replayed(talk); /* when */

    assert_int_equal(lane_claim_find(again, again->sessions.first, 1)->resend, 2); /* then */
    lane_destroy(again);
}
