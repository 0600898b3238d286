/* SPDX-License-Identifier: Apache-2.0 */
/* lane_talk.c -- a conversation with one lane, as text. */
#include "lane_talk.h"

#include "combine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ps_core_check.h"
#include "text.h"

#define EPOCH 1u
#define CLUSTER_ID 0xC1u
#define INCARNATION 0x1001u
#define START_US 1000000u

static void *take(void *context, size_t bytes)
{
    struct talk *talk = context;
    const bool fails = talk->scarce && talk->takes_left == 0;

    talk->scarce = talk->scarce && !(fails && talk->short_once);
    talk->takes_left -= talk->scarce && !fails;
    if (talk->out_of_memory || fails)
        return NULL;
    talk->bytes_taken += bytes;
    if (talk->bytes_taken > talk->most_bytes_taken)
        talk->most_bytes_taken = talk->bytes_taken;
    return memory_take(&memory_heap, bytes);
}

static void give(void *context, void *data, size_t bytes)
{
    ((struct talk *)context)->bytes_taken -= bytes;
    memory_give(&memory_heap, data, bytes);
}

static void say(struct talk *talk, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct talk *talk, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(
        talk->text + talk->text_used, TALK_TEXT_BYTES - talk->text_used, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length < TALK_TEXT_BYTES - talk->text_used);
    talk->text_used += (size_t)length;
}

struct lane_config talk_config(void)
{
    static const char *const addresses[] = {"h0:1", "h1:1"};

    return (struct lane_config){
        .index = 1,
        .ps_addresses = addresses,
        .ps_count = 2,
        .incarnation = INCARNATION,
        .version = "test",
        .started_us = START_US,
        .lease_ms = 10000,
        .rejoin_ms = 10000,
        .rejoin_first_ms = 60000,
        .ps_lost_ms = 60000,
        .report_ms = 5000,
        .terminate_ms = 5000,
        .sessions_max = 4,
        .staging_bytes_max = 4 * 8192, /* a grant of 8192 */
        .pool_bytes_max = LANE_NO_POOL,
        .inline_bytes = 64,
        .copied_pull_bytes_max = 64,
        .pull_chunk_bytes = 48,
        .block_bytes = 32};
}

void talk_make(struct talk *talk, const struct lane_config *config)
{
    talk->memory = (struct memory){.take = take, .give = give, .context = talk};
    talk->now_us = START_US;
    talk->core = ps_core_create(config, &talk->memory);
    assert_non_null(talk->core);
    talk->lane = ps_core_lane(talk->core);
}

void talk_start(struct talk *talk, const struct lane_config *config)
{
    const struct lane_config small = talk_config();
    const struct lane_event start = {.kind = LANE_EVENT_START, .random = {CLUSTER_ID, 11}};

    talk_make(talk, config == NULL ? &small : config);
    talk_step(talk, &start);
    if (config != NULL && config->index == 0)
        return;
    talk_hello(talk);
    talk_recorded(talk);
    talk_expect(talk, "report 1\n");
}

void talk_hello(struct talk *talk) { talk_hello_of(talk, EPOCH); }

void talk_hello_of(struct talk *talk, uint64_t epoch)
{
    wire_peer_hello hello = talk_good_hello();

    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    hello.epoch = epoch;
    hello.index = lane_config(talk->lane)->index;
    hello.step_members = talk->step_members;
    hello.quorum = talk->quorum;
    talk_order_of(talk, hello, &hello);
}

int talk_setup(void **state)
{
    *state = calloc(1, sizeof(struct talk));
    return *state == NULL;
}

int talk_teardown(void **state)
{
    struct talk *talk = *state;

    talk_end_journal(talk);
    ps_core_destroy(talk->core);
    const uint64_t kept = talk->bytes_taken;
    free(talk);
    return kept != 0;
}

/* ---- what the lane says ---- */

static void say_versions(struct talk *talk, const uint64_t *versions, size_t count)
{
    say(talk, " [");
    for (size_t i = 0; i < count; i++)
        say(talk, i == 0 ? "%" PRIu64 : " %" PRIu64, versions[i]);
    say(talk, "]");
}

