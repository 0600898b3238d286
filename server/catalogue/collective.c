/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c -- what a contribution says of its round: a row for each operation says what it
 * takes. */
#include "collective.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "text.h"
#include "update.h"

#define EXTENT_MAX (UINT64_C(1) << 40) /* whose sum, of all tasks, is far from 2^63 */
#define TEXT_BYTES 160
#define TASK_BYTES 24
#define COUNT(array) (sizeof(array) / sizeof *(array))

_Static_assert(COLLECTIVE_TASKS_MAX == WIRE_BARRIER_TASKS_MAX, "as many as come to a barrier");

/* ---- operations ---- */

static bool any_dtype(enum sumac_dtype dtype) { return dtype_bytes(dtype) > 0; }

static const struct operation_row {
    const char *name;
    bool (*takes)(enum sumac_dtype dtype);
    bool adds;       /* of half types float32 */
    bool arithmetic; /* element by element: of one shape, and it may be split */
    bool joins;      /* one after the other: the extent of an axis may differ */
    bool has_axis;
    bool has_root;
} operations[] = {
    [COLLECTIVE_SUM] = {"sum", update_can_add, .adds = true, .arithmetic = true},
    [COLLECTIVE_MEAN] = {"mean", update_can_divide, .adds = true, .arithmetic = true},
    [COLLECTIVE_MIN] = {"min", update_can_add, .arithmetic = true},
    [COLLECTIVE_MAX] = {"max", update_can_add, .arithmetic = true},
    [COLLECTIVE_GATHER] = {"gather", any_dtype, .joins = true, .has_axis = true},
    [COLLECTIVE_BROADCAST] = {"broadcast", any_dtype, .has_root = true},
    [COLLECTIVE_CONCATENATE] = {"concatenate", any_dtype, .joins = true},
};

static const struct operation_row *row_of(enum collective_operation operation)
{
    assert((unsigned)operation > 0 && (unsigned)operation < COUNT(operations));
    return &operations[operation];
}

const char *collective_operation_name(enum collective_operation operation)
{
    return row_of(operation)->name;
}

/* ---- tasks ---- */

bool collective_task_equal(const struct collective_task *a, const struct collective_task *b)
{
    return a->chief == b->chief && a->index == b->index;
}

static bool is_after(const struct collective_task *task, const struct collective_task *before)
{
    return task->chief == before->chief ? task->index > before->index : before->chief;
}

const char *collective_task_print(const struct collective_task *task, char *text, size_t text_bytes)
{
    (void)text_print(
        text, text_bytes, "%s %" PRIu32, task->chief ? "chief" : "worker", task->index);
    return text;
}

