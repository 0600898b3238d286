/* SPDX-License-Identifier: Apache-2.0 */
/* run.h -- a cluster of processes on this machine: what `sumac run` starts, watches and ends.
 *
 * The ps come first, then the workers. Each process leads a process group of its own, so that a
 * terminal's signals reach this process alone, and dies with this process (PR_SET_PDEATHSIG) if
 * that should be killed. Between this process and a worker stands its keeper (run_children.c),
 * which takes along whatever the worker has started.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run_output.h"

#define RUN_PROCESSES_MAX 512
#define RUN_PS_WORDS_MAX 64
#define RUN_NAME_BYTES 33 /* 128 bits in hexadecimal digits */

/* What is to be started: first what the command line says. Ports: the ps's, then the workers',
 * which a TF_CONFIG wants, although no process listens on them. */
struct run_plan {
    uint32_t ps_count, worker_count, replicas;
    bool synchronous;
    const char *devices;    /* NULL: the workers' matter */
    const char *trace;      /* the workers' SUMAC_TRACE; NULL: as in this process's environment */
    const char *ps_options; /* NULL: none */
    char *ps_words[RUN_PS_WORDS_MAX + 1]; /* its words, for every `sumac ps`; NULL ends them */
    char **program;                       /* the workers' command line; NULL ends it */
    char run[RUN_NAME_BYTES];             /* SUMAC_RUN of every process: random */
    bool adopts;      /* what a keeper leaves that was killed is this process's to end */
    const char *host; /* of all of them: loopback */
    uint16_t ports[RUN_PROCESSES_MAX];
};

struct run_child {
    bool is_ps;
    uint32_t index;
    pid_t pid; /* of the ps, or of the worker's keeper; 0: not started */
    bool ended;
    int code;    /* as a shell says it: 128 + n when signal n ended it */
    int pipe[2]; /* its standard output and error; -1: closed, or in the other */
    struct run_output *output[2];
};

struct cluster_run {
    const struct run_plan *plan;
    uint32_t child_count;
    struct run_child children[RUN_PROCESSES_MAX];
    struct run_screen screens[2]; /* our standard output and error */
    bool one_screen; /* both are one file: a process's lines keep their order, through one pipe */
    bool progress_shown; /* on the terminal that both are, if they are one */
};

/* Start every process of the plan. False: the system could not, and said why; nothing is left. */
bool run_start(struct cluster_run *run, const struct run_plan *plan);

/* "worker 1" */
struct run_name {
    char text[RUN_OUTPUT_LABEL_BYTES];
};
struct run_name run_child_name(const struct run_child *child);

/* Send a signal to the process groups of all ps, or all workers, that have not ended. SIGKILL takes
 * along all that a worker has started. */
void run_signal(struct cluster_run *run, bool ps, int signal_number);

/* Notice which processes have ended, end what ps left in their groups, and note the codes. */
void run_reap(struct cluster_run *run);

/* Close pipes and screens. Every process has ended. */
void run_deinit(struct cluster_run *run);

/* Watch the processes until all have ended: pass on their output, forward signals, stop the rest
 * after the first failure, and the ps after the workers. `signals` is a signalfd for what
 * run_command.c blocks. *code is the run's exit code. True: a ps found its port taken. */
bool run_watch(struct cluster_run *run, int signals, int *code);

/* Let `sumac run` inherit what a keeper leaves that was killed. Called before anything is started.
 * False: this process has children already, of the shell that became it, and could not tell theirs
 * from a keeper's; or the system refuses. */
bool run_keeper_adopt(void);

/* The field of /proc/PID/stat, from the fourth on, that is a number; 0: there is no such process.
 */
uint64_t run_process_field(pid_t pid, int field);

/* Kill all children of this process, and what these leave, and wait for their end. */
void run_keeper_bury(void);
