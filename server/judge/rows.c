/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c -- the rows of the judge's records (judge_rows.h), written and read. */
#include "barrier.h"
#include "catalogue.h"
#include "define.h"
#include "meet.h"
#include "row_bytes.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "little_endian.h"

static void put_voided(struct row_writer *writer, const struct judge_voided *voided)
{
    const uint32_t count = voided == NULL ? 0 : voided->count;

    assert(count <= JUDGE_VOIDED_MAX);
    row_put_number(writer, count);
    for (uint32_t i = 0; i < count; i++)
        row_put_number(writer, voided->sequence[i]);
}

/* In place of what was there. */
static void
take_voided(struct row_reader *reader, struct judge *judge, struct judge_voided **voided)
{
    const uint64_t count = row_take_number(reader);

    judge_voided_drop(judge, voided);
    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        const uint64_t sequence = row_take_number(reader);
        reader->failed |= reader->failed || !judge_voided_add(judge, voided, sequence);
    }
}

/* A record has spoken of the object, so another one says when it is gone. */
static void read_row(const struct judge *judge, struct judge_row *row)
{
    assert(!judge->records);
    row->record = judge->last_record + 1;
}

/* ---- the cluster, and its ps ---- */

static const struct row_field cluster_fields[] = {
    NUMBER(judge, beginnings),
    NUMBER(judge, cluster_id),
    NUMBER(judge, secret),
    NUMBER(judge, ps_count),
    NUMBER(judge, membership_epoch),
    NUMBER(judge, membership_told),
    NUMBER(judge, member_joined),
    NUMBER(judge, members_whole),
    NUMBER(judge, initials),
    NUMBER(judge, some_left_done),
    ENUMERATION(judge, phase, JUDGE_ENDED),
    NUMBER(judge, exit_code),
    NUMBER(judge, end_reason),
    NUMBER(judge, ends_of_itself),
    TEXT(judge, end_text),
};

static void put_cluster(struct judge *judge, struct row_writer *writer, const void *object)
{
    assert(object == judge);
    PUT_FIELDS(writer, cluster_fields, judge);
}

static void take_cluster(struct judge *judge, struct row_reader *reader)
{
    TAKE_FIELDS(reader, cluster_fields, judge);
    reader->failed |= judge->ps_count > LANE_PS_MAX;
}

static const struct row_field peer_fields[] = {
    NUMBER(judge_peer, incarnation),
    TEXT(judge_peer, address),
};

static void put_peer(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_peer *peer = object;

    assert(peer >= judge->peers);
    assert(peer < judge->peers + judge->ps_count);
    row_put_number(writer, (uint64_t)(peer - judge->peers));
    PUT_FIELDS(writer, peer_fields, peer);
}

static void take_peer(struct judge *judge, struct row_reader *reader)
{
    const uint64_t ps = row_take_number(reader);

    reader->failed |= ps >= judge->ps_count;
    if (reader->failed)
        return;
    TAKE_FIELDS(reader, peer_fields, &judge->peers[ps]);
}

/* ---- tasks ---- */

static const struct row_field task_fields[] = {
    NUMBER(judge_task, listed), NUMBER(judge_task, member),        NUMBER(judge_task, joined),
    NUMBER(judge_task, done),   NUMBER(judge_task, left),          NUMBER(judge_task, attempts),
    NUMBER(judge_task, final),  NUMBER(judge_task, acked_through),
};

static void put_task_name(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_task *task = object;
    (void)judge;

    assert(strlen(task->job) <= JUDGE_JOB_BYTES_MAX);
    row_put_text(writer, task->job);
    row_put_number(writer, task->index);
}

static void put_task(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_task *task = object;

    put_task_name(judge, writer, task);
    PUT_FIELDS(writer, task_fields, task);
    put_voided(writer, task->voided);
}

/* What `job` has room for is as long as a job may be. */
static wire_task_name take_task_name(struct row_reader *reader, char job[JUDGE_JOB_BYTES_MAX + 1])
{
    wire_task_name name = WIRE_TASK_NAME_INIT;

    job[0] = '\0';
    row_take_text(reader, job, JUDGE_JOB_BYTES_MAX + 1);
    const uint64_t index = row_take_number(reader);
    reader->failed |= index > UINT32_MAX;
    name.job = job;
    name.index = (uint32_t)index;
    return name;
}

