/* SPDX-License-Identifier: Apache-2.0 */
/* names.c -- what the enumerations of proto/sumac/v1/types.proto are called; update functions and
 * their hyperparameters have their names from lib/update. */
#include "names.h"

#include <stddef.h>

#include "update.h"

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
    const struct update_function *const row = update_find((uint32_t)function);

    return row == NULL ? "?" : row->name;
}

const char *names_schedule(int kind)
{
    const char *const text = update_schedule_name((uint32_t)kind);

    return text == NULL ? "?" : text;
}

const char *names_hyperparameter(int name)
{
    const char *const text = update_hyperparameter_name((uint32_t)name);

    return text == NULL ? "?" : text;
}
