/* SPDX-License-Identifier: Apache-2.0 */
/* network_state.h -- what network.c and calls.c share: the tables of streams and calls, and the
 * ends they speak to. */
#pragma once

#include "network.h"

#define STREAMS_MAX 4096u
#define CALLS_MAX 4096u

struct network {
    struct stream **streams; /* by number, from 1 on */
    uint32_t stream_count;
    struct call **calls; /* likewise */
    uint32_t call_count;
    uint64_t stalled_until_us[SIM_PROCESSES][SIM_PS_MAX];
};

uint64_t network_stalled_until_us(const struct world *world, uint32_t caller, uint32_t ps);
void calls_process_gone(struct world *world, uint32_t process, const struct sumac_error *why);

/* The caller's end, a client or ps 0. */
void caller_writable(struct world *world, struct stream *stream);
void caller_message(struct world *world, struct stream *stream, struct letter *letter);
void caller_lost(struct world *world, struct stream *stream);
