/* SPDX-License-Identifier: Apache-2.0 */
/* unknown.h -- what to say of a name that no variable has. */
#pragma once

#include "catalogue.h"

/* Make an UNKNOWN_VARIABLE about one of these names or patterns say what to write instead: the
 * names that are near, rows as `get` takes them, or that there are no variables yet. Asks one ps
 * for all names; an error that it cannot better is left as it is. */
void unknown_explain(
    struct roster *roster, char *const *names, size_t count, bool takes_rows,
    struct sumac_error *error);
