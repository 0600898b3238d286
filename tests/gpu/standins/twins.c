/* SPDX-License-Identifier: Apache-2.0 */
/* twins.c -- each kernel of worker/cuda/kernels.h on the CPU, by its name: the library's own loops.
 */
#include <string.h>

#include "elements.h"
#include "kernel_arguments.h"
#include "standin.h"
#include "update.h"

#define AT_ONCE 1024u

/* The pointers are the host's. */
struct arrays {
    void *to;
    const void *from;
    uint64_t count;
    double by;
};

struct twin {
    const char *name;
    void (*loop)(enum sumac_dtype dtype, const struct arrays *arrays);
    enum sumac_dtype dtype;
    uint32_t to_bytes, from_bytes; /* of an element */
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void widen_int(enum sumac_dtype dtype, const struct arrays *arrays)
{
    (void)dtype;
    for (uint64_t i = 0; i < arrays->count; i++)
        ((uint32_t *)arrays->to)[i] = ((const uint16_t *)arrays->from)[i];
}

static void narrow_int(enum sumac_dtype dtype, const struct arrays *arrays)
{
    (void)dtype;
    for (uint64_t i = 0; i < arrays->count; i++)
        ((uint16_t *)arrays->to)[i] = (uint16_t)((const uint32_t *)arrays->from)[i];
}

static void widen(enum sumac_dtype dtype, const struct arrays *arrays)
{
    arithmetic_of(dtype)->widen(arrays->from, arrays->to, arrays->count);
    arithmetic_of(SUMAC_FLOAT32)->scale(arrays->to, arrays->by, arrays->count);
}

static void narrow(enum sumac_dtype dtype, const struct arrays *arrays)
{
    float some[AT_ONCE];

    for (uint64_t i = 0, count; i < arrays->count; i += count) {
        count = least(AT_ONCE, arrays->count - i);
        memcpy(some, (const float *)arrays->from + i, count * sizeof *some);
        arithmetic_of(SUMAC_FLOAT32)->divide(some, arrays->by, count);
        arithmetic_of(dtype)->narrow(some, (uint16_t *)arrays->to + i, count);
    }
}

static void scale(enum sumac_dtype dtype, const struct arrays *arrays)
{
    memmove(arrays->to, arrays->from, arrays->count * sumac_dtype_bytes(dtype));
    arithmetic_of(dtype)->scale(arrays->to, arrays->by, arrays->count);
}

static void scale_half(enum sumac_dtype dtype, const struct arrays *arrays)
{
    float some[AT_ONCE];

    for (uint64_t i = 0, count; i < arrays->count; i += count) {
        count = least(AT_ONCE, arrays->count - i);
        arithmetic_of(dtype)->widen((const uint16_t *)arrays->from + i, some, count);
        arithmetic_of(SUMAC_FLOAT32)->scale(some, arrays->by, count);
        arithmetic_of(dtype)->narrow(some, (uint16_t *)arrays->to + i, count);
    }
}

static void accumulate(enum sumac_dtype dtype, const struct arrays *arrays)
{
    arithmetic_of(dtype)->add_scaled(arrays->to, arrays->from, arrays->by, arrays->count);
}

static void accumulate_half(enum sumac_dtype dtype, const struct arrays *arrays)
{
    float some[AT_ONCE];

    for (uint64_t i = 0, count; i < arrays->count; i += count) {
        count = least(AT_ONCE, arrays->count - i);
        arithmetic_of(dtype)->widen((const uint16_t *)arrays->from + i, some, count);
        arithmetic_of(SUMAC_FLOAT32)->add_scaled((float *)arrays->to + i, some, arrays->by, count);
    }
}

/* Whoever finds one that is not writes a 1. */
static void check_finite(enum sumac_dtype dtype, const struct arrays *arrays)
{
    if (!update_all_finite(dtype, arrays->from, arrays->count * sumac_dtype_bytes(dtype)))
        *(uint32_t *)arrays->to = 1;
}

static const struct twin twins[] = {
    {"widen_int16", widen_int, SUMAC_INT16, 4, 2},
    {"narrow_int16", narrow_int, SUMAC_INT16, 2, 4},
    {"widen_float16", widen, SUMAC_FLOAT16, 4, 2},
    {"narrow_float16", narrow, SUMAC_FLOAT16, 2, 4},
    {"widen_bfloat16", widen, SUMAC_BFLOAT16, 4, 2},
    {"narrow_bfloat16", narrow, SUMAC_BFLOAT16, 2, 4},
    {"scale_float16", scale_half, SUMAC_FLOAT16, 2, 2},
    {"scale_bfloat16", scale_half, SUMAC_BFLOAT16, 2, 2},
    {"scale_float32", scale, SUMAC_FLOAT32, 4, 4},
    {"scale_float64", scale, SUMAC_FLOAT64, 8, 8},
    {"accumulate_float16", accumulate_half, SUMAC_FLOAT16, 4, 2},
    {"accumulate_bfloat16", accumulate_half, SUMAC_BFLOAT16, 4, 2},
    {"accumulate_float32", accumulate, SUMAC_FLOAT32, 4, 4},
    {"accumulate_float64", accumulate, SUMAC_FLOAT64, 8, 8},
    {"finite_float16", check_finite, SUMAC_FLOAT16, 0, 2},
    {"finite_bfloat16", check_finite, SUMAC_BFLOAT16, 0, 2},
    {"finite_float32", check_finite, SUMAC_FLOAT32, 0, 4},
    {"finite_float64", check_finite, SUMAC_FLOAT64, 0, 8},
};

static CUresult run(const struct CUfunc_st *function, const void *argument)
{
    const struct cuda_kernel_arguments *given = argument;
    const struct twin *twin = function->twin;
    const uint64_t to_bytes =
        twin->to_bytes == 0 ? sizeof(uint32_t) : given->count * twin->to_bytes;
    const struct arrays arrays = {
        .to = standin_array(twin->name, given->to, to_bytes),
        .from = standin_array(twin->name, given->from, given->count * twin->from_bytes),
        .count = given->count,
        .by = given->by};

    if (arrays.to == NULL || arrays.from == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    twin->loop(twin->dtype, &arrays);
    return CUDA_SUCCESS;
}

bool standin_twin_find(const char *name, struct CUfunc_st *function)
{
    for (size_t i = 0; i < sizeof twins / sizeof twins[0]; i++)
        if (strcmp(twins[i].name, name) == 0) {
            *function = (struct CUfunc_st){
                .run = run,
                .argument_bytes = sizeof(struct cuda_kernel_arguments),
                .twin = &twins[i]};
            return true;
        }
    return false;
}
