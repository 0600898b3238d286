/* SPDX-License-Identifier: Apache-2.0 */
/* ls_command.c -- `sumac ls`: the variables of a run, a line for each or for each of its shards. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "alloc.h"
#include "cluster_functions.h"
#include "error.h"
#include "names.h"
#include "pattern.h"
#include "plural.h"
#include "screen.h"
#include "sumac/tensor.h"
#include "table.h"
#include "update.h"
#include "text.h"
#include "total.h"

#define PS_TEXT_BYTES 64

struct ls_options {
    const char *ps;
    bool shards, json;
};

static const struct option_row rows[] = {
    {"shards", NULL, "a line for each shard, with the worker whose push was applied last",
     OPTION_FLAG, .offset = offsetof(struct ls_options, shards)},
    OPTION_ROW_PS(struct ls_options),
    OPTION_ROW_JSON(struct ls_options),
};

/* What is listed. */
struct ls_listing {
    struct roster roster;
    struct catalogue catalogue;
    struct cluster_functions functions; /* that were defined; asked for where a variable has one */
    bool has_defined;                   /* some variable that is meant has one */
    char **words;                       /* none: everything is meant */
    size_t word_count;
    bool *used; /* (word_count): it names something */
    uint64_t variables, elements, bytes;
};

/* ---- what is meant */

static uint64_t elements_of(const wire_variable *variable)
{
    uint64_t elements = 1;

    for (size_t i = 0; i < variable->n_shape; i++)
        total_multiply(&elements, variable->shape[i]);
    return elements;
}

static uint64_t bytes_of(const wire_variable *variable)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < variable->n_shards; i++)
        total_add(&bytes, variable->shards[i]->bytes);
    return bytes;
}

/* Move on to the next variable that is meant, and mark every word that names it. */
static bool next(const struct ls_listing *listing, struct catalogue_entry *entry)
{
    bool meant = false;

    while (!meant && catalogue_next(&listing->catalogue, entry)) {
        meant = listing->word_count == 0;
        for (size_t i = 0; i < listing->word_count; i++)
            if (pattern_matches(listing->words[i], entry->variable->name))
                meant = listing->used[i] = true;
    }
    return meant;
}

static void count(struct ls_listing *listing)
{
    for (struct catalogue_entry entry = {0}; next(listing, &entry);) {
        const wire_function *const function = entry.variable->function;
        listing->variables++;
        total_add(&listing->elements, elements_of(entry.variable));
        total_add(&listing->bytes, bytes_of(entry.variable));
        listing->has_defined |=
            function != NULL && (uint32_t)function->function >= UPDATE_DEFINED_FIRST;
    }
}

/* Names alone are asked for as such; for a pattern everything is. */
static enum sumac_status read_listing(
    const struct ls_options *options, struct ls_listing *listing, struct sumac_error *error)
{
    const bool patterns = pattern_are_some(listing->words, listing->word_count);

    listing->used = cli_alloc(listing->word_count, sizeof *listing->used);
    enum sumac_status status = roster_find(options->ps, &listing->roster, error);
    if (status == SUMAC_OK)
        roster_tell(&listing->roster, options->json);
    if (status == SUMAC_OK)
        status = catalogue_ask(
            &listing->roster, listing->words, patterns ? 0 : listing->word_count,
            &listing->catalogue, error);
    if (status != SUMAC_OK)
        return status;
    count(listing);
    if (listing->has_defined) /* without an answer they have numbers */
        (void)cluster_functions_ask(&listing->roster, &listing->functions, NULL);
    for (size_t i = 0; i < listing->word_count; i++)
        if (!listing->used[i])
            return fail(
                error, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
                "no variable is named %.300s", listing->words[i]);
    return SUMAC_OK;
}

/* ---- functions */

