/* SPDX-License-Identifier: Apache-2.0 */
/* write_rows.c -- the rows of the controller's records (controller_rows.h), written and read. */
#include "barrier.h"
#include "catalogue.h"
#include "controller_collectives.h"
#include "row_bytes.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "little_endian.h"
#include "controller_members.h"

static void put_voided(struct row_writer *writer, const struct controller_voided *voided)
{
    const uint32_t count = voided == NULL ? 0 : voided->count;

    assert(count <= CONTROLLER_VOIDED_MAX);
    row_put_number(writer, count);
    for (uint32_t i = 0; i < count; i++)
        row_put_number(writer, voided->sequence[i]);
}

/* In place of what was there. */
static void take_voided(
    struct row_reader *reader, struct controller *controller, struct controller_voided **voided)
{
    const uint64_t count = row_take_number(reader);

    controller_voided_drop(controller, voided);
    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        const uint64_t sequence = row_take_number(reader);
        reader->failed |= reader->failed || !controller_voided_add(controller, voided, sequence);
    }
}

/* A record has spoken of the object, so another one says when it is gone. */
static void read_row(const struct controller *controller, struct controller_row *row)
{
    assert(!controller->records);
    row->record = controller->last_record + 1;
}

/* ---- the cluster, and its ps ---- */

static const struct row_field cluster_fields[] = {
    NUMBER(controller, beginnings),
    NUMBER(controller, cluster_id),
    NUMBER(controller, secret),
    NUMBER(controller, ps_count),
    NUMBER(controller, membership_epoch),
    NUMBER(controller, membership_told),
    NUMBER(controller, member_joined),
    NUMBER(controller, members_whole),
    NUMBER(controller, initials),
    NUMBER(controller, some_left_done),
    ENUMERATION(controller, phase, CONTROLLER_ENDED),
    NUMBER(controller, exit_code),
    NUMBER(controller, end_reason),
    NUMBER(controller, ends_of_itself),
    TEXT(controller, end_text),
};

static void put_cluster(struct row_writer *writer, const void *object)
{
    assert(object == writer->controller);
    PUT_FIELDS(writer, cluster_fields, object);
}

static void take_cluster(struct controller *controller, struct row_reader *reader)
{
    TAKE_FIELDS(reader, cluster_fields, controller);
    reader->failed |= controller->ps_count > LANE_PS_MAX;
}

static const struct row_field peer_fields[] = {
    NUMBER(controller_peer, incarnation),
    TEXT(controller_peer, address),
};

static void put_peer(struct row_writer *writer, const void *object)
{
    const struct controller_peer *peer = object, *const first = writer->controller->peers;

    assert(peer >= first);
    assert(peer < first + writer->controller->ps_count);
    row_put_number(writer, (uint64_t)(peer - first));
    PUT_FIELDS(writer, peer_fields, peer);
}

static void take_peer(struct controller *controller, struct row_reader *reader)
{
    const uint64_t ps = row_take_number(reader);

    if (row_fails(reader, ps >= controller->ps_count))
        return;
    TAKE_FIELDS(reader, peer_fields, &controller->peers[ps]);
}

/* ---- tasks ---- */

static const struct row_field task_fields[] = {
    NUMBER(controller_task, listed), NUMBER(controller_task, member),
    NUMBER(controller_task, joined), NUMBER(controller_task, done),
    NUMBER(controller_task, left),   NUMBER(controller_task, attempts),
    NUMBER(controller_task, final),  NUMBER(controller_task, acked_through),
};

static void put_task_name(struct row_writer *writer, const void *object)
{
    const struct controller_task *task = object;

    assert(strlen(task->key.job) <= CONTROLLER_JOB_BYTES_MAX);
    row_put_text(writer, task->key.job);
    row_put_number(writer, task->key.index);
}

static void put_task(struct row_writer *writer, const void *object)
{
    const struct controller_task *task = object;

    put_task_name(writer, task);
    PUT_FIELDS(writer, task_fields, task);
    put_voided(writer, task->voided);
}

