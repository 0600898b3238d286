/* SPDX-License-Identifier: Apache-2.0 */
/* session_room.c -- parts above the floor: they ask one after the other, come when they are wanted,
 * and give way. */
#include <stdio.h>

#include "session_talk.h"

#define LARGE_BYTES 4096u /* takes 5824 */
#define FLOOR_BYTES 4000u
#define POOL_BYTES 20000u

static uint8_t data[LARGE_BYTES];

static void greet_with_pool_and(struct talk *talk, uint32_t ps, wire_limits *limits)
{
    wire_greeting greeting = WIRE_GREETING_INIT;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    greeting.epoch = 1;
    greeting.ps_incarnation = 100 + ps;
    greeting.cluster_id = 42;
    greeting.staging_grant_bytes = FLOOR_BYTES;
    greeting.part_bytes_max = POOL_BYTES;
    greeting.limits = limits;
    answer.greeting = &greeting;
    talk_answer(talk, ps, &answer);
}

static void greet_with_pool(struct talk *talk, uint32_t ps) { greet_with_pool_and(talk, ps, NULL); }

static void open_with(struct talk *talk, const struct session_config *config)
{
    talk_config(talk, config);
    talk_start(talk);
    talk_joined(talk, 2);
    for (uint32_t ps = 0; ps < 2; ps++) {
        talk_hello(talk, ps);
        greet_with_pool(talk, ps);
    }
}

static struct talk *open_two(struct talk *talk)
{
    const struct session_config config = talk_member(2);

    open_with(talk, &config);
    return talk;
}

/* LARGE_BYTES to ps 0, and, if `wide`, 8 bytes to ps 1. */
static void push_large(struct talk *talk, uint64_t token, bool wide)
{
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, LARGE_BYTES), talk_piece(1, 11, data, 8)};

    talk_push(talk, token, pieces, wide ? 2 : 1);
}

static void assert_asks(const wire_push_request *request, uint64_t sequence)
{
    assert_non_null(request);
    assert_int_equal(request->n_parts, 1);
    assert_int_equal(request->parts[0]->sequence, sequence);
    assert_true(request->parts[0]->first && request->parts[0]->last);
    assert_int_equal(request->parts[0]->n_pieces, 0);
    assert_int_equal(request->parts[0]->bytes, LARGE_BYTES);
    assert_int_equal(request->parts[0]->room_bytes, 5824);
}

static void assert_elements(const wire_push_request *request, uint64_t sequence, uint32_t round)
{
    assert_non_null(request);
    assert_int_equal(request->n_parts, 1);
    assert_int_equal(request->parts[0]->sequence, sequence);
    assert_int_equal(request->parts[0]->resend, round);
    assert_int_equal(request->parts[0]->n_pieces, 1);
    assert_int_equal(request->parts[0]->pieces[0]->bytes, LARGE_BYTES);
}

TALK_TEST(a_part_above_the_floor_asks_and_comes_when_it_is_wanted)
{
    open_two(talk);
    struct said said;

    push_large(talk, 1, false); /* when */
    assert_asks(talk_request(talk, 0), 1);
    talk_writable(talk, 0);
    assert_null(talk_request(talk, 0)); /* no elements yet */
    talk_answer(talk, 0, say_resend(&said, 1));
    assert_elements(talk_request(talk, 0), 1, 0); /* then */
    talk_writable(talk, 0);
    talk_answer(talk, 0, say_resend(&said, 1)); /* said twice, it comes once */
    assert_null(talk_request(talk, 0));
}

TALK_TEST(small_parts_go_beside_one_that_waits_for_room)
{
    open_two(talk);

    push_large(talk, 1, false);
    talk_writable(talk, 0);

    talk_push_to(talk, 2, 1);

    assert_int_equal(talk_request(talk, 0)->parts[0]->sequence, 2);
    assert_int_equal(talk_request(talk, 0)->parts[0]->room_bytes, 0);
    assert_int_equal(talk_request(talk, 0)->parts[0]->n_pieces, 1);
}

TALK_TEST(large_parts_ask_one_after_the_other)
{
    open_two(talk);
    struct said said;

    push_large(talk, 1, false);
    talk_writable(talk, 0);
    push_large(talk, 2, false);
    assert_null(talk_request(talk, 0));

    talk_answer(talk, 0, say_resend(&said, 1));

    const wire_push_request *request = talk_request(talk, 0);
    assert_int_equal(request->n_parts, 2);
    assert_int_equal(request->parts[0]->n_pieces, 1);
    assert_int_equal(request->parts[1]->sequence, 2);
    assert_int_equal(request->parts[1]->n_pieces, 0);
}

