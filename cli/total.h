/* SPDX-License-Identifier: Apache-2.0 */
/* total.h -- sums and products of numbers that a ps says. They saturate at UINT64_MAX. */
#pragma once

#include <stdint.h>

static inline void total_add(uint64_t *total, uint64_t more)
{
    *total = more > UINT64_MAX - *total ? UINT64_MAX : *total + more;
}

static inline void total_multiply(uint64_t *total, uint64_t factor)
{
    *total = factor > 0 && *total > UINT64_MAX / factor ? UINT64_MAX : *total * factor;
}
