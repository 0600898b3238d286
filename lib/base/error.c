/* error.c -- fill in a sumac_error. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

/* Take off the character that the end of the text's room may have cut in two. */
static void drop_cut_character(char *text)
{
    size_t end = strlen(text);
    for (int i = 0; i < 4 && end > 0; i++) {
        if (((unsigned char)text[--end] & 0xc0u) == 0x80u)
            continue; /* within a character: on to its first byte */
        if (!text_is_utf8(text + end, strlen(text + end)))
            text[end] = '\0';
        return;
    }
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
        drop_cut_character(error->text);
    text_make_line(error->text);
    return status;
}
