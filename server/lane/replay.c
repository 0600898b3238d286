/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c -- a lane that starts again: what its records say, one after the other, by the functions
 * that were run when they were made. Nobody is answered: there are no streams, and a turn is taken
 * when its record says so. */
#include "handlers.h"

#include "error.h"
#include "little_endian.h"
#include "voided.h"

static bool replay_open(struct lane *lane, const wire_open_session *open)
{
    if (open->session_id.len != 16 || lane_session_find(lane, open->session_id.data) != NULL)
        return false;
    lane->joined_once = true;
    struct lane_session *opened = lane_session_open(lane, open);
    if (opened != NULL)
        lane_step_opened(lane, opened, open);
    return opened != NULL;
}

static bool
replay_decide(struct lane *lane, struct lane_session *session, const wire_decide_session *decided)
{
    if (session->closed || !lane_voided_reserve(lane, session, decided->n_voided))
        return false;
    lane_session_decide(lane, session, decided);
    lane_step_decided(lane, session, decided);
    lane_session_end(lane, session);
    assert(session->closed);
    return true;
}

static bool replay_dropped(struct lane *lane, struct lane_session *session, uint64_t through)
{
    assert(session->applying == NULL);
    if (!session->closed)
        return false;
    lane_session_drop_parts(lane, session, through);
    lane_collective_settled(lane, session);
    return true;
}

static bool replay_withdrawn(struct lane *lane, struct lane_session *session, uint64_t sequence)
{
    struct lane_part *part = lane_session_part(session, sequence);

    assert(session->applying == NULL);
    if (part == NULL || part->state != PART_STAGED)
        return false;
    lane_session_remove(lane, session, part);
    lane_part_destroy(lane, part);
    return true;
}

static bool replay_add(struct lane *lane, const wire_variable *given)
{
    struct variable *variable = NULL;
    struct sumac_error error;
    uint64_t done;

    if (store_find(&lane->store, given->variable_id) != NULL ||
        store_add(&lane->store, given, lane->index, &variable, &error) != SUMAC_OK)
        return false;
    assert(variable != NULL && !variable->published);
    return variable->filled ||
           store_fill(&lane->store, variable, UINT64_MAX, &done, &error) == SUMAC_OK;
}

static bool replay_variable(struct lane *lane, const struct record *record)
{
    struct variable *variable = store_find(&lane->store, record->first);

    if (variable == NULL)
        return false;
    if (record->kind == RECORD_PUBLISH)
        store_publish(&lane->store, variable);
    else
        store_delete(&lane->store, variable);
    return true;
}

static bool replay_define(struct lane *lane, const wire_define_function *given)
{
    struct sumac_error error;

    return functions_add(
               &lane->functions, given->number, given->name, given->text, strlen(given->text),
               &error) == SUMAC_OK;
}

static bool
replay_part(struct lane *lane, struct lane_session *session, const struct record *record)
{
    struct payload payload = {.spans = record->payload, .count = record->payload_spans};
    const wire_part *header = (const wire_part *)record->message;
    uint64_t bytes = 0;

    assert(session->applying == NULL);
    for (size_t i = 0; i < header->n_pieces; i++)
        bytes += header->pieces[i]->bytes;
    return bytes == record->payload_bytes && lane_push_replay(lane, session, header, &payload);
}

static bool
replay_voided(struct lane *lane, struct lane_session *session, const wire_refused *refused)
{
    const struct lane_part *part = lane_session_part(session, refused->sequence);
    struct sumac_error error;

    if (part == NULL || part->state != PART_STAGED || part->step == 0 ||
        lane_voided_find(session, refused->sequence) != NULL)
        return false;
    (void)fail(
        &error, (enum sumac_status)refused->status, (enum sumac_reason)refused->reason, "%s",
        refused->message);
    return lane_step_contribution_void(lane, part, &error);
}

/* ---- one record ---- */

static const struct {
    const wire_type *type;
    bool of_session;
} rows[RECORD_KINDS] = {
    [RECORD_HELLO] = {&sumac__v1__peer_hello__descriptor, false},
    [RECORD_MEMBERSHIP] = {NULL, false},
    [RECORD_OPEN] = {&sumac__v1__open_session__descriptor, false},
    [RECORD_CLOSE] = {&sumac__v1__close_session__descriptor, true},
    [RECORD_DECIDE] = {&sumac__v1__decide_session__descriptor, true},
    [RECORD_DROPPED] = {NULL, true},
    [RECORD_WITHDRAWN] = {NULL, true},
    [RECORD_ADD] = {&sumac__v1__variable__descriptor, false},
    [RECORD_PUBLISH] = {NULL, false},
    [RECORD_DELETE] = {NULL, false},
    [RECORD_PART] = {&sumac__v1__part__descriptor, true},
    [RECORD_REFUSED] = {&sumac__v1__refused__descriptor, true},
    [RECORD_COMMIT] = {&sumac__v1__commit__descriptor, true},
    [RECORD_ACKED] = {NULL, true},
    [RECORD_APPLIED] = {NULL, true},
    [RECORD_FIRST_STEP] = {&sumac__v1__first_step__descriptor, true},
    [RECORD_VOIDED] = {&sumac__v1__refused__descriptor, true},
    [RECORD_STEP] = {&sumac__v1__take_step__descriptor, false},
    [RECORD_DEFINE] = {&sumac__v1__define_function__descriptor, false},
    [RECORD_CONTRIBUTED] = {NULL, true},
    [RECORD_COLLECTIVE] = {&sumac__v1__collective_end__descriptor, false},
    [RECORD_TAKE] = {&sumac__v1__take_step__descriptor, false},
};

