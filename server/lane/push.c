/* SPDX-License-Identifier: Apache-2.0 */
/* push.c -- what comes on a push stream: parts in pieces, commits.
 *
 * A part is checked in this order (docs/protocol/PROTOCOL.md, "Pushing"): another epoch or
 * incarnation; session closed; unknown; remembered as refused; at or below the mark; else staged. A
 * part counts once it is here whole: what was received of it when its stream ends is dropped, and
 * its client sends it again.
 */
#include "handlers.h"

#include "voided.h"

/* A client that counts each part until it is done has this room for one that it sends again. */
static void fail_for_versions(struct lane *lane, struct lane_stream *stream, uint64_t sequence)
{
    const struct lane_session *session = stream->session;

    (void)lane_stream_fail(
        lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_IN_FLIGHT,
        "push %" PRIu64 " of session %s is done on ps %u, and has come again: beside %" PRIu64
        " bytes of parts that are not done, and %" PRIu64 " of answers, its grant of %" PRIu64
        " has no room for the versions to be said again; wait until some are done",
        sequence, session->task, lane->index, session->staged_bytes, session->answer_bytes,
        lane->grant_bytes);
}

/* How to take a part whose first message this is. `before`, of this and the next: the last part
 * that is not beyond it. */
static enum lane_part_state first_state(
    const struct lane *lane, const struct lane_session *session, const wire_part *header,
    const struct lane_part *before)
{
    const struct voided *voided =
        session->voided_count == 0 ? NULL : lane_voided_find(session, header->sequence);

    assert(header->sequence > 0);
    if (voided != NULL && voided->refusal != NULL)
        return PART_DUPLICATE;
    if (header->sequence <= session->mark)
        return rule_holds(lane->config.broken, RULE_recognise_duplicates) ? PART_DUPLICATE
                                                                          : PART_RECEIVING;
    if (before != NULL && before->sequence == header->sequence)
        return PART_DUPLICATE;
    return lane->terminating || lane->ended ? PART_DROPPED : PART_RECEIVING;
}

/* Does one that asks for room say otherwise? Gives  *other, which it names. Returns how, or NULL.
 */
static const char *find_claim_beside(
    const struct lane *lane, const struct lane_session *session, const wire_part *header,
    uint64_t *other)
{
    LIST_FOREACH(const struct claim, claim, &lane->claims.all, in_lane) {
        if (claim->session != session)
            continue;
        *other = claim->sequence == header->sequence ? claim->previous : claim->sequence;
        if (claim->sequence == header->sequence && claim->previous != header->previous)
            return "when it asked for room it followed another";
        if (header->previous < claim->sequence && claim->sequence < header->sequence)
            return "and a later one than that asks for room";
        if (claim->previous < header->sequence && header->sequence < claim->sequence)
            return "and one that asks for room follows an earlier one than this";
    }
    return NULL;
}

/* Has what this part is to follow come and gone, or does another one that is here say otherwise?
 * Then its turn would never come. */
static bool can_follow(
    struct lane *lane, struct lane_stream *stream, const wire_part *header,
    const struct lane_part *before)
{
    const struct lane_session *session = stream->session;
    const struct lane_part *after = before == NULL ? session->parts.first : before->in_session.next;
    const char *trouble = NULL;
    uint64_t other = session->mark;

    if (header->sequence <= session->mark)
        return true; /* a duplicate */
    if (header->previous >= header->sequence) {
        trouble = "which is not before it";
        other = header->sequence;
    } else if (header->previous < session->mark) {
        trouble = "and its mark has come to a later one";
    } else if (before != NULL && before->sequence == header->sequence) {
        trouble =
            before->previous == header->previous ? NULL : "as it is staged it follows another";
        other = before->previous;
    } else if (before != NULL && header->previous < before->sequence) {
        trouble = "and a later one than that is staged";
        other = before->sequence;
    } else if (after != NULL && after->previous < header->sequence) {
        trouble = "and one that is staged follows an earlier one than this";
        other = after->sequence;
    } else if (lane->claims.all.first != NULL) {
        trouble = find_claim_beside(lane, session, header, &other);
    }
    if (trouble == NULL)
        return true;
    return lane_stream_fail(
        lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
        "push %" PRIu64 " of session %s says that it follows push %" PRIu64
        "%s on ps %u, %s: %" PRIu64
        "; a part names the session's last push before it that has a part there",
        header->sequence, session->task, header->previous,
        header->previous == UINT64_MAX ? " (2^64 - 1)" : "", lane->index, trouble, other);
}

