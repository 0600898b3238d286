/* SPDX-License-Identifier: Apache-2.0 */
/* voided.h -- the pushes of a session that some ps refused, and why. */
#ifndef LANE_VOIDED_H
#define LANE_VOIDED_H

#include "part.h"

/* NULL: it is not voided, or its client has said that it knows. Lent until something is added, or
 * forgotten. */
struct voided *lane_voided_find(const struct lane_session *session, uint64_t sequence);
/* Takes the refusal (NULL: another ps refused it), unless it fails: OUT_OF_MEMORY, or
 * TOO_MANY_REFUSED beyond voided_per_session_max. UNSPECIFIED: done. A full list is looked
 * through for what is of no use, unless `*looked`, which it then is: once for all of a commit. */
enum sumac_reason lane_voided_add(
    struct lane *lane, struct lane_session *session, uint64_t sequence, struct refusal *refusal,
    bool *looked);
/* Room for so many more, whatever the bound. False: no memory. */
bool lane_voided_reserve(struct lane *lane, struct lane_session *session, size_t more);
/* There must be room. */
struct voided *lane_voided_put(struct lane_session *session, uint64_t sequence);
/* The client knows of every push up to it. What is above the mark has its turn yet, whatever a
 * client says. */
void lane_voided_acked(struct lane *lane, struct lane_session *session, uint64_t acked_through);
void lane_voided_forget(struct lane *lane, struct lane_session *session, uint64_t sequence);
/* Nobody is there any more to be told why. */
void lane_voided_drop_reasons(struct lane *lane, struct lane_session *session);
void lane_voided_drop(struct lane *lane, struct lane_session *session);

#endif
