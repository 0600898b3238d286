/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c -- rounds of collectives: a push that contributes, and a pull of what all
 * contributions came to, which is sent beside it.
 */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "checked_contribution.h"
#include "collective_places.h"
#include "dtype.h"
#include "error.h"

#define TIMEOUT_MS_DEFAULT 60000u
#define VERDICT_MS 5000u /* a ps says by then how a round ended whose time is over */
#define OTHERS_NAMED_MAX 8u
#define OTHERS_BYTES 256u

struct sumac_collective {
    LINKS(struct sumac_collective) in_client;
    struct sumac_client *client;
    struct transfer *push, *pull;
    struct sumac_collective_result *result; /* borrowed; NULL: discarded */
    bool joins;
    enum sumac_dtype dtype;
    bool has_rows;
    bool is_short;                 /* its result, as far as that is known */
    const wire_collective *header; /* in the push's memory */
    uint64_t over_us;              /* the round is by then */
};

uint32_t client_count_strategy(struct sumac_client *client)
{
    client_lock(client);
    assert(client->strategies < UINT32_MAX);
    const uint32_t count = ++client->strategies;
    client_unlock(client);
    return count;
}

/* ---- its push and its pull */

/* For that ps. NULL: no memory. */
static struct session_piece *
add_piece(struct transfer *transfer, uint32_t ps, void *data, uint64_t bytes)
{
    const struct variable_shard nowhere = {.ps = ps};
    const struct selection none = {.variable = NULL};

    assert(ps < transfer->client->peer_count);
    struct session_piece *piece =
        transfer_add_piece(transfer, &none, (struct variable_shard *)(uintptr_t)&nowhere);
    if (piece == NULL)
        return NULL;
    piece->data = data;
    piece->bytes = bytes;
    return piece;
}

/* Of the elements [first, beyond) what is contributed, and where their result goes. False: no
 * memory. */
static bool add_range(
    struct sumac_collective *collective, const struct checked_contribution *contribution,
    uint32_t ps, uint64_t first, uint64_t beyond)
{
    const struct client_contribution *given = contribution->given;
    const size_t came = dtype_bytes(contribution->contributed),
                 comes = dtype_bytes(contribution->dtype);
    uint8_t *value = sumac_tensor_data(&given->value),
            *into = sumac_tensor_data(&contribution->into);

    assert(first <= beyond);
    struct session_piece *pushed =
        contribution->has_bytes
            ? add_piece(collective->push, ps, value + first * came, (beyond - first) * came)
            : add_piece(collective->push, ps, NULL, 0);
    if (pushed != NULL && collective->has_rows) /* behind the indices */
        pushed->offset_bytes = sumac_tensor_bytes(&given->indices);
    const struct session_piece *pulled =
        contribution->joins
            ? add_piece(collective->pull, ps, NULL, 0)
            : add_piece(collective->pull, ps, into + first * comes, (beyond - first) * comes);
    return pushed != NULL && pulled != NULL;
}

/* At home, or over all ps. */
static bool add_pieces(
    struct sumac_collective *collective, const struct checked_contribution *contribution,
    bool split)
{
    const struct sumac_collective_options *options = contribution->options;
    const uint32_t ps_count = collective->client->peer_count;
    const uint32_t home = wire_collective_home(options->name, strlen(options->name), ps_count);

    assert(!split || contribution->arithmetic);
    if (contribution->given->operation == COLLECTIVE_CONCATENATE &&
        add_piece(
            collective->push, home, sumac_tensor_data(&contribution->given->indices),
            sumac_tensor_bytes(&contribution->given->indices)) == NULL)
        return false;
    if (!split)
        return add_range(collective, contribution, home, 0, contribution->elements);
    for (uint32_t ps = 0; ps < ps_count; ps++)
        if (!add_range(
                collective, contribution, ps,
                wire_collective_first(contribution->elements, ps, ps_count),
                wire_collective_first(contribution->elements, ps + 1, ps_count)))
            return false;
    return true;
}

