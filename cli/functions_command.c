/* SPDX-License-Identifier: Apache-2.0 */
/* functions_command.c -- `sumac functions`: the update functions, from the table that the ps apply
 * them by, of a run, and of plug-ins. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "cluster_functions.h"
#include "dtype.h"
#include "nearest.h"
#include "plugin_files.h"
#include "sumac/tensor.h"
#include "update.h"

struct functions_options {
    const char *ps;
    struct option_list plugins;
    bool json;
};

static const struct option_row rows[] = {
    {"ps", "HOST:PORT",
     "one of a run's ps, whose own functions are listed, too (else TF_CONFIG, else the one run on "
     "this machine)",
     OPTION_TEXT, .offset = offsetof(struct functions_options, ps)},
    {"plugin", "FILE", "a shared library whose functions are listed, too, as a ps would load them",
     OPTION_LIST, .offset = offsetof(struct functions_options, plugins)},
    OPTION_ROW_JSON(struct functions_options),
};

/* The others have numbers of their own. */
static bool is_built_in(const struct cluster_function *function) { return function->number == 0; }

static bool takes(const struct update_function *function, uint32_t number)
{
    return (function->hyperparameters >> number & 1u) != 0;
}

static bool is_applied_to(const struct update_function *function, enum sumac_dtype dtype)
{
    return (function->dtypes >> dtype & 1u) != 0;
}

/* ---- text */

static void print_dtypes(const struct update_function *function)
{
    const char *separator = "  data types: ";

    for (unsigned dtype = 1; dtype <= DTYPES_MAX; dtype++) {
        if (!is_applied_to(function, (enum sumac_dtype)dtype))
            continue;
        printf("%s%s", separator, sumac_dtype_name((enum sumac_dtype)dtype));
        separator = ", ";
    }
    putchar('\n');
}

static void print_slots(const struct update_function *function)
{
    const uint32_t count = function->slot_count;
    bool zeros = true;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t from = function->slot_from[i];
        printf("%s%s", i == 0 ? "  slots: " : ", ", function->slot_names[i]);
        if (from != 0)
            printf(" (%s at first)", update_hyperparameter_of(function, from)->name);
        else if (function->slot_initial[i] != 0)
            printf(" (%g at first)", function->slot_initial[i]);
        if (i + 1 == count && function->last_slot_if != 0)
            printf(" (with %s)", update_hyperparameter_name(function->last_slot_if));
        zeros = zeros && from == 0 && !(function->slot_initial[i] != 0);
    }
    if (count > 0)
        puts(zeros ? " (zeros at first)" : "");
}

/* Its lines, each as far in as a rule. */
static void print_text(const char *text)
{
    while (*text != '\0') {
        const size_t bytes = strcspn(text, "\n");
        printf("%s%.*s\n", bytes > 0 ? "  " : "", (int)bytes, text);
        text += bytes + (text[bytes] == '\n');
    }
}

static void print_hyperparameters(const struct update_function *function)
{
    for (uint32_t number = 1; number <= UPDATE_HYPERPARAMETERS_MAX; number++) {
        if (!takes(function, number))
            continue;
        const char *symbol = update_hyperparameter_of(function, number)->symbol;
        printf(
            "  %s%s%s: %.9g by default, %s\n", symbol, symbol[0] == '\0' ? "" : " = ",
            update_hyperparameter_of(function, number)->name, function->defaults[number],
            update_hyperparameter_range(function, number));
    }
}

static void print_function(const struct cluster_function *function)
{
    const bool of_plugin = function->plugin[0] != '\0', built_in = is_built_in(function);

    printf("%s", function->name);
    if (!built_in)
        printf(
            ", function %" PRIu32 "%s%s", function->number,
            of_plugin ? ", of the plug-in " : " of the run", function->plugin);
    putchar('\n');
    print_text(function->text);
    if (function->row == NULL) {
        puts("  (this release cannot read it: use that of the ps)");
        return;
    }
    if (built_in || of_plugin)
        printf("  %s\n", function->row->rule);
    print_dtypes(function->row);
    print_slots(function->row);
    print_hyperparameters(function->row);
}

