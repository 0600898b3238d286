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
};

/* The text is UTF-8. At its first word. */
void words_begin(struct words *words, const char *text, size_t bytes);
void words_next(struct words *words);

bool word_is(const struct word *word, const char *text);

/* "line 3, column 9: WORD: …". Returns INVALID_ARGUMENT, which it writes to *error. */
enum sumac_status
word_refuse(const struct word *word, struct sumac_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
