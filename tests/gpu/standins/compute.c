/* SPDX-License-Identifier: Apache-2.0 */
/* compute.c -- sums over ranks, in their order, each rounded as NCCL does: after every addition. */
#include <stdlib.h>
#include <string.h>

#include "communicators.h"
#include "half.h"
#include "standin.h"

#define GARBAGE 0xee /* of a call that was aborted */

static uint64_t bytes_of(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
        return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
        return 8;
    default:
        standin_object("nothing is known of NCCL's type %d", (int)type);
    }
}

static bool is_float(ncclDataType_t type)
{
    return type == ncclFloat16 || type == ncclBfloat16 || type == ncclFloat32 ||
           type == ncclFloat64;
}

/* Integers wrap alike, with and without a sign. */
static uint64_t load_integer(const void *at, uint64_t bytes)
{
    uint64_t value = 0;

    memcpy(&value, at, bytes);
    return value;
}

static double load(ncclDataType_t type, const void *at)
{
    float single = 0;
    double real = 0;
    uint16_t half = 0;

    if (!is_float(type))
        standin_object("type %d is no float", (int)type);
    memcpy(&half, at, 2);
    if (type == ncclFloat16)
        return (double)float32_of_float16(half);
    if (type == ncclBfloat16)
        return (double)float32_of_bfloat16(half);
    if (type == ncclFloat32) {
        memcpy(&single, at, 4);
        return (double)single;
    }
    memcpy(&real, at, 8);
    return real;
}

double operation_scalar(ncclDataType_t type, const void *scalar) { return load(type, scalar); }

static void store(ncclDataType_t type, void *at, double value)
{
    const float single = (float)value;
    uint16_t half = 0;

    if (type == ncclFloat64) {
        memcpy(at, &value, 8);
    } else if (type == ncclFloat32) {
        memcpy(at, &single, 4);
    } else {
        half = type == ncclFloat16 ? float16_of_float32(single) : bfloat16_of_float32(single);
        memcpy(at, &half, 2);
    }
}

static double rounded(ncclDataType_t type, double value)
{
    char at[8];

    store(type, at, value);
    return load(type, at);
}

static void
sum_one(struct operation *const *come, char *const *from, int ranks, uint64_t offset, char *to)
{
    const ncclDataType_t type = come[0]->type;
    const uint64_t bytes = bytes_of(type);
    uint64_t integer = 0;
    double real = 0;

    for (int rank = 0; rank < ranks; rank++) {
        const char *at = from[rank] + offset;
        if (is_float(type)) {
            double value = load(type, at);
            if (come[rank]->scales)
                value = rounded(type, value * rounded(type, come[rank]->scalar));
            real = rank == 0 ? value : rounded(type, real + value);
        } else {
            integer += load_integer(at, bytes);
        }
    }
    if (is_float(type))
        store(type, to, real);
    else
        memcpy(to, &integer, bytes);
}

static void check_alike(struct operation *const *come, int ranks)
{
    for (int rank = 1; rank < ranks; rank++)
        if (come[rank]->kind != come[0]->kind || come[rank]->count != come[0]->count ||
            come[rank]->type != come[0]->type || come[rank]->root != come[0]->root)
            standin_object("rank %d makes another call than rank 0, which NCCL hangs of", rank);
}

static bool gets(const struct operation *operation, int rank)
{
    return operation->kind != REDUCE || rank == operation->root;
}

bool operation_spoil(const struct operation *operation)
{
    const uint64_t bytes = operation->count * bytes_of(operation->type);
    char *to = gets(operation, operation->comm->rank) ? standin_memory(operation->to, bytes) : NULL;

    if (to != NULL)
        memset(to, GARBAGE, bytes);
    return to != NULL || !gets(operation, operation->comm->rank);
}

bool operation_compute(struct operation *const *come, int ranks)
{
    const uint64_t each = bytes_of(come[0]->type), bytes = come[0]->count * each;
    char *from[RANKS_MAX] = {NULL}, *to[RANKS_MAX] = {NULL};
    char *result = malloc(bytes + 1);

    check_alike(come, ranks);
    for (int rank = 0; rank < ranks; rank++) {
        const bool gives = come[rank]->kind != BROADCAST || rank == come[rank]->root;
        if (gives)
            from[rank] = standin_memory(come[rank]->from, bytes);
        if (gets(come[rank], rank))
            to[rank] = standin_memory(come[rank]->to, bytes);
        if ((gives && from[rank] == NULL) || (gets(come[rank], rank) && to[rank] == NULL)) {
            free(result);
            return false;
        }
    }
    if (come[0]->kind == BROADCAST)
        memcpy(result, from[come[0]->root], bytes);
    else
        for (uint64_t offset = 0; offset < bytes; offset += each)
            sum_one(come, from, ranks, offset, result + offset);
    for (int rank = 0; rank < ranks; rank++)
        if (to[rank] != NULL)
            memcpy(to[rank], result, bytes);
    free(result);
    return true;
}
