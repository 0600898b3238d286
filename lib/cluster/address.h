/* SPDX-License-Identifier: Apache-2.0 */
/* address.h -- is a text "host:port"? */
#ifndef CLUSTER_ADDRESS_H
#define CLUSTER_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/* A host without blanks, control characters or '/', an IPv6 host in brackets; a port from 1 to
 * 65535 in digits. */
bool address_is_valid(const char *address, size_t bytes);

#endif