/* What `job` has room for is as long as a job may be. */
static wire_task_name
take_task_name(struct row_reader *reader, char job[CONTROLLER_JOB_BYTES_MAX + 1])
{
    wire_task_name name = WIRE_TASK_NAME_INIT;

    job[0] = '\0';
    row_take_text(reader, job, CONTROLLER_JOB_BYTES_MAX + 1);
    const uint64_t index = row_take_number(reader);
    reader->failed |= index > UINT32_MAX;
    name.job = job;
    name.index = (uint32_t)index;
    return name;
}

static void take_task(struct controller *controller, struct row_reader *reader)
{
    char job[CONTROLLER_JOB_BYTES_MAX + 1];
    const wire_task_name name = take_task_name(reader, job);
    struct controller_task *task =
        reader->failed ? NULL : controller_task_find_or_add(controller, &name);

    if (row_fails(reader, task == NULL))
        return;
    TAKE_FIELDS(reader, task_fields, task);
    read_row(controller, &task->row);
    take_voided(reader, controller, &task->voided);
}

static void forget_task(struct controller *controller, struct row_reader *reader)
{
    char job[CONTROLLER_JOB_BYTES_MAX + 1];
    const wire_task_name name = take_task_name(reader, job);
    struct controller_task *task = reader->failed ? NULL : controller_task_find(controller, &name);

    reader->failed |= task == NULL || !controller_task_may_be_forgotten(controller, task);
    if (!reader->failed)
        controller_task_forget(controller, task);
}

/* ---- sessions ---- */

static const struct row_field session_fields[] = {
    ENUMERATION(controller_session, state, CONTROLLER_SESSION_SETTLED),
    NUMBER(controller_session, role),
    TEXT(controller_session, job),
    NUMBER(controller_session, index),
    TEXT(controller_session, label),
    NUMBER(controller_session, attempt),
    NUMBER(controller_session, start_clock),
    NUMBER(controller_session, initial),
    NUMBER(controller_session, first_step),
    NUMBER(controller_session, taken_step),
    NUMBER(controller_session, made_step),
    NUMBER(controller_session, made_sequence),
    NUMBER(controller_session, opened),
    NUMBER(controller_session, done),
    NUMBER(controller_session, left),
    NUMBER(controller_session, last_sequence),
    NUMBER(controller_session, final),
    NUMBER(controller_session, acked_through),
    NUMBER(controller_session, cause.kind),
    NUMBER(controller_session, cause.silent_ms),
    NUMBER(controller_session, cause.attempt),
    TEXT(controller_session, cause.host),
    NUMBER(controller_session, cause.pid),
    TEXT(controller_session, host),
    NUMBER(controller_session, pid),
    NUMBER(controller_session, replaced.attempt),
    TEXT(controller_session, replaced.host),
    NUMBER(controller_session, replaced.pid),
    NUMBER(controller_session, replaced.alive),
    NUMBER(controller_session, replaced.silent_ms),
};

static void put_session_id(struct row_writer *writer, const void *object)
{
    const struct controller_session *session = object;

    row_put_bytes(writer, session->id, CONTROLLER_ID_BYTES);
}

static void put_session(struct row_writer *writer, const void *object)
{
    const struct controller_session *session = object;

    assert((session->task != NULL) == (session->role == WIRE_ROLE_MEMBER));
    put_session_id(writer, session);
    row_put_bytes(writer, session->nonce, CONTROLLER_ID_BYTES);
    PUT_FIELDS(writer, session_fields, session);
    put_voided(writer, session->voided);
}

/* Three facts are not written, because they follow from the session's row:
 *   - the session's task
 *   - the count of observers so far
 *   - a settled session assigns no variable
 */
