/* SPDX-License-Identifier: Apache-2.0 */
/* meeting.c -- what a contribution says of its round: a row for each operation says what it takes,
 * and one for each attribute how it is compared and printed.
 */
#include "meeting.h"

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

_Static_assert(MEETING_TASKS_MAX == WIRE_BARRIER_TASKS_MAX, "as many as come to a barrier");

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
    [MEETING_SUM] = {"sum", update_can_add, .adds = true, .arithmetic = true},
    [MEETING_MEAN] = {"mean", update_can_divide, .adds = true, .arithmetic = true},
    [MEETING_MIN] = {"min", update_can_add, .arithmetic = true},
    [MEETING_MAX] = {"max", update_can_add, .arithmetic = true},
    [MEETING_GATHER] = {"gather", any_dtype, .joins = true, .has_axis = true},
    [MEETING_BROADCAST] = {"broadcast", any_dtype, .has_root = true},
    [MEETING_CONCATENATE] = {"concatenate", any_dtype, .joins = true},
};

static const struct operation_row *row_of(enum meeting_operation operation)
{
    assert((unsigned)operation > 0 && (unsigned)operation < COUNT(operations));
    return &operations[operation];
}

const char *meeting_operation_name(enum meeting_operation operation)
{
    return row_of(operation)->name;
}

/* ---- tasks ---- */

bool meeting_task_equal(const struct meeting_task *a, const struct meeting_task *b)
{
    return a->chief == b->chief && a->index == b->index;
}

static bool is_after(const struct meeting_task *task, const struct meeting_task *before)
{
    return task->chief == before->chief ? task->index > before->index : before->chief;
}

const char *meeting_task_print(const struct meeting_task *task, char *text, size_t text_bytes)
{
    (void)text_print(
        text, text_bytes, "%s %" PRIu32, task->chief ? "chief" : "worker", task->index);
    return text;
}

