/* SPDX-License-Identifier: Apache-2.0 */
/* client_transfers.c -- who a client says it is, and what its pushes, pulls and leaves say. */
#include <float.h>
#include <math.h>
#include <time.h>

#include "assert_number.h"
#include "client_played.h"
#include "half.h"
#include "push.h"

/* ---- who it is */

TEST(a_member_says_which_task_it_is_and_who_the_members_are)
{
    struct sumac_client_options options = {.local_replicas = 4};
    struct played *played = join_as(
        "{\"cluster\": {\"ps\": [\"PS\"], \"worker\": [\"w:1\", \"w:2\"], \"chief\": [\"c:1\"], "
        "\"evaluator\": [\"e:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 1}}",
        &options);
    struct sumac_client_facts facts;

    assert_true(played->is_member);
    assert_string_equal(played->task, "worker 1 ");
    assert_string_equal(played->members, "worker 0 worker 1 chief 0 ");
    assert_false(played->partial);
    assert_int_equal(played->local_replicas, 4);
    assert_int_equal(played->listed_ps, 1);
    sumac_client_describe(&played->client, &facts);
    assert_int_equal(facts.cluster_id, 42);
    assert_int_equal(facts.epoch, 1);
    assert_int_equal(facts.attempt, 3);
    assert_int_equal(facts.previous_final, 5);
    assert_int_equal(facts.ps_count, 1);
    assert_int_equal(facts.lease_ms, 600000);
    assert_int_equal(facts.pushes_in_flight, 0);
    assert_int_equal(facts.member_index, 2);
    assert_int_equal(facts.member_count, 3);
    (void)end((void **)&played);
}

TEST(a_map_of_workers_need_not_name_all)
{
    struct sumac_client_options options = {0};
    struct played *played = join_as(
        "{\"cluster\": {\"ps\": [\"PS\"], \"worker\": {\"3\": \"w:1\"}, \"chief\": [\"c:1\"]}, "
        "\"task\": {\"type\": \"worker\", \"index\": 3}}",
        &options);

    assert_true(played->partial); /* though the chief is in a list */
    assert_string_equal(played->members, "worker 3 chief 0 ");
    assert_int_equal(played->client.member_task_count, 0); /* a round names its tasks itself */
    assert_int_equal(played->local_replicas, 1);
    (void)end((void **)&played);
}

TEST(an_observer_is_no_task)
{
    struct sumac_client_options options = {.observer = true};
    struct played *played = join_as(
        "{\"cluster\": {\"ps\": [\"PS\"], \"worker\": [\"w:1\"]}, \"task\": {\"type\": "
        "\"worker\", \"index\": 0}}",
        &options);

    assert_false(played->is_member);
    assert_string_equal(played->members, "worker 0 ");
    assert_string_not_equal(played->task, "worker 0 ");
    (void)end((void **)&played);
}

/* ---- pushes */

static float value = 1;

static struct sumac_tensor one_value(void)
{
    return (struct sumac_tensor){.memory = &value, .dtype = SUMAC_FLOAT32};
}

