/* SPDX-License-Identifier: Apache-2.0 */
/* push.c -- deltas to variables, all or nothing over every ps. */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "error.h"
#include "text.h"

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
    const enum sumac_status status = function_encode(function, &transfer->arena, &made, error);

    if (status == SUMAC_OK)
        functions[push->function_count++] = made;
    assert(status != SUMAC_OK || push->function_count > 0); /* 0 names the variable's own */
    return status;
}

/* What the caller pushes. */
struct deltas {
    const struct sumac_delta *items;
    size_t count;
    bool earlier_pull, synchronous;
};

static enum sumac_status add_deltas(
    struct transfer *transfer, const struct deltas *deltas, struct session_push *push,
    struct sumac_error *error)
{
    wire_function **functions =
        arena_take(&transfer->arena, (deltas->count + 1) * sizeof *functions);

    if (functions == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory for a push");
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
            .verb = "push"};
        const enum sumac_status status = selection_add(transfer, &selection, error);
        if (status != SUMAC_OK)
            return status;
    }
    assert(push->function_count <= deltas->count);
    push->functions = functions;
    return SUMAC_OK;
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

enum sumac_status sumac_client_push(
    struct sumac_client *client, const struct sumac_delta *deltas, size_t count,
    const struct sumac_push_options *options, struct sumac_push **push, struct sumac_error *error)
{
    static const struct sumac_push_options ordinary = {.weight = 1};
    const struct sumac_push_options *wanted = options != NULL ? options : &ordinary;
    struct session_push made = {
        .weight = wanted->weight > 0 || wanted->weightless ? wanted->weight : 1,
        .non_finite_allowed = wanted->non_finite_allowed,
        .finishes_step = wanted->finishes_step,
        .synchronous = wanted->synchronous};
    const struct deltas all = {
        .items = deltas,
        .count = count,
        .earlier_pull = wanted->earlier_pull,
        .synchronous = wanted->synchronous};
    const char *const null = client == NULL                ? "client"
                             : deltas == NULL && count > 0 ? "deltas"
                             : push == NULL                ? "push"
                                                           : NULL;

    if (null != NULL)
        return fail_for_null(error, "sumac_client_push", null);
    if (count > SUMAC_TRANSFER_VARIABLES_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "push of %zu variables at once, and %d are the most", count,
            SUMAC_TRANSFER_VARIABLES_MAX);
    if (!isfinite(wanted->weight) || wanted->weight < 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "push: weight is %g; give how many examples or replicas the deltas stand for",
            wanted->weight);
    if (wanted->weightless && (!wanted->synchronous || wanted->weight > 0))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "push: weightless beside weight %g%s; a synchronous contribution without a weight adds "
            "nothing to its step, and no other push is so",
            wanted->weight, wanted->synchronous ? "" : ", and not synchronous");
    if (client_check_process(client, error) != SUMAC_OK)
        return SUMAC_FAILED_PRECONDITION;
    client_lock(client);
    if (wanted->synchronous)
        made.step_least = open_step(client);
    struct transfer *transfer = transfer_take(client);
    enum sumac_status status = transfer == NULL
                                   ? fail(
                                         error, SUMAC_RESOURCE_EXHAUSTED,
                                         SUMAC_REASON_OUT_OF_MEMORY, "no memory for a push")
                                   : add_deltas(transfer, &all, &made, error);
    if (status == SUMAC_OK)
        status = submit(client, transfer, &made, error);
    if (status == SUMAC_OK)
        *push = push_of(transfer);
    else if (transfer != NULL)
        transfer_drop(transfer);
    client_unlock(client);
    return status;
}

enum sumac_status
sumac_push_wait(struct sumac_push *push, uint32_t timeout_ms, struct sumac_error *error)
{
    if (push == NULL)
        return fail_for_null(error, "sumac_push_wait", "push");
    return transfer_wait(&push->transfer, "push", timeout_ms, error);
}

bool sumac_push_done(struct sumac_push *push)
{
    return push == NULL || transfer_poll(&push->transfer);
}

enum sumac_status sumac_client_push_and_wait(
    struct sumac_client *client, const struct sumac_delta *deltas, size_t count,
    const struct sumac_push_options *options, struct sumac_error *error)
{
    struct sumac_push *push;
    const enum sumac_status status =
        sumac_client_push(client, deltas, count, options, &push, error);

    return status == SUMAC_OK ? sumac_push_wait(push, 0, error) : status;
}
