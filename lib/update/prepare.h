/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.h -- what the loops of each function need of its hyperparameters: a function of
 * update_function's `prepare` each.
 *
 * `rounded` are the hyperparameters by number, as the type of the arithmetic has them; `step` is t.
 */
#pragma once

#include "update.h"

void prepare_momentum(const double *rounded, uint64_t step, struct update_slice *slice);
void prepare_adagrad(const double *rounded, uint64_t step, struct update_slice *slice);
void prepare_rmsprop(const double *rounded, uint64_t step, struct update_slice *slice);
void prepare_adam(
    const double *rounded, uint64_t step, struct update_slice *slice); /* yogi's too */
void prepare_adamw(const double *rounded, uint64_t step, struct update_slice *slice);
void prepare_ftrl(const double *rounded, uint64_t step, struct update_slice *slice);
void prepare_nadam(const double *rounded, uint64_t step, struct update_slice *slice);
void prepare_adamax(const double *rounded, uint64_t step, struct update_slice *slice);
void prepare_adadelta(const double *rounded, uint64_t step, struct update_slice *slice);
void prepare_lion(const double *rounded, uint64_t step, struct update_slice *slice);
void prepare_delayed_nesterov(const double *rounded, uint64_t step, struct update_slice *slice);
