/* SPDX-License-Identifier: Apache-2.0 */
/* plugged.c -- a plug-in's table made rows of functions, and how their slices are run. */
#include "plugged.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "defined.h"
#include "dtype.h"
#include "error.h"
#include "loops.h"
#include "text.h"

#define WORD_TEXT "a letter, then letters, digits, _, -, . and /, %u at most"
#define BIT(number) (1u << (unsigned)(number))
#define X(NAME, number, bytes, kind, name, numpy) | BIT(number)
#define EVERY_DTYPE (0u SUMAC_DTYPE_LIST(X))
#define HALF_BIT(NAME, number, bytes, kind, name, numpy)                                           \
    | (SUMAC_KIND_##kind == SUMAC_KIND_HALF ? BIT(number) : 0)
#define HALVES (0u SUMAC_DTYPE_LIST(HALF_BIT))
#define FLOATS (BIT(SUMAC_FLOAT32) | BIT(SUMAC_FLOAT64) | HALVES)
#define EVERY_FLAG                                                                                 \
    ((uint32_t)SUMAC_PLUGIN_ABOVE_LEAST | SUMAC_PLUGIN_BELOW_MOST | SUMAC_PLUGIN_WHOLE)

_Static_assert(
    SUMAC_PLUGIN_HYPERPARAMETERS_MAX <= UPDATE_SCALARS &&
        SUMAC_PLUGIN_HYPERPARAMETERS_MAX < UPDATE_HYPERPARAMETER_CLIP_VALUE,
    "each has a scalar and a number");
_Static_assert(SUMAC_PLUGIN_SLOTS_MAX == UPDATE_SLOTS_MAX, "each has its blocks");
_Static_assert(
    SUMAC_PLUGIN_NAME_BYTES_MAX == EXPRESSION_NAME_BYTES_MAX, "functions are named alike");

/* ---- its texts ---- */

/* Its bytes, or bytes_max + 1 of one that is longer. */
static size_t text_bytes(const char *text, size_t bytes_max)
{
    size_t bytes = 0;

    assert(text != NULL);
    while (bytes <= bytes_max && text[bytes] != '\0')
        bytes++;
    return bytes;
}

/* Copied, it is one printable line of 1 to bytes_max bytes. */
static bool take_line(const char *text, char *copy, size_t bytes_max)
{
    const size_t bytes = text == NULL ? 0 : text_bytes(text, bytes_max);

    if (bytes == 0 || bytes > bytes_max || !text_is_utf8(text, bytes) ||
        text_has_control(text, bytes))
        return false;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return true;
}

/* The same, and a name: of a slot, a hyperparameter, a plug-in. */
static bool take_word(const char *text, char *copy)
{
    return take_line(text, copy, SUMAC_PLUGIN_NAME_BYTES_MAX) && update_is_name(copy);
}

enum sumac_status update_plugin_check(const struct sumac_plugin *plugin, struct sumac_error *error)
{
    char name[SUMAC_PLUGIN_NAME_BYTES_MAX + 1], version[SUMAC_PLUGIN_VERSION_BYTES_MAX + 1];

    if (plugin->abi_version != SUMAC_PLUGIN_ABI_VERSION)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
            "its ABI version is %" PRIu32 ", and that of this release %u: build it with the "
            "sumac/plugin.h of this release",
            plugin->abi_version, SUMAC_PLUGIN_ABI_VERSION);
    if (!take_word(plugin->name, name))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME, "its name is none: " WORD_TEXT,
            SUMAC_PLUGIN_NAME_BYTES_MAX);
    if (!take_line(plugin->version, version, SUMAC_PLUGIN_VERSION_BYTES_MAX))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME, "its version is none: 1 to %u printable bytes of UTF-8",
            SUMAC_PLUGIN_VERSION_BYTES_MAX);
    if (plugin->functions == NULL || plugin->function_count == 0 ||
        plugin->function_count > SUMAC_PLUGIN_FUNCTIONS_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "its table has %" PRIu32 " functions%s; it has 1 to %u",
            plugin->function_count, plugin->functions == NULL ? ", at NULL" : "",
            SUMAC_PLUGIN_FUNCTIONS_MAX);
    return SUMAC_OK;
}

