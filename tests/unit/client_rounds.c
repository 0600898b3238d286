/* SPDX-License-Identifier: Apache-2.0 */
/* client_rounds.c -- rounds of a collective: what a ps hears of a contribution, and what its caller
 * gets of the answer. */
#include "assert_number.h"
#include "client_played.h"
#include "collective_places.h"
#include "members.h"
#include "session_talk.h"

#define LARGE 5000u /* elements: their result does not come beside the contribution */

/* The last contribution, the pull beside it, and the answer of the ps. */
struct round {
    struct played *played;
    char name[32], pulled_name[32];
    uint64_t number, pulled_number;
    uint64_t tasks[4], attempts[4], shape[4], bytes[4], offset_bytes[4];
    size_t task_count, attempt_count, rank, piece_count;
    unsigned operation, data_type;
    uint32_t axis, root, timeout_ms, pull_timeout_ms;
    bool split, beside;
    double weight;
    uint64_t collectives_through;
    uint8_t payload[8 * LARGE];
    size_t payload_bytes;

    bool says_nothing_of_push, says_nothing_of_pull, refuses, fails;
    uint64_t late_us; /* it answers no earlier */
    uint64_t result_shape[2];
    wire_collective_result described;
    float result[LARGE];
    size_t result_bytes;

    bool greets[2]; /* not said yet, of each stream */
    uint64_t sequence, pulled;
};

static void note_part(struct round *round, const wire_part *part)
{
    const wire_collective *collective = part->collective;

    round->sequence = part->sequence;
    round->weight = part->weight;
    (void)snprintf(
        round->name, sizeof round->name, "%.*s", (int)collective->name.len,
        (const char *)collective->name.data);
    round->number = collective->round;
    round->task_count = collective->n_tasks;
    round->attempt_count = collective->n_attempts;
    round->rank = collective->n_shape;
    for (size_t i = 0; i < collective->n_tasks && i < 4; i++)
        round->tasks[i] = collective->tasks[i];
    for (size_t i = 0; i < collective->n_attempts && i < 4; i++)
        round->attempts[i] = collective->attempts[i];
    for (size_t i = 0; i < collective->n_shape && i < 4; i++)
        round->shape[i] = collective->shape[i];
    round->operation = collective->operation;
    round->data_type = collective->data_type;
    round->axis = collective->axis;
    round->root = collective->root;
    round->timeout_ms = collective->timeout_ms;
    round->split = collective->split;
    round->piece_count = part->n_pieces;
    for (size_t i = 0; i < part->n_pieces && i < 4; i++) {
        round->bytes[i] = part->pieces[i]->bytes;
        round->offset_bytes[i] = part->pieces[i]->offset_bytes;
    }
}

static void note_pull(struct round *round, const wire_pull_request *request, bool beside)
{
    round->beside = beside;
    round->pulled = request->request;
    round->pull_timeout_ms = request->timeout_ms;
    round->pulled_number = request->collective->round;
    (void)snprintf(
        round->pulled_name, sizeof round->pulled_name, "%.*s", (int)request->collective->name.len,
        (const char *)request->collective->name.data);
}

static bool has_result(const struct round *round)
{
    return round->pulled != 0 && !round->says_nothing_of_pull && !round->refuses;
}

static wire_pull_answer answer_of(struct round *round)
{
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;

    answer.request = round->pulled;
    answer.last = true;
    if (round->fails) {
        answer.status = SUMAC_UNAVAILABLE;
        answer.reason = (Sumac__V1__Reason)SUMAC_REASON_TIMED_OUT;
        answer.message = (char *)(uintptr_t) "worker 0 is missing";
    } else {
        answer.collective = &round->described;
    }
    round->pulled = 0;
    return answer;
}

static void fill_greeting(wire_greeting *greeting)
{
    *greeting = (wire_greeting)WIRE_GREETING_INIT;
    greeting->epoch = 1;
    greeting->ps_incarnation = 100;
    greeting->cluster_id = 42;
    greeting->staging_grant_bytes = 1000000;
}

