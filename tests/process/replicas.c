/* SPDX-License-Identifier: Apache-2.0 */
/* replicas.c -- a worker of a parameter_server strategy of two replicas, that obeys lines on its
 * standard input.
 *
 *     create NAME ROWS VALUE AGGREGATION SYNCHRONIZATION [FUNCTION]
 *                                  -> "created": a float32 vector; the numbers of the enums
 *     uncounted NAME               -> "created": of two rows, with shard_rows of no shard_count
 *     many NAME COUNT              -> "read": all at once, so often the same
 *     beside NAME OTHER            -> "created": of two rows, where that one is
 *     local NAME ROWS VALUE        -> "created": one that is not distributed
 *     read NAME                    -> "read VALUE": across
 *     components NAME              -> "components VALUE"
 *     slots NAME                   -> "slots VALUE": of its update function
 *     facts NAME                   -> "synchronization N, aggregation N, trainable N"
 *     write NAME HOW A B           -> "wrote RESULT": replica 0 writes A everywhere, replica 1 B
 *     quietly NAME HOW A B         -> "wrote": the same, and nobody reads what it comes to
 *     scatter NAME HOW ROW A B     -> "wrote RESULT": to one row, twice in replica 1
 *     across NAME HOW A            -> "wrote RESULT"
 *     apply NAME FUNCTION|- A      -> "applied": in an update
 *     rows NAME FUNCTION|- ROW A   -> "applied": likewise, by rows
 *     together A                   -> "together VALUES": applied to all, in both replicas, and read
 *     define NAME TEXT             -> "defined": an update function
 *     leave                        -> "left"
 *
 * Its argument bounds each call in milliseconds (0: as usual). A refusal is "refused STATUS text".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sumac/variable.h"
#include "../returning.h"

#define LINE_BYTES 4096
#define VARIABLES_MAX 16u
#define WORDS_MAX 7u
#define FEW 16u

struct worker {
    struct sumac_client *client;
    struct sumac_strategy *strategy;
    struct sumac_variable *variables[VARIABLES_MAX];
    uint32_t variable_count;
    char *words[WORDS_MAX];
    size_t count;
    struct sumac_value *result;
    struct sumac_error error;
};

/* Of many elements, the first and the last. */
static void print(const struct sumac_value *value, char *text, size_t text_bytes)
{
    const struct sumac_tensor *tensor = sumac_value_as_tensor(value);
    const uint64_t count = tensor == NULL ? 0 : sumac_tensor_bytes(tensor) / sizeof(float);

    if (count <= FEW) {
        (void)sumac_value_print(value, text, text_bytes);
        return;
    }
    const float *elements = sumac_tensor_data(tensor);
    (void)snprintf(text, text_bytes, "%g to %g", (double)elements[0], (double)elements[count - 1]);
}

static void say(const char *what, struct sumac_value *value)
{
    char text[512] = "";

    if (value != NULL)
        print(value, text, sizeof text);
    printf("%s%s%s\n", what, value != NULL ? " " : "", text);
    fflush(stdout);
}

/* The newest of that name: one is created again with another handle. */
static struct sumac_variable *find(const struct worker *worker)
{
    for (uint32_t i = worker->variable_count; i-- > 0;)
        if (strcmp(sumac_variable_name(worker->variables[i]), worker->words[1]) == 0)
            return worker->variables[i];
    return NULL;
}

static struct sumac_value *vector(uint64_t rows, const char *element)
{
    const float number = strtof(element, NULL);
    struct sumac_value *made = sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(rows), NULL);
    float *elements = sumac_tensor_data(sumac_value_as_tensor(made));

    for (uint64_t i = 0; i < rows; i++)
        elements[i] = number;
    return made;
}

static struct sumac_value *like(const struct sumac_variable *variable, const char *element)
{
    return vector(sumac_variable_shape(variable).extent[0], element);
}

static struct sumac_value *
row_of(const struct sumac_variable *variable, const char *row, const char *element, uint64_t times)
{
    const int32_t indices[] = {(int32_t)strtol(row, NULL, 10), (int32_t)strtol(row, NULL, 10)};

    return sumac_value_indexed_slices(
        vector(times, element), sumac_value_tensor(SUMAC_INT32, SUMAC_SHAPE(times), indices),
        sumac_variable_shape(variable));
}

/* Takes  initial. */
static enum sumac_status create_of(
    struct worker *worker, const struct sumac_variable_options *options,
    struct sumac_value *initial)
{
    struct sumac_variable_options own = *options;

