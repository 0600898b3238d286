/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_call.c -- what a call is to NCCL. */
#include "nccl_call.h"

#include <assert.h>
#include <stddef.h>

#include "text.h"

#define ALIGNED UINT64_C(256) /* where each call's scratch begins */

/* Of bool and 16-bit integers there is none: neither is added by NCCL. */
static ncclDataType_t type_of(enum sumac_dtype dtype)
{
    static const struct {
        enum sumac_dtype dtype;
        ncclDataType_t type;
    } types[] = {
        {SUMAC_INT8, ncclInt8},       {SUMAC_INT32, ncclInt32},       {SUMAC_INT64, ncclInt64},
        {SUMAC_UINT8, ncclUint8},     {SUMAC_UINT32, ncclUint32},     {SUMAC_UINT64, ncclUint64},
        {SUMAC_FLOAT16, ncclFloat16}, {SUMAC_BFLOAT16, ncclBfloat16}, {SUMAC_FLOAT32, ncclFloat32},
        {SUMAC_FLOAT64, ncclFloat64},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].dtype == dtype)
            return types[i].type;
    assert(false);
    return ncclInt8;
}

/* What is added: wide values of halves are float32, those of integers uint32. */
static ncclDataType_t added_type(const struct group_call *call)
{
    if (!call->is_wide)
        return type_of(call->values.dtype);
    return sumac_dtype_is_float(call->values.dtype) ? ncclFloat32 : ncclUint32;
}

/* ---- which calls may be under way at once */

struct bytes {
    uintptr_t first;
    uint64_t count;
};

static bool overlap(struct bytes a, struct bytes b)
{
    return a.count > 0 && b.count > 0 && a.first < b.first + b.count && b.first < a.first + a.count;
}

static struct bytes read_by(const struct group_call *call, uint32_t replica)
{
    const bool reads = call->kind != GROUP_BROADCAST || replica == call->root;
    const uint64_t each = sumac_dtype_bytes(call->values.dtype);

    return (struct bytes){
        (uintptr_t)call->values.from[replica], reads ? call->values.elements[replica] * each : 0};
}

static struct bytes written_by(const struct group_call *call, uint32_t replica, uint32_t replicas)
{
    const bool writes = call->kind != GROUP_REDUCE || replica == call->root;
    const uint64_t each = sumac_dtype_bytes(call->values.dtype);
    uint64_t elements = call->values.elements[replica];

    for (uint32_t i = 0; call->kind == GROUP_ALL_GATHER && i < replicas; i++)
        elements += i == replica ? 0 : call->values.elements[i];
    return (struct bytes){(uintptr_t)call->values.to[replica], writes ? elements * each : 0};
}

static bool touch(const struct group_call *a, const struct group_call *b, uint32_t replicas)
{
    for (uint32_t i = 0; i < replicas; i++) {
        const struct bytes a_to = written_by(a, i, replicas), b_to = written_by(b, i, replicas);
        if (overlap(a_to, b_to) || overlap(a_to, read_by(b, i)) || overlap(read_by(a, i), b_to))
            return true;
    }
    return false;
}

uint64_t nccl_call_divide(struct group_call *calls, uint32_t count, uint32_t replicas)
{
    uint64_t bytes = 0, scratch = 0; /* of the batch so far: that replica 0 gives, that all need */
    uint64_t most = 0;
    uint32_t first = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct group_call *call = &calls[i];
        const uint64_t elements = call->values.elements[0];
        const uint64_t own = (elements * call->scratch_each + ALIGNED - 1) / ALIGNED * ALIGNED;
        call->begins = i == 0 || i - first == NCCL_BATCH_CALLS_MAX || bytes >= NCCL_BATCH_BYTES ||
                       scratch > NCCL_SCRATCH_BYTES_MAX ||
                       (own > 0 && scratch + own > NCCL_SCRATCH_BYTES_MAX);
        for (uint32_t j = first; j < i && !call->begins; j++)
            call->begins = touch(&calls[j], call, replicas);
        if (call->begins) {
            first = i;
            bytes = scratch = 0;
        }
        call->first = 0;
        call->count = elements;
        call->scratch_offset = scratch;
        bytes += elements * sumac_dtype_bytes(call->values.dtype);
        scratch += own;
        most = scratch > most ? scratch : most;
        assert(i - first < NCCL_BATCH_CALLS_MAX);
    }
    return most < NCCL_SCRATCH_BYTES_MAX ? most : NCCL_SCRATCH_BYTES_MAX;
}

uint64_t nccl_call_part(const struct group_call *call, uint64_t first)
{
    const uint64_t left = call->values.elements[0] - first;

    assert(first <= call->values.elements[0]);
    if (call->scratch_each == 0 || left * call->scratch_each <= NCCL_SCRATCH_BYTES_MAX)
        return left;
    return NCCL_SCRATCH_BYTES_MAX / call->scratch_each;
}

double nccl_call_weights(const struct group_call *call, uint32_t replicas)
{
    double total = 0;

    assert(call->op == SUMAC_REDUCE_MEAN);
    for (uint32_t i = 0; i < replicas; i++)
        total += call->values.weights[i];
    return total;
}