/* Free what is here of a push that is not committed: its client cancels it. */
static void let_go(
    struct lane *lane, struct lane_stream *stream, struct lane_session *session, uint64_t sequence)
{
    struct lane_part *receiving = stream->receiving;
    struct lane_part *known = lane_session_part(session, sequence);

    if (receiving != NULL && receiving->sequence == sequence) {
        stream->receiving = NULL;
        lane_part_destroy(lane, receiving);
    }
    if (known != NULL && known->state == PART_STAGED && sequence > session->commit_through) {
        lane_session_remove(lane, session, known);
        (void)lane_record_order(lane, RECORD_WITHDRAWN, session, sequence, NULL);
        lane_part_destroy(lane, known);
    }
    struct claim *const claim = lane_claim_find(lane, session, sequence);
    if (claim != NULL && claim->part == NULL)
        lane_claim_destroy(lane, claim);
}

static void begin_new(struct lane *lane, struct lane_part *part, const wire_part *header)
{
    const bool large = lane_room_is_large(lane, header);

    assert(part->claim == NULL);
    if (large)
        lane_room_take_up(lane, part);
    if (header->collective != NULL)
        (void)lane_contribution_begin(lane, part, header);
    else if (header->synchronous)
        (void)lane_step_contribution_begin(lane, part, header);
    if (header->cancelled && part->state == PART_RECEIVING)
        (void)lane_part_refuse(
            lane, part, SUMAC_CANCELLED, SUMAC_REASON_CANCELLED,
            "push %" PRIu64 " of %s was cancelled by its client", part->sequence,
            part->session->task);
    if (part->state == PART_RECEIVING && large)
        lane_room_claim(lane, part, header);
    if (part->state == PART_RECEIVING)
        (void)lane_part_begin(lane, part, header);
}

/* May its session have one more? Those that ask for room count, for each may be refused, and a
 * refused part has a place like any other. Few of them may. A part that has asked before is not
 * counted against that limit: more parts than may ask at a time come again after they gave way. */
static bool check_count(struct lane *lane, struct lane_stream *stream, const wire_part *header)
{
    const struct lane_session *session = stream->session;
    const bool any = lane->claims.all.first != NULL;
    const bool asked = any && lane_claim_find(lane, session, header->sequence) != NULL;
    const bool asks = lane_room_is_large(lane, header) && !asked;
    const uint32_t claims = any ? lane_claims_count(lane, session) - asked : 0;
    const uint32_t others = session->part_count + claims;

    assert(session->part_count <= lane->config.parts_per_session_max || lane->config.broken != 0);
    const bool too_many = others >= lane->config.parts_per_session_max;
    if (!too_many && (!asks || claims < CLAIMS_PER_SESSION_MAX))
        return true;
    return lane_stream_fail(
        lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_IN_FLIGHT,
        "push %" PRIu64 ": session %s has %u parts on ps %u that %s", header->sequence,
        session->task, too_many ? others : claims, lane->index,
        too_many ? "are not done, the most that are taken: wait until some are done, or commit them"
                 : "wait for their room or their elements, the most that may: ask for room for one "
                   "after the other");
}

static struct lane_part *
begin(struct lane *lane, struct lane_stream *stream, const wire_part *header)
{
    struct lane_session *session = stream->session;

    assert(header->first);
    assert(!session->closing);
    if (header->cancelled && header->sequence != 0)
        let_go(lane, stream, session, header->sequence);
    if (stream->receiving != NULL || header->sequence == 0) {
        (void)lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            stream->receiving == NULL ? "a part of push 0: pushes are numbered from 1"
                                      : "parts interleave on one stream");
        return NULL;
    }
    const bool large = lane_room_is_large(lane, header);
    if (large) /* its client may have taken STAGED back on a stream that broke */
        lane_room_withdraw(lane, session, header->sequence, header->resend);
    const struct lane_part *before = lane_session_part_before(session, header->sequence);
    const enum lane_part_state state = first_state(lane, session, header, before);
    /* only what is new counts: a client whose connection was cut sends all again */
    if (state == PART_RECEIVING && !check_count(lane, stream, header))
        return NULL;
    if (!can_follow(lane, stream, header, before))
        return NULL;
    if (state == PART_RECEIVING && lane->claims.all.first != NULL &&
        !lane_room_check_same(lane, stream, header))
        return NULL;
    if (state == PART_RECEIVING && !session->granted && !lane_grant_take(lane, session)) {
        lane_grant_fail(lane, stream, header->sequence);
        return NULL;
    }
    if (large && state == PART_RECEIVING && !lane_room_check_asked(lane, stream, header))
        return NULL;
    stream->unserved = stream->unserved || state == PART_DROPPED;
    const bool unasked =
        large && state == PART_RECEIVING && !lane_room_is_asked(lane, session, header);
    stream->receiving = lane_part_create(lane, session, header, unasked ? PART_DROPPED : state);
    if (stream->receiving == NULL) {
        lane_part_fail_memory(lane, stream);
        return NULL;
    }
    stream->receiving->unasked = unasked;
    stream->receiving->asks = large && lane_room_is_header_alone(header);
    if (stream->receiving->state == PART_RECEIVING)
        begin_new(lane, stream->receiving, header);
    return stream->receiving;
}

