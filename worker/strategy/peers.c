/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c -- the other workers of a strategy.
 *
 * A call of all of them is a round: each tells what it calls, and what it has, in a block of bytes;
 * all get all blocks, in the order of the workers, and compare them alike, so that what ends it
 * ends it for all. Large tensors to be summed go without their elements, and are summed in rounds
 * of their own, once all are known to bring the same.
 *
 *     block    bytes, then
 *       failed   its status, reason and text, and whether the run is over with it
 *       call     0, what is called, of which variable, replicas, and a value of each
 */
#include "peers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "axes.h"
#include "dtype.h"
#include "error.h"
#include "members.h"
#include "pack.h"
#include "text.h"

#define NAME_BYTES_MAX 200u
#define CALL_NAME_BYTES_MAX 1400u
#define SENT_BYTES_MAX 8192u /* of a tensor to be summed: a larger one is summed by the ps */

struct peers {
    struct sumac_client *client;
    struct sumac_member *workers; /* (worker_count), with their jobs; NULL: all members */
    uint32_t worker_count;
    uint32_t count, index;
    char name[NAME_BYTES_MAX + 1];
    pthread_mutex_t mutex; /* guards what follows; held while a round lasts */
    uint64_t round;        /* the last one */
    struct sumac_meet *given_up;
    struct pack given_up_block;
};

/* ---- opened */

static enum sumac_status copy_workers(
    const struct sumac_strategy_options *options, struct peers *peers, struct sumac_error *error)
{
    static const char chief[] = "chief", worker[] = "worker";

    if (options->worker_count == 0)
        return SUMAC_OK;
    if (options->workers == NULL)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "a strategy of %" PRIu32 " workers, and workers is NULL", options->worker_count);
    peers->workers = calloc(options->worker_count, sizeof *peers->workers);
    if (peers->workers == NULL)
        return value_fail_for_memory(error);
    peers->worker_count = options->worker_count;
    for (uint32_t i = 0; i < options->worker_count; i++) {
        const char *job = options->workers[i].job;
        const bool is_chief = job != NULL && strcmp(job, chief) == 0;
        peers->workers[i] = options->workers[i];
        peers->workers[i].job = is_chief                                  ? chief
                                : job != NULL && strcmp(job, worker) == 0 ? worker
                                                                          : NULL;
    }
    return SUMAC_OK;
}

static enum sumac_status name_it(
    const struct sumac_strategy_options *options, struct peers *peers, struct sumac_error *error)
{
    const uint32_t number = client_count_strategy(options->client);
    const size_t bytes = options->name == NULL ? 0 : strnlen(options->name, NAME_BYTES_MAX + 1);

    assert(number > 0);
    if (options->name == NULL)
        (void)text_print(peers->name, sizeof peers->name, "strategy %" PRIu32, number);
    else if (
        bytes == 0 || bytes > NAME_BYTES_MAX || !text_is_utf8(options->name, bytes) ||
        text_has_control(options->name, bytes))
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_NAME,
            "a strategy's name is UTF-8 of 1 to %u bytes, without control characters",
            NAME_BYTES_MAX);
    else
        memcpy(peers->name, options->name, bytes);
    return SUMAC_OK;
}

enum sumac_status peers_open(
    const struct sumac_strategy_options *options, struct peers **peers, struct sumac_error *error)
{
    struct peers *made = calloc(1, sizeof *made);

    assert(options->client != NULL);
    if (made == NULL)
        return value_fail_for_memory(error);
    pthread_mutex_init(&made->mutex, NULL);
    made->client = options->client;
    enum sumac_status status = copy_workers(options, made, error);
    if (status == SUMAC_OK)
        status = name_it(options, made, error);
    if (status == SUMAC_OK)
        status = client_meeting_place(
            made->client, made->workers, made->worker_count, &made->index, &made->count, error);
    if (status == SUMAC_OK && (uint64_t)made->count * options->replicas > SUMAC_REPLICAS_MAX)
        status = fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "%" PRIu32 " workers with %" PRIu32 " replicas each, and %d are the most together",
            made->count, options->replicas, SUMAC_REPLICAS_MAX);
    if (status != SUMAC_OK) {
        peers_close(made);
        return status;
    }
    *peers = made;
    return SUMAC_OK;
}

