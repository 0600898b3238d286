/* SPDX-License-Identifier: Apache-2.0 */
/* status.c -- the names of statuses and reasons, and how an error is filled in. */

#include "unit.h"
#undef fail /* the house has one of its own */

#include "error.h"
#include "sumac/status.h"
#include "text.h"

TEST(a_status_has_its_grpc_name)
{
    assert_string_equal(sumac_status_name(SUMAC_OK), "OK");
    assert_string_equal(sumac_status_name(SUMAC_INVALID_ARGUMENT), "INVALID_ARGUMENT");
    assert_string_equal(sumac_status_name(SUMAC_UNAUTHENTICATED), "UNAUTHENTICATED");
}

TEST(a_number_that_is_no_status_is_unknown)
{
    assert_string_equal(sumac_status_name((enum sumac_status)17), "UNKNOWN");
    assert_string_equal(sumac_reason_name((enum sumac_reason)9999), "UNSPECIFIED");
}

TEST(a_reason_has_its_name)
{
    assert_string_equal(sumac_reason_name(SUMAC_REASON_WRONG_SHAPE), "WRONG_SHAPE");
    assert_string_equal(sumac_reason_name(SUMAC_REASON_STATE_LOST), "STATE_LOST");
}

TEST(fail_fills_in_the_error_and_returns_its_status)
{
    struct sumac_error error = {0};

    const enum sumac_status status = fail(
        &error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE, "%s has shape %s", "w", "[2]");

    assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.status, SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_WRONG_SHAPE);
    assert_string_equal(error.text, "w has shape [2]");
}

TEST(fail_without_an_error_only_returns_the_status)
{
    assert_int_equal(fail(NULL, SUMAC_ABORTED, SUMAC_REASON_VIEW_ENDED, "%d", 1), SUMAC_ABORTED);
}

TEST(a_long_text_is_cut_and_terminated)
{
    char name[2 * SUMAC_ERROR_TEXT_BYTES];

    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    struct sumac_error error;

    fail(&error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED, "%s", name);

    assert_int_equal(strlen(error.text), SUMAC_ERROR_TEXT_BYTES - 1);
}

/* Wherever the cut falls, before, within or after a character of two, three or four bytes. */
TEST(a_long_text_is_cut_between_characters)
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
TEST(a_text_is_one_line_of_utf8_whatever_is_printed_into_it)
{
    struct sumac_error error;

    fail(&error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED, "no %s", "\xff\nps 0 is lost");

    assert_string_equal(error.text, "no ??ps 0 is lost");
}

TEST(the_version_has_three_numbers)
{
    size_t dots = 0;

    for (const char *at = sumac_version(); *at != '\0'; at++)
        dots += *at == '.';
    assert_int_equal(dots, 2);
}