static void push(struct played *played, const struct sumac_push_options *options)
{
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};
    struct sumac_error error = {0};

    if (sumac_client_push(&played->client, &delta, 1, options, NULL, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
}

PLAYED_TEST(a_push_says_what_its_options_say)
{
    push(played, NULL);
    assert_number_equal(played->weight, 1);
    assert_false(played->allow_non_finite);
    assert_int_equal(played->clock, 0);
    assert_int_equal(played->parts, 1);

    push(played, &(struct sumac_push_options){.weight = 2.5, .allow_non_finite = true});
    assert_number_equal(played->weight, 2.5);
    assert_true(played->allow_non_finite);

    push(played, &(struct sumac_push_options){.finishes_step = true});
    assert_number_equal(played->weight, 1); /* of 0 */
    assert_false(played->allow_non_finite);
}

PLAYED_TEST(a_push_has_a_scale)
{
    push(played, NULL);
    assert_number_equal(played->scale, 0); /* which is none */
    push(played, &(struct sumac_push_options){.scale = 0.125});
    assert_number_equal(played->scale, 0.125);
}

/* √(3² + 4²) = 5 over both deltas; what is sent is 3 and 4, and the scale makes it as long as
 * wanted. */
PLAYED_TEST(a_push_is_clipped_by_the_norm_of_all_of_it)
{
    static const struct {
        struct sumac_push_options options;
        double scale;
    } cases[] = {
        {{.clip_norm = 5}, 0},
        {{.clip_norm = 6}, 0},
        {{.clip_norm = 2.5}, 0.5},
        {{.clip_norm = 1, .scale = -0.1}, -0.1},
        {{.clip_norm = 1, .scale = -2}, -0.2},
        {{.clip_norm = 0.625, .synchronous = true, .weight = 4}, 0.5},
        {{.clip_norm = 2.5, .weight = 4}, 0.5},
        {{.clip_norm = DBL_TRUE_MIN}, DBL_MIN}, /* 0 would be no scale at all */
    };
    float three = 3, four = 4;
    const struct sumac_delta deltas[] = {
        {.variable = create(played, "a"), .value = {.memory = &three, .dtype = SUMAC_FLOAT32}},
        {.variable = create(played, "b"), .value = {.memory = &four, .dtype = SUMAC_FLOAT32}}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sumac_error error = {0};
        if (sumac_client_push(&played->client, deltas, 2, &cases[i].options, NULL, &error) !=
            SUMAC_OK)
            fail_msg("%s", error.text);
        assert_true(fabs(played->scale - cases[i].scale) <= 1e-15);
        assert_int_equal(played->scale == 0, cases[i].scale == 0);
    }
}

PLAYED_TEST(scales_and_norms_that_make_no_sense_are_refused)
{
    static const struct sumac_push_options odd[] = {
        {.scale = NAN},    {.scale = -INFINITY}, {.scale = 0x1p128},
        {.clip_norm = -1}, {.clip_norm = NAN},   {.clip_norm = INFINITY},
    };
    struct sumac_push *made = NULL;
    struct sumac_error error = {0};
    float infinite = INFINITY;
    struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        assert_int_equal(
            sumac_client_push(&played->client, &delta, 1, &odd[i], &made, &error),
            SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, i < 3 ? "scale is" : "clip_norm is"));
    }
    delta.value.memory = &infinite;
    assert_int_equal(
        sumac_client_push(
            &played->client, &delta, 1, &(struct sumac_push_options){.clip_norm = 1}, &made,
            &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_NON_FINITE);
    delta.variable->dtype = delta.value.dtype = SUMAC_INT32;
    assert_int_equal(
        sumac_client_push(
            &played->client, &delta, 1, &(struct sumac_push_options){.clip_norm = 1}, &made,
            &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_WRONG_DATA_TYPE);
    assert_null(made);
    assert_int_equal(played->parts, 0);
}

/* Of every float type, and of more elements than are added up at a time. */
PLAYED_TEST(a_norm_is_that_of_every_float_type)
{
    static const float numbers[19] = {1,  -2,  3,  -4,  5,  -6,  7,  -8,  9, -10,
                                      11, -12, 13, -14, 15, -16, 17, -18, 19};
    uint16_t float16[19], bfloat16[19];
    double float64[19];

    for (size_t i = 0; i < 19; i++) {
        float16[i] = float16_of_float32(numbers[i]);
        bfloat16[i] = bfloat16_of_float32(numbers[i]);
        float64[i] = (double)numbers[i];
    }
    const struct {
        enum sumac_dtype dtype;
        const void *memory;
    } given[] = {
        {SUMAC_FLOAT16, float16},
        {SUMAC_BFLOAT16, bfloat16},
        {SUMAC_FLOAT32, numbers},
        {SUMAC_FLOAT64, float64}};
    for (size_t i = 0; i < 4; i++) {
        const struct sumac_delta delta = {
            .value = {
                .memory = (void *)(uintptr_t)given[i].memory,
                .dtype = given[i].dtype,
                .shape = {.rank = 1, .extent = {19}}}};
        assert_true(fabs(norm_of(&delta, 1) - sqrt(19 * 20 * 39 / 6)) <= 1e-12);
    }
}

static bool has_clock_2(void *context) { return ((const struct played *)context)->clock == 2; }

/* The clock goes with the commit, which may come later than the push is over. */
PLAYED_TEST(a_push_that_finishes_a_step_moves_the_clock)
{
    push(played, &(struct sumac_push_options){.finishes_step = true});
    push(played, NULL);
    push(played, &(struct sumac_push_options){.finishes_step = true});

    client_lock(&played->client);
    const bool moved =
        client_wait(&played->client, has_clock_2, played, client_now_us() + UINT64_C(60000000));
    client_unlock(&played->client);
    assert_true(moved);
    assert_int_equal(sumac_client_leave(&played->client, SUMAC_LEAVING_DONE, NULL), SUMAC_OK);
    assert_int_equal(played->leaves, 1);
    assert_true(played->left_done);
}

PLAYED_TEST(who_leaves_unfinished_says_so)
{
    assert_int_equal(sumac_client_leave(&played->client, SUMAC_LEAVING_UNFINISHED, NULL), SUMAC_OK);

    assert_int_equal(played->leaves, 1);
    assert_false(played->left_done);
    assert_int_equal(
        sumac_client_leave(&played->client, (enum sumac_leaving)7, NULL), SUMAC_INVALID_ARGUMENT);
}

PLAYED_TEST(weights_and_counts_that_make_no_sense_are_refused)
{
    static const double odd[] = {-1, INFINITY, NAN};
    struct sumac_push *made = NULL;
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        assert_int_equal(
            sumac_client_push(
                &played->client, &delta, 1, &(struct sumac_push_options){.weight = odd[i]}, &made,
                NULL),
            SUMAC_INVALID_ARGUMENT);
    struct sumac_error error = {0};
    assert_int_equal(
        sumac_client_push(
            &played->client, &delta, SUMAC_TRANSFER_VARIABLES_MAX + 1, NULL, &made, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "push of 65537 variables at once, and 65536 are the most");
    assert_null(made);
    assert_int_equal(played->parts, 0);
}

/* The session would refuse one more; so the client waits for one to be over. */
PLAYED_TEST(a_push_beyond_the_most_waits_for_one_to_be_over)
{
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};
    struct sumac_push *made = NULL;
    struct sumac_error error = {0};

    played->mute = true;
    for (int i = 0; i < SESSION_PUSHES_IN_FLIGHT_MAX; i++)
        assert_int_equal(
            sumac_client_push(&played->client, &delta, 1, NULL, &made, NULL), SUMAC_OK);
    played->client.timeout_ms = 200;
    const uint64_t before_us = client_now_us();

    assert_int_equal(
        sumac_client_push(&played->client, &delta, 1, NULL, &made, &error),
        SUMAC_RESOURCE_EXHAUSTED);

    assert_true(client_now_us() - before_us >= 200000);
    assert_int_equal(error.reason, SUMAC_REASON_TIMED_OUT);
    assert_non_null(strstr(error.text, " pushes are under way, and none was over within 200 ms"));
}

static void lose_state(struct rpc_call *call, const struct wire_received *received)
{
    (void)received;
    rpc_call_finish(call, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST, "a ps was restarted");
}

PLAYED_TEST(a_push_that_waits_for_room_fails_when_the_session_ends)
{
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};
    struct sumac_push *made = NULL, *extra = NULL;
    struct sumac_error error = {0};

    played->transfers[WIRE_TRANSFER_PUSH].message = lose_state; /* given */
    for (int i = 0; i < SESSION_PUSHES_IN_FLIGHT_MAX; i++)
        assert_int_equal(
            sumac_client_push(&played->client, &delta, 1, NULL, &made, NULL), SUMAC_OK);

    assert_int_equal(/* when, then */
                     sumac_client_push(&played->client, &delta, 1, NULL, &extra, &error),
                     SUMAC_DATA_LOSS);

    assert_int_equal(error.reason, SUMAC_REASON_STATE_LOST);
    assert_null(extra);
}

