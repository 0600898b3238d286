/* SPDX-License-Identifier: Apache-2.0 */
/* described.c -- functions as messages say them. */
#include "described.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "dtype.h"
#include "error.h"

#define BIT(number) (1u << (unsigned)(number))

/* ---- what is said of a row ---- */

static double bound(double number)
{
    return fabs(number) >= DBL_MAX ? copysign(HUGE_VAL, number) : number;
}

static wire_known_hyperparameter
describe_hyperparameter(const struct update_function *function, uint32_t number)
{
    const struct update_hyperparameter *const row = update_hyperparameter_of(function, number);
    const bool above_zero = (function->above_zero & BIT(number)) != 0;
    wire_known_hyperparameter message = WIRE_KNOWN_HYPERPARAMETER_INIT;

    assert((function->hyperparameters & BIT(number)) != 0);
    message.number = number;
    message.name = (char *)(uintptr_t)row->name;
    message.default_value = function->defaults[number];
    message.least = bound(row->least);
    message.most = bound(row->most);
    message.above_least = isfinite(message.least) && (row->least_excluded || above_zero);
    message.below_most = isfinite(message.most) && row->most_excluded;
    message.whole = row->whole;
    return message;
}

wire_known_function *update_describe(const struct update_function *function, struct arena *arena)
{
    const size_t count = (size_t)__builtin_popcount(function->hyperparameters);
    const size_t slot_count = function->slot_count;
    wire_known_function *const message = arena_take(arena, sizeof *message);
    wire_known_hyperparameter *const known = arena_take(arena, (count + 1) * sizeof *known);
    wire_known_slot *const slots = arena_take(arena, (slot_count + 1) * sizeof *slots);

    assert(function->dtypes != 0);
    if (message == NULL || known == NULL || slots == NULL)
        return NULL;
    *message = (wire_known_function)WIRE_KNOWN_FUNCTION_INIT;
    message->hyperparameters = arena_take(arena, (count + 1) * sizeof *message->hyperparameters);
    message->slots = arena_take(arena, (slot_count + 1) * sizeof *message->slots);
    message->data_types = arena_take(arena, (DTYPES_MAX + 1) * sizeof *message->data_types);
    if (message->hyperparameters == NULL || message->slots == NULL || message->data_types == NULL)
        return NULL;
    message->number = function->number;
    message->name = (char *)(uintptr_t)function->name;
    if (function->rule != NULL)
        message->rule = (char *)(uintptr_t)function->rule;
    if (function->plugged != NULL)
        message->plugin = (char *)(uintptr_t)function->plugged->plugin;
    message->counts_steps = function->counts_steps;
    message->repeats = (Sumac__V1__KnownFunction__Repeats)function->repeats;
    for (uint32_t left = function->hyperparameters; left != 0; left &= left - 1) {
        wire_known_hyperparameter *const one = &known[message->n_hyperparameters];
        *one = describe_hyperparameter(function, (uint32_t)__builtin_ctz(left));
        message->hyperparameters[message->n_hyperparameters++] = one;
    }
    assert(message->n_hyperparameters == count);
    for (; message->n_slots < slot_count; message->n_slots++) {
        wire_known_slot *const one = &slots[message->n_slots];
        *one = (wire_known_slot)WIRE_KNOWN_SLOT_INIT;
        one->name = (char *)(uintptr_t)function->slot_names[message->n_slots];
        one->initial = function->slot_initial[message->n_slots];
        one->initial_from = function->slot_from[message->n_slots];
        message->slots[message->n_slots] = one;
    }
    for (uint32_t dtype = 1; dtype <= DTYPES_MAX; dtype++)
        if ((function->dtypes & BIT(dtype)) != 0)
            message->data_types[message->n_data_types++] = (Sumac__V1__DataType)dtype;
    return message;
}

/* ---- the digest: FNV-1a ---- */

static void digest_bytes(uint64_t *digest, const void *data, size_t bytes)
{
    const uint8_t *const at = data;

    assert(data != NULL);
    for (size_t i = 0; i < bytes; i++)
        *digest = (*digest ^ at[i]) * UINT64_C(0x100000001b3);
}

/* With its NUL, so that two texts are not one. */
static void digest_text(uint64_t *digest, const char *text)
{
    digest_bytes(digest, text, strlen(text) + 1);
}

static void digest_number(uint64_t *digest, uint64_t number)
{
    digest_bytes(digest, &number, sizeof number);
}