static void keep_payload(struct talk *talk, const struct lane_effect *effect)
{
    for (uint32_t i = 0; i < effect->payload_count; i++) {
        const struct lane_bytes *bytes = &effect->payload[i];
        talk->pulled_spans++;
        assert_true(talk->pulled_bytes + bytes->bytes.bytes <= sizeof talk->pulled);
        memcpy(talk->pulled + talk->pulled_bytes, bytes->bytes.data, bytes->bytes.bytes);
        talk->pulled_bytes += bytes->bytes.bytes;
        if (bytes->hold == 0)
            continue;
        talk->pulled_lent++;
        assert_true(talk->lent_count < 64);
        talk->lent[talk->lent_count++] = *bytes;
    }
}

static void say_pulled(struct talk *talk, const struct lane_effect *effect)
{
    const wire_pull_answer *answer = effect->pull_answer;

    if (answer->greeting != NULL)
        say(talk, "greeting\n");
    if (answer->request == 0)
        return;
    if (answer->status != 0) {
        (void)snprintf(talk->refused, sizeof talk->refused, "%s", answer->message);
        say(talk, "pulled %" PRIu64 " error %s\n", answer->request,
            sumac_reason_name((enum sumac_reason)answer->reason));
        return;
    }
    if (answer->n_versions > 0) {
        talk->pulled_bytes = talk->pulled_messages = talk->pulled_spans = talk->pulled_lent = 0;
        say(talk, "pulled %" PRIu64, answer->request);
        say_versions(talk, answer->versions, answer->n_versions);
        say(talk, "%s", answer->last ? "" : " ...\n");
    }
    if (answer->collective != NULL) {
        talk->pulled_bytes = talk->pulled_messages = talk->pulled_spans = talk->pulled_lent = 0;
        say(talk, "met %" PRIu64 " %s", answer->request,
            sumac_dtype_name((enum sumac_dtype)answer->collective->data_type));
        say_versions(talk, answer->collective->shape, answer->collective->n_shape);
        if (answer->collective->n_extents > 0)
            say_versions(talk, answer->collective->extents, answer->collective->n_extents);
        say(talk, "%s", answer->last ? "" : " ...\n");
    }
    keep_payload(talk, effect);
    talk->pulled_position = answer->position;
    talk->pulled_messages++;
    if (!answer->last)
        return;
    if (answer->n_versions == 0 && answer->collective == NULL)
        say(talk, "pulled %" PRIu64 ":", answer->request);
    const float *values = (const float *)(const void *)talk->pulled;
    for (size_t i = 0; i < talk->pulled_bytes / sizeof *values && i < 64; i++)
        say(talk, " %g", (double)values[i]);
    say(talk, "\n");
}