static void refuse_non_finite(struct lane *lane, struct lane_part *part, const struct run *run)
{
    const struct shard *shard = part->entries[run->entry].shard;

    assert(run->entry < part->entry_count);
    (void)lane_part_refuse(
        lane, part, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_NON_FINITE,
        "push %" PRIu64
        " of %s: what it has for variable %s is not finite; it is applied nowhere (allow it with "
        "allow_non_finite)\tfinite values",
        part->sequence, part->session->task, shard->variable->name);
}

static void take_piece(
    struct lane *lane, struct lane_part *part, const wire_piece *piece, struct payload *payload)
{
    bool finite = true;

    if (part->state != PART_RECEIVING) {
        if (part->state == PART_DUPLICATE)
            lane_piece_note(lane, part, piece);
        lane_staging_skip(payload, piece->bytes);
        return;
    }
    if (part->contribution != NULL) {
        lane_contribution_take(lane, part, piece, payload);
        return;
    }
    if ((int)piece->kind == WIRE_PIECE_ROW_INDICES) {
        lane_rows_take_indices(lane, part, piece, payload);
        return;
    }
    const struct run *run = part->row_open == NULL ? lane_piece_take(lane, part, piece)
                                                   : lane_rows_take_values(lane, part, piece);
    if (run == NULL) {
        lane_staging_skip(payload, piece->bytes);
        return;
    }
    assert(run->entry < part->entry_count);
    const enum sumac_dtype own = part->entries[run->entry].shard->variable->definition.dtype;
    const enum sumac_dtype dtype = part->step == 0 ? own : update_contribution_dtype(own);
    const struct staged staged = {
        .dtype = dtype,
        .unit = run->by_rows ? lane_row_bytes(part, part->entries[run->entry].shard) : 1};
    if (lane_staging_copy(lane, part, payload, piece->bytes, &staged, &finite) && !finite &&
        !part->allow_non_finite)
        refuse_non_finite(lane, part, run);
}

/* A part that is known: say again what was said. It may carry its own commit now, refused or
 * not. */
static void
answer_again(struct lane *lane, struct lane_session *session, const struct lane_part *part)
{
    const bool over = part->sequence <= session->mark;
    const bool like_any_other = over && !rule_holds(lane->config.broken, RULE_done_says_voided);
    struct lane_part *known = lane_session_part(session, part->sequence);
    const struct voided *voided = lane_voided_find(session, part->sequence);

    assert(part->state == PART_DUPLICATE);
    session->counts.duplicates++;
    lane->counts.duplicates++;
    if (known != NULL)
        known->eager = known->eager || part->eager;
    if (voided != NULL && voided->refusal != NULL && !like_any_other) {
        lane_answer_refused(lane, session, part->sequence);
        if (over)
            lane_answer_done(lane, session, part, true);
    } else if (over && part->asks && voided == NULL) {
        lane_answer_resend(lane, session, part->sequence); /* its pieces name the versions */
    } else if (over) {
        lane_answer_done(lane, session, part, voided != NULL);
    } else if (known != NULL) {
        lane_answer_staged(lane, session, known);
    }
}

/* Entries of the list of refused pushes that may have to be remembered. */
static size_t
count_named(struct lane *lane, const struct lane_session *session, const wire_commit *given)
{
    size_t named = 0;

    for (size_t i = 0; i < given->n_voided; i++)
        named += given->voided[i] > session->acked_through;
    lane->work += given->n_voided / PIECES_PER_WORK;
    assert(named <= given->n_voided);
    return named;
}

