/* SPDX-License-Identifier: Apache-2.0 */
/* transfers.c -- values go to GPUs and gradients come back, in parts, beside what is computed
 * there: with streams that are late, a copy that does not await its event has other bytes. */
#include "transfers.h"

#include <inttypes.h>
#include <unistd.h>

#include "unit.h"
#include <cuda.h>
#include <dlfcn.h>

#include "device_group.h"

#define VARIABLES 4u
#define MANY_VARIABLES 100u /* a part each: a queue has room for 64 jobs */
#define ROUNDS 6
#define TEST_S_MAX 60
#define REPLICAS_MAX 2u

/* Two parts: a large one alone, then small ones and a large one. */
static const uint64_t few[VARIABLES] = {4194304 + 16, 16, 64, 1048576};

struct world {
    const uint64_t *elements; /* (variables) */
    uint32_t variables;
    struct replicas replicas;
    struct transfers transfers;
    struct device_group *group;                                     /* NULL: there is one replica */
    struct tensors values, gradients;                               /* the host's */
    struct tensors values_there[REPLICAS_MAX], there[REPLICAS_MAX]; /* the devices' */
};

static uint32_t replicas_max; /* as many as there are GPUs */

/* All variables side by side, in memory of the device's kind, or of the host. */
static struct tensors make(const struct world *world, struct device *device, bool is_host)
{
    const uint64_t *const elements = world->elements;
    struct tensors made = {
        .items = calloc(world->variables, sizeof *made.items), .count = world->variables};
    uint64_t bytes = 0;

    assert_non_null(made.items);
    for (uint32_t i = 0; i < world->variables; i++)
        bytes += elements[i] * sizeof(float);
    assert_int_equal(
        is_host ? device_host_buffer_create(device, bytes, &made.buffer, NULL)
                : device_buffer_create(device, bytes, &made.buffer, NULL),
        SUMAC_OK);
    bytes = 0;
    for (uint32_t i = 0; i < world->variables; i++) {
        const struct sumac_shape shape = SUMAC_SHAPE(elements[i]);
        assert_int_equal(
            sumac_tensor_view(made.buffer, bytes, SUMAC_FLOAT32, &shape, &made.items[i]), SUMAC_OK);
        bytes += elements[i] * sizeof(float);
    }
    return made;
}

static void forget(struct tensors *tensors)
{
    sumac_buffer_unref(tensors->buffer);
    free(tensors->items);
}

static void begin(struct world *world, uint32_t count)
{
    const struct devices devices = devices_first(device_kind("GPU"), count);
    const bool are_few = world->elements == few;
    const uint64_t part_bytes = are_few ? TRANSFERS_PART_BYTES : sizeof(float);

    assert_int_equal(replicas_open(&devices, &world->replicas, NULL), SUMAC_OK);
    world->values = make(world, world->replicas.devices[0], true);
    world->gradients = make(world, world->replicas.devices[0], true);
    for (uint32_t i = 0; i < count; i++) {
        world->values_there[i] = make(world, world->replicas.devices[i], false);
        world->there[i] = make(world, world->replicas.devices[i], false);
    }
    assert_int_equal(
        transfers_open(&world->replicas, &world->gradients, part_bytes, &world->transfers, NULL),
        SUMAC_OK);
    if (count > 1)
        assert_int_equal(
            device_group_open(world->replicas.queues, count, world->variables, &world->group, NULL),
            SUMAC_OK);
}

static void end(struct world *world)
{
    device_group_close(world->group);
    transfers_close(&world->transfers);
    replicas_close_queues(&world->replicas);
    forget(&world->values);
    forget(&world->gradients);
    for (uint32_t i = 0; i < world->replicas.count; i++) {
        forget(&world->values_there[i]);
        forget(&world->there[i]);
    }
    replicas_close(&world->replicas);
}

static void set_values(const struct world *world, float first)
{
    for (uint32_t v = 0; v < VARIABLES; v++)
        for (uint64_t i = 0; i < few[v]; i++)
            ((float *)sumac_tensor_data(&world->values.items[v]))[i] = first + (float)(i % 1000);
}

/* What comes is what goes. */
struct step {
    struct sumac_device *device;
    struct sumac_copy copy;
};

static enum sumac_status run_step(void *context)
{
    const struct step *step = context;

    return sumac_device_copy(step->device, &step->copy, NULL);
}

static void add_reductions(struct world *world)
{
    for (uint32_t v = 0; v < world->variables; v++) {
        static void *data[MANY_VARIABLES][REPLICAS_MAX];
        static uint64_t each[MANY_VARIABLES][REPLICAS_MAX];
        for (uint32_t i = 0; i < world->replicas.count; i++) {
            data[v][i] = sumac_tensor_data(&world->there[i].items[v]);
            each[v][i] = world->elements[v];
        }
        const struct device_group_values values = {
            .dtype = SUMAC_FLOAT32,
            .from = (const void *const *)data[v],
            .to = data[v],
            .elements = each[v]};
        assert_int_equal(
            device_group_add(world->group, GROUP_REDUCE, SUMAC_REDUCE_SUM, 0, &values, NULL),
            SUMAC_OK);
        if (transfers_written(&world->transfers, v) != NULL)
            device_group_record(world->group, transfers_written(&world->transfers, v));
    }
}

