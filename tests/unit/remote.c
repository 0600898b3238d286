/* SPDX-License-Identifier: Apache-2.0 */
/* remote.c (test) -- variables of a strategy on the ps: what the client is asked for, by a client
 * that writes it down. The linker hands the strategy's calls to it. */
#include <stdlib.h>

#include "distributed_fixture.h"
#include "push.h"

#define REMOTE_MAX 8
#define ROWS_MAX 8

/* ---- the client */

struct sumac_client_variable {
    char name[64], beside[64];
    struct sumac_client_variable_options asked;
    float value[ROWS_MAX], slot[ROWS_MAX];
};

static struct {
    struct sumac_client_variable variables[REMOTE_MAX];
    uint32_t created;
    enum sumac_status push_status, pull_status; /* what the next ones say */
    struct sumac_delta deltas[REMOTE_MAX];      /* of the last push */
    struct sumac_push_options options;
    int64_t indices[ROWS_MAX]; /* of the last delta that has some */
    size_t count;
    uint32_t pushes;
    struct sumac_buffer *held; /* by a push that is late */
    const char *function;
} client;

enum sumac_status __wrap_sumac_client_variable_create(
    struct sumac_client *of, const struct sumac_client_variable_options *options,
    struct sumac_client_variable **variable, struct sumac_error *error);
enum sumac_status __wrap_sumac_client_push(
    struct sumac_client *of, const struct sumac_delta *deltas, size_t count,
    const struct sumac_push_options *options, struct sumac_push **push, struct sumac_error *error);
void __wrap_push_keep(struct sumac_push *push, struct sumac_buffer *buffer);
enum sumac_status
__wrap_sumac_push_wait(struct sumac_push *push, uint32_t timeout_ms, struct sumac_error *error);
enum sumac_status __wrap_sumac_client_pull(
    struct sumac_client *of, const struct sumac_fetch *fetches, size_t count,
    const struct sumac_pull_options *options, struct sumac_pull **pull, struct sumac_error *error);
const char *__wrap_sumac_client_variable_name(const struct sumac_client_variable *variable);
uint32_t __wrap_sumac_client_variable_shards(const struct sumac_client_variable *variable);
enum sumac_status __wrap_sumac_client_variable_describe(
    struct sumac_client_variable *variable, struct sumac_client_variable_facts *facts,
    struct sumac_error *error);

enum sumac_status __wrap_sumac_client_variable_create(
    struct sumac_client *of, const struct sumac_client_variable_options *options,
    struct sumac_client_variable **variable, struct sumac_error *error)
{
    struct sumac_client_variable *made = &client.variables[client.created++];

    (void)of, (void)error;
    assert_true(client.created <= REMOTE_MAX);
    made->asked = *options;
    (void)snprintf(made->name, sizeof made->name, "%s", options->name);
    (void)snprintf(
        made->beside, sizeof made->beside, "%s",
        options->colocate_with == NULL ? "" : options->colocate_with);
    if (options->dtype == SUMAC_FLOAT32)
        memcpy(
            made->value, sumac_tensor_data(options->initial_value),
            sumac_tensor_bytes(options->initial_value));
    for (uint32_t i = 0; i < ROWS_MAX; i++)
        made->slot[i] = (float)(10 * client.created + i);
    *variable = made;
    return SUMAC_OK;
}

enum sumac_status __wrap_sumac_client_push(
    struct sumac_client *of, const struct sumac_delta *deltas, size_t count,
    const struct sumac_push_options *options, struct sumac_push **push, struct sumac_error *error)
{
    (void)of, (void)error;
    memcpy(client.deltas, deltas, count * sizeof *deltas);
    client.count = count;
    client.pushes++;
    client.options = *options;
    client.function = deltas[0].function == NULL ? NULL : deltas[0].function->name;
    for (size_t i = 0; i < count; i++)
        if (deltas[i].indices != NULL)
            memcpy(
                client.indices, sumac_tensor_data(deltas[i].indices),
                sumac_tensor_bytes(deltas[i].indices));
    *push = (struct sumac_push *)&client;
    return SUMAC_OK;
}

void __wrap_push_keep(struct sumac_push *push, struct sumac_buffer *buffer)
{
    assert_ptr_equal(push, &client);
    sumac_buffer_unref(client.held); /* of the push before, which has ended */
    client.held = sumac_buffer_ref(buffer);
}