static void take_task(struct judge *judge, struct row_reader *reader)
{
    char job[JUDGE_JOB_BYTES_MAX + 1];
    const wire_task_name name = take_task_name(reader, job);
    struct judge_task *task = reader->failed ? NULL : judge_task_find_or_add(judge, &name);

    reader->failed |= task == NULL;
    if (reader->failed)
        return;
    TAKE_FIELDS(reader, task_fields, task);
    read_row(judge, &task->row);
    take_voided(reader, judge, &task->voided);
}

static void forget_task(struct judge *judge, struct row_reader *reader)
{
    char job[JUDGE_JOB_BYTES_MAX + 1];
    const wire_task_name name = take_task_name(reader, job);
    struct judge_task *task = reader->failed ? NULL : judge_task_find(judge, &name);

    reader->failed |= task == NULL || !judge_task_may_be_forgotten(judge, task);
    if (!reader->failed)
        judge_task_forget(judge, task);
}

/* ---- sessions ---- */

static const struct row_field session_fields[] = {
    ENUMERATION(judge_session, state, JUDGE_SESSION_SETTLED),
    NUMBER(judge_session, role),
    TEXT(judge_session, job),
    NUMBER(judge_session, index),
    TEXT(judge_session, label),
    NUMBER(judge_session, attempt),
    NUMBER(judge_session, start_clock),
    NUMBER(judge_session, initial),
    NUMBER(judge_session, first_step),
    NUMBER(judge_session, taken_step),
    NUMBER(judge_session, made_step),
    NUMBER(judge_session, made_sequence),
    NUMBER(judge_session, opened),
    NUMBER(judge_session, done),
    NUMBER(judge_session, left),
    NUMBER(judge_session, last_sequence),
    NUMBER(judge_session, final),
    NUMBER(judge_session, acked_through),
    NUMBER(judge_session, cause.kind),
    NUMBER(judge_session, cause.silent_ms),
    NUMBER(judge_session, cause.attempt),
    TEXT(judge_session, cause.host),
    NUMBER(judge_session, cause.pid),
    TEXT(judge_session, host),
    NUMBER(judge_session, pid),
    NUMBER(judge_session, replaced.attempt),
    TEXT(judge_session, replaced.host),
    NUMBER(judge_session, replaced.pid),
    NUMBER(judge_session, replaced.alive),
    NUMBER(judge_session, replaced.silent_ms),
};

static void put_session_id(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_session *session = object;
    (void)judge;

    row_put_bytes(writer, session->id, JUDGE_ID_BYTES);
}

static void put_session(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_session *session = object;

    assert((session->task != NULL) == (session->role == WIRE_ROLE_MEMBER));
    put_session_id(judge, writer, session);
    row_put_bytes(writer, session->nonce, JUDGE_ID_BYTES);
    PUT_FIELDS(writer, session_fields, session);
    put_voided(writer, session->voided);
}

/* Of what follows from a row of its own nothing is written: whose it is, how many observers there
 * have been, that nobody assigns for a session that is settled. */
static void take_session(struct judge *judge, struct row_reader *reader)
{
    const uint8_t *id = row_take_bytes(reader, JUDGE_ID_BYTES);
    const uint8_t *nonce = row_take_bytes(reader, JUDGE_ID_BYTES);

    if (reader->failed)
        return;
    struct judge_session *session = judge_session_find(judge, id, JUDGE_ID_BYTES);
    if (session == NULL)
        session = judge_session_add(judge, id, nonce);
    reader->failed |= session == NULL;
    if (reader->failed)
        return;
    TAKE_FIELDS(reader, session_fields, session);
    read_row(judge, &session->row);
    take_voided(reader, judge, &session->voided);
    const wire_task_name name = {.job = session->job, .index = session->index};
    if (session->role == WIRE_ROLE_MEMBER)
        session->task = judge_task_find(judge, &name);
    else if (session->attempt > judge->observers)
        judge->observers = session->attempt;
    reader->failed |= session->role == WIRE_ROLE_MEMBER && session->task == NULL;
    if (!reader->failed && session->state == JUDGE_SESSION_SETTLED)
        judge_creator_settled(judge, session);
}