static uint64_t wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

PLAYED_TEST(a_push_says_when_it_was_made)
{
    const uint64_t before_us = wall_us();

    push(played, NULL);

    assert_in_range(played->started_at_us, before_us, wall_us());
}

PLAYED_TEST(a_wait_for_a_push_lasts_as_long_as_it_was_told_to)
{
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};
    struct sumac_push *made = NULL;

    played->mute = true;
    assert_int_equal(sumac_client_push(&played->client, &delta, 1, NULL, &made, NULL), SUMAC_OK);
    const uint64_t before_us = client_now_us();

    assert_int_equal(sumac_push_wait(made, 100, NULL), SUMAC_DEADLINE_EXCEEDED);

    assert_true(client_now_us() - before_us >= 100000);
    assert_false(sumac_push_done(made));
    struct sumac_client_facts facts;
    sumac_client_describe(&played->client, &facts);
    assert_int_equal(facts.pushes_in_flight, 1);
}

PLAYED_TEST(a_push_without_a_handle_is_cancelled_at_its_timeout)
{
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};
    struct sumac_error error;

    played->mute = true; /* given: the only ps, which alone knows the outcome, never says it */
    played->client.timeout_ms = 100;

    assert_int_equal(
        sumac_client_push(&played->client, &delta, 1, NULL, NULL, &error), SUMAC_DEADLINE_EXCEEDED);

    assert_non_null(
        strstr(error.text, "; it is cancelled, and no ps has said whether it is applied"));
    assert_int_equal(error.reason, SUMAC_REASON_TIMED_OUT);
    assert_true(played->cancelled);
}

