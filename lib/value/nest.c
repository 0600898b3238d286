/* SPDX-License-Identifier: Apache-2.0 */
/* nest.c -- values leaf by leaf: mapped, compared, a replica's chosen, replicas' put together.
 *
 * A leaf is what is neither list, tuple nor dict. Nests are at most SUMAC_VALUE_DEPTH_MAX deep.
 */
#include "value.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "text.h"

const char *value_path_print(const struct value_path *path, char *text, size_t text_bytes)
{
    assert(text_bytes > 0);
    text[0] = '\0';
    if (path == NULL)
        return text;
    (void)value_path_print(path->above, text, text_bytes);
    const size_t used = strlen(text);
    const char *key = sumac_value_key(path->nest, path->index);
    if (key != NULL)
        (void)text_print_line(text + used, text_bytes - used, "['%.64s']", key);
    else
        (void)text_print(text + used, text_bytes - used, "[%" PRIu32 "]", path->index);
    return text;
}

/* ---- the same nest */

static enum sumac_status fail_differ(
    const struct value_path *path, const char *one, const char *other, struct sumac_error *error)
{
    char where[160];

    return fail_invalid(
        error, SUMAC_REASON_BAD_SHAPE, "two nests differ%s%s: one has %s there, and the other %s",
        path == NULL ? "" : " at ", value_path_print(path, where, sizeof where), one, other);
}

static const char *describe(const struct sumac_value *value, char *text, size_t text_bytes)
{
    (void)text_print(
        text, text_bytes, "a %s",
        value_is_nest(value) ? sumac_value_kind_name(value->kind) : "leaf");
    return text;
}

#define KEY_TEXT_BYTES 128u

/* Two keys; where what is shown of them is the same, with the byte by which they differ. */
static void
print_keys(const char *a, const char *b, char one[KEY_TEXT_BYTES], char other[KEY_TEXT_BYTES])
{
    size_t at = 0;

    assert(strcmp(a, b) != 0);
    (void)text_print_line(one, KEY_TEXT_BYTES, "the key '%.64s'", a);
    (void)text_print_line(other, KEY_TEXT_BYTES, "'%.64s'", b);
    if (strcmp(one + strlen("the key "), other) != 0)
        return;
    while (a[at] == b[at])
        at++;
    (void)text_print_line(
        one, KEY_TEXT_BYTES, "the key '%.64s', whose byte %zu is 0x%02x,", a, at, (uint8_t)a[at]);
    (void)text_print_line(other, KEY_TEXT_BYTES, "one where it is 0x%02x", (uint8_t)b[at]);
}

static enum sumac_status same_nest(
    const struct sumac_value *a, const struct sumac_value *b, const struct value_path *path,
    struct sumac_error *error);

static enum sumac_status same_items(
    const struct sumac_value *a, const struct sumac_value *b, const struct value_path *path,
    struct sumac_error *error)
{
    char one[KEY_TEXT_BYTES], other[KEY_TEXT_BYTES];

    if (a->count != b->count) {
        (void)text_print(one, sizeof one, "%" PRIu32 " items", a->count);
        (void)text_print(other, sizeof other, "%" PRIu32, b->count);
        return fail_differ(path, one, other, error);
    }
    for (uint32_t i = 0; i < a->count; i++) {
        const struct value_path below = {.above = path, .nest = a, .index = i};
        if (a->keys != NULL && strcmp(a->keys[i], b->keys[i]) != 0) {
            print_keys(a->keys[i], b->keys[i], one, other);
            return fail_differ(path, one, other, error);
        }
        const enum sumac_status status = same_nest(a->items[i], b->items[i], &below, error);
        if (status != SUMAC_OK)
            return status;
    }
    return SUMAC_OK;
}

static enum sumac_status same_nest(
    const struct sumac_value *a, const struct sumac_value *b, const struct value_path *path,
    struct sumac_error *error)
{
    char one[80], other[80];

    if (!value_is_nest(a) && !value_is_nest(b))
        return SUMAC_OK;
    if (a->kind != b->kind)
        return fail_differ(
            path, describe(a, one, sizeof one), describe(b, other, sizeof other), error);
    return same_items(a, b, path, error);
}

enum sumac_status sumac_value_same_nest(
    const struct sumac_value *a, const struct sumac_value *b, struct sumac_error *error)
{
    if (a == NULL || b == NULL)
        return fail_for_null(error, "sumac_value_same_nest", a == NULL ? "a" : "b");
    return same_nest(a, b, NULL, error);
}

