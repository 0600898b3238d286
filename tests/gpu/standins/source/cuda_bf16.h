/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_bf16.h -- in the place of nvcc's: cuda_fp16.h has all of it. */
#include "cuda_fp16.h"