/* ---- its hyperparameters ---- */

/* "in [0, 1)", "finite and above 0", "whole and in [1, 16]" */
static void print_range(const struct sumac_plugin_hyperparameter *given, char *text)
{
    assert(given->least < given->most);
    const bool whole = (given->flags & SUMAC_PLUGIN_WHOLE) != 0;
    const bool above = (given->flags & SUMAC_PLUGIN_ABOVE_LEAST) != 0;
    const bool below = (given->flags & SUMAC_PLUGIN_BELOW_MOST) != 0;
    const char *const kind = whole ? "whole" : "finite";

    if (isinf(given->least) && isinf(given->most))
        (void)text_print(text, UPDATE_RANGE_BYTES, "%s", kind);
    else if (isinf(given->most))
        (void)text_print(
            text, UPDATE_RANGE_BYTES, "%s and %s %g", kind, above ? "above" : "at least",
            given->least);
    else if (isinf(given->least))
        (void)text_print(
            text, UPDATE_RANGE_BYTES, "%s and %s %g", kind, below ? "below" : "at most",
            given->most);
    else
        (void)text_print(
            text, UPDATE_RANGE_BYTES, "%sin %c%g, %g%c", whole ? "whole and " : "",
            above ? '(' : '[', given->least, given->most, below ? ')' : ']');
}

static bool is_range(const struct sumac_plugin_hyperparameter *given)
{
    return given->least < given->most && (given->flags & ~EVERY_FLAG) == 0;
}

static bool is_default(const struct sumac_plugin_hyperparameter *given)
{
    const double value = given->default_value;

    return isfinite(value) && value >= given->least && value <= given->most &&
           ((given->flags & SUMAC_PLUGIN_ABOVE_LEAST) == 0 || value > given->least) &&
           ((given->flags & SUMAC_PLUGIN_BELOW_MOST) == 0 || value < given->most) &&
           ((given->flags & SUMAC_PLUGIN_WHOLE) == 0 || value == floor(value));
}

/* Its number is given later. */
static enum sumac_status take_hyperparameter(
    struct update_plugged *plugged, const struct sumac_plugin_hyperparameter *given, uint32_t i,
    struct sumac_error *error)
{
    char *const name = plugged->hyperparameters[i];

    if (!take_word(given->name, name))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "hyperparameter %" PRIu32 " of %s has no name: " WORD_TEXT, i, plugged->name,
            SUMAC_PLUGIN_NAME_BYTES_MAX);
    if (update_hyperparameter_find(name) == UPDATE_HYPERPARAMETER_CLIP_VALUE)
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "hyperparameter clip_value of %s: a gradient is clipped before its loop sees it",
            plugged->name);
    for (uint32_t other = 0; other < i; other++)
        if (strcmp(plugged->hyperparameters[other], name) == 0)
            return fail_invalid(
                error, SUMAC_REASON_BAD_NAME, "%s has the hyperparameter %s twice", plugged->name,
                name);
    if (!is_range(given))
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "hyperparameter %s of %s has a range that is none: from %g to %g, with the flags "
            "0x%" PRIx32,
            name, plugged->name, given->least, given->most, given->flags);
    print_range(given, plugged->ranges[i]);
    if (!is_default(given))
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "hyperparameter %s of %s is %.9g by default; it must be %s", name, plugged->name,
            given->default_value, plugged->ranges[i]);
    return SUMAC_OK;
}

static void set_hyperparameter(
    struct update_plugged *plugged, const struct sumac_plugin_hyperparameter *given, uint32_t i)
{
    const uint32_t number = plugged->numbers[i];

