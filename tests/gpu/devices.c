/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c -- which devices a program's replicas run on, where there are GPUs, however many. */
#include "devices.h"

#include "unit.h"

static struct sumac_error why;
static uint32_t gpus;

static enum sumac_status
choose(const char *text, uint32_t replicas, bool has_cuda_step, struct devices *devices)
{
    const struct devices_wanted wanted = {
        .text = text, .replicas = replicas, .has_cpu_step = true, .has_cuda_step = has_cuda_step};

    return devices_choose(&wanted, devices, &why);
}

TEST(auto_is_all_gpus_of_a_program_that_has_a_step_for_them)
{
    struct devices devices = {0};

    assert_int_equal(choose(NULL, 0, true, &devices), SUMAC_OK);
    assert_ptr_equal(devices.kind, device_kind("GPU"));
    assert_int_equal(devices.count, gpus);
    for (uint32_t i = 0; i < gpus; i++)
        assert_int_equal(devices.number[i], i);
    assert_int_equal(choose("auto", 0, false, &devices), SUMAC_OK);
    assert_ptr_equal(devices.kind, device_kind("CPU"));
    assert_int_equal(choose("cpu:2", 0, true, &devices), SUMAC_OK);
    assert_ptr_equal(devices.kind, device_kind("CPU"));
}

TEST(as_many_replicas_as_are_asked_for_have_the_first_gpus)
{
    struct devices devices = {0};
    char expected[256];

    for (uint32_t replicas = 1; replicas <= gpus; replicas++) {
        assert_int_equal(choose("gpu", replicas, true, &devices), SUMAC_OK);
        assert_int_equal(devices.count, replicas);
    }
    (void)snprintf(
        expected, sizeof expected,
        "%u replicas were asked for, each on a GPU of its own, and the program sees %u: ask for "
        "fewer, or for cpu:%u (`sumac devices` lists what there is)",
        gpus + 1, gpus, gpus + 1);
    assert_int_equal(choose("GPU", gpus + 1, true, &devices), SUMAC_OUT_OF_RANGE);
    assert_int_equal(why.reason, SUMAC_REASON_UNSUPPORTED); /* so the program exits with 2 */
    assert_string_equal(why.text, expected);
}

TEST(auto_is_cpus_where_there_are_fewer_gpus_than_replicas)
{
    struct devices devices = {0};

    assert_int_equal(choose("auto", gpus, true, &devices), SUMAC_OK);
    assert_ptr_equal(devices.kind, device_kind("GPU"));
    assert_int_equal(choose("auto", gpus + 1, true, &devices), SUMAC_OK);
    assert_ptr_equal(devices.kind, device_kind("CPU"));
    assert_int_equal(devices.count, gpus + 1);
}

TEST(gpus_are_named_in_the_order_of_their_replicas_each_once)
{
    struct devices devices = {0};

    assert_int_equal(choose("gpu:2,0", 0, true, &devices), SUMAC_OK);
    assert_int_equal(devices.count, 2);
    assert_int_equal(devices.number[0], 2);
    assert_int_equal(devices.number[1], 0);
    assert_int_equal(choose("gpu:2,0", 2, true, &devices), SUMAC_OK);
    assert_int_equal(choose("gpu:2,0", 1, true, &devices), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(choose("gpu:1,0,1", 0, true, &devices), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        why.text, "devices are gpu:1,0,1, with GPU:1 twice: each replica has one of its own");
    static const char *const bad[] = {"gpu:", "gpu:0,", "gpu:,0", "gpu:0-1",
                                      "gpu0", "gpu:0 ", "gpux0",  "gpu:4294967296"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(choose(bad[i], 0, true, &devices), SUMAC_INVALID_ARGUMENT);
    char many[8 * (SUMAC_REPLICAS_MAX + 1)] = "gpu"; /* one more than there may be */
    size_t used = strlen(many);
    for (uint32_t i = 0; i <= SUMAC_REPLICAS_MAX; i++)
        used += (size_t)snprintf(many + used, sizeof many - used, "%c%u", i == 0 ? ':' : ',', i);
    assert_int_equal(choose(many, 0, true, &devices), SUMAC_INVALID_ARGUMENT);
    *strrchr(many, ',') = '\0';
    assert_int_equal(choose(many, 0, true, &devices), SUMAC_OK);
    assert_int_equal(devices.count, SUMAC_REPLICAS_MAX);
}

int main(void)
{
    assert_int_equal(device_count(device_kind("GPU"), &gpus, NULL), SUMAC_OK);
    return unit_run(NULL, NULL);
}
