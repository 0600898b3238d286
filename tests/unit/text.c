/* SPDX-License-Identifier: Apache-2.0 */
/* text.c -- is a text UTF-8, and does it stay so when it is cut? */
#include <math.h>

#include "unit.h"
#include "text.h"

static void assert_all(const char *const *texts, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++) {
        if (text_is_utf8(texts[i], strlen(texts[i])) != expected)
            fail_msg("text %zu should%s be UTF-8", i, expected ? "" : " not");
    }
}

TEST(characters_of_every_length_are_utf8)
{
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

TEST(overlong_forms_surrogates_and_what_is_beyond_unicode_are_not)
{
    const char *const texts[] = {
        "\xc0\x80",     "\xc1\xbf",     "\xe0\x9f\xbf",     "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80", "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xfe",         "\xff"};

    assert_all(texts, sizeof texts / sizeof *texts, false);
}

TEST(a_character_that_is_cut_or_broken_is_not)
{
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

TEST(a_zero_byte_is_a_character_and_does_not_end_the_text)
{
    assert_true(text_is_utf8("a\0b", 3));
    assert_false(text_is_utf8("a\0\xff", 3));
}

TEST(a_line_has_no_control_characters_and_no_broken_ones)
{
    char text[] = "a\nb\x7f \xc3\xb6 \xe2\x82 \xff\xf0\x9f\x8c\xb3 \xc2\x9b\xc2\xa0 \xf0\x9f\x8c";

    text_make_line(text);

    assert_string_equal(text, "a?b? \xc3\xb6 ?? ?\xf0\x9f\x8c\xb3 ??\xc2\xa0 ???");
}

TEST(control_characters_are_seen)
{
    const char *const with[] = {
        "a\n",           "\x1b[2J",      "\x7f",         "\xc2\x80",     "\xc3\xa9\xc2\x9f",
        "a\xe2\x80\xae", "\xe2\x80\xa8", "\xe2\x81\xa6", "\xe2\x80\x8f", "\xd8\x9c"};

    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        assert_true(text_has_control(with[i], strlen(with[i])));
    const char *const without[] = {
        "", "W1/kernel", "\xc2\xa0", "\xc3\xa9 \xe2\x82\xac", "\xe2\x80\xa6\xe2\x81\xaa\xd8\x9b"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        assert_false(text_has_control(without[i], strlen(without[i])));
    assert_true(text_has_control("a\0b", 3));
}

/* Wherever it stands among plain ones, and however many they are. */
TEST(every_byte_is_known_at_every_place)
{
    enum { longest = 19 };
    char text[longest + 1];

    for (size_t bytes = 1; bytes <= longest; bytes++) {
        for (size_t at = 0; at < bytes; at++) {
            for (unsigned byte = 1; byte < 256; byte++) {
                const bool control = byte < ' ' || byte == 0x7f;
                memset(text, byte % 2 == 0 ? ' ' : '~', bytes);
                text[bytes] = '\0';
                text[at] = (char)byte;
                assert_int_equal(text_is_utf8(text, bytes), byte < 0x80);
                assert_int_equal(text_has_control(text, bytes), control);
                text_make_line(text);
                assert_int_equal(text[at], control || byte >= 0x80 ? '?' : (char)byte);
                assert_int_equal(strspn(text, "~ ?") == bytes, strspn(text + at, "~ ?") > 0);
            }
        }
    }
}

/* Characters of one to four bytes, twice, cut at every length. */
TEST(a_text_is_cut_between_characters)
{
    const char whole[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xb3"
                         "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xb3";
    const size_t length = sizeof whole - 1;

    for (size_t bytes = 1; bytes <= length + 2; bytes++) {
        char text[sizeof whole + 2];
        memset(text, '#', sizeof text);

        const size_t printed = text_print(text, bytes, "%s%s", "", whole);

        assert_int_equal(printed, strlen(text));
        assert_true(text_is_utf8(text, printed));
        assert_memory_equal(text, whole, printed);
        const size_t room = bytes - 1 < length ? bytes - 1 : length;
        assert_true(printed <= room && printed + 3 >= room); /* at most three bytes are lost */
        assert_int_equal(text[bytes], '#');
    }
}

TEST(a_printed_line_has_no_control_characters_even_where_it_is_cut)
{
    char text[8];

    assert_int_equal(
        text_print_line(text, sizeof text, "%s\n%.3s%s", "a", "\xc3\xa9\xc3", "bcdef"), 7);

    assert_string_equal(text, "a?\xc3\xa9?bc");
}

TEST(a_length_of_time_has_three_digits_and_its_unit)
{
    static const struct {
        uint64_t us;
        const char *said;
    } cases[] = {
        {0, "0 µs"},          {999, "999 µs"},        {1000, "1 ms"},     {1536, "1.54 ms"},
        {9994, "9.99 ms"},    {9996, "10 ms"},        {99949, "99.9 ms"}, {99951, "100 ms"},
        {250000, "250 ms"},   {999499, "999 ms"},     {999500, "1 s"},    {1577000, "1.58 s"},
        {10940000, "10.9 s"}, {60000000, "60 s"},     {60049000, "60 s"}, {61300000, "61.3 s"},
        {123400000, "123 s"}, {3600000000, "3600 s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(text_time_us(cases[i].us).text, cases[i].said);
    assert_string_equal(text_time_ms(1577).text, "1.58 s");
    assert_string_equal(text_time_ms(UINT64_MAX / 1000 + 1).text, "18446744073710 s");
}

TEST(what_is_left_is_whole_seconds_rounded_up)
{
    assert_string_equal(text_time_left(0).text, "0 s");
    assert_string_equal(text_time_left(1).text, "1 s");
    assert_string_equal(text_time_left(35000000).text, "35 s");
    assert_string_equal(text_time_left(35000001).text, "36 s");
}

TEST(a_number_has_the_fewest_digits_that_read_back_as_it)
{
    assert_string_equal(text_double(0.1).text, "0.1");
    assert_string_equal(text_double(1e-7).text, "1e-07");
    assert_string_equal(text_double(1e300).text, "1e+300");
    assert_string_equal(text_double(0.1 + 0.2).text, "0.30000000000000004");
    assert_string_equal(text_double(1.0 / 3).text, "0.3333333333333333");
    assert_string_equal(text_double(-0.0).text, "-0");
    assert_string_equal(text_double(NAN).text, "nan");
}
