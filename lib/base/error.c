/* SPDX-License-Identifier: Apache-2.0 */
/* error.c -- fill in a sumac_error. */
#include "error.h"

#include <stdarg.h>

#include "text.h"

static void fill(
    struct sumac_error *error, enum sumac_status status, enum sumac_reason reason,
    const char *format, va_list arguments)
{
    if (error == NULL)
        return;
    error->status = status;
    error->reason = reason;
    (void)text_print_line_values(error->text, sizeof error->text, format, arguments);
}

enum sumac_status fail(
    struct sumac_error *error, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fill(error, status, reason, format, arguments);
    va_end(arguments);
    return status;
}

enum sumac_status
fail_invalid(struct sumac_error *error, enum sumac_reason reason, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fill(error, SUMAC_INVALID_ARGUMENT, reason, format, arguments);
    va_end(arguments);
    return SUMAC_INVALID_ARGUMENT;
}

enum sumac_status fail_argument(struct sumac_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fill(error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED, format, arguments);
    va_end(arguments);
    return SUMAC_INVALID_ARGUMENT;
}

enum sumac_status fail_unsupported(struct sumac_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fill(error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED, format, arguments);
    va_end(arguments);
    return SUMAC_FAILED_PRECONDITION;
}

enum sumac_status fail_for_memory(struct sumac_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fill(error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, format, arguments);
    va_end(arguments);
    return SUMAC_RESOURCE_EXHAUSTED;
}

enum sumac_status fail_for_null(struct sumac_error *error, const char *function, const char *what)
{
    return fail_argument(error, "%s: %s is NULL", function, what);
}

enum sumac_status fail_again(struct sumac_error *error, const struct sumac_error *why)
{
    if (error != NULL)
        *error = *why;
    return why->status;
}
