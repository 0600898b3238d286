/* SPDX-License-Identifier: Apache-2.0 */
/* lane_collective_beside.c -- what a round of a collective came to, asked for and answered on the
 * push stream, beside the contribution. */
#include <stdio.h>

#include "lane_collective.h"

TALK_TEST(one_message_each_way_when_it_is_the_last_to_come)
{
    struct world world;

    begin(&world, talk);
    world.asks_beside = true;
    come_with(&world, 2, 1, 2, 3, 4);
    talk_expect(world.talk, ""); /* that it is done is said with what its round comes to */

    come_with(&world, 1, 10, 20, 30, 40);

    talk_expect(
        world.talk, "staged 1\ndone 1 []\nbeside met 1 float32 [4] 11 22 33 44\n"
                    "staged 1\ndone 1 []\nbeside met 2 float32 [4] 11 22 33 44\n");
    acknowledge(&world, 1);
    acknowledge(&world, 2);
    expect_nothing_kept(&world);
}

TALK_TEST(an_answer_beside_says_of_which_state_it_is)
{
    struct world world;

    begin(&world, talk);
    talk_variable(world.talk, 10, 1, UPDATE_ASSIGN_ADD);
    talk_part(
        world.talk, world.push[3],
        &(struct talk_part){
            .sequence = 1,
            .eager = true,
            .shard = 10,
            .shards = 1,
            .values = (float[]){1},
            .count = 1});
    world.asks_beside = true;
    come_with(&world, 2, 1, 2, 3, 4);

    come_with(&world, 1, 10, 20, 30, 40);

    assert_int_equal(talk_times_said(world.talk, "beside met"), 2);
    assert_true(world.talk->pulled_position > 0);
    assert_int_equal(world.talk->pulled_position, world.talk->lane->store.position);
    world.talk->pulled_position = 0;
    ask(&world, 1); /* as does one on a pull stream */
    assert_int_equal(world.talk->pulled_position, world.talk->lane->store.position);
}

/* Its client may need the room that the contribution has taken. */
TALK_TEST(that_it_is_done_does_not_wait_long)
{
    struct world world;

    begin(&world, talk);
    world.asks_beside = true;
    come_with(&world, 1, 1, 2, 3, 4);
    talk_tick(world.talk, 19);
    talk_expect(world.talk, "");

    talk_tick(world.talk, 1);

    talk_expect(world.talk, "staged 1\ndone 1 []\n");
}

/* The look at pulls whose time is over comes before the answer is late. */
TALK_TEST(nor_does_it_when_another_pull_runs_out_of_time)
{
    struct world world;
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    wire_collective_round other = WIRE_COLLECTIVE_ROUND_INIT;

    begin(&world, talk);
    other.name = world.collective.name;
    other.round = 9;
    pull.request = 3;
    pull.collective = &other;
    pull.timeout_ms = 10;
    talk_step(
        world.talk, &(struct lane_event){
                        .kind = LANE_EVENT_PULL, .stream = world.pull[3], .pull_request = &pull});
    world.asks_beside = true;
    come_with(&world, 1, 1, 2, 3, 4);
    talk_tick(world.talk, 10);
    talk_expect(world.talk, "pulled 3 error TIMED_OUT\n");

    talk_tick(world.talk, 10);

    talk_expect(world.talk, "staged 1\ndone 1 []\n");
}

TALK_TEST(that_it_is_staged_does_not_wait_where_it_is_to_be_committed)
{
    struct world world;

    begin(&world, talk);
    world.asks_beside = world.waits = true;

    come_with(&world, 1, 1, 2, 3, 4);

    talk_expect(world.talk, "staged 1\n");
}

/* What each of two brought lies in a place of its own. */
TALK_TEST(what_is_gathered_is_said_beside_in_one)
{
    struct world world;

    begin(&world, talk);
    world.collective.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    world.asks_beside = true;
    come_with(&world, 1, 1, 2, 3, 4);

    come_with(&world, 2, 5, 6, 7, 8);

    assert_int_equal(
        talk_times_said(world.talk, "beside met 1 float32 [8] [4 4] 1 2 3 4 5 6 7 8\n"), 1);
}

