/* SPDX-License-Identifier: Apache-2.0 */
/* reports_check.c -- is everything that is due to ps 0 in a report on its stream? */
#include "reports_check.h"

#include "part_state.h"
#include "peer_state.h"

/* A kind of report that gathers what is due is in line once, or not at all. */
static void check_gathering(
    const struct lane *lane, enum report_kind kind, const char *what, struct check *check)
{
    const struct report *at = lane->controller == NULL ? NULL : lane->controller->reports.first;
    const struct report *found = NULL;
    uint64_t count = 0;

    for (; at != NULL; at = at->in_stream.next) {
        if (at->kind != kind)
            continue;
        found = at;
        count++;
    }
    if (found != lane->peers->gathering[kind] || count > 1)
        check_object(
            check, "the report of %s is not the one that is in line for ps 0's stream", what);
}

static uint64_t count_flags(const struct lane_session *session)
{
    uint64_t count = 0;

    for (; session != NULL; session = session->in_lane.next)
        count += session->says_come;
    return count;
}

static void check_come(const struct lane *lane, struct check *check)
{
    const struct peers *peers = lane->peers;
    const uint64_t flags =
        count_flags(lane->sessions.first) + count_flags(lane->closed_sessions.first);
    uint64_t listed = 0;

    for (const struct lane_session *at = peers->come.first; at != NULL && listed <= flags;
         at = at->in_come.next)
        listed++;
    check_same(check, listed, flags, "sessions whose step is due to ps 0", "the lane");
    if (lane->controller != NULL && !lane->exited && peers->gathering[REPORT_COME] == NULL &&
        (listed > 0 || peers->says_over))
        check_object(check, "no report says to ps 0 what has come of synchronous steps");
}

static void check_collectives(const struct lane *lane, struct check *check)
{
    uint64_t listed = 0, flags = 0;

    for (const struct round *at = lane->rounds.open.first; at != NULL; at = at->in_list.next)
        flags += at->is_proposed;
    for (const struct round *at = lane->peers->collectives.first; at != NULL && listed <= flags;
         at = at->in_line.next)
        listed++;
    check_same(check, listed, flags, "rounds whose end is due to ps 0", "the lane");
}

void reports_check(const struct lane *lane, struct check *check)
{
    check_gathering(lane, REPORT_COME, "synchronous steps", check);
    check_gathering(lane, REPORT_COLLECTIVES, "rounds of collectives", check);
    check_come(lane, check);
    check_collectives(lane, check);
}
