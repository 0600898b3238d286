/* SPDX-License-Identifier: Apache-2.0 */
/* strategist.c -- a worker of a strategy over several, that obeys lines on its standard input, so
 * that a test can say who does what.
 *
 *     all_reduce SIZE VALUE [MS] -> "came to FIRST LAST": in each replica, of SIZE float32; bounded
 *     mean SIZE VALUE [int32]   -> likewise, their mean; of that type
 *     uneven SIZE VALUE         -> as all_reduce, but replicas of odd numbers have one more
 *     twice SIZE VALUE          -> as all_reduce, and again, whatever the first time comes to
 *     all_gather SIZE VALUE     -> likewise
 *     reduce SIZE VALUE [AXIS]  -> likewise, across the replicas, over that axis
 *     batch COUNT VALUE         -> "batch of COUNT": across, the means of so many tensors
 *     read                      -> "came to FIRST LAST": across, the variable
 *     wrongly CALL              -> reduce, gather, batch, create, read or write with NULL
 *     mixed SIZE VALUE          -> likewise, the mean of VALUE + 10, VALUE + 20, … of the replicas,
 * beside one of VALUE, which is the same in all
 *     partly SIZE VALUE         -> as all_reduce, but replicas of even numbers return before it
 *     fail                      -> a run whose replicas return DATA_LOSS
 *     skip                      -> "skipped": a run whose replicas make no call
 *     create NAME SIZE VALUE [MEAN|ON_READ|RATE] -> "created NAME": ON_WRITE and SUM; with MEAN;
 * ON_READ; or by sgd of that learning rate
 *     inside NAME SIZE VALUE [OTHER] -> "created NAME": SUM, in the replicas' function. Replica i
 * proposes VALUE + i. Replicas of odd numbers ask for OTHER
 *     split NAME ROWS ROWS …    -> "created NAME": in shards of so many rows
 *     add NAME VALUE            -> "came to FIRST LAST": assign_add in each replica
 *     garbage ROUND HEX         -> "thrown in": these bytes to that round of the strategy, past it
 *     short WHAT N [COUNT]      -> "short": COUNT (1) of WHAT fail here, from number N on. WHAT is
 * a large result, a round, the plan of the sums, the block for other workers, or the taking of sums
 *     who                       -> "replicas R"
 *     leave                     -> "left"
 *
 *     nest COUNT SIZE VALUE PACK -> "nest came to VALUE": all_reduce of as many tensors, number i
 * of VALUE + i, every third one float64, in packs of PACK bytes; what each of them has, less what
 * the replicas add for i
 *
 * Its first argument is how many replicas it has, the second bounds each call in milliseconds;
 * without any its strategy is the environment's, and it ends as closing that one says. A
 * refusal is "refused STATUS text".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "members.h"
#include "peers.h"
#include "../returning.h"
#include "strategy.h"
#include "sumac/client.h"
#include "sumac/collective.h"
#include "sumac/variable.h"
#include "value.h"

#define LINE_BYTES 65536
#define WORDS_MAX 4096
#define SIZE_MAX_GIVEN (1u << 24)

struct strategist {
    struct sumac_client *client;
    struct sumac_strategy *strategy;
    struct sumac_variable *variable;
    struct sumac_error error;
    const char *what;
    struct sumac_communication_options options;
};

/* ---- what fails here alone */

static struct {
    char what[16];
    uint32_t until, count; /* until 0: nothing fails */
} shortage;
static _Thread_local bool no_memory;

static bool runs_short(const char *what)
{
    if (shortage.until == 0 || strcmp(shortage.what, what) != 0)
        return false;
    if (shortage.until > 1) {
        shortage.until--;
        return false;
    }
    shortage.until = --shortage.count == 0 ? 0 : 1;
    return true;
}

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_realloc(void *memory, size_t bytes)
{
    return no_memory ? NULL : __real_realloc(memory, bytes);
}

