/* SPDX-License-Identifier: Apache-2.0 */
/* controller_written.h -- what a controller under test has recorded, and the controller that is
 * made of it. */
#pragma once

#include "controller.h"

struct written {
    struct span *records;
    uint64_t count, capacity;
};

/* An effect RECORD: the next one. */
void written_keep(struct written *written, const struct lane_effect *effect);
/* A controller that has yet to begin. */
struct controller *written_replayed(
    const struct written *written, const struct lane_config *config, const struct memory *memory);
/* It is what this one is; fails the test where it is not. */
void written_compare(
    const struct written *written, const struct lane_config *config,
    const struct controller *controller);
void written_forget(struct written *written);
