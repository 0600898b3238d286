/* SPDX-License-Identifier: Apache-2.0 */
/* exit_code.c (test) -- which code a program exits with after an error. */

#include "unit.h"
#include "sumac/client.h"

static int exit_code(enum sumac_status status, enum sumac_reason reason)
{
    const struct sumac_error error = {.status = status, .reason = reason};

    return sumac_exit_code(&error);
}

TEST(an_exit_code_says_whether_a_restart_may_help)
{
    assert_int_equal(exit_code(SUMAC_OK, SUMAC_REASON_UNSPECIFIED), 0);
    assert_int_equal(sumac_exit_code(NULL), 0);
    assert_int_equal(exit_code(SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE), 2);
    assert_int_equal(exit_code(SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED), 2);
    assert_int_equal(exit_code(SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER), 2);
    assert_int_equal(exit_code(SUMAC_FAILED_PRECONDITION, SUMAC_REASON_PROTOCOL_VERSION), 2);
    assert_int_equal(exit_code(SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING), 138);
    assert_int_equal(exit_code(SUMAC_ABORTED, SUMAC_REASON_SESSION_CLOSED), 138);
    assert_int_equal(exit_code(SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST), 138);
    assert_int_equal(exit_code(SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT), 138);
    assert_int_equal(exit_code(SUMAC_ABORTED, SUMAC_REASON_STEP_LATE), 138);
    assert_int_equal(exit_code(SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED), 0);
}

TEST(a_late_step_is_said_and_ends_no_program)
{
    const struct sumac_error error = {
        .status = SUMAC_ABORTED, .reason = SUMAC_REASON_STEP_LATE, .text = "step 7 was taken"};

    sumac_check(error.status, &error); /* it returns */
}

/* A connection broke, or a server is not Sumac's. */
TEST(without_a_reason_the_status_says_whether_a_restart_may_help)
{
    static const enum sumac_status again[] = {
        SUMAC_UNAVAILABLE, SUMAC_DEADLINE_EXCEEDED, SUMAC_ABORTED, SUMAC_CANCELLED,
        SUMAC_DATA_LOSS,   SUMAC_INTERNAL,          SUMAC_UNKNOWN};
    static const enum sumac_status never[] = {
        SUMAC_INVALID_ARGUMENT,    SUMAC_NOT_FOUND,    SUMAC_ALREADY_EXISTS,
        SUMAC_RESOURCE_EXHAUSTED,  SUMAC_OUT_OF_RANGE, SUMAC_UNIMPLEMENTED,
        SUMAC_FAILED_PRECONDITION,
    };

    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++)
        assert_int_equal(exit_code(again[i], SUMAC_REASON_UNSPECIFIED), 138);
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        assert_int_equal(exit_code(never[i], SUMAC_REASON_UNSPECIFIED), 2);
}
