/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c -- the other workers of a strategy.
 *
 * A call of all of them is a round: each tells what it calls, and what it has, in a block of bytes;
 * all get all blocks, in the order of the workers, and compare them alike, so that what ends it
 * ends it for all. Large tensors to be summed go without their elements, and are summed in rounds
 * of their own, which are under way beside it. Where the blocks differ these come to nothing: who
 * has fewer of them than another contributes what differs to the rest, so that they are over for
 * all, and all go on with the same number.
 *
 *     block    bytes, rounds that sum, run, call, the worker's attempt, then
 *       failed   its status, reason and text, and whether the run is over with it
 *       call     0, what is called, of which variable, replicas, and a value of each
 */
#include "peers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "members.h"
#include "text.h"

#define NAME_BYTES_MAX PEERS_NAME_BYTES_MAX
#define FAILURE_BYTES_MAX (SUMAC_ERROR_TEXT_BYTES + 56) /* of a block that has failed */

/* ---- opened */

static enum sumac_status copy_workers(
    const struct sumac_strategy_options *options, struct strategy_peers *peers,
    struct sumac_error *error)
{
    static const char chief[] = "chief", worker[] = "worker";

    if (options->worker_count == 0)
        return SUMAC_OK;
    if (options->workers == NULL)
        return fail_argument(
            error, "a strategy of %" PRIu32 " workers, and workers is NULL", options->worker_count);
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
    const struct sumac_strategy_options *options, struct strategy_peers *peers,
    struct sumac_error *error)
{
    const uint32_t number = client_count_strategy(options->client);
    const size_t bytes = options->name == NULL ? 0 : strnlen(options->name, NAME_BYTES_MAX + 1);

    assert(number > 0);
    if (options->name == NULL)
        (void)text_print(peers->name, sizeof peers->name, "strategy %" PRIu32, number);
    else if (
        bytes == 0 || bytes > NAME_BYTES_MAX || !text_is_utf8(options->name, bytes) ||
        text_has_control(options->name, bytes))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "a strategy's name is UTF-8 of 1 to %u bytes, without control characters",
            NAME_BYTES_MAX);
    else
        memcpy(peers->name, options->name, bytes);
    return SUMAC_OK;
}

enum sumac_status peers_open(struct sumac_strategy *strategy, struct sumac_error *error)
{
    const struct sumac_strategy_options *const options = &strategy->options;
    struct strategy_peers *made = calloc(1, sizeof *made);
    struct sumac_client_facts facts;

    assert(options->client != NULL);
    if (made == NULL)
        return value_fail_for_memory(error);
    pthread_mutex_init(&made->mutex, NULL);
    made->client = options->client;
    /* room for blocks that say why this worker failed: there, whatever it is then short of */
    bool reserved = pack_reserve(&made->failure, FAILURE_BYTES_MAX);
    for (uint32_t i = 0; i < GIVEN_UP_MAX; i++)
        reserved = pack_reserve(&made->given_up[i].block, FAILURE_BYTES_MAX) && reserved;
    enum sumac_status status =
        reserved ? copy_workers(options, made, error) : value_fail_for_memory(error);
    if (status == SUMAC_OK)
        status = name_it(options, made, error);
    if (status == SUMAC_OK)
        status = client_collective_place(
            made->client, made->workers, made->worker_count, &made->index, &made->count, error);
    if (status == SUMAC_OK && (uint64_t)made->count * options->replicas > SUMAC_REPLICAS_MAX)
        status = fail_argument(
            error,
            "%" PRIu32 " workers with %" PRIu32 " replicas each, and %d are the most together",
            made->count, options->replicas, SUMAC_REPLICAS_MAX);
    if (status != SUMAC_OK) {
        peers_close(made);
        return status;
    }
    assert(made->index < made->count);
    sumac_client_describe(made->client, &facts);
    made->attempts[made->index] = facts.attempt; /* the others say theirs with their first blocks */
    strategy->peers = made;
    strategy->first = made->index * options->replicas;
    strategy->in_sync = made->count * options->replicas;
    return SUMAC_OK;
}

static void wait_out_given_up(struct given_up *call)
{
    assert(call->differing_count <= SUMS_UNDER_WAY_MAX);
    peers_wait_out(call->collective);
    call->collective = NULL;
    while (call->differing_count > 0)
        peers_wait_out(call->differing[--call->differing_count]);
}