/* ---- JSON */

static json_t *dtypes_value(const struct update_function *function)
{
    json_t *dtypes = json_array();

    for (unsigned dtype = 1; dtype <= DTYPES_MAX; dtype++)
        if (is_applied_to(function, (enum sumac_dtype)dtype))
            json_add(dtypes, json_string(sumac_dtype_name((enum sumac_dtype)dtype)));
    return dtypes;
}

static json_t *hyperparameters_value(const struct update_function *function)
{
    json_t *const all = json_object();

    for (uint32_t number = 1; number <= UPDATE_HYPERPARAMETERS_MAX; number++)
        if (takes(function, number))
            json_put(
                all, update_hyperparameter_of(function, number)->name,
                JSON_OBJECT(
                    {"default", json_finite(function->defaults[number])},
                    {"range", json_string(update_hyperparameter_range(function, number))}));
    return all;
}

static json_t *slots_value(const struct update_function *function)
{
    json_t *const slots = json_array();

    for (uint32_t i = 0; i < function->slot_count; i++)
        json_add(slots, json_string(function->slot_names[i]));
    return slots;
}

static json_t *function_value(const struct cluster_function *function)
{
    const struct update_function *const row = function->row;
    const bool of_plugin = function->plugin[0] != '\0', built_in = is_built_in(function);
    const bool of_text = !of_plugin && !built_in;

    return JSON_OBJECT(
        {"name", json_string(function->name)},
        {"number", built_in ? NULL : json_number(function->number)},
        {"text", of_text ? json_string(function->text) : NULL},
        {"plugin", of_plugin ? json_string(function->plugin) : NULL},
        {"rule", row != NULL && !of_text ? json_string(row->rule) : NULL},
        {"dtypes", row != NULL ? dtypes_value(row) : NULL},
        {"slots", row != NULL ? slots_value(row) : NULL},
        {"hyperparameters", row != NULL ? hyperparameters_value(row) : NULL});
}

/* ---- the command */

/* The table's, then those that were defined or loaded. */
static struct cluster_functions add_built_in(const struct cluster_functions *others)
{
    struct cluster_functions all = {.count = 0};

    while (update_at(all.count) != NULL)
        all.count++;
    all.items = cli_alloc(all.count + others->count, sizeof *all.items);
    for (uint32_t i = 0; i < all.count; i++)
        all.items[i] = (struct cluster_function){
            .name = update_at(i)->name, .text = "", .plugin = "", .row = update_at(i)};
    for (uint32_t i = 0; i < others->count; i++)
        all.items[all.count++] = others->items[i];
    return all;
}

static const char *function_name(const void *context, size_t index)
{
    const struct cluster_functions *const all = context;

    return index < all->count ? all->items[index].name : NULL;
}

static bool check_names(const struct command_words *names, const struct cluster_functions *all)
{
    for (size_t i = 0; i < names->count; i++) {
        const char *const name = names->items[i];
        if (cluster_functions_find_by_name(all, name) != NULL)
            continue;
        const char *nearest = nearest_word(name, function_name, all);
        (void)command_say(
            &functions_command, EXIT_MISUSED, "there is no update function %s; %s%s%s", name,
            nearest != NULL ? "did you mean " : "`sumac functions` lists them",
            nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
        return false;
    }
    return true;
}

static void
print_all(const struct command_words *names, const struct cluster_functions *all, bool json)
{
    json_t *const values = json_array();
    const char *separator = "";

    for (uint32_t i = 0; i < all->count; i++) {
        bool wanted = names->count == 0;
        for (size_t j = 0; j < names->count; j++)
            wanted |= strcmp(names->items[j], all->items[i].name) == 0;
        if (wanted && json)
            json_add(values, function_value(&all->items[i]));
        if (!wanted || json)
            continue;
        fputs(separator, stdout);
        print_function(&all->items[i]);
        separator = "\n";
    }
    if (json)
        (void)json_print(values, false, stdout);
    else
        json_decref(values);
}

static enum sumac_status load(
    const struct option_list *given, struct plugin_files *files,
    struct cluster_functions *functions, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; i < given->count && status == SUMAC_OK; i++)
        status = plugin_files_open(files, given->items[i], error);
    *functions = cluster_functions_of(&files->plugins);
    return status;
}