    assert((plugged->function.hyperparameters & BIT(number)) != 0);
    plugged->function.defaults[number] = given->default_value;
    plugged->own[number] = (struct update_hyperparameter){
        .name = plugged->hyperparameters[i],
        .least = given->least,
        .most = given->most,
        .least_excluded = isinf(given->least) || (given->flags & SUMAC_PLUGIN_ABOVE_LEAST) != 0,
        .most_excluded = isinf(given->most) || (given->flags & SUMAC_PLUGIN_BELOW_MOST) != 0,
        .whole = (given->flags & SUMAC_PLUGIN_WHOLE) != 0,
        .range = plugged->ranges[i],
        .symbol = ""};
}

static enum sumac_status take_hyperparameters(
    struct update_plugged *plugged, const struct sumac_plugin_function *given,
    struct sumac_error *error)
{
    const uint32_t count = given->hyperparameter_count;

    if (count > SUMAC_PLUGIN_HYPERPARAMETERS_MAX || (count > 0 && given->hyperparameters == NULL))
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "%s has %" PRIu32 " hyperparameters%s; it has 0 to %u", plugged->name, count,
            given->hyperparameters == NULL ? ", at NULL" : "", SUMAC_PLUGIN_HYPERPARAMETERS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const enum sumac_status status =
            take_hyperparameter(plugged, &given->hyperparameters[i], i, error);
        if (status != SUMAC_OK)
            return status;
    }
    plugged->function.hyperparameters = update_hyperparameters_number(
        (const char(*)[SUMAC_PLUGIN_NAME_BYTES_MAX + 1]) plugged->hyperparameters, count,
        plugged->numbers);
    for (uint32_t i = 0; i < count; i++)
        set_hyperparameter(plugged, &given->hyperparameters[i], i);
    plugged->function.own_count = count;
    return SUMAC_OK;
}

/* ---- its slots and types ---- */

static uint32_t find_hyperparameter(const struct update_plugged *plugged, const char *name)
{
    assert(plugged->function.own_count <= SUMAC_PLUGIN_HYPERPARAMETERS_MAX);
    for (uint32_t i = 0; i < plugged->function.own_count; i++)
        if (strcmp(plugged->hyperparameters[i], name) == 0)
            return plugged->numbers[i];
    return 0;
}

static enum sumac_status take_slot(
    struct update_plugged *plugged, const struct sumac_plugin_slot *given, uint32_t i,
    struct sumac_error *error)
{
    struct update_function *const function = &plugged->function;
    char from[SUMAC_PLUGIN_NAME_BYTES_MAX + 1] = "";

    if (!take_word(given->name, plugged->slots[i]))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME, "slot %" PRIu32 " of %s has no name: " WORD_TEXT, i,
            plugged->name, SUMAC_PLUGIN_NAME_BYTES_MAX);
    for (uint32_t other = 0; other < i; other++)
        if (strcmp(plugged->slots[other], plugged->slots[i]) == 0)
            return fail_invalid(
                error, SUMAC_REASON_BAD_NAME, "%s has the slot %s twice", plugged->name,
                plugged->slots[i]);
    function->slot_names[i] = plugged->slots[i];
    if (given->initial_from == NULL) {
        function->slot_initial[i] = given->initial;
        if (isfinite((float)given->initial))
            return SUMAC_OK;
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "slot %s of %s starts from %g, which is no number of float32", plugged->slots[i],
            plugged->name, given->initial);
    }
    function->slot_from[i] =
        take_word(given->initial_from, from) ? find_hyperparameter(plugged, from) : 0;
    if (function->slot_from[i] != 0)
        return SUMAC_OK;
    return fail_invalid(
        error, SUMAC_REASON_BAD_NAME,
        "slot %s of %s starts from %s, which is no hyperparameter of it", plugged->slots[i],
        plugged->name, from[0] == '\0' ? "a name that is none" : from);
}

