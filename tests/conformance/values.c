/* SPDX-License-Identifier: Apache-2.0 */
/* values.c -- values of conformance cases: nests of tensors and slices, and what replicas have. */
#include "values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensors.h"

#define ITEMS_MAX 64u
#define NAME_BYTES 160u

/* The only key of a form, {"list": …}, and what it has; a tensor has none. */
static const char *form_of(json_t *given, json_t **content)
{
    static const char *const forms[] = {"per_replica", "mirrored", "slices", "list",
                                        "tuple",       "dict",     "none"};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        *content = json_object_get(given, forms[i]);
        if (*content != NULL)
            return json_object_size(given) == 1 ? forms[i] : NULL;
    }
    *content = given;
    return "tensor";
}

/* ---- read */

static struct sumac_value *read_tensor(struct cases_run *run, json_t *given)
{
    struct case_tensor tensor;

    if (!case_tensor_read(run, given, &tensor))
        return NULL;
    struct sumac_value *value = sumac_value_tensor(tensor.dtype, tensor.shape, tensor.data);
    case_tensor_deinit(&tensor);
    return value;
}

static struct sumac_value *read_slices(struct cases_run *run, json_t *given)
{
    static const char *const keys[] = {"values", "indices", "dense_shape", NULL};
    json_t *dense = json_object_get(given, "dense_shape");
    struct sumac_shape shape = {.rank = (uint32_t)json_array_size(dense)};

    if (!cases_keys_known(run, given, "slices", keys) || shape.rank > SUMAC_RANK_MAX)
        return NULL;
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.extent[i] = (uint64_t)json_integer_value(json_array_get(dense, i));
    struct sumac_value *values = read_tensor(run, json_object_get(given, "values"));
    struct sumac_value *indices = read_tensor(run, json_object_get(given, "indices"));
    return sumac_value_indexed_slices(values, indices, shape);
}

static void give(struct sumac_value *const *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sumac_value_unref(items[i]);
}

static struct sumac_value *read_items(
    struct cases_run *run, const char *form, json_t *given, const struct case_replicas *replicas)
{
    struct sumac_value *items[ITEMS_MAX];
    const bool of_replicas = strcmp(form, "per_replica") == 0;
    const uint32_t first = of_replicas ? replicas->first : 0;
    uint32_t count = (uint32_t)json_array_size(given);
    uint32_t i = 0;

    if (!json_is_array(given) || count > ITEMS_MAX) {
        (void)cases_fail(run, "a %s of more than %u items, or no list", form, ITEMS_MAX);
        return NULL;
    }
    if (of_replicas && replicas->in_sync > replicas->count) /* each worker takes its own */
        count = count < first + replicas->count ? 0 : replicas->count;
    for (; i < count; i++) {
        items[i] = case_value_read(run, json_array_get(given, first + i), replicas);
        if (items[i] == NULL) {
            give(items, i);
            return NULL;
        }
    }
    if (of_replicas)
        return sumac_value_per_replica(items, count, first);
    return strcmp(form, "list") == 0 ? sumac_value_list(items, count)
                                     : sumac_value_tuple(items, count);
}

static struct sumac_value *
read_dict(struct cases_run *run, json_t *given, const struct case_replicas *replicas)
{
    struct sumac_value *items[ITEMS_MAX];
    const char *keys[ITEMS_MAX];
    const char *key = NULL;
    json_t *item = NULL;
    uint32_t count = 0;

    json_object_foreach(given, key, item)
    {
        struct sumac_value *read = count == ITEMS_MAX ? NULL : case_value_read(run, item, replicas);
        if (read == NULL) {
            give(items, count);
            return NULL;
        }
        keys[count] = key;
        items[count++] = read;
    }
    return sumac_value_dict(keys, items, count);
}

struct sumac_value *
case_value_read(struct cases_run *run, json_t *given, const struct case_replicas *replicas)
{
    json_t *content = NULL;
    const char *form = json_is_object(given) ? form_of(given, &content) : NULL;
    struct sumac_value *value = NULL;

    if (form == NULL)
        (void)cases_fail(run, "a value of no form that there is");
    else if (strcmp(form, "tensor") == 0)
        value = read_tensor(run, content);
    else if (strcmp(form, "slices") == 0)
        value = read_slices(run, content);
    else if (strcmp(form, "none") == 0)
        value = sumac_value_none();
    else if (strcmp(form, "dict") == 0)
        value = read_dict(run, content, replicas);
    else if (strcmp(form, "mirrored") == 0)
        value = sumac_value_mirrored(
            case_value_read(run, content, replicas), replicas->count, replicas->first);
    else
        value = read_items(run, form, content, replicas);
    if (value == NULL)
        (void)cases_fail(run, "the library makes no value of one of the case's");
    return value;
}

