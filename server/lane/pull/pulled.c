/* SPDX-License-Identifier: Apache-2.0 */
/* pulled.c -- a pull's answer, one message at a time.
 *
 * A short one is copied out by the driver at once, when the step is over. A longer one opens a view
 * and lends blocks: each span counts as on its way until the driver has RELEASED it. So do those of
 * a short one that reads what was deleted: with its answer the pull lets go of the blocks. Of what
 * is pushed by rows nothing is lent: a block that is lent is copied whole before it is written, and
 * of one that is not the old rows alone are kept; so its bytes are gathered, with those. Small
 * pieces are gathered, so that a thousand variables of 256 bytes are one run of bytes and not a
 * thousand spans.
 *
 * One message of a stream is on its way at a time, and the pulls of a stream take turns; of the
 * long ones only one is under way.
 *
 * Pulls of rounds of collectives may come on a push stream, beside contributions: those that are
 * short are answered there, whole, beside what is said of pushes.
 */
#include "pull_state.h"

#include "error.h"

/* A message as it is put together. */
struct message {
    wire_pull_answer *answer;
    struct lane_bytes *payload;
    uint32_t payload_count, payload_capacity;
    uint8_t *gathered; /* room for the small runs, NULL until there is one */
    size_t gathered_used, gathered_capacity;
    uint64_t copied_bytes; /* gathered, or by the driver */
    bool lends;
};

static void open_view(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    assert(!pull->active);
    assert(pull->error.status == SUMAC_OK);
    store_view_open(
        &lane->store, &pull->view, pull->reads_slots ? VIEW_OF_SLOTS_TOO : VIEW_OF_VALUES);
    pull->active = true;
    stream->active_pulls++;
}

/* What it reads is chosen: the values as they are now. A long one keeps them by a view, and so does
 * one that shows what is not on disk yet: it waits until that is. */
static void fix(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    assert(!pull->active);
    pull->fixed = true;
    pull->position = lane->store.position;
    pull->record = lane->last_record;
    lane->work += pull->piece_count / 2; /* each of their shards is written to */
    if (lane_pull_is_long(lane, pull) || pull->record > lane->recorded)
        open_view(lane, stream, pull);
    for (uint32_t i = 0; i < pull->piece_count; i++) {
        struct shard *shard = pull->pieces[i].shard;
        lane_pull_fetch_ahead(pull, i);
        pull->pieces[i].version = shard->version;
        if (pull->active)
            store_view_cover(&pull->view, shard);
    }
}

/* May it be said? */
static bool is_due(struct lane *lane, struct lane_stream *stream, struct lane_pull *pull)
{
    if (!lane_pull_is_ready(lane, stream, pull))
        return false;
    if (pull->collective != NULL && !pull->fixed && pull->error.status == SUMAC_OK)
        lane_collective_pull_fix(lane, stream, pull);
    if (pull->collective != NULL) /* an error, too, is what the round came to */
        return pull->record <= lane->recorded;
    if (pull->error.status != SUMAC_OK)
        return true;
    if (!pull->fixed && lane_pull_is_late(lane, pull, &pull->error))
        return true;
    if (!pull->fixed)
        fix(lane, stream, pull);
    return pull->record <= lane->recorded;
}

/* The pull whose turn it is, or NULL. Those that wait are passed, and not looked at again until
 * what they wait for may be there. */
static struct lane_pull *choose(struct lane *lane, struct lane_stream *stream)
{
    struct lane_pull *pull, *left = NULL; /* the first that had no time */

    while ((pull = stream->unlooked) != NULL) {
        lane->work++;
        if (lane_pull_is_being_read(pull) && !lane_pull_read_on(lane, stream, pull)) {
            if (left == NULL)
                left = pull;
        } else if (lane_pull_is_put_off(lane, stream, pull)) {
            if (left == NULL && stream->put_off == NULL)
                stream->put_off = pull;
        } else if (is_due(lane, stream, pull)) {
            if (!pull->active || lane_has_time(lane))
                break;
            lane_stream_attend(lane, stream); /* what it reads was chosen, and took that long */
            left = left == NULL ? pull : left;
        } else {
            lane_pull_await(lane, stream, pull);
        }
        stream->unlooked = pull->in_stream.next;
    }
    if (left != NULL)
        stream->unlooked = left;
    return pull;
}

