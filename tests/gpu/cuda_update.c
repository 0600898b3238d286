/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_update.c (test) -- every update function of the table, on every float type, beside the CPU's
 * own update_run: from places that no wide load could begin at, in place and into spare memory, of
 * few elements and of more than there are threads. On a GPU it is the kernel that nvcc made of the
 * same text; with the stand-in, a twin.
 *
 * The bits are the same, but of a NaN, whose payload is each processor's own: the arithmetic is +,
 * −, ·, ÷ and √ of IEEE 754, rounded to the nearest on both sides and fused on neither, and ftrl's
 * power is made of these (lib/update/power.h). There is nothing to be a bound of.
 */
#include "kernels.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>

#include "unit.h"
#include "half.h"
#include "kernel_world.h"

#define COUNT_MAX 20011u
#define AROUND 8u /* elements before the first, and behind the last, at most */
#define BYTES_MAX ((COUNT_MAX + 2 * AROUND) * sizeof(double))

/* What an array is. */
enum { VALUE, GRADIENT, SLOT, SPARE_VALUE = SLOT + UPDATE_SLOTS_MAX, SPARE_SLOT, ARRAYS = 9 };

struct update_case {
    const struct update_function *function;
    enum sumac_dtype dtype;
    struct update_hyperparameters hyperparameters;
    uint64_t count, skip, gradient_skip; /* elements before the first */
    double scale;
    bool is_spare, is_wide, is_raw; /* raw: bits of every kind */
};

static uint8_t made[ARRAYS][BYTES_MAX], expected[ARRAYS][BYTES_MAX];
static struct cuda_updates updates;

