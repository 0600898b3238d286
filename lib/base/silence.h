/* SPDX-License-Identifier: Apache-2.0 */
/* silence.h -- why a process is not reached, in the words of lib/rpc, and what to do about it. */
#pragma once

#include <stdbool.h>

/* This one names its remedy. */
#define SILENCE_NO_MEMORY "this process gets no memory: raise its limit (ulimit -v)"
#define SILENCE_MUTE "connected, but it does not speak"
#define SILENCE_MUTE_REMEDY "that process may be suspended, or too busy"

/* Does `why` tell of the calling process alone, and nothing of the other one? NULL: no. */
bool silence_is_own(const char *why);

/* Is a process at the address, which took the connection and says nothing? NULL: no. */
bool silence_is_mute(const char *why);

/* The remedy to print after `why`: "" if `why` names it, SILENCE_MUTE_REMEDY for a process that is
 * there and mute, else `otherwise`.
 * Lends  a constant, or `otherwise`. */
const char *silence_remedy(const char *why, const char *otherwise);
