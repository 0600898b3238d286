/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c -- sequences of valid and mangled messages of several sessions, to a lane.
 *
 * The first byte says whether the lane is ps 1 under orders or ps 0 with its controller; there are
 * sessions, variables and streams already then, so that a few bytes go deep. Each further byte
 * picks an event, and the bytes behind it its fields, out of small alphabets whose first letters
 * are what a well-behaved peer says.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "input.h"
#include "lane_peers.h"
#include "lane_world.h"

#define PIECES_MAX 4u
#define PAYLOAD_BYTES_MAX 4096u

static struct world_stream *pick_stream(struct world *world, struct input *input)
{
    struct world_stream *stream = &world->streams[below(input, WORLD_STREAMS_MAX)];

    return stream->id == 0 ? NULL : stream;
}

/* ---- streams ---- */

static wire_hello
hello_of(struct world *world, struct input *input, uint32_t session, uint64_t generation)
{
    wire_hello hello = WIRE_HELLO_INIT;

    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.epoch = 1;
    hello.ps_incarnation = WORLD_INCARNATION;
    hello.session_id = peers_session_id(world, session);
    hello.generation = generation;
    if (input == NULL || !sometimes(input))
        return hello;
    hello.protocol_version += sometimes(input);
    hello.cluster_id = sometimes(input) ? 9 : 0;
    hello.epoch = below(input, 3);
    hello.ps_incarnation = sometimes(input) ? 5 : WORLD_INCARNATION;
    hello.session_id.len = sometimes(input) ? 3 : sometimes(input) ? 0 : 16;
    hello.generation = sometimes(input) ? UINT64_MAX : generation - 1;
    return hello;
}

static void open_stream(struct world *world, struct input *input, uint32_t session, bool pull)
{
    struct world_stream *stream = world_open(world, pull ? LANE_STREAM_PULL : LANE_STREAM_PUSH);

    if (stream == NULL)
        return;
    struct world_session *of = &world->sessions[session % WORLD_SESSIONS_MAX];
    wire_hello hello = hello_of(world, input, session, ++of->generation);
    wire_push_request push = WIRE_PUSH_REQUEST_INIT;
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    struct lane_event event = {
        .kind = pull ? LANE_EVENT_PULL : LANE_EVENT_PUSH, .stream = stream->id};

    stream->session = session % WORLD_SESSIONS_MAX;
    if (input != NULL && sometimes(input) && sometimes(input))
        return; /* it says nothing */
    push.hello = request.hello = &hello;
    event.push_request = pull ? NULL : &push;
    event.pull_request = pull ? &request : NULL;
    world_step(world, &event);
}

/* ---- pushes ---- */

/* Indices in a payload, and what they are: first, first + step, … */
struct named_rows {
    uint64_t at;
    uint32_t count;
    int64_t first, step;
};

struct message {
    wire_push_request request;
    wire_part part, *parts[1];
    wire_piece pieces[PIECES_MAX], *pointers[PIECES_MAX];
    wire_schedule schedule;
    wire_function function, *functions[1];
    wire_hyperparameter hyperparameter, *hyperparameters[1];
    wire_commit commit;
    uint64_t voided[3];
    uint64_t waiting[WIRE_COMMIT_WAITING_MAX + 1];
    uint64_t payload_bytes;
    struct named_rows named[PIECES_MAX];
    uint32_t named_count;
    uint8_t payload[PAYLOAD_BYTES_MAX];
    struct span spans[2];
};

static uint64_t bytes_of(struct input *input, const struct world_shard *shard, uint64_t offset)
{
    const uint64_t whole = shard->bytes > offset ? shard->bytes - offset : 0;

    switch (below(input, 8)) {
    case 0:
    case 1:
        return whole;
    case 2:
        return 0;
    case 3:
        return shard->element_bytes;
    case 4:
        return whole / 2 / 8 * 8;
    case 5:
        return 2 * (uint64_t)shard->element_bytes;
    case 6:
        return 3;
    default:
        return whole + shard->element_bytes;
    }
}

/* A pair, indices and values, of up to 15 rows of a shard; `before` are in its list already. The
 * rows that it has are not sure to be all right, nor is how many values come. */
static void make_rows(
    struct message *message, const struct world_shard *shard, uint32_t at, uint64_t before,
    struct input *input)
{
    static const int64_t steps[] = {0, 1, 2, -1};
    const uint32_t count = below(input, 16), pick = next(input);
    const uint64_t row_bytes = shard->rows == 0 ? 0 : shard->bytes / shard->rows;
    const uint64_t bytes = count * row_bytes + (pick == 255);

