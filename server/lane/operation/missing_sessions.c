/* SPDX-License-Identifier: Apache-2.0 */
/* missing_sessions.c -- what this ps knows of a task that a step or a round waits for. */
#include "operation_state.h"

void lane_missing_add(
    const struct lane *lane, const struct lane_session *session, bool own_pace,
    struct missing_tasks *missing)
{
    const struct session_silence silence = lane_session_silence(lane, session);

    assert(!session->closed);
    missing_tasks_add(
        missing, &(struct missing_task){
                     .name = session->task, .silence = silence.text, .own_pace = own_pace});
}

/* Where the configuration of this ps expects the task. */
static const char *find_address(const struct lane_config *config, const char *job, uint32_t index)
{
    for (uint32_t i = 0; i < config->member_count; i++)
        if (config->members_indices[i] == index && strcmp(config->members_jobs[i], job) == 0)
            return config->members_addresses[i];
    return NULL;
}

/* The newest session says so. Another session follows one that a newer attempt has replaced. */
static enum missing_state find_state(const struct lane *lane, const char *name)
{
    const struct lane_session *session = lane->closed_sessions.first;

    while (session != NULL && strcmp(session->task, name) != 0)
        session = session->in_lane.next;
    if (session == NULL || session->cause.kind == WIRE_CLOSE_NEWER_ATTEMPT)
        return MISSING_ABSENT;
    return session->cause.kind == WIRE_CLOSE_LEFT ? MISSING_LEFT : MISSING_LOST;
}

void lane_missing_add_absent(
    const struct lane *lane, const char *job, uint32_t index, struct missing_tasks *missing)
{
    const bool has_joined = lane_session_has_joined(lane, job, index);
    char name[32];

    (void)text_print(name, sizeof name, "%s %u", job, index);
    missing_tasks_add(
        missing, &(struct missing_task){
                     .name = name,
                     .state = has_joined ? find_state(lane, name) : MISSING_NEVER_JOINED,
                     .address = has_joined ? NULL : find_address(&lane->config, job, index)});
}
