/* SPDX-License-Identifier: Apache-2.0 */
/* records.c -- the journal's records: what was staged, committed, applied, opened and closed, in
 * the order it happened.
 *
 *   | kind 1 | zeros 7 | sequence 8, little-endian | session id 16 |
 *
 * An answer, a report, or a pull that reveals what a record says waits in its stream until the
 * record is on disk. Without records nothing waits: the last one is 0, and so is what is on disk.
 */
#include "operation_state.h"

#include <assert.h>
#include <string.h>

#define RECORD_BYTES 32u

uint64_t lane_record_write(
    struct lane *lane, enum record_kind kind, const struct lane_session *session, uint64_t sequence)
{
    if (!lane->config.records)
        return 0;
    uint8_t *bytes = arena_take_zeroed(&lane->arena, RECORD_BYTES);
    if (bytes == NULL)
        return 0;
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_RECORD);
    bytes[0] = (uint8_t)kind;
    for (uint32_t i = 0; i < 8; i++)
        bytes[8 + i] = (uint8_t)(sequence >> 8 * i);
    if (session != NULL)
        memcpy(bytes + 16, session->id, sizeof session->id);
    effect->record = ++lane->last_record;
    effect->bytes = (struct span){.data = bytes, .bytes = RECORD_BYTES};
    assert(effect->record > 0);
    return effect->record;
}
