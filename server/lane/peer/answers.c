/* SPDX-License-Identifier: Apache-2.0 */
/* answers.c -- the answer to a stream's hello, and the answers that go out on a push stream.
 * Answers that come while the stream is not writable go out together.
 *
 * A session without a stream gets no answer. Its client opens one, sends again all that is not
 * done, and gets its answers then.
 */
#include "peer_state.h"

#include "voided.h"

#define ANSWER_BYTES_MAX                                                                           \
    1048576u /* of one message, about: a client takes at least four times as much */

/* The identity of this ps, and the limits that it sets to a client. */
wire_greeting *lane_stream_greeting(struct lane *lane, const struct lane_stream *stream)
{
    wire_greeting *greeting = arena_take(&lane->arena, sizeof *greeting);
    wire_limits *limits = arena_take(&lane->arena, sizeof *limits);

    assert(stream->state == STREAM_GREETED || stream->state == STREAM_STALE);
    assert(lane->config.sessions_max > 0);
    if (greeting == NULL || limits == NULL)
        return NULL;
    *limits = (wire_limits)WIRE_LIMITS_INIT;
    limits->parts_in_flight_max = lane->config.parts_per_session_max;
    limits->voided_max = lane->config.voided_per_session_max;
    limits->pieces_per_part_max = LANE_PIECES_PER_PART_MAX;
    limits->functions_per_part_max = FUNCTIONS_PER_PART_MAX;
    limits->pulls_per_stream_max = PULLS_PER_STREAM_MAX;
    limits->pieces_per_pull_max = WIRE_PULL_PIECES_MAX;
    limits->message_bytes_max = WIRE_MESSAGE_BYTES_MAX;
    limits->header_bytes_max = WIRE_HEADER_BYTES_MAX;
    limits->pull_request_bytes_max = WIRE_PULL_BYTES_MAX;
    limits->streams_per_session_max = lane_place_share(lane);
    limits->pieces_per_message_max = WIRE_PUSH_PIECES_MAX;
    limits->rows_per_message_max = WIRE_PUSH_ROWS_MAX;
    *greeting =
        (wire_greeting)WIRE_GREETING_INIT; /* mark 0, nothing voided: the epoch began empty */
    greeting->epoch = lane->epoch;
    greeting->ps_incarnation = lane->config.incarnation;
    greeting->membership_epoch = lane->membership_epoch;
    greeting->cluster_id = lane->cluster_id;
    if (stream->kind == LANE_STREAM_PUSH) {
        greeting->staging_grant_bytes = lane->grant_bytes;
        greeting->part_bytes_max = lane->claims.bytes_max;
    }
    greeting->limits = limits;
    return greeting;
}

/* A client that has no more on its way than its grant never has more answers unread. */
static bool fail_for_room(struct lane *lane, struct lane_stream *stream, uint64_t max)
{
    const struct lane_session *session = stream->session;

    assert(stream->session != NULL);
    return lane_stream_fail(
        lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_IN_FLIGHT,
        "session %s has %" PRIu64 " bytes of answers on ps %u that it has not read, beside %" PRIu64
        " of parts: together at most %" PRIu64 " are kept; read the stream, and send no "
        "more than the grant",
        session->task, session->answer_bytes, lane->index, session->staged_bytes, max);
}

static bool end_for_memory(struct lane *lane, struct lane_stream *stream)
{
    return lane_stream_fail(
        lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
        "ps %u has no memory for its answers to pushes", lane->index);
}

/* Put an answer in line, with room for its versions. False: no stream is there to say it on, or the
 * stream was closed; the client opens another, and sends again. */
static bool add(struct lane *lane, struct lane_session *session, const struct answer *given)
{
    struct lane_stream *stream = session->push_stream;

    if (stream == NULL)
        return false;
    assert(stream->kind == LANE_STREAM_PUSH);
    assert(stream->state == STREAM_GREETED);
    const uint64_t bytes =
        ANSWER_ROOM_BYTES +
        (given->version_count <= 1 ? 0 : sized_pool_bytes(given->version_count * sizeof(uint64_t)));
    const uint64_t max = lane->grant_bytes + ANSWERS_BESIDE_BYTES_MAX;
    if (!given->pooled && session->staged_bytes + session->answer_bytes + bytes > max)
        return fail_for_room(lane, stream, max);
    struct answer *answer = sized_pool_take_reserved(&lane->bytes, sizeof *answer);
    if (answer == NULL)
        return end_for_memory(lane, stream);
    *answer = *given;
    answer->room_bytes = bytes;
    if (given->pooled) {
        lane_claims_set_bytes(lane, lane->claims.bytes + bytes);
    } else {
        session->answer_bytes += bytes;
        lane_staging_count(lane, lane->staged_bytes + bytes);
    }
    assert(!given->patient || given->kind != ANSWER_REFUSED);
    if (given->patient && stream->patient_count++ == 0)
        stream->patient_since_us = lane->now_us;
    LIST_APPEND(&stream->answers, answer, in_stream);
    stream->answer_count++;
    lane_stream_attend(lane, stream);
    return true;
}

