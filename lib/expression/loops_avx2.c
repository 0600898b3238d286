/* SPDX-License-Identifier: Apache-2.0 */
/* loops_avx2.c -- the loops, compiled for AVX2. */
#define LOOPS_NAME "avx2"
#define LOOPS_TABLE expression_loops_avx2
#include "expression_loops_body.h"
