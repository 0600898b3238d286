/* SPDX-License-Identifier: Apache-2.0 */
/* names.h -- the numbers on the wire as the words that people write. */
#pragma once

#include "wire.h"

/* The name, or "?" for NULL: that of a number of a later release. */
const char *names_known(const char *name);

/* "MEAN", "ON_READ"; "?" for a number of a later release. Lends constant strings. */
const char *names_aggregation(int aggregation);
const char *names_synchronization(int synchronization);