TALK_TEST(a_large_part_comes_when_it_is_wanted_before_what_went_out_earlier_is_done)
{
    open_two(talk);
    struct said said;

    talk_push_out(talk, 1, 1);
    push_large(talk, 2, false);
    talk_writable(talk, 0);

    talk_answer(talk, 0, say_resend(&said, 2));

    assert_elements(talk_request(talk, 0), 2, 0);
}

/* The ps had it from a stream that broke before it said so. */
TALK_TEST(a_large_part_that_the_ps_has_already_lets_the_next_one_ask)
{
    open_two(talk);
    struct said said;

    push_large(talk, 1, true);
    push_large(talk, 2, false);
    talk_writable(talk, 0);
    assert_null(talk_request(talk, 0));

    talk_answer(talk, 0, say_staged(&said, 1, 0));

    assert_asks(talk_request(talk, 0), 2);
}

TALK_TEST(a_part_that_counts_already_asks_again_on_the_next_stream)
{
    wire_limits limits = WIRE_LIMITS_INIT;

    limits.parts_in_flight_max = 1;
    (void)open_two(talk);
    push_large(talk, 1, false);
    talk_broke(talk, 0, SESSION_PUSH_STREAM);
    talk_hello(talk, 0);

    greet_with_pool_and(talk, 0, &limits);

    assert_asks(talk_request(talk, 0), 1);
}

/* The ps refuses the part before it, after some of its chunks. */
TALK_TEST(a_large_part_comes_from_its_first_element_behind_one_that_was_cut_short)
{
    struct said said;
    struct session_config config = talk_member(2);
    const struct session_piece piece = talk_piece(0, 12, data, 640);

    config.chunk_bytes = 64;
    open_with(talk, &config);
    push_large(talk, 1, false);
    talk_push(talk, 2, &piece, 1);
    talk_writable(talk, 0);
    assert_int_equal(talk_request(talk, 0)->parts[0]->sequence, 2);
    talk_answer(talk, 0, say_resend(&said, 1));
    talk_answer(talk, 0, say_refused(&said, 2, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_NON_FINITE));

    talk_writable(talk, 0);

    const wire_push_request *request = talk_request(talk, 0);
    assert_int_equal(request->n_parts, 2); /* the end of push 2, and push 1 */
    assert_true(request->parts[1]->first);
    assert_int_equal(request->parts[1]->pieces[0]->offset_bytes, 0);
}

TALK_TEST(a_part_that_is_not_staged_does_not_give_way)
{
    open_two(talk);
    struct said said;

    push_large(talk, 1, false);
    talk_writable(talk, 0);

    talk_answer(talk, 0, say_give_way(&said, 1, 0));

    assert_null(talk_request(talk, 0));
    talk_answer(talk, 0, say_resend(&said, 1));
    assert_elements(talk_request(talk, 0), 1, 0);
}

TALK_TEST(a_part_above_what_a_part_may_take_says_how_much_that_is)
{
    static uint8_t more[POOL_BYTES];
    const struct session_piece piece = talk_piece(0, 10, more, sizeof more);

    (void)open_two(talk);

    talk_push(talk, 1, &piece, 1);

    assert_non_null(strstr(
        talk_find(talk, SESSION_EFFECT_PUSHED)->error.text, "where a part may take 20000 ("));
}

/* Pushes 1 to both ps: staged on ps 0, and not on ps 1. */
static struct talk *open_staged(struct talk *talk)
{
    struct said said;

    (void)open_two(talk);
    push_large(talk, 1, true);
    talk_writable(talk, 0);
    talk_writable(talk, 1);
    talk_answer(talk, 0, say_resend(&said, 1));
    talk_writable(talk, 0);
    talk_answer(talk, 0, say_staged(&said, 1, 0));
    talk_writable(talk, 0);
    return talk;
}

