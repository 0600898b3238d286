/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c -- `bench/gpu_nccl [--rounds N] [--bytes-max N]`: how near an all_reduce through Sumac
 * comes to NCCL called directly.
 *
 * A group over all GPUs (worker/device_group.h) sums float32; beside it, in the same round and in
 * the same streams, NCCL does, with communicators of its own, all ranks' calls in one group of
 * NCCL's. A time is the host's, from the call until the streams are empty; figures are the medians
 * of the rounds. Bus GB/s, as nccl-tests have it, is bytes · 2(n − 1)/n a second of n GPUs, and
 * does not depend on how many there are; the ratio is that of ours to NCCL's. What either leaves on
 * each GPU is looked at, once for each size. With one GPU there is nothing to measure: that is
 * said, and 77 the exit code.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_group.h"
#include "cuda_device.h"
#include "nccl_library.h"
#include "replicas.h"
#include "timing.h"

#define ROUNDS_MAX 1001u
#define SKIPPED 77

struct bench {
    struct replicas replicas;
    struct device_group *group;
    ncclComm_t *comms; /* (replicas) */
    struct sumac_buffer **from, **to;
    const void **from_at;
    void **to_at;
    uint64_t *elements; /* (replicas), each */
    struct sumac_buffer *here;
};

static const struct cuda_driver *driver;
static const struct nccl_library *library;

static void must(enum sumac_status status, const char *what)
{
    if (status == SUMAC_OK)
        return;
    fprintf(stderr, "bench/gpu_nccl: %s: %s\n", what, sumac_status_name(status));
    exit(1);
}

static void must_run(CUresult result, const char *what) { must(cuda_status(result), what); }

static void must_begin(ncclResult_t result, const char *what)
{
    if (result == ncclSuccess || result == ncclInProgress)
        return;
    fprintf(stderr, "bench/gpu_nccl: %s: %s\n", what, library->ncclGetErrorString(result));
    exit(1);
}

/* ---- NCCL as it is */

static CUstream stream_of(const struct bench *bench, uint32_t rank)
{
    return ((struct cuda_queue *)bench->replicas.queues[rank])->stream;
}

static void enter(const struct bench *bench, uint32_t rank)
{
    const struct cuda_device *device = (const struct cuda_device *)bench->replicas.devices[rank];

    must_run(driver->cuCtxPushCurrent(device->context), "the context");
}

static void leave(void)
{
    CUcontext popped = NULL;

    (void)driver->cuCtxPopCurrent(&popped);
}

/* What was asked for has begun. */
static void await_begin(const struct bench *bench)
{
    for (uint32_t i = 0; i < bench->replicas.count; i++) {
        ncclResult_t state = ncclInProgress;
        while (state == ncclInProgress) {
            must_begin(library->ncclCommGetAsyncError(bench->comms[i], &state), "a communicator");
            if (state == ncclInProgress)
                (void)sched_yield();
        }
        must_begin(state, "a communicator");
    }
}

static void open_communicators(struct bench *bench)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    config.blocking = 0;
    must_begin(library->ncclGetUniqueId(&id), "an id");
    must_begin(library->ncclGroupStart(), "a group");
    for (uint32_t i = 0; i < bench->replicas.count; i++) {
        enter(bench, i);
        must_begin(
            library->ncclCommInitRankConfig(
                &bench->comms[i], (int)bench->replicas.count, id, (int)i, &config),
            "a communicator");
        leave();
    }
    must_begin(library->ncclGroupEnd(), "a group");
    await_begin(bench);
}

/* ---- what is timed */

typedef void deed(struct bench *bench);

static void by_sumac(struct bench *bench)
{
    const struct device_group_values values = {
        .dtype = SUMAC_FLOAT32,
        .from = bench->from_at,
        .to = bench->to_at,
        .elements = bench->elements};
    struct sumac_error error;

    must(
        device_group_add(bench->group, GROUP_ALL_REDUCE, SUMAC_REDUCE_SUM, 0, &values, &error),
        "an all_reduce");
    device_group_start(bench->group);
    must(device_group_wait(bench->group, DEVICE_GROUP_NO_LIMIT, &error), "an all_reduce");
}

