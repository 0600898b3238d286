/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.c -- words to variables, rows of them, and the ps that hold these. */
#include "wanted.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "error.h"
#include "pattern.h"
#include "plural.h"
#include "text.h"

/* ---- slices */

/* One side of a slice: a number, counted from the end when it is negative, or nothing. Cut to 0 …
 * rows, as Python does. */
static bool
parse_side(const char *text, size_t bytes, uint64_t rows_all, uint64_t otherwise, uint64_t *side)
{
    char *end = NULL;

    if (bytes == 0) {
        *side = otherwise;
        return true;
    }
    errno = 0;
    const int64_t number = strtoll(text, &end, 10);
    if (end != text + bytes || errno != 0)
        return false;
    const uint64_t distance = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    const uint64_t cut = distance < rows_all ? distance : rows_all;
    *side = number < 0 ? rows_all - cut : cut;
    return true;
}

enum sumac_status wanted_parse_slice(
    const char *text, const char *name, uint64_t rows_all, struct sumac_range *range,
    struct sumac_error *error)
{
    const char *colon = strchr(text, ':');
    uint64_t first = 0, end = 0;

    if (colon == NULL || !parse_side(text, (size_t)(colon - text), rows_all, 0, &first) ||
        !parse_side(colon + 1, strlen(colon + 1), rows_all, rows_all, &end))
        return fail_argument(
            error, "a slice is FIRST:END, such as 0:4 or -3:, not %.100s%s", text,
            strchr(text, ',') != NULL ? "; --rows I,J has single rows of the first axis" : "");
    if (end <= first)
        return fail_argument(
            error, "the slice %.100s of %.200s has no rows; the variable has %" PRIu64, text, name,
            rows_all);
    *range = (struct sumac_range){.first = first, .count = end - first};
    return SUMAC_OK;
}

/* ---- words */

/* A word of the command line, taken apart. */
struct term {
    char *name;        /* a name or a pattern */
    const char *slice; /* the word's own, or the one for all; NULL: all rows */
    bool used;
};

/* "W1[0:4]" is rows of W1; brackets without a colon belong to the name. */
static struct term take_apart(const char *word, const char *slice)
{
    const size_t bytes = strlen(word);
    const char *open = strrchr(word, '[');

    if (open == NULL || open == word || word[bytes - 1] != ']' || strchr(open, ':') == NULL)
        return (struct term){.name = cli_copy(word, bytes), .slice = slice};
    const size_t name_bytes = (size_t)(open - word);
    return (struct term){
        .name = cli_copy(word, name_bytes), .slice = cli_copy(open + 1, bytes - name_bytes - 2)};
}

/* The words, and their names as an array: what a ps is asked for. */
struct terms {
    size_t count;
    struct term *items;
    char **names;
};

static enum sumac_status take_all_apart(
    char **words, size_t count, const char *slice, struct terms *terms, struct sumac_error *error)
{
    *terms = (struct terms){
        .count = count,
        .items = cli_alloc(count, sizeof *terms->items),
        .names = cli_alloc(count, sizeof *terms->names)};
    for (size_t i = 0; i < count; i++) {
        terms->items[i] = take_apart(words[i], slice);
        terms->names[i] = terms->items[i].name;
        if (slice != NULL && terms->items[i].slice != slice)
            return fail_argument(
                error, "%.200s has its rows, and --slice %.100s says other ones: give them once",
                words[i], slice);
    }
    return SUMAC_OK;
}

/* ---- what is read */

static enum sumac_status
set_rows(struct wanted *item, const struct term *term, struct sumac_error *error)
{
    if (term->slice == NULL)
        return SUMAC_OK;
    if (item->shape.rank == 0)
        return fail_argument(error, "%.300s is a scalar: it has no rows to slice", item->name);
    item->has_rows = true;
    const enum sumac_status status =
        wanted_parse_slice(term->slice, item->name, item->shape.extent[0], &item->rows, error);
    item->shape.extent[0] = item->rows.count;
    return status;
}

/* Has the shard some of what is read? */
static bool
has_some(const struct roster *roster, const struct wanted *item, const wire_shard *shard)
{
    const uint64_t first = item->has_rows ? item->rows.first : 0;
    const uint64_t end = item->has_rows ? first + item->rows.count : UINT64_MAX;

    return shard->ps < roster->count && shard->first_row < end &&
           shard->first_row + shard->rows > first;
}