static void say_of_contribution(struct rpc_call *call)
{
    struct round *const round = ((struct played *)rpc_call_user(call))->own;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    wire_greeting greeting;
    wire_done done = WIRE_DONE_INIT, *dones[] = {&done};
    wire_refused refused = WIRE_REFUSED_INIT, *refusals[] = {&refused};
    wire_pull_answer pulled, *pulls[] = {&pulled};

    if (!rpc_call_writable(call) || (!round->greets[0] && round->sequence == 0))
        return;
    while (client_now_us() < round->late_us)
        continue;
    fill_greeting(&greeting);
    answer.greeting = round->greets[0] ? &greeting : NULL;
    round->greets[0] = false;
    refused.sequence = done.sequence = round->sequence;
    done.voided = round->refuses; /* it carried its own commit */
    refused.status = SUMAC_INVALID_ARGUMENT;
    refused.reason = (Sumac__V1__Reason)SUMAC_REASON_WRONG_SHAPE;
    refused.message = (char *)(uintptr_t) "another shape than worker 0 has";
    answer.done = dones;
    answer.refused = refusals;
    answer.n_refused = round->sequence != 0 && round->refuses;
    answer.n_done = round->sequence != 0 && !round->says_nothing_of_push;
    answer.pulled = pulls;
    if (round->beside && has_result(round)) {
        pulled = answer_of(round);
        if (!round->fails)
            pulled.payload =
                (wire_bytes){.data = (void *)round->result, .len = round->result_bytes};
        answer.n_pulled = 1;
    }
    round->sequence = 0;
    rpc_call_send(call, &answer.base, NULL, 0);
}

static void hear_contribution(struct rpc_call *call, const struct wire_received *received)
{
    struct round *const round = ((struct played *)rpc_call_user(call))->own;
    const wire_push_request *request = (const wire_push_request *)received->message;

    round->greets[0] |= request->hello != NULL;
    if (request->n_parts > 0) {
        note_part(round, request->parts[0]);
        round->payload_bytes = 0;
    }
    for (size_t i = 0; i < received->payload_spans; i++) {
        const struct span *span = &received->payload[i];
        if (span->bytes > sizeof round->payload - round->payload_bytes)
            continue;
        memcpy(round->payload + round->payload_bytes, span->data, span->bytes);
        round->payload_bytes += span->bytes;
    }
    if (request->commit != NULL)
        round->collectives_through = request->commit->collectives_through;
    if (request->n_pulls > 0)
        note_pull(round, request->pulls[0], true);
    say_of_contribution(call);
}

static void say_result(struct rpc_call *call)
{
    struct round *const round = ((struct played *)rpc_call_user(call))->own;
    const bool answers = has_result(round);
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    wire_greeting greeting;

    if (!rpc_call_writable(call) || (!round->greets[1] && !answers))
        return;
    if (answers)
        answer = answer_of(round);
    fill_greeting(&greeting);
    answer.greeting = round->greets[1] ? &greeting : NULL;
    round->greets[1] = false;
    const struct rpc_payload half = {
        .bytes = {.data = (const void *)round->result, .bytes = round->result_bytes / 4}};
    struct rpc_payload payload[4] = {half, half, half, half};
    for (uint32_t i = 0; i < 4; i++)
        payload[i].bytes.data += i * half.bytes.bytes;
    rpc_call_send(call, &answer.base, payload, answers && !round->fails ? 4 : 0);
}

static void hear_pull(struct rpc_call *call, const struct wire_received *received)
{
    struct round *const round = ((struct played *)rpc_call_user(call))->own;
    const wire_pull_request *request = (const wire_pull_request *)received->message;

    round->greets[1] |= request->hello != NULL;
    if (request->request != 0 && !request->cancel)
        note_pull(round, request, false);
    say_result(call);
}

