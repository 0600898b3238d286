/* SPDX-License-Identifier: Apache-2.0 */
/* scalars.h -- the numbers that update functions' loops need beside the arrays, and where each is;
 * kernels of GPUs, too (worker/cuda/updates.cu). */
#pragma once

#define UPDATE_SLOTS_MAX 3

/* What scalar[] holds for the loops; they round it to their own type. A place serves one loop for
 * one thing and another for another. */
enum {
    UPDATE_SCALAR_RATE = 0, /* η; adam's with its bias correction, η·√(1 − β₂ᵗ)/(1 − β₁ᵗ) */
    UPDATE_SCALAR_MOMENTUM = 1,
    UPDATE_SCALAR_ONE_LESS_BETA_1 = 1,
    UPDATE_SCALAR_POWER = 1, /* ftrl's −p */
    UPDATE_SCALAR_ONE_LESS_BETA_2 = 2,
    UPDATE_SCALAR_ONE_LESS_RHO = 2,
    UPDATE_SCALAR_L1 = 2,
    UPDATE_SCALAR_GRADIENT_RATE = 2, /* delayed_nesterov's η/N */
    UPDATE_SCALAR_EPSILON = 3,
    UPDATE_SCALAR_TWICE_L2 = 3,
    UPDATE_SCALAR_SHARE = 3, /* delayed_nesterov's 1/N */
    UPDATE_SCALAR_BETA_1 = 4,
    UPDATE_SCALAR_RHO = 4,
    UPDATE_SCALAR_TWICE_L2_SHRINKAGE = 4,
    UPDATE_SCALAR_AHEAD_RATE = 4, /* nadam's, of the gradient */
    UPDATE_SCALAR_BETA_2 = 5,
    UPDATE_SCALAR_DECAY = 6, /* λ; adamw's η·λ */
    UPDATE_SCALARS_OF_TABLE = 7,
};