    for (uint32_t i = 0; i < 2; i++) {
        wire_piece *piece = &message->pieces[at + i];
        *piece = (wire_piece)WIRE_PIECE_INIT;
        piece->shard_id = shard->id;
        piece->layout_epoch = 1;
        piece->kind = (Sumac__V1__Piece__Kind)(i == 0 ? WIRE_PIECE_ROW_INDICES : WIRE_PIECE_VALUES);
        piece->bytes = i == 0 ? count * sizeof(int64_t) : bytes;
        piece->offset_bytes = i == 0 ? before * sizeof(int64_t) : before * row_bytes;
        message->pointers[at + i] = piece;
    }
    if (message->payload_bytes + count * sizeof(int64_t) + bytes > PAYLOAD_BYTES_MAX) {
        message->pieces[at].bytes = message->pieces[at + 1].bytes = 0;
        return;
    }
    message->named[message->named_count++] = (struct named_rows){
        .at = message->payload_bytes,
        .count = count,
        .first = shard->rows == 0 ? 0 : (int64_t)(pick / 4 % (shard->rows + (pick == 254))),
        .step = steps[pick % 4]};
    message->payload_bytes += count * sizeof(int64_t) + bytes;
}

static void make_pieces(struct message *message, struct world *world, struct input *input)
{
    const uint32_t count = below(input, PIECES_MAX + 1);
    uint64_t at = 0, listed = 0;
    const struct world_shard *shard = NULL;

    for (uint32_t i = 0; i < count; i++) {
        wire_piece *piece = &message->pieces[i];
        const uint32_t pick = next(input);
        if (shard == NULL || pick % 2 == 0) {
            shard = &world->shards[pick / 2 % WORLD_SHARDS_MAX];
            at = listed = 0;
        }
        if (pick >= 224 && i + 1 < count) {
            make_rows(message, shard, i, listed, input);
            listed += message->pieces[i++].bytes / sizeof(int64_t);
            continue;
        }
        listed = 0;
        *piece = (wire_piece)WIRE_PIECE_INIT;
        piece->shard_id = shard->id;
        piece->layout_epoch = 1;
        piece->offset_bytes = at;
        piece->bytes = bytes_of(input, shard, at);
        if (sometimes(input)) {
            piece->layout_epoch = below(input, 3);
            piece->kind = (Sumac__V1__Piece__Kind)below(input, 4);
            piece->function = below(input, 3);
            piece->based_on = next(input);
            piece->offset_bytes = sometimes(input) ? UINT64_MAX - 3 : below(input, 4) * 4;
            piece->shard_id += sometimes(input);
        }
        if (piece->bytes > PAYLOAD_BYTES_MAX - message->payload_bytes)
            piece->bytes = 0;
        at = piece->offset_bytes + piece->bytes;
        message->payload_bytes += piece->bytes;
        message->pointers[i] = piece;
    }
    message->part.pieces = message->pointers;
    message->part.n_pieces = count;
}

static void make_order(
    wire_part *part, struct world_session *session, struct world_stream *stream,
    struct input *input)
{
    static const uint64_t odd[] = {0, 1, UINT64_MAX, 2, 1025};
    const uint32_t pick = below(input, 8);

    if (!part->first) {
        part->sequence = stream->sequence + (pick == 7);
        return;
    }
    part->sequence = session->last + 1;
    part->previous = session->last;
    if (pick == 5) {
        part->sequence = session->last;
        part->previous = session->previous;
    } else if (pick == 6) {
        part->sequence += 1; /* the one between comes later, or never */
    } else if (pick == 7) {
        part->sequence = one_of(input, odd, 5);
        part->previous = one_of(input, odd, 5);
    }
    if (part->sequence > session->last && part->sequence < session->last + 4) {
        session->previous = session->last;
        session->last = part->sequence;
    }
    stream->sequence = part->sequence;
}