static void forget_session(struct judge *judge, struct row_reader *reader)
{
    const uint8_t *id = row_take_bytes(reader, JUDGE_ID_BYTES);
    struct judge_session *session =
        id == NULL ? NULL : judge_session_find(judge, id, JUDGE_ID_BYTES);

    reader->failed |= session == NULL;
    if (reader->failed)
        return;
    session->state = JUDGE_SESSION_SETTLED; /* it may be forgotten as it is settled */
    judge_creator_settled(judge, session);
    judge_session_forget(judge, session);
}

/* ---- functions ---- */

static const struct row_field function_fields[] = {
    ENUMERATION(judge_function, state, JUDGE_FUNCTION_REFUSED),
};

static void put_function(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_function *function = object;
    const struct defined_function *known = judge_function_known(judge, function);

    row_put_number(writer, known->row.function.number);
    row_put_text(writer, known->row.name);
    row_put_number(writer, known->text_bytes);
    row_put_bytes(writer, known->text, known->text_bytes);
    PUT_FIELDS(writer, function_fields, function);
}

static void take_function(struct judge *judge, struct row_reader *reader)
{
    char name[EXPRESSION_NAME_BYTES_MAX + 1] = "";
    struct sumac_error error;
    const uint64_t number = row_take_number(reader);

    row_take_text(reader, name, sizeof name);
    const uint64_t bytes = row_take_number(reader);
    const uint8_t *text = row_take_bytes(reader, bytes);
    reader->failed |= number > UINT32_MAX;
    if (reader->failed)
        return;
    reader->failed |= functions_add(
                          &judge->functions, (uint32_t)number, name, (const char *)text,
                          (size_t)bytes, &error) != SUMAC_OK;
    if (reader->failed)
        return;
    TAKE_FIELDS(reader, function_fields, &judge->defined[number - UPDATE_DEFINED_FIRST]);
}

/* ---- variables ---- */

static const struct row_field variable_fields[] = {
    ENUMERATION(judge_variable, state, JUDGE_VARIABLE_DELETING),
    NUMBER(judge_variable, unassigned.word[0]),
    NUMBER(judge_variable, unassigned.word[1]),
    NUMBER(judge_variable, unassigned.word[2]),
    NUMBER(judge_variable, unassigned.word[3]),
};
_Static_assert(JUDGE_MASK_WORDS == 4, "every word of a set of ps is in a variable's row");

static void put_variable_id(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_variable *variable = object;
    (void)judge;

    row_put_number(writer, variable->id);
}

/* Its shards follow from its definition, from how many there were before, and from their places. */
static void put_variable(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_variable *variable = object;
    const struct judge_session *creator = variable->creator;

    assert(variable->shard_count > 0);
    assert(creator == NULL || creator->state != JUDGE_SESSION_SETTLED);
    put_variable_id(judge, writer, variable);
    row_put_number(writer, variable->shards_before);
    row_put_number(writer, variable->turns);
    if (writer->out == NULL) {
        const wire_variable *made = judge_variable_definition(judge, variable);
        writer->message = made == NULL ? NULL : &made->base;
    }
    row_put_message(writer);
    row_put_number(writer, variable->shard_count);
    row_put_bytes(writer, variable->places, variable->shard_count);
    PUT_FIELDS(writer, variable_fields, variable);
    row_put_number(writer, creator != NULL);
    row_put_bytes(
        writer, creator == NULL ? NULL : creator->id, creator == NULL ? 0 : JUDGE_ID_BYTES);
}

struct shard_places {
    const uint8_t *ps;
    uint64_t count;
};

/* Of a cluster with these ps, for a variable that is defined so? */
static bool may_be_its(
    const struct judge *judge, const struct shard_places *places,
    const struct definition *definition)
{
    struct sumac_error error;
    uint64_t count = 0;

    assert(judge->ps_count > 0);
    for (uint64_t i = 0; i < places->count; i++)
        if (places->ps[i] >= judge->ps_count)
            return false;
    return placement_shard_count(
               &definition->partitioner, &definition->shape, definition->dtype, &count, &error) ==
               SUMAC_OK &&
           count == places->count;
}

