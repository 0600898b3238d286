/* SPDX-License-Identifier: Apache-2.0 */
/* address.h -- what is wrong with a text that should be "host:port". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL: nothing. A host is a name of RFC 1123's letters and '_', an IPv4 address, or an IPv6
 * address in brackets, with its zone; a port is 1 to 65535 in digits. An address that no host can
 * have is wrong, too.
 * Lends  a constant sentence, "its port is no number from 1 to 65535". */
const char *address_flaw(const char *address, size_t bytes);

/* Plain digits, as a number up to `most`. False: it is not such a number. */
bool address_read_digits(const char *digits, size_t count, uint32_t most, uint32_t *number);
