/* SPDX-License-Identifier: Apache-2.0 */
/* replaced.c -- whose place a join has taken, between the wire, what is kept of it, and words. */
#include "replaced.h"

#include <inttypes.h>

#include "close_cause.h"
#include "text.h"

struct replaced wire_replaced_of(const wire_replaced *wire)
{
    if (wire == NULL)
        return (struct replaced){0};
    struct replaced replaced = {
        .attempt = wire->attempt,
        .pid = wire->pid,
        .silent_ms = wire->silent_ms,
        .alive = wire->alive != 0};
    (void)text_print_line(replaced.host, sizeof replaced.host, "%s", wire->host);
    return replaced;
}

void wire_replaced_fill(const struct replaced *replaced, wire_replaced *wire)
{
    *wire = (wire_replaced)WIRE_REPLACED_INIT;
    wire->attempt = replaced->attempt;
    wire->host = (char *)(uintptr_t)replaced->host;
    wire->pid = replaced->pid;
    wire->alive = replaced->alive;
    wire->silent_ms = replaced->silent_ms;
}

const char *wire_replaced_print(const struct replaced *replaced, char *text)
{
    size_t used = 0;

    text[0] = '\0';
    if (replaced->attempt == 0)
        return text;
    if (replaced->pid == 0)
        used = text_print(
            text, REPLACED_TEXT_BYTES, "; takes the place of attempt %" PRIu64, replaced->attempt);
    else
        used = text_print(
            text, REPLACED_TEXT_BYTES, "; takes the place of process %" PRIu32 " on %s",
            replaced->pid, replaced->host[0] != '\0' ? replaced->host : "an unknown host");
    if (replaced->alive)
        (void)text_print(
            text + used, REPLACED_TEXT_BYTES - used,
            ", which was alive %s ago; if that process is of another run, " CLOSE_CAUSE_OWN_RUN,
            text_time_ms(replaced->silent_ms > 0 ? replaced->silent_ms : 1).text);
    return text;
}
