/* SPDX-License-Identifier: Apache-2.0 */
/* passes.c -- one pass over memory: so many arrays are read, and one is written. */
#include "passes.h"

#include <stddef.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The yardstick may use what the machine has. */
#if defined(__x86_64__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

CLONES static void
sum_2(float *restrict to, const float *restrict a, const float *restrict b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = a[i] + b[i];
}

CLONES static void
sum_4(float *restrict to, const float *const from[PASS_REPLICAS_MAX], size_t count)
{
    const float *restrict a = from[0], *restrict b = from[1];
    const float *restrict c = from[2], *restrict d = from[3];

    for (size_t i = 0; i < count; i++)
        to[i] = a[i] + b[i] + c[i] + d[i];
}

#ifdef __SSE2__
/* `count` is of 16 bytes. */
static void stream_sum_2(float *to, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i += 4)
        _mm_stream_ps(to + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
    _mm_sfence();
}

static void stream_sum_4(float *to, const float *const from[PASS_REPLICAS_MAX], size_t count)
{
    const float *a = from[0], *b = from[1], *c = from[2], *d = from[3];

    for (size_t i = 0; i < count; i += 4) {
        const __m128 sum = _mm_add_ps(
            _mm_add_ps(_mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)), _mm_loadu_ps(c + i)),
            _mm_loadu_ps(d + i));
        _mm_stream_ps(to + i, sum);
    }
    _mm_sfence();
}

static void stream_copy(float *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i += 4)
        _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
    _mm_sfence();
}
#else
#define stream_sum_2 sum_2
#define stream_sum_4 sum_4
static void stream_copy(float *to, const float *from, size_t count)
{
    memcpy(to, from, count * sizeof *to);
}
#endif

struct share {
    const struct pass *pass;
    uint32_t way, threads;
};

/* Elements first … beyond - 1 of so many are this thread's, each share whole cache lines. */
static void share_of(uint64_t elements, const struct share *share, uint32_t thread, uint64_t *range)
{
    const uint64_t lines = (elements + 15) / 16,
                   each = (lines + share->threads - 1) / share->threads;

    for (uint32_t i = 0; i < 2; i++) {
        range[i] = (thread + i) * each * 16;
        range[i] = range[i] < elements ? range[i] : elements;
    }
}

static void sum_share(void *context, uint32_t thread)
{
    const struct share *share = context;
    const struct pass *pass = share->pass;
    const float *from[PASS_REPLICAS_MAX];
    uint64_t range[2];

    share_of(pass->elements, share, thread, range);
    const size_t count = (size_t)(range[1] - range[0]);
    float *to = pass->to + range[0];
    for (uint32_t i = 0; i < pass->replicas; i++)
        from[i] = pass->from[i] + range[0];
    if (pass->replicas == 2)
        (share->way == PASS_STREAMED ? stream_sum_2 : sum_2)(to, from[0], from[1], count);
    else
        (share->way == PASS_STREAMED ? stream_sum_4 : sum_4)(to, from, count);
}

static void gather_share(void *context, uint32_t thread)
{
    const struct share *share = context;
    const struct pass *pass = share->pass;
    uint64_t range[2];

    share_of(pass->elements, share, thread, range);
    const size_t count = (size_t)(range[1] - range[0]);
    for (uint32_t i = 0; i < pass->replicas && count > 0; i++) {
        float *to = pass->to + i * pass->elements + range[0];
        if (share->way == PASS_STREAMED)
            stream_copy(to, pass->from[i] + range[0], count);
        else
            memcpy(to, pass->from[i] + range[0], count * sizeof *to);
    }
}

static void
run(const struct pass *pass, crew_work *work, uint32_t way, struct crew *crew, uint32_t threads)
{
    struct share share = {
        .pass = pass, .way = way, .threads = way == PASS_ONE_THREAD ? 1 : threads};

    if (way == PASS_ONE_THREAD)
        work(&share, 0);
    else
        crew_run(crew, work, &share);
}

void by_hand_sum(const struct pass *pass, uint32_t way, struct crew *crew, uint32_t threads)
{
    run(pass, sum_share, way, crew, threads);
}

void by_hand_gather(const struct pass *pass, uint32_t way, struct crew *crew, uint32_t threads)
{
    run(pass, gather_share, way, crew, threads);
}