static void take_session(struct controller *controller, struct row_reader *reader)
{
    const uint8_t *id = row_take_bytes(reader, CONTROLLER_ID_BYTES);
    const uint8_t *nonce = row_take_bytes(reader, CONTROLLER_ID_BYTES);

    if (reader->failed)
        return;
    struct controller_session *session =
        controller_session_find(controller, id, CONTROLLER_ID_BYTES);
    if (session == NULL)
        session = controller_session_add(controller, id, nonce);
    if (row_fails(reader, session == NULL))
        return;
    TAKE_FIELDS(reader, session_fields, session);
    read_row(controller, &session->row);
    take_voided(reader, controller, &session->voided);
    const wire_task_name name = {.job = session->job, .index = session->index};
    if (session->role == WIRE_ROLE_MEMBER)
        session->task = controller_task_find(controller, &name);
    else if (session->attempt > controller->observers)
        controller->observers = session->attempt;
    reader->failed |= session->role == WIRE_ROLE_MEMBER && session->task == NULL;
    if (!reader->failed && session->state == CONTROLLER_SESSION_SETTLED)
        controller_creator_settled(controller, session);
}

/* The session whose id comes next. NULL: no session has the id, and the reader has failed. */
static struct controller_session *
take_session_id(struct controller *controller, struct row_reader *reader)
{
    const uint8_t *id = row_take_bytes(reader, CONTROLLER_ID_BYTES);
    struct controller_session *session =
        id == NULL ? NULL : controller_session_find(controller, id, CONTROLLER_ID_BYTES);

    reader->failed |= session == NULL;
    return session;
}

static void forget_session(struct controller *controller, struct row_reader *reader)
{
    struct controller_session *session = take_session_id(controller, reader);

    if (session == NULL)
        return;
    session->state = CONTROLLER_SESSION_SETTLED; /* it may be forgotten as it is settled */
    controller_creator_settled(controller, session);
    controller_session_forget(controller, session);
}

/* ---- functions ---- */

static const struct row_field function_fields[] = {
    ENUMERATION(controller_function, state, CONTROLLER_FUNCTION_REFUSED),
};

static void put_function(struct row_writer *writer, const void *object)
{
    const struct controller_function *function = object;
    const struct defined_function *known = controller_function_known(writer->controller, function);

    row_put_number(writer, known->row.function.number);
    row_put_text(writer, known->row.name);
    row_put_number(writer, known->text_bytes);
    row_put_bytes(writer, known->text, known->text_bytes);
    PUT_FIELDS(writer, function_fields, function);
}

static void take_function(struct controller *controller, struct row_reader *reader)
{
    char name[EXPRESSION_NAME_BYTES_MAX + 1] = "";
    struct sumac_error error;
    const uint64_t number = row_take_number(reader);

    row_take_text(reader, name, sizeof name);
    const uint64_t bytes = row_take_number(reader);
    const uint8_t *text = row_take_bytes(reader, bytes);
    if (row_fails(reader, number > UINT32_MAX))
        return;
    if (row_fails(
            reader, functions_add(
                        &controller->functions, (uint32_t)number, name, (const char *)text,
                        (size_t)bytes, &error) != SUMAC_OK))
        return;
    TAKE_FIELDS(reader, function_fields, &controller->defined[number - UPDATE_DEFINED_FIRST]);
}

/* ---- variables ---- */

static const struct row_field variable_fields[] = {
    ENUMERATION(controller_variable, state, CONTROLLER_VARIABLE_DELETING),
    NUMBER(controller_variable, unassigned.word[0]),
    NUMBER(controller_variable, unassigned.word[1]),
    NUMBER(controller_variable, unassigned.word[2]),
    NUMBER(controller_variable, unassigned.word[3]),
};
_Static_assert(CONTROLLER_MASK_WORDS == 4, "every word of a set of ps is in a variable's row");

static void put_variable_id(struct row_writer *writer, const void *object)
{
    const struct controller_variable *variable = object;

    row_put_number(writer, variable->id);
}

/* The shards are not written. They follow from the definition, shards_before and the places. */
static void put_variable(struct row_writer *writer, const void *object)
{
    const struct controller_variable *variable = object;
    const struct controller_session *creator = variable->creator;

    assert(variable->shard_count > 0);
    assert(creator == NULL || creator->state != CONTROLLER_SESSION_SETTLED);
    put_variable_id(writer, variable);
    row_put_number(writer, variable->shards_before);
    row_put_number(writer, variable->turns);
    if (writer->out == NULL)
        writer->message =
            (const wire_message *)controller_variable_definition(writer->controller, variable);
    row_put_message(writer);
    row_put_number(writer, variable->shard_count);
    row_put_bytes(writer, variable->places, variable->shard_count);
    PUT_FIELDS(writer, variable_fields, variable);
    row_put_number(writer, creator != NULL);
    row_put_bytes(
        writer, creator == NULL ? NULL : creator->id, creator == NULL ? 0 : CONTROLLER_ID_BYTES);
}