static void by_nccl(struct bench *bench)
{
    must_begin(library->ncclGroupStart(), "a group");
    for (uint32_t i = 0; i < bench->replicas.count; i++) {
        enter(bench, i);
        must_begin(
            library->ncclAllReduce(
                bench->from_at[i], bench->to_at[i], bench->elements[i], ncclFloat32, ncclSum,
                bench->comms[i], (cudaStream_t)stream_of(bench, i)),
            "an all_reduce");
        leave();
    }
    must_begin(library->ncclGroupEnd(), "a group");
    await_begin(bench);
    for (uint32_t i = 0; i < bench->replicas.count; i++) {
        enter(bench, i);
        must_run(driver->cuStreamSynchronize(stream_of(bench, i)), "an all_reduce");
        leave();
    }
}

/* ---- the data: whole numbers, whose sums are exact in any order */

static float number_of(uint64_t element, uint32_t rank) { return (float)(element % 13 + rank); }

static void copy(
    struct bench *bench, uint32_t rank, struct sumac_buffer *to, struct sumac_buffer *from,
    uint64_t bytes)
{
    const struct sumac_copy whole = {.to = to, .from = from, .bytes = bytes};

    device_copy(bench->replicas.queues[rank], &whole);
    must(device_wait(bench->replicas.queues[rank]), "a copy");
}

static void fill(struct bench *bench, uint64_t bytes)
{
    float *const here = sumac_buffer_data(bench->here);

    for (uint32_t rank = 0; rank < bench->replicas.count; rank++) {
        for (uint64_t i = 0; i < bytes / sizeof *here; i++)
            here[i] = number_of(i, rank);
        copy(bench, rank, bench->from[rank], bench->here, bytes);
        bench->elements[rank] = bytes / sizeof *here;
    }
}

/* Do it once, not counted, into memory that has something else. */
static void check(struct bench *bench, deed *what, uint64_t bytes, const char *who)
{
    float *const here = sumac_buffer_data(bench->here);
    const uint32_t count = bench->replicas.count;

    memset(here, 0xff, bytes);
    for (uint32_t rank = 0; rank < count; rank++)
        copy(bench, rank, bench->to[rank], bench->here, bytes);
    what(bench);
    for (uint32_t rank = 0; rank < count; rank++) {
        copy(bench, rank, bench->here, bench->to[rank], bytes);
        for (uint64_t i = 0; i < bytes / sizeof *here; i++) {
            float sum = 0;
            for (uint32_t j = 0; j < count; j++)
                sum += number_of(i, j);
            if (here[i] < sum || here[i] > sum || here[i] != here[i]) {
                fprintf(
                    stderr, "bench/gpu_nccl: by %s element %" PRIu64 " of GPU:%u is %g, not %g\n",
                    who, i, rank, (double)here[i], (double)sum);
                exit(1);
            }
        }
    }
}

/* ---- measured */

static double seconds(struct bench *bench, deed *what)
{
    const double started = now_s();

    what(bench);
    return now_s() - started;
}

static void measure(struct bench *bench, uint64_t bytes, uint32_t rounds)
{
    static double our_s[ROUNDS_MAX], their_s[ROUNDS_MAX];
    const double n = (double)bench->replicas.count;
    const double bus_gigabytes = (double)bytes * 2 * (n - 1) / n * 1e-9;

    fill(bench, bytes);
    check(bench, by_sumac, bytes, "Sumac");
    check(bench, by_nccl, bytes, "NCCL");
    for (uint32_t i = 0; i < rounds; i++) {
        our_s[i] = seconds(bench, by_sumac);
        their_s[i] = seconds(bench, by_nccl);
    }
    const double ours = median(our_s, rounds), theirs = median(their_s, rounds);
    printf(
        "all_reduce %10" PRIu64 " bytes  Sumac %9.1f us %7.2f GB/s  NCCL %9.1f us %7.2f GB/s  "
        "%+.1f us  ratio %.3f\n",
        bytes, ours * 1e6, bus_gigabytes / ours, theirs * 1e6, bus_gigabytes / theirs,
        (ours - theirs) * 1e6, theirs / ours);
}

/* ---- begun and ended */

