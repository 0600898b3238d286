/* SPDX-License-Identifier: Apache-2.0 */
/* split.h -- find the payload field among the spans of a received message, without copying
 * anything.
 *
 * A message's bytes are numbered from 0 over all its spans:
 *
 *     0 ...... field | tag and length | payload_begin ....... payload_end | ...... total
 *     <-- header --> |                 <------ stays where it is ------>  | <- header ->
 */
#pragma once

#include <stdbool.h>

#include "memory.h"

struct wire_split {
    uint64_t total;
    uint64_t field; /* where the payload field's tag begins; total when there is none */
    uint64_t payload_begin;
    uint64_t payload_end;
};

/* Walk the top-level fields. Returns NULL, or what is wrong as the end of a sentence. */
const char *split_find(const struct span *spans, size_t span_count, struct wire_split *split);

/* The bytes [begin, end) of the message, contiguous: in place when they lie in one span, else
 * copied into `arena`. NULL: the arena has no more. */
const uint8_t *split_join(
    const struct span *spans, size_t span_count, const struct wire_split *split,
    struct arena *arena);

/* The payload's spans, in `arena`. False: the arena has no more. */
bool split_payload(
    const struct span *spans, size_t span_count, const struct wire_split *split,
    struct arena *arena, const struct span **payload, size_t *payload_spans);
