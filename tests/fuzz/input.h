/* SPDX-License-Identifier: Apache-2.0 */
/* input.h -- a fuzzer's input as choices: each takes bytes from its front, and behind its end every
 * choice is the first one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input {
    const uint8_t *data;
    size_t left;
};

static inline uint8_t next(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->data++;
}

static inline uint32_t below(struct input *input, uint32_t count) { return next(input) % count; }

static inline uint64_t one_of(struct input *input, const uint64_t *letters, uint32_t count)
{
    return letters[below(input, count)];
}

static inline bool sometimes(struct input *input) { return next(input) % 8 == 7; }