/* The same by a commit: there is no room for `sequence`, one of those that it names as refused. */
static void fail_commit(
    struct lane *lane, struct lane_stream *stream, const wire_commit *given, uint64_t sequence,
    enum sumac_reason reason)
{
    const struct lane_session *session = stream->session;
    const size_t named = count_named(lane, session, given);

    assert(reason != SUMAC_REASON_UNSPECIFIED);
    assert(given->n_voided > 0);
    if (reason == SUMAC_REASON_OUT_OF_MEMORY)
        lane_part_fail_memory(lane, stream);
    else if (named <= LANE_VOIDED_PER_SESSION_MAX)
        (void)lane_stream_fail(
            lane, stream, SUMAC_RESOURCE_EXHAUSTED, reason,
            "a commit of session %s names push %" PRIu64
            " as refused, when ps %u keeps the numbers of %u such pushes of that session, the most "
            "that it keeps, with those that this commit named before: say with acked_through, "
            "which is %" PRIu64
            ", up to where the client has heard the answers, and name no others",
            session->task, sequence, lane->index, session->voided_count, session->acked_through);
    else
        (void)lane_stream_fail(
            lane, stream, SUMAC_RESOURCE_EXHAUSTED, reason,
            "a commit of session %s names %zu refused pushes above acked_through, which is %" PRIu64
            ", and ps %u takes at most %u of a commit: name each push once, and none up to "
            "acked_through",
            session->task, named, session->acked_through, lane->index, LANE_VOIDED_PER_SESSION_MAX);
}

static void check_whole(struct lane *lane, struct lane_part *part)
{
    if (part->state == PART_RECEIVING)
        (void)lane_part_check_whole(lane, part);
    if (part->state == PART_RECEIVING && part->step != 0)
        (void)lane_step_contribution_compare(lane, part);
}

static void end(struct lane *lane, struct lane_stream *stream, struct lane_part *part)
{
    struct lane_session *session = stream->session;

    assert(part->session == session);
    stream->receiving = NULL;
    if (part->asks && part->state == PART_RECEIVING) {
        lane_room_asked(lane, part);
        return;
    }
    check_whole(lane, part);
    if (part->state == PART_REFUSED && !lane_part_keep_refusal(lane, stream, part))
        return;
    if (part->state == PART_RECEIVING || part->state == PART_REFUSED) {
        lane_part_take_place(lane, session, part);
        return;
    }
    const bool lost = part->state == PART_DROPPED && !part->unasked && !stream->unserved;
    const bool no_room = part->no_room;
    const uint64_t sequence = part->sequence;
    if (part->state == PART_DUPLICATE)
        answer_again(lane, session, part);
    lane_part_destroy(lane, part);
    if (lost && no_room)
        fail_for_versions(lane, stream, sequence);
    else if (lost)
        lane_part_fail_memory(lane, stream);
}

/* One message's share of a part. False: the stream was closed. */
static bool receive(
    struct lane *lane, struct lane_stream *stream, const wire_part *header, struct payload *payload)
{
    struct lane_part *part = header->first ? begin(lane, stream, header) : stream->receiving;

    if (stream->state == STREAM_ENDED)
        return false;
    if (part == NULL || part->sequence != header->sequence)
        return lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "push %" PRIu64 " goes on where it has not begun", header->sequence);
    assert(part->session == stream->session);
    uint64_t bytes = 0;
    lane_piece_mark(lane, part);
    lane->work += WORK_OF_A_PIECE * header->n_pieces;
    for (size_t i = 0; i < header->n_pieces; i++) {
        if (header->n_pieces - i > 2 * STORE_SHARDS_AHEAD)
            store_shard_far(&lane->store, header->pieces[i + 2 * STORE_SHARDS_AHEAD]->shard_id);
        if (header->n_pieces - i > STORE_SHARDS_AHEAD)
            store_shard_comes(&lane->store, header->pieces[i + STORE_SHARDS_AHEAD]->shard_id);
        take_piece(lane, part, header->pieces[i], payload);
        bytes += header->pieces[i]->bytes;
    }
    if (part->state == PART_RECEIVING && lane->claims.all.first != NULL)
        lane_claims_note_elements(lane, part, bytes);
    if (part->row_open != NULL)
        (void)lane_rows_check_message(lane, part);
    if (header->last)
        end(lane, stream, part);
    return stream->state != STREAM_ENDED;
}

