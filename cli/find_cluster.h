/* SPDX-License-Identifier: Apache-2.0 */
/* find_cluster.h -- which run a command is about: --ps, else TF_CONFIG, else the one run on this
 * machine. */
#ifndef CLI_FIND_CLUSTER_H
#define CLI_FIND_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "run_record.h"
#include "sumac/status.h"

struct ps_list {
    uint32_t count;
    char **addresses; /* "host:port" */
    bool named;       /* by --ps */
    pid_t pid;        /* of the `sumac run` whose record has them; 0: no record */
    char program[RUN_RECORD_PROGRAM_BYTES];
};

/* The addresses of some ps of the run; one is enough, it knows the others.
 *
 * ps_option: the value of --ps, "HOST:PORT" or several with commas between them; NULL: it was not
 * given. Gives    *list; release with ps_list_deinit. Fails    INVALID_ARGUMENT: an address without
 * a port, or a TF_CONFIG that is wrong. NOT_FOUND: there is no run; FAILED_PRECONDITION: there are
 * several, and the text lists them. */
enum sumac_status
find_cluster(const char *ps_option, struct ps_list *list, struct sumac_error *error);

/* Add a copy of `address`. Fails  RESOURCE_EXHAUSTED. */
enum sumac_status ps_list_add(struct ps_list *list, const char *address, struct sumac_error *error);
void ps_list_deinit(struct ps_list *list);

#endif
