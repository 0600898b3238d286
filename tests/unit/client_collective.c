/* SPDX-License-Identifier: Apache-2.0 */
/* client_collective.c -- what a caller says of a collective, and what is refused of that before
 * anything is sent. */
#include <math.h>

#include "unit.h"
#include "client_state.h"
#include "members.h"

#define CHIEF(i) ((struct sumac_member){.job = "chief", .index = (i)})
#define WORKER(i) ((struct sumac_member){.job = "worker", .index = (i)})

/* Worker 1 of chief 0, worker 0 and worker 1, whose client is not open. */
struct caller {
    struct sumac_client client;
    uint64_t members[3];
    struct sumac_member tasks[513];
    struct sumac_collective_options options;
    struct client_contribution given;
    struct sumac_tensor into;
    float value[8], sum[8];
    int64_t indices[4];
};

static struct caller *begin(struct caller *caller)
{
    memset(caller, 0, sizeof *caller);
    caller->members[0] = 0;
    caller->members[1] = 1;
    caller->members[2] = 3;
    caller->client.own_task = 3;
    caller->client.member_tasks = caller->members;
    caller->client.member_task_count = 3;
    client_note_process(&caller->client);
    round_numbers_init(&caller->client.collective_rounds);
    caller->into = sumac_tensor_over(caller->sum, SUMAC_FLOAT32, SUMAC_SHAPE(4, 2));
    caller->options = (struct sumac_collective_options){.name = "grads", .into = &caller->into};
    caller->given.operation = COLLECTIVE_SUM;
    caller->given.root = WORKER(0);
    caller->given.value = sumac_tensor_over(caller->value, SUMAC_FLOAT32, SUMAC_SHAPE(4, 2));
    caller->given.indices = sumac_tensor_over(caller->indices, SUMAC_INT64, SUMAC_SHAPE(4));
    return caller;
}

/* An operation without `into`. */
static struct caller *begin_other(struct caller *caller, enum collective_operation operation)
{
    begin(caller)->given.operation = operation;
    caller->options.into = NULL;
    return caller;
}

static void assert_refused(struct caller *caller, enum sumac_reason reason, const char *words)
{
    struct sumac_collective *collective = NULL;
    struct sumac_error error = {0};

    assert_int_equal(
        client_contribute(&caller->client, &caller->options, &caller->given, &collective, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, reason);
    if (strstr(error.text, words) == NULL)
        fail_msg("is told \"%s\" and not \"%s\"", error.text, words);
    assert_null(collective);
    assert_null(caller->client.collectives.first);
    assert_false(caller->client.locked);
    round_numbers_deinit(&caller->client.collective_rounds);
    round_numbers_init(&caller->client.collective_rounds);
}

#define assert_wrong(caller, words) assert_refused(caller, SUMAC_REASON_UNSPECIFIED, words)

TEST(a_name_is_a_printable_line)
{
    struct caller caller;
    char longest[258];

    memset(longest, 'x', sizeof longest);
    longest[257] = '\0';
    begin(&caller)->options.name = NULL;
    assert_refused(&caller, SUMAC_REASON_BAD_NAME, "1 to 256 bytes, given none");
    caller.options.name = "";
    assert_refused(&caller, SUMAC_REASON_BAD_NAME, "1 to 256 bytes, given none");
    caller.options.name = longest;
    assert_refused(&caller, SUMAC_REASON_BAD_NAME, "1 to 256 bytes, given more");
    longest[256] = '\0';
    caller.options.weight = -1;
    assert_wrong(&caller, "a weight is finite"); /* the name is not refused */
    caller.options.name = "a\nb";
    assert_refused(&caller, SUMAC_REASON_BAD_NAME, "has a control character, shown here as ?: a?b");
    caller.options.name = "\xff";
    assert_refused(&caller, SUMAC_REASON_BAD_NAME, "UTF-8");
}

TEST(a_weight_is_finite_and_none_is_said_once)
{
    const double rows[] = {-1, NAN, INFINITY, -INFINITY};
    struct caller caller;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(&caller)->options.weight = rows[i];
        assert_wrong(&caller, "a weight is finite, and at least 0");
    }
    begin(&caller)->options.weight = 2;
    caller.options.zero_weight = true;
    assert_wrong(&caller, "is set beside a weight");
}

