/* SPDX-License-Identifier: Apache-2.0 */
/* status.c -- the names of statuses and reasons, and how an error is filled in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* the house has one of its own */

#include "error.h"
#include "sumac/status.h"
#include "text.h"

static void a_status_has_its_grpc_name(void **state)
{
    assert_string_equal(sumac_status_name(SUMAC_OK), "OK");
    assert_string_equal(sumac_status_name(SUMAC_INVALID_ARGUMENT), "INVALID_ARGUMENT");
    assert_string_equal(sumac_status_name(SUMAC_UNAUTHENTICATED), "UNAUTHENTICATED");
}

static void a_number_that_is_no_status_is_unknown(void **state)
{
    assert_string_equal(sumac_status_name((enum sumac_status)17), "UNKNOWN");
    assert_string_equal(sumac_reason_name((enum sumac_reason)9999), "UNSPECIFIED");
}

static void a_reason_has_its_name(void **state)
{
    assert_string_equal(sumac_reason_name(SUMAC_REASON_WRONG_SHAPE), "WRONG_SHAPE");
    assert_string_equal(sumac_reason_name(SUMAC_REASON_STATE_LOST), "STATE_LOST");
}

static void fail_fills_in_the_error_and_returns_its_status(void **state)
{
    struct sumac_error error = {0};

    const enum sumac_status status = fail(
        &error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE, "%s has shape %s", "w", "[2]");

    assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.status, SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_WRONG_SHAPE);
    assert_string_equal(error.text, "w has shape [2]");
}

static void fail_without_an_error_only_returns_the_status(void **state)
{
    assert_int_equal(fail(NULL, SUMAC_ABORTED, SUMAC_REASON_VIEW_ENDED, "%d", 1), SUMAC_ABORTED);
}

static void a_long_text_is_cut_and_terminated(void **state)
{
    char name[2 * SUMAC_ERROR_TEXT_BYTES];

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    struct sumac_error error;

    fail(&error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED, "%s", name);

    assert_int_equal(strlen(error.text), SUMAC_ERROR_TEXT_BYTES - 1);
}

/* Wherever the cut falls, before, within or after a character of two, three or four bytes. */
static void a_long_text_is_cut_between_characters(void **state)
{
    const char *const characters[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x8c\xb3"};

    for (size_t c = 0; c < 3; c++) {
        for (size_t padding = 0; padding < 4; padding++) {
            char name[2 * SUMAC_ERROR_TEXT_BYTES] = "xxxx";
            name[padding] = '\0';
            while (strlen(name) + 5 < sizeof name)
                strcat(name, characters[c]);
            struct sumac_error error;

            fail(&error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED, "%s", name);

            assert_true(text_is_utf8(error.text, strlen(error.text)));
            assert_true(strlen(error.text) >= SUMAC_ERROR_TEXT_BYTES - 4);
        }
    }
}

/* What a peer sent may stand in a message, and messages are lines of a log. */
static void a_text_is_one_line_of_utf8_whatever_is_printed_into_it(void **state)
{
    struct sumac_error error;

    fail(&error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED, "no %s", "\xff\nps 0 is lost");

    assert_string_equal(error.text, "no ??ps 0 is lost");
}

static void the_version_has_three_numbers(void **state)
{
    size_t dots = 0;

    for (const char *at = sumac_version(); *at != '\0'; at++)
        dots += *at == '.';
    assert_int_equal(dots, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_has_its_grpc_name),
        cmocka_unit_test(a_number_that_is_no_status_is_unknown),
        cmocka_unit_test(a_reason_has_its_name),
        cmocka_unit_test(fail_fills_in_the_error_and_returns_its_status),
        cmocka_unit_test(fail_without_an_error_only_returns_the_status),
        cmocka_unit_test(a_long_text_is_cut_and_terminated),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(a_text_is_one_line_of_utf8_whatever_is_printed_into_it),
        cmocka_unit_test(the_version_has_three_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
