/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c -- the time, and how much of a wait a ps may spend. */
#include "client_state.h"

#include <assert.h>
#include <time.h>

#define ANSWER_MS 1000u /* for an answer to come back */

uint64_t client_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint32_t client_ps_patience_ms(uint32_t timeout_ms)
{
    assert(timeout_ms > 0);
    const uint32_t half_ms = timeout_ms / 2;
    return timeout_ms - (half_ms < ANSWER_MS ? half_ms : ANSWER_MS);
}
