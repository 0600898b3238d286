/* SPDX-License-Identifier: Apache-2.0 */
/* wide_dtypes.c -- the types in which a variable's slots are kept and its contributions are summed.
 */
#include "update.h"

enum sumac_dtype update_slot_dtype(enum sumac_dtype dtype)
{
    return sumac_dtype_kind(dtype) == SUMAC_KIND_HALF ? SUMAC_FLOAT32 : dtype;
}

enum sumac_dtype update_contribution_dtype(enum sumac_dtype dtype)
{
    return sumac_dtype_kind(dtype) == SUMAC_KIND_HALF ? SUMAC_FLOAT32 : dtype;
}
