/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c -- pulls: what is asked for, and for how long it may wait (pull_waits.c says for what).
 *
 * It never holds up a push. Its answer is put together when the stream can take it (pulled.c).
 */
#include "pull_state.h"

#include "error.h"

#define TIMEOUT_MS_DEFAULT 60000u
#define PIECES_READ_AT_ONCE                                                                        \
    1024u /* of a pull that has more, each is looked up as steps have time */

void lane_pull_look_again(const struct lane *lane, struct lane_stream *stream)
{
    stream->unlooked = stream->pulls.first;
    stream->put_off = NULL;
    stream->readable_seen = lane->readable;
    stream->mark_seen = stream->session == NULL ? 0 : stream->session->mark;
    stream->clock_awaited = stream->step_awaited = 0;
}

/* Others' pushes are none of them: thousands may wait for one that never comes. */
void lane_pull_wake(struct lane *lane, struct lane_stream *stream)
{
    const uint64_t mark = stream->session == NULL ? 0 : stream->session->mark;

    const bool overtaken = stream->clock_awaited > 0 &&
                           stream->clock_awaited <= lane_session_slowest_clock(lane, UINT64_MAX);
    const bool stepped = stream->step_awaited > 0 && stream->step_awaited <= lane->step_over;

    if (stream->readable_seen != lane->readable || stream->mark_seen != mark || overtaken ||
        stepped)
        lane_pull_look_again(lane, stream);
    if (stream->unlooked != NULL)
        lane_stream_attend(lane, stream);
}

static void close_view(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    assert(pull->active);
    assert(stream->active_pulls > 0);
    stream->active_pulls--;
    if (stream->active_pulls == 0 && stream->put_off != NULL) {
        stream->unlooked = stream->put_off;
        stream->put_off = NULL;
    }
    lane->work += pull->piece_count / PIECES_PER_WORK;
    for (uint32_t i = 0; i < pull->piece_count; i++) {
        lane_pull_fetch_ahead(pull, i);
        store_view_uncover(&pull->view, pull->pieces[i].shard);
    }
    store_view_close(&lane->store, &pull->view);
    pull->active = false;
}

struct lane_pull *lane_pull_under_way(const struct lane_stream *stream)
{
    struct lane_pull *pull = stream->active_pulls == 0 ? NULL : stream->pulls.first;

    while (pull != NULL && !pull->active)
        pull = pull->in_stream.next;
    return pull;
}

static void unlink_pull(struct lane_stream *stream, struct lane_pull *pull)
{
    assert(stream->pull_count > 0);
    if (stream->unlooked == pull)
        stream->unlooked = pull->in_stream.next;
    if (stream->put_off == pull)
        stream->put_off = pull->in_stream.next;
    LIST_REMOVE(&stream->pulls, pull, in_stream);
    stream->pull_count--;
}

static void link_last(struct lane_stream *stream, struct lane_pull *pull)
{
    assert(pull->in_stream.next == NULL);
    LIST_APPEND(&stream->pulls, pull, in_stream);
    stream->pull_count++;
    if (stream->unlooked == NULL)
        stream->unlooked = pull;
}

void lane_pull_requeue(struct lane_stream *stream, struct lane_pull *pull)
{
    assert(pull->active || pull->collective != NULL);
    unlink_pull(stream, pull);
    link_last(stream, pull);
}

void lane_pull_note_failed(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    assert(pull->error.status != SUMAC_OK);
    unlink_pull(stream, pull);
    link_last(stream, pull);
    lane_stream_attend(lane, stream);
}

static void destroy(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    unlink_pull(stream, pull);
    if (pull->active)
        close_view(lane, stream, pull);
    if (pull->collective != NULL && pull->collective->round != NULL)
        lane_round_let_go(lane, pull->collective->round);
    lane_pull_leave(lane, stream->session, pull);
}