/* A step takes all of a message, whose bytes are lent until it is over. */
static bool
check_counts(struct lane *lane, struct lane_stream *stream, const wire_push_request *request)
{
    uint64_t pieces = 0;

    if (request->n_parts > LANE_PARTS_PER_SESSION_MAX)
        return lane_stream_fail(
            lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_IN_FLIGHT,
            "a message with %zu parts: a session has %u on ps %u that are not done, at most",
            request->n_parts, LANE_PARTS_PER_SESSION_MAX, lane->index);
    if (request->n_pulls > WIRE_PUSH_PULLS_MAX)
        return lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_TOO_MANY_PIECES,
            "a message with %zu pulls, at most %u are taken: send them in several messages",
            request->n_pulls, WIRE_PUSH_PULLS_MAX);
    for (size_t i = 0; i < request->n_parts; i++)
        pieces += request->parts[i]->n_pieces;
    if (pieces <= WIRE_PUSH_PIECES_MAX)
        return true;
    return lane_stream_fail(
        lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_TOO_MANY_PIECES,
        "a message with %" PRIu64 " pieces, at most %u are taken: send them in several messages",
        pieces, WIRE_PUSH_PIECES_MAX);
}

/* Do the pieces name just the bytes that came? */
static bool check_payload(
    struct lane *lane, struct lane_stream *stream, const wire_push_request *request,
    const struct payload *payload)
{
    uint64_t named = 0, came = 0;
    bool overflow = false;

    lane_rows_expect(lane, WIRE_PUSH_ROWS_MAX);
    for (size_t i = 0; i < request->n_parts; i++) {
        for (size_t j = 0; j < request->parts[i]->n_pieces; j++)
            overflow = __builtin_add_overflow(named, request->parts[i]->pieces[j]->bytes, &named) ||
                       overflow;
    }
    for (size_t i = 0; i < payload->count; i++)
        came += payload->spans[i].bytes;
    if (!overflow && named == came)
        return true;
    if (overflow)
        return lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
            "pieces of more than 2^64 - 1 bytes together in a message with a payload of %" PRIu64
            " bytes",
            came);
    return lane_stream_fail(
        lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED,
        "pieces of %" PRIu64 " bytes in a message with a payload of %" PRIu64 " bytes", named,
        came);
}

enum sumac_reason lane_push_take_commit(
    struct lane *lane, struct lane_session *session, const wire_commit *given, size_t *taken)
{
    uint32_t named = 0; /* that may be remembered */
    bool looked = false;

    for (*taken = 0; *taken < given->n_voided; ++*taken) {
        const uint64_t sequence = given->voided[*taken];
        if (sequence <= session->acked_through)
            continue;
        if (++named > LANE_VOIDED_PER_SESSION_MAX)
            return SUMAC_REASON_TOO_MANY_REFUSED;
        const enum sumac_reason reason = lane_voided_add(lane, session, sequence, NULL, &looked);
        if (reason != SUMAC_REASON_UNSPECIFIED)
            return reason;
    }
    lane->work += given->n_voided / PIECES_PER_WORK;
    if (given->commit_through > session->commit_through)
        session->commit_through = given->commit_through;
    if (given->clock > session->clock_said)
        session->clock_said = given->clock;
    lane_contributions_end(lane, session, given);
    assert(session->clock <= session->clock_said);
    /* what it commits itself, beside it, was not committed before */
    lane_turn_take_clock(lane, session);
    return SUMAC_REASON_UNSPECIFIED;
}

static void commit(struct lane *lane, struct lane_stream *stream, const wire_commit *given)
{
    struct lane_session *session = stream->session;
    const uint64_t committed = session->commit_through, clock = session->clock_said;
    const uint64_t result = session->collectives_through;
    const uint32_t contributions = session->contribution_count;
    wire_commit recorded = *given;

    if (given->n_waiting > WIRE_COMMIT_WAITING_MAX) {
        (void)lane_stream_fail(
            lane, stream, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_TOO_MANY_PIECES,
            "a commit with %zu pushes in waiting, at most %u are taken: lower collectives_through",
            given->n_waiting, WIRE_COMMIT_WAITING_MAX);
        return;
    }
    const enum sumac_reason reason =
        lane_push_take_commit(lane, session, given, &recorded.n_voided);
    if (reason != SUMAC_REASON_UNSPECIFIED) {
        recorded.commit_through = recorded.clock = recorded.collectives_through = 0;
        fail_commit(lane, stream, given, given->voided[recorded.n_voided], reason);
    }
    if (recorded.n_voided > 0 || session->commit_through > committed ||
        session->clock_said > clock || session->collectives_through > result ||
        session->contribution_count < contributions)
        (void)lane_record_order(lane, RECORD_COMMIT, session, 0, &recorded.base);
}