/* "lion"; "64" of one that ps 0 has not told of. Lends  text, or what is the listing's. */
static const char *
function_name(const struct ls_listing *listing, const wire_function *function, char text[16])
{
    const uint32_t number = function != NULL ? (uint32_t)function->function : 0;
    const struct cluster_function *defined = cluster_functions_find(&listing->functions, number);

    if (defined != NULL)
        return defined->name;
    if (number < UPDATE_DEFINED_FIRST)
        return names_known(update_find(number) != NULL ? update_find(number)->name : NULL);
    (void)snprintf(text, 16, "%" PRIu32, number);
    return text;
}

static const char *hyperparameter_name(
    const struct ls_listing *listing, const wire_function *function, uint32_t number)
{
    const struct cluster_function *defined =
        cluster_functions_find(&listing->functions, (uint32_t)function->function);

    if (defined != NULL && defined->row != NULL && number <= UPDATE_HYPERPARAMETERS_MAX &&
        (defined->row->hyperparameters >> number & 1u) != 0)
        return update_hyperparameter_of(defined->row, number)->name;
    return names_known(update_hyperparameter_name(number));
}

/* ---- tables */

/* "0 1 3", or as much of it as has room. */
static void print_holders(const wire_variable *variable, char text[PS_TEXT_BYTES])
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < variable->n_shards; i++) {
        const uint32_t ps = variable->shards[i]->ps;
        bool said = false;
        for (size_t j = 0; j < i; j++)
            said = said || variable->shards[j]->ps == ps;
        if (said)
            continue;
        if (used + 16 > PS_TEXT_BYTES) {
            (void)text_print(text + used, PS_TEXT_BYTES - used, " …");
            return;
        }
        used +=
            text_print(text + used, PS_TEXT_BYTES - used, used == 0 ? "%" PRIu32 : " %" PRIu32, ps);
    }
}

/* A line for the variable, or for one shard of it. */
static void add_row(
    struct table *table, const struct ls_listing *listing, const struct catalogue_entry *entry,
    const wire_shard *shard)
{
    const wire_variable *const variable = entry->variable;
    const wire_shard *const held =
        shard != NULL ? page_held_shard(entry->page, entry->index, shard) : NULL;
    uint64_t lowest = held != NULL ? held->version : 0, highest = lowest;
    bool known = held != NULL;
    char text[160], number[16];
    struct sumac_shape shape = {0};

    for (size_t i = 0; i < variable->n_shape && i < SUMAC_RANK_MAX; i++)
        shape.extent[shape.rank++] = variable->shape[i];
    table_add(table, "%s", variable->name);
    table_add(table, "%s", sumac_dtype_name((enum sumac_dtype)variable->data_type));
    table_add(table, "%s", sumac_shape_print(&shape, text, sizeof text));
    table_add(table, "%s", names_aggregation((int)variable->aggregation));
    table_add(table, "%s", function_name(listing, variable->function, number));
    if (shard == NULL)
        known = page_versions(entry->page, entry->index, &lowest, &highest);
    if (lowest == highest)
        table_add_number(table, known, lowest);
    else
        table_add(table, "%" PRIu64 "-%" PRIu64, lowest, highest);
    table_add(
        table, "%s", table_bytes((double)(shard != NULL ? shard->bytes : bytes_of(variable))).text);
    if (shard == NULL) {
        print_holders(variable, text);
        table_add(table, "%s", text);
        return;
    }
    table_add(table, "%" PRIu32, shard->ps);
    if (variable->n_shards > 1)
        table_add(table, "%" PRIu64 ":%" PRIu64, shard->first_row, shard->first_row + shard->rows);
    else
        table_add(table, "all");
    table_add(table, "%s", known && held->last_worker[0] ? held->last_worker : "-");
}

