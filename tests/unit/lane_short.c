/* SPDX-License-Identifier: Apache-2.0 */
/* lane_short.c -- a lane that is short of memory: whoever asks is answered, and every stream is
 * answered or ended.
 *
 * Each conversation is held again and again, with a little more memory each time: for the texts and
 * messages of a step, then from the source.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "peer_state.h"
#include "pull_state.h"
#include "each_take.h"
#include "controller_state.h"
#include "lane_talk.h"
#include "requests.h"
#include "ps_core_state.h"

#define STEP_BYTES_MAX 49152u /* more than any step of these conversations needs */
#define TAKES_MAX 40u
#define VARIABLE 5u
#define CALLS_MAX 16u

static const float values[16] = {1};

/* Without memory, as far as `limit` goes. */
typedef void shortage(struct talk *talk, uint32_t limit);

static void short_steps(struct talk *talk, uint32_t limit)
{
    talk->lane->arena.bytes_max = limit;
    if (talk->core->controller != NULL)
        talk->core->controller->out->arena->bytes_max = limit;
}

static void short_source(struct talk *talk, uint32_t limit)
{
    talk->scarce = true;
    talk->takes_left = limit;
}

/* For a moment: others have given some back. */
static void short_once(struct talk *talk, uint32_t limit)
{
    short_source(talk, limit);
    talk->short_once = true;
}

/* There is memory again, and time passes. */
static void recover(struct talk *talk)
{
    talk->lane->arena.bytes_max = 64u << 20;
    talk->scarce = false;
    for (int i = 0; i < 5; i++)
        talk_tick(talk, 1000);
}

static bool was_said(const struct talk *talk, const char *what)
{
    return strstr(talk->text, what) != NULL;
}

static struct talk *begin(void **state, struct lane_config *config)
{
    struct talk *talk;

    assert_int_equal(talk_setup(state), 0);
    talk = *state;
    *config = talk_config();
    config->staging_bytes_max = 1u << 20;
    config->view_bytes_max = 1u << 20;
    config->report_ms = 1000000;
    config->copied_pull_bytes_max = 64; /* a long pull lends its blocks, each for itself */
    config->block_bytes = 64;
    config->gathered_bytes_max = 1;
    return talk;
}

/* ---- ps 1 ---- */

static void call_catalogue(struct talk *talk)
{
    const wire_list_request list = WIRE_LIST_REQUEST_INIT;
    const wire_stats_request stats = WIRE_STATS_REQUEST_INIT;
    struct lane_event call = {
        .kind = LANE_EVENT_CALL, .call = 1, .call_kind = LANE_CALL_LIST, .request = &list.base};

    talk_step(talk, &call);
    assert_true(was_said(talk, "reply ListReply\n") || was_said(talk, "failed OUT_OF_MEMORY\n"));
    talk_forget(talk);
    call.call_kind = LANE_CALL_STATS;
    call.request = &stats.base;
    talk_step(talk, &call);
    assert_true(was_said(talk, "reply StatsReply") || was_said(talk, "failed OUT_OF_MEMORY\n"));
    talk_forget(talk);
}

/* A lane with two variables and a session, which is short of memory from now on. */
static struct talk *begin_short(void **state, shortage *run_short, uint32_t limit)
{
    struct lane_config config;
    struct talk *talk = begin(state, &config);

    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 16, UPDATE_ASSIGN_ADD);
    talk_variable(talk, VARIABLE + 1, 64, UPDATE_ASSIGN_ADD); /* long to pull */
    talk_forget(talk);
    run_short(talk, limit);
    return talk;
}

static bool is_over(const struct talk *talk)
{
    return was_said(talk, "exit 137\n") || was_said(talk, "end of stream");
}

/* Nothing but hellos. */
static void converse_hellos(void **state, shortage *run_short, uint32_t limit)
{
    struct talk *talk = begin_short(state, run_short, limit);

    (void)talk_push_stream(talk, 1, 1);
    recover(talk);
    assert_true(is_over(talk) || was_said(talk, "greeting\n"));
    talk_forget(talk);
    run_short(talk, limit);
    (void)talk_pull_stream(talk, 1);
    recover(talk);
    assert_true(is_over(talk) || was_said(talk, "greeting\n"));
    assert_int_equal(talk_teardown(state), 0);
}

