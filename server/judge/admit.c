/* SPDX-License-Identifier: Apache-2.0 */
/* admit.c -- who may join, and whether there is a place: looked at before a join changes anything,
 * so that one that is refused leaves nothing behind. */
#include "judge_state.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "text.h"

/* Sessions that are not settled, but for the joiner's own. */
struct places {
    uint32_t taken, observers;
};

/* ---- the request ---- */

static enum sumac_status check_job(const char *job, struct sumac_error *error)
{
    if (strlen(job) > JUDGE_JOB_BYTES_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "its job name has %zu bytes, at most %u may be: %s", strlen(job), JUDGE_JOB_BYTES_MAX,
            job);
    if (text_has_control(job, strlen(job)))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "its job name has a control character, shown here as ?: %s", job);
    return SUMAC_OK;
}

static enum sumac_status check_member(const wire_task_name *task, struct sumac_error *error)
{
    if (strcmp(task->job, "worker") == 0 || strcmp(task->job, "chief") == 0)
        return SUMAC_OK;
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
        "only tasks of the jobs chief and worker are members; join as an observer");
}

enum sumac_status judge_join_check(
    const struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    if (request->protocol_version != WIRE_PROTOCOL_VERSION)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_PROTOCOL_VERSION,
            "it speaks protocol version %u, ps 0 version %u: use one release of both",
            request->protocol_version, WIRE_PROTOCOL_VERSION);
    if (request->cluster_id != 0 && request->cluster_id != judge->cluster_id)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "it is meant for cluster %016" PRIx64 ", this is %016" PRIx64 ": the cluster has "
            "restarted, or the configurations list its ps differently",
            request->cluster_id, judge->cluster_id);
    if (request->nonce.len != JUDGE_ID_BYTES)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "its nonce has %zu bytes; give %d random ones", request->nonce.len, JUDGE_ID_BYTES);
    const bool member = request->role == SUMAC__V1__ROLE__ROLE_MEMBER;
    const bool named = request->task != NULL && request->task->job[0] != '\0';
    if (!member && request->role != SUMAC__V1__ROLE__ROLE_OBSERVER)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "its role is %u; give member or observer", (uint32_t)request->role);
    if (member && !named)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "give the task, of the job chief or worker");
    enum sumac_status status = named ? check_job(request->task->job, error) : SUMAC_OK;
    for (size_t i = 0; i < request->n_members && status == SUMAC_OK; i++)
        status = check_job(request->members[i]->job, error);
    if (status == SUMAC_OK && member)
        status = check_member(request->task, error);
    return status;
}

/* ---- who may join, and whether there is a place ---- */

/* Where the configuration lists members there are no others. */
static enum sumac_status
check_listed(struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    assert(request->task != NULL);
    const struct judge_task *task = judge_task_find(judge, request->task);
    if (!judge->members_listed || (task != NULL && task->listed))
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "it is no member of this cluster, which lists %s: give every task the same cluster "
        "configuration, or join as an observer",
        judge_tasks_text(judge, JUDGE_TASKS_LISTED));
}

static uint32_t count_listed(const struct judge *judge)
{
    uint32_t count = 0;

    for (const struct judge_task *task = judge->tasks.first; task != NULL;
         task = task->in_judge.next)
        count += task->listed;
    assert(count <= judge->tasks_pool.used);
    return count;
}

/* What the tables have no room for is refused before any of it is in them. */
static enum sumac_status
check_names(struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    uint32_t fresh = 0;

    if (judge->members_listed)
        return SUMAC_OK;
    assert(judge->tasks_pool.used <= JUDGE_TASKS_MAX);
    if (request->n_members > JUDGE_NAMED_MAX) /* each is looked for among all tasks */
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
            "it names %zu members, and ps 0 takes %u at most: list them in its own cluster "
            "configuration",
            request->n_members, JUDGE_NAMED_MAX);
    for (size_t i = 0; i < request->n_members && fresh <= JUDGE_NAMED_MAX; i++) {
        const struct judge_task *task = judge_task_find(judge, request->members[i]);
        fresh += task == NULL || !task->listed;
    }
    const uint32_t known = count_listed(judge);
    if (known + fresh > JUDGE_NAMED_MAX)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
            "it names %zu members, ps 0 knows %u and takes %u in all: list them in its own "
            "cluster configuration",
            request->n_members, known, JUDGE_NAMED_MAX);
    const size_t needed = judge->tasks_pool.used + fresh + 1;
    if (needed <= JUDGE_TASKS_MAX || needed - judge_tasks_forgettable(judge) <= JUDGE_TASKS_MAX)
        return SUMAC_OK;
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
        "ps 0 knows %zu tasks, it names %u more, %u are the most, and too few have left: list the "
        "members in the cluster configuration of ps 0",
        (size_t)judge->tasks_pool.used, fresh, JUDGE_TASKS_MAX);
}

static void
count_others(const struct judge *judge, const struct judge_task *task, struct places *places)
{
    for (const struct judge_session *other = judge->sessions.first; other != NULL;
         other = other->in_judge.next) {
        if (other->state == JUDGE_SESSION_SETTLED || (task != NULL && other->task == task))
            continue;
        places->taken++;
        places->observers += other->task == NULL;
    }
}

/* The members' places are their own: as many as are listed, or half of all where none is. */
static enum sumac_status
check_places(const struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    const uint32_t sessions_max = judge->config->sessions_max, listed = count_listed(judge);
    const bool member = request->role == SUMAC__V1__ROLE__ROLE_MEMBER;
    const uint32_t kept = listed > 0 ? listed : sessions_max / 2;
    const uint32_t observers_max = kept < sessions_max ? sessions_max - kept : 0;
    struct places places = {0};

    assert(!member || request->task != NULL); /* judge_join_check has refused it */
    count_others(judge, member ? judge_task_find(judge, request->task) : NULL, &places);
    if (places.taken >= sessions_max)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
            "%u sessions are open: start the ps with a larger --sessions-max", places.taken);
    if (!member && places.observers >= observers_max)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
            "%u observers are open, and %u of %u places are the members': start the ps with a "
            "larger --sessions-max",
            places.observers, sessions_max - observers_max, sessions_max);
    assert(places.observers <= places.taken);
    return SUMAC_OK;
}

enum sumac_status
judge_join_admit(struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    const bool member = request->role == SUMAC__V1__ROLE__ROLE_MEMBER;
    enum sumac_status status = judge_peers_check(judge, request, error);

    if (status == SUMAC_OK)
        status = judge_lists_check(judge, request, error);
    if (status == SUMAC_OK && member)
        status = check_listed(judge, request, error);
    if (status == SUMAC_OK && member)
        status = check_names(judge, request, error);
    if (status == SUMAC_OK)
        status = check_places(judge, request, error);
    return status;
}