#define WRAPPED(type, name, parameters)                                                            \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters

WRAPPED(
    struct sumac_value *, results_make_tensor,
    (struct kept * results, enum sumac_dtype dtype, const struct sumac_shape *shape,
     void **elements))
{
    return runs_short("result") ? NULL
                                : __real_results_make_tensor(results, dtype, shape, elements);
}

WRAPPED(
    enum sumac_status, client_contribute,
    (struct sumac_client * client, const struct sumac_collective_options *options,
     const struct client_contribution *contribution, struct sumac_collective **collective,
     struct sumac_error *error))
{
    if (runs_short("round"))
        return fail(error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED, "too many pushes");
    return __real_client_contribute(client, options, contribution, collective, error);
}

WRAPPED(
    uint32_t, sums_plan,
    (struct sumac_strategy * strategy, const struct call *call, const struct sumac_value *value,
     uint32_t timeout_ms))
{
    no_memory = runs_short("plan");
    const uint32_t rounds = __real_sums_plan(strategy, call, value, timeout_ms);
    no_memory = false;
    return rounds;
}

WRAPPED(
    void, pack_value,
    (struct pack * pack, const struct sumac_value *value, pack_elements *elements,
     const void *context))
{
    no_memory = runs_short("block");
    __real_pack_value(pack, value, elements, context);
    no_memory = false;
}

WRAPPED(enum sumac_status, unpack_value, (struct unpack * unpack, struct sumac_value **value))
{
    return runs_short("value") ? SUMAC_RESOURCE_EXHAUSTED : __real_unpack_value(unpack, value);
}

WRAPPED(
    enum sumac_status, peers_take_sum,
    (struct sumac_strategy * strategy, const struct sumac_tensor *tensor, struct sumac_value **sum,
     struct sumac_error *error))
{
    return runs_short("sum") ? value_fail_for_memory(error)
                             : __real_peers_take_sum(strategy, tensor, sum, error);
}

/* ---- what is computed */

static struct sumac_value *make_value(const char *size, const char *element)
{
    const uint64_t count = strtoull(size, NULL, 10);
    float *elements =
        count > SIZE_MAX_GIVEN ? NULL : malloc(((size_t)count + 1) * sizeof *elements);
    struct sumac_value *value = NULL;

    for (uint64_t i = 0; elements != NULL && i < count; i++)
        elements[i] = strtof(element, NULL);
    if (elements != NULL)
        value = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(count), elements);
    free(elements);
    return value;
}

/* The same numbers as int32. Takes  value. */
static struct sumac_value *as_integers(struct sumac_value *value)
{
    const struct sumac_shape shape = sumac_value_shape(value);
    const float *from = sumac_value_data(value);
    int32_t *elements = calloc((size_t)shape.extent[0] + 1, sizeof *elements);

    for (uint64_t i = 0; elements != NULL && i < shape.extent[0]; i++)
        elements[i] = (int32_t)from[i];
    struct sumac_value *made = sumac_value_tensor(SUMAC_INT32, shape, elements);
    free(elements);
    sumac_value_unref(value);
    return made;
}

static double element_of(const struct sumac_value *tensor, uint64_t at)
{
    return sumac_value_as_tensor(tensor)->dtype == SUMAC_FLOAT64
               ? ((const double *)sumac_value_data(tensor))[at]
               : (double)((const float *)sumac_value_data(tensor))[at];
}

static void say_value(const struct sumac_value *value)
{
    const struct sumac_shape shape = sumac_value_shape(value);
    const uint64_t count = shape.rank == 0 ? 1 : shape.extent[0];

    printf("came to %g %g\n", element_of(value, 0), element_of(value, count - 1));
    fflush(stdout);
}

static struct sumac_value *make_nest(char *const *words)
{
    const uint32_t count = (uint32_t)strtoul(words[1], NULL, 10);
    struct sumac_value **items = calloc((size_t)count + 1, sizeof *items);
    struct sumac_value *nest = NULL;