struct shard_places {
    const uint8_t *ps;
    uint64_t count;
};

/* True if the cluster has every one of these ps, and the definition gives this shard count. */
static bool may_be_its(
    const struct controller *controller, const struct shard_places *places,
    const struct definition *definition)
{
    struct sumac_error error;
    uint64_t count = 0;

    assert(controller->ps_count > 0);
    for (uint64_t i = 0; i < places->count; i++)
        if (places->ps[i] >= controller->ps_count)
            return false;
    return placement_shard_count(
               &definition->partitioner, &definition->shape, definition->dtype, &count, &error) ==
               SUMAC_OK &&
           count == places->count;
}

/* NULL: the row does not follow from earlier rows, its name is in use, or there is no memory. */
static struct controller_variable *make_variable(
    struct controller *controller, uint64_t id, uint64_t shards_before,
    const wire_variable *message, const struct shard_places *places)
{
    struct controller_variable *variable = NULL;
    struct definition definition;
    struct sumac_error error;

    if (id <= controller->variables_made || shards_before < controller->shards_made ||
        definition_read(message, &controller->functions, &definition, &error) != SUMAC_OK ||
        controller_variable_find(controller, message->name) != NULL || controller->ps_count == 0 ||
        !may_be_its(controller, places, &definition))
        return NULL;
    controller->variables_made = id - 1;
    controller->shards_made = shards_before;
    if (controller_variable_make(
            controller, message->name, &definition, places->ps, &variable, &error) != SUMAC_OK)
        return NULL;
    assert(variable->id == id);
    return variable;
}

static void take_variable(struct controller *controller, struct row_reader *reader)
{
    const uint64_t id = row_take_number(reader), shards_before = row_take_number(reader);
    const uint64_t turns = row_take_number(reader);
    const wire_variable *message = (const wire_variable *)row_take_message(
        reader, &sumac__v1__variable__descriptor, controller->out->arena);
    struct shard_places places = {.count = row_take_number(reader)};

    places.ps = row_take_bytes(reader, places.count);
    if (reader->failed)
        return;
    struct controller_variable *variable = controller_variable_by_id(controller, id);
    if (variable == NULL) {
        controller->turns = turns;
        variable = make_variable(controller, id, shards_before, message, &places);
    }
    if (row_fails(
            reader, variable == NULL || variable->shard_count != places.count ||
                        memcmp(variable->places, places.ps, variable->shard_count) != 0))
        return;
    const bool was_named = variable->state != CONTROLLER_VARIABLE_DELETING;
    TAKE_FIELDS(reader, variable_fields, variable);
    read_row(controller, &variable->row);
    if (was_named && variable->state == CONTROLLER_VARIABLE_DELETING)
        controller_variable_hide(controller, variable);
    reader->failed |= !was_named && variable->state != CONTROLLER_VARIABLE_DELETING;
    const bool has_creator = row_take_number(reader) != 0;
    variable->creator = has_creator ? take_session_id(controller, reader) : NULL;
}

static void forget_variable(struct controller *controller, struct row_reader *reader)
{
    struct controller_variable *variable =
        controller_variable_by_id(controller, row_take_number(reader));

    reader->failed |= variable == NULL || variable->state != CONTROLLER_VARIABLE_DELETING;
    if (!reader->failed)
        controller_variable_free(controller, variable);
}

/* ---- barriers ---- */