/* ---- leaf by leaf */

struct zip {
    uint32_t count; /* of values */
    value_zip_leaf *leaf;
    value_map_leaf *map; /* of one value, instead */
    void *context;
};

static enum sumac_status zip_at(
    const struct zip *zip, const struct sumac_value *const *values, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error);

static enum sumac_status zip_items(
    const struct zip *zip, const struct sumac_value *const *values, const struct value_path *path,
    struct sumac_value **items, struct sumac_error *error)
{
    const struct sumac_value **below = malloc(zip->count * sizeof *below);
    enum sumac_status status = below == NULL ? value_fail_for_memory(error) : SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < values[0]->count; i++) {
        const struct value_path at = {.above = path, .nest = values[0], .index = i};
        for (uint32_t j = 0; j < zip->count; j++)
            below[j] = values[j]->items[i];
        status = zip_at(zip, below, &at, items == NULL ? NULL : &items[i], error);
        /* who fails gives nothing */
        assert(status == SUMAC_OK || items == NULL || items[i] == NULL);
    }
    free(below);
    return status;
}

static enum sumac_status zip_at(
    const struct zip *zip, const struct sumac_value *const *values, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct sumac_value *first = values[0];

    if (!value_is_nest(first))
        return zip->map != NULL ? zip->map(zip->context, first, path, mapped, error)
                                : zip->leaf(zip->context, values, path, mapped, error);
    if (mapped == NULL)
        return zip_items(zip, values, path, NULL, error);
    struct sumac_value **items = calloc(first->count + 1, sizeof *items);
    if (items == NULL)
        return value_fail_for_memory(error);
    enum sumac_status status = zip_items(zip, values, path, items, error);
    if (status == SUMAC_OK)
        status = value_give(
            value_make_nest(first->kind, first->keys, items, first->count), mapped, error);
    else
        value_unref_all(items, first->count);
    free(items);
    return status;
}

enum sumac_status value_zip(
    const struct sumac_value *const *values, uint32_t count, value_zip_leaf *leaf, void *context,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct zip zip = {.count = count, .leaf = leaf, .context = context};

    assert(count > 0);
    return zip_at(&zip, values, NULL, mapped, error);
}

enum sumac_status value_map(
    const struct sumac_value *value, value_map_leaf *leaf, void *context,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct zip map = {.count = 1, .map = leaf, .context = context};

    assert(value != NULL);
    return zip_at(&map, &value, NULL, mapped, error);
}

/* ---- a replica's */

static enum sumac_status select_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const uint32_t replica = *(const uint32_t *)context;
    char where[160];

    if (!value_is_leaf_of_replicas(leaf)) {
        *mapped = sumac_value_ref(leaf);
        return SUMAC_OK;
    }
    if (replica < leaf->first || replica - leaf->first >= leaf->count)
        return fail(
            error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_BAD_SHAPE,
            "a %s value%s%s has items of replicas %" PRIu32 " to %" PRIu32
            ", and none of replica %" PRIu32,
            sumac_value_kind_name(leaf->kind), path == NULL ? "" : " at ",
            value_path_print(path, where, sizeof where), leaf->first, leaf->first + leaf->count - 1,
            replica);
    *mapped = sumac_value_ref(leaf->items[replica - leaf->first]);
    return SUMAC_OK;
}

enum sumac_status sumac_value_select(
    const struct sumac_value *value, uint32_t replica, struct sumac_value **local,
    struct sumac_error *error)
{
    if (value == NULL || local == NULL)
        return fail_for_null(error, "sumac_value_select", value == NULL ? "value" : "local");
    if (!value->distributed) {
        *local = sumac_value_ref(value);
        return SUMAC_OK;
    }
    return value_map(value, select_leaf, &replica, local, error);
}

/* ---- replicas' */

struct regroup {
    enum sumac_value_kind kind; /* of what differs */
    uint32_t count, first;
};

/* Have all replicas one value: the same object, nothing, or copies of one object, that are not the
 * replicas' own? */
static bool is_one(const struct regroup *regroup, const struct sumac_value *const *leaves)
{
    bool identical = true, none = true, own = false;

    assert(regroup->count > 0);
    for (uint32_t i = 0; i < regroup->count; i++) {
        identical = identical && leaves[i] == leaves[0];
        none = none && leaves[i]->kind == SUMAC_VALUE_NONE;
        own = own || leaves[i]->own;
    }
    return identical || none || (!own && value_are_alike(leaves, regroup->count));
}

