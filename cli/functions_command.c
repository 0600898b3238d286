/* SPDX-License-Identifier: Apache-2.0 */
/* functions_command.c -- `sumac functions`: the update functions, from the table that the ps apply
 * them by. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "dtype.h"
#include "json.h"
#include "nearest.h"
#include "options.h"
#include "sumac/tensor.h"
#include "update.h"

struct functions_options {
    bool json;
};

static const struct option_row rows[] = {
    {"json", NULL, "print one JSON document", OPTION_FLAG,
     .offset = offsetof(struct functions_options, json)},
};

static int list(const struct command *command, int argc, char **argv);

const struct command functions_command = {
    .name = "functions",
    .summary = "list the update functions and their hyperparameters",
    .arguments = "[NAME…]",
    .about = "Each update function's rule (θ is the variable, g what is pushed), the data types "
             "that it takes, its\n"
             "slots, and its hyperparameters with their defaults and ranges. A variable is created "
             "with one; a\n"
             "push may name another that needs no slots beyond those. A learning_rate may go by a "
             "schedule:\n"
             "constant, exponential_decay or cosine_decay, with warm-up. Asks no ps: these "
             "are this release's.",
    .examples = "  sumac functions\n"
                "  sumac functions adam\n"
                "  sumac functions --json\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .run = list,
};

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
            printf(" (%s at first)", update_hyperparameter_name(from));
        if (i + 1 == count && function->last_slot_if != 0)
            printf(" (with %s)", update_hyperparameter_name(function->last_slot_if));
        zeros = zeros && from == 0;
    }
    if (count > 0)
        puts(zeros ? " (zeros at first)" : "");
}

static void print_function(const struct update_function *function)
{
    printf("%s\n  %s\n", function->name, function->rule);
    print_dtypes(function);
    print_slots(function);
    for (uint32_t number = 1; number <= UPDATE_HYPERPARAMETERS_MAX; number++) {
        if (!takes(function, number))
            continue;
        const char *symbol = update_hyperparameter_of(function, number)->symbol;
        printf(
            "  %s%s%s: %g by default, %s\n", symbol, symbol[0] == '\0' ? "" : " = ",
            update_hyperparameter_name(number), function->defaults[number],
            update_hyperparameter_range(function, number));
    }
}

/* ---- JSON */

static struct value *dtypes_value(const struct update_function *function)
{
    struct value *dtypes = value_array();

    for (unsigned dtype = 1; dtype <= DTYPES_MAX; dtype++)
        if (is_applied_to(function, (enum sumac_dtype)dtype))
            value_add(dtypes, value_text(sumac_dtype_name((enum sumac_dtype)dtype)));
    return dtypes;
}

static struct value *hyperparameters_value(const struct update_function *function)
{
    struct value *all = value_object();

    for (uint32_t number = 1; number <= UPDATE_HYPERPARAMETERS_MAX; number++) {
        if (!takes(function, number))
            continue;
        struct value *one = value_object();
        value_put(one, "default", value_real(function->defaults[number]));
        value_put(one, "range", value_text(update_hyperparameter_range(function, number)));
        value_put(all, update_hyperparameter_name(number), one);
    }
    return all;
}

static struct value *function_value(const struct update_function *function)
{
    struct value *value = value_object();
    struct value *slots = value_array();

    for (uint32_t i = 0; i < function->slot_count; i++)
        value_add(slots, value_text(function->slot_names[i]));
    value_put(value, "name", value_text(function->name));
    value_put(value, "rule", value_text(function->rule));
    value_put(value, "dtypes", dtypes_value(function));
    value_put(value, "slots", slots);
    value_put(value, "hyperparameters", hyperparameters_value(function));
    return value;
}

/* ---- the command */

static const char *function_name(const void *context, size_t index)
{
    (void)context;
    const struct update_function *function = update_at((uint32_t)index);

    return function == NULL ? NULL : function->name;
}

static bool check_names(int count, char **names)
{
    for (int i = 0; i < count; i++) {
        if (update_find_by_name(names[i]) != NULL)
            continue;
        const char *nearest = nearest_word(names[i], function_name, NULL);
        fprintf(stderr, "sumac functions: there is no update function %s; ", names[i]);
        if (nearest != NULL)
            fprintf(stderr, "did you mean %s?\n", nearest);
        else
            fprintf(stderr, "`sumac functions` lists them\n");
        return false;
    }
    return true;
}

static bool is_wanted(const struct update_function *function, int count, char **names)
{
    bool wanted = count == 0;

    for (int i = 0; i < count; i++)
        wanted = wanted || strcmp(names[i], function->name) == 0;
    return wanted;
}

static int list(const struct command *command, int argc, char **argv)
{
    struct functions_options options = {0};
    int count = 0;
    const enum options_outcome outcome = options_parse(command, argc, argv, &options, &count);

    if (outcome != OPTIONS_GO)
        return outcome == OPTIONS_HELP ? EXIT_FINE : EXIT_MISUSED;
    if (!check_names(count, argv))
        return EXIT_MISUSED;
    struct value *all = value_array();
    const struct update_function *function = NULL;
    bool first = true;
    for (uint32_t i = 0; (function = update_at(i)) != NULL; i++) {
        if (!is_wanted(function, count, argv))
            continue;
        value_add(all, function_value(function));
        if (!options.json && !first)
            putchar('\n');
        if (!options.json)
            print_function(function);
        first = false;
    }
    const bool printed = !options.json || value_print(all, stdout);
    value_free(all);
    return printed ? EXIT_FINE : EXIT_FAILED;
}
