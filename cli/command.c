/* command.c -- how a subcommand fails: with a line that names the remedy, and its exit code. */
#include "command.h"

#include <stdio.h>

#include "sumac/client.h"

int command_failed(const struct command *command, const struct sumac_error *error)
{
    const char *remedy =
        error->reason == SUMAC_REASON_UNKNOWN_VARIABLE ? "; `sumac ls` lists the variables" : "";
    fprintf(stderr, "sumac %s: %s%s\n", command->name, error->text, remedy);
    return sumac_exit_code(error);
}
