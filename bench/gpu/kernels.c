/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c -- `bench/gpu_kernels [--only TEXT] [--mebi N] [--rounds N]`: how near kernels come to
 * the bandwidth of a copy within the device.
 *
 * Every kernel (with --only, whose name has that text) is launched some times in each round, then
 * copies of the same run of elements, 4 bytes each, by cuMemcpyAsync; a round's time is the host's,
 * until the stream is empty. Each launch has arrays of its own until the rotation comes to the
 * first again, which the device's cache has forgotten by then: an array has room for 16 bytes of
 * each element. GB/s is 1e9 bytes touched a second, which are what a formula reads and writes, as
 * bench/update counts them; the ratio is one of medians over the rounds. The data are random
 * numbers between 1/4 and 1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_device.h"
#include "half.h"
#include "kernels.h"
#include "timing.h"

#define ROOM 16u /* bytes of an array for each element */
#define CHUNK_BYTES ((size_t)16 << 20)
#define LAUNCHES 32u
#define ROUNDS_MAX 101u
#define LINES_MAX 128u

enum { VALUE, GRADIENT, SLOT, ARRAYS = SLOT + UPDATE_SLOTS_MAX };

struct line {
    char name[48];
    enum sumac_dtype to, from;  /* of what it reads and writes; of an update the value's */
    uint64_t bytes_per_element; /* touched */
    bool is_update;
    enum cuda_kernel kernel;
    const struct update_function *function;
    struct update_hyperparameters hyperparameters;
    double gigabytes_per_second, ratio;
};

struct bench {
    const struct cuda_driver *driver;
    struct device *device;
    struct cuda_kernels kernels;
    struct cuda_updates updates;
    CUstream stream;
    CUdeviceptr arrays[ARRAYS]; /* (ROOM · elements) bytes */
    uint64_t elements;
    uint32_t rounds;
    const char *only;
};

static struct line lines[LINES_MAX];
static uint32_t line_count;

static void must(const struct bench *bench, CUresult result, const char *what)
{
    char words[160];

    if (result == CUDA_SUCCESS)
        return;
    cuda_words(bench->driver, result, words, sizeof words);
    fprintf(stderr, "bench/gpu_kernels: %s: %s\n", what, words);
    exit(1);
}

/* ---- the data */

static void put_number(enum sumac_dtype dtype, uint8_t *chunk, size_t i, double number)
{
    const float single = (float)number;
    const uint16_t half =
        dtype == SUMAC_BFLOAT16 ? bfloat16_of_float32(single) : float16_of_float32(single);

    if (dtype == SUMAC_FLOAT64)
        memcpy(chunk + i * sizeof number, &number, sizeof number);
    else if (dtype == SUMAC_FLOAT32 || dtype == SUMAC_UINT32)
        memcpy(chunk + i * sizeof single, &single, sizeof single);
    else
        memcpy(chunk + i * sizeof half, &half, sizeof half);
}

/* (CHUNK_BYTES) of the type: the same numbers for all. Lends  it, for good. */
static const uint8_t *chunk_of(enum sumac_dtype dtype)
{
    static uint8_t *chunks[DTYPES_MAX + 1];
    uint64_t random = 88172645463325252u;

    if (chunks[dtype] != NULL)
        return chunks[dtype];
    chunks[dtype] = malloc(CHUNK_BYTES);
    if (chunks[dtype] == NULL)
        abort();
    for (size_t i = 0; i < CHUNK_BYTES / sumac_dtype_bytes(dtype); i++) {
        random ^= random << 13; /* xorshift64 (Marsaglia 2003) */
        random ^= random >> 7;
        random ^= random << 17;
        put_number(dtype, chunks[dtype], i, 0.25 + 0.75 * (double)(random >> 11) * 0x1p-53);
    }
    return chunks[dtype];
}

/* The array has a chunk of that type, again and again. */
static void fill(const struct bench *bench, int array, enum sumac_dtype dtype)
{
    const CUdeviceptr to = bench->arrays[array], from = (CUdeviceptr)(uintptr_t)chunk_of(dtype);
    const uint64_t bytes = bench->elements * ROOM;
    const CUstream stream = bench->stream;
    CUresult result = bench->driver->cuMemcpyAsync(to, from, CHUNK_BYTES, stream);

    for (uint64_t done = CHUNK_BYTES; result == CUDA_SUCCESS && done < bytes; done *= 2)
        result = bench->driver->cuMemcpyAsync(
            to + done, to, done < bytes - done ? done : bytes - done, stream);
    must(bench, result, "a copy to the device");
}