void lane_pull_drop_all(struct lane *lane, struct lane_stream *stream)
{
    while (stream->pulls.first != NULL)
        destroy(lane, stream, stream->pulls.first);
    assert(stream->pull_count == 0);
}

void lane_pull_answered(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    const uint64_t took_us = lane->now_us - pull->started_us;
    struct lane_session *session = stream->session;

    assert(lane->now_us >= pull->started_us);
    if (pull->error.status == SUMAC_OK) {
        lane->counts.pulls++;
        lane->counts.pull_bytes += pull->bytes;
        histogram_add(&lane->counts.pull_us, took_us);
        if (session != NULL) {
            session->counts.pulls++;
            session->counts.pull_bytes += pull->bytes;
            histogram_add(&session->counts.pull_us, took_us);
        }
    }
    destroy(lane, stream, pull);
}

static bool is_plain(const wire_piece *given)
{
    return ((int)given->kind == WIRE_PIECE_VALUES || (int)given->kind == WIRE_PIECE_ROW_INDICES ||
            (int)given->kind == WIRE_PIECE_SLOT_VALUE) &&
           given->codec == SUMAC__V1__PIECE__CODEC__CODEC_IDENTITY;
}

/* Which list of a shard a piece reads; STORE_LISTS_MAX: none that any shard has. */
static uint32_t list_of(const wire_piece *given)
{
    if ((int)given->kind != WIRE_PIECE_SLOT_VALUE)
        return STORE_VALUE;
    return given->slot < UPDATE_SLOTS_MAX ? 1 + given->slot : STORE_LISTS_MAX;
}

/* The rows that a piece names, the next indices of the pull. *bytes: of their values. */
static enum sumac_status read_rows(
    struct lane_pull *pull, const struct shard *shard, const wire_piece *given, uint64_t *bytes,
    struct sumac_error *error)
{
    const struct variable *variable = shard->variable;
    const uint64_t rows = variable->placements[shard->placement].rows;
    const uint64_t count = given->bytes / sizeof *pull->indices;
    const uint32_t first = pull->indices_read;

    assert(first <= pull->index_count);
    if (given->bytes % sizeof *pull->indices != 0 || given->offset_bytes != 0 ||
        count > pull->index_count - first)
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE,
            "variable %s: %" PRIu64 " bytes of row indices at %" PRIu64
            ", where %u int64 of 8 bytes are left in the payload: a list comes whole, from 0 on",
            variable->name, given->bytes, given->offset_bytes, pull->index_count - first);
    for (uint32_t i = first; i < first + count; i++) {
        if ((uint64_t)pull->indices[i] >= rows) /* or below 0 */
            return fail_invalid(
                error, SUMAC_REASON_WRONG_SHAPE,
                "pull of row %" PRId64 " of shard %" PRIu64 " of variable %s, which has %" PRIu64
                " rows: 0 to %" PRIu64,
                pull->indices[i], shard->id, variable->name, rows, rows == 0 ? 0 : rows - 1);
    }
    pull->indices_read += (uint32_t)count;
    *bytes = count * shard->row_bytes;
    return SUMAC_OK;
}

/* `list`: the value, or a slot. */
static enum sumac_status read_range(
    const struct shard *shard, uint32_t list, const wire_piece *given, uint64_t *bytes,
    struct sumac_error *error)
{
    const struct variable *variable = shard->variable;
    const enum sumac_dtype dtype = list == STORE_VALUE
                                       ? variable->definition.dtype
                                       : update_slot_dtype(variable->definition.dtype);
    const uint64_t element = sumac_dtype_bytes(dtype), all = store_list_bytes(shard, list);
    const uint64_t left = given->offset_bytes > all ? 0 : all - given->offset_bytes;

    *bytes = given->bytes == 0 ? left : given->bytes;
    if (given->offset_bytes <= all && *bytes <= left && given->offset_bytes % element == 0 &&
        *bytes % element == 0)
        return SUMAC_OK;
    return fail_invalid(
        error, SUMAC_REASON_WRONG_SHAPE,
        "variable %s: %" PRIu64 " bytes at %" PRIu64 " of a %s of %" PRIu64 " bytes of %s",
        variable->name, given->bytes, given->offset_bytes, list == STORE_VALUE ? "shard" : "slot",
        all, sumac_dtype_name(dtype));
}

