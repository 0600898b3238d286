/* SPDX-License-Identifier: Apache-2.0 */
/* session_asks.h -- the room that a session asks a ps for on one push stream, and what the ps said.
 *
 * A large part's elements come only after the ps asked for them, and a part that gives way names a
 * later round.
 */
#pragma once

#include "session.h"

#include "fuzz.h"

#define ASKS_MAX 64u

struct asks {
    uint64_t waiting[ASKS_MAX], said[ASKS_MAX]; /* sequences: without room; of a resend */
    uint32_t waiting_count, answered, said_count;
};

static bool asks_is_ask(const wire_part *part)
{
    return part->room_bytes > 0 && part->first && part->last && part->n_pieces == 0;
}

static void asks_add(struct asks *asks, uint64_t sequence)
{
    if (asks->waiting_count < ASKS_MAX)
        asks->waiting[asks->waiting_count++] = sequence;
}

static bool asks_was_said(const struct asks *asks, uint64_t sequence)
{
    for (uint32_t i = 0; i < asks->said_count; i++) {
        if (asks->said[i] == sequence)
            return true;
    }
    return asks->said_count == ASKS_MAX;
}

static void asks_note(struct asks *asks, const wire_push_request *request)
{
    for (size_t i = 0; i < request->n_parts; i++) {
        const wire_part *part = request->parts[i];
        if (asks_is_ask(part))
            asks_add(asks, part->sequence);
        else
            MUST(part->room_bytes == 0 || asks_was_said(asks, part->sequence));
    }
    for (size_t i = 0; i < request->n_withdraws; i++) {
        MUST(request->withdraws[i]->resend > 0);
        asks_add(asks, request->withdraws[i]->sequence);
    }
}

/* The next part that the ps asks the elements of: the first that waits, or this one. */
static uint64_t asks_resend(struct asks *asks, uint64_t other)
{
    const uint64_t sequence =
        asks->answered < asks->waiting_count ? asks->waiting[asks->answered++] : other;

    if (asks->said_count < ASKS_MAX)
        asks->said[asks->said_count++] = sequence;
    return sequence;
}
