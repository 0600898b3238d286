/* SPDX-License-Identifier: Apache-2.0 */
/* names.c -- commands call each value of an enumeration what types.proto calls it. */

#include "unit.h"
#include "names.h"
#include "wire.h"

static void assert_names(
    const ProtobufCEnumDescriptor *type, const char *prefix, const char *(*name_of)(int number))
{
    for (unsigned i = 0; i < type->n_values; i++)
        assert_string_equal(name_of(type->values[i].value), type->values[i].name + strlen(prefix));
    assert_string_equal(name_of((int)type->n_values), "?");
    assert_string_equal(name_of(-1), "?");
}

TEST(each_value_has_its_name_in_the_proto)
{
    assert_names(&sumac__v1__aggregation__descriptor, "AGGREGATION_", names_aggregation);
    assert_names(
        &sumac__v1__synchronization__descriptor, "SYNCHRONIZATION_", names_synchronization);
}
