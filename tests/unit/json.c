/* SPDX-License-Identifier: Apache-2.0 */
/* json.c (test) -- the layout of JSON documents, their numbers, and messages as objects. */
#include <math.h>

#include "unit.h"
#include "json.h"

/* Lists and objects within others, some of them empty. */
static json_t *nested(void)
{
    json_t *const inner = json_object(), *const list = json_array();
    json_t *const whole = json_object();

    json_add(list, json_integer(-1));
    json_add(list, json_array());
    json_put(inner, "a", json_boolean(true));
    json_put(inner, "b", json_string("x\"y"));
    json_add(list, inner);
    json_put(whole, "list", list);
    json_put(whole, "none", json_object());
    return whole;
}

/* Takes  value. */
static char *printed(json_t *value, bool line)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    assert_true(json_print(value, line, file));
    assert_int_equal(fclose(file), 0);
    return text;
}

TEST(a_document_is_indented_by_two_blanks_a_level)
{
    char *const text = printed(nested(), false);

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
}

TEST(a_line_has_the_whole_document)
{
    char *const text = printed(nested(), true);

    assert_string_equal(
        text, "{\"list\": [-1, [], {\"a\": true, \"b\": \"x\\\"y\"}], \"none\": {}}\n");
    free(text);
}

TEST(a_document_without_memory_or_room_is_not_printed)
{
    char small[4];
    FILE *file = fmemopen(small, sizeof small, "w");

    assert_int_equal(setvbuf(file, NULL, _IONBF, 0), 0);
    assert_false(json_print(NULL, false, file));
    assert_false(json_print(NULL, true, file));
    assert_false(json_print(nested(), false, file));
    assert_false(json_print(nested(), true, file));
    assert_int_equal(fclose(file), 0);
}

TEST(a_number_that_json_has_not_is_null_or_keeps_its_magnitude)
{
    json_t *const list = json_array();

    json_add(list, json_number(INT64_MAX));
    json_add(list, json_number(UINT64_MAX));
    json_add(list, json_finite((double)INFINITY));
    json_add(list, json_finite((double)NAN));
    json_add(list, json_finite(0.5));
    char *const text = printed(list, true);

    assert_string_equal(text, "[9223372036854775807, 1.8446744073709552e+19, null, null, 0.5]\n");
    free(text);
}

TEST(fields_have_the_names_of_the_proto)
{
    wire_shard shard = SUMAC__V1__SHARD__INIT;
    json_t *const object = json_object();

    shard.ps = 3;
    shard.version = UINT64_C(1) << 40;
    shard.last_worker = (char[]){"worker 1"};
    JSON_PUT_FIELDS(object, &shard.base, "version", "last_worker", "ps");
    char *const text = printed(object, true);

    assert_string_equal(
        text, "{\"version\": 1099511627776, \"last_worker\": \"worker 1\", \"ps\": 3}\n");
    free(text);
}