uint32_t meeting_place(const struct meeting *meeting, const struct meeting_task *task)
{
    uint32_t low = 0, high = meeting->task_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (is_after(task, &meeting->tasks[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    assert(low <= meeting->task_count);
    return low < meeting->task_count && meeting_task_equal(&meeting->tasks[low], task) ? low
                                                                                       : UINT32_MAX;
}

static enum sumac_status read_tasks(
    const wire_meeting *message, const struct meeting_task *own, struct meeting_task *tasks,
    struct meeting *meeting, struct sumac_error *error)
{
    char text[TASK_BYTES], before[TASK_BYTES];

    if (message->n_tasks == 0 || message->n_tasks > MEETING_TASKS_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "rendezvous %.100s names %zu tasks that take part; 1 to %u may", meeting->name,
            message->n_tasks, MEETING_TASKS_MAX);
    for (size_t i = 0; i < message->n_tasks; i++) {
        const uint64_t index = message->tasks[i] / 2;
        tasks[i] =
            (struct meeting_task){.chief = message->tasks[i] % 2 == 0, .index = (uint32_t)index};
        if (index > UINT32_MAX || (i > 0 && !is_after(&tasks[i], &tasks[i - 1])))
            return fail(
                error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
                "rendezvous %.100s names %s after %s; name the chief first, then the workers by "
                "index, each once",
                meeting->name,
                index > UINT32_MAX ? "a task of no index"
                                   : meeting_task_print(&tasks[i], text, sizeof text),
                i == 0 ? "nobody" : meeting_task_print(&tasks[i - 1], before, sizeof before));
    }
    meeting->tasks = tasks;
    meeting->task_count = (uint32_t)message->n_tasks;
    meeting->own = meeting_place(meeting, own);
    if (meeting->own == UINT32_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "%s contributes to rendezvous %.100s, and is none of the %" PRIu32
            " tasks that it says take part: name it among them",
            meeting_task_print(own, text, sizeof text), meeting->name, meeting->task_count);
    return SUMAC_OK;
}

/* After the tasks. `own` has no attempt when a ps reads an order, which no session has sent. */
static enum sumac_status read_attempts(
    const wire_meeting *message, const struct meeting_task *own, struct meeting_task *tasks,
    struct meeting *meeting, struct sumac_error *error)
{
    char text[TASK_BYTES];

    meeting->of_attempts = message->n_attempts > 0;
    if (!meeting->of_attempts)
        return SUMAC_OK;
    if (message->n_attempts != message->n_tasks)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "rendezvous %.100s names %zu attempts of %zu tasks: name one for each task",
            meeting->name, message->n_attempts, message->n_tasks);
    for (size_t i = 0; i < message->n_tasks; i++)
        tasks[i].attempt = message->attempts[i];
    if (own->attempt == 0 || tasks[meeting->own].attempt == own->attempt)
        return SUMAC_OK;
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
        "rendezvous %.100s: %s names itself as attempt %" PRIu64 ", and its session is attempt "
        "%" PRIu64 ": name that",
        meeting->name, meeting_task_print(own, text, sizeof text), tasks[meeting->own].attempt,
        own->attempt);
}

/* Above 0: the meeting knows an earlier attempt of that task; 0: one of both knows none. */
static int32_t compare_attempts(const struct meeting *meeting, const struct meeting_task *task)
{
    const uint32_t place = task->attempt == 0 ? UINT32_MAX : meeting_place(meeting, task);
    const uint64_t known = place == UINT32_MAX ? 0 : meeting->tasks[place].attempt;

    return known == 0 ? 0 : (task->attempt > known) - (task->attempt < known);
}

uint32_t meeting_other_attempt(const struct meeting *one, const struct meeting *given)
{
    uint32_t i = 0;

    if (!one->of_attempts || !given->of_attempts)
        return UINT32_MAX;
    while (i < given->task_count && compare_attempts(one, &given->tasks[i]) == 0)
        i++;
    return i < given->task_count ? i : UINT32_MAX;
}

bool meeting_is_later(const struct meeting *given, const struct meeting *other)
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

void meeting_learn_attempts(struct meeting *copy, const struct meeting *given)
{
    struct meeting_task *tasks = (struct meeting_task *)(void *)(copy + 1);

    assert(copy->tasks == tasks);
    if (!copy->of_attempts)
        return;
    for (uint32_t i = 0; i < given->task_count; i++) {
        const uint32_t place = meeting_place(copy, &given->tasks[i]);
        if (place != UINT32_MAX && given->tasks[i].attempt != 0)
            tasks[place].attempt = given->tasks[i].attempt;
    }
}

/* ---- what is contributed ---- */

/* It is bytes on the wire: what a push says is not looked through for strings. */
static enum sumac_status read_name(
    const wire_meeting *message, char *name, struct meeting *meeting, struct sumac_error *error)
{
    const size_t bytes = message->name.len;

    if (bytes == 0 || bytes > MEETING_NAME_BYTES_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "a rendezvous's name has 1 to %u bytes, given %zu", MEETING_NAME_BYTES_MAX, bytes);
    memcpy(name, message->name.data, bytes);
    name[bytes] = '\0';
    if (!text_is_utf8(name, bytes) || text_has_control(name, bytes)) {
        text_make_line(name);
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "the rendezvous's name is not UTF-8, or has a control character, shown here as ?: "
            "%.100s",
            name);
    }
    meeting->name = name;
    meeting->round = message->round;
    if (message->round == 0 || message->round > INT64_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "rendezvous %.100s has no round %" PRIu64 ": they count from 1, to 2^63 - 1", name,
            message->round);
    return SUMAC_OK;
}

static enum sumac_status
read_operation(const wire_meeting *message, struct meeting *meeting, struct sumac_error *error)
{
    char known[64];

    if ((unsigned)message->operation == 0 || (unsigned)message->operation >= COUNT(operations))
        return fail(
            error, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED,
            "rendezvous %.100s: operation %d is not known; they are 1 (%s) to %zu (%s)",
            meeting->name, (int)message->operation, operations[MEETING_SUM].name,
            COUNT(operations) - 1, operations[COUNT(operations) - 1].name);
    meeting->operation = (enum meeting_operation)message->operation;
    meeting->dtype = (enum sumac_dtype)message->data_type;
    if (sumac_dtype_bytes(meeting->dtype) == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
            "rendezvous %.100s: data type %d is not known; types are %s", meeting->name,
            (int)message->data_type, dtype_list_print(known, sizeof known));
    if (!row_of(meeting->operation)->takes(meeting->dtype))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_DATA_TYPE,
            "rendezvous %.100s: there is no %s of %s", meeting->name,
            meeting_operation_name(meeting->operation), sumac_dtype_name(meeting->dtype));
    return SUMAC_OK;
}

