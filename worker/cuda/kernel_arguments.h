/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_arguments.h -- what kernels are given, as C and nvcc's C++ both read it: a kernel has one
 * parameter, the struct of its kind, by value.
 *
 * Addresses are the device's, each a multiple of its array's element. */
#pragma once

#include <stdint.h>

#include "scalars.h"

#define CUDA_KERNEL_THREADS 256u /* of a block */

/* From one array to another, (count) each, of the types that the kernel's name says. */
struct cuda_kernel_arguments {
    uint64_t to, from;
    uint64_t count;
    double by; /* rounded to the type of the arithmetic */
};

/* Of an update function: what a struct update_slice has of it (lib/update/update.h). */
struct cuda_update_arguments {
    uint64_t value_out, value_in; /* (count), likewise the others; `out` may be `in` */
    uint64_t gradient;
    uint64_t slot_out[UPDATE_SLOTS_MAX], slot_in[UPDATE_SLOTS_MAX];
    uint64_t count;
    double scalar[UPDATE_SCALARS_OF_TABLE];
    double scale, clip; /* of what is conditioned: the gradient is min(max(scale·g, −clip), clip) */
    uint32_t flag;      /* which of the function's two loops it is */
    uint32_t is_wide; /* of a half type: the gradient is float32 */
    uint32_t is_conditioned;
    uint32_t unused;
};
