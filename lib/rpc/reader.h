/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h -- a thread that reads connections, and how long gRPC has kept it. Inside lib/rpc only.
 *
 * gRPC 1.51 reads on for as long as a peer's frames come faster than it can work them off: headers
 * without an end, streams that are opened and reset at once. Meanwhile its thread does nothing
 * else. So it is noted when the thread goes into gRPC and comes back, and another thread asks how
 * much it has worked there since. What an honest peer sends ends by flow control, long before.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct reader {
    atomic_uint_fast64_t crossings; /* into gRPC and back; odd: within */
    clockid_t cpu;                  /* the thread's processor time */
    /* Of who asks. */
    uint64_t seen, cpu_us_then;
};

static inline void reader_cross(struct reader *reader)
{
    const uint_fast64_t crossings = atomic_load_explicit(&reader->crossings, memory_order_relaxed);

    atomic_store_explicit(&reader->crossings, crossings + 1, memory_order_relaxed);
}

static inline uint64_t reader_cpu_us(const struct reader *reader)
{
    struct timespec used;

    if (clock_gettime(reader->cpu, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000u + (uint64_t)used.tv_nsec / 1000u;
}

/* Has it worked for longer than that within one visit to gRPC? To be asked again and again, by one
 * thread. */
static inline bool reader_is_held(struct reader *reader, uint64_t worked_us_max)
{
    const uint64_t crossings = atomic_load_explicit(&reader->crossings, memory_order_relaxed);
    const uint64_t cpu_us = reader_cpu_us(reader);

    if (crossings % 2 == 0 || crossings != reader->seen) {
        reader->seen = crossings;
        reader->cpu_us_then = cpu_us;
        return false;
    }
    return cpu_us - reader->cpu_us_then > worked_us_max;
}
