/* error.c -- fill in a sumac_error. */
#include "error.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Bytes of `text` to keep so that no UTF-8 character is cut in two. */
static size_t whole_characters(const char *text, size_t length)
{
    size_t start = length; /* of the last character */
    while (start > 0 && length - start < 4) {
        start--;
        if (((unsigned char)text[start] & 0xc0u) != 0x80u)
            break;
    }
    const unsigned char lead = start < length ? (unsigned char)text[start] : 0;
    const size_t needed = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    return start + needed > length ? start : length;
}

enum sumac_status fail(
    struct sumac_error *error, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...)
{
    if (error == NULL)
        return status;
    error->status = status;
    error->reason = reason;
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (written < 0)
        error->text[0] = '\0';
    else if ((size_t)written >= sizeof error->text)
        error->text[whole_characters(error->text, sizeof error->text - 1)] = '\0';
    return status;
}
