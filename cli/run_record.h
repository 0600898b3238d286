/* SPDX-License-Identifier: Apache-2.0 */
/* run_record.h -- how `sumac ls` and the others find the run that `sumac run` has going on this
 * machine.
 *
 * One small JSON file per run, run-PID.json, in $XDG_RUNTIME_DIR/sumac or else /tmp/sumac-UID, a
 * folder of the user's own (mode 0700): {"pid", "started", "ps": ["127.0.0.1:4711", …], "program"}.
 * `started` is the process's start time as the kernel counts it, so that another process that got
 * the number later is not taken for the run.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "sumac/status.h"

#define RUN_RECORDS_MAX 64
#define RUN_RECORD_PS_MAX 256
#define RUN_RECORD_ADDRESS_BYTES 32
#define RUN_RECORD_PROGRAM_BYTES 128

struct run_record {
    pid_t pid;
    uint64_t started;
    char program[RUN_RECORD_PROGRAM_BYTES]; /* the command line, cut */
    uint32_t ps_count;
    char ps[RUN_RECORD_PS_MAX][RUN_RECORD_ADDRESS_BYTES];
};

/* Write this process's record (pid and started are filled in here).
 * Fails    PERMISSION_DENIED: the folder is another user's, or open to others. UNAVAILABLE: the
 * system's reasons. */
enum sumac_status run_record_write(struct run_record *record, struct sumac_error *error);
void run_record_remove(void);

/* The runs going on now; records whose process is gone are removed. At most RUN_RECORDS_MAX.
 * Fails    as run_record_write; no folder is no run, and no failure.
 * Gives    *records. */
enum sumac_status
run_record_list(struct run_record **records, uint32_t *count, struct sumac_error *error);
