/* SPDX-License-Identifier: Apache-2.0 */
/* sums.c -- what the ps sum of a call of several workers: large tensors, each in rounds of its
 * own, and smaller ones of a type packed one behind the other, up to bytes_per_pack.
 *
 *     leaves   a(large) b c d(other type) e      rounds   a0 | a1 | b c e | d
 *
 * All workers plan alike, of the same types and shapes. So many rounds are under way at once; the
 * next begins when the first of these has been taken.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "error.h"
#include "members.h"
#include "peers.h"
#include "sumac/collective.h"

#define SENT_BYTES_MAX 65536u /* of all workers together; a larger tensor is summed by the ps */
#define ALONE_BYTES_MIN (UINT64_C(1) << 20) /* a tensor that is copied into no pack */
#define ALONE UINT64_MAX /* for the bytes of a pack that is open for no other tensor */
#define PACK_BYTES_MAX (UINT64_C(16) << 20)
#define PART_BYTES_MAX                                                                             \
    (UINT64_C(8) << 20) /* of a large one in a round: less than a session's grant */
#define PACK_ALIGNED_BYTES 64u

/* ---- a round: its options, its end, its errors */

bool peers_know_attempts(const struct strategy_peers *peers)
{
    assert(peers->attempts[peers->index] != 0);
    for (uint32_t i = 0; i < peers->count; i++)
        if (peers->attempts[i] == 0)
            return false;
    return true;
}

struct sumac_collective_options peers_next_round(struct strategy_peers *peers, uint32_t timeout_ms)
{
    return (struct sumac_collective_options){
        .name = peers->name,
        .round = ++peers->round,
        .tasks = peers->workers,
        .task_count = peers->worker_count,
        .allow_non_finite = true,
        .timeout_ms = timeout_ms};
}

void peers_wait_out(struct sumac_collective *collective)
{
    struct sumac_error error;

    while (collective != NULL &&
           sumac_collective_wait(collective, 0, &error) == SUMAC_DEADLINE_EXCEEDED) {
    }
}

enum sumac_status
peers_fail_round(const struct call *call, const struct sumac_error *why, struct sumac_error *error)
{
    enum sumac_status status = why->status;

    assert(status != SUMAC_OK);
    const bool waited =
        why->reason == SUMAC_REASON_TIMED_OUT || /* the pull, or the round for all */
        why->reason == SUMAC_REASON_ROUND_TIMED_OUT;
    if (status == SUMAC_UNAVAILABLE && waited)
        status = SUMAC_DEADLINE_EXCEEDED;
    else if (status == SUMAC_ABORTED && why->reason == SUMAC_REASON_MEMBER_GONE)
        status = SUMAC_UNAVAILABLE;
    return fail(error, status, why->reason, "%s: %.440s", call_name(call->kind), why->text);
}

/* ---- which */

bool peers_sum_apart(
    const struct sumac_strategy *strategy, enum sumac_reduce_op op,
    const struct sumac_tensor *tensor)
{
    const bool whole = tensor->dtype >= SUMAC_INT8 && tensor->dtype <= SUMAC_UINT64;
    const bool fits = tensor->dtype == SUMAC_FLOAT32 || tensor->dtype == SUMAC_FLOAT64 ||
                      (whole && op == SUMAC_REDUCE_SUM);

    return strategy->peers != NULL && fits &&
           sumac_tensor_bytes(tensor) > SENT_BYTES_MAX / strategy->in_sync;
}

/* ---- planned */

/* The pack that is open for tensors of that type, or a new one. NULL: no memory. */
static struct summing *find_pack(struct sums *sums, const struct summed *tensor, uint64_t bound)
{
    const bool alone = tensor->bytes >= ALONE_BYTES_MIN;
    uint32_t last = alone ? 0 : sums->pack_count;

    while (last > 0 &&
           (sums->packs[last - 1].dtype != tensor->dtype || sums->packs[last - 1].bytes == ALONE))
        last--;
    if (last > 0 && sums->packs[last - 1].bytes <= bound)
        return &sums->packs[last - 1];
    struct summing *grown =
        array_grow(sums->packs, sums->pack_count, &sums->pack_room, sizeof *sums->packs);
    if (grown == NULL)
        return NULL;
    sums->packs = grown;
    struct summing *pack = &grown[sums->pack_count++];
    *pack = (struct summing){.dtype = tensor->dtype, .bytes = alone ? ALONE : 0};
    return pack;
}

