/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c -- rounds of collectives: a push that contributes, and a pull of what all
 * contributions came to, which is sent beside it.
 */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "collective_places.h"
#include "members.h"
#include "text.h"
#include "update.h"

#define TIMEOUT_MS_DEFAULT 60000u
#define VERDICT_MS 5000u /* a ps says by then how a round ended whose time is over */
#define OTHERS_NAMED_MAX 8u
#define OTHERS_BYTES 256u

struct sumac_collective {
    LINKS(struct sumac_collective) in_client;
    struct sumac_client *client;
    struct transfer *push, *pull;
    bool joins;
    enum sumac_dtype dtype;
    bool has_rows;
    bool is_short;                 /* its result, as far as that is known */
    const wire_collective *header; /* in the push's memory */
    uint64_t over_us;              /* the round is by then */
};

/* What is asked for, as it is found right. */
struct wanted {
    const struct sumac_collective_options *options;
    const struct sumac_contribution *given;
    enum sumac_dtype dtype;       /* of the result */
    enum sumac_dtype contributed; /* of what is contributed */
    uint64_t elements;            /* of the contribution */
    uint64_t *tasks;              /* (task_count), as on the wire */
    uint32_t task_count;
    const uint64_t *attempts; /* (task_count); NULL: of any */
    uint32_t root;            /* its place among them */
    bool is_root;
    bool arithmetic, joins;
};

static enum sumac_status fail_call(
    const struct sumac_collective_options *options, const char *why, struct sumac_error *error)
{
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
        "collective %s, round %" PRIu64 ": %s", options->name, options->round, why);
}

static enum sumac_status
no_memory(const struct sumac_collective_options *options, struct sumac_error *error)
{
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
        "no memory for round %" PRIu64 " of collective %s", options->round, options->name);
}

/* ---- what a caller asks for */

static enum sumac_status
check_name(const struct sumac_collective_options *options, struct sumac_error *error)
{
    const size_t most = WIRE_COLLECTIVE_NAME_BYTES_MAX;
    const size_t bytes = options->name == NULL ? 0 : strnlen(options->name, most + 1);

    if (bytes == 0 || bytes > most)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "a collective has a name of 1 to %zu bytes, given %s", most,
            bytes == 0 ? "none" : "more");
    if (!text_is_utf8(options->name, bytes) || text_has_control(options->name, bytes))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "the name of a collective is UTF-8 without control characters, and this one is not");
    if (options->round == 0)
        return fail_call(options, "rounds count from 1; give each the next number", error);
    if (options->operation < SUMAC_COLLECTIVE_SUM ||
        options->operation > SUMAC_COLLECTIVE_CONCATENATE)
        return fail_call(options, "that operation is none", error);
    if (!isfinite(options->weight) || options->weight < 0)
        return fail_call(options, "a weight is finite, and at least 0", error);
    if (options->zero_weight && options->weight > 0)
        return fail_call(
            options, "`zero_weight` is set beside a weight; give one of the two", error);
    return SUMAC_OK;
}

/* Chief i is 2·i, worker i is 2·i + 1; the chief comes first, then the workers. */
static bool encode(const struct sumac_member *task, uint64_t *code)
{
    assert(code != NULL);
    const bool chief = task->job != NULL && strcmp(task->job, "chief") == 0;

    *code = 2 * (uint64_t)task->index + !chief;
    return chief || (task->job != NULL && strcmp(task->job, "worker") == 0);
}

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    if (a % 2 != b % 2)
        return a % 2 < b % 2 ? -1 : 1;
    return (a > b) - (a < b);
}

/* Is it one of the members? Where they are not all known, any may be. */
static bool is_listed(const struct sumac_client *client, uint64_t task)
{
    assert(client->member_task_count == 0 || client->member_tasks != NULL);
    for (uint32_t i = 0; i < client->member_task_count; i++)
        if (client->member_tasks[i] == task)
            return true;
    return client->member_task_count == 0;
}