static void say_answer(struct talk *talk, const struct lane_effect *effect)
{
    const wire_push_answer *answer = effect->push_answer;

    if (answer->greeting != NULL) {
        say(talk, "greeting\n");
        talk->limits = *answer->greeting->limits;
    }
    for (size_t i = 0; i < answer->n_staged; i++) {
        say(talk, "staged %" PRIu64 "\n", answer->staged[i]->sequence);
        talk->staged_resend = answer->staged[i]->resend;
    }
    for (size_t i = 0; i < answer->n_refused; i++) {
        say(talk, "refused %" PRIu64 " %s\n", answer->refused[i]->sequence,
            sumac_reason_name((enum sumac_reason)answer->refused[i]->reason));
        (void)snprintf(talk->refused, sizeof talk->refused, "%s", answer->refused[i]->message);
        (void)snprintf(talk->expected, sizeof talk->expected, "%s", answer->refused[i]->expected);
        (void)snprintf(talk->given, sizeof talk->given, "%s", answer->refused[i]->given);
    }
    for (size_t i = 0; i < answer->n_done; i++) {
        assert_int_equal(answer->done[i]->version_epoch, EPOCH);
        talk->open_step = answer->done[i]->open_step;
        say(talk, "done %" PRIu64, answer->done[i]->sequence);
        if (answer->done[i]->voided)
            say(talk, " voided");
        else
            say_versions(talk, answer->done[i]->versions, answer->done[i]->n_versions);
        say(talk, "\n");
    }
    for (size_t i = 0; i < answer->n_resend; i++)
        say(talk, "resend %" PRIu64 "\n", answer->resend[i]);
    for (size_t i = 0; i < answer->n_give_way; i++)
        say(talk, "give way %" PRIu64 " (resend %u)\n", answer->give_way[i]->sequence,
            answer->give_way[i]->resend);
    for (size_t i = 0; i < answer->n_room_waits; i++)
        say(talk, "room wait %" PRIu64 "\n", answer->room_waits[i]->sequence);
    for (size_t i = 0; i < answer->n_pulled; i++) {
        const struct lane_bytes bytes = {
            .bytes = {.data = answer->pulled[i]->payload.data, answer->pulled[i]->payload.len}};
        assert_true(answer->pulled[i]->last);
        say(talk, "beside ");
        say_pulled(
            talk, &(struct lane_effect){
                      .pull_answer = answer->pulled[i],
                      .payload = &bytes,
                      .payload_count = bytes.bytes.bytes > 0});
    }
    if (answer->closed != NULL && !answer->closed->decided)
        say(talk, "closing\n");
    if (answer->closed != NULL && answer->closed->decided) {
        say(talk, "closed %" PRIu64, answer->closed->final);
        for (size_t i = 0; i < answer->closed->n_voided; i++)
            say(talk, " voided %" PRIu64, answer->closed->voided[i]);
        if (answer->closed->acked_through != 0)
            say(talk, " acked %" PRIu64, answer->closed->acked_through);
        if (answer->closed->cause != NULL && answer->closed->cause->kind != 0)
            say(talk, " cause %d %u %" PRIu64, (int)answer->closed->cause->kind,
                answer->closed->cause->silent_ms, answer->closed->cause->attempt);
        say(talk, "\n");
    }
    if (answer->rejoin)
        say(talk, "rejoin\n");
}

static void say_report(struct talk *talk, const wire_peer_report *report)
{
    say(talk, "report");
    if (report->answers != 0)
        say(talk, " %" PRIu64, report->answers);
    if (report->status != 0)
        say(talk, " error %s", sumac_reason_name((enum sumac_reason)report->reason));
    if (report->close_report != NULL) {
        talk->connected = report->close_report->connected;
        say(talk, " commit_through %" PRIu64, report->close_report->commit_through);
        for (size_t i = 0; i < report->close_report->n_voided; i++)
            say(talk, " voided %" PRIu64, report->close_report->voided[i]);
        if (talk->quorum != 0 && report->close_report->made_step != 0)
            say(talk, " made step %" PRIu64 " by %" PRIu64, report->close_report->made_step,
                report->close_report->made_sequence);
        if (report->close_report->acked_through != 0)
            say(talk, " acked %" PRIu64, report->close_report->acked_through);
    }
    for (size_t i = 0; i < report->n_stalled; i++)
        say(talk, " stalled %u", report->stalled[i].data[0]);
    for (size_t i = 0; i < report->n_waiting; i++)
        say(talk, " waiting %u", report->waiting[i].data[0]);
    for (size_t i = 0; i < report->n_collectives; i++)
        say(talk, " proposes %.*s %" PRIu64 " %s",
            (int)report->collectives[i]->collective->name.len,
            (const char *)report->collectives[i]->collective->name.data,
            report->collectives[i]->collective->round,
            sumac_reason_name((enum sumac_reason)report->collectives[i]->reason));
    if (report->clock != 0)
        say(talk, " clock %" PRIu64, report->clock);
    if (report->seen_step != 0)
        say(talk, " seen step %" PRIu64, report->seen_step);
    for (size_t i = 0; i < report->n_contributed; i++)
        say(talk, " %u has come to %" PRIu64 "%s", report->contributed[i]->session_id.data[0],
            report->contributed[i]->step, report->contributed[i]->voided ? " with nothing" : "");
    if (report->step_over != 0)
        say(talk, " step %" PRIu64 " over", report->step_over);
    for (size_t i = 0; i < report->n_assigned; i++)
        say(talk, " assigned %" PRIu64, report->assigned[i]);
    for (size_t i = 0; i < report->n_renewed; i++)
        say(talk, " renewed %u", report->renewed[i].data[0]);
    say(talk, "\n");
}

