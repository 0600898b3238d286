/* SPDX-License-Identifier: Apache-2.0 */
/* names.c -- enumerations are called what their proto calls them. */
#include "names.h"

#include <string.h>

const char *names_known(const char *name) { return name == NULL ? "?" : name; }

static const char *value_name(const ProtobufCEnumDescriptor *type, const char *prefix, int number)
{
    const ProtobufCEnumValue *const value = protobuf_c_enum_descriptor_get_value(type, number);

    return names_known(value == NULL ? NULL : value->name + strlen(prefix));
}

const char *names_aggregation(int aggregation)
{
    return value_name(&sumac__v1__aggregation__descriptor, "AGGREGATION_", aggregation);
}

const char *names_synchronization(int synchronization)
{
    return value_name(&sumac__v1__synchronization__descriptor, "SYNCHRONIZATION_", synchronization);
}