void peers_close(struct strategy_peers *peers)
{
    if (peers == NULL)
        return;
    sums_end(&peers->sums);
    for (uint32_t i = 0; i < GIVEN_UP_MAX; i++) {
        wait_out_given_up(&peers->given_up[i]);
        pack_deinit(&peers->given_up[i].block);
    }
    pack_deinit(&peers->failure);
    pthread_mutex_destroy(&peers->mutex);
    free(peers->workers);
    free(peers);
}

/* ---- rounds */

void peers_begin_run(struct strategy_peers *peers)
{
    pthread_mutex_lock(&peers->mutex);
    peers->run++;
    peers->call = 0;
    pthread_mutex_unlock(&peers->mutex);
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

struct heard {
    struct call call;
    struct sumac_axes axes; /* call.axes, where it has any */
    char name[LABEL_BYTES_MAX];
};

struct hearing {
    struct sumac_strategy *strategy;
    const struct call *made;
    const struct sumac_value *const *own;
    struct sumac_value **all;
    bool ends_run;
    bool alone;       /* only this worker fails: it has no memory for what the others bring */
    bool sums_beside; /* the rounds that sum are under way beside the block, not after it */
    uint32_t sums, sums_most;    /* rounds that sum: of this worker, and of the one with the most */
    uint64_t run, call, attempt; /* of the worker whose block was read last */
    struct heard *heard;         /* (2): of worker 0, and of another */
    struct sumac_collective_result *result; /* of the blocks' round. NULL: discarded */
};

static bool is_sent(const void *context, const struct sumac_tensor *tensor)
{
    const struct hearing *hearing = context;
    const struct call *call = hearing->made;

    if (call->first_only)
        return hearing->strategy->first == 0;
    return (int)call->op == 0 || call->axes != NULL ||
           !peers_sum_apart(hearing->strategy, call->op, tensor);
}

static void pack_call(struct pack *pack, const struct hearing *hearing)
{
    const struct call *const call = hearing->made;
    const uint32_t replicas = hearing->strategy->replicas;

    pack_u32(pack, SUMAC_OK);
    pack_u32(pack, (uint32_t)call->kind);
    pack_u32(pack, (uint32_t)call->op);
    pack_u64(pack, (uint64_t)call->axis);
    pack_u32(pack, (uint32_t)call->write);
    pack_u64(pack, call->options.bytes_per_pack);
    pack_u32(pack, call->axes != NULL);
    pack_u32(pack, call->axes != NULL ? call->axes->count : 0);
    for (uint32_t i = 0; call->axes != NULL && i < call->axes->count && i < SUMAC_RANK_MAX; i++)
        pack_u64(pack, (uint64_t)call->axes->axis[i]);
    pack_text(pack, call->name);
    pack_u64(pack, call->sum.bytes);
    pack_u64(pack, call->sum.digest);
    pack_u32(pack, replicas);
    for (uint32_t i = 0; i < replicas; i++) /* of what the first has, one counts */
        pack_value(pack, hearing->own[call->first_only ? 0 : i], is_sent, hearing);
}

/* ---- a block is read */

static bool unpack_call(struct unpack *block, uint32_t replicas, struct heard *heard)
{
    heard->call.kind = (enum call_kind)unpack_u32(block);
    heard->call.op = (enum sumac_reduce_op)unpack_u32(block);
    heard->call.axis = (int64_t)unpack_u64(block);
    heard->call.write = (int)unpack_u32(block);
    heard->call.options.bytes_per_pack = unpack_u64(block);
    heard->call.axes = unpack_u32(block) != 0 ? &heard->axes : NULL;
    heard->axes.count = unpack_u32(block);
    for (uint32_t i = 0; i < heard->axes.count && i < SUMAC_RANK_MAX; i++)
        heard->axes.axis[i] = (int64_t)unpack_u64(block);
    heard->call.name = unpack_text(block, heard->name, sizeof heard->name);
    heard->call.sum.bytes = unpack_u64(block);
    heard->call.sum.digest = unpack_u64(block);
    return unpack_u32(block) == replicas && !block->failed;
}

static enum sumac_status
fail_block(const struct call *call, uint32_t worker, struct sumac_error *error)
{
    return fail_invalid(
        error, SUMAC_REASON_STEP_DIFFERS,
        "%s: worker %" PRIu32
        " comes with another number of replicas, or with what this release does not read: each "
        "worker runs the same program with as many replicas",
        call_name(call->kind), worker);
}

/* What a worker says that it failed by. */
static enum sumac_status hear_failure(
    struct strategy_peers *peers, uint32_t worker, enum sumac_status status, struct unpack *block,
    bool *ends_run, struct sumac_error *error)
{
    char text[SUMAC_ERROR_TEXT_BYTES];
    const enum sumac_reason reason = (enum sumac_reason)unpack_u32(block);

    (void)unpack_text(block, text, sizeof text); /* anything: fail makes a printable line of it */
    *ends_run = unpack_u32(block) != 0 && worker != peers->index;
    if (status > SUMAC_UNAUTHENTICATED)
        status = SUMAC_UNKNOWN;
    return fail(error, status, reason, "worker %" PRIu32 ": %.460s", worker, text);
}

/* Has it the elements of every tensor that is sent, and not summed apart? */
static bool
has_what_is_sent(const struct hearing *hearing, bool counts, const struct sumac_value *value)
{
    if (value->kind == SUMAC_VALUE_TENSOR)
        return value_has_elements(value) || sumac_tensor_bytes(&value->tensor) == 0 ||
               (hearing->made->first_only ? !counts : !is_sent(hearing, &value->tensor));
    for (uint32_t i = 0; i < value->count; i++)
        if (!has_what_is_sent(hearing, counts, value->items[i]))
            return false;
    return true;
}

/* The values of a worker's block, after what it calls.
 * Fails  as unpack_value; INVALID_ARGUMENT: their nests differ. */
static enum sumac_status
unpack_values(struct unpack *block, struct sumac_value **values, uint32_t count)
{
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < count; i++) {
        status = unpack_value(block, &values[i]);
        if (status == SUMAC_OK)
            status = sumac_value_same_nest(values[0], values[i], NULL);
    }
    return status;
}