/* False: it cannot have been made of what this lane is. */
static bool replay(struct lane *lane, struct lane_session *session, const struct record *record)
{
    const wire_message *const message = record->message;
    struct sumac_error error;
    size_t taken;

    assert((message != NULL) == (rows[record->kind].type != NULL));
    switch (record->kind) {
    case RECORD_HELLO:
        return lane_order_learn(lane, (const wire_peer_hello *)message, record->first);
    case RECORD_MEMBERSHIP:
        lane->membership_epoch = record->first;
        (void)lane_step_begin_with(lane, (uint32_t)record->second);
        return true;
    case RECORD_OPEN:
        return replay_open(lane, (const wire_open_session *)message);
    case RECORD_CLOSE:
        session->cause = wire_close_cause_of(((const wire_close_session *)message)->cause);
        lane_session_close(lane, session);
        return true;
    case RECORD_DECIDE:
        return replay_decide(lane, session, (const wire_decide_session *)message);
    case RECORD_DROPPED:
        return replay_dropped(lane, session, record->first);
    case RECORD_WITHDRAWN:
        return replay_withdrawn(lane, session, record->first);
    case RECORD_ADD:
        return replay_add(lane, (const wire_variable *)message);
    case RECORD_PUBLISH:
    case RECORD_DELETE:
        return replay_variable(lane, record);
    case RECORD_PART:
        return replay_part(lane, session, record);
    case RECORD_REFUSED:
        return lane_push_replay_refused(lane, session, record);
    case RECORD_COMMIT:
        return lane_push_take_commit(lane, session, (const wire_commit *)message, &taken) ==
               SUMAC_REASON_UNSPECIFIED;
    case RECORD_ACKED:
        lane_voided_acked(lane, session, record->first);
        assert(session->acked_through <= session->mark);
        return session->acked_through == record->first;
    case RECORD_APPLIED:
        return lane_turn_replay(lane, session, record->first, record->second);
    case RECORD_FIRST_STEP:
        lane_step_begins(lane, session, ((const wire_first_step *)message)->step);
        return session->first_step != 0;
    case RECORD_VOIDED:
        return replay_voided(lane, session, (const wire_refused *)message);
    case RECORD_STEP:
        return lane_turn_replay_step(lane, (const wire_take_step *)message, record->second);
    case RECORD_TAKE:
        return ((const wire_take_step *)message)->step == lane->step_over + 1 &&
               lane_step_take(lane, (const wire_take_step *)message, &error) == SUMAC_OK;
    case RECORD_DEFINE:
        return replay_define(lane, (const wire_define_function *)message);
    case RECORD_CONTRIBUTED:
        return lane_turn_replay_contribution(lane, session, record->first);
    case RECORD_COLLECTIVE:
        return lane_collective_obey(
                   lane, record->first, (const wire_collective_end *)message, &error) == SUMAC_OK;
    case RECORD_KINDS:
        break;
    }
    return false;
}

static enum sumac_status refuse(const struct lane *lane, const char *why, struct sumac_error *error)
{
    return fail(
        error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST, "record %" PRIu64 " of ps %u %s",
        lane->last_record + 1, lane->index, why);
}

/* What it has for bytes is a span of the record's own. */
static enum sumac_status read_record(
    struct lane *lane, const struct span *bytes, struct record *record, struct span *payload,
    struct sumac_error *error)
{
    const uint8_t *head = bytes->data;

    if (bytes->bytes < RECORD_HEAD_BYTES || head[0] == 0 || head[0] >= RECORD_KINDS)
        return refuse(lane, "is none that a ps writes", error);
    const uint64_t left = bytes->bytes - RECORD_HEAD_BYTES;
    const uint64_t message_bytes = little_endian_get(head + 4, 4),
                   payload_bytes = little_endian_get(head + 8, 8);
    if (message_bytes > left || payload_bytes != left - message_bytes)
        return refuse(lane, "is longer or shorter than its head says", error);
    *payload = (struct span){
        .data = head + RECORD_HEAD_BYTES + message_bytes, .bytes = (size_t)payload_bytes};
    *record = (struct record){
        .kind = (enum record_kind)head[0],
        .first = little_endian_get(head + 16, 8),
        .second = little_endian_get(head + 24, 8),
        .session_id = head + 32,
        .payload = payload,
        .payload_spans = payload_bytes > 0,
        .payload_bytes = payload_bytes};
    const wire_type *type = rows[record->kind].type;
    struct wire_received received;
    const struct span message = {.data = head + RECORD_HEAD_BYTES, .bytes = (size_t)message_bytes};
    if (type == NULL)
        return SUMAC_OK;
    const enum sumac_status status =
        wire_unpack(type, &message, message_bytes > 0, &lane->arena, &received, error);
    if (status == SUMAC_OK)
        record->message = received.message;
    return status;
}

enum sumac_status
lane_replay(struct lane *lane, const struct span *bytes, struct sumac_error *error)
{
    struct record record;
    struct span payload;

    assert(!lane->serving); /* it has yet to begin */
    assert(lane->streams.first == NULL);
    arena_reset(&lane->arena);
    out_reset(&lane->out);
    const enum sumac_status status = read_record(lane, bytes, &record, &payload, error);
    if (status != SUMAC_OK)
        return status;
    struct lane_session *session = lane_session_find(lane, record.session_id);
    if ((session != NULL) != rows[record.kind].of_session || !replay(lane, session, &record))
        return refuse(lane, "does not follow from those before it, or there is no memory", error);
    lane->recorded = ++lane->last_record;
    return SUMAC_OK;
}
