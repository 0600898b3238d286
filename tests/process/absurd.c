/* SPDX-License-Identifier: Apache-2.0 */
/* absurd.c -- every public function with every pointer NULL and every number absurd: statuses and
 * sentences, no crash.
 *
 *     absurd          -> "FUNCTION: WHAT" before each call, then what is not as it should be;
 *                        in the end "N calls, M wrong"
 *
 * It is a worker of a cluster of two ps. A call that is to be refused is made twice, the second
 * time with a NULL error. In the end a variable has what was pushed rightly, and nothing else.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absurd.h"

/* ---- lib/client, without a client */

static void try_opening(void)
{
    const char *const nobody[] = {NULL};
    const char *const address[] = {"127.0.0.1:1"};
    const char *const same[] = {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:1"};
    const struct sumac_client_options twice = {.reader = true, .ps_addresses = same, .ps_count = 3};
    const struct sumac_client_options none = {.reader = true, .ps_count = 1};
    const struct sumac_client_options unnamed = {
        .reader = true, .ps_addresses = nobody, .ps_count = 1};
    const struct sumac_client_options uncounted = {.reader = true, .ps_addresses = address};
    const struct sumac_client_options crowd = {
        .reader = true, .ps_addresses = address, .ps_count = UINT32_MAX};
    const struct sumac_client_options both = {.reader = true, .observer = true};
    const struct sumac_client_options crumbs = {.chunk_bytes = 63};
    const struct sumac_client_options lumps = {.chunk_bytes = UINT32_MAX};
    const struct sumac_client_options apart = {.ps_addresses = address, .ps_count = 1};
    struct sumac_client *opened = NULL;

#define OPEN(what, words, options)                                                                 \
    REFUSED(                                                                                       \
        sumac_client_open, what, INVALID_ARGUMENT, words,                                          \
        sumac_client_open(options, &opened, error))
    REFUSED(
        sumac_client_open, "NULL client", INVALID_ARGUMENT, "client is NULL",
        sumac_client_open(NULL, NULL, error));
    OPEN("NULL addresses", "ps_addresses is NULL", &none);
    OPEN("a NULL address", "the address of ps 0 is missing", &unnamed);
    OPEN("no addresses", "no ps", &uncounted);
    OPEN("2^32 - 1 addresses", "the most", &crowd);
    OPEN("one address twice", "127.0.0.1:1 as ps 0 and as ps 2", &twice);
    OPEN("reader and observer", "not both", &both);
    OPEN("chunk_bytes 63", "chunk_bytes is 63", &crumbs);
    OPEN("chunk_bytes 2^32 - 1", "chunk_bytes is 4294967295", &lumps);
    OPEN("a member without a cluster", "cluster configuration", &apart);
#undef OPEN
    HOLDS(sumac_client_open, "untouched", opened == NULL);
}

static void try_no_client(void)
{
    const struct sumac_client_variable_options options = {.name = "w"};
    const struct sumac_collective_options barrier = {.name = "all"};
    struct sumac_client_facts facts = {.ps_count = 7};
    struct sumac_client_variable *variable = NULL;
    struct sumac_tensor tensor = {.memory = NULL};
    const struct sumac_indexed_slices slices = {.values = {.memory = NULL}};
    struct sumac_push *push = NULL;
    struct sumac_pull *pull = NULL;

#define NULL_CLIENT(function, call)                                                                \
    REFUSED(function, "NULL client", INVALID_ARGUMENT, "client is NULL", call)
    NULL_CLIENT(sumac_client_leave, sumac_client_leave(NULL, SUMAC_LEAVING_DONE, error));
    NULL_CLIENT(
        sumac_client_variable_create,
        sumac_client_variable_create(NULL, &options, &variable, error));
    NULL_CLIENT(
        sumac_client_variable_create_many,
        sumac_client_variable_create_many(NULL, &options, 1, &variable, error));
    NULL_CLIENT(
        sumac_client_variable_find, sumac_client_variable_find(NULL, "w", &variable, error));
    NULL_CLIENT(sumac_client_variable_delete, sumac_client_variable_delete(NULL, "w", error));
    NULL_CLIENT(sumac_client_define, sumac_client_define(NULL, "f", "value = g", 9, error));
    NULL_CLIENT(sumac_client_push, sumac_client_push(NULL, NULL, 0, NULL, &push, error));
    NULL_CLIENT(sumac_client_push, sumac_client_push(NULL, NULL, 0, NULL, NULL, error));
    NULL_CLIENT(sumac_client_pull, sumac_client_pull(NULL, NULL, 0, NULL, &pull, error));
    NULL_CLIENT(sumac_client_pull, sumac_client_pull(NULL, NULL, 0, NULL, NULL, error));
    NULL_CLIENT(sumac_client_barrier, sumac_client_barrier(NULL, &barrier, NULL, error));
    NULL_CLIENT(
        sumac_client_all_reduce,
        sumac_client_all_reduce(NULL, &barrier, SUMAC_REDUCE_SUM, &tensor, NULL, error));
    NULL_CLIENT(
        sumac_client_all_gather,
        sumac_client_all_gather(NULL, &barrier, &tensor, NULL, NULL, error));
    NULL_CLIENT(
        sumac_client_concatenate,
        sumac_client_concatenate(NULL, &barrier, &slices, NULL, NULL, error));
    NULL_CLIENT(
        sumac_client_broadcast,
        sumac_client_broadcast(
            NULL, &barrier, (struct sumac_member){"worker", 0}, &tensor, NULL, error));
#undef NULL_CLIENT
    HOLDS(sumac_client_close, "NULL", (sumac_client_close(NULL), true));
    HOLDS(
        sumac_client_describe, "NULL client",
        (sumac_client_describe(NULL, &facts), facts.ps_count == 0));
    REFUSED(
        sumac_push_wait, "NULL", INVALID_ARGUMENT, "push is NULL",
        sumac_push_wait(NULL, UINT32_MAX, error));
    REFUSED(
        sumac_pull_wait, "NULL", INVALID_ARGUMENT, "pull is NULL",
        sumac_pull_wait(NULL, UINT32_MAX, error));
    REFUSED(
        sumac_collective_wait, "NULL", INVALID_ARGUMENT, "collective is NULL",
        sumac_collective_wait(NULL, UINT32_MAX, error));
    HOLDS(sumac_collective_done, "NULL", sumac_collective_done(NULL));
    HOLDS(sumac_push_done, "NULL", sumac_push_done(NULL));
    HOLDS(sumac_push_cancel, "NULL", (sumac_push_cancel(NULL), true));
    HOLDS(sumac_pull_cancel, "NULL", (sumac_pull_cancel(NULL), true));
    HOLDS(sumac_pull_done, "NULL", sumac_pull_done(NULL));
    HOLDS(sumac_client_variable_name, "NULL", sumac_client_variable_name(NULL) == NULL);
    HOLDS(
        sumac_client_variable_dtype, "NULL",
        sumac_client_variable_dtype(NULL) == SUMAC_DTYPE_UNSPECIFIED);
    HOLDS(sumac_client_variable_shape, "NULL", sumac_client_variable_shape(NULL).rank == 0);
    HOLDS(sumac_client_variable_shards, "NULL", sumac_client_variable_shards(NULL) == 0);
    HOLDS(
        sumac_client_variable_shard, "NULL", sumac_client_variable_shard(NULL, 0).rows.count == 0);
    REFUSED(
        sumac_client_variable_tensor, "NULL variable", INVALID_ARGUMENT, "variable is NULL",
        sumac_client_variable_tensor(NULL, &tensor, error));
}

/* ---- lib/client, with one */

/* A client, an observer beside it, and the variable `w` of float64 [4] as each of them knows it. */
struct sumac_client *client;
static struct sumac_client *other;
struct sumac_client_variable *w, *others_w;
static double values[ROWS];
static struct sumac_tensor tensor;

void need(enum sumac_status status)
{
    if (status == SUMAC_OK)
        return;
    printf("WRONG: %s\n", why.text);
    exit(1);
}

static void open_clients(void)
{
    const struct sumac_client_options observer = {.observer = true};
    const struct sumac_client_variable_options options = {
        .name = "w",
        .dtype = SUMAC_FLOAT64,
        .shape = SUMAC_SHAPE(ROWS),
        .partitioner = {.kind = SUMAC_PARTITIONER_SHARD_PER_PS},
        .function = {.name = "assign_add"},
    };

    need(sumac_client_open(NULL, &client, &why));
    need(sumac_client_open(&observer, &other, &why));
    need(sumac_client_variable_create(client, &options, &w, &why));
    need(sumac_client_variable_find(other, "w", &others_w, &why));
    tensor = sumac_tensor_over(values, SUMAC_FLOAT64, SUMAC_SHAPE(ROWS));
}

static enum sumac_status create(struct sumac_client_variable_options options)
{
    struct sumac_client_variable *variable;

    options.name = options.name == NULL ? "x" : options.name;
    options.dtype = options.dtype == 0 ? SUMAC_FLOAT32 : options.dtype;
    return sumac_client_variable_create(client, &options, &variable, error);
}

#define CREATE(what, wanted, words, ...)                                                           \
    REFUSED(                                                                                       \
        sumac_client_variable_create, what, wanted, words,                                         \
        create((struct sumac_client_variable_options){__VA_ARGS__}))

static void try_creating(void)
{
    const struct sumac_client_variable_options options = {.name = "w"},
                                               nameless = {.shape = {.rank = 0}};
    struct sumac_client_variable *variable = NULL;

    REFUSED(
        sumac_client_variable_create, "NULL options", INVALID_ARGUMENT, "options is NULL",
        sumac_client_variable_create(client, NULL, &variable, error));
    REFUSED(
        sumac_client_variable_create, "NULL variable", INVALID_ARGUMENT, "variable is NULL",
        sumac_client_variable_create(client, &options, NULL, error));
    REFUSED(
        sumac_client_variable_create, "NULL name", INVALID_ARGUMENT, "name has 1 to 1024 bytes",
        sumac_client_variable_create(client, &nameless, &variable, error));
    CREATE(
        "beside nothing", INVALID_ARGUMENT,
        "x: colocate_with: a variable's name has 1 to 1024 bytes, given none", .colocate_with = "");
    const struct sumac_client_variable_options twice[] = {
        {.name = "t", .dtype = SUMAC_FLOAT32}, {.name = "t", .dtype = SUMAC_FLOAT32}};
    struct sumac_client_variable *both[2] = {NULL, NULL};
    REFUSED(
        sumac_client_variable_create_many, "NULL options", INVALID_ARGUMENT, "options is NULL",
        sumac_client_variable_create_many(client, NULL, 2, both, error));
    REFUSED(
        sumac_client_variable_create_many, "NULL variables", INVALID_ARGUMENT, "variables is NULL",
        sumac_client_variable_create_many(client, twice, 2, NULL, error));
    REFUSED(
        sumac_client_variable_create_many, "one name twice", INVALID_ARGUMENT, "names t twice",
        sumac_client_variable_create_many(client, twice, 2, both, error));
    HOLDS(sumac_client_variable_create_many, "untouched", both[0] == NULL && both[1] == NULL);
    HOLDS(
        sumac_client_variable_create_many, "none of none",
        sumac_client_variable_create_many(client, NULL, 0, NULL, error) == SUMAC_OK);
    CREATE("name \"\"", INVALID_ARGUMENT, "name has 1 to 1024 bytes", .name = "");
    CREATE("name \\xff", INVALID_ARGUMENT, "UTF-8", .name = "\xff");
    CREATE("dtype 77", INVALID_ARGUMENT, "77", .dtype = (enum sumac_dtype)77);
    CREATE("rank 9", INVALID_ARGUMENT, "9 axes", .shape = {.rank = 9});
    CREATE(
        "extent 2^64 - 1", INVALID_ARGUMENT, "shape", .shape = SUMAC_SHAPE(UINT64_MAX, UINT64_MAX));
    CREATE(
        "aggregation 77", INVALID_ARGUMENT, "aggregation 77",
        .aggregation = (enum sumac_reduce_op)77);
    CREATE(
        "synchronization 77", INVALID_ARGUMENT, "synchronization 77",
        .synchronization = (enum sumac_synchronization)77);
    CREATE(
        "initializer 77", INVALID_ARGUMENT, "initializer 77",
        .initializer = (enum sumac_initializer_kind)77);
    CREATE(
        "CONSTANT NaN", INVALID_ARGUMENT, "nan", .initializer = SUMAC_INITIALIZER_CONSTANT,
        .a = NAN);
    CREATE(
        "UNIFORM to infinity", INVALID_ARGUMENT, "inf", .initializer = SUMAC_INITIALIZER_UNIFORM,
        .b = INFINITY);
    CREATE(
        "NORMAL of -1", INVALID_ARGUMENT, "-1", .initializer = SUMAC_INITIALIZER_NORMAL, .b = -1);
}

/* Options that belong to an initializer or a partitioner of another kind, or that it refuses. */
static void try_kinds(void)
{
    CREATE("a of ZEROS", INVALID_ARGUMENT, "a is given, which only", .a = 1);
    CREATE(
        "b of CONSTANT", INVALID_ARGUMENT, "b is given, which only",
        .initializer = SUMAC_INITIALIZER_CONSTANT, .b = 1);
    CREATE("seed of ZEROS", INVALID_ARGUMENT, "seed is given, which only", .seed = 1);
    CREATE(
        "initial_value of ZEROS", INVALID_ARGUMENT, "initial_value is given, which only",
        .initial_value = &tensor);
    CREATE(
        "partitioner 77", INVALID_ARGUMENT, "partitioner",
        .partitioner = {.kind = (enum sumac_partitioner_kind)77});
    CREATE(
        "num_shards 0", INVALID_ARGUMENT, "num_shards",
        .partitioner = {.kind = SUMAC_PARTITIONER_FIXED_SHARDS});
    CREATE(
        "num_shards 2^64 - 1", INVALID_ARGUMENT, "num_shards",
        .partitioner = {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = UINT64_MAX});
    CREATE(
        "num_shards of NONE", INVALID_ARGUMENT, "num_shards is given, which only",
        .partitioner = {.num_shards = 2});
    CREATE(
        "num_shards of SHARD_PER_PS", INVALID_ARGUMENT, "num_shards is given, which only",
        .partitioner = {.kind = SUMAC_PARTITIONER_SHARD_PER_PS, .num_shards = 2});
    CREATE(
        "max_shard_bytes 0", INVALID_ARGUMENT, "max_shard_bytes",
        .partitioner = {.kind = SUMAC_PARTITIONER_MAX_SIZE});
    CREATE(
        "max_shard_bytes of MIN_SIZE", INVALID_ARGUMENT, "max_shard_bytes is given, which only",
        .partitioner = {.kind = SUMAC_PARTITIONER_MIN_SIZE, .max_shard_bytes = 1});
    CREATE(
        "min_shard_bytes of NONE", INVALID_ARGUMENT, "min_shard_bytes is given, which only",
        .partitioner = {.min_shard_bytes = 1});
    CREATE(
        "max_shards of NONE", INVALID_ARGUMENT, "max_shards is given",
        .partitioner = {.max_shards = 1});
    CREATE(
        "max_shards 2^64 - 1", INVALID_ARGUMENT, "max_shards",
        .partitioner = {.kind = SUMAC_PARTITIONER_MIN_SIZE, .max_shards = UINT64_MAX});
}

static void try_initial_values(void)
{
    struct sumac_tensor value = tensor;

    CREATE(
        "no initial_value", INVALID_ARGUMENT, "give initial_value",
        .initializer = SUMAC_INITIALIZER_ASSIGNED);
    value.memory = NULL;
    CREATE(
        "initial_value without memory", INVALID_ARGUMENT, "no memory", .dtype = SUMAC_FLOAT64,
        .shape = SUMAC_SHAPE(ROWS), .initializer = SUMAC_INITIALIZER_ASSIGNED,
        .initial_value = &value);
    CREATE(
        "initial_value of rank 2^32 - 1", INVALID_ARGUMENT, "axes", .dtype = SUMAC_FLOAT64,
        .shape = {.rank = UINT32_MAX}, .initializer = SUMAC_INITIALIZER_ASSIGNED,
        .initial_value = &value);
    CREATE(
        "initial_value of another dtype", INVALID_ARGUMENT, "expected float32",
        .shape = SUMAC_SHAPE(ROWS), .initializer = SUMAC_INITIALIZER_ASSIGNED,
        .initial_value = &value);
}

static void try_functions(void)
{
    const struct sumac_hyperparameter rate = {"lr", 0.1}, unnamed = {NULL, 0.1};
    const struct sumac_hyperparameter momentum = {"momentum", 0.1}, nan = {"learning_rate", NAN};

    CREATE(
        "function nope", INVALID_ARGUMENT, "there are assign, assign_add, assign_sub, sgd",
        .function = {.name = "nope"});
    CREATE(
        "hyperparameters without a function", INVALID_ARGUMENT, "hyperparameters is given",
        .function = {.hyperparameters = {rate}});
    CREATE(
        "function Adam", INVALID_ARGUMENT, "no update function Adam; did you mean adam",
        .function = {.name = "Adam"});
    CREATE(
        "a hyperparameter without a name", INVALID_ARGUMENT,
        "a hyperparameter of sgd is given without its name; it has learning_rate",
        .function = {"sgd", {unnamed}, NULL});
    CREATE(
        "lr of sgd", INVALID_ARGUMENT, "sgd has no hyperparameter lr; it has learning_rate",
        .function = {"sgd", {rate}, NULL});
    CREATE(
        "momentum of adam", INVALID_ARGUMENT,
        "adam has no hyperparameter momentum; it has learning_rate, beta_1, beta_2, epsilon",
        .function = {"adam", {momentum}, NULL});
    CREATE(
        "lr of assign", INVALID_ARGUMENT, "assign has no hyperparameter lr; it has none",
        .function = {"assign", {rate}, NULL});
    CREATE(
        "learning_rate NaN", INVALID_ARGUMENT, "learning_rate of sgd is nan",
        .function = {"sgd", {nan}, NULL});
}

static void try_asking(void)
{
    struct sumac_client_variable_facts facts;
    struct sumac_ps_facts ps_facts;
    size_t listed = 0;

    REFUSED(
        sumac_client_variable_describe, "NULL variable", INVALID_ARGUMENT, "variable is NULL",
        sumac_client_variable_describe(NULL, &facts, error));
    REFUSED(
        sumac_client_variable_describe, "NULL facts", INVALID_ARGUMENT, "facts is NULL",
        sumac_client_variable_describe(w, NULL, error));
    REFUSED(
        sumac_client_list, "NULL client", INVALID_ARGUMENT, "client is NULL",
        sumac_client_list(NULL, NULL, 0, &listed, error));
    REFUSED(
        sumac_client_list, "no place for them", INVALID_ARGUMENT, "variables is NULL",
        sumac_client_list(client, NULL, SIZE_MAX, &listed, error));
    REFUSED(
        sumac_client_list, "NULL count", INVALID_ARGUMENT, "count is NULL",
        sumac_client_list(client, NULL, 0, NULL, error));
    REFUSED(
        sumac_client_stats, "NULL client", INVALID_ARGUMENT, "client is NULL",
        sumac_client_stats(NULL, 0, &ps_facts, error));
    REFUSED(
        sumac_client_stats, "NULL facts", INVALID_ARGUMENT, "facts is NULL",
        sumac_client_stats(client, 0, NULL, error));
    REFUSED(
        sumac_client_stats, "ps 2^32 - 1", INVALID_ARGUMENT,
        "there is no ps 4294967295; the cluster has 2",
        sumac_client_stats(client, UINT32_MAX, &ps_facts, error));
}

static void try_names(void)
{
    struct sumac_client_variable *variable = NULL;
    struct sumac_tensor filled;
    char *long_name = calloc(1, 1 << 20);

    memset(long_name, 'x', (1 << 20) - 1);
    REFUSED(
        sumac_client_variable_find, "NULL name", INVALID_ARGUMENT, "name is NULL",
        sumac_client_variable_find(client, NULL, &variable, error));
    REFUSED(
        sumac_client_variable_find, "NULL variable", INVALID_ARGUMENT, "variable is NULL",
        sumac_client_variable_find(client, "w", NULL, error));
    REFUSED(
        sumac_client_variable_find, "a name of 1 MiB", INVALID_ARGUMENT, "name has 1 to 1024 bytes",
        sumac_client_variable_find(client, long_name, &variable, error));
    REFUSED(
        sumac_client_variable_delete, "NULL name", INVALID_ARGUMENT, "name is NULL",
        sumac_client_variable_delete(client, NULL, error));
    REFUSED(
        sumac_client_variable_delete, "name \"\"", INVALID_ARGUMENT, "name has 1 to 1024 bytes",
        sumac_client_variable_delete(client, "", error));
    REFUSED(
        sumac_client_define, "NULL text", INVALID_ARGUMENT, "text is NULL",
        sumac_client_define(client, "f", NULL, 9, error));
    REFUSED(
        sumac_client_define, "a text of 1 MiB", INVALID_ARGUMENT, "the text has 1048575 bytes",
        sumac_client_define(client, "f", long_name, 1048575, error));
    REFUSED(
        sumac_client_variable_tensor, "NULL tensor", INVALID_ARGUMENT, "tensor is NULL",
        sumac_client_variable_tensor(w, NULL, error));
    HOLDS(
        sumac_client_variable_tensor, "what fits",
        sumac_client_variable_tensor(w, &filled, error) == SUMAC_OK &&
            sumac_tensor_bytes(&filled) == 32 && filled.dtype == SUMAC_FLOAT64 &&
            *(double *)sumac_tensor_data(&filled) == 0);
    sumac_buffer_unref(filled.buffer);
    REFUSED(
        sumac_client_leave, "leaving 42", INVALID_ARGUMENT, "42 is no way to leave",
        sumac_client_leave(client, (enum sumac_leaving)42, error));
    HOLDS(sumac_client_describe, "NULL facts", (sumac_client_describe(client, NULL), true));
    free(long_name);
}

#define BARRIER(what, wanted, words, ...)                                                          \
    REFUSED(                                                                                       \
        sumac_client_barrier, what, wanted, words,                                                 \
        sumac_client_barrier(                                                                      \
            client, &(struct sumac_collective_options){__VA_ARGS__}, NULL, error))

static void try_barriers(void)
{
    const struct sumac_member stranger[] = {{"worker", 7}}, odd[] = {{"evaluator", 0}};
    const struct sumac_member none[] = {{NULL, 0}};
    const struct sumac_member twice[] = {{"worker", 0}, {"chief", 0}, {"worker", 0}};
    const struct sumac_collective_options all = {.name = "all"};

    REFUSED(
        sumac_client_barrier, "NULL options", INVALID_ARGUMENT, "options is NULL",
        sumac_client_barrier(client, NULL, NULL, error));
    REFUSED(
        sumac_client_barrier, "an observer", FAILED_PRECONDITION, "is no member",
        sumac_client_barrier(other, &all, NULL, error));
    BARRIER("no name", INVALID_ARGUMENT, "a barrier's name has 1 to 256 bytes, given none", 0);
    BARRIER("name \"\"", INVALID_ARGUMENT, "given none", .name = "");
    BARRIER("a name of two lines", INVALID_ARGUMENT, "control character", .name = "a\nb");
    BARRIER("a name that is no UTF-8", INVALID_ARGUMENT, "is UTF-8", .name = "\xff");
    BARRIER("NULL tasks", INVALID_ARGUMENT, "tasks is NULL", .name = "b", .task_count = 1);
    BARRIER(
        "2^32 - 1 tasks", INVALID_ARGUMENT, "512 are the most", .name = "b", .tasks = stranger,
        .task_count = UINT32_MAX);
    BARRIER(
        "a NULL job", INVALID_ARGUMENT, "tasks[0] is of job NULL", .name = "b", .tasks = none,
        .task_count = 1);
    BARRIER(
        "an evaluator", INVALID_ARGUMENT, "of job evaluator", .name = "b", .tasks = odd,
        .task_count = 1);
    BARRIER(
        "a task twice", INVALID_ARGUMENT, "worker 0 is named twice", .name = "b", .tasks = twice,
        .task_count = 3);
    BARRIER(
        "a task that there is not", INVALID_ARGUMENT, "worker 7", .name = "b", .tasks = stranger,
        .task_count = 1);
}

static enum sumac_status push(struct sumac_delta delta, double weight)
{
    const struct sumac_push_options options = {.weight = weight};

    return sumac_client_push(client, &delta, 1, &options, NULL, error);
}

#define PUSH(what, wanted, words, ...)                                                             \
    REFUSED(sumac_client_push, what, wanted, words, push((struct sumac_delta){__VA_ARGS__}, 1))

static void try_pushing(void)
{
    const struct sumac_delta delta = {.variable = w, .value = tensor};
    const struct sumac_schedule odd = {.kind = (enum sumac_schedule_kind)99};
    const struct sumac_function unnamed = {.name = NULL}, unknown = {.name = "nope"};
    const struct sumac_function adam = {.name = "adam"};
    const struct sumac_function scheduled = {.name = "sgd", .schedule = &odd};
    struct sumac_tensor changed = tensor;
    struct sumac_push *made = NULL;

    REFUSED(
        sumac_client_push, "NULL deltas", INVALID_ARGUMENT, "deltas is NULL",
        sumac_client_push(client, NULL, 1, NULL, &made, error));
    REFUSED(
        sumac_client_push, "2^64 - 1 deltas", INVALID_ARGUMENT, "the most",
        sumac_client_push(client, &delta, SIZE_MAX, NULL, &made, error));
    PUSH("NULL variable", INVALID_ARGUMENT, "item 0 has no variable", .value = tensor);
    PUSH(
        "another client's variable", INVALID_ARGUMENT, "another client's", .variable = others_w,
        .value = tensor);
    PUSH("no tensor", INVALID_ARGUMENT, "expected float64, given unspecified", .variable = w);
    PUSH(
        "an update function without a name", INVALID_ARGUMENT, "without its name; there are",
        .variable = w, .value = tensor, .function = &unnamed);
    PUSH(
        "an unknown function", INVALID_ARGUMENT, "there is no update function nope", .variable = w,
        .value = tensor, .function = &unknown);
    PUSH(
        "hyperparameters without a function", INVALID_ARGUMENT, "names no function", .variable = w,
        .sets_hyperparameters = true);
    PUSH(
        "hyperparameters and a value", INVALID_ARGUMENT, "and has a value", .variable = w,
        .value = tensor, .function = &adam, .sets_hyperparameters = true);
    PUSH(
        "hyperparameters of rows", INVALID_ARGUMENT, "of some rows", .variable = w,
        .function = &adam, .sets_hyperparameters = true, .has_rows = true, .rows = {0, 1});
    PUSH(
        "hyperparameters of no variable", INVALID_ARGUMENT, "has no variable", .function = &adam,
        .sets_hyperparameters = true);
    PUSH(
        "a schedule that there is not", INVALID_ARGUMENT, "schedule number 99", .variable = w,
        .value = tensor, .function = &scheduled);
    changed.memory = NULL;
    PUSH("no memory", INVALID_ARGUMENT, "no memory", .variable = w, .value = changed);
    changed = tensor;
    changed.offset_bytes = 8;
    PUSH(
        "offset_bytes of memory", INVALID_ARGUMENT, "offset_bytes is 8", .variable = w,
        .value = changed);
    changed = tensor;
    changed.shape.rank = UINT32_MAX;
    PUSH("rank 2^32 - 1", INVALID_ARGUMENT, "shape", .variable = w, .value = changed);
    PUSH(
        "rows from 2^64 - 1 on", OUT_OF_RANGE, "2 rows from row 18446744073709551615 on",
        .variable = w, .value = tensor, .has_rows = true, .rows = {UINT64_MAX, 2});
    PUSH(
        "2^64 - 1 rows", OUT_OF_RANGE, "18446744073709551615 rows from row 1 on", .variable = w,
        .value = tensor, .has_rows = true, .rows = {1, UINT64_MAX});
    const double weights[] = {NAN, INFINITY, -INFINITY, -1, -DBL_MIN};
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++)
        REFUSED(
            sumac_client_push, "weight below 0, or not finite", INVALID_ARGUMENT, "weight is",
            push(delta, weights[i]));
}

