/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.cuh -- how kernels go through arrays: by tiles of a few neighbouring elements, which a
 * thread has in registers.
 *
 *     each array   |·head·|   tile   |   tile   |   tile   | …   |·tail·|
 *
 * A tile is read and written in pieces of up to 16 bytes, which have to be aligned. The first tile
 * begins where they are, in all arrays at once; the elements before it, and behind the last one,
 * are tiles of one element. So are all of arrays that are nowhere aligned at once. Neighbouring
 * threads have neighbouring tiles. Several tiles of a thread are read before the first one is
 * written, so that enough of memory is asked for at a time.
 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#define LEAF __device__ __forceinline__

template <int BYTES> struct piece;
template <> struct piece<2> {
    typedef unsigned short type;
};
template <> struct piece<4> {
    typedef unsigned type;
};
template <> struct piece<8> {
    typedef uint2 type;
};
template <> struct piece<16> {
    typedef uint4 type;
};

/* Of a tile of so many elements of a type. */
template <class ELEMENT, int WIDTH> struct pieces {
    static constexpr int bytes = WIDTH * sizeof(ELEMENT) < 16 ? WIDTH * (int)sizeof(ELEMENT) : 16;
    static constexpr int elements = bytes / (int)sizeof(ELEMENT);
    typedef typename piece<bytes>::type type;
};

template <class ELEMENT, int WIDTH> LEAF void take(ELEMENT (&tile)[WIDTH], const ELEMENT *from)
{
    typedef pieces<ELEMENT, WIDTH> in;
#pragma unroll
    for (int i = 0; i < WIDTH; i += in::elements) {
        const typename in::type bits = *reinterpret_cast<const typename in::type *>(from + i);
        memcpy(&tile[i], &bits, sizeof bits);
    }
}

template <class ELEMENT, int WIDTH> LEAF void put(ELEMENT *to, const ELEMENT (&tile)[WIDTH])
{
    typedef pieces<ELEMENT, WIDTH> in;
#pragma unroll
    for (int i = 0; i < WIDTH; i += in::elements) {
        typename in::type bits;
        memcpy(&bits, &tile[i], sizeof bits);
        __stwb(reinterpret_cast<typename in::type *>(to + i), bits); /* never cut in pieces */
    }
}

/* Elements that precede the first whole piece of the array. */
template <int WIDTH, class ELEMENT> LEAF uint64_t elements_before(const ELEMENT *array)
{
    return (0 - reinterpret_cast<uint64_t>(array)) % pieces<ELEMENT, WIDTH>::bytes /
           sizeof(ELEMENT);
}

template <int WIDTH, class ELEMENT> LEAF bool is_aligned(const ELEMENT *array)
{
    return reinterpret_cast<uint64_t>(array) % pieces<ELEMENT, WIDTH>::bytes == 0;
}

/* Each thread's tiles. `work` has as member functions
 *
 *     uint64_t head<WIDTH>()            elements before the first tile; UINT64_MAX: there is none
 *     void run<WIDTH, TILES>(at, step)  the tiles that begin with elements at, at + step, …
 */
template <int WIDTH, int TILES, class WORK> LEAF void each_tile(uint64_t count, WORK &work)
{
    const uint64_t threads = (uint64_t)gridDim.x * blockDim.x;
    const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t head = work.template head<WIDTH>();
    const uint64_t tiles = head > count ? 0 : (count - head) / WIDTH;
    const uint64_t alone = count - tiles * WIDTH;
    uint64_t i = thread;

    for (; TILES > 1 && i + (TILES - 1) * threads < tiles; i += TILES * threads)
        work.template run<WIDTH, TILES>(head + i * WIDTH, threads * WIDTH);
    for (; i < tiles; i += threads)
        work.template run<WIDTH, 1>(head + i * WIDTH, 0);
    i = thread;
    for (; TILES > 1 && tiles == 0 && i + (TILES - 1) * threads < alone; i += TILES * threads)
        work.template run<1, TILES>(i, threads);
    for (; i < alone; i += threads)
        work.template run<1, 1>(i < head ? i : i + tiles * WIDTH, 0);
}

/* The type that elements are computed in, from memory and back, rounded to the nearest. */
LEAF float wide(float value) { return value; }
LEAF double wide(double value) { return value; }
LEAF float wide(__half value) { return __half2float(value); }
LEAF float wide(__nv_bfloat16 value) { return __bfloat162float(value); }
LEAF void narrow(float &to, float value) { to = value; }
LEAF void narrow(double &to, double value) { to = value; }
LEAF void narrow(__half &to, float value) { to = __float2half_rn(value); }
LEAF void narrow(__nv_bfloat16 &to, float value) { to = __float2bfloat16_rn(value); }
