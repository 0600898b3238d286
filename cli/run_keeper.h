/* SPDX-License-Identifier: Apache-2.0 */
/* run_keeper.h -- between `sumac run` and each of its workers: a process that ends when the worker
 * does, with its code, and leaves none of the worker's descendants behind, whoever it is that dies
 * first.
 *
 * It passes on to the worker's process group every signal that it is sent.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define RUN_KEEPER_KILLS                                                                           \
    SIGALRM /* kills the worker and all that it started: SIGKILL itself can be passed on by nobody \
             */

/* Called in a child of process `run`: become a keeper, and fork. Returns in the worker-to-be only,
 * whose parent the keeper is.
 *
 * Threads  the process has one.
 */
void run_keeper_fork(pid_t run);

/* Let `sumac run` inherit what a keeper leaves that was killed. Called before anything is started.
 * False: this process has children already, of the shell that became it, and could not tell theirs
 * from a keeper's; or the system refuses. */
bool run_keeper_adopt(void);

/* Kill all children of this process, and what these leave, and wait for their end. */
void run_keeper_bury(void);
