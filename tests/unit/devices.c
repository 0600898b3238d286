/* SPDX-License-Identifier: Apache-2.0 */
/* devices.c -- which devices a program's replicas run on, where there is no GPU.
 * tests/gpu/devices.c has what is chosen where there are. */
#include "devices.h"

#include "unit.h"

static struct sumac_error why;

static enum sumac_status choose(const char *text, uint32_t replicas, struct devices *devices)
{
    const struct devices_wanted wanted = {
        .text = text, .replicas = replicas, .has_cpu_step = true, .has_cuda_step = false};

    return devices_choose(&wanted, devices, &why);
}

TEST(cpus_are_as_many_as_are_said)
{
    static const struct {
        const char *text;
        uint32_t replicas, count;
    } cases[] = {
        {NULL, 0, 1},    {NULL, 3, 3},        {"", 0, 1},      {"auto", 4, 4},
        {"cpu", 0, 1},   {"cpu", 5, 5},       {"cpu:1", 0, 1}, {"cpu:7", 0, 7},
        {"cpu:7", 7, 7}, {"cpu:256", 0, 256}, {"CPU:3", 0, 3}, {"Auto", 2, 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct devices devices = {0};

        const enum sumac_status status = choose(cases[i].text, cases[i].replicas, &devices);

        assert_int_equal(status, SUMAC_OK);
        assert_ptr_equal(devices.kind, device_kind("CPU"));
        assert_int_equal(devices.count, cases[i].count);
        for (uint32_t d = 0; d < devices.count; d++)
            assert_int_equal(devices.number[d], d);
    }
}

TEST(a_text_that_is_none_is_refused_with_those_that_are)
{
    static const char *const texts[] = {"tpu",  "cpu:",   "cpu:0",         "cpu:-1", "cpu:2,3",
                                        "cpu4", "CPUs:1", "cpu: 1",        "cpu:1 ", "cpu:x",
                                        "4",    " auto",  "cpu:4294967297"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct devices devices = {.count = 77};

        assert_int_equal(choose(texts[i], 0, &devices), SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(why.text, texts[i]));
        assert_non_null(strstr(why.text, "auto, cpu:N for N replicas"));
        assert_int_equal(devices.count, 77);
    }
}

TEST(more_than_there_may_be_and_two_numbers_that_differ_are_refused)
{
    struct devices devices;

    assert_int_equal(choose("cpu:257", 0, &devices), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(why.text, "257 replicas were asked for; a worker has at most 256");
    assert_int_equal(choose("cpu:4294967295", 0, &devices), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(choose("cpu:2", 3, &devices), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        why.text,
        "devices are cpu:2, and the number of replicas (by the options, or SUMAC_REPLICAS; of "
        "one_device 1) is 3: name as many devices, or say one of the two");
}

TEST(devices_that_the_program_has_no_step_for_are_refused)
{
    const struct devices_wanted none = {.text = "cpu", .has_cuda_step = true};
    struct devices devices;

    assert_int_equal(choose("gpu:0", 0, &devices), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(why.text, "cuda_step"));
    assert_int_equal(devices_choose(&none, &devices, &why), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(why.text, "ask for gpu"));
}

TEST(the_environment_says_what_the_program_does_not)
{
    struct devices devices = {0};

    setenv("SUMAC_DEVICES", "cpu:3", 1);                   /* given */
    assert_int_equal(choose(NULL, 0, &devices), SUMAC_OK); /* when, then */
    assert_int_equal(devices.count, 3);
    assert_int_equal(choose("cpu:2", 0, &devices), SUMAC_OK);
    assert_int_equal(devices.count, 2);
    setenv("SUMAC_REPLICAS", "2", 1);
    assert_int_equal(choose(NULL, 0, &devices), SUMAC_INVALID_ARGUMENT);
    setenv("SUMAC_DEVICES", "", 1);
    assert_int_equal(choose(NULL, 0, &devices), SUMAC_OK);
    assert_int_equal(devices.count, 2);
    assert_int_equal(choose(NULL, 3, &devices), SUMAC_OK); /* what the program says counts */
    assert_int_equal(devices.count, 3);
    setenv("SUMAC_DEVICES", "cpu:7", 1);
    assert_int_equal(choose("", 3, &devices), SUMAC_OK);
    assert_int_equal(devices.count, 3);
    unsetenv("SUMAC_DEVICES");
    unsetenv("SUMAC_REPLICAS");
}

/* A program that has a step for CPUs as well runs on these; one that has not is told what is
 * missing. */
TEST(without_a_gpu_auto_is_cpus_where_there_is_a_step_for_them)
{
    struct devices_wanted wanted = {.has_cpu_step = true, .has_cuda_step = true};
    struct devices devices = {0};

    assert_int_equal(devices_choose(&wanted, &devices, &why), SUMAC_OK);
    assert_ptr_equal(devices.kind, device_kind("CPU"));
    wanted.has_cpu_step = false;
    assert_int_equal(devices_choose(&wanted, &devices, &why), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(why.reason, SUMAC_REASON_UNSUPPORTED); /* so the program exits with 2 */
    wanted.text = "gpu:0";
    wanted.has_cpu_step = true;
    why.text[0] = '\0';
    assert_int_equal(devices_choose(&wanted, &devices, &why), SUMAC_FAILED_PRECONDITION);
    assert_int_equal(why.reason, SUMAC_REASON_UNSUPPORTED);
    assert_ptr_equal(devices.kind, device_kind("CPU")); /* as it was */
}

int main(void)
{
    uint32_t gpus = 0;

    if (device_count(device_kind("GPU"), &gpus, NULL) == SUMAC_OK)
        return 77; /* a machine with GPUs: tests/gpu/devices.c */
    return unit_run(NULL, NULL);
}
