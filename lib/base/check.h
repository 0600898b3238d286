/* SPDX-License-Identifier: Apache-2.0 */
/* check.h -- what is wrong with a core's state, as one sentence: for the tests, which look at all
 * of it after every step.
 *
 * A check starts zeroed, and keeps the first thing that it finds. The `…_check.c` files fill it in;
 * no program that is installed links them.
 */
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "sumac/status.h"
#include "text.h"

struct check {
    char text[SUMAC_ERROR_TEXT_BYTES]; /* "": nothing is wrong */
};

static inline bool check_is_good(const struct check *check) { return check->text[0] == '\0'; }

__attribute__((format(printf, 2, 3))) static inline void
check_object(struct check *check, const char *format, ...)
{
    va_list arguments;

    if (!check_is_good(check))
        return;
    va_start(arguments, format);
    (void)text_print_line_values(check->text, sizeof check->text, format, arguments);
    va_end(arguments);
}

/* Is what a counter says the same as what was counted? `what` is counted, of `whom`. */
static inline void check_same(
    struct check *check, uint64_t counter, uint64_t counted, const char *what, const char *whom)
{
    if (counter != counted)
        check_object(
            check, "%s of %s: the counter says %" PRIu64 ", and counted are %" PRIu64, what, whom,
            counter, counted);
}
