/* SPDX-License-Identifier: Apache-2.0 */
/* loops_avx512bf16.c -- the loops, compiled for avx512 with its conversion to bfloat16;
 * lib/update/CMakeLists.txt sets the flags. */
#define LOOPS_NAME "avx512bf16"
#define LOOPS_TABLE loops_avx512bf16
#include "loops_body.h"
