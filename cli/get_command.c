/* SPDX-License-Identifier: Apache-2.0 */
/* get_command.c -- `sumac get NAME…`: values of variables, printed, or as a NumPy file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "array_file.h"
#include "error.h"
#include "missing_tasks.h"
#include "pattern.h"
#include "print_array.h"
#include "wanted.h"

#define PATIENCE_MS 10000u
#define TIMEOUT_MS_MAX (UINT32_MAX / 2)
#define BYTES_PER_MS 1024u /* a pull of much may take as long as this speed takes for it */

struct get_options {
    const char *ps, *slice, *rows, *output;
    uint32_t at_step, timeout_ms;
    bool json;
};

static const struct option_row rows[] = {
    {"slice", "FIRST:END", "rows of the first axis, as Python slices: 0:4, :10, -3:", OPTION_TEXT,
     .offset = offsetof(struct get_options, slice)},
    {"rows", "I,J,…", "rows of the first axis by number, in this order: 3,1,7; -1 is the last",
     OPTION_TEXT, .offset = offsetof(struct get_options, rows)},
    {"output", "FILE",
     "write a NumPy file and print nothing: .npy for one variable, .npz for any number; - is "
     "standard output; -o FILE is the same",
     OPTION_TEXT, .offset = offsetof(struct get_options, output), .letter = 'o'},
    {"at-step", "N",
     "as every ps is after synchronous step N and before the next; waits for it, and fails when a "
     "later one is over",
     OPTION_COUNT, .offset = offsetof(struct get_options, at_step)},
    {"timeout-ms", "MS", "how long to wait for what is read (10000)", OPTION_MS,
     .offset = offsetof(struct get_options, timeout_ms), .max = TIMEOUT_MS_MAX},
    OPTION_ROW_PS(struct get_options),
    OPTION_ROW_JSON(struct get_options),
};

/* What is read, and where it goes. */
struct reading {
    const struct get_options *options;
    struct roster roster;
    struct wanted_list list;
    struct listed_rows rows;     /* of each variable; none: all that the list says */
    struct sumac_fetch *fetches; /* (list.count); of what is not read, nothing */
    struct array_file *file;     /* NULL: it is printed */
    bool many;                   /* several are, or may be, asked for */
};

/* ---- reading */

/* All in one pull, so that on each ps they are of one moment. */
static enum sumac_status
pull(struct reading *reading, struct sumac_client *client, struct sumac_error *error)
{
    struct sumac_fetch *wanted = cli_alloc(reading->list.count, sizeof *wanted);
    struct sumac_pull *under_way = NULL;
    struct sumac_pull_options options = {
        .at_step = reading->options->at_step, .timeout_ms = reading->options->timeout_ms};
    size_t count = 0;
    enum sumac_status status = SUMAC_OK;

    for (size_t i = 0; i < reading->list.count && status == SUMAC_OK; i++) {
        const struct wanted *item = &reading->list.items[i];
        struct sumac_fetch *fetch = &reading->fetches[i];
        if (item->missing >= 0)
            continue;
        status = sumac_client_variable_find(client, item->name, &fetch->variable, error);
        void *const values = reading->file != NULL ? array_file_values(reading->file, i) : NULL;
        if (status == SUMAC_OK)
            status =
                array_make_room(values, item->dtype, &item->shape, item->name, &fetch->into, error);
        fetch->has_rows = item->has_rows;
        fetch->rows = item->rows;
        fetch->indices = reading->rows.tensors != NULL ? &reading->rows.tensors[i] : NULL;
        wanted[count++] = *fetch;
        const uint64_t more_ms = item->bytes / BYTES_PER_MS;
        const uint32_t room_ms = TIMEOUT_MS_MAX - options.timeout_ms;
        options.timeout_ms += more_ms < room_ms ? (uint32_t)more_ms : room_ms;
    }
    if (status == SUMAC_OK && count > 0)
        status = sumac_client_pull(client, wanted, count, &options, &under_way, error);
    if (under_way != NULL)
        status = sumac_pull_wait(under_way, options.timeout_ms + PATIENCE_MS, error);
    return status;
}

/* ---- where it goes */

static enum sumac_status open_file(struct reading *reading, struct sumac_error *error)
{
    const char *path = reading->options->output;
    const char *end = strrchr(path, '.');
    const bool zip = reading->many || (end != NULL && strcmp(end, ".npz") == 0);
    struct array_entry *entries = cli_alloc(reading->list.count, sizeof *entries);

    for (size_t i = 0; i < reading->list.count; i++) {
        const struct wanted *item = &reading->list.items[i];
        entries[i] =
            (struct array_entry){.name = item->label, .dtype = item->dtype, .shape = item->shape};
    }
    return array_file_open(path, zip, entries, reading->list.count, &reading->file, error);
}

