/* SPDX-License-Identifier: Apache-2.0 */
/* words.h -- an expression's text, word by word, each with its line and column. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sumac/status.h"

enum word_kind {
    WORD_NAME,
    WORD_NUMBER,
    WORD_SIGN,        /* + - * / ( ) , : = < <= > >= == != */
    WORD_END_OF_LINE, /* not within parentheses */
    WORD_END,
    WORD_WRONG, /* begins no word of the language */
};

struct word {
    enum word_kind kind;
    const char *text; /* in the whole text */
    size_t bytes;
    uint32_t line, column; /* from 1; columns are characters */
    double number;         /* of a WORD_NUMBER */
};

/* The word at hand, and where the next one begins. */
struct words {
    const char *next, *end;
    const char *line_begin;
    uint32_t line;
    uint32_t open; /* parentheses: within them a line goes on */
    struct word at;
    struct sumac_error *error;
    bool failed; /* refused: at the end */
};

/* The text is UTF-8. At its first word. */
void words_begin(struct words *words, const char *text, size_t bytes, struct sumac_error *error);
void words_next(struct words *words);

bool word_is(const struct word *word, const char *text);

/* The first refusal writes "line 3, column 9: WORD: …" to *error and ends the words. Later ones do
 * nothing. */
void words_refuse(struct words *words, const struct word *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