/* Of a worker that has not failed. */
static enum sumac_status
hear_call(struct hearing *hearing, uint32_t worker, struct unpack *block, struct sumac_error *error)
{
    struct sumac_strategy *strategy = hearing->strategy;
    struct sumac_value **values = &hearing->all[worker * strategy->replicas];
    struct heard *heard = &hearing->heard[worker == 0 ? 0 : 1];
    enum sumac_status status = SUMAC_OK;

    assert(worker < strategy->peers->count);
    *heard = (struct heard){.call = {.kind = hearing->made->kind}};
    if (worker == strategy->peers->index) {
        heard->call = *hearing->made;
        heard->call.function = NULL;
        for (uint32_t i = 0; i < strategy->replicas; i++)
            values[i] = sumac_value_ref(hearing->own[i]);
    } else if (!unpack_call(block, strategy->replicas, heard)) {
        return fail_block(hearing->made, worker, error);
    } else {
        status = unpack_values(block, values, strategy->replicas);
    }
    hearing->alone = status == SUMAC_RESOURCE_EXHAUSTED;
    if (hearing->alone)
        return value_fail_for_memory(error);
    if (status != SUMAC_OK)
        return fail_block(hearing->made, worker, error);
    heard->call.value = values[0];
    return worker == 0
               ? SUMAC_OK
               : call_compare(
                     &hearing->heard[0].call, 0, &heard->call, worker * strategy->replicas, error);
}

/* All call the same; nobody has kept back what the others are to compute with. */
static enum sumac_status check_elements(const struct hearing *hearing, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = hearing->strategy;

    for (uint32_t i = 0; i < strategy->in_sync; i++)
        if (!has_what_is_sent(hearing, i < strategy->replicas, hearing->all[i]))
            return fail_block(hearing->made, i / strategy->replicas, error);
    return SUMAC_OK;
}

