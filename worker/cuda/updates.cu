/* SPDX-License-Identifier: Apache-2.0 */
/* updates.cu -- the update functions on GPUs, for each float type: the loops that the CPU has, of
 * the same text (lib/update/loops_float.h), run on tiles that are a thread's registers.
 *
 *     value    ──widen──►  ┌──────┐
 *     gradient ──widen──►  │ tile │ ──the loop, where the tile is── ──narrow──► value
 *     slots    ─────────►  └──────┘                                 ──────────► slots
 *
 * Halves are computed in float32 and rounded once, and nothing is fused, as there: the bits are the
 * CPU's, but for the payload of a NaN. A kernel is called sumac_update_FUNCTION_TYPE.
 */
#include <assert.h>
#include <string.h>

#include "kernel_arguments.h"
#include "tiles.cuh"

#define POWER_LEAF static __device__ __noinline__
#include "power.h"

/* ---- the loops, as C++ of each float type */

#define restrict __restrict__
#define INDEPENDENT _Pragma("unroll")
#define IN_TURN _Pragma("unroll 4") /* all of a tile: nvcc unrolls half of it unless it is told */
#define LOOP(name) name##_loop

/* The CPU's struct update_slice, of arrays with a type. */
#define UPDATE_SLICE                                                                               \
    struct update_slice {                                                                          \
        size_t count;                                                                              \
        FLOAT *value_out;                                                                          \
        const FLOAT *value_in, *gradient;                                                          \
        FLOAT *slot_out[UPDATE_SLOTS_MAX];                                                         \
        const FLOAT *slot_in[UPDATE_SLOTS_MAX];                                                    \
        const double *scalar;                                                                      \
        bool flag;                                                                                 \
    };                                                                                             \
    LEAF void assign_loop(const struct update_slice *slice)                                        \
    {                                                                                              \
        memcpy(slice->value_out, slice->gradient, slice->count * sizeof(FLOAT));                   \
    }

#define ELEMENT FLOAT
#define FLOAT float
#define SQUARE_ROOT sqrtf
#define MAGNITUDE fabsf
namespace of_float
{
UPDATE_SLICE
#include "loops_float.h"
} // namespace of_float

#define FLOAT double
#define SQUARE_ROOT sqrt
#define MAGNITUDE fabs
namespace of_double
{
UPDATE_SLICE
#include "loops_float.h"
} // namespace of_double
#undef ELEMENT
#undef restrict

/* ---- one tile */

/* What a function does with its arrays: all that is read is written, but … */
enum use {
    EVERY,
    NO_VALUE,      /* … the value, which is not read */
    LAST_IF_FLAG,  /* … the last slot, which there is with the flag only */
    FIRST_IF_FLAG, /* … the first slot, which without the flag is as it was */
};

template <class NUMBER> struct slices;
template <> struct slices<float> {
    typedef of_float::update_slice type;
};
template <> struct slices<double> {
    typedef of_double::update_slice type;
};

