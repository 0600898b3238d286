/* SPDX-License-Identifier: Apache-2.0 */
/* judge_written.h -- what a judge under test has recorded, and the judge that is made of it. */
#ifndef TESTS_JUDGE_WRITTEN_H
#define TESTS_JUDGE_WRITTEN_H

#include "judge.h"

struct written {
    struct span *records;
    uint64_t count, capacity;
};

/* An effect RECORD: the next one. */
void written_keep(struct written *written, const struct judge_effect *effect);
/* A judge that has yet to begin. */
struct judge *written_replayed(
    const struct written *written, const struct lane_config *config, const struct memory *memory);
/* It is what this one is; fails the test where it is not. */
void written_compare(
    const struct written *written, const struct lane_config *config, const struct judge *judge);
void written_forget(struct written *written);

#endif
