/* SPDX-License-Identifier: Apache-2.0 */
/* run_ports.h -- free ports on loopback. */
#ifndef CLI_RUN_PORTS_H
#define CLI_RUN_PORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Pick `count` different ports that nobody listens on at *host, 127.0.0.1, or [::1] on a machine
 * without IPv4. They are free when they are picked, and nothing keeps them so: who listens later
 * must be ready to find one taken. False: the system has none, errno says why. */
bool run_ports_pick(uint16_t *ports, uint32_t count, const char **host);

#endif
