/* SPDX-License-Identifier: Apache-2.0 */
/* contribution.h -- what a part contributes to a round of a collective. The part's header reserves
 * a round. At the part's turn the round gets its bytes. It ends with the commit that says that its
 * client wants no more of the round.
 *
 *   part ── contribution ── reserved round   until its turn.
 *   session ── contribution ── round         until its client wants no more of it.
 *   round ── place ── contribution           until no client wants more of it.
 *
 * docs/protocol/PROTOCOL.md, "Collectives"; rounds.h has the rounds themselves.
 */
#pragma once

#include "part.h"
#include "rounds.h"

struct contribution {
    LINKS(struct contribution)
    in_session;          /* by sequence, while it waits; or among those put aside */
    struct round *round; /* its own; before its turn, the reserved one */
    uint32_t place;
    uint64_t sequence;
    struct chunks chunks;
    uint64_t index_bytes; /* those before its values */
    uint64_t room_bytes;
    uint32_t holds;   /* of bytes that are lent */
    bool contributes; /* a round has it */
    bool waits;       /* its session wants more of the round */
};

/* With the part room's own; no memory is taken yet. `end` ends an unwanted round (rounds.h). */
void lane_contributions_init(struct lane *lane, void (*end)(void *lane, struct round *round));
/* No session has any, and no pull reads one. */
void lane_contributions_deinit(struct lane *lane);

/* False: it is no task that takes part in collectives. */
bool lane_session_task(const struct lane_session *session, struct collective_task *task);

/* The header of a part that is a contribution: what it says, and its reserved round. Else it is
 * refused. */
bool lane_contribution_begin(struct lane *lane, struct lane_part *part, const wire_part *header);
/* A piece of it, and its bytes are used. */
void lane_contribution_take(
    struct lane *lane, struct lane_part *part, const wire_piece *piece, struct payload *payload);
/* It has its turn: the part is empty from here on. The round, and what rounds_come says. */
enum rounds_came lane_contribution_arrive(
    struct lane *lane, struct lane_part *part, struct round **round, struct sumac_error *error);

/* Forget the contributions whose rounds the client wants no more, by collectives_through and
 * waiting. */
void lane_contributions_end(
    struct lane *lane, struct lane_session *session, const wire_commit *given);
/* Forget all that are here up to this push, once more, or because the session is over. */
void lane_contributions_heard(struct lane *lane, struct lane_session *session, uint64_t through);

/* The round stays while it is used. */
void lane_round_use(struct lane *lane, struct round *round);
void lane_round_let_go(struct lane *lane, struct round *round);
/* Is one being combined, or read? */
bool lane_rounds_are_used(const struct lane *lane);
/* Bytes of it are lent, and come back. */
void lane_contribution_hold(struct contribution *contribution);
void lane_contribution_released(struct lane *lane, struct contribution *contribution);

/* Byte `at` of the contribution, and the number of bytes that lie together from there on. */
uint8_t *lane_contribution_bytes(
    const struct contribution *contribution, uint64_t at, uint64_t *together_bytes);
/* How far in its chunk that byte lies. */
uint64_t lane_contribution_offset(const struct contribution *contribution, uint64_t at);
