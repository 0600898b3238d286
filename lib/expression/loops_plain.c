/* SPDX-License-Identifier: Apache-2.0 */
/* loops_plain.c -- the loops, compiled for what every processor of the family has. */
#define LOOPS_NAME "plain"
#define LOOPS_TABLE expression_loops_plain
#include "expression_loops_body.h"