/* NULL: it does not follow, or its name is another's, or there is no memory. */
static struct judge_variable *make_variable(
    struct judge *judge, uint64_t id, uint64_t shards_before, const wire_variable *message,
    const struct shard_places *places)
{
    struct judge_variable *variable = NULL;
    struct definition definition;
    struct sumac_error error;

    if (id <= judge->variables_made || shards_before < judge->shards_made ||
        definition_read(message, &judge->functions, &definition, &error) != SUMAC_OK ||
        judge_variable_find(judge, message->name) != NULL || judge->ps_count == 0 ||
        !may_be_its(judge, places, &definition))
        return NULL;
    judge->variables_made = id - 1;
    judge->shards_made = shards_before;
    if (judge_variable_make(judge, message->name, &definition, places->ps, &variable, &error) !=
        SUMAC_OK)
        return NULL;
    assert(variable->id == id);
    return variable;
}

static void
take_creator(struct judge *judge, struct row_reader *reader, struct judge_variable *variable)
{
    const bool any = row_take_number(reader) != 0;
    const uint8_t *id = row_take_bytes(reader, any ? JUDGE_ID_BYTES : 0);

    if (reader->failed)
        return;
    variable->creator = any ? judge_session_find(judge, id, JUDGE_ID_BYTES) : NULL;
    reader->failed |= any && variable->creator == NULL;
}

static void take_variable(struct judge *judge, struct row_reader *reader)
{
    const uint64_t id = row_take_number(reader), shards_before = row_take_number(reader);
    const uint64_t turns = row_take_number(reader);
    const wire_variable *message = (const wire_variable *)row_take_message(
        reader, &sumac__v1__variable__descriptor, &judge->said->arena);
    struct shard_places places = {.count = row_take_number(reader)};

    places.ps = row_take_bytes(reader, places.count);
    if (reader->failed)
        return;
    struct judge_variable *variable = judge_variable_by_id(judge, id);
    if (variable == NULL) {
        judge->turns = turns;
        variable = make_variable(judge, id, shards_before, message, &places);
    }
    reader->failed |= variable == NULL || variable->shard_count != places.count ||
                      memcmp(variable->places, places.ps, variable->shard_count) != 0;
    if (reader->failed)
        return;
    const bool was_named = variable->state != JUDGE_VARIABLE_DELETING;
    TAKE_FIELDS(reader, variable_fields, variable);
    read_row(judge, &variable->row);
    if (was_named && variable->state == JUDGE_VARIABLE_DELETING)
        judge_variable_hide(judge, variable);
    reader->failed |= !was_named && variable->state != JUDGE_VARIABLE_DELETING;
    take_creator(judge, reader, variable);
}

static void forget_variable(struct judge *judge, struct row_reader *reader)
{
    struct judge_variable *variable = judge_variable_by_id(judge, row_take_number(reader));

    reader->failed |= variable == NULL || variable->state != JUDGE_VARIABLE_DELETING;
    if (!reader->failed)
        judge_variable_free(judge, variable);
}

/* ---- barriers ---- */

static const struct row_field barrier_fields[] = {
    NUMBER(judge_barrier, of_all),     NUMBER(judge_barrier, open),
    NUMBER(judge_barrier, end_known),  NUMBER(judge_barrier, round),
    NUMBER(judge_barrier, timeout_ms), NUMBER(judge_barrier, come_count),
    NUMBER(judge_barrier, end.status), NUMBER(judge_barrier, end.reason),
    TEXT(judge_barrier, end.text),
};

static const struct row_field place_fields[] = {
    NUMBER(judge_place, chief),
    NUMBER(judge_place, index),
    NUMBER(judge_place, round),
    NUMBER(judge_place, attempt),
};

static void put_barrier_name(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_barrier *barrier = object;
    (void)judge;

    row_put_text(writer, barrier->name);
}

static void put_barrier(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_barrier *barrier = object;

    put_barrier_name(judge, writer, barrier);
    row_put_number(writer, barrier->place_count);
    PUT_FIELDS(writer, barrier_fields, barrier);
    for (uint32_t i = 0; i < barrier->place_count; i++)
        PUT_FIELDS(writer, place_fields, &barrier->places[i]);
}

/* The one that a row is about, with as many places; NULL: there is none such, or no memory. */
static struct judge_barrier *
take_places(struct judge *judge, struct row_reader *reader, const char *name)
{
    const uint64_t count = row_take_number(reader);
    struct judge_barrier *barrier = judge_barrier_find(judge, name);

    if (reader->failed || count == 0 || count > WIRE_BARRIER_TASKS_MAX)
        return NULL;
    if (barrier == NULL)
        return judge_barrier_add(judge, name, (uint32_t)count);
    const struct judge_barrier old = *barrier;
    if (count != old.place_count && !judge_barrier_resize(judge, barrier, (uint32_t)count))
        return NULL;
    if (count != old.place_count)
        judge_barrier_places_give(judge, &old);
    return barrier;
}

