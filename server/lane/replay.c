/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c -- a lane that starts again: what its records say, one after the other, by the functions
 * that were run when they were made. Nobody is answered: there are no streams, and a turn is taken
 * when its record says so. */
#include "handlers.h"

#include "error.h"
#include "little_endian.h"

static bool
replay_hello(struct lane *lane, struct lane_session *session, const struct record *record)
{
    (void)session;
    return lane_order_learn(lane, (const wire_peer_hello *)record->message, record->first);
}

static bool
replay_membership(struct lane *lane, struct lane_session *session, const struct record *record)
{
    (void)session;
    lane->membership_epoch = record->first;
    (void)lane_step_begin_with(lane, (uint32_t)record->second);
    return true;
}

/* ---- sessions ---- */

static bool
replay_open(struct lane *lane, struct lane_session *session, const struct record *record)
{
    const wire_open_session *open = (const wire_open_session *)record->message;

    if (session != NULL || open->session_id.len != 16 ||
        lane_session_find(lane, open->session_id.data) != NULL)
        return false;
    lane->joined_once = true;
    struct lane_session *opened = lane_session_open(lane, open);
    if (opened != NULL)
        lane_step_opened(lane, opened, open);
    return opened != NULL;
}

static bool
replay_close(struct lane *lane, struct lane_session *session, const struct record *record)
{
    session->cause = wire_close_cause_of(((const wire_close_session *)record->message)->cause);
    assert(session->push_stream == NULL && lane->streams.first == NULL);
    lane_session_close(lane, session);
    return true;
}

static bool
replay_decide(struct lane *lane, struct lane_session *session, const struct record *record)
{
    const wire_decide_session *decided = (const wire_decide_session *)record->message;

    if (session->closed || !lane_voided_reserve(lane, session, decided->n_voided))
        return false;
    lane_session_decide(lane, session, decided);
    lane_step_decided(lane, session, decided);
    lane_session_end(lane, session);
    assert(session->closed);
    return true;
}

static bool
replay_dropped(struct lane *lane, struct lane_session *session, const struct record *record)
{
    assert(session->applying == NULL);
    if (!session->closed)
        return false;
    lane_session_drop_parts(lane, session, record->first);
    lane_collective_settled(lane, session);
    return true;
}

static bool
replay_withdrawn(struct lane *lane, struct lane_session *session, const struct record *record)
{
    struct lane_part *part = lane_session_part(session, record->first);

    assert(session->applying == NULL);
    if (part == NULL || part->state != PART_STAGED)
        return false;
    lane_session_remove(lane, session, part);
    lane_part_destroy(lane, part);
    return true;
}

/* ---- variables ---- */

static bool replay_add(struct lane *lane, struct lane_session *session, const struct record *record)
{
    const wire_variable *given = (const wire_variable *)record->message;
    struct variable *variable = NULL;
    struct sumac_error error;
    uint64_t done;
    (void)session;

    if (store_find(&lane->store, given->variable_id) != NULL ||
        store_add(&lane->store, given, lane->index, &variable, &error) != SUMAC_OK)
        return false;
    assert(variable != NULL && !variable->published);
    return variable->filled ||
           store_fill(&lane->store, variable, UINT64_MAX, &done, &error) == SUMAC_OK;
}

static bool
replay_publish(struct lane *lane, struct lane_session *session, const struct record *record)
{
    struct variable *variable = store_find(&lane->store, record->first);
    (void)session;

    if (variable != NULL)
        store_publish(&lane->store, variable);
    return variable != NULL;
}

static bool
replay_delete(struct lane *lane, struct lane_session *session, const struct record *record)
{
    struct variable *variable = store_find(&lane->store, record->first);
    (void)session;

    if (variable != NULL)
        store_delete(&lane->store, variable);
    return variable != NULL;
}

static bool
replay_define(struct lane *lane, struct lane_session *session, const struct record *record)
{
    const wire_define_function *given = (const wire_define_function *)record->message;
    struct sumac_error error;
    (void)session;

    assert(given != NULL);
    return functions_add(
               &lane->functions, given->number, given->name, given->text, strlen(given->text),
               &error) == SUMAC_OK;
}

/* ---- pushes ---- */

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
replay_refused(struct lane *lane, struct lane_session *session, const struct record *record)
{
    return lane_push_replay_refused(lane, session, record);
}

static bool
replay_commit(struct lane *lane, struct lane_session *session, const struct record *record)
{
    const wire_commit *commit = (const wire_commit *)record->message;
    size_t taken;

    return lane_push_take_commit(lane, session, commit, &taken) == SUMAC_REASON_UNSPECIFIED;
}

