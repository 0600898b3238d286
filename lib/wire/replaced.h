/* SPDX-License-Identifier: Apache-2.0 */
/* replaced.h -- whose place a join has taken: kept by ps 0, told to the client that joins. */
#pragma once

#include "run_identity.h"
#include "wire.h"

#define REPLACED_TEXT_BYTES 256u

struct replaced {
    uint64_t attempt; /* 0: the join has taken no place */
    char host[RUN_HOST_BYTES_MAX + 1];
    uint32_t pid; /* 0: not said */
    uint32_t silent_ms;
    bool alive;
};

/* NULL: no place. */
struct replaced wire_replaced_of(const wire_replaced *wire);
/* Borrows  replaced->host, as long as *wire is used. */
void wire_replaced_fill(const struct replaced *replaced, wire_replaced *wire);

/* "; takes the place of process 12 on h1, which was alive 0.4 s ago; if …", to be put after "joined
 * as worker 0". A process that is started again takes the place of one that is dead: there is
 * nothing to do then, and only the process is named. "": the join has taken no place.
 *
 * Lends  `text`, of REPLACED_TEXT_BYTES.
 */
const char *wire_replaced_print(const struct replaced *replaced, char *text);
