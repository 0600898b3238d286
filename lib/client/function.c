/* SPDX-License-Identifier: Apache-2.0 */
/* function.c -- update functions and hyperparameters by name.
 *
 * The names are those of the wire's enumerations, in small letters and without their type's prefix:
 * a new one in proto/ is enough.
 */
#include "client_state.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "hyperparameters.h"
#include "text.h"

#define FUNCTION_PREFIX "UPDATE_FUNCTION_"
#define HYPERPARAMETER_PREFIX "HYPERPARAMETER_NAME_"

static bool is_named(const char *wire, const char *name)
{
    while (*wire != '\0' && tolower((unsigned char)*wire) == *name) {
        wire++;
        name++;
    }
    return *wire == '\0' && *name == '\0';
}

/* The number of that name; 0: none. */
static int find(const ProtobufCEnumDescriptor *names, const char *prefix, const char *name)
{
    assert(name != NULL);
    for (unsigned i = 0; i < names->n_values; i++)
        if (names->values[i].value != 0 && is_named(names->values[i].name + strlen(prefix), name))
            return names->values[i].value;
    return 0;
}

/* "assign, assign_add, …": those whose number has its bit in `wanted`. */
static const char *list(
    const ProtobufCEnumDescriptor *names, const char *prefix, uint32_t wanted, char *text,
    size_t text_bytes)
{
    assert(text_bytes > 0);
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < names->n_values; i++) {
        if (names->values[i].value == 0 || (wanted >> names->values[i].value & 1u) == 0)
            continue;
        const char *name = names->values[i].name + strlen(prefix);
        used += text_print(text + used, text_bytes - used, "%s%s", used == 0 ? "" : ", ", name);
    }
    for (char *at = text; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    return text;
}

/* The number of an update function, not 0 when the status is OK. */
static enum sumac_status
find_function(const struct sumac_function *function, int *number, struct sumac_error *error)
{
    char known[256];
    const ProtobufCEnumDescriptor *names = &sumac__v1__update_function__descriptor;
    *number = function->name == NULL ? 0 : find(names, FUNCTION_PREFIX, function->name);
    if (*number == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNKNOWN_FUNCTION,
            function->name == NULL ? "an update function is given without its name%s; there are %s"
                                   : "there is no update function %.64s; there are %s",
            function->name == NULL ? "" : function->name,
            list(names, FUNCTION_PREFIX, UINT32_MAX, known, sizeof(known)));
    const uint32_t count = function->hyperparameter_count;
    if (count > 0 && function->hyperparameters == NULL)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_HYPERPARAMETER,
            "%s: hyperparameter_count is %" PRIu32 ", and hyperparameters is NULL", function->name,
            count);
    if (count > sumac__v1__hyperparameter_name__descriptor.n_values)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_HYPERPARAMETER,
            "%s is given %" PRIu32 " hyperparameters, and none has more than %u", function->name,
            count, sumac__v1__hyperparameter_name__descriptor.n_values);
    return SUMAC_OK;
}

/* The number of a hyperparameter that the function has. */
static enum sumac_status find_hyperparameter(
    int function, const char *of, const char *name, int *number, struct sumac_error *error)
{
    char known[256];
    assert(function != 0); /* find_function has found it */
    const uint32_t own = wire_hyperparameters_of(function);
    *number = name == NULL
                  ? 0
                  : find(&sumac__v1__hyperparameter_name__descriptor, HYPERPARAMETER_PREFIX, name);
    assert(*number >= 0 && *number < 32); /* a bit of `own` */
    if (*number != 0 && (own >> *number & 1u) != 0)
        return SUMAC_OK;
    list(
        &sumac__v1__hyperparameter_name__descriptor, HYPERPARAMETER_PREFIX, own, known,
        sizeof(known));
    if (name == NULL)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_HYPERPARAMETER,
            "a hyperparameter of %s is given without its name; it has %s", of,
            own == 0 ? "none" : known);
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_HYPERPARAMETER,
        "%s has no hyperparameter %.64s; it has %s", of, name, own == 0 ? "none" : known);
}

enum sumac_status function_encode(
    const struct sumac_function *function, struct arena *arena, wire_function **wire,
    struct sumac_error *error)
{
    int number = 0;
    enum sumac_status status = find_function(function, &number, error);
    if (status != SUMAC_OK)
        return status;
    const size_t count = function->hyperparameter_count;
    wire_function *made = arena_take(arena, sizeof(*made));
    wire_hyperparameter *values = arena_take(arena, (count + 1) * sizeof(*values));
    wire_hyperparameter **pointers = arena_take(arena, (count + 1) * sizeof(*pointers));
    if (made == NULL || values == NULL || pointers == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for a function");
    for (size_t i = 0; i < count; i++) {
        const struct sumac_hyperparameter *given = &function->hyperparameters[i];
        int name = 0;
        status = find_hyperparameter(number, function->name, given->name, &name, error);
        if (status != SUMAC_OK)
            return status;
        values[i] = (wire_hyperparameter)WIRE_HYPERPARAMETER_INIT;
        values[i].name = (Sumac__V1__HyperparameterName)name;
        values[i].value = given->value;
        pointers[i] = &values[i];
    }
    *made = (wire_function)WIRE_FUNCTION_INIT;
    made->function = (Sumac__V1__UpdateFunction)number;
    made->n_hyperparameters = count;
    made->hyperparameters = pointers;
    *wire = made;
    return SUMAC_OK;
}