static void print_text(const struct reading *reading)
{
    const char *separator = "";

    for (size_t i = 0; i < reading->list.count; i++) {
        const struct sumac_tensor *values = &reading->fetches[i].into;
        char shape[160];
        if (values->buffer == NULL)
            continue;
        printf(
            "%s%s  %s  %s\n", separator, reading->list.items[i].name,
            sumac_dtype_name(values->dtype),
            sumac_shape_print(&values->shape, shape, sizeof shape));
        print_array(values, stdout);
        separator = "\n";
    }
}

static void print_json(const struct reading *reading)
{
    const char *separator = "";

    if (reading->many)
        fputs("[\n", stdout);
    for (size_t i = 0; i < reading->list.count; i++) {
        const struct sumac_fetch *fetch = &reading->fetches[i];
        if (fetch->into.buffer == NULL)
            continue;
        fputs(separator, stdout);
        (void)json_array_print(
            reading->list.items[i].name, fetch->has_rows ? &fetch->rows : NULL, &fetch->into,
            stdout);
        separator = ",\n";
    }
    fputs(reading->many ? "\n]\n" : "\n", stdout);
}

/* Say what is not read, and why. Returns the exit code. */
static int report_missing(const struct reading *reading)
{
    int code = EXIT_FINE;

    for (size_t i = 0; i < reading->list.count; i++) {
        const struct wanted *item = &reading->list.items[i];
        if (item->missing < 0)
            continue;
        const struct roster_ps *ps = &reading->roster.ps[item->missing];
        code = command_say(
            &get_command, command_exit_code(&ps->why), "%s is held by ps %d at %s: %s", item->label,
            (int)item->missing, ps->address, roster_silence(ps).text);
    }
    return code;
}

/* A path that is none is to be changed; a disk that is full, or an output that is closed, fails
 * whoever writes to it. */
static int file_failed(const struct sumac_error *error)
{
    const int code = command_failed(&get_command, error);
    const bool path = error->status == SUMAC_NOT_FOUND || error->status == SUMAC_INVALID_ARGUMENT ||
                      error->status == SUMAC_PERMISSION_DENIED;

    return path ? code : EXIT_FAILED;
}

/* A step that only asynchronous workers could take part in does not come. */
static void explain_step(const struct get_options *options, struct sumac_error *error)
{
    const struct sumac_error why = *error;

    if (options->at_step > 0 && strstr(why.text, MISSING_OWN_PACE) != NULL)
        (void)fail(
            error, why.status, why.reason,
            "asynchronous pushes end no synchronous step: leave --at-step out, or start all "
            "workers "
            "with SUMAC_SYNCHRONOUS=1, as `sumac run --synchronous` does; %s",
            why.text);
}

/* Read what can be read. A file is made of all or nothing. The exit code. */
static int read_and_show(struct reading *reading)
{
    struct sumac_client *client = NULL;
    struct sumac_error error = {0};
    const int missing = report_missing(reading);

    if (missing != EXIT_FINE && (reading->options->output != NULL || !reading->many))
        return missing;
    if (reading->options->output != NULL && open_file(reading, &error) != SUMAC_OK)
        return file_failed(&error);
    const struct sumac_client_options options = {
        .reader = true, .any_ps = true, .timeout_ms = PATIENCE_MS};
    enum sumac_status status = roster_open(&reading->roster, options, &client, &error);
    if (status == SUMAC_OK)
        status = pull(reading, client, &error);
    sumac_client_close(client);
    explain_step(reading->options, &error);
    if (status != SUMAC_OK)
        return command_failed(&get_command, &error);
    if (reading->file != NULL) {
        struct array_file *file = reading->file;
        reading->file = NULL;
        if (array_file_keep(file, &error) != SUMAC_OK)
            return file_failed(&error);
    } else if (reading->options->json) {
        print_json(reading);
    } else {
        print_text(reading);
    }
    return missing; /* main.c sees whether it was printed */
}

/* ---- the command */

/* Has the name of the file an ending, and not a NumPy file's? */
static bool is_other_file(const char *path)
{
    const char *const slash = strrchr(path, '/');
    const char *const name = slash == NULL ? path : slash + 1;
    const char *const end = name[0] == '\0' ? NULL : strrchr(name + 1, '.');

    return end != NULL && strcmp(end, ".npy") != 0 && strcmp(end, ".npz") != 0;
}