static int begin(void **state)
{
    CUcontext popped = NULL;

    if (kernel_world_begin(state) != 0)
        return 1;
    const struct kernel_world *world = *state;
    const struct cuda_device *device = (const struct cuda_device *)world->device;
    assert_int_equal(world->driver->cuCtxPushCurrent(device->context), CUDA_SUCCESS);
    assert_int_equal(cuda_updates_load(world->driver, &updates), CUDA_SUCCESS);
    assert_int_equal(world->driver->cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    return 0;
}

static int end(void **state)
{
    const struct kernel_world *world = *state;
    const struct cuda_device *device = (const struct cuda_device *)world->device;
    CUcontext popped = NULL;

    assert_int_equal(world->driver->cuCtxPushCurrent(device->context), CUDA_SUCCESS);
    cuda_updates_unload(world->driver, &updates);
    assert_int_equal(world->driver->cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    return kernel_world_end(state);
}

/* ---- arrays */

static enum sumac_dtype dtype_of(const struct update_case *given, int array)
{
    if (array == VALUE || array == SPARE_VALUE || (array == GRADIENT && !given->is_wide))
        return given->dtype;
    return update_slot_dtype(given->dtype);
}

static uint64_t array_bytes(const struct update_case *given, int array)
{
    return (given->count + 2 * AROUND) * sumac_dtype_bytes(dtype_of(given, array));
}

static bool is_used(const struct update_case *given, int array)
{
    const int slots = (int)update_slot_count(given->function, &given->hyperparameters);

    if (array >= SPARE_VALUE)
        return given->is_spare && array < SPARE_SLOT + slots;
    return array < SLOT + slots;
}

/* Numbers between -1 and 1; of a slot between 0 and 1. */
static void fill_numbers(enum sumac_dtype dtype, void *data, uint64_t count, int array)
{
    uint64_t drawn = 0;

    for (uint64_t i = 0; i < count; i++) {
        kernel_fill(&drawn, sizeof drawn, i * ARRAYS + (uint64_t)array);
        double number = (double)(int64_t)drawn * 0x1p-63;
        if (array >= SLOT)
            number = fabs(number);
        if (dtype == SUMAC_FLOAT64)
            ((double *)data)[i] = number;
        else if (dtype == SUMAC_FLOAT32)
            ((float *)data)[i] = (float)number;
        else if (dtype == SUMAC_FLOAT16)
            ((uint16_t *)data)[i] = float16_of_float32((float)number);
        else
            ((uint16_t *)data)[i] = bfloat16_of_float32((float)number);
    }
}

/* The same on both sides: poison, and what is given between. */
static void fill(const struct update_case *given)
{
    for (int i = 0; i < ARRAYS; i++) {
        const enum sumac_dtype dtype = dtype_of(given, i);
        const uint32_t bytes = sumac_dtype_bytes(dtype);
        const uint64_t skip = i == GRADIENT ? given->gradient_skip : given->skip;
        uint8_t *const first = made[i] + skip * bytes;

        if (!is_used(given, i))
            continue;
        memset(made[i], KERNEL_POISON, array_bytes(given, i));
        if (i < SPARE_VALUE && given->is_raw)
            kernel_fill(first, given->count * bytes, (uint64_t)i + 1);
        else if (i < SPARE_VALUE)
            fill_numbers(dtype, first, given->count, i);
        memcpy(expected[i], made[i], array_bytes(given, i));
    }
}

/* Where element 0 of an array is that begins, with what is skipped, at an address. */
static void *first_of(const struct update_case *given, int array, uint64_t address)
{
    const uint64_t skip = array == GRADIENT ? given->gradient_skip : given->skip;

    return (void *)(uintptr_t)(address + skip * sumac_dtype_bytes(dtype_of(given, array)));
}

static struct update_slice slice_of(const struct update_case *given, const uint64_t *addresses)
{
    const int spare = given->is_spare ? SPARE_VALUE : VALUE;
    const int spare_slot = given->is_spare ? SPARE_SLOT : SLOT;
    struct update_slice slice = {
        .function = given->function,
        .dtype = given->dtype,
        .count = given->count,
        .value_out = first_of(given, spare, addresses[spare]),
        .value_in = first_of(given, VALUE, addresses[VALUE]),
        .gradient = first_of(given, GRADIENT, addresses[GRADIENT]),
        .scale = given->scale,
        .divisor = 1};

    for (uint32_t i = 0; i < update_slot_count(given->function, &given->hyperparameters); i++) {
        slice.slot_in[i] = first_of(given, SLOT + (int)i, addresses[SLOT + i]);
        slice.slot_out[i] =
            first_of(given, spare_slot + (int)i, addresses[(uint32_t)spare_slot + i]);
    }
    update_prepare(given->function, given->dtype, &given->hyperparameters, 3, &slice);
    return slice;
}

/* ---- the CPU */

/* A gradient that is float32 already is a sum of one. */
static const uint8_t *find_gradient(
    const void *context, uint32_t source, const struct update_slice *slice, uint64_t at,
    uint64_t *together_bytes)
{
    (void)source;
    *together_bytes = slice->count * sizeof(float) - at;
    return (const uint8_t *)context + at;
}

static void run_expected(const struct update_case *given)
{
    uint64_t addresses[ARRAYS];

    for (int i = 0; i < ARRAYS; i++)
        addresses[i] = (uint64_t)(uintptr_t)expected[i];
    struct update_slice slice = slice_of(given, addresses);
    const struct update_sources sources = {1, find_gradient, NULL, slice.gradient};
    if (given->is_wide)
        slice.sources = &sources;
    if (given->count > 0)
        update_run(&slice);
}

/* ---- the GPU */

static CUresult
launch(const struct kernel_world *world, const struct kernel_array *arrays, const void *context)
{
    const struct update_case *given = context;
    uint64_t addresses[ARRAYS];

    for (int i = 0; i < ARRAYS; i++)
        addresses[i] = arrays[i].address;
    const struct device_update update = {
        .slice = slice_of(given, addresses), .is_wide = given->is_wide};
    return cuda_update_launch(
        world->driver, &updates, &update, ((struct cuda_queue *)world->queue)->stream);
}

static void check(const struct kernel_world *world, const struct update_case *given)
{
    struct kernel_array arrays[ARRAYS];
    char what[128];

    fill(given); /* given */
    for (int i = 0; i < ARRAYS; i++)
        arrays[i] =
            (struct kernel_array){made[i], is_used(given, i) ? array_bytes(given, i) : 0, 0};
    run_expected(given);

    kernel_world_run(world, arrays, ARRAYS, launch, given); /* when */

    for (int i = 0; i < ARRAYS; i++) { /* then */
        if (!is_used(given, i))
            continue;
        (void)snprintf(
            what, sizeof what, "%s of %s, array %d, %" PRIu64 " from %" PRIu64 "%s%s",
            given->function->name, sumac_dtype_name(given->dtype), i, given->count, given->skip,
            given->is_spare ? ", spare" : "", given->is_wide ? ", wide" : "");
        kernel_assert_same(
            dtype_of(given, i), made[i], expected[i], 0, given->count + 2 * AROUND, what);
    }
}

/* ---- all functions */

/* A function as it is, and with each of these that it takes: all of its loops. */
static const struct variant {
    const char *hyperparameter;
    double value;
} variants[] = {
    {NULL, 0},
    {"nesterov", 1},
    {"centered", 1},
    {"learning_rate_power", -0.3},
    {"clip_value", 0.25},
    {"weight_decay", 0.1},
    {"buffer_size", 3}}; /* which divides t */
#define VARIANTS (sizeof variants / sizeof variants[0])

static bool
choose(struct update_case *given, const struct update_function *function, size_t variant)
{
    const char *const name = variants[variant].hyperparameter;
    const uint32_t number = name == NULL ? 0 : update_hyperparameter_find(name);

    if (name != NULL && (function->hyperparameters >> number & 1) == 0)
        return false;
    given->function = function;
    assert_int_equal(
        update_hyperparameters_read(function, NULL, NULL, &given->hyperparameters, NULL), SUMAC_OK);
    if (name != NULL)
        given->hyperparameters.value[number] = variants[variant].value;
    return true;
}

/* `given` of every function, in each variant, on each float type. */
static void of_every_function(const struct kernel_world *world, struct update_case given)
{
    const struct update_function *function = NULL;

    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++)
        for (size_t variant = 0; variant < VARIANTS; variant++)
            for (int dtype = SUMAC_FLOAT16; dtype <= SUMAC_FLOAT64; dtype++) {
                given.dtype = (enum sumac_dtype)dtype;
                if (given.is_wide && update_slot_dtype(given.dtype) == given.dtype)
                    continue;
                if (choose(&given, function, variant)) {
                    assert_true(cuda_update_has(function, given.dtype));
                    check(world, &given);
                }
            }
}

/* Around the width of each type's tiles. */
STATE_TEST(of_any_count_the_bits_are_the_cpus, NULL, NULL)
{
    static const uint64_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 1031};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        of_every_function(*state, (struct update_case){.count = counts[i]});
}