static enum sumac_status pull(struct sumac_fetch fetch)
{
    return sumac_client_pull(client, &fetch, 1, NULL, NULL, error);
}

#define PULL(what, wanted, words, ...)                                                             \
    REFUSED(sumac_client_pull, what, wanted, words, pull((struct sumac_fetch){__VA_ARGS__}))

static void try_pulling(void)
{
    const struct sumac_fetch fetch = {.variable = w, .into = tensor};
    struct sumac_tensor changed = tensor;
    struct sumac_pull *made = NULL;

    REFUSED(
        sumac_client_pull, "NULL fetches", INVALID_ARGUMENT, "fetches is NULL",
        sumac_client_pull(client, NULL, 1, NULL, &made, error));
    HOLDS(
        sumac_client_pull, "NULL pull, which waits",
        sumac_client_pull(client, &fetch, 1, NULL, NULL, error) == SUMAC_OK);
    REFUSED(
        sumac_client_pull, "2^64 - 1 fetches", INVALID_ARGUMENT, "the most",
        sumac_client_pull(client, &fetch, SIZE_MAX, NULL, &made, error));
    PULL("NULL variable", INVALID_ARGUMENT, "item 0 has no variable", .into = tensor);
    PULL(
        "another client's variable", INVALID_ARGUMENT, "another client's", .variable = others_w,
        .into = tensor);
    PULL("no tensor", INVALID_ARGUMENT, "expected float64, given unspecified", .variable = w);
    changed.memory = NULL;
    PULL("no memory", INVALID_ARGUMENT, "no memory", .variable = w, .into = changed);
    PULL(
        "2^64 - 1 rows", OUT_OF_RANGE, "18446744073709551615 rows from row 0 on", .variable = w,
        .into = tensor, .has_rows = true, .rows = {0, UINT64_MAX});
}

