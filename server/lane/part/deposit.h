/* SPDX-License-Identifier: Apache-2.0 */
/* deposit.h -- what a part contributes to a round of a rendezvous: from the part's header, which
 * takes its ticket, to its turn, when the round gets its bytes, to the commit that says that its
 * client wants no more of the round.
 *
 *   part ── deposit ── ticket          until its turn
 *   session ── deposit ── round        until it has heard of it
 *   round ── place ── deposit          until all have
 *
 * docs/protocol/PROTOCOL.md, "Rendezvous"; rounds.h has the rounds themselves.
 */
#ifndef LANE_DEPOSIT_H
#define LANE_DEPOSIT_H

#include "part.h"
#include "rounds.h"

struct deposit {
    LINKS(struct deposit) in_session; /* by sequence, while it waits; or among those put aside */
    struct round *round;              /* of one whose turn has not come, its ticket */
    uint32_t place;
    uint64_t sequence;
    LIST(struct chunk) chunks;
    uint64_t index_bytes; /* those before its values */
    uint64_t room_bytes;
    uint32_t holds;   /* of bytes that are lent */
    bool contributes; /* a round has it */
    bool waits;       /* its session has not said that it wants no more of the round */
};

/* With the part room's own; no memory is taken yet. `end` ends an unwanted round (rounds.h). */
void lane_deposits_init(struct lane *lane, void (*end)(void *lane, struct round *round));
/* No session has any, and no pull reads one. */
void lane_deposits_deinit(struct lane *lane);

/* False: it is no task that takes part in rendezvous. */
bool lane_session_task(const struct lane_session *session, struct meeting_task *task);

/* The header of a part that is a contribution: what it says, and its ticket. Else it is refused. */
void lane_deposit_begin(struct lane *lane, struct lane_part *part, const wire_part *header);
/* A piece of it, and its bytes are used. */
void lane_deposit_take(
    struct lane *lane, struct lane_part *part, const wire_piece *piece, struct payload *payload);
/* It has its turn: the part is empty from here on. The round, and what rounds_come says. */
enum rounds_came lane_deposit_arrive(
    struct lane *lane, struct lane_part *part, struct round **round, struct sumac_error *error);

/* Forget the contributions whose rounds the client wants no more, by met_through and waiting. */
void lane_deposits_met(struct lane *lane, struct lane_session *session, const wire_commit *given);
/* Forget all that are here up to this push, once more, or because the session is over. */
void lane_deposits_heard(struct lane *lane, struct lane_session *session, uint64_t through);

/* The round stays while it is used. */
void lane_round_use(struct lane *lane, struct round *round);
void lane_round_let_go(struct lane *lane, struct round *round);
/* Is one being combined, or read? */
bool lane_rounds_are_used(const struct lane *lane);
/* Bytes of it are lent, and come back. */
void lane_deposit_hold(struct deposit *deposit);
void lane_deposit_released(struct lane *lane, struct deposit *deposit);

/* Byte `at` of what it has contributed, and how many lie together from there on. */
uint8_t *lane_deposit_bytes(const struct deposit *deposit, uint64_t at, uint64_t *together_bytes);
/* How far in its chunk that byte lies. */
uint64_t lane_deposit_offset(const struct deposit *deposit, uint64_t at);

#endif