TALK_TEST(that_it_is_done_goes_with_what_does_not_wait)
{
    struct world world;

    begin(&world, talk);
    world.asks_beside = true;
    come_with(&world, 1, 1, 2, 3, 4);
    talk_expect(world.talk, "");

    come(&world, 1, (const float[]){1}, 4); /* the same round again, and too short */

    talk_expect(world.talk, "staged 1\nrefused 2 MALFORMED\ndone 1 []\ndone 2 voided\n");
}

TALK_TEST(what_fails_is_said_beside_too)
{
    struct world world;

    begin(&world, talk);
    world.asks_beside = true;
    come_with(&world, 1, 1, 2, 3, 4);
    world.shape[0] = 3;

    come_with(&world, 2, 1, 2, 3);

    assert_int_equal(talk_times_said(world.talk, "beside pulled 1 error STEP_DIFFERS"), 1);
    assert_int_equal(talk_times_said(world.talk, "beside pulled 2 error STEP_DIFFERS"), 1);
}

TALK_TEST(a_long_one_is_not_answered_beside)
{
    static float values[4097];
    struct lane_config config = talk_config();
    struct world world;

    config.staging_bytes_max = 1u << 20;
    begin_with(&world, talk, &config);
    world.asks_beside = true;
    world.shape[0] = 4096; /* 16 KiB */
    come(&world, 1, values, 4096 * sizeof *values);
    come(&world, 2, values, 4096 * sizeof *values);
    assert_int_equal(talk_times_said(world.talk, "beside met 1 float32 [4096]"), 1);
    talk_forget(world.talk);
    world.collective.round = 2;
    world.shape[0] = 4097;
    come(&world, 1, values, sizeof values);

    come(&world, 2, values, sizeof values);

    assert_int_equal(talk_times_said(world.talk, "beside pulled 1 error MESSAGE_TOO_LARGE"), 1);
    talk_forget(world.talk);
    ask(&world, 1); /* it is there all the same */
    assert_int_equal(talk_times_said(world.talk, "met 1 float32 [4097]"), 1);
}

TALK_TEST(other_pulls_are_not_answered_beside)
{
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    wire_pull_request *pulls[] = {&pull};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct world world;

    begin(&world, talk);
    pull.request = 7;
    request.pulls = pulls;
    request.n_pulls = 1;

    talk_push(world.talk, world.push[1], &request, NULL, 0);

    talk_expect(world.talk, "beside pulled 7 error MALFORMED\n");
}

TALK_TEST(one_with_a_payload_is_not_answered_beside)
{
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    uint8_t byte = 0;
    struct world world;

    begin(&world, talk);
    world.asks_beside = true;
    ask_beside(&world, 1, &request);
    request.pulls[0]->payload = (wire_bytes){.len = 1, .data = &byte};

    talk_push(world.talk, world.push[1], &request, NULL, 0);

    talk_expect(world.talk, "beside pulled 1 error MALFORMED\n");
    assert_non_null(strstr(world.talk->refused, "has a payload"));
}

TALK_TEST(more_pulls_than_a_message_may_have_end_the_stream)
{
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    wire_pull_request *pulls[WIRE_PUSH_PULLS_MAX + 1];
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct world world;

    begin(&world, talk);
    for (uint32_t i = 0; i <= WIRE_PUSH_PULLS_MAX; i++)
        pulls[i] = &pull;
    request.pulls = pulls;
    request.n_pulls = WIRE_PUSH_PULLS_MAX + 1;

    talk_push(world.talk, world.push[1], &request, NULL, 0);

    talk_expect(world.talk, "end of stream TOO_MANY_PIECES\n");
}