/* Where the n-th launch has its elements of an array. */
static uint64_t place(const struct bench *bench, int array, uint32_t bytes, uint32_t launch)
{
    return bench->arrays[array] + launch % (ROOM / bytes) * bench->elements * bytes;
}

/* ---- one launch */

static void launch_update(const struct bench *bench, const struct line *line, uint32_t n)
{
    const uint32_t bytes = sumac_dtype_bytes(line->to);
    const uint32_t slot_bytes = sumac_dtype_bytes(update_slot_dtype(line->to));
    struct device_update update = {
        .slice = {
            .function = line->function,
            .dtype = line->to,
            .count = bench->elements,
            .value_out = (void *)(uintptr_t)place(bench, VALUE, bytes, n),
            .value_in = (void *)(uintptr_t)place(bench, VALUE, bytes, n),
            .gradient = (void *)(uintptr_t)place(bench, GRADIENT, bytes, n)}};

    for (uint32_t i = 0; i < update_slot_count(line->function, &line->hyperparameters); i++) {
        update.slice.slot_out[i] = (void *)(uintptr_t)place(bench, SLOT + (int)i, slot_bytes, n);
        update.slice.slot_in[i] = update.slice.slot_out[i];
    }
    update_prepare(line->function, line->to, &line->hyperparameters, 1001, &update.slice);
    must(
        bench, cuda_update_launch(bench->driver, &bench->updates, &update, bench->stream),
        line->name);
}

static void launch_kernel(const struct bench *bench, const struct line *line, uint32_t n)
{
    const struct cuda_kernel_arguments arguments = {
        .to = place(bench, VALUE, sumac_dtype_bytes(line->to), n),
        .from = place(bench, GRADIENT, sumac_dtype_bytes(line->from), n),
        .count = bench->elements,
        .by = 0.75};

    must(
        bench,
        cuda_kernel_launch(bench->driver, &bench->kernels, line->kernel, &arguments, bench->stream),
        line->name);
}

static void launch_copy(const struct bench *bench, uint32_t n)
{
    must(
        bench,
        bench->driver->cuMemcpyAsync(
            place(bench, VALUE, sizeof(float), n), place(bench, GRADIENT, sizeof(float), n),
            bench->elements * sizeof(float), bench->stream),
        "a copy within the device");
}

/* ---- measured */

/* GB/s of some launches; of a copy, where there is no line. */
static double measure(const struct bench *bench, const struct line *line)
{
    const uint64_t bytes = line == NULL ? 2 * sizeof(float) : line->bytes_per_element;

    must(bench, bench->driver->cuStreamSynchronize(bench->stream), "a wait");
    const double begun = now_s();
    for (uint32_t n = 0; n < LAUNCHES; n++)
        if (line == NULL)
            launch_copy(bench, n);
        else if (line->is_update)
            launch_update(bench, line, n);
        else
            launch_kernel(bench, line, n);
    must(bench, bench->driver->cuStreamSynchronize(bench->stream), "a wait");
    return (double)(bench->elements * bytes * LAUNCHES) / (now_s() - begun) * 1e-9;
}

static void run_line(struct bench *bench, struct line *line)
{
    double own[ROUNDS_MAX], copies[ROUNDS_MAX];

    for (int i = 0; i < ARRAYS; i++) {
        const enum sumac_dtype of_slot = update_slot_dtype(line->to);
        fill(bench, i, i == VALUE ? line->to : i == GRADIENT ? line->from : of_slot);
    }
    (void)measure(bench, line); /* the first launch of a kernel loads it */
    for (uint32_t round = 0; round < bench->rounds; round++) {
        own[round] = measure(bench, line);
        copies[round] = measure(bench, NULL);
    }
    line->gigabytes_per_second = median(own, bench->rounds);
    line->ratio = line->gigabytes_per_second / median(copies, bench->rounds);
    printf("%-40s %10.1f %8.3f\n", line->name, line->gigabytes_per_second, line->ratio);
    (void)fflush(stdout);
}

/* ---- what is measured */

static struct line *add(const struct bench *bench, const char *name)
{
    struct line *line = &lines[line_count];

    if (bench->only != NULL && strstr(name, bench->only) == NULL)
        return NULL;
    if (++line_count == LINES_MAX)
        abort();
    (void)snprintf(line->name, sizeof line->name, "%s", name);
    return line;
}

