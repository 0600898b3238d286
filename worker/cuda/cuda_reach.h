/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_reach.h -- what lies in a GPU's memory, to the host's and back, at once. */
#ifndef WORKER_CUDA_CUDA_REACH_H
#define WORKER_CUDA_CUDA_REACH_H

/* From now on whoever asks for bytes there (lib/base/reach.h) gets at them. Threads  any. */
void cuda_reach_begin(void);

#endif
