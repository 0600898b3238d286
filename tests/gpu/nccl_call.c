/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_call.c -- which calls of a start may be in one of NCCL's groups, where they have no order.
 */

#include "unit.h"
#include "nccl_call.h"
#include "pause.h"

#define REPLICAS 2u

/* Places of a replica's memory, of four bytes each; nobody touches them. */
static char memory[REPLICAS][64];

struct told {
    enum group_call_kind kind;
    uint32_t root;
    unsigned from, to, elements; /* of one byte */
};

/* "01" for two calls, the second of which begins a batch. */
static const char *divided(const struct told *told, uint32_t count)
{
    static char text[8];
    struct group_call calls[8];
    const void *from[8][REPLICAS];
    void *to[8][REPLICAS];
    uint64_t elements[8][REPLICAS];

    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t r = 0; r < REPLICAS; r++) {
            from[i][r] = &memory[r][told[i].from];
            to[i][r] = &memory[r][told[i].to];
            elements[i][r] = told[i].elements;
        }
        calls[i] = (struct group_call){
            .kind = told[i].kind,
            .op = SUMAC_REDUCE_SUM,
            .root = told[i].root,
            .values = {SUMAC_INT8, from[i], to[i], elements[i], NULL},
        };
    }
    nccl_call_divide(calls, count, REPLICAS);
    for (uint32_t i = 0; i < count; i++)
        text[i] = calls[i].begins ? '1' : '0';
    text[count] = '\0';
    return text;
}

TEST(calls_that_touch_nothing_of_one_another_are_one_batch)
{
    assert_string_equal(
        divided(
            (struct told[]){
                {GROUP_ALL_REDUCE, 0, 0, 0, 4},
                {GROUP_ALL_REDUCE, 0, 4, 8, 4},
                {GROUP_BROADCAST, 1, 12, 12, 4},
            },
            3),
        "100");
}

/* The second one begins a batch, and what comes after that is compared with it alone. */
TEST(a_call_that_touches_what_another_writes_begins_a_batch)
{
    const struct told first = {GROUP_ALL_REDUCE, 0, 0, 8, 4};
    const struct told others[] = {
        {GROUP_ALL_REDUCE, 0, 20, 11, 4}, /* writes what it writes */
        {GROUP_ALL_REDUCE, 0, 11, 20, 4}, /* reads what it writes */
        {GROUP_ALL_REDUCE, 0, 20, 3, 4},  /* writes what it reads */
        {GROUP_REDUCE, 1, 20, 8, 4},      /* writes it on one replica */
        {GROUP_BROADCAST, 1, 8, 20, 4},   /* reads it on one replica */
        {GROUP_ALL_GATHER, 0, 20, 1, 4},  /* writes eight, for two replicas */
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_string_equal(
            divided((struct told[]){first, others[i], {GROUP_ALL_REDUCE, 0, 40, 44, 4}, first}, 3),
            "110");
}

TEST(what_no_replica_reads_or_writes_is_not_touched)
{
    assert_string_equal(
        divided(
            (struct told[]){
                {GROUP_REDUCE, 0, 0, 8, 4},     /* writes to replica 0 only, */
                {GROUP_BROADCAST, 1, 8, 20, 4}, /* which the next one does not read */
                {GROUP_ALL_REDUCE, 0, 8, 8, 0}, /* and nothing is nowhere */
            },
            3),
        "100");
}

TEST(more_calls_than_a_batch_may_have_are_several)
{
    struct group_call calls[3 * NCCL_BATCH_CALLS_MAX];
    static const uint64_t elements[REPLICAS];
    const void *from[REPLICAS] = {NULL};
    void *to[REPLICAS] = {NULL};
    uint32_t batches = 0;

    for (uint32_t i = 0; i < 3 * NCCL_BATCH_CALLS_MAX; i++)
        calls[i] = (struct group_call){
            .kind = GROUP_ALL_REDUCE,
            .op = SUMAC_REDUCE_SUM,
            .values = {SUMAC_INT8, from, to, elements, NULL},
        };
    nccl_call_divide(calls, 3 * NCCL_BATCH_CALLS_MAX, REPLICAS);
    for (uint32_t i = 0; i < 3 * NCCL_BATCH_CALLS_MAX; i++) {
        assert_int_equal(calls[i].begins, i % NCCL_BATCH_CALLS_MAX == 0);
        batches += calls[i].begins;
    }
    assert_int_equal(batches, 3);
}

TEST(a_batch_that_is_full_of_bytes_gets_no_more_calls)
{
    void *at[4][REPLICAS]; /* apart */
    const uint64_t few[REPLICAS] = {1, 1}, many[REPLICAS] = {NCCL_BATCH_BYTES, NCCL_BATCH_BYTES};
    struct group_call calls[4];

    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t j = 0; j < REPLICAS; j++)
            at[i][j] = (void *)((uintptr_t)(i + 1) << 40);
        calls[i] = (struct group_call){
            .kind = GROUP_ALL_REDUCE,
            .op = SUMAC_REDUCE_SUM,
            .values = {SUMAC_INT8, (const void *const *)at[i], at[i], i == 1 ? many : few, NULL},
        };
    }

    nccl_call_divide(calls, 4, REPLICAS);

    assert_true(calls[0].begins && !calls[1].begins);
    assert_true(calls[2].begins && !calls[3].begins);
}

/* How a call's scratch comes behind that of others. */
TEST(a_batch_has_no_more_calls_than_it_has_scratch_for)
{
    void *at[4][REPLICAS]; /* apart */
    const uint64_t half = NCCL_SCRATCH_BYTES_MAX / 8 / 64;
    const uint64_t few[REPLICAS] = {half, half}, many[REPLICAS] = {1u << 30, 1u << 30};
    struct group_call calls[4];

    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t j = 0; j < REPLICAS; j++)
            at[i][j] = (void *)((uintptr_t)(i + 1) << 40);
        calls[i] = (struct group_call){
            .kind = GROUP_ALL_REDUCE,
            .op = SUMAC_REDUCE_SUM,
            .values = {SUMAC_INT8, (const void *const *)at[i], at[i], i == 2 ? many : few, NULL},
            .scratch_each = 4,
        };
    }

    assert_int_equal(nccl_call_divide(calls, 2, REPLICAS), 2 * 4 * half); /* when, then */
    assert_true(calls[0].begins && !calls[1].begins);
    assert_int_equal(calls[1].scratch_offset, 4 * half);
    assert_int_equal(nccl_call_divide(calls, 4, REPLICAS), NCCL_SCRATCH_BYTES_MAX);
    assert_true(calls[2].begins && calls[3].begins);
    assert_int_equal(calls[3].scratch_offset, 0);
    assert_int_equal(nccl_call_part(&calls[2], 0), NCCL_SCRATCH_BYTES_MAX / 4);
    assert_int_equal(nccl_call_part(&calls[2], (1u << 30) - 5), 5);
}

/* Who sleeps so long at most sees the end of a wait less than 2 % late. */
TEST(a_pause_is_a_small_part_of_the_wait)
{
    assert_int_equal(pause_us(0), 0);
    for (uint64_t waited_us = 1; waited_us < 60000000; waited_us += waited_us / 2 + 1) {
        assert_true(pause_us(waited_us) * 50 <= waited_us);
        assert_true(pause_us(waited_us) <= PAUSE_US_MAX);
        assert_true(waited_us < 5000 || pause_us(waited_us) > 0);
    }
}