uint32_t collective_place(const struct collective *collective, const struct collective_task *task)
{
    uint32_t low = 0, high = collective->task_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (is_after(task, &collective->tasks[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    assert(low <= collective->task_count);
    return low < collective->task_count && collective_task_equal(&collective->tasks[low], task)
               ? low
               : UINT32_MAX;
}

static enum sumac_status read_tasks(
    const wire_collective *message, const struct collective_task *own,
    struct collective_task *tasks, struct collective *collective, struct sumac_error *error)
{
    char text[TASK_BYTES], before[TASK_BYTES];

    if (message->n_tasks == 0 || message->n_tasks > COLLECTIVE_TASKS_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "collective %.100s names %zu tasks that take part; 1 to %u may", collective->name,
            message->n_tasks, COLLECTIVE_TASKS_MAX);
    for (size_t i = 0; i < message->n_tasks; i++) {
        const uint64_t index = message->tasks[i] / 2;
        tasks[i] =
            (struct collective_task){.chief = message->tasks[i] % 2 == 0, .index = (uint32_t)index};
        if (index > UINT32_MAX || (i > 0 && !is_after(&tasks[i], &tasks[i - 1])))
            return fail_invalid(
                error, SUMAC_REASON_MALFORMED,
                "collective %.100s names %s after %s; name the chief first, then the workers by "
                "index, each once",
                collective->name,
                index > UINT32_MAX ? "a task of no index"
                                   : collective_task_print(&tasks[i], text, sizeof text),
                i == 0 ? "no task" : collective_task_print(&tasks[i - 1], before, sizeof before));
    }
    collective->tasks = tasks;
    collective->task_count = (uint32_t)message->n_tasks;
    collective->own = collective_place(collective, own);
    if (collective->own == UINT32_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "%s contributes to collective %.100s, and is not one of the %" PRIu32
            " tasks that it names: name it among them",
            collective_task_print(own, text, sizeof text), collective->name,
            collective->task_count);
    return SUMAC_OK;
}

/* After the tasks. `own` has no attempt when a ps reads an order, which no session has sent. */
static enum sumac_status read_attempts(
    const wire_collective *message, const struct collective_task *own,
    struct collective_task *tasks, struct collective *collective, struct sumac_error *error)
{
    char text[TASK_BYTES];

    collective->of_attempts = message->n_attempts > 0;
    if (!collective->of_attempts)
        return SUMAC_OK;
    if (message->n_attempts != message->n_tasks)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "collective %.100s names %zu attempts of %zu tasks: name one for each task",
            collective->name, message->n_attempts, message->n_tasks);
    for (size_t i = 0; i < message->n_tasks; i++)
        tasks[i].attempt = message->attempts[i];
    if (own->attempt == 0 || tasks[collective->own].attempt == own->attempt)
        return SUMAC_OK;
    return fail_invalid(
        error, SUMAC_REASON_MALFORMED,
        "collective %.100s: %s names itself as attempt %" PRIu64 ", and its session is attempt "
        "%" PRIu64 ": name that",
        collective->name, collective_task_print(own, text, sizeof text),
        tasks[collective->own].attempt, own->attempt);
}

/* Above 0: the collective knows an earlier attempt of that task; 0: one of both knows none. */
static int32_t
compare_attempts(const struct collective *collective, const struct collective_task *task)
{
    const uint32_t place = task->attempt == 0 ? UINT32_MAX : collective_place(collective, task);
    const uint64_t known = place == UINT32_MAX ? 0 : collective->tasks[place].attempt;

    return known == 0 ? 0 : (task->attempt > known) - (task->attempt < known);
}

uint32_t collective_other_attempt(const struct collective *one, const struct collective *given)
{
    uint32_t i = 0;

    if (!one->of_attempts || !given->of_attempts)
        return UINT32_MAX;
    while (i < given->task_count && compare_attempts(one, &given->tasks[i]) == 0)
        i++;
    return i < given->task_count ? i : UINT32_MAX;
}

bool collective_is_later(const struct collective *given, const struct collective *other)
{
    bool is_later = false;

    for (uint32_t i = 0; i < given->task_count; i++) {
        const int32_t order = compare_attempts(other, &given->tasks[i]);
        if (order < 0)
            return false;
        is_later = is_later || order > 0;
    }
    return is_later;
}

void collective_learn_attempts(struct collective *copy, const struct collective *given)
{
    struct collective_task *tasks = (struct collective_task *)(void *)(copy + 1);

    assert(copy->tasks == tasks);
    if (!copy->of_attempts)
        return;
    for (uint32_t i = 0; i < given->task_count; i++) {
        const uint32_t place = collective_place(copy, &given->tasks[i]);
        if (place != UINT32_MAX && given->tasks[i].attempt != 0)
            tasks[place].attempt = given->tasks[i].attempt;
    }
}

/* ---- what is contributed ---- */

/* It is bytes on the wire: what a push says is not looked through for strings. */
static enum sumac_status read_name(
    const wire_collective *message, char *name, struct collective *collective,
    struct sumac_error *error)
{
    const size_t bytes = message->name.len;

    if (bytes == 0 || bytes > COLLECTIVE_NAME_BYTES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME, "a collective's name has 1 to %u bytes, given %zu",
            COLLECTIVE_NAME_BYTES_MAX, bytes);
    memcpy(name, message->name.data, bytes);
    name[bytes] = '\0';
    if (!text_is_utf8(name, bytes) || text_has_control(name, bytes)) {
        text_make_line(name);
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "the collective's name is not UTF-8, or has a control character, shown here as ?: "
            "%.100s",
            name);
    }
    collective->name = name;
    collective->round = message->round;
    if (message->round == 0 || message->round > INT64_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "collective %.100s has no round %" PRIu64 ": they count from 1, to 2^63 - 1", name,
            message->round);
    return SUMAC_OK;
}

static enum sumac_status read_operation(
    const wire_collective *message, struct collective *collective, struct sumac_error *error)
{
    char known[64];

    if ((unsigned)message->operation == 0 || (unsigned)message->operation >= COUNT(operations))
        return fail(
            error, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED,
            "collective %.100s: operation %d is not known; they are 1 (%s) to %zu (%s)",
            collective->name, (int)message->operation, operations[COLLECTIVE_SUM].name,
            COUNT(operations) - 1, operations[COUNT(operations) - 1].name);
    collective->operation = (enum collective_operation)message->operation;
    collective->dtype = (enum sumac_dtype)message->data_type;
    if (sumac_dtype_bytes(collective->dtype) == 0)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE,
            "collective %.100s: data type %d is not known; types are %s", collective->name,
            (int)message->data_type, dtype_list_print(known, sizeof known));
    if (!row_of(collective->operation)->takes(collective->dtype))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "collective %.100s: there is no %s of %s",
            collective->name, collective_operation_name(collective->operation),
            sumac_dtype_name(collective->dtype));
    return SUMAC_OK;
}