static void forget_given_up(struct peers *peers)
{
    struct sumac_error error;

    if (peers->given_up != NULL) /* how it ended, the round's others say */
        while (sumac_meet_wait(peers->given_up, 0, NULL, &error) == SUMAC_DEADLINE_EXCEEDED) {
        }
    peers->given_up = NULL;
    pack_deinit(&peers->given_up_block);
}

void peers_close(struct peers *peers)
{
    if (peers == NULL)
        return;
    forget_given_up(peers);
    pthread_mutex_destroy(&peers->mutex);
    free(peers->workers);
    free(peers);
}

uint32_t peers_count(const struct peers *peers) { return peers->count; }

uint32_t peers_index(const struct peers *peers) { return peers->index; }

/* ---- rounds */

static struct sumac_meet_options
next_round(struct peers *peers, enum sumac_meet_operation operation, uint32_t timeout_ms)
{
    return (struct sumac_meet_options){
        .name = peers->name,
        .round = ++peers->round,
        .operation = operation,
        .tasks = peers->workers,
        .task_count = peers->worker_count,
        .non_finite_allowed = true,
        .timeout_ms = timeout_ms};
}

/* What a round says of those who have not come, in the words of a collective. */
static enum sumac_status
fail_round(const struct call *call, const struct sumac_error *why, struct sumac_error *error)
{
    enum sumac_status status = why->status;

    assert(status != SUMAC_OK);
    if (status == SUMAC_UNAVAILABLE && why->reason == SUMAC_REASON_TIMED_OUT)
        status = SUMAC_DEADLINE_EXCEEDED;
    else if (status == SUMAC_ABORTED && why->reason == SUMAC_REASON_MEMBER_GONE)
        status = SUMAC_UNAVAILABLE;
    return fail(error, status, why->reason, "%s: %.440s", call_name(call->kind), why->text);
}

/* ---- a block is written */

static void pack_failure(struct pack *pack, const struct sumac_error *failed, bool ends_run)
{
    assert(failed->status != SUMAC_OK);
    pack_u32(pack, (uint32_t)failed->status);
    pack_u32(pack, (uint32_t)failed->reason);
    pack_text(pack, failed->text);
    pack_u32(pack, ends_run);
}

struct sending {
    const struct sumac_strategy *strategy;
    const struct call *call;
};

bool peers_sum_apart(
    const struct sumac_strategy *strategy, enum sumac_reduce_op op,
    const struct sumac_tensor *tensor)
{
    const bool whole = tensor->dtype >= SUMAC_INT8 && tensor->dtype <= SUMAC_UINT64;
    const bool fits = tensor->dtype == SUMAC_FLOAT32 || tensor->dtype == SUMAC_FLOAT64 ||
                      (whole && op == SUMAC_REDUCE_SUM);

    return strategy->peers != NULL && fits && sumac_tensor_bytes(tensor) > SENT_BYTES_MAX;
}

static bool is_sent(const void *context, const struct sumac_tensor *tensor)
{
    const struct sending *sending = context;
    const struct call *call = sending->call;

    if (call->first_only)
        return sending->strategy->first == 0;
    return (int)call->op == 0 || call->axes != NULL ||
           !peers_sum_apart(sending->strategy, call->op, tensor);
}

static void pack_call(
    struct pack *pack, const struct sumac_strategy *strategy, const struct call *call,
    struct sumac_value *const *own)
{
    const struct sending sending = {.strategy = strategy, .call = call};

