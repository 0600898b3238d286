/* SPDX-License-Identifier: Apache-2.0 */
/* push.c -- deltas to variables, all or nothing over every ps. */
#include "transfer.h"

#include <float.h>
#include <math.h>
#include <time.h>

#include "error.h"
#include "function.h"
#include "push.h"

#define CANCEL_MS 1000u    /* a ps says by then what became of a push that is cancelled */
#define OUTCOME_BYTES 100u /* for the words that say it */

_Static_assert(offsetof(struct sumac_push, transfer) == 0, "a push is its transfer");

static struct sumac_push *push_of(struct transfer *transfer)
{
    return (struct sumac_push *)(void *)transfer;
}

/* The number that pieces name this function by; it is added to the push's list when it is not the
 * last one's. */
static enum sumac_status encode(
    struct transfer *transfer, const struct sumac_function *function, struct session_push *push,
    wire_function **functions, struct sumac_error *error)
{
    wire_function *made;
    const enum sumac_status status =
        function_encode(transfer->client, function, &transfer->arena, &made, error);

    if (status == SUMAC_OK)
        functions[push->function_count++] = made;
    assert(status != SUMAC_OK || push->function_count > 0); /* 0 names the variable's own */
    return status;
}

/* ---- its scale ---- */

#define SCALE_MAX 0x1p127 /* what a ps takes */

static enum sumac_status
check_scale(const struct sumac_push_options *wanted, struct sumac_error *error)
{
    if (!(fabs(wanted->scale) <= SCALE_MAX))
        return fail_argument(
            error,
            "push: scale is %g; give a finite number of at most 2^127, which every value is "
            "multiplied by",
            wanted->scale);
    if (!(wanted->clip_norm >= 0 && wanted->clip_norm <= DBL_MAX))
        return fail_argument(
            error, "push: clip_norm is %g; give the largest norm that the push may have, or 0",
            wanted->clip_norm);
    return SUMAC_OK;
}

/* Only numbers with a fraction are scaled. */
static enum sumac_status
check_floats(const struct sumac_delta *deltas, size_t count, struct sumac_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!deltas[i].sets_hyperparameters && !sumac_dtype_is_float(deltas[i].value.dtype))
            return fail_invalid(
                error, SUMAC_REASON_WRONG_DATA_TYPE,
                "push of %s: it is of type %s, and what is scaled, or clipped by its norm, is of a "
                "float type; push it apart",
                sumac_client_variable_name(deltas[i].variable),
                sumac_dtype_name(deltas[i].value.dtype));
    return SUMAC_OK;
}

/* What is left of clipping by the norm. `deltas` are checked. The lock is not held meanwhile: it is
 * a pass over all that is pushed. */
static enum sumac_status clip(
    const struct sumac_delta *deltas, size_t count, const struct sumac_push_options *wanted,
    double *scale, struct sumac_error *error)
{
    const double given = wanted->scale != 0 ? fabs(wanted->scale) : 1;
    const double stands_for = wanted->synchronous && wanted->weight > 0 ? wanted->weight : 1;
    const double norm = norm_of(deltas, count) * given / stands_for;

    assert(wanted->clip_norm > 0);
    assert(given > 0 && stands_for > 0);
    if (!isfinite(norm))
        return fail_invalid(
            error, SUMAC_REASON_NON_FINITE,
            "push: the norm of what is pushed is %g, so it cannot be clipped to %g: a value is not "
            "finite, or too large",
            norm, wanted->clip_norm);
    if (norm > wanted->clip_norm)
        *scale = (*scale != 0 ? *scale : 1) * fmax(wanted->clip_norm / norm, DBL_MIN);
    return SUMAC_OK;
}

/* What the caller pushes. */
struct deltas {
    const struct sumac_delta *items;
    size_t count;
    bool earlier_pull, synchronous;
};

/* A push of some rows does, where t or the learning rate depends on the count of pushes: both are
 * to be the same on all shards. */
static bool names_every_shard(const struct sumac_client *client, const struct sumac_delta *delta)
{
    const struct sumac_function *named = delta->function;

    if (delta->variable == NULL || (!delta->has_rows && delta->indices == NULL))
        return false;
    if (delta->variable->every_shard || named == NULL)
        return delta->variable->every_shard;
    return named->schedule != NULL || client_function(client, named->name)->counts_steps;
}

static enum sumac_status add_deltas(
    struct transfer *transfer, const struct deltas *deltas, struct session_push *push,
    struct sumac_error *error)
{
    wire_function **functions =
        arena_take(&transfer->arena, (deltas->count + 1) * sizeof *functions);

