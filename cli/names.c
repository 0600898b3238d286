/* SPDX-License-Identifier: Apache-2.0 */
/* names.c -- one table per enumeration of proto/sumac/v1/types.proto. */
#include "names.h"

#include <stddef.h>

#define NAMED(names, number)                                                                       \
    ((number) >= 0 && (size_t)(number) < sizeof(names) / sizeof(names)[0] &&                       \
             (names)[(number)] != NULL                                                             \
         ? (names)[(number)]                                                                       \
         : "?")

const char *names_aggregation(int aggregation)
{
    static const char *const names[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
    return NAMED(names, aggregation);
}

const char *names_synchronization(int synchronization)
{
    static const char *const names[] = {"AUTO", "NONE", "ON_WRITE", "ON_READ"};
    return NAMED(names, synchronization);
}

const char *names_function(int function)
{
    static const char *const names[] = {NULL,  "assign",   "assign_add", "assign_sub",
                                        "sgd", "momentum", "adam"};
    return NAMED(names, function);
}

const char *names_hyperparameter(int name)
{
    static const char *const names[] = {NULL,     "learning_rate", "momentum", "nesterov",
                                        "beta_1", "beta_2",        "epsilon"};
    return NAMED(names, name);
}
