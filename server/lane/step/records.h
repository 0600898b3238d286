/* SPDX-License-Identifier: Apache-2.0 */
/* records.h -- what a lane writes down, and what one that starts again reads.
 *
 * A record is made where its change is made, and what reveals the change waits until it is on disk
 * (lane->recorded). Its body is a head, a message of the protocol – the one by which ps 0 or a
 * client asked for the change – and of a part the bytes of its pieces, where they lie:
 *
 *   | kind 1 | zeros 3 | message bytes 4 | payload bytes 8 | first 8 | second 8 | session id 16 |
 * message | payload |
 *
 * Numbers are little-endian. One after the other the records make a lane what it was (replay.c),
 * but for what belongs to connections, clocks and statistics: streams, pulls, answers, parts that
 * had not come whole, who was heard when, counts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "wire.h"

#define RECORD_HEAD_BYTES 48u

/* A row of replay.c each. Its message, and what `first` and `second` are. */
enum record_kind {
    RECORD_HELLO = 1,   /* PeerHello of ps 0; its number */
    RECORD_MEMBERSHIP,  /* –; the epoch, the number of members that begin with step 1 */
    RECORD_OPEN,        /* OpenSession, with the clock that it starts at */
    RECORD_CLOSE,       /* CloseSession */
    RECORD_DECIDE,      /* DecideSession */
    RECORD_DROPPED,     /* –; beyond which its parts are gone */
    RECORD_ADD,         /* Variable */
    RECORD_PUBLISH,     /* –; the variable */
    RECORD_DELETE,      /* –; the variable */
    RECORD_PART,        /* Part, whole, and its bytes; it is staged */
    RECORD_REFUSED,     /* Refused; what the part follows, its synchronous step */
    RECORD_COMMIT,      /* Commit, as far as it was taken */
    RECORD_ACKED,       /* –; acked_through */
    RECORD_APPLIED,     /* –; the part's sequence, the position (0: it was passed over) */
    RECORD_FIRST_STEP,  /* FirstStep */
    RECORD_VOIDED,      /* Refused: of a contribution that is staged, when it had its turn */
    RECORD_STEP,        /* TakeStep: it is over; –, the position (0: it was made of nothing) */
    RECORD_TAKE,        /* TakeStep, as ps 0 has ordered it */
    RECORD_DEFINE,      /* DefineFunction */
    RECORD_CONTRIBUTED, /* –; the sequence of a contribution to a collective */
    RECORD_COLLECTIVE,  /* CollectiveEnd: of a round, as the ps decided it */
    RECORD_WITHDRAWN,   /* –; the sequence of a part that gave way */
    RECORD_KINDS,
};

struct record {
    enum record_kind kind;
    const uint8_t *session_id; /* 16 bytes; NULL: of no session */
    uint64_t first, second;
    const wire_message *message; /* NULL: none */
    const struct span *payload;  /* the bytes of the pieces */
    size_t payload_spans;
    uint64_t payload_bytes;
};
