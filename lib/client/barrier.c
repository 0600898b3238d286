/* SPDX-License-Identifier: Apache-2.0 */
/* barrier.c -- members that wait for each other: the client counts the rounds of each name, so that
 * a call that is made again means the same one.
 */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "text.h"

#define NAME_BYTES_MAX 256

_Static_assert(SUMAC_BARRIER_TASKS_MAX == WIRE_BARRIER_TASKS_MAX, "as many as a request may name");

/* A name, from the first call on until the close. */
struct client_barrier {
    LINKS(struct client_barrier) in_client;
    struct key_entry by_name;
    uint64_t round; /* the last whose end was heard; 0: none yet */
    bool waits;     /* a thread does */
    char name[];
};

/* How the round ended. */
struct ending {
    uint64_t round; /* 0: there was none in the answer */
    struct sumac_error error;
};

/* ---- what a caller asks for */

static enum sumac_status
check_name(const struct sumac_barrier_options *options, struct sumac_error *error)
{
    const size_t bytes = options->name == NULL ? 0 : strnlen(options->name, NAME_BYTES_MAX + 1);

    if (bytes == 0 || bytes > NAME_BYTES_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "a barrier's name has 1 to %d bytes, given %s", NAME_BYTES_MAX,
            bytes == 0 ? "none" : "more");
    if (!text_is_utf8(options->name, bytes))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "a barrier's name is UTF-8, and this one is not");
    if (text_has_control(options->name, bytes))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "the barrier's name has a control character, shown here as ?: %s", options->name);
    return SUMAC_OK;
}

static enum sumac_status
check_tasks(const struct sumac_barrier_options *options, struct sumac_error *error)
{
    if (options->task_count > 0 && options->tasks == NULL)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "barrier \"%s\": task_count is %" PRIu32 ", and tasks is NULL", options->name,
            options->task_count);
    if (options->task_count > SUMAC_BARRIER_TASKS_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "barrier \"%s\": task_count is %" PRIu32 ", and %d are the most", options->name,
            options->task_count, SUMAC_BARRIER_TASKS_MAX);
    for (uint32_t i = 0; i < options->task_count; i++) {
        const char *job = options->tasks[i].job;
        if (job == NULL || (strcmp(job, "chief") != 0 && strcmp(job, "worker") != 0))
            return fail(
                error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
                "barrier \"%s\": tasks[%" PRIu32
                "] is of job %.64s; only tasks of the jobs chief and "
                "worker are members",
                options->name, i, job == NULL ? "NULL" : job);
    }
    return SUMAC_OK;
}

/* The chief first, then the workers by index: as every member says them. */
static int compare(const void *one, const void *other)
{
    const wire_task_name *a = one, *b = other;
    const int by_job = strcmp(a->job, b->job);

    return by_job != 0 ? by_job : (a->index > b->index) - (a->index < b->index);
}

/* The tasks of a request, and the pointers to them. */
struct task_list {
    wire_task_name *names;
    wire_task_name **pointers;
};

static enum sumac_status sort_tasks(
    const struct sumac_barrier_options *options, struct task_list *list, struct sumac_error *error)
{
    const size_t count = options->task_count;

    assert(count <= SUMAC_BARRIER_TASKS_MAX);
    list->names = calloc(count + 1, sizeof *list->names);
    list->pointers = calloc(count + 1, sizeof *list->pointers);
    if (list->names == NULL || list->pointers == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "barrier \"%s\": no memory for a list of %" PRIu32 " tasks", options->name,
            options->task_count);
    for (size_t i = 0; i < count; i++) {
        list->names[i] = (wire_task_name)WIRE_TASK_NAME_INIT;
        list->names[i].job = (char *)(uintptr_t)options->tasks[i].job;
        list->names[i].index = options->tasks[i].index;
        list->pointers[i] = &list->names[i];
    }
    qsort(list->names, count, sizeof *list->names, compare);
    for (size_t i = 1; i < count; i++)
        if (compare(&list->names[i - 1], &list->names[i]) == 0)
            return fail(
                error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
                "barrier \"%s\": %s %" PRIu32 " is named twice", options->name, list->names[i].job,
                list->names[i].index);
    return SUMAC_OK;
}

/* ---- names */

/* NULL: no memory. */
static struct client_barrier *find_or_add(struct sumac_client *client, const char *name)
{
    const size_t bytes = strlen(name) + 1;
    struct client_barrier *barrier = key_map_get(&client->barriers_by_name, name, bytes - 1);

    assert(client_is_locked(client));
    if (barrier != NULL)
        return barrier;
    barrier = calloc(1, sizeof *barrier + bytes);
    if (barrier == NULL)
        return NULL;
    memcpy(barrier->name, name, bytes);
    barrier->by_name =
        (struct key_entry){.key = barrier->name, .key_bytes = bytes - 1, .value = barrier};
    if (!key_map_put(&client->barriers_by_name, &barrier->by_name)) {
        free(barrier);
        return NULL;
    }
    LIST_APPEND(&client->barriers, barrier, in_client);
    return barrier;
}

void client_forget_barriers(struct sumac_client *client)
{
    assert(client->session == NULL); /* nobody waits */
    while (client->barriers.first != NULL) {
        struct client_barrier *barrier = client->barriers.first;
        assert(!barrier->waits);
        LIST_REMOVE(&client->barriers, barrier, in_client);
        free(barrier);
    }
    key_map_deinit(&client->barriers_by_name);
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
    struct sumac_client *client, const struct sumac_barrier_options *options,
    const struct task_list *tasks, struct client_barrier *barrier, struct sumac_error *error)
{
    const uint32_t timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : client->timeout_ms;
    struct session_state state;
    struct ending ending = {0};
    wire_barrier_request request = WIRE_BARRIER_REQUEST_INIT;

    session_read(client->session, &state);
    request.session_id = (wire_bytes){.data = state.session_id, .len = sizeof state.session_id};
    request.name = barrier->name;
    request.round = barrier->round == 0 ? 0 : barrier->round + 1;
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
    barrier->round = ending.round;
    if (ending.error.status != SUMAC_OK && error != NULL)
        *error = ending.error;
    return ending.error.status;
}

static enum sumac_status wait_at(
    struct sumac_client *client, const struct sumac_barrier_options *options,
    const struct task_list *tasks, uint64_t *round, struct sumac_error *error)
{
    struct client_barrier *barrier = find_or_add(client, options->name);

    if (barrier == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for barrier \"%s\"", options->name);
    if (barrier->waits)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "another thread of this client waits at barrier \"%s\"; one of a process comes to it",
            options->name);
    barrier->waits = true;
    const enum sumac_status status = call(client, options, tasks, barrier, error);
    barrier->waits = false;
    if (status == SUMAC_OK && round != NULL)
        *round = barrier->round;
    return status;
}

enum sumac_status sumac_client_barrier(
    struct sumac_client *client, const struct sumac_barrier_options *options, uint64_t *round,
    struct sumac_error *error)
{
    struct task_list tasks = {0};

    if (client == NULL || options == NULL)
        return fail_for_null(error, "sumac_client_barrier", client == NULL ? "client" : "options");
    enum sumac_status status = client_check_process(client, error);
    if (status == SUMAC_OK)
        status = check_name(options, error);
    if (status == SUMAC_OK)
        status = check_tasks(options, error);
    if (status != SUMAC_OK)
        return status;
    status = sort_tasks(options, &tasks, error);
    if (status == SUMAC_OK) {
        client_lock(client);
        status = wait_at(client, options, &tasks, round, error);
        client_unlock(client);
    }
    free(tasks.pointers);
    free(tasks.names);
    return status;
}