static void take_barrier(struct judge *judge, struct row_reader *reader)
{
    char name[JUDGE_BARRIER_NAME_BYTES_MAX + 1] = "";

    row_take_text(reader, name, sizeof name);
    struct judge_barrier *barrier = take_places(judge, reader, name);
    reader->failed |= barrier == NULL;
    if (reader->failed)
        return;
    TAKE_FIELDS(reader, barrier_fields, barrier);
    for (uint32_t i = 0; i < barrier->place_count; i++)
        TAKE_FIELDS(reader, place_fields, &barrier->places[i]);
    reader->failed |= barrier->come_count > barrier->place_count;
    judge_barrier_changed(judge, barrier);
    read_row(judge, &barrier->row);
}

static void forget_barrier(struct judge *judge, struct row_reader *reader)
{
    char name[JUDGE_BARRIER_NAME_BYTES_MAX + 1] = "";

    row_take_text(reader, name, sizeof name);
    struct judge_barrier *barrier = reader->failed ? NULL : judge_barrier_find(judge, name);
    reader->failed |= barrier == NULL || barrier->open;
    if (!reader->failed)
        judge_barrier_forget(judge, barrier);
}

/* ---- rounds of rendezvous ---- */

static void put_meeting_number(struct judge *judge, struct row_writer *writer, const void *object)
{
    const struct judge_meeting *meeting = object;
    (void)judge;

    assert(meeting->order.number != 0);
    row_put_number(writer, meeting->order.number);
}

static void put_meeting(struct judge *judge, struct row_writer *writer, const void *object)
{
    put_meeting_number(judge, writer, object);
    if (writer->out == NULL) {
        const wire_meeting_end *made = judge_meeting_message(judge, object);
        writer->message = made == NULL ? NULL : &made->base;
    }
    row_put_message(writer);
}

/* Nothing changes of one: it is there, or it is gone. */
static void take_meeting(struct judge *judge, struct row_reader *reader)
{
    const uint64_t number = row_take_number(reader);
    const wire_message *message =
        row_take_message(reader, &sumac__v1__meeting_end__descriptor, &judge->said->arena);
    struct judge_meeting *meeting =
        message == NULL ? NULL
                        : judge_meeting_replay(judge, number, (const wire_meeting_end *)message);

    reader->failed |= meeting == NULL;
    if (!reader->failed)
        read_row(judge, &meeting->row);
}

static void forget_meeting(struct judge *judge, struct row_reader *reader)
{
    struct judge_meeting *meeting = judge_meeting_by_number(judge, row_take_number(reader));

    reader->failed |= meeting == NULL;
    if (!reader->failed)
        judge_meeting_forget(judge, meeting);
}

/* ---- synchronous steps of K of N ---- */

/* Its number, and whose contributions it is made of. */
static void put_step(struct judge *judge, struct row_writer *writer, const void *object)
{
    uint64_t count = 0;

    assert(object == &judge->step_row);
    for (const struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        count += session->taken_step == judge->step_taken;
    row_put_number(writer, judge->step_taken);
    row_put_number(writer, count);
    for (const struct judge_session *session = judge->sessions.first; session != NULL;
         session = session->in_judge.next)
        if (session->taken_step == judge->step_taken)
            row_put_bytes(writer, session->id, JUDGE_ID_BYTES);
}

static void take_step(struct judge *judge, struct row_reader *reader)
{
    judge->step_taken = row_take_number(reader);
    const uint64_t count = row_take_number(reader);

    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        const uint8_t *id = row_take_bytes(reader, JUDGE_ID_BYTES);
        struct judge_session *session =
            id == NULL ? NULL : judge_session_find(judge, id, JUDGE_ID_BYTES);
        reader->failed |= session == NULL;
        if (session != NULL)
            session->taken_step = judge->step_taken;
    }
}

/* ---- one row ---- */