static void add_kernels(const struct bench *bench)
{
    static const struct {
        const char *name;
        enum sumac_dtype to, from;
        uint64_t bytes;
    } kernels[CUDA_KERNELS] = {
        [CUDA_KERNEL_WIDEN_INT16] = {"widen int16", SUMAC_UINT32, SUMAC_UINT16, 6},
        [CUDA_KERNEL_NARROW_INT16] = {"narrow int16", SUMAC_UINT16, SUMAC_UINT32, 6},
        [CUDA_KERNEL_WIDEN_FLOAT16] = {"widen float16", SUMAC_FLOAT32, SUMAC_FLOAT16, 6},
        [CUDA_KERNEL_NARROW_FLOAT16] = {"narrow float16", SUMAC_FLOAT16, SUMAC_FLOAT32, 6},
        [CUDA_KERNEL_WIDEN_BFLOAT16] = {"widen bfloat16", SUMAC_FLOAT32, SUMAC_BFLOAT16, 6},
        [CUDA_KERNEL_NARROW_BFLOAT16] = {"narrow bfloat16", SUMAC_BFLOAT16, SUMAC_FLOAT32, 6},
        [CUDA_KERNEL_SCALE_FLOAT16] = {"scale float16", SUMAC_FLOAT16, SUMAC_FLOAT16, 4},
        [CUDA_KERNEL_SCALE_BFLOAT16] = {"scale bfloat16", SUMAC_BFLOAT16, SUMAC_BFLOAT16, 4},
        [CUDA_KERNEL_SCALE_FLOAT32] = {"scale float32", SUMAC_FLOAT32, SUMAC_FLOAT32, 8},
        [CUDA_KERNEL_SCALE_FLOAT64] = {"scale float64", SUMAC_FLOAT64, SUMAC_FLOAT64, 16},
        [CUDA_KERNEL_ACCUMULATE_FLOAT16] = {"accumulate float16", SUMAC_FLOAT32, SUMAC_FLOAT16, 10},
        [CUDA_KERNEL_ACCUMULATE_BFLOAT16] =
            {"accumulate bfloat16", SUMAC_FLOAT32, SUMAC_BFLOAT16, 10},
        [CUDA_KERNEL_ACCUMULATE_FLOAT32] = {"accumulate float32", SUMAC_FLOAT32, SUMAC_FLOAT32, 12},
        [CUDA_KERNEL_ACCUMULATE_FLOAT64] = {"accumulate float64", SUMAC_FLOAT64, SUMAC_FLOAT64, 24},
        [CUDA_KERNEL_FINITE_FLOAT16] = {"finite float16", SUMAC_UINT32, SUMAC_FLOAT16, 2},
        [CUDA_KERNEL_FINITE_BFLOAT16] = {"finite bfloat16", SUMAC_UINT32, SUMAC_BFLOAT16, 2},
        [CUDA_KERNEL_FINITE_FLOAT32] = {"finite float32", SUMAC_UINT32, SUMAC_FLOAT32, 4},
        [CUDA_KERNEL_FINITE_FLOAT64] = {"finite float64", SUMAC_UINT32, SUMAC_FLOAT64, 8},
    };

    for (int i = 0; i < CUDA_KERNELS; i++) {
        struct line *line = add(bench, kernels[i].name);
        if (line == NULL)
            continue;
        line->kernel = (enum cuda_kernel)i;
        line->to = kernels[i].to;
        line->from = kernels[i].from;
        line->bytes_per_element = kernels[i].bytes;
    }
}

/* As bench/update counts them. */
static uint64_t touched_bytes(const struct line *line)
{
    const uint32_t slots = update_slot_count(line->function, &line->hyperparameters);
    const uint32_t of_value = line->function->number == UPDATE_ASSIGN ? 2 : 3;
    const uint32_t not_written = line->function->number == UPDATE_DELAYED_NESTEROV;

    return of_value * sumac_dtype_bytes(line->to) +
           (2 * slots - not_written) * sumac_dtype_bytes(update_slot_dtype(line->to));
}