static enum sumac_status check_list(
    const struct shard *shard, uint32_t list, const wire_piece *given, struct sumac_error *error)
{
    const struct variable *variable = shard->variable;

    assert(shard->list_count == 1 + variable->slot_count);
    if (list < shard->list_count)
        return SUMAC_OK;
    return fail_invalid(
        error, SUMAC_REASON_MISSING_SLOTS,
        "pull of slot %u of variable %s, which has %u: its function is %s", given->slot,
        variable->name, variable->slot_count, variable->definition.function->name);
}

static enum sumac_status read_piece(
    struct lane *lane, struct lane_pull *pull, const wire_piece *given, struct sumac_error *error)
{
    struct shard *shard = store_shard(&lane->store, given->shard_id);

    assert(pull->piece_count < pull->piece_capacity);
    if (shard == NULL || !shard->variable->filled)
        return fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_SHARD,
            "ps %u has no shard %" PRIu64 ": the variable was deleted, or its layout is another",
            lane->index, given->shard_id);
    const struct variable *variable = shard->variable;
    if (shard->layout_epoch != given->layout_epoch)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_STALE_LAYOUT,
            "variable %s: a piece for layout %u of shard %" PRIu64
            ", the present layout is %u: list it again",
            variable->name, given->layout_epoch, shard->id, shard->layout_epoch);
    if (!is_plain(given))
        return fail(
            error, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED,
            "variable %s: a piece of kind %d, codec %d; ps %u gives values as they are",
            variable->name, (int)given->kind, (int)given->codec, lane->index);
    const bool by_rows = (int)given->kind == WIRE_PIECE_ROW_INDICES;
    uint64_t offset = by_rows ? PULL_BY_ROWS | pull->indices_read : given->offset_bytes;
    uint64_t bytes = 0;
    const uint32_t list = list_of(given);
    enum sumac_status status = check_list(shard, list, given, error);
    if (status == SUMAC_OK)
        status = by_rows ? read_rows(pull, shard, given, &bytes, error)
                         : read_range(shard, list, given, &bytes, error);
    if (status != SUMAC_OK)
        return status;
    assert(offset >> PULL_LIST_SHIFT == 0 || by_rows);
    assert(!by_rows || list == STORE_VALUE);
    offset |= (uint64_t)list << PULL_LIST_SHIFT;
    pull->reads_slots = pull->reads_slots || list != STORE_VALUE;
    store_use(shard);
    pull->pieces[pull->piece_count++] =
        (struct pull_piece){.shard = shard, .offset = offset, .bytes = bytes};
    pull->bytes += bytes;
    return SUMAC_OK;
}

/* To be looked at later, in their order: behind one that is of no kind that there is, none is. */
static void keep_pieces(struct lane *lane, struct lane_pull *pull, const wire_pull_request *request)
{
    const wire_piece *given = NULL;

    assert(request->n_pieces == pull->piece_capacity);
    assert(pull->piece_count == 0);
    do {
        given = request->pieces[pull->kept_count];
        struct pull_piece *kept = &pull->pieces[pull->kept_count++];
        kept->shard_id = given->shard_id;
        const bool by_rows = (int)given->kind == WIRE_PIECE_ROW_INDICES;
        kept->offset =
            given->offset_bytes < PULL_OFFSET_MASK ? given->offset_bytes : PULL_OFFSET_MASK;
        kept->offset |= by_rows ? PULL_BY_ROWS : 0;
        kept->offset |= (uint64_t)list_of(given) << PULL_LIST_SHIFT;
        kept->bytes = given->bytes;
        kept->layout_epoch = given->layout_epoch;
    } while (pull->kept_count < pull->piece_capacity && is_plain(given));
    pull->kept_kind = (int32_t)given->kind;
    pull->kept_codec = (int32_t)given->codec;
    lane->work += pull->kept_count / PIECES_PER_WORK;
}

