/* SPDX-License-Identifier: Apache-2.0 */
/* claims.h -- the pool of staging, and the claims of large parts on it.
 *
 * Half of staging is floors, one for each session place. The rest is a pool. A part that takes more
 * than a floor claims room in the pool with its header, before its elements are sent:
 *
 *   WAITS ──► RESERVED ──► HELD ──► gone
 *     ▲          │           │
 *     └──────────┴───────────┘  the part gives way, or its round is out of date
 *
 * docs/protocol/PROTOCOL.md, "Room".
 */
#pragma once

#include "step.h"

/* In each lease, a client sends so many bytes of what it was asked for, or all the rest. */
#define CLAIM_PROGRESS_BYTES 262144u
#define CLAIM_LEASES_MAX 2u       /* the stream ends after one, the session after all of them */
#define CLAIM_OTHERS_MAX 16u      /* large parts that may be sent before one that was asked for */
#define CLAIMS_PER_SESSION_MAX 4u /* that no part holds: a client asks for one after the other */

enum claim_state {
    CLAIM_WAITS,    /* there is no room for it yet */
    CLAIM_RESERVED, /* its room is kept, and the elements are asked for */
    CLAIM_HELD,     /* its part is staged, or is applied */
};

/* Who comes first: a smaller line, then smaller keys. */
struct claim_rank {
    enum claim_line {
        CLAIM_LINE_DUE,      /* a session's next contribution: its step waits for it */
        CLAIM_LINE_ORDINARY, /* by age */
        CLAIM_LINE_LATER,    /* what its client commits after a contribution that is not over */
    } line;
    uint64_t keys[3];
};

struct claim {
    LINKS(struct claim) in_lane;
    struct lane_session *session;
    struct lane_part *part; /* of one that is HELD */
    enum claim_state state;
    uint32_t resend;                   /* number of times that the part gave way */
    uint64_t sequence, previous, step; /* of a contribution; 0: of no step */
    uint64_t started_us;               /* wall clock, as the client stamped it */
    uint64_t room_bytes, used_bytes;
    uint64_t since_us;        /* when its room was kept, or CLAIM_PROGRESS_BYTES of it came, … */
    uint64_t progress_bytes;  /* … and what has come since then */
    uint64_t small_bytes;     /* of small parts that came since its room was kept */
    uint32_t other_count;     /* large parts of its session that became whole since then */
    uint64_t wanted_us;       /* when its part was last to give way, and … */
    uint64_t wanted_since_us; /* … since when it is */
    bool way_asked;           /* its part was asked to give way */
    bool wait_said;           /* its client was told that it waits */
    struct claim_rank rank;
};

/* NULL: not found. */
struct claim *
lane_claim_find(const struct lane *lane, const struct lane_session *session, uint64_t sequence);
/* A claim of that header, without room. NULL: no memory. */
struct claim *
lane_claim_create(struct lane *lane, struct lane_session *session, const wire_part *header);
/* Keep its room. */
void lane_claim_reserve(struct lane *lane, struct claim *claim);
/* Its part took its place. */
void lane_claim_hold(struct lane *lane, struct claim *claim, struct lane_part *part);
/* It is to give way, asked or not: its client may have no stream. */
void lane_claim_want(const struct lane *lane, struct claim *claim);
/* A message had that many bytes of the part's elements. */
void lane_claims_note_elements(struct lane *lane, const struct lane_part *part, uint64_t bytes);
/* Has its client failed to answer for that number of leases? */
bool lane_claim_is_late(const struct lane *lane, const struct claim *claim, uint64_t leases);
/* Its stream ends for that. */
void lane_claim_note_silence(struct claim *claim);
/* It has no room any more, and waits. */
void lane_claim_give_way(struct lane *lane, struct claim *claim, uint32_t resend);
void lane_claim_destroy(struct lane *lane, struct claim *claim);
/* Those that no part holds. */
void lane_claims_drop(struct lane *lane, const struct lane_session *session);
/* How many a session has that no part holds. */
uint32_t lane_claims_count(const struct lane *lane, const struct lane_session *session);
/* A sentence that names the holder of the room it waits for, in the step's arena. */
char *lane_claims_describe(struct lane *lane, const struct claim *claim);
/* The bytes of the pool that the session holds. */
uint64_t lane_claims_bytes(const struct lane *lane, const struct lane_session *session);
/* Set the bytes of the pool that are taken. A part's answer takes room, too, until it is sent. */
void lane_claims_set_bytes(struct lane *lane, uint64_t bytes);