static void *wait_for_pull(void *pull)
{
    static struct sumac_error error;

    return sumac_pull_wait(pull, 60000, &error) == SUMAC_OK ? NULL : &error;
}

PLAYED_TEST(a_pull_is_cancelled_while_another_thread_waits_for_it)
{
    float read = 0;
    const struct sumac_fetch fetch = {
        .variable = create(played, "w"), .into = {.memory = &read, .dtype = SUMAC_FLOAT32}};
    struct sumac_pull *made = NULL;
    pthread_t waiter;
    void *ended;

    played->mute = true;
    assert_int_equal(sumac_client_pull(&played->client, &fetch, 1, NULL, &made, NULL), SUMAC_OK);
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_pull, made), 0);
    for (uint32_t waiters = 0; waiters == 0;) {
        client_lock(&played->client);
        waiters = played->client.waiters;
        client_unlock(&played->client);
    }

    sumac_pull_cancel(made);

    assert_int_equal(pthread_join(waiter, &ended), 0);
    const struct sumac_error *const error = ended;
    assert_non_null(error);
    assert_int_equal(error->status, SUMAC_CANCELLED);
    assert_int_equal(error->reason, SUMAC_REASON_CANCELLED);
    assert_null(played->client.live_transfers.first);
}

/* Whatever a ps answers, it was heard from: of those that are waited for the silent one is named.
 */
PLAYED_TEST(every_answer_is_heard)
{
    uint64_t *const heard_us = &played->client.peers[0].heard_us;
    float read = 0;

    *heard_us = 0;
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};
    assert_true(*heard_us > 0); /* by a call */
    const struct sumac_fetch fetch = {
        .variable = delta.variable, .into = {.memory = &read, .dtype = SUMAC_FLOAT32}};
    *heard_us = 0;
    assert_int_equal(sumac_client_push(&played->client, &delta, 1, NULL, NULL, NULL), SUMAC_OK);
    assert_true(*heard_us > 0);
    *heard_us = 0;
    assert_int_equal(
        sumac_client_pull(&played->client, &fetch, 1, NULL, NULL, NULL), SUMAC_NOT_FOUND);
    assert_true(*heard_us > 0);
}

/* A ps that waits for other members names them when it is asked. If the ps does not answer, the
 * push waits for the ps itself. */
PLAYED_TEST(a_ps_that_does_not_say_who_is_missing_is_named)
{
    float read = 0;
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};
    const struct sumac_fetch fetch = {
        .variable = delta.variable, .into = {.memory = &read, .dtype = SUMAC_FLOAT32}};
    const struct sumac_push_options options = {.synchronous = true};
    struct sumac_push *made = NULL;
    struct sumac_error error = {0};

    assert_int_equal(/* given: both streams are greeted */
                     sumac_client_pull(&played->client, &fetch, 1, NULL, NULL, NULL),
                     SUMAC_NOT_FOUND);
    played->stages = played->mute = true;
    assert_int_equal(
        sumac_client_push(&played->client, &delta, 1, &options, &made, NULL), SUMAC_OK);

    assert_int_equal(sumac_push_wait(made, 1000, &error), SUMAC_DEADLINE_EXCEEDED); /* when */

    assert_non_null(
        strstr(error.text, "the synchronous push was not over within 1 s; it waits for ps 0 at "));
    assert_null(strstr(error.text, "pull"));
}

