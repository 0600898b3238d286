/* SPDX-License-Identifier: Apache-2.0 */
/* close_cause.h -- why a session was closed: kept by ps 0 and by every ps, told to the client, and
 * the same words everywhere. */
#pragma once

#include <stddef.h>

#include "run_identity.h"
#include "wire.h"

#define CLOSE_CAUSE_TEXT_BYTES 192u

/* As it is kept; 0 of all: not said. */
struct close_cause {
    int kind; /* WIRE_CLOSE_… */
    uint32_t silent_ms;
    uint64_t attempt;
    char host[RUN_HOST_BYTES_MAX + 1]; /* of the process that took the task; "": not said */
    uint32_t pid;
};

/* None said: NULL. */
struct close_cause wire_close_cause_of(const wire_close_cause *wire);
/* Borrows  cause->host, as long as *wire is used. */
void wire_close_cause_fill(const struct close_cause *cause, wire_close_cause *wire);

/* REPLACED where another process has the task now, else SESSION_CLOSED. */
enum sumac_reason wire_close_cause_reason(const struct close_cause *cause);

/* ": its lease ran out, …", to be put after "the session is closed"; "" when it was not said.
 *
 * Lends  `text`, of CLOSE_CAUSE_TEXT_BYTES.
 */
const char *wire_close_cause_print(const struct close_cause *cause, char *text);

/* The remedy, to be put after the cause. */
#define CLOSE_CAUSE_OWN_RUN "set SUMAC_RUN to a different value in each run"
#define CLOSE_CAUSE_REPLACED_REMEDY                                                                \
    "end one of the two, or correct its index; if they are of two runs with the same "             \
    "TF_CONFIG, " CLOSE_CAUSE_OWN_RUN
const char *wire_close_cause_remedy(const struct close_cause *cause);

/* "; if that process is of another run, …", for the others that a replacement ends; "": no process
 * took the task. */
const char *wire_close_cause_hint(const struct close_cause *cause);
