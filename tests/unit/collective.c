/* SPDX-License-Identifier: Apache-2.0 */
/* collective.c -- what a contribution says of its round: read, compared, split, copied. */

#include "unit.h"
#include "collective.h"

#define TASKS 4
#define CHIEF(index) (2 * UINT64_C(index))
#define WORKER(index) (2 * UINT64_C(index) + 1)

/* A message whose fields a test changes, and what is read from it. */
struct desk {
    wire_collective message;
    uint64_t named[TASKS];
    uint64_t shape[SUMAC_RANK_MAX + 1];
    struct collective_task own;
    struct collective_texts texts;
    struct collective collective;
    struct sumac_error error;
};

static void name(struct desk *desk, const char *name, size_t bytes)
{
    desk->message.name = (wire_bytes){.len = bytes, .data = (uint8_t *)(uintptr_t)name};
}

/* Worker 1 contributes to the sum of the chief, worker 1 and worker 7: float32 of [2, 3]. */
static struct desk *begin(struct desk *desk)
{
    *desk = (struct desk){
        .message = WIRE_COLLECTIVE_INIT, .shape = {2, 3}, .own = {.chief = false, .index = 1}};
    desk->named[0] = CHIEF(0);
    desk->named[1] = WORKER(1);
    desk->named[2] = WORKER(7);
    desk->named[3] = WORKER(9);
    name(desk, "grads", 5);
    desk->message.round = 3;
    desk->message.tasks = desk->named;
    desk->message.n_tasks = 3;
    desk->message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_SUM;
    desk->message.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    desk->message.shape = desk->shape;
    desk->message.n_shape = 2;
    return desk;
}

static enum sumac_status read(struct desk *desk)
{
    return collective_read(
        &desk->message, &desk->own, &desk->texts, &desk->collective, &desk->error);
}

static void assert_refused(struct desk *desk, enum sumac_reason reason, const char *text)
{
    const enum sumac_status expected =
        reason == SUMAC_REASON_UNSUPPORTED ? SUMAC_UNIMPLEMENTED : SUMAC_INVALID_ARGUMENT;

    desk->collective.round = 99;
    assert_int_equal(read(desk), expected);
    assert_int_equal(desk->error.reason, reason);
    if (strstr(desk->error.text, text) == NULL)
        fail_msg("got \"%s\", expected \"%s\"", desk->error.text, text);
    assert_int_equal(desk->collective.round, 99); /* it is left alone */
}

TEST(all_that_is_said_is_read)
{
    struct desk desk;

    assert_int_equal(read(begin(&desk)), SUMAC_OK);

    assert_string_equal(desk.collective.name, "grads");
    assert_int_equal(desk.collective.round, 3);
    assert_int_equal(desk.collective.task_count, 3);
    assert_int_equal(desk.collective.own, 1);
    assert_true(desk.collective.tasks[0].chief);
    assert_int_equal(desk.collective.tasks[2].index, 7);
    assert_int_equal(desk.collective.operation, COLLECTIVE_SUM);
    assert_int_equal(desk.collective.dtype, SUMAC_FLOAT32);
    assert_int_equal(desk.collective.elements, 6);
    assert_int_equal(desk.collective.timeout_ms, COLLECTIVE_TIMEOUT_MS_DEFAULT);
}

TEST(a_name_is_a_printable_line_and_a_round_counts_from_one)
{
    struct desk desk;
    char longest[COLLECTIVE_NAME_BYTES_MAX + 1];

    memset(longest, 'x', sizeof longest);
    name(begin(&desk), "", 0);
    assert_refused(&desk, SUMAC_REASON_BAD_NAME, "has 1 to 256 bytes, given 0");
    name(begin(&desk), longest, COLLECTIVE_NAME_BYTES_MAX + 1);
    assert_refused(&desk, SUMAC_REASON_BAD_NAME, "has 1 to 256 bytes, given 257");
    name(begin(&desk), longest, COLLECTIVE_NAME_BYTES_MAX);
    assert_int_equal(read(&desk), SUMAC_OK);
    name(begin(&desk), "a\nb", 3);
    assert_refused(&desk, SUMAC_REASON_BAD_NAME, "control character, shown here as ?: a?b");
    name(begin(&desk), "a\0b", 3);
    assert_refused(&desk, SUMAC_REASON_BAD_NAME, "control character");
    name(begin(&desk), "\xff", 1);
    assert_refused(&desk, SUMAC_REASON_BAD_NAME, "is not UTF-8");
    begin(&desk)->message.round = 0;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "no round 0");
    begin(&desk)->message.round = UINT64_MAX;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "no round 18446744073709551615");
}