uint64_t update_digest(const struct update_function *function)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);

    digest_text(&digest, function->name);
    digest_text(&digest, function->rule == NULL ? "" : function->rule);
    digest_text(&digest, function->plugged == NULL ? "" : function->plugged->plugin);
    digest_number(&digest, function->dtypes);
    digest_number(&digest, (uint64_t)function->repeats << 1 | function->counts_steps);
    for (uint32_t left = function->hyperparameters; left != 0; left &= left - 1) {
        const wire_known_hyperparameter one =
            describe_hyperparameter(function, (uint32_t)__builtin_ctz(left));
        digest_number(&digest, one.number);
        digest_text(&digest, one.name);
        digest_bytes(&digest, &one.default_value, sizeof one.default_value);
        digest_bytes(&digest, &one.least, sizeof one.least);
        digest_bytes(&digest, &one.most, sizeof one.most);
        digest_number(
            &digest, (one.above_least ? 1u : 0) | (one.below_most ? 2u : 0) | (one.whole ? 4u : 0));
    }
    for (uint32_t i = 0; i < function->slot_count; i++) {
        digest_text(&digest, function->slot_names[i]);
        digest_bytes(&digest, &function->slot_initial[i], sizeof function->slot_initial[i]);
        digest_number(&digest, function->slot_from[i]);
    }
    return digest;
}

/* ---- a row of what was said ---- */

enum sumac_status update_check_described(
    const struct update_function *function, const wire_known_function *said,
    struct sumac_error *error)
{
    for (size_t i = 0; i < said->n_hyperparameters; i++) {
        const wire_known_hyperparameter *const one = said->hyperparameters[i];
        if (update_hyperparameter_find_of(function, one->name) != one->number)
            return fail(
                error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
                "hyperparameter %.63s of %.63s has number %" PRIu32
                " in the cluster and another one here: use the release of the ps",
                one->name, function->name, one->number);
    }
    return SUMAC_OK;
}

static uint32_t flags_of(const wire_known_hyperparameter *said)
{
    return (said->above_least ? (uint32_t)SUMAC_PLUGIN_ABOVE_LEAST : 0) |
           (said->below_most ? (uint32_t)SUMAC_PLUGIN_BELOW_MOST : 0) |
           (said->whole ? (uint32_t)SUMAC_PLUGIN_WHOLE : 0);
}

/* As a plug-in has them: largest number first is the order of those that the table does not name,
 * and clip_value is Sumac's own. */
static uint32_t read_hyperparameters(
    const wire_known_function *said, struct sumac_plugin_hyperparameter *hyperparameters)
{
    uint32_t count = 0;

    assert(hyperparameters != NULL);
    for (size_t i = said->n_hyperparameters; i > 0; i--) {
        const wire_known_hyperparameter *const one = said->hyperparameters[i - 1];
        if (one->number == UPDATE_HYPERPARAMETER_CLIP_VALUE)
            continue;
        if (count == SUMAC_PLUGIN_HYPERPARAMETERS_MAX)
            return count + 1; /* which is too many */
        hyperparameters[count++] = (struct sumac_plugin_hyperparameter){
            .name = one->name,
            .default_value = one->default_value,
            .least = one->least,
            .most = one->most,
            .flags = flags_of(one)};
    }
    return count;
}

static const char *name_of(const wire_known_function *said, uint32_t number)
{
    for (size_t i = 0; i < said->n_hyperparameters; i++)
        if (said->hyperparameters[i]->number == number)
            return said->hyperparameters[i]->name;
    return ""; /* which none has */
}

enum sumac_status update_read_described(
    const wire_known_function *said, struct update_plugged *plugged, struct sumac_error *error)
{
    struct sumac_plugin_hyperparameter hyperparameters[SUMAC_PLUGIN_HYPERPARAMETERS_MAX];
    struct sumac_plugin_slot slots[SUMAC_PLUGIN_SLOTS_MAX];
    struct sumac_plugin_function row = {
        .name = said->name,
        .rule = said->rule,
        .hyperparameters = hyperparameters,
        .slots = slots,
        .slot_count = (uint32_t)said->n_slots,
        .repeats = (enum sumac_plugin_repeats)said->repeats,
        .counts_steps = said->counts_steps};

    if (said->number < UPDATE_PLUGGED_FIRST || said->n_slots > SUMAC_PLUGIN_SLOTS_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "function %.63s has number %" PRIu32 " and %zu slots, as none of a plug-in has",
            said->name, said->number, said->n_slots);
    row.hyperparameter_count = read_hyperparameters(said, hyperparameters);
    for (size_t i = 0; i < said->n_slots; i++)
        slots[i] = (struct sumac_plugin_slot){
            .name = said->slots[i]->name,
            .initial = said->slots[i]->initial,
            .initial_from = said->slots[i]->initial_from == 0
                                ? NULL
                                : name_of(said, said->slots[i]->initial_from)};
    for (size_t i = 0; i < said->n_data_types; i++)
        row.dtypes |= (uint32_t)said->data_types[i] <= DTYPES_MAX ? BIT(said->data_types[i]) : 0;
    const enum sumac_status status = update_plug(said->number, said->plugin, &row, plugged, error);
    return status != SUMAC_OK ? status : update_check_described(&plugged->function, said, error);
}
