/* SPDX-License-Identifier: Apache-2.0 */
/* fused.c -- the update of a synchronous step of 4 × 16 MB with sgd, once its bytes are there:
 * slices of 256 KiB whose contributions lie in chunks of 1 MiB, as a ps has them, beside the loop
 * that one would write: θ −= η·(a + b + c + d), N + 2 streams over the same memory.
 */
#include <stdlib.h>
#include <string.h>

#include "sync.h"
#include "update.h"

#define SLICE_BYTES 262144u
#define CHUNK 1048576u
#define CHUNKS (SYNC_BYTES / CHUNK)

/* As the bytes of a push lie: in chunks, one behind the other. */
struct chunk {
    struct chunk *next;
    float values[CHUNK / sizeof(float)];
};

struct fused {
    float *value;
    struct chunk *first[SYNC_MEMBERS];
    struct update_sources sources;
    struct update_slice slice;
};

static const uint8_t *find(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    const struct fused *fused = context;
    const struct chunk *chunk = fused->first[source];

    (void)slice;
    for (; at >= CHUNK; at -= CHUNK)
        chunk = chunk->next;
    *together_bytes = CHUNK - at;
    return (const uint8_t *)chunk->values + at;
}

static void fill(struct fused *fused)
{
    for (unsigned m = 0; m < SYNC_MEMBERS; m++) {
        struct chunk **end = &fused->first[m];
        for (unsigned c = 0; c < CHUNKS; c++) {
            *end = calloc(1, sizeof **end);
            if (*end == NULL)
                die("no memory");
            for (size_t i = 0; i < CHUNK / sizeof(float); i++)
                (*end)->values[i] = (float)(m + 1) * 0.001f;
            end = &(*end)->next;
        }
    }
}

static void prepare(struct fused *fused)
{
    struct update_hyperparameters hyperparameters;
    const struct update_function *function = update_find(UPDATE_SGD);

    if (update_hyperparameters_read(function, NULL, NULL, &hyperparameters, NULL) != SUMAC_OK)
        die("sgd has defaults");
    fused->sources = (struct update_sources){.count = SYNC_MEMBERS, .find = find, .context = fused};
    fused->slice = (struct update_slice){
        .function = function,
        .dtype = SUMAC_FLOAT32,
        .count = SLICE_BYTES / sizeof(float),
        .sources = &fused->sources,
        .divisor = SYNC_MEMBERS};
    update_prepare(function, SUMAC_FLOAT32, &hyperparameters, 1, &fused->slice);
}

static void run_slices(const struct fused *fused)
{
    for (uint64_t byte = 0; byte < SYNC_BYTES; byte += SLICE_BYTES) {
        struct update_slice slice = fused->slice;
        slice.value_out = (uint8_t *)fused->value + byte;
        slice.value_in = slice.value_out;
        slice.source_at = byte;
        update_run(&slice);
    }
}

/* The yardstick may use what the loops may. */
#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
plain_loop(float *restrict value, const struct chunk *const from[SYNC_MEMBERS], float rate)
{
    const float *restrict a = from[0]->values, *restrict b = from[1]->values;
    const float *restrict c = from[2]->values, *restrict d = from[3]->values;

    _Static_assert(SYNC_MEMBERS == 4, "the loop has four");
    for (size_t i = 0; i < CHUNK / sizeof(float); i++)
        value[i] -= rate * (a[i] + b[i] + c[i] + d[i]);
}

static void run_plain(const struct fused *fused)
{
    const struct chunk *from[SYNC_MEMBERS];
    float *value = fused->value;

    memcpy(from, fused->first, sizeof from);
    for (unsigned c = 0; c < CHUNKS; c++) {
        plain_loop(value, from, 0.0025f);
        value += CHUNK / sizeof(float);
        for (unsigned m = 0; m < SYNC_MEMBERS; m++)
            from[m] = from[m]->next;
    }
}

void fused_measure(struct timing *plain, struct timing *step, unsigned rounds)
{
    static struct fused fused;

    fused.value = calloc(1, SYNC_BYTES);
    if (fused.value == NULL)
        die("no memory");
    fill(&fused);
    prepare(&fused);
    for (unsigned i = 0; i < rounds; i++) {
        timing_begin(plain);
        run_plain(&fused);
        timing_end(plain);
        timing_begin(step);
        run_slices(&fused);
        timing_end(step);
    }
    for (unsigned m = 0; m < SYNC_MEMBERS; m++) {
        for (struct chunk *chunk = fused.first[m], *next; chunk != NULL; chunk = next) {
            next = chunk->next;
            free(chunk);
        }
    }
    free(fused.value);
}
