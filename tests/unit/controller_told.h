/* SPDX-License-Identifier: Apache-2.0 */
/* controller_told.h -- an order of the controller, as its world keeps it. */
#ifndef TESTS_CONTROLLER_TOLD_H
#define TESTS_CONTROLLER_TOLD_H

#include "controller_world.h"

struct world_order told_order(const wire_peer_order *order);

#endif
