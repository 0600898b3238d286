/* SPDX-License-Identifier: Apache-2.0 */
/* names.c -- enumerations are called what their proto calls them; update functions and their
 * hyperparameters have their names from lib/update. */
#include "names.h"

#include <string.h>

#include "update.h"

static const char *known(const char *name) { return name == NULL ? "?" : name; }

static const char *value_name(const ProtobufCEnumDescriptor *type, const char *prefix, int number)
{
    const ProtobufCEnumValue *const value = protobuf_c_enum_descriptor_get_value(type, number);

    return known(value == NULL ? NULL : value->name + strlen(prefix));
}

const char *names_aggregation(int aggregation)
{
    return value_name(&sumac__v1__aggregation__descriptor, "AGGREGATION_", aggregation);
}

const char *names_synchronization(int synchronization)
{
    return value_name(&sumac__v1__synchronization__descriptor, "SYNCHRONIZATION_", synchronization);
}

const char *names_function(int function)
{
    const struct update_function *const row = update_find((uint32_t)function);

    return known(row == NULL ? NULL : row->name);
}

const char *names_schedule(int kind) { return known(update_schedule_name((uint32_t)kind)); }

const char *names_hyperparameter(int name)
{
    return known(update_hyperparameter_name((uint32_t)name));
}
