/* SPDX-License-Identifier: Apache-2.0 */
/* words.c -- a text is taken apart from its begin to its end, each byte once. */
#include "words.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "decimal.h"
#include "error.h"
#include "expression.h"
#include "text.h"

static bool is_letter(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           character == '_';
}

static bool is_digit(char character) { return character >= '0' && character <= '9'; }

/* Blanks, comments, and ends of lines that end nothing. */
static void skip(struct words *words)
{
    for (; words->next < words->end; words->next++) {
        const char character = *words->next;
        if (character == '#')
            while (words->next + 1 < words->end && words->next[1] != '\n')
                words->next++;
        else if (character == '\n' && words->open > 0) {
            words->line++;
            words->line_begin = words->next + 1;
        } else if (character != ' ' && character != '\t' && character != '\r')
            return;
    }
}

/* Characters from `from` to `to`. */
static uint32_t count_characters(const char *from, const char *to)
{
    uint32_t count = 0;

    for (; from < to; from++)
        if (((uint8_t)*from & 0xc0) != 0x80)
            count++;
    return count;
}

/* "1e-4" is one word, and so is what only begins like a number: "1x". */
static size_t number_bytes(const char *text, const char *end)
{
    const char *at = text;

    for (; at < end; at++) {
        const bool sign =
            (*at == '-' || *at == '+') && at > text && (at[-1] == 'e' || at[-1] == 'E');
        if (!is_letter(*at) && !is_digit(*at) && *at != '.' && !sign)
            break;
    }
    return (size_t)(at - text);
}

static size_t name_bytes(const char *text, const char *end)
{
    const char *at = text;

    while (at < end && (is_letter(*at) || is_digit(*at)))
        at++;
    return (size_t)(at - text);
}

/* 0: there is none. */
static size_t sign_bytes(const char *text, const char *end)
{
    if (strchr("<>=!", text[0]) != NULL && end - text > 1 && text[1] == '=')
        return 2;
    return strchr("+-*/(),:=<>", text[0]) != NULL ? 1 : 0;
}

/* One character, with what UTF-8 has it continue with. */
static size_t character_bytes(const char *text, const char *end)
{
    const char *at = text + 1;

    while (at < end && ((uint8_t)*at & 0xc0) == 0x80)
        at++;
    return (size_t)(at - text);
}

static void take(struct words *words, enum word_kind kind, size_t bytes)
{
    assert(bytes > 0 && bytes <= (size_t)(words->end - words->next));
    words->at.kind = kind;
    words->at.bytes = bytes;
    words->next += bytes;
}

static void take_end_of_line(struct words *words)
{
    take(words, WORD_END_OF_LINE, 1);
    words->line++;
    words->line_begin = words->next;
}

static void take_number(struct words *words, size_t bytes)
{
    const bool is_one = decimal_read(words->next, bytes, &words->at.number);

    take(words, is_one ? WORD_NUMBER : WORD_WRONG, bytes);
}

void words_next(struct words *words)
{
    struct word *const at = &words->at;

    assert(words->next <= words->end);
    skip(words);
    const char *const text = words->next, *const end = words->end;
    *at = (struct word){.kind = WORD_END, .text = text, .line = words->line};
    at->column = count_characters(words->line_begin, text) + 1;
    if (text == end)
        return;
    if (*text == '\n')
        take_end_of_line(words);
    else if (is_letter(*text))
        take(words, WORD_NAME, name_bytes(text, end));
    else if (is_digit(*text) || (*text == '.' && end - text > 1 && is_digit(text[1])))
        take_number(words, number_bytes(text, end));
    else if (*text != '\0' && sign_bytes(text, end) > 0)
        take(words, WORD_SIGN, sign_bytes(text, end));
    else
        take(words, WORD_WRONG, character_bytes(text, end));
    if (word_is(at, "("))
        words->open++;
    if (word_is(at, ")") && words->open > 0)
        words->open--;
}

void words_begin(struct words *words, const char *text, size_t bytes, struct sumac_error *error)
{
    assert(text_is_utf8(text, bytes));
    *words = (struct words){
        .next = text, .end = text + bytes, .line_begin = text, .line = 1, .error = error};
    words_next(words);
}

bool word_is(const struct word *word, const char *text)
{
    return word->bytes == strlen(text) && memcmp(word->text, text, word->bytes) == 0;
}

void words_refuse(struct words *words, const struct word *word, const char *format, ...)
{
    char shown[EXPRESSION_NAME_BYTES_MAX + 1], sentence[SUMAC_ERROR_TEXT_BYTES];
    va_list values;

    if (words->failed)
        return;
    if (word->kind == WORD_END || word->kind == WORD_END_OF_LINE)
        (void)text_print(
            shown, sizeof shown, "the end of the %s", word->kind == WORD_END ? "text" : "line");
    else
        (void)text_print_line(shown, sizeof shown, "%.*s", (int)word->bytes, word->text);
    va_start(values, format);
    (void)text_print_values(sentence, sizeof sentence, format, values);
    va_end(values);
    (void)fail_invalid(
        words->error, SUMAC_REASON_BAD_EXPRESSION, "line %" PRIu32 ", column %" PRIu32 ": %s: %s",
        word->line, word->column, shown, sentence);
    words->failed = true;
    words->next = words->end;
    words->at = (struct word){.kind = WORD_END, .text = words->end};
}
