/* SPDX-License-Identifier: Apache-2.0 */
/* update_command.c -- `sumac update NAME FUNCTION --value FILE`: an update function applied to a
 * variable, from a terminal. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array_file.h"
#include "error.h"
#include "pattern.h"
#include "update.h"

#define PATIENCE_MS 10000u

struct update_options {
    const char *ps, *value;
    struct option_list set;
    uint32_t timeout_ms;
    bool allow_non_finite;
    bool json;
};

static const struct option_row rows[] = {
    {"value", "FILE",
     "what is pushed: a .npy of the variable's type and shape; - is standard input", OPTION_TEXT,
     .offset = offsetof(struct update_options, value)},
    {"set", "NAME=NUMBER", "a hyperparameter, else the variable's own; once for each", OPTION_LIST,
     .offset = offsetof(struct update_options, set)},
    {"allow-non-finite", NULL, "push also NaN and infinity, which are refused else", OPTION_FLAG,
     .offset = offsetof(struct update_options, allow_non_finite)},
    {"timeout-ms", "MS", "how long to wait until it is applied (10000)", OPTION_MS,
     .offset = offsetof(struct update_options, timeout_ms)},
    OPTION_ROW_PS(struct update_options),
    OPTION_ROW_JSON(struct update_options),
};

/* What is asked for. */
struct wanted_update {
    const struct update_options *options;
    const char *name;
    struct sumac_function function;
};

/* "learning_rate=0.1". The names are cut off in place. The exit code. */
static int read_sets(const struct option_list *list, struct sumac_hyperparameter *set)
{
    if (list->count > SUMAC_HYPERPARAMETERS_MAX)
        return command_say(
            &update_command, EXIT_MISUSED, "--set is given %" PRIu32 " times, and %u are the most",
            list->count, SUMAC_HYPERPARAMETERS_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        char *const word = list->items[i];
        char *const equals = strchr(word, '=');
        char *end = NULL;
        const double value = equals != NULL ? strtod(equals + 1, &end) : 0;
        if (equals == NULL || equals == word || end == equals + 1 || *end != '\0' ||
            !isfinite(value))
            return command_say(
                &update_command, EXIT_MISUSED,
                "--set wants NAME=NUMBER, as learning_rate=0.1, not %s", word);
        *equals = '\0';
        set[i] = (struct sumac_hyperparameter){.name = word, .value = value};
    }
    return EXIT_FINE;
}

static enum sumac_status read_value(
    const char *path, const struct sumac_client_variable *variable, struct sumac_tensor *value,
    struct sumac_error *error)
{
    const struct sumac_shape shape = sumac_client_variable_shape(variable);
    const bool standard = strcmp(path, "-") == 0;
    FILE *const file = standard ? stdin : fopen(path, "rb");

    if (file == NULL)
        return fail_argument(error, "cannot read %s: %s", path, strerror(errno));
    const enum sumac_status status = array_input_read(
        file, standard ? "standard input" : path, sumac_client_variable_dtype(variable), &shape,
        value, error);
    if (!standard)
        (void)fclose(file);
    return status;
}

/* The value is to be released when the client is closed: after a timeout its push goes on. */
static enum sumac_status push(
    struct sumac_client *client, const struct wanted_update *wanted, struct sumac_tensor *value,
    struct sumac_error *error)
{
    struct sumac_delta delta = {.function = &wanted->function};
    enum sumac_status status =
        sumac_client_variable_find(client, wanted->name, &delta.variable, error);

    if (status == SUMAC_OK)
        status = read_value(wanted->options->value, delta.variable, value, error);
    delta.value = *value;
    const struct sumac_push_options how = {.allow_non_finite = wanted->options->allow_non_finite};
    return status == SUMAC_OK ? sumac_client_push(client, &delta, 1, &how, NULL, error) : status;
}

/* ---- what came of it */

