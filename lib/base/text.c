/* SPDX-License-Identifier: Apache-2.0 */
/* text.c -- is a text UTF-8, how it is printed and cut, and how it becomes one printable line. */
#include "text.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

/* Bytes of the character that `lead` begins, and the range of the byte after it; 0: no character
 * begins so. */
static size_t character_bytes(uint8_t lead, uint8_t *second_min, uint8_t *second_max)
{
    *second_min = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    *second_max = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2)
        return 0;
    if (lead < 0xe0)
        return 2;
    if (lead < 0xf0)
        return 3;
    return lead < 0xf5 ? 4 : 0;
}

/* Bytes of the whole character that `text` begins with; 0: it begins with none. */
static size_t whole_character(const char *text, size_t bytes)
{
    uint8_t second_min = 0, second_max = 0;
    const size_t count = character_bytes((uint8_t)text[0], &second_min, &second_max);

    if (count > bytes)
        return 0;
    for (size_t i = 1; i < count; i++) {
        const uint8_t byte = (uint8_t)text[i];
        if (byte < (i == 1 ? second_min : 0x80) || byte > (i == 1 ? second_max : 0xbf))
            return 0;
    }
    return count;
}

/* A byte that is not printable ASCII among eight has bit 7 set itself, or once ' ' is taken from
 * it, or once one is added to it, which makes it of DEL. */
static bool are_plain(const char *eight)
{
    const uint64_t each = UINT64_MAX / 255;
    uint64_t bytes;

    memcpy(&bytes, eight, sizeof bytes);
    return ((bytes | (bytes - each * ' ') | (bytes + each)) & each * 0x80) == 0;
}

/* How many bytes that are printable ASCII it begins with: as a rule all of them. A thousand names
 * of a kilobyte each may come at once. */
static size_t plain_bytes(const char *text, size_t bytes)
{
    size_t at = 0;

    while (bytes - at >= 8 && are_plain(text + at))
        at += 8;
    while (at < bytes && text[at] >= ' ' && text[at] <= '~')
        at++;
    return at;
}

bool text_is_utf8(const char *text, size_t bytes)
{
    size_t at = plain_bytes(text, bytes);

    while (at < bytes) {
        const size_t count = whole_character(text + at, bytes - at);
        if (count == 0)
            return false;
        at += count;
        at += plain_bytes(text + at, bytes - at);
    }
    return true;
}

/* Does it end a line, or turn the direction of what follows? U+061C, U+200E and
 * U+200F, U+2028 to U+202E, U+2066 to U+2069 (Unicode Standard Annex 9, "Directional Formatting
 * Characters"). */
static bool is_directional(const uint8_t *character)
{
    if (character[0] == 0xd8)
        return character[1] == 0x9c;
    if (character[0] != 0xe2)
        return false;
    const uint8_t last = character[2];
    return (character[1] == 0x80 &&
            (last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae))) ||
           (character[1] == 0x81 && last >= 0xa6 && last <= 0xa9);
}

/* Of a whole character. U+0080 to U+009F are c2 80 to c2 9f: some terminals obey them. */
static bool is_control(const char *character)
{
    const uint8_t lead = (uint8_t)character[0];

    return lead < ' ' || lead == 0x7f || (lead == 0xc2 && (uint8_t)character[1] < 0xa0) ||
           is_directional((const uint8_t *)character);
}

bool text_has_control(const char *text, size_t bytes)
{
    size_t at = plain_bytes(text, bytes);

    while (at < bytes) {
        const size_t count = whole_character(text + at, bytes - at);
        if (count > 0 && is_control(text + at))
            return true;
        at += count > 0 ? count : 1;
        at += plain_bytes(text + at, bytes - at);
    }
    return false;
}