/* ---- compared */

static bool equal_tensor(
    struct cases_run *run, const char *what, json_t *expected, const struct sumac_value *actual,
    bool exactly)
{
    const struct sumac_tensor *is = sumac_value_as_tensor(actual);
    struct sumac_value *here = NULL;
    struct case_tensor should;
    struct sumac_error error;
    char text[200], shape[100];

    if (is == NULL) {
        (void)sumac_value_print(actual, text, sizeof text);
        return cases_fail(run, "expected %s to be a tensor, got %s", what, text);
    }
    if (!case_tensor_read(run, expected, &should))
        return false;
    if (sumac_value_to_host((void *)(uintptr_t)actual, &here, &error) != SUMAC_OK) {
        case_tensor_deinit(&should);
        return cases_fail(run, "%s is not to be read: %s", what, error.text);
    }
    bool equal = should.dtype == is->dtype && sumac_shape_equal(&should.shape, &is->shape);
    if (!equal) {
        (void)sumac_value_print(actual, text, sizeof text);
        (void)cases_fail(
            run, "expected %s to be %s%s, got %s", what, sumac_dtype_name(should.dtype),
            sumac_shape_print(&should.shape, shape, sizeof shape), text);
    } else {
        equal = case_tensor_equal(run, what, &should, sumac_value_data(here), exactly);
    }
    sumac_value_unref(here);
    case_tensor_deinit(&should);
    return equal;
}

static bool equal_slices(
    struct cases_run *run, const char *what, json_t *expected, const struct sumac_value *actual,
    bool exactly)
{
    json_t *dense = json_object_get(expected, "dense_shape");
    const struct sumac_shape shape = sumac_value_shape(actual);
    bool same = sumac_value_kind(actual) == SUMAC_VALUE_INDEXED_SLICES &&
                json_array_size(dense) == shape.rank;

    for (uint32_t i = 0; same && i < shape.rank; i++)
        same = (uint64_t)json_integer_value(json_array_get(dense, i)) == shape.extent[i];
    if (!same)
        return cases_fail(run, "expected %s to be slices of another shape", what);
    return equal_tensor(
               run, what, json_object_get(expected, "values"), sumac_value_item(actual, 0),
               exactly) &&
           equal_tensor(
               run, what, json_object_get(expected, "indices"), sumac_value_item(actual, 1), true);
}

static enum sumac_value_kind kind_of_form(const char *form)
{
    for (int kind = SUMAC_VALUE_NONE; kind <= SUMAC_VALUE_MIRRORED; kind++)
        if (strcmp(form, sumac_value_kind_name((enum sumac_value_kind)kind)) == 0)
            return (enum sumac_value_kind)kind;
    return SUMAC_VALUE_NONE;
}

static bool equal_items(
    struct cases_run *run, const char *what, json_t *expected, const struct sumac_value *actual,
    bool exactly)
{
    char name[NAME_BYTES];

    if (json_array_size(expected) != sumac_value_count(actual))
        return cases_fail(
            run, "expected %s to have %zu items, got %" PRIu32, what, json_array_size(expected),
            sumac_value_count(actual));
    for (uint32_t i = 0; i < sumac_value_count(actual); i++) {
        (void)snprintf(name, sizeof name, "%.120s[%" PRIu32 "]", what, i);
        if (!case_value_equal(
                run, name, json_array_get(expected, i), sumac_value_item(actual, i), exactly))
            return false;
    }
    return true;
}

static bool equal_dict(
    struct cases_run *run, const char *what, json_t *expected, const struct sumac_value *actual,
    bool exactly)
{
    char name[NAME_BYTES];
    const char *key = NULL;
    json_t *item = NULL;

    if (json_object_size(expected) != sumac_value_count(actual))
        return cases_fail(run, "expected %s to have other keys", what);
    json_object_foreach(expected, key, item)
    {
        const struct sumac_value *own = sumac_value_find(actual, key);
        (void)snprintf(name, sizeof name, "%.100s['%.40s']", what, key);
        if (own == NULL)
            return cases_fail(run, "expected %s to be there", name);
        if (!case_value_equal(run, name, item, own, exactly))
            return false;
    }
    return true;
}

bool case_value_equal(
    struct cases_run *run, const char *what, json_t *expected, const struct sumac_value *actual,
    bool exactly)
{
    json_t *content = NULL;
    const char *form = json_is_object(expected) ? form_of(expected, &content) : NULL;

    if (form == NULL)
        return cases_fail(run, "an expected value is of no form that there is");
    if (kind_of_form(form) != sumac_value_kind(actual))
        return cases_fail(
            run, "expected %s to be a %s, got a %s", what, form,
            sumac_value_kind_name(sumac_value_kind(actual)));
    if (strcmp(form, "tensor") == 0)
        return equal_tensor(run, what, content, actual, exactly);
    if (strcmp(form, "slices") == 0)
        return equal_slices(run, what, content, actual, exactly);
    if (strcmp(form, "dict") == 0)
        return equal_dict(run, what, content, actual, exactly);
    return strcmp(form, "none") == 0 || equal_items(run, what, content, actual, exactly);
}

