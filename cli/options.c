/* SPDX-License-Identifier: Apache-2.0 */
/* options.c -- long options with one row each: --name VALUE, --name=VALUE, --flag; and letters that
 * stand for some. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "screen.h"
#include "table.h"

#define NAME_BYTES_MAX 64 /* of an option, as it is looked for */

static const char *row_name(const void *context, size_t index)
{
    const struct command *command = context;

    if (index == command->row_count)
        return "help";
    return index < command->row_count ? command->rows[index].name : NULL;
}

/* ---- values */

static uint32_t least_of(const struct option_row *row)
{
    return row->min > 0 || row->kind == OPTION_NUMBER ? row->min : 1;
}

static uint32_t most_of(const struct option_row *row)
{
    return row->max > 0 ? row->max : UINT32_MAX;
}

static bool parse_count(const struct option_row *row, const char *text, uint32_t *count)
{
    char *end = NULL;

    const uint64_t value = strtoull(text, &end, 10); /* what is too large is beyond the most, too */
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < least_of(row) ||
        value > most_of(row))
        return false;
    *count = (uint32_t)value;
    return true;
}

bool options_parse_size(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end = NULL;

    errno = 0;
    const uint64_t value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || errno != 0)
        return false;
    unsigned shift = 0;
    if (*end != '\0') {
        const char *unit = strchr(units, *end & ~0x20); /* 256m is meant as well */
        if (unit == NULL || *unit == '\0')
            return false;
        shift = 10 * (unsigned)(unit - units + 1);
        end++;
        if (strcmp(end, "iB") != 0 && strcmp(end, "B") != 0 && *end != '\0')
            return false;
    }
    if (value > UINT64_MAX >> shift)
        return false;
    *bytes = (uint64_t)value << shift;
    return true;
}

static bool add(struct option_list *list, const char *value)
{
    if (list->count == OPTION_LIST_MAX)
        return false;
    list->items[list->count++] = (char *)(uintptr_t)value;
    return true;
}

/* True: stored. */
static bool store(const struct option_row *row, const char *value, void *target)
{
    char *place = (char *)target + row->offset;

    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)(void *)place = true;
        return true;
    case OPTION_TEXT:
        *(const char **)(void *)place = value;
        return true;
    case OPTION_LIST:
        return add((struct option_list *)(void *)place, value);
    case OPTION_NUMBER:
    case OPTION_COUNT:
    case OPTION_MS:
        return parse_count(row, value, (uint32_t *)(void *)place);
    case OPTION_SIZE:
        return options_parse_size(value, (uint64_t *)(void *)place) &&
               *(uint64_t *)(void *)place > 0;
    }
    return false;
}

#define WANTED_BYTES 96

/* Lends  text. */
static const char *wanted(const struct option_row *row, char text[WANTED_BYTES])
{
    if (row->kind == OPTION_SIZE)
        return "a size such as 4096, 64K, 256M or 2G, from 1 to 16777215T";
    if (row->kind == OPTION_LIST)
        return "a value, 32 times at most";
    if (row->kind == OPTION_FLAG || row->kind == OPTION_TEXT)
        return "a value";
    (void)snprintf(
        text, WANTED_BYTES, "a whole number%s, %u to %u",
        row->kind == OPTION_MS ? " of milliseconds" : "", (unsigned)least_of(row),
        (unsigned)most_of(row));
    return text;
}

/* ---- the command line */

static const struct option_row *find_row(const struct command *command, const char *name)
{
    for (size_t i = 0; i < command->row_count; i++)
        if (strcmp(command->rows[i].name, name) == 0)
            return &command->rows[i];
    return NULL;
}

/* The option of the command that this one hands options on to; NULL: none is meant. */
static const struct option_row *find_carried(const struct command *command, const char *name)
{
    const char *const *own = command->carries_not;

    if (command->carries_to == NULL)
        return NULL;
    while (*own != NULL && strcmp(*own, name) != 0)
        own++;
    return *own != NULL ? NULL : find_row(command->carries_to, name);
}

static const struct command *find_owner(const char *name)
{
    size_t i = 0;

    while (commands[i] != NULL && find_row(commands[i], name) == NULL)
        i++;
    return commands[i];
}

/* "sessions-max" for "sessions". */
static const char *find_longer(const struct command *command, const char *name)
{
    const size_t bytes = strlen(name);
    const char *longer = NULL;

    for (size_t i = 0; (longer = row_name(command, i)) != NULL; i++)
        if (strncmp(longer, name, bytes) == 0 && longer[bytes] == '-')
            return longer;
    return NULL;
}

/* `value` NULL: none was given. */
static enum options_outcome
unknown(const struct command *command, const char *name, const char *value)
{
    const struct option_row *const carried = find_carried(command, name);
    const char *const near = nearest_word(name, row_name, command);
    const struct command *const owner = find_owner(name);
    const char *const meant = near != NULL || owner != NULL ? near : find_longer(command, name);

    fprintf(stderr, "sumac %s: unknown option --%s; ", command->name, name);
    if (carried != NULL)
        fprintf(
            stderr, "`sumac %s` has it: --%s '--%s%s%s'\n", command->carries_to->name,
            command->carrier, name, carried->argument == NULL ? "" : " ",
            carried->argument == NULL ? ""
            : value != NULL           ? value
                                      : carried->argument);
    else if (meant != NULL)
        fprintf(stderr, "did you mean --%s?\n", meant);
    else if (owner != NULL)
        fprintf(stderr, "`sumac %s` has it\n", owner->name);
    else
        fprintf(stderr, "`sumac %s --help` lists them\n", command->name);
    return OPTIONS_BAD;
}