template <class RULE, class ELEMENT> struct update {
    typedef decltype(wide(ELEMENT())) NUMBER;
    const cuda_update_arguments &given;

    template <class TYPE> static LEAF TYPE *array(uint64_t address)
    {
        return reinterpret_cast<TYPE *>(address);
    }

    LEAF bool has(int slot) const
    {
        return RULE::use != LAST_IF_FLAG || slot != RULE::slots - 1 || given.flag;
    }

    LEAF bool writes(int slot) const
    {
        return has(slot) && (RULE::use != FIRST_IF_FLAG || slot != 0 || given.flag ||
                             given.slot_out[0] != given.slot_in[0]);
    }

    template <int WIDTH> LEAF uint64_t head() const
    {
        const uint64_t before = elements_before<WIDTH>(array<ELEMENT>(given.value_out));
        bool aligned = is_aligned<WIDTH>(array<ELEMENT>(given.value_out) + before) &&
                       is_aligned<WIDTH>(array<ELEMENT>(given.value_in) + before);

        if (given.is_wide)
            aligned &= is_aligned<WIDTH>(array<NUMBER>(given.gradient) + before);
        else
            aligned &= is_aligned<WIDTH>(array<ELEMENT>(given.gradient) + before);
#pragma unroll
        for (int i = 0; i < RULE::slots; i++)
            aligned &= !has(i) || (is_aligned<WIDTH>(array<NUMBER>(given.slot_in[i]) + before) &&
                                   is_aligned<WIDTH>(array<NUMBER>(given.slot_out[i]) + before));
        return aligned ? before : UINT64_MAX;
    }

    template <int WIDTH> static LEAF void widen(NUMBER (&to)[WIDTH], const ELEMENT *from)
    {
        ELEMENT read[WIDTH];
        take(read, from);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            to[i] = wide(read[i]);
    }

    template <int WIDTH, int TILES> LEAF void run(uint64_t at, uint64_t step) const
    {
        NUMBER value[WIDTH], gradient[WIDTH], slot[RULE::slots + 1][WIDTH];
        typename slices<NUMBER>::type tile = {WIDTH, value, value,        gradient,
                                              {},    {},    given.scalar, given.flag != 0};

        static_assert(TILES == 1, "a thread has several arrays, and so enough to wait for");
        if (RULE::use != NO_VALUE)
            widen(value, array<ELEMENT>(given.value_in) + at);
        if (sizeof(ELEMENT) < sizeof(NUMBER) && given.is_wide)
            take(gradient, array<NUMBER>(given.gradient) + at);
        else
            widen(gradient, array<ELEMENT>(given.gradient) + at);
#pragma unroll
        for (int i = 0; i < RULE::slots; i++) {
            tile.slot_out[i] = slot[i];
            tile.slot_in[i] = slot[i];
            if (has(i))
                take(slot[i], array<NUMBER>(given.slot_in[i]) + at);
        }
        if (given.is_conditioned)
            condition(gradient, given.scale, given.clip);
        RULE::run(&tile);
        ELEMENT made[WIDTH];
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            narrow(made[i], value[i]);
        put(array<ELEMENT>(given.value_out) + at, made);
#pragma unroll
        for (int i = 0; i < RULE::slots; i++)
            if (writes(i))
                put(array<NUMBER>(given.slot_out[i]) + at, slot[i]);
    }

    template <int WIDTH>
    static LEAF void condition(float (&gradient)[WIDTH], double scale, double clip)
    {
        of_float::condition_loop(gradient, gradient, scale, clip, WIDTH);
    }

    template <int WIDTH>
    static LEAF void condition(double (&gradient)[WIDTH], double scale, double clip)
    {
        of_double::condition_loop(gradient, gradient, scale, clip, WIDTH);
    }
};

/* ---- the kernels */

/* 16 bytes of the value at a time; of a half type that has slots 8, and 16 of each slot. */
template <class RULE, class ELEMENT>
constexpr int width = sizeof(ELEMENT) == 2 && RULE::slots > 0 ? 4 : 16 / (int)sizeof(ELEMENT);

#define KERNEL(function, type, ELEMENT)                                                            \
    extern "C" __global__ void __launch_bounds__(CUDA_KERNEL_THREADS)                              \
        sumac_update_##function##_##type(const __grid_constant__ cuda_update_arguments given)      \
    {                                                                                              \
        const update<function##_rule, ELEMENT> work = {given};                                     \
        each_tile<width<function##_rule, ELEMENT>, 1>(given.count, work);                          \
    }
#define UPDATE(function, slot_count, how)                                                          \
    struct function##_rule {                                                                       \
        static constexpr int slots = slot_count;                                                   \
        static constexpr enum use use = how;                                                       \
        template <class TILE> static LEAF void run(const TILE *tile) { function##_loop(tile); }    \
    };                                                                                             \
    KERNEL(function, float16, __half)                                                              \
    KERNEL(function, bfloat16, __nv_bfloat16)                                                      \
    KERNEL(function, float32, float)                                                               \
    KERNEL(function, float64, double)

UPDATE(assign, 0, NO_VALUE)
UPDATE(assign_add, 0, EVERY)
UPDATE(assign_sub, 0, EVERY)
UPDATE(sgd, 0, EVERY)
UPDATE(momentum, 1, EVERY)
UPDATE(adam, 2, EVERY)
UPDATE(adagrad, 1, EVERY)
UPDATE(rmsprop, 3, LAST_IF_FLAG)
UPDATE(adamw, 2, EVERY)
UPDATE(ftrl, 2, EVERY)
UPDATE(nadam, 2, EVERY)
UPDATE(adamax, 2, EVERY)
UPDATE(adadelta, 2, EVERY)
UPDATE(lion, 1, EVERY)
UPDATE(yogi, 2, EVERY)
UPDATE(delayed_nesterov, 2, FIRST_IF_FLAG)
UPDATE(multiply, 0, EVERY)
UPDATE(divide, 0, EVERY)
UPDATE(min, 0, EVERY)
UPDATE(max, 0, EVERY)
