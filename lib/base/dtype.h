/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.h -- tables by dtype: how long they are, and how a row follows from SUMAC_DTYPE_LIST.
 *
 * A table has a macro for each kind, ROW_BOOL(name, bytes) … ROW_FLOAT(name, bytes), and is filled
 * by X(NAME, number, bytes, kind, name, numpy) [number] = ROW_##kind(name, bytes): a kind that it
 * has forgotten, or a float whose loop nobody wrote, does not compile.
 */
#pragma once

#include <stddef.h>

#include "sumac/tensor.h"

/* The largest number of a dtype: they have no gaps. A table by dtype has one row more, for 0. */
#define X(NAME, number, bytes, kind, name, numpy) +1
enum { DTYPES_MAX = 0 SUMAC_DTYPE_LIST(X) };
#undef X

/* An element of each kind as it lies in memory: ELEMENT_##kind(name), in what SUMAC_DTYPE_LIST
 * fills. */
#define ELEMENT_float32 float
#define ELEMENT_float64 double
#define ELEMENT_BOOL(name) uint8_t
#define ELEMENT_INT(name) name##_t
#define ELEMENT_UINT(name) name##_t
#define ELEMENT_HALF(name) uint16_t
#define ELEMENT_FLOAT(name) ELEMENT_##name

/* sumac_dtype_bytes without a call: every piece of a push asks several times. */
static inline uint32_t dtype_bytes(enum sumac_dtype dtype)
{
    switch (dtype) {
    case SUMAC_DTYPE_UNSPECIFIED:
        return 0;
#define X(NAME, number, bytes, kind, name, numpy)                                                  \
    case SUMAC_##NAME:                                                                             \
        return bytes;
        SUMAC_DTYPE_LIST(X)
#undef X
    }
    return 0;
}

/* "1 (bool) to 13 (float64)", for whoever has named another number. Lends  text. */
const char *dtype_list_print(char *text, size_t text_bytes);
