/* session.c -- what a ps knows of one session: its parts by sequence, what is voided, what was refused. */
#include "lane_state.h"

#include <string.h>

#include "text.h"

#define VOIDED_FIRST_CAPACITY 8u
#define TELLS_PER_LEASE 8u /* so often at most ps 0's judge hears of a session by its own lane */

static struct session *find_in(struct session *list, const uint8_t id[16])
{
    while (list != NULL && memcmp(list->id, id, sizeof list->id) != 0)
        list = list->next;
    return list;
}

struct session *lane_session_find(const struct lane *lane, const uint8_t id[16])
{
    struct session *session = find_in(lane->sessions, id);

    return session != NULL ? session : find_in(lane->closed_sessions, id);
}

struct session *lane_session_open(struct lane *lane, const wire_open_session *open)
{
    struct session *session = pool_take(&lane->sessions_pool);

    if (session == NULL)
        return NULL;
    memcpy(session->id, open->session_id.data, sizeof session->id);
    session->role = (uint32_t)open->role;
    session->attempt = open->attempt;
    session->clock = session->clock_said = open->clock;
    session->heard_us = lane->now_us;
    if (open->task != NULL && open->task->job[0] != '\0')
        text_print_line(
            session->task, sizeof session->task, "%s %u", open->task->job, open->task->index);
    else
        text_print(
            session->task, sizeof session->task, "observer %llu",
            (unsigned long long)open->attempt);
    struct session **end = &lane->sessions;
    while (*end != NULL)
        end = &(*end)->next;
    *end = session;
    return session;
}

static void free_session(struct lane *lane, struct session *session)
{
    if (session->applying != NULL)
        lane_part_destroy(lane, session->applying);
    lane_session_drop_parts(lane, session);
    while (session->refusals != NULL) {
        struct refusal *refusal = session->refusals;
        session->refusals = refusal->next;
        pool_give(&lane->refusals_pool, refusal);
    }
    if (session->receiving != NULL)
        lane_part_destroy(lane, session->receiving);
    sized_pool_give(
        &lane->bytes, session->voided, session->voided_capacity * sizeof *session->voided);
    for (struct stream *stream = lane->first_stream; stream != NULL; stream = stream->next) {
        if (stream->session != session)
            continue;
        lane_answers_drop(lane, stream);
        stream->session = NULL;
    }
    pool_give(&lane->sessions_pool, session);
}

void lane_session_destroy_all(struct lane *lane)
{
    struct session **const lists[] = {&lane->sessions, &lane->closed_sessions};

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        while (*lists[i] != NULL) {
            struct session *session = *lists[i];
            *lists[i] = session->next;
            free_session(lane, session);
        }
    }
}

/* The oldest of the closed ones is forgotten: its client, if there is one, is told to join again. */
static void forget_oldest(struct lane *lane)
{
    struct session **link = &lane->closed_sessions;

    while ((*link)->next != NULL)
        link = &(*link)->next;
    struct session *oldest = *link;
    if (oldest->applying != NULL || oldest->first != NULL)
        return;
    *link = NULL;
    lane->closed_count--;
    free_session(lane, oldest);
}

void lane_session_end(struct lane *lane, struct session *session)
{
    struct session **link = &lane->sessions;

    while (*link != NULL && *link != session)
        link = &(*link)->next;
    if (*link == NULL)
        return;
    *link = session->next;
    session->next = lane->closed_sessions;
    lane->closed_sessions = session;
    lane->closed_count++;
    if (lane->closed_count > CLOSED_SESSIONS_MAX)
        forget_oldest(lane);
}

void lane_session_heard(struct lane *lane, struct session *session)
{
    const uint64_t interval_us = (uint64_t)lane->config.lease_ms * 1000 / TELLS_PER_LEASE;

    session->heard_us = lane->now_us;
    session->heard = true;
    if (lane->judge == NULL || session->closing)
        return;
    if (session->heard_told_us != 0 && lane->now_us < session->heard_told_us + interval_us)
        return;
    session->heard_told_us = lane->now_us;
    judge_heard(lane->judge, session->id, lane->now_us);
}