    own.initial = initial;
    const enum sumac_status status = sumac_variable_create(
        worker->strategy, &own, &worker->variables[worker->variable_count], &worker->error);
    sumac_value_unref(initial);
    if (status != SUMAC_OK)
        return status;
    worker->variable_count++;
    say("created", NULL);
    return status;
}

static enum sumac_status create(struct worker *worker, bool local)
{
    char **const words = worker->words;
    struct sumac_value *initial = vector(strtoull(words[2], NULL, 10), words[3]);
    const struct sumac_variable_options options = {
        .name = words[1],
        .aggregation = local ? SUMAC_REDUCE_NONE : (enum sumac_reduce_op)atoi(words[4]),
        .synchronization =
            local ? SUMAC_SYNCHRONIZATION_AUTO : (enum sumac_synchronization)atoi(words[5]),
        .function = {.name = worker->count > 6 ? words[6] : NULL},
        .process_local = local};

    return create_of(worker, &options, initial);
}

static enum sumac_status create_beside(struct worker *worker)
{
    const char *const name = worker->words[1];

    worker->words[1] = worker->words[2]; /* which is found */
    const struct sumac_variable_options options = {.name = name, .colocate_with = find(worker)};
    return create_of(worker, &options, vector(2, "1"));
}

static enum sumac_status create_uncounted(struct worker *worker)
{
    const uint64_t rows[] = {1, 1};
    const struct sumac_variable_options options = {.name = worker->words[1], .shard_rows = rows};

    return create_of(worker, &options, vector(2, "1"));
}

static enum sumac_status read_many(struct worker *worker, struct sumac_variable *variable)
{
    const uint32_t count = (uint32_t)strtoul(worker->words[2], NULL, 10);
    struct sumac_variable **all = calloc((size_t)count + 1, sizeof *all);

    for (uint32_t i = 0; all != NULL && i < count; i++)
        all[i] = variable;
    const enum sumac_status status =
        sumac_variable_read_all(all, count, NULL, &worker->result, &worker->error);
    free(all);
    return status;
}

static enum sumac_status say_facts(const struct sumac_variable *variable)
{
    printf(
        "synchronization %d, aggregation %d, trainable %d\n",
        (int)sumac_variable_synchronization(variable), (int)sumac_variable_aggregation(variable),
        sumac_variable_trainable(variable));
    fflush(stdout);
    return SUMAC_OK;
}

/* What the words say, in each replica. */
static enum sumac_status
write_in(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct worker *worker = context;
    char *const *words = worker->words;
    struct sumac_variable *variable = find(worker);
    const uint32_t id = sumac_replica_id(replica);
    const bool by_rows = worker->count == 6;
    struct sumac_value *operand =
        by_rows ? row_of(variable, words[3], words[4 + id], 1 + id) : like(variable, words[3 + id]);

    const enum sumac_status status = sumac_variable_write(
        variable, replica, sumac_write_parse(words[2]), operand,
        strcmp(words[0], "quietly") == 0 ? NULL : &returned, error);
    sumac_value_unref(operand);
    return return_from_replica(replica, status, &returned);
}

static enum sumac_status write_in_replicas(struct worker *worker)
{
    const struct sumac_run_options step = {.function = write_in, .context = worker};

    return sumac_strategy_run(worker->strategy, &step, &worker->result, &worker->error);
}

static enum sumac_status write_across(struct worker *worker, struct sumac_variable *variable)
{
    struct sumac_value *operand = like(variable, worker->words[3]);
    const enum sumac_status status = sumac_variable_write(
        variable, NULL, sumac_write_parse(worker->words[2]), operand, &worker->result,
        &worker->error);

    sumac_value_unref(operand);
    return status;
}

static enum sumac_status apply(struct worker *worker, struct sumac_variable *variable)
{
    char *const *words = worker->words;
    const struct sumac_function function = {.name = words[2]};
    struct sumac_value *gradient = strcmp(words[0], "rows") == 0
                                       ? row_of(variable, words[3], words[4], 2)
                                       : like(variable, words[3]);
    const enum sumac_status status = sumac_variable_apply(
        variable, NULL, strcmp(words[2], "-") == 0 ? NULL : &function, gradient, &worker->error);

    sumac_value_unref(gradient);
    return status;
}

static enum sumac_status done(const char *what, struct worker *worker, enum sumac_status status)
{
    if (status == SUMAC_OK)
        say(what, worker->result);
    return status;
}