static const struct row_field barrier_fields[] = {
    NUMBER(controller_barrier, of_all),     NUMBER(controller_barrier, open),
    NUMBER(controller_barrier, end_known),  NUMBER(controller_barrier, round),
    NUMBER(controller_barrier, timeout_ms), NUMBER(controller_barrier, come_count),
    NUMBER(controller_barrier, end.status), NUMBER(controller_barrier, end.reason),
    TEXT(controller_barrier, end.text),
};

static const struct row_field place_fields[] = {
    NUMBER(controller_place, chief),
    NUMBER(controller_place, index),
    NUMBER(controller_place, round),
    NUMBER(controller_place, attempt),
};

static void put_barrier_name(struct row_writer *writer, const void *object)
{
    const struct controller_barrier *barrier = object;

    row_put_text(writer, barrier->name);
}

static void put_barrier(struct row_writer *writer, const void *object)
{
    const struct controller_barrier *barrier = object;

    put_barrier_name(writer, barrier);
    row_put_number(writer, barrier->place_count);
    PUT_FIELDS(writer, barrier_fields, barrier);
    for (uint32_t i = 0; i < barrier->place_count; i++)
        PUT_FIELDS(writer, place_fields, &barrier->places[i]);
}

/* The row's barrier, with as many places as the row has. NULL: the row is invalid, or no memory. */
static struct controller_barrier *
take_places(struct controller *controller, struct row_reader *reader, const char *name)
{
    const uint64_t count = row_take_number(reader);
    struct controller_barrier *barrier = controller_barrier_find(controller, name);

    if (reader->failed || count == 0 || count > WIRE_BARRIER_TASKS_MAX)
        return NULL;
    if (barrier == NULL)
        return controller_barrier_add(controller, name, (uint32_t)count);
    const struct controller_barrier old = *barrier;
    if (count != old.place_count &&
        !controller_barrier_resize(controller, barrier, (uint32_t)count))
        return NULL;
    if (count != old.place_count)
        controller_barrier_places_give(controller, &old);
    return barrier;
}

static void take_barrier(struct controller *controller, struct row_reader *reader)
{
    char name[CONTROLLER_BARRIER_NAME_BYTES_MAX + 1] = "";

    row_take_text(reader, name, sizeof name);
    struct controller_barrier *barrier = take_places(controller, reader, name);
    if (row_fails(reader, barrier == NULL))
        return;
    TAKE_FIELDS(reader, barrier_fields, barrier);
    for (uint32_t i = 0; i < barrier->place_count; i++)
        TAKE_FIELDS(reader, place_fields, &barrier->places[i]);
    reader->failed |= barrier->come_count > barrier->place_count;
    controller_barrier_changed(controller, barrier);
    read_row(controller, &barrier->row);
}

static void forget_barrier(struct controller *controller, struct row_reader *reader)
{
    char name[CONTROLLER_BARRIER_NAME_BYTES_MAX + 1] = "";

    row_take_text(reader, name, sizeof name);
    struct controller_barrier *barrier =
        reader->failed ? NULL : controller_barrier_find(controller, name);
    reader->failed |= barrier == NULL || barrier->open;
    if (!reader->failed)
        controller_barrier_forget(controller, barrier);
}

/* ---- rounds of collectives ---- */

static void put_collective_number(struct row_writer *writer, const void *object)
{
    const struct controller_collective *collective = object;

    assert(collective->order.number != 0);
    row_put_number(writer, collective->order.number);
}

static void put_collective(struct row_writer *writer, const void *object)
{
    put_collective_number(writer, object);
    if (writer->out == NULL)
        writer->message =
            (const wire_message *)controller_collective_message(writer->controller, object);
    row_put_message(writer);
}

/* Nothing changes of one: it is there, or it is gone. */
static void take_collective(struct controller *controller, struct row_reader *reader)
{
    const uint64_t number = row_take_number(reader);
    const wire_message *message =
        row_take_message(reader, &sumac__v1__collective_end__descriptor, controller->out->arena);
    struct controller_collective *collective =
        message == NULL ? NULL
                        : controller_collective_replay(
                              controller, number, (const wire_collective_end *)message);

    reader->failed |= collective == NULL;
    if (!reader->failed)
        read_row(controller, &collective->row);
}

