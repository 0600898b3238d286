/* SPDX-License-Identifier: Apache-2.0 */
/* grants.c -- which sessions may stage parts. Staging has one grant for each of --sessions-max.
 *
 * A closed session keeps its grant while its committed contribution waits for those of others. So
 * a session may be open without a grant: its push streams end with BUSY at the first part, and its
 * client sends the part again until a grant is free.
 *
 * Sessions have their grants in one order: first the members that step 1 waits for, then the others
 * as they were opened. A grant is kept for each of the former that has yet to join. So no session
 * that a step waits for stands behind one that waits for the step.
 */
#include "handlers.h"

uint32_t lane_grant_count_closed(const struct lane *lane)
{
    uint32_t waiting = 0;

    LIST_FOREACH(const struct lane_session, session, &lane->closed_sessions, in_lane) {
        assert(session->closed);
        waiting += session->parts.first != NULL && session->parts.first->step != 0;
    }
    return waiting;
}

/* Open sessions that have their grants before this one. */
static uint32_t count_ahead(const struct lane *lane, const struct lane_session *session)
{
    uint32_t ahead = 0;
    bool earlier = true;

    assert(lane->config.sessions_max > 0);
    assert(!session->closed);
    LIST_FOREACH(const struct lane_session, other, &lane->sessions, in_lane) {
        if (other == session)
            earlier = false;
        else
            ahead += other->initial == session->initial ? earlier : other->initial;
    }
    return ahead;
}

/* The order never changes, and the sum of these counts only shrinks: a session that has a grant
 * keeps it. */
bool lane_grant_take(struct lane *lane, struct lane_session *session)
{
    const uint32_t kept = session->initial ? 0 : lane_step_yet_to_join(lane);

    assert(!session->granted);
    session->granted = count_ahead(lane, session) + lane_grant_count_closed(lane) + kept <
                       lane->config.sessions_max;
    return session->granted;
}

void lane_grant_fail(struct lane *lane, struct lane_stream *stream, uint64_t sequence)
{
    const struct lane_session *session = stream->session;
    char missing[256];

    assert(!session->granted);
    (void)lane_step_missing(lane, missing, sizeof missing);
    (void)lane_stream_fail(
        lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
        "ps %u has no room yet for push %" PRIu64
        " of %s: closed sessions whose contributions to synchronous steps wait for %s hold %u of "
        "the %u grants of --sessions-max, and sessions that come before this one have the others; "
        "send the push again later, or start the ps with a larger --sessions-max",
        lane->index, sequence, session->task, *missing == '\0' ? "their turn" : missing,
        lane_grant_count_closed(lane), lane->config.sessions_max);
}
