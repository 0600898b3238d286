/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c -- do replicas make the same call, of the same nest, types and shapes? Its label is a
 * text that tells one call from another, as far as there is room, and its digest. */
#include "variable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "error.h"
#include "text.h"

/* ---- labels
 *
 * FNV-1a: Fowler, Noll, Vo, Eastlake, "The FNV Non-Cryptographic Hash Algorithm", RFC 9923. Labels
 * differ by mistake, not by intent, so the digest need not be a secure one.
 */
#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x00000100000001b3)

void label_init(struct label *label)
{
    label->text[0] = '\0';
    label->used = 0;
    label->sum = (struct label_sum){.bytes = 0, .digest = FNV_OFFSET};
}

void label_add(struct label *label, const char *text)
{
    uint64_t digest = label->sum.digest, bytes = 0;

    assert(label->used < sizeof label->text);
    for (; text[bytes] != '\0'; bytes++)
        digest = (digest ^ (uint8_t)text[bytes]) * FNV_PRIME;
    if (label->used == label->sum.bytes) /* nothing was cut yet */
        label->used +=
            text_print(label->text + label->used, sizeof label->text - label->used, "%s", text);
    label->sum.digest = digest;
    label->sum.bytes += bytes;
}

void label_print(struct label *label, const char *format, ...)
{
    char text[LABEL_PRINT_BYTES_MAX + 1];
    va_list values;

    assert(label->used <= label->sum.bytes);
    va_start(values, format);
    (void)text_print_values(text, sizeof text, format, values);
    va_end(values);
    label_add(label, text);
}

/* ---- values */

const char *call_name(enum call_kind kind)
{
    static const char *const names[] = {
        [CALL_ALL_REDUCE] = "all_reduce",
        [CALL_ALL_GATHER] = "all_gather",
        [CALL_MERGE] = "merge_call",
        [CALL_WRITE] = "a variable's write",
        [CALL_REDUCE] = "reduce",
        [CALL_GATHER] = "gather",
        [CALL_CREATE] = "a variable's creation",
        [CALL_READ] = "a variable's read"};

    _Static_assert(sizeof names / sizeof names[0] == CALL_KINDS, "each kind has a name");
    return (uint32_t)kind < CALL_KINDS ? names[kind] : "none";
}

/* Calls of two replicas. */
struct compare {
    const struct call *call, *other_call;
    uint32_t one, other; /* replicas */
};

static enum sumac_status fail_leaf(
    const struct compare *compare, const struct value_path *path, const char *one,
    const char *other, struct sumac_error *error)
{
    char where[160];

    assert(compare->one != compare->other);
    return fail_invalid(
        error, SUMAC_REASON_BAD_SHAPE,
        "%s: replica %" PRIu32 " has %s%s%s, and replica %" PRIu32 " %s",
        call_name(compare->call->kind), compare->one, one, path == NULL ? "" : " at ",
        value_path_print(path, where, sizeof where), compare->other, other);
}

static const char *describe(const struct sumac_value *leaf, char *text, size_t text_bytes)
{
    char shape[96], dense[96];
    const struct sumac_value *tensor =
        leaf->kind == SUMAC_VALUE_INDEXED_SLICES ? leaf->items[0] : leaf;
    size_t used = 0;

    if (tensor->kind != SUMAC_VALUE_TENSOR) {
        (void)text_print(text, text_bytes, "%s", sumac_value_kind_name(leaf->kind));
        return text;
    }
    if (leaf->kind == SUMAC_VALUE_INDEXED_SLICES)
        used = text_print(
            text, text_bytes, "slices of %s, indices %s, rows ",
            sumac_shape_print(&leaf->dense, dense, sizeof dense),
            sumac_dtype_name(leaf->items[1]->tensor.dtype));
    (void)text_print(
        text + used, text_bytes - used, "%s%s", sumac_dtype_name(tensor->tensor.dtype),
        sumac_shape_print(&tensor->tensor.shape, shape, sizeof shape));
    return text;
}

/* May two tensors meet: but for the first extent of rows, and that along the axis? */
static bool
agree(const struct compare *compare, const struct sumac_value *a, const struct sumac_value *b)
{
    const bool rows = a->kind == SUMAC_VALUE_INDEXED_SLICES;
    const struct sumac_tensor *one = rows ? &a->items[0]->tensor : &a->tensor;
    const struct sumac_tensor *other = rows ? &b->items[0]->tensor : &b->tensor;
    const enum call_kind kind = compare->call->kind;
    const int64_t free_axis = rows                                             ? 0
                              : kind == CALL_ALL_GATHER || kind == CALL_GATHER ? compare->call->axis
                                                                               : -1;

    if (one->dtype != other->dtype || one->shape.rank != other->shape.rank ||
        (rows && (!sumac_shape_equal(&a->dense, &b->dense) ||
                  a->items[1]->tensor.dtype != b->items[1]->tensor.dtype)))
        return false;
    for (uint32_t i = 0; i < one->shape.rank; i++)
        if ((int64_t)i != free_axis && one->shape.extent[i] != other->shape.extent[i])
            return false;
    return true;
}