enum sumac_status
__wrap_sumac_push_wait(struct sumac_push *push, uint32_t timeout_ms, struct sumac_error *error)
{
    const enum sumac_status status = client.push_status;

    (void)push, (void)timeout_ms;
    client.push_status = SUMAC_OK;
    if (status == SUMAC_OK) {
        sumac_buffer_unref(client.held);
        client.held = NULL;
        return SUMAC_OK;
    }
    *error = (struct sumac_error){status, SUMAC_REASON_TIMED_OUT, "it has waited for ps 1"};
    return status;
}

enum sumac_status __wrap_sumac_client_pull(
    struct sumac_client *of, const struct sumac_fetch *fetches, size_t count,
    const struct sumac_pull_options *options, struct sumac_pull **pull, struct sumac_error *error)
{
    (void)of, (void)options, (void)error;
    assert_null(pull); /* it waits */
    if (client.pull_status != SUMAC_OK)
        return client.pull_status;
    for (size_t i = 0; i < count; i++) {
        const struct sumac_client_variable *variable = fetches[i].variable;
        if (fetches[i].slot != NULL)
            assert_int_equal(fetches[i].into.dtype, SUMAC_FLOAT32);
        memcpy(
            sumac_tensor_data(&fetches[i].into),
            fetches[i].slot == NULL ? variable->value : variable->slot,
            sumac_tensor_bytes(&fetches[i].into));
    }
    return SUMAC_OK;
}

const char *__wrap_sumac_client_variable_name(const struct sumac_client_variable *variable)
{
    return variable->name;
}

uint32_t __wrap_sumac_client_variable_shards(const struct sumac_client_variable *variable)
{
    (void)variable;
    return 2;
}

enum sumac_status __wrap_sumac_client_variable_describe(
    struct sumac_client_variable *variable, struct sumac_client_variable_facts *facts,
    struct sumac_error *error)
{
    (void)variable, (void)error;
    *facts = (struct sumac_client_variable_facts){.slot_count = 1, .slots = {"momentum"}};
    return SUMAC_OK;
}

static int begin(void **state)
{
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_PARAMETER_SERVER,
        .replicas = 1,
        .client = (struct sumac_client *)&client};
    struct sumac_strategy *strategy = NULL;

    memset(&client, 0, sizeof client);
    if (sumac_strategy_create(&options, &strategy, NULL) != SUMAC_OK)
        return 1;
    *state = strategy;
    return 0;
}

static int end(void **state)
{
    sumac_buffer_unref(client.held);
    sumac_strategy_destroy(*state);
    return 0;
}

static struct sumac_value *rows_from(float first, uint64_t count)
{
    float elements[ROWS_MAX];

    for (uint64_t i = 0; i < count; i++)
        elements[i] = first + (float)i;
    return sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(count), elements);
}

/* Of five rows: one, and four, as no partitioner would make. */
static struct sumac_variable *uneven(struct sumac_strategy *strategy, const char *name)
{
    static const uint64_t rows[] = {1, 4};
    struct sumac_value *initial = rows_from(0, 5);
    struct sumac_variable *variable = variable_of(
        strategy, (struct sumac_variable_options){
                      .name = name, .initial = initial, .shard_rows = rows, .shard_count = 2});

    sumac_value_unref(initial);
    return variable;
}

/* ---- created */

#define REMOTE_TEST(name) FIXTURE_TEST(name, struct sumac_strategy *const strategy, begin, end)