/* Mark the ps that hold some of each, and set the first of these that is missing. */
static void mark_holders(struct roster *roster, struct wanted_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct wanted *const item = &list->items[i];
        item->missing = -1;
        for (size_t j = item->variable->n_shards; j-- > 0;) {
            const wire_shard *const shard = item->variable->shards[j];
            const uint32_t ps = shard->ps;
            if (!has_some(roster, item, shard))
                continue;
            roster->ps[ps].left_out = false;
            item->missing = roster->ps[ps].missing ? (int32_t)ps : item->missing;
        }
    }
}

/* "W1[0:4]" */
static const char *label_of(const char *name, const char *slice)
{
    const size_t bytes = strlen(name) + strlen(slice) + 3;
    char *const label = cli_alloc(bytes, 1);

    (void)text_print(label, bytes, "%s[%s]", name, slice);
    return label;
}

static enum sumac_status
add(struct wanted_list *list, const wire_variable *variable, const struct term *term,
    struct sumac_error *error)
{
    const char *const label =
        term->slice != NULL ? label_of(variable->name, term->slice) : variable->name;

    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].label, label) == 0)
            return SUMAC_OK; /* a pattern names what a word named before */
    list->items = cli_grow(list->items, list->count, sizeof *list->items);
    struct wanted *const item = &list->items[list->count++];
    *item = (struct wanted){
        .variable = variable,
        .name = variable->name,
        .label = label,
        .dtype = (enum sumac_dtype)variable->data_type};
    for (size_t i = 0; i < variable->n_shape && i < SUMAC_RANK_MAX; i++)
        item->shape.extent[item->shape.rank++] = variable->shape[i];
    const enum sumac_status status = set_rows(item, term, error);
    if (status != SUMAC_OK)
        return status;
    return sumac_shape_size(&item->shape, item->dtype, NULL, &item->bytes) == SUMAC_OK
               ? SUMAC_OK
               : fail_invalid(
                     error, SUMAC_REASON_BAD_SHAPE, "%.300s has more bytes than can be counted",
                     item->name);
}

/* The variables that a term names, in the catalogue's order. */
static enum sumac_status add_matching(
    const struct catalogue *catalogue, struct term *term, struct wanted_list *list,
    struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (struct catalogue_entry entry = {0};
         status == SUMAC_OK && catalogue_next(catalogue, &entry);) {
        if (!pattern_matches(term->name, entry.variable->name))
            continue;
        term->used = true;
        status = add(list, entry.variable, term, error);
    }
    if (status == SUMAC_OK && !term->used)
        return fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE, "no variable is named %.300s",
            term->name);
    return status;
}

/* ---- who holds it */

/* The ps that does not know a variable may be of another run than the caller means, if another ps
 * answers at a listed address: ask all ps who they are. A ps that does not answer contradicts
 * nothing. */
static void look_for_another_ps(struct roster *roster, struct sumac_error *error)
{
    struct answers answers = {0};
    struct sumac_error found = {0};

    for (uint32_t i = 0; i < roster->count; i++)
        roster->ps[i].left_out = false;
    if (ask_who(roster, false, &answers, &found) == SUMAC_OK)
        answers_deinit(&answers);
    else if (found.reason == SUMAC_REASON_WRONG_CLUSTER)
        *error = found;
}

/* Ask those that hold something whether they are there; who is not is missing from then on, and
 * that is no failure. */
static enum sumac_status
call_holders(struct roster *roster, struct wanted_list *list, struct sumac_error *error)
{
    struct answers answers = {0};

    roster_leave_out_all_but(roster, roster->first);
    mark_holders(roster, list);
    const enum sumac_status status = ask_who(roster, false, &answers, error);
    if (status == SUMAC_OK)
        answers_deinit(&answers);
    mark_holders(roster, list);
    return status;
}

/* ---- all of it */

/* One ps knows every variable. */
static enum sumac_status read_catalogue(
    struct roster *roster, const struct terms *terms, struct catalogue *catalogue,
    struct sumac_error *error)
{
    char **const names = cli_alloc(terms->count, sizeof *names);