TALK_TEST(a_staged_part_gives_way_and_comes_again)
{
    open_staged(talk);
    struct said said;

    talk_answer(talk, 0, say_give_way(&said, 1, 0)); /* when */

    const wire_push_request *request = talk_request(talk, 0); /* then */
    assert_non_null(request);
    assert_int_equal(request->n_withdraws, 1);
    assert_int_equal(request->withdraws[0]->sequence, 1);
    assert_int_equal(request->withdraws[0]->resend, 1);
    talk_writable(talk, 0);
    talk_staged(talk, 1, 1); /* on the other ps */
    assert_int_equal(talk_state(talk).commit_through, 0);
    talk_answer(talk, 0, say_staged(&said, 1, 0)); /* of the round before */
    assert_int_equal(talk_state(talk).commit_through, 0);
    talk_answer(talk, 0, say_resend(&said, 1));
    assert_elements(talk_request(talk, 0), 1, 1);
    talk_writable(talk, 0);
    talk_answer(talk, 0, say_staged(&said, 1, 1));
    assert_int_equal(talk_state(talk).commit_through, 1);
}

/* Push 2 is staged on ps 0 and refused on ps 1, and is not committed, as push 1 is not. */
TALK_TEST(a_staged_part_of_a_refused_push_gives_way)
{
    open_two(talk); /* given */
    struct said said;

    talk_push_out(talk, 1, 2);
    push_large(talk, 2, true);
    talk_writable(talk, 0);
    talk_writable(talk, 1);
    talk_answer(talk, 0, say_resend(&said, 2));
    talk_writable(talk, 0);
    talk_staged(talk, 0, 2);
    talk_refused(talk, 1, 2);
    talk_writable(talk, 0);
    talk_writable(talk, 1);
    assert_int_equal(talk_state(talk).commit_through, 0);

    talk_answer(talk, 0, say_give_way(&said, 2, 0)); /* when */

    const wire_push_request *request = talk_request(talk, 0); /* then */
    assert_non_null(request);
    assert_int_equal(request->n_withdraws, 1);
    assert_int_equal(request->withdraws[0]->sequence, 2);
}

TALK_TEST(what_is_committed_is_not_withdrawn)
{
    open_staged(talk);
    struct said said;

    talk_staged(talk, 1, 1);
    talk_writable(talk, 0); /* the commit is out */
    assert_int_equal(talk_state(talk).commit_through, 1);

    talk_answer(talk, 0, say_give_way(&said, 1, 0));

    assert_null(talk_request(talk, 0));
}

TALK_TEST(a_withdraw_that_was_lost_is_said_again_on_the_next_stream)
{
    open_staged(talk);
    struct said said;

    talk_answer(talk, 0, say_give_way(&said, 1, 0));
    talk_lost(talk, 0, SESSION_PUSH_STREAM); /* when */
    talk_tick_after(talk, 5000);
    talk_hello(talk, 0);
    greet_with_pool(talk, 0);

    const wire_push_request *request = talk_request(talk, 0); /* then */
    assert_non_null(request);
    assert_int_equal(request->n_withdraws, 1);
    assert_int_equal(request->withdraws[0]->resend, 1);
    assert_asks(request, 1);
    assert_int_equal(request->parts[0]->resend, 1);
}

TALK_TEST(a_wait_for_room_says_who_holds_it)
{
    open_two(talk);
    struct said said;
    wire_room_wait wait = WIRE_ROOM_WAIT_INIT, *list[] = {&wait};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    push_large(talk, 1, false);
    assert_null(session_find_room_wait(talk->session, 1));
    wait.sequence = 1;
    wait.message = (char *)(uintptr_t) "push 1 waits for worker 7";
    answer.room_waits = list;
    answer.n_room_waits = 1;

    talk_answer(talk, 0, &answer);

    assert_string_equal(session_find_room_wait(talk->session, 1), "push 1 waits for worker 7");
    assert_null(session_find_room_wait(talk->session, 2));
    talk_answer(talk, 0, say_resend(&said, 1));
    assert_null(session_find_room_wait(talk->session, 1));
}

/* The next stream asks for room anew, and the elements go out once more. */
TALK_TEST(a_part_whose_stream_broke_is_sent_again)
{
    open_two(talk);
    struct said said;

    push_large(talk, 1, false);
    talk_writable(talk, 0);
    talk_answer(talk, 0, say_resend(&said, 1));
    assert_elements(talk_request(talk, 0), 1, 0);
    talk_writable(talk, 0);

    talk_lost(talk, 0, SESSION_PUSH_STREAM); /* when */
    talk_tick_after(talk, 5000);
    talk_hello(talk, 0);
    greet_with_pool(talk, 0);

    assert_asks(talk_request(talk, 0), 1); /* then */
    talk_writable(talk, 0);
    talk_answer(talk, 0, say_resend(&said, 1));
    assert_elements(talk_request(talk, 0), 1, 0);
}

