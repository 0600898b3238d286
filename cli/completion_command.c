/* SPDX-License-Identifier: Apache-2.0 */
/* completion_command.c -- `sumac completion`: what a shell needs to complete the command line, from
 * the tables of options. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "sumac/client.h"
#include "update.h"

static void print_commands(void)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        printf("%s ", commands[i]->name);
}

/* Words that stand after a command, of those that are known without asking a ps. */
static void print_arguments(const struct command *command)
{
    if (strcmp(command->name, "man") == 0)
        print_commands();
    else if (strcmp(command->name, "completion") == 0)
        printf("bash ");
    else if (strcmp(command->name, "functions") == 0 || strcmp(command->name, "update") == 0)
        for (uint32_t i = 0; update_at(i) != NULL; i++)
            printf("%s ", update_at(i)->name);
}

static void print_options(const struct command *command)
{
    printf("        %s) words=\"", command->name);
    print_arguments(command);
    for (size_t i = 0; i < command->row_count; i++)
        printf("--%s ", command->rows[i].name);
    printf("--help\" ;;\n");
}

/* An option whose value is not on the line yet completes as its value would: a file, or nothing. */
static void print_values(const struct command *command)
{
    for (size_t i = 0; i < command->row_count; i++) {
        const struct option_row *row = &command->rows[i];
        if (row->argument == NULL)
            continue;
        const bool file = strcmp(row->argument, "FILE") == 0;
        printf(
            "        %s:--%s) %sreturn ;;\n", command->name, row->name,
            file ? "COMPREPLY=($(compgen -f -- \"$current\")); " : "");
    }
}

static void print_bash(void)
{
    printf("# bash completion of sumac %s\n_sumac() {\n", sumac_version());
    fputs(
        "    local current=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\" "
        "words=\"\" i\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
        "        words=\"--help --version help ",
        stdout);
    print_commands();
    puts("\"\n"
         "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "        return\n"
         "    fi\n"
         "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "        if [ \"${COMP_WORDS[i]}\" = -- ]; then # another program's command line\n"
         "            COMPREPLY=($(compgen -c -f -- \"$current\"))\n"
         "            return\n"
         "        fi\n"
         "    done\n"
         "    case \"${COMP_WORDS[1]}:$before\" in");
    for (size_t i = 0; commands[i] != NULL; i++)
        print_values(commands[i]);
    puts("    esac\n    case \"${COMP_WORDS[1]}\" in");
    for (size_t i = 0; commands[i] != NULL; i++)
        print_options(commands[i]);
    printf("        help) words=\"");
    print_commands();
    puts("\" ;;\n"
         "    esac\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "    if [ \"${COMP_WORDS[1]}\" = define ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
         "        COMPREPLY+=($(compgen -f -- \"$current\"))\n"
         "    fi\n"
         "}\n"
         "complete -F _sumac sumac");
}

static int print(const void *given, struct command_words words)
{
    (void)given;
    if (words.count != 1 || strcmp(words.items[0], "bash") != 0) {
        const bool zsh = words.count == 1 && strcmp(words.items[0], "zsh") == 0;
        return command_say(
            &completion_command, EXIT_MISUSED,
            zsh ? "zsh reads what is made for bash: autoload bashcompinit && bashcompinit; source "
                  "<(sumac completion bash)"
                : "say for which shell: sumac completion bash");
    }
    print_bash();
    return EXIT_FINE;
}

const struct command completion_command = {
    .name = "completion",
    .summary = "print what bash needs to complete sumac's commands and options",
    .arguments = "bash",
    .about = "Commands, their options, the names of functions, and files where an option takes "
             "one. An installation puts it where bash-completion finds it; zsh reads it after "
             "`autoload bashcompinit && bashcompinit`.",
    .examples = "  source <(sumac completion bash)\n",
    .run = print,
};