/* Room for so many more bytes that are gathered. NULL: no memory. */
static uint8_t *gather(struct lane *lane, struct message *message, size_t bytes)
{
    if (message->gathered == NULL)
        message->gathered = arena_take(&lane->arena, message->gathered_capacity);
    if (message->gathered == NULL)
        return NULL;
    uint8_t *const out = message->gathered + message->gathered_used;
    assert(message->gathered_used + bytes <= message->gathered_capacity);
    message->gathered_used += bytes;
    message->copied_bytes += bytes;
    return out;
}

/* What was gathered is one run with what was before it, or begins another one. */
static void add_gathered(struct message *message, const uint8_t *data, size_t bytes)
{
    struct lane_bytes *last =
        message->payload_count == 0 ? NULL : &message->payload[message->payload_count - 1];

    if (last != NULL && last->bytes.data + last->bytes.bytes == data) {
        last->bytes.bytes += bytes;
        return;
    }
    assert(message->payload_count < message->payload_capacity);
    message->payload[message->payload_count++] =
        (struct lane_bytes){.bytes = {.data = data, .bytes = bytes}};
}

static bool add_copy(struct lane *lane, struct message *message, const uint8_t *data, size_t bytes)
{
    uint8_t *const out = gather(lane, message, bytes);

    if (out == NULL)
        return false;
    memcpy(out, data, bytes);
    add_gathered(message, out, bytes);
    return true;
}

/* They stay where they are until they are RELEASED. What holds them, or NULL: no memory. */
static struct hold *
add_lent(struct lane *lane, struct message *message, const uint8_t *data, size_t bytes)
{
    struct hold *const hold = pool_take(&lane->pulls->holds);

    assert(message->payload_count < message->payload_capacity);
    if (hold != NULL)
        message->payload[message->payload_count++] = (struct lane_bytes){
            .bytes = {.data = data, .bytes = bytes}, .hold = (uint64_t)(uintptr_t)hold};
    return hold;
}

static bool add_bytes(
    struct lane *lane, struct message *message, struct block *block, const uint8_t *data,
    size_t bytes)
{
    assert(block != NULL);
    if (bytes <= lane->config.gathered_bytes_max)
        return add_copy(lane, message, data, bytes);
    if (message->lends) {
        struct hold *const hold = add_lent(lane, message, data, bytes);
        if (hold == NULL)
            return false;
        hold->block = block;
        store_block_lend(block);
        return true;
    }
    assert(message->payload_count < message->payload_capacity);
    message->payload[message->payload_count++] =
        (struct lane_bytes){.bytes = {.data = data, .bytes = bytes}};
    message->copied_bytes += bytes;
    lane->shows_blocks = true;
    return true;
}

/* What the round came to is said a message at a time, too; a short one is copied here and now. */
static bool compose_collectives_through(
    struct lane *lane, struct message *message, struct lane_pull *pull, bool is_long)
{
    struct collective_pull *wanted = pull->collective;
    const uint64_t most = lane->config.pull_chunk_bytes, left = wanted->bytes - wanted->at;
    const uint64_t between = lane->config.gathered_bytes_max + 1;
    uint64_t bytes = is_long && left > most ? most : left;

    assert(wanted->at <= wanted->bytes);
    if (wanted->at == 0) {
        message->answer->collective = lane_collective_pull_header(lane, pull);
        if (message->answer->collective == NULL)
            return false;
    }
    message->answer->position = pull->position;
    message->lends = is_long;
    message->payload_capacity = (uint32_t)(2 * (bytes / between) + 2);
    message->payload =
        arena_take(&lane->arena, message->payload_capacity * sizeof *message->payload);
    message->gathered_capacity = (size_t)bytes;
    if (message->payload == NULL)
        return false;
    assert(wanted->round->ready);
    for (uint32_t runs = is_long ? ROWS_PER_ANSWER_MAX : UINT32_MAX; bytes > 0 && runs > 0;
         runs--) {
        const struct result_run run = lane_collective_pull_next(wanted, bytes);
        lane->work++;
        bytes -= run.bytes;
        if (!message->lends || run.bytes <= lane->config.gathered_bytes_max) {
            if (!add_copy(lane, message, run.data, (size_t)run.bytes))
                return false;
            continue;
        }
        struct hold *const hold = add_lent(lane, message, run.data, (size_t)run.bytes);
        if (hold == NULL)
            return false;
        hold->contribution = run.contribution;
        lane_contribution_hold(run.contribution);
    }
    message->answer->last = wanted->at == wanted->bytes;
    return true;
}