/* One that is good, and one that is refused. */
static void converse_pushes(void **state, shortage *run_short, uint32_t limit)
{
    struct talk *talk = begin_short(state, run_short, limit);
    struct talk_part part = {
        .sequence = 1, .shard = VARIABLE, .shards = 1, .values = values, .count = 16};

    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_part(talk, stream, &part);
    part.sequence = 2;
    part.previous = 1;
    part.offset = 1000;
    talk_part(talk, stream, &part);
    talk_commit(talk, stream, 2, 0, 0);
    recover(talk);

    if (!is_over(talk)) {
        assert_true(was_said(talk, "greeting\n"));
        assert_true(was_said(talk, "done 1 [1]\n") || was_said(talk, "refused 1 OUT_OF_MEMORY\n"));
        assert_true(was_said(talk, "refused 2 "));
    }
    assert_int_equal(talk_teardown(state), 0);
}

/* A short one, a long one of two pieces, so that there may be no memory for the second when the
 * first is lent, and one of nothing. */
static void converse_pulls(void **state, shortage *run_short, uint32_t limit)
{
    struct talk *talk = begin_short(state, run_short, limit);

    const uint64_t stream = talk_pull_stream(talk, 1);
    talk_pull(talk, stream, 1, VARIABLE, 1, 0);
    talk_pull(talk, stream, 2, VARIABLE, 2, 0);
    talk_pull(talk, stream, 3, 4711, 1, 0);
    recover(talk);

    if (!is_over(talk)) {
        assert_true(was_said(talk, "greeting\n"));
        assert_true(was_said(talk, "pulled 1 "));
        assert_true(was_said(talk, "pulled 2 "));
        assert_true(was_said(talk, "pulled 3 error "));
    }
    assert_int_equal(talk->lane->store.view_bytes, 0);
    assert_int_equal(talk->lane->pulls->holds.used, 0); /* what was not sent is not lent */
    assert_int_equal(talk_teardown(state), 0);
}

