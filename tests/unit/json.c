/* SPDX-License-Identifier: Apache-2.0 */
/* json.c (test) -- the layout of JSON documents, and what is read from one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "json.h"

/* Lists and objects within others, some of them empty. */
static struct value *nested(void)
{
    struct value *const inner = value_object(), *const list = value_array();
    struct value *const whole = value_object();

    value_add(list, value_integer(-1));
    value_add(list, value_array());
    value_put(inner, "a", value_bool(true));
    value_put(inner, "b", value_text("x\"y"));
    value_add(list, inner);
    value_put(whole, "list", list);
    value_put(whole, "none", value_object());
    return whole;
}

static char *printed(const struct value *value, bool (*print)(const struct value *, FILE *))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    assert_true(print(value, file));
    assert_int_equal(fclose(file), 0);
    return text;
}

static void a_document_is_indented_by_two_blanks_a_level(void **state)
{
    (void)state;
    struct value *const whole = nested();
    char *const text = printed(whole, value_print);

    assert_string_equal(
        text, "{\n"
              "  \"list\": [\n"
              "    -1,\n"
              "    [],\n"
              "    {\n"
              "      \"a\": true,\n"
              "      \"b\": \"x\\\"y\"\n"
              "    }\n"
              "  ],\n"
              "  \"none\": {}\n"
              "}\n");
    free(text);
    value_free(whole);
}

static void a_line_has_the_whole_document(void **state)
{
    (void)state;
    struct value *const whole = nested();
    char *const text = printed(whole, value_print_line);

    assert_string_equal(
        text, "{\"list\": [-1, [], {\"a\": true, \"b\": \"x\\\"y\"}], \"none\": {}}\n");
    free(text);
    value_free(whole);
}

static void a_document_without_memory_or_room_is_not_printed(void **state)
{
    (void)state;
    char small[4];
    struct value *const whole = nested();
    FILE *file = fmemopen(small, sizeof small, "w");

    assert_int_equal(setvbuf(file, NULL, _IONBF, 0), 0);
    assert_false(value_print(NULL, file));
    assert_false(value_print_line(NULL, file));
    assert_false(value_print(whole, file));
    assert_false(value_print_line(whole, file));
    assert_int_equal(fclose(file), 0);
    value_free(whole);
}

static void a_value_of_another_type_is_not_read(void **state)
{
    (void)state;
    struct value *const whole =
        value_parse("{\"text\": \"t\", \"number\": 7, \"list\": [\"a\", 1]}");

    assert_string_equal(value_get_text(whole, "text"), "t");
    assert_null(value_get_text(whole, "number"));
    assert_null(value_get_text(whole, "missing"));
    assert_int_equal(value_get_number(whole, "number", 9), 7);
    assert_int_equal(value_get_number(whole, "text", 9), 9);
    assert_int_equal(value_get_number(whole, "missing", 9), 9);
    assert_null(value_get_array(whole, "text"));
    const struct value *list = value_get_array(whole, "list");
    assert_int_equal(value_count(list), 2);
    assert_string_equal(value_item_text(list, 0), "a");
    assert_null(value_item_text(list, 1));
    assert_null(value_item_text(list, 2));
    assert_null(value_parse("{\"text\": "));
    value_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_is_indented_by_two_blanks_a_level),
        cmocka_unit_test(a_line_has_the_whole_document),
        cmocka_unit_test(a_document_without_memory_or_room_is_not_printed),
        cmocka_unit_test(a_value_of_another_type_is_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
