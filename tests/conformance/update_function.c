/* SPDX-License-Identifier: Apache-2.0 */
/* update_function.c -- the `update_function` cases: what a variable and its slots are after a list
 * of gradients.
 *
 *   {"fn": NAME, "hyperparameters": {NAME: NUMBER or BOOL}, "initial": TENSOR, "gradients": [TENSOR
 * or {"slices": …}, …], "expect": {"value": TENSOR, "slots": {NAME: TENSOR}}}
 *
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_client.h"
#include "update_function.h"

#define GRADIENTS_MAX 64
#define HYPERPARAMETERS_MAX 16

const char *const update_function_keys[] = {"fn", "hyperparameters", "initial", "gradients", NULL};
static const char *const expect_keys[] = {"value", "slots", NULL};

struct one_case {
    struct cases_run *run;
    const struct target *target;
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

static bool slots_match(struct one_case *one, json_t *expected)
{
    const struct target *target = one->target;

    if (json_object_size(expected) != target->slots())
        return cases_fail(
            one->run, "expected %zu slots, got %zu", json_object_size(expected), target->slots());
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(expected, name, value)
    {
        struct case_tensor slot;
        const void *actual = target->slot(name);
        if (actual == NULL)
            return cases_fail(one->run, "expected a slot %s, got none", name);
        if (!case_tensor_read(one->run, value, &slot))
            return false;
        const bool same = slot.dtype == target->slot_dtype() &&
                          sumac_shape_equal(&slot.shape, &one->initial.shape) &&
                          case_tensor_equal(one->run, name, &slot, actual, one->exactly);
        case_tensor_deinit(&slot);
        if (!same)
            return cases_fail(one->run, "expected slot %s to be of another dtype or shape", name);
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
        return cases_fail(one->run, "expected a value of another dtype or shape");
    if (one->target->read(scratch, &error) != SUMAC_OK)
        return cases_fail(one->run, "read: %s", error.text);
    return case_tensor_equal(one->run, "value", expected, scratch, exactly);
}

static enum sumac_status push_one(struct one_case *one, size_t i, struct sumac_error *error)
{
    return one->indices[i].data == NULL
               ? one->target->push(&one->gradients[i], error)
               : one->target->push_rows(&one->gradients[i], &one->indices[i], error);
}

/* Do one more push, of the first gradient, to the target and to the loops come to the same? */
static bool next_push_agrees(struct one_case *one, struct one_case *loops, void *scratch)
{
    struct case_tensor value = one->initial;
    struct sumac_error error = {0};

    if (one->gradient_count == 0)
        return true;
    if (push_one(one, 0, &error) != SUMAC_OK || push_one(loops, 0, &error) != SUMAC_OK)
        return cases_fail(one->run, "one push more: %s", error.text);
    value.data = malloc((size_t)one->initial.bytes + 1);
    if (value.data == NULL || loops->target->read(value.data, &error) != SUMAC_OK) {
        free(value.data);
        return cases_fail(one->run, "no value of the loops");
    }
    const bool same = value_matches(one, &value, scratch, one->exactly);
    free(value.data);
    return same || cases_fail(one->run, "one push more comes to another value than the loops'");
}

/* The slots of a target that does not show them are seen in what the next push makes of them: it is
 * what the loops make of theirs, which can be compared. */
static bool slots_act_as(struct one_case *one, json_t *expected, void *scratch)
{
    struct one_case loops = *one;
    struct sumac_error error = {0};

    loops.target = &target_loops;
    enum sumac_status status = loops.target->create(&one->variable, &error);
    for (size_t i = 0; status == SUMAC_OK && i < one->gradient_count; i++)
        status = push_one(&loops, i, &error);
    const bool same = status == SUMAC_OK
                          ? slots_match(&loops, expected) && next_push_agrees(one, &loops, scratch)
                          : cases_fail(one->run, "the loops: %s", error.text);
    loops.target->delete ();
    return same;
}

static bool result_matches(struct one_case *one, void *scratch)
{
    if (one->error != NULL)
        return cases_fail(one->run, "expected a refusal, got none");
    struct case_tensor value;
    if (!cases_keys_known(one->run, one->expect, "\"expect\"", expect_keys) ||
        !case_tensor_read(one->run, json_object_get(one->expect, "value"), &value))
        return false;
    json_t *slots = json_object_get(one->expect, "slots");
    const bool same =
        value_matches(one, &value, scratch, one->exactly) &&
        (one->target->slots == NULL ? slots_act_as(one, slots, scratch) : slots_match(one, slots));
    case_tensor_deinit(&value);
    return same;
}

static bool
refusal_matches(struct one_case *one, enum sumac_status status, const struct sumac_error *error)
{
    if (one->error == NULL)
        return cases_fail(
            one->run, "expected a result, got %s: %s", sumac_status_name(status), error->text);
    return cases_error_matches(one->run, one->error, status, error->text);
}

/* Push every gradient; a refused one leaves the variable as it was. */
static bool push_all(struct one_case *one, void *before, void *after)
{
    struct case_tensor unchanged = one->initial;

    unchanged.data = before;
    for (size_t i = 0; i < one->gradient_count; i++) {
        struct sumac_error error = {0};
        if (one->target->read(before, &error) != SUMAC_OK)
            return cases_fail(one->run, "read: %s", error.text);
        const enum sumac_status status = push_one(one, i, &error);
        if (status != SUMAC_OK)
            return refusal_matches(one, status, &error) &&
                   value_matches(one, &unchanged, after, true);
    }
    return result_matches(one, after);
}

static bool apply(struct one_case *one)
{
    struct sumac_error error = {0};
    const enum sumac_status status = one->target->create(&one->variable, &error);

    if (status != SUMAC_OK)
        return refusal_matches(one, status, &error);
    void *before = malloc((size_t)one->initial.bytes + 1);
    void *after = malloc((size_t)one->initial.bytes + 1);
    const bool passed = before != NULL && after != NULL && push_all(one, before, after);
    free(before);
    free(after);
    return passed;
}

enum cases_result update_function_run(struct cases_run *run, json_t *given, void *context)
{
    const struct target *target = context;
    struct one_case one = {.run = run, .target = target};
    bool passed = false;

    if (cluster_client_index() > 0)
        return cases_skip(run, "worker 0 runs it");
    if (read_case(&one, given)) {
        passed = apply(&one);
        target->delete ();
    }
    deinit_case(&one);
    return passed ? CASES_PASSED : CASES_FAILED;
}