    if (functions == NULL)
        return fail_for_memory(error, "no memory for a push");
    const struct sumac_function *last = NULL;
    for (size_t i = 0; i < deltas->count; i++) {
        const struct sumac_delta *delta = &deltas->items[i];
        if (delta->function != NULL && delta->function != last) {
            const enum sumac_status status =
                encode(transfer, delta->function, push, functions, error);
            if (status != SUMAC_OK)
                return status;
            last = delta->function;
        }
        const struct selection selection = {
            .index = i,
            .variable = delta->variable,
            .tensor = &delta->value,
            .has_rows = delta->has_rows,
            .rows = delta->rows,
            .indices = delta->indices,
            .function = delta->function != NULL ? push->function_count : 0,
            .earlier_pull = deltas->earlier_pull,
            .synchronous = deltas->synchronous,
            .every_shard = names_every_shard(transfer->client, delta),
            .verb = "push"};
        const enum sumac_status status = delta->sets_hyperparameters
                                             ? selection_set(transfer, &selection, error)
                                             : selection_add(transfer, &selection, error);
        if (status != SUMAC_OK)
            return status;
        if (delta->sets_hyperparameters && delta->function->schedule != NULL)
            delta->variable->every_shard = true;
    }
    assert(push->function_count <= deltas->count);
    push->functions = functions;
    return SUMAC_OK;
}

/* A function that this client has not heard of yet is asked for before the push is begun. */
static enum sumac_status
know_functions(struct sumac_client *client, const struct deltas *deltas, struct sumac_error *error)
{
    const struct sumac_function *last = NULL;
    enum sumac_status status = SUMAC_OK;

    for (size_t i = 0; status == SUMAC_OK && i < deltas->count; i++) {
        const struct sumac_function *function = deltas->items[i].function;
        if (function != last)
            status = client_know_function(client, function, error);
        last = function;
    }
    return status;
}

/* The scale of a push whose deltas have been found right. */
static enum sumac_status condition(
    struct sumac_client *client, const struct deltas *deltas,
    const struct sumac_push_options *wanted, double *scale, struct sumac_error *error)
{
    enum sumac_status status = check_floats(deltas->items, deltas->count, error);

    assert(client_is_locked(client));
    assert(wanted->scale != 0 || wanted->clip_norm > 0);
    if (status != SUMAC_OK || wanted->clip_norm <= 0)
        return status;
    client_unlock(client);
    status = clip(deltas->items, deltas->count, wanted, scale, error);
    client_lock(client);
    return status;
}

static bool has_room(void *context)
{
    struct sumac_client *client = context;
    struct session_state state;

    assert(client->session != NULL);
    session_read(client->session, &state);
    return state.pushes_in_flight < SESSION_PUSHES_IN_FLIGHT_MAX || client->ended;
}

static uint64_t wall_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* What the session refuses at once, it refuses in the same step. */
static enum sumac_status submit(
    struct sumac_client *client, struct transfer *transfer, struct session_push *push,
    struct sumac_error *error)
{
    if (!has_room(client) &&
        !client_wait(
            client, has_room, client, client_now_us() + (uint64_t)client->timeout_ms * 1000))
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TIMED_OUT,
            "%d pushes are under way, and none was over within %s", SESSION_PUSHES_IN_FLIGHT_MAX,
            text_time_ms(client->timeout_ms).text);
    assert(transfer->client == client);
    transfer->synchronous = push->synchronous;
    push->token = (uint64_t)(uintptr_t)transfer;
    push->pieces = transfer->pieces;
    push->piece_count = transfer->piece_count;
    struct session_event event = {.kind = SESSION_EVENT_PUSH, .wall_us = wall_us(), .push = push};
    if (!transfer->over) /* the session may have ended while there was no room */
        client_step(client, &event);
    if (!transfer->over || transfer->error.status == SUMAC_OK)
        return SUMAC_OK;
    if (error != NULL)
        *error = transfer->error;
    return transfer->error.status;
}

/* A contribution to a step that is over already would be late. */
static uint64_t open_step(const struct sumac_client *client)
{
    struct session_state state;

    session_read(client->session, &state);
    return state.open_step;
}

/* The caller has no handle: a push that is not over in time is given up. */
static enum sumac_status wait_or_cancel(struct sumac_push *push, struct sumac_error *error)
{
    struct sumac_error late;

    assert(push != NULL);
    enum sumac_status status = sumac_push_wait(push, 0, &late);