STATE_TEST(from_any_element_on_the_bits_are_the_cpus, NULL, NULL)
{
    static const struct {
        uint64_t skip, gradient_skip;
    } skips[] = {{1, 1}, {3, 3}, {5, 5}, {0, 1}, {1, 0}};

    for (size_t i = 0; i < sizeof skips / sizeof skips[0]; i++)
        of_every_function(
            *state,
            (struct update_case){
                .count = 1031, .skip = skips[i].skip, .gradient_skip = skips[i].gradient_skip});
}

STATE_TEST(spare_memory_gets_what_the_cpu_puts_there, NULL, NULL)
{
    of_every_function(*state, (struct update_case){.count = 259, .is_spare = true});
    of_every_function(
        *state,
        (struct update_case){.count = 259, .skip = 1, .gradient_skip = 1, .is_spare = true});
}

/* Two blocks for twenty thousand elements. */
STATE_TEST(a_thread_takes_what_others_do_not, NULL, NULL)
{
    const uint32_t blocks_max = updates.blocks_max;

    updates.blocks_max = 2;
    of_every_function(*state, (struct update_case){.count = COUNT_MAX});
    of_every_function(*state, (struct update_case){.count = COUNT_MAX, .gradient_skip = 1});
    updates.blocks_max = blocks_max;
}

STATE_TEST(a_gradient_of_float32_is_not_rounded_before_it_is_applied, NULL, NULL)
{
    of_every_function(*state, (struct update_case){.count = 1031, .is_wide = true});
    of_every_function(*state, (struct update_case){.count = 64, .skip = 1, .is_wide = true});
    of_every_function(
        *state, (struct update_case){.count = 65, .skip = 4, .gradient_skip = 4, .is_wide = true});
}

STATE_TEST(a_gradient_is_scaled_before_it_is_applied, NULL, NULL)
{
    of_every_function(*state, (struct update_case){.count = 1031, .scale = 0.3});
    of_every_function(*state, (struct update_case){.count = 17, .scale = 1});
}

/* Infinities, NaNs, subnormal numbers, negative accumulators. */
STATE_TEST(of_any_bits_the_bits_are_the_cpus, NULL, NULL)
{
    of_every_function(*state, (struct update_case){.count = COUNT_MAX, .is_raw = true});
    of_every_function(
        *state, (struct update_case){.count = COUNT_MAX, .is_raw = true, .is_wide = true});
}

/* ---- in a queue */

#define ELEMENTS 1000u

