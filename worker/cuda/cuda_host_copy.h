/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_host_copy.h -- copies between a GPU's memory and the host's. A copy is done when the call
 * returns. */
#ifndef WORKER_CUDA_CUDA_HOST_COPY_H
#define WORKER_CUDA_CUDA_HOST_COPY_H

/* Let lib/base/host_copy.h copy from and to GPUs. Threads  any. */
void cuda_host_copy_begin(void);

#endif
