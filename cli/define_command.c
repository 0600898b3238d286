/* SPDX-License-Identifier: Apache-2.0 */
/* define_command.c -- `sumac define NAME FILE`: a text becomes an update function of a run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster_functions.h"

#define PATIENCE_MS 10000u

struct define_options {
    const char *ps;
    uint32_t timeout_ms;
    bool json;
};

static const struct option_row rows[] = {
    {"timeout-ms", "MS", "how long to wait for every ps to have it (10000)", OPTION_MS,
     .offset = offsetof(struct define_options, timeout_ms)},
    OPTION_ROW_PS(struct define_options),
    OPTION_ROW_JSON(struct define_options),
};

/* What is read, and what of. */
struct text {
    const char *name; /* of the file, in what is said */
    size_t bytes;
    char data[EXPRESSION_TEXT_BYTES_MAX + 1];
};

static bool read_text(const char *path, struct text *text)
{
    const bool standard = strcmp(path, "-") == 0;
    FILE *const file = standard ? stdin : fopen(path, "rb");

    text->name = standard ? "standard input" : path;
    text->bytes = file == NULL ? 0 : fread(text->data, 1, sizeof text->data, file);
    const bool whole = file != NULL && ferror(file) == 0;
    const int why = errno;
    if (text->bytes >= 3 && memcmp(text->data, "\xef\xbb\xbf", 3) == 0) {
        text->bytes -= 3; /* a byte order mark, as some editors begin a file with */
        memmove(text->data, text->data + 3, text->bytes);
    }
    if (file != NULL && !standard)
        (void)fclose(file);
    if (!whole)
        (void)command_say(
            &define_command, EXIT_MISUSED, "cannot read %s: %s", text->name, strerror(why));
    else if (text->bytes > EXPRESSION_TEXT_BYTES_MAX) /* how many is not known */
        fprintf(
            stderr, "%s: the text has more than %u bytes, which are the most\n", text->name,
            EXPRESSION_TEXT_BYTES_MAX);
    return whole && text->bytes <= EXPRESSION_TEXT_BYTES_MAX;
}

/* As compilers do, where the error has a place. The exit code. */
static int text_failed(const struct text *text, const struct sumac_error *error)
{
    unsigned line = 0, column = 0;
    int used = 0;

    if (error->reason != SUMAC_REASON_BAD_EXPRESSION)
        return command_failed(&define_command, error);
    (void)sscanf(error->text, "line %u, column %u: %n", &line, &column, &used);
    if (used > 0)
        fprintf(stderr, "%s:%u:%u: %s\n", text->name, line, column, error->text + used);
    else
        fprintf(stderr, "%s: %s\n", text->name, error->text);
    return EXIT_MISUSED;
}

/* Its number, of what the run has now; 0: ps 0 does not say. */
static uint32_t number_of(struct roster *roster, const char *name)
{
    struct cluster_functions functions = {.count = 0};

    (void)cluster_functions_ask(roster, &functions, NULL);
    const struct cluster_function *made = cluster_functions_find_by_name(&functions, name);
    return made != NULL ? made->number : 0;
}

static int
define_in_run(const struct define_options *options, const char *name, const struct text *text)
{
    struct roster roster = {.count = 0};
    struct sumac_client *client = NULL;
    struct sumac_error error = {0};
    enum sumac_status status =
        observer_join(options->ps, options->json, options->timeout_ms, &roster, &client, &error);

    if (status == SUMAC_OK)
        status = sumac_client_define(client, name, text->data, text->bytes, &error);
    observer_leave(client);
    if (status != SUMAC_OK)
        return text_failed(text, &error);
    const uint32_t number = number_of(&roster, name);
    if (options->json)
        (void)json_print(
            JSON_OBJECT(
                {"name", json_string(name)}, {"number", json_number(number)},
                {"run", found_run_to_json(&roster.run)}),
            false, stdout);
    else
        printf("%s is function %" PRIu32 "\n", name, number);
    return EXIT_FINE;
}

static int define(const void *given, struct command_words words)
{
    static struct update_defined read;
    static struct text text;
    struct sumac_error error = {0};

    if (words.count != 2)
        return command_say(
            &define_command, EXIT_MISUSED,
            "give a name, and a file with its text: sumac define NAME FILE");
    const char *const name = words.items[0];
    if (!read_text(words.items[1], &text))
        return EXIT_MISUSED;
    if (update_define(UPDATE_DEFINED_FIRST, name, text.data, text.bytes, &read, &error) != SUMAC_OK)
        return text_failed(&text, &error);
    return define_in_run(given, name, &text);
}

const struct command define_command = {
    .name = "define",
    .summary = "make a text an update function of a run",
    .arguments = "NAME FILE",
    .about =
        "Every worker of the run may then use it like a built-in function, by its name. The FILE, "
        "- for standard input, has an expression: a line of hyperparameters, a line of slots, and "
        "what becomes of an element of the variable (value) when one of a gradient (g) comes; "
        "docs/EXPRESSIONS.md has the language. The same text under the same name is the same "
        "function; another text is refused. An error in the text is reported as FILE:line:column. "
        "A run has 64 such functions at most, and keeps them to its end. Without --ps, standard "
        "error says whose run this is. A run of another user needs --ps.",
    .examples = "  sumac define lion2 lion.txt\n"
                "  echo 'value = value - 0.1 * sign(g)' | sumac define sign_descent -\n"
                "  sumac functions --ps 127.0.0.1:2222\n",
    COMMAND_OPTIONS(struct define_options, .timeout_ms = PATIENCE_MS),
    .run = define,
};
