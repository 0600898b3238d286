/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.c -- tasks and sessions: finding, adding, forgetting. */

#include <assert.h>
#include <string.h>

#include "listing.h"
#include "controller_members.h"

/* ---- tasks ---- */

static size_t key_bytes(const struct controller_task_key *key)
{
    return offsetof(struct controller_task_key, job) + strlen(key->job);
}

static struct controller_task_key key_of(const char *job, uint32_t index)
{
    assert(strlen(job) <= CONTROLLER_JOB_BYTES_MAX);
    struct controller_task_key key = {.index = index};
    memcpy(key.job, job, strlen(job));
    return key;
}

struct controller_task *
controller_task_find(const struct controller *controller, const wire_task_name *name)
{
    if (strlen(name->job) > CONTROLLER_JOB_BYTES_MAX)
        return NULL;
    const struct controller_task_key key = key_of(name->job, name->index);
    return key_map_get(&controller->tasks_by_key, &key, key_bytes(&key));
}

/* Mark the tasks of all sessions that are remembered, settled ones included: they stay. */
static uint64_t mark_tasks_of_sessions(struct controller *controller)
{
    const uint64_t look = ++controller->lists_looked_at;

    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller)
        if (session->task != NULL)
            session->task->named = look;
    return look;
}

/* Two kinds of tasks are kept. A task that lost its session without leaving may come back and ask
 * how that session ended. A listed task is waited for, or counts as done. */
static bool may_forget(const struct controller_task *task, uint64_t look)
{
    return !task->listed && task->named != look && (task->left || !task->joined);
}

uint32_t controller_tasks_forgettable(struct controller *controller)
{
    const uint64_t look = mark_tasks_of_sessions(controller);
    uint32_t count = 0;

    LIST_FOREACH(const struct controller_task, task, &controller->tasks, in_controller)
        count += may_forget(task, look);
    assert(count <= controller->tasks_pool.used);
    return count;
}

bool controller_task_may_be_forgotten(
    struct controller *controller, const struct controller_task *task)
{
    return may_forget(task, mark_tasks_of_sessions(controller));
}

void controller_task_forget(struct controller *controller, struct controller_task *task)
{
    assert(!task->listed);
    assert(task->left || !task->joined);
    LIST_REMOVE(&controller->tasks, task, in_controller);
    key_map_remove(&controller->tasks_by_key, &task->by_key);
    if (task->attempts > controller->attempts_forgotten)
        controller->attempts_forgotten = task->attempts;
    controller_row_gone(controller, &task->row);
    controller_voided_drop(controller, &task->voided);
    pool_give(&controller->tasks_pool, task);
}

/* False: no task may be forgotten. */
static bool forget_oldest_task(struct controller *controller)
{
    const uint64_t look = mark_tasks_of_sessions(controller);
    struct controller_task *oldest = NULL;

    LIST_FOREACH(struct controller_task, task, &controller->tasks, in_controller)
        if (may_forget(task, look) && (oldest == NULL || task->left_us < oldest->left_us))
            oldest = task;
    if (oldest != NULL)
        controller_task_forget(controller, oldest);
    return oldest != NULL;
}

struct controller_task *
controller_task_find_or_add(struct controller *controller, const wire_task_name *name)
{
    if (strlen(name->job) > CONTROLLER_JOB_BYTES_MAX)
        return NULL;
    struct controller_task *task = controller_task_find(controller, name);
    if (task != NULL)
        return task;
    if (controller->tasks_pool.used >= CONTROLLER_TASKS_MAX && !forget_oldest_task(controller))
        return NULL;
    task = pool_take(&controller->tasks_pool);
    if (task == NULL)
        return NULL;
    task->key = key_of(name->job, name->index);
    task->by_key =
        (struct key_entry){.key = &task->key, .key_bytes = key_bytes(&task->key), .value = task};
    if (!key_map_put(&controller->tasks_by_key, &task->by_key)) {
        pool_give(&controller->tasks_pool, task);
        return NULL;
    }
    task->row.kind = CONTROLLER_ROW_TASK;
    task->attempts = controller->attempts_forgotten;
    assert(controller->tasks_pool.used <= CONTROLLER_TASKS_MAX);
    LIST_APPEND(&controller->tasks, task, in_controller);
    controller_row_changed(controller, &task->row);
    return task;
}