TEST(a_round_that_waits_names_the_other_tasks)
{
    static const struct {
        const char *config, *others;
    } rows[] = {
        {"{\"cluster\": {\"ps\": [\"PS\"], \"worker\": [\"w:1\", \"w:2\"]}, "
         "\"task\": {\"type\": \"worker\", \"index\": 1}}",
         ": it waits for worker 0; "},
        {"{\"cluster\": {\"ps\": [\"PS\"], \"worker\": [\"w:1\", \"w:2\"], \"chief\": [\"c:1\"]}, "
         "\"task\": {\"type\": \"worker\", \"index\": 1}}",
         ": it waits for one or more of chief 0, worker 0; "}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sumac_client_options options = {0};
        struct played *played = join_as(rows[i].config, &options);
        const struct sumac_collective_options collective_options = {.name = "sum"};
        float element[1] = {1};
        const struct sumac_tensor tensor =
            sumac_tensor_over(element, SUMAC_FLOAT32, SUMAC_SHAPE(1));
        struct sumac_collective *collective = NULL;
        struct sumac_error error = {0};

        played->mute = true; /* given */
        assert_int_equal(
            sumac_client_all_reduce(
                &played->client, &collective_options, SUMAC_REDUCE_SUM, &tensor, &collective,
                &error),
            SUMAC_OK);

        assert_int_equal(
            /* when */ sumac_collective_wait(collective, 50, &error), SUMAC_DEADLINE_EXCEEDED);

        if (strstr(error.text, rows[i].others) == NULL) /* then */
            fail_msg("\"%s\" does not say \"%s\"", error.text, rows[i].others);
        (void)end((void **)&played);
    }
}

/* What it was to carry is given back, and the error says why. */
PLAYED_TEST(what_is_refused_at_once_leaves_nothing_under_way)
{
    float read = 0;
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};
    const struct sumac_fetch fetch = {
        .variable = delta.variable, .into = {.memory = &read, .dtype = SUMAC_FLOAT32}};
    struct sumac_push *made = NULL;
    struct sumac_pull *begun = NULL;
    struct sumac_error errors[2] = {{SUMAC_OK, SUMAC_REASON_UNSPECIFIED, ""}};

    assert_int_equal(sumac_client_leave(&played->client, SUMAC_LEAVING_DONE, NULL), SUMAC_OK);

    const enum sumac_status pushed =
        sumac_client_push(&played->client, &delta, 1, NULL, &made, &errors[0]);
    const enum sumac_status pulled =
        sumac_client_pull(&played->client, &fetch, 1, NULL, &begun, &errors[1]);

    assert_int_not_equal(pushed, SUMAC_OK);
    assert_int_not_equal(pulled, SUMAC_OK);
    assert_int_equal(errors[0].status, pushed);
    assert_int_equal(errors[1].status, pulled);
    for (int i = 0; i < 2; i++)
        assert_string_not_equal(errors[i].text, "");
    assert_true(made == NULL && begun == NULL);
    assert_null(played->client.live_transfers.first);
}

