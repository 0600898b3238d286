/* SPDX-License-Identifier: Apache-2.0 */
/* step_contribution.h -- a part of a synchronous push. */
#pragma once

#include "part.h"

/* Its header: is the step the member's next one, and may it be a contribution at all? Else it is
 * refused. */
bool lane_step_contribution_begin(
    struct lane *lane, struct lane_part *part, const wire_part *header);
/* Can contributions for this variable become one gradient? Else it is refused. */
bool lane_step_contribution_check_variable(
    struct lane *lane, struct lane_part *part, const struct variable *variable);
/* It is whole: is it like those that are held for its step? Else it is refused. */
bool lane_step_contribution_compare(struct lane *lane, struct lane_part *part);
/* As its record says: it was refused, and was for this step (0: none of its member's). */
void lane_step_contribution_replay_refused(struct lane_part *part, uint64_t step);
/* Its turn has come, and it counts for nothing: it is voided here, for that reason, as on every ps.
 * False: there is no memory, and nothing has changed. */
bool lane_step_contribution_void(
    struct lane *lane, const struct lane_part *part, const struct sumac_error *error);
