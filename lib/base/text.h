/* text.h -- is a text UTF-8? */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Well-formed UTF-8 (The Unicode Standard, table 3-7): nothing overlong, no surrogate, nothing
 * above U+10FFFF. A zero byte is a character like any other. Threads  any. */
bool text_is_utf8(const char *text, size_t bytes);

#endif