/* The place of the first voided sequence that is not below `sequence`. */
static uint32_t voided_place(const struct session *session, uint64_t sequence)
{
    uint32_t low = 0, high = session->voided_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (session->voided[middle] < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool lane_session_is_voided(const struct session *session, uint64_t sequence)
{
    const uint32_t place = voided_place(session, sequence);

    return place < session->voided_count && session->voided[place] == sequence;
}

static bool grow_voided(struct lane *lane, struct session *session)
{
    const uint32_t capacity =
        session->voided_capacity == 0 ? VOIDED_FIRST_CAPACITY : 2 * session->voided_capacity;
    uint64_t *voided = sized_pool_take(&lane->bytes, capacity * sizeof *voided);

    if (voided == NULL)
        return false;
    if (session->voided_count > 0)
        memcpy(voided, session->voided, session->voided_count * sizeof *voided);
    sized_pool_give(
        &lane->bytes, session->voided, session->voided_capacity * sizeof *session->voided);
    session->voided = voided;
    session->voided_capacity = capacity;
    return true;
}

bool lane_session_void(struct lane *lane, struct session *session, uint64_t sequence)
{
    const uint32_t place = voided_place(session, sequence);

    if (place < session->voided_count && session->voided[place] == sequence)
        return true;
    if (session->voided_count == VOIDED_PER_SESSION_MAX)
        return false;
    if (session->voided_count == session->voided_capacity && !grow_voided(lane, session))
        return false;
    memmove(
        session->voided + place + 1, session->voided + place,
        (session->voided_count - place) * sizeof *session->voided);
    session->voided[place] = sequence;
    session->voided_count++;
    return true;
}

void lane_session_unvoid(struct session *session, uint64_t sequence)
{
    const uint32_t place = voided_place(session, sequence);

    if (place == session->voided_count || session->voided[place] != sequence)
        return;
    session->voided_count--;
    memmove(
        session->voided + place, session->voided + place + 1,
        (session->voided_count - place) * sizeof *session->voided);
}

void lane_session_acked(struct lane *lane, struct session *session, uint64_t acked_through)
{
    if (acked_through <= session->acked_through)
        return;
    session->acked_through = acked_through;
    for (struct refusal **link = &session->refusals; *link != NULL;) {
        struct refusal *refusal = *link;
        if (refusal->sequence > acked_through) {
            link = &refusal->next;
            continue;
        }
        *link = refusal->next;
        pool_give(&lane->refusals_pool, refusal);
    }
    const uint32_t gone = voided_place(session, acked_through + 1);
    if (gone == 0)
        return;
    memmove(
        session->voided, session->voided + gone,
        (session->voided_count - gone) * sizeof *session->voided);
    session->voided_count -= gone;
}

struct part *lane_session_part(const struct session *session, uint64_t sequence)
{
    struct part *part = session->last;

    while (part != NULL && part->sequence > sequence)
        part = part->prev;
    return part != NULL && part->sequence == sequence ? part : NULL;
}

const struct refusal *lane_session_refusal(const struct session *session, uint64_t sequence)
{
    const struct part *part = lane_session_part(session, sequence);
    const struct refusal *refusal = session->refusals;

    if (part != NULL && part->refusal != NULL)
        return part->refusal;
    while (refusal != NULL && refusal->sequence != sequence)
        refusal = refusal->next;
    return refusal;
}

void lane_session_insert(struct session *session, struct part *part)
{
    struct part *before = session->last;

    while (before != NULL && before->sequence > part->sequence)
        before = before->prev;
    part->prev = before;
    part->next = before == NULL ? session->first : before->next;
    if (part->next != NULL)
        part->next->prev = part;
    else
        session->last = part;
    if (before != NULL)
        before->next = part;
    else
        session->first = part;
    session->part_count++;
}

void lane_session_remove(struct session *session, struct part *part)
{
    if (part->prev != NULL)
        part->prev->next = part->next;
    else
        session->first = part->next;
    if (part->next != NULL)
        part->next->prev = part->prev;
    else
        session->last = part->prev;
    part->next = part->prev = NULL;
    session->part_count--;
}

void lane_session_drop_parts(struct lane *lane, struct session *session)
{
    while (session->first != NULL) {
        struct part *part = session->first;
        lane_session_remove(session, part);
        lane_part_destroy(lane, part);
    }
}

uint64_t lane_session_slowest_clock(const struct lane *lane, uint64_t otherwise)
{
    uint64_t slowest = UINT64_MAX;

    for (const struct session *session = lane->sessions; session != NULL; session = session->next) {
        if ((int)session->role == WIRE_ROLE_MEMBER && !session->closed && session->clock < slowest)
            slowest = session->clock;
    }
    return slowest == UINT64_MAX ? otherwise : slowest;
}