void lane_answer_staged(
    struct lane *lane, struct lane_session *session, const struct lane_part *part)
{
    struct answer answer = {.kind = ANSWER_STAGED, .sequence = part->sequence};

    assert(part->state >= PART_STAGED);
    answer.resend = part->claim == NULL ? 0 : part->claim->resend;
    if (rule_holds(lane->config.broken, RULE_journal_before_staged))
        answer.record = part->record;
    answer.patient = part->is_collective && part->eager; /* or its client has a commit to say */
    (void)add(lane, session, &answer);
}

void lane_answer_refused(struct lane *lane, struct lane_session *session, uint64_t sequence)
{
    const struct answer answer = {
        .kind = ANSWER_REFUSED, .sequence = sequence, .record = lane->last_record};

    assert(sequence > 0);
    (void)add(lane, session, &answer);
}

void lane_answers_refused_again(struct lane *lane, struct lane_session *session)
{
    if (!rule_holds(lane->config.broken, RULE_done_says_voided))
        return;
    for (uint32_t i = 0; i < session->voided_count; i++) {
        if (session->voided[i].refusal != NULL)
            lane_answer_refused(lane, session, session->voided[i].sequence);
    }
}

/* Its versions are taken first: an answer without them would say that it touched nothing. */
void lane_answer_done(
    struct lane *lane, struct lane_session *session, const struct lane_part *part, bool voided)
{
    const uint32_t count = part->entry_count;
    struct answer answer = {
        .kind = ANSWER_DONE,
        .sequence = part->sequence,
        .record = lane->last_record,
        .version_count = count,
        .voided = voided && rule_holds(lane->config.broken, RULE_done_says_voided),
        .contributes = part->step != 0 && lane->step_quorum != 0,
        .patient = part->is_collective && !voided,
        .pooled = part->claim != NULL};
    uint64_t *versions = &answer.version;

