/* SPDX-License-Identifier: Apache-2.0 */
/* sharded.h -- the cases of `sharded`: variables that are split. */
#ifndef CONFORMANCE_SHARDED_H
#define CONFORMANCE_SHARDED_H

#include "cases.h"

/* Ended by one without a name. */
extern const struct cases_operation sharded_operations[];

#endif