bool lane_pull_read_on(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    wire_piece piece = WIRE_PIECE_INIT;

    assert(pull->error.status == SUMAC_OK);
    while (lane_pull_is_being_read(pull) && lane_has_time(lane)) {
        if (pull->kept_count - pull->piece_count > 2 * STORE_SHARDS_AHEAD)
            store_shard_far(
                &lane->store, pull->pieces[pull->piece_count + 2 * STORE_SHARDS_AHEAD].shard_id);
        if (pull->kept_count - pull->piece_count > STORE_SHARDS_AHEAD)
            store_shard_comes(
                &lane->store, pull->pieces[pull->piece_count + STORE_SHARDS_AHEAD].shard_id);
        const struct pull_piece *kept = &pull->pieces[pull->piece_count];
        piece.shard_id = kept->shard_id;
        const uint32_t list = lane_pull_list(kept);
        piece.offset_bytes = lane_pull_offset(kept);
        piece.kind = lane_pull_is_by_rows(kept) ? SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES
                     : list != STORE_VALUE      ? SUMAC__V1__PIECE__KIND__KIND_SLOT_VALUE
                                                : SUMAC__V1__PIECE__KIND__KIND_VALUES;
        piece.slot = list != STORE_VALUE ? list - 1 : 0;
        piece.bytes = kept->bytes;
        piece.layout_epoch = (uint32_t)kept->layout_epoch;
        if (pull->piece_count + 1 == pull->kept_count) {
            piece.kind = (Sumac__V1__Piece__Kind)pull->kept_kind;
            piece.codec = (Sumac__V1__Piece__Codec)pull->kept_codec;
        }
        lane->work += WORK_OF_A_PIECE;
        (void)read_piece(lane, pull, &piece, &pull->error);
    }
    if (!lane_pull_is_being_read(pull) && lane_has_time(lane))
        return true;
    lane_stream_attend(lane, stream);
    return false;
}

/* What a push has beside a pull is not the pull's. */
static uint64_t payload_bytes_of(const struct lane_event *event)
{
    uint64_t bytes = 0;

    if (event->kind != LANE_EVENT_PULL)
        return 0;
    for (size_t i = 0; i < event->payload_spans; i++)
        bytes += event->payload[i].bytes;
    return bytes;
}

/* Of all pieces by rows; UINT32_MAX: more than there may be. */
static uint64_t indices_of(const wire_pull_request *request)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < request->n_pieces; i++) {
        const wire_piece *piece = request->pieces[i];
        if ((int)piece->kind != WIRE_PIECE_ROW_INDICES)
            continue;
        if (piece->bytes > WIRE_PULL_BYTES_MAX)
            return UINT32_MAX;
        bytes += piece->bytes;
    }
    return bytes / sizeof(int64_t);
}

/* As they came. */
static void copy_indices(const struct lane *lane, struct lane_pull *pull)
{
    uint8_t *to = (uint8_t *)pull->indices;

    if (pull->index_count == 0)
        return;
    assert(payload_bytes_of(lane->event) == pull->index_count * sizeof *pull->indices);
    for (size_t i = 0; i < lane->event->payload_spans; i++) {
        memcpy(to, lane->event->payload[i].data, lane->event->payload[i].bytes);
        to += lane->event->payload[i].bytes;
    }
}

/* What can be said of a pull without looking at its pieces. */
static void check_request(
    struct lane *lane, const struct lane_stream *stream, const wire_pull_request *request,
    struct sumac_error *error)
{
    char cause[CLOSE_CAUSE_TEXT_BYTES];
    const struct lane_session *session = stream->session;
    const uint64_t payload_bytes = payload_bytes_of(lane->event);