void text_make_line(char *text)
{
    const size_t bytes = strlen(text);
    size_t at = plain_bytes(text, bytes);

    while (at < bytes) {
        const size_t count = whole_character(text + at, bytes - at);
        const size_t step = count > 0 ? count : 1;
        if (count == 0 || is_control(text + at))
            memset(text + at, '?', step);
        at += step;
        at += plain_bytes(text + at, bytes - at);
    }
}

/* The bytes of the text without a character at its end of which only a part is there. */
static size_t without_broken_end(const char *text, size_t bytes)
{
    size_t lead = bytes;

    while (lead > 0 && bytes - lead < 3 && ((uint8_t)text[lead - 1] & 0xc0) == 0x80)
        lead--;
    if (lead == 0 || (uint8_t)text[lead - 1] < 0xc0)
        return bytes;
    lead--;
    return whole_character(text + lead, bytes - lead) > 0 ? bytes : lead;
}

size_t text_print_values(char *out, size_t bytes, const char *format, va_list values)
{
    assert(bytes > 0);
    const int whole = vsnprintf(out, bytes, format, values);
    size_t length = whole < 0 ? 0 : (size_t)whole;
    if (length >= bytes)
        length = without_broken_end(out, bytes - 1);
    out[length] = '\0';
    return length;
}

size_t text_print(char *out, size_t bytes, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    const size_t length = text_print_values(out, bytes, format, values);
    va_end(values);
    return length;
}

size_t text_print_line_values(char *out, size_t bytes, const char *format, va_list values)
{
    const size_t length = text_print_values(out, bytes, format, values);

    text_make_line(out);
    return length;
}

size_t text_print_line(char *out, size_t bytes, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    const size_t length = text_print_line_values(out, bytes, format, values);
    va_end(values);
    return length;
}

/* Without the zeros at the end of its decimals. */
static struct text_time in_units(uint64_t us, uint64_t unit_us, const char *unit)
{
    struct text_time time;
    const int decimals = us < 10 * unit_us - unit_us / 200   ? 2
                         : us < 100 * unit_us - unit_us / 20 ? 1
                                                             : 0;
    char *end =
        time.text +
        text_print(time.text, sizeof time.text, "%.*f", decimals, (double)us / (double)unit_us);

    if (decimals > 0) {
        while (end[-1] == '0')
            end--;
        if (end[-1] == '.')
            end--;
    }
    (void)text_print(end, sizeof time.text - (size_t)(end - time.text), " %s", unit);
    return time;
}

/* Every number of DBL_DIG digits survives in a double, so fewer are never tried. */
struct text_double text_double(double value)
{
    struct text_double number;
    int digits = DBL_DIG;

    do
        (void)text_print(number.text, sizeof number.text, "%.*g", digits, value);
    while (digits++ < DBL_DECIMAL_DIG && strtod(number.text, NULL) != value);
    return number;
}

struct text_time text_time_us(uint64_t us)
{
    if (us < 1000)
        return in_units(us, 1, "µs");
    if (us < 999500)
        return in_units(us, 1000, "ms");
    return in_units(us, 1000000, "s");
}

struct text_time text_time_ms(uint64_t ms)
{
    return text_time_us(ms < UINT64_MAX / 1000 ? ms * 1000 : UINT64_MAX);
}

struct text_time text_time_left(uint64_t us)
{
    struct text_time time;

    (void)text_print(
        time.text, sizeof time.text, "%" PRIu64 " s", (us / 1000000 + (us % 1000000 != 0)));
    return time;
}

size_t text_print_bytes(const char *format, va_list values)
{
    const int whole = vsnprintf(NULL, 0, format, values);

    return whole < 0 ? 0 : (size_t)whole;
}

char *text_line_in(struct arena *arena, const char *format, va_list values)
{
    va_list again;

    va_copy(again, values);
    const size_t bytes = text_print_bytes(format, again) + 1;
    va_end(again);
    char *const text = arena_take(arena, bytes);
    if (text != NULL)
        (void)text_print_line_values(text, bytes, format, values);
    return text;
}