static enum sumac_status fail_unlisted(
    const struct sumac_client *client, const struct sumac_collective_options *options,
    uint64_t task, struct sumac_error *error)
{
    uint64_t chiefs = 0, workers = 0;

    assert(client->member_task_count > 0);
    for (uint32_t i = 0; i < client->member_task_count; i++)
        *(client->member_tasks[i] % 2 == 0 ? &chiefs : &workers) += 1;
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
        "collective %s, round %" PRIu64 ": %s %" PRIu64
        " is named, and the cluster does not list it; it lists %" PRIu64 " chief and %" PRIu64
        " workers: name tasks of these",
        options->name, options->round, task % 2 == 0 ? "chief" : "worker", task / 2, chiefs,
        workers);
}

static enum sumac_status
list_tasks(const struct sumac_client *client, struct wanted *wanted, struct sumac_error *error)
{
    const struct sumac_collective_options *options = wanted->options;
    const uint32_t count =
        options->task_count > 0 ? options->task_count : client->member_task_count;

    if (count == 0)
        return fail_call(
            options,
            "no tasks are named, and the cluster configuration lists no members, or only some: "
            "name "
            "all who take part",
            error);
    if (count > WIRE_COLLECTIVE_TASKS_MAX || (options->task_count > 0 && options->tasks == NULL))
        return fail_call(options, "at most 512 tasks take part, and each is named", error);
    wanted->tasks = calloc(count, sizeof *wanted->tasks);
    if (wanted->tasks == NULL)
        return no_memory(options, error);
    wanted->task_count = count;
    for (uint32_t i = 0; i < count; i++) {
        if (options->task_count == 0)
            wanted->tasks[i] = client->member_tasks[i];
        else if (!encode(&options->tasks[i], &wanted->tasks[i]))
            return fail_call(options, "only tasks of the jobs chief and worker take part", error);
    }
    qsort(wanted->tasks, count, sizeof *wanted->tasks, compare);
    bool takes_part = false;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_listed(client, wanted->tasks[i]))
            return fail_unlisted(client, options, wanted->tasks[i], error);
        takes_part = takes_part || wanted->tasks[i] == client->own_task;
        if (i > 0 && wanted->tasks[i] == wanted->tasks[i - 1])
            return fail_call(options, "a task is named twice", error);
    }
    return takes_part
               ? SUMAC_OK
               : fail_call(options, "this process is none of the tasks that take part", error);
}

enum sumac_status client_collective_place(
    struct sumac_client *client, const struct sumac_member *tasks, uint32_t task_count,
    uint32_t *place, uint32_t *count, struct sumac_error *error)
{
    const struct sumac_collective_options options = {
        .name = "of a strategy", .round = 1, .tasks = tasks, .task_count = task_count};
    struct wanted wanted = {.options = &options};

    assert(place != NULL);
    const enum sumac_status status = list_tasks(client, &wanted, error);
    *count = wanted.task_count;
    for (*place = 0; status == SUMAC_OK && wanted.tasks[*place] != client->own_task;)
        ++*place;
    free(wanted.tasks);
    return status;
}

uint32_t client_count_strategy(struct sumac_client *client)
{
    client_lock(client);
    assert(client->strategies < UINT32_MAX);
    const uint32_t count = ++client->strategies;
    client_unlock(client);
    return count;
}

static enum sumac_status
find_root(const struct sumac_client *client, struct wanted *wanted, struct sumac_error *error)
{
    uint64_t root;

    assert(wanted->task_count > 0);
    assert(wanted->root == 0);
    if (wanted->options->operation != SUMAC_COLLECTIVE_BROADCAST)
        return SUMAC_OK;
    if (!encode(&wanted->options->root, &root))
        return fail_call(wanted->options, "root is a chief or a worker", error);
    while (wanted->root < wanted->task_count && wanted->tasks[wanted->root] != root)
        wanted->root++;
    if (wanted->root == wanted->task_count)
        return fail_call(wanted->options, "root is none of the tasks that take part", error);
    wanted->is_root = root == client->own_task;
    return SUMAC_OK;
}

/* As many elements as its shape says, in memory that there is. */
static enum sumac_status check_tensor(
    const struct wanted *wanted, const struct sumac_tensor *tensor, const char *what,
    struct sumac_error *error)
{
    uint64_t bytes;

    assert(what != NULL);
    if (sumac_shape_size(&tensor->shape, tensor->dtype, NULL, &bytes) != SUMAC_OK)
        return fail_call(wanted->options, "a tensor has no such type or shape", error);
    return client_check_memory(tensor, bytes, what, wanted->options->name, error);
}

