/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c -- one of several workers that sum a tensor by collectives, as fast as they can:
 * `collective_worker BYTES COUNT`. The first of them prints the median of its rounds, in µs. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sumac/client.h"
#include "sumac/collective.h"

#define WARM_UP 5u

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static void give_up(const struct sumac_error *error)
{
    (void)fprintf(stderr, "collective_worker: %s\n", error->text);
    exit(1);
}

int main(int argc, char **argv)
{
    const uint64_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 4096;
    const uint32_t count = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 100;
    const uint64_t elements = bytes / sizeof(float);
    float *value = calloc(elements, sizeof *value);
    uint64_t *times = calloc(count, sizeof *times);
    struct sumac_client_facts facts;
    struct sumac_client *client = NULL;
    struct sumac_error error;

    if (value == NULL || times == NULL)
        return 1;
    sumac_tune_malloc();
    if (sumac_client_open(NULL, &client, &error) != SUMAC_OK)
        give_up(&error);
    sumac_client_describe(client, &facts);
    const struct sumac_tensor tensor =
        sumac_tensor_over(value, SUMAC_FLOAT32, SUMAC_SHAPE(elements));
    for (uint32_t i = 0; i < WARM_UP + count; i++) {
        const struct sumac_collective_options options = {.name = "bench"};
        const uint64_t began = now_ns();
        value[0] = 1;
        if (sumac_client_all_reduce(client, &options, SUMAC_REDUCE_SUM, &tensor, NULL, &error) !=
            SUMAC_OK)
            give_up(&error);
        if (value[0] < (float)facts.member_count || value[0] > (float)facts.member_count)
            return 1;
        if (i >= WARM_UP)
            times[i - WARM_UP] = now_ns() - began;
    }
    qsort(times, count, sizeof *times, compare);
    if (facts.member_index == 0)
        (void)printf("median %.1f us\n", (double)times[count / 2] / 1000);
    if (sumac_client_leave(client, SUMAC_LEAVING_DONE, &error) != SUMAC_OK)
        give_up(&error);
    sumac_client_close(client);
    free(times);
    free(value);
    return 0;
}