/* A function with its defaults, but for one hyperparameter that `with` names (NULL: none). */
static void add_update(
    const struct bench *bench, const struct update_function *function, enum sumac_dtype dtype,
    const char *with, double value)
{
    char name[48];

    (void)snprintf(
        name, sizeof name, "%s %s%s%s", function->name, sumac_dtype_name(dtype),
        with == NULL ? "" : " ", with == NULL ? "" : with);
    struct line *line = add(bench, name);
    if (line == NULL)
        return;
    line->is_update = true;
    line->function = function;
    line->to = line->from = dtype;
    if (update_hyperparameters_read(function, NULL, NULL, &line->hyperparameters, NULL) != SUMAC_OK)
        abort();
    if (with != NULL)
        line->hyperparameters.value[update_hyperparameter_find(with)] = value;
    line->bytes_per_element = touched_bytes(line);
}

static void add_updates(const struct bench *bench)
{
    static const struct {
        const char *function, *with;
        double value;
    } more[] = {
        {"momentum", "nesterov", 1},
        {"rmsprop", "centered", 1},
        {"ftrl", "learning_rate_power", -0.3},
        {"adam", "clip_value", 0.5},
    };
    const struct update_function *function = NULL;

    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++)
        for (int dtype = SUMAC_FLOAT16; dtype <= SUMAC_FLOAT64; dtype++)
            add_update(bench, function, (enum sumac_dtype)dtype, NULL, 0);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
        add_update(
            bench, update_find_by_name(more[i].function), SUMAC_FLOAT32, more[i].with,
            more[i].value);
}

/* ---- begin and end */

static void open_bench(struct bench *bench)
{
    struct sumac_error error = {0};

    if (cuda_driver_open(&bench->driver, &error) != SUMAC_OK ||
        device_open(&cuda_device_ops, 0, &bench->device, &error) != SUMAC_OK) {
        fprintf(stderr, "bench/gpu_kernels: %s\n", error.text);
        exit(2);
    }
    const struct cuda_driver *driver = bench->driver;
    const struct cuda_device *device = (const struct cuda_device *)bench->device;
    char name[128] = "";
    (void)driver->cuDeviceGetName(name, sizeof name, device->number);
    must(bench, driver->cuCtxSetCurrent(device->context), "a context");
    must(bench, driver->cuStreamCreate(&bench->stream, CU_STREAM_NON_BLOCKING), "a stream");
    must(bench, cuda_kernels_load(driver, &bench->kernels), "the kernels");
    const double begun = now_s();
    must(bench, cuda_updates_load(driver, &bench->updates), "the kernels of update functions");
    const double loaded = now_s() - begun;
    for (int i = 0; i < ARRAYS; i++)
        must(bench, driver->cuMemAlloc(&bench->arrays[i], bench->elements * ROOM), "memory");
    printf(
        "%s, %" PRIu64 " Mi elements, medians of %" PRIu32 " rounds of %u launches; "
        "%.1f ms to load the update functions\n%-40s %10s %8s\n",
        name, bench->elements >> 20, bench->rounds, LAUNCHES, loaded * 1e3, "kernel", "GB/s",
        "of copy");
}

static void close_bench(struct bench *bench)
{
    for (int i = 0; i < ARRAYS; i++)
        (void)bench->driver->cuMemFree(bench->arrays[i]);
    cuda_updates_unload(bench->driver, &bench->updates);
    cuda_kernels_unload(bench->driver, &bench->kernels);
    (void)bench->driver->cuStreamDestroy(bench->stream);
    device_close(bench->device);
}

static bool read_options(int argc, char **argv, struct bench *bench)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        const unsigned long number = strtoul(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--only") == 0)
            bench->only = argv[i + 1];
        else if (strcmp(argv[i], "--mebi") == 0 && number >= 1 && number <= 512)
            bench->elements = number << 20;
        else if (strcmp(argv[i], "--rounds") == 0 && number >= 1 && number <= ROUNDS_MAX)
            bench->rounds = (uint32_t)number;
        else
            return false;
    }
    return argc % 2 == 1;
}

int main(int argc, char **argv)
{
    struct bench bench = {.elements = (uint64_t)64 << 20, .rounds = 11};
    const struct line *worst = &lines[0];

    if (!read_options(argc, argv, &bench)) {
        fprintf(stderr, "usage: bench/gpu_kernels [--only TEXT] [--mebi N] [--rounds N]\n");
        return 2;
    }
    add_kernels(&bench);
    add_updates(&bench);
    open_bench(&bench);
    for (uint32_t i = 0; i < line_count; i++) {
        run_line(&bench, &lines[i]);
        if (lines[i].ratio < worst->ratio)
            worst = &lines[i];
    }
    if (line_count > 0)
        printf("worst: %s, %.3f of a copy\n", worst->name, worst->ratio);
    close_bench(&bench);
    return 0;
}