static void say_reply(struct talk *talk, const wire_message *reply)
{
    say(talk, "reply %s", reply->descriptor->short_name);
    if (reply->descriptor == &sumac__v1__stats_reply__descriptor) {
        const wire_stats_reply *stats = (const wire_stats_reply *)reply;
        say(talk, " pushes %" PRIu64 " pulls %" PRIu64 " refused %" PRIu64 " duplicates %" PRIu64,
            stats->pushes, stats->pulls, stats->refused, stats->duplicates);
        say(talk, " staleness %g of %" PRIu64 " staged %" PRIu64, stats->staleness->sum,
            stats->staleness->count, stats->memory->staged_bytes);
    }
    say(talk, "\n");
}

/* As its reader has it: packed, and unpacked with its strings looked at. */
static void assert_readable(const wire_message *message)
{
    const size_t bytes = wire_packed_bytes(message, 0);
    uint8_t *packed = malloc(bytes + 1);
    struct arena arena;
    struct wire_received received;
    struct sumac_error error = {.status = SUMAC_OK};

    assert_non_null(packed);
    wire_pack(message, 0, packed);
    arena_init(&arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    const struct span span = {.data = packed, .bytes = bytes};
    (void)wire_unpack(message->descriptor, &span, bytes > 0, &arena, &received, &error);
    assert_string_equal(error.text, "");
    arena_deinit(&arena);
    free(packed);
}

static void assert_effect_readable(const struct lane_effect *effect)
{
    char line[SUMAC_ERROR_TEXT_BYTES];

    if (effect->push_answer != NULL)
        assert_readable(&effect->push_answer->base);
    if (effect->pull_answer != NULL)
        assert_readable(&effect->pull_answer->base);
    if (effect->report != NULL)
        assert_readable(&effect->report->base);
    if (effect->reply != NULL)
        assert_readable(effect->reply);
    (void)snprintf(line, sizeof line, "%s", effect->error.text);
    text_make_line(line);
    assert_string_equal(effect->error.text, line);
}

static void say_effect(struct talk *talk, const struct lane_effect *effect)
{
    assert_effect_readable(effect);
    switch (effect->kind) {
    case LANE_EFFECT_ANSWER:
        say_answer(talk, effect);
        break;
    case LANE_EFFECT_PULLED:
        say_pulled(talk, effect);
        break;
    case LANE_EFFECT_REPORT:
        say_report(talk, effect->report);
        break;
    case LANE_EFFECT_CLOSE_STREAM:
        assert_int_not_equal(effect->error.reason, SUMAC_REASON_UNSPECIFIED);
        talk->closed = effect->error;
        talk->ended[talk->ended_count++ % TALK_ENDED_MAX] = effect->stream;
        say(talk, "end of stream %s\n", sumac_reason_name(effect->error.reason));
        break;
    case LANE_EFFECT_FAIL:
        assert_int_not_equal(effect->error.reason, SUMAC_REASON_UNSPECIFIED);
        say(talk, "failed %s\n", sumac_reason_name(effect->error.reason));
        break;
    case LANE_EFFECT_REPLY:
        say_reply(talk, effect->reply);
        break;
    case LANE_EFFECT_EXIT:
        say(talk, "exit %d %s\n", effect->exit_code, sumac_reason_name(effect->error.reason));
        assert_true(!talk->serving || effect->exit_code == LANE_EXIT_NO_MEMORY);
        talk->end = effect->error;
        break;
    case LANE_EFFECT_ORDER:
        talk->ordered = effect->order->number;
        talk->ordered_end = effect->order->end != NULL;
        if (talk->ordered_end)
            talk->ordered_exit_code = effect->order->end->exit_code;
        break;
    case LANE_EFFECT_RECORD:
        talk_keep_record(talk, effect);
        break;
    case LANE_EFFECT_LOG:
        if (talk->shows_logs)
            say(talk, "log %s\n", effect->text);
        break;
    case LANE_EFFECT_COMPUTE:
        talk->compute = *effect->compute;
        talk->computes++;
        break;
    case LANE_EFFECT_WAKE:
        talk->wake_us = effect->at_us;
        break;
    case LANE_EFFECT_SERVING:
        assert_int_not_equal(talk->serving, effect->serving);
        talk->serving = effect->serving;
        break;
    case LANE_EFFECT_DIAL:
    case LANE_EFFECT_RUN_OVER:
        break;
    }
}

/* What follows from a step: messages that are out, work that is done, bytes that are released.
 * Copied first, since the effects are lent until the next step. */
struct aftermath {
    uint64_t writable[256];
    uint32_t writable_count;
    uint64_t job;
};

static void note(struct talk *talk, const struct lane_effect *effect, struct aftermath *aftermath)
{
    const bool out = effect->kind == LANE_EFFECT_ANSWER || effect->kind == LANE_EFFECT_PULLED ||
                     effect->kind == LANE_EFFECT_REPORT;

    if (out && effect->stream != talk->deaf) {
        assert_true(aftermath->writable_count < 256);
        aftermath->writable[aftermath->writable_count++] = effect->stream;
    }
    if (effect->kind == LANE_EFFECT_COMPUTE)
        aftermath->job = effect->compute->job;
}

/* What the lane keeps is consistent after every step, whatever was said. */
static void look_inside(const struct talk *talk)
{
    struct check check = {.text = ""};

    ps_core_check(talk->core, &check);
    if (!check_is_good(&check))
        fail_msg("%s", check.text);
}

void talk_step(struct talk *talk, const struct lane_event *event)
{
    struct lane_event stamped = *event;
    struct lane_effects effects;
    struct aftermath aftermath = {.writable_count = 0};

    stamped.now_us = talk->now_us;
    ps_core_step(talk->core, &stamped, &effects);
    talk->most_work = lane_work(talk->lane, talk->most_work);
    look_inside(talk);
    for (uint32_t i = 0; i < effects.count; i++) {
        say_effect(talk, &effects.items[i]);
        note(talk, &effects.items[i], &aftermath);
    }
    for (uint32_t i = 0; i < aftermath.writable_count; i++)
        talk_writable(talk, aftermath.writable[i]);
    if (aftermath.job != 0 && !talk->holds_compute)
        talk_compute(talk);
    if (!talk->holds_released)
        talk_release(talk);
    if (talk->disk_is_quick && event->kind != LANE_EVENT_RECORDED)
        talk_recorded(talk);
}

void talk_compute(struct talk *talk)
{
    struct lane_event computed = {.kind = LANE_EVENT_COMPUTED, .job = talk->compute.job};

    assert_true(talk->compute.job != 0);
    for (uint32_t i = talk->compute.slice_count; i > 0; i--) /* any order */
        if (talk->compute.slices != NULL)
            update_run(&talk->compute.slices[i - 1]);
        else
            combine_run(&talk->compute.combines[i - 1]);
    talk->compute.job = 0;
    talk_step(talk, &computed);
}

void talk_release(struct talk *talk)
{
    while (talk->lent_count > 0) {
        struct lane_event released = {
            .kind = LANE_EVENT_RELEASED, .hold = talk->lent[--talk->lent_count].hold};
        talk_step(talk, &released);
    }
}

void talk_tick(struct talk *talk, uint64_t later_ms)
{
    const struct lane_event tick = {.kind = LANE_EVENT_TICK};

    talk->now_us += later_ms * 1000;
    talk_step(talk, &tick);
}

bool talk_says_in_time(struct talk *talk, const char *words, uint64_t until_us)
{
    for (uint32_t ticks = 0; talk_times_said(talk, words) == 0; ticks++) {
        if (ticks == TALK_TICKS_MAX)
            fail_msg("the lane asks for %u ticks, and does not say: %s", ticks, words);
        if (talk->wake_us > until_us)
            return false;
        if (talk->wake_us > talk->now_us)
            talk->now_us = talk->wake_us;
        talk_tick(talk, 0);
    }
    return true;
}

void talk_expect_at(struct talk *talk, const char *file, int line, const char *expected)
{
    if (strcmp(talk->text, expected) != 0)
        print_error("%s:%d: expected\n%s-- the lane said\n%s", file, line, expected, talk->text);
    const bool equal = strcmp(talk->text, expected) == 0;
    talk_forget(talk);
    assert_true(equal);
}

void talk_forget(struct talk *talk)
{
    talk->text_used = 0;
    talk->text[0] = '\0';
}

/* ---- as a client ---- */

uint64_t talk_stream(struct talk *talk, enum lane_stream_kind kind)
{
    const uint64_t stream = ++talk->streams;
    const struct lane_event opened = {
        .kind = LANE_EVENT_STREAM_OPENED, .stream = stream, .stream_kind = kind};

    talk_step(talk, &opened);
    talk_writable(talk, stream);
    return stream;
}

static wire_hello hello_of(uint8_t session, uint64_t generation, uint8_t id[16])
{
    wire_hello hello = WIRE_HELLO_INIT;

    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    hello.cluster_id = CLUSTER_ID;
    hello.epoch = EPOCH;
    hello.ps_incarnation = INCARNATION;
    if (session != 0)
        hello.session_id = talk_id(session, id);
    hello.generation = generation;
    return hello;
}

uint64_t talk_push_stream(struct talk *talk, uint8_t session, uint64_t generation)
{
    const uint64_t stream = talk_stream(talk, LANE_STREAM_PUSH);
    uint8_t id[16];
    wire_hello hello = hello_of(session, generation, id);
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    request.hello = &hello;
    talk_push(talk, stream, &request, NULL, 0);
    return stream;
}

uint64_t talk_pull_stream(struct talk *talk, uint8_t session)
{
    const uint64_t stream = talk_stream(talk, LANE_STREAM_PULL);
    uint8_t id[16];
    wire_hello hello = hello_of(session, 1, id);
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &request};

    request.hello = &hello;
    talk_step(talk, &event);
    return stream;
}

