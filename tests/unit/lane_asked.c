/* SPDX-License-Identifier: Apache-2.0 */
/* lane_asked.c -- what a ps tells whoever asks: whom to ask, lists, numbers. */
#include "assert_number.h"
#include "handlers.h"
#include "lane_opened.h"

TALK_TEST(a_ps_that_is_not_ps_0_says_whom_to_ask)
{
    (void)begin(talk);
    wire_join_request join = WIRE_JOIN_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_JOIN, .request = &join.base};

    talk_step(talk, &call);

    talk_expect(talk, "failed NOT_CONTROLLER\n");
}

/* Its configuration has the ps in another order. */
TALK_TEST(who_takes_another_ps_for_ps_0_is_shown_both_lists)
{
    (void)begin(talk);
    char *addresses[] = {"h1:1", "h0:1"};
    wire_join_request join = WIRE_JOIN_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_JOIN, .request = &join.base};
    join.ps_addresses = addresses;
    join.n_ps_addresses = 2;

    talk->shows_logs = true;
    talk_step(talk, &call);
    assert_int_equal(talk_times_said(talk, "failed WRONG_CLUSTER\n"), 1);
    assert_int_equal(talk_times_said(talk, "log "), 1);
    assert_int_equal(talk_times_said(talk, "this is ps 1, and not ps 0"), 1);
    talk_forget(talk);

    addresses[0] = "h0:1"; /* it has the same, and was led astray */
    addresses[1] = "h1:1";
    talk_step(talk, &call);
    talk_expect(talk, "failed NOT_CONTROLLER\n");
}

TALK_TEST(lists_and_stats_need_no_session)
{
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0);
    talk_forget(talk);
    wire_list_request list = WIRE_LIST_REQUEST_INIT;
    wire_stats_request stats = WIRE_STATS_REQUEST_INIT;
    char *unknown[] = {"nothing"};
    struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_LIST, .request = &list.base};

    talk_step(talk, &call);
    list.names = unknown;
    list.n_names = 1;
    talk_step(talk, &call);
    call.call_kind = LANE_CALL_STATS;
    call.request = &stats.base;
    talk_step(talk, &call);

    talk_expect(
        talk,
        "reply ListReply\nfailed UNKNOWN_VARIABLE\nreply StatsReply pushes 0 pulls 0 refused 0 "
        "duplicates 0 staleness 0 of 0 staged 890\n");
}

TALK_TEST(the_numbers_of_a_ps_are_those_of_stats)
{
    const uint64_t stream = begin(talk);
    const struct lane *const lane = talk->lane;

    send(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 0);
    send(talk, stream, 2, 1); /* given: one that is applied, and one that is staged */

    const wire_stats_reply *said = talk_stats(talk); /* when */

    assert_int_equal(said->pushes, 1); /* then */
    assert_true(lane->staged_bytes > 0);
    assert_true(store_state_bytes(&lane->store) > 0);
    assert_int_equal(lane->cluster_id, said->cluster_id);
    assert_int_equal(lane->index, said->ps);
    assert_int_equal(lane->store.position, said->position);
    assert_int_equal(lane->counts.pushes, said->pushes);
    assert_int_equal(lane->counts.push_bytes, said->push_bytes);
    assert_int_equal(lane->counts.push_us.count, said->push_us->count);
    assert_int_equal(lane->store.variable_count, said->variables);
    assert_int_equal(lane->store.shard_count, said->shards);
    assert_int_equal(lane->staged_bytes, said->memory->staged_bytes);
    assert_int_equal(store_state_bytes(&lane->store), said->memory->state_bytes);
    assert_int_equal(store_view_bytes_max(&lane->store), said->memory->view_bytes_max);
    assert_int_equal(lane_sessions_bytes_max(lane), said->memory->sessions_bytes_max);
}

/* A job's name of 62 bytes, two for each character. */
TALK_TEST(a_long_name_of_a_task_is_whole_in_lists_and_stats)
{
    char job[63];

    for (size_t i = 0; i + 2 < sizeof job; i += 2)
        memcpy(job + i, "\xc3\xa9", 3);
    talk->job = job;
    const uint64_t stream = begin(talk);
    send(talk, stream, 1, 0);
    talk_commit(talk, stream, 1, 0, 0);
    wire_list_request list = WIRE_LIST_REQUEST_INIT;
    wire_stats_request stats = WIRE_STATS_REQUEST_INIT;
    struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_LIST, .request = &list.base};
    struct lane_effects effects;

    ps_core_step(talk->core, &call, &effects);
    const wire_list_reply *listed = (const wire_list_reply *)effects.items[0].reply;
    assert_int_equal(strlen(listed->variables[0]->shards[0]->last_worker), 62 + strlen(" 1"));
    talk_forget(talk);
    talk_step(talk, &call);
    call.call_kind = LANE_CALL_STATS;
    call.request = &stats.base;
    talk_step(talk, &call);

    talk_expect(
        talk, "reply ListReply\nreply StatsReply pushes 1 pulls 0 refused 0 duplicates 0 staleness "
              "0 of 0 "
              "staged 0\n");
}