static void make_functions(struct message *message, struct input *input)
{
    message->function = (wire_function)WIRE_FUNCTION_INIT;
    message->function.function = (Sumac__V1__UpdateFunction)below(input, 8);
    message->hyperparameter = (wire_hyperparameter)SUMAC__V1__HYPERPARAMETER__INIT;
    message->hyperparameter.name = (Sumac__V1__HyperparameterName)below(input, 8);
    message->hyperparameter.value = below(input, 4) - 1.0;
    message->hyperparameters[0] = &message->hyperparameter;
    message->function.hyperparameters = message->hyperparameters;
    const uint32_t given = below(input, 4); /* a rate, a schedule, both, none */
    message->function.n_hyperparameters = given % 2;
    message->schedule = (wire_schedule)WIRE_SCHEDULE_INIT;
    if (given / 2 == 1) {
        message->schedule.kind = (Sumac__V1__Schedule__Kind)below(input, 4);
        message->schedule.decay_steps = below(input, 3);
        message->schedule.decay_rate = below(input, 3) / 2.0;
        message->schedule.warmup_steps = below(input, 2);
        message->function.schedule = &message->schedule;
    }
    message->functions[0] = &message->function;
    message->part.functions = message->functions;
    message->part.n_functions = 1;
}

static void make_part(
    struct message *message, struct world *world, struct world_stream *stream, struct input *input)
{
    static const double weights[] = {1, 2, (double)NAN, (double)INFINITY, -1, 0};
    wire_part *part = &message->part;
    const uint32_t shape = next(input);
    const bool goes_on = stream->remaining > 0;

    *part = (wire_part)WIRE_PART_INIT;
    part->first = goes_on ? shape % 8 == 7 : shape % 8 != 7;
    make_order(part, &world->sessions[stream->session], stream, input);
    make_pieces(message, world, input);
    const uint32_t more = shape / 8 % 4; /* as many messages like this one follow */
    part->eager = shape / 32 % 2 == 1;
    part->weight = weights[0];
    if (part->first) {
        part->bytes = message->payload_bytes * (more + 1);
        stream->remaining = part->bytes;
    }
    if (sometimes(input)) {
        part->weight = weights[below(input, 6)];
        part->bytes += below(input, 3) * 40000;
        part->checksum = below(input, 2);
        part->allow_non_finite = below(input, 2) == 1;
        part->synchronous = sometimes(input);
        part->step = part->synchronous ? below(input, 4) : 0;
        part->cancelled = below(input, 3) == 2;
        make_functions(message, input);
    }
    const uint64_t sent = message->payload_bytes;
    stream->remaining -= sent < stream->remaining ? sent : stream->remaining;
    part->last = stream->remaining == 0 || shape / 64 == 3;
    if (part->last)
        stream->remaining = 0;
    message->parts[0] = part;
    message->request.parts = message->parts;
    message->request.n_parts = 1;
}

/* Ascending or not, and perhaps more than a commit may name. */
static void
make_waiting(struct message *message, const struct world_session *session, struct input *input)
{
    static const uint64_t counts[] = {1, 2, WIRE_COMMIT_WAITING_MAX, WIRE_COMMIT_WAITING_MAX + 1};
    const uint64_t numbers[] = {session->last, session->previous, 0, 1, UINT64_MAX};

    message->commit.collectives_through = one_of(input, numbers, 5);
    message->commit.n_waiting = one_of(input, counts, 4);
    message->commit.waiting = message->waiting;
    for (uint32_t i = 0; i < 2; i++)
        message->waiting[i] = one_of(input, numbers, 5);
    for (uint32_t i = 2; i < message->commit.n_waiting; i++)
        message->waiting[i] = i;
}

static void
make_commit(struct message *message, const struct world_session *session, struct input *input)
{
    const uint32_t pick = next(input);

    message->commit = (wire_commit)WIRE_COMMIT_INIT;
    message->commit.commit_through = session->last;
    message->commit.acked_through = pick % 4 == 1 ? session->previous : 0;
    message->commit.voided = message->voided;
    message->voided[0] = session->last;
    message->voided[1] = session->previous;
    message->voided[2] = session->last + 1;
    message->commit.n_voided = pick / 4 % 4;
    if (pick / 16 == 15) {
        message->commit.commit_through = UINT64_MAX;
        message->commit.acked_through = UINT64_MAX;
    }
    message->commit.clock = pick / 16 == 14 ? 3 : 0;
    if (pick / 16 == 13)
        make_waiting(message, session, input);
    message->request.commit = &message->commit;
}

