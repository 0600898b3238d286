/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.cu -- what GPUs compute for the library itself of one array, or of two.
 * worker/elements.c and lib/update have the same in C, to the bit: a product and a sum are not
 * fused here, either.
 *
 * Each has one parameter (kernel_arguments.h). They are compiled to one image for several GPUs,
 * which the library has in it; no CUDA runtime is linked.
 */
#include "kernel_arguments.h"
#include "tiles.cuh"

/* to = rule(from), or rule(from, what `to` has). `to` may be `from`. */
template <class TO, class FROM, class RULE> struct from_one {
    TO *to;
    const FROM *from;
    RULE rule;

    template <int WIDTH> LEAF uint64_t head() const
    {
        const uint64_t before = elements_before<WIDTH>(to);
        return is_aligned<WIDTH>(from + before) && is_aligned<WIDTH>(to + before) ? before
                                                                                  : UINT64_MAX;
    }

    template <int WIDTH, int TILES> LEAF void run(uint64_t at, uint64_t step) const
    {
        FROM read[TILES][WIDTH];
        TO made[TILES][WIDTH];
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            take(read[tile], from + at + tile * step);
            if (RULE::adds)
                take(made[tile], to + at + tile * step);
        }
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
#pragma unroll
            for (int i = 0; i < WIDTH; i++)
                rule.make(made[tile][i], read[tile][i]);
            put(to + at + tile * step, made[tile]);
        }
    }
};

template <class TO, class FROM, int WIDTH, int TILES, class RULE>
LEAF void run(const cuda_kernel_arguments &given, const RULE &rule)
{
    const from_one<TO, FROM, RULE> work = {
        reinterpret_cast<TO *>(given.to), reinterpret_cast<const FROM *>(given.from), rule};

    each_tile<WIDTH, TILES>(given.count, work);
}

#define KERNEL(name)                                                                               \
    extern "C" __global__ void __launch_bounds__(CUDA_KERNEL_THREADS)                              \
        sumac_##name(const __grid_constant__ cuda_kernel_arguments given)

/* ---- casts, with a product or a quotient */

/* Integers wrap: what is above the low half of a sum is cut off again. */
struct cut {
    static constexpr bool adds = false;
    template <class TO, class FROM> LEAF void make(TO &to, FROM from) const { to = (TO)from; }
};
KERNEL(widen_int16) { run<uint32_t, uint16_t, 4, 4>(given, cut{}); }
KERNEL(narrow_int16) { run<uint16_t, uint32_t, 4, 4>(given, cut{}); }

template <class FLOAT> struct product {
    static constexpr bool adds = false;
    FLOAT by;
    template <class TO, class FROM> LEAF void make(TO &to, FROM from) const
    {
        narrow(to, wide(from) * by);
    }
};
template <class FLOAT> struct quotient {
    static constexpr bool adds = false;
    FLOAT by;
    template <class TO, class FROM> LEAF void make(TO &to, FROM from) const
    {
        narrow(to, wide(from) / by);
    }
};
KERNEL(widen_float16) { run<float, __half, 4, 4>(given, product<float>{(float)given.by}); }
KERNEL(widen_bfloat16) { run<float, __nv_bfloat16, 4, 4>(given, product<float>{(float)given.by}); }
KERNEL(narrow_float16) { run<__half, float, 4, 4>(given, quotient<float>{(float)given.by}); }
KERNEL(narrow_bfloat16)
{
    run<__nv_bfloat16, float, 4, 4>(given, quotient<float>{(float)given.by});
}

/* ---- scale: to = from · by */

KERNEL(scale_float16) { run<__half, __half, 8, 2>(given, product<float>{(float)given.by}); }
KERNEL(scale_bfloat16)
{
    run<__nv_bfloat16, __nv_bfloat16, 8, 2>(given, product<float>{(float)given.by});
}
KERNEL(scale_float32) { run<float, float, 4, 4>(given, product<float>{(float)given.by}); }
KERNEL(scale_float64) { run<double, double, 2, 4>(given, product<double>{given.by}); }

/* ---- weighted accumulate: to += by · from */

template <class FLOAT> struct addition {
    static constexpr bool adds = true;
    FLOAT by;
    template <class FROM> LEAF void make(FLOAT &to, FROM from) const { to += by * wide(from); }
};
KERNEL(accumulate_float16) { run<float, __half, 4, 2>(given, addition<float>{(float)given.by}); }
KERNEL(accumulate_bfloat16)
{
    run<float, __nv_bfloat16, 4, 2>(given, addition<float>{(float)given.by});
}
KERNEL(accumulate_float32) { run<float, float, 4, 2>(given, addition<float>{(float)given.by}); }
KERNEL(accumulate_float64) { run<double, double, 2, 2>(given, addition<double>{given.by}); }

/* ---- are all finite? One that is not has an exponent of ones only, and makes *to 1. */

template <class WORD> struct finite_check {
    const WORD *from;
    WORD exponent;
    bool found;

    template <int WIDTH> LEAF uint64_t head() const { return elements_before<WIDTH>(from); }

    template <int WIDTH, int TILES> LEAF void run(uint64_t at, uint64_t step)
    {
        WORD read[TILES][WIDTH];
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
            take(read[tile], from + at + tile * step);
#pragma unroll
        for (int tile = 0; tile < TILES; tile++)
#pragma unroll
            for (int i = 0; i < WIDTH; i++)
                found |= (read[tile][i] & exponent) == exponent;
    }
};

template <class WORD> LEAF void look(const cuda_kernel_arguments &given, WORD exponent)
{
    finite_check<WORD> work = {reinterpret_cast<const WORD *>(given.from), exponent, false};

    each_tile<16 / sizeof(WORD), 4>(given.count, work);
    if (work.found)
        *reinterpret_cast<uint32_t *>(given.to) = 1; /* whoever else writes it writes the same */
}
KERNEL(finite_float16) { look<uint16_t>(given, 0x7c00u); }
KERNEL(finite_bfloat16) { look<uint16_t>(given, 0x7f80u); }
KERNEL(finite_float32) { look<uint32_t>(given, 0x7f800000u); }
KERNEL(finite_float64) { look<uint64_t>(given, 0x7ff0000000000000u); }
