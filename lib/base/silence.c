/* SPDX-License-Identifier: Apache-2.0 */
/* silence.c -- why a process is not reached, and what to do about it. */
#include "silence.h"

#include <stddef.h>
#include <string.h>

bool silence_is_own(const char *why)
{
    return why != NULL && strstr(why, SILENCE_NO_MEMORY) != NULL;
}

bool silence_is_mute(const char *why) { return why != NULL && strstr(why, SILENCE_MUTE) != NULL; }

const char *silence_remedy(const char *why, const char *otherwise)
{
    if (silence_is_own(why))
        return "";
    return silence_is_mute(why) ? SILENCE_MUTE_REMEDY : otherwise;
}