/* In the transfer's memory. NULL: there is none. */
static wire_collective *
make_header(struct arena *arena, const struct checked_contribution *contribution, bool split)
{
    const struct sumac_collective_options *options = contribution->options;
    const struct sumac_shape *shape = &contribution->given->value.shape;
    wire_collective *header = arena_take(arena, sizeof *header);
    uint64_t *tasks = arena_take(arena, contribution->task_count * sizeof *tasks);
    uint64_t *attempts = arena_take(arena, contribution->task_count * sizeof *attempts);
    uint64_t *extents = arena_take(arena, sizeof shape->extent);
    const size_t bytes = strlen(options->name);
    uint8_t *name = arena_take(arena, bytes);

    assert(contribution->task_count > 0);
    if (header == NULL || tasks == NULL || attempts == NULL || extents == NULL || name == NULL)
        return NULL;
    memcpy(tasks, contribution->tasks, contribution->task_count * sizeof *tasks);
    memcpy(extents, shape->extent, sizeof shape->extent);
    memcpy(name, options->name, bytes);
    *header = (wire_collective)WIRE_COLLECTIVE_INIT;
    header->name = (wire_bytes){.data = name, .len = bytes};
    header->round = contribution->round;
    header->tasks = tasks;
    header->n_tasks = contribution->task_count;
    if (contribution->given->attempts != NULL) {
        memcpy(
            attempts, contribution->given->attempts, contribution->task_count * sizeof *attempts);
        header->attempts = attempts;
        header->n_attempts = contribution->task_count;
    }
    header->operation = (Sumac__V1__Collective__Operation)contribution->given->operation;
    header->data_type = (Sumac__V1__DataType)contribution->dtype;
    header->shape = extents;
    header->n_shape = shape->rank;
    header->axis = options->axis;
    header->root = contribution->root;
    header->timeout_ms = options->timeout_ms;
    header->split = split;
    return header;
}

static wire_collective_round *make_round(struct arena *arena, const wire_collective *header)
{
    wire_collective_round *round = arena_take(arena, sizeof *round);

    assert(header->name.len > 0 && header->round > 0);
    if (round == NULL)
        return NULL;
    *round = (wire_collective_round)WIRE_COLLECTIVE_ROUND_INIT;
    round->name = header->name; /* the push and the pull are given away together */
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
    struct sumac_collective *collective, const struct checked_contribution *contribution,
    const wire_collective *header, const wire_collective_round *round)
{
    const struct sumac_collective_options *options = contribution->options;
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
    struct sumac_client *client, const struct checked_contribution *contribution,
    struct sumac_collective **started, struct sumac_error *error)
{
    const bool split = contribution->arithmetic &&
                       contribution->elements * dtype_bytes(contribution->contributed) >
                           WIRE_COLLECTIVE_WHOLE_BYTES_MAX;
    struct sumac_collective *collective = calloc(1, sizeof *collective);

    if (collective == NULL)
        return contribution_no_memory(contribution, error);
    LIST_PREPEND(&client->collectives, collective, in_client);
    collective->client = client;
    collective->result = contribution->given->result;
    collective->joins = contribution->joins;
    collective->dtype = contribution->dtype;
    collective->has_rows = contribution->given->operation == COLLECTIVE_CONCATENATE;
    collective->is_short = contribution->elements * dtype_bytes(contribution->dtype) <=
                           WIRE_COLLECTIVE_BESIDE_BYTES_MAX;
    collective->push = transfer_take(client);
    collective->pull = transfer_take(client);
    wire_collective *header = collective->push == NULL
                                  ? NULL
                                  : make_header(&collective->push->arena, contribution, split);
    wire_collective_round *round = collective->pull == NULL || header == NULL
                                       ? NULL
                                       : make_round(&collective->pull->arena, header);
    if (round == NULL || !add_pieces(collective, contribution, split)) {
        drop(collective);
        return contribution_no_memory(contribution, error);
    }
    collective->header = header;
    collective->over_us = client_now_us() + (uint64_t)time_of(contribution->options) * 1000;
    const enum sumac_status status = begin(collective, contribution, header, round);
    if (status != SUMAC_OK) {
        (void)fail_again(error, &collective->push->error);
        drop(collective);
        return status;
    }
    *started = collective;
    return SUMAC_OK;
}