static enum sumac_status
read_shape(const wire_meeting *message, struct meeting *meeting, struct sumac_error *error)
{
    char text[TEXT_BYTES];

    if (message->n_shape > SUMAC_RANK_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
            "rendezvous %.100s: a shape of %zu axes, at most %d may be", meeting->name,
            message->n_shape, SUMAC_RANK_MAX);
    meeting->shape = (struct sumac_shape){.rank = (uint32_t)message->n_shape};
    for (uint32_t axis = 0; axis < meeting->shape.rank; axis++)
        meeting->shape.extent[axis] = message->shape[axis];
    if (sumac_shape_size(
            &meeting->shape, meeting_contribution_dtype(meeting), &meeting->elements, NULL) !=
        SUMAC_OK)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
            "rendezvous %.100s: shape %s of %s is more than 2^63 - 1 bytes", meeting->name,
            sumac_shape_print(&meeting->shape, text, sizeof text),
            sumac_dtype_name(meeting->dtype));
    if (row_of(meeting->operation)->joins && meeting->shape.rank == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
            "rendezvous %.100s: a %s of scalars has no axis; give them the shape [1]",
            meeting->name, meeting_operation_name(meeting->operation));
    for (uint32_t axis = 0; axis < meeting->shape.rank; axis++)
        if (row_of(meeting->operation)->joins && meeting->shape.extent[axis] > EXTENT_MAX)
            return fail(
                error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
                "rendezvous %.100s: a %s of shape %s; what is joined has at most %" PRIu64
                " along each axis, so that it can be counted together",
                meeting->name, meeting_operation_name(meeting->operation),
                sumac_shape_print(&meeting->shape, text, sizeof text), EXTENT_MAX);
    return SUMAC_OK;
}

static enum sumac_status
read_places(const wire_meeting *message, struct meeting *meeting, struct sumac_error *error)
{
    const struct operation_row *row = row_of(meeting->operation);
    const uint32_t axes = row->has_axis ? meeting->shape.rank : 1;
    const uint32_t roots = row->has_root ? meeting->task_count : 1;

    meeting->axis = message->axis;
    meeting->root = message->root;
    meeting->split = message->split;
    if (message->axis >= axes)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
            "rendezvous %.100s: a %s along axis %u, of 0 to %u", meeting->name, row->name,
            message->axis, axes - 1);
    if (message->root >= roots)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "rendezvous %.100s: a %s of the task at place %u, of 0 to %u", meeting->name, row->name,
            message->root, roots - 1);
    if (message->split && !row->arithmetic)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "rendezvous %.100s: a %s is not split: all of it meets on one ps", meeting->name,
            row->name);
    const uint64_t bytes = meeting->elements * dtype_bytes(meeting_contribution_dtype(meeting));
    if (!message->split && row->arithmetic && bytes > MEETING_WHOLE_BYTES_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "rendezvous %.100s: a %s of %" PRIu64 " bytes on one ps, where %u are the most: split "
            "it over all",
            meeting->name, row->name, bytes, MEETING_WHOLE_BYTES_MAX);
    return SUMAC_OK;
}

enum sumac_status meeting_read(
    const wire_meeting *message, const struct meeting_task *own, struct meeting_texts *texts,
    struct meeting *meeting, struct sumac_error *error)
{
    struct meeting read = {.timeout_ms = message->timeout_ms};

    if (read.timeout_ms == 0)
        read.timeout_ms = MEETING_TIMEOUT_MS_DEFAULT;
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
    *meeting = read;
    return SUMAC_OK;
}

wire_meeting *meeting_write(const struct meeting *meeting, struct arena *arena)
{
    wire_meeting *message = arena_take(arena, sizeof *message);
    uint64_t *tasks = arena_take(arena, meeting->task_count * sizeof *tasks);
    uint64_t *attempts = arena_take(arena, meeting->task_count * sizeof *attempts);
    uint64_t *shape = arena_take(arena, (meeting->shape.rank + 1) * sizeof *shape);

    if (message == NULL || tasks == NULL || attempts == NULL || shape == NULL)
        return NULL;
    for (uint32_t i = 0; i < meeting->task_count; i++) {
        tasks[i] = 2 * (uint64_t)meeting->tasks[i].index + !meeting->tasks[i].chief;
        attempts[i] = meeting->tasks[i].attempt;
    }
    memcpy(shape, meeting->shape.extent, meeting->shape.rank * sizeof *shape);
    *message = (wire_meeting)WIRE_MEETING_INIT;
    message->name =
        (wire_bytes){.len = strlen(meeting->name), .data = (uint8_t *)(uintptr_t)meeting->name};
    message->round = meeting->round;
    message->tasks = tasks;
    message->n_tasks = meeting->task_count;
    message->attempts = attempts;
    message->n_attempts = meeting->of_attempts ? meeting->task_count : 0;
    message->operation = (Sumac__V1__Meeting__Operation)meeting->operation;
    message->data_type = (Sumac__V1__DataType)meeting->dtype;
    message->shape = shape;
    message->n_shape = meeting->shape.rank;
    message->axis = meeting->axis;
    message->root = meeting->root;
    message->timeout_ms = meeting->timeout_ms;
    message->split = meeting->split;
    return message;
}

