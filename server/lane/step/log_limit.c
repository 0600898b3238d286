/* SPDX-License-Identifier: Apache-2.0 */
/* log_limit.c -- a leaky bucket for each kind of line in the log. */
#include "log_limit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "text.h"

static struct log_kind *find(struct log_limit *limit, const char *format)
{
    uint32_t i = 0;

    while (i < LOG_KINDS_MAX - 1 && limit->kinds[i].format != NULL &&
           limit->kinds[i].format != format)
        i++;
    return &limit->kinds[i];
}

static void leak(struct log_kind *kind, uint64_t now_us)
{
    const uint64_t lines = now_us > kind->leaked_us ? (now_us - kind->leaked_us) / LOG_LINE_US : 0;

    assert(kind->format != NULL);
    assert(kind->lines <= LOG_LINES_AT_ONCE_MAX);
    kind->lines = lines < kind->lines ? kind->lines - (uint32_t)lines : 0;
    kind->leaked_us += lines * LOG_LINE_US;
}

char *log_limit_line(
    struct log_limit *limit, struct arena *arena, uint64_t now_us, const char *format,
    va_list values)
{
    struct log_kind *const kind = find(limit, format);

    assert(format != NULL);
    if (kind->format == NULL)
        *kind = (struct log_kind){.format = format, .leaked_us = now_us};
    leak(kind, now_us);
    if (kind->lines >= LOG_LINES_AT_ONCE_MAX) {
        kind->left_out++;
        return NULL;
    }
    char *text = text_line_in(arena, format, values);
    if (text != NULL && kind->left_out > 0) {
        const char *const line = text;
        const size_t bytes = strlen(line) + 64;
        text = arena_take(arena, bytes);
        if (text != NULL)
            (void)text_print(
                text, bytes, "%s (%" PRIu64 " more such lines were left out)", line,
                kind->left_out);
    }
    if (text != NULL) {
        kind->lines++;
        kind->left_out = 0;
    }
    return text;
}