    if (stream->kind == LANE_STREAM_PUSH &&
        (request->collective == NULL || request->payload.len > 0))
        (void)fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "pull %" PRIu64 " is beside pushes, and %s: on a push stream those of rounds of "
            "collective are answered, others on a pull stream",
            request->request,
            request->collective == NULL ? "of no round of a collective" : "has a payload");
    else if (request->view_id != 0)
        (void)fail(
            error, SUMAC_UNIMPLEMENTED, SUMAC_REASON_UNSUPPORTED,
            "pull %" PRIu64 " names view %" PRIu64 ": ps %u answers from the present state only",
            request->request, request->view_id, lane->index);
    else if (request->n_pieces > WIRE_PULL_PIECES_MAX)
        (void)fail_invalid(
            error, SUMAC_REASON_TOO_MANY_PIECES,
            "pull %" PRIu64 " has %zu pieces, at most %u are taken", request->request,
            request->n_pieces, WIRE_PULL_PIECES_MAX);
    else if (payload_bytes > WIRE_PULL_ROWS_MAX * sizeof(int64_t))
        (void)fail_invalid(
            error, SUMAC_REASON_TOO_MANY_PIECES,
            "pull %" PRIu64 " names %" PRIu64 " rows by index, at most %u are taken",
            request->request, payload_bytes / sizeof(int64_t), WIRE_PULL_ROWS_MAX);
    else if (payload_bytes != indices_of(request) * sizeof(int64_t))
        (void)fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "pull %" PRIu64 ": pieces of %" PRIu64 " row indices with a payload of %" PRIu64
            " bytes",
            request->request, indices_of(request), payload_bytes);
    else if (request->after_sequence > 0 && session == NULL)
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_UNKNOWN,
            "pull %" PRIu64 " waits for push %" PRIu64
            " of a session that ps %u does not know: join again",
            request->request, request->after_sequence, lane->index);
    else if (
        request->after_sequence > 0 && session->closing && session->mark < request->after_sequence)
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, wire_close_cause_reason(&session->cause),
            "pull %" PRIu64 " waits for push %" PRIu64
            " of session %s, which is closed on ps %u%s; %s",
            request->request, request->after_sequence, session->task, lane->index,
            wire_close_cause_print(&session->cause, cause),
            wire_close_cause_remedy(&session->cause));
    else if (request->collective != NULL)
        lane_collective_pull_check(stream, request, error);
    else if (request->at_step > 0)
        (void)lane_step_check_readable(lane, request->request, request->at_step, error);
}

/* False: there is no room for it, not even to say so. */
static bool read_request(
    struct lane *lane, const struct lane_stream *stream, struct lane_pull *pull,
    const wire_pull_request *request)
{
    assert(pull->room_bytes == 0);
    check_request(lane, stream, request, &pull->error);
    if (pull->error.status == SUMAC_OK) {
        pull->index_count = (uint32_t)indices_of(request);
        if (request->collective != NULL)
            pull->result_bytes =
                (uint32_t)(sizeof *pull->collective + request->collective->name.len + 1);
    }
    if (pull->error.status != SUMAC_OK ||
        lane_pull_take_room(lane, stream->session, pull, request->n_pieces, &pull->error) !=
            SUMAC_OK)
        return lane_pull_take_last_room(lane, pull); /* it keeps nothing but its error */
    pull->piece_capacity = (uint32_t)request->n_pieces;
    pull->pieces = sized_pool_take(&lane->bytes, pull->piece_capacity * sizeof *pull->pieces);
    if (pull->index_count > 0)
        pull->indices = sized_pool_take(&lane->bytes, pull->index_count * sizeof *pull->indices);
    if (pull->result_bytes > 0)
        pull->collective = sized_pool_take_zeroed(&lane->bytes, pull->result_bytes);
    if (pull->pieces == NULL || (pull->indices == NULL && pull->index_count > 0) ||
        (pull->collective == NULL && pull->result_bytes > 0)) {
        (void)fail_for_memory(
            &pull->error,
            "ps %u has no memory for a pull: it holds %" PRIu64
            " bytes for pushes and pulls, of at most %" PRIu64
            " (its --staging-max, --pulls-max and what it keeps for sessions); pull again later",
            lane->index, lane->bytes.held_bytes, lane->bytes.held_bytes_max);
        return true;
    }
    if (pull->collective != NULL)
        lane_collective_pull_begin(pull->collective, stream->session, request->collective);
    copy_indices(lane, pull);
    lane->work += pull->index_count / PIECES_PER_WORK;
    if (request->n_pieces > PIECES_READ_AT_ONCE) {
        keep_pieces(lane, pull, request);
        return true;
    }
    lane->work += WORK_OF_A_PIECE * request->n_pieces;
    for (size_t i = 0; i < request->n_pieces; i++) {
        if (read_piece(lane, pull, request->pieces[i], &pull->error) != SUMAC_OK)
            break;
    }
    return true;
}