/* Worker 1 of chief 0, worker 0 and worker 1. The ps answers with the floats 0.5, 1.5, … */
static int open_round(void **state)
{
    struct sumac_client_options options = {0};
    struct round *const round = calloc(1, sizeof *round);

    round->played = join_as(
        "{\"cluster\": {\"ps\": [\"PS\"], \"worker\": [\"w:1\", \"w:2\"], \"chief\": [\"c:1\"]}, "
        "\"task\": {\"type\": \"worker\", \"index\": 1}}",
        &options);
    round->played->own = round;
    round->played->transfers[WIRE_TRANSFER_PUSH].message = hear_contribution;
    round->played->transfers[WIRE_TRANSFER_PUSH].writable = say_of_contribution;
    round->played->transfers[WIRE_TRANSFER_PULL].message = hear_pull;
    round->played->transfers[WIRE_TRANSFER_PULL].writable = say_result;
    for (uint32_t i = 0; i < LARGE; i++)
        round->result[i] = (float)i + 0.5f;
    round->described = (wire_collective_result)WIRE_COLLECTIVE_RESULT_INIT;
    round->described.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    round->described.shape = round->result_shape;
    round->described.n_shape = 1;
    round->result_shape[0] = 2;
    round->result_bytes = 2 * sizeof(float);
    *state = round;
    return 0;
}

static int close_round(void **state)
{
    struct round *const round = *state;

    (void)end((void **)&round->played);
    free(round);
    return 0;
}

/* ---- what is said */

static const float two[] = {3, 4};

static struct sumac_tensor tensor_of(const void *elements)
{
    return sumac_tensor_over((void *)(uintptr_t)elements, SUMAC_FLOAT32, SUMAC_SHAPE(2));
}

/* Contribute two elements, and wait. */
static void
reduce_with(struct round *round, enum sumac_reduce_op op, struct sumac_collective_options options)
{
    float sum[2] = {0};
    const struct sumac_tensor given = tensor_of(two), into = tensor_of(sum);
    struct sumac_error error = {0};

    options.into = &into;
    if (sumac_client_all_reduce(&round->played->client, &options, op, &given, NULL, &error) !=
        SUMAC_OK)
        fail_msg("%s", error.text);
    assert_number_equal(sum[0], 0.5);
    assert_number_equal(sum[1], 1.5);
}

