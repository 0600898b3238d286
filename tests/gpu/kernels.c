/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c -- each kernel beside its loop in C: of no element, of one, of odd counts and of more
 * than there are threads, from places that no wide load could begin at, into memory that held
 * something else. On a GPU it is the kernel that nvcc made; with the stand-in, a twin. */
#include "kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda_device.h"
#include "half.h"

#define COUNT_MAX 1200000u /* more than 4096 blocks of 256 threads have at once */
#define POISON 0x5a

struct world {
    struct device *device;
    struct device_queue *queue;
    struct cuda_kernels kernels;
};

static const struct cuda_driver *driver;

/* With the device's context current. */
static CUresult within(struct world *world, bool begins)
{
    CUcontext popped = NULL;

    return begins ? driver->cuCtxPushCurrent(((struct cuda_device *)world->device)->context)
                  : driver->cuCtxPopCurrent(&popped);
}

static int begin(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    struct sumac_error error = {0};

    if (world == NULL || cuda_driver_open(&driver, &error) != SUMAC_OK)
        return 1;
    assert_int_equal(device_open(device_kind("GPU"), 0, &world->device, NULL), SUMAC_OK);
    assert_int_equal(device_queue_open(world->device, &world->queue, NULL), SUMAC_OK);
    assert_int_equal(within(world, true), CUDA_SUCCESS);
    assert_int_equal(cuda_kernels_load(driver, &world->kernels), CUDA_SUCCESS);
    assert_int_equal(within(world, false), CUDA_SUCCESS);
    *state = world;
    return 0;
}

static int end(void **state)
{
    struct world *world = *state;

    assert_int_equal(within(world, true), CUDA_SUCCESS);
    cuda_kernels_unload(driver, &world->kernels);
    assert_int_equal(within(world, false), CUDA_SUCCESS);
    device_queue_close(world->queue);
    device_close(world->device);
    free(world);
    return 0;
}

/* What a kernel does, of elements of so many bytes. */
struct deed {
    enum cuda_kernel kernel;
    uint64_t from_bytes, to_bytes, count, skip; /* elements, from `skip` on */
    float by;
};

static enum sumac_status launch(void *context)
{
    void **arguments = context;
    const struct world *world = arguments[0];
    const struct deed *deed = arguments[1];
    const struct sumac_buffer *from = arguments[2], *to = arguments[3];

    return cuda_status(cuda_kernel_launch(
        driver, &world->kernels, deed->kernel,
        &(struct cuda_kernel_arguments){
            .to = (CUdeviceptr)(uintptr_t)sumac_buffer_data(to) + deed->skip * deed->to_bytes,
            .from = (CUdeviceptr)(uintptr_t)sumac_buffer_data(from) + deed->skip * deed->from_bytes,
            .count = deed->count,
            .by = deed->by,
        },
        ((struct cuda_queue *)world->queue)->stream));
}

/* `from` has skip + count elements, `to` one more, and is poisoned; on the host. */
static void run(struct world *world, const struct deed *deed, const void *from, void *to)
{
    const uint64_t from_bytes = (deed->skip + deed->count) * deed->from_bytes;
    const uint64_t to_bytes = (deed->skip + deed->count + 1) * deed->to_bytes;
    const struct sumac_place host = {SUMAC_PLACE_HOST, 0};
    struct sumac_buffer *here[2] = {NULL, NULL}, *there[2] = {NULL, NULL};

    memset(to, POISON, to_bytes);
    assert_int_equal(
        sumac_buffer_wrap((void *)(uintptr_t)from, from_bytes, host, NULL, NULL, &here[0]),
        SUMAC_OK);
    assert_int_equal(sumac_buffer_wrap(to, to_bytes, host, NULL, NULL, &here[1]), SUMAC_OK);
    for (int i = 0; i < 2; i++) {
        const uint64_t bytes = sumac_buffer_bytes(here[i]);
        assert_int_equal(device_buffer_create(world->device, bytes, &there[i]), SUMAC_OK);
        device_copy(
            world->queue, &(struct sumac_copy){.to = there[i], .from = here[i], .bytes = bytes});
    }
    void *arguments[] = {world, (void *)(uintptr_t)deed, there[0], there[1]};
    job_queue_issue(world->queue, launch, arguments);
    device_copy(
        world->queue, &(struct sumac_copy){.to = here[1], .from = there[1], .bytes = to_bytes});
    if (device_wait(world->queue) != SUMAC_OK)
        fail_msg("%s", device_why(world->queue));
    for (int i = 0; i < 2; i++) {
        sumac_buffer_unref(there[i]);
        sumac_buffer_unref(here[i]);
    }
}

