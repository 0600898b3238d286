/* SPDX-License-Identifier: Apache-2.0 */
/* answers.c -- what is to be said on a push stream. Answers that come while the stream is not
 * writable go out together.
 *
 * A session without a stream is told nothing: its client opens one, sends again all that is not
 * done, and is answered then.
 */
#include "peer_state.h"

#define ANSWER_BYTES_MAX                                                                           \
    1048576u /* of one message, about: a client takes at least four times as much */

/* A client that has no more on its way than its grant never has more answers unread. */
static void fail_for_room(struct lane *lane, struct lane_stream *stream, uint64_t max)
{
    const struct lane_session *session = stream->session;

    assert(stream->session != NULL);
    (void)lane_stream_fail(
        lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_IN_FLIGHT,
        "session %s has %" PRIu64 " bytes of answers on ps %u that it has not read, beside %" PRIu64
        " of parts: together at most %" PRIu64 " are kept; read the stream, and send no "
        "more than the grant",
        session->task, session->answer_bytes, lane->index, session->staged_bytes, max);
}

static void end_for_memory(struct lane *lane, struct lane_stream *stream)
{
    (void)lane_stream_fail(
        lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
        "ps %u has no memory for its answers to pushes", lane->index);
}

/* Add an answer with room for `versions`. `pooled`: its part had room in the pool. NULL: the
 * stream was closed; its client opens another, and sends again. */
static struct answer *
add(struct lane *lane, struct lane_stream *stream, enum answer_kind kind, uint32_t versions,
    bool pooled)
{
    assert(stream->kind == LANE_STREAM_PUSH);
    assert(stream->state == STREAM_GREETED);
    const uint64_t bytes =
        ANSWER_ROOM_BYTES + (versions <= 1 ? 0 : sized_pool_bytes(versions * sizeof(uint64_t)));
    const struct lane_session *session = stream->session;
    const uint64_t max = lane->grant_bytes + ANSWERS_BESIDE_BYTES_MAX;
    if (!pooled && session->staged_bytes + session->answer_bytes + bytes > max) {
        fail_for_room(lane, stream, max);
        return NULL;
    }
    struct answer *answer = sized_pool_take_reserved(&lane->bytes, sizeof *answer);
    if (answer == NULL) {
        end_for_memory(lane, stream);
        return NULL;
    }
    *answer = (struct answer){.kind = kind, .room_bytes = bytes, .pooled = pooled};
    if (pooled) {
        lane_claims_take_answer(lane, bytes);
    } else {
        stream->session->answer_bytes += bytes;
        lane_staging_count(lane, lane->staged_bytes + bytes);
    }
    LIST_APPEND(&stream->answers, answer, in_stream);
    stream->answer_count++;
    lane_stream_attend(lane, stream);
    return answer;
}

/* What is said of a contribution is no hurry while its round waits (pull_time.c). */
static void be_patient(const struct lane *lane, struct lane_stream *stream, struct answer *answer)
{
    assert(answer->kind != ANSWER_REFUSED);
    answer->patient = true;
    if (stream->patient_count++ == 0)
        stream->patient_since_us = lane->now_us;
}

void lane_answer_staged(
    struct lane *lane, struct lane_session *session, const struct lane_part *part)
{
    struct lane_stream *stream = session->push_stream;
    struct answer *answer = stream == NULL ? NULL : add(lane, stream, ANSWER_STAGED, 0, false);

    assert(part->state >= PART_STAGED);
    if (answer == NULL)
        return;
    answer->sequence = part->sequence;
    answer->resend = part->claim == NULL ? 0 : part->claim->resend;
    if (rule_holds(lane->config.broken, RULE_journal_before_staged))
        answer->record = part->record;
    if (part->is_collective && part->eager) /* or its client has a commit to say */
        be_patient(lane, stream, answer);
}

void lane_answer_refused(struct lane *lane, struct lane_session *session, uint64_t sequence)
{
    struct lane_stream *stream = session->push_stream;
    struct answer *answer = stream == NULL ? NULL : add(lane, stream, ANSWER_REFUSED, 0, false);

    assert(sequence > 0);
    if (answer == NULL)
        return;
    answer->sequence = sequence;
    answer->record = lane->last_record;
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
    struct lane_stream *stream = session->push_stream;
    const uint32_t count = part->entry_count;
    uint64_t *versions = NULL;

    assert(part->sequence <= session->mark);
    if (stream == NULL)
        return;
    if (count > 1) {
        versions = sized_pool_take_reserved(&lane->bytes, count * sizeof *versions);
        if (versions == NULL) {
            end_for_memory(lane, stream);
            return;
        }
    }
    struct answer *answer = add(lane, stream, ANSWER_DONE, count, part->claim != NULL);
    if (answer == NULL) {
        if (count > 1)
            sized_pool_give(&lane->bytes, versions, count * sizeof *versions);
        return;
    }
    answer->sequence = part->sequence;
    answer->record = lane->last_record;
    answer->voided = voided && rule_holds(lane->config.broken, RULE_done_says_voided);
    answer->version_count = count;
    if (part->is_collective && !voided)
        be_patient(lane, stream, answer);
    answer->contributes = part->step != 0 && lane->step_quorum != 0;
    if (count == 1) {
        answer->version = lane_entry_version(part->entries);
        return;
    }
    answer->versions = versions;
    for (uint32_t i = 0; i < count; i++)
        versions[i] = lane_entry_version(&part->entries[i]);
}

static struct answer *
add_about(struct lane *lane, struct lane_session *session, uint64_t sequence, enum answer_kind kind)
{
    struct lane_stream *stream = session->push_stream;
    struct answer *answer = stream == NULL ? NULL : add(lane, stream, kind, 0, false);

    assert(sequence > 0);
    if (answer != NULL)
        answer->sequence = sequence;
    return answer;
}

