/* SPDX-License-Identifier: Apache-2.0 */
/* update_function.c -- the `update_function` cases: what a variable and its slots are after a list
 * of gradients.
 *
 *   {"fn": NAME, "hyperparameters": {NAME: NUMBER or BOOL}, "initial": TENSOR, "gradients": [TENSOR
 * or {"slices": …}, …], "expect": {"value": TENSOR, "slots": {NAME: TENSOR}}}
 *
 * Left to others, and counted: when the target is the loops alone, gradients of another dtype or
 * shape, which the lane refuses.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

#define GRADIENTS_MAX 64
#define HYPERPARAMETERS_MAX 16

static const char *const case_keys[] = {"fn", "hyperparameters", "initial", "gradients", NULL};
static const char *const expect_keys[] = {"value", "slots", NULL};

/* Why cases are left. */
struct left {
    size_t need_a_ps;
};

struct one_case {
    struct cases_run *run;
    struct target_variable variable;
    struct target_hyperparameter hyperparameters[HYPERPARAMETERS_MAX];
    struct case_tensor initial;
    struct case_tensor gradients[GRADIENTS_MAX]; /* of slices their values */
    struct case_tensor indices[GRADIENTS_MAX];   /* without data: it is no slices */
    size_t gradient_count;
    json_t *expect, *error;
    bool exactly;
};

static bool read_hyperparameters(struct one_case *one, json_t *given)
{
    const char *name = NULL;
    json_t *value = NULL;

    json_object_foreach(given, name, value)
    {
        if (one->variable.hyperparameter_count == HYPERPARAMETERS_MAX)
            return cases_fail(one->run, "more than %d hyperparameters", HYPERPARAMETERS_MAX);
        if (!json_is_number(value) && !json_is_boolean(value))
            return cases_fail(one->run, "hyperparameter %s is no number", name);
        one->hyperparameters[one->variable.hyperparameter_count++] = (struct target_hyperparameter){
            .name = name,
            .value =
                json_is_boolean(value) ? (json_is_true(value) ? 1 : 0) : json_number_value(value)};
    }
    one->variable.hyperparameters = one->hyperparameters;
    return true;
}

static bool read_gradients(struct one_case *one, json_t *given)
{
    size_t i = 0;
    json_t *gradient = NULL;

    json_array_foreach(given, i, gradient)
    {
        if (i == GRADIENTS_MAX)
            return cases_fail(one->run, "more than %d gradients", GRADIENTS_MAX);
        json_t *slices = json_object_get(gradient, "slices");
        one->gradient_count++;
        if (slices != NULL &&
            !case_tensor_read(one->run, json_object_get(slices, "indices"), &one->indices[i]))
            return false;
        if (!case_tensor_read(
                one->run, slices == NULL ? gradient : json_object_get(slices, "values"),
                &one->gradients[i]))
            return false;
    }
    return true;
}

static bool read_case(struct one_case *one, json_t *given)
{
    const char *function = json_string_value(json_object_get(given, "fn"));

    if (function == NULL)
        return cases_fail(one->run, "\"fn\" is no string");
    one->variable.name = one->run->case_id;
    one->variable.function = function;
    one->variable.initial = &one->initial;
    one->expect = json_object_get(given, "expect");
    one->error = json_object_get(given, "error");
    one->exactly = json_is_true(json_object_get(given, "exact"));
    return read_hyperparameters(one, json_object_get(given, "hyperparameters")) &&
           case_tensor_read(one->run, json_object_get(given, "initial"), &one->initial) &&
           read_gradients(one, json_object_get(given, "gradients"));
}

static void deinit_case(struct one_case *one)
{
    case_tensor_deinit(&one->initial);
    for (size_t i = 0; i < one->gradient_count; i++)
        case_tensor_deinit(&one->gradients[i]);
    for (size_t i = 0; i < one->gradient_count; i++)
        case_tensor_deinit(&one->indices[i]);
}

/* The shape of the variable, or a row of it for each index, which is one of its rows. */
static bool fits(const struct one_case *one, size_t i)
{
    struct sumac_shape shape = one->initial.shape;
    const int64_t *indices = one->indices[i].data;

    if (indices == NULL)
        return sumac_shape_equal(&one->gradients[i].shape, &shape);
    for (uint64_t j = 0; j < one->indices[i].elements; j++) {
        if (shape.rank == 0 || (uint64_t)indices[j] >= shape.extent[0])
            return false;
    }
    shape.extent[0] = one->indices[i].elements;
    return one->indices[i].dtype == SUMAC_INT64 &&
           sumac_shape_equal(&one->gradients[i].shape, &shape);
}

static bool some_gradient_does_not_fit(const struct one_case *one)
{
    for (size_t i = 0; i < one->gradient_count; i++) {
        if (one->gradients[i].dtype != one->initial.dtype || !fits(one, i))
            return true;
    }
    return false;
}

