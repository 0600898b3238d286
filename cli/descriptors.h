/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.h -- how many files and sockets this process may have open. */
#pragma once

#include <stdint.h>

#define DESCRIPTORS_MAX UINT64_C(1048576) /* some programs walk over all they might have */

/* What a soft limit is raised to: the hard one, within DESCRIPTORS_MAX, and never less than it
 * is. */
uint64_t descriptors_wanted(uint64_t soft, uint64_t hard);
/* Raise this process's soft limit, and with it that of the processes which it will start. A
 * connection is a descriptor, and the usual soft limit of 1 024 is meant for programs that call
 * select. Where that fails, the limit is what it was. */
void descriptors_raise(void);

/* Take the places of standard input, output and error where they are closed: what is opened later
 * would get their numbers, and be sent what is printed. Reading from a closed input finds its end,
 * and writing to a closed output fails. */
void descriptors_keep_standard(void);
