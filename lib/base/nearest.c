/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c -- words a few letters away, by Levenshtein's distance. Two adjacent letters
 * that have changed places count as one edit. */
#include "nearest.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "text.h"

#define WORD_BYTES_MAX 128     /* longer words are near to nothing */
#define DISTANCE_MAX 3u        /* edits beyond which a word is not meant */
#define CONTAINED_BYTES_MIN 3u /* a shorter word is in too many others */
#define NOT_NEAR (DISTANCE_MAX + 2u)

/* Both words are shorter than WORD_BYTES_MAX. Row i has the edits from i letters of a. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_BYTES_MAX + 1];
    const size_t columns = strlen(b);
    size_t i = 1;

    assert(columns < WORD_BYTES_MAX);
    for (size_t j = 0; j <= columns; j++)
        rows[0][j] = j;
    for (; a[i - 1] != '\0'; i++) {
        size_t *row = rows[i % 3];
        const size_t *one = rows[(i - 1) % 3], *two = rows[(i + 1) % 3]; /* above */
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t best = one[j - 1] + (a[i - 1] != b[j - 1]);
            if (one[j] + 1 < best)
                best = one[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two[j - 2] + 1 < best)
                best = two[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[(i - 1) % 3][columns];
}

/* A short word is near to all other short ones: a third of its letters may be wrong, and one
 * always. */
static size_t distance_max(size_t bytes)
{
    const size_t third = bytes / 3;

    return third < 1 ? 1 : third < DISTANCE_MAX ? third : DISTANCE_MAX;
}

/* Above DISTANCE_MAX: it is not meant, nor is a word of which no letter would be left. */
static size_t edits_between(const char *word, const char *candidate)
{
    if (strcasecmp(word, candidate) == 0)
        return 0;
    const size_t bytes = strlen(word), others = strlen(candidate);
    const size_t more = bytes > others ? bytes - others : others - bytes;
    if (bytes >= WORD_BYTES_MAX || others >= WORD_BYTES_MAX || more > DISTANCE_MAX)
        return NOT_NEAR;
    const size_t edits = distance(word, candidate);
    return edits <= distance_max(bytes) && edits < bytes ? edits : NOT_NEAR;
}

const char *nearest_word(
    const char *word, const char *(*candidate)(const void *context, size_t index),
    const void *context)
{
    const char *nearest = NULL, *tried = NULL;
    size_t least = NOT_NEAR;

    for (size_t i = 0; (tried = candidate(context, i)) != NULL; i++) {
        const size_t edits = edits_between(word, tried);
        if (edits < least) {
            least = edits;
            nearest = tried;
        }
    }
    return nearest;
}

static bool contains(const char *candidate, const char *word)
{
    const size_t bytes = strlen(word);

    for (; strlen(candidate) >= bytes; candidate++)
        if (strncasecmp(candidate, word, bytes) == 0)
            return true;
    return false;
}

void nearest_try(struct nearest *nearest, const char *word, const char *candidate)
{
    size_t rank = edits_between(word, candidate);

    if (rank == NOT_NEAR && strlen(word) >= CONTAINED_BYTES_MIN && contains(candidate, word))
        rank = DISTANCE_MAX + 1;
    size_t at = nearest->count;
    while (at > 0 && nearest->ranks[at - 1] > rank)
        at--;
    if (rank == NOT_NEAR || at == NEAREST_MAX)
        return;
    nearest->count += nearest->count < NEAREST_MAX;
    for (size_t i = nearest->count - 1; i > at; i--) {
        nearest->names[i] = nearest->names[i - 1];
        nearest->ranks[i] = nearest->ranks[i - 1];
    }
    nearest->names[at] = candidate;
    nearest->ranks[at] = rank;
}

void nearest_print(const struct nearest *nearest, char *text, size_t text_bytes)
{
    size_t used = text_print(text, text_bytes, "%s", "");

    for (size_t i = 0; i < nearest->count; i++) {
        const bool last = i > 0 && i + 1 == nearest->count;
        used += text_print_line(
            text + used, text_bytes - used, "%s%s",
            i == 0 ? ""
            : last ? " or "
                   : ", ",
            nearest->names[i]);
    }
}