/* θ −= 0.01·g twice, and what is copied after it: nobody waits in between. */
STATE_TEST(updates_take_their_turn_in_a_queue, NULL, NULL)
{
    const struct kernel_world *world = *state;
    const struct sumac_place host = {SUMAC_PLACE_HOST, 0};
    static float value[ELEMENTS], gradient[ELEMENTS];
    struct sumac_buffer *here[2], *there[2];
    struct update_case given = {.dtype = SUMAC_FLOAT32, .count = ELEMENTS};

    assert_true(choose(&given, update_find_by_name("sgd"), 0)); /* given */
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        value[i] = (float)i;
        gradient[i] = 100;
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            sumac_buffer_wrap(i == 0 ? value : gradient, sizeof value, host, NULL, NULL, &here[i]),
            SUMAC_OK);
        assert_int_equal(
            device_buffer_create(world->device, sizeof value, &there[i], NULL), SUMAC_OK);
        device_copy(
            world->queue,
            &(struct sumac_copy){.to = there[i], .from = here[i], .bytes = sizeof value});
    }
    struct device_update update[2];
    for (int i = 0; i < 2; i++)
        update[i] = (struct device_update){
            .slice = {
                .function = given.function,
                .dtype = SUMAC_FLOAT32,
                .count = ELEMENTS,
                .value_out = sumac_buffer_data(there[0]),
                .value_in = sumac_buffer_data(there[0]),
                .gradient = sumac_buffer_data(there[1])}};

    for (int i = 0; i < 2; i++) { /* when */
        update_prepare(given.function, SUMAC_FLOAT32, &given.hyperparameters, 1, &update[i].slice);
        cuda_update(world->queue, &update[i]);
    }
    device_copy(
        world->queue, &(struct sumac_copy){.to = here[0], .from = there[0], .bytes = sizeof value});
    assert_int_equal(device_wait(world->queue), SUMAC_OK);

    for (uint32_t i = 0; i < ELEMENTS; i++) { /* then */
        const float expected_value = (float)i - 0.01f * 100 - 0.01f * 100;
        assert_memory_equal(&value[i], &expected_value, sizeof expected_value);
    }
    for (int i = 0; i < 2; i++) {
        sumac_buffer_unref(there[i]);
        sumac_buffer_unref(here[i]);
    }
}

/* The sentence is the driver's; the next update asks again. */
STATE_TEST(a_device_without_room_for_kernels_says_so, NULL, NULL)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library == NULL ? NULL : dlsym(library, "standin_fail_at");
    void (*fail_at)(const char *function, uint64_t nth, int result) = NULL;
    const struct kernel_world *world = *state;
    struct device *device = NULL;
    struct device_queue *queue = NULL;

    memcpy(&fail_at, &symbol, sizeof symbol);
    if (fail_at == NULL)
        skip();
    assert_int_equal(device_open(device_kind("GPU"), 0, &device, NULL), SUMAC_OK); /* given */
    assert_int_equal(device_queue_open(device, &queue, NULL), SUMAC_OK);
    struct update_case given = {.dtype = SUMAC_FLOAT32};
    assert_true(choose(&given, update_find_by_name("sgd"), 0));
    struct device_update update = {
        .slice = {.function = given.function, .dtype = SUMAC_FLOAT32, .divisor = 1}};
    (void)world;

    for (int i = 0; i < 2; i++) {
        fail_at(i == 0 ? "cuModuleLoadData" : "cuModuleGetFunction", 1, 2);
        cuda_update(queue, &update); /* when */
        const enum sumac_status status = device_wait(queue);

        assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED); /* then */
        assert_string_equal(device_why(queue), "CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
    }
    fail_at("", 0, 0);
    cuda_update(queue, &update);
    assert_int_equal(device_wait(queue), SUMAC_OK);
    device_queue_close(queue);
    device_close(device);
}

TEST(what_has_no_kernel_is_told)
{
    struct update_function defined = *update_find_by_name("sgd");

    defined.loop = update_run;
    assert_false(cuda_update_has(&defined, SUMAC_FLOAT32));
    assert_false(cuda_update_has(update_find_by_name("assign_add"), SUMAC_INT32));
    assert_false(cuda_update_has(update_find_by_name("assign"), SUMAC_BOOL));
    assert_true(cuda_update_has(update_find_by_name("assign"), SUMAC_BFLOAT16));
}

int main(void) { return unit_run(begin, end); }