enum sumac_status client_contribute(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct client_contribution *given, struct sumac_collective **collective,
    struct sumac_error *error)
{
    struct checked_contribution contribution = {.options = options, .given = given};
    enum sumac_status status = client_enter(client, NULL, __func__, error);

    if (status != SUMAC_OK)
        return status;
    status = contribution_check(client, &contribution, error);
    if (status == SUMAC_OK)
        status = start(client, &contribution, collective, error);
    assert(status != SUMAC_OK || contribution.round > 0);
    if (status == SUMAC_OK && contribution.counted != NULL)
        contribution.counted->last = contribution.round;
    client_unlock(client);
    contribution_deinit(&contribution);
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

/* Log for whom the round waits: as its ps says, if it does so in time. */
static void say_missing(void *context)
{
    const struct sumac_collective *const collective = context;
    char missing[SUMAC_ERROR_TEXT_BYTES], others[OTHERS_BYTES];

    client_ask_missing(collective->pull, ASKING_MS_MIN, missing, sizeof missing);
    if (is_over(context))
        return;
    if (*missing == '\0')
        (void)text_print(
            missing, sizeof missing,
            "round %" PRIu64 " of collective %.*s waits for %s; see the log of each",
            collective->header->round, (int)collective->header->name.len,
            (const char *)collective->header->name.data,
            name_others(collective, others, sizeof others));
    client_log(
        collective->client, "a round is not over; %s; its time is over in %s", missing,
        client_time_until(collective->over_us).text);
}

/* What was not known beforehand goes to the caller. */
static void give_result(struct sumac_collective *collective)
{
    struct transfer *pull = collective->pull;
    struct sumac_tensor value = {
        .buffer = pull->joined, .shape = pull->result_shape, .dtype = collective->dtype};
    struct sumac_tensor indices = {.buffer = NULL};

    assert(pull->over);
    if (!collective->joins || pull->joined == NULL)
        return;
    assert(pull->result_shape.rank <= SUMAC_RANK_MAX);
    if (collective->has_rows) {
        indices = (struct sumac_tensor){
            .buffer = pull->joined,
            .shape = SUMAC_SHAPE(pull->result_shape.extent[0]),
            .dtype = SUMAC_INT64};
        value.offset_bytes = indices.shape.extent[0] * sizeof(int64_t);
    }
    if (collective->result == NULL)
        return;
    *collective->result = (struct sumac_collective_result){
        .buffer = pull->joined, .value = value, .indices = indices};
    pull->joined = NULL;
}

/* Its own error comes before what its round came to without it. */
static enum sumac_status finish(struct sumac_collective *collective, struct sumac_error *error)
{
    struct sumac_client *client = collective->client;
    const struct transfer *const failed =
        collective->push->error.status != SUMAC_OK ? collective->push : collective->pull;
    const enum sumac_status status = failed->error.status;
    struct session_event over = {
        .kind = SESSION_EVENT_COLLECTIVE_RESULT, .token = (uint64_t)(uintptr_t)collective->push};

    assert(is_given_back(collective));
    if (status == SUMAC_OK)
        give_result(collective);
    else
        (void)fail_again(error, &failed->error);
    client_step(client, &over);
    drop(collective);
    return status;
}

enum sumac_status sumac_collective_wait(
    struct sumac_collective *collective, uint32_t timeout_ms, struct sumac_error *error)
{
    struct sumac_client *client = collective == NULL ? NULL : collective->client;
    enum sumac_status status =
        client_enter(client, client == NULL ? "collective" : NULL, __func__, error);