    for (uint32_t i = 0; items != NULL && i < count; i++) {
        const uint64_t size = strtoull(words[2], NULL, 10);
        const enum sumac_dtype dtype = i % 3 == 2 ? SUMAC_FLOAT64 : SUMAC_FLOAT32;
        void *elements = calloc((size_t)size, sizeof(double));
        for (uint64_t j = 0; elements != NULL && j < size; j++) {
            const double element = strtod(words[3], NULL) + i;
            if (dtype == SUMAC_FLOAT64)
                ((double *)elements)[j] = element;
            else
                ((float *)elements)[j] = (float)element;
        }
        items[i] = sumac_value_tensor(dtype, SUMAC_SHAPE(size), elements);
        free(elements);
    }
    if (items != NULL)
        nest = sumac_value_list(items, count);
    free(items);
    return nest;
}

/* Each element, less R·i: the same in all, or not. */
static void say_nest(const struct strategist *now, const struct sumac_value *nest)
{
    const double replicas = sumac_strategy_num_replicas_in_sync(now->strategy);
    const double value = element_of(sumac_value_item(nest, 0), 0);
    bool same = true;

    for (uint32_t i = 0; i < sumac_value_count(nest); i++) {
        const struct sumac_value *tensor = sumac_value_item(nest, i);
        for (uint64_t j = 0; j < sumac_value_shape(tensor).extent[0]; j++)
            same = same && element_of(tensor, j) - replicas * i == value;
    }
    printf("nest came to %g%s\n", value, same ? "" : ", but not in all");
    fflush(stdout);
}

static enum sumac_status
nest_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct sumac_communication_options options = {
        .bytes_per_pack = *(const uint64_t *)context};

    return return_from_replica(
        replica,
        sumac_replica_all_reduce(
            replica, SUMAC_REDUCE_SUM, sumac_value_item(sumac_replica_args(replica), 0), &options,
            &returned, error),
        &returned);
}

static enum sumac_status reduce_nest(struct strategist *now, char *const *words)
{
    uint64_t bytes_per_pack = strtoull(words[4], NULL, 10);
    struct sumac_value *const nest = make_nest(words);
    struct sumac_value *args = sumac_value_tuple(&nest, 1), *result = NULL, *results = NULL;
    const struct sumac_run_options step = {
        .function = nest_in_replica, .context = &bytes_per_pack, .args = args};

    enum sumac_status status = sumac_strategy_run(now->strategy, &step, &result, &now->error);
    if (status == SUMAC_OK)
        status = sumac_strategy_local_results(now->strategy, result, &results, &now->error);
    if (status == SUMAC_OK)
        say_nest(now, sumac_value_item(results, 0));
    sumac_value_unref(args);
    sumac_value_unref(result);
    sumac_value_unref(results);
    return status;
}

/* As no strategy would. */
static enum sumac_status throw_in(struct strategist *now, char *const *words, size_t count)
{
    const char *hex = count > 2 ? words[2] : "";
    const uint64_t bytes = strlen(hex) / 2;
    uint8_t *block = calloc(bytes + 1, 1);

    for (uint64_t i = 0; block != NULL && i < bytes; i++) {
        const char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};
        block[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    const struct sumac_collective_options options = {
        .name = "strategy 1", .round = strtoull(words[1], NULL, 10)};
    const uint64_t attempts[] = {1, 1}; /* of two workers, none of which was started again */
    const struct client_contribution contribution = {
        .operation = COLLECTIVE_GATHER,
        .value = {.dtype = SUMAC_UINT8, .shape = SUMAC_SHAPE(bytes), .memory = block},
        .attempts = attempts};
    struct sumac_collective *collective;
    enum sumac_status status =
        client_contribute(now->client, &options, &contribution, &collective, &now->error);
    if (status == SUMAC_OK)
        status = sumac_collective_wait(collective, 0, &now->error);
    free(block);
    if (status == SUMAC_OK)
        (void)puts("thrown in");
    (void)fflush(stdout);
    return status;
}

static enum sumac_status reduce_in_replica(
    const struct strategist *now, struct sumac_replica *replica, const struct sumac_value *value,
    struct sumac_value **result, struct sumac_error *error)
{
    const bool means = strcmp(now->what, "mean") == 0;
    struct sumac_value *more = NULL, *first = NULL;
    struct sumac_error why;