void controller_tasks_start(struct controller *controller)
{
    const struct lane_config *config = controller->config;

    assert(config->member_count == 0 || config->members_jobs != NULL);
    controller->members_listed = config->member_count > 0;
    for (uint32_t i = 0; i < config->member_count; i++) {
        const wire_task_name name = {
            .job = (char *)config->members_jobs[i],
            .index = config->members_indices[i],
        };
        struct controller_task *task = controller_task_find_or_add(controller, &name);
        if (task == NULL)
            continue;
        task->listed = task->member = true;
        task->address = config->members_addresses == NULL ? NULL : config->members_addresses[i];
        controller_row_changed(controller, &task->row);
    }
}

static bool is_one_of(const struct controller_task *task, enum controller_tasks which)
{
    switch (which) {
    case CONTROLLER_TASKS_LISTED:
        return task->listed;
    case CONTROLLER_TASKS_NEVER_JOINED:
        return task->listed && !task->joined;
    case CONTROLLER_TASKS_UNFINISHED:
        return task->joined && !task->done;
    case CONTROLLER_TASKS_LOST:
        return task->joined && !task->done && !task->left;
    case CONTROLLER_TASKS_DONE:
        return task->done;
    }
    return false;
}

uint32_t controller_tasks_count(const struct controller *controller, enum controller_tasks which)
{
    uint32_t count = 0;

    LIST_FOREACH(const struct controller_task, task, &controller->tasks, in_controller)
        count += is_one_of(task, which);
    return count;
}

bool controller_tasks_any(const struct controller *controller, enum controller_tasks which)
{
    return controller_tasks_count(controller, which) > 0;
}

const char *controller_tasks_text(const struct controller *controller, enum controller_tasks which)
{
    struct listing listing = {0};

    LIST_FOREACH(const struct controller_task, task, &controller->tasks, in_controller)
        if (is_one_of(task, which))
            listing_add_task(&listing, task->key.job, task->key.index);
    return out_text(controller->out, "%s", listing_end(&listing));
}

/* ---- sessions ---- */

struct controller_session *
controller_session_find(const struct controller *controller, const uint8_t *id, size_t bytes)
{
    if (bytes != CONTROLLER_ID_BYTES)
        return NULL;
    return key_map_get(&controller->sessions_by_id, id, bytes);
}

struct controller_session *
controller_session_find_nonce(const struct controller *controller, const uint8_t *nonce)
{
    return key_map_get(&controller->sessions_by_nonce, nonce, CONTROLLER_ID_BYTES);
}

static struct key_entry entry_of(struct controller_session *session, const uint8_t *key)
{
    return (struct key_entry){.key = key, .key_bytes = CONTROLLER_ID_BYTES, .value = session};
}

bool controller_session_is_earlier(
    const struct controller_session *other, const struct controller_session *session)
{
    return other != session && other->task != NULL && other->task == session->task &&
           other->state != CONTROLLER_SESSION_SETTLED;
}

const struct controller_session *controller_session_find_earlier(
    const struct controller *controller, const struct controller_session *session)
{
    LIST_FOREACH(const struct controller_session, other, &controller->sessions, in_controller)
        if (controller_session_is_earlier(other, session))
            return other;
    return NULL;
}

