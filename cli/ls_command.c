/* ls_command.c -- `sumac ls`: every variable of a run, a line for each of its shards. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "catalogue.h"
#include "command.h"
#include "find_cluster.h"
#include "json.h"
#include "names.h"
#include "options.h"
#include "sumac/client.h"
#include "sumac/tensor.h"
#include "table.h"

struct ls_options {
    const char *ps;
    bool json;
};

static const struct option_row rows[] = {
    {"ps", "HOST:PORT", "one of the run's ps (else TF_CONFIG, else the one run on this machine)",
     OPTION_TEXT, offsetof(struct ls_options, ps)},
    {"json", NULL, "print one JSON document", OPTION_FLAG, offsetof(struct ls_options, json)},
};

static int list(const struct command *command, int argc, char **argv);

const struct command ls_command = {
    .name = "ls",
    .summary = "list the variables of a run",
    .arguments = "[NAME…]",
    .about = "One line per shard: the variable's name, dtype, shape, aggregation and update "
             "function; the shard's\n"
             "version (updates applied), bytes, ps, rows, and the worker whose push was applied "
             "last. Every ps is\n"
             "asked; they answer one after the other, so versions of different ps are not of one "
             "moment.",
    .examples = "  sumac ls\n"
                "  sumac ls W1 W2\n"
                "  sumac ls --ps 127.0.0.1:2222 --json\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .run = list,
};

/* The shard as the ps that holds it knows it; NULL when that ps has not got the variable (any
 * more). */
static const wire_shard *
held_shard(const struct page *page, const wire_variable *variable, const wire_shard *shard)
{
    if (shard->ps >= page->answers.count)
        return NULL;
    const wire_list_reply *reply = page_of(page, shard->ps);
    for (size_t i = 0; i < reply->n_variables; i++) {
        if (reply->variables[i]->variable_id != variable->variable_id)
            continue;
        for (size_t j = 0; j < reply->variables[i]->n_shards; j++)
            if (reply->variables[i]->shards[j]->shard_id == shard->shard_id)
                return reply->variables[i]->shards[j];
    }
    return NULL;
}

static struct sumac_shape shape_of(const wire_variable *variable)
{
    struct sumac_shape shape = {0};
    for (size_t i = 0; i < variable->n_shape && i < SUMAC_RANK_MAX; i++)
        shape.extent[shape.rank++] = variable->shape[i];
    return shape;
}

/* ---- a table */

static void add_shard(
    struct table *table, const struct page *page, const wire_variable *variable,
    const wire_shard *shard)
{
    char shape_text[160], bytes_text[32];
    const struct sumac_shape shape = shape_of(variable);
    const wire_shard *held = held_shard(page, variable, shard);
    const int function = variable->function != NULL ? (int)variable->function->function : 0;
    table_add(table, "%s", variable->name);
    table_add(table, "%s", sumac_dtype_name((enum sumac_dtype)variable->data_type));
    table_add(table, "%s", sumac_shape_print(&shape, shape_text, sizeof shape_text));
    table_add(table, "%s", names_aggregation((int)variable->aggregation));
    table_add(table, "%s", names_function(function));
    if (held != NULL)
        table_add(table, "%" PRIu64, held->version);
    else
        table_add(table, "-");
    table_add(table, "%s", table_bytes((double)shard->bytes, bytes_text, sizeof bytes_text));
    table_add(table, "%u", shard->ps);
    if (variable->n_shards > 1)
        table_add(table, "%" PRIu64 ":%" PRIu64, shard->first_row, shard->first_row + shard->rows);
    else
        table_add(table, "all");
    table_add(table, "%s", held != NULL && held->last_worker[0] ? held->last_worker : "-");
}

static void add_page(struct table *table, const struct page *page)
{
    const wire_list_reply *first = page_of(page, 0);
    for (size_t i = 0; i < page->count; i++)
        for (size_t j = 0; j < first->variables[i]->n_shards; j++)
            add_shard(table, page, first->variables[i], first->variables[i]->shards[j]);
}

