/* SPDX-License-Identifier: Apache-2.0 */
/* text.h -- is a text UTF-8, how it is printed and cut so that it stays UTF-8, and how it becomes
 * one printable line.
 *
 * Whatever goes over the wire, to a log or to a terminal is printed here: a text that is cut within
 * a character makes the whole message that carries it unreadable.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/* Well-formed UTF-8 (The Unicode Standard, table 3-7): nothing overlong, no surrogate, nothing
 * above U+10FFFF. A zero byte is a character like any other. Threads  any. */
bool text_is_utf8(const char *text, size_t bytes);

/* Has it a control character: below a space, DEL, U+0080 to U+009F, or one that ends a line or
 * turns the direction of what follows (U+2028, U+202E and the like)? Threads  any. */
bool text_has_control(const char *text, size_t bytes);

/* Make one printable line of a NUL-terminated text: every byte of a control character, and bytes
 * that begin no whole character, become '?'. Threads  any. */
void text_make_line(char *text);

/* Print into the `bytes` (1 at least) at `out` as much as fits, cut between characters and ended by
 * a NUL: UTF-8, if what is printed is. Returns the bytes before the NUL, so that the next text may
 * be printed behind them. Threads  any. */
size_t text_print(char *out, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
size_t text_print_values(char *out, size_t bytes, const char *format, va_list values)
    __attribute__((format(printf, 3, 0)));

/* The same, and one printable line of it. */
size_t text_print_line(char *out, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
size_t text_print_line_values(char *out, size_t bytes, const char *format, va_list values)
    __attribute__((format(printf, 3, 0)));

/* A length of time: "38 µs", "250 ms", "1.58 s", "60 s", "3600 s", rounded to three digits.
 * Everything that people read says it so. Threads  any. */
struct text_time {
    char text[32];
};
struct text_time text_time_us(uint64_t us);
struct text_time text_time_ms(uint64_t ms);
/* What is left of a wait, in whole seconds, rounded up: "35 s". */
struct text_time text_time_left(uint64_t us);

/* A number in the fewest digits that read back as the same number: "0.1", "1e-07", "nan".
 * Threads  any. */
struct text_double {
    char text[32];
};
struct text_double text_double(double value);

/* Bytes that the whole text takes, without the NUL. Threads  any. */
size_t text_print_bytes(const char *format, va_list values) __attribute__((format(printf, 1, 0)));

/* The whole text, as one printable line in the arena. NULL: there is no room for it. */
char *text_line_in(struct arena *arena, const char *format, va_list values)
    __attribute__((format(printf, 2, 0)));