static void forget_collective(struct controller *controller, struct row_reader *reader)
{
    struct controller_collective *collective =
        controller_collective_by_number(controller, row_take_number(reader));

    reader->failed |= collective == NULL;
    if (!reader->failed)
        controller_collective_forget(controller, collective);
}

/* ---- synchronous steps of K of N ---- */

/* Its number, and whose contributions it is made of. */
static void put_step(struct row_writer *writer, const void *object)
{
    const struct controller *controller = writer->controller;
    uint64_t count = 0;

    assert(object == &controller->step_row);
    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller)
        count += session->taken_step == controller->step_taken;
    row_put_number(writer, controller->step_taken);
    row_put_number(writer, count);
    LIST_FOREACH(const struct controller_session, session, &controller->sessions, in_controller)
        if (session->taken_step == controller->step_taken)
            row_put_bytes(writer, session->id, CONTROLLER_ID_BYTES);
}

static void take_step(struct controller *controller, struct row_reader *reader)
{
    controller->step_taken = row_take_number(reader);
    const uint64_t count = row_take_number(reader);

    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        struct controller_session *session = take_session_id(controller, reader);
        if (session != NULL)
            session->taken_step = controller->step_taken;
    }
}

/* ---- one row ---- */

const struct row_functions row_functions[CONTROLLER_ROW_KINDS] = {
    [CONTROLLER_ROW_CLUSTER] = {put_cluster, take_cluster, NULL, NULL},
    [CONTROLLER_ROW_PS] = {put_peer, take_peer, NULL, NULL},
    [CONTROLLER_ROW_TASK] = {put_task, take_task, put_task_name, forget_task},
    [CONTROLLER_ROW_SESSION] = {put_session, take_session, put_session_id, forget_session},
    [CONTROLLER_ROW_FUNCTION] = {put_function, take_function, NULL, NULL},
    [CONTROLLER_ROW_VARIABLE] = {put_variable, take_variable, put_variable_id, forget_variable},
    [CONTROLLER_ROW_STEP] = {put_step, take_step, NULL, NULL},
    [CONTROLLER_ROW_COLLECTIVE] =
        {put_collective, take_collective, put_collective_number, forget_collective},
    [CONTROLLER_ROW_BARRIER] = {put_barrier, take_barrier, put_barrier_name, forget_barrier},
};

/* False: a controller writes no such row, or the row does not follow from earlier rows. */
static bool take_row(struct controller *controller, struct row_reader *record)
{
    const uint8_t *head = row_take_bytes(record, CONTROLLER_ROW_HEAD_BYTES);

    if (head == NULL || head[0] == 0 || head[0] >= CONTROLLER_ROW_KINDS || head[1] > 1)
        return false;
    const uint64_t bytes = little_endian_get(head + 4, 4);
    const uint8_t *data = bytes < CONTROLLER_ROW_HEAD_BYTES
                              ? NULL
                              : row_take_bytes(record, bytes - CONTROLLER_ROW_HEAD_BYTES);
    struct row_reader reader = {.at = data, .left = (size_t)bytes - CONTROLLER_ROW_HEAD_BYTES};
    void (*take)(struct controller *, struct row_reader *) =
        head[1] != 0 ? row_functions[head[0]].take_gone : row_functions[head[0]].take;
    if (data == NULL || take == NULL)
        return false;
    take(controller, &reader);
    return !reader.failed && reader.left == 0;
}

enum sumac_status controller_replay(
    struct controller *controller, const struct span *record, struct sumac_error *error)
{
    struct row_reader reader = {.at = record->data, .left = record->bytes};
    bool follows = record->bytes > 0;

    assert(!controller->records); /* it has yet to begin */
    assert(controller->orders.first == NULL);
    controller_begin(controller, false);
    while (follows && reader.left > 0)
        follows = take_row(controller, &reader);
    if (!follows)
        return fail(
            error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
            "record %" PRIu64 " of ps 0's controller is damaged, does not follow from those "
            "before it, or there is no memory",
            controller->last_record + 1);
    controller->recorded = ++controller->last_record;
    return SUMAC_OK;
}
