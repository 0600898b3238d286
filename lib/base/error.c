/* SPDX-License-Identifier: Apache-2.0 */
/* error.c -- fill in a sumac_error. */
#include "error.h"

#include <stdarg.h>

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
    (void)text_print_line_values(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}

enum sumac_status fail_for_null(struct sumac_error *error, const char *function, const char *what)
{
    return fail(
        error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED, "%s: %s is NULL", function, what);
}