TEST(who_takes_part_is_named_once_each_and_the_caller_among_them)
{
    struct caller caller;

    begin(&caller)->options.tasks = caller.tasks;
    caller.options.task_count = 2;
    caller.tasks[0] = WORKER(1);
    caller.tasks[1] = WORKER(1);
    assert_wrong(&caller, "collective grads, round 1: worker 1 is named twice");
    caller.tasks[1] = (struct sumac_member){.job = "evaluator", .index = 0};
    assert_refused(&caller, SUMAC_REASON_BAD_NAME, "only tasks of the jobs chief and worker");
    caller.tasks[1] = (struct sumac_member){.job = NULL, .index = 0};
    assert_refused(&caller, SUMAC_REASON_BAD_NAME, "only tasks of the jobs chief and worker");
    caller.tasks[0] = CHIEF(0);
    caller.tasks[1] = WORKER(0);
    assert_wrong(&caller, "this process is not among the tasks");
    caller.tasks[0] = WORKER(1);
    caller.tasks[1] = WORKER(9);
    assert_refused(
        &caller, SUMAC_REASON_BAD_NAME,
        "collective grads, round 1: worker 9 is named, and the cluster does not list it; it lists "
        "1 chief and 2 workers");
    caller.tasks[1] = CHIEF(9);
    assert_refused(&caller, SUMAC_REASON_BAD_NAME, "round 1: chief 9 is named");
    caller.options.tasks = NULL;
    assert_wrong(&caller, "task_count is 2, and tasks is NULL");
    begin(&caller)->options.tasks = caller.tasks;
    caller.options.task_count = 513;
    for (uint32_t i = 0; i < 513; i++)
        caller.tasks[i] = WORKER(i);
    assert_wrong(&caller, "task_count is 513, and 512 are the most");
    caller.options.task_count = 512;
    caller.client.member_task_count = 0;
    caller.into.shape.extent[0] = 3;
    assert_wrong(&caller, "`into` has another shape than `value`");
    begin(&caller)->client.member_task_count = 0;
    assert_wrong(&caller, "no tasks are named");
}

/* The chief comes first, then the workers. */
TEST(a_member_has_a_place_among_those_who_take_part)
{
    struct caller caller;
    const struct sumac_member some[] = {WORKER(1), WORKER(0)}, others[] = {WORKER(0)},
                              far[] = {WORKER(2), WORKER(1), CHIEF(3)};
    uint32_t place = 0, count = 0;

    begin(&caller);
    assert_int_equal(
        client_collective_place(&caller.client, NULL, 0, &place, &count, NULL), SUMAC_OK);
    assert_int_equal(place, 2);
    assert_int_equal(count, 3);
    assert_int_equal(
        client_collective_place(&caller.client, some, 2, &place, &count, NULL), SUMAC_OK);
    assert_int_equal(place, 1);
    assert_int_equal(count, 2);
    assert_int_equal(
        client_collective_place(&caller.client, others, 1, &place, &count, NULL),
        SUMAC_INVALID_ARGUMENT);
    caller.client.member_task_count = 0; /* the cluster lists none, and any may take part */
    assert_int_equal(
        client_collective_place(&caller.client, far, 3, &place, &count, NULL), SUMAC_OK);
    assert_int_equal(place, 1);
    assert_int_equal(count, 3);
}

TEST(a_root_is_one_of_them)
{
    struct caller caller;

    begin_other(&caller, COLLECTIVE_BROADCAST)->given.root = WORKER(7);
    assert_wrong(&caller, "root is not among the tasks that take part");
    caller.given.root = (struct sumac_member){.job = "ps", .index = 0};
    assert_wrong(&caller, "root is a chief or a worker");
}

TEST(an_option_of_another_operation_is_refused)
{
    struct caller caller;
    const enum collective_operation others[] = {
        COLLECTIVE_GATHER, COLLECTIVE_BROADCAST, COLLECTIVE_CONCATENATE};

    begin(&caller)->options.axis = 1;
    assert_wrong(&caller, "`axis` is an option of all_gather alone");
    for (int i = 0; i < 3; i++) {
        begin(&caller)->given.operation = others[i];
        assert_wrong(&caller, "`into` is an option of all_reduce alone");
    }
}

/* The caller may count the rounds of further names. */
TEST(a_client_counts_the_rounds_of_so_many_names)
{
    struct caller caller;
    struct round_numbers *const numbers = &begin(&caller)->client.collective_rounds;
    struct sumac_collective *collective = NULL;
    struct sumac_error error;
    char name[8];

    for (int i = 0; i < SUMAC_COLLECTIVE_NAMES_MAX; i++) { /* given */
        (void)snprintf(name, sizeof name, "%d", i);
        assert_non_null(round_numbers_add(numbers, name));
    }

    assert_int_equal(/* when */
                     client_contribute(
                         &caller.client, &caller.options, &caller.given, &collective, &error),
                     SUMAC_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(error.text, "collective grads: this client counts the rounds of 1024"));

    caller.options.weight = -1;
    caller.options.round = 8;
    assert_int_equal(/* then */
                     client_contribute(
                         &caller.client, &caller.options, &caller.given, &collective, &error),
                     SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "collective grads, round 8: a weight"));
    assert_null(round_numbers_find(numbers, "grads"));
    round_numbers_find(numbers, "7")->last = 3;
    caller.options = (struct sumac_collective_options){.name = "7", .weight = -1};
    assert_wrong(&caller, "collective 7, round 4: a weight");
}

