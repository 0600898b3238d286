/* SPDX-License-Identifier: Apache-2.0 */
/* error.h -- fill in a sumac_error in one line, at the place that decides which error it is. */
#pragma once

#include "sumac/status.h"

/* Write status, reason and a printf-style sentence to `error` (NULL: nowhere); returns `status`,
 * for `return fail(…)`. */
enum sumac_status fail(
    struct sumac_error *error, enum sumac_status status, enum sumac_reason reason,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* INVALID_ARGUMENT, for a reason, or without one. */
enum sumac_status
fail_invalid(struct sumac_error *error, enum sumac_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum sumac_status fail_argument(struct sumac_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* FAILED_PRECONDITION, UNSUPPORTED. */
enum sumac_status fail_unsupported(struct sumac_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* RESOURCE_EXHAUSTED, OUT_OF_MEMORY. */
enum sumac_status fail_for_memory(struct sumac_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same error once more; returns its status. */
enum sumac_status fail_again(struct sumac_error *error, const struct sumac_error *why);

/* INVALID_ARGUMENT: "sumac_client_push: push is NULL". */
enum sumac_status fail_for_null(struct sumac_error *error, const char *function, const char *what);