static enum sumac_status check_into(struct wanted *wanted, struct sumac_error *error)
{
    const struct sumac_contribution *given = wanted->given;

    assert(wanted->dtype != SUMAC_DTYPE_UNSPECIFIED);
    if (wanted->joins)
        return SUMAC_OK;
    if (!sumac_shape_equal(&given->into.shape, &given->value.shape))
        return fail_call(
            wanted->options, "`into` has another shape than `value`, which the result has", error);
    return check_tensor(wanted, &given->into, "collective", error);
}

static enum sumac_status check_rows(const struct wanted *wanted, struct sumac_error *error)
{
    const struct sumac_contribution *given = wanted->given;

    if (wanted->options->operation != SUMAC_COLLECTIVE_CONCATENATE)
        return SUMAC_OK;
    if (given->value.shape.rank == 0 || given->indices.shape.rank != 1 ||
        given->indices.dtype != SUMAC_INT64 ||
        given->indices.shape.extent[0] != given->value.shape.extent[0])
        return fail_call(
            wanted->options, "rows that are concatenated come with `indices`, int64, one for each",
            error);
    return check_tensor(wanted, &given->indices, "collective", error);
}

static enum sumac_status check_values(struct wanted *wanted, struct sumac_error *error)
{
    const struct sumac_contribution *given = wanted->given;
    const enum sumac_collective_operation operation = wanted->options->operation;
    const bool adds = operation == SUMAC_COLLECTIVE_SUM || operation == SUMAC_COLLECTIVE_MEAN;

    wanted->arithmetic = operation <= SUMAC_COLLECTIVE_MAX;
    wanted->joins =
        operation == SUMAC_COLLECTIVE_GATHER || operation == SUMAC_COLLECTIVE_CONCATENATE;
    wanted->dtype = wanted->joins ? given->value.dtype : given->into.dtype;
    wanted->contributed = adds ? update_contribution_dtype(wanted->dtype) : wanted->dtype;
    if (dtype_bytes(wanted->dtype) == 0 || given->value.dtype != wanted->contributed)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
            "collective %s, round %" PRIu64
            ": a result of type %s is made of contributions of type %s, and `value` is of %s",
            wanted->options->name, wanted->options->round, sumac_dtype_name(wanted->dtype),
            sumac_dtype_name(wanted->contributed), sumac_dtype_name(given->value.dtype));
    if (sumac_shape_size(&given->value.shape, wanted->contributed, &wanted->elements, NULL) !=
        SUMAC_OK)
        return fail_call(wanted->options, "the shape has more bytes than there may be", error);
    const bool has_bytes = operation != SUMAC_COLLECTIVE_BROADCAST || wanted->is_root;
    enum sumac_status status =
        has_bytes ? check_tensor(wanted, &given->value, "collective", error) : SUMAC_OK;
    if (status == SUMAC_OK)
        status = check_into(wanted, error);
    return status == SUMAC_OK ? check_rows(wanted, error) : status;
}

/* ---- its push and its pull */

/* Zeroed, of the ps that it is for. NULL: no memory. */
static struct session_piece *add_piece(struct transfer *transfer, uint32_t ps)
{
    const struct variable_shard nowhere = {.ps = ps};
    const struct selection none = {.variable = NULL};

    assert(ps < transfer->client->peer_count);
    return transfer_add_piece(transfer, &none, (struct variable_shard *)(uintptr_t)&nowhere);
}

static struct session_piece piece_of(uint32_t ps, void *data, uint64_t bytes)
{
    return (struct session_piece){
        .ps = ps, .kind = WIRE_PIECE_VALUES, .data = data, .bytes = bytes};
}

/* Of the elements [first, beyond) what is contributed, and where their result goes. False: no
 * memory. */