/* ---- what all say alike ---- */

static bool same_tasks(const struct meeting *a, const struct meeting *b)
{
    if (a->task_count != b->task_count)
        return false;
    for (uint32_t i = 0; i < a->task_count; i++)
        if (!meeting_task_equal(&a->tasks[i], &b->tasks[i]))
            return false;
    return true;
}

/* "3 tasks, worker 0 to worker 4" */
static void print_tasks(const struct meeting *meeting, char text[TEXT_BYTES])
{
    char first[TASK_BYTES], last[TASK_BYTES];

    (void)text_print(
        text, TEXT_BYTES, "%" PRIu32 " tasks, %s to %s", meeting->task_count,
        meeting_task_print(&meeting->tasks[0], first, sizeof first),
        meeting_task_print(&meeting->tasks[meeting->task_count - 1], last, sizeof last));
}

static bool same_operation(const struct meeting *a, const struct meeting *b)
{
    return a->operation == b->operation;
}

static void print_operation(const struct meeting *meeting, char text[TEXT_BYTES])
{
    (void)text_print(text, TEXT_BYTES, "%s", meeting_operation_name(meeting->operation));
}

static bool same_dtype(const struct meeting *a, const struct meeting *b)
{
    return a->dtype == b->dtype;
}

static void print_dtype(const struct meeting *meeting, char text[TEXT_BYTES])
{
    (void)text_print(text, TEXT_BYTES, "%s", sumac_dtype_name(meeting->dtype));
}

static bool same_axis(const struct meeting *a, const struct meeting *b)
{
    return a->axis == b->axis;
}

static void print_axis(const struct meeting *meeting, char text[TEXT_BYTES])
{
    (void)text_print(text, TEXT_BYTES, "axis %" PRIu32, meeting->axis);
}

static bool same_root(const struct meeting *a, const struct meeting *b)
{
    return a->root == b->root;
}

static void print_root(const struct meeting *meeting, char text[TEXT_BYTES])
{
    assert(meeting->root < meeting->task_count);
    (void)meeting_task_print(&meeting->tasks[meeting->root], text, TEXT_BYTES);
}

/* But for the axis that they are joined along. */
static bool same_shape(const struct meeting *a, const struct meeting *b)
{
    struct sumac_shape given = b->shape;

    assert(a->operation == b->operation && a->axis == b->axis);
    if (row_of(a->operation)->joins && given.rank == a->shape.rank)
        given.extent[a->axis] = a->shape.extent[a->axis];
    return sumac_shape_equal(&a->shape, &given);
}

static void print_shape(const struct meeting *meeting, char text[TEXT_BYTES])
{
    (void)sumac_shape_print(&meeting->shape, text, TEXT_BYTES);
}

static bool same_split(const struct meeting *a, const struct meeting *b)
{
    return a->split == b->split;
}

static void print_split(const struct meeting *meeting, char text[TEXT_BYTES])
{
    (void)text_print(text, TEXT_BYTES, "%s", meeting->split ? "over all ps" : "on one ps");
}

static bool same_of_attempts(const struct meeting *a, const struct meeting *b)
{
    return a->of_attempts == b->of_attempts;
}

static void print_of_attempts(const struct meeting *meeting, char text[TEXT_BYTES])
{
    (void)text_print(
        text, TEXT_BYTES, "%s attempt of each task", meeting->of_attempts ? "one" : "any");
}

