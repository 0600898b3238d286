/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.c -- words to variables, rows of them, and the ps that hold these. */
#include "wanted.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "pattern.h"
#include "text.h"
#include "unknown.h"

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
    if (number < 0)
        *side = distance < rows_all ? rows_all - distance : 0;
    else
        *side = distance < rows_all ? distance : rows_all;
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
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "a slice is FIRST:END, such as 0:4 or -3:, not %.100s%s", text,
            strchr(text, ',') != NULL ? "; --rows I,J has single rows of the first axis" : "");
    if (end <= first)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "the slice %.100s of %.200s has no rows; the variable has %" PRIu64, text, name,
            rows_all);
    *range = (struct sumac_range){.first = first, .count = end - first};
    return SUMAC_OK;
}

/* ---- words */

/* A word of the command line, taken apart. */
struct term {
    char *name;        /* owned: a name or a pattern */
    const char *slice; /* within the word, or the one for all; NULL: all rows */
    size_t slice_bytes;
    bool used;
};

/* "W1[0:4]" is rows of W1; brackets without a colon belong to the name. */
static bool take_apart(const char *word, const char *slice, struct term *term)
{
    const size_t bytes = strlen(word);
    const char *open = strrchr(word, '[');

    *term = (struct term){.slice = slice, .slice_bytes = slice != NULL ? strlen(slice) : 0};
    if (open != NULL && open > word && word[bytes - 1] == ']' && strchr(open, ':') != NULL) {
        term->slice = open + 1;
        term->slice_bytes = bytes - (size_t)(open - word) - 2;
        term->name = strndup(word, (size_t)(open - word));
    } else {
        term->name = strdup(word);
    }
    return term->name != NULL;
}

static void free_terms(struct term *terms, size_t count)
{
    for (size_t i = 0; terms != NULL && i < count; i++)
        free(terms[i].name);
    free(terms);
}

static struct term *
take_all_apart(char **words, size_t count, const char *slice, struct sumac_error *error)
{
    struct term *terms = calloc(count + 1, sizeof *terms);

    for (size_t i = 0; i < count; i++) {
        if (terms == NULL || !take_apart(words[i], slice, &terms[i])) {
            free_terms(terms, count);
            (void)fail(
                error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
                "no memory for the names");
            return NULL;
        }
        if (slice == NULL || terms[i].slice == slice)
            continue;
        (void)fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "%.200s has its rows, and --slice %.100s says other ones: give them once", words[i],
            slice);
        free_terms(terms, count);
        return NULL;
    }
    return terms;
}

/* ---- what is read */

static enum sumac_status
set_rows(struct wanted *item, const struct term *term, struct sumac_error *error)
{
    char slice[128];

    if (term->slice == NULL)
        return SUMAC_OK;
    if (item->shape.rank == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "%.300s is a scalar: it has no rows to slice", item->name);
    (void)text_print(slice, sizeof slice, "%.*s", (int)term->slice_bytes, term->slice);
    item->has_rows = true;
    const enum sumac_status status =
        wanted_parse_slice(slice, item->name, item->shape.extent[0], &item->rows, error);
    item->shape.extent[0] = item->rows.count;
    return status;
}

/* Mark the ps that hold some of it. */
static void
mark_holders(struct roster *roster, const struct wanted *item, const wire_variable *variable)
{
    const uint64_t first = item->has_rows ? item->rows.first : 0;
    const uint64_t end = item->has_rows ? first + item->rows.count : UINT64_MAX;

    for (size_t i = 0; i < variable->n_shards; i++) {
        const wire_shard *shard = variable->shards[i];
        if (shard->ps < roster->count && shard->first_row < end &&
            shard->first_row + shard->rows > first)
            roster->ps[shard->ps].left_out = false;
    }
}