/* Nothing before the first, and nothing after the last, is touched. */
static void assert_poisoned(const struct deed *deed, const void *to)
{
    const uint8_t *bytes = to;

    for (uint64_t i = 0; i < deed->skip * deed->to_bytes; i++)
        assert_int_equal(bytes[i], POISON);
    for (uint64_t i = 0; i < deed->to_bytes; i++)
        assert_int_equal(bytes[(deed->skip + deed->count) * deed->to_bytes + i], POISON);
}

static const uint64_t counts[] = {0, 1, 255, 257, 4097, COUNT_MAX};
static uint16_t narrow[COUNT_MAX + 4];
static uint32_t wide[COUNT_MAX + 4];

static void integers_are_widened_and_cut_off_again(void **state)
{
    for (uint64_t skip = 0; skip < 2; skip++)
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            const struct deed widen = {CUDA_KERNEL_WIDEN_INT16, 2, 4, counts[c], skip, 0};
            const struct deed cut = {CUDA_KERNEL_NARROW_INT16, 4, 2, counts[c], skip, 0};

            for (uint64_t i = 0; i < skip + counts[c]; i++) /* given */
                narrow[i] = (uint16_t)(i * 40503);

            run(*state, &widen, narrow, wide); /* when, then */
            for (uint64_t i = skip; i < skip + counts[c]; i++)
                assert_int_equal(wide[i], narrow[i]);
            assert_poisoned(&widen, wide);

            for (uint64_t i = 0; i < skip + counts[c]; i++)
                wide[i] += UINT32_C(0xabcd0000);
            run(*state, &cut, wide, narrow);
            for (uint64_t i = skip; i < skip + counts[c]; i++)
                assert_int_equal(narrow[i], (uint16_t)(i * 40503));
            assert_poisoned(&cut, narrow);
        }
}

static float widened(bool is_bfloat, uint16_t half)
{
    return is_bfloat ? float32_of_bfloat16(half) : float32_of_float16(half);
}

/* Every half that there is; not-a-number stays one. */
static void every_half_is_widened_times_its_weight(void **state)
{
    for (int is_bfloat = 0; is_bfloat < 2; is_bfloat++) {
        const struct deed deed = {
            is_bfloat ? CUDA_KERNEL_WIDEN_BFLOAT16 : CUDA_KERNEL_WIDEN_FLOAT16,
            2,
            4,
            65536,
            1,
            3.3f};

        for (uint32_t i = 0; i < 65537; i++) /* given */
            narrow[i] = (uint16_t)(i - 1);

        run(*state, &deed, narrow, wide); /* when */

        for (uint32_t i = 1; i < 65537; i++) { /* then */
            const float expected = widened(is_bfloat, narrow[i]) * 3.3f;
            const float made = float32_of_bits(wide[i]);
            if (isnan(expected))
                assert_true(isnan(made));
            else
                assert_int_equal(wide[i], bits_of_float32(expected));
        }
        assert_poisoned(&deed, wide);
    }
}

/* Floats of every sign and exponent, between halves too; divided by three, rounded once to the
 * nearest, and to an even one of two. */
static void quotients_are_rounded_once_to_a_half(void **state)
{
    for (int is_bfloat = 0; is_bfloat < 2; is_bfloat++)
        for (int d = 0; d < 2; d++) {
            const struct deed deed = {
                is_bfloat ? CUDA_KERNEL_NARROW_BFLOAT16 : CUDA_KERNEL_NARROW_FLOAT16,
                4,
                2,
                COUNT_MAX,
                1,
                d == 0 ? 1.0f : 3.0f};

            for (uint32_t i = 0; i < COUNT_MAX + 1; i++) /* given */
                wide[i] = i * UINT32_C(3579) ^ (i << 12);

            run(*state, &deed, wide, narrow); /* when */

            for (uint32_t i = 1; i < COUNT_MAX + 1; i++) { /* then */
                const float quotient = float32_of_bits(wide[i]) / deed.by;
                const uint16_t expected =
                    is_bfloat ? bfloat16_of_float32(quotient) : float16_of_float32(quotient);
                if (isnan(quotient))
                    assert_true(isnan(widened(is_bfloat, narrow[i])));
                else
                    assert_int_equal(narrow[i], expected);
            }
            assert_poisoned(&deed, narrow);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_widened_and_cut_off_again),
        cmocka_unit_test(every_half_is_widened_times_its_weight),
        cmocka_unit_test(quotients_are_rounded_once_to_a_half),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
