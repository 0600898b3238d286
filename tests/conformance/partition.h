/* SPDX-License-Identifier: Apache-2.0 */
/* partition.h -- the cases of `partition`, `placement` and `row_lookup`. */
#pragma once

#include "cases.h"

/* Ended by one without a name. */
extern const struct cases_operation partition_operations[];
