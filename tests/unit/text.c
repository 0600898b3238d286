/* text.c -- is a text UTF-8? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "text.h"

static void assert_all(const char *const *texts, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++) {
        if (text_is_utf8(texts[i], strlen(texts[i])) != expected)
            fail_msg("text %zu should%s be UTF-8", i, expected ? "" : " not");
    }
}

static void characters_of_every_length_are_utf8(void **state)
{
    (void)state;
    const char *const texts[] = {
        "",
        "W1/kernel",
        "\x7f",
        "\xc2\x80",
        "\xdf\xbf",
        "\xe0\xa0\x80",
        "\xed\x9f\xbf",
        "\xee\x80\x80",
        "\xef\xbf\xbf",
        "\xf0\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
        "gr\xc3\xb6n \xe2\x82\xac \xf0\x9f\x8c\xb3"};
    assert_all(texts, sizeof texts / sizeof *texts, true);
}

static void overlong_forms_surrogates_and_what_is_beyond_unicode_are_not(void **state)
{
    (void)state;
    const char *const texts[] = {
        "\xc0\x80",     "\xc1\xbf",     "\xe0\x9f\xbf",     "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xfe",         "\xff"};
    assert_all(texts, sizeof texts / sizeof *texts, false);
}

static void a_character_that_is_cut_or_broken_is_not(void **state)
{
    (void)state;
    const char *const texts[] = {
        "\x80",
        "a\xbf",
        "\xc3",
        "\xc3"
        "a",
        "\xe2\x82",
        "\xe2\x82"
        "a",
        "\xe2"
        "a\x82",
        "\xf0\x9f\x8c",
        "\xf0\x9f\x8c"
        "a",
        "\xc3\xa4\xa4"};
    assert_all(texts, sizeof texts / sizeof *texts, false);
    assert_false(text_is_utf8("\xe2\x82\xac", 2)); /* the rest lies past the end */
}

static void a_zero_byte_is_a_character_and_does_not_end_the_text(void **state)
{
    (void)state;
    assert_true(text_is_utf8("a\0b", 3));
    assert_false(text_is_utf8("a\0\xff", 3));
}

static void a_line_has_no_control_characters_and_no_broken_ones(void **state)
{
    (void)state;
    char text[] = "a\nb\x7f \xc3\xb6 \xe2\x82 \xff\xf0\x9f\x8c\xb3 \xf0\x9f\x8c";

    text_make_line(text);

    assert_string_equal(text, "a?b? \xc3\xb6 ?? ?\xf0\x9f\x8c\xb3 ???");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_of_every_length_are_utf8),
        cmocka_unit_test(overlong_forms_surrogates_and_what_is_beyond_unicode_are_not),
        cmocka_unit_test(a_character_that_is_cut_or_broken_is_not),
        cmocka_unit_test(a_line_has_no_control_characters_and_no_broken_ones),
        cmocka_unit_test(a_zero_byte_is_a_character_and_does_not_end_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
