/* SPDX-License-Identifier: Apache-2.0 */
/* loops_avx512.c -- the loops, compiled for AVX-512. */
#define LOOPS_NAME "avx512"
#define LOOPS_TABLE expression_loops_avx512
#include "expression_loops_body.h"
