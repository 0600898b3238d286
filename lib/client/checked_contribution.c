/* SPDX-License-Identifier: Apache-2.0 */
/* checked_contribution.c -- what callers ask of collectives and barriers, checked before anything
 * is sent: names, the rounds of each name, tasks; and a contribution. */
#include "transfer.h"
#include "checked_contribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective_places.h"
#include "dtype.h"
#include "error.h"
#include "update.h"

_Static_assert(SUMAC_COLLECTIVE_TASKS_MAX == WIRE_COLLECTIVE_TASKS_MAX, "the header says the same");

/* ---- the rounds of each name */

void round_numbers_init(struct round_numbers *numbers)
{
    numbers->names.first = numbers->names.last = NULL;
    key_map_init(&numbers->by_name, &memory_heap);
}

void round_numbers_deinit(struct round_numbers *numbers)
{
    for (struct numbered_name *named; (named = numbers->names.first) != NULL;) {
        assert(!named->waits);
        LIST_REMOVE(&numbers->names, named, among_names);
        free(named);
    }
    key_map_deinit(&numbers->by_name);
}

struct numbered_name *round_numbers_find(const struct round_numbers *numbers, const char *name)
{
    return key_map_get(&numbers->by_name, name, strlen(name));
}

struct numbered_name *round_numbers_add(struct round_numbers *numbers, const char *name)
{
    const size_t bytes = strlen(name);
    struct numbered_name *named = round_numbers_find(numbers, name);

    assert(bytes > 0); /* it was checked */
    if (named != NULL)
        return named;
    named = calloc(1, sizeof *named + bytes + 1);
    if (named == NULL)
        return NULL;
    memcpy(named->name, name, bytes + 1);
    named->by_name = (struct key_entry){.key = named->name, .key_bytes = bytes, .value = named};
    if (!key_map_put(&numbers->by_name, &named->by_name)) {
        free(named);
        return NULL;
    }
    LIST_APPEND(&numbers->names, named, among_names);
    return named;
}

/* ---- names and tasks, of barriers, too */

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

/* As the wire has it: chief i is 2·i, worker i is 2·i + 1. False: another job. */
static bool encode_task(const struct sumac_member *task, uint64_t *code)
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

/* The chief first, then the workers by index. */
static void sort_tasks(uint64_t *tasks, uint32_t count)
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
        if (!encode_task(&options->tasks[i], &codes[i]))
            return fail_invalid(
                error, SUMAC_REASON_BAD_NAME,
                "%s: tasks[%" PRIu32
                "] is of job %.64s; only tasks of the jobs chief and worker are members",
                label, i, job == NULL ? "NULL" : job);
    }
    sort_tasks(codes, count);
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

/* ---- a contribution */

static enum sumac_status fail_call(
    const struct checked_contribution *contribution, const char *why, struct sumac_error *error)
{
    return fail_argument(error, "%s: %s", contribution->label, why);
}

enum sumac_status
contribution_no_memory(const struct checked_contribution *contribution, struct sumac_error *error)
{
    return fail_for_memory(
        error, "no memory for round %" PRIu64 " of collective %s", contribution->round,
        contribution->options->name);
}

/* ---- the options */

/* The client's next round of this name, unless the caller gives a number. */
static enum sumac_status number_round(
    struct sumac_client *client, struct checked_contribution *contribution,
    struct sumac_error *error)
{
    const struct sumac_collective_options *options = contribution->options;
    struct round_numbers *numbers = &client->collective_rounds;

    assert(options->round != 0 || contribution->given->attempts == NULL);
    contribution->round = options->round;
    if (contribution->given->attempts == NULL) {
        struct numbered_name *named = round_numbers_find(numbers, options->name);
        const bool full = named == NULL && numbers->by_name.count >= SUMAC_COLLECTIVE_NAMES_MAX;
        if (full && options->round == 0)
            return fail(
                error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
                "collective %s: this client counts the rounds of %d names, and no more; give the "
                "number of the round, or use fewer names",
                options->name, SUMAC_COLLECTIVE_NAMES_MAX);
        if (named == NULL && !full) {
            named = round_numbers_add(numbers, options->name);
            if (named == NULL)
                return contribution_no_memory(contribution, error);
        }
        contribution->counted = named;
        if (options->round == 0)
            contribution->round = named->last + 1;
    }
    (void)text_print(
        contribution->label, sizeof contribution->label, "collective %s, round %" PRIu64,
        options->name, contribution->round);
    return SUMAC_OK;
}