static enum sumac_status take_slots(
    struct update_plugged *plugged, const struct sumac_plugin_function *given,
    struct sumac_error *error)
{
    if (given->slot_count > SUMAC_PLUGIN_SLOTS_MAX ||
        (given->slot_count > 0 && given->slots == NULL))
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "%s has %" PRIu32 " slots%s; it has 0 to %u",
            plugged->name, given->slot_count, given->slots == NULL ? ", at NULL" : "",
            SUMAC_PLUGIN_SLOTS_MAX);
    for (uint32_t i = 0; i < given->slot_count; i++) {
        const enum sumac_status status = take_slot(plugged, &given->slots[i], i, error);
        if (status != SUMAC_OK)
            return status;
    }
    plugged->function.slot_count = given->slot_count;
    return SUMAC_OK;
}

/* Half types go by float32's loop. */
static enum sumac_status take_dtypes(
    struct update_plugged *plugged, const struct sumac_plugin_function *given,
    struct sumac_error *error)
{
    struct update_function *const function = &plugged->function;
    const bool widens = (given->dtypes & BIT(SUMAC_FLOAT32)) != 0;

    if (given->dtypes == 0 || (given->dtypes & ~EVERY_DTYPE) != 0 ||
        (!widens && (given->dtypes & HALVES) != 0))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE,
            "%s has the data types 0x%" PRIx32
            "; give SUMAC_PLUGIN_DTYPE of one or more, and for half types that of float32",
            plugged->name, given->dtypes);
    function->dtypes = given->dtypes | (widens ? HALVES : 0);
    if ((function->dtypes & ~FLOATS) != 0)
        return SUMAC_OK;
    function->hyperparameters |= BIT(UPDATE_HYPERPARAMETER_CLIP_VALUE);
    return SUMAC_OK;
}

/* ---- the row ---- */

static enum sumac_status take_name(
    struct update_plugged *plugged, const char *plugin, const struct sumac_plugin_function *given,
    struct sumac_error *error)
{
    if (!take_line(plugin, plugged->plugin, UPDATE_PLUGIN_BYTES))
        return fail_invalid(error, SUMAC_REASON_BAD_NAME, "a plug-in has no name");
    if (!take_word(given->name, plugged->name))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME, "a function of %s has no name: " WORD_TEXT,
            plugged->plugin, SUMAC_PLUGIN_NAME_BYTES_MAX);
    if (update_find_by_name(plugged->name) != NULL)
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "%s is a function that every ps has: name that of %s otherwise", plugged->name,
            plugged->plugin);
    if (!take_line(given->rule, plugged->rule, SUMAC_PLUGIN_RULE_BYTES_MAX))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "%s has no rule: 1 to %u printable bytes of UTF-8 that say what it does", plugged->name,
            SUMAC_PLUGIN_RULE_BYTES_MAX);
    return SUMAC_OK;
}

/* With nothing said, a variable of each of its types can be created: what is rounded to float32 is
 * in its range still. */
static enum sumac_status
check_defaults(const struct update_plugged *plugged, struct sumac_error *error)
{
    const struct update_function *const function = &plugged->function;
    struct update_hyperparameters defaults = {0};

    assert(function->dtypes != 0);
    if ((function->dtypes & ~BIT(SUMAC_FLOAT64)) == 0)
        return SUMAC_OK;
    memcpy(defaults.value, function->defaults, sizeof function->defaults);
    return update_hyperparameters_check(function, SUMAC_FLOAT32, &defaults, error);
}

static void run(const struct update_slice *slice);

static const enum update_repeats repeats_of[] = {
    [SUMAC_PLUGIN_REPEATS_SUM] = UPDATE_REPEATS_SUM,
    [SUMAC_PLUGIN_REPEATS_IN_TURN] = UPDATE_REPEATS_IN_TURN,
    [SUMAC_PLUGIN_REPEATS_LAST_WINS] = UPDATE_REPEATS_LAST_WINS,
};

