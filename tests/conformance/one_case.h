/* SPDX-License-Identifier: Apache-2.0 */
/* one_case.h -- a case of a strategy while it is run: what it gives, and what has come of it. */
#ifndef CONFORMANCE_ONE_CASE_H
#define CONFORMANCE_ONE_CASE_H

#include "cases.h"
#include "sumac/strategy.h"
#include "values.h"

/* A case, and what has come of it so far. */
struct one_case {
    struct cases_run *run;
    json_t *given;
    struct sumac_strategy *strategy;
    uint32_t replicas;
    enum sumac_status status;
    struct sumac_error error;
    struct sumac_value *result; /* NULL: none */
    bool broken;                /* the case cannot be expressed */
};

/* What the case has under a key, or NULL; whether that is this text. */
json_t *one_get(const struct one_case *one, const char *key);
bool one_is(const struct one_case *one, const char *key, const char *text);

/* A value of the case. NULL: the library has no such value, which is a refusal, and the case's
 * status. */
struct sumac_value *one_read_value(struct one_case *one, json_t *given);
/* Its args, a tuple, and its kwargs, a dict; empty where there are none. NULL: as above. */
struct sumac_value *one_read_args(struct one_case *one);
struct sumac_value *one_read_kwargs(struct one_case *one);

/* Make the strategy of the case. NULL: it cannot be made, or *skipped says why it is not. */
struct sumac_strategy *
one_open_strategy(struct cases_run *run, json_t *given, const char **skipped);

/* "INVALID_ARGUMENT"; UNKNOWN for a name that is none. */
enum sumac_status one_status_of(const char *name);

#endif