static bool
replay_acked(struct lane *lane, struct lane_session *session, const struct record *record)
{
    lane_voided_acked(lane, session, record->first);
    assert(session->acked_through <= session->mark);
    return session->acked_through == record->first;
}

static bool
replay_applied(struct lane *lane, struct lane_session *session, const struct record *record)
{
    return lane_turn_replay(lane, session, record->first, record->second);
}

/* ---- rounds of collectives ---- */

static bool
replay_contributed(struct lane *lane, struct lane_session *session, const struct record *record)
{
    return lane_turn_replay_contribution(lane, session, record->first);
}

static bool
replay_collective(struct lane *lane, struct lane_session *session, const struct record *record)
{
    struct sumac_error error;
    (void)session;

    assert(record->message != NULL);
    return lane_collective_obey(
               lane, record->first, (const wire_collective_end *)record->message, &error) ==
           SUMAC_OK;
}

/* ---- synchronous steps ---- */

static bool
replay_first_step(struct lane *lane, struct lane_session *session, const struct record *record)
{
    assert(record->message != NULL);
    lane_step_begins(lane, session, ((const wire_first_step *)record->message)->step);
    return session->first_step != 0;
}

static bool
replay_take(struct lane *lane, struct lane_session *session, const struct record *record)
{
    const wire_take_step *taken = (const wire_take_step *)record->message;
    struct sumac_error error;
    (void)session;

    assert(taken != NULL);
    return taken->step == lane->step_over + 1 && lane_step_take(lane, taken, &error) == SUMAC_OK;
}

static bool
replay_voided(struct lane *lane, struct lane_session *session, const struct record *record)
{
    const wire_refused *refused = (const wire_refused *)record->message;
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

static bool
replay_step(struct lane *lane, struct lane_session *session, const struct record *record)
{
    (void)session;
    assert(record->message != NULL);
    return lane_turn_replay_step(lane, (const wire_take_step *)record->message, record->second);
}

/* ---- one record ---- */

static const struct {
    const wire_type *type;
    bool of_session;
    bool (*replay)(struct lane *lane, struct lane_session *session, const struct record *record);
} rows[RECORD_KINDS] = {
    [RECORD_HELLO] = {&sumac__v1__peer_hello__descriptor, false, replay_hello},
    [RECORD_MEMBERSHIP] = {NULL, false, replay_membership},
    [RECORD_OPEN] = {&sumac__v1__open_session__descriptor, false, replay_open},
    [RECORD_CLOSE] = {&sumac__v1__close_session__descriptor, true, replay_close},
    [RECORD_DECIDE] = {&sumac__v1__decide_session__descriptor, true, replay_decide},
    [RECORD_DROPPED] = {NULL, true, replay_dropped},
    [RECORD_WITHDRAWN] = {NULL, true, replay_withdrawn},
    [RECORD_ADD] = {&sumac__v1__variable__descriptor, false, replay_add},
    [RECORD_PUBLISH] = {NULL, false, replay_publish},
    [RECORD_DELETE] = {NULL, false, replay_delete},
    [RECORD_PART] = {&sumac__v1__part__descriptor, true, replay_part},
    [RECORD_REFUSED] = {&sumac__v1__refused__descriptor, true, replay_refused},
    [RECORD_COMMIT] = {&sumac__v1__commit__descriptor, true, replay_commit},
    [RECORD_ACKED] = {NULL, true, replay_acked},
    [RECORD_APPLIED] = {NULL, true, replay_applied},
    [RECORD_FIRST_STEP] = {&sumac__v1__first_step__descriptor, true, replay_first_step},
    [RECORD_VOIDED] = {&sumac__v1__refused__descriptor, true, replay_voided},
    [RECORD_STEP] = {&sumac__v1__take_step__descriptor, false, replay_step},
    [RECORD_DEFINE] = {&sumac__v1__define_function__descriptor, false, replay_define},
    [RECORD_CONTRIBUTED] = {NULL, true, replay_contributed},
    [RECORD_COLLECTIVE] = {&sumac__v1__collective_end__descriptor, false, replay_collective},
    [RECORD_TAKE] = {&sumac__v1__take_step__descriptor, false, replay_take},
};

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
    assert(rows[head[0]].replay != NULL);
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
    if ((session != NULL) != rows[record.kind].of_session ||
        !rows[record.kind].replay(lane, session, &record))
        return refuse(lane, "does not follow from those before it, or there is no memory", error);
    lane->recorded = ++lane->last_record;
    return SUMAC_OK;
}
