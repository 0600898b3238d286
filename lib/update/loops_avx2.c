/* SPDX-License-Identifier: Apache-2.0 */
/* loops_avx2.c -- the loops, compiled for avx2; lib/update/CMakeLists.txt sets the flags. */
#define LOOPS_NAME "avx2"
#define LOOPS_TABLE loops_avx2
#include "loops_body.h"
