/* SPDX-License-Identifier: Apache-2.0 */
/* close_cause.c -- why a session was closed, between the wire, what is kept of it, and words. */
#include "close_cause.h"

#include <inttypes.h>

#include "text.h"

struct close_cause wire_close_cause_of(const wire_close_cause *wire)
{
    if (wire == NULL)
        return (struct close_cause){0};
    struct close_cause cause = {
        .kind = (int)wire->kind,
        .silent_ms = wire->silent_ms,
        .attempt = wire->attempt,
        .pid = wire->pid};
    (void)text_print_line(cause.host, sizeof cause.host, "%s", wire->host);
    return cause;
}

void wire_close_cause_fill(const struct close_cause *cause, wire_close_cause *wire)
{
    *wire = (wire_close_cause)WIRE_CLOSE_CAUSE_INIT;
    wire->kind = (Sumac__V1__CloseCause__Kind)cause->kind;
    wire->silent_ms = cause->silent_ms;
    wire->attempt = cause->attempt;
    wire->host = (char *)(uintptr_t)cause->host;
    wire->pid = cause->pid;
}

enum sumac_reason wire_close_cause_reason(const struct close_cause *cause)
{
    return cause->kind == WIRE_CLOSE_NEWER_ATTEMPT ? SUMAC_REASON_REPLACED
                                                   : SUMAC_REASON_SESSION_CLOSED;
}

static void print_replaced(const struct close_cause *cause, char *text)
{
    if (cause->pid == 0)
        (void)text_print(
            text, CLOSE_CAUSE_TEXT_BYTES,
            ": another process has taken this task's place, attempt %" PRIu64, cause->attempt);
    else
        (void)text_print(
            text, CLOSE_CAUSE_TEXT_BYTES,
            ": process %" PRIu32 " on %s has taken this task's place, attempt %" PRIu64, cause->pid,
            cause->host, cause->attempt);
}

const char *wire_close_cause_print(const struct close_cause *cause, char *text)
{
    text[0] = '\0';
    if (cause->kind == WIRE_CLOSE_LEFT)
        (void)text_print(text, CLOSE_CAUSE_TEXT_BYTES, ": it has left");
    if (cause->kind == WIRE_CLOSE_LEASE_OVER)
        (void)text_print(
            text, CLOSE_CAUSE_TEXT_BYTES, ": its lease ran out, no ps had heard from it for %s",
            text_time_ms(cause->silent_ms).text);
    if (cause->kind == WIRE_CLOSE_NEWER_ATTEMPT)
        print_replaced(cause, text);
    if (cause->kind == WIRE_CLOSE_STALLED)
        (void)text_print(
            text, CLOSE_CAUSE_TEXT_BYTES,
            ": it kept staging that other pushes waited for, and for two leases it "
            "neither sent enough of what a ps asked for nor gave way");
    return text;
}

const char *wire_close_cause_remedy(const struct close_cause *cause)
{
    return cause->kind == WIRE_CLOSE_NEWER_ATTEMPT ? CLOSE_CAUSE_REPLACED_REMEDY
                                                   : "start this process again";
}

const char *wire_close_cause_hint(const struct close_cause *cause)
{
    return cause->kind == WIRE_CLOSE_NEWER_ATTEMPT
               ? "; if that process is of another run, " CLOSE_CAUSE_OWN_RUN
               : "";
}
