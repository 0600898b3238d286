/* SPDX-License-Identifier: Apache-2.0 */
/* lane_grants.c (test) -- which sessions may stage parts: a closed session whose contribution waits
 * keeps its grant, and shuts nobody out; and what a part takes of what it asked for. */
#include <stdlib.h>

#include "lane_pool.h"
#include "part.h"

/* Worker 1 has left a contribution behind, which waits: all grants are taken. */
static struct members begin_without_a_grant(struct talk *talk, uint32_t members, uint32_t grants)
{
    struct lane_config config = talk_config();

    config.sessions_max = grants;
    struct members made = begin_as(talk, 2, members, config);
    add_variable(talk, VARIABLE, UPDATE_ASSIGN_ADD, SUM, 1);
    contribute(talk, made.push[1], 1, (float[]){1}, 1);
    talk_close(talk, 1);
    talk_decide(talk, 1, 1, 0);
    talk_forget(talk);
    return made;
}

static bool is_refused_a_grant(struct talk *talk, uint64_t stream, const struct talk_part *part)
{
    talk_forget(talk);
    talk_part(talk, stream, part);
    return strstr(talk->text, "end of stream BUSY") != NULL;
}

/* A contribution that a closed session has committed keeps the grant of its session. Who joins
 * then gets in, and pushes as soon as the step is over. */
TALK_TEST(a_closed_session_that_waits_keeps_its_grant_and_shuts_nobody_out)
{
    struct members members = begin_without_a_grant(talk, 2, 2);
    const struct talk_part push = {
        .sequence = 1, .shard = VARIABLE, .shards = 1, .values = (float[]){1}, .count = 1};

    talk_open(talk, 3);
    assert_null(strstr(talk->text, "error"));
    assert_true(is_refused_a_grant(talk, talk_push_stream(talk, 3, 1), &push));
    contribute(talk, members.push[2], 1, (float[]){1}, 1);

    assert_false(is_refused_a_grant(talk, talk_push_stream(talk, 3, 2), &push));
    assert_non_null(strstr(talk->text, "staged 1"));
}

/* All wait for whom no grant was kept. */
TALK_TEST(who_is_yet_to_join_finds_a_grant)
{
    struct members members = begin_without_a_grant(talk, 3, 3);
    const struct talk_part first = contribution(1, (float[]){1}, 1);

    talk->initials = 3; /* one that comes later */
    talk_open(talk, 4);
    talk_first_step(talk, 4, 1);
    assert_true(is_refused_a_grant(talk, talk_push_stream(talk, 4, 1), &first));
    talk->initials = 2;
    talk_open(talk, 3);
    members.push[3] = talk_push_stream(talk, 3, 1);

    assert_false(is_refused_a_grant(talk, members.push[3], &first));
    assert_false(is_refused_a_grant(talk, members.push[2], &first));
}

/* Worker 1 joins again and again, and worker 2 makes no contribution. Each attempt that finds a
 * grant leaves a contribution behind. */
TALK_TEST(a_worker_that_crashes_after_each_contribution_always_gets_in)
{
    struct members members = begin_without_a_grant(talk, 2, 3);
    uint32_t refused = 0;

    for (uint8_t attempt = 3; attempt < 40; attempt++) {
        talk_forget(talk);
        talk_open(talk, attempt);
        assert_null(strstr(talk->text, "error"));
        const uint64_t stream = talk_push_stream(talk, attempt, 1);
        struct talk_part part = contribution(attempt < 4 ? attempt - 1u : 3, (float[]){1}, 1);
        part.sequence = 1;
        part.previous = 0;
        talk_first_step(talk, attempt, part.step);
        const bool was_refused = is_refused_a_grant(talk, stream, &part);
        refused += was_refused;
        if (!was_refused)
            talk_commit(talk, stream, 1, 0, 0);
        talk_close(talk, attempt);
        talk_decide(talk, attempt, was_refused ? 0 : 1, 0);
    }
    assert_int_equal(refused, 36);

    talk_forget(talk); /* who has a grant goes on */
    contribute(talk, members.push[2], 1, (float[]){1}, 1);
    assert_non_null(strstr(talk->text, "done 1"));
}

/* It is a byte short for the second of its two pieces. */
TALK_TEST(what_all_pieces_of_a_part_take_is_in_what_it_asked_for)
{
    const struct members members = open_three(talk, POOL);
    const uint64_t bytes = 2 * COUNT * sizeof(float);
    const uint64_t whole = wire_part_cost(bytes, 0, 0) - ANSWERS_COST_BYTES + 2 * PIECE_ROOM_BYTES;
    struct talk_part part = large(1, 0, 10);

    add_variable(talk, VARIABLE + 1, UPDATE_ASSIGN_ADD, SUM, COUNT);
    part.shards = 2;
    part.room = whole - 1;
    talk_ask(talk, members.push[1], &part);
    talk_expect(talk, "resend 1\n");

    talk_part(talk, members.push[1], &part);

    talk_expect(talk, "refused 1 MALFORMED\n");
    assert_int_equal(strtoull(talk->expected, NULL, 10), whole - 1);
    assert_int_equal(strtoull(talk->given, NULL, 10), whole);
    assert_int_equal(talk->lane->claims.bytes, 0);
}

/* The third waits for the room that the others have. */
TALK_TEST(the_statistics_say_what_each_session_has_of_the_pool)
{
    const struct members members = open_three(talk, POOL);

    for (uint8_t i = 1; i <= 3; i++)
        ask(talk, &members, i, 10 * i);

    const wire_stats_reply *const stats = talk_stats(talk);

    assert_int_equal(stats->n_sessions, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(stats->sessions[i]->staged_bytes, i < 2 ? ROOM : 0);
}