static bool add_range(
    struct sumac_collective *collective, const struct wanted *wanted, uint32_t ps, uint64_t first,
    uint64_t beyond)
{
    const struct sumac_contribution *given = wanted->given;
    const size_t came = dtype_bytes(wanted->contributed), comes = dtype_bytes(wanted->dtype);
    uint8_t *value = sumac_tensor_data(&given->value), *into = sumac_tensor_data(&given->into);
    const bool has_bytes =
        wanted->options->operation != SUMAC_COLLECTIVE_BROADCAST || wanted->is_root;
    struct session_piece *pushed = add_piece(collective->push, ps),
                         *pulled = add_piece(collective->pull, ps);

    assert(first <= beyond);
    if (pushed == NULL || pulled == NULL)
        return false;
    *pushed = has_bytes ? piece_of(ps, value + first * came, (beyond - first) * came)
                        : piece_of(ps, NULL, 0);
    if (collective->has_rows) /* behind the indices */
        pushed->offset_bytes = sumac_tensor_bytes(&given->indices);
    *pulled = wanted->joins ? piece_of(ps, NULL, 0)
                            : piece_of(ps, into + first * comes, (beyond - first) * comes);
    return true;
}

/* At home, or over all ps. */
static bool add_pieces(struct sumac_collective *collective, const struct wanted *wanted, bool split)
{
    const struct sumac_collective_options *options = wanted->options;
    const uint32_t ps_count = collective->client->peer_count;
    const uint32_t home = wire_collective_home(options->name, strlen(options->name), ps_count);

    assert(!split || wanted->arithmetic);
    if (options->operation == SUMAC_COLLECTIVE_CONCATENATE) {
        struct session_piece *indices = add_piece(collective->push, home);
        if (indices == NULL)
            return false;
        *indices = piece_of(
            home, sumac_tensor_data(&wanted->given->indices),
            sumac_tensor_bytes(&wanted->given->indices));
    }
    if (!split)
        return add_range(collective, wanted, home, 0, wanted->elements);
    for (uint32_t ps = 0; ps < ps_count; ps++)
        if (!add_range(
                collective, wanted, ps, wire_collective_first(wanted->elements, ps, ps_count),
                wire_collective_first(wanted->elements, ps + 1, ps_count)))
            return false;
    return true;
}

/* In the transfer's memory. NULL: there is none. */
static wire_collective *make_header(struct arena *arena, const struct wanted *wanted, bool split)
{
    const struct sumac_collective_options *options = wanted->options;
    const struct sumac_shape *shape = &wanted->given->value.shape;
    wire_collective *header = arena_take(arena, sizeof *header);
    uint64_t *tasks = arena_take(arena, wanted->task_count * sizeof *tasks);
    uint64_t *attempts = arena_take(arena, wanted->task_count * sizeof *attempts);
    uint64_t *extents = arena_take(arena, sizeof shape->extent);
    const size_t bytes = strlen(options->name);
    uint8_t *name = arena_take(arena, bytes);

    assert(wanted->task_count > 0);
    if (header == NULL || tasks == NULL || attempts == NULL || extents == NULL || name == NULL)
        return NULL;
    memcpy(tasks, wanted->tasks, wanted->task_count * sizeof *tasks);
    memcpy(extents, shape->extent, sizeof shape->extent);
    memcpy(name, options->name, bytes);
    *header = (wire_collective)WIRE_COLLECTIVE_INIT;
    header->name = (wire_bytes){.data = name, .len = bytes};
    header->round = options->round;
    header->tasks = tasks;
    header->n_tasks = wanted->task_count;
    if (wanted->attempts != NULL) {
        memcpy(attempts, wanted->attempts, wanted->task_count * sizeof *attempts);
        header->attempts = attempts;
        header->n_attempts = wanted->task_count;
    }
    header->operation = (Sumac__V1__Collective__Operation)options->operation;
    header->data_type = (Sumac__V1__DataType)wanted->dtype;
    header->shape = extents;
    header->n_shape = shape->rank;
    header->axis = options->axis;
    header->root = wanted->root;
    header->timeout_ms = options->timeout_ms;
    header->split = split;
    return header;
}

static wire_collective_round *make_round(struct arena *arena, const wire_collective *header)
{
    wire_collective_round *round = arena_take(arena, sizeof *round);
    uint8_t *name = arena_take(arena, header->name.len);

    assert(header->name.len > 0 && header->round > 0);
    if (round == NULL || name == NULL)
        return NULL;
    memcpy(name, header->name.data, header->name.len);
    *round = (wire_collective_round)WIRE_COLLECTIVE_ROUND_INIT;
    round->name = (wire_bytes){.data = name, .len = header->name.len};
    round->round = header->round;
    return round;
}