static void print_table(const struct ls_listing *listing, bool shards)
{
    static const struct table_column columns[] = {{NULL, "NAME", 0},     {NULL, "DTYPE", 3},
                                                  {NULL, "SHAPE", 0},    {NULL, "AGGREGATION", 4},
                                                  {NULL, "FUNCTION", 1}, {NULL, ">VERSION", 0},
                                                  {NULL, ">BYTES", 2},   {NULL, "PS", 0},
                                                  {NULL, "ROWS", 0},     {NULL, "LAST WORKER", 0}};
    const size_t column_count = sizeof columns / sizeof columns[0];
    struct table table = {.columns = columns, .column_count = column_count - (shards ? 0 : 2)};

    for (struct catalogue_entry entry = {0}; next(listing, &entry);)
        for (size_t i = 0; i < (shards ? entry.variable->n_shards : 1); i++)
            add_row(&table, listing, &entry, shards ? entry.variable->shards[i] : NULL);
    if (listing->variables == 0) {
        (void)command_say(&ls_command, EXIT_FINE, "the run has no variables yet");
        return;
    }
    (void)table_print(&table, isatty(STDOUT_FILENO) == 1 ? screen_columns() : 0, stdout);
    printf(
        "%" PRIu64 " variable%s, %" PRIu64 " element%s, %s bytes\n", listing->variables,
        plural(listing->variables), listing->elements, plural(listing->elements),
        table_bytes((double)listing->bytes).text);
}

/* ---- JSON */

static json_t *shard_to_json(const wire_shard *shard, const wire_shard *held)
{
    json_t *const json = json_object();

    JSON_PUT_FIELDS(json, &shard->base, "ps", "first_row", "rows", "bytes");
    if (held != NULL)
        JSON_PUT_FIELDS(json, &held->base, "version", "last_worker");
    return json;
}

/* In the words of SCHEDULE's fields, those that its kind has. */
static json_t *schedule_to_json(const wire_schedule *schedule)
{
    const bool exponential = (int)schedule->kind == UPDATE_SCHEDULE_EXPONENTIAL_DECAY;
    const bool cosine = (int)schedule->kind == UPDATE_SCHEDULE_COSINE_DECAY;
    const bool warms_up = schedule->warmup_steps > 0;

    return JSON_OBJECT(
        {"name", json_string(names_known(update_schedule_name((uint32_t)schedule->kind)))},
        {"decay_steps", schedule->decay_steps > 0 ? json_number(schedule->decay_steps) : NULL},
        {"decay_rate", exponential ? json_finite(schedule->decay_rate) : NULL},
        {"staircase", exponential ? json_boolean(schedule->staircase) : NULL},
        {"alpha", cosine ? json_finite(schedule->alpha) : NULL},
        {"warmup_steps", warms_up ? json_number(schedule->warmup_steps) : NULL},
        {"warmup_target", warms_up ? json_finite(schedule->warmup_target) : NULL},
        {"first_version", json_number(schedule->first_version)});
}

static json_t *function_to_json(const struct ls_listing *listing, const wire_function *function)
{
    char number[16];
    json_t *const json =
        JSON_OBJECT({"name", json_string(function_name(listing, function, number))});

    for (size_t i = 0; function != NULL && i < function->n_hyperparameters; i++)
        json_put(
            json,
            hyperparameter_name(listing, function, (uint32_t)function->hyperparameters[i]->name),
            json_finite(function->hyperparameters[i]->value));
    if (function != NULL && function->schedule != NULL)
        json_put(json, "schedule", schedule_to_json(function->schedule));
    return json;
}

/* What pushes have made of its hyperparameters, as the ps of the first shard that is answered for
 * says; NULL: nothing. */
static const wire_function *current_of(const struct catalogue_entry *entry)
{
    const wire_variable *variable = entry->variable;

    for (size_t i = 0; i < variable->n_shards; i++) {
        const wire_variable *held =
            page_held_variable(entry->page, entry->index, variable->shards[i]->ps);
        if (held != NULL)
            return held->current;
    }
    return NULL;
}