/* Tensors whose offset was changed after they were viewed. */
static void try_offsets(void)
{
    struct sumac_buffer *buffer;
    struct sumac_tensor viewed;
    const struct sumac_shape shape = SUMAC_SHAPE(ROWS);

    need(sumac_buffer_create(sizeof values, &buffer));
    need(sumac_tensor_view(buffer, 0, SUMAC_FLOAT64, &shape, &viewed));
    const uint64_t offsets[] = {8, sizeof values, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        viewed.offset_bytes = offsets[i];
        PUSH(
            "a tensor past its buffer", OUT_OF_RANGE, "the tensor's 32 bytes begin at byte",
            .variable = w, .value = viewed);
        PULL(
            "a tensor past its buffer", OUT_OF_RANGE, "of a buffer of 32", .variable = w,
            .into = viewed);
        CREATE(
            "initial_value past its buffer", OUT_OF_RANGE, "of a buffer of 32",
            .dtype = SUMAC_FLOAT64, .shape = shape, .initializer = SUMAC_INITIALIZER_ASSIGNED,
            .initial_value = &viewed);
    }
    sumac_buffer_unref(buffer);
}

/* ---- the end */

static void try_what_is_right(void)
{
    const struct sumac_delta delta = {.variable = w, .value = tensor};
    const struct sumac_fetch fetch = {.variable = w, .into = tensor};

    for (int i = 0; i < ROWS; i++)
        values[i] = i + 1;
    need(sumac_client_push(client, &delta, 1, NULL, NULL, &why));
    need(sumac_client_pull(client, &fetch, 1, NULL, NULL, &why));
    HOLDS(
        sumac_client_pull, "what was pushed rightly",
        values[0] == 1 && values[1] == 2 && values[2] == 3 && values[3] == 4);
    HOLDS(
        sumac_client_variable_shards, "one for each of two ps",
        sumac_client_variable_shards(w) == 2);
    HOLDS(
        sumac_client_variable_shard, "2^32 - 1",
        sumac_client_variable_shard(w, UINT32_MAX).rows.count == 0);
    HOLDS(
        sumac_client_push, "nothing at all",
        sumac_client_push(client, NULL, 0, NULL, NULL, error) == SUMAC_OK);
    HOLDS(
        sumac_client_pull, "nothing at all",
        sumac_client_pull(client, NULL, 0, NULL, NULL, error) == SUMAC_OK);
}

