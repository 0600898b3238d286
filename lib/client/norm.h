/* SPDX-License-Identifier: Apache-2.0 */
/* norm.h -- the norm of what is pushed. */
#pragma once

#include "sumac/client.h"

/* √Σ value² over all of them, which are of float types and on the host, in float64. */
double norm_of(const struct sumac_delta *deltas, size_t count);
