/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.c -- tasks and sessions: finding, adding, forgetting. */
#include "meet.h"
#include "barrier.h"
#include "quorum.h"

#include <assert.h>
#include <string.h>

#include "listing.h"
#include "text.h"

/* ---- tasks ---- */

static size_t key_bytes(const struct judge_task_key *key)
{
    return offsetof(struct judge_task_key, job) + strlen(key->job);
}

static struct judge_task_key key_of(const char *job, uint32_t index)
{
    assert(strlen(job) <= JUDGE_JOB_BYTES_MAX);
    struct judge_task_key key = {.index = index};
    memcpy(key.job, job, strlen(job));
    return key;
}

struct judge_task *judge_task_find(const struct judge *judge, const wire_task_name *name)
{
    if (strlen(name->job) > JUDGE_JOB_BYTES_MAX)
        return NULL;
    const struct judge_task_key key = key_of(name->job, name->index);
    return key_map_get(&judge->tasks_by_key, &key, key_bytes(&key));
}

/* Mark the tasks of all sessions that are remembered, settled ones included: they stay. */
static uint64_t mark_tasks_of_sessions(struct judge *judge)
{
    const uint64_t look = ++judge->lists_looked_at;

    for (const struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        if (session->task != NULL)
            session->task->named = look;
    return look;
}

/* Whoever lost its session, and did not leave it, may come back and has to be told how that one
 * ended; who is listed is waited for, or counts as done. */
static bool may_forget(const struct judge_task *task, uint64_t look)
{
    return !task->listed && task->named != look && (task->left || !task->joined);
}

uint32_t judge_tasks_forgettable(struct judge *judge)
{
    const uint64_t look = mark_tasks_of_sessions(judge);
    uint32_t count = 0;

    for (const struct judge_task *task = judge->tasks.first; task != NULL;
         task = task->in_judge.next)
        count += may_forget(task, look);
    assert(count <= judge->tasks_pool.used);
    return count;
}

bool judge_task_may_be_forgotten(struct judge *judge, const struct judge_task *task)
{
    return may_forget(task, mark_tasks_of_sessions(judge));
}

void judge_task_forget(struct judge *judge, struct judge_task *task)
{
    assert(!task->listed);
    assert(task->left || !task->joined);
    LIST_REMOVE(&judge->tasks, task, in_judge);
    key_map_remove(&judge->tasks_by_key, &task->by_key);
    if (task->attempts > judge->attempts_forgotten)
        judge->attempts_forgotten = task->attempts;
    judge_row_gone(judge, JUDGE_ROW_TASK, &task->row);
    judge_voided_drop(judge, &task->voided);
    pool_give(&judge->tasks_pool, task);
}

/* False: there is none that may be. */
static bool forget_oldest_task(struct judge *judge)
{
    const uint64_t look = mark_tasks_of_sessions(judge);
    struct judge_task *oldest = NULL;

    for (struct judge_task *task = judge->tasks.first; task != NULL; task = task->in_judge.next)
        if (may_forget(task, look) && (oldest == NULL || task->left_us < oldest->left_us))
            oldest = task;
    if (oldest != NULL)
        judge_task_forget(judge, oldest);
    return oldest != NULL;
}

struct judge_task *judge_task_find_or_add(struct judge *judge, const wire_task_name *name)
{
    if (strlen(name->job) > JUDGE_JOB_BYTES_MAX)
        return NULL;
    struct judge_task *task = judge_task_find(judge, name);
    if (task != NULL)
        return task;
    if (judge->tasks_pool.used >= JUDGE_TASKS_MAX && !forget_oldest_task(judge))
        return NULL;
    task = pool_take(&judge->tasks_pool);
    if (task == NULL)
        return NULL;
    task->key = key_of(name->job, name->index);
    task->by_key =
        (struct key_entry){.key = &task->key, .key_bytes = key_bytes(&task->key), .value = task};
    if (!key_map_put(&judge->tasks_by_key, &task->by_key)) {
        pool_give(&judge->tasks_pool, task);
        return NULL;
    }
    (void)text_print(task->job, sizeof task->job, "%s", name->job);
    task->index = name->index;
    task->attempts = judge->attempts_forgotten;
    assert(judge->tasks_pool.used <= JUDGE_TASKS_MAX);
    LIST_APPEND(&judge->tasks, task, in_judge);
    judge_task_changed(judge, task);
    return task;
}

void judge_tasks_start(struct judge *judge)
{
    const struct lane_config *config = judge->config;

    assert(config->member_count == 0 || config->members_jobs != NULL);
    judge->members_listed = config->member_count > 0;
    for (uint32_t i = 0; i < config->member_count; i++) {
        const wire_task_name name = {
            .job = (char *)config->members_jobs[i],
            .index = config->members_indices[i],
        };
        struct judge_task *task = judge_task_find_or_add(judge, &name);
        if (task == NULL)
            continue;
        task->listed = task->member = true;
        task->address = config->members_addresses == NULL ? NULL : config->members_addresses[i];
        judge_task_changed(judge, task);
    }
}

static bool is_one_of(const struct judge_task *task, enum judge_tasks which)
{
    switch (which) {
    case JUDGE_TASKS_LISTED:
        return task->listed;
    case JUDGE_TASKS_NEVER_JOINED:
        return task->listed && !task->joined;
    case JUDGE_TASKS_UNFINISHED:
        return task->joined && !task->done;
    case JUDGE_TASKS_LOST:
        return task->joined && !task->done && !task->left;
    case JUDGE_TASKS_DONE:
        return task->done;
    }
    return false;
}

uint32_t judge_tasks_count(const struct judge *judge, enum judge_tasks which)
{
    uint32_t count = 0;

    for (const struct judge_task *task = judge->tasks.first; task != NULL;
         task = task->in_judge.next)
        count += is_one_of(task, which);
    return count;
}

bool judge_tasks_any(const struct judge *judge, enum judge_tasks which)
{
    return judge_tasks_count(judge, which) > 0;
}

const char *judge_tasks_text(const struct judge *judge, enum judge_tasks which)
{
    struct listing listing = {0};

    for (const struct judge_task *task = judge->tasks.first; task != NULL;
         task = task->in_judge.next)
        if (is_one_of(task, which))
            listing_add_task(&listing, task->job, task->index);
    return judge_text(judge, "%s", listing_end(&listing));
}

/* ---- sessions ---- */

struct judge_session *judge_session_find(const struct judge *judge, const uint8_t *id, size_t bytes)
{
    if (bytes != JUDGE_ID_BYTES)
        return NULL;
    return key_map_get(&judge->sessions_by_id, id, bytes);
}

struct judge_session *judge_session_find_nonce(const struct judge *judge, const uint8_t *nonce)
{
    return key_map_get(&judge->sessions_by_nonce, nonce, JUDGE_ID_BYTES);
}

static struct key_entry entry_of(struct judge_session *session, const uint8_t *key)
{
    return (struct key_entry){.key = key, .key_bytes = JUDGE_ID_BYTES, .value = session};
}

/* So that it is found. False: no memory. */
static bool enlist(struct judge *judge, struct judge_session *session)
{
    session->by_id = entry_of(session, session->id);
    session->by_nonce = entry_of(session, session->nonce);
    if (!key_map_put(&judge->sessions_by_id, &session->by_id))
        return false;
    if (!key_map_put(&judge->sessions_by_nonce, &session->by_nonce)) {
        key_map_remove(&judge->sessions_by_id, &session->by_id);
        return false;
    }
    LIST_APPEND(&judge->sessions, session, in_judge);
    return true;
}

struct judge_session *judge_session_add(struct judge *judge, const void *id, const uint8_t *nonce)
{
    struct judge_session *session = pool_take(&judge->sessions_pool);

    if (session == NULL)
        return NULL;
    assert(judge_session_find(judge, id, JUDGE_ID_BYTES) == NULL);
    memcpy(session->id, id, JUDGE_ID_BYTES);
    memcpy(session->nonce, nonce, JUDGE_ID_BYTES);
    if (enlist(judge, session)) {
        judge_session_changed(judge, session);
        return session;
    }
    pool_give(&judge->sessions_pool, session);
    return NULL;
}

void judge_session_forget(struct judge *judge, struct judge_session *session)
{
    assert(session->state == JUDGE_SESSION_WAITING || session->state == JUDGE_SESSION_SETTLED);
    assert(session->orders == 0);
    assert(session->join_call == 0);
    assert(session->leave_call == 0);
    LIST_REMOVE(&judge->sessions, session, in_judge);
    key_map_remove(&judge->sessions_by_id, &session->by_id);
    key_map_remove(&judge->sessions_by_nonce, &session->by_nonce);
    judge_row_gone(judge, JUDGE_ROW_SESSION, &session->row);
    judge_voided_drop(judge, &session->voided);
    pool_give(&judge->sessions_pool, session);
}

/* Those that a synchronous step needs still stay, and are forgotten with a later one. */
void judge_sessions_forget_oldest(struct judge *judge)
{
    struct judge_session *next = NULL;
    uint32_t settled = 0;

    for (const struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        settled += session->state == JUDGE_SESSION_SETTLED && session->orders == 0;
    for (struct judge_session *session = judge->sessions.first;
         session != NULL && settled > judge_settled_max(judge); session = next) {
        next = session->in_judge.next;
        if (session->state != JUDGE_SESSION_SETTLED || session->orders > 0 ||
            judge_steps_need(judge, session))
            continue;
        judge_session_forget(judge, session);
        settled--;
    }
}

/* A list of what was voided is its session's until that is settled, and then its task's; while one
 * grows there are two. */
uint64_t judge_sessions_bytes_max(const struct judge *judge)
{
    const uint64_t sessions_max = judge_sessions_max(judge);
    const uint64_t lists = judge->config->sessions_max + judge->tasks_pool.used + 1;

    return sessions_max * sizeof(struct judge_session) +
           judge->tasks_pool.used * sizeof(struct judge_task) +
           (2 * sessions_max + judge->tasks_pool.used) * ID_MAP_ENTRY_BYTES_MAX +
           lists * judge_voided_bytes_max(judge) + judge_held_bytes_max(judge) +
           judge_barriers_bytes_max(judge) + judge_meetings_bytes_max() + FUNCTIONS_BYTES;
}

static bool is_open(const struct judge_session *session)
{
    return session->state == JUDGE_SESSION_OPENING || session->state == JUDGE_SESSION_OPEN;
}

void judge_renewed(struct judge *judge, const wire_bytes *id)
{
    struct judge_session *session = judge_session_find(judge, id->data, id->len);

    assert(session == NULL || session->heard_us <= judge->now_us);
    if (session != NULL)
        session->heard_us = judge->now_us;
}

void judge_fail_closed(struct judge *judge, uint64_t call, const struct judge_session *session)
{
    char cause[CLOSE_CAUSE_TEXT_BYTES];

    assert(session->state >= JUDGE_SESSION_CLOSING);
    judge_fail(
        judge, call, SUMAC_FAILED_PRECONDITION, wire_close_cause_reason(&session->cause),
        "the session of %s is closed%s; %s", session->label,
        wire_close_cause_print(&session->cause, cause), wire_close_cause_remedy(&session->cause));
}

struct judge_session *
judge_session_of_call(struct judge *judge, uint64_t call, const wire_bytes *id)
{
    struct judge_session *session = judge_session_find(judge, id->data, id->len);

    if (judge->phase != JUDGE_RUNNING) {
        judge_fail(
            judge, call, status_of_end(judge->end_reason), judge->end_reason, "the run is over: %s",
            judge->end_text);
        return NULL;
    }
    if (session == NULL) {
        judge_fail(
            judge, call, SUMAC_NOT_FOUND, SUMAC_REASON_SESSION_UNKNOWN,
            "ps 0 knows no such session: it was restarted since the join and its state is lost, or "
            "the session ended long ago, or no join has given this id; join anew");
        return NULL;
    }
    if (!is_open(session)) {
        judge_fail_closed(judge, call, session);
        return NULL;
    }
    session->heard_us = judge->now_us;
    return session;
}
