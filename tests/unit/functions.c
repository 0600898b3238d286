/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c (test) -- which update functions a cluster has, and what may become one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "functions.h"

static int begin(void **state)
{
    static struct functions functions;

    *state = &functions;
    return functions_init(&functions, &memory_heap, NULL) ? 0 : -1;
}

static int end(void **state)
{
    functions_deinit(*state);
    return 0;
}

static enum sumac_status
add(struct functions *functions, uint32_t number, const char *name, const char *text,
    struct sumac_error *error)
{
    return functions_add(functions, number, name, text, strlen(text), error);
}

static void a_number_stands_for_one_text(void **state)
{
    struct functions *functions = *state;
    struct sumac_error error = {0};
    const uint32_t first = functions_next(functions);

    /* given */
    assert_int_equal(first, UPDATE_DEFINED_FIRST);
    assert_null(functions_find(functions, first));
    assert_int_equal(add(functions, first, "mine", "value = g\n", &error), SUMAC_OK);

    /* when, then: again is the same */
    assert_int_equal(add(functions, first, "mine", "value = g\n", &error), SUMAC_OK);
    assert_int_equal(functions->count, 1);
    assert_string_equal(functions_find(functions, first)->name, "mine");
    assert_ptr_equal(
        &functions_find_defined(functions, "mine")->row.function, functions_find(functions, first));
    assert_null(functions_find_defined(functions, "other"));

    /* when, then: with another text it is not */
    assert_int_equal(
        add(functions, first, "mine", "value = g + 1\n", &error), SUMAC_ALREADY_EXISTS);
    assert_non_null(strstr(
        error.text, "its line 1 is “value = g”, that of the one given “value = "
                    "g + 1”"));
    assert_int_equal(
        add(functions, first, "mine", "value = g\n\nvalue", &error), SUMAC_ALREADY_EXISTS);
    assert_non_null(strstr(error.text, "its line 2 is “”, that of the one given “”"));
    assert_int_equal(
        add(functions, first + 1, "mine", "value = g\n", &error), SUMAC_ALREADY_EXISTS);
    assert_int_equal(add(functions, first, "other", "value = g\n", &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    assert_int_equal(functions->count, 1);
}

static void those_of_the_table_keep_their_numbers(void **state)
{
    for (uint32_t number = 0; number < UPDATE_DEFINED_FIRST; number++) {
        assert_ptr_equal(functions_find(*state, number), update_find(number));
        assert_ptr_equal(functions_find(NULL, number), update_find(number));
    }
    assert_null(functions_find(NULL, UPDATE_DEFINED_FIRST));
    assert_null(functions_find(*state, UINT32_MAX));
}

static void there_are_so_many_and_no_more(void **state)
{
    struct functions *functions = *state;
    struct sumac_error error = {0};
    char name[16];

    for (uint32_t i = 0; i < UPDATE_DEFINED_MAX; i++) { /* given */
        (void)snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(
            add(functions, UPDATE_DEFINED_FIRST + i, name, "value = g", &error), SUMAC_OK);
    }

    const enum sumac_status status = /* when */
        add(functions, functions_next(functions), "one_more", "value = g", &error);

    assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED); /* then */
    assert_int_equal(add(functions, UPDATE_DEFINED_FIRST, "f0", "value = g", &error), SUMAC_OK);
    assert_null(functions_find(functions, functions_next(functions)));
}

static void a_text_that_is_none_takes_no_number(void **state)
{
    struct functions *functions = *state;
    struct sumac_error error = {0};
    const uint32_t next = functions_next(functions);

    assert_int_equal(add(functions, next, "mine", "value = h", &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_BAD_EXPRESSION);
    assert_null(functions_find(functions, next));
    assert_int_equal(functions_next(functions), next);
    assert_int_equal(add(functions, next, "mine", "value = g", &error), SUMAC_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_number_stands_for_one_text, begin, end),
        cmocka_unit_test_setup_teardown(those_of_the_table_keep_their_numbers, begin, end),
        cmocka_unit_test_setup_teardown(there_are_so_many_and_no_more, begin, end),
        cmocka_unit_test_setup_teardown(a_text_that_is_none_takes_no_number, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
