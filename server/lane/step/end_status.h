/* SPDX-License-Identifier: Apache-2.0 */
/* end_status.h -- what goes with the reason for which a run, or a ps, has ended. Shared by the lane
 * and the controller. */
#pragma once

#include "sumac/status.h"

static inline enum sumac_status status_of_end(enum sumac_reason reason)
{
    if (reason == SUMAC_REASON_RUN_ENDED)
        return SUMAC_FAILED_PRECONDITION;
    return reason == SUMAC_REASON_STATE_LOST ? SUMAC_DATA_LOSS : SUMAC_UNAVAILABLE;
}