REMOTE_TEST(a_ps_is_asked_for_what_the_program_asks_for)
{
    static const struct sumac_partitioner rules[] = {
        {.kind = SUMAC_PARTITIONER_NONE},
        {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = 2},
        {.kind = SUMAC_PARTITIONER_MIN_SIZE, .min_shard_bytes = 7, .max_shards = 3},
        {.kind = SUMAC_PARTITIONER_MAX_SIZE, .max_shard_bytes = 9, .max_shards = 4},
        {.kind = SUMAC_PARTITIONER_SHARD_PER_PS},
    };
    struct sumac_variable *const first =
        variable_of(strategy, (struct sumac_variable_options){.name = "first"});

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct sumac_variable_options options = {
            .name = "w",
            .partitioner = rules[i],
            .trainable = i % 2 == 0 ? SUMAC_TRAINABLE_NO : SUMAC_TRAINABLE_YES,
            .colocate_with = i % 2 == 0 ? first : NULL,
            .function = {.name = "momentum"}};

        (void)variable_of(strategy, options); /* when */

        const struct sumac_client_variable *const made =
            &client.variables[client.created - 1]; /* then */
        assert_string_equal(made->name, "w");
        assert_int_equal(made->asked.partitioner.kind, rules[i].kind);
        assert_int_equal(made->asked.partitioner.num_shards, rules[i].num_shards);
        assert_int_equal(made->asked.partitioner.min_shard_bytes, rules[i].min_shard_bytes);
        assert_int_equal(made->asked.partitioner.max_shards, rules[i].max_shards);
        assert_int_equal(made->asked.partitioner.max_shard_bytes, rules[i].max_shard_bytes);
        assert_int_equal(made->asked.frozen, i % 2 == 0);
        assert_string_equal(made->beside, i % 2 == 0 ? "first" : "");
        assert_string_equal(made->asked.function.name, "momentum");
        assert_int_equal(made->asked.initializer, SUMAC_INITIALIZER_ASSIGNED);
        assert_true(made->value[0] == 1 && made->value[1] == 2);
    }
}

REMOTE_TEST(shards_that_no_partitioner_makes_are_a_variable_each)
{
    struct sumac_variable *const variable = uneven(strategy, "w");

    assert_int_equal(client.created, 2);
    assert_string_equal(client.variables[0].name, "w/rows_0");
    assert_string_equal(client.variables[1].name, "w/rows_1");
    assert_int_equal(client.variables[1].asked.shape.extent[0], 4);
    assert_true(client.variables[1].value[0] == 1 && client.variables[1].value[3] == 4);
    client.variables[1].value[2] = 7;
    expect_printed(read_of(variable), "float32[5] 0 1 2 7 4");
    assert_int_equal(sumac_variable_shards(variable), 2);
}

REMOTE_TEST(shards_that_are_said_and_even_are_fixed_ones)
{
    static const uint64_t rows[] = {3, 2};
    struct sumac_value *initial = rows_from(0, 5);

    (void)variable_of(
        strategy,
        (struct sumac_variable_options){.initial = initial, .shard_rows = rows, .shard_count = 2});

    assert_int_equal(client.created, 1);
    assert_int_equal(client.variables[0].asked.partitioner.kind, SUMAC_PARTITIONER_FIXED_SHARDS);
    assert_int_equal(client.variables[0].asked.partitioner.num_shards, 2);
    sumac_value_unref(initial);
}

/* ---- read */

REMOTE_TEST(what_cannot_be_read_is_none_of_all)
{
    struct sumac_variable *const variables[] = {
        variable_of(strategy, (struct sumac_variable_options){.name = "first"}),
        uneven(strategy, "second")};
    struct sumac_value *values = NULL, *slots = NULL;

    client.pull_status = SUMAC_UNAVAILABLE;
    assert_int_equal(sumac_variable_read_all(variables, 2, NULL, &values, NULL), SUMAC_UNAVAILABLE);
    assert_int_equal(sumac_variable_slots(variables[1], &slots, NULL), SUMAC_UNAVAILABLE);
    assert_true(values == NULL && slots == NULL);
    client.pull_status = SUMAC_OK;
    assert_int_equal(sumac_variable_read_all(variables, 2, NULL, &values, NULL), SUMAC_OK);
    expect_printed(values, "[float32[2] 1 2, float32[5] 0 1 2 3 4]");
}

REMOTE_TEST(slots_of_each_part_are_where_its_rows_are)
{
    struct sumac_variable *const variable = uneven(strategy, "w");
    const uint16_t halves[] = {0x3c00, 0x4000};
    struct sumac_value *half = sumac_value_tensor(SUMAC_FLOAT16, SUMAC_SHAPE(2), halves);
    struct sumac_variable *const of_halves =
        variable_of(strategy, (struct sumac_variable_options){.name = "h", .initial = half});
    struct sumac_value *slots = NULL;

    assert_int_equal(sumac_variable_slots(variable, &slots, NULL), SUMAC_OK);
    expect_printed(slots, "({\"momentum\": float32[5] 10 20 21 22 23},)");
    assert_int_equal(sumac_variable_slots(of_halves, &slots, NULL), SUMAC_OK);
    expect_printed(slots, "({\"momentum\": float32[2] 30 31},)");
    sumac_value_unref(half);
}

/* ---- changed */