/* The next worker's block, after how many rounds sum of it. false: it is none. */
static bool next_block(struct hearing *hearing, struct unpack *rest, struct unpack *block)
{
    const uint64_t bytes = unpack_u64(rest);

    *block = (struct unpack){.at = rest->at};
    if (rest->failed || bytes < sizeof bytes || unpack_bytes(rest, bytes - sizeof bytes) == NULL)
        return false;
    block->end = rest->at;
    const uint32_t sums = unpack_u32(block);
    if (sums > hearing->sums_most && sums <= SUMS_UNDER_WAY_MAX)
        hearing->sums_most = sums;
    hearing->run = unpack_u64(block);
    hearing->call = unpack_u64(block);
    hearing->attempt = unpack_u64(block);
    return !block->failed;
}

/* Is this the same call of the same run for all? A worker that has returned from one without a call
 * that others made, or made one too many, is a run ahead, or a call; so that the next run is the
 * same for all again, each goes on as from the furthest. */
static enum sumac_status
check_runs(struct hearing *hearing, struct unpack all, struct sumac_error *error)
{
    struct strategy_peers *peers = hearing->strategy->peers;
    uint64_t first_run = 0, first_call = 0, last_run = 0;
    enum sumac_status status = SUMAC_OK;
    struct unpack block;

    assert(peers->count > 0);
    for (uint32_t i = 0; i < peers->count && next_block(hearing, &all, &block); i++) {
        first_run = i == 0 ? hearing->run : first_run;
        first_call = i == 0 ? hearing->call : first_call;
        last_run = hearing->run > last_run ? hearing->run : last_run;
        if (status == SUMAC_OK && (hearing->run != first_run || hearing->call != first_call))
            status = fail_invalid(
                error, SUMAC_REASON_STEP_DIFFERS,
                "%s: worker 0 comes with call %" PRIu64 " of run %" PRIu64 ", and worker %" PRIu32
                " with call %" PRIu64 " of run %" PRIu64
                ": one of them has returned without a call that the other made, or made one more",
                call_name(hearing->made->kind), first_call, first_run, i, hearing->call,
                hearing->run);
    }
    if (status != SUMAC_OK && last_run < UINT64_MAX / 2)
        peers->run = last_run;
    return status;
}

/* All blocks, in the order of the workers; one that failed is told before what others differ in. */
static enum sumac_status
hear(struct hearing *hearing, const struct sumac_tensor *blocks, struct sumac_error *error)
{
    struct strategy_peers *peers = hearing->strategy->peers;
    struct unpack all = {.at = sumac_tensor_data(blocks)}, rest, block;
    enum sumac_status status = SUMAC_OK;

    all.end = all.at + sumac_tensor_bytes(blocks);
    rest = all;
    for (uint32_t i = 0; i < peers->count; i++) {
        if (!next_block(hearing, &rest, &block))
            return fail_block(hearing->made, i, error);
        peers->attempts[i] = hearing->attempt;
        const enum sumac_status said = (enum sumac_status)unpack_u32(&block);
        if (said != SUMAC_OK && status == SUMAC_OK)
            status = hear_failure(peers, i, said, &block, &hearing->ends_run, error);
    }
    const enum sumac_status in_step = check_runs(hearing, all, status == SUMAC_OK ? error : NULL);
    status = status == SUMAC_OK ? in_step : status;
    rest = all;
    for (uint32_t i = 0; status == SUMAC_OK && i < peers->count; i++) {
        (void)next_block(hearing, &rest, &block);
        (void)unpack_u32(&block);
        status = hear_call(hearing, i, &block, error);
    }
    return status == SUMAC_OK ? check_elements(hearing, error) : status;
}

/* ---- exchanged */

static uint32_t timeout_of(const struct sumac_strategy *strategy, const struct call *call)
{
    return call->options.timeout_ms != 0 ? call->options.timeout_ms : strategy->options.timeout_ms;
}

static enum sumac_status begin_block(
    const struct hearing *hearing, const struct pack *block, struct sumac_collective **collective,
    struct sumac_error *error)
{
    struct strategy_peers *peers = hearing->strategy->peers;
    const struct client_contribution contribution = {
        .operation = COLLECTIVE_GATHER,
        .value = {.dtype = SUMAC_UINT8, .shape = SUMAC_SHAPE(block->used), .memory = block->bytes},
        .attempts = peers->attempts,
        .result = hearing->result};
    const struct sumac_collective_options options =
        peers_next_round(peers, timeout_of(hearing->strategy, hearing->made));

    assert(block->used > 0);
    assert(!block->failed);
    return client_contribute(peers->client, &options, &contribution, collective, error);
}

