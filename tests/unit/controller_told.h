/* SPDX-License-Identifier: Apache-2.0 */
/* controller_told.h -- an order of the controller, as its world keeps it. */
#pragma once

#include "controller_world.h"

struct world_order told_order(const wire_peer_order *order);
