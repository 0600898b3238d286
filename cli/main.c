/* SPDX-License-Identifier: Apache-2.0 */
/* main.c -- the executable `sumac`: finds the subcommand that was meant. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "descriptors.h"
#include "nearest.h"
#include "options.h"
#include "sumac/client.h"
#include "sumac/status.h"

static const char *command_name(const void *context, size_t index)
{
    (void)context;
    const struct command *command = command_at(index);

    return command == NULL ? NULL : command->name;
}

static void print_help(FILE *file)
{
    fprintf(
        file, "sumac -- a parameter server: ps keep variables, and apply what workers push\n\n"
              "Usage: sumac COMMAND [options] …\n\nCommands:\n");
    const struct command *command = NULL;
    for (size_t i = 0; (command = command_at(i)) != NULL; i++)
        fprintf(file, "  %-11s %s\n", command->name, command->summary);
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
    fprintf(
        stderr, "sumac %s: standard output cannot be written%s%s\n", name, why != 0 ? ": " : "",
        why != 0 ? strerror(why) : "");
    return EXIT_FAILED;
}

static int unknown_command(const char *word)
{
    const char *nearest = nearest_word(word, command_name, NULL);

    fprintf(stderr, "sumac: there is no command %s; ", word);
    if (nearest != NULL)
        fprintf(stderr, "did you mean `sumac %s`?\n", nearest);
    else
        fprintf(stderr, "`sumac --help` lists them\n");
    return EXIT_MISUSED;
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
            return unknown_command(argv[2]);
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
        return printed(command->run(command, argc - 1, argv + 1), command->name);
    return unknown_command(word);
}