static enum sumac_status
change_all(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;
    const struct worker *worker = context;
    struct sumac_value *gradients[VARIABLES_MAX];

    for (uint32_t i = 0; i < worker->variable_count; i++)
        gradients[i] = like(worker->variables[i], worker->words[1]);
    struct sumac_value *all = sumac_value_list(gradients, worker->variable_count), *same = NULL;
    enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_MEAN, all, NULL, &same, error);
    if (status == SUMAC_OK)
        status = sumac_variable_apply_all(
            worker->variables, worker->variable_count, replica, same, error);
    if (status == SUMAC_OK)
        status = sumac_variable_read_all(
            worker->variables, worker->variable_count, replica, &returned, error);
    sumac_value_unref(all);
    sumac_value_unref(same);
    return return_from_replica(replica, status, &returned);
}

static enum sumac_status together(struct worker *worker)
{
    const struct sumac_run_options step = {.function = change_all, .context = worker};
    struct sumac_value *results = NULL;

    enum sumac_status status =
        sumac_strategy_run(worker->strategy, &step, &results, &worker->error);
    if (status == SUMAC_OK)
        status = sumac_value_select(results, 0, &worker->result, &worker->error);
    sumac_value_unref(results);
    return done("together", worker, status);
}

/* Of a variable that is there. */
static enum sumac_status use(struct worker *worker, struct sumac_variable *variable)
{
    const char *const deed = worker->words[0];
    struct sumac_value **const result = &worker->result;
    struct sumac_error *const error = &worker->error;

    if (strcmp(deed, "read") == 0)
        return done("read", worker, sumac_variable_read(variable, NULL, result, error));
    if (strcmp(deed, "components") == 0)
        return done("components", worker, sumac_variable_components(variable, result, error));
    if (strcmp(deed, "slots") == 0)
        return done("slots", worker, sumac_variable_slots(variable, result, error));
    if (strcmp(deed, "many") == 0)
        return done("read", worker, read_many(worker, variable));
    if (strcmp(deed, "facts") == 0)
        return say_facts(variable);
    if (strcmp(deed, "across") == 0)
        return done("wrote", worker, write_across(worker, variable));
    if (strcmp(deed, "apply") == 0 || strcmp(deed, "rows") == 0)
        return done("applied", worker, apply(worker, variable));
    return done("wrote", worker, write_in_replicas(worker));
}

static enum sumac_status obey(struct worker *worker)
{
    char *const *words = worker->words;

    if (strcmp(words[0], "leave") == 0)
        return done(
            "left", worker, sumac_client_leave(worker->client, SUMAC_LEAVING_DONE, &worker->error));
    if (strcmp(words[0], "create") == 0 || strcmp(words[0], "local") == 0)
        return create(worker, strcmp(words[0], "local") == 0);
    if (strcmp(words[0], "together") == 0)
        return together(worker);
    if (strcmp(words[0], "uncounted") == 0)
        return create_uncounted(worker);
    if (strcmp(words[0], "beside") == 0)
        return create_beside(worker);
    if (strcmp(words[0], "define") == 0)
        return done(
            "defined", worker,
            sumac_client_define(
                worker->client, words[1], words[2], strlen(words[2]), &worker->error));
    struct sumac_variable *variable = find(worker);
    if (variable != NULL)
        return use(worker, variable);
    say("what?", NULL);
    return SUMAC_OK;
}

static void refuse(const struct sumac_error *error)
{
    printf("refused %s %s\n", sumac_status_name(error->status), error->text);
    fflush(stdout);
}

static void converse(struct worker *worker)
{
    char line[LINE_BYTES];

    while (worker->variable_count < VARIABLES_MAX && fgets(line, sizeof line, stdin) != NULL) {
        worker->count = 0;
        for (char *word = strtok(line, " \n"); word != NULL && worker->count < WORDS_MAX;
             word = strtok(NULL, " \n"))
            worker->words[worker->count++] = word;
        if (worker->count > 0 && obey(worker) != SUMAC_OK)
            refuse(&worker->error);
        sumac_value_unref(worker->result);
        worker->result = NULL;
    }
}

int main(int argc, char **argv)
{
    struct worker worker = {0};
    const struct sumac_client_options options = {
        .timeout_ms = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0};
    struct sumac_strategy_options two = {.kind = SUMAC_STRATEGY_PARAMETER_SERVER, .replicas = 2};

    enum sumac_status status = sumac_client_open(&options, &worker.client, &worker.error);
    two.client = worker.client;
    if (status == SUMAC_OK)
        status = sumac_strategy_create(&two, &worker.strategy, &worker.error);
    if (status == SUMAC_OK) {
        say("joined", NULL);
        converse(&worker);
    } else {
        refuse(&worker.error);
    }
    for (uint32_t i = 0; i < worker.variable_count; i++)
        sumac_variable_destroy(worker.variables[i]);
    sumac_strategy_destroy(worker.strategy);
    sumac_client_close(worker.client);
    return status == SUMAC_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