/* The rounds of the rest of a large one, after its first. */
static bool add_parts(struct sums *sums, struct summed *tensor)
{
    for (uint64_t first = PART_BYTES_MAX; first < tensor->bytes; first += PART_BYTES_MAX) {
        struct summing *pack = find_pack(sums, tensor, 0);
        if (pack == NULL)
            return false;
        tensor->packs++;
        pack->tensors = 1;
        pack->tensor = (uint32_t)(tensor - sums->tensors);
        pack->first_byte = first;
    }
    return true;
}

static bool add_tensor(struct sums *sums, const struct sumac_tensor *tensor, uint64_t bound)
{
    struct summed *grown =
        array_grow(sums->tensors, sums->tensor_count, &sums->tensor_room, sizeof *sums->tensors);

    if (grown == NULL)
        return false;
    sums->tensors = grown;
    struct summed *added = &grown[sums->tensor_count];
    *added = (struct summed){
        .dtype = tensor->dtype, .shape = tensor->shape, .bytes = sumac_tensor_bytes(tensor)};
    struct summing *pack = find_pack(sums, added, bound);
    if (pack == NULL)
        return false;
    added->pack = (uint32_t)(pack - sums->packs);
    added->packs = 1;
    pack->tensor = sums->tensor_count;
    added->offset_bytes = pack->bytes == ALONE ? 0 : pack->bytes;
    if (pack->bytes != ALONE)
        pack->bytes +=
            (added->bytes + PACK_ALIGNED_BYTES - 1) / PACK_ALIGNED_BYTES * PACK_ALIGNED_BYTES;
    pack->tensors++;
    sums->tensor_count++;
    return pack->bytes != ALONE || add_parts(sums, added); /* which may move the packs */
}

static bool add_value(
    struct sums *sums, const struct sumac_strategy *strategy, const struct call *call,
    const struct sumac_value *value)
{
    const uint64_t asked = call->options.bytes_per_pack;
    const uint64_t bound = asked == 0 || asked > PACK_BYTES_MAX ? PACK_BYTES_MAX : asked;

    if (value->kind == SUMAC_VALUE_TENSOR)
        return !peers_sum_apart(strategy, call->op, &value->tensor) ||
               add_tensor(sums, &value->tensor, bound);
    for (uint32_t i = 0; value->kind != SUMAC_VALUE_INDEXED_SLICES && i < value->count; i++)
        if (!add_value(sums, strategy, call, value->items[i]))
            return false;
    return true;
}

static uint32_t under_way(const struct sums *sums)
{
    return sums->pack_count < SUMS_UNDER_WAY_MAX ? sums->pack_count : SUMS_UNDER_WAY_MAX;
}

uint32_t sums_plan(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_value *value,
    uint32_t timeout_ms)
{
    struct sums *sums = &strategy->peers->sums;

    assert(sums->pack_count == 0);
    assert(sums->tensor_count == 0);
    const bool apart = (int)call->op != 0 && call->axes == NULL && !call->first_only;
    if (value != NULL && apart && !add_value(sums, strategy, call, value)) {
        sums_end(sums);
        sums->failed = true;
    }
    sums->mean = call->op == SUMAC_REDUCE_MEAN;
    sums->timeout_ms = timeout_ms;
    return under_way(sums);
}

/* ---- begun */

/* So much of it as a round has, from there on. NULL: no memory. */
static struct sumac_value *part_of(const struct sumac_value *whole, uint64_t first_byte)
{
    struct sumac_tensor part = whole->tensor;
    const uint64_t element = dtype_bytes(part.dtype),
                   bytes = sumac_tensor_bytes(&part) - first_byte;

    assert(first_byte < sumac_tensor_bytes(&whole->tensor));
    part.shape = SUMAC_SHAPE((bytes < PART_BYTES_MAX ? bytes : PART_BYTES_MAX) / element);
    part.offset_bytes += first_byte;
    return sumac_value_of(&part);
}

