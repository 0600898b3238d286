/* SPDX-License-Identifier: Apache-2.0 */
/* sumac.h -- all of it: what a program in C includes.
 *
 *     cluster.h     which tasks a run is made of, and which one this is
 *     client.h      a session with the ps: variables, pushes, pulls
 *     collective.h  all_reduce, all_gather, broadcast, barrier
 *     device.h      memory, copies and kernels of a GPU
 *     replica.h     one replica, as a step's or a run's function sees it
 *     worker.h      steps: pull, compute and push, overlapped
 *     value.h       tensors, nests of them, what each replica has
 *     strategy.h    tf.distribute: replicas, and what they compute together
 *     variable.h    variables of a strategy
 */
#ifndef SUMAC_SUMAC_H
#define SUMAC_SUMAC_H

#include "sumac/buffer.h"
#include "sumac/client.h"
#include "sumac/cluster.h"
#include "sumac/collective.h"
#include "sumac/device.h"
#include "sumac/reduce.h"
#include "sumac/replica.h"
#include "sumac/status.h"
#include "sumac/strategy.h"
#include "sumac/tensor.h"
#include "sumac/value.h"
#include "sumac/variable.h"
#include "sumac/worker.h"

#endif
