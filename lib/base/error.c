/* error.c -- fill in a sumac_error. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

#include "text.h"

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
    text_make_line(error->text);
    return status;
}