static enum sumac_status compare_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct compare *compare = context;
    char one[160], other[160];

    if (leaves[0]->kind != leaves[1]->kind ||
        (leaves[0]->kind != SUMAC_VALUE_NONE && !agree(compare, leaves[0], leaves[1])))
        return fail_leaf(
            compare, path, describe(leaves[0], one, sizeof one),
            describe(leaves[1], other, sizeof other), error);
    (void)mapped;
    return SUMAC_OK;
}

static enum sumac_status compare_values(const struct compare *compare, struct sumac_error *error)
{
    const struct sumac_value *const both[] = {compare->call->value, compare->other_call->value};
    struct sumac_error why;

    assert(both[0] != NULL && both[1] != NULL);
    if (sumac_value_same_nest(both[0], both[1], &why) != SUMAC_OK)
        return fail(
            error, why.status, why.reason, "%s: replicas %" PRIu32 " and %" PRIu32 ": %.380s",
            call_name(compare->call->kind), compare->one, compare->other, why.text);
    return value_zip(both, 2, compare_leaf, (void *)(uintptr_t)compare, NULL, error);
}

/* ---- the calls themselves */

static const char *name_of(const struct call *call)
{
    return call->name == NULL || call->name[0] == '\0' ? "no variable" : call->name;
}

/* As much of a name as is shown; of long ones that begin alike, from shortly before they differ. */
#define SHOWN_BYTES 180
#define SHOWN_ALIKE_BYTES 40u
static const char *shown_of(const char *name, const char *other, const char **before)
{
    size_t from = 0;

    assert(name != NULL && other != NULL);
    *before = "";
    if (strlen(name) <= SHOWN_BYTES && strlen(other) <= SHOWN_BYTES)
        return name;
    while (name[from] != '\0' && name[from] == other[from])
        from++;
    if (from <= SHOWN_BYTES / 2)
        return name;
    from -= SHOWN_ALIKE_BYTES;
    while (((uint8_t)name[from] & 0xc0) == 0x80) /* within a character */
        from++;
    *before = "…";
    return name + from;
}

static enum sumac_status fail_names(const struct compare *compare, struct sumac_error *error)
{
    const struct call *const one = compare->call, *const other = compare->other_call;
    const char *const name = name_of(one), *const other_name = name_of(other);
    const char *before, *other_before;
    const char *const shown = shown_of(name, other_name, &before);
    const char *const other_shown = shown_of(other_name, name, &other_before);

    if (strcmp(name, other_name) != 0)
        return fail_invalid(
            error, SUMAC_REASON_STEP_DIFFERS,
            "%s: replica %" PRIu32 " comes with %s%.*s, and replica %" PRIu32 " with %s%.*s",
            call_name(one->kind), compare->one, before, SHOWN_BYTES, shown, compare->other,
            other_before, SHOWN_BYTES, other_shown);
    if (one->sum.bytes != other->sum.bytes || one->sum.digest != other->sum.digest)
        return fail_invalid(
            error, SUMAC_REASON_STEP_DIFFERS,
            "%s: replica %" PRIu32 " comes with %.*s…, and replica %" PRIu32
            " with another, which is the same in its first %zu bytes",
            call_name(one->kind), compare->one, SHOWN_BYTES, name, compare->other, strlen(name));
    return fail_invalid(
        error, SUMAC_REASON_STEP_DIFFERS,
        "%s: replica %" PRIu32 " comes with %.*s, and replica %" PRIu32 " with another %.*s",
        call_name(one->kind), compare->one, SHOWN_BYTES, name, compare->other, SHOWN_BYTES, name);
}

static bool same_name(const struct call *one, const struct call *other)
{
    return strcmp(name_of(one), name_of(other)) == 0 && one->sum.bytes == other->sum.bytes &&
           one->sum.digest == other->sum.digest &&
           (one->variable == NULL || other->variable == NULL || one->variable == other->variable);
}

/* Of replicas of this process, which may change a model's variables at once. */
static enum sumac_status compare_variables(const struct compare *compare, struct sumac_error *error)
{
    const struct call *const one = compare->call, *const other = compare->other_call;

