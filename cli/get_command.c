/* get_command.c -- `sumac get NAME`: a variable's values, printed or as a NumPy file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "find_cluster.h"
#include "json_array.h"
#include "npy.h"
#include "options.h"
#include "print_array.h"
#include "sumac/client.h"
#include "sumac/tensor.h"

struct get_options {
    const char *ps, *slice, *output;
    bool json;
};

static const struct option_row rows[] = {
    {"slice", "FIRST:END", "rows of the first axis, as Python slices: 0:4, :10, -3:", OPTION_TEXT,
     offsetof(struct get_options, slice)},
    {"output", "FILE", "write a NumPy file (.npy) and print nothing; -o FILE is the same",
     OPTION_TEXT, offsetof(struct get_options, output)},
    {"ps", "HOST:PORT", "one of the run's ps (else TF_CONFIG, else the one run on this machine)",
     OPTION_TEXT, offsetof(struct get_options, ps)},
    {"json", NULL, "print one JSON document", OPTION_FLAG, offsetof(struct get_options, json)},
};

static int get(const struct command *command, int argc, char **argv);

const struct command get_command = {
    .name = "get",
    .summary = "print or save the values of a variable",
    .arguments = "NAME",
    .about = "Reads the variable while the run goes on, and holds nobody up. On each ps the values "
             "are of one moment,\n"
             "between two pushes. Without --output it prints dtype and shape, then the values as "
             "NumPy does.",
    .examples = "  sumac get W1 --slice 0:4\n"
                "  sumac get W1 -o w1.npy        then in Python: numpy.load('w1.npy')\n"
                "  sumac get b1 --json\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .run = get,
};

/* ---- slices */

/* One side of a slice: a number, counted from the end when it is negative, or nothing. Cut to 0 … rows, as Python does. */
static bool
parse_side(const char *text, size_t bytes, uint64_t rows_all, uint64_t otherwise, uint64_t *side)
{
    char *end = NULL;
    if (bytes == 0) {
        *side = otherwise;
        return true;
    }
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (end != text + bytes || errno != 0)
        return false;
    const uint64_t distance = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    if (number < 0)
        *side = distance < rows_all ? rows_all - distance : 0;
    else
        *side = distance < rows_all ? distance : rows_all;
    return true;
}

/* "0:4" of `rows_all` rows. Fails, saying how, for what is no slice and for one without rows. */
static bool parse_slice(const char *text, uint64_t rows_all, struct sumac_range *range)
{
    const char *colon = strchr(text, ':');
    uint64_t first = 0, end = 0;
    if (colon == NULL || !parse_side(text, (size_t)(colon - text), rows_all, 0, &first) ||
        !parse_side(colon + 1, strlen(colon + 1), rows_all, rows_all, &end)) {
        fprintf(stderr, "sumac get: --slice wants FIRST:END, such as 0:4 or -3:, not %s\n", text);
        return false;
    }
    if (end <= first) {
        fprintf(
            stderr, "sumac get: the slice %s has no rows; the variable has %" PRIu64 "\n", text,
            rows_all);
        return false;
    }
    *range = (struct sumac_range){.first = first, .count = end - first};
    return true;
}

/* ---- reading */

static enum sumac_status
open_reader(const char *ps_option, struct sumac_client **client, struct sumac_error *error)
{
    struct ps_list list = {0};
    enum sumac_status status = find_cluster(ps_option, &list, error);
    if (status != SUMAC_OK)
        return status;
    const struct sumac_client_options options = {
        .ps_addresses = (const char *const *)list.addresses,
        .ps_count = list.count,
        .reader = true,
        .timeout_ms = 10000,
    };
    status = sumac_client_open(&options, client, error);
    ps_list_deinit(&list);
    return status;
}

/* Memory for what is asked for, and the pull. */
static enum sumac_status
pull(struct sumac_client *client, struct sumac_fetch *fetch, struct sumac_error *error)
{
    struct sumac_shape shape = sumac_variable_shape(fetch->variable);
    const enum sumac_dtype dtype = sumac_variable_dtype(fetch->variable);
    struct sumac_buffer *buffer = NULL;
    struct sumac_pull *under_way = NULL;
    uint64_t elements = 0, bytes = 0;
    if (fetch->has_rows)
        shape.extent[0] = fetch->rows.count;
    enum sumac_status status = sumac_shape_size(&shape, dtype, &elements, &bytes);
    if (status == SUMAC_OK)
        status = sumac_buffer_create(bytes, &buffer);
    if (status == SUMAC_OK)
        status = sumac_tensor_view(buffer, 0, dtype, &shape, &fetch->into);
    if (status != SUMAC_OK) {
        *error = (struct sumac_error){.status = status};
        snprintf(error->text, sizeof error->text, "no memory for %" PRIu64 " bytes", bytes);
    }
    if (status == SUMAC_OK)
        status = sumac_client_pull(client, fetch, 1, NULL, &under_way, error);
    if (status == SUMAC_OK)
        status = sumac_pull_wait(under_way, 0, error);
    return status;
}

static bool print(const char *name, const struct sumac_tensor *values, bool json)
{
    char shape[160];
    if (json)
        return (json_array_print(name, NULL, values, stdout) && putchar(10) != EOF);
    printf(
        "%s  %s  %s\n", name, sumac_dtype_name(values->dtype),
        sumac_shape_print(&values->shape, shape, sizeof shape));
    print_array(values, stdout);
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}

static int read_variable(
    struct sumac_client *client, const char *name, const struct get_options *options,
    struct sumac_error *error)
{
    struct sumac_fetch fetch = {0};
    enum sumac_status status = sumac_client_find(client, name, &fetch.variable, error);
    if (status == SUMAC_OK && options->slice != NULL) {
        const struct sumac_shape shape = sumac_variable_shape(fetch.variable);
        fetch.has_rows = true;
        if (shape.rank == 0) {
            fprintf(stderr, "sumac get: %s is a scalar: it has no rows to slice\n", name);
            return EXIT_MISUSED;
        }
        if (!parse_slice(options->slice, shape.extent[0], &fetch.rows))
            return EXIT_MISUSED;
    }
    if (status == SUMAC_OK)
        status = pull(client, &fetch, error);
    int code = EXIT_FINE;
    if (status == SUMAC_OK && options->output != NULL)
        status = npy_save(options->output, &fetch.into, error);
    else if (status == SUMAC_OK)
        code = print(name, &fetch.into, options->json) ? EXIT_FINE : EXIT_FAILED;
    if (status != SUMAC_OK)
        code = command_failed(&get_command, error);
    sumac_buffer_unref(fetch.into.buffer);
    return code;
}

static int get(const struct command *command, int argc, char **argv)
{
    struct get_options options = {0};
    int words = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-o") == 0)
            argv[i] = (char *)(uintptr_t) "--output";
    const enum options_outcome outcome = options_parse(command, argc, argv, &options, &words);
    if (outcome != OPTIONS_GO)
        return outcome == OPTIONS_HELP ? EXIT_FINE : EXIT_MISUSED;
    if (words != 1) {
        fprintf(stderr, "sumac get: name one variable; `sumac ls` lists them\n");
        return EXIT_MISUSED;
    }
    struct sumac_client *client = NULL;
    struct sumac_error error = {0};
    int code = EXIT_FINE;
    if (open_reader(options.ps, &client, &error) != SUMAC_OK)
        code = command_failed(command, &error);
    else
        code = read_variable(client, argv[0], &options, &error);
    sumac_client_close(client);
    return code;
}