void talk_hang_up(struct talk *talk, uint64_t stream)
{
    const struct lane_event closed = {.kind = LANE_EVENT_STREAM_CLOSED, .stream = stream};

    talk_step(talk, &closed);
}

void talk_writable(struct talk *talk, uint64_t stream)
{
    const struct lane_event writable = {.kind = LANE_EVENT_STREAM_WRITABLE, .stream = stream};

    talk_step(talk, &writable);
}

void talk_push(
    struct talk *talk, uint64_t stream, wire_push_request *request, const void *payload,
    size_t bytes)
{
    struct span span = {.data = payload, .bytes = bytes};
    const struct lane_event event = {
        .kind = LANE_EVENT_PUSH,
        .stream = stream,
        .push_request = request,
        .payload = &span,
        .payload_spans = bytes > 0};

    talk_step(talk, &event);
}

void talk_push_part(
    struct talk *talk, uint64_t stream, wire_part *part, const void *payload, size_t bytes)
{
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    request.parts = &part;
    request.n_parts = 1;
    talk_push(talk, stream, &request, payload, bytes);
}

static wire_part header_of(const struct talk_part *part, wire_function **functions)
{
    wire_part header = WIRE_PART_INIT;
    const uint64_t bytes = (uint64_t)part->shards * part->count * sizeof(float);

    header.sequence = part->sequence;
    header.previous = part->previous;
    header.eager = part->eager;
    header.bytes = part->declared != 0 ? part->declared : bytes;
    header.room_bytes = part->room;
    header.started_at_us = part->started;
    header.scale = part->scale;
    header.weight = part->weight != 0 ? part->weight : part->zero_weight ? 0 : 1;
    header.allow_non_finite = part->allow_non_finite;
    header.synchronous = part->synchronous || part->step != 0;
    header.step = part->step;
    header.resend = part->resend;
    header.checksum = part->checksum;
    header.n_functions = part->function != 0;
    header.functions = functions;
    header.collective = part->collective;
    return header;
}

