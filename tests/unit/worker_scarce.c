/* SPDX-License-Identifier: Apache-2.0 */
/* worker_scarce.c -- a worker whose memory runs out while it is made is not made, and gives back
 * what it took: each of its takes of memory fails once. */
#include "far_device.h"
#include "scarce_heap.h"
#include "worker_client.h"

#include <fcntl.h>
#include <unistd.h>

#define TAKES_MAX 500

struct making {
    const struct device_ops *kind;
    uint32_t replicas;
    enum sumac_dtype second; /* of variable 1 */
    enum sumac_synchronous synchronous;
    const char *trace;
};

/* The lowest number that a file would get. */
static int next_descriptor(void)
{
    const int file = open("/dev/null", O_RDONLY);

    assert_int_equal(close(file), 0);
    return file;
}

/* Returns how it went where the take with that number fails. */
static enum sumac_status made(const struct making *making, int failing)
{
    const struct devices devices = devices_first(making->kind, making->replicas);
    struct sumac_worker *worker = NULL;
    struct fixture fixture;

    prepare(&fixture, making->replicas);
    fixture.client.variables[1].dtype = making->second;
    fixture.client.member_count = 1;
    fixture.options.variable_count = 2;
    fixture.options.synchronous = making->synchronous;
    fixture.options.trace = making->trace;
    const int before = live, descriptor = next_descriptor();
    has_failed = false;
    fails_in = failing;

    const enum sumac_status status = /* when */
        worker_create(&devices, &fixture.options, &worker, &fixture.error);
    fails_in = 0;

    if (status == SUMAC_OK) { /* then */
        assert_false(has_failed);
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
        sumac_worker_destroy(worker);
    } else {
        assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED);
        assert_int_equal(fixture.error.status, status);
        assert_int_equal(fixture.error.reason, SUMAC_REASON_OUT_OF_MEMORY);
        assert_non_null(strstr(fixture.error.text, "no memory"));
        assert_null(strstr(fixture.error.text, "for 0 bytes"));
        assert_null(worker);
    }
    assert_int_equal(live, before);
    assert_int_equal(next_descriptor(), descriptor);
    assert_int_equal(far_opened, 0);
    assert_int_equal(far_buffers, 0);
    return status;
}

TEST(a_worker_that_there_is_no_memory_for_gives_back_what_it_took)
{
    far_ops = make_far_ops(); /* given */
    const struct device_ops *const cpu = device_kind("CPU");
    const struct making makings[] = {
        {cpu, 1, SUMAC_FLOAT32, SUMAC_SYNCHRONOUS_NO, NULL},
        {cpu, 3, SUMAC_BFLOAT16, SUMAC_SYNCHRONOUS_YES, "/dev/null"},
        {&far_ops, 1, SUMAC_FLOAT16, SUMAC_SYNCHRONOUS_YES, NULL},
        {&far_ops, 2, SUMAC_FLOAT32, SUMAC_SYNCHRONOUS_NO, "/dev/null"},
    };

    for (size_t i = 0; i < sizeof makings / sizeof makings[0]; i++) {
        int take = 1;
        while (take < TAKES_MAX && made(&makings[i], take) != SUMAC_OK)
            take++;
        assert_in_range(take, 10, TAKES_MAX - 1);
    }
}
