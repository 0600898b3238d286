/* SPDX-License-Identifier: Apache-2.0 */
/* functions.c (test) -- which update functions a cluster has, and what may become one of them. */

#include "unit.h"
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

FIXTURE_TEST(a_number_stands_for_one_text, struct functions *functions, begin, end)
{
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

    /* when, then: with a part of the text, or with more, it is not */
    static const char *const others[] = {"", "value", "value = g", "value = g\n\n", "value = g\n#"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(add(functions, first, "mine", others[i], &error), SUMAC_ALREADY_EXISTS);

    /* when, then: with another text it is not */
    assert_int_equal(
        add(functions, first, "mine", "value = g + 1\n", &error), SUMAC_ALREADY_EXISTS);
    assert_non_null(strstr(
        error.text, "its line 1 is “value = g”, that of the one given “value = "
                    "g + 1”"));
    assert_int_equal(
        add(functions, first, "mine", "value = g\n\nvalue", &error), SUMAC_ALREADY_EXISTS);
    assert_non_null(strstr(
        error.text, "they differ in line 2, behind “” (its text has 10 bytes, the one given 16; "));
    /* 60 bytes of a line are shown, and é would be the 60th and the 61st */
    static const char wide[] = "value = g # 01234567890123456789012345678901234567890123456é";
    assert_int_equal(add(functions, first, "mine", wide, &error), SUMAC_ALREADY_EXISTS);
    assert_non_null(strstr(error.text, "0123456”; define"));
    assert_int_equal(
        add(functions, first + 1, "mine", "value = g\n", &error), SUMAC_ALREADY_EXISTS);
    assert_int_equal(add(functions, first, "other", "value = g\n", &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    assert_int_equal(
        add(functions, first + 2, "other", "value = g\n", &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    assert_int_equal(functions->count, 1);
}

FIXTURE_TEST(the_line_that_differs_is_counted, struct functions *functions, begin, end)
{
    struct sumac_error error = {0};
    const uint32_t number = functions_next(functions);

    assert_int_equal(add(functions, number, "mine", "# a\n\nvalue = g\n", &error), SUMAC_OK);

    assert_int_equal(
        add(functions, number, "mine", "# a\n\nvalue = h\n", &error), SUMAC_ALREADY_EXISTS);
    assert_non_null(strstr(error.text, "its line 3 is “value = g”"));
}

FIXTURE_TEST(those_of_the_table_keep_their_numbers, struct functions *functions, begin, end)
{
    for (uint32_t number = 0; number < UPDATE_DEFINED_FIRST; number++) {
        assert_ptr_equal(functions_find(functions, number), update_find(number));
        assert_ptr_equal(functions_find(NULL, number), update_find(number));
    }
    assert_null(functions_find(NULL, UPDATE_DEFINED_FIRST));
    assert_null(functions_find(functions, UINT32_MAX));
}

FIXTURE_TEST(there_are_so_many_and_no_more, struct functions *functions, begin, end)
{
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

FIXTURE_TEST(a_text_that_is_none_takes_no_number, struct functions *functions, begin, end)
{
    struct sumac_error error = {0};
    const uint32_t next = functions_next(functions);

    assert_int_equal(add(functions, next, "mine", "value = h", &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(error.reason, SUMAC_REASON_BAD_EXPRESSION);
    assert_null(functions_find(functions, next));
    assert_int_equal(functions_next(functions), next);
    assert_int_equal(add(functions, next, "mine", "value = g", &error), SUMAC_OK);
}

/* ---- of plug-ins ---- */

static void nothing(const struct sumac_plugin_tile *tile) { (void)tile; }

#define FUNCTION(called)                                                                           \
    {                                                                                              \
        .name = (called), .rule = "nothing", .loop = nothing,                                      \
        .dtypes = SUMAC_PLUGIN_DTYPE(SUMAC_INT8)                                                   \
    }

static struct sumac_plugin
library(const char *name, const struct sumac_plugin_function *functions, uint32_t count)
{
    return (struct sumac_plugin){
        .abi_version = SUMAC_PLUGIN_ABI_VERSION,
        .function_count = count,
        .name = name,
        .version = "1",
        .functions = functions};
}

TEST(plug_ins_are_numbered_by_their_names)
{
    static const struct sumac_plugin_function ours[] = {FUNCTION("n"), FUNCTION("c")};
    static const struct sumac_plugin_function theirs[] = {FUNCTION("z"), FUNCTION("d")};
    static const char *const names[] = {"c", "d", "n", "z"};
    const struct sumac_plugin a = library("a", ours, 2), b = library("b", theirs, 2);

    for (int order = 0; order < 2; order++) { /* given */
        struct plugins plugins;
        struct functions functions;
        plugins_init(&plugins, &memory_heap);

        assert_int_equal(plugins_add(&plugins, order == 0 ? &a : &b, NULL), SUMAC_OK); /* when */
        assert_int_equal(plugins_add(&plugins, order == 0 ? &b : &a, NULL), SUMAC_OK);
        assert_true(functions_init(&functions, &memory_heap, &plugins));

        for (uint32_t i = 0; i < 4; i++) { /* then */
            const struct update_function *const found =
                functions_find(&functions, UPDATE_PLUGGED_FIRST + i);
            assert_string_equal(found->name, names[i]);
            assert_int_equal(found->number, UPDATE_PLUGGED_FIRST + i);
            assert_ptr_equal(functions_at(&functions, UPDATE_FUNCTIONS_MAX + i), found);
        }
        assert_null(functions_find(&functions, UPDATE_PLUGGED_FIRST + 4));
        assert_null(functions_at(&functions, UPDATE_FUNCTIONS_MAX + 4));
        struct sumac_error error;
        assert_int_equal(
            add(&functions, UPDATE_DEFINED_FIRST, "d", "value = g", &error),
            SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "d is a function of the plug-in b 1"));
        assert_int_equal(add(&functions, UPDATE_DEFINED_FIRST, "e", "value = g", &error), SUMAC_OK);
        assert_string_equal(functions_at(&functions, UPDATE_FUNCTIONS_MAX)->name, "e");
        functions_deinit(&functions);
        plugins_deinit(&plugins);
    }
}

TEST(one_without_a_loop_is_refused)
{
    static struct sumac_plugin_function functions[] = {FUNCTION("f")};
    const struct sumac_plugin plugin = library("empty", functions, 1);
    struct sumac_error error;
    struct plugins plugins;

    plugins_init(&plugins, &memory_heap);
    functions[0].loop = NULL;

    assert_int_equal(plugins_add(&plugins, &plugin, &error), SUMAC_INVALID_ARGUMENT);

    assert_string_equal(error.text, "f of empty 1 has no loop");
    assert_int_equal(plugins_count(&plugins), 0);
    plugins_deinit(&plugins);
}

TEST(a_name_twice_or_one_too_many_is_refused)
{
    static char names[SUMAC_PLUGIN_FUNCTIONS_MAX][8];
    static struct sumac_plugin_function many[SUMAC_PLUGIN_FUNCTIONS_MAX];
    static const struct sumac_plugin_function more[] = {FUNCTION("more")},
                                              again[] = {FUNCTION("f7")};
    const struct sumac_plugin first = library("first", many, SUMAC_PLUGIN_FUNCTIONS_MAX - 1);
    const struct sumac_plugin twice = library("twice", again, 1);
    const struct sumac_plugin last = library("last", more, 1);
    struct sumac_error error;
    struct plugins plugins;

    for (uint32_t i = 0; i < SUMAC_PLUGIN_FUNCTIONS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "f%u", i);
        many[i] = (struct sumac_plugin_function)FUNCTION(names[i]);
    }
    plugins_init(&plugins, &memory_heap);
    assert_int_equal(plugins_add(&plugins, &first, &error), SUMAC_OK); /* given */

    /* when, then */
    assert_int_equal(plugins_add(&plugins, &twice, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "first 1 and twice 1 both have a function f7: name one of them otherwise");
    assert_int_equal(plugins_add(&plugins, &last, &error), SUMAC_OK);
    assert_int_equal(plugins_count(&plugins), SUMAC_PLUGIN_FUNCTIONS_MAX);
    assert_int_equal(plugins_add(&plugins, &last, &error), SUMAC_RESOURCE_EXHAUSTED);
    plugins_deinit(&plugins);
}