static void fill_payload(struct message *message, struct input *input)
{
    const uint32_t pick = below(input, 16);
    const uint8_t byte = pick == 15 ? 0xff : (uint8_t)(pick == 14 ? 0x3f : 0);
    const uint64_t cut = pick == 13 ? message->payload_bytes / 3 : message->payload_bytes;

    memset(message->payload, byte, sizeof message->payload);
    for (uint32_t i = 0; i < message->named_count; i++) {
        const struct named_rows *named = &message->named[i];
        int64_t row = named->first;
        for (uint32_t j = 0; j < named->count; j++, row += named->step)
            memcpy(message->payload + named->at + j * sizeof row, &row, sizeof row);
    }
    message->spans[0] = (struct span){.data = message->payload, .bytes = cut};
    message->spans[1] =
        (struct span){.data = message->payload + cut, .bytes = message->payload_bytes - cut};
}

static void send(struct world *world, const struct world_stream *stream, struct message *message)
{
    struct lane_event event = {
        .kind = LANE_EVENT_PUSH,
        .stream = stream->id,
        .push_request = &message->request,
        .payload = message->spans};

    event.payload_spans = message->spans[0].bytes == 0 ? 0 : message->spans[1].bytes == 0 ? 1 : 2;
    world_step(world, &event);
}

static void push(struct world *world, struct input *input)
{
    static struct message message;
    struct world_stream *stream = pick_stream(world, input);

    if (stream == NULL || stream->kind != LANE_STREAM_PUSH)
        return;
    memset(&message, 0, sizeof message);
    message.request = (wire_push_request)WIRE_PUSH_REQUEST_INIT;
    const uint32_t pick = below(input, 8);
    if (pick != 0)
        make_part(&message, world, stream, input);
    if (pick < 4)
        make_commit(&message, &world->sessions[stream->session], input);
    fill_payload(&message, input);
    send(world, stream, &message);
}

/* Its header alone, and the whole of it, whether the ps asks for it by then or not; a commit, or it
 * gives its room back. */
static void push_with_room(struct world *world, struct input *input)
{
    static const uint64_t rooms[] = {5000, WORLD_POOL_BYTES, 4097, 3000, 9000, UINT64_MAX};
    static struct message message;
    struct world_stream *stream = pick_stream(world, input);
    wire_withdraw withdraw = WIRE_WITHDRAW_INIT, *withdraws[] = {&withdraw};

    if (stream == NULL || stream->kind != LANE_STREAM_PUSH || stream->remaining > 0)
        return;
    memset(&message, 0, sizeof message);
    message.request = (wire_push_request)WIRE_PUSH_REQUEST_INIT;
    make_part(&message, world, stream, input);
    message.part.room_bytes = one_of(input, rooms, 6);
    message.part.started_at_us = below(input, 4);
    message.part.resend = below(input, 2);
    const uint32_t pick = next(input);
    wire_part whole = message.part;
    message.part.last = true;
    message.part.n_pieces = message.part.n_functions = 0;
    send(world, stream, &message);
    message.part = whole;
    fill_payload(&message, input);
    if (pick % 4 != 3)
        send(world, stream, &message);
    message.request.n_parts = 0;
    message.spans[0].bytes = message.spans[1].bytes = 0;
    if (pick / 4 % 2 == 0)
        make_commit(&message, &world->sessions[stream->session], input);
    withdraw.sequence = whole.sequence;
    withdraw.resend = below(input, 3);
    message.request.withdraws = withdraws;
    message.request.n_withdraws = pick / 8 % 2;
    send(world, stream, &message);
}

/* ---- pulls ---- */

static void pull(struct world *world, struct input *input)
{
    static wire_piece pieces[64], *pointers[64];
    static const uint64_t counts[] = {1, 2, 3, 0, 64};
    struct world_stream *stream = pick_stream(world, input);
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    struct lane_event event = {.kind = LANE_EVENT_PULL, .pull_request = &request};

    if (stream == NULL || stream->kind != LANE_STREAM_PULL)
        return;
    event.stream = stream->id;
    request.request = stream->asked + 1;
    request.n_pieces = one_of(input, counts, 5);
    request.pieces = pointers;
    const uint32_t first = next(input);
    for (uint32_t i = 0; i < request.n_pieces; i++) {
        const struct world_shard *shard = &world->shards[(first + i) % WORLD_SHARDS_MAX];
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = shard->id;
        pieces[i].layout_epoch = 1;
        pointers[i] = &pieces[i];
    }
    if (sometimes(input)) {
        pieces[0].offset_bytes = below(input, 5) * 4;
        pieces[0].bytes = sometimes(input) ? UINT64_MAX : below(input, 5) * 4;
        pieces[0].layout_epoch = below(input, 3);
        request.after_sequence = world->sessions[stream->session].last + below(input, 2);
        request.timeout_ms = below(input, 2) * 500;
        request.view_id = sometimes(input);
        request.bounded = sometimes(input);
        request.clock = request.bounded ? below(input, 5) : 0;
        request.lag_max = request.clock / 3;
        request.cancel = below(input, 3) == 2;
    }
    if (request.cancel) {
        request.request = below(input, 4);
        stream->cancelled++;
    } else {
        stream->asked++;
    }
    world_step(world, &event);
}