static int32_t
find_missing(const struct roster *roster, const struct wanted *item, const wire_variable *variable)
{
    const uint64_t first = item->has_rows ? item->rows.first : 0;
    const uint64_t end = item->has_rows ? first + item->rows.count : UINT64_MAX;

    for (size_t i = 0; i < variable->n_shards; i++) {
        const wire_shard *shard = variable->shards[i];
        if (shard->ps < roster->count && shard->first_row < end &&
            shard->first_row + shard->rows > first && roster->ps[shard->ps].missing)
            return (int32_t)shard->ps;
    }
    return -1;
}

static void drop_last(struct wanted_list *list)
{
    struct wanted *last = &list->items[--list->count];

    free(last->name);
    free(last->label);
}

static enum sumac_status
add(struct wanted_list *list, const wire_variable *variable, const struct term *term,
    struct sumac_error *error)
{
    uint64_t elements = 0;
    struct wanted *grown = realloc(list->items, (list->count + 1) * sizeof *grown);

    if (grown != NULL) {
        list->items = grown;
        grown[list->count] = (struct wanted){
            .name = strdup(variable->name), .dtype = (enum sumac_dtype)variable->data_type};
    }
    if (grown == NULL || grown[list->count].name == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory for the names");
    struct wanted *item = &grown[list->count++];
    for (size_t i = 0; i < variable->n_shape && i < SUMAC_RANK_MAX; i++)
        item->shape.extent[item->shape.rank++] = variable->shape[i];
    const size_t label_bytes = strlen(item->name) + term->slice_bytes + 3;
    item->label = malloc(label_bytes);
    if (item->label == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory for the names");
    if (term->slice != NULL)
        (void)text_print(
            item->label, label_bytes, "%s[%.*s]", item->name, (int)term->slice_bytes, term->slice);
    else
        (void)text_print(item->label, label_bytes, "%s", item->name);
    for (size_t i = 0; i + 1 < list->count; i++)
        if (strcmp(list->items[i].label, item->label) == 0) {
            drop_last(list); /* a pattern names what a word named before */
            return SUMAC_OK;
        }
    const enum sumac_status status = set_rows(item, term, error);
    if (status != SUMAC_OK)
        return status;
    return sumac_shape_size(&item->shape, item->dtype, &elements, &item->bytes) == SUMAC_OK
               ? SUMAC_OK
               : fail(
                     error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_BAD_SHAPE,
                     "%.300s has more bytes than can be counted", item->name);
}

/* The variables that a term names, in the catalogue's order. */
static enum sumac_status add_matching(
    const struct catalogue *catalogue, struct term *term, struct wanted_list *list,
    struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; i < catalogue->page_count && status == SUMAC_OK; i++) {
        const struct page *page = &catalogue->pages[i];
        for (size_t j = 0; j < page->count && status == SUMAC_OK; j++) {
            const wire_variable *variable = page_first(page)->variables[j];
            if (!pattern_matches(term->name, variable->name))
                continue;
            term->used = true;
            status = add(list, variable, term, error);
        }
    }
    if (status == SUMAC_OK && !term->used)
        return fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE, "no variable is named %.300s",
            term->name);
    return status;
}

static const wire_variable *find_variable(const struct catalogue *catalogue, const char *name)
{
    for (uint32_t i = 0; i < catalogue->page_count; i++)
        for (size_t j = 0; j < catalogue->pages[i].count; j++)
            if (strcmp(page_first(&catalogue->pages[i])->variables[j]->name, name) == 0)
                return page_first(&catalogue->pages[i])->variables[j];
    return NULL;
}

/* ---- who holds it */

/* The ps that does not know a variable may be of another run than the caller means, if another ps
 * answers at a listed address: ask all ps who they are. A ps that does not answer contradicts
 * nothing. */
