/* SPDX-License-Identifier: Apache-2.0 */
/* room.h -- what a part takes of its session's grant of staging, counted alike by a ps and by its
 * clients.
 *
 * A ps keeps more of a part than its payload: what its pieces say, what its functions are, the
 * answers to it. A client that counts every part it has sent and not heard the end of never exceeds
 * its grant; what a ps counts is never more than what its client does. docs/protocol/PROTOCOL.md,
 * "Room".
 */
#pragma once

#include <stdint.h>

#define WIRE_PART_COST_BYTES 1024u    /* each part, with its answers */
#define WIRE_PIECE_COST_BYTES 192u    /* each of its pieces */
#define WIRE_FUNCTION_COST_BYTES 256u /* each of its functions */
#define WIRE_ROW_COST_BYTES 9u        /* each row that is pushed by index: its place in order */
#define WIRE_LIST_COST_ROWS 3u        /* each list of them: room for one that is summed */
#define WIRE_ROUNDED_BYTES                                                                         \
    1048576u /* memory comes in sizes: of the last so many bytes an eighth more is taken */

/* In words, for those who are told that they have taken too much. */
#define WIRE_COST_TEXT                                                                             \
    "a part takes its bytes, an eighth more of the last 1048576 of them, and 1024; each piece of " \
    "it 192, each function 256; a row by index 9 and an eighth more"

static inline uint64_t wire_part_cost(uint64_t bytes, uint64_t pieces, uint64_t functions)
{
    const uint64_t rounded = bytes < WIRE_ROUNDED_BYTES ? bytes : WIRE_ROUNDED_BYTES;
    const uint64_t cost = WIRE_PART_COST_BYTES + rounded / 8 + pieces * WIRE_PIECE_COST_BYTES +
                          functions * WIRE_FUNCTION_COST_BYTES;

    return bytes > UINT64_MAX - cost ? UINT64_MAX : bytes + cost;
}

/* What rows by index, which have so many bytes each on the wire, take beside that; and each list of
 * them. */
static inline uint64_t wire_rows_cost(uint64_t rows, uint64_t row_bytes)
{
    return rows * WIRE_ROW_COST_BYTES + rows * row_bytes / 8;
}
static inline uint64_t wire_list_cost(uint64_t row_bytes)
{
    return WIRE_LIST_COST_ROWS * row_bytes;
}