static const struct {
    void (*put)(struct judge *judge, struct row_writer *writer, const void *object);
    void (*take)(struct judge *judge, struct row_reader *reader);
    void (*put_gone)(struct judge *judge, struct row_writer *writer, const void *object);
    void (*take_gone)(struct judge *judge, struct row_reader *reader);
} kinds[JUDGE_ROW_KINDS] = {
    [JUDGE_ROW_CLUSTER] = {put_cluster, take_cluster, NULL, NULL},
    [JUDGE_ROW_PS] = {put_peer, take_peer, NULL, NULL},
    [JUDGE_ROW_TASK] = {put_task, take_task, put_task_name, forget_task},
    [JUDGE_ROW_SESSION] = {put_session, take_session, put_session_id, forget_session},
    [JUDGE_ROW_FUNCTION] = {put_function, take_function, NULL, NULL},
    [JUDGE_ROW_VARIABLE] = {put_variable, take_variable, put_variable_id, forget_variable},
    [JUDGE_ROW_STEP] = {put_step, take_step, NULL, NULL},
    [JUDGE_ROW_MEETING] = {put_meeting, take_meeting, put_meeting_number, forget_meeting},
    [JUDGE_ROW_BARRIER] = {put_barrier, take_barrier, put_barrier_name, forget_barrier},
};

static bool write(
    struct judge *judge, enum judge_row_kind kind, bool gone, const void *object, struct span *out)
{
    void (*put)(struct judge *, struct row_writer *, const void *) =
        gone ? kinds[kind].put_gone : kinds[kind].put;
    struct row_writer writer = {.bytes = JUDGE_ROW_HEAD_BYTES};

    assert(put != NULL);
    put(judge, &writer, object);
    const size_t bytes = writer.bytes;
    writer.out = writer.failed ? NULL : arena_take(&judge->said->arena, bytes);
    if (writer.out == NULL || bytes > UINT32_MAX)
        return false;
    memset(writer.out, 0, JUDGE_ROW_HEAD_BYTES);
    writer.out[0] = (uint8_t)kind;
    writer.out[1] = gone;
    little_endian_put(writer.out + 4, 4, bytes);
    writer.bytes = JUDGE_ROW_HEAD_BYTES;
    put(judge, &writer, object);
    assert(writer.bytes == bytes);
    *out = (struct span){.data = writer.out, .bytes = bytes};
    return true;
}

bool judge_row_write(
    struct judge *judge, enum judge_row_kind kind, const struct judge_row *row, struct span *out)
{
    return write(judge, kind, false, row, out);
}

bool judge_row_write_gone(
    struct judge *judge, enum judge_row_kind kind, const struct judge_row *row, struct span *out)
{
    return write(judge, kind, true, row, out);
}

/* False: it is none that a judge writes, or does not follow. */
static bool take_row(struct judge *judge, struct row_reader *record)
{
    const uint8_t *head = row_take_bytes(record, JUDGE_ROW_HEAD_BYTES);

    if (head == NULL || head[0] == 0 || head[0] >= JUDGE_ROW_KINDS || head[1] > 1)
        return false;
    const uint64_t bytes = little_endian_get(head + 4, 4);
    const uint8_t *data =
        bytes < JUDGE_ROW_HEAD_BYTES ? NULL : row_take_bytes(record, bytes - JUDGE_ROW_HEAD_BYTES);
    struct row_reader reader = {.at = data, .left = (size_t)bytes - JUDGE_ROW_HEAD_BYTES};
    void (*take)(struct judge *, struct row_reader *) =
        head[1] != 0 ? kinds[head[0]].take_gone : kinds[head[0]].take;
    if (data == NULL || take == NULL)
        return false;
    take(judge, &reader);
    return !reader.failed && reader.left == 0;
}

enum sumac_status
judge_replay(struct judge *judge, const struct span *record, struct sumac_error *error)
{
    struct row_reader reader = {.at = record->data, .left = record->bytes};
    bool follows = record->bytes > 0;

    assert(!judge->records); /* it has yet to begin */
    assert(judge->orders.first == NULL);
    judge_effects_begin(judge, false);
    while (follows && reader.left > 0)
        follows = take_row(judge, &reader);
    if (!follows)
        return fail(
            error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
            "record %" PRIu64 " of ps 0's judge is none that it writes, does not follow from those "
            "before it, or there is no memory",
            judge->last_record + 1);
    judge->recorded = ++judge->last_record;
    return SUMAC_OK;
}