    assert(part->sequence <= session->mark);
    if (session->push_stream == NULL)
        return;
    if (count > 1) {
        versions = sized_pool_take_reserved(&lane->bytes, count * sizeof *versions);
        answer.versions = versions;
    }
    if (versions == NULL) {
        (void)end_for_memory(lane, session->push_stream);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        versions[i] = lane_entry_version(&part->entries[i]);
    if (!add(lane, session, &answer) && count > 1)
        sized_pool_give(&lane->bytes, versions, count * sizeof *versions);
}

void lane_answer_resend(struct lane *lane, struct lane_session *session, uint64_t sequence)
{
    const struct answer answer = {.kind = ANSWER_RESEND, .sequence = sequence};

    assert(sequence > 0);
    (void)add(lane, session, &answer);
}

bool lane_answer_give_way(struct lane *lane, const struct claim *claim)
{
    const struct answer answer = {
        .kind = ANSWER_GIVE_WAY, .sequence = claim->sequence, .resend = claim->resend};

    assert(claim->state == CLAIM_HELD);
    return add(lane, claim->session, &answer);
}

void lane_answer_room_wait(struct lane *lane, const struct claim *claim)
{
    const struct answer answer = {.kind = ANSWER_ROOM_WAIT, .sequence = claim->sequence};

    assert(claim->state == CLAIM_WAITS);
    (void)add(lane, claim->session, &answer);
}

void lane_answers_room_again(struct lane *lane, struct lane_session *session)
{
    LIST_FOREACH(struct claim, claim, &lane->claims.all, in_lane) {
        if (claim->session != session)
            continue;
        claim->way_asked = claim->wait_said = false;
        if (claim->state == CLAIM_RESERVED)
            lane_answer_resend(lane, session, claim->sequence);
    }
}

void lane_answer_closed(struct lane *lane, struct lane_session *session)
{
    assert(session->closing);
    if (session->push_stream != NULL)
        lane_stream_owe(lane, session->push_stream, DUE_CLOSED);
}

static wire_closed *make_closed(struct lane *lane, const struct lane_session *session)
{
    wire_closed *closed = arena_take(&lane->arena, sizeof *closed);
    const size_t voided_bytes = session->voided_count * sizeof(uint64_t);
    uint64_t *voided = arena_take(&lane->arena, voided_bytes);
    wire_close_cause *cause = arena_take(&lane->arena, sizeof *cause);

    assert(session->closing);
    if (closed == NULL || voided == NULL || cause == NULL)
        return NULL;
    *closed = (wire_closed)WIRE_CLOSED_INIT;
    wire_close_cause_fill(&session->cause, cause);
    closed->cause = cause;
    for (uint32_t i = 0; i < session->voided_count; i++)
        voided[i] = session->voided[i].sequence;
    closed->final = session->final;
    closed->n_voided = session->voided_count;
    closed->voided = voided;
    closed->decided = session->closed;
    closed->acked_through =
        session->closed ? session->decided_acked_through : session->acked_through;
    return closed;
}

static void put_done(
    const struct lane *lane, const struct answer *answer, wire_done *done,
    wire_push_answer *message)
{
    const uint32_t count = answer->version_count;
    uint64_t *versions = (uint64_t *)(void *)(done + 1);

    assert(answer->kind == ANSWER_DONE);
    if (count > 0)
        memcpy(
            versions, count == 1 ? &answer->version : answer->versions, count * sizeof *versions);
    *done = (wire_done)WIRE_DONE_INIT;
    done->sequence = answer->sequence;
    done->voided = answer->voided;
    done->version_epoch = lane->epoch;
    done->open_step = answer->contributes ? lane->step_over + 1 : 0;
    done->versions = versions;
    done->n_versions = count;
    message->done[message->n_done++] = done;
}

static void put_refused(
    struct lane *lane, const struct voided *voided, wire_refused *refused,
    wire_push_answer *message)
{
    const struct refusal *refusal = voided == NULL ? NULL : voided->refusal;

    if (refusal == NULL)
        return; /* its client has said that it knows */
    *refused = (wire_refused)WIRE_REFUSED_INIT;
    refused->sequence = voided->sequence;
    refused->reason = (Sumac__V1__Reason)refusal->error.reason;
    refused->status = (uint32_t)refusal->error.status;
    refused->message = out_text(&lane->out, "%s", refusal->error.text);
    refused->expected = out_text(&lane->out, "%s", refusal->expected);
    refused->given = out_text(&lane->out, "%s", refusal->given);
    message->refused[message->n_refused++] = refused;
}

/* By now it may wait no more. */
static void put_room_wait(
    struct lane *lane, const struct claim *claim, wire_room_wait *wait, wire_push_answer *message)
{
    if (claim == NULL || claim->state != CLAIM_WAITS)
        return;
    *wait = (wire_room_wait)WIRE_ROOM_WAIT_INIT;
    wait->sequence = claim->sequence;
    wait->message = lane_claims_describe(lane, claim);
    message->room_waits[message->n_room_waits++] = wait;
}

/* Say one in the message. Returns about its bytes there; 0: no memory. */
static size_t
put(struct lane *lane, const struct lane_session *session, const struct answer *answer,
    wire_push_answer *message)
{
    static const size_t bytes_of_kind[] = {
        [ANSWER_STAGED] = sizeof(wire_staged),     [ANSWER_REFUSED] = sizeof(wire_refused),
        [ANSWER_DONE] = sizeof(wire_done),         [ANSWER_RESEND] = 0,
        [ANSWER_GIVE_WAY] = sizeof(wire_give_way), [ANSWER_ROOM_WAIT] = sizeof(wire_room_wait)};
    const size_t versions_bytes = answer->version_count * sizeof(uint64_t);
    void *const taken = arena_take(&lane->arena, bytes_of_kind[answer->kind] + versions_bytes);
    wire_staged *const staged = taken;
    wire_give_way *const give_way = taken;

    if (taken == NULL)
        return 0;
    switch (answer->kind) {
    case ANSWER_STAGED:
        *staged = (wire_staged)WIRE_STAGED_INIT;
        staged->sequence = answer->sequence;
        staged->resend = answer->resend;
        message->staged[message->n_staged++] = staged;
        break;
    case ANSWER_REFUSED:
        put_refused(lane, lane_voided_find(session, answer->sequence), taken, message);
        return 32 + sizeof(struct refusal);
    case ANSWER_DONE:
        put_done(lane, answer, taken, message);
        break;
    case ANSWER_RESEND:
        message->resend[message->n_resend++] = answer->sequence;
        break;
    case ANSWER_GIVE_WAY:
        *give_way = (wire_give_way)WIRE_GIVE_WAY_INIT;
        give_way->sequence = answer->sequence;
        give_way->resend = answer->resend;
        message->give_way[message->n_give_way++] = give_way;
        break;
    case ANSWER_ROOM_WAIT:
        put_room_wait(lane, lane_claim_find(lane, session, answer->sequence), taken, message);
        return 32 + sizeof(struct refusal);
    }
    return 32 + answer->version_count * 10; /* a varint of 64 bits has ten */
}

/* Is the first one's record on disk? Those behind it wait with it. */
static bool may_answer(const struct lane *lane, const struct lane_stream *stream)
{
    return stream->answers.first != NULL && stream->answers.first->record <= lane->recorded;
}

/* The session's end is said after all else, and when it is on disk itself. */
static bool may_close(const struct lane *lane, const struct lane_stream *stream)
{
    assert((stream->due & DUE_CLOSED) != 0);
    return stream->answers.first == NULL &&
           (stream->session == NULL || stream->session->closed_record <= lane->recorded);
}

/* Move pending answers into the message, as many as a message takes; the rest goes with the next
 * one. */
static void fill(struct lane *lane, struct lane_stream *stream, wire_push_answer *message)
{
    const size_t count = stream->answer_count;
    size_t bytes = 0;

    void **of_each_kind = arena_take(&lane->arena, 6 * count * sizeof *of_each_kind);
    if (of_each_kind == NULL)
        return;
    message->staged = (wire_staged **)(void *)of_each_kind;
    message->refused = (wire_refused **)(void *)(of_each_kind + count);
    message->done = (wire_done **)(void *)(of_each_kind + 2 * count);
    message->give_way = (wire_give_way **)(void *)(of_each_kind + 3 * count);
    message->room_waits = (wire_room_wait **)(void *)(of_each_kind + 4 * count);
    message->resend = (uint64_t *)(void *)(of_each_kind + 5 * count);
    while (may_answer(lane, stream) && bytes < ANSWER_BYTES_MAX) {
        struct answer *answer = stream->answers.first;
        const size_t said = put(lane, stream->session, answer, message);
        if (said == 0)
            break;
        bytes += said;
        lane_answer_remove(lane, stream, answer);
    }
    assert((stream->answers.first == NULL) == (stream->answer_count == 0));
}

/* What is due, as far as one message takes it. False: no memory. */
static bool compose(struct lane *lane, struct lane_stream *stream, wire_push_answer *message)
{
    const uint32_t waiting = stream->answer_count;
    const bool answers = may_answer(lane, stream);

    assert(stream->writable);
    if ((stream->due & DUE_GREETING) != 0) {
        message->greeting = lane_stream_greeting(lane, stream);
        if (message->greeting == NULL)
            return false;
    }
    if (answers)
        fill(lane, stream, message);
    if (answers && stream->answer_count == waiting)
        return false;
    const bool closes = (stream->due & DUE_CLOSED) != 0 && may_close(lane, stream);
    if (closes && stream->session != NULL) {
        message->closed = make_closed(lane, stream->session);
        if (message->closed == NULL)
            return false;
        if (stream->session->closed) /* nothing is said of its pushes after that */
            lane_voided_drop_reasons(lane, stream->session);
    }
    message->rejoin = (stream->due & DUE_REJOIN) != 0;
    stream->due = closes ? 0 : stream->due & DUE_CLOSED;
    return true;
}

/* A client whose stream has ended opens another, and sends again all that is not done. */
void lane_answers_flush(
    struct lane *lane, struct lane_stream *stream, wire_pull_answer **pulled, size_t pulled_count)
{
    assert(stream->writable);
    assert(stream->state != STREAM_ENDED);
    if (pulled_count == 0 && (stream->due & ~(uint32_t)DUE_CLOSED) == 0 &&
        !may_answer(lane, stream) && ((stream->due & DUE_CLOSED) == 0 || !may_close(lane, stream)))
        return;
    wire_push_answer *message = arena_take(&lane->arena, sizeof *message);
    if (message != NULL)
        *message = (wire_push_answer)WIRE_PUSH_ANSWER_INIT;
    if (message == NULL || !compose(lane, stream, message)) {
        (void)end_for_memory(lane, stream);
        return;
    }
    message->pulled = pulled;
    message->n_pulled = pulled_count;
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_ANSWER);
    effect->stream = stream->id;
    effect->push_answer = message;
    stream->writable = false;
}