static void plan_sums(struct hearing *hearing, const struct sumac_value *value)
{
    struct sumac_strategy *strategy = hearing->strategy;
    const uint32_t planned =
        sums_plan(strategy, hearing->made, value, timeout_of(strategy, hearing->made));

    assert(planned <= SUMS_UNDER_WAY_MAX);
    hearing->sums_beside = peers_know_attempts(strategy->peers);
    hearing->sums = hearing->sums_beside ? planned : 0;
}

/* What this worker brings, and how many rounds sum of it. */
static void write_block(
    struct pack *block, const struct hearing *hearing, const struct sumac_error *failed,
    bool ends_run)
{
    assert(block->used == 0);
    assert(failed == NULL || failed->status != SUMAC_OK);
    pack_u64(block, 0); /* its length */
    pack_u32(block, hearing->sums);
    pack_u64(block, hearing->strategy->peers->run);
    pack_u64(block, hearing->strategy->peers->call);
    pack_u64(block, hearing->strategy->peers->attempts[hearing->strategy->peers->index]);
    if (failed != NULL)
        pack_failure(block, failed, ends_run);
    else
        pack_call(block, hearing);
    const uint64_t bytes = block->used;
    if (!block->failed)
        memcpy(block->bytes, &bytes, sizeof bytes);
}

/* Tell the others in the next round why this worker failed. `block` has room for it. */
static enum sumac_status begin_failure(
    const struct hearing *hearing, struct pack *block, const struct sumac_error *failed,
    bool ends_run, struct sumac_collective **collective, struct sumac_error *error)
{
    block->used = 0;
    write_block(block, hearing, failed, ends_run);
    assert(block->used <= FAILURE_BYTES_MAX);
    return begin_block(hearing, block, collective, error);
}

/* Begin the round of this worker's block, and those that sum. If the block cannot be sent, the
 * reason goes in its place. The others begin all rounds of the call, so this worker counts all of
 * them, whatever fails here. */
static enum sumac_status begin_all(
    const struct hearing *hearing, const struct pack *block, const struct sumac_error *failed,
    struct sumac_collective **collective, struct sumac_error *why)
{
    struct sumac_strategy *strategy = hearing->strategy;
    struct strategy_peers *peers = strategy->peers;
    enum sumac_status status = SUMAC_OK;
    struct sumac_error named;

    if (failed == NULL)
        status = begin_block(hearing, block, collective, why);
    if (status != SUMAC_OK) {
        peers->round--; /* the reason goes into the same round */
        (void)peers_fail_round(hearing->made, why, &named);
        failed = &named;
    }
    if (failed == NULL)
        return hearing->sums_beside ? sums_begin(strategy, hearing->own, why) : SUMAC_OK;
    status = begin_failure(hearing, &peers->failure, failed, false, collective, why);
    if (hearing->sums_beside)
        sums_give_up(peers);
    return status;
}

/* The round of the block has failed. A later attempt that has met no other worker yet is also told
 * what to do if they went on with an earlier attempt: a ps may not know. */
static enum sumac_status fail_block_round(
    const struct hearing *hearing, const struct sumac_error *why, struct sumac_error *error)
{
    const struct strategy_peers *peers = hearing->strategy->peers;
    const uint64_t attempt = peers->attempts[peers->index];
    struct sumac_error named;
    const enum sumac_status status = peers_fail_round(hearing->made, why, &named);

    assert(status != SUMAC_OK);
    if (status != SUMAC_DEADLINE_EXCEEDED || attempt == 1 || peers_know_attempts(peers))
        return peers_fail_round(hearing->made, why, error);
    return fail(
        error, status, named.reason,
        "%.330s; this is attempt %" PRIu64 " of worker %" PRIu32 ": if the others went on with an "
        "earlier attempt, start all of them again",
        named.text, attempt, peers->index);
}

/* The block's round is waited for; those that sum are left under way. */
static enum sumac_status exchange(
    struct hearing *hearing, const struct pack *block, const struct sumac_error *failed,
    struct sumac_error *error)
{
    struct strategy_peers *peers = hearing->strategy->peers;
    struct sumac_collective_result result = {.buffer = NULL};
    struct sumac_collective *collective = NULL;
    struct sumac_error why;