static enum sumac_status check_own(
    const struct regroup *regroup, const struct sumac_value *const *leaves,
    struct sumac_error *error)
{
    for (uint32_t i = 0; i < regroup->count; i++)
        if (value_is_leaf_of_replicas(leaves[i]))
            return fail_argument(
                error, "a value of one replica is %s itself: take what is its own of it",
                sumac_value_kind_name(leaves[i]->kind));
    return SUMAC_OK;
}

static enum sumac_status regroup_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    const struct regroup *regroup = context;
    const bool one = is_one(regroup, leaves);

    (void)path;
    if (one && (leaves[0] == leaves[regroup->count - 1] || value_is_here(leaves[0]))) {
        *mapped = sumac_value_ref(leaves[0]);
        return SUMAC_OK;
    }
    const enum sumac_status status = check_own(regroup, leaves, error);
    if (status != SUMAC_OK)
        return status;
    *mapped = value_hold(
        one ? SUMAC_VALUE_MIRRORED : regroup->kind, leaves, regroup->count, regroup->first);
    return *mapped == NULL ? value_fail_for_memory(error) : SUMAC_OK;
}

enum sumac_status value_regroup_as(
    enum sumac_value_kind kind, const struct sumac_value *const *items, uint32_t count,
    uint32_t first, struct sumac_value **regrouped, struct sumac_error *error)
{
    struct regroup regroup = {.kind = kind, .count = count, .first = first};

    assert(kind == SUMAC_VALUE_PER_REPLICA || kind == SUMAC_VALUE_MIRRORED);
    for (uint32_t i = 1; i < count; i++) {
        struct sumac_error why;
        if (sumac_value_same_nest(items[0], items[i], &why) != SUMAC_OK)
            return fail(
                error, why.status, why.reason, "replicas %" PRIu32 " and %" PRIu32 ": %.400s",
                first, first + i, why.text);
    }
    return value_zip(items, count, regroup_leaf, &regroup, regrouped, error);
}

enum sumac_status sumac_value_regroup(
    const struct sumac_value *items, uint32_t first, struct sumac_value **regrouped,
    struct sumac_error *error)
{
    const uint32_t count = sumac_value_count(items);

    if (items == NULL || regrouped == NULL)
        return fail_for_null(
            error, "sumac_value_regroup", regrouped == NULL ? "regrouped" : "items");
    if ((items->kind != SUMAC_VALUE_LIST && items->kind != SUMAC_VALUE_TUPLE) || count == 0)
        return fail_argument(
            error,
            "sumac_value_regroup: items is a %s of %" PRIu32
            "; it is a list or a tuple of what each replica has",
            sumac_value_kind_name(items->kind), count);
    return value_regroup_as(
        SUMAC_VALUE_PER_REPLICA, value_lend(items->items), count, first, regrouped, error);
}

/* ---- the same bits */

static bool same_elements(const struct sumac_value *a, const struct sumac_value *b)
{
    const uint64_t bytes = sumac_tensor_bytes(&a->tensor);

    return bytes == 0 ||
           memcmp(sumac_tensor_data(&a->tensor), sumac_tensor_data(&b->tensor), (size_t)bytes) == 0;
}

static bool same_tensor(const struct sumac_value *a, const struct sumac_value *b)
{
    if (a->tensor.dtype != b->tensor.dtype ||
        !sumac_shape_equal(&a->tensor.shape, &b->tensor.shape))
        return false;
    if (value_is_here(a) && value_is_here(b))
        return same_elements(a, b);
    struct sumac_value *one = sumac_value_copy(&a->tensor), *other = sumac_value_copy(&b->tensor);
    const bool same = one != NULL && other != NULL && same_elements(one, other);
    sumac_value_unref(one);
    sumac_value_unref(other);
    return same;
}

bool sumac_value_equal(const struct sumac_value *a, const struct sumac_value *b)
{
    if (a == b)
        return true;
    if (a == NULL || b == NULL || a->kind != b->kind || a->count != b->count ||
        a->first != b->first)
        return false;
    if (a->kind == SUMAC_VALUE_TENSOR)
        return same_tensor(a, b);
    if (a->kind == SUMAC_VALUE_INDEXED_SLICES && !sumac_shape_equal(&a->dense, &b->dense))
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if ((a->keys != NULL && strcmp(a->keys[i], b->keys[i]) != 0) ||
            !sumac_value_equal(a->items[i], b->items[i]))
            return false;
    return true;
}