/* Bytes of a list of a shard that lie together in it, block by block. */
static bool add_together(
    struct lane *lane, struct message *message, const struct lane_pull *pull,
    const struct pull_piece *piece, uint64_t at, uint64_t bytes)
{
    const uint32_t list = lane_pull_list(piece);

    assert(list < piece->shard->list_count);
    while (bytes > 0) {
        const struct block_byte first = store_block_byte(piece->shard, list, at);
        struct block *block =
            pull->active ? store_block_at(piece->shard, list, first.index, pull->view.position)
                         : piece->shard->list[list][first.index];
        assert(first.index < piece->shard->block_count);
        assert(first.within < block->bytes);
        const uint64_t left = block->bytes - first.within;
        const uint64_t run = left < bytes ? left : bytes;
        if (pull->active && piece->shard->by_rows) {
            uint8_t *const out = gather(lane, message, (size_t)run);
            if (out == NULL)
                return false;
            store_block_read(block, first.within, (size_t)run, pull->view.position, out);
            add_gathered(message, out, (size_t)run);
        } else if (!add_bytes(lane, message, block, block->data + first.within, (size_t)run)) {
            return false;
        }
        at += run;
        bytes -= run;
    }
    return true;
}

#define ROWS_AHEAD 8u

/* The rows that follow lie anywhere: the bytes of one that comes soon are fetched. */
STORE_FETCHES
static inline void
fetch_row_ahead(const struct lane_pull *pull, const struct pull_piece *piece, uint64_t next_byte)
{
    const uint64_t ahead = next_byte + ROWS_AHEAD * piece->shard->row_bytes;
    uint64_t left;

    if (ahead >= piece->bytes || pull->active)
        return;
    const struct block_byte first =
        store_block_byte(piece->shard, STORE_VALUE, lane_pull_row_at(pull, piece, ahead, &left));
    __builtin_prefetch(piece->shard->list[STORE_VALUE][first.index]->data + first.within);
}

/* Some of the piece at hand. */
static bool add_run(
    struct lane *lane, struct message *message, const struct lane_pull *pull,
    const struct pull_piece *piece, uint64_t bytes)
{
    if (!lane_pull_is_by_rows(piece))
        return add_together(
            lane, message, pull, piece, lane_pull_offset(piece) + pull->next_byte, bytes);
    for (uint64_t done = 0, here; done < bytes; done += here) {
        const uint64_t at = lane_pull_row_at(pull, piece, pull->next_byte + done, &here);
        fetch_row_ahead(pull, piece, pull->next_byte + done);
        if (here > bytes - done)
            here = bytes - done;
        if (!add_together(lane, message, pull, piece, at, here))
            return false;
        lane->work++;
    }
    return true;
}

/* Of a piece's bytes, from `next_byte` on, as many as one message takes, and in how many runs. */
static uint64_t measure_piece(
    const struct lane *lane, const struct pull_piece *piece, uint64_t next_byte, uint64_t most,
    uint32_t *runs)
{
    const struct variable *variable = piece->shard->variable;
    const uint64_t wanted = piece->bytes - next_byte, row_bytes = piece->shard->row_bytes;
    uint64_t taken = wanted < most ? wanted : most;

    assert(next_byte <= piece->bytes);
    if (!lane_pull_is_by_rows(piece) || taken == 0) {
        *runs += (uint32_t)store_blocks_of(variable, taken) + 1;
        return taken;
    }
    if (taken / row_bytes > ROWS_PER_ANSWER_MAX)
        taken = ROWS_PER_ANSWER_MAX * row_bytes - next_byte % row_bytes;
    if (row_bytes <= lane->config.gathered_bytes_max) /* all of them are one run */
        *runs += 2;
    else
        *runs += (uint32_t)((taken / row_bytes + 2) * (store_blocks_of(variable, row_bytes) + 1));
    return taken;
}

