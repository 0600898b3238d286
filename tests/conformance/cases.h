/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h -- files of conformance cases, and what every runner does with them.
 *
 * A file is {"format": 1, "about": TEXT, "cases": [CASE, …]}; a case has an `id`, an `op`, and an
 * `expect` or an `error`. A key that nobody knows is an error, so that a runner never skips what it
 * does not understand. The tests' own door to Jansson.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "sumac/status.h"

/* What became of the cases. */
struct cases_run {
    size_t passed, failed, skipped;
    const char *case_id; /* the case that is being run; lent */
    char why[1024];      /* it failed, or was skipped: the first that was said of it */
};

enum cases_result { CASES_PASSED, CASES_FAILED, CASES_SKIPPED };

/* Load a file. NULL, said on stderr: it cannot be read, or is not of format 1. Release with
 * json_decref. */
json_t *cases_load(const char *path);

/* How cases of one operation are run. `keys` are what such a case may have beside id, op, expect,
 * error, exact, source, decision, note. */
struct cases_operation {
    const char *op;
    const char *const *keys;
    enum cases_result (*run_case)(struct cases_run *run, json_t *one, void *context);
    void *context;
};

/* Run every case, each by its operation of a list that ends with one without a name, and print
 * PASS id, FAIL id: why or SKIP id: why of each. A case of another operation is skipped. */
void cases_each(
    const json_t *file, struct cases_run *run, const struct cases_operation *operations);

/* Say what is wrong with the case: "expected …, got …". Returns  false. */
bool cases_fail(struct cases_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Say why it is not run. Returns  CASES_SKIPPED. */
enum cases_result cases_skip(struct cases_run *run, const char *why);

/* Has `object` no key but these (NULL-terminated)? Says which it has. */
bool cases_keys_known(
    struct cases_run *run, json_t *object, const char *what, const char *const *keys);

/* Is this the status and message that `expected`, {"code": NAME, "mentions": [TEXT, …]}, asks for?
 * Says why not. */
bool cases_error_matches(
    struct cases_run *run, json_t *expected, enum sumac_status status, const char *text);

/* Print the counts, "N passed, N failed, N skipped". Returns  the program's exit code: failure too
 * if nothing was run. */
int cases_finish(const struct cases_run *run);