#define ROUND(function, what, words, call)                                                         \
    REFUSED(function, what, INVALID_ARGUMENT, words, function call)
#define IN(...)                                                                                    \
    client, &(struct sumac_collective_options) { .name = "m", __VA_ARGS__ }
#define SUM(what, words, value, ...)                                                               \
    ROUND(                                                                                         \
        sumac_client_all_reduce, what, words,                                                      \
        (IN(__VA_ARGS__), SUMAC_REDUCE_SUM, &(value), NULL, error))

static void try_collectives(void)
{
    static float two[2];
    const struct sumac_member stranger[] = {{"worker", 7}}, odd[] = {{"evaluator", 0}};
    const struct sumac_tensor pair = sumac_tensor_over(two, SUMAC_FLOAT32, SUMAC_SHAPE(2));
    const struct sumac_tensor one = sumac_tensor_over(two, SUMAC_FLOAT32, SUMAC_SHAPE(1));
    const struct sumac_tensor whole = sumac_tensor_over(two, SUMAC_INT32, SUMAC_SHAPE(2));
    const struct sumac_tensor none = {.dtype = SUMAC_FLOAT32, .shape = SUMAC_SHAPE(2)};
    const struct sumac_tensor nothing = {.memory = NULL};
    const struct sumac_indexed_slices rows = {.values = pair};

    ROUND(
        sumac_client_all_reduce, "operation 0", "is no operation",
        (IN(.round = 0), SUMAC_REDUCE_NONE, &pair, NULL, error));
    ROUND(
        sumac_client_all_reduce, "operation 77", "is no operation",
        (IN(.round = 0), (enum sumac_reduce_op)77, &pair, NULL, error));
    SUM("a stranger", "the cluster does not list it", pair, .tasks = stranger, .task_count = 1);
    SUM("an evaluator", "only tasks of the jobs chief and worker", pair, .tasks = odd,
        .task_count = 1);
    SUM("2^32 - 1 tasks", "512 are the most", pair, .tasks = stranger, .task_count = UINT32_MAX);
    SUM("another shape of into", "another shape", pair, .into = &one);
    SUM("another type", "of int32", whole, .into = &pair);
    SUM("no memory", "memory", none, .round = 1);
    SUM("an axis", "`axis` is an option of all_gather alone", pair, .axis = 1);
    ROUND(
        sumac_client_all_gather, "nothing", "unspecified",
        (IN(.round = 0), &nothing, NULL, NULL, error));
    ROUND(
        sumac_client_all_gather, "into", "`into` is an option of all_reduce alone",
        (IN(.into = &pair), &pair, NULL, NULL, error));
    ROUND(
        sumac_client_broadcast, "no root", "root is a chief or a worker",
        (IN(.round = 0), (struct sumac_member){.job = NULL}, &pair, NULL, error));
    ROUND(
        sumac_client_concatenate, "no indices", "come with `indices`",
        (IN(.round = 0), &rows, NULL, NULL, error));
    BARRIER("a round", INVALID_ARGUMENT, "no option `round`", .name = "b", .round = 1);
    BARRIER("a weight", INVALID_ARGUMENT, "no option `weight`", .name = "b", .weight = 1);
}

int main(void)
{
    HOLDS(sumac_tune_malloc, "", (sumac_tune_malloc(), true));
    try_base();
    try_clusters();
    try_devices();
    try_strategy();
    try_distributed();
    try_opening();
    try_no_client();
    open_clients();
    try_creating();
    try_kinds();
    try_initial_values();
    try_functions();
    try_names();
    try_asking();
    try_barriers();
    try_collectives();
    try_pushing();
    try_pulling();
    try_offsets();
    try_making_workers();
    try_workers();
    try_what_is_right();
    need(sumac_client_leave(other, SUMAC_LEAVING_DONE, &why));
    need(sumac_client_leave(client, SUMAC_LEAVING_DONE, &why));
    sumac_client_close(other);
    sumac_client_close(client);
    printf("%d calls, %d wrong\n", calls, wrong);
    return wrong == 0 ? 0 : 1;
}
