/* SPDX-License-Identifier: Apache-2.0 */
/* absurd.h -- how absurd.c and those beside it try a call: what it is to say is beside it. */
#pragma once

#include <stdbool.h>

#include "sumac/collective.h"
#include "sumac/worker.h"

#define ROWS 4

extern struct sumac_client *client; /* of a member, and `w`, float64 [ROWS], as it … */
extern struct sumac_client_variable *w, *others_w; /* … and an observer know it */
extern int calls, wrong;
extern struct sumac_error why, *error; /* `error` is what the calls are given */

void need(enum sumac_status status); /* ends the program unless it is OK */
void begin(const char *function, const char *what);
void is(bool as_it_should_be);
void is_refused(enum sumac_status status, enum sumac_status wanted, const char *words);

/* The call gives that status, and its error has these words (none: it takes no error). */
#define REFUSED(function, what, wanted, words, call)                                               \
    do {                                                                                           \
        begin(#function, what);                                                                    \
        error = &why;                                                                              \
        is_refused((call), SUMAC_##wanted, words);                                                 \
        error = NULL;                                                                              \
        is_refused((call), SUMAC_##wanted, "");                                                    \
    } while (0)

#define HOLDS(function, what, condition)                                                           \
    do {                                                                                           \
        begin(#function, what);                                                                    \
        error = &why;                                                                              \
        is(condition);                                                                             \
    } while (0)

/* absurd_base.c: lib/base and lib/cluster */
void try_base(void);
void try_clusters(void);

/* absurd_device.c: sumac/device.h */
void try_devices(void);

/* absurd_strategy.c: lib/value and worker/strategy */
void try_strategy(void);

/* absurd_variable.c: the variables of a strategy */
void try_distributed(void);

/* absurd_worker.c: sumac/worker.h */
void try_making_workers(void);
void try_workers(void);
