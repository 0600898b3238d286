/* SPDX-License-Identifier: Apache-2.0 */
/* wire_check.c -- the public enumerations have the wire's numbers; the compiler says so if they
 * drift apart. */
#include "sumac/tensor.h"
#include "wire.h"

#define X(NAME, number, bytes, kind, name, numpy)                                                  \
    _Static_assert(                                                                                \
        (int)SUMAC_##NAME == (int)SUMAC__V1__DATA_TYPE__DATA_TYPE_##NAME,                          \
        "enum DataType in proto/sumac/v1/types.proto");
SUMAC_DTYPE_LIST(X)
#undef X
_Static_assert(
    (int)SUMAC_DTYPE_UNSPECIFIED == (int)SUMAC__V1__DATA_TYPE__DATA_TYPE_UNSPECIFIED,
    "enum DataType in proto/sumac/v1/types.proto");

#define X(name, number)                                                                            \
    _Static_assert(                                                                                \
        (int)SUMAC_REASON_##name == (int)SUMAC__V1__REASON__REASON_##name,                         \
        "enum Reason in proto/sumac/v1/types.proto");
SUMAC_REASON_LIST(X)
#undef X