/* Only the run can have the others. */
static bool are_built_in(const struct command_words *names)
{
    bool all = true;

    for (size_t i = 0; i < names->count; i++)
        all = all && update_find_by_name(names->items[i]) != NULL;
    return all;
}

/* The built-in functions are listed even if no ps answers. Then the exit code says so, unless there
 * is no run at all. An error below 128 with --ps lists nothing. */
static int ask_run(const struct functions_options *options, struct cluster_functions *functions)
{
    struct roster roster = {.count = 0};
    struct sumac_error error = {0};
    enum sumac_status status = roster_find(options->ps, &roster, &error);
    const bool none_named = status == SUMAC_NOT_FOUND;

    if (status == SUMAC_OK)
        roster_tell(&roster, false);
    if (status == SUMAC_OK)
        status = cluster_functions_ask(&roster, functions, &error);
    if (status == SUMAC_OK)
        return EXIT_FINE;
    const int code = command_exit_code(&error);
    if (options->ps != NULL && code < EXIT_RETRYABLE)
        return command_failed(&functions_command, &error);
    return command_say(
        &functions_command, none_named ? EXIT_FINE : code, "a run's own functions are left out: %s",
        error.text);
}

static int list(const void *given, struct command_words words)
{
    const struct functions_options *const options = given;
    const bool loads = options->plugins.count > 0;
    struct cluster_functions defined = {.count = 0};
    struct plugin_files files;
    struct sumac_error error = {0};
    int code = EXIT_FINE;

    if (loads && options->ps != NULL)
        return command_say(
            &functions_command, EXIT_MISUSED,
            "--ps lists those of a run and --plugin those of a library; give one of the two");
    plugin_files_init(&files);
    if (loads && load(&options->plugins, &files, &defined, &error) != SUMAC_OK)
        code = command_failed(&functions_command, &error);
    else if (
        !loads && (options->ps != NULL || getenv("TF_CONFIG") != NULL || !are_built_in(&words)))
        code = ask_run(options, &defined);
    /* A name that is not built in may be one of those that were left out. */
    const struct cluster_functions all = add_built_in(&defined);
    if (code == EXIT_FINE && !check_names(&words, &all))
        code = EXIT_MISUSED;
    else if (code == EXIT_FINE || code >= EXIT_RETRYABLE)
        print_all(&words, &all, options->json);
    plugin_files_close(&files);
    return code;
}

const struct command functions_command = {
    .name = "functions",
    .summary = "list the update functions and their hyperparameters",
    .arguments = "[NAME…]",
    .about = "Each update function's rule (θ is the variable, g what is pushed), the data types "
             "that it takes, its slots, and its hyperparameters with their defaults and ranges. A "
             "variable is created with one; a push may name another that needs no slots beyond "
             "those. A learning_rate may follow a schedule: constant, exponential_decay or "
             "cosine_decay, with warm-up. With --ps, TF_CONFIG, or a NAME that is not built in, a "
             "ps is asked for the functions that the run has beside the built-in ones: from a text "
             "(`sumac define`), with the text, or from its plug-ins.",
    .examples = "  sumac functions\n"
                "  sumac functions adam\n"
                "  sumac functions --ps 127.0.0.1:2222\n"
                "  sumac functions --plugin libmine.so mine\n"
                "  sumac functions --json\n",
    COMMAND_OPTIONS(struct functions_options, 0),
    .run = list,
};