/* How many pieces, and at most how many runs, the next message has; *bytes is the bound, then what
 * it comes to. */
static void measure(
    const struct lane *lane, const struct lane_pull *pull, uint64_t *bytes, uint32_t *pieces,
    uint32_t *runs)
{
    uint64_t left = *bytes, next_byte = pull->next_byte;

    assert(pull->next_piece <= pull->piece_count);
    *pieces = *runs = 0;
    for (uint32_t i = pull->next_piece; i < pull->piece_count; i++) {
        const uint64_t wanted = pull->pieces[i].bytes - next_byte;
        lane_pull_fetch_ahead(pull, i);
        if (*pieces == PIECES_PER_ANSWER_MAX || (left == 0 && wanted > 0))
            break;
        const uint64_t taken = measure_piece(lane, &pull->pieces[i], next_byte, left, runs);
        left -= taken;
        (*pieces)++;
        next_byte = 0;
        if (taken < wanted)
            break;
    }
    *bytes -= left;
}

static wire_piece *
add_piece(struct lane *lane, struct message *message, const struct lane_pull *pull, uint64_t bytes)
{
    const struct pull_piece *piece = &pull->pieces[pull->next_piece];
    wire_piece *said = arena_take(&lane->arena, sizeof *said);

    assert(pull->next_piece < pull->piece_count);
    if (said == NULL)
        return NULL;
    *said = (wire_piece)WIRE_PIECE_INIT;
    said->shard_id = piece->shard->id;
    said->layout_epoch = piece->shard->layout_epoch;
    said->offset_bytes =
        (lane_pull_is_by_rows(piece) ? 0 : lane_pull_offset(piece)) + pull->next_byte;
    said->bytes = bytes;
    message->answer->pieces[message->answer->n_pieces++] = said;
    return said;
}

/* Of thousands of pieces: the shards of those far ahead come, the lists of blocks of those nearer,
 * then the blocks and, of the nearest, their bytes. */
STORE_FETCHES
static inline void fetch_bytes_ahead(const struct lane_pull *pull)
{
    const struct pull_piece *next = &pull->pieces[pull->next_piece];

    if (pull->piece_count - pull->next_piece <= 4 * STORE_BLOCKS_AHEAD)
        return;
    store_shard_soon(next[4 * STORE_BLOCKS_AHEAD].shard);
    store_list_comes(next[3 * STORE_BLOCKS_AHEAD].shard);
    store_block_comes(next[2 * STORE_BLOCKS_AHEAD].shard);
    store_bytes_come(next[STORE_BLOCKS_AHEAD].shard);
}

/* The next bytes of the pull, at most `bytes`. */
static bool
compose(struct lane *lane, struct message *message, struct lane_pull *pull, uint64_t bytes)
{
    uint32_t pieces, runs;

    measure(lane, pull, &bytes, &pieces, &runs);
    lane->work += WORK_OF_A_PIECE * (uint64_t)pieces;
    message->answer->pieces = arena_take(&lane->arena, pieces * sizeof *message->answer->pieces);
    message->payload = arena_take(&lane->arena, runs * sizeof *message->payload);
    message->payload_capacity = runs;
    message->gathered_capacity = (size_t)bytes;
    if (message->answer->pieces == NULL || message->payload == NULL)
        return false;
    for (uint32_t i = 0; i < pieces; i++) {
        const struct pull_piece *piece = &pull->pieces[pull->next_piece];
        const uint64_t wanted = piece->bytes - pull->next_byte;
        const uint64_t taken = wanted < bytes ? wanted : bytes;
        fetch_bytes_ahead(pull);
        if (add_piece(lane, message, pull, taken) == NULL ||
            !add_run(lane, message, pull, piece, taken))
            return false;
        bytes -= taken;
        pull->next_byte += taken;
        assert(pull->next_byte <= piece->bytes);
        if (pull->next_byte == piece->bytes) {
            pull->next_piece++;
            pull->next_byte = 0;
        }
    }
    message->answer->last = pull->next_piece == pull->piece_count;
    return true;
}