/* ---- the driver ---- */

static void turn_a_knob(struct world *world, struct input *input)
{
    static const uint64_t times_us[] = {0, 1000, 300000, 1100000, 3000000, 11000000, 61000000};
    struct world_stream *stream = pick_stream(world, input);

    switch (below(input, 6)) {
    case 0:
        world_tick(world, one_of(input, times_us, 7));
        break;
    case 1:
        world->holds_compute = !world->holds_compute;
        break;
    case 2:
        world->holds_released = !world->holds_released;
        break;
    case 3:
        if (stream != NULL && stream->deaf)
            world_hear(world, stream);
        else if (stream != NULL)
            stream->deaf = true;
        break;
    case 4:
        world_compute(world);
        break;
    default:
        world_release(world);
        break;
    }
}

static void rare(struct world *world, struct input *input)
{
    struct lane_event terminate = {.kind = LANE_EVENT_TERMINATE};
    wire_push_request empty = WIRE_PUSH_REQUEST_INIT;
    struct lane_event said = {.kind = LANE_EVENT_PUSH, .push_request = &empty};
    const struct world_stream *stream = pick_stream(world, input);

    switch (below(input, 4)) {
    case 0:
        world->takes_left = next(input);
        break;
    case 1:
        world->takes_left = UINT64_MAX;
        break;
    case 2:
        if (sometimes(input))
            world_step(world, &terminate);
        break;
    default:
        if (stream == NULL || stream->kind != LANE_STREAM_PUSH)
            break;
        said.stream = stream->id;
        world_step(world, &said);
        break;
    }
}

static void any_event(struct world *world, struct input *input)
{
    struct world_stream *stream;
    const uint8_t pick = next(input);

    if (pick == UINT8_MAX) {
        push_with_room(world, input);
        return;
    }
    switch (pick % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        push(world, input);
        break;
    case 5:
    case 6:
        pull(world, input);
        break;
    case 7:
        open_stream(world, input, below(input, WORLD_SESSIONS_MAX), false);
        break;
    case 8:
        open_stream(world, input, below(input, WORLD_SESSIONS_MAX), true);
        break;
    case 9:
        stream = pick_stream(world, input);
        if (stream != NULL)
            world_close(world, stream);
        break;
    case 10:
    case 11:
        if (world->config.index == 1)
            peers_order(world, input);
        else
            peers_report(world, input);
        break;
    case 12:
        peers_call(world, input);
        break;
    case 13:
    case 14:
        turn_a_knob(world, input);
        break;
    default:
        rare(world, input);
        break;
    }
}

/* Two sessions, the first variables, and a stream of each kind: what every input begins with. */
static void begin(struct world *world, uint32_t index)
{
    world_begin(world, index, 2);
    if (index == 1)
        peers_hello(world, NULL);
    else
        world_collective(world, true);
    for (uint32_t session = 0; session < 2; session++) {
        if (index == 1)
            peers_open(world, NULL, session);
        else
            peers_join(world, NULL, session);
    }
    for (uint64_t id = 0; id < 4; id++) {
        if (index == 1)
            peers_add(world, NULL, id);
        else
            peers_create(world, NULL, 1, id);
    }
    for (uint32_t at = world->shard_count; at > 0 && at < WORLD_SHARDS_MAX; at++)
        world->shards[at] = world->shards[at % world->shard_count];
    open_stream(world, NULL, 1, false);
    open_stream(world, NULL, 1, true);
    open_stream(world, NULL, 0, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct world world;
    struct input input = {.data = data, .left = bytes};

    begin(&world, below(&input, 2));
    while (input.left > 0 && !world.exited)
        any_event(&world, &input);
    world_end(&world);
    return 0;
}