void lane_answer_resend(struct lane *lane, struct lane_session *session, uint64_t sequence)
{
    (void)add_about(lane, session, sequence, ANSWER_RESEND);
}

bool lane_answer_give_way(struct lane *lane, const struct claim *claim)
{
    assert(claim->state == CLAIM_HELD);
    struct answer *answer = add_about(lane, claim->session, claim->sequence, ANSWER_GIVE_WAY);
    if (answer != NULL)
        answer->resend = claim->resend;
    return answer != NULL;
}

void lane_answer_room_wait(struct lane *lane, const struct claim *claim)
{
    assert(claim->state == CLAIM_WAITS);
    (void)add_about(lane, claim->session, claim->sequence, ANSWER_ROOM_WAIT);
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
    if (session->push_stream == NULL)
        return;
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

/* False, of these: no memory. */
static bool put_staged(struct lane *lane, const struct answer *answer, wire_push_answer *message)
{
    wire_staged *staged = arena_take(&lane->arena, sizeof *staged);

    assert(answer->kind == ANSWER_STAGED);
    if (staged == NULL)
        return false;
    *staged = (wire_staged)WIRE_STAGED_INIT;
    staged->sequence = answer->sequence;
    staged->resend = answer->resend;
    message->staged[message->n_staged++] = staged;
    return true;
}

static bool put_done(struct lane *lane, const struct answer *answer, wire_push_answer *message)
{
    const uint32_t count = answer->version_count;
    wire_done *done = arena_take(&lane->arena, sizeof *done + count * sizeof(uint64_t));

    assert(answer->kind == ANSWER_DONE);
    if (done == NULL)
        return false;
    *done = (wire_done)WIRE_DONE_INIT;
    uint64_t *versions = (uint64_t *)(void *)(done + 1);
    if (count == 1)
        *versions = answer->version;
    else if (count > 0)
        memcpy(versions, answer->versions, count * sizeof *versions);
    done->sequence = answer->sequence;
    done->voided = answer->voided;
    done->version_epoch = lane->epoch;
    done->open_step = answer->contributes ? lane->step_over + 1 : 0;
    done->versions = versions;
    done->n_versions = count;
    message->done[message->n_done++] = done;
    return true;
}

static bool put_refused(
    struct lane *lane, const struct lane_session *session, const struct answer *answer,
    wire_push_answer *message)
{
    const struct voided *voided = lane_voided_find(session, answer->sequence);

    assert(answer->kind == ANSWER_REFUSED);
    if (voided == NULL || voided->refusal == NULL)
        return true; /* its client has said that it knows */
    const struct refusal *refusal = voided->refusal;
    wire_refused *refused = arena_take(&lane->arena, sizeof *refused);
    if (refused == NULL)
        return false;
    *refused = (wire_refused)WIRE_REFUSED_INIT;
    refused->sequence = answer->sequence;
    refused->reason = (Sumac__V1__Reason)refusal->error.reason;
    refused->status = (uint32_t)refusal->error.status;
    refused->message = out_text(&lane->out, "%s", refusal->error.text);
    refused->expected = out_text(&lane->out, "%s", refusal->expected);
    refused->given = out_text(&lane->out, "%s", refusal->given);
    message->refused[message->n_refused++] = refused;
    return true;
}

static bool put_give_way(struct lane *lane, const struct answer *answer, wire_push_answer *message)
{
    wire_give_way *give_way = arena_take(&lane->arena, sizeof *give_way);

    assert(answer->kind == ANSWER_GIVE_WAY);
    if (give_way == NULL)
        return false;
    *give_way = (wire_give_way)WIRE_GIVE_WAY_INIT;
    give_way->sequence = answer->sequence;
    give_way->resend = answer->resend;
    message->give_way[message->n_give_way++] = give_way;
    return true;
}

/* By now it may wait no more. */
static bool put_room_wait(
    struct lane *lane, const struct lane_session *session, const struct answer *answer,
    wire_push_answer *message)
{
    const struct claim *claim = lane_claim_find(lane, session, answer->sequence);
    wire_room_wait *wait = arena_take(&lane->arena, sizeof *wait);

    assert(answer->kind == ANSWER_ROOM_WAIT);
    if (wait == NULL)
        return false;
    if (claim == NULL || claim->state != CLAIM_WAITS)
        return true;
    *wait = (wire_room_wait)WIRE_ROOM_WAIT_INIT;
    wait->sequence = answer->sequence;
    wait->message = lane_claims_describe(lane, claim);
    message->room_waits[message->n_room_waits++] = wait;
    return true;
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
        bool is_put = false;
        switch (answer->kind) {
        case ANSWER_STAGED:
            is_put = put_staged(lane, answer, message);
            break;
        case ANSWER_REFUSED:
            is_put = put_refused(lane, stream->session, answer, message);
            bytes += sizeof(struct refusal);
            break;
        case ANSWER_DONE:
            is_put = put_done(lane, answer, message);
            break;
        case ANSWER_RESEND:
            message->resend[message->n_resend++] = answer->sequence;
            is_put = true;
            break;
        case ANSWER_GIVE_WAY:
            is_put = put_give_way(lane, answer, message);
            break;
        case ANSWER_ROOM_WAIT:
            is_put = put_room_wait(lane, stream->session, answer, message);
            bytes += sizeof(struct refusal);
            break;
        }
        if (!is_put)
            break;
        bytes += 32 + answer->version_count * 10; /* a varint of 64 bits has ten */
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
        end_for_memory(lane, stream);
        return;
    }
    message->pulled = pulled;
    message->n_pulled = pulled_count;
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_ANSWER);
    effect->stream = stream->id;
    effect->push_answer = message;
    stream->writable = false;
}
