/* SPDX-License-Identifier: Apache-2.0 */
/* last_word.h -- hear why a run ends from a ps itself: a stream to one of them is held open, and a
 * ps that exits says on every stream why it does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rpc.h"

struct last_word {
    struct rpc_poller *poller; /* NULL: there was no memory, and nothing is ever heard */
    struct rpc_channel *channel;
    struct rpc_call *call;     /* NULL: none is open */
    struct sumac_error reason; /* why the run ends; status OK: nobody has said so */
};

/* Is this what a ps says as it exits: RUN_ENDED, STATE_LOST, PS_MISSING, TERMINATED,
 * WRONG_CLUSTER? */
bool last_word_is(const struct sumac_error *error);

void last_word_init(struct last_word *word);
void last_word_deinit(struct last_word *word);

/* Hold a stream to the ps at `address` open, unless one is. */
void last_word_attend(struct last_word *word, const char *address);

/* Listen until `until_us` of CLOCK_MONOTONIC, or until the stream is over. True: the word has been
 * said. */
bool last_word_listen(struct last_word *word, uint64_t until_us);