REMOTE_TEST(what_is_written_goes_to_each_part_by_its_function)
{
    struct sumac_variable *const variable = uneven(strategy, "w");
    struct sumac_value *five = rows_from(5, 5);

    assert_int_equal(sumac_variable_assign_add(variable, NULL, five, NULL, NULL), SUMAC_OK);

    assert_int_equal(client.count, 2);
    assert_ptr_equal(client.deltas[1].variable, &client.variables[1]);
    assert_int_equal(client.deltas[1].value.shape.extent[0], 4);
    assert_string_equal(client.function, "assign_add");
    assert_true(client.options.allow_non_finite);
    sumac_value_unref(five);
}

static struct sumac_value *rows_of_int32(uint64_t of)
{
    const int32_t indices[] = {1, 0};

    return sumac_value_indexed_slices(
        rows_from(1, 2), sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(2), indices), SUMAC_SHAPE(of));
}

REMOTE_TEST(a_ps_is_given_wide_indices_and_no_rows_of_uneven_shards)
{
    struct sumac_variable *const variable =
        variable_of(strategy, (struct sumac_variable_options){.name = "w"});
    struct sumac_variable *const parts = uneven(strategy, "parts");
    struct sumac_value *slices = rows_of_int32(2), *of_five = rows_of_int32(5);
    struct sumac_error error;

    assert_int_equal(
        sumac_variable_write(variable, NULL, SUMAC_WRITE_SCATTER_ADD, slices, NULL, NULL),
        SUMAC_OK);
    assert_true(client.indices[0] == 1 && client.indices[1] == 0);
    client.count = 0;
    assert_int_equal(sumac_variable_apply(parts, NULL, NULL, of_five, &error), SUMAC_UNIMPLEMENTED);
    assert_non_null(strstr(error.text, "parts: its shards are not those that a partitioner makes"));
    assert_int_equal(client.count, 0);
    sumac_value_unref(slices);
    sumac_value_unref(of_five);
}

REMOTE_TEST(all_variables_are_one_push)
{
    struct sumac_variable *const variables[] = {
        variable_of(strategy, (struct sumac_variable_options){.name = "first"}),
        uneven(strategy, "second")};
    struct sumac_value *const gradients[] = {vector(3, 4), rows_from(5, 5)};
    struct sumac_value *all = sumac_value_list(gradients, 2);

    assert_int_equal(sumac_variable_apply_all(variables, 2, NULL, all, NULL), SUMAC_OK);

    assert_int_equal(client.pushes, 1);
    assert_int_equal(client.count, 3);
    assert_null(client.function); /* each one's own */
    sumac_value_unref(all);
}

/* It may be read for as long as the client has it. */
REMOTE_TEST(a_push_that_is_late_keeps_what_it_reads_and_goes_on)
{
    struct sumac_variable *const variables[] = {
        variable_of(strategy, (struct sumac_variable_options){.name = "first"}),
        variable_of(strategy, (struct sumac_variable_options){.name = "second"})};
    struct sumac_value *const gradients[] = {vector(3, 4), vector(5, 6)};
    struct sumac_value *all = sumac_value_list(gradients, 2), *one = vector(7, 8);
    struct sumac_error error;

    client.push_status = SUMAC_DEADLINE_EXCEEDED; /* given */
    assert_int_equal(                             /* when */
                     sumac_variable_apply_all(variables, 2, NULL, all, &error),
                     SUMAC_DEADLINE_EXCEEDED);
    sumac_value_unref(all);

    assert_string_equal(/* then */
                        error.text,
                        "first and others: it has waited for ps 1; it goes on, and may be applied "
                        "yet");
    assert_non_null(client.held);
    assert_true(((const float *)sumac_tensor_data(&client.deltas[1].value))[1] == 6);
    sumac_buffer_unref(client.held);
    client.held = NULL;
    client.push_status = SUMAC_DEADLINE_EXCEEDED;
    assert_int_equal(
        sumac_variable_apply(variables[1], NULL, NULL, one, &error), SUMAC_DEADLINE_EXCEEDED);
    assert_string_equal(
        error.text, "second: it has waited for ps 1; it goes on, and may be applied yet");
    client.push_status = SUMAC_ABORTED;
    assert_int_equal(sumac_variable_apply(variables[1], NULL, NULL, one, &error), SUMAC_ABORTED);
    assert_string_equal(error.text, "it has waited for ps 1");
    sumac_value_unref(one);
}
