/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.h -- which words somebody may have meant who wrote another one. */
#pragma once

#include <stddef.h>

#define NEAREST_MAX 3

/* The candidate closest to `word`, a third of its letters away or in other letters' case; NULL when
 * none is. `candidate(context, i)` is NULL at the end. */
const char *nearest_word(
    const char *word, const char *(*candidate)(const void *context, size_t index),
    const void *context);

/* The nearest of many, best first; begins zeroed. */
struct nearest {
    const char *names[NEAREST_MAX]; /* borrowed */
    size_t ranks[NEAREST_MAX];
    size_t count;
};

/* A third of its letters away, or in other letters' case, or with all of `word` within it. Borrows
 * the candidate. */
void nearest_try(struct nearest *nearest, const char *word, const char *candidate);

/* "W1, W2 or W3". */
void nearest_print(const struct nearest *nearest, char *text, size_t text_bytes);