    if (strcmp(now->what, "uneven") == 0 && sumac_replica_id(replica) % 2 == 1)
        value = more = sumac_value_tensor(
            SUMAC_FLOAT32, SUMAC_SHAPE(sumac_value_shape(value).extent[0] + 1), NULL);
    if (strcmp(now->what, "twice") == 0 &&
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, value, NULL, &first, &why) == SUMAC_OK)
        sumac_value_unref(first);
    const enum sumac_status status = sumac_replica_all_reduce(
        replica, means ? SUMAC_REDUCE_MEAN : SUMAC_REDUCE_SUM, value, &now->options, result, error);
    sumac_value_unref(more);
    return status;
}

static enum sumac_status
in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct strategist *now = context;
    const struct sumac_value *value = sumac_value_item(sumac_replica_args(replica), 0);

    if (strcmp(now->what, "fail") == 0)
        return return_from_replica(replica, SUMAC_DATA_LOSS, &returned);
    if (strcmp(now->what, "skip") == 0)
        return SUMAC_OK;
    if (strcmp(now->what, "partly") == 0 && sumac_replica_id(replica) % 2 == 0)
        return SUMAC_OK;
    if (strcmp(now->what, "all_gather") == 0)
        return return_from_replica(
            replica, sumac_replica_all_gather(replica, value, 0, NULL, &returned, error),
            &returned);
    if (strcmp(now->what, "add") == 0)
        return return_from_replica(
            replica, sumac_variable_assign_add(now->variable, replica, value, &returned, error),
            &returned);
    return return_from_replica(
        replica, reduce_in_replica(now, replica, value, &returned, error), &returned);
}

/* What the first replica of this process has of it. */
static enum sumac_status say_own(struct strategist *now, struct sumac_value *result)
{
    struct sumac_value *results = NULL;

    const enum sumac_status status =
        sumac_strategy_local_results(now->strategy, result, &results, &now->error);
    if (status == SUMAC_OK)
        say_value(sumac_value_item(results, 0));
    sumac_value_unref(results);
    return status;
}

static enum sumac_status run(struct strategist *now, char *const *words, size_t count)
{
    struct sumac_value *value = count >= 3 ? make_value(words[1], words[2]) : sumac_value_none();

    if (count > 3 && strcmp(words[3], "int32") == 0)
        value = as_integers(value);
    struct sumac_value *args = sumac_value_tuple(&value, 1), *result = NULL;
    const struct sumac_run_options step = {.function = in_replica, .context = now, .args = args};
    now->what = words[0];
    now->options.timeout_ms = count > 3 ? (uint32_t)strtoul(words[3], NULL, 10) : 0;
    enum sumac_status status = sumac_strategy_run(now->strategy, &step, &result, &now->error);
    if (status == SUMAC_OK && strcmp(now->what, "skip") == 0) {
        (void)puts("skipped");
        (void)fflush(stdout);
    } else if (status == SUMAC_OK) {
        status = say_own(now, result);
    }
    sumac_value_unref(args);
    sumac_value_unref(result);
    return status;
}

static enum sumac_status reduce(struct strategist *now, char *const *words, size_t count)
{
    struct sumac_value *value = make_value(words[1], words[2]), *result = NULL;
    const struct sumac_axes axes = {
        .count = 1, .axis = {count > 3 ? strtoll(words[3], NULL, 10) : 0}};

