/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_arguments.h -- what kernels are given, as C and nvcc's C++ both read it: a kernel has one
 * parameter, the struct of its kind, by value.
 *
 * Addresses are the device's, each a multiple of its array's element. */
#ifndef WORKER_CUDA_KERNEL_ARGUMENTS_H
#define WORKER_CUDA_KERNEL_ARGUMENTS_H

#include <stdint.h>

#define CUDA_KERNEL_THREADS 256u /* of a block */

/* From one array to another, (count) each, of the types that the kernel's name says. */
struct cuda_kernel_arguments {
    uint64_t to, from;
    uint64_t count;
    double by; /* rounded to the type of the arithmetic */
};

#endif
