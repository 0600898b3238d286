/* SPDX-License-Identifier: Apache-2.0 */
/* one_case.h -- a case of a strategy while it is run: what it gives, and what has come of it. */
#pragma once

#include "cases.h"
#include "sumac/strategy.h"
#include "values.h"

struct sumac_variable;

/* A case, and what has come of it so far. */
struct one_case {
    struct cases_run *run;
    json_t *given;
    struct sumac_strategy *strategy;
    struct case_replicas replicas;
    uint32_t worker; /* this one */
    enum sumac_status status;
    struct sumac_error error;
    struct sumac_value *result;         /* NULL: none */
    struct sumac_variable *destination; /* of reduce_to; NULL: none */
    bool broken;                        /* the case cannot be expressed */
};

/* What the case has under a key, or NULL; whether that is this text. */
json_t *one_get(const struct one_case *one, const char *key);
bool one_is(const struct one_case *one, const char *key, const char *text);

/* A value of the case. NULL: the library has no such value, which is a refusal, and the case's
 * status. */
struct sumac_value *one_read_value(struct one_case *one, json_t *given);
/* The same value with what each replica has of it on its device, where the program was given
 * devices; what cannot be brought there is left as it is, for the call to say so. Takes  value. */
struct sumac_value *one_bring(struct one_case *one, struct sumac_value *value);
/* Its args, a tuple, and its kwargs, a dict, brought there; empty where there are none. NULL: as
 * above. */
struct sumac_value *one_read_args(struct one_case *one);
struct sumac_value *one_read_kwargs(struct one_case *one);

/* From now on strategies are made on these devices, "gpu", "gpu:0,1" (NULL: CPUs). Lent.
 * Fails  as sumac_strategy_create: there is none. */
enum sumac_status one_use_devices(const char *devices, struct sumac_error *error);

bool one_has_devices(void);

/* Run a case of a strategy: make that, in each worker of the case, run `act`, which says whether
 * the case has passed, or why not, and hear from the others. */
enum cases_result one_run(struct cases_run *run, json_t *given, bool (*act)(struct one_case *one));

/* "INVALID_ARGUMENT"; UNKNOWN for a name that is none. */
enum sumac_status one_status_of(const char *name);