    const enum sumac_status status = sumac_strategy_reduce(
        now->strategy, SUMAC_REDUCE_MEAN, value, count > 3 ? &axes : NULL, &result, &now->error);
    if (status == SUMAC_OK)
        say_value(result);
    sumac_value_unref(value);
    sumac_value_unref(result);
    return status;
}

static enum sumac_status reduce_batch(struct strategist *now, char *const *words)
{
    const uint32_t count = (uint32_t)strtoul(words[1], NULL, 10);
    struct sumac_value *items[8], *results = NULL;

    for (uint32_t i = 0; i < count && i < 8; i++)
        items[i] = make_value("2", words[2]);
    struct sumac_value *values = sumac_value_list(items, count);
    const enum sumac_status status = sumac_strategy_batch_reduce(
        now->strategy, SUMAC_REDUCE_MEAN, values, &results, &now->error);
    if (status == SUMAC_OK)
        printf("batch of %" PRIu32 "\n", sumac_value_count(results));
    (void)fflush(stdout);
    sumac_value_unref(values);
    sumac_value_unref(results);
    return status;
}

static enum sumac_status read_across(struct strategist *now)
{
    struct sumac_value *value = NULL;

    const enum sumac_status status = sumac_variable_read(now->variable, NULL, &value, &now->error);
    if (status == SUMAC_OK)
        say_value(value);
    sumac_value_unref(value);
    return status;
}

static enum sumac_status call_wrongly(struct strategist *now, const char *call)
{
    struct sumac_value *result = NULL;

    if (strcmp(call, "reduce") == 0)
        return sumac_strategy_reduce(
            now->strategy, SUMAC_REDUCE_MEAN, NULL, NULL, &result, &now->error);
    if (strcmp(call, "gather") == 0)
        return sumac_strategy_gather(now->strategy, NULL, 0, &result, &now->error);
    if (strcmp(call, "batch") == 0)
        return sumac_strategy_batch_reduce(
            now->strategy, SUMAC_REDUCE_MEAN, NULL, &result, &now->error);
    if (strcmp(call, "create") == 0)
        return sumac_variable_create(now->strategy, NULL, NULL, &now->error);
    if (strcmp(call, "read") == 0)
        return sumac_variable_read(now->variable, NULL, NULL, &now->error);
    return sumac_variable_assign(now->variable, NULL, NULL, &result, &now->error);
}

/* VALUE + 10 in the first replica of all, VALUE + 20 in the next, … */
static enum sumac_status value_of_replica(
    const struct sumac_value_context *replica, void *context, struct sumac_value **value,
    struct sumac_error *error)
{
    char *const *words = context;
    char element[32];

    (void)error;
    (void)snprintf(
        element, sizeof element, "%g",
        strtod(words[2], NULL) + 10 * (replica->replica_id_in_sync_group + 1.0));
    *value = make_value(words[1], element);
    return SUMAC_OK;
}

static enum sumac_status reduce_mixed(struct strategist *now, char *const *words)
{
    struct sumac_value *each = NULL, *result = NULL;

    enum sumac_status status = sumac_strategy_values_from_function(
        now->strategy, value_of_replica, (void *)(uintptr_t)words, &each, &now->error);
    if (status != SUMAC_OK)
        return status;
    struct sumac_value *const items[] = {make_value(words[1], words[2]), each};
    struct sumac_value *both = sumac_value_list(items, 2);
    status =
        sumac_strategy_reduce(now->strategy, SUMAC_REDUCE_MEAN, both, NULL, &result, &now->error);
    if (status == SUMAC_OK)
        say_value(sumac_value_item(result, 1));
    sumac_value_unref(both);
    sumac_value_unref(result);
    return status;
}

