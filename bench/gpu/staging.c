/* SPDX-License-Identifier: Apache-2.0 */
/* staging.c -- `bench/gpu_staging [--rounds N]`: how near a worker's copies between the host and a
 * GPU come to one pinned copy of as many bytes.
 *
 * A worker's values and gradients, 25 variables of the same size, go through worker/transfers.c as
 * they do in a step, with its queues, events and parts. Beside them, in the same round, one
 * cuMemcpyAsync of all bytes. Each is timed by the host until nothing is under way; the ratio is of
 * bandwidths, the medians of the rounds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_device.h"
#include "timing.h"
#include "transfers.h"

#define VARIABLES 25u
#define ROUNDS_MAX 101u

struct bench {
    struct replicas replicas;
    struct tensors there, here;
    struct transfers transfers;
    CUstream stream;
    uint64_t bytes;
};

static const struct cuda_driver *driver;

static void must(enum sumac_status status, const char *what)
{
    if (status == SUMAC_OK)
        return;
    fprintf(stderr, "bench/gpu_staging: %s: %s\n", what, sumac_status_name(status));
    exit(1);
}

/* Side by side, as a worker has them. */
static struct tensors view(struct sumac_buffer *buffer, struct sumac_tensor *items)
{
    const uint64_t each = sumac_buffer_bytes(buffer) / VARIABLES;
    const struct sumac_shape shape = SUMAC_SHAPE(each / sizeof(float));

    for (uint32_t i = 0; i < VARIABLES; i++)
        must(sumac_tensor_view(buffer, i * each, SUMAC_FLOAT32, &shape, &items[i]), "a view");
    return (struct tensors){.buffer = buffer, .items = items, .count = VARIABLES};
}

static void begin(struct bench *bench, uint64_t bytes)
{
    static struct sumac_tensor items[2][VARIABLES];
    const struct devices devices = devices_first(device_kind("GPU"), 1);
    struct sumac_buffer *there = NULL, *here = NULL;
    struct sumac_error error = {0};

    if (replicas_open(&devices, &bench->replicas, &error) != SUMAC_OK) {
        fprintf(stderr, "bench/gpu_staging: %s\n", error.text);
        exit(2);
    }
    bench->bytes = bytes;
    must(
        device_buffer_create(bench->replicas.devices[0], bytes, &there, NULL),
        "memory of the device");
    must(
        device_host_buffer_create(bench->replicas.devices[0], bytes, &here, NULL), "pinned memory");
    for (uint64_t i = 0; i < bytes / sizeof(uint32_t); i++)
        ((uint32_t *)sumac_buffer_data(here))[i] = (uint32_t)(i * 2654435761u);
    bench->there = view(there, items[0]);
    bench->here = view(here, items[1]);
    must(
        transfers_open(
            &bench->replicas, &bench->here, TRANSFERS_PART_BYTES, &bench->transfers, &error),
        "the transfers");
    bench->stream = ((struct cuda_queue *)bench->replicas.queues[0])->stream;
}

static void end(struct bench *bench)
{
    transfers_close(&bench->transfers);
    replicas_close_queues(&bench->replicas);
    sumac_buffer_unref(bench->there.buffer);
    sumac_buffer_unref(bench->here.buffer);
    replicas_close(&bench->replicas);
}

/* ---- what is timed */

typedef void deed(struct bench *bench);

static void send(struct bench *bench)
{
    struct transfers_failure failure;

    transfers_send(&bench->transfers, 0, &bench->there, &bench->here);
    transfers_await(&bench->transfers, 0);
    must(transfers_join(&bench->transfers, DEVICE_NO_LIMIT, &failure), "values to the device");
}

static void fetch(struct bench *bench)
{
    struct transfers_failure failure;

    transfers_record_written(&bench->transfers);
    transfers_fetch(&bench->transfers, &bench->here, &bench->there);
    must(transfers_join(&bench->transfers, DEVICE_NO_LIMIT, &failure), "gradients to the host");
}

static void copy_raw(const struct bench *bench, struct sumac_buffer *to, struct sumac_buffer *from)
{
    struct cuda_device *device = (struct cuda_device *)bench->replicas.devices[0];
    CUcontext popped = NULL;

    must(cuda_status(driver->cuCtxPushCurrent(device->context)), "the context");
    must(
        cuda_status(driver->cuMemcpyAsync(
            (CUdeviceptr)(uintptr_t)sumac_buffer_data(to),
            (CUdeviceptr)(uintptr_t)sumac_buffer_data(from), bench->bytes, bench->stream)),
        "a copy");
    must(cuda_status(driver->cuStreamSynchronize(bench->stream)), "a copy");
    (void)driver->cuCtxPopCurrent(&popped);
}

static void send_raw(struct bench *bench)
{
    copy_raw(bench, bench->there.buffer, bench->here.buffer);
}

static void fetch_raw(struct bench *bench)
{
    copy_raw(bench, bench->here.buffer, bench->there.buffer);
}

static double seconds(struct bench *bench, deed *what)
{
    const double started = now_s();

    what(bench);
    return now_s() - started;
}

static void measure(struct bench *bench, const char *name, deed *ours, deed *raw, uint32_t rounds)
{
    double our_s[ROUNDS_MAX], raw_s[ROUNDS_MAX];

    ours(bench); /* not counted */
    raw(bench);
    for (uint32_t i = 0; i < rounds; i++) {
        our_s[i] = seconds(bench, ours);
        raw_s[i] = seconds(bench, raw);
    }
    const double mine = median(our_s, rounds), bare = median(raw_s, rounds);
    printf(
        "%-15s %11" PRIu64 " bytes  %7.1f GB/s  one copy %7.1f GB/s  ratio %.3f\n", name,
        bench->bytes, (double)bench->bytes / mine * 1e-9, (double)bench->bytes / bare * 1e-9,
        bare / mine);
}

int main(int argc, char **argv)
{
    static const uint64_t sizes[] = {1000000, 10000000, 100000000, 1000000000};
    const unsigned long rounds = argc == 3 ? strtoul(argv[2], NULL, 10) : 21;
    struct sumac_error error = {0};

    if ((argc != 1 && (argc != 3 || strcmp(argv[1], "--rounds") != 0)) || rounds < 1 ||
        rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: gpu_staging [--rounds N], at most %u\n", ROUNDS_MAX);
        return 2;
    }
    if (cuda_driver_open(&driver, &error) != SUMAC_OK) {
        fprintf(stderr, "bench/gpu_staging: %s\n", error.text);
        return 2;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct bench bench = {.bytes = 0};
        begin(&bench, sizes[i] / (VARIABLES * 64) * (VARIABLES * 64));
        measure(&bench, "host to device", send, send_raw, (uint32_t)rounds);
        measure(&bench, "device to host", fetch, fetch_raw, (uint32_t)rounds);
        end(&bench);
    }
    return 0;
}