TEST(tasks_are_named_in_their_order_each_once_and_the_own_among_them)
{
    struct desk desk;

    begin(&desk)->named[0] = UINT64_MAX;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "names a task of no index after no task");
    begin(&desk)->named[2] = WORKER(1);
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "worker 1 after worker 1");
    begin(&desk)->named[2] = CHIEF(7);
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "chief 7 after worker 1");
    begin(&desk)->own.index = 2;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "worker 2 contributes to collective grads");
    begin(&desk)->own.chief = true;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "chief 1 contributes");
    begin(&desk)->message.n_tasks = 0;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "names 0 tasks");
    begin(&desk)->message.n_tasks = 1000000; /* none of which is looked at */
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "names 1000000 tasks");
}

TEST(an_operation_takes_the_types_that_it_has_a_meaning_for)
{
    struct desk desk;

    begin(&desk)->message.operation = (Sumac__V1__Collective__Operation)0;
    assert_refused(&desk, SUMAC_REASON_UNSUPPORTED, "operation 0 is not known");
    begin(&desk)->message.operation = (Sumac__V1__Collective__Operation)-1;
    assert_refused(&desk, SUMAC_REASON_UNSUPPORTED, "operation -1 is not known");
    begin(&desk)->message.data_type = (Sumac__V1__DataType)99;
    assert_refused(&desk, SUMAC_REASON_WRONG_DATA_TYPE, "data type 99 is not known");
    begin(&desk)->message.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_BOOL;
    assert_refused(&desk, SUMAC_REASON_WRONG_DATA_TYPE, "there is no sum of bool");
    begin(&desk)->message.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_INT32;
    desk.message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MEAN;
    assert_refused(&desk, SUMAC_REASON_WRONG_DATA_TYPE, "there is no mean of int32");
    begin(&desk)->message.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_BOOL;
    desk.message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    assert_int_equal(read(&desk), SUMAC_OK);
}

TEST(a_shape_that_no_memory_has_is_refused)
{
    struct desk desk;

    begin(&desk)->message.n_shape = SUMAC_RANK_MAX + 1;
    assert_refused(&desk, SUMAC_REASON_BAD_SHAPE, "a shape of 9 axes");
    begin(&desk)->shape[0] = UINT64_MAX;
    assert_refused(&desk, SUMAC_REASON_BAD_SHAPE, "more than 2^63 - 1 bytes");
    begin(&desk)->shape[0] = UINT64_C(1) << 31;
    desk.shape[1] = UINT64_C(1) << 31;
    assert_refused(&desk, SUMAC_REASON_BAD_SHAPE, "[2147483648, 2147483648] of float32");
    begin(&desk)->message.n_shape = 0;
    assert_int_equal(read(&desk), SUMAC_OK);
    desk.message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_CONCATENATE;
    assert_refused(&desk, SUMAC_REASON_BAD_SHAPE, "a concatenate of scalars");
}

TEST(an_axis_and_a_root_belong_to_their_operations)
{
    struct desk desk;

    begin(&desk)->message.axis = 1;
    assert_refused(&desk, SUMAC_REASON_BAD_SHAPE, "a sum along axis 1, of 0 to 0");
    desk.message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    assert_int_equal(read(&desk), SUMAC_OK);
    desk.message.axis = 2;
    assert_refused(&desk, SUMAC_REASON_BAD_SHAPE, "along axis 2, of 0 to 1");
    begin(&desk)->message.root = 1;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "the task at place 1, of 0 to 0");
    desk.message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_BROADCAST;
    assert_int_equal(read(&desk), SUMAC_OK);
    desk.message.root = 3;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "the task at place 3, of 0 to 2");
}