static wire_piece piece_of(const struct talk_part *part, uint32_t shard)
{
    wire_piece piece = WIRE_PIECE_INIT;

    piece.shard_id = part->shard + shard;
    piece.layout_epoch = part->layout_epoch;
    piece.function = part->function != 0;
    piece.based_on = part->based_on;
    piece.offset_bytes = part->offset * sizeof(float);
    piece.bytes = part->count * sizeof(float);
    return piece;
}

void talk_part(struct talk *talk, uint64_t stream, const struct talk_part *part)
{
    wire_piece *const pieces = talk->pieces, **const pointers = talk->piece_pointers;
    wire_function function = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&function};
    wire_part header = header_of(part, functions);
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    function.function = (Sumac__V1__UpdateFunction)part->function;
    function.n_hyperparameters = part->hyperparameter != NULL;
    function.hyperparameters = (wire_hyperparameter **)(uintptr_t)&part->hyperparameter;
    assert_true(part->shards <= TALK_PIECES_MAX);
    for (uint32_t i = 0; i < part->shards; i++) {
        pieces[i] = piece_of(part, i);
        pointers[i] = &pieces[i];
    }
    header.first = header.last = true;
    header.pieces = pointers;
    header.n_pieces = part->shards;
    request.parts = parts;
    request.n_parts = 1;
    request.commit = part->commit;
    talk_push(talk, stream, &request, part->values, part->shards * part->count * sizeof(float));
}

