/* SPDX-License-Identifier: Apache-2.0 */
/* sync.h -- what members wait for when they wait for each other. */
#ifndef SYNC_SYNC_H
#define SYNC_SYNC_H

#include "path.h"

extern struct path barrier_path;

#endif