/* ---- compared with what replicas have */

/* A list of what is expected of these replicas: of one item (an object) it has as many copies. */
static json_t *expected_items(json_t *content, const struct case_replicas *replicas)
{
    const bool of_all = json_array_size(content) == replicas->in_sync;
    json_t *items = json_array();

    for (uint32_t i = 0; i < replicas->count; i++)
        (void)json_array_append(
            items, json_is_object(content)
                       ? content
                       : json_array_get(content, of_all ? replicas->first + i : i));
    return items;
}

/* The same nest with such lists. Gives  a reference. */
static json_t *expected_here(json_t *expected, const struct case_replicas *replicas)
{
    json_t *content = NULL, *item = NULL;
    const char *form = json_is_object(expected) ? form_of(expected, &content) : NULL, *key = NULL;
    size_t i = 0;

    if (form != NULL && (strcmp(form, "per_replica") == 0 || strcmp(form, "mirrored") == 0))
        return json_pack("{s:o}", form, expected_items(content, replicas));
    if (form == NULL || (!json_is_array(content) && strcmp(form, "dict") != 0))
        return json_incref(expected);
    json_t *items = json_is_array(content) ? json_array() : json_object();
    json_array_foreach(content, i, item)(void)
        json_array_append_new(items, expected_here(item, replicas));
    json_object_foreach(content, key, item)(void)
        json_object_set_new(items, key, expected_here(item, replicas));
    return json_pack("{s:o}", form, items);
}

/* Do all leaves of replicas begin with this one? */
static bool begins_at(const struct sumac_value *value, uint32_t first)
{
    const enum sumac_value_kind kind = sumac_value_kind(value);

    if (kind == SUMAC_VALUE_PER_REPLICA || kind == SUMAC_VALUE_MIRRORED)
        return sumac_value_first_replica(value) == first;
    for (uint32_t i = 0; i < sumac_value_count(value); i++)
        if (!begins_at(sumac_value_item(value, i), first))
            return false;
    return true;
}

bool case_value_equal_in_form(
    struct cases_run *run, const char *what, json_t *expected, const struct sumac_value *actual,
    const struct case_replicas *replicas, bool exactly)
{
    json_t *own = expected_here(expected, replicas);
    const bool equal = case_value_equal(run, what, own, actual, exactly);

    json_decref(own);
    return equal &&
           (begins_at(actual, replicas->first) || cases_fail(run, "%s is of other replicas", what));
}

/* What that replica is to have of it. Gives  a reference. */
static json_t *select_expected(json_t *expected, uint32_t replica)
{
    json_t *content = NULL;
    const char *form = json_is_object(expected) ? form_of(expected, &content) : NULL;

    if (form != NULL && strcmp(form, "per_replica") == 0)
        return json_incref(json_array_get(content, replica));
    if (form != NULL && strcmp(form, "mirrored") == 0)
        return json_incref(content);
    if (form == NULL || strcmp(form, "tensor") == 0 || strcmp(form, "slices") == 0 ||
        strcmp(form, "none") == 0)
        return json_incref(expected);
    json_t *items = json_is_array(content) ? json_array() : json_object();
    const char *key = NULL;
    json_t *item = NULL;
    size_t i = 0;
    json_array_foreach(content, i, item)(void)
        json_array_append_new(items, select_expected(item, replica));
    json_object_foreach(content, key, item)(void)
        json_object_set_new(items, key, select_expected(item, replica));
    return json_pack("{s:o}", form, items);
}

bool case_value_equal_in_replicas(
    struct cases_run *run, json_t *expected, struct sumac_value *actual,
    const struct case_replicas *replicas, bool exactly)
{
    struct sumac_error error = {0};
    bool equal = true;

    for (uint32_t i = replicas->first; equal && i < replicas->first + replicas->count; i++) {
        struct sumac_value *own = NULL;
        char what[40];
        (void)snprintf(what, sizeof what, "replica %" PRIu32 "'s value", i);
        if (sumac_value_select(actual, i, &own, &error) != SUMAC_OK)
            return cases_fail(run, "expected a value of each replica, got %s", error.text);
        json_t *should = select_expected(expected, i);
        equal = case_value_equal(run, what, should, own, exactly);
        json_decref(should);
        sumac_value_unref(own);
    }
    return equal;
}