static enum sumac_status create(struct strategist *now, char *const *words, size_t count)
{
    struct sumac_value *initial = make_value(words[2], words[3]);
    const bool means = count > 4 && strcmp(words[4], "MEAN") == 0;
    const bool on_read = count > 4 && strcmp(words[4], "ON_READ") == 0;
    const struct sumac_variable_options options = {
        .name = words[1],
        .initial = initial,
        .synchronization = on_read ? SUMAC_SYNCHRONIZATION_ON_READ : SUMAC_SYNCHRONIZATION_ON_WRITE,
        .aggregation = means ? SUMAC_REDUCE_MEAN : SUMAC_REDUCE_SUM,
        .function = count > 4 && !means && !on_read
                        ? SUMAC_FUNCTION("sgd", {"learning_rate", strtod(words[4], NULL)})
                        : (struct sumac_function){.name = NULL}};
    struct sumac_variable *variable = NULL;

    const enum sumac_status status =
        sumac_variable_create(now->strategy, &options, &variable, &now->error);
    if (status == SUMAC_OK) {
        sumac_variable_destroy(now->variable);
        now->variable = variable;
        printf("created %s\n", words[1]);
        fflush(stdout);
    }
    sumac_value_unref(initial);
    return status;
}

/* What replicas create, and what the first of this worker has got. */
struct inside {
    char *const *words;
    size_t count;
    struct sumac_variable *made;
};

static enum sumac_status
create_in_replica(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct inside *const inside = context;
    const uint32_t id = sumac_replica_id(replica);
    struct sumac_variable *made = NULL;
    char element[32];

    (void)snprintf(element, sizeof element, "%g", strtod(inside->words[3], NULL) + id);
    struct sumac_value *initial = make_value(inside->words[2], element);
    const enum sumac_status status = sumac_variable_create(
        sumac_replica_strategy(replica),
        &(struct sumac_variable_options){
            .name = inside->words[inside->count > 4 && id % 2 == 1 ? 4 : 1],
            .initial = initial,
            .aggregation = SUMAC_REDUCE_SUM,
            .replica = replica},
        &made, error);
    sumac_value_unref(initial);
    if (status == SUMAC_OK && id % 2 == 0) /* of two replicas one is */
        inside->made = made;
    return status;
}

static enum sumac_status create_inside(struct strategist *now, char *const *words, size_t count)
{
    struct inside inside = {.words = words, .count = count};
    const struct sumac_run_options step = {.function = create_in_replica, .context = &inside};

    const enum sumac_status status = sumac_strategy_run(now->strategy, &step, NULL, &now->error);
    if (status == SUMAC_OK) {
        sumac_variable_destroy(now->variable);
        now->variable = inside.made;
        printf("created %s\n", words[1]);
        fflush(stdout);
    }
    return status;
}

static enum sumac_status create_split(struct strategist *now, char *const *words, size_t count)
{
    uint64_t rows[WORDS_MAX], all = 0;
    struct sumac_variable *variable = NULL;

    for (size_t i = 2; i < count; i++) {
        rows[i - 2] = strtoull(words[i], NULL, 10);
        all += rows[i - 2];
    }
    struct sumac_value *initial = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(all), NULL);
    const struct sumac_variable_options options = {
        .name = words[1],
        .initial = initial,
        .shard_rows = rows,
        .shard_count = (uint32_t)(count - 2)};
    const enum sumac_status status =
        sumac_variable_create(now->strategy, &options, &variable, &now->error);
    if (status == SUMAC_OK) {
        sumac_variable_destroy(variable);
        printf("created %s\n", words[1]);
        fflush(stdout);
    }
    sumac_value_unref(initial);
    return status;
}

static enum sumac_status add(struct strategist *now, char *const *words)
{
    char size[24];
    char *const made[] = {words[0], size, words[2]};

    (void)snprintf(size, sizeof size, "%" PRIu64, sumac_variable_shape(now->variable).extent[0]);
    return run(now, made, 3);
}