TEST(what_is_large_is_split_and_what_is_joined_is_not)
{
    struct desk desk;

    begin(&desk)->message.split = true;
    desk.message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "a gather is not split");
    begin(&desk)->shape[0] = COLLECTIVE_WHOLE_BYTES_MAX / 12 + 1;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "a sum of 1048584 bytes on one ps");
    desk.message.split = true;
    assert_int_equal(read(&desk), SUMAC_OK);
}

TEST(the_shares_of_all_ps_are_the_whole)
{
    static const uint64_t counts[] = {0, 1, 2, 7, 1000, UINT64_C(1) << 61, (UINT64_C(1) << 61) - 1};
    struct desk desk;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        begin(&desk)->shape[0] = counts[i];
        desk.message.n_shape = 1;
        desk.message.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_INT8;
        desk.message.split = true;
        assert_int_equal(read(&desk), SUMAC_OK);
        for (uint32_t ps_count = 1; ps_count <= 256; ps_count += 51) {
            uint64_t next = 0;
            for (uint32_t ps = 0; ps < ps_count; ps++) {
                const struct collective_share share =
                    collective_share(&desk.collective, ps, ps_count);
                assert_int_equal(share.first_byte, next);
                assert_true(share.bytes <= counts[i] / ps_count + 1);
                next += share.bytes;
            }
            assert_int_equal(next, counts[i]);
        }
    }
}

TEST(what_is_added_of_a_half_type_comes_in_float32)
{
    struct desk desk;

    begin(&desk)->message.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_BFLOAT16;
    assert_int_equal(read(&desk), SUMAC_OK);
    assert_int_equal(collective_contribution_dtype(&desk.collective), SUMAC_FLOAT32);
    assert_int_equal(collective_share(&desk.collective, 0, 1).bytes, 24);
    desk.message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MAX;
    assert_int_equal(read(&desk), SUMAC_OK);
    assert_int_equal(collective_contribution_dtype(&desk.collective), SUMAC_BFLOAT16);
    assert_int_equal(collective_share(&desk.collective, 0, 1).bytes, 12);
}

TEST(a_broadcast_has_the_bytes_of_its_root_alone)
{
    struct desk desk;

    begin(&desk)->message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_BROADCAST;
    desk.message.root = 1;
    assert_int_equal(read(&desk), SUMAC_OK);
    assert_int_equal(collective_share(&desk.collective, 0, 1).bytes, 24);
    desk.own.index = 7;
    assert_int_equal(read(&desk), SUMAC_OK);
    assert_int_equal(collective_share(&desk.collective, 0, 1).bytes, 0);
}

/* Worker 1 has come as `first` says; worker 7 then says `other`. */
static void assert_differs(struct desk *first, struct desk *other, const char *how)
{
    struct sumac_error error;

    other->own.index = 7;
    assert_int_equal(read(first), SUMAC_OK);
    assert_int_equal(read(other), SUMAC_OK);
    if (how == NULL) {
        assert_int_equal(
            collective_compare(&first->collective, &other->collective, &error), SUMAC_OK);
        return;
    }
    assert_int_equal(
        collective_compare(&first->collective, &other->collective, &error),
        SUMAC_FAILED_PRECONDITION);
    assert_int_equal(error.reason, SUMAC_REASON_STEP_DIFFERS);
    if (strstr(error.text, how) == NULL)
        fail_msg("got \"%s\", expected \"%s\"", error.text, how);
}

TEST(who_differs_is_named_with_what_both_say)
{
    struct desk a, b;

    assert_differs(begin(&a), begin(&b), NULL);
    begin(&b)->message.timeout_ms = 5;
    assert_differs(begin(&a), &b, NULL);
    begin(&b)->message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_MAX;
    assert_differs(
        begin(&a), &b,
        "round 3 of collective grads: worker 7 says that it is a max, and worker 1 said sum");
    begin(&b)->message.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
    assert_differs(begin(&a), &b, "it is of float64, and worker 1 said float32");
    begin(&b)->shape[1] = 4;
    assert_differs(begin(&a), &b, "its shape is [2, 4], and worker 1 said [2, 3]");
    begin(&b)->message.split = true;
    assert_differs(begin(&a), &b, "it meets over all ps, and worker 1 said on one ps");
    begin(&b)->message.n_tasks = 4;
    assert_differs(begin(&a), &b, "4 tasks, chief 0 to worker 9, and worker 1 said 3 tasks");
}