    assert(compare->one < compare->other);
    assert(one->kind == other->kind);
    if (one->variable_count != other->variable_count)
        return fail_invalid(
            error, SUMAC_REASON_STEP_DIFFERS,
            "%s: replica %" PRIu32 " comes with %" PRIu32 " variables, and replica %" PRIu32
            " with %" PRIu32,
            call_name(one->kind), compare->one, one->variable_count, compare->other,
            other->variable_count);
    for (uint32_t i = 0; i < one->variable_count; i++) {
        const char *const name = sumac_variable_name(one->variables[i]);
        const char *const other_name = sumac_variable_name(other->variables[i]);
        if (one->variables[i] != other->variables[i])
            return fail_invalid(
                error, SUMAC_REASON_STEP_DIFFERS,
                "%s: replica %" PRIu32 " comes with %.150s as variables[%" PRIu32
                "], and replica %" PRIu32 " with %s%.150s",
                call_name(one->kind), compare->one, name, i, compare->other,
                strcmp(name, other_name) == 0 ? "another " : "", other_name);
    }
    return SUMAC_OK;
}

static bool same_axes(const struct sumac_axes *one, const struct sumac_axes *other)
{
    if (one == NULL || other == NULL)
        return one == other;
    /* more than there are is refused later, by what there is of it */
    return one->count == other->count &&
           (one->count > SUMAC_RANK_MAX ||
            memcmp(one->axis, other->axis, one->count * sizeof one->axis[0]) == 0);
}

#define DIFFERENCE_BYTES 160u

static const char *op_name(enum sumac_reduce_op op)
{
    return op == SUMAC_REDUCE_SUM ? "SUM" : op == SUMAC_REDUCE_MEAN ? "MEAN" : "none";
}

static const char *write_name(int write)
{
    const char *const name = sumac_write_name((enum sumac_write)write);

    return name == NULL ? "none" : name;
}

static void print_axes(const struct call *call, char *text, size_t text_bytes)
{
    const struct sumac_axes *axes = call->axes;
    size_t used = 0;

    assert(text_bytes > 0);
    if (axes == NULL && (call->kind == CALL_ALL_GATHER || call->kind == CALL_GATHER))
        (void)text_print(text, text_bytes, "%" PRId64, call->axis);
    else if (axes == NULL || axes->count == 0)
        (void)text_print(text, text_bytes, axes == NULL ? "none" : "an empty list");
    for (uint32_t i = 0; axes != NULL && i < axes->count && i < SUMAC_RANK_MAX; i++)
        used += text_print(
            text + used, text_bytes - used, "%s%" PRId64, i == 0 ? "" : ", ", axes->axis[i]);
}

/* What they differ in, and which each has. false: in nothing. */
static bool
find_difference(const struct call *one, const struct call *other, char text[DIFFERENCE_BYTES])
{
    char axis[48], other_axis[48];

    assert(one->kind == other->kind);
    text[0] = '\0';
    if (one->op != other->op) {
        (void)text_print(
            text, DIFFERENCE_BYTES, "reduction: %s and %s", op_name(one->op), op_name(other->op));
    } else if (one->axis != other->axis || !same_axes(one->axes, other->axes)) {
        print_axes(one, axis, sizeof axis);
        print_axes(other, other_axis, sizeof other_axis);
        (void)text_print(text, DIFFERENCE_BYTES, "axis: %s and %s", axis, other_axis);
    } else if (one->function != other->function || one->by != other->by) {
        (void)text_print(text, DIFFERENCE_BYTES, "function");
    } else if (one->write != other->write) {
        (void)text_print(
            text, DIFFERENCE_BYTES, "way to write: %s and %s", write_name(one->write),
            write_name(other->write));
    } else if (one->options.bytes_per_pack != other->options.bytes_per_pack) {
        (void)text_print(
            text, DIFFERENCE_BYTES, "bytes_per_pack: %" PRIu64 " and %" PRIu64,
            one->options.bytes_per_pack, other->options.bytes_per_pack);
    }
    return text[0] != '\0';
}

enum sumac_status call_compare(
    const struct call *one, uint32_t one_replica, const struct call *other, uint32_t other_replica,
    struct sumac_error *error)
{
    const struct compare compare = {
        .call = one, .other_call = other, .one = one_replica, .other = other_replica};
    char difference[DIFFERENCE_BYTES];

    assert(one_replica != other_replica);
    assert(one->value != NULL);
    if (one->kind != other->kind)
        return fail_invalid(
            error, SUMAC_REASON_STEP_DIFFERS,
            "replica %" PRIu32 " calls %s, and replica %" PRIu32
            " %s: all make the same calls in the same order",
            one_replica, call_name(one->kind), other_replica, call_name(other->kind));
    if (!same_name(one, other))
        return fail_names(&compare, error);
    const enum sumac_status status = compare_variables(&compare, error);
    if (status != SUMAC_OK)
        return status;
    if (find_difference(one, other, difference))
        return fail_invalid(
            error, SUMAC_REASON_STEP_DIFFERS,
            "%s: replica %" PRIu32 " and replica %" PRIu32 " come with another %s",
            call_name(one->kind), one_replica, other_replica, difference);
    /* of sums over axes each replica may have more or less */
    return one->kind == CALL_MERGE || one->axes != NULL ? SUMAC_OK
                                                        : compare_values(&compare, error);
}
