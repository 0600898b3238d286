/* SPDX-License-Identifier: Apache-2.0 */
/* collective_options.c -- the name and the tasks of a collective or a barrier, checked. */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collective_places.h"
#include "error.h"

_Static_assert(SUMAC_COLLECTIVE_TASKS_MAX == WIRE_COLLECTIVE_TASKS_MAX, "the header says the same");

enum sumac_status
client_check_name(const char *name, const char *kind, size_t most, struct sumac_error *error)
{
    const size_t bytes = name == NULL ? 0 : strnlen(name, most + 1);

    assert(kind != NULL);
    if (bytes == 0 || bytes > most)
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME, "a %s's name has 1 to %zu bytes, given %s", kind, most,
            bytes == 0 ? "none" : "more");
    if (!text_is_utf8(name, bytes))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME, "a %s's name is UTF-8, and this one is not", kind);
    if (text_has_control(name, bytes))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "the %s's name has a control character, shown here as ?: %s", kind, name);
    return SUMAC_OK;
}

bool collective_encode_task(const struct sumac_member *task, uint64_t *code)
{
    assert(code != NULL);
    const bool chief = task->job != NULL && strcmp(task->job, "chief") == 0;

    *code = 2 * (uint64_t)task->index + !chief;
    return chief || (task->job != NULL && strcmp(task->job, "worker") == 0);
}

const char *collective_task_job(uint64_t code) { return code % 2 == 0 ? "chief" : "worker"; }

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    if (a % 2 != b % 2)
        return a % 2 < b % 2 ? -1 : 1;
    return (a > b) - (a < b);
}

void collective_sort_tasks(uint64_t *tasks, uint32_t count)
{
    qsort(tasks, count, sizeof *tasks, compare);
    assert(count < 2 || compare(&tasks[0], &tasks[1]) <= 0);
}

static enum sumac_status encode_tasks(
    const struct sumac_collective_options *options, const char *label, uint64_t *codes,
    struct sumac_error *error)
{
    const uint32_t count = options->task_count;

    assert(count <= SUMAC_COLLECTIVE_TASKS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const char *job = options->tasks[i].job;
        if (!collective_encode_task(&options->tasks[i], &codes[i]))
            return fail_invalid(
                error, SUMAC_REASON_BAD_NAME,
                "%s: tasks[%" PRIu32
                "] is of job %.64s; only tasks of the jobs chief and worker are members",
                label, i, job == NULL ? "NULL" : job);
    }
    collective_sort_tasks(codes, count);
    for (uint32_t i = 1; i < count; i++)
        if (codes[i] == codes[i - 1])
            return fail_argument(
                error, "%s: %s %" PRIu64 " is named twice", label, collective_task_job(codes[i]),
                codes[i] / 2);
    return SUMAC_OK;
}

enum sumac_status collective_no_task_memory(
    const struct sumac_collective_options *options, const char *label, struct sumac_error *error)
{
    return fail_for_memory(
        error, "%s: no memory for a list of %" PRIu32 " tasks", label, options->task_count);
}

enum sumac_status collective_list_tasks(
    const struct sumac_collective_options *options, const char *label, uint64_t **tasks,
    struct sumac_error *error)
{
    const uint32_t count = options->task_count;

    *tasks = NULL;
    if (count > 0 && options->tasks == NULL)
        return fail_argument(
            error, "%s: task_count is %" PRIu32 ", and tasks is NULL", label, count);
    if (count > SUMAC_COLLECTIVE_TASKS_MAX)
        return fail_argument(
            error, "%s: task_count is %" PRIu32 ", and %d are the most", label, count,
            SUMAC_COLLECTIVE_TASKS_MAX);
    uint64_t *codes = calloc((size_t)count + 1, sizeof *codes);
    if (codes == NULL)
        return collective_no_task_memory(options, label, error);
    const enum sumac_status status = encode_tasks(options, label, codes, error);
    if (status == SUMAC_OK)
        *tasks = codes;
    else
        free(codes);
    return status;
}