/* In this order: an axis, a root and a shape mean something where the operations are the same. */
static const struct attribute_row {
    const char *name;
    bool (*same)(const struct meeting *a, const struct meeting *b);
    void (*print)(const struct meeting *meeting, char text[TEXT_BYTES]);
} attributes[] = {
    {"its participants are", same_tasks, print_tasks},
    {"it is a", same_operation, print_operation},
    {"it is of", same_dtype, print_dtype},
    {"it goes along", same_axis, print_axis},
    {"its root is", same_root, print_root},
    {"its shape is", same_shape, print_shape},
    {"it meets", same_split, print_split},
    {"it is for", same_of_attempts, print_of_attempts},
};

/* Of two lists that differ in the middle alone, the first task that does: "3 tasks, worker 0 to
 * worker 4, worker 2 at place 1". */
static void
print_middle(const struct meeting *meeting, const struct meeting *other, char text[TEXT_BYTES])
{
    const size_t bytes = strlen(text);
    char task[TASK_BYTES];
    uint32_t place = 0;

    assert(meeting->task_count == other->task_count);
    while (meeting_task_equal(&meeting->tasks[place], &other->tasks[place])) {
        place++;
        assert(place < meeting->task_count);
    }
    (void)text_print(
        text + bytes, TEXT_BYTES - bytes, ", %s at place %" PRIu32,
        meeting_task_print(&meeting->tasks[place], task, sizeof task), place);
}

enum sumac_status
meeting_compare(const struct meeting *first, const struct meeting *given, struct sumac_error *error)
{
    char one[TEXT_BYTES], other[TEXT_BYTES], who[TASK_BYTES], before[TASK_BYTES];

    assert(strcmp(first->name, given->name) == 0);
    assert(first->round == given->round);
    for (size_t i = 0; i < COUNT(attributes); i++) {
        const struct attribute_row *row = &attributes[i];
        if (row->same(first, given))
            continue;
        row->print(first, one);
        row->print(given, other);
        if (row->same == same_tasks && strcmp(one, other) == 0) {
            print_middle(first, given, one);
            print_middle(given, first, other);
        }
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_STEP_DIFFERS,
            "round %" PRIu64 " of rendezvous %.100s: %s says that %s %s, and %s said %s; all say "
            "the same",
            given->round, given->name,
            meeting_task_print(&given->tasks[given->own], who, sizeof who), row->name, other,
            meeting_task_print(&first->tasks[first->own], before, sizeof before), one);
    }
    return SUMAC_OK;
}

/* ---- where it meets ---- */

enum sumac_dtype meeting_contribution_dtype(const struct meeting *meeting)
{
    return row_of(meeting->operation)->adds ? update_contribution_dtype(meeting->dtype)
                                            : meeting->dtype;
}

uint64_t meeting_index_bytes(const struct meeting *meeting)
{
    return meeting->operation == MEETING_CONCATENATE
               ? meeting->shape.extent[0] * dtype_bytes(SUMAC_INT64)
               : 0;
}

struct meeting_share meeting_share(const struct meeting *meeting, uint32_t ps, uint32_t ps_count)
{
    const uint64_t element = dtype_bytes(meeting_contribution_dtype(meeting));

    assert(ps < ps_count);
    if (row_of(meeting->operation)->has_root && meeting->own != meeting->root)
        return (struct meeting_share){0};
    if (!meeting->split)
        return (struct meeting_share){
            .bytes = meeting_index_bytes(meeting) + meeting->elements * element};
    const uint64_t first = wire_meeting_first(meeting->elements, ps, ps_count);
    return (struct meeting_share){
        .first_byte = first * element,
        .bytes = (wire_meeting_first(meeting->elements, ps + 1, ps_count) - first) * element};
}

uint32_t meeting_home(const char *name, uint32_t ps_count)
{
    return wire_meeting_home(name, strlen(name), ps_count);
}

/* ---- a copy ---- */

size_t meeting_copy_bytes(const struct meeting *meeting)
{
    return sizeof *meeting + meeting->task_count * sizeof *meeting->tasks + strlen(meeting->name) +
           1;
}

struct meeting *meeting_copy(const struct meeting *meeting, void *block)
{
    struct meeting *copy = block;
    struct meeting_task *tasks = (struct meeting_task *)(void *)(copy + 1);
    char *name = (char *)(tasks + meeting->task_count);

    assert(meeting->task_count > 0);
    *copy = *meeting;
    memcpy(tasks, meeting->tasks, meeting->task_count * sizeof *tasks);
    memcpy(name, meeting->name, strlen(meeting->name) + 1);
    copy->tasks = tasks;
    copy->name = name;
    return copy;
}