static bool slots_match(struct one_case *one, json_t *expected)
{
    if (!target_shows_slots)
        return true;
    if (json_object_size(expected) != target_slots())
        return cases_fail(
            one->run, "%zu slots, expected %zu", target_slots(), json_object_size(expected));
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(expected, name, value)
    {
        struct case_tensor slot;
        const void *actual = target_slot(name);
        if (actual == NULL)
            return cases_fail(one->run, "no slot %s", name);
        if (!case_tensor_read(one->run, value, &slot))
            return false;
        const bool same = slot.dtype == target_slot_dtype() &&
                          sumac_shape_equal(&slot.shape, &one->initial.shape) &&
                          case_tensor_equal(one->run, name, &slot, actual, one->exactly);
        case_tensor_deinit(&slot);
        if (!same)
            return cases_fail(one->run, "slot %s is not as expected", name);
    }
    return true;
}

/* Is the variable what `expected` says? `scratch` has room for its value. */
static bool
value_matches(struct one_case *one, const struct case_tensor *expected, void *scratch, bool exactly)
{
    struct sumac_error error = {0};

    if (expected->dtype != one->initial.dtype ||
        !sumac_shape_equal(&expected->shape, &one->initial.shape))
        return cases_fail(one->run, "the expected value is of another dtype or shape");
    if (target_read(scratch, &error) != SUMAC_OK)
        return cases_fail(one->run, "read: %s", error.text);
    return case_tensor_equal(one->run, "value", expected, scratch, exactly);
}

static bool result_matches(struct one_case *one, void *scratch)
{
    if (one->error != NULL)
        return cases_fail(one->run, "not refused");
    struct case_tensor value;
    if (!cases_keys_known(one->run, one->expect, "\"expect\"", expect_keys) ||
        !case_tensor_read(one->run, json_object_get(one->expect, "value"), &value))
        return false;
    const bool same = value_matches(one, &value, scratch, one->exactly) &&
                      slots_match(one, json_object_get(one->expect, "slots"));
    case_tensor_deinit(&value);
    return same;
}

static bool
refusal_matches(struct one_case *one, enum sumac_status status, const struct sumac_error *error)
{
    if (one->error == NULL)
        return cases_fail(one->run, "refused: %s", error->text);
    return cases_error_matches(one->run, one->error, status, error->text);
}

/* Push every gradient; a refused one leaves the variable as it was. */
static bool push_all(struct one_case *one, void *before, void *after)
{
    struct case_tensor unchanged = one->initial;

    unchanged.data = before;
    for (size_t i = 0; i < one->gradient_count; i++) {
        struct sumac_error error = {0};
        if (target_read(before, &error) != SUMAC_OK)
            return cases_fail(one->run, "read: %s", error.text);
        const enum sumac_status status =
            one->indices[i].data == NULL
                ? target_push(&one->gradients[i], &error)
                : target_push_rows(&one->gradients[i], &one->indices[i], &error);
        if (status != SUMAC_OK)
            return refusal_matches(one, status, &error) &&
                   value_matches(one, &unchanged, after, true);
    }
    return result_matches(one, after);
}

static bool apply(struct one_case *one)
{
    struct sumac_error error = {0};
    const enum sumac_status status = target_create(&one->variable, &error);

    if (status != SUMAC_OK)
        return refusal_matches(one, status, &error);
    void *before = malloc((size_t)one->initial.bytes + 1);
    void *after = malloc((size_t)one->initial.bytes + 1);
    const bool passed = before != NULL && after != NULL && push_all(one, before, after);
    free(before);
    free(after);
    return passed;
}

static enum cases_result run_case(struct cases_run *run, json_t *given, void *context)
{
    struct left *left = context;
    struct one_case one = {.run = run};
    size_t *why = NULL;
    bool passed = false;

    if (!read_case(&one, given))
        passed = false;
    else if (!target_checks_gradients && some_gradient_does_not_fit(&one))
        why = &left->need_a_ps;
    else {
        passed = apply(&one);
        target_delete();
    }
    deinit_case(&one);
    if (why != NULL)
        ++*why;
    return why != NULL ? CASES_LEFT : passed ? CASES_PASSED : CASES_FAILED;
}

int main(int argc, char **argv)
{
    json_t *file = cases_load(argc == 2 ? argv[1] : "update_function.json");

    if (file == NULL)
        return EXIT_FAILURE;
    struct sumac_error error = {0};
    if (target_open(&error) != SUMAC_OK) {
        fprintf(stderr, "%s\n", error.text);
        json_decref(file);
        return EXIT_FAILURE;
    }
    struct cases_run run = {.op = "update_function"};
    struct left left = {0};
    cases_each(file, &run, case_keys, run_case, &left);
    target_close();
    json_decref(file);
    printf("left: %zu that need a ps\n", left.need_a_ps);
    return cases_finish(&run);
}