static enum sumac_status
check_options(const struct checked_contribution *contribution, struct sumac_error *error)
{
    const struct sumac_collective_options *options = contribution->options;

    assert(contribution->round > 0);
    if (!isfinite(options->weight) || options->weight < 0)
        return fail_call(contribution, "a weight is finite, and at least 0", error);
    if (options->zero_weight && options->weight > 0)
        return fail_call(
            contribution, "`zero_weight` is set beside a weight; give one of the two", error);
    if ((options->weight > 0 || options->zero_weight) &&
        contribution->given->operation != COLLECTIVE_MEAN)
        return fail_call(contribution, "a weight is an option of MEAN alone; set it to 0", error);
    if (options->axis != 0 && contribution->given->operation != COLLECTIVE_GATHER)
        return fail_call(
            contribution, "`axis` is an option of all_gather alone; set it to 0", error);
    if (options->into != NULL && !contribution->arithmetic)
        return fail_call(
            contribution, "`into` is an option of all_reduce alone; set it to NULL", error);
    return SUMAC_OK;
}

/* ---- the tasks */

/* Is the task a member? The client may not know all members; then any task may be one. */
static bool is_listed(const struct sumac_client *client, uint64_t task)
{
    assert(client->member_task_count == 0 || client->member_tasks != NULL);
    for (uint32_t i = 0; i < client->member_task_count; i++)
        if (client->member_tasks[i] == task)
            return true;
    return client->member_task_count == 0;
}

static enum sumac_status fail_unlisted(
    const struct sumac_client *client, const struct checked_contribution *contribution,
    uint64_t task, struct sumac_error *error)
{
    uint64_t chiefs = 0, workers = 0;

    assert(client->member_task_count > 0);
    for (uint32_t i = 0; i < client->member_task_count; i++)
        *(client->member_tasks[i] % 2 == 0 ? &chiefs : &workers) += 1;
    return fail_invalid(
        error, SUMAC_REASON_BAD_NAME,
        "%s: %s %" PRIu64 " is named, and the cluster does not list it; it lists %" PRIu64
        " chief and %" PRIu64 " workers: name tasks of these",
        contribution->label, collective_task_job(task), task / 2, chiefs, workers);
}

static enum sumac_status list_all_members(
    const struct sumac_client *client, struct checked_contribution *contribution,
    struct sumac_error *error)
{
    const uint32_t count = client->member_task_count;

    if (count == 0)
        return fail_call(
            contribution,
            "no tasks are named, and the cluster configuration lists no members, or only some: "
            "name all who take part",
            error);
    contribution->tasks = calloc(count, sizeof *contribution->tasks);
    if (contribution->tasks == NULL)
        return contribution_no_memory(contribution, error);
    memcpy(contribution->tasks, client->member_tasks, count * sizeof *contribution->tasks);
    sort_tasks(contribution->tasks, count); /* the cluster lists jobs in any order */
    contribution->task_count = count;
    return SUMAC_OK;
}

static enum sumac_status list_tasks(
    const struct sumac_client *client, struct checked_contribution *contribution,
    struct sumac_error *error)
{
    const struct sumac_collective_options *options = contribution->options;
    bool takes_part = false;
    enum sumac_status status = SUMAC_OK;

    contribution->task_count = options->task_count;
    if (options->task_count == 0)
        status = list_all_members(client, contribution, error);
    else
        status = collective_list_tasks(options, contribution->label, &contribution->tasks, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < contribution->task_count; i++) {
        if (!is_listed(client, contribution->tasks[i]))
            return fail_unlisted(client, contribution, contribution->tasks[i], error);
        takes_part = takes_part || contribution->tasks[i] == client->own_task;
    }
    return status == SUMAC_OK && !takes_part
               ? fail_call(
                     contribution, "this process is not among the tasks that take part", error)
               : status;
}

static enum sumac_status find_root(
    const struct sumac_client *client, struct checked_contribution *contribution,
    struct sumac_error *error)
{
    uint64_t root;

    assert(contribution->task_count > 0);
    contribution->has_bytes = true;
    if (contribution->given->operation != COLLECTIVE_BROADCAST)
        return SUMAC_OK;
    if (!encode_task(&contribution->given->root, &root))
        return fail_call(contribution, "root is a chief or a worker", error);
    for (uint32_t *place = &contribution->root; contribution->tasks[*place] != root;)
        if (++*place == contribution->task_count)
            return fail_call(contribution, "root is not among the tasks that take part", error);
    contribution->has_bytes = root == client->own_task;
    return SUMAC_OK;
}

/* ---- the tensors */

/* Is the tensor's shape a shape, and is there memory for it? */
static enum sumac_status check_tensor(
    const struct checked_contribution *contribution, const struct sumac_tensor *tensor,
    struct sumac_error *error)
{
    uint64_t bytes;

