/* SPDX-License-Identifier: Apache-2.0 */
/* run_ports.h -- free ports on loopback. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Pick `count` different free ports of *host, which is 127.0.0.1, or [::1] on a machine without
 * IPv4. Nothing keeps them free: another process may take one before it is used.
 * False: the system has none; errno says why. */
bool run_ports_pick(uint16_t *ports, uint32_t count, const char **host);
