/* SPDX-License-Identifier: Apache-2.0 */
/* device.h -- a logical device: one thread that runs one job at a time.
 *
 * CPU:0 … CPU:n-1 exist on every machine, whatever its number of cores, so that everything that
 * concerns several replicas can be tried anywhere.
 */
#ifndef WORKER_DEVICE_H
#define WORKER_DEVICE_H

#include <stdint.h>

#include "sumac/status.h"

struct device;

/* Start device CPU:`index`.
 * Gives    *device; close with device_close.
 * Fails    RESOURCE_EXHAUSTED: no memory, or no more threads. */
enum sumac_status device_open(uint32_t index, struct device **device, struct sumac_error *error);

/* Run work(context) on the device's thread; the device must be idle. Returns at once. */
void device_start(struct device *device, void (*work)(void *context), void *context);

/* Wait until the device is idle. What `work` wrote is then visible to the caller. */
void device_wait(struct device *device);

/* Finish what runs, end the thread, free the device. NULL is fine. */
void device_close(struct device *device);

#endif
