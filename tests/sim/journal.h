/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h -- the records of a ps, as files would have them: now and then, and at the end of its
 * life, another lane, and on ps 0 another controller, is made of them alone, and must be what it
 * is. */
#pragma once

#include "controller_rows.h"
#include "process_ps.h"

void journal_add(struct world *world, struct journal *journal, const struct lane_effect *effect);
/* A violation, if the records do not say all. */
void journal_check(struct world *world, struct ps *ps);
/* The same, when the last look was a while ago. */
void journal_look(struct world *world, struct ps *ps);
/* Is there a row of it that is not on disk yet? */
bool journal_lacks(
    const struct journal *journal, enum controller_row_kind kind, const void *id, size_t id_bytes);