static void *array(size_t count, size_t each)
{
    void *const made = calloc(count, each);

    if (made == NULL)
        must(SUMAC_RESOURCE_EXHAUSTED, "memory");
    return made;
}

static void begin(struct bench *bench, uint32_t count, uint64_t bytes)
{
    const struct devices devices = devices_first(device_kind("GPU"), count);
    struct sumac_error error = {.status = SUMAC_OK};

    if (replicas_open(&devices, &bench->replicas, &error) != SUMAC_OK ||
        device_group_open(bench->replicas.queues, count, 1, &bench->group, &error) != SUMAC_OK ||
        nccl_library_open(&library, &error) != SUMAC_OK) {
        fprintf(stderr, "bench/gpu_nccl: %s\n", error.text);
        exit(2);
    }
    bench->comms = array(count, sizeof(ncclComm_t));
    bench->from = array(count, sizeof(struct sumac_buffer *));
    bench->to = array(count, sizeof(struct sumac_buffer *));
    bench->from_at = array(count, sizeof(void *));
    bench->to_at = array(count, sizeof(void *));
    bench->elements = array(count, sizeof(uint64_t));
    must(sumac_buffer_create(bytes, &bench->here), "memory");
    for (uint32_t i = 0; i < count; i++) {
        struct device *device = bench->replicas.devices[i];
        must(device_buffer_create(device, bytes, &bench->from[i], NULL), "memory of a GPU");
        must(device_buffer_create(device, bytes, &bench->to[i], NULL), "memory of a GPU");
        bench->from_at[i] = sumac_buffer_data(bench->from[i]);
        bench->to_at[i] = sumac_buffer_data(bench->to[i]);
    }
    open_communicators(bench);
}

static void end(struct bench *bench)
{
    for (uint32_t i = 0; i < bench->replicas.count; i++)
        (void)library->ncclCommAbort(bench->comms[i]); /* nothing is under way */
    device_group_close(bench->group);
    replicas_close_queues(&bench->replicas);
    for (uint32_t i = 0; i < bench->replicas.count; i++) {
        sumac_buffer_unref(bench->from[i]);
        sumac_buffer_unref(bench->to[i]);
    }
    sumac_buffer_unref(bench->here);
    replicas_close(&bench->replicas);
    free(bench->comms);
    free(bench->from);
    free(bench->to);
    free(bench->from_at);
    free(bench->to_at);
    free(bench->elements);
}

/* False: that is no way to call it. */
static bool read_options(int argc, char **argv, uint64_t *rounds, uint64_t *bytes_max)
{
    for (int i = 1; i < argc; i += 2) {
        uint64_t *const number = strcmp(argv[i], "--rounds") == 0      ? rounds
                                 : strcmp(argv[i], "--bytes-max") == 0 ? bytes_max
                                                                       : NULL;
        if (number == NULL || i + 1 == argc)
            return false;
        *number = strtoull(argv[i + 1], NULL, 10);
    }
    return *rounds >= 1 && *rounds <= ROUNDS_MAX;
}

int main(int argc, char **argv)
{
    static const uint64_t sizes[] = {4096, 65536, 1 << 20, 16 << 20, 256 << 20};
    uint64_t rounds = 101, bytes_max = 256 << 20;
    struct sumac_error error = {.status = SUMAC_OK};
    struct bench bench = {.group = NULL};

    if (!read_options(argc, argv, &rounds, &bytes_max)) {
        fprintf(
            stderr, "usage: gpu_nccl [--rounds N] [--bytes-max N], at most %u rounds\n",
            ROUNDS_MAX);
        return 2;
    }
    if (cuda_driver_open(&driver, &error) != SUMAC_OK) {
        fprintf(stderr, "bench/gpu_nccl: %s\n", error.text);
        return 2;
    }
    if (driver->devices < 2) {
        printf("skipped: bench/gpu_nccl: an all_reduce takes two GPUs, and there is one\n");
        return SKIPPED;
    }
    begin(&bench, driver->devices, bytes_max);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && sizes[i] <= bytes_max; i++)
        measure(&bench, sizes[i], (uint32_t)rounds);
    end(&bench);
    return 0;
}