static json_t *
variable_to_json(const struct ls_listing *listing, const struct catalogue_entry *entry)
{
    const wire_variable *const variable = entry->variable;
    const wire_function *const current = current_of(entry);
    json_t *const shape = json_array(), *const shards = json_array();

    for (size_t i = 0; i < variable->n_shape; i++)
        json_add(shape, json_number(variable->shape[i]));
    for (size_t i = 0; i < variable->n_shards; i++) {
        const wire_shard *shard = variable->shards[i];
        json_add(shards, shard_to_json(shard, page_held_shard(entry->page, entry->index, shard)));
    }
    return JSON_OBJECT(
        {"name", json_string(variable->name)},
        {"dtype", json_string(sumac_dtype_name((enum sumac_dtype)variable->data_type))},
        {"shape", shape}, {"elements", json_number(elements_of(variable))},
        {"bytes", json_number(bytes_of(variable))},
        {"aggregation", json_string(names_aggregation((int)variable->aggregation))},
        {"synchronization", json_string(names_synchronization((int)variable->synchronization))},
        {"trainable", json_boolean(variable->trainable)},
        {"function", function_to_json(listing, variable->function)},
        {"current", current != NULL ? function_to_json(listing, current) : NULL},
        {"shards", shards});
}

static void print_json(const struct ls_listing *listing)
{
    json_t *const variables = json_array();

    for (struct catalogue_entry entry = {0}; next(listing, &entry);)
        json_add(variables, variable_to_json(listing, &entry));
    json_t *const total = JSON_OBJECT(
        {"variables", json_number(listing->variables)},
        {"elements", json_number(listing->elements)}, {"bytes", json_number(listing->bytes)});
    (void)json_print(
        JSON_OBJECT(
            {"run", found_run_to_json(&listing->roster.run)},
            {"epoch", json_number(page_first(&listing->catalogue.pages[0])->epoch)},
            {"variables", variables}, {"total", total},
            {"missing", roster_to_json(&listing->roster)}),
        false, stdout);
}

/* ---- the command */

static int list(const void *given, struct command_words words)
{
    const struct ls_options *const options = given;
    struct ls_listing listing = {
        .words = words.items, .word_count = pattern_drop_repeated(words.items, words.count)};
    struct sumac_error error = {0};

    if (read_listing(options, &listing, &error) != SUMAC_OK) {
        unknown_explain(&listing.roster, listing.words, listing.word_count, false, &error);
        return command_failed(&ls_command, &error);
    }
    if (options->json)
        print_json(&listing);
    else
        print_table(&listing, options->shards);
    return roster_report(&ls_command, &listing.roster, "versions of its shards are not shown");
}

const struct command ls_command = {
    .name = "ls",
    .summary = "list the variables of a run",
    .arguments = "[NAME|PATTERN…]",
    .about =
        "A line for each variable: name, dtype, shape, aggregation, update function, version "
        "(updates applied; of shards that differ, the lowest and the highest), bytes of its "
        "values, and the ps that hold it. A terminal that is too narrow lacks columns: aggregation "
        "first, then dtype, bytes and function. In a PATTERN * and ? stand for any characters, / "
        "too; quote it, or your shell looks for files. The last line has the sums. Every ps is "
        "asked, so versions of different ps are not of one moment. If a ps does not answer within "
        "5 s, its versions are left out, standard error names it, and the exit code is 128 or "
        "more. Without --ps, standard error says whose run this is.\n\nJSON: variables (name, "
        "dtype, shape, elements, bytes, aggregation, synchronization, trainable, function, shards "
        "with ps, first_row, rows, bytes and, where its ps answers, version and last_worker), "
        "total (variables, elements, bytes), missing (ps, address, error), epoch, run (program, "
        "pid, ps, address, uptime_ms, name, host, ps_pid, user; as far as known).",
    .examples = "  sumac ls\n"
                "  sumac ls W1 W2 --shards\n"
                "  sumac ls 'layer1/*'\n"
                "  sumac ls --ps 127.0.0.1:2222 --json\n",
    COMMAND_OPTIONS(struct ls_options, 0),
    .run = list,
};
