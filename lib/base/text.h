/* text.h -- is a text UTF-8, and how it is made so. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Well-formed UTF-8 (The Unicode Standard, table 3-7): nothing overlong, no surrogate, nothing
 * above U+10FFFF. A zero byte is a character like any other. Threads  any. */
bool text_is_utf8(const char *text, size_t bytes);

/* Make one printable line of a NUL-terminated text: control characters, and bytes that begin no
 * whole character, become
 * '?'. Threads  any. */
void text_make_line(char *text);

#endif
