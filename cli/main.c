/* SPDX-License-Identifier: Apache-2.0 */
/* main.c -- the executable `sumac`: finds the subcommand that was meant. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "command.h"
#include "descriptors.h"
#include "sumac/client.h"

static void print_help(FILE *file)
{
    fprintf(
        file, "sumac -- a parameter server: ps keep variables, and apply what workers push\n\n"
              "Usage: sumac COMMAND [options] …\n\nCommands:\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        fprintf(file, "  %-11s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(
        file, "\n`sumac COMMAND --help` has the options and examples.\n"
              "`sumac --version` prints the release.\n"
              "If an option is given twice, the last one counts.\n"
              "\nExamples:\n"
              "  sumac run --ps 2 --workers 2 -- ./my_worker   a whole cluster on this machine\n"
              "  sumac ls                                      what it holds, while it runs\n"
              "\nExit codes:\n" EXIT_CODES_TEXT);
}

/* The command's exit code, or EXIT_FAILED when its output was not written: a disk may be full. The
 * reason of an earlier failed write is lost. One more line end fails for the same reason, and the
 * output is not whole anyway. */
static int printed(int code, const char *name)
{
    const bool failed_before = ferror(stdout) != 0;

    if (failed_before)
        fputc('\n', stdout);
    errno = 0;
    const bool failed = fflush(stdout) != 0;
    const int why = failed ? errno : 0;
    if (!failed && !failed_before)
        return code;
    return command_say(
        &(const struct command){.name = name}, EXIT_FAILED, "standard output cannot be written%s%s",
        why != 0 ? ": " : "", why != 0 ? strerror(why) : "");
}

/* argv[0] is the command's name. */
static int start(const struct command *command, int argc, char **argv)
{
    void *const options = cli_alloc(1, command->options_bytes);
    int words = 0;

    if (command->defaults != NULL)
        memcpy(options, command->defaults, command->options_bytes);
    const enum options_outcome outcome = options_parse(command, argc, argv, options, &words);
    if (outcome != OPTIONS_GO)
        return outcome == OPTIONS_HELP ? EXIT_FINE : EXIT_MISUSED;
    if (words > 0 && command->no_words != NULL)
        return command_say(command, EXIT_MISUSED, "%s %s", argv[0], command->no_words);
    argv[words] = NULL;
    return command->run(options, (struct command_words){.count = (size_t)words, .items = argv});
}

int main(int argc, char **argv)
{
    descriptors_keep_standard();
    sumac_tune_malloc();
    if (argc < 2) {
        print_help(stderr);
        return EXIT_MISUSED;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        const struct command *about = argc > 2 ? command_find(argv[2]) : NULL;
        if (argc > 2 && about == NULL && strcmp(argv[2], "help") != 0 && argv[2][0] != '-')
            return command_unknown("sumac", argv[2]);
        if (about != NULL)
            options_print_help(about);
        else
            print_help(stdout);
        return printed(EXIT_FINE, word);
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) {
        printf("sumac %s\n", sumac_version());
        return printed(EXIT_FINE, word);
    }
    const struct command *command = command_find(word);
    if (command != NULL)
        return printed(start(command, argc - 1, argv + 1), command->name);
    return command_unknown("sumac", word);
}