/* The gradients of one step, on the host; the first failure that is told. */
static enum sumac_status run(struct world *world)
{
    struct step steps[REPLICAS_MAX];
    struct transfers_failure failure;
    enum sumac_status reduced = SUMAC_OK;

    for (uint32_t i = 0; i < world->replicas.count; i++)
        transfers_send(&world->transfers, i, &world->values_there[i], &world->values);
    for (uint32_t i = 0; i < world->replicas.count; i++) {
        steps[i] = (struct step){
            .device = device_for_step(world->replicas.queues[i]),
            .copy = {
                .to = world->there[i].buffer,
                .from = world->values_there[i].buffer,
                .bytes = sumac_buffer_bytes(world->values.buffer)}};
        transfers_await(&world->transfers, i);
        device_issue(world->replicas.queues[i], run_step, &steps[i]);
    }
    if (world->group == NULL) {
        transfers_record_written(&world->transfers);
    } else {
        add_reductions(world);
        device_group_start(world->group);
    }
    transfers_fetch(&world->transfers, &world->gradients, &world->there[0]);
    if (world->group != NULL)
        reduced = device_group_wait(world->group, DEVICE_GROUP_NO_LIMIT, NULL);
    const enum sumac_status joined = transfers_join(&world->transfers, DEVICE_NO_LIMIT, &failure);
    return reduced != SUMAC_OK ? reduced : joined;
}

TEST(what_goes_to_each_device_comes_back_added_up)
{
    for (uint32_t count = 1; count <= replicas_max; count++) {
        struct world world = {.elements = few, .variables = VARIABLES};

        begin(&world, count); /* given */
        assert_int_equal(world.transfers.part_count, 2);
        for (int round = 0; round < ROUNDS; round++) {
            memset(
                sumac_buffer_data(world.gradients.buffer), 0x5a,
                sumac_buffer_bytes(world.gradients.buffer));
            set_values(&world, (float)round);

            assert_int_equal(run(&world), SUMAC_OK); /* when */

            for (uint32_t v = 0; v < VARIABLES; v++) /* then */
                for (uint64_t i = 0; i < few[v]; i++)
                    if (((float *)sumac_tensor_data(&world.gradients.items[v]))[i] !=
                        (float)count * (float)(round + (int)(i % 1000)))
                        fail_msg("variable %u differs at %" PRIu64, v, i);
        }
        end(&world);
    }
}

/* The n-th thing that streams do, for each n until there is none: a copy that fails last, too. */
TEST(whatever_fails_on_its_way_is_told_when_all_is_over)
{
    void (*fail_at)(const char *function, uint64_t nth, int result) = NULL;
    uint64_t (*calls)(void) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    enum sumac_status status = SUMAC_ABORTED;
    uint64_t nth = 0;

    if (library != NULL)
        *(void **)&fail_at = dlsym(library, "standin_fail_at");
    if (library != NULL)
        *(void **)&calls = dlsym(library, "standin_calls");
    if (fail_at == NULL)
        skip();
    while (status != SUMAC_OK) {
        struct world world = {.elements = few, .variables = VARIABLES};
        begin(&world, 1); /* given */
        fail_at("stream", ++nth, CUDA_ERROR_ILLEGAL_ADDRESS);

        status = run(&world); /* when */

        if (status != SUMAC_OK) /* then */
            assert_int_equal(status, SUMAC_ABORTED);
        end(&world);
        assert_true(status != SUMAC_OK || calls() < nth); /* nothing failed that was not told */
        fail_at("", 0, 0);
    }
    assert_true(nth > 2 + 2); /* there and back, in two parts, at least */
}

/* The copies of all parts but the first ones await calls that are never made. */
TEST(a_reduction_that_fails_ends_the_copies_of_more_parts_than_a_queue_has_jobs)
{
    void (*fault)(const char *what, int rank, uint64_t number) = NULL;
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    uint64_t many[MANY_VARIABLES];

    if (library != NULL)
        *(void **)&fault = dlsym(library, "standin_nccl_fault");
    if (fault == NULL || replicas_max < 2)
        skip();
    for (uint32_t i = 0; i < MANY_VARIABLES; i++)
        many[i] = 4;
    (void)alarm(TEST_S_MAX); /* one that hangs has failed */
    for (uint64_t nth = 1; nth <= MANY_VARIABLES; nth += 33) {
        struct world world = {.elements = many, .variables = MANY_VARIABLES};
        begin(&world, 2); /* given */
        assert_int_equal(world.transfers.part_count, MANY_VARIABLES);
        fault("fail", 1, nth);

        const enum sumac_status status = run(&world); /* when */

        assert_int_equal(status, SUMAC_ABORTED); /* then: it returns */
        fault("", 0, 0);
        end(&world);
    }
    (void)alarm(0);
}

int main(void)
{
    uint32_t gpus = 0;

    assert_int_equal(device_count(device_kind("GPU"), &gpus, NULL), SUMAC_OK);
    replicas_max = gpus < REPLICAS_MAX ? gpus : REPLICAS_MAX;
    return unit_run(NULL, NULL);
}