TALK_TEST(behind_a_commit_that_ends_the_stream_no_pull_is_taken)
{
    static uint64_t waiting[WIRE_COMMIT_WAITING_MAX + 1];
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct world world;

    begin(&world, talk);
    world.asks_beside = true;
    ask_beside(&world, 1, &request);
    commit.waiting = waiting;
    commit.n_waiting = WIRE_COMMIT_WAITING_MAX + 1;
    request.commit = &commit;

    talk_push(world.talk, world.push[1], &request, NULL, 0);

    talk_expect(world.talk, "end of stream TOO_MANY_PIECES\n");
}

/* A message says sixteen. */
TALK_TEST(many_pulls_beside_are_answered_in_several_messages)
{
    enum { count = 17 };
    wire_pull_request pulls[count];
    wire_pull_request *pointers[count];
    wire_collective_round asked = WIRE_COLLECTIVE_ROUND_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct world world;

    begin(&world, talk);
    asked.name = world.collective.name;
    asked.round = 1;
    for (uint32_t i = 0; i < count; i++) {
        pulls[i] = (wire_pull_request)WIRE_PULL_REQUEST_INIT;
        pulls[i].request = 100 + i;
        pulls[i].collective = &asked;
        pulls[i].timeout_ms = 120000;
        pointers[i] = &pulls[i];
    }
    request.pulls = pointers;
    for (uint32_t i = 0; i < count; i += WIRE_PUSH_PULLS_MAX) {
        request.pulls = pointers + i;
        request.n_pulls = count - i < WIRE_PUSH_PULLS_MAX ? count - i : WIRE_PUSH_PULLS_MAX;
        talk_push(world.talk, world.push[1], &request, NULL, 0);
    }
    come_with(&world, 1, 1, 2, 3, 4);
    talk_tick(world.talk, 20);
    talk_forget(world.talk);
    world.talk->deaf = world.push[1];

    come_with(&world, 2, 10, 20, 30, 40);

    assert_int_equal(talk_times_said(world.talk, "beside met 1"), 16);
    talk_writable(world.talk, world.push[1]);
    assert_int_equal(talk_times_said(world.talk, "beside met 1"), count);
}

TALK_TEST(what_is_cancelled_beside_is_not_said)
{
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    struct world world;

    begin(&world, talk);
    world.asks_beside = true;
    come_with(&world, 1, 1, 2, 3, 4);
    ask_beside(&world, 1, &request);
    request.pulls[0]->cancel = true;

    talk_push(world.talk, world.push[1], &request, NULL, 0);

    talk_expect(world.talk, "staged 1\ndone 1 []\n"); /* which waits for it no more */
    come_with(&world, 2, 1, 2, 3, 4);
    talk_expect(world.talk, "staged 1\ndone 1 []\nbeside met 2 float32 [4] 2 4 6 8\n");
}

TALK_TEST(with_its_stream_what_was_asked_beside_is_gone)
{
    struct world world;

    begin(&world, talk);
    world.asks_beside = true;
    come_with(&world, 1, 1, 2, 3, 4);
    talk_hang_up(world.talk, world.push[1]);
    world.push[1] = talk_push_stream(world.talk, 1, 2);
    talk_forget(world.talk);

    come_with(&world, 2, 1, 2, 3, 4);

    talk_expect(world.talk, "staged 1\ndone 1 []\nbeside met 2 float32 [4] 2 4 6 8\n");
    ask(&world, 1);
    talk_expect(world.talk, "met 1 float32 [4] 2 4 6 8\n");
}

TALK_TEST(of_a_closed_session_nothing_is_said_beside)
{
    struct world world;

    begin(&world, talk);
    world.asks_beside = true;
    come_with(&world, 1, 1, 2, 3, 4);

    talk_close(world.talk, 1);

    talk_decide(world.talk, 1, 1, 0);

    assert_int_equal(talk_times_said(world.talk, "staged 1\ndone 1 []\nclosed 1"), 1);
    assert_int_equal(talk_times_said(world.talk, "beside"), 0);
}