static void print_json(
    const struct wanted_update *wanted, const struct catalogue_page *page,
    const struct found_run *run)
{
    const wire_variable *variable = page_first(page)->variables[0];
    json_t *const versions = json_array();

    for (size_t i = 0; i < variable->n_shards; i++) {
        const wire_shard *held = page_held_shard(page, 0, variable->shards[i]);
        if (held != NULL)
            json_add(versions, json_number(held->version));
    }
    (void)json_print(
        JSON_OBJECT(
            {"name", json_string(wanted->name)}, {"function", json_string(wanted->function.name)},
            {"versions", versions}, {"run", found_run_to_json(run)}),
        false, stdout);
}

static void print_versions(const struct wanted_update *wanted, const struct catalogue_page *page)
{
    uint64_t lowest = UINT64_MAX, highest = 0;

    (void)page_versions(page, 0, &lowest, &highest);
    if (lowest == highest)
        printf("%s is at version %" PRIu64 "\n", wanted->name, highest);
    else
        printf("%s is at versions %" PRIu64 "-%" PRIu64 "\n", wanted->name, lowest, highest);
}

static enum sumac_status
show(struct roster *roster, const struct wanted_update *wanted, struct sumac_error *error)
{
    struct catalogue catalogue = {.page_count = 0};
    char *name = (char *)(uintptr_t)wanted->name;
    const enum sumac_status status = catalogue_ask(roster, &name, 1, &catalogue, error);

    if (status == SUMAC_OK && wanted->options->json)
        print_json(wanted, &catalogue.pages[0], &roster->run);
    else if (status == SUMAC_OK)
        print_versions(wanted, &catalogue.pages[0]);
    return status;
}

/* ---- the command */

static int update_in_run(const struct wanted_update *wanted)
{
    struct roster roster = {.count = 0};
    struct sumac_client *client = NULL;
    struct sumac_tensor value = {.buffer = NULL};
    struct sumac_error error = {0};
    const struct update_options *const options = wanted->options;
    enum sumac_status status =
        observer_join(options->ps, options->json, options->timeout_ms, &roster, &client, &error);

    if (status == SUMAC_OK)
        status = push(client, wanted, &value, &error);
    unknown_explain(&roster, (char *[]){(char *)(uintptr_t)wanted->name}, 1, false, &error);
    observer_leave(client);
    sumac_buffer_unref(value.buffer);
    if (status == SUMAC_OK)
        status = show(&roster, wanted, &error);
    return status == SUMAC_OK ? EXIT_FINE : command_failed(&update_command, &error);
}

static int update(const void *given, struct command_words words)
{
    const struct update_options *const options = given;
    struct wanted_update wanted = {.options = options};

    if (words.count != 2 || options->value == NULL)
        return command_say(
            &update_command, EXIT_MISUSED,
            "give a variable, a function, and what is pushed: sumac update NAME FUNCTION --value "
            "FILE");
    wanted.name = words.items[0];
    wanted.function.name = words.items[1];
    const int code = read_sets(&options->set, wanted.function.hyperparameters);
    return code == EXIT_FINE ? update_in_run(&wanted) : code;
}

const struct command update_command = {
    .name = "update",
    .summary = "apply an update function to a variable",
    .arguments = "NAME FUNCTION",
    .about =
        "Pushes the values of a file to a variable as a worker would, on all of its ps or on none, "
        "with any function: a built-in one, or one that was defined in the run (`sumac functions` "
        "lists them); one with slots needs a variable that was created with them. Joins as an "
        "observer, which delays no worker, and is no part of synchronous steps. Prints the "
        "variable's version afterwards, of shards that differ the lowest and the highest; in JSON "
        "name, function, versions of each shard, and run. The file is as `sumac get -o` writes it. "
        "NaN and infinity are refused without --allow-non-finite. Without --ps, standard error "
        "says whose run this is. A run of another user needs --ps.",
    .examples = "  sumac update W1 assign --value w1.npy\n"
                "  sumac update W1 momentum --value gradient.npy --set learning_rate=0.1\n"
                "  sumac update W1 lion --value - --json < gradient.npy\n",
    COMMAND_OPTIONS(struct update_options, .timeout_ms = PATIENCE_MS),
    .run = update,
};
