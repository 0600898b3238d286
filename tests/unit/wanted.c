/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.c -- slices of rows, as Python cuts them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wanted.h"

static void assert_slice(const char *text, uint64_t first, uint64_t count)
{
    struct sumac_range rows = {0};
    struct sumac_error error = {0};

    if (wanted_parse_slice(text, "w", 10, &rows, &error) != SUMAC_OK)
        fail_msg("%s: %s", text, error.text);
    assert_int_equal(rows.first, first);
    assert_int_equal(rows.count, count);
}

static void assert_refused(const char *text, const char *said)
{
    struct sumac_range rows = {.first = 77};
    struct sumac_error error = {0};

    assert_int_equal(wanted_parse_slice(text, "w", 10, &rows, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, said);
    assert_int_equal(rows.first, 77);
}

static void a_slice_goes_from_its_first_row_up_to_its_end(void **state)
{
    (void)state;
    assert_slice("0:4", 0, 4);
    assert_slice("3:4", 3, 1);
    assert_slice("9:10", 9, 1);
    assert_slice(":", 0, 10);
    assert_slice("7:", 7, 3);
    assert_slice(":2", 0, 2);
}

static void a_number_below_0_counts_from_the_end(void **state)
{
    (void)state;
    assert_slice("-3:", 7, 3);
    assert_slice(":-1", 0, 9);
    assert_slice("-10:-9", 0, 1);
    assert_slice("-1:", 9, 1);
}

static void what_is_beyond_either_end_is_cut_off(void **state)
{
    (void)state;
    assert_slice("8:99", 8, 2);
    assert_slice("-11:1", 0, 1);
    assert_slice("-9223372036854775808:9223372036854775807", 0, 10);
}

static void a_slice_without_rows_is_refused_with_how_many_there_are(void **state)
{
    (void)state;
    assert_refused("4:4", "the slice 4:4 of w has no rows; the variable has 10");
    assert_refused("5:4", "the slice 5:4 of w has no rows; the variable has 10");
    assert_refused("10:", "the slice 10: of w has no rows; the variable has 10");
}

static void what_is_no_slice_is_refused(void **state)
{
    (void)state;
    assert_refused("4", "a slice is FIRST:END, such as 0:4 or -3:, not 4");
    assert_refused("a:4", "a slice is FIRST:END, such as 0:4 or -3:, not a:4");
    assert_refused("0:4:2", "a slice is FIRST:END, such as 0:4 or -3:, not 0:4:2");
    assert_refused(
        "0:9223372036854775808",
        "a slice is FIRST:END, such as 0:4 or -3:, not 0:9223372036854775808");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slice_goes_from_its_first_row_up_to_its_end),
        cmocka_unit_test(a_number_below_0_counts_from_the_end),
        cmocka_unit_test(what_is_beyond_either_end_is_cut_off),
        cmocka_unit_test(a_slice_without_rows_is_refused_with_how_many_there_are),
        cmocka_unit_test(what_is_no_slice_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