TALK_TEST(a_wait_for_room_ends_with_its_stream)
{
    open_two(talk);
    wire_room_wait wait = WIRE_ROOM_WAIT_INIT, *list[] = {&wait};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    push_large(talk, 1, false);
    wait.sequence = 1;
    wait.message = (char *)(uintptr_t) "push 1 waits for worker 7";
    answer.room_waits = list;
    answer.n_room_waits = 1;
    talk_answer(talk, 0, &answer);
    assert_non_null(session_find_room_wait(talk->session, 1));

    talk_lost(talk, 0, SESSION_PUSH_STREAM);
    talk_tick_after(talk, 5000);
    talk_hello(talk, 0);
    greet_with_pool(talk, 0);

    assert_null(session_find_room_wait(talk->session, 1));
}

/* The part goes out in chunks. The ps says RESEND again after the first chunk. */
TALK_TEST(a_part_that_is_on_its_way_is_not_begun_again)
{
    struct said said;
    struct session_config config = talk_member(2);
    const wire_push_request *request = NULL;

    config.chunk_bytes = 1024; /* given */
    open_with(talk, &config);
    push_large(talk, 1, false);
    talk_writable(talk, 0);
    talk_answer(talk, 0, say_resend(&said, 1));
    request = talk_request(talk, 0);
    assert_non_null(request);
    assert_true(request->parts[0]->first && !request->parts[0]->last);
    uint64_t bytes = request->parts[0]->pieces[0]->bytes;

    talk_answer(talk, 0, say_resend(&said, 1)); /* when */

    talk_writable(talk, 0);
    while ((request = talk_request(talk, 0)) != NULL) { /* then */
        assert_int_equal(request->n_parts, 1);
        assert_false(request->parts[0]->first);
        bytes += request->parts[0]->pieces[0]->bytes;
        talk_writable(talk, 0);
    }
    assert_int_equal(bytes, LARGE_BYTES);
}

/* The ps voided the part before the withdrawal went out. */
TALK_TEST(the_withdrawal_of_a_part_that_is_over_is_not_sent)
{
    open_staged(talk);
    struct said said;

    push_large(talk, 2, false); /* it asks for room: the stream takes no more for now */
    assert_asks(talk_request(talk, 0), 2);
    talk_answer(talk, 0, say_give_way(&said, 1, 0));

    talk_done_with(talk, 0, 1, 0, true); /* when */
    talk_writable(talk, 0);

    assert_null(talk_request(talk, 0)); /* then */
}

/* Staged once more, of round 1, when its stream breaks. */
TALK_TEST(a_part_that_gave_way_and_came_again_is_not_withdrawn_again)
{
    open_two(talk);
    struct said said;

    push_large(talk, 1, true);
    for (uint32_t round = 0; round < 2; round++) {
        talk_writable(talk, 0);
        talk_answer(talk, 0, say_resend(&said, 1));
        talk_writable(talk, 0);
        talk_answer(talk, 0, say_staged(&said, 1, round));
        if (round == 0)
            talk_answer(talk, 0, say_give_way(&said, 1, 0));
    }
    talk_answer(talk, 0, say_give_way(&said, 1, 0)); /* it did */
    assert_null(talk_request(talk, 0));

    talk_broke(talk, 0, SESSION_PUSH_STREAM);
    talk_hello(talk, 0);
    greet_with_pool(talk, 0);

    const wire_push_request *request = talk_request(talk, 0);
    assert_int_equal(request->n_withdraws, 0);
    assert_int_equal(request->parts[0]->resend, 1);
}

/* Only parts above the floor are asked for. */
TALK_TEST(a_small_part_that_is_wanted_is_not_sent_again)
{
    open_two(talk);
    struct said said;

    talk_push_out(talk, 1, 2);

    talk_answer(talk, 1, say_resend(&said, 1));

    assert_null(talk_request(talk, 1));
}

/* A part of a push may take more than the floor, a contribution may not. */
TALK_TEST(a_contribution_above_the_floor_is_refused_with_the_floor)
{
    wire_collective header = WIRE_COLLECTIVE_INIT;
    const struct session_piece piece = {.data = data, .bytes = LARGE_BYTES};
    const struct session_push push = {
        .token = 5, .pieces = &piece, .piece_count = 1, .weight = 1, .collective = &header};

    (void)open_two(talk);

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});

    const struct sumac_error *error = &talk_find(talk, SESSION_EFFECT_PUSHED)->error;
    assert_int_equal(error->reason, SUMAC_REASON_PART_TOO_LARGE);
    assert_non_null(strstr(error->text, "a contribution to a collective may take 4000"));
}