enum sumac_status update_plug(
    uint32_t number, const char *plugin, const struct sumac_plugin_function *given,
    struct update_plugged *plugged, struct sumac_error *error)
{
    assert(number >= UPDATE_PLUGGED_FIRST);
    memset(plugged, 0, sizeof *plugged);
    enum sumac_status status = take_name(plugged, plugin, given, error);
    if (status != SUMAC_OK)
        return status;
    if ((uint32_t)given->repeats >= sizeof repeats_of / sizeof repeats_of[0])
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "%s has the number %u for its repeats, which names nothing", plugged->name,
            (unsigned)given->repeats);
    plugged->loop = given->loop;
    plugged->function = (struct update_function){
        .number = number,
        .name = plugged->name,
        .rule = plugged->rule,
        .counts_steps = given->counts_steps,
        .repeats = repeats_of[given->repeats],
        .own = plugged->own,
        .own_numbers = plugged->numbers,
        .loop = run,
        .plugged = plugged};
    status = take_hyperparameters(plugged, given, error);
    if (status == SUMAC_OK)
        status = take_slots(plugged, given, error);
    if (status == SUMAC_OK)
        status = take_dtypes(plugged, given, error);
    if (status == SUMAC_OK)
        status = check_defaults(plugged, error);
    return status;
}

/* ---- its slices ---- */

#define TILE 512u /* elements, which with their gradient stay in the first-level cache */

static bool is_aligned(const void *pointer, size_t bytes)
{
    return (uintptr_t)pointer % bytes == 0;
}

/* The types of a slice beside one another: the variable's, the gradient's, and that of the loop. */
struct types {
    enum sumac_dtype value, gradient, loop;
};

static void run_loop(const struct update_slice *slice, enum sumac_dtype dtype)
{
    const struct update_plugged *const plugged = slice->function->plugged;
    struct sumac_plugin_tile run = {
        .dtype = dtype,
        .count = slice->count,
        .value_out = slice->value_out,
        .value_in = slice->value_in,
        .gradient = slice->gradient,
        .hyperparameters = slice->scalar,
        .step = slice->step};

    assert(plugged->loop != NULL);
    assert(is_aligned(slice->value_out, dtype_bytes(dtype)));
    assert(is_aligned(slice->value_in, dtype_bytes(dtype)));
    for (uint32_t i = 0; i < slice->function->slot_count; i++) {
        assert(is_aligned(slice->slot_in[i], dtype_bytes(dtype)));
        run.slot_out[i] = slice->slot_out[i];
        run.slot_in[i] = slice->slot_in[i];
    }
    plugged->loop(&run);
}

/* By tiles: what is of another type, or aligned otherwise, goes through one beside it. */
static void run_tiles(const struct update_slice *slice, const struct types *types)
{
    _Alignas(64) uint8_t values[TILE * sizeof(double)], gradients[TILE * sizeof(double)];
    const struct loops *const loops = loops_select();
    const bool widens = types->value != types->loop;
    const size_t gradient_bytes = dtype_bytes(types->gradient);
    struct update_slice tile = *slice;

    assert(dtype_bytes(types->value) <= sizeof(double) && gradient_bytes <= sizeof(double));
    for (uint64_t at = 0; at < slice->count; at += tile.count) {
        const uint64_t left = slice->count - at;
        const uint8_t *const gradient = (const uint8_t *)slice->gradient + at * gradient_bytes;
        loops_aim(slice, at, &tile);
        void *const out = tile.value_out;
        tile.count = left < TILE ? left : TILE;
        tile.gradient = gradients;
        if (types->gradient != types->loop)
            loops->widen[types->gradient]((float *)(void *)gradients, gradient, tile.count);
        else
            memcpy(gradients, gradient, tile.count * gradient_bytes);
        if (widens) {
            loops->widen[types->value]((float *)(void *)values, tile.value_in, tile.count);
            tile.value_in = tile.value_out = values;
        }
        run_loop(&tile, types->loop);
        if (widens)
            loops->narrow[types->value](out, values, tile.count);
    }
}

static void run(const struct update_slice *slice)
{
    const enum sumac_dtype loop = update_contribution_dtype(slice->dtype);
    const struct types types = {
        .value = slice->dtype, .gradient = slice->wide ? loop : slice->dtype, .loop = loop};

    if (types.value == types.loop && is_aligned(slice->gradient, dtype_bytes(types.loop)))
        run_loop(slice, types.loop);
    else
        run_tiles(slice, &types);
}
