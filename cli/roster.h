/* SPDX-License-Identifier: Apache-2.0 */
/* roster.h -- whose run a command has found: its program, its user, and its age; its ps, and who of
 * them does not answer. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "command.h"
#include "json.h"
#include "run_identity.h"
#include "run_record.h"
#include "sumac/client.h"

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

struct roster_ps {
    char *address;          /* "": unknown */
    bool left_out;          /* it is not asked */
    bool missing;           /* it did not answer when it was asked last */
    uint64_t silent_us;     /* of a missing one: when it was first asked in vain */
    uint64_t told_us;       /* of a missing one: when that was last seen */
    struct sumac_error why; /* of a missing one */
};

struct roster {
    uint32_t count;
    uint32_t first;       /* one that answered */
    uint64_t cluster_id;  /* as that one said it; 0: it knows none yet */
    bool by_index;        /* the i-th is listed as ps i: who answers there as another is refused */
    struct roster_ps *ps; /* (count) */
    struct found_run run; /* what is known of it so far */
};

/* The addresses of some ps of a run: of the one that `ps_option` names ("HOST:PORT" or several with
 * commas between them; NULL: it was not given), else of TF_CONFIG's, else of the only run on this
 * machine. One ps is enough: it knows the others.
 *
 * Gives    *roster, by no index.
 * Fails    INVALID_ARGUMENT: an address without a port, or a TF_CONFIG that is wrong. NOT_FOUND:
 *          there is no run; FAILED_PRECONDITION: there are several, and the text lists them. */
enum sumac_status
find_cluster(const char *ps_option, struct roster *roster, struct sumac_error *error);

/* All ps of that run: as the first of them that answers knows them.
 * Gives    *roster.
 * Fails    as find_cluster; UNAVAILABLE (PS_MISSING): none of them answers; FAILED_PRECONDITION
 *          (WRONG_CLUSTER): some of them are of another run. */
enum sumac_status
roster_find(const char *ps_option, struct roster *roster, struct sumac_error *error);

/* Add a ps with a copy of that address. */
void roster_add(struct roster *roster, const char *address);

/* Ask ps `one` alone from now on; roster->count: ask none. */
void roster_leave_out_all_but(struct roster *roster, uint32_t one);

/* Learn whose run it is, and say it on standard error unless --ps named it. `json`: a document will
 * have it, too. A ps that does not tell is no failure. */
void roster_tell(struct roster *roster, bool json);

/* What to do about the address of that ps, at which another ps answers. */
const char *roster_remedy(const struct roster *roster, uint32_t index);

/* Fails    FAILED_PRECONDITION (WRONG_CLUSTER): the roster has that ps by its index, and what
 *          answered there is ps number `said`. */
enum sumac_status roster_check_index(
    const struct roster *roster, uint32_t index, uint32_t said, struct sumac_error *error);

/* Has one of the missing said why it ends? */
bool roster_has_last_word(const struct roster *roster);

/* "no answer for 5 s (Connection refused)", of a missing one. */
struct roster_silence {
    char text[256];
};
struct roster_silence roster_silence(const struct roster_ps *ps);

/* Say on standard error who is missing, and that `left_out` is not shown. Returns the exit code:
 * EXIT_FINE when nobody is. */
int roster_report(const struct command *command, const struct roster *roster, const char *left_out);

/* Who is missing, as an array of objects: ps, address, error. Gives  a value. */
json_t *roster_to_json(const struct roster *roster);

/* Open a client of the roster's run with these options, whose addresses are filled in.
 *
 * Gives    *client.
 * Fails    as sumac_client_open. */
enum sumac_status roster_open(
    const struct roster *roster, struct sumac_client_options options, struct sumac_client **client,
    struct sumac_error *error);

/* roster_find, roster_tell, and join that run as an observer, for a command that changes the run
 * and holds nothing up.
 *
 * Gives    *roster and *client; ends with observer_leave.
 * Fails    as roster_find, found_run_check_user, sumac_client_open. */
enum sumac_status observer_join(
    const char *ps_option, bool json, uint32_t timeout_ms, struct roster *roster,
    struct sumac_client **client, struct sumac_error *error);

/* Takes  client; NULL is fine. */
void observer_leave(struct sumac_client *client);
