/* SPDX-License-Identifier: Apache-2.0 */
/* sharded.h -- the cases of `sharded`: variables that are split. */
#pragma once

#include "cases.h"

/* Ended by one without a name. */
extern const struct cases_operation sharded_operations[];
