/* SPDX-License-Identifier: Apache-2.0 */
/* voided.h -- the pushes of a session that some ps refused, and why. */
#pragma once

#include "part.h"

/* NULL: the push is not refused, or its client has said that it knows. Lent until an entry is added
 * or forgotten. */
struct voided *lane_voided_find(const struct lane_session *session, uint64_t sequence);
/* Remember the push as refused. Takes the refusal (NULL: another ps refused it), unless it fails:
 * OUT_OF_MEMORY, or TOO_MANY_REFUSED beyond voided_per_session_max. UNSPECIFIED: done. A full list
 * is searched for entries of no use once for each commit: *looked says that it was. */
enum sumac_reason lane_voided_add(
    struct lane *lane, struct lane_session *session, uint64_t sequence, struct refusal *refusal,
    bool *looked);
/* Make room for `more` pushes, also beyond the bound. False: no memory. */
bool lane_voided_reserve(struct lane *lane, struct lane_session *session, size_t more);
/* There must be room. */
struct voided *lane_voided_put(struct lane_session *session, uint64_t sequence);
/* The client knows of every push up to `acked_through`. Pushes above the mark are kept: they have
 * yet to take their turn. */
void lane_voided_acked(struct lane *lane, struct lane_session *session, uint64_t acked_through);
void lane_voided_forget(struct lane *lane, struct lane_session *session, uint64_t sequence);
/* Keep which pushes were refused, without the reasons: no client is left to hear them. */
void lane_voided_drop_reasons(struct lane *lane, struct lane_session *session);
void lane_voided_drop(struct lane *lane, struct lane_session *session);