static void assert_says(const struct sumac_error *error, const char *text)
{
    if (strstr(error->text, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error->text, text);
}

/* Which of many it is, of as many as there may be, and that there may not be one more. */
PLAYED_TEST(of_many_items_the_wrong_one_is_named)
{
    struct sumac_delta *const deltas = calloc(SUMAC_TRANSFER_VARIABLES_MAX + 1, sizeof *deltas);
    struct sumac_fetch *const fetches = calloc(SUMAC_TRANSFER_VARIABLES_MAX + 1, sizeof *fetches);
    float read = 0;
    struct sumac_push *made = NULL;
    struct sumac_pull *begun = NULL;
    struct sumac_error error = {0};
    const size_t most = SUMAC_TRANSFER_VARIABLES_MAX;

    deltas[0] = (struct sumac_delta){.variable = create(played, "w"), .value = one_value()};
    fetches[0] = (struct sumac_fetch){
        .variable = deltas[0].variable, .into = {.memory = &read, .dtype = SUMAC_FLOAT32}};
    assert_int_equal(
        sumac_client_push(&played->client, deltas, most, NULL, &made, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_says(&error, "push: item 1 has no variable");
    assert_int_equal(
        sumac_client_pull(&played->client, fetches, most, NULL, &begun, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_says(&error, "pull: item 1 has no variable");
    assert_int_equal(
        sumac_client_pull(&played->client, fetches, most + 1, NULL, &begun, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_says(&error, "pull of 65537 variables at once, and 65536 are the most");
    fetches[0].has_rows = true;
    assert_int_equal(
        sumac_client_pull(&played->client, fetches, 1, NULL, &begun, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_says(&error, "pull of rows of w, which is a scalar");
    assert_true(made == NULL && begun == NULL);
    free(deltas);
    free(fetches);
}

PLAYED_TEST(nothing_is_waited_for_that_was_never_begun)
{
    struct sumac_push *made = NULL;
    struct sumac_pull *begun = NULL;
    struct sumac_error error = {0};

    assert_true(sumac_push_done(NULL));
    assert_true(sumac_pull_done(NULL));
    assert_int_equal(sumac_push_wait(NULL, 0, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_push_wait: push is NULL");
    assert_int_equal(sumac_pull_wait(NULL, 0, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_pull_wait: pull is NULL");
    assert_int_equal(
        sumac_client_push(&played->client, NULL, 1, NULL, &made, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_push: deltas is NULL");
    assert_int_equal(
        sumac_client_pull(&played->client, NULL, 1, NULL, &begun, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_pull: fetches is NULL");
    assert_int_equal(/* without a handle it waits, here for nothing */
                     sumac_client_push(&played->client, NULL, 0, NULL, NULL, &error), SUMAC_OK);
    assert_int_equal(sumac_client_pull(&played->client, NULL, 0, NULL, NULL, &error), SUMAC_OK);
    assert_int_equal(sumac_client_push(NULL, NULL, 0, NULL, &made, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_push: client is NULL");
    assert_int_equal(
        sumac_client_pull(NULL, NULL, 0, NULL, &begun, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_pull: client is NULL");
    error.text[0] = '\0';
    enum sumac_status status = sumac_client_push(&played->client, NULL, 0, NULL, &made, &error);
    if (status == SUMAC_OK) /* of nothing */
        status = sumac_push_wait(made, 0, &error);
    assert_int_not_equal(status, SUMAC_DEADLINE_EXCEEDED);
    assert_null(strstr(error.text, "is NULL"));
}

/* ---- pulls */

static void pull(struct played *played, const struct sumac_pull_options *options)
{
    struct sumac_error error = {0};
    float read = 0;
    const struct sumac_fetch fetch = {
        .variable = create(played, "w"), .into = {.memory = &read, .dtype = SUMAC_FLOAT32}};

    assert_int_equal(
        sumac_client_pull(&played->client, &fetch, 1, options, NULL, &error), SUMAC_NOT_FOUND);
    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_VARIABLE);
}

PLAYED_TEST(only_a_contribution_may_weigh_nothing)
{
    static const struct sumac_push_options wrong[] = {
        {.zero_weight = true}, {.zero_weight = true, .synchronous = true, .weight = 2}};
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = one_value()};
    struct sumac_push *made = NULL;
    struct sumac_error error = {0};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(
            sumac_client_push(&played->client, &delta, 1, &wrong[i], &made, &error),
            SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "zero_weight beside weight"));
    }
    push(played, &(struct sumac_push_options){.synchronous = true});
    assert_true(played->weight >= 1 && played->weight <= 1);

    push(played, &(struct sumac_push_options){.synchronous = true, .zero_weight = true});

    assert_true(played->weight >= 0 && played->weight <= 0);
}

PLAYED_TEST(a_pull_says_how_long_it_waits_and_behind_which_push)
{
    push(played, NULL);
    push(played, NULL);

    pull(played, NULL);
    assert_in_range(played->pull_timeout_ms, 30000, 60000); /* what is left of the client's */
    assert_int_equal(played->after_sequence, 2);

    pull(played, &(struct sumac_pull_options){.timeout_ms = 7000, .skip_own_pushes = true});
    assert_in_range(played->pull_timeout_ms, 1, 7000);
    assert_int_equal(played->after_sequence, 0);
}

PLAYED_TEST(a_pull_says_how_far_others_may_be_behind)
{
    push(played, &(struct sumac_push_options){.finishes_step = true});
    push(played, &(struct sumac_push_options){.finishes_step = true});

    pull(played, NULL);
    assert_false(played->bounded);

    pull(played, &(struct sumac_pull_options){.bounded = true, .lag_max = 7});
    assert_true(played->bounded);
    assert_int_equal(played->lag_max, 7);
    assert_int_equal(played->pull_clock, 2);
}

PLAYED_TEST(a_pull_says_at_which_step_and_the_facts_which_is_the_newest)
{
    struct sumac_client_facts facts;

    pull(played, NULL);
    assert_int_equal(played->at_step, 0);
    push(played, &(struct sumac_push_options){.synchronous = true});
    played->newest_step = 12;
    pull(played, &(struct sumac_pull_options){.at_step = 7});
    assert_int_equal(played->at_step, 7);

    sumac_client_describe(&played->client, &facts);

    assert_int_equal(facts.newest_step, 12);
    assert_int_equal(facts.contributed_step, 1);
}

PLAYED_TEST(a_lag_that_says_nothing_is_refused)
{
    float read = 0;
    const struct sumac_fetch fetch = {
        .variable = create(played, "w"), .into = {.memory = &read, .dtype = SUMAC_FLOAT32}};
    struct sumac_pull *begun = NULL;
    struct sumac_error error = {0};

    assert_int_equal(
        sumac_client_pull(
            &played->client, &fetch, 1, &(struct sumac_pull_options){.lag_max = 2}, &begun, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "pull with lag_max 2, which counts only with `bounded`");

    played->client.reader = true;
    assert_int_equal(
        sumac_client_pull(
            &played->client, &fetch, 1, &(struct sumac_pull_options){.bounded = true}, &begun,
            &error),
        SUMAC_INVALID_ARGUMENT);
    played->client.reader = false;
    assert_string_equal(
        error.text,
        "pull with bounded lag of a reader, which has no steps: join, or pull without it");
    assert_null(begun);
}

/* However short the client's own time is: it looks again until the pull's is over. */
PLAYED_TEST(a_pull_that_is_waited_for_is_over_at_its_own_time)
{
    float read = 0;
    const struct sumac_fetch fetch = {
        .variable = create(played, "w"), .into = {.memory = &read, .dtype = SUMAC_FLOAT32}};
    const struct sumac_pull_options options = {.timeout_ms = 300};
    struct sumac_error error = {0};

    played->mute = true;
    played->client.timeout_ms = 20;
    const uint64_t before_us = client_now_us();

    const enum sumac_status status =
        sumac_client_pull(&played->client, &fetch, 1, &options, NULL, &error);

    assert_true(client_now_us() - before_us >= 300000);
    assert_int_equal(status, SUMAC_UNAVAILABLE);
    assert_int_equal(error.status, SUMAC_UNAVAILABLE);
    assert_string_not_equal(error.text, "");
    assert_null(played->client.live_transfers.first);
}

TEST(as_many_ps_as_are_the_most_are_taken)
{
    static char names[SESSION_PS_MAX + 1][16];
    static const char *addresses[SESSION_PS_MAX + 1];
    struct played *played = play();
    struct sumac_error error = {0};
    struct sumac_client_options options = {
        .ps_addresses = addresses, .ps_count = SESSION_PS_MAX + 1, .observer = true};

    for (uint32_t i = 0; i <= SESSION_PS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "h:%u", i + 1);
        addresses[i] = names[i];
    }
    client_lock(&played->client);
    const enum sumac_status refused = client_make_session(&played->client, &options, &error);
    options.ps_count--;
    const enum sumac_status taken = client_make_session(&played->client, &options, NULL);
    client_unlock(&played->client);

    assert_int_equal(refused, SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "the cluster has 257 ps, and 256 are the most");
    assert_int_equal(taken, SUMAC_OK);
    (void)end((void **)&played);
}

/* It knows neither how many there are. */
TEST(who_was_told_only_itself_does_not_name_all)
{
    struct played *played = play();
    struct sumac_cluster cluster;
    struct sumac_client_facts facts;
    char text[256];

    snprintf(
        text, sizeof text,
        "{\"cluster\": {\"ps\": [\"%s\"], \"worker\": [\"w:1\", \"w:2\"]}, "
        "\"task\": {\"type\": \"worker\", \"index\": 1}}",
        played->address);
    assert_int_equal(sumac_cluster_parse(text, NULL, &cluster, NULL), SUMAC_OK);
    cluster.told_only_itself = true;
    const struct sumac_client_options options = {.cluster = &cluster};

    join(played, &options);

    sumac_cluster_deinit(&cluster);
    assert_true(played->partial);
    played->client.staleness_mean = -1; /* no push has said its own yet */
    sumac_client_describe(&played->client, &facts);
    assert_int_equal(facts.member_count, 0);
    assert_true(facts.staleness_mean >= 0);
    (void)end((void **)&played);
}