    if (status == SUMAC_DEADLINE_EXCEEDED) {
        struct sumac_error end;
        sumac_push_cancel(push);
        status = sumac_push_wait(push, CANCEL_MS, &end);
        if (status == SUMAC_CANCELLED || status == SUMAC_DEADLINE_EXCEEDED)
            return fail(
                error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
                "%.*s; it is cancelled, and %s", (int)(sizeof late.text - OUTCOME_BYTES), late.text,
                status == SUMAC_CANCELLED ? "applied nowhere"
                                          : "no ps has said whether it is applied");
        late = end;
    }
    if (status != SUMAC_OK && error != NULL)
        *error = late;
    return status;
}

enum sumac_status sumac_client_push(
    struct sumac_client *client, const struct sumac_delta *deltas, size_t count,
    const struct sumac_push_options *options, struct sumac_push **push, struct sumac_error *error)
{
    static const struct sumac_push_options ordinary = {.weight = 1};
    const struct sumac_push_options *wanted = options != NULL ? options : &ordinary;
    struct session_push made = {
        .weight = wanted->weight > 0 || wanted->zero_weight ? wanted->weight : 1,
        .scale = wanted->scale,
        .allow_non_finite = wanted->allow_non_finite,
        .finishes_step = wanted->finishes_step,
        .synchronous = wanted->synchronous};
    const struct deltas all = {
        .items = deltas,
        .count = count,
        .earlier_pull = wanted->earlier_pull,
        .synchronous = wanted->synchronous};
    const char *const null = client == NULL                ? "client"
                             : deltas == NULL && count > 0 ? "deltas"
                                                           : NULL;

    if (null != NULL)
        return fail_for_null(error, "sumac_client_push", null);
    if (count > SUMAC_TRANSFER_VARIABLES_MAX)
        return fail_argument(
            error, "push of %zu variables at once, and %d are the most", count,
            SUMAC_TRANSFER_VARIABLES_MAX);
    if (!isfinite(wanted->weight) || wanted->weight < 0)
        return fail_argument(
            error, "push: weight is %g; give how many examples or replicas the deltas stand for",
            wanted->weight);
    if (wanted->zero_weight && (!wanted->synchronous || wanted->weight > 0))
        return fail_argument(
            error,
            "push: zero_weight beside weight %g%s; a synchronous contribution without a weight "
            "adds "
            "nothing to its step, and no other push is so",
            wanted->weight, wanted->synchronous ? "" : ", and not synchronous");
    if (check_scale(wanted, error) != SUMAC_OK)
        return SUMAC_INVALID_ARGUMENT;
    if (client_check_process(client, error) != SUMAC_OK)
        return SUMAC_FAILED_PRECONDITION;
    client_lock(client);
    enum sumac_status status = know_functions(client, &all, error);
    if (wanted->synchronous)
        made.step_least = open_step(client);
    struct transfer *transfer = status == SUMAC_OK ? transfer_take(client) : NULL;
    if (status == SUMAC_OK)
        status = transfer == NULL ? fail_for_memory(error, "no memory for a push")
                                  : add_deltas(transfer, &all, &made, error);
    if (status == SUMAC_OK && (wanted->scale != 0 || wanted->clip_norm > 0))
        status = condition(client, &all, wanted, &made.scale, error);
    if (status == SUMAC_OK)
        status = submit(client, transfer, &made, error);
    if (status != SUMAC_OK && transfer != NULL)
        transfer_drop(transfer);
    client_unlock(client);
    if (status != SUMAC_OK)
        return status;
    if (push == NULL)
        return wait_or_cancel(push_of(transfer), error);
    *push = push_of(transfer);
    return SUMAC_OK;
}

void push_keep(struct sumac_push *push, struct sumac_buffer *buffer)
{
    assert(push->transfer.kept == NULL);
    push->transfer.kept = sumac_buffer_ref(buffer);
}

enum sumac_status
sumac_push_wait(struct sumac_push *push, uint32_t timeout_ms, struct sumac_error *error)
{
    if (push == NULL)
        return fail_for_null(error, "sumac_push_wait", "push");
    const char *const noun = push->transfer.synchronous ? "synchronous push" : "push";
    return transfer_wait(&push->transfer, noun, timeout_ms, error);
}

bool sumac_push_done(struct sumac_push *push)
{
    return push == NULL || transfer_poll(&push->transfer);
}

void sumac_push_cancel(struct sumac_push *push)
{
    if (push != NULL)
        transfer_cancel(&push->transfer, SESSION_EVENT_CANCEL_PUSH);
}