TEST(the_same_number_of_other_tasks_differs_too)
{
    struct desk a, b;

    begin(&b)->named[0] = CHIEF(1);
    assert_differs(begin(&a), &b, "chief 1 to worker 7, and worker 1 said 3 tasks, chief 0");
}

/* The ends of the lists are equal, so they would not show the difference. */
TEST(of_lists_that_differ_in_the_middle_the_first_such_task_is_named)
{
    struct desk a, b;

    begin(&a)->message.n_tasks = begin(&b)->message.n_tasks = 4;
    a.named[2] = WORKER(5);
    assert_differs(
        &a, &b,
        "worker 7 says that its participants are 4 tasks, chief 0 to worker 9, worker 7 at place "
        "2, and worker 1 said 4 tasks, chief 0 to worker 9, worker 5 at place 2; all say the same");
}

TEST(roots_and_axes_are_compared)
{
    struct desk a, b;

    begin(&a)->message.operation = begin(&b)->message.operation =
        SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_BROADCAST;
    b.message.root = 2;
    assert_differs(&a, &b, "its root is worker 7, and worker 1 said chief 0");
    begin(&a)->message.operation = begin(&b)->message.operation =
        SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    b.message.axis = 1;
    assert_differs(&a, &b, "it goes along axis 1, and worker 1 said axis 0");
}

TEST(what_is_joined_may_differ_along_its_axis_alone)
{
    struct desk a, b;

    begin(&a)->message.operation = begin(&b)->message.operation =
        SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_GATHER;
    a.message.axis = b.message.axis = 1;
    b.shape[1] = 1000;
    assert_differs(&a, &b, NULL);
    b.shape[0] = 5;
    b.own.index = 1;
    assert_differs(&a, &b, "its shape is [5, 1000], and worker 1 said [2, 3]");
    b.message.n_shape = 3;
    b.shape[0] = 2;
    b.shape[1] = b.shape[2] = 3;
    assert_differs(&a, &b, "its shape is [2, 3, 3]");
}

/* Everything that a session may say, and nothing of what it did not. */
TEST(what_is_written_is_read_as_the_same)
{
    for (int of_attempts = 0; of_attempts < 2; of_attempts++) {
        static uint64_t attempts[TASKS] = {4, 5, 6};
        struct desk desk, again;
        struct arena arena;
        begin(&desk)->message.operation =
            of_attempts ? SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_BROADCAST
                        : SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_SUM;
        desk.message.root = of_attempts ? 2 : 0;
        desk.message.split = !of_attempts;
        desk.message.timeout_ms = 1234;
        desk.message.attempts = attempts;
        desk.message.n_attempts = of_attempts ? 3 : 0;
        assert_int_equal(read(&desk), SUMAC_OK);
        arena_init(&arena, &memory_heap, 4096);

        begin(&again)->message = *collective_write(&desk.collective, &arena);
        assert_int_equal(read(&again), SUMAC_OK);

        assert_int_equal(again.message.n_attempts, of_attempts ? 3 : 0);
        assert_int_equal(again.collective.of_attempts, of_attempts);
        assert_int_equal(again.collective.root, desk.collective.root);
        assert_int_equal(again.collective.split, desk.collective.split);
        assert_int_equal(again.collective.timeout_ms, 1234);
        assert_int_equal(again.collective.tasks[2].attempt, of_attempts ? 6 : 0);
        assert_int_equal(
            collective_compare(&desk.collective, &again.collective, &desk.error), SUMAC_OK);
        arena_deinit(&arena);
    }
}

