/* SPDX-License-Identifier: Apache-2.0 */
/* values.c -- a variable's bytes from a file to the ps, and back. */
#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sumac_shape parse_shape(const char *text)
{
    struct sumac_shape shape = {0};

    while (strcmp(text, "-") != 0 && *text != '\0' && shape.rank < SUMAC_RANK_MAX) {
        char *end = NULL;
        shape.extent[shape.rank++] = strtoull(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return shape;
}

/* True: it is of a schedule. */
static bool parse_schedule(const char *name, const char *value, struct sumac_schedule *schedule)
{
    static const char *const kinds[] = {"constant", "exponential_decay", "cosine_decay"};

    if (strcmp(name, "schedule") == 0) {
        for (int i = 0; i < 3; i++)
            if (strcmp(value, kinds[i]) == 0)
                schedule->kind = (enum sumac_schedule_kind)i;
    } else if (strcmp(name, "decay_steps") == 0) {
        schedule->decay_steps = strtoull(value, NULL, 10);
    } else if (strcmp(name, "decay_rate") == 0) {
        schedule->decay_rate = strtod(value, NULL);
    } else if (strcmp(name, "staircase") == 0) {
        schedule->staircase = strcmp(value, "1") == 0;
    } else if (strcmp(name, "alpha") == 0) {
        schedule->alpha = strtod(value, NULL);
    } else if (strcmp(name, "warmup_steps") == 0) {
        schedule->warmup_steps = strtoull(value, NULL, 10);
    } else if (strcmp(name, "warmup_target") == 0) {
        schedule->warmup_target = strtod(value, NULL);
    } else if (strcmp(name, "first_version") == 0) {
        schedule->first_version = strtoull(value, NULL, 10);
    } else {
        return false;
    }
    return true;
}

/* "sgd,learning_rate=0.5,schedule=constant": the text is cut into its words. */
static struct sumac_function parse_function(char *text, struct sumac_schedule *schedule)
{
    struct sumac_function function = {.name = NULL};
    uint32_t count = 0;
    char *rest = NULL;

    *schedule = (struct sumac_schedule){0};
    function.name = strtok_r(text, ",", &rest);
    for (char *word = strtok_r(NULL, ",", &rest); word != NULL && count < SUMAC_HYPERPARAMETERS_MAX;
         word = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(word, '=');
        if (equals == NULL)
            break;
        *equals = '\0';
        if (parse_schedule(word, equals + 1, schedule)) {
            function.schedule = schedule;
            continue;
        }
        function.hyperparameters[count++] =
            (struct sumac_hyperparameter){.name = word, .value = strtod(equals + 1, NULL)};
    }
    return function;
}

/* An unknown name gives the number of no type: 0 would mean float32. */
static enum sumac_dtype parse_dtype(const char *name)
{
    const enum sumac_dtype dtype = sumac_dtype_parse(name);

    return dtype != SUMAC_DTYPE_UNSPECIFIED ? dtype : (enum sumac_dtype)99;
}

static enum sumac_status make(
    struct sumac_client *client, char *const *words, const struct sumac_tensor *first,
    struct sumac_error *error)
{
    struct sumac_schedule schedule;
    const struct sumac_client_variable_options options = {
        .name = words[1],
        .dtype = parse_dtype(words[2]),
        .shape = parse_shape(words[3]),
        .partitioner =
            {.kind = SUMAC_PARTITIONER_FIXED_SHARDS, .num_shards = strtoull(words[4], NULL, 10)},
        .function = parse_function(words[5], &schedule),
        .initializer = first != NULL ? SUMAC_INITIALIZER_ASSIGNED : SUMAC_INITIALIZER_ZEROS,
        .initial_value = first,
    };
    struct sumac_client_variable *variable = NULL;

    return sumac_client_variable_create(client, &options, &variable, error);
}

static enum sumac_status allocate(
    enum sumac_dtype dtype, const struct sumac_shape *shape, struct sumac_buffer **buffer,
    struct sumac_tensor *tensor)
{
    uint64_t elements = 0, bytes = 0;
    enum sumac_status status = sumac_shape_size(shape, dtype, &elements, &bytes);

    if (status == SUMAC_OK)
        status = sumac_buffer_create(bytes, buffer);
    if (status == SUMAC_OK)
        status = sumac_tensor_view(*buffer, 0, dtype, shape, tensor);
    return status;
}

/* All bytes of a tensor from a file, or into it. */
static enum sumac_status
transfer(const struct sumac_tensor *tensor, const char *path, bool into_file)
{
    const size_t bytes = (size_t)sumac_tensor_bytes(tensor);
    FILE *file = fopen(path, into_file ? "wb" : "rb");

    if (file == NULL)
        return SUMAC_NOT_FOUND;
    void *data = sumac_tensor_data(tensor);
    size_t passed = 0;
    if (bytes > 0)
        passed = into_file ? fwrite(data, 1, bytes, file) : fread(data, 1, bytes, file);
    return fclose(file) == 0 && passed == bytes ? SUMAC_OK : SUMAC_DATA_LOSS;
}

enum sumac_status
values_make(struct sumac_client *client, char *const *words, struct sumac_error *error)
{
    return make(client, words, NULL, error);
}

enum sumac_status
values_make_of(struct sumac_client *client, char *const *words, struct sumac_error *error)
{
    const struct sumac_shape shape = parse_shape(words[3]);
    struct sumac_buffer *buffer = NULL;
    struct sumac_tensor first;
    enum sumac_status status = allocate(sumac_dtype_parse(words[2]), &shape, &buffer, &first);

    if (status == SUMAC_OK)
        status = transfer(&first, words[6], false);
    if (status == SUMAC_OK)
        status = make(client, words, &first, error);
    sumac_buffer_unref(buffer);
    return status;
}

enum sumac_status
values_put(struct sumac_client *client, char *const *words, size_t count, struct sumac_error *error)
{
    struct sumac_function function = {0};
    struct sumac_schedule schedule;
    const struct sumac_push_options options = {
        .allow_non_finite = count > 6 && strcmp(words[6], "any") == 0,
    };
    const struct sumac_shape shape = parse_shape(words[3]);
    struct sumac_delta delta = {0};
    struct sumac_buffer *buffer = NULL;
    struct sumac_push *push = NULL;

    delta.has_rows = count > 7;
    if (delta.has_rows)
        delta.rows =
            (struct sumac_range){.first = strtoull(words[7], NULL, 10), .count = shape.extent[0]};
    enum sumac_status status = sumac_client_variable_find(client, words[1], &delta.variable, error);
    if (status == SUMAC_OK && count > 5 && strcmp(words[5], "-") != 0) {
        function = parse_function(words[5], &schedule);
        delta.function = &function;
    }
    if (status == SUMAC_OK)
        status = allocate(sumac_dtype_parse(words[2]), &shape, &buffer, &delta.value);
    if (status == SUMAC_OK)
        status = transfer(&delta.value, words[4], false);
    if (status == SUMAC_OK)
        status = sumac_client_push(client, &delta, 1, &options, &push, error);
    if (status == SUMAC_OK)
        status = sumac_push_wait(push, 0, error);
    sumac_buffer_unref(buffer);
    return status;
}

enum sumac_status
values_set(struct sumac_client *client, char *const *words, struct sumac_error *error)
{
    struct sumac_schedule schedule;
    const struct sumac_function function = parse_function(words[2], &schedule);
    struct sumac_delta delta = {.function = &function, .sets_hyperparameters = true};
    const enum sumac_status status =
        sumac_client_variable_find(client, words[1], &delta.variable, error);

    return status == SUMAC_OK ? sumac_client_push(client, &delta, 1, NULL, NULL, error) : status;
}

enum sumac_status values_fetch(
    struct sumac_client *client, char *const *words, size_t count, struct sumac_error *error)
{
    struct sumac_fetch fetch = {.slot = count > 3 ? words[3] : NULL};
    struct sumac_buffer *buffer = NULL;
    struct sumac_pull *pull = NULL;
    enum sumac_status status = sumac_client_variable_find(client, words[1], &fetch.variable, error);

    if (status == SUMAC_OK) {
        const struct sumac_shape shape = sumac_client_variable_shape(fetch.variable);
        enum sumac_dtype dtype = sumac_client_variable_dtype(fetch.variable);
        if (fetch.slot != NULL && sumac_dtype_bytes(dtype) == 2)
            dtype = SUMAC_FLOAT32;
        status = allocate(dtype, &shape, &buffer, &fetch.into);
    }
    if (status == SUMAC_OK)
        status = sumac_client_pull(client, &fetch, 1, NULL, &pull, error);
    if (status == SUMAC_OK)
        status = sumac_pull_wait(pull, 0, error);
    if (status == SUMAC_OK)
        status = transfer(&fetch.into, words[2], true);
    sumac_buffer_unref(buffer);
    return status;
}

enum sumac_status
values_facts(struct sumac_client *client, char *const *words, struct sumac_error *error)
{
    struct sumac_client_variable *variable = NULL;
    struct sumac_client_variable_facts facts;
    enum sumac_status status = sumac_client_variable_find(client, words[1], &variable, error);

    if (status == SUMAC_OK)
        status = sumac_client_variable_describe(variable, &facts, error);
    if (status != SUMAC_OK)
        return status;
    printf(
        "facts %" PRIu64 " %" PRIu64 " %s", facts.version_min, facts.version_max,
        facts.function.name);
    for (uint32_t i = 0; i < SUMAC_HYPERPARAMETERS_MAX; i++)
        if (facts.function.hyperparameters[i].name != NULL)
            printf(
                " %s=%g", facts.function.hyperparameters[i].name,
                facts.function.hyperparameters[i].value);
    for (uint32_t i = 0; i < facts.slot_count; i++)
        printf(" slot:%s", facts.slots[i]);
    printf("%s\n", facts.has_schedule ? " scheduled" : "");
    return SUMAC_OK;
}

enum sumac_status values_list(struct sumac_client *client, struct sumac_error *error)
{
    struct sumac_client_variable *variables[1024];
    struct sumac_ps_facts facts;
    size_t count = 0;
    enum sumac_status status = sumac_client_list(client, variables, 1024, &count, error);

    if (status == SUMAC_OK)
        status = sumac_client_stats(client, 0, &facts, error);
    if (status != SUMAC_OK)
        return status;
    printf("list %zu %" PRIu64, count, facts.variables);
    for (size_t i = 0; i < count && i < 1024; i++)
        printf(" %s", sumac_client_variable_name(variables[i]));
    printf("\n");
    return SUMAC_OK;
}