TEST(types_and_shapes_are_those_of_the_operation)
{
    struct caller caller;

    begin(&caller)->into.dtype = SUMAC_INT32;
    assert_refused(
        &caller, SUMAC_REASON_WRONG_DATA_TYPE,
        "contributions of type int32, and `value` is of float32");
    begin(&caller)->into.dtype = SUMAC_BFLOAT16;
    caller.given.value.dtype = SUMAC_BFLOAT16;
    assert_refused(
        &caller, SUMAC_REASON_WRONG_DATA_TYPE,
        "type bfloat16 is made of contributions of type float32");
    caller.given.operation = COLLECTIVE_MEAN;
    assert_refused(
        &caller, SUMAC_REASON_WRONG_DATA_TYPE,
        "type bfloat16 is made of contributions of type float32");
    begin_other(&caller, COLLECTIVE_GATHER)->given.value.dtype = SUMAC_DTYPE_UNSPECIFIED;
    assert_refused(&caller, SUMAC_REASON_WRONG_DATA_TYPE, "made of contributions of type");
    begin(&caller)->into.shape.extent[0] = 3;
    assert_wrong(&caller, "`into` has another shape than `value`");
    caller.given.value.dtype = caller.into.dtype = SUMAC_BFLOAT16; /* nothing is added up */
    caller.given.operation = COLLECTIVE_MIN;
    assert_wrong(&caller, "`into` has another shape than `value`");
    begin_other(&caller, COLLECTIVE_BROADCAST)->given.value.memory = NULL;
    assert_wrong(&caller, "the tensor has no memory"); /* for the result */
    caller.given.root = WORKER(1);
    assert_wrong(&caller, "the tensor has no memory");
    begin(&caller)->given.value.shape.extent[0] = UINT64_MAX;
    assert_wrong(&caller, "more bytes than there may be");
    begin(&caller)->given.value.memory = NULL;
    assert_wrong(&caller, "the tensor has no memory");
    begin(&caller)->into.memory = NULL;
    assert_wrong(&caller, "the tensor has no memory");
}

TEST(rows_have_an_index_each)
{
    struct caller caller;

    begin_other(&caller, COLLECTIVE_CONCATENATE);
    caller.given.indices.shape.extent[0] = 3;
    assert_wrong(&caller, "come with `indices`, int64, one for each");
    begin_other(&caller, COLLECTIVE_CONCATENATE);
    caller.given.indices.dtype = SUMAC_INT32;
    assert_wrong(&caller, "come with `indices`, int64, one for each");
    begin_other(&caller, COLLECTIVE_CONCATENATE);
    caller.given.value.shape.rank = 0;
    assert_wrong(&caller, "come with `indices`, int64, one for each");
    begin_other(&caller, COLLECTIVE_CONCATENATE);
    caller.given.indices.shape = SUMAC_SHAPE(4, 1);
    assert_wrong(&caller, "come with `indices`, int64, one for each");
    begin_other(&caller, COLLECTIVE_CONCATENATE);
    caller.given.indices.memory = NULL;
    assert_wrong(&caller, "the tensor has no memory");
}

TEST(nothing_is_refused_by_its_name)
{
    struct caller caller;
    struct sumac_client *const client = &begin(&caller)->client;
    const struct sumac_collective_options *const options = &caller.options;
    const struct sumac_tensor *const value = &caller.given.value;
    const struct sumac_member root = WORKER(0);
    struct sumac_error errors[8];

    const struct {
        enum sumac_status status;
        const char *text;
    } rows[] = {
        {sumac_client_all_reduce(NULL, options, SUMAC_REDUCE_SUM, value, NULL, &errors[0]),
         "sumac_client_all_reduce: client is NULL"},
        {sumac_client_all_reduce(client, NULL, SUMAC_REDUCE_SUM, value, NULL, &errors[1]),
         "sumac_client_all_reduce: options is NULL"},
        {sumac_client_all_reduce(client, options, SUMAC_REDUCE_SUM, NULL, NULL, &errors[2]),
         "sumac_client_all_reduce: value is NULL"},
        {sumac_client_all_reduce(client, options, SUMAC_REDUCE_SQRTN, value, NULL, &errors[3]),
         "sumac_client_all_reduce: 6 is no operation of all_reduce; give SUM, MEAN, MIN or MAX"},
        {sumac_client_all_gather(client, options, NULL, NULL, NULL, &errors[4]),
         "sumac_client_all_gather: value is NULL"},
        {sumac_client_concatenate(client, options, NULL, NULL, NULL, &errors[5]),
         "sumac_client_concatenate: slices is NULL"},
        {sumac_client_broadcast(client, options, root, NULL, NULL, &errors[6]),
         "sumac_client_broadcast: value is NULL"},
        {sumac_collective_wait(NULL, 1, &errors[7]), "sumac_collective_wait: collective is NULL"}};

    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(rows[i].status, SUMAC_INVALID_ARGUMENT);
        assert_string_equal(errors[i].text, rows[i].text);
    }
    assert_true(sumac_collective_done(NULL));
}