TEST(what_lies_just_beyond_a_bound_is_refused_or_cut)
{
    static uint64_t many[COLLECTIVE_TASKS_MAX + 1];
    struct desk desk;

    begin(&desk)->message.operation =
        (Sumac__V1__Collective__Operation)(COLLECTIVE_CONCATENATE + 1);
    assert_refused(&desk, SUMAC_REASON_UNSUPPORTED, "operation 8 is not known");
    for (uint32_t i = 0; i <= COLLECTIVE_TASKS_MAX; i++)
        many[i] = 2 * (uint64_t)i + 1;
    begin(&desk)->message.tasks = many;
    desk.message.n_tasks = COLLECTIVE_TASKS_MAX + 1;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "tasks that take part");
    /* the float32 that is added up counts, not the half type */
    begin(&desk)->message.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT16;
    desk.shape[0] = COLLECTIVE_WHOLE_BYTES_MAX / 12 + 1;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "a sum of 1048584 bytes on one ps");
    begin(&desk)->message.timeout_ms = UINT32_MAX;
    assert_int_equal(read(&desk), SUMAC_OK);
    assert_int_equal(desk.collective.timeout_ms, WIRE_ROUND_MS_MAX);
    name(&desk, "ab", 2); /* into the same texts */
    assert_int_equal(read(&desk), SUMAC_OK);
    assert_string_equal(desk.collective.name, "ab");
}

TEST(a_share_begins_where_the_one_before_it_ends)
{
    struct desk desk;

    begin(&desk)->message.split = true;
    assert_int_equal(read(&desk), SUMAC_OK);
    assert_int_equal(
        collective_share(&desk.collective, 1, 2).first_byte,
        collective_share(&desk.collective, 0, 2).bytes);
    begin(&desk)->message.operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_CONCATENATE;
    assert_int_equal(read(&desk), SUMAC_OK);
    assert_int_equal(/* two indices, and the rows */
                     collective_share(&desk.collective, 0, 1).bytes,
                     2 * sizeof(int64_t) + 6 * sizeof(float));
}

/* An attempt for each task, and the session's own for its own. A ps that reads an order has none.
 */
TEST(attempts_are_those_of_all_tasks)
{
    static uint64_t attempts[TASKS] = {4, 5, 6, 7};
    struct desk desk;

    begin(&desk)->message.attempts = attempts;
    for (size_t count = 2; count <= 4; count += 2) {
        desk.message.n_attempts = count;
        assert_refused(&desk, SUMAC_REASON_MALFORMED, "attempts of 3 tasks");
    }
    desk.message.n_attempts = 3;
    desk.own.attempt = 4;
    assert_refused(&desk, SUMAC_REASON_MALFORMED, "names itself as attempt 5");
    desk.own.attempt = 5;
    assert_int_equal(read(&desk), SUMAC_OK);
    desk.own.attempt = 0;
    assert_int_equal(read(&desk), SUMAC_OK);
}

TEST(a_copy_outlives_what_was_read)
{
    struct desk desk;

    assert_int_equal(read(begin(&desk)), SUMAC_OK);
    void *block = malloc(collective_copy_bytes(&desk.collective));
    assert_non_null(block);
    struct collective *copy = collective_copy(&desk.collective, block);
    memset(&desk.texts, 0xff, sizeof desk.texts);

    assert_string_equal(copy->name, "grads");
    assert_int_equal(
        collective_place(copy, &(struct collective_task){.chief = false, .index = 7}), 2);
    assert_int_equal(
        collective_place(copy, &(struct collective_task){.chief = true, .index = 7}), UINT32_MAX);
    free(block);
}

/* PROTOCOL.md gives these numbers to the authors of clients. */
TEST(a_name_is_at_home_where_the_protocol_says)
{
    const uint32_t prime = UINT32_C(4294967291);

    assert_int_equal(wire_collective_home("A", 1, 5), 3);
    assert_int_equal(wire_collective_home("A", 1, prime), UINT64_C(0xaf63fc4c860222ec) % prime);
    assert_int_equal(wire_collective_home("grads", 5, 3), 2);
    assert_int_equal(wire_collective_home("grads", 5, prime), UINT64_C(0x32a8892977c46c3e) % prime);
}