static void look_for_another_ps(struct roster *roster, struct sumac_error *error)
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;

    request.after_id = UINT64_MAX; /* no variables */
    const struct inquiry inquiry = {
        .service = WIRE_VARIABLES, .method = WIRE_VARIABLES_LIST, .request = &request.base};
    struct answers answers = {0};
    struct sumac_error found = {0};
    for (uint32_t i = 0; i < roster->count; i++)
        roster->ps[i].left_out = false;
    if (ask(roster, &inquiry, &answers, &found) == SUMAC_OK)
        answers_deinit(&answers);
    else if (found.reason == SUMAC_REASON_WRONG_CLUSTER)
        *error = found;
}

static void leave_all_out_but(struct roster *roster, uint32_t one)
{
    for (uint32_t i = 0; i < roster->count; i++)
        roster->ps[i].left_out = i != one;
}

/* Ask those that hold something whether they are there; who is not is missing from then on, and
 * that is no failure. */
static enum sumac_status call_holders(
    struct roster *roster, const struct catalogue *catalogue, struct wanted_list *list,
    struct sumac_error *error)
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;

    request.after_id = UINT64_MAX; /* no variables */
    const struct inquiry inquiry = {
        .service = WIRE_VARIABLES, .method = WIRE_VARIABLES_LIST, .request = &request.base};
    struct answers answers = {0};
    const uint32_t answered = roster->first;
    leave_all_out_but(roster, answered);
    for (size_t i = 0; i < list->count; i++)
        mark_holders(roster, &list->items[i], find_variable(catalogue, list->items[i].name));
    const enum sumac_status status = ask(roster, &inquiry, &answers, error);
    if (status == SUMAC_OK)
        answers_deinit(&answers);
    for (size_t i = 0; i < list->count; i++)
        list->items[i].missing =
            find_missing(roster, &list->items[i], find_variable(catalogue, list->items[i].name));
    return status;
}

/* ---- all of it */

static enum sumac_status read_catalogue(
    struct roster *roster, const struct term *terms, size_t count, struct catalogue *catalogue,
    struct sumac_error *error)
{
    char **names = calloc(count + 1, sizeof *names);
    bool patterns = false;

    if (names == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory for the names");
    for (size_t i = 0; i < count; i++) {
        names[i] = terms[i].name;
        patterns = patterns || pattern_is_one(terms[i].name);
    }
    leave_all_out_but(roster, roster->first);
    const size_t different = pattern_drop_repeated(names, count);
    const enum sumac_status status =
        catalogue_ask(roster, names, patterns ? 0 : different, catalogue, error);
    free(names);
    return status;
}

/* Of an unknown variable, and nothing else. */
static void
explain(struct roster *roster, const struct term *terms, size_t count, struct sumac_error *error)
{
    char **names = calloc(count + 1, sizeof *names);

    for (size_t i = 0; names != NULL && i < count; i++)
        names[i] = terms[i].name;
    if (names != NULL)
        unknown_explain(roster, names, count, true, error);
    free(names);
}

enum sumac_status wanted_find(
    struct roster *roster, char **words, size_t word_count, const char *slice,
    struct wanted_list *list, struct sumac_error *error)
{
    struct catalogue catalogue = {0};
    struct wanted_list made = {0};
    struct term *terms = take_all_apart(words, word_count, slice, error);

    if (terms == NULL)
        return error->status;
    enum sumac_status status = read_catalogue(roster, terms, word_count, &catalogue, error);
    for (size_t i = 0; i < word_count && status == SUMAC_OK; i++)
        status = add_matching(&catalogue, &terms[i], &made, error);
    if (status == SUMAC_OK)
        status = call_holders(roster, &catalogue, &made, error);
    catalogue_deinit(&catalogue);
    if (status != SUMAC_OK && error->reason == SUMAC_REASON_UNKNOWN_VARIABLE)
        look_for_another_ps(roster, error);
    if (status != SUMAC_OK)
        explain(roster, terms, word_count, error);
    free_terms(terms, word_count);
    if (status == SUMAC_OK)
        *list = made;
    else
        wanted_deinit(&made);
    return status;
}

void wanted_deinit(struct wanted_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].name);
        free(list->items[i].label);
    }
    free(list->items);
    *list = (struct wanted_list){0};
}
