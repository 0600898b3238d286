/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c -- members that wait for each other: the client counts the rounds of each name, so that
 * a call that is made again means the same one.
 */
#include "client_state.h"

#include <stdlib.h>

#include "collective_places.h"
#include "error.h"

#define LABEL_BYTES (SUMAC_ERROR_TEXT_BYTES / 2)

_Static_assert(SUMAC_COLLECTIVE_TASKS_MAX == WIRE_BARRIER_TASKS_MAX, "as many as a request names");

/* How the round ended. */
struct ending {
    uint64_t round; /* 0: there was none in the answer */
    struct sumac_error error;
};

/* ---- what a caller asks for */

static enum sumac_status
check_unused(const struct sumac_collective_options *options, struct sumac_error *error)
{
    const char *const unused = options->round != 0         ? "round"
                               : options->axis != 0        ? "axis"
                               : options->into != NULL     ? "into"
                               : options->weight != 0      ? "weight"
                               : options->zero_weight      ? "zero_weight"
                               : options->allow_non_finite ? "allow_non_finite"
                                                           : NULL;

    assert(options->name != NULL); /* it was checked */
    if (unused == NULL)
        return SUMAC_OK;
    return fail_argument(
        error, "barrier \"%s\": a barrier has no option `%s`; set it to 0", options->name, unused);
}

/* The tasks of a request, and the pointers to them. */
struct task_list {
    wire_task_name *names;
    wire_task_name **pointers;
};

/* The chief first, then the workers by index: as every member says them. */
static enum sumac_status list_tasks(
    const struct sumac_collective_options *options, struct task_list *list,
    struct sumac_error *error)
{
    const size_t count = options->task_count;
    char label[LABEL_BYTES];
    uint64_t *codes;

    (void)text_print(label, sizeof label, "barrier \"%s\"", options->name);
    const enum sumac_status status = collective_list_tasks(options, label, &codes, error);
    if (status != SUMAC_OK)
        return status;
    assert(count <= SUMAC_COLLECTIVE_TASKS_MAX);
    list->names = calloc(count + 1, sizeof *list->names);
    list->pointers = calloc(count + 1, sizeof *list->pointers);
    const bool made = list->names != NULL && list->pointers != NULL;
    for (size_t i = 0; made && i < count; i++) {
        list->names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        list->names[i].job = (char *)(uintptr_t)collective_task_job(codes[i]);
        list->names[i].index = (uint32_t)(codes[i] / 2);
        list->pointers[i] = &list->names[i];
    }
    free(codes);
    return made ? SUMAC_OK : collective_no_task_memory(options, label, error);
}

/* ---- the call */

static void take_ending(void *context, const wire_message *message)
{
    struct ending *ending = context;
    const wire_barrier_reply *reply = (const wire_barrier_reply *)message;

    assert(ending->round == 0); /* a call is answered once */
    ending->round = reply->round;
    if (reply->status != 0)
        (void)fail(
            &ending->error,
            reply->status <= SUMAC_UNAUTHENTICATED ? (enum sumac_status)reply->status
                                                   : SUMAC_UNKNOWN,
            (enum sumac_reason)reply->reason, "%s", reply->message);
}

/* With the lock held, which is given up while it waits. */
static enum sumac_status call(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct task_list *tasks, struct numbered_name *barrier, struct sumac_error *error)
{
    const uint32_t timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : client->timeout_ms;
    struct ending ending = {0};
    wire_barrier_request request = WIRE_BARRIER_REQUEST_INIT;

    request.session_id = session_id_bytes(client->session);
    request.name = barrier->name;
    request.round = barrier->last == 0 ? 0 : barrier->last + 1;
    request.tasks = tasks->pointers;
    request.n_tasks = options->task_count;
    request.timeout_ms = client_ps_patience_ms(timeout_ms);
    const struct client_call wanted = {
        .service = WIRE_SESSIONS,
        .method = WIRE_SESSIONS_BARRIER,
        .request = &request.base,
        .timeout_ms = timeout_ms,
        .needs_session = true,
        .waits_for_members = true,
        .take = take_ending,
        .context = &ending};
    assert(barrier->waits);
    enum sumac_status status = client_call(client, &wanted, error);
    if (status == SUMAC_OK && request.round == 0 &&
        ending.error.reason == SUMAC_REASON_ROUND_OVER) { /* an answer was lost */
        request.round = ending.round;
        ending = (struct ending){0};
        status = client_call(client, &wanted, error);
    }
    if (status != SUMAC_OK)
        return status;
    if (ending.round == 0)
        return fail(
            error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "ps 0 answered for barrier \"%s\", and named no round", barrier->name);
    barrier->last = ending.round;
    return ending.error.status == SUMAC_OK ? SUMAC_OK : fail_again(error, &ending.error);
}

static enum sumac_status wait_at(
    struct sumac_client *client, const struct sumac_collective_options *options,
    const struct task_list *tasks, uint64_t *round, struct sumac_error *error)
{
    struct numbered_name *barrier = round_numbers_add(&client->barrier_rounds, options->name);

    if (barrier == NULL)
        return fail_for_memory(error, "no memory for barrier \"%s\"", options->name);
    if (barrier->waits)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "another thread of this client waits at barrier \"%s\"; one of a process comes to it",
            options->name);
    barrier->waits = true;
    const enum sumac_status status = call(client, options, tasks, barrier, error);
    barrier->waits = false;
    if (status == SUMAC_OK && round != NULL)
        *round = barrier->last;
    return status;
}

enum sumac_status sumac_client_barrier(
    struct sumac_client *client, const struct sumac_collective_options *options, uint64_t *round,
    struct sumac_error *error)
{
    struct task_list tasks = {0};
    const char *const null = client == NULL ? "client" : options == NULL ? "options" : NULL;
    enum sumac_status status = client_enter(client, null, __func__, error);

    if (status != SUMAC_OK)
        return status;
    status = client_check_name(options->name, "barrier", WIRE_COLLECTIVE_NAME_BYTES_MAX, error);
    if (status == SUMAC_OK)
        status = check_unused(options, error);
    if (status == SUMAC_OK)
        status = list_tasks(options, &tasks, error);
    if (status == SUMAC_OK)
        status = wait_at(client, options, &tasks, round, error);
    client_unlock(client);
    free(tasks.pointers);
    free(tasks.names);
    return status;
}
