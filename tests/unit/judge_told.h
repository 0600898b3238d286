/* SPDX-License-Identifier: Apache-2.0 */
/* judge_told.h -- an order of the judge, as its world keeps it. */
#ifndef TESTS_JUDGE_TOLD_H
#define TESTS_JUDGE_TOLD_H

#include "judge_world.h"

struct world_order told_order(const wire_peer_order *order);

#endif