static bool print_table(const struct catalogue *catalogue)
{
    static const char *const titles[] = {"NAME",     "DTYPE",      "SHAPE",  "AGGREGATION",
                                         "FUNCTION", ">VERSION",   ">BYTES", ">PS",
                                         "SHARD",    "LAST WORKER"};
    struct table table = {.titles = titles, .columns = sizeof titles / sizeof titles[0]};
    for (uint32_t i = 0; i < catalogue->page_count; i++)
        add_page(&table, &catalogue->pages[i]);
    if (catalogue->pages[0].count == 0)
        fprintf(stderr, "sumac ls: the run has no variables yet\n");
    const bool printed = table_print(&table, stdout);
    table_deinit(&table);
    return printed;
}

/* ---- JSON */

static struct value *
shard_to_json(const struct page *page, const wire_variable *variable, const wire_shard *shard)
{
    struct value *json = value_object();
    const wire_shard *held = held_shard(page, variable, shard);
    value_put(json, "ps", value_number(shard->ps));
    value_put(json, "first_row", value_number(shard->first_row));
    value_put(json, "rows", value_number(shard->rows));
    value_put(json, "bytes", value_number(shard->bytes));
    if (held != NULL) {
        value_put(json, "version", value_number(held->version));
        value_put(json, "last_worker", value_text(held->last_worker));
    }
    return json;
}

static struct value *function_to_json(const wire_function *function)
{
    struct value *json = value_object();
    value_put(
        json, "name", value_text(names_function(function != NULL ? (int)function->function : 0)));
    for (size_t i = 0; function != NULL && i < function->n_hyperparameters; i++)
        value_put(
            json, names_hyperparameter((int)function->hyperparameters[i]->name),
            value_real(function->hyperparameters[i]->value));
    return json;
}

static struct value *variable_to_json(const struct page *page, const wire_variable *variable)
{
    struct value *json = value_object();
    struct value *shape = value_array();
    struct value *shards = value_array();
    for (size_t i = 0; i < variable->n_shape; i++)
        value_add(shape, value_number(variable->shape[i]));
    for (size_t i = 0; i < variable->n_shards; i++)
        value_add(shards, shard_to_json(page, variable, variable->shards[i]));
    value_put(json, "name", value_text(variable->name));
    value_put(json, "dtype", value_text(sumac_dtype_name((enum sumac_dtype)variable->data_type)));
    value_put(json, "shape", shape);
    value_put(json, "aggregation", value_text(names_aggregation((int)variable->aggregation)));
    value_put(
        json, "synchronization", value_text(names_synchronization((int)variable->synchronization)));
    value_put(json, "trainable", value_bool(variable->trainable));
    value_put(json, "function", function_to_json(variable->function));
    value_put(json, "shards", shards);
    return json;
}

static bool print_json(const struct catalogue *catalogue)
{
    struct value *json = value_object();
    struct value *variables = value_array();
    for (uint32_t i = 0; i < catalogue->page_count; i++) {
        const struct page *page = &catalogue->pages[i];
        for (size_t j = 0; j < page->count; j++)
            value_add(variables, variable_to_json(page, page_of(page, 0)->variables[j]));
    }
    value_put(json, "epoch", value_number(page_of(&catalogue->pages[0], 0)->epoch));
    value_put(json, "variables", variables);
    const bool printed = value_print(json, stdout);
    value_free(json);
    return printed;
}

/* ---- the command */

static enum sumac_status ask_all(
    const struct ls_options *options, char **names, int name_count, struct catalogue *catalogue,
    struct sumac_error *error)
{
    struct ps_list some = {0}, all = {0};
    enum sumac_status status = find_cluster(options->ps, &some, error);
    if (status == SUMAC_OK)
        status = ask_addresses(&some, &all, error);
    if (status == SUMAC_OK)
        status = catalogue_ask(&all, names, (size_t)name_count, catalogue, error);
    ps_list_deinit(&some);
    ps_list_deinit(&all);
    return status;
}

static int list(const struct command *command, int argc, char **argv)
{
    struct ls_options options = {0};
    int name_count = 0;
    const enum options_outcome outcome = options_parse(command, argc, argv, &options, &name_count);
    if (outcome != OPTIONS_GO)
        return outcome == OPTIONS_HELP ? EXIT_FINE : EXIT_MISUSED;
    struct catalogue catalogue = {0};
    struct sumac_error error = {0};
    if (ask_all(&options, argv, name_count, &catalogue, &error) != SUMAC_OK)
        return command_failed(command, &error);
    const bool printed = options.json ? print_json(&catalogue) : print_table(&catalogue);
    catalogue_deinit(&catalogue);
    return printed ? EXIT_FINE : EXIT_FAILED;
}
