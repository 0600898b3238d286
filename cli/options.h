/* SPDX-License-Identifier: Apache-2.0 */
/* options.h -- parse a command line by a command's table of options. */
#pragma once

#include "command.h"

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

/* The title of the group that begins with that row; NULL: the row goes on with the last one's. */
const char *options_group(const struct command *command, size_t row);

/* The command's help, on standard output. */
void options_print_help(const struct command *command);

/* "256M" as bytes. False: not a size, or beyond 64 bits. */
bool options_parse_size(const char *text, uint64_t *bytes);