#define reduce(round, op, ...)                                                                     \
    reduce_with(round, SUMAC_REDUCE_##op, (struct sumac_collective_options){__VA_ARGS__})

/* In place. Gives *collective, unless it is NULL. */
static enum sumac_status
sum_two(struct round *round, struct sumac_collective **collective, struct sumac_error *error)
{
    static float sum[2];
    const struct sumac_collective_options options = {.name = "s"};
    const struct sumac_tensor given = tensor_of(sum);

    memcpy(sum, two, sizeof two);
    return sumac_client_all_reduce(
        &round->played->client, &options, SUMAC_REDUCE_SUM, &given, collective, error);
}

#define ROUND_TEST(name) FIXTURE_TEST(name, struct round *const round, open_round, close_round)

ROUND_TEST(a_contribution_says_what_its_options_say)
{
    reduce(round, SUM, .name = "grads", .round = 7, .timeout_ms = 9000);

    assert_string_equal(round->name, "grads");
    assert_string_equal(round->pulled_name, "grads");
    assert_int_equal(round->number, 7);
    assert_int_equal(round->pulled_number, 7);
    assert_int_equal(round->task_count, 3);
    assert_memory_equal(round->tasks, ((uint64_t[]){0, 1, 3}), 3 * sizeof(uint64_t));
    assert_int_equal(round->attempt_count, 0);
    assert_int_equal(round->operation, COLLECTIVE_SUM);
    assert_int_equal(round->data_type, SUMAC_FLOAT32);
    assert_int_equal(round->rank, 1);
    assert_int_equal(round->shape[0], 2);
    assert_int_equal(round->timeout_ms, 9000);
    assert_in_range(round->pull_timeout_ms, 12000, 14000); /* the ps's verdict comes by then */
    assert_number_equal(round->weight, 1);
    assert_false(round->split);
    assert_int_equal(round->payload_bytes, sizeof two);
    assert_memory_equal(round->payload, two, sizeof two);

    reduce(round, MEAN, .name = "mean", .weight = 2.5);
    assert_int_equal(round->operation, COLLECTIVE_MEAN);
    assert_number_equal(round->weight, 2.5);
    assert_true(round->beside);
    assert_int_equal(round->collectives_through, 1); /* nothing more is wanted of the first */
    assert_int_equal(round->timeout_ms, 59000);      /* of the client's 60 s */
    reduce(round, MEAN, .name = "mean", .zero_weight = true);
    assert_number_equal(round->weight, 0);
    reduce(round, MIN, .name = "least");
    assert_int_equal(round->operation, COLLECTIVE_MIN);
    reduce(round, MAX, .name = "long", .timeout_ms = UINT32_MAX);
    assert_int_equal(round->operation, COLLECTIVE_MAX);
    assert_in_range(round->pull_timeout_ms, WIRE_ROUND_MS_MAX, WIRE_ROUND_MS_MAX + 5000);
    const struct sumac_collective_options all = {.name = "all", .axis = 3};
    const struct sumac_tensor given = tensor_of(two);
    assert_int_equal(
        sumac_client_all_gather(&round->played->client, &all, &given, NULL, NULL, NULL), SUMAC_OK);
    assert_int_equal(round->axis, 3);
    assert_null(round->played->client.live_transfers.first);
}

/* Each name has its own count. A call that is refused at once counts no round. */
ROUND_TEST(the_client_counts_the_rounds_of_each_name)
{
    struct sumac_collective *collective = NULL;

    static const struct {
        const char *name;
        uint64_t given, number;
    } rows[] = {{"a", 0, 1},  {"b", 0, 1}, {"a", 0, 2}, {"a", 40, 40},
                {"a", 0, 41}, {"c", 7, 7}, {"c", 0, 8}, {"b", 0, 2}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        reduce(round, SUM, .name = rows[i].name, .round = rows[i].given);
        assert_int_equal(round->number, rows[i].number);
        assert_int_equal(round->pulled_number, rows[i].number);
        assert_int_equal(/* refused at once */
                         sumac_client_all_reduce(
                             &round->played->client,
                             &(struct sumac_collective_options){.name = rows[i].name, .axis = 1},
                             SUMAC_REDUCE_SUM, &(struct sumac_tensor){.memory = NULL}, &collective,
                             NULL),
                         SUMAC_INVALID_ARGUMENT);
    }
}

ROUND_TEST(a_broadcast_has_the_bytes_of_its_root)
{
    const char *const jobs[] = {"chief", "worker"};
    const struct sumac_collective_options options = {.name = "b"};

    for (uint32_t i = 0; i < 2; i++) {
        float copied[2] = {3, 4};
        const struct sumac_tensor value = tensor_of(copied);

        assert_int_equal(
            sumac_client_broadcast(
                &round->played->client, &options, (struct sumac_member){jobs[i], i}, &value, NULL,
                NULL),
            SUMAC_OK);

        assert_number_equal(copied[0], 0.5); /* in place */
        assert_number_equal(copied[1], 1.5);
        assert_int_equal(round->operation, COLLECTIVE_BROADCAST);
        assert_int_equal(round->root, 2 * i); /* its place among the three */
        assert_int_equal(round->piece_count, 1);
        assert_int_equal(round->payload_bytes, i * sizeof two);
    }
}

ROUND_TEST(a_round_of_certain_attempts_names_them)
{
    static const uint64_t attempts[] = {4, 0, 3};
    const struct sumac_collective_options options = {.name = "s", .round = 1};
    float into[2];
    struct client_contribution given = {
        .operation = COLLECTIVE_MAX, .value = tensor_of(into), .attempts = attempts};
    struct sumac_collective *collective = NULL;

    assert_int_equal(
        client_contribute(&round->played->client, &options, &given, &collective, NULL), SUMAC_OK);
    assert_int_equal(sumac_collective_wait(collective, 0, NULL), SUMAC_OK);

    assert_int_equal(round->attempt_count, 3);
    assert_memory_equal(round->attempts, attempts, sizeof attempts);
    assert_int_equal(round->timeout_ms, 0);
    assert_in_range(round->pull_timeout_ms, 60000, 65000);
}

/* ---- what comes back */

ROUND_TEST(what_is_gathered_has_its_own_shape)
{
    const struct sumac_collective_options options = {.name = "rows"};
    const struct sumac_tensor given = tensor_of(two);
    struct sumac_collective_result described = {.buffer = NULL};

    round->result_shape[0] = 3;
    round->result_shape[1] = 2;
    round->described.n_shape = 2;
    round->result_bytes = 6 * sizeof(float);

    assert_int_equal(
        sumac_client_all_gather(&round->played->client, &options, &given, &described, NULL, NULL),
        SUMAC_OK);

    assert_int_equal(round->operation, COLLECTIVE_GATHER);
    assert_int_equal(described.value.dtype, SUMAC_FLOAT32);
    assert_int_equal(described.value.shape.rank, 2);
    assert_int_equal(described.value.shape.extent[0], 3);
    assert_int_equal(described.value.shape.extent[1], 2);
    assert_memory_equal(sumac_tensor_data(&described.value), round->result, round->result_bytes);
    assert_int_equal(described.indices.shape.rank, 0);
    sumac_buffer_unref(described.buffer);
    assert_null(round->played->client.live_transfers.first);
}

ROUND_TEST(rows_that_are_concatenated_come_behind_their_indices)
{
    static int64_t indices[] = {5, 9}, all[] = {5, 9, 1};
    const struct sumac_collective_options options = {.name = "rows"};
    const struct sumac_indexed_slices given = {
        .values = tensor_of(two),
        .indices = sumac_tensor_over(indices, SUMAC_INT64, SUMAC_SHAPE(2))};
    struct sumac_collective_result described = {.buffer = NULL};

    round->result_shape[0] = 3;
    memcpy(round->result, all, sizeof all);
    memcpy(&round->result[6], (float[]){1, 2, 3}, 3 * sizeof(float));
    round->result_bytes = sizeof all + 3 * sizeof(float);

    assert_int_equal(
        sumac_client_concatenate(&round->played->client, &options, &given, &described, NULL, NULL),
        SUMAC_OK);

    assert_int_equal(round->piece_count, 2);
    assert_int_equal(round->bytes[0], sizeof indices);
    assert_int_equal(round->bytes[1], sizeof two);
    assert_int_equal(round->offset_bytes[0], 0);
    assert_int_equal(round->offset_bytes[1], sizeof indices);
    assert_int_equal(round->payload_bytes, sizeof indices + sizeof two);
    assert_memory_equal(round->payload, indices, sizeof indices);
    assert_memory_equal(round->payload + sizeof indices, two, sizeof two);
    assert_int_equal(described.indices.dtype, SUMAC_INT64);
    assert_int_equal(described.indices.shape.extent[0], 3);
    assert_int_equal(described.value.shape.extent[0], 3);
    assert_memory_equal(sumac_tensor_data(&described.indices), all, sizeof all);
    assert_memory_equal(
        sumac_tensor_data(&described.value), ((float[]){1, 2, 3}), 3 * sizeof(float));
    sumac_buffer_unref(described.buffer);
}

/* Its bytes are lent to gRPC, and its result has a pull stream. */
ROUND_TEST(a_large_contribution_is_given_back_and_its_result_comes_by_itself)
{
    static float value[LARGE], into[LARGE];
    const struct sumac_tensor sum = sumac_tensor_over(into, SUMAC_FLOAT32, SUMAC_SHAPE(LARGE)),
                              given = sumac_tensor_over(value, SUMAC_FLOAT32, SUMAC_SHAPE(LARGE));
    const struct sumac_collective_options options = {.name = "large", .into = &sum};

    for (uint32_t i = 0; i < LARGE; i++)
        value[i] = (float)i;
    round->result_shape[0] = LARGE;
    round->result_bytes = sizeof into;

    assert_int_equal(
        sumac_client_all_reduce(
            &round->played->client, &options, SUMAC_REDUCE_SUM, &given, NULL, NULL),
        SUMAC_OK);

    assert_false(round->beside);
    assert_int_equal(round->payload_bytes, sizeof value);
    assert_memory_equal(round->payload, value, sizeof value);
    assert_memory_equal(into, round->result, sizeof into);
    assert_null(round->played->client.live_transfers.first);
}

/* ---- how it ends otherwise */

ROUND_TEST(a_contribution_that_is_refused_waits_for_no_result)
{
    struct sumac_error error = {0};

    round->refuses = true;

    assert_int_equal(sum_two(round, NULL, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_WRONG_SHAPE);
    assert_non_null(strstr(error.text, "another shape than worker 0 has"));
    assert_null(round->played->client.live_transfers.first);
    assert_null(round->played->client.collectives.first);
}

/* The ps decides when the round is over, however short the client's own time is. */
ROUND_TEST(a_round_that_is_waited_for_is_over_at_its_own_time)
{
    round->played->client.timeout_ms = 1;
    round->late_us = client_now_us() + 20000;

    reduce(round, SUM, .name = "s", .timeout_ms = 9000);

    assert_true(client_now_us() >= round->late_us);
}

ROUND_TEST(a_round_that_fails_says_why)
{
    struct sumac_error error = {0};

    round->fails = true;

    for (int i = 0; i < 2; i++)
        assert_int_equal(sum_two(round, NULL, i == 0 ? NULL : &error), SUMAC_UNAVAILABLE);

    assert_int_equal(error.reason, SUMAC_REASON_TIMED_OUT);
    assert_non_null(strstr(error.text, "worker 0 is missing"));
    assert_null(round->played->client.live_transfers.first);
}

/* Both the contribution and its result are to be over. */
ROUND_TEST(a_wait_for_a_round_lasts_as_long_as_it_was_told_to)
{
    for (int i = 1; i < 4; i++) {
        struct sumac_collective *collective = NULL;
        round->says_nothing_of_push = (i & 1) != 0;
        round->says_nothing_of_pull = (i & 2) != 0;
        assert_int_equal(sum_two(round, &collective, NULL), SUMAC_OK);
        const uint64_t began_us = client_now_us();

        assert_int_equal(sumac_collective_wait(collective, 100, NULL), SUMAC_DEADLINE_EXCEEDED);

        assert_in_range(client_now_us() - began_us, 100000, REPORT_US - 1);
        assert_false(sumac_collective_done(collective));
    }
}

/* With every number of bytes for each of its transfers until there are enough. */
ROUND_TEST(what_cannot_begin_leaves_nothing_under_way)
{
    struct sumac_client *const client = &round->played->client;
    float into[2];
    int64_t indices[2] = {0};
    struct client_contribution given = {
        .value = tensor_of(into),
        .indices = sumac_tensor_over(indices, SUMAC_INT64, SUMAC_SHAPE(2))};
    const struct sumac_collective_options options = {.name = "s"};
    struct sumac_collective *collective = NULL;
    struct sumac_error error = {0};

    assert_int_equal(sumac_client_leave(client, SUMAC_LEAVING_DONE, NULL), SUMAC_OK);
    client_lock(client);
    struct transfer *const transfers[] = {transfer_take(client), transfer_take(client)};
    transfer_give(transfers[0]);
    transfer_give(transfers[1]);
    client_unlock(client);
    for (int sums = 0; sums < 2; sums++) {
        enum sumac_status status = SUMAC_RESOURCE_EXHAUSTED;
        size_t bytes = 0;
        given.operation = sums ? COLLECTIVE_SUM : COLLECTIVE_CONCATENATE;
        for (; status == SUMAC_RESOURCE_EXHAUSTED && bytes < 8192; bytes += 16) {
            arena_reset_to(&transfers[0]->arena, bytes);
            arena_reset_to(&transfers[1]->arena, bytes);

            status = client_contribute(client, &options, &given, &collective, &error);

            assert_null(client->live_transfers.first);
            assert_null(client->collectives.first);
            assert_string_equal(
                error.text, status == SUMAC_RESOURCE_EXHAUSTED
                                ? "no memory for round 1 of collective s"
                                : "the session has left; open another client");
        }
        assert_int_equal(status, SUMAC_FAILED_PRECONDITION);
        assert_int_equal(error.status, status);
        assert_true(bytes > sizeof(wire_collective) + 8 * sizeof(struct session_piece));
    }
    assert_null(collective);
}

/* ---- over several ps */

enum { COUNT = 262145 }; /* one more than 1 MiB has */
static float large[COUNT], large_into[COUNT];
static const uint64_t first[] = {0, 87381, 174763, COUNT}; /* on each of three ps */

/* The result has half the bytes of the contribution, at each place. */
static void assert_halves_come_back(struct sumac_client *client)
{
    const struct sumac_tensor given = sumac_tensor_over(large, SUMAC_FLOAT32, SUMAC_SHAPE(COUNT)),
                              halves =
                                  sumac_tensor_over(large_into, SUMAC_FLOAT16, SUMAC_SHAPE(COUNT));
    const struct sumac_collective_options options = {.name = "h", .into = &halves};
    struct sumac_collective *collective = NULL;

    assert_int_equal(
        sumac_client_all_reduce(client, &options, SUMAC_REDUCE_SUM, &given, &collective, NULL),
        SUMAC_OK);

    struct transfer *const pull = client->live_transfers.first, *const push = pull->among_live.next;
    for (uint32_t ps = 0; ps < 3; ps++) {
        assert_ptr_equal(push->pieces[ps].data, &large[first[ps]]);
        assert_ptr_equal(pull->pieces[ps].data, (uint16_t *)(void *)large_into + first[ps]);
        assert_int_equal(pull->pieces[ps].bytes, push->pieces[ps].bytes / 2);
    }
}

/* What is small, and what is not arithmetic, meets at its home. */
TEST(a_large_contribution_is_split_over_all_ps)
{
    float *const value = large, *const into = large_into;
    const struct sumac_tensor given = sumac_tensor_over(value, SUMAC_FLOAT32, SUMAC_SHAPE(COUNT)),
                              sum = sumac_tensor_over(into, SUMAC_FLOAT32, SUMAC_SHAPE(COUNT));
    const struct sumac_collective_options options = {.name = "s", .into = &sum};
    struct sumac_client client = {
        .wake_us = NEVER_US, .peer_count = 3, .log = drop_line, .own_task = 1};
    uint64_t members[] = {1};
    struct talk talk;
    struct sumac_collective *collective = NULL;

    round_numbers_init(&client.collective_rounds);
    client_note_process(&client);
    client.member_tasks = members;
    client.member_task_count = 1;
    talk_open(&talk, 3);
    for (uint32_t ps = 0; ps < 3; ps++)
        client.peers[ps].address = ""; /* none is called */
    client.session = talk.session;

    client_lock(&client);
    struct transfer *const transfers[] = {transfer_take(&client), transfer_take(&client)};
    transfer_give(transfers[0]);
    transfer_give(transfers[1]);
    client_unlock(&client);
    enum sumac_status status = SUMAC_RESOURCE_EXHAUSTED;
    for (size_t bytes = 0; status == SUMAC_RESOURCE_EXHAUSTED && bytes < 8192; bytes += 16) {
        arena_reset_to(&transfers[0]->arena, bytes);
        arena_reset_to(&transfers[1]->arena, bytes);
        status =
            sumac_client_all_reduce(&client, &options, SUMAC_REDUCE_SUM, &given, &collective, NULL);
    }
    assert_int_equal(status, SUMAC_OK);

    struct transfer *const pull = client.live_transfers.first, *const push = pull->among_live.next;
    assert_int_equal(push->piece_count, 3);
    assert_int_equal(pull->piece_count, 3);
    for (uint32_t ps = 0; ps < 3; ps++) {
        assert_int_equal(push->pieces[ps].ps, ps);
        assert_int_equal(pull->pieces[ps].ps, ps);
        assert_ptr_equal(push->pieces[ps].data, &value[first[ps]]);
        assert_ptr_equal(pull->pieces[ps].data, &into[first[ps]]);
        assert_int_equal(push->pieces[ps].bytes, (first[ps + 1] - first[ps]) * sizeof(float));
        assert_int_equal(pull->pieces[ps].bytes, push->pieces[ps].bytes);
    }
    assert_halves_come_back(&client);
    const struct sumac_tensor small = tensor_of(two), small_sum = tensor_of(into);
    const struct sumac_collective_options sums = {.name = "s", .into = &small_sum},
                                          gathers = {.name = "g"};
    assert_int_equal(
        sumac_client_all_reduce(&client, &sums, SUMAC_REDUCE_SUM, &small, &collective, NULL),
        SUMAC_OK);
    assert_int_equal(client.live_transfers.first->piece_count, 1);
    assert_int_equal(client.live_transfers.first->pieces[0].ps, wire_collective_home("s", 1, 3));
    struct sumac_error error = {0};
    assert_int_equal(
        sumac_client_all_gather(&client, &gathers, &given, NULL, &collective, &error),
        SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(error.reason, SUMAC_REASON_PART_TOO_LARGE); /* for one ps */
    client.session = NULL;
    talk_close(&talk);
    client_forget_collectives(&client);
    round_numbers_deinit(&client.collective_rounds);
    drop_transfers(&client);
}
