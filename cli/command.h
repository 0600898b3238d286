/* SPDX-License-Identifier: Apache-2.0 */
/* command.h -- a subcommand of `sumac`: a row of main.c's table, and its options. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sumac/status.h"

/* Exit codes. A scheduler starts a process again that ended with 128 or more (Kubeflow's
 * restartPolicy ExitCode). */
enum {
    EXIT_FINE = 0,
    EXIT_FAILED = 1,      /* the command could not do what it was asked to */
    EXIT_MISUSED = 2,     /* the command line, or the configuration, must be changed first */
    EXIT_RETRYABLE = 138, /* sumac_exit_code's and a ps's: what was lost may come back */
    EXIT_PORT_TAKEN = 226 /* 128 + EADDRINUSE: a ps found its port taken */
};

/* What --help and the manual say of them: lines of 80 columns at most. */
#define EXIT_CODES_TEXT                                                                            \
    "0: done. 1: it failed. 2: fix the command line or the configuration first.\n"                 \
    "Of `sumac run`, 126: the program cannot be executed; 127: no such program.\n"                 \
    "128 and more: starting again may help. 129, 130, 143: stopped by SIGHUP, Ctrl-C,\n"           \
    "SIGTERM (143 also: all workers are gone). 134: aborted. 137: killed, or no\n"                 \
    "memory. 138: a ps did not answer or was lost, or a wait took too long. 226: the\n"            \
    "port is taken.\n"

enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* const char * */
    OPTION_NUMBER, /* uint32_t, decimal; 0 is a number like any other */
    OPTION_COUNT,  /* uint32_t, decimal, at least 1 */
    OPTION_MS,     /* uint32_t, milliseconds, at least 1 */
    OPTION_LIST,   /* struct option_list: each time that it is given adds one */
    OPTION_SIZE,   /* uint64_t, bytes: 4096, 64K, 256M, 2G; at least 1, less than 16 EiB */
};

#define OPTION_LIST_MAX 32u

struct option_list {
    uint32_t count;
    char *items[OPTION_LIST_MAX]; /* of argv */
};

/* An option: one row, read by the parser and by --help. */
struct option_row {
    const char *name;     /* "staging-max" */
    const char *argument; /* "SIZE"; NULL for a flag */
    const char *help;
    enum option_kind kind;
    size_t offset; /* of its value in the command's options */
    /* The bounds of a number; 0: the least of its kind, and the most that 32 bits have. */
    uint32_t min, max;
    const char *group; /* the title of the rows from this one on; NULL: that of those before it */
    char letter;       /* 'o': -o is the same; 0: it has none */
};

/* The words of the command line that are no options; NULL ends them. */
struct command_words {
    size_t count;
    char **items;
};

struct command {
    const char *name;
    const char *summary;   /* one line, for `sumac --help` */
    const char *arguments; /* after the options: "NAME" */
    const char *about;     /* paragraphs, with a blank line between them */
    const char *examples;  /* lines */
    const struct option_row *rows;
    size_t row_count;
    /* `sumac run` hands options on to `sumac ps` in the text of one of its own: that option's name,
     * the other command, and the options that it sets itself, NULL at the end. NULL: none. */
    const char *carrier;
    const struct command *carries_to;
    const char *const *carries_not;
    bool program_follows; /* the first word that is no option begins another command line */
    size_t options_bytes;
    const void *defaults; /* its options as they are when none is given; NULL: zeroed */
    const char *no_words; /* why a word that is no option is refused; NULL: words are taken */
    /* `options` has those of the command line. Returns the exit code. */
    int (*run)(const void *options, struct command_words words);
};

/* The subcommands in the order of `sumac --help`; NULL at the end. */
extern const struct command *const commands[];
/* By name; NULL: none. */
const struct command *command_find(const char *name);

/* Say that no command has that name, and which was meant. `sayer`: "sumac", or the command that
 * wants the name of another. Returns the exit code. */
int command_unknown(const char *sayer, const char *word);

/* Say a line on standard error, after "sumac NAME: ". Returns the exit code that it is given. */
int command_say(const struct command *command, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* sumac_exit_code, except that a command which the end of the run cut short has failed. */
int command_exit_code(const struct sumac_error *error);
/* Say what went wrong, and what to do about it. Returns the exit code. */
int command_failed(const struct command *command, const struct sumac_error *error);

extern const struct command ps_command, run_command, ls_command, get_command, stats_command,
    functions_command, define_command, update_command, devices_command, completion_command,
    man_command;

/* A command's options: its `rows`, and their struct. */
#define COMMAND_OPTIONS(options, ...)                                                              \
    .rows = rows, .row_count = sizeof rows / sizeof rows[0], .options_bytes = sizeof(options),     \
    .defaults = &(const options)                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Rows that several commands have; `options` is the type of theirs. */
#define OPTION_ROW_PS(options)                                                                     \
    {                                                                                              \
        "ps", "HOST:PORT", "one of the run's ps (else TF_CONFIG, else your run on this machine)",  \
            OPTION_TEXT, .offset = offsetof(options, ps)                                           \
    }
#define OPTION_ROW_JSON(options)                                                                   \
    {                                                                                              \
        "json", NULL, "print one JSON document", OPTION_FLAG, .offset = offsetof(options, json)    \
    }

enum options_outcome {
    OPTIONS_GO,   /* all read */
    OPTIONS_HELP, /* --help was asked for, and printed: exit 0 */
    OPTIONS_BAD,  /* said what is wrong: exit 2 */
};

/* Read argv[1 …] into `target`, whose members the rows name; options that are not given are left
 * alone.
 *
 * Words that are no options are moved to argv's front, in order: argv[0 … *word_count - 1]. */
enum options_outcome
options_parse(const struct command *command, int argc, char **argv, void *target, int *word_count);

/* The command's help, on standard output. */
void options_print_help(const struct command *command);

/* "256M" as bytes. False: not a size, or beyond 64 bits. */
bool options_parse_size(const char *text, uint64_t *bytes);
