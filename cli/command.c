/* SPDX-License-Identifier: Apache-2.0 */
/* command.c -- the table of subcommands; and how one fails: with a line that names the remedy, and
 * its exit code. */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nearest.h"
#include "sumac/client.h"

const struct command *const commands[] = {
    &run_command,     &ps_command,         &ls_command,     &get_command,
    &stats_command,   &functions_command,  &define_command, &update_command,
    &devices_command, &completion_command, &man_command,    NULL,
};

const struct command *command_find(const char *name)
{
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (strcmp((*command)->name, name) == 0)
            return *command;
    return NULL;
}

static const char *command_name(const void *context, size_t index)
{
    (void)context;
    return commands[index] == NULL ? NULL : commands[index]->name;
}

int command_unknown(const char *sayer, const char *word)
{
    const char *const nearest = nearest_word(word, command_name, NULL);

    fprintf(stderr, "%s: there is no command %s; ", sayer, word);
    if (nearest != NULL)
        fprintf(stderr, "did you mean `%s %s`?\n", sayer, nearest);
    else
        fprintf(stderr, "`sumac --help` lists them\n");
    return EXIT_MISUSED;
}

int command_say(const struct command *command, int code, const char *format, ...)
{
    va_list values;

    fprintf(stderr, "sumac %s: ", command->name);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputc('\n', stderr);
    return code;
}

int command_exit_code(const struct sumac_error *error)
{
    return error->reason == SUMAC_REASON_RUN_ENDED ? EXIT_RETRYABLE : sumac_exit_code(error);
}

int command_failed(const struct command *command, const struct sumac_error *error)
{
    const char *remedy =
        error->reason == SUMAC_REASON_UNKNOWN_VARIABLE ? "; `sumac ls` lists the variables" : "";
    const char *ended = error->reason == SUMAC_REASON_RUN_ENDED ? "the run has ended: " : "";

    return command_say(command, command_exit_code(error), "%s%s%s", ended, error->text, remedy);
}