    if (sumac_shape_size(&tensor->shape, tensor->dtype, NULL, &bytes) != SUMAC_OK)
        return fail_call(contribution, "a tensor has no such type or shape", error);
    return client_check_memory(tensor, bytes, "collective", contribution->options->name, error);
}

static enum sumac_status
check_into(const struct checked_contribution *contribution, struct sumac_error *error)
{
    assert(contribution->dtype != SUMAC_DTYPE_UNSPECIFIED);
    if (contribution->joins)
        return SUMAC_OK;
    if (!sumac_shape_equal(&contribution->into.shape, &contribution->given->value.shape))
        return fail_call(
            contribution, "`into` has another shape than `value`, which the result has", error);
    return check_tensor(contribution, &contribution->into, error);
}

static enum sumac_status
check_rows(const struct checked_contribution *contribution, struct sumac_error *error)
{
    const struct client_contribution *given = contribution->given;

    if (given->operation != COLLECTIVE_CONCATENATE)
        return SUMAC_OK;
    assert(contribution->joins);
    if (given->value.shape.rank == 0 || given->indices.shape.rank != 1 ||
        given->indices.dtype != SUMAC_INT64 ||
        given->indices.shape.extent[0] != given->value.shape.extent[0])
        return fail_call(
            contribution, "rows that are concatenated come with `indices`, int64, one for each",
            error);
    return check_tensor(contribution, &given->indices, error);
}

static enum sumac_status
check_values(struct checked_contribution *contribution, struct sumac_error *error)
{
    const struct client_contribution *given = contribution->given;
    const bool adds = given->operation == COLLECTIVE_SUM || given->operation == COLLECTIVE_MEAN;

    contribution->dtype = contribution->joins ? given->value.dtype : contribution->into.dtype;
    contribution->contributed =
        adds ? update_contribution_dtype(contribution->dtype) : contribution->dtype;
    if (dtype_bytes(contribution->dtype) == 0 || given->value.dtype != contribution->contributed)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s: a result of type %s is made of contributions of type %s, and `value` is of %s",
            contribution->label, sumac_dtype_name(contribution->dtype),
            sumac_dtype_name(contribution->contributed), sumac_dtype_name(given->value.dtype));
    if (sumac_shape_size(
            &given->value.shape, contribution->contributed, &contribution->elements, NULL) !=
        SUMAC_OK)
        return fail_call(contribution, "the shape has more bytes than there may be", error);
    enum sumac_status status =
        contribution->has_bytes ? check_tensor(contribution, &given->value, error) : SUMAC_OK;
    if (status == SUMAC_OK)
        status = check_into(contribution, error);
    return status == SUMAC_OK ? check_rows(contribution, error) : status;
}

/* ---- all of it */

enum sumac_status contribution_check(
    struct sumac_client *client, struct checked_contribution *contribution,
    struct sumac_error *error)
{
    const struct client_contribution *given = contribution->given;
    const struct sumac_tensor *into = contribution->options->into;

    assert(given->operation >= COLLECTIVE_SUM && given->operation <= COLLECTIVE_CONCATENATE);
    contribution->arithmetic = given->operation <= COLLECTIVE_MAX;
    contribution->joins =
        given->operation == COLLECTIVE_GATHER || given->operation == COLLECTIVE_CONCATENATE;
    contribution->into = into != NULL ? *into : given->value;
    enum sumac_status status = client_check_name(
        contribution->options->name, "collective", WIRE_COLLECTIVE_NAME_BYTES_MAX, error);
    if (status == SUMAC_OK)
        status = number_round(client, contribution, error);
    if (status == SUMAC_OK)
        status = check_options(contribution, error);
    if (status == SUMAC_OK)
        status = list_tasks(client, contribution, error);
    if (status == SUMAC_OK)
        status = find_root(client, contribution, error);
    return status == SUMAC_OK ? check_values(contribution, error) : status;
}

void contribution_deinit(struct checked_contribution *contribution) { free(contribution->tasks); }

enum sumac_status client_collective_place(
    struct sumac_client *client, const struct sumac_member *tasks, uint32_t task_count,
    uint32_t *place, uint32_t *count, struct sumac_error *error)
{
    const struct sumac_collective_options options = {.tasks = tasks, .task_count = task_count};
    struct checked_contribution contribution = {.options = &options, .label = "strategy"};

    assert(place != NULL);
    const enum sumac_status status = list_tasks(client, &contribution, error);
    *count = contribution.task_count;
    for (*place = 0; status == SUMAC_OK && contribution.tasks[*place] != client->own_task;)
        ++*place;
    contribution_deinit(&contribution);
    return status;
}