static void cancel(struct lane *lane, struct lane_stream *stream, uint64_t request)
{
    LIST_FOREACH(struct lane_pull, pull, &stream->pulls, in_stream) {
        if (pull->request == request) {
            destroy(lane, stream, pull);
            lane_stream_attend(lane, stream); /* answers may have waited for it */
            return;
        }
    }
}

static void add(struct lane *lane, struct lane_stream *stream, const wire_pull_request *request)
{
    struct lane_pull *pull = stream->pull_count == PULLS_PER_STREAM_MAX
                                 ? NULL
                                 : sized_pool_take_zeroed(&lane->bytes, sizeof(struct lane_pull));

    if (pull != NULL) {
        pull->request = request->request;
        pull->after_sequence = request->after_sequence;
        if (request->bounded && request->clock > request->lag_max)
            pull->clock_awaited = request->clock - request->lag_max;
        pull->at_step = request->at_step;
        pull->timeout_ms = request->timeout_ms == 0 ? TIMEOUT_MS_DEFAULT : request->timeout_ms;
        pull->started_us = lane->now_us;
        pull->deadline_us = lane->now_us + (uint64_t)pull->timeout_ms * 1000;
    }
    if (pull == NULL || !read_request(lane, stream, pull, request)) {
        sized_pool_give(&lane->bytes, pull, sizeof *pull);
        (void)lane_stream_fail(
            lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "ps %u has no room for pull %" PRIu64
            " beside %u others of its stream, of at most %u, and %" PRIu64
            " bytes of refused pulls whose answers were not read, of at most %" PRIu64,
            lane->index, request->request, stream->pull_count, PULLS_PER_STREAM_MAX,
            lane->pulls->refused_bytes, lane->pulls->bounds.refused_max);
        return;
    }
    lane_pull_note_due(lane, pull->deadline_us);
    assert(pull->room_bytes > 0);
    assert(stream->state == STREAM_GREETED);
    link_last(stream, pull);
    lane_stream_attend(lane, stream);
}

void lane_pull_take(struct lane *lane, struct lane_stream *stream, const wire_pull_request *request)
{
    assert(stream->state == STREAM_GREETED);
    if (request->request == 0)
        return;
    if (request->cancel)
        cancel(lane, stream, request->request);
    else
        add(lane, stream, request);
}

void lane_pull_request(struct lane *lane, const struct lane_event *event)
{
    const wire_pull_request *request = event->pull_request;
    struct lane_stream *stream = lane_stream_taken(lane, event->stream, request->hello);

    if (stream == NULL)
        return;
    if (stream->session != NULL)
        lane_session_heard(lane, stream->session);
    lane_pull_take(lane, stream, request);
}

bool lane_pull_waits(const struct lane *lane, const struct lane_session *session)
{
    LIST_FOREACH(const struct lane_stream, stream, &lane->streams, in_lane) {
        if (stream->kind == LANE_STREAM_PULL && stream->session == session &&
            stream->pulls.first != NULL)
            return true;
    }
    return false;
}

