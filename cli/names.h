/* SPDX-License-Identifier: Apache-2.0 */
/* names.h -- the numbers on the wire as the words that people write. */
#pragma once

#include "wire.h"

/* "MEAN", "ON_READ", "assign_add", "learning_rate"; "?" for a number of a later release. Lends
 * constant strings. */
const char *names_aggregation(int aggregation);
const char *names_synchronization(int synchronization);
const char *names_function(int function);
const char *names_hyperparameter(int name);
const char *names_schedule(int kind);