    pack_u32(pack, SUMAC_OK);
    pack_u32(pack, (uint32_t)call->kind);
    pack_u32(pack, (uint32_t)call->op);
    pack_u64(pack, (uint64_t)call->axis);
    pack_u32(pack, (uint32_t)call->write);
    pack_u32(pack, call->axes != NULL);
    pack_u32(pack, call->axes != NULL ? call->axes->count : 0);
    for (uint32_t i = 0; call->axes != NULL && i < call->axes->count && i < SUMAC_RANK_MAX; i++)
        pack_u64(pack, (uint64_t)call->axes->axis[i]);
    pack_text(pack, call->name);
    pack_u32(pack, strategy->replicas);
    for (uint32_t i = 0; i < strategy->replicas; i++) /* of what the first has, one counts */
        pack_value(pack, own[call->first_only ? 0 : i], is_sent, &sending);
}

/* Its length goes before it. */
static void begin_block(struct pack *pack) { pack_u64(pack, 0); }

static void end_block(struct pack *pack)
{
    const uint64_t bytes = pack->used;

    assert(bytes >= sizeof bytes || pack->failed);
    if (!pack->failed)
        memcpy(pack->bytes, &bytes, sizeof bytes);
}

/* ---- a block is read */

struct heard {
    struct call call;
    struct sumac_axes axes;
    char name[CALL_NAME_BYTES_MAX];
};

static bool unpack_call(struct unpack *block, uint32_t replicas, struct heard *heard)
{
    heard->call.kind = (enum call_kind)unpack_u32(block);
    heard->call.op = (enum sumac_reduce_op)unpack_u32(block);
    heard->call.axis = (int64_t)unpack_u64(block);
    heard->call.write = (int)unpack_u32(block);
    heard->axes.given = unpack_u32(block) != 0;
    heard->axes.count = unpack_u32(block);
    for (uint32_t i = 0; i < heard->axes.count && i < SUMAC_RANK_MAX; i++)
        heard->axes.axis[i] = (int64_t)unpack_u64(block);
    heard->call.axes = heard->axes.given ? &heard->axes : NULL;
    heard->call.name = unpack_text(block, heard->name, sizeof heard->name);
    return unpack_u32(block) == replicas && !block->failed;
}

static enum sumac_status
fail_block(const struct call *call, uint32_t worker, struct sumac_error *error)
{
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_STEP_DIFFERS,
        "%s: worker %" PRIu32
        " comes with another number of replicas, or with what this release does not read: each "
        "worker runs the same program with as many replicas",
        call_name(call->kind), worker);
}

/* What a worker says that it failed by. */
static enum sumac_status hear_failure(
    struct peers *peers, uint32_t worker, enum sumac_status status, struct unpack *block,
    bool *ends_run, struct sumac_error *error)
{
    char text[SUMAC_ERROR_TEXT_BYTES];
    const enum sumac_reason reason = (enum sumac_reason)unpack_u32(block);

    (void)unpack_text(block, text, sizeof text);
    text_make_line(text);
    *ends_run = unpack_u32(block) != 0 && worker != peers->index;
    if (status > SUMAC_UNAUTHENTICATED)
        status = SUMAC_UNKNOWN;
    return fail(error, status, reason, "worker %" PRIu32 ": %.460s", worker, text);
}

struct hearing {
    struct sumac_strategy *strategy;
    const struct call *call;
    struct sumac_value *const *own;
    struct sumac_value **all;
    bool ends_run;
    struct heard *first, *next; /* of worker 0, and of another */
};

/* Has it the elements of every tensor that is sent, and not summed apart? */
static bool
has_what_is_sent(const struct sending *sending, bool counts, const struct sumac_value *value)
{
    if (value->kind == SUMAC_VALUE_TENSOR)
        return value_has_elements(value) || sumac_tensor_bytes(&value->tensor) == 0 ||
               (sending->call->first_only ? !counts : !is_sent(sending, &value->tensor));
    for (uint32_t i = 0; i < value->count; i++)
        if (!has_what_is_sent(sending, counts, value->items[i]))
            return false;
    return true;
}

/* The values of a worker's block, after what it calls. */
static bool unpack_values(struct unpack *block, struct sumac_value **values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        values[i] = unpack_value(block);
        if (values[i] == NULL)
            return false;
    }
    return true;
}