/* The file that values are written to. The exit code. */
static int check_output(const char *output, bool many)
{
    const char *const end = strrchr(output, '.');
    const bool is_stream = strcmp(output, "-") == 0 || strncmp(output, "/dev/", 5) == 0;

    if (output[0] == '\0')
        return command_say(&get_command, EXIT_MISUSED, "--output wants the name of a file, or -");
    if (strcmp(output, "-") == 0 && isatty(STDOUT_FILENO) == 1)
        return command_say(
            &get_command, EXIT_MISUSED,
            "a NumPy file is nothing for a terminal: send it to a file or a program, or leave "
            "-o - out");
    if (many && !is_stream && (end == NULL || strcmp(end, ".npz") != 0))
        return command_say(
            &get_command, EXIT_MISUSED, "several variables are a .npz file: call it %.*s.npz",
            end != NULL && end > output && strcmp(end, ".npy") == 0 ? (int)(end - output)
                                                                    : (int)strlen(output),
            output);
    if (is_other_file(output))
        return command_say(
            &get_command, EXIT_MISUSED,
            "--output writes a NumPy file: let the name %s end with .npy", output);
    return EXIT_FINE;
}

/* Options that contradict each other are refused before a ps is asked. The exit code. */
static int check(const struct get_options *options, size_t word_count, bool many)
{
    const char *wrong = NULL;

    if (word_count == 0)
        wrong = "name a variable, or several; `sumac ls` lists them";
    else if (options->output != NULL && options->json)
        wrong = "--output writes a NumPy file and --json prints: leave one of them out";
    else if (options->rows != NULL && options->slice != NULL)
        wrong = "--rows and --slice both say which rows: leave one of them out";
    if (wrong != NULL)
        return command_say(&get_command, EXIT_MISUSED, "%s", wrong);
    return options->output != NULL ? check_output(options->output, many) : EXIT_FINE;
}

static int get(const void *given, struct command_words words)
{
    const struct get_options *const options = given;
    const size_t count = pattern_drop_repeated(words.items, words.count);
    struct reading reading = {
        .options = options, .many = count > 1 || pattern_are_some(words.items, count)};
    struct sumac_error error = {0};
    enum sumac_status status = SUMAC_OK;

    if (check(options, count, reading.many) != EXIT_FINE)
        return EXIT_MISUSED;
    if (options->rows != NULL)
        status = row_list_parse(options->rows, &reading.rows, &error);
    if (status == SUMAC_OK)
        status = roster_find(options->ps, &reading.roster, &error);
    if (status == SUMAC_OK)
        roster_tell(&reading.roster, false);
    if (status == SUMAC_OK)
        status =
            wanted_find(&reading.roster, words.items, count, options->slice, &reading.list, &error);
    if (status == SUMAC_OK && options->rows != NULL)
        status = row_list_apply(&reading.rows, &reading.list, &error);
    if (status != SUMAC_OK)
        return command_failed(&get_command, &error);
    reading.fetches = cli_alloc(reading.list.count, sizeof *reading.fetches);
    const int code = read_and_show(&reading);
    array_file_drop(reading.file);
    for (size_t i = 0; i < reading.list.count; i++)
        sumac_buffer_unref(reading.fetches[i].into.buffer);
    return code;
}

const struct command get_command = {
    .name = "get",
    .summary = "print or save the values of variables",
    .arguments = "NAME[[FIRST:END]]|PATTERN…",
    .about =
        "Reads variables while the run goes on, and delays no worker. On each ps the values of all "
        "of them are of one moment, between two pushes. Without --output it prints dtype and "
        "shape, then the values as NumPy does. With --at-step all ps are at the same synchronous "
        "step: nothing of the next is in what is read; when a later one is over already, the error "
        "names the newest. Rows are given as W1[0:4] or with --slice; in a PATTERN * and ? stand "
        "for any characters (your shell looks for files unless you quote either). A file is "
        "written whole or not at all, and on a disk that is too small not begun; numpy.load of a "
        ".npz has each variable under its name, with its slice. Only the ps that hold what is "
        "asked for need to answer. Values on a ps that does not answer within 5 s are left out of "
        "the output, standard error names the ps, and the exit code is 128 or more; no file is "
        "written then. A name that begins with - goes behind --. Without --ps, standard error says "
        "whose run is read.\n\nJSON: name, dtype, shape, values nested as the axes are, in the "
        "fewest digits that read back as the same; of a slice first_row; NaN and infinities are "
        "null. Several variables, or a pattern, give an array of these.",
    .examples = "  sumac get W1[0:4]\n"
                "  sumac get embeddings --rows 3,1,7\n"
                "  sumac get W1 -o w1.npy        then in Python: numpy.load('w1.npy')\n"
                "  sumac get 'layer1/*' b2 -o some.npz\n"
                "  sumac get W1 -o - | gzip > w1.npy.gz\n"
                "  sumac get b1 --json\n"
                "  sumac get W1 --at-step 1000 --timeout-ms 600000 -o w1.npy\n",
    COMMAND_OPTIONS(struct get_options, .timeout_ms = PATIENCE_MS),
    .run = get,
};