    hearing->result = &result;
    enum sumac_status status = begin_all(hearing, block, failed, &collective, &why);
    if (status != SUMAC_OK) {
        peers_wait_out(collective);
        sumac_buffer_unref(result.buffer);
        return peers_fail_round(hearing->made, &why, error);
    }
    do
        status = sumac_collective_wait(collective, 0, &why);
    while (status == SUMAC_DEADLINE_EXCEEDED);
    status = status == SUMAC_OK ? hear(hearing, &result.value, error)
                                : fail_block_round(hearing, &why, error);
    peers->sums.agreed = status == SUMAC_OK || hearing->alone;
    if (status == SUMAC_OK && !hearing->sums_beside &&
        sums_begin(hearing->strategy, hearing->own, &why) != SUMAC_OK)
        status = peers_fail_round(hearing->made, &why, error);
    if (status != SUMAC_OK && hearing->sums_most > hearing->sums)
        sums_differ(peers, hearing->sums_most - hearing->sums);
    sumac_buffer_unref(result.buffer);
    return status;
}

/* Everything of this worker's block that can fail. */
static enum sumac_status
prepare_block(const struct hearing *hearing, struct pack *block, struct sumac_error *error)
{
    const struct sumac_strategy *strategy = hearing->strategy;

    for (uint32_t i = 0; i < strategy->replicas; i++)
        if (!pack_fits(hearing->own[i]))
            return fail(
                error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_PART_TOO_LARGE,
                "%s: the value of replica %" PRIu32 " has more than %u values in it, the most that "
                "workers send each other; reduce several smaller values",
                call_name(hearing->made->kind), strategy->first + i, PACK_VALUES_MAX);
    write_block(block, hearing, NULL, false);
    return block->failed || strategy->peers->sums.failed ? value_fail_for_memory(error) : SUMAC_OK;
}

enum sumac_status peers_exchange(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_value *const *own,
    const struct sumac_error *failed, struct sumac_value **all, struct sumac_error *error)
{
    struct strategy_peers *peers = strategy->peers;
    struct pack block = {.bytes = NULL};
    struct sumac_error said, own_failure;
    struct heard heard[2];
    struct hearing hearing = {
        .strategy = strategy, .made = call, .own = own, .all = all, .heard = heard};

    assert(peers != NULL);
    assert(call->value != NULL || failed != NULL);
    pthread_mutex_lock(&peers->mutex);
    peers->in_call = true;
    peers->call++;
    plan_sums(&hearing, own[0]);
    if (failed == NULL && prepare_block(&hearing, &block, &own_failure) != SUMAC_OK)
        failed = &own_failure;
    const enum sumac_status status = exchange(&hearing, &block, failed, &said);
    pack_deinit(&block);
    if (hearing.ends_run)
        calls_end_run(strategy);
    return status == SUMAC_OK ? SUMAC_OK : fail_again(error, &said);
}

void peers_finish(struct strategy_peers *peers)
{
    if (!peers->in_call)
        return;
    if (peers->sums.agreed) /* this worker failed: the others begin the rounds that are left */
        sums_give_up(peers);
    sums_end(&peers->sums);
    peers->in_call = false;
    pthread_mutex_unlock(&peers->mutex);
}

void peers_give_up(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_error *why)
{
    struct strategy_peers *peers = strategy->peers;
    struct hearing hearing = {.strategy = strategy, .made = call};
    struct sums *sums = &peers->sums;
    struct sumac_error error;

    assert(why->status != SUMAC_OK);
    pthread_mutex_lock(&peers->mutex);
    peers->call++;
    struct given_up *given_up = &peers->given_up[peers->given_up_next++ % GIVEN_UP_MAX];
    wait_out_given_up(given_up); /* of some calls ago */
    plan_sums(&hearing, call->value);
    if (begin_failure(&hearing, &given_up->block, why, true, &given_up->collective, &error) !=
        SUMAC_OK)
        given_up->collective = NULL;
    if (hearing.sums_beside)
        sums_give_up(peers);
    memcpy(given_up->differing, sums->differing, sizeof sums->differing);
    given_up->differing_count = sums->differing_count;
    sums->differing_count = 0;
    sums_end(sums);
    pthread_mutex_unlock(&peers->mutex);
}