static uint32_t time_of(const struct sumac_collective_options *options)
{
    assert(options->name != NULL); /* it was looked at */
    const uint32_t wanted_ms = options->timeout_ms;
    return wanted_ms == 0                  ? TIMEOUT_MS_DEFAULT
           : wanted_ms < WIRE_ROUND_MS_MAX ? wanted_ms
                                           : WIRE_ROUND_MS_MAX;
}

/* What the session refuses at once, it refuses in the same step. */
static enum sumac_status begin(
    struct sumac_collective *collective, const struct wanted *wanted, const wire_collective *header,
    const wire_collective_round *round)
{
    const struct sumac_collective_options *options = wanted->options;
    const uint32_t timeout_ms = time_of(options);
    const struct session_push push = {
        .token = (uint64_t)(uintptr_t)collective->push,
        .pieces = collective->push->pieces,
        .piece_count = collective->push->piece_count,
        .weight = options->weight > 0 || options->zero_weight ? options->weight : 1,
        .allow_non_finite = options->allow_non_finite,
        .collective = header};
    const struct session_pull pull = {
        .token = (uint64_t)(uintptr_t)collective->pull,
        .pieces = collective->pull->pieces,
        .piece_count = collective->pull->piece_count,
        .collective = round,
        .has_rows = collective->has_rows,
        .beside = collective->is_short,
        .timeout_ms = timeout_ms + VERDICT_MS};
    struct session_event collectives = {
        .kind = SESSION_EVENT_COLLECTIVE, .push = &push, .pull = &pull};

    assert(pull.piece_count > 0 && push.piece_count > 0);
    client_step(collective->client, &collectives);
    return collective->push->over ? collective->push->error.status : SUMAC_OK;
}

static void drop(struct sumac_collective *collective)
{
    struct sumac_client *client = collective->client;

    assert(client_is_locked(client));
    if (collective->push != NULL)
        transfer_drop(collective->push);
    if (collective->pull != NULL)
        transfer_drop(collective->pull);
    LIST_REMOVE(&client->collectives, collective, in_client);
    free(collective);
}

/* Their transfers go with all others. */
void client_forget_collectives(struct sumac_client *client)
{
    assert(client->session == NULL); /* nobody waits */
    for (struct sumac_collective *collective; (collective = client->collectives.first) != NULL;) {
        LIST_REMOVE(&client->collectives, collective, in_client);
        free(collective);
    }
}

static enum sumac_status start(
    struct sumac_client *client, const struct wanted *wanted, struct sumac_collective **started,
    struct sumac_error *error)
{
    const bool split = wanted->arithmetic && wanted->elements * dtype_bytes(wanted->contributed) >
                                                 WIRE_COLLECTIVE_WHOLE_BYTES_MAX;
    struct sumac_collective *collective = calloc(1, sizeof *collective);

    if (collective == NULL)
        return no_memory(wanted->options, error);
    LIST_PREPEND(&client->collectives, collective, in_client);
    collective->client = client;
    collective->joins = wanted->joins;
    collective->dtype = wanted->dtype;
    collective->has_rows = wanted->options->operation == SUMAC_COLLECTIVE_CONCATENATE;
    collective->is_short =
        wanted->elements * dtype_bytes(wanted->dtype) <= WIRE_COLLECTIVE_BESIDE_BYTES_MAX;
    collective->push = transfer_take(client);
    collective->pull = transfer_take(client);
    wire_collective *header =
        collective->push == NULL ? NULL : make_header(&collective->push->arena, wanted, split);
    wire_collective_round *round = collective->pull == NULL || header == NULL
                                       ? NULL
                                       : make_round(&collective->pull->arena, header);
    if (round == NULL || !add_pieces(collective, wanted, split)) {
        drop(collective);
        return no_memory(wanted->options, error);
    }
    collective->header = header;
    collective->over_us = client_now_us() + (uint64_t)time_of(wanted->options) * 1000;
    const enum sumac_status status = begin(collective, wanted, header, round);
    if (status != SUMAC_OK) {
        if (error != NULL)
            *error = collective->push->error;
        drop(collective);
        return status;
    }
    *started = collective;
    return SUMAC_OK;
}

enum sumac_status sumac_client_collective(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct sumac_contribution *contribution, struct sumac_collective **collective,
    struct sumac_error *error)
{
    return client_collective_of(client, options, NULL, contribution, collective, error);
}