/* What this worker has of a tensor's part, and where its sum goes. False: no memory. */
static bool take_part(struct sumac_strategy *strategy, uint32_t number)
{
    struct sums *sums = &strategy->peers->sums;
    struct summing *pack = &sums->packs[number];
    struct summed *tensor = &sums->tensors[pack->tensor];
    void *elements;

    if (tensor->sum == NULL)
        tensor->sum =
            results_make_tensor(strategy->results, tensor->dtype, &tensor->shape, &elements);
    if (tensor->sum == NULL)
        return false;
    pack->partial = part_of(tensor->partial, pack->first_byte);
    pack->sum = part_of(tensor->sum, pack->first_byte);
    return pack->partial != NULL && pack->sum != NULL;
}

/* The same of a pack of several, whose tensors lie one behind the other. */
static bool take_pack(struct sumac_strategy *strategy, uint32_t number)
{
    struct sums *sums = &strategy->peers->sums;
    struct summing *pack = &sums->packs[number];
    const struct sumac_shape shape = SUMAC_SHAPE(pack->bytes / dtype_bytes(pack->dtype));
    void *elements, *to;

    assert(pack->tensors > 1);
    pack->partial = results_make_tensor(strategy->results, pack->dtype, &shape, &elements);
    if (pack->partial == NULL)
        return false;
    memset(elements, 0, (size_t)pack->bytes); /* between them, too */
    for (uint32_t i = 0; i < sums->tensor_count; i++) {
        const struct summed *tensor = &sums->tensors[i];
        if (tensor->pack == number)
            memcpy(
                (uint8_t *)elements + tensor->offset_bytes,
                sumac_tensor_data(&tensor->partial->tensor), (size_t)tensor->bytes);
    }
    pack->sum = results_make_tensor(strategy->results, pack->dtype, &shape, &to);
    return pack->sum != NULL;
}

static enum sumac_status
begin_pack(struct sumac_strategy *strategy, uint32_t number, struct sumac_error *error)
{
    struct strategy_peers *peers = strategy->peers;
    struct sums *sums = &peers->sums;
    struct summing *pack = &sums->packs[number];
    struct sumac_collective_options options = peers_next_round(peers, sums->timeout_ms);

    assert(number == sums->begun);
    sums->begun++;
    if (sums->mean)
        options.weight = strategy->replicas;
    if (!(pack->tensors > 1 ? take_pack(strategy, number) : take_part(strategy, number)))
        return value_fail_for_memory(error);
    options.into = &pack->sum->tensor;
    const struct client_contribution contribution = {
        .operation = sums->mean ? COLLECTIVE_MEAN : COLLECTIVE_SUM,
        .value = pack->partial->tensor,
        .attempts = peers->attempts};
    return client_contribute(peers->client, &options, &contribution, &pack->collective, error);
}

/* The next pack's. One that cannot be begun here is begun by all others. */
static enum sumac_status begin_next(struct sumac_strategy *strategy, struct sumac_error *error)
{
    struct strategy_peers *peers = strategy->peers;
    const enum sumac_status status = begin_pack(strategy, peers->sums.begun, error);

    assert(peers->round > 0);
    if (status != SUMAC_OK) {
        peers->round--;
        peers->sums.begun--;
        sums_give_up(peers);
    }
    return status;
}

static enum sumac_status add_leaf(
    void *context, const struct sumac_value *const *leaves, const struct value_path *path,
    struct sumac_value **mapped, struct sumac_error *error)
{
    struct sumac_strategy *strategy = context;
    struct sums *sums = &strategy->peers->sums;
    const enum sumac_reduce_op op = sums->mean ? SUMAC_REDUCE_MEAN : SUMAC_REDUCE_SUM;

    (void)path, (void)mapped;
    if (leaves[0]->kind != SUMAC_VALUE_TENSOR || !peers_sum_apart(strategy, op, &leaves[0]->tensor))
        return SUMAC_OK;
    assert(sums->next_taken < sums->tensor_count);
    return collect_own_sum(strategy, leaves, &sums->tensors[sums->next_taken++].partial, error);
}

enum sumac_status sums_begin(
    struct sumac_strategy *strategy, const struct sumac_value *const *own,
    struct sumac_error *error)
{
    struct sums *sums = &strategy->peers->sums;

