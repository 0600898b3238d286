/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h -- the variables that a command line names: names, and patterns as a shell writes
 * them; and what to say of a name that no variable has. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "catalogue.h"

/* Has the word a * or a ?, so that it may stand for several names? */
bool pattern_is_one(const char *word);

bool pattern_are_some(char *const *words, size_t count); /* one of them at least */

/* Does the word name the variable: letter by letter, or as a pattern, whose * and ? stand for any
 * characters, / too, and whose [a-c] for one of these? */
bool pattern_matches(const char *word, const char *name);

/* Drop words that were given before, in place. Returns how many are left. */
size_t pattern_drop_repeated(char **words, size_t count);

/* Make an UNKNOWN_VARIABLE about one of these names or patterns say what to write instead: similar
 * names, or rows as `get` takes them; or say that the run has no variables yet. Asks one ps for all
 * names; other errors stay as they are. */
void unknown_explain(
    struct roster *roster, char *const *names, size_t count, bool takes_rows,
    struct sumac_error *error);