enum sumac_status client_collective_of(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const uint64_t *attempts, const struct sumac_contribution *contribution,
    struct sumac_collective **collective, struct sumac_error *error)
{
    struct wanted wanted = {.options = options, .given = contribution, .attempts = attempts};
    const char *const null = client == NULL         ? "client"
                             : options == NULL      ? "options"
                             : contribution == NULL ? "contribution"
                             : collective == NULL   ? "collective"
                                                    : NULL;

    if (null != NULL)
        return fail_for_null(error, "sumac_client_collective", null);
    enum sumac_status status = client_check_process(client, error);
    if (status == SUMAC_OK)
        status = check_name(options, error);
    if (status != SUMAC_OK)
        return status;
    client_lock(client);
    status = list_tasks(client, &wanted, error);
    if (status == SUMAC_OK)
        status = find_root(client, &wanted, error);
    if (status == SUMAC_OK)
        status = check_values(&wanted, error);
    if (status == SUMAC_OK)
        status = start(client, &wanted, collective, error);
    client_unlock(client);
    free(wanted.tasks);
    return status;
}

/* ---- its end */

/* Is nothing more to be expected of it? */
static bool is_over(void *context)
{
    const struct sumac_collective *collective = context;

    assert(client_is_locked(collective->client));
    const bool refused = collective->push->over && collective->push->error.status != SUMAC_OK;

    return refused || (collective->pull->over && collective->push->over);
}

static bool is_given_back(void *context)
{
    const struct sumac_collective *collective = context;

    assert(collective->push->over && collective->pull->over);
    return transfer_is_done(collective->push) && transfer_is_done(collective->pull);
}

/* "worker 1", or "one or more of worker 1, worker 2": the other participants. Returns text. */
static const char *
name_others(const struct sumac_collective *collective, char *text, size_t text_bytes)
{
    const wire_collective *const header = collective->header;
    const size_t others = header->n_tasks - 1;
    size_t used = text_print(text, text_bytes, "%s", others > 1 ? "one or more of " : ""),
           named = 0;

    assert(header->n_tasks > 0);
    for (size_t i = 0; i < header->n_tasks && named < OTHERS_NAMED_MAX; i++)
        if (header->tasks[i] != collective->client->own_task)
            used += text_print(
                text + used, text_bytes - used, "%s%s %" PRIu64, named++ == 0 ? "" : ", ",
                header->tasks[i] % 2 == 0 ? "chief" : "worker", header->tasks[i] / 2);
    if (others > named)
        (void)text_print(text + used, text_bytes - used, ", … %zu in all", others);
    return text;
}

/* Print for whom the round waits: as its ps says, if it does so in time. */
static void say_missing(const struct sumac_collective *collective, char *text, size_t text_bytes)
{
    char others[OTHERS_BYTES];

    client_ask_missing(collective->pull, ASKING_MS_MIN, text, text_bytes);
    if (*text == '\0')
        (void)text_print(
            text, text_bytes,
            "round %" PRIu64 " of collective %.*s waits for %s; see the log of each",
            collective->header->round, (int)collective->header->name.len,
            (const char *)collective->header->name.data,
            name_others(collective, others, sizeof others));
}

/* With a line now and then. */
static bool wait_until(struct sumac_collective *collective, uint64_t until_us)
{
    struct sumac_client *client = collective->client;

    assert(client_is_locked(client));
    for (;;) {
        const uint64_t report_us = client_now_us() + REPORT_US;
        if (client_wait(client, is_over, collective, report_us < until_us ? report_us : until_us))
            return true;
        if (client_now_us() >= until_us)
            return false;
        char missing[SUMAC_ERROR_TEXT_BYTES];
        say_missing(collective, missing, sizeof missing);
        if (is_over(collective))
            return true;
        client_log(
            client, "a round is not over; %s; its time is over in %s", missing,
            client_time_until(collective->over_us).text);
    }
}