TALK_TEST(times_are_in_ms_and_pushes_weigh_what_their_workers_said)
{
    const uint64_t stream = begin(talk); /* given */
    struct talk_part heavy = part(1, 0);
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_STATS, .request = &request.base};
    struct lane_effects effects;

    talk->now_us += 3000;
    heavy.weight = 2.5;
    talk_part(talk, stream, &heavy);
    talk_commit(talk, stream, 1, 0, 0);
    send(talk, stream, 1, 0); /* once more */
    call.now_us = talk->now_us + 5000;

    ps_core_step(talk->core, &call, &effects); /* when */

    const wire_stats_reply *said = (const wire_stats_reply *)effects.items[0].reply; /* then */
    assert_int_equal(said->uptime_ms, 8);
    /* as much as the variables take */
    assert_in_range(said->memory->view_bytes_max, 4 * sizeof(float) + 1, said->memory->state_bytes);
    assert_int_equal(said->n_sessions, 1);
    assert_int_equal(said->sessions[0]->last_heard_ms, 5);
    assert_int_equal(said->sessions[0]->duplicates, 1);
    assert_number_equal(said->sessions[0]->weight, 2.5);
    assert_string_equal(said->version, "test");
}

/* The caller's are gone when the lane is made. */
TALK_TEST(a_lane_keeps_copies_of_its_configuration)
{
    struct lane_config config = talk_config();
    char first[] = "h0:1", second[] = "h1:1", version[] = "test";
    const char *addresses[] = {first, second};

    config.ps_addresses = addresses;
    config.version = version;
    config.kept_row_bytes_min = 0;
    talk_make(talk, &config);
    addresses[0] = addresses[1] = version;
    memset(first, 'x', sizeof first - 1);
    memset(second, 'x', sizeof second - 1);
    memset(version, 'x', sizeof version - 1);

    const struct lane_config *const kept = lane_config(talk->lane);
    assert_string_equal(kept->ps_addresses[0], "h0:1");
    assert_string_equal(kept->ps_addresses[1], "h1:1");
    assert_string_equal(kept->version, "test");
    assert_true(talk->lane->store.kept_row_bytes_min > 0);
}

/* The ps knows no list of ps that it could compare with that of the call. */
TALK_TEST(a_ps_without_a_list_says_that_it_is_not_ps_0)
{
    struct lane_config config = talk_config();
    char *addresses[] = {"h1:1", "h0:1"};
    wire_join_request join = WIRE_JOIN_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_JOIN, .request = &join.base};

    config.ps_addresses = NULL;
    config.ps_count = 0;
    talk_make(talk, &config);
    join.ps_addresses = addresses;
    join.n_ps_addresses = 2;

    talk_step(talk, &call);

    talk_expect(talk, "failed NOT_CONTROLLER\n");
}

/* It was told only its own address. */
TALK_TEST(a_list_of_one_ps_is_no_other_list)
{
    const struct lane_config config = talk_config();
    char *addresses[] = {"h1:1"};
    wire_join_request join = WIRE_JOIN_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_JOIN, .request = &join.base};

    talk_make(talk, &config);
    join.ps_addresses = addresses;
    join.n_ps_addresses = 1;

    talk_step(talk, &call);

    talk_expect(talk, "failed NOT_CONTROLLER\n");
}

/* As many as one answer names, so that what is short is found within it. */
TALK_TEST(a_list_that_memory_ends_says_that_there_is_more)
{
    const wire_list_request request = WIRE_LIST_REQUEST_INIT;
    struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_LIST, .request = &request.base};
    struct lane_effects effects;
    uint32_t failed = 0, ended = 0;

    enum { variables = 400 };
    (void)begin(talk);
    for (uint64_t id = 100; id < 100 + variables - 1; id++)
        talk_variable(talk, id, 1, UPDATE_ASSIGN_ADD);
    call.now_us = talk->now_us;
    for (uint32_t takes = 0; takes < 12; takes++) {
        arena_deinit(&talk->lane->arena);
        talk->scarce = true;
        talk->takes_left = takes; /* given */

        ps_core_step(talk->core, &call, &effects); /* when */
        talk->scarce = false;

        const struct lane_effect *const effect = &effects.items[0]; /* then */
        failed += effect->kind == LANE_EFFECT_FAIL;
        if (effect->kind != LANE_EFFECT_REPLY)
            continue;
        const wire_list_reply *const reply = (const wire_list_reply *)effect->reply;
        assert_true(reply->n_variables > 0);
        assert_true(reply->more == (reply->n_variables < variables));
        ended += reply->more ? 1 : 0;
    }
    assert_true(failed > 0 && ended > 0);
}

TALK_TEST(a_ps_without_a_version_says_none)
{
    struct lane_config config = talk_config();

    config.version = NULL;
    talk_start(talk, &config);

    assert_string_equal(talk_stats(talk)->version, "");
}

TALK_TEST(a_ps_that_is_told_to_terminate_logs_it_once)
{
    static const struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};
    const uint64_t stream = begin(talk);

    send(talk, stream, 1, 0); /* the ps waits for its commit */
    talk->shows_logs = true;
    talk_step(talk, &terminate);
    talk_step(talk, &terminate);

    assert_int_equal(
        talk_times_said(talk, "ps 1 was told to terminate: it finishes what is in flight"), 1);
}