/* So that it is found. False: no memory. */
static bool enlist(struct controller *controller, struct controller_session *session)
{
    session->by_id = entry_of(session, session->id);
    session->by_nonce = entry_of(session, session->nonce);
    if (!key_map_put(&controller->sessions_by_id, &session->by_id))
        return false;
    if (!key_map_put(&controller->sessions_by_nonce, &session->by_nonce)) {
        key_map_remove(&controller->sessions_by_id, &session->by_id);
        return false;
    }
    LIST_APPEND(&controller->sessions, session, in_controller);
    return true;
}

struct controller_session *
controller_session_add(struct controller *controller, const void *id, const uint8_t *nonce)
{
    struct controller_session *session = pool_take(&controller->sessions_pool);

    if (session == NULL)
        return NULL;
    assert(controller_session_find(controller, id, CONTROLLER_ID_BYTES) == NULL);
    session->row.kind = CONTROLLER_ROW_SESSION;
    memcpy(session->id, id, CONTROLLER_ID_BYTES);
    memcpy(session->nonce, nonce, CONTROLLER_ID_BYTES);
    if (enlist(controller, session)) {
        controller_row_changed(controller, &session->row);
        return session;
    }
    pool_give(&controller->sessions_pool, session);
    return NULL;
}

void controller_session_forget(struct controller *controller, struct controller_session *session)
{
    assert(
        session->state == CONTROLLER_SESSION_WAITING ||
        session->state == CONTROLLER_SESSION_SETTLED);
    assert(session->orders == 0);
    assert(session->join_call == 0);
    assert(session->leave_call == 0);
    LIST_REMOVE(&controller->sessions, session, in_controller);
    key_map_remove(&controller->sessions_by_id, &session->by_id);
    key_map_remove(&controller->sessions_by_nonce, &session->by_nonce);
    controller_row_gone(controller, &session->row);
    controller_voided_drop(controller, &session->voided);
    pool_give(&controller->sessions_pool, session);
}

static bool is_open(const struct controller_session *session)
{
    return session->state == CONTROLLER_SESSION_OPENING ||
           session->state == CONTROLLER_SESSION_OPEN;
}

void controller_renewed(struct controller *controller, const wire_bytes *id)
{
    struct controller_session *session = controller_session_find(controller, id->data, id->len);

    assert(session == NULL || session->heard_us <= controller->now_us);
    if (session != NULL)
        session->heard_us = controller->now_us;
}

uint32_t
controller_silent_ms(const struct controller *controller, const struct controller_session *session)
{
    const uint64_t silent_us = controller->now_us - session->heard_us;

    assert(session->heard_us <= controller->now_us);
    return silent_us / 1000 < UINT32_MAX ? (uint32_t)(silent_us / 1000) : UINT32_MAX;
}

void controller_fail_closed(
    struct controller *controller, uint64_t call, const struct controller_session *session)
{
    char cause[CLOSE_CAUSE_TEXT_BYTES];

    assert(session->state >= CONTROLLER_SESSION_CLOSING);
    controller_fail(
        controller, call, SUMAC_FAILED_PRECONDITION, wire_close_cause_reason(&session->cause),
        "the session of %s is closed%s; %s", session->label,
        wire_close_cause_print(&session->cause, cause), wire_close_cause_remedy(&session->cause));
}

struct controller_session *
controller_session_of_call(struct controller *controller, uint64_t call, const wire_bytes *id)
{
    struct controller_session *session = controller_session_find(controller, id->data, id->len);

    if (controller->phase != CONTROLLER_RUNNING) {
        controller_fail_over(controller, call);
        return NULL;
    }
    if (session == NULL) {
        controller_fail(
            controller, call, SUMAC_NOT_FOUND, SUMAC_REASON_SESSION_UNKNOWN,
            "ps 0 knows no such session: it was restarted since the join and its state is lost, or "
            "the session ended long ago, or no join has given this id; join anew");
        return NULL;
    }
    if (!is_open(session)) {
        controller_fail_closed(controller, call, session);
        return NULL;
    }
    session->heard_us = controller->now_us;
    return session;
}