/* What was not known beforehand goes to the caller. */
static void give_result(struct sumac_collective *collective, struct sumac_collective_result *result)
{
    struct transfer *pull = collective->pull;
    struct sumac_tensor value = {
        .buffer = pull->joined, .shape = pull->result_shape, .dtype = collective->dtype};
    struct sumac_tensor indices = {.buffer = NULL};

    assert(pull->over);
    if (!collective->joins || pull->joined == NULL)
        return;
    if (collective->has_rows) {
        indices = (struct sumac_tensor){
            .buffer = pull->joined,
            .shape = SUMAC_SHAPE(pull->result_shape.extent[0]),
            .dtype = SUMAC_INT64};
        value.offset_bytes = indices.shape.extent[0] * sizeof(int64_t);
    }
    if (result == NULL) {
        sumac_buffer_unref(pull->joined);
    } else {
        *result = (struct sumac_collective_result){
            .buffer = pull->joined, .value = value, .indices = indices};
    }
    pull->joined = NULL;
}

/* Its own error comes before what its round came to without it. */
static enum sumac_status finish(
    struct sumac_collective *collective, struct sumac_collective_result *result,
    struct sumac_error *error)
{
    struct sumac_client *client = collective->client;
    const struct transfer *const failed =
        collective->push->error.status != SUMAC_OK ? collective->push : collective->pull;
    const enum sumac_status status = failed->error.status;
    struct session_event over = {
        .kind = SESSION_EVENT_COLLECTIVE_RESULT, .token = (uint64_t)(uintptr_t)collective->push};

    assert(is_given_back(collective));
    if (status == SUMAC_OK)
        give_result(collective, result);
    else if (error != NULL)
        *error = failed->error;
    client_step(client, &over);
    transfer_give(collective->push);
    transfer_give(collective->pull);
    LIST_REMOVE(&client->collectives, collective, in_client);
    free(collective);
    return status;
}

enum sumac_status sumac_collective_wait(
    struct sumac_collective *collective, uint32_t timeout_ms,
    struct sumac_collective_result *result, struct sumac_error *error)
{
    if (collective == NULL)
        return fail_for_null(error, "sumac_collective_wait", "collective");
    struct sumac_client *client = collective->client;
    if (client_check_process(client, error) != SUMAC_OK)
        return SUMAC_FAILED_PRECONDITION;
    client_lock(client);
    if (timeout_ms == 0)
        timeout_ms = client->timeout_ms;
    if (!wait_until(collective, client_now_us() + (uint64_t)timeout_ms * 1000)) {
        char others[OTHERS_BYTES];
        const enum sumac_status status = fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "round %" PRIu64 " of collective %.*s was not over within %s: it waits for %s; see the "
            "log of each",
            collective->header->round, (int)collective->header->name.len,
            (const char *)collective->header->name.data, text_time_ms(timeout_ms).text,
            name_others(collective, others, sizeof others));
        client_unlock(client);
        return status;
    }
    if (!collective->pull->over) { /* it was refused, and waits for nothing */
        struct session_event cancel = {
            .kind = SESSION_EVENT_CANCEL_PULL, .token = (uint64_t)(uintptr_t)collective->pull};
        client_step(client, &cancel);
    }
    while (!is_given_back(collective))
        (void)client_wait(client, is_given_back, collective, client_now_us() + RELEASE_US);
    const enum sumac_status status = finish(collective, result, error);
    client_unlock(client);
    return status;
}

bool sumac_collective_done(struct sumac_collective *collective)
{
    if (collective == NULL || !client_is_here(collective->client))
        return true; /* the wait says why */
    client_lock(collective->client);
    if (!is_over(collective))
        client_poll_once(collective->client);
    const bool done = is_over(collective);
    client_unlock(collective->client);
    return done;
}

enum sumac_status sumac_client_collective_and_wait(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct sumac_contribution *contribution, struct sumac_collective_result *result,
    struct sumac_error *error)
{
    struct sumac_collective_options bounded;
    struct sumac_collective *collective;
    struct sumac_error why;

    if (client != NULL && options != NULL && options->timeout_ms == 0) {
        bounded = *options;
        bounded.timeout_ms = client_ps_patience_ms(client->timeout_ms);
        options = &bounded;
    }
    enum sumac_status status =
        sumac_client_collective(client, options, contribution, &collective, error);

    if (status != SUMAC_OK)
        return status;
    do
        status = sumac_collective_wait(collective, 0, result, &why);
    while (status == SUMAC_DEADLINE_EXCEEDED);
    if (status != SUMAC_OK && error != NULL)
        *error = why;
    return status;
}