static enum sumac_status
read_shape(const wire_collective *message, struct collective *collective, struct sumac_error *error)
{
    char text[TEXT_BYTES];

    if (message->n_shape > SUMAC_RANK_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_SHAPE,
            "collective %.100s: a shape of %zu axes, at most %d may be", collective->name,
            message->n_shape, SUMAC_RANK_MAX);
    collective->shape = (struct sumac_shape){.rank = (uint32_t)message->n_shape};
    for (uint32_t axis = 0; axis < collective->shape.rank; axis++)
        collective->shape.extent[axis] = message->shape[axis];
    if (sumac_shape_size(
            &collective->shape, collective_contribution_dtype(collective), &collective->elements,
            NULL) != SUMAC_OK)
        return fail_invalid(
            error, SUMAC_REASON_BAD_SHAPE,
            "collective %.100s: shape %s of %s is more than 2^63 - 1 bytes", collective->name,
            sumac_shape_print(&collective->shape, text, sizeof text),
            sumac_dtype_name(collective->dtype));
    if (row_of(collective->operation)->joins && collective->shape.rank == 0)
        return fail_invalid(
            error, SUMAC_REASON_BAD_SHAPE,
            "collective %.100s: a %s of scalars has no axis; give them the shape [1]",
            collective->name, collective_operation_name(collective->operation));
    for (uint32_t axis = 0; axis < collective->shape.rank; axis++)
        if (row_of(collective->operation)->joins && collective->shape.extent[axis] > EXTENT_MAX)
            return fail_invalid(
                error, SUMAC_REASON_BAD_SHAPE,
                "collective %.100s: a %s of shape %s; what is joined has at most %" PRIu64
                " along each axis, so that it can be counted together",
                collective->name, collective_operation_name(collective->operation),
                sumac_shape_print(&collective->shape, text, sizeof text), EXTENT_MAX);
    return SUMAC_OK;
}

static enum sumac_status read_places(
    const wire_collective *message, struct collective *collective, struct sumac_error *error)
{
    const struct operation_row *row = row_of(collective->operation);
    const uint32_t axes = row->has_axis ? collective->shape.rank : 1;
    const uint32_t roots = row->has_root ? collective->task_count : 1;

    collective->axis = message->axis;
    collective->root = message->root;
    collective->split = message->split;
    if (message->axis >= axes)
        return fail_invalid(
            error, SUMAC_REASON_BAD_SHAPE, "collective %.100s: a %s along axis %u, of 0 to %u",
            collective->name, row->name, message->axis, axes - 1);
    if (message->root >= roots)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "collective %.100s: a %s of the task at place %u, of 0 to %u", collective->name,
            row->name, message->root, roots - 1);
    if (message->split && !row->arithmetic)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "collective %.100s: a %s is not split: all of it meets on one ps", collective->name,
            row->name);
    const uint64_t bytes =
        collective->elements * dtype_bytes(collective_contribution_dtype(collective));
    if (!message->split && row->arithmetic && bytes > COLLECTIVE_WHOLE_BYTES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "collective %.100s: a %s of %" PRIu64 " bytes on one ps, where %u are the most: split "
            "it over all",
            collective->name, row->name, bytes, COLLECTIVE_WHOLE_BYTES_MAX);
    return SUMAC_OK;
}

enum sumac_status collective_read(
    const wire_collective *message, const struct collective_task *own,
    struct collective_texts *texts, struct collective *collective, struct sumac_error *error)
{
    struct collective read = {.timeout_ms = message->timeout_ms};

    if (read.timeout_ms == 0)
        read.timeout_ms = COLLECTIVE_TIMEOUT_MS_DEFAULT;
    if (read.timeout_ms > WIRE_ROUND_MS_MAX)
        read.timeout_ms = WIRE_ROUND_MS_MAX;
    if (read_name(message, texts->name, &read, error) != SUMAC_OK ||
        read_tasks(message, own, texts->tasks, &read, error) != SUMAC_OK ||
        read_attempts(message, own, texts->tasks, &read, error) != SUMAC_OK ||
        read_operation(message, &read, error) != SUMAC_OK ||
        read_shape(message, &read, error) != SUMAC_OK ||
        read_places(message, &read, error) != SUMAC_OK)
        return error->status;
    assert(read.own < read.task_count);
    *collective = read;
    return SUMAC_OK;
}

