/* SPDX-License-Identifier: Apache-2.0 */
/* place.c -- where the elements of values are, and copies of them elsewhere. */
#include "value.h"

#include <assert.h>
#include <stdlib.h>

#include "error.h"
#include "host_copy.h"

static enum sumac_status own_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **own, struct sumac_error *error)
{
    (void)context;
    (void)path;
    if (leaf->kind == SUMAC_VALUE_TENSOR)
        *own = sumac_value_of(&leaf->tensor);
    else if (leaf->kind == SUMAC_VALUE_INDEXED_SLICES)
        *own = sumac_value_indexed_slices(
            sumac_value_ref(leaf->items[0]), sumac_value_ref(leaf->items[1]), leaf->dense);
    else
        *own = sumac_value_ref(leaf);
    if (*own == NULL)
        return value_fail_for_memory(error);
    if (*own != leaf) {
        value_liken(*own, leaf);
        (*own)->own = true;
    }
    return SUMAC_OK;
}

enum sumac_status
value_own(const struct sumac_value *value, struct sumac_value **own, struct sumac_error *error)
{
    assert(!value->distributed);
    return value_map(value, own_leaf, NULL, own, error);
}

/* ---- to the host */

static enum sumac_status
copy_tensor(const struct sumac_value *tensor, struct sumac_value **here, struct sumac_error *error)
{
    void *elements;
    struct sumac_value *copy =
        value_make_tensor(tensor->tensor.dtype, &tensor->tensor.shape, &elements);

    if (copy == NULL)
        return value_fail_for_memory(error);
    const enum sumac_status status = host_copy_read(&tensor->tensor, elements, error);
    if (status == SUMAC_OK)
        *here = copy;
    else
        sumac_value_unref(copy);
    return status;
}

static enum sumac_status
copy_slices(const struct sumac_value *slices, struct sumac_value **here, struct sumac_error *error)
{
    struct sumac_value *rows = NULL, *indices = NULL;

    enum sumac_status status = value_bring_here(slices->items[0], &rows, error);
    if (status == SUMAC_OK)
        status = value_bring_here(slices->items[1], &indices, error);
    if (status != SUMAC_OK) {
        sumac_value_unref(rows);
        return status;
    }
    return value_give(sumac_value_indexed_slices(rows, indices, slices->dense), here, error);
}

enum sumac_status value_bring_here(
    const struct sumac_value *leaf, struct sumac_value **here, struct sumac_error *error)
{
    assert(!value_is_nest(leaf));
    assert(!value_is_leaf_of_replicas(leaf));
    if (value_is_here(leaf)) {
        *here = sumac_value_ref(leaf);
        return SUMAC_OK;
    }
    const enum sumac_status status = leaf->kind == SUMAC_VALUE_INDEXED_SLICES
                                         ? copy_slices(leaf, here, error)
                                         : copy_tensor(leaf, here, error);
    if (status == SUMAC_OK)
        value_liken(*here, leaf);
    return status;
}

static enum sumac_status here_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error);

/* Each item's; of a mirrored one whose items are alike the first stands for all. */
static enum sumac_status
here_items(const struct sumac_value *leaf, struct sumac_value **mapped, struct sumac_error *error)
{
    const bool mirrored = leaf->kind == SUMAC_VALUE_MIRRORED;
    const bool alike = mirrored && value_are_alike(value_lend(leaf->items), leaf->count);
    const uint32_t count = leaf->count;
    struct sumac_value **items = calloc(count, sizeof *items);
    enum sumac_status status = items == NULL ? value_fail_for_memory(error) : SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < count; i++)
        if (alike && i > 0)
            items[i] = sumac_value_ref(items[0]);
        else
            status = value_map(leaf->items[i], here_leaf, NULL, &items[i], error);
    if (status == SUMAC_OK)
        status = value_give(
            mirrored ? value_mirrored_each(items, count, leaf->first)
                     : sumac_value_per_replica(items, count, leaf->first),
            mapped, error);
    else
        value_unref_all(items, count);
    free(items);
    return status;
}

static enum sumac_status here_leaf(
    void *context, const struct sumac_value *leaf, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    (void)context;
    (void)path;
    return value_is_leaf_of_replicas(leaf) ? here_items(leaf, mapped, error)
                                           : value_bring_here(leaf, mapped, error);
}

static bool is_all_here(const struct sumac_value *value)
{
    if (value->kind == SUMAC_VALUE_TENSOR)
        return value_is_here(value);
    for (uint32_t i = 0; i < value->count; i++)
        if (!is_all_here(value->items[i]))
            return false;
    return true;
}

enum sumac_status sumac_value_to_host(
    const struct sumac_value *value, struct sumac_value **here, struct sumac_error *error)
{
    if (value == NULL || here == NULL)
        return fail_for_null(error, "sumac_value_to_host", value == NULL ? "value" : "here");
    if (is_all_here(value)) {
        *here = sumac_value_ref(value);
        return SUMAC_OK;
    }
    return value_map(value, here_leaf, NULL, here, error);
}