/* "output" for -o; NULL: there is no such letter. */
static const char *letter_name(const struct command *command, const char *word)
{
    if (strcmp(word, "-h") == 0)
        return "help";
    for (size_t i = 0; i < command->row_count; i++)
        if (word[1] == command->rows[i].letter && word[2] == '\0')
            return command->rows[i].name;
    return NULL;
}

static enum options_outcome unknown_letter(const struct command *command, const char *word)
{
    const bool names = command->arguments[0] != '\0' && !command->program_follows;

    (void)command_say(
        command, EXIT_MISUSED, "unknown option %s; `sumac %s --help` lists them%s", word,
        command->name, names ? "; a name that begins with - goes behind --" : "");
    return OPTIONS_BAD;
}

/* One option; *index is moved on when its value is the next word. */
static enum options_outcome
take_option(const struct command *command, char **argv, int argc, int *index, void *target)
{
    char name[NAME_BYTES_MAX], kind[WANTED_BYTES];
    const bool is_letter = argv[*index][1] != '-';
    const char *word = is_letter ? letter_name(command, argv[*index]) : argv[*index] + 2;

    if (word == NULL)
        return unknown_letter(command, argv[*index]);
    const char *equals = strchr(word, '=');
    (void)snprintf(
        name, sizeof name, "%.*s", equals ? (int)(equals - word) : (int)strlen(word), word);
    if (strcmp(name, "help") == 0) {
        options_print_help(command);
        return OPTIONS_HELP;
    }
    const struct option_row *row = find_row(command, name);
    const char *value = equals ? equals + 1 : NULL;
    if (row == NULL) {
        const char *next = *index + 1 < argc ? argv[*index + 1] : NULL;
        return unknown(command, name, value != NULL || (next && next[0] == '-') ? value : next);
    }
    const bool is_flag = row->argument == NULL;
    if (!is_flag && value == NULL && *index + 1 < argc)
        value = argv[++*index];
    if (is_flag != (value != NULL) && store(row, value, target))
        return OPTIONS_GO;
    if (is_flag)
        (void)command_say(command, EXIT_MISUSED, "--%s takes no value", name);
    else
        (void)command_say(
            command, EXIT_MISUSED, "--%s wants %s%s%s", name, wanted(row, kind),
            value != NULL ? ", not " : "", value != NULL ? value : "");
    return OPTIONS_BAD;
}

enum options_outcome
options_parse(const struct command *command, int argc, char **argv, void *target, int *word_count)
{
    int words = 0;
    bool only_words = false;

    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = true;
        } else if (!only_words && word[0] == '-' && word[1] != '\0') {
            const enum options_outcome outcome = take_option(command, argv, argc, &i, target);
            if (outcome != OPTIONS_GO)
                return outcome;
        } else {
            argv[words++] = argv[i];
            only_words = only_words || command->program_follows;
        }
    }
    *word_count = words;
    return OPTIONS_GO;
}

#define HELP_COLUMN 27
#define HELP_COLUMNS 100
#define HELP_COLUMNS_MIN 40 /* of a text, however narrow the terminal is */

/* Bytes of as many of the line's UTF-8 characters as have room. */
static int fitting(const char *text, int line, int room)
{
    int bytes = 0;

    for (int characters = 0; bytes < line; bytes++) {
        characters += ((unsigned char)text[bytes] & 0xc0) != 0x80;
        if (characters > room)
            break;
    }
    return bytes;
}

/* In lines as wide as the terminal; each new one begins at `column`. */
static void print_wrapped(const char *text, int column)
{
    const int columns = screen_columns() < HELP_COLUMNS ? (int)screen_columns() : HELP_COLUMNS;
    const int room = columns - column > HELP_COLUMNS_MIN ? columns - column : HELP_COLUMNS_MIN;

    for (;;) {
        const int line = (int)strcspn(text, "\n");
        int bytes = fitting(text, line, room);
        while (bytes > 0 && bytes < line && text[bytes] != ' ')
            bytes--;
        if (bytes == 0) /* no text, or a word that is longer */
            bytes = line;
        printf("%.*s\n", bytes, text);
        if (text[bytes] == '\0')
            return;
        text += bytes + 1;
        printf("%*s", column, "");
    }
}

void options_print_help(const struct command *command)
{
    printf(
        "sumac %s -- %s\n\nUsage: sumac %s [options]%s%s\n\n", command->name, command->summary,
        command->name, command->arguments[0] == '\0' ? "" : " ", command->arguments);
    print_wrapped(command->about, 0);
    for (size_t i = 0; i < command->row_count; i++) {
        const struct option_row *row = &command->rows[i];
        char left[48];
        (void)snprintf(
            left, sizeof left, "--%s%s%s", row->name, row->argument ? " " : "",
            row->argument ? row->argument : "");
        if (i == 0 || row->group != NULL)
            printf("\n%s:\n", row->group != NULL ? row->group : "Options");
        const int padding = HELP_COLUMN - 3 - (int)table_characters(left);
        printf("  %s%*s ", left, padding > 0 ? padding : 0, "");
        print_wrapped(row->help, HELP_COLUMN);
    }
    const bool grouped = command->row_count > 0 && command->rows[0].group != NULL;
    if (command->row_count == 0 || grouped)
        puts(grouped ? "" : "\nOptions:");
    printf("  %-24s this text\n\nExamples:\n%s\n", "--help", command->examples);
}