void lane_push_request(struct lane *lane, const struct lane_event *event)
{
    const wire_push_request *request = event->push_request;
    struct lane_stream *stream = lane_stream_taken(lane, event->stream, request->hello);
    struct payload payload = {.spans = event->payload, .count = event->payload_spans};

    if (stream == NULL)
        return;
    struct lane_session *session = stream->session;
    if (session == NULL || session->closing) {
        lane_stream_owe(lane, stream, session == NULL ? DUE_REJOIN : DUE_CLOSED);
        return;
    }
    assert(lane->config.broken != 0 || session->push_stream == stream);
    lane_session_heard(lane, session);
    if (!rule_holds(lane->config.broken, RULE_pulls_hold_up_nothing) &&
        lane_pull_waits(lane, session))
        return;
    if (!check_counts(lane, stream, request) || !check_payload(lane, stream, request, &payload))
        return;
    if (request->commit != NULL) /* it makes room for what the parts may add */
        lane_voided_acked(lane, session, request->commit->acked_through);
    for (size_t i = 0; i < request->n_withdraws; i++)
        lane_room_withdraw(
            lane, session, request->withdraws[i]->sequence, request->withdraws[i]->resend);
    for (size_t i = 0; i < request->n_parts; i++) {
        if (!receive(lane, stream, request->parts[i], &payload))
            return;
    }
    if (request->commit != NULL)
        commit(lane, stream, request->commit);
    for (size_t i = 0; i < request->n_pulls && stream->state == STREAM_GREETED; i++)
        lane_pull_take(lane, stream, request->pulls[i]);
    lane_turn_take(lane, session);
}

/* ---- again, from its record ---- */

static struct lane_part *
replay_begin(struct lane *lane, struct lane_session *session, const wire_part *header)
{
    const bool is_new =
        header->sequence > session->mark && lane_session_part(session, header->sequence) == NULL;

    assert(session->push_stream == NULL); /* nobody is answered */
    return is_new ? lane_part_create(lane, session, header, PART_RECEIVING) : NULL;
}

bool lane_push_replay(
    struct lane *lane, struct lane_session *session, const wire_part *header,
    struct payload *payload)
{
    struct lane_part *part = replay_begin(lane, session, header);

    if (part == NULL)
        return false;
    if (lane_room_is_large(lane, header)) { /* it had its room */
        struct claim *const claim = lane_claim_create(lane, session, header);
        if (claim == NULL) {
            lane_part_destroy(lane, part);
            return false;
        }
        lane_claim_reserve(lane, claim);
    }
    begin_new(lane, part, header);
    lane_piece_mark(lane, part);
    lane_rows_expect(lane, UINT64_MAX); /* as they came in several messages */
    for (size_t i = 0; i < header->n_pieces; i++)
        take_piece(lane, part, header->pieces[i], payload);
    check_whole(lane, part);
    if (part->state != PART_RECEIVING) {
        lane_part_destroy(lane, part);
        return false;
    }
    lane_part_take_place(lane, session, part);
    return true;
}

bool lane_push_replay_refused(
    struct lane *lane, struct lane_session *session, const struct record *record)
{
    const wire_refused *refused = (const wire_refused *)record->message;
    wire_part header = WIRE_PART_INIT;

    header.sequence = refused->sequence;
    header.previous = record->first;
    struct lane_part *part = replay_begin(lane, session, &header);
    if (part == NULL)
        return false;
    lane_step_contribution_replay_refused(part, record->second);
    (void)lane_part_refuse(
        lane, part, (enum sumac_status)refused->status, (enum sumac_reason)refused->reason,
        "%s\t%s\t%s", refused->message, refused->expected, refused->given);
    bool looked = false;
    if (part->state != PART_REFUSED ||
        lane_voided_add(lane, session, part->sequence, part->refusal, &looked) !=
            SUMAC_REASON_UNSPECIFIED) {
        lane_part_destroy(lane, part);
        return false;
    }
    part->refusal = NULL;
    assert(lane_voided_find(session, part->sequence) != NULL);
    lane_part_take_place(lane, session, part);
    return true;
}