static bool add_versions(struct lane *lane, wire_pull_answer *answer, const struct lane_pull *pull)
{
    answer->versions = arena_take(&lane->arena, pull->piece_count * sizeof *answer->versions);
    if (answer->versions == NULL)
        return false;
    answer->n_versions = pull->piece_count;
    for (uint32_t i = 0; i < pull->piece_count; i++)
        answer->versions[i] = pull->pieces[i].version;
    answer->version_epoch = lane->epoch;
    return true;
}

static void say_error(struct lane *lane, wire_pull_answer *answer, const struct lane_pull *pull)
{
    assert(pull->error.status != SUMAC_OK);
    answer->step = pull->at_step == 0 ? 0 : lane->step_over;
    answer->status = (uint32_t)pull->error.status;
    answer->reason = (Sumac__V1__Reason)pull->error.reason;
    answer->message = out_text(&lane->out, "%s", pull->error.text);
    answer->last = true;
}

/* May the end of this pull free what it reads? */
static bool reads_deleted(const struct lane *lane, const struct lane_pull *pull)
{
    assert(lane->store.deleted_count > 0);
    for (uint32_t i = 0; i < pull->piece_count; i++) {
        lane_pull_fetch_ahead(pull, i);
        if (pull->pieces[i].shard->variable->deleted)
            return true;
    }
    return false;
}

/* The next message of this pull. */
static bool say(struct lane *lane, struct message *message, struct lane_pull *pull)
{
    const bool first = pull->next_piece == 0 && pull->next_byte == 0;
    const bool is_long = lane_pull_is_long(lane, pull);

    message->answer->request = pull->request;
    if (pull->active && pull->view.ended)
        (void)fail(
            &pull->error, SUMAC_ABORTED, SUMAC_REASON_VIEW_ENDED,
            "pull %" PRIu64 ": ps %u keeps at most %" PRIu64
            " bytes of old values for readers, and later pushes needed them: pull again, and read "
            "on without a stop",
            pull->request, lane->index, store_view_bytes_max(&lane->store));
    if (pull->error.status != SUMAC_OK) {
        say_error(lane, message->answer, pull);
        return true;
    }
    assert(pull->fixed);
    if (pull->collective != NULL)
        return compose_collectives_through(lane, message, pull, is_long);
    assert(pull->active || !is_long);
    if (first && !add_versions(lane, message->answer, pull))
        return false;
    if (first)
        message->answer->step = pull->at_step;
    message->answer->position = pull->position;
    message->lends = pull->active || (lane->store.deleted_count > 0 && reads_deleted(lane, pull));
    return compose(lane, message, pull, is_long ? lane->config.pull_chunk_bytes : pull->bytes);
}

/* The greeting, and the next message of the pull (NULL: none has its turn). False: no memory. */
static bool begin(
    struct lane *lane, const struct lane_stream *stream, struct message *message,
    struct lane_pull *pull)
{
    assert(stream->kind == LANE_STREAM_PULL);
    message->answer = arena_take(&lane->arena, sizeof *message->answer);
    if (message->answer == NULL)
        return false;
    *message->answer = (wire_pull_answer)WIRE_PULL_ANSWER_INIT;
    const bool greets = (stream->due & DUE_GREETING) != 0;
    if (greets)
        message->answer->greeting = lane_stream_greeting(lane, stream);
    if (greets && message->answer->greeting == NULL)
        return false;
    return pull == NULL || say(lane, message, pull);
}

static void end_for_memory(struct lane *lane, struct lane_stream *stream)
{
    (void)lane_stream_fail(
        lane, stream, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
        "ps %u has no memory for a pull's answer", lane->index);
    lane_pull_drop_all(lane, stream);
}

void lane_pulled_flush(struct lane *lane, struct lane_stream *stream)
{
    struct lane_pull *pull = choose(lane, stream);

    assert(stream->writable);
    assert(stream->state != STREAM_ENDED);
    if (stream->due == 0 && pull == NULL)
        return;
    struct message message = {.answer = NULL};
    if (!begin(lane, stream, &message, pull)) {
        for (uint32_t i = 0; i < message.payload_count; i++) { /* what it lends is not sent */
            const struct lane_event released = {.hold = message.payload[i].hold};
            lane_pulled_released(lane, &released);
        }
        end_for_memory(lane, stream);
        return;
    }
    lane->work += message.copied_bytes / WORK_VECTOR_BYTES;
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_PULLED);
    effect->stream = stream->id;
    effect->pull_answer = message.answer;
    effect->payload = message.payload;
    effect->payload_count = message.payload_count;
    stream->due = 0;
    stream->writable = false;
    stream->said_us = lane->now_us;
    lane_pull_note_due(lane, lane->now_us + UNREAD_US_MAX);
    if (pull == NULL)
        return;
    if (message.answer->last)
        lane_pull_answered(lane, stream, pull);
    else
        lane_pull_requeue(stream, pull);
}

