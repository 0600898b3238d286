/* SPDX-License-Identifier: Apache-2.0 */
/* loops_avx512.c -- the loops, compiled for avx512; lib/update/CMakeLists.txt sets the flags. */
#define LOOPS_NAME "avx512"
#define LOOPS_TABLE loops_avx512
#include "loops_body.h"
