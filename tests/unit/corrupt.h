/* SPDX-License-Identifier: Apache-2.0 */
/* corrupt.h -- for tests of the files …_check.c: one field of a state is wrong at a time, and the
 * check must object. */
#pragma once

#include <string.h>

#include "check.h"

/* While `place` has the value `wrong`, the call `look` must write these words into `said`. */
#define corrupt(look, place, wrong, words)                                                         \
    do {                                                                                           \
        const __typeof__(place) right = (place);                                                   \
        struct check said = {.text = ""};                                                          \
        (place) = (wrong);                                                                         \
        look;                                                                                      \
        (place) = right;                                                                           \
        if (strstr(said.text, (words)) == NULL)                                                    \
            fail_msg("%s = %s: the check says '%s'", #place, #wrong, said.text);                   \
    } while (0)