/* ---- beside the answers to pushes */

/* What a round came to, copied into the answer. */
static bool add_result_whole(struct lane *lane, struct lane_pull *pull, wire_pull_answer *answer)
{
    const uint64_t bytes = pull->collective->bytes;
    uint8_t *out = arena_take(&lane->arena, (size_t)bytes);

    assert(pull->collective->at == 0);
    assert(bytes <= WIRE_COLLECTIVE_BESIDE_BYTES_MAX);
    answer->collective = lane_collective_pull_header(lane, pull);
    if (out == NULL || answer->collective == NULL)
        return false;
    answer->payload = (wire_bytes){.data = out, .len = (size_t)bytes};
    while (pull->collective->at < bytes) {
        const struct result_run run =
            lane_collective_pull_next(pull->collective, bytes - pull->collective->at);
        memcpy(out, run.data, (size_t)run.bytes);
        out += run.bytes;
        lane->work++;
    }
    lane->work += bytes / WORK_VECTOR_BYTES;
    return true;
}

/* All that is said of a pull. NULL: no memory. */
static wire_pull_answer *say_whole(struct lane *lane, struct lane_pull *pull)
{
    wire_pull_answer *answer = arena_take(&lane->arena, sizeof *answer);

    if (answer == NULL)
        return NULL;
    *answer = (wire_pull_answer)WIRE_PULL_ANSWER_INIT;
    answer->request = pull->request;
    answer->last = true;
    if (pull->error.status == SUMAC_OK && pull->bytes > WIRE_COLLECTIVE_BESIDE_BYTES_MAX)
        (void)fail(
            &pull->error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_MESSAGE_TOO_LARGE,
            "pull %" PRIu64 ": the round came to %" PRIu64
            " bytes, and beside pushes at most %u are answered: pull it on a pull stream",
            pull->request, pull->bytes, WIRE_COLLECTIVE_BESIDE_BYTES_MAX);
    if (pull->error.status != SUMAC_OK) {
        say_error(lane, answer, pull);
        return answer;
    }
    answer->position = pull->position;
    return add_result_whole(lane, pull, answer) ? answer : NULL;
}

void lane_pulled_beside_flush(struct lane *lane, struct lane_stream *stream)
{
    wire_pull_answer **pulled = NULL;
    struct lane_pull *pull;
    size_t count = 0;

    assert(stream->kind == LANE_STREAM_PUSH);
    while (count < PULLED_BESIDE_MAX && stream->unlooked != NULL &&
           (pull = choose(lane, stream)) != NULL) {
        if (pulled == NULL)
            pulled = arena_take(&lane->arena, PULLED_BESIDE_MAX * sizeof *pulled);
        wire_pull_answer *answer = pulled == NULL ? NULL : say_whole(lane, pull);
        if (answer == NULL) {
            end_for_memory(lane, stream);
            return;
        }
        pulled[count++] = answer;
        lane_pull_answered(lane, stream, pull);
    }
    if (count == 0 && stream->patient_count > 0 && lane_pull_holds_answers(lane, stream))
        lane_pull_hold_answers(lane, stream);
    else
        lane_answers_flush(lane, stream, pulled, count);
}

void lane_pulled_released(struct lane *lane, const struct lane_event *event)
{
    struct hold *hold = (struct hold *)(uintptr_t)event->hold;

    if (hold == NULL)
        return;
    assert(lane->pulls->holds.used > 0);
    if (hold->contribution != NULL)
        lane_contribution_released(lane, hold->contribution);
    else
        store_block_released(&lane->store, hold->block);
    pool_give(&lane->pulls->holds, hold);
    lane_turn_retry_stalled(lane);
}