    if (status != SUMAC_OK)
        return status;
    if (timeout_ms == 0)
        timeout_ms = client->timeout_ms;
    if (!client_wait_and_say(
            client, is_over, say_missing, collective,
            client_now_us() + (uint64_t)timeout_ms * 1000)) {
        char others[OTHERS_BYTES];
        status = fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "round %" PRIu64 " of collective %.*s was not over within %s: it waits for %s; see the "
            "log of each",
            collective->header->round, (int)collective->header->name.len,
            (const char *)collective->header->name.data, text_time_ms(timeout_ms).text,
            name_others(collective, others, sizeof others));
        client_unlock(client);
        return status;
    }
    if (!collective->pull->over) /* it was refused, and waits for nothing */
        client_step(
            client,
            &(struct session_event){
                .kind = SESSION_EVENT_CANCEL_PULL, .token = (uint64_t)(uintptr_t)collective->pull});
    while (!is_given_back(collective))
        (void)client_wait(client, is_given_back, collective, client_now_us() + RELEASE_US);
    status = finish(collective, error);
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

/* ---- the operations */

/* Contribute; wait for the end of the round when the caller takes no handle. */
static enum sumac_status contribute(
    const char *call, struct sumac_client *client, const struct sumac_collective_options *options,
    const struct client_contribution *given, struct sumac_collective **collective,
    struct sumac_error *error)
{
    struct sumac_collective *made;
    struct sumac_error why;

    if (client == NULL || options == NULL)
        return fail_for_null(error, call, client == NULL ? "client" : "options");
    struct sumac_collective_options bounded = *options;
    if (collective == NULL && options->timeout_ms == 0)
        bounded.timeout_ms = client_ps_patience_ms(client->timeout_ms);
    enum sumac_status status = client_contribute(client, &bounded, given, &made, error);
    if (status != SUMAC_OK)
        return status;
    if (collective != NULL) {
        *collective = made;
        return SUMAC_OK;
    }
    do
        status = sumac_collective_wait(made, 0, &why);
    while (status == SUMAC_DEADLINE_EXCEEDED);
    return status == SUMAC_OK ? SUMAC_OK : fail_again(error, &why);
}

enum sumac_status sumac_client_all_reduce(
    struct sumac_client *client, const struct sumac_collective_options *options,
    enum sumac_reduce_op op, const struct sumac_tensor *value, struct sumac_collective **collective,
    struct sumac_error *error)
{
    static const enum collective_operation operations[] = {
        [SUMAC_REDUCE_SUM] = COLLECTIVE_SUM,
        [SUMAC_REDUCE_MEAN] = COLLECTIVE_MEAN,
        [SUMAC_REDUCE_MIN] = COLLECTIVE_MIN,
        [SUMAC_REDUCE_MAX] = COLLECTIVE_MAX};

    if (value == NULL)
        return fail_for_null(error, __func__, "value");
    if ((unsigned)op >= sizeof operations / sizeof *operations || operations[op] == 0)
        return fail_argument(
            error,
            "sumac_client_all_reduce: %d is no operation of all_reduce; give SUM, MEAN, MIN or MAX",
            (int)op);
    return contribute(
        __func__, client, options,
        &(struct client_contribution){.operation = operations[op], .value = *value}, collective,
        error);
}

enum sumac_status sumac_client_all_gather(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct sumac_tensor *value, struct sumac_collective_result *result,
    struct sumac_collective **collective, struct sumac_error *error)
{
    if (value == NULL)
        return fail_for_null(error, __func__, "value");
    return contribute(
        __func__, client, options,
        &(struct client_contribution){
            .operation = COLLECTIVE_GATHER, .value = *value, .result = result},
        collective, error);
}

enum sumac_status sumac_client_concatenate(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct sumac_indexed_slices *slices, struct sumac_collective_result *result,
    struct sumac_collective **collective, struct sumac_error *error)
{
    if (slices == NULL)
        return fail_for_null(error, __func__, "slices");
    return contribute(
        __func__, client, options,
        &(struct client_contribution){
            .operation = COLLECTIVE_CONCATENATE,
            .value = slices->values,
            .indices = slices->indices,
            .result = result},
        collective, error);
}

enum sumac_status sumac_client_broadcast(
    struct sumac_client *client, const struct sumac_collective_options *options,
    struct sumac_member root, const struct sumac_tensor *value,
    struct sumac_collective **collective, struct sumac_error *error)
{
    if (value == NULL)
        return fail_for_null(error, __func__, "value");
    return contribute(
        __func__, client, options,
        &(struct client_contribution){
            .operation = COLLECTIVE_BROADCAST, .root = root, .value = *value},
        collective, error);
}