    memcpy(names, terms->names, terms->count * sizeof *names);
    const size_t different = pattern_drop_repeated(names, terms->count);
    roster_leave_out_all_but(roster, roster->first);
    return catalogue_ask(
        roster, names, pattern_are_some(names, different) ? 0 : different, catalogue, error);
}

enum sumac_status wanted_find(
    struct roster *roster, char **words, size_t word_count, const char *slice,
    struct wanted_list *list, struct sumac_error *error)
{
    struct catalogue catalogue = {0};
    struct wanted_list made = {0};
    struct terms terms;
    enum sumac_status status = take_all_apart(words, word_count, slice, &terms, error);

    if (status != SUMAC_OK)
        return status;
    status = read_catalogue(roster, &terms, &catalogue, error);
    for (size_t i = 0; i < word_count && status == SUMAC_OK; i++)
        status = add_matching(&catalogue, &terms.items[i], &made, error);
    if (status == SUMAC_OK)
        status = call_holders(roster, &made, error);
    if (status == SUMAC_OK)
        *list = made;
    else if (error->reason == SUMAC_REASON_UNKNOWN_VARIABLE)
        look_for_another_ps(roster, error);
    if (status != SUMAC_OK)
        unknown_explain(roster, terms.names, word_count, true, error);
    return status;
}

/* ---- rows by index */

enum sumac_status
row_list_parse(const char *text, struct listed_rows *list, struct sumac_error *error)
{
    *list = (struct listed_rows){.count = 0};
    for (const char *at = text;;) {
        char *end = NULL;
        errno = 0;
        const int64_t row = strtoll(at, &end, 10);
        if (end == at || errno != 0 || (*end != ',' && *end != '\0'))
            return fail_argument(
                error,
                "--rows is row numbers with commas between them, such as 3,1,7 or -1, not %.100s%s",
                at, strchr(at, ':') != NULL ? "; --slice FIRST:END is a range" : "");
        list->rows = cli_grow(list->rows, list->count, sizeof *list->rows);
        list->rows[list->count++] = row;
        if (*end == '\0')
            return SUMAC_OK;
        at = end + 1;
    }
}

static enum sumac_status apply_to(
    const struct listed_rows *list, struct wanted *item, int64_t *indices,
    struct sumac_error *error)
{
    if (item->shape.rank == 0 || item->has_rows)
        return fail_argument(
            error,
            item->has_rows ? "%.300s has its rows, and --rows says other ones: give them once"
                           : "%.300s is a scalar: it has no rows",
            item->label);
    const int64_t rows_all = (int64_t)item->shape.extent[0];
    for (size_t i = 0; i < list->count; i++) {
        const int64_t row = list->rows[i];
        if (row >= rows_all || row < -rows_all)
            return fail(
                error, SUMAC_OUT_OF_RANGE, SUMAC_REASON_UNSPECIFIED,
                "row %" PRId64 " of %.300s: it has %" PRId64 " row%s, from 0 to %" PRId64, row,
                item->name, rows_all, plural((uint64_t)rows_all), rows_all - 1);
        indices[i] = row < 0 ? row + rows_all : row;
    }
    item->shape.extent[0] = list->count;
    return sumac_shape_size(&item->shape, item->dtype, NULL, &item->bytes) == SUMAC_OK
               ? SUMAC_OK
               : fail_invalid(
                     error, SUMAC_REASON_BAD_SHAPE,
                     "%zu rows of %.300s have more bytes than can be counted", list->count,
                     item->name);
}

enum sumac_status
row_list_apply(struct listed_rows *list, struct wanted_list *wanted, struct sumac_error *error)
{
    list->indices = cli_alloc(wanted->count * list->count, sizeof *list->indices);
    list->tensors = cli_alloc(wanted->count, sizeof *list->tensors);
    for (size_t i = 0; i < wanted->count; i++) {
        int64_t *const indices = list->indices + i * list->count;
        const enum sumac_status status = apply_to(list, &wanted->items[i], indices, error);
        if (status != SUMAC_OK)
            return status;
        list->tensors[i] = sumac_tensor_over(indices, SUMAC_INT64, SUMAC_SHAPE(list->count));
    }
    return SUMAC_OK;
}
