/* SPDX-License-Identifier: Apache-2.0 */
/* letter.c -- messages as bytes: packed as on the wire, and unpacked from a few spans, as gRPC's
 * slices are. */
#include "network.h"

#include <string.h>

#include "checker.h"

#define SPANS_MAX 3u
#define SPOILT 0xdd

struct letter *letter_make(
    struct world *world, const wire_message *message, const struct cargo *cargo,
    uint32_t cargo_count)
{
    uint64_t payload_bytes = 0;

    for (uint32_t i = 0; i < cargo_count; i++)
        payload_bytes += cargo[i].bytes.bytes;
    const size_t head_bytes = wire_packed_bytes(message, payload_bytes);
    struct letter *letter = world_take(world, sizeof *letter);
    letter->type = message->descriptor;
    letter->size = head_bytes + payload_bytes;
    letter->bytes = world_take(world, letter->size);
    wire_pack(message, payload_bytes, letter->bytes);
    uint8_t *at = letter->bytes + head_bytes;
    for (uint32_t i = 0; i < cargo_count; i++) {
        memcpy(at, cargo[i].bytes.data, cargo[i].bytes.bytes);
        at += cargo[i].bytes.bytes;
    }
    return letter;
}

const struct wire_received *letter_open(struct world *world, const struct letter *letter)
{
    struct span *spans = arena_take_zeroed(&world->scratch, SPANS_MAX * sizeof *spans);
    struct wire_received *received = arena_take_zeroed(&world->scratch, sizeof *received);
    uint32_t count = 0;
    size_t from = 0;

    while (from < letter->size && count < SPANS_MAX) {
        size_t bytes = letter->size - from;
        if (count + 1 < SPANS_MAX)
            bytes = 1 + world_below(world, (uint32_t)bytes);
        spans[count++] = (struct span){.data = letter->bytes + from, .bytes = bytes};
        from += bytes;
    }
    struct sumac_error error;
    if (wire_unpack(letter->type, spans, count, &world->scratch, received, &error) != SUMAC_OK) {
        checker_violation(world, "a message can't be unpacked");
        trace_say(world, "%s: %s", letter->type->name, error.text);
        return NULL;
    }
    return received;
}

void letter_spoil(struct letter *letter) { memset(letter->bytes, SPOILT, letter->size); }
