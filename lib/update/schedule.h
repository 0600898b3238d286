/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.h -- how a learning rate goes with a shard's versions, without a push: constant,
 * exponential and cosine decay (tf.keras.optimizers.schedules), each with linear warm-up.
 *
 *   η   warmup_target ┐   ╱‾‾╲ ╲
 *                     │  ╱     ‾╲__ cosine_decay
 *     learning_rate ──┘ ╱          ‾‾‾‾ alpha
 *                       └─┬─┘└──────┬──┘
 *   from first_version: warmup_steps  decay_steps
 *
 * In float64, by functions that give the same bits with every compiler; rounded once, with the
 * other hyperparameters (update_prepare).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sumac/status.h"
#include "wire.h"

/* The kinds by name, in the order of the numbers on the wire; the first is no decay. */
#define UPDATE_SCHEDULE_LIST(X)                                                                    \
    X(CONSTANT, "constant")                                                                        \
    X(EXPONENTIAL_DECAY, "exponential_decay")                                                      \
    X(COSINE_DECAY, "cosine_decay")
enum {
#define X(name, text) UPDATE_SCHEDULE_##name = SUMAC__V1__SCHEDULE__KIND__KIND_##name,
    UPDATE_SCHEDULE_LIST(X)
#undef X
};

#define UPDATE_SCHEDULE_STEPS_MAX ((uint64_t)1 << 53) /* that a float64 counts one by one */
#define UPDATE_SCHEDULE_TEXT_BYTES 256

/* As zeroed: none. What its kind does not have is 0. */
struct update_schedule {
    uint64_t decay_steps, warmup_steps, first_version;
    double decay; /* of exponential decay its rate, of cosine decay alpha */
    double warmup_target;
    uint16_t kind;
    bool staircase;
};

static inline bool update_schedule_is_any(const struct update_schedule *schedule)
{
    return schedule->kind != UPDATE_SCHEDULE_CONSTANT || schedule->warmup_steps > 0;
}

/* Fails  INVALID_ARGUMENT (BAD_HYPERPARAMETER) naming the number; *schedule is left alone. */
enum sumac_status update_schedule_read(
    const wire_schedule *given, struct update_schedule *schedule, struct sumac_error *error);
void update_schedule_write(const struct update_schedule *schedule, wire_schedule *message);
bool update_schedule_same(const struct update_schedule *a, const struct update_schedule *b);
/* "exponential_decay(decay_steps 1000, decay_rate 0.96)"; "none". Lends  text. */
const char *
update_schedule_print(const struct update_schedule *schedule, char *text, size_t text_bytes);
/* "cosine_decay"; NULL for an unknown number. */
const char *update_schedule_name(uint32_t kind);

/* The rate of a push to a shard that has come to `version`, from learning_rate on: not rounded, and
 * at most 2^127, which every type of arithmetic has. */
double update_schedule_rate(
    const struct update_schedule *schedule, double learning_rate, uint64_t version);
