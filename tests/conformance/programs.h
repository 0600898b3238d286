/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h -- the cases of `program`: several calls, each of which may take what an earlier one
 * gave. */
#pragma once

#include "cases.h"

/* Ended by one without a name. */
extern const struct cases_operation program_operations[];