/* Of a worker that has not failed. */
static enum sumac_status
hear_call(struct hearing *hearing, uint32_t worker, struct unpack *block, struct sumac_error *error)
{
    struct sumac_strategy *strategy = hearing->strategy;
    struct sumac_value **values = &hearing->all[worker * strategy->replicas];
    struct heard *heard = worker == 0 ? hearing->first : hearing->next;

    assert(worker < strategy->peers->count);
    *heard = (struct heard){.call = {.kind = hearing->call->kind}};
    if (worker == strategy->peers->index) {
        heard->call = *hearing->call;
        heard->call.function = NULL;
        for (uint32_t i = 0; i < strategy->replicas; i++)
            values[i] = sumac_value_ref(hearing->own[i]);
    } else if (
        !unpack_call(block, strategy->replicas, heard) ||
        !unpack_values(block, values, strategy->replicas)) {
        return fail_block(hearing->call, worker, error);
    }
    heard->call.value = values[0];
    return worker == 0
               ? SUMAC_OK
               : call_compare(
                     &hearing->first->call, 0, &heard->call, worker * strategy->replicas, error);
}

/* All call the same; nobody has kept back what the others are to compute with. */
static enum sumac_status check_elements(const struct hearing *hearing, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = hearing->strategy;
    const struct sending sending = {.strategy = strategy, .call = hearing->call};

    for (uint32_t i = 0; i < strategy->in_sync; i++) {
        const uint32_t worker = i / strategy->replicas;
        if (!has_what_is_sent(&sending, worker == 0, hearing->all[i]))
            return fail_block(hearing->call, worker, error);
    }
    return SUMAC_OK;
}

/* All blocks, in the order of the workers; one that failed is told before what others differ in. */
static enum sumac_status
hear(struct hearing *hearing, const struct sumac_tensor *blocks, struct sumac_error *error)
{
    struct peers *peers = hearing->strategy->peers;
    struct unpack all = {.at = sumac_tensor_data(blocks)};
    enum sumac_status status = SUMAC_OK;

    all.end = all.at + sumac_tensor_bytes(blocks);
    for (uint32_t pass = 0; pass < 2; pass++) {
        struct unpack rest = all;
        for (uint32_t i = 0; status == SUMAC_OK && i < peers->count; i++) {
            const uint64_t bytes = unpack_u64(&rest);
            struct unpack block = {.at = rest.at, .failed = bytes < sizeof bytes};
            if (rest.failed || block.failed || unpack_bytes(&rest, bytes - sizeof bytes) == NULL)
                return fail_block(hearing->call, i, error);
            block.end = rest.at;
            const enum sumac_status said = (enum sumac_status)unpack_u32(&block);
            if (pass == 0 && said != SUMAC_OK)
                status = hear_failure(peers, i, said, &block, &hearing->ends_run, error);
            else if (pass == 1)
                status = hear_call(hearing, i, &block, error);
        }
    }
    return status == SUMAC_OK ? check_elements(hearing, error) : status;
}

/* ---- exchanged */

static enum sumac_status exchange_block(
    struct peers *peers, const struct call *call, struct pack *block, uint32_t timeout_ms,
    struct sumac_met *met, struct sumac_error *error)
{
    const struct sumac_contribution contribution = {
        .value = {.dtype = SUMAC_UINT8, .shape = SUMAC_SHAPE(block->used), .memory = block->bytes}};
    struct sumac_error why;

    assert(block->used > 0);
    assert(!block->failed);
    forget_given_up(peers);
    const struct sumac_meet_options options = next_round(peers, SUMAC_MEET_GATHER, timeout_ms);
    const enum sumac_status status =
        sumac_client_meet_and_wait(peers->client, &options, &contribution, met, &why);
    return status == SUMAC_OK ? SUMAC_OK : fail_round(call, &why, error);
}