    assert(sums->begun == 0);
    assert(!sums->failed); /* else the call has failed before */
    if (sums->pack_count == 0)
        return SUMAC_OK;
    enum sumac_status status = value_zip(own, strategy->replicas, add_leaf, strategy, NULL, error);
    if (status != SUMAC_OK)
        sums_give_up(strategy->peers);
    sums->next_taken = 0;
    for (uint32_t i = 0; status == SUMAC_OK && i < under_way(sums); i++)
        status = begin_next(strategy, error);
    return status;
}

void sums_differ(struct strategy_peers *peers, uint32_t rounds)
{
    const struct client_contribution nothing = {
        .operation = COLLECTIVE_GATHER,
        .value = {.dtype = SUMAC_UINT8, .shape = SUMAC_SHAPE(0)},
        .attempts = peers->attempts};
    struct sums *sums = &peers->sums;
    struct sumac_error error;

    assert(rounds <= SUMS_UNDER_WAY_MAX - sums->differing_count);
    for (uint32_t i = 0; i < rounds; i++) {
        const struct sumac_collective_options options = peers_next_round(peers, sums->timeout_ms);
        struct sumac_collective **collective = &sums->differing[sums->differing_count];
        if (client_contribute(peers->client, &options, &nothing, collective, &error) == SUMAC_OK)
            sums->differing_count++;
    }
}

void sums_give_up(struct strategy_peers *peers)
{
    const uint32_t rest = peers->sums.pack_count - peers->sums.begun;

    peers->sums.agreed = false;
    sums_differ(peers, rest < SUMS_UNDER_WAY_MAX ? rest : SUMS_UNDER_WAY_MAX);
}

/* ---- taken */

/* Its round is over, and the next one that is planned begins. */
static enum sumac_status
end_pack(struct sumac_strategy *strategy, struct summing *pack, struct sumac_error *error)
{
    struct sums *sums = &strategy->peers->sums;
    const struct call call = {.kind = CALL_ALL_REDUCE};
    struct sumac_error why;
    enum sumac_status status = SUMAC_DEADLINE_EXCEEDED;

    assert(pack->collective != NULL);
    while (status == SUMAC_DEADLINE_EXCEEDED)
        status = sumac_collective_wait(pack->collective, 0, &why);
    pack->collective = NULL;
    if (status != SUMAC_OK)
        sums->agreed = false; /* all workers hear so, and begin no more */
    else if (sums->begun < sums->pack_count)
        status = begin_next(strategy, &why);
    return status == SUMAC_OK ? SUMAC_OK : peers_fail_round(&call, &why, error);
}

enum sumac_status peers_take_sum(
    struct sumac_strategy *strategy, const struct sumac_tensor *tensor, struct sumac_value **sum,
    struct sumac_error *error)
{
    struct sums *sums = &strategy->peers->sums;

    assert(strategy->peers->in_call);
    assert(sums->next_taken < sums->tensor_count);
    const struct summed *taken = &sums->tensors[sums->next_taken++];
    const struct summing *pack = &sums->packs[taken->pack];
    assert(sumac_shape_equal(&taken->shape, &tensor->shape));
    enum sumac_status status = SUMAC_OK;
    for (uint32_t i = 0; status == SUMAC_OK && i < taken->packs; i++)
        while (status == SUMAC_OK && sums->packs[taken->pack + i].collective != NULL)
            status = end_pack(strategy, &sums->packs[taken->pack + i], error);
    if (status != SUMAC_OK)
        return status;
    struct sumac_tensor part = pack->sum->tensor;
    part.shape = tensor->shape;
    part.offset_bytes += taken->offset_bytes;
    return value_give(
        pack->tensors > 1 ? sumac_value_of(&part) : sumac_value_ref(taken->sum), sum, error);
}

void sums_end(struct sums *sums)
{
    for (uint32_t i = 0; i < sums->pack_count; i++) {
        peers_wait_out(sums->packs[i].collective);
        sumac_value_unref(sums->packs[i].partial);
        sumac_value_unref(sums->packs[i].sum);
    }
    for (uint32_t i = 0; i < sums->tensor_count; i++) {
        sumac_value_unref(sums->tensors[i].partial);
        sumac_value_unref(sums->tensors[i].sum);
    }
    for (uint32_t i = 0; i < sums->differing_count; i++)
        peers_wait_out(sums->differing[i]);
    free(sums->packs);
    free(sums->tensors);
    *sums = (struct sums){.tensors = NULL};
}