bool nccl_call_is_idle(const struct group_call *call, uint32_t replica)
{
    return call->kind <= GROUP_ALL_REDUCE && call->op == SUMAC_REDUCE_MEAN &&
           call->values.weights[replica] <= 0;
}

const char *
nccl_call_describe(const struct group_call *calls, uint32_t count, char *text, uint32_t text_bytes)
{
    static const char *const names[] = {
        [GROUP_REDUCE] = "reduce",
        [GROUP_ALL_REDUCE] = "all_reduce",
        [GROUP_ALL_GATHER] = "all_gather",
        [GROUP_BROADCAST] = "broadcast",
    };

    assert(text_bytes > 0);
    if (count > 1)
        (void)text_print(text, text_bytes, "(%s and %u more)", names[calls[0].kind], count - 1);
    else
        (void)text_print(text, text_bytes, "(%s)", count == 0 ? "nothing" : names[calls[0].kind]);
    return text;
}

/* ---- a rank's part */

/* The reduction of a call on this rank, which scales where it is a mean. */
static ncclResult_t
prepare(const struct nccl_rank *rank, const struct group_call *call, ncclRedOp_t *op)
{
    const enum sumac_dtype dtype = call->values.dtype;

    assert(rank->replica < rank->replicas);
    *op = ncclSum;
    if (call->kind > GROUP_ALL_REDUCE || call->op != SUMAC_REDUCE_MEAN || call->is_wide)
        return ncclSuccess;
    assert(dtype == SUMAC_FLOAT32 || dtype == SUMAC_FLOAT64); /* means of halves are wide */
    const double total = nccl_call_weights(call, rank->replicas);
    assert(total > 0);
    double weight = call->values.weights[rank->replica] / total;
    float single = (float)weight;
    return rank->library->ncclRedOpCreatePreMulSum(
        op, dtype == SUMAC_FLOAT32 ? (void *)&single : &weight, type_of(dtype),
        ncclScalarHostImmediate, rank->comm);
}

void nccl_call_forget(const struct nccl_rank *rank, ncclRedOp_t op)
{
    assert(op == ncclSum || op >= ncclNumOps);
    if (op >= ncclNumOps)
        (void)rank->library->ncclRedOpDestroy(op, rank->comm);
}

/* As many broadcasts as there are replicas: they may give as much as they like. */
static ncclResult_t gather(const struct nccl_rank *rank, const struct device_group_values *values)
{
    char *to = values->to[rank->replica];
    ncclResult_t result = ncclSuccess;

    for (uint32_t i = 0; i < rank->replicas; i++) {
        const uint64_t bytes = values->elements[i] * sumac_dtype_bytes(values->dtype);
        const void *from = i == rank->replica ? values->from[i] : to;
        if (bytes > 0)
            result = rank->library->ncclBroadcast(
                from, to, bytes, ncclInt8, (int)i, rank->comm, rank->stream);
        if (!nccl_is_fine(result))
            return result;
        to += bytes;
    }
    return ncclSuccess;
}

/* Within a group of NCCL's. */
static ncclResult_t
issue(const struct nccl_rank *rank, const struct group_call *call, ncclRedOp_t op)
{
    const struct device_group_values *values = &call->values;
    const uint64_t begin = call->first * sumac_dtype_bytes(values->dtype);
    const char *given = values->from[rank->replica];
    char *gets = values->to[rank->replica];
    void *const scratch = (void *)(uintptr_t)(rank->scratch + call->scratch_offset);
    const bool gives_scratch = call->is_wide || nccl_call_is_idle(call, rank->replica);

    assert(call->root < rank->replicas);
    if (call->kind == GROUP_ALL_GATHER)
        return gather(rank, values);
    if (call->count == 0)
        return ncclSuccess;
    const void *from = gives_scratch ? scratch : given + begin;
    void *to = call->is_wide ? scratch : gets == NULL ? NULL : gets + begin;
    switch (call->kind) {
    case GROUP_REDUCE:
        return rank->library->ncclReduce(
            from, to, call->count, added_type(call), op, (int)call->root, rank->comm, rank->stream);
    case GROUP_ALL_REDUCE:
        return rank->library->ncclAllReduce(
            from, to, call->count, added_type(call), op, rank->comm, rank->stream);
    case GROUP_BROADCAST:
        return rank->library->ncclBroadcast(
            from, to, call->count * sumac_dtype_bytes(values->dtype), ncclInt8, (int)call->root,
            rank->comm, rank->stream);
    case GROUP_ALL_GATHER:
        break;
    }
    return ncclInternalError;
}

ncclResult_t nccl_call_ask(
    const struct nccl_rank *rank, const struct group_call *calls, uint32_t count, ncclRedOp_t *ops)
{
    ncclResult_t result = ncclSuccess;

    for (uint32_t i = 0; i < count; i++)
        ops[i] = ncclSum;
    for (uint32_t i = 0; nccl_is_fine(result) && i < count; i++)
        result = prepare(rank, &calls[i], &ops[i]);
    if (!nccl_is_fine(result))
        return result;
    result = rank->library->ncclGroupStart();
    for (uint32_t i = 0; nccl_is_fine(result) && i < count; i++)
        result = issue(rank, &calls[i], ops[i]);
    const ncclResult_t ended = rank->library->ncclGroupEnd();
    return nccl_is_fine(result) ? ended : result;
}