void lane_pull_end_session(struct lane *lane, struct lane_session *session)
{
    char cause[CLOSE_CAUSE_TEXT_BYTES], awaited[32];

    assert(session->closing);
    LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
        if (stream->session != session)
            continue;
        if (stream->kind == LANE_STREAM_PUSH) { /* that the session is closed is said there */
            lane_pull_drop_all(lane, stream);
            continue;
        }
        LIST_FOREACH_SAFE(struct lane_pull, pull, &stream->pulls, in_stream) {
            if ((pull->after_sequence <= session->mark && pull->collective == NULL) ||
                pull->fixed || pull->error.status != SUMAC_OK)
                continue;
            (void)text_print(awaited, sizeof awaited, "push %" PRIu64 " of", pull->after_sequence);
            (void)fail(
                &pull->error, SUMAC_FAILED_PRECONDITION, wire_close_cause_reason(&session->cause),
                "pull %" PRIu64 " waited for %s session %s%s was closed on ps %u%s; %s",
                pull->request, pull->collective != NULL ? "a round of a collective, and" : awaited,
                session->task, pull->collective != NULL ? "" : ", which", lane->index,
                wire_close_cause_print(&session->cause, cause),
                wire_close_cause_remedy(&session->cause));
            lane_pull_note_failed(lane, stream, pull);
        }
    }
}

void lane_pull_disown(struct lane *lane, struct lane_session *session)
{
    const uint64_t readers_max = lane->pulls->bounds.readers_max;
    struct lane_stream *stream = lane->streams.first;

    lane_pull_disown_session(lane, session);
    for (; stream != NULL && lane->pulls->reader_bytes > readers_max;
         stream = stream->in_lane.next) {
        if (stream->session != session || stream->pulls.first == NULL)
            continue;
        (void)lane_stream_fail(
            lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_BUSY,
            "session %s is closed on ps %u, and its pulls with those of readers without a session "
            "take %" PRIu64 " bytes, of at most %" PRIu64 ": pull again later, or join",
            session->task, lane->index, lane->pulls->reader_bytes, readers_max);
        lane_pull_drop_all(lane, stream);
    }
}

/* Does the pull wait until the variable's creator assigns it? */
static bool waits_for_creator(const struct lane_pull *pull, const struct variable *variable)
{
    if (pull->active || pull->error.status != SUMAC_OK)
        return false;
    for (uint32_t i = 0; i < pull->piece_count; i++) {
        const struct shard *shard = pull->pieces[i].shard;
        if (shard->variable == variable && shard->unassigned != NULL)
            return true;
    }
    return false;
}

void lane_pull_end_variable(struct lane *lane, const struct variable *variable)
{
    if (!definition_is_assigned(&variable->definition) || variable->assigned)
        return;
    assert(!variable->deleted);
    LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
        LIST_FOREACH_SAFE(struct lane_pull, pull, &stream->pulls, in_stream) {
            if (!waits_for_creator(pull, variable))
                continue;
            (void)fail(
                &pull->error, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_SHARD,
                "pull %" PRIu64
                " waited for variable %s, which was deleted on ps %u before its creator had "
                "assigned it",
                pull->request, variable->name, lane->index);
            lane_pull_note_failed(lane, stream, pull);
        }
    }
}

void lane_pull_end_lost(struct lane *lane)
{
    if (!lane_step_fails(lane, UINT64_MAX))
        return;
    LIST_FOREACH(struct lane_stream, stream, &lane->streams, in_lane) {
        LIST_FOREACH_SAFE(struct lane_pull, pull, &stream->pulls, in_stream) {
            if (pull->at_step != 0 && !pull->fixed && pull->error.status == SUMAC_OK &&
                lane_step_check_readable(lane, pull->request, pull->at_step, &pull->error) !=
                    SUMAC_OK)
                lane_pull_note_failed(lane, stream, pull);
        }
    }
}
