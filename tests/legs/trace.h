/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h -- which functions one event enters, where the tree is compiled with
 * -finstrument-functions; else none are seen. */
#pragma once

/* The next call of `step`, one of the two cores, is the leg of that name: each function that is
 * entered until it returns is printed once, as "leg, tab, address". */
void trace_next(const char *leg, void (*step)(void));