/* Orders, the catalogue, the statistics. */
static void converse_orders(void **state, shortage *run_short, uint32_t limit)
{
    struct talk *talk = begin_short(state, run_short, limit);

    call_catalogue(talk);
    talk_open(talk, 2);
    talk_add(talk, 7, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
    talk_delete(talk, VARIABLE);
    talk_close(talk, 1);
    recover(talk);

    if (!is_over(talk)) /* every order was answered, well or not */
        for (uint64_t number = talk->orders - 4; number <= talk->orders; number++) {
            char answer[32];
            (void)snprintf(answer, sizeof answer, "report %" PRIu64, number);
            if (!was_said(talk, answer))
                print_error("limit %u: no %s\n%s", limit, answer, talk->text);
            assert_true(was_said(talk, answer));
        }
    assert_int_equal(talk_teardown(state), 0);
}

STATE_TEST(with_short_steps_a_ps_answers_or_ends_its_streams, NULL, NULL)
{
    for (uint32_t limit = 0; limit < STEP_BYTES_MAX; limit += limit < 4096 ? 16 : 1024) {
        converse_hellos(state, short_steps, limit);
        converse_pushes(state, short_steps, limit);
        converse_pulls(state, short_steps, limit);
        converse_orders(state, short_steps, limit);
    }
}

static void converse_short(void **state, shortage *run_short)
{
    for (uint32_t limit = 0; limit < TAKES_MAX; limit++) {
        converse_hellos(state, run_short, limit);
        converse_pushes(state, run_short, limit);
        converse_pulls(state, run_short, limit);
        converse_orders(state, run_short, limit);
    }
}

STATE_TEST(with_an_empty_source_a_ps_answers_or_ends_its_streams, NULL, NULL)
{
    converse_short(state, short_source);
}

STATE_TEST(without_memory_for_a_moment_a_ps_answers_or_ends_its_streams, NULL, NULL)
{
    converse_short(state, short_once);
}

/* ---- answers ---- */

#define MANY 700u /* shards: their versions need a piece of their own */

static struct talk *stage_many(void **state, uint64_t *stream)
{
    static const float one[MANY] = {1};
    struct lane_config config;
    struct talk *talk = begin(state, &config);
    const struct talk_part part = {
        .sequence = 1, .shard = 100, .shards = MANY, .values = one, .count = 1};

    talk_start(talk, &config);
    talk_open(talk, 1);
    for (uint64_t id = 100; id < 100 + MANY; id++)
        talk_variable(talk, id, 1, UPDATE_ASSIGN_ADD);
    *stream = talk_push_stream(talk, 1, 1);
    talk_part(talk, *stream, &part);
    talk_forget(talk);
    return talk;
}

static void assert_all_versions_are_said(struct talk *talk, uint64_t generation)
{
    static const float one[MANY] = {1};
    const struct talk_part part = {
        .sequence = 1, .shard = 100, .shards = MANY, .values = one, .count = 1};
    const uint64_t stream = talk_push_stream(talk, 1, generation);
    char expected[2 * MANY + 64];
    size_t used = (size_t)snprintf(expected, sizeof expected, "greeting\ndone 1 [");

    talk_part(talk, stream, &part);
    for (uint32_t i = 0; i < MANY; i++)
        used +=
            (size_t)snprintf(expected + used, sizeof expected - used, i + 1 < MANY ? "1 " : "1]\n");
    talk_expect(talk, expected);
}

STATE_TEST(done_is_not_said_without_its_versions, NULL, NULL)
{
    uint64_t stream;
    struct talk *talk = stage_many(state, &stream);

    short_source(talk, 0);

    talk_commit(talk, stream, 1, 0, 0);

    talk_expect(talk, "end of stream OUT_OF_MEMORY\n");
    talk->scarce = false;
    assert_all_versions_are_said(talk, 2);
    assert_int_equal(talk_teardown(state), 0);
}

STATE_TEST(nor_is_it_said_again_without_them, NULL, NULL)
{
    static const float one[MANY] = {1};
    const struct talk_part part = {
        .sequence = 1, .shard = 100, .shards = MANY, .values = one, .count = 1};
    uint64_t stream;
    struct talk *talk = stage_many(state, &stream);

    talk_commit(talk, stream, 1, 0, 0);
    sized_pool_trim(&talk->lane->bytes);
    talk_forget(talk);
    short_source(talk, 0);

    talk_part(talk, stream, &part);

    talk_expect(talk, "end of stream OUT_OF_MEMORY\n");
    talk->scarce = false;
    assert_all_versions_are_said(talk, 2);
    assert_int_equal(talk_teardown(state), 0);
}

/* ---- what is new ---- */

/* A session with a variable and a push stream; with `heard`, one of its pushes has been refused. */
static uint64_t begin_push(void **state, bool heard)
{
    struct lane_config config;
    struct talk *talk = begin(state, &config);
    const struct talk_part bad = {
        .sequence = 1, .shard = 4711, .shards = 1, .values = values, .count = 1};

    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    if (heard)
        talk_part(talk, stream, &bad);
    sized_pool_trim(&talk->lane->bytes);
    talk_forget(talk);
    return stream;
}

STATE_TEST(a_stream_that_there_is_no_memory_for_is_ended_with_that, NULL, NULL)
{
    (void)begin_push(state, false);
    struct talk *const talk = *state;
    uint32_t opened = 0;

    short_source(talk, 0);
    while (!was_said(talk, "end of stream") && opened++ < 100)
        (void)talk_stream(talk, LANE_STREAM_PULL);

    talk_expect(talk, "end of stream OUT_OF_MEMORY\n");
    assert_string_equal(talk->closed.text, "ps 1 has no memory for another stream");
    talk->scarce = false;
    (void)talk_pull_stream(talk, 1);
    talk_expect(talk, "greeting\n");
    assert_int_equal(talk_teardown(state), 0);
}

static void push_out_of_bounds(struct talk *talk, uint64_t stream, uint64_t sequence)
{
    const struct talk_part bad = {
        .sequence = sequence,
        .previous = sequence - 1,
        .shard = VARIABLE,
        .shards = 1,
        .offset = 1000,
        .values = values,
        .count = 1};

    talk_part(talk, stream, &bad);
}

static void commit_voided(struct talk *talk, uint64_t stream, uint64_t sequence)
{
    talk_commit(talk, stream, sequence, sequence, 0);
}

/* Without room for its number a refused push cannot be remembered: its stream ends, and on the next
 * one it is said again and answered. */
static bool ends_and_is_said_again(
    void **state, uint32_t limit, void (*say)(struct talk *, uint64_t, uint64_t),
    const char *answer)
{
    const uint64_t stream = begin_push(state, false);
    struct talk *talk = *state;

    short_once(talk, limit);
    say(talk, stream, 1);
    talk->scarce = false;
    const bool ended = is_over(talk);
    if (ended) {
        talk_expect(talk, "end of stream OUT_OF_MEMORY\n");
        const uint64_t next = talk_push_stream(talk, 1, 2);
        talk_forget(talk); /* what was remembered, and there was no memory to answer, is said */
        say(talk, next, 1);
    }
    talk_expect(talk, answer);
    assert_int_equal(talk_teardown(state), 0);
    return ended;
}

STATE_TEST(a_refusal_that_there_is_no_memory_to_remember_ends_the_stream, NULL, NULL)
{
    uint32_t refused = 0, voided = 0;

    for (uint32_t limit = 0; limit < TAKES_MAX; limit++) {
        refused +=
            ends_and_is_said_again(state, limit, push_out_of_bounds, "refused 1 WRONG_SHAPE\n");
        voided += ends_and_is_said_again(state, limit, commit_voided, "");
    }
    assert_in_range(refused, 1, TAKES_MAX / 2);
    assert_in_range(voided, 1, TAKES_MAX / 2);
}

/* A push of four elements, by the first of so many functions. */
static void push_by_one_of_many(struct talk *talk, uint64_t stream, uint64_t sequence)
{
    enum { FUNCTIONS = 200 };
    wire_function assign = WIRE_FUNCTION_INIT;
    wire_function *functions[FUNCTIONS];
    wire_piece piece = WIRE_PIECE_INIT;
    wire_piece *pieces[] = {&piece};
    wire_part header = WIRE_PART_INIT;

    assign.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN;
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        functions[i] = &assign;
    piece.shard_id = VARIABLE;
    piece.function = 1;
    piece.bytes = header.bytes = 4 * sizeof(float);
    header.sequence = sequence;
    header.previous = sequence - 1;
    header.first = header.last = true;
    header.functions = functions;
    header.n_functions = FUNCTIONS;
    header.pieces = pieces;
    header.n_pieces = 1;
    talk_push_part(talk, stream, &header, values, piece.bytes);
}

/* It takes its place, as one refused; where there is none to say so either, its stream ends. */
STATE_TEST(a_part_that_there_is_no_memory_for_the_functions_of_is_refused, NULL, NULL)
{
    uint32_t refused = 0;

    for (uint32_t limit = 0; limit < TAKES_MAX; limit++) {
        const uint64_t stream = begin_push(state, true);
        struct talk *talk = *state;
        short_once(talk, limit);

        push_by_one_of_many(talk, stream, 2);

        talk->scarce = false;
        const bool is_refused = was_said(talk, "refused 2 OUT_OF_MEMORY\n");
        assert_true(is_refused || is_over(talk) || was_said(talk, "staged 2\n"));
        refused += is_refused;
        talk_forget(talk);
        if (is_refused) {
            talk_commit(talk, stream, 2, 0, 0);
            talk_expect(talk, "done 1 voided\ndone 2 voided\n");
        }
        assert_int_equal(talk_teardown(state), 0);
    }
    assert_in_range(refused, 1, TAKES_MAX / 2);
}

/* ---- ps 0 ---- */

/* The calls of one conversation, and how often each was answered. */
struct calls {
    struct talk *talk;
    uint32_t made, answered[CALLS_MAX + 1];
    uint8_t session[16]; /* of the last join that was answered */
    bool no_memory;      /* it ended for want of it */
};

static void step(struct calls *calls, struct lane_event event)
{
    struct lane_effects effects;

    event.now_us = calls->talk->now_us;
    event.random[0] = event.random[1] = calls->talk->now_us + calls->made;
    ps_core_step(calls->talk->core, &event, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        const struct lane_effect *effect = &effects.items[i];
        calls->no_memory |=
            effect->kind == LANE_EFFECT_EXIT && effect->exit_code == LANE_EXIT_NO_MEMORY;
        if (effect->kind != LANE_EFFECT_REPLY && effect->kind != LANE_EFFECT_FAIL)
            continue;
        calls->answered[effect->call]++;
        if (effect->kind == LANE_EFFECT_REPLY &&
            effect->reply->descriptor == &sumac__v1__join_reply__descriptor)
            memcpy(
                calls->session, ((const wire_join_reply *)effect->reply)->session_id.data,
                sizeof calls->session);
    }
}

static void call(struct calls *calls, enum lane_call_kind kind, const wire_message *request)
{
    assert_true(calls->made < CALLS_MAX);
    step(
        calls,
        (struct lane_event){
            .kind = LANE_EVENT_CALL, .call = ++calls->made, .call_kind = kind, .request = request});
}

static void join(struct calls *calls, uint32_t index)
{
    struct join_request request;

    join_request_init(&request, index);
    call(calls, LANE_CALL_JOIN, &request.message.base);
}

static void create(struct calls *calls, const char *name)
{
    uint64_t shape[] = {4};
    wire_function function;
    wire_variable variable;
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;

    vector_init(&variable, name, shape, &function);
    request.variable = &variable;
    request.session_id = (wire_bytes){sizeof calls->session, calls->session};
    call(calls, LANE_CALL_CREATE, &request.base);
}

static void delete (struct calls *calls, const char *name)
{
    wire_delete_request request = WIRE_DELETE_REQUEST_INIT;

    request.name = (char *)name;
    request.session_id = (wire_bytes){sizeof calls->session, calls->session};
    call(calls, LANE_CALL_DELETE, &request.base);
}

/* Every kind of request, on top of a session and a variable that are there already. */
static void ask_all(struct calls *calls)
{
    const wire_list_request list = WIRE_LIST_REQUEST_INIT;
    const wire_stats_request stats = WIRE_STATS_REQUEST_INIT;
    wire_renew_request renew = WIRE_RENEW_REQUEST_INIT;
    wire_leave_request leave = WIRE_LEAVE_REQUEST_INIT;

    join(calls, 1); /* first: orders that are too large keep up those behind them */
    call(calls, LANE_CALL_LIST, &list.base);
    call(calls, LANE_CALL_STATS, &stats.base);
    create(calls, "v");
    create(calls, "w");
    delete (calls, "v");
    renew.session_id = leave.session_id = (wire_bytes){sizeof calls->session, calls->session};
    call(calls, LANE_CALL_RENEW, &renew.base);
    call(calls, LANE_CALL_LEAVE, &leave.base);
}

/* A name that there was no room for is not an empty one. */
static void assert_nothing_is_nameless(const struct lane *lane)
{
    for (const struct lane_session *session = lane->sessions.first; session != NULL;
         session = session->in_lane.next)
        assert_memory_equal(session->task, "worker ", strlen("worker "));
    for (const struct variable *variable = lane->store.variables.first; variable != NULL;
         variable = variable->in_store.next)
        assert_string_not_equal(variable->name, "");
}

/* Returns the takes of memory of the time when it was short, if each_take counts them. */
static uint64_t ask_everything(void **state, shortage *run_short, uint32_t limit)
{
    uint64_t takes = 0;
    static const char *const addresses[] = {"h0:1"};
    struct lane_config config;
    struct calls calls = {.talk = begin(state, &config)};

    config.index = 0;
    config.ps_addresses = addresses;
    config.ps_count = 1;
    talk_start(calls.talk, &config);
    join(&calls, 0);
    create(&calls, "v");
    assert_int_equal(calls.answered[1] + calls.answered[2], 2);

    run_short(calls.talk, limit);
    ask_all(&calls);
    assert_nothing_is_nameless(calls.talk->lane);
    for (int i = 0; i < 200; i++) { /* longer than any call waits */
        if (i == 10) {              /* there is memory again */
            takes = each_take_end();
            calls.talk->scarce = false;
            short_steps(calls.talk, 64u << 20);
        }
        calls.talk->now_us += 1000000;
        step(&calls, (struct lane_event){.kind = LANE_EVENT_TICK});
    }

    for (uint32_t i = 1; i <= calls.made && !calls.no_memory; i++) {
        if (calls.answered[i] != 1)
            print_error("limit %u: call %u has %u answers\n", limit, i, calls.answered[i]);
        assert_int_equal(calls.answered[i], 1);
    }
    assert_int_equal(talk_teardown(state), 0);
    return takes;
}

STATE_TEST(with_short_steps_ps_0_answers_every_call, NULL, NULL)
{
    for (uint32_t limit = 0; limit < STEP_BYTES_MAX; limit += limit < 4096 ? 16 : 1024)
        (void)ask_everything(state, short_steps, limit);
}

STATE_TEST(with_an_empty_source_ps_0_answers_every_call, NULL, NULL)
{
    for (uint32_t limit = 0; limit < TAKES_MAX; limit++)
        (void)ask_everything(state, short_source, limit);
}

/* Also of what a pool has. */
static void short_take(struct talk *talk, uint32_t limit)
{
    (void)talk;
    each_take_begin(limit);
}

STATE_TEST(whichever_take_of_memory_fails_ps_0_answers_every_call, NULL, NULL)
{
    uint32_t failing = 1;

    while (ask_everything(state, short_take, failing) >= failing)
        failing++;
    assert_in_range(failing, 100, 5000);
}

/* ---- a lane is made ---- */

/* Or it would take an address of its configuration for unknown. */
TEST(a_lane_that_there_is_no_memory_for_is_not_made)
{
    static const char *const jobs[] = {"chief", "worker"}, *const members[] = {"h2:1", "h3:1"};
    static const uint32_t indices[] = {0, 1};
    struct lane_config config = talk_config();
    uint64_t failing = 0, takes;

    config.member_count = 2;
    config.members_jobs = jobs;
    config.members_indices = indices;
    config.members_addresses = members;
    do {
        each_take_reset();
        each_take_begin(++failing);
        struct lane *const lane = lane_create(&config, &each_take_source);
        takes = each_take_end();
        assert_true((lane == NULL) == (failing <= takes));
        lane_destroy(lane);
        assert_int_equal(each_take_held(), 0);
    } while (failing <= takes);

    assert_true(failing > 10);
}