static uint32_t timeout_of(const struct sumac_strategy *strategy, const struct call *call)
{
    return call->options.timeout_ms != 0 ? call->options.timeout_ms : strategy->options.timeout_ms;
}

static enum sumac_status
hear_met(struct hearing *hearing, const struct sumac_met *met, struct sumac_error *error)
{
    hearing->first = calloc(1, sizeof *hearing->first);
    hearing->next = calloc(1, sizeof *hearing->next);
    const enum sumac_status status = hearing->first == NULL || hearing->next == NULL
                                         ? value_fail_for_memory(error)
                                         : hear(hearing, &met->value, error);

    free(hearing->first);
    free(hearing->next);
    return status;
}

enum sumac_status peers_exchange(
    struct sumac_strategy *strategy, const struct call *call, struct sumac_value *const *own,
    const struct sumac_error *failed, struct sumac_value **all, struct sumac_error *error)
{
    struct peers *peers = strategy->peers;
    struct pack block = {.bytes = NULL};
    struct sumac_met met = {.buffer = NULL};
    struct sumac_error said;
    struct hearing hearing = {.strategy = strategy, .call = call, .own = own, .all = all};

    assert(call->value != NULL || failed != NULL);
    begin_block(&block);
    if (failed != NULL)
        pack_failure(&block, failed, false);
    else
        pack_call(&block, strategy, call, own);
    end_block(&block);
    pthread_mutex_lock(&peers->mutex);
    enum sumac_status status =
        block.failed ? value_fail_for_memory(&said)
                     : exchange_block(peers, call, &block, timeout_of(strategy, call), &met, &said);
    pthread_mutex_unlock(&peers->mutex);
    if (status == SUMAC_OK)
        status = hear_met(&hearing, &met, &said);
    sumac_buffer_unref(met.buffer);
    pack_deinit(&block);
    if (status != SUMAC_OK && error != NULL)
        *error = said;
    if (hearing.ends_run)
        calls_end_run(strategy);
    return status;
}

void peers_give_up(struct peers *peers, const struct sumac_error *why)
{
    struct sumac_error error;

    assert(why->status != SUMAC_OK);
    pthread_mutex_lock(&peers->mutex);
    forget_given_up(peers);
    struct pack *block = &peers->given_up_block;
    begin_block(block);
    pack_failure(block, why, true);
    end_block(block);
    if (!block->failed) {
        const struct sumac_contribution contribution = {
            .value = {
                .dtype = SUMAC_UINT8, .shape = SUMAC_SHAPE(block->used), .memory = block->bytes}};
        const struct sumac_meet_options options = next_round(peers, SUMAC_MEET_GATHER, 0);
        if (sumac_client_meet(peers->client, &options, &contribution, &peers->given_up, &error) !=
            SUMAC_OK)
            peers->given_up = NULL;
    }
    pthread_mutex_unlock(&peers->mutex);
}

/* ---- summed */

enum sumac_status peers_sum(
    struct sumac_strategy *strategy, const struct sumac_tensor *partial, uint32_t timeout_ms,
    struct sumac_value **sum, struct sumac_error *error)
{
    struct peers *peers = strategy->peers;
    const struct call call = {.kind = CALL_ALL_REDUCE};
    struct sumac_error why;
    void *elements;

    assert(peers != NULL);
    struct sumac_value *made = value_make_tensor(partial->dtype, &partial->shape, &elements);
    if (made == NULL)
        return value_fail_for_memory(error);
    const struct sumac_contribution contribution = {.value = *partial, .into = made->tensor};
    pthread_mutex_lock(&peers->mutex);
    const struct sumac_meet_options options = next_round(peers, SUMAC_MEET_SUM, timeout_ms);
    const enum sumac_status status =
        sumac_client_meet_and_wait(peers->client, &options, &contribution, NULL, &why);
    pthread_mutex_unlock(&peers->mutex);
    if (status == SUMAC_OK) {
        *sum = made;
        return SUMAC_OK;
    }
    sumac_value_unref(made);
    return fail_round(&call, &why, error);
}
