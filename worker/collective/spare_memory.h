/* SPDX-License-Identifier: Apache-2.0 */
/* spare_memory.h -- memory of earlier values, kept for the next ones: a step makes the same results
 * as the one before, and the system takes its time to give new memory.
 *
 *     kept ─┬─ idle    unused blocks, the newest first: at most count_max, bytes_max.
 *           └─ out     blocks that are the buffers of values, which may outlive the strategy.
 *
 * The thread that drops the last reference of a value gives its block back.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "sumac/buffer.h"
#include "sumac/status.h"

struct spare_block;

/* New memory, of so many bytes. */
typedef enum sumac_status
kept_make(void *context, uint64_t bytes, struct sumac_buffer **buffer, struct sumac_error *error);

struct kept_source {
    kept_make *make;
    void *context;
    uint32_t count_max;
    uint64_t bytes_max;
};

struct kept {
    struct kept_source source;
    pthread_mutex_t mutex; /* guards what follows */
    LIST(struct spare_block) idle;
    uint32_t count;
    uint64_t bytes;
    uint64_t
        references; /* of who has opened it, until it is closed, and of each block that is out */
    bool closed;
};

/* NULL: no memory. */
struct kept *kept_open(const struct kept_source *source);
/* What is idle is freed; what values have, with them. NULL is fine. */
void kept_close(struct kept *kept);

/* What is wanted. */
struct kept_wish {
    uint64_t bytes;
    uint64_t room; /* of a block for them, at least as many: all are of some granularity */
    bool is_new;   /* it may not be what another value had */
};

/* A buffer of so many bytes, of any content. Gives  *buffer, with one reference.
 * Fails  RESOURCE_EXHAUSTED; as who makes it. Threads  any. */
enum sumac_status kept_take(
    struct kept *kept, const struct kept_wish *wish, struct sumac_buffer **buffer,
    struct sumac_error *error);
/* What is idle is freed. false: there is nothing. Threads  any. */
bool kept_free_idle(struct kept *kept);
