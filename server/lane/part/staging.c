/* SPDX-License-Identifier: Apache-2.0 */
/* staging.c -- the bytes of a part's pieces, copied into chunks while they are hot, floats checked
 * in the same pass.
 *
 * A run begins aligned to 16 bytes, the pool's chunks hold whole multiples of 64, and those of
 * other owners whole elements, so an element never lies in two chunks. On the wire it may lie in
 * two spans: its bytes are put together here, and then it is checked.
 */
#include "part_state.h"

bool lane_staging_add(struct lane *lane, struct lane_part *part, const struct chunk *given)
{
    assert(given->owner != NULL);
    assert(given->used <= given->bytes);
    assert((uintptr_t)given->data % RUN_ALIGNMENT_BYTES == 0);
    assert(given->used <= part->bytes - part->received);
    struct chunk *chunk = pool_take(&lane->parts->chunks);
    if (chunk == NULL)
        return false;
    *chunk = *given;
    LIST_APPEND(&part->chunks, chunk, in_part);
    part->received += given->used;
    return true;
}

/* A new chunk of the pool's at the end, for `bytes` or as much as a chunk holds; for one that is
 * large, if `unit` bytes are to lie together. */
static bool add_chunk(struct lane *lane, struct lane_part *part, uint64_t bytes, uint64_t unit)
{
    assert(part->received <= part->bytes);
    assert(bytes > 0);
    uint64_t wanted = part->bytes - part->received; /* what is still to come, if it is said right */
    if (wanted < bytes)
        wanted = bytes;
    if (wanted > STAGING_CHUNK_BYTES)
        wanted = STAGING_CHUNK_BYTES;
    if (unit > STAGING_CHUNK_BYTES / 8) /* less than an eighth of the others is left over */
        wanted = unit;
    const uint32_t rounded = (uint32_t)sized_pool_bytes(wanted);
    const struct chunk chunk = {
        .owner = &lane->parts->pool_owner,
        .data = sized_pool_take(&lane->bytes, rounded),
        .bytes = rounded};
    if (chunk.data == NULL)
        return false;
    if (lane_staging_add(lane, part, &chunk))
        return true;
    sized_pool_give(&lane->bytes, chunk.data, rounded);
    return false;
}

bool lane_staging_align(struct lane *lane, struct lane_part *part, uint64_t bytes, uint64_t unit)
{
    struct chunk *chunk = part->chunks.last;

    assert(bytes > 0);
    if (chunk != NULL) {
        chunk->used = (chunk->used + RUN_ALIGNMENT_BYTES - 1) & ~(RUN_ALIGNMENT_BYTES - 1);
        if (chunk->used < chunk->bytes && chunk->bytes - chunk->used >= unit)
            return true;
        if (chunk->used > chunk->bytes)
            chunk->used = chunk->bytes;
    }
    return add_chunk(lane, part, bytes, unit);
}

/* The next bytes of the payload that lie together, at most `wanted`; of elements as many as are
 * whole, or, when none is, what there is of one. */
static size_t
next_bytes(struct payload *payload, uint64_t wanted, size_t element, const uint8_t **data)
{
    assert(payload->next < payload->count);
    const struct span *span = &payload->spans[payload->next];
    assert(payload->used <= span->bytes);
    const size_t left = span->bytes - payload->used;
    size_t bytes = left < wanted ? left : (size_t)wanted;

    if (bytes >= element)
        bytes -= bytes % element;
    *data = span->data + payload->used;
    payload->used += bytes;
    while (payload->next < payload->count && payload->used == payload->spans[payload->next].bytes) {
        payload->next++;
        payload->used = 0;
    }
    return bytes;
}

/* Copy to one chunk; `bytes` are whole elements, and there is room. */
static bool copy_to_chunk(
    struct lane_part *part, struct payload *payload, uint64_t bytes, enum sumac_dtype dtype)
{
    const size_t element = dtype_bytes(dtype);
    struct chunk *chunk = part->chunks.last;
    uint8_t *out = chunk->data + chunk->used;
    size_t torn = 0; /* bytes of an element that began in the span before */
    bool finite = true;

    assert(bytes <= chunk->bytes - chunk->used);
    chunk->used += (uint32_t)bytes;
    while (bytes > 0) {
        const uint8_t *in;
        const size_t count = next_bytes(payload, torn > 0 ? element - torn : bytes, element, &in);
        if (torn == 0 && count >= element) {
            finite = update_copy_finite(dtype, out, in, count) && finite;
        } else {
            memcpy(out, in, count);
            torn += count;
            if (torn == element) {
                finite = update_all_finite(dtype, out + count - element, element) && finite;
                torn = 0;
            }
        }
        if (part->checksum_state != NULL)
            lane_checksum_update(part->checksum_state, out, count);
        out += count;
        bytes -= count;
    }
    return finite;
}

bool lane_staging_copy(
    struct lane *lane, struct lane_part *part, struct payload *payload, uint64_t bytes,
    const struct staged *staged, bool *finite)
{
    const uint64_t unit = staged->unit;

    assert(part->state == PART_RECEIVING);
    assert(unit > 0);
    while (bytes > 0) {
        struct chunk *chunk = part->chunks.last;
        if (chunk == NULL || chunk->bytes - chunk->used < unit) {
            if (!add_chunk(lane, part, bytes, unit)) {
                lane_staging_skip(payload, bytes);
                return lane_part_refuse_memory(lane, part);
            }
            chunk = part->chunks.last;
        }
        const uint64_t room = chunk->bytes - chunk->used;
        uint64_t count = bytes;
        if (room < bytes)
            count = unit == 1 ? room : room / unit * unit;
        if (!copy_to_chunk(part, payload, count, staged->dtype))
            *finite = false;
        part->received += count;
        bytes -= count;
    }
    return true;
}

void lane_staging_skip(struct payload *payload, uint64_t bytes)
{
    while (bytes > 0) {
        const uint8_t *data;
        bytes -= next_bytes(payload, bytes, 1, &data);
    }
}
