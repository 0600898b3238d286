/* SPDX-License-Identifier: Apache-2.0 */
/* combine.h -- a round's contributions become one tensor, element by element, with the loops of the
 * update functions: a sum is what a push of all of them assigns, a minimum what one after the other
 * leaves.
 *
 * It goes on in the participants' order, whoever came first, and wherever a slice begins: so all
 * slices together have the same bits, however they are cut.
 */
#pragma once

#include "collective.h"
#include "update.h"

/* Elements of a part of a round that are combined together. */
struct combine_slice {
    const struct collective *collective; /* sum, mean, min or max */
    /* In the participants' order; bytes of collective_contribution_dtype, from the part's first on.
     */
    const struct update_sources *sources;
    double weight; /* of a mean: of all of them together, above 0 */
    uint64_t first, count;
    /* (count), of the collective's type: of element `first`; or where the first source has that. */
    void *out;
};

/* Threads  any; touches only what the slice names. */
void combine_run(const struct combine_slice *slice);
