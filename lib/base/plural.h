/* SPDX-License-Identifier: Apache-2.0 */
/* plural.h -- "1 row", "2 rows": the end of a noun behind a count. */
#pragma once

#include <stdint.h>

/* Lends  a constant string. Threads  any. */
static inline const char *plural(uint64_t count) { return count == 1 ? "" : "s"; }
