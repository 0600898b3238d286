/* SPDX-License-Identifier: Apache-2.0 */
/* replay_pair.h -- a core and another one that its records made, side by side: what both files that
 * compare such a pair need. The first difference is kept, by name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "check.h"

struct pair {
    const struct lane *lane, *lane_again; /* or, … */
    const struct controller *controller, *controller_again;
    const char *records; /* "the records": of which core, in a sentence */
    struct check *check;
};

void differ(const struct pair *pair, const char *what, const char *of_whom);
void same(
    const struct pair *pair, uint64_t was, uint64_t is, const char *what, const char *of_whom);
/* NULL is "". */
void same_text(
    const struct pair *pair, const char *was, const char *is, const char *what,
    const char *of_whom);
/* Is one of them missing? Then there is nothing to go on with. */
bool one_only(const struct pair *pair, const void *was, const void *is, const char *of_whom);