wire_collective *collective_write(const struct collective *collective, struct arena *arena)
{
    wire_collective *message = arena_take(arena, sizeof *message);
    uint64_t *tasks = arena_take(arena, collective->task_count * sizeof *tasks);
    uint64_t *attempts = arena_take(arena, collective->task_count * sizeof *attempts);
    uint64_t *shape = arena_take(arena, (collective->shape.rank + 1) * sizeof *shape);

    if (message == NULL || tasks == NULL || attempts == NULL || shape == NULL)
        return NULL;
    for (uint32_t i = 0; i < collective->task_count; i++) {
        tasks[i] = 2 * (uint64_t)collective->tasks[i].index + !collective->tasks[i].chief;
        attempts[i] = collective->tasks[i].attempt;
    }
    memcpy(shape, collective->shape.extent, collective->shape.rank * sizeof *shape);
    *message = (wire_collective)WIRE_COLLECTIVE_INIT;
    message->name = (wire_bytes){
        .len = strlen(collective->name), .data = (uint8_t *)(uintptr_t)collective->name};
    message->round = collective->round;
    message->tasks = tasks;
    message->n_tasks = collective->task_count;
    message->attempts = attempts;
    message->n_attempts = collective->of_attempts ? collective->task_count : 0;
    message->operation = (Sumac__V1__Collective__Operation)collective->operation;
    message->data_type = (Sumac__V1__DataType)collective->dtype;
    message->shape = shape;
    message->n_shape = collective->shape.rank;
    message->axis = collective->axis;
    message->root = collective->root;
    message->timeout_ms = collective->timeout_ms;
    message->split = collective->split;
    return message;
}

/* ---- what all say alike ---- */

static bool same_tasks(const struct collective *a, const struct collective *b)
{
    if (a->task_count != b->task_count)
        return false;
    for (uint32_t i = 0; i < a->task_count; i++)
        if (!collective_task_equal(&a->tasks[i], &b->tasks[i]))
            return false;
    return true;
}

/* "3 tasks, worker 0 to worker 4" */
static void print_tasks(const struct collective *collective, char text[TEXT_BYTES])
{
    char first[TASK_BYTES], last[TASK_BYTES];

    (void)text_print(
        text, TEXT_BYTES, "%" PRIu32 " tasks, %s to %s", collective->task_count,
        collective_task_print(&collective->tasks[0], first, sizeof first),
        collective_task_print(&collective->tasks[collective->task_count - 1], last, sizeof last));
}

/* But for the axis that they are joined along. */
static bool same_shape(const struct collective *a, const struct collective *b)
{
    struct sumac_shape given = b->shape;

    assert(a->operation == b->operation && a->axis == b->axis);
    if (row_of(a->operation)->joins && given.rank == a->shape.rank)
        given.extent[a->axis] = a->shape.extent[a->axis];
    return sumac_shape_equal(&a->shape, &given);
}

/* The first task that differs in two lists which differ in the middle only: "3 tasks, worker 0 to
 * worker 4, worker 2 at place 1". */
static void print_middle(
    const struct collective *collective, const struct collective *other, char text[TEXT_BYTES])
{
    const size_t bytes = strlen(text);
    char task[TASK_BYTES];
    uint32_t place = 0;

    assert(collective->task_count == other->task_count);
    while (collective_task_equal(&collective->tasks[place], &other->tasks[place])) {
        place++;
        assert(place < collective->task_count);
    }
    (void)text_print(
        text + bytes, TEXT_BYTES - bytes, ", %s at place %" PRIu32,
        collective_task_print(&collective->tasks[place], task, sizeof task), place);
}

/* Prints the first attribute that differs, as each has it. Returns its name, or NULL: none does. An
 * axis, a root and a shape mean something where the operations are the same. */