static enum sumac_status obey(struct strategist *now, char *const *words, size_t count)
{
    if (count == 1 && strcmp(words[0], "who") == 0) {
        printf("replicas %" PRIu32 "\n", sumac_strategy_num_replicas_in_sync(now->strategy));
        fflush(stdout);
        return SUMAC_OK;
    }
    if ((count == 3 || count == 4) && strcmp(words[0], "short") == 0) {
        (void)snprintf(shortage.what, sizeof shortage.what, "%s", words[1]);
        shortage.until = (uint32_t)strtoul(words[2], NULL, 10);
        shortage.count = count == 4 ? (uint32_t)strtoul(words[3], NULL, 10) : 1;
        (void)puts("short");
        (void)fflush(stdout);
        return SUMAC_OK;
    }
    if ((count == 3 || count == 4) && strcmp(words[0], "reduce") == 0)
        return reduce(now, words, count);
    if ((count == 4 || count == 5) && strcmp(words[0], "create") == 0)
        return create(now, words, count);
    if ((count == 4 || count == 5) && strcmp(words[0], "inside") == 0)
        return create_inside(now, words, count);
    if (count == 3 && strcmp(words[0], "batch") == 0)
        return reduce_batch(now, words);
    if (count == 1 && strcmp(words[0], "read") == 0)
        return read_across(now);
    if (count == 2 && strcmp(words[0], "wrongly") == 0)
        return call_wrongly(now, words[1]);
    if (count >= 3 && strcmp(words[0], "split") == 0)
        return create_split(now, words, count);
    if (count == 3 && strcmp(words[0], "add") == 0)
        return add(now, words);
    if (count == 3 && strcmp(words[0], "mixed") == 0)
        return reduce_mixed(now, words);
    if (count >= 2 && strcmp(words[0], "garbage") == 0)
        return throw_in(now, words, count);
    if (count == 5 && strcmp(words[0], "nest") == 0)
        return reduce_nest(now, words);
    return run(now, words, count);
}

static size_t split(char *line, char **words, size_t most)
{
    size_t count = 0;

    for (char *word = strtok(line, " \n"); word != NULL && count < most; word = strtok(NULL, " \n"))
        words[count++] = word;
    return count;
}

static enum sumac_status open_all(struct strategist *now, char **argv)
{
    const struct sumac_client_options options = {.cluster = NULL};

    enum sumac_status status = sumac_client_open(&options, &now->client, &now->error);
    if (status != SUMAC_OK)
        return status;
    const struct sumac_strategy_options strategy = {
        .kind = SUMAC_STRATEGY_MULTI_WORKER,
        .replicas = (uint32_t)strtoul(argv[1], NULL, 10),
        .timeout_ms = (uint32_t)strtoul(argv[2], NULL, 10),
        .client = now->client};
    return sumac_strategy_create(&strategy, &now->strategy, &now->error);
}

int main(int argc, char **argv)
{
    struct strategist now = {.client = NULL};
    char line[LINE_BYTES];
    char *words[WORDS_MAX];

    const bool of_environment = argc == 1;
    if ((of_environment ? sumac_strategy_from_environment(&now.strategy, &now.error)
                        : open_all(&now, argv)) != SUMAC_OK) {
        fprintf(stderr, "strategist: %s\n", now.error.text);
        return EXIT_FAILURE;
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        const size_t count = split(line, words, WORDS_MAX);
        if (count == 1 && strcmp(words[0], "leave") == 0)
            break;
        const enum sumac_status status = count == 0 ? SUMAC_OK : obey(&now, words, count);
        if (status != SUMAC_OK) {
            printf(
                "refused %s %s\n",
                status > SUMAC_UNAUTHENTICATED ? "NO_STATUS" : sumac_status_name(status),
                now.error.text);
            fflush(stdout);
        }
    }
    sumac_variable_destroy(now.variable);
    sumac_check(sumac_strategy_close(now.strategy, &now.error), &now.error);
    if (of_environment)
        return EXIT_SUCCESS;
    if (sumac_client_leave(now.client, SUMAC_LEAVING_DONE, &now.error) == SUMAC_OK)
        printf("left\n");
    sumac_client_close(now.client);
    return EXIT_SUCCESS;
}