void talk_ask(struct talk *talk, uint64_t stream, const struct talk_part *part)
{
    wire_part header = header_of(part, NULL);
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    assert_int_equal(part->function, 0);
    header.first = header.last = true;
    request.parts = parts;
    request.n_parts = 1;
    talk_push(talk, stream, &request, NULL, 0);
}

void talk_withdraw(struct talk *talk, uint64_t stream, uint64_t sequence, uint32_t resend)
{
    wire_withdraw withdraw = WIRE_WITHDRAW_INIT, *withdraws[] = {&withdraw};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    withdraw.sequence = sequence;
    withdraw.resend = resend;
    request.withdraws = withdraws;
    request.n_withdraws = 1;
    talk_push(talk, stream, &request, NULL, 0);
}

void talk_part_step(
    struct talk *talk, uint64_t stream, const struct talk_part *part, uint32_t at, uint32_t count)
{
    wire_function function = WIRE_FUNCTION_INIT;
    wire_function *functions[] = {&function};
    wire_part header = WIRE_PART_INIT;
    wire_piece piece = piece_of(part, 0);
    wire_piece *pointers[] = {&piece};
    wire_part *parts[] = {&header};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    function.function = (Sumac__V1__UpdateFunction)part->function;
    assert_int_equal(part->shards, 1);
    if (at == 0)
        header = header_of(part, functions);
    header.sequence = part->sequence;
    header.first = at == 0;
    header.last = at + count == part->count;
    piece.offset_bytes += at * sizeof(float);
    piece.bytes = count * sizeof(float);
    header.pieces = pointers;
    header.n_pieces = 1;
    request.parts = parts;
    request.n_parts = 1;
    talk_push(talk, stream, &request, part->values + at, count * sizeof(float));
}

void talk_part_in_steps(
    struct talk *talk, uint64_t stream, const struct talk_part *part, uint32_t step)
{
    for (uint32_t at = 0; at < part->count; at += step)
        talk_part_step(talk, stream, part, at, part->count - at < step ? part->count - at : step);
}

void talk_commit(
    struct talk *talk, uint64_t stream, uint64_t commit_through, uint64_t voided,
    uint64_t acked_through)
{
    talk_commit_at(talk, stream, commit_through, voided, acked_through, 0);
}

void talk_commit_at(
    struct talk *talk, uint64_t stream, uint64_t commit_through, uint64_t voided,
    uint64_t acked_through, uint64_t clock)
{
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    commit.commit_through = commit_through;
    commit.n_voided = voided != 0;
    commit.voided = &voided;
    commit.acked_through = acked_through;
    commit.clock = clock;
    request.commit = &commit;
    talk_push(talk, stream, &request, NULL, 0);
}

void talk_pull(
    struct talk *talk, uint64_t stream, uint64_t request, uint64_t shard, uint32_t shards,
    uint64_t after_sequence)
{
    wire_piece *const pieces = talk->pieces, **const pointers = talk->piece_pointers;
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_PULL, .stream = stream, .pull_request = &pull};

    for (uint32_t i = 0; i < shards; i++) {
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = shard + i;
        pointers[i] = &pieces[i];
    }
    pull.request = request;
    pull.pieces = pointers;
    pull.n_pieces = shards;
    pull.after_sequence = after_sequence;
    talk_step(talk, &event);
}