static const char *find_difference(
    const struct collective *a, const struct collective *b, char one[TEXT_BYTES],
    char other[TEXT_BYTES])
{
    if (!same_tasks(a, b)) {
        print_tasks(a, one);
        print_tasks(b, other);
        if (strcmp(one, other) == 0) {
            print_middle(a, b, one);
            print_middle(b, a, other);
        }
        return "its participants are";
    }
    if (a->operation != b->operation) {
        (void)text_print(one, TEXT_BYTES, "%s", collective_operation_name(a->operation));
        (void)text_print(other, TEXT_BYTES, "%s", collective_operation_name(b->operation));
        return "it is a";
    }
    if (a->dtype != b->dtype) {
        (void)text_print(one, TEXT_BYTES, "%s", sumac_dtype_name(a->dtype));
        (void)text_print(other, TEXT_BYTES, "%s", sumac_dtype_name(b->dtype));
        return "it is of";
    }
    if (a->axis != b->axis) {
        (void)text_print(one, TEXT_BYTES, "axis %" PRIu32, a->axis);
        (void)text_print(other, TEXT_BYTES, "axis %" PRIu32, b->axis);
        return "it goes along";
    }
    if (a->root != b->root) {
        assert(a->root < a->task_count && b->root < b->task_count);
        (void)collective_task_print(&a->tasks[a->root], one, TEXT_BYTES);
        (void)collective_task_print(&b->tasks[b->root], other, TEXT_BYTES);
        return "its root is";
    }
    if (!same_shape(a, b)) {
        (void)sumac_shape_print(&a->shape, one, TEXT_BYTES);
        (void)sumac_shape_print(&b->shape, other, TEXT_BYTES);
        return "its shape is";
    }
    if (a->split != b->split) {
        (void)text_print(one, TEXT_BYTES, a->split ? "over all ps" : "on one ps");
        (void)text_print(other, TEXT_BYTES, b->split ? "over all ps" : "on one ps");
        return "it meets";
    }
    if (a->of_attempts == b->of_attempts)
        return NULL;
    (void)text_print(one, TEXT_BYTES, "%s attempt of each task", a->of_attempts ? "one" : "any");
    (void)text_print(other, TEXT_BYTES, "%s attempt of each task", b->of_attempts ? "one" : "any");
    return "it is for";
}

enum sumac_status collective_compare(
    const struct collective *first, const struct collective *given, struct sumac_error *error)
{
    char one[TEXT_BYTES], other[TEXT_BYTES], who[TASK_BYTES], before[TASK_BYTES];
    const char *const difference = find_difference(first, given, one, other);

    assert(strcmp(first->name, given->name) == 0);
    assert(first->round == given->round);
    if (difference == NULL)
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_STEP_DIFFERS,
        "round %" PRIu64 " of collective %.100s: %s says that %s %s, and %s said %s; all say "
        "the same",
        given->round, given->name,
        collective_task_print(&given->tasks[given->own], who, sizeof who), difference, other,
        collective_task_print(&first->tasks[first->own], before, sizeof before), one);
}

/* ---- where it meets ---- */

enum sumac_dtype collective_contribution_dtype(const struct collective *collective)
{
    return row_of(collective->operation)->adds ? update_contribution_dtype(collective->dtype)
                                               : collective->dtype;
}

uint64_t collective_index_bytes(const struct collective *collective)
{
    return collective->operation == COLLECTIVE_CONCATENATE
               ? collective->shape.extent[0] * dtype_bytes(SUMAC_INT64)
               : 0;
}

struct collective_share
collective_share(const struct collective *collective, uint32_t ps, uint32_t ps_count)
{
    const uint64_t element = dtype_bytes(collective_contribution_dtype(collective));

    assert(ps < ps_count);
    if (row_of(collective->operation)->has_root && collective->own != collective->root)
        return (struct collective_share){0};
    if (!collective->split)
        return (struct collective_share){
            .bytes = collective_index_bytes(collective) + collective->elements * element};
    const uint64_t first = wire_collective_first(collective->elements, ps, ps_count);
    return (struct collective_share){
        .first_byte = first * element,
        .bytes = (wire_collective_first(collective->elements, ps + 1, ps_count) - first) * element};
}

uint32_t collective_home(const char *name, uint32_t ps_count)
{
    return wire_collective_home(name, strlen(name), ps_count);
}

/* ---- a copy ---- */

size_t collective_copy_bytes(const struct collective *collective)
{
    return sizeof *collective + collective->task_count * sizeof *collective->tasks +
           strlen(collective->name) + 1;
}

struct collective *collective_copy(const struct collective *collective, void *block)
{
    struct collective *copy = block;
    struct collective_task *tasks = (struct collective_task *)(void *)(copy + 1);
    char *name = (char *)(tasks + collective->task_count);

    assert(collective->task_count > 0);
    *copy = *collective;
    memcpy(tasks, collective->tasks, collective->task_count * sizeof *tasks);
    memcpy(name, collective->name, strlen(collective->name) + 1);
    copy->tasks = tasks;
    copy->name = name;
    return copy;
}
