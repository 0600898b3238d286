/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h -- files of conformance cases, and what every runner does with them.
 *
 * A file is {"format": 1, "about": TEXT, "cases": [CASE, …]}; a case has an `id`, an `op`, and an
 * `expect` or an `error`. A key that nobody knows is an error, so that a runner never skips what it
 * does not understand. The tests' own door to Jansson.
 */
#ifndef CONFORMANCE_CASES_H
#define CONFORMANCE_CASES_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "sumac/status.h"

/* What became of the cases of one operation. */
struct cases_run {
    const char *op;
    size_t passed, failed;
    size_t left;         /* cases of the operation that the runner leaves to another */
    size_t other_ops;    /* cases of the file that are of another operation */
    const char *case_id; /* the case that is being run; lent */
};

enum cases_result { CASES_PASSED, CASES_FAILED, CASES_LEFT };

/* Load a file. NULL, said on stderr: it cannot be read, or is not of format 1. Release with
 * json_decref. */
json_t *cases_load(const char *path);

/* Run `run_case` over every case of `run->op`; it says why a case failed.
 * `keys` are what a case of this operation may have beside id, op, expect, error, exact, source,
 * decision, note. */
void cases_each(
    const json_t *file, struct cases_run *run, const char *const *keys,
    enum cases_result (*run_case)(struct cases_run *run, json_t *one, void *context),
    void *context);

/* Say on stderr, after the case's id, what is wrong with it; returns false. */
bool cases_fail(const struct cases_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Has `object` no key but these (NULL-terminated)? Says which it has. */
bool cases_keys_known(
    const struct cases_run *run, json_t *object, const char *what, const char *const *keys);

/* Is this the status and message that `expected`, {"code": NAME, "mentions": [TEXT, …]}, asks for?
 * Says why not. */
bool cases_error_matches(
    const struct cases_run *run, json_t *expected, enum sumac_status status, const char *text);

/* Print the counts; the program's exit code: failure too if nothing was run. */
int cases_finish(const struct cases_run *run);

#endif
