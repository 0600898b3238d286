/* SPDX-License-Identifier: Apache-2.0 */
/* found_run.h -- whose run a command has found: its program, its user, and its age. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "json.h"
#include "run_identity.h"
#include "run_record.h"
#include "sumac/status.h"
#include "wire.h"

#define FOUND_RUN_ADDRESS_BYTES 264
#define FOUND_RUN_TEXT_BYTES 768

struct found_run {
    bool named;                             /* --ps named one of its ps */
    pid_t pid;                              /* of its `sumac run`; 0: no record of a run led here */
    char program[RUN_RECORD_PROGRAM_BYTES]; /* what that one started */
    bool answered;                          /* a ps has told the rest */
    uint32_t ps;                            /* which one */
    char address[FOUND_RUN_ADDRESS_BYTES];  /* of that ps */
    uint64_t uptime_ms;                     /* of that ps */
    struct run_identity identity;           /* of that ps; pid 0: an earlier release, it has none */
    uint32_t user;                          /* the user id of that ps, if `identity` has a pid */
};

/* Keep what a ps tells of itself. */
void found_run_learn(struct found_run *run, const wire_stats_reply *stats);

/* "run of ./digits (pid 4711), ps 0 at 127.0.0.1:47407, up 3 min"; "": nothing is known.
 * Lends  text. */
const char *found_run_print(const struct found_run *run, char text[FOUND_RUN_TEXT_BYTES]);

/* The same as an object, with the fields that are known. Gives  a value. */
json_t *found_run_to_json(const struct found_run *run);

/* May a command change this run?
 * Fails    FAILED_PRECONDITION: it is another user's, and no --ps named it. */
enum sumac_status
found_run_check_user(const struct found_run *run, uint32_t user, struct sumac_error *error);
