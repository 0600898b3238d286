/* SPDX-License-Identifier: Apache-2.0 */
/* man_command.c -- `sumac man`: manual pages, as man(1) reads them, from the tables of commands and
 * options. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "sumac/client.h"

/* roff interprets backslashes and hyphens. No line of a text may begin with a point or a quote. */
static void print_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_head(const char *name, const char *summary)
{
    printf(".TH \"");
    for (const char *at = name; *at != '\0'; at++)
        putchar(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    printf("\" 1 \"\" \"sumac %s\" \"Sumac\"\n.SH NAME\n", sumac_version());
    print_text(name);
    printf(" \\- ");
    print_text(summary);
    printf("\n.SH SYNOPSIS\n.B sumac");
}

static void print_options(const struct command *command)
{
    puts(".SH OPTIONS");
    for (size_t i = 0; i < command->row_count; i++) {
        const struct option_row *row = &command->rows[i];
        if (row->group != NULL)
            printf(".SS %s\n", row->group);
        printf(".TP\n\\fB\\-\\-");
        print_text(row->name);
        printf("\\fR%s\\fI%s\\fR\n", row->argument ? " " : "", row->argument ? row->argument : "");
        print_text(row->help);
        putchar('\n');
    }
    puts(".TP\n\\fB\\-\\-help\\fR\nprint the command's help");
}

static void print_command_page(const struct command *command)
{
    char name[64];

    (void)snprintf(name, sizeof name, "sumac-%s", command->name);
    print_head(name, command->summary);
    printf(" %s\n[options]%s", command->name, command->arguments[0] == '\0' ? "" : " ");
    print_text(command->arguments);
    printf("\n.SH DESCRIPTION\n");
    print_text(command->about);
    putchar('\n');
    print_options(command);
    printf(".SH EXAMPLES\n.nf\n");
    print_text(command->examples);
    puts(".fi\n.SH SEE ALSO\nsumac(1)");
}

static void print_sumac_page(void)
{
    print_head("sumac", "a parameter server: ps keep variables, and apply what workers push");
    printf("\n.I COMMAND\n[options] …\n.SH COMMANDS\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        printf(".TP\n.B %s\n", commands[i]->name);
        print_text(commands[i]->summary);
        putchar('\n');
    }
    puts(".SH EXIT STATUS\n" EXIT_CODES_TEXT
         ".SH ENVIRONMENT\n.TP\n.B TF_CONFIG\nthe cluster and this process's task in it, as "
         "TensorFlow and Kubeflow write it\n"
         ".TP\n.B SUMAC_REPLICAS\nset by sumac run \\-\\-replicas: how many replicas each worker "
         "has, where its program does not "
         "say\n"
         ".TP\n.B SUMAC_DEVICES\nset by sumac run \\-\\-devices: what a worker's replicas run on, "
         "auto, cpu:N or gpu:0,1\n"
         ".TP\n.B SUMAC_NCCL_LIBRARY\nNCCL's file, where the linker does not find libnccl.so.2\n"
         ".TP\n.B SUMAC_SYNCHRONOUS\nset by sumac run \\-\\-synchronous to 1: workers take "
         "synchronous steps, a strategy is multi_worker\n"
         ".TP\n.B SUMAC_TRACE\nset by sumac run \\-\\-trace: the file to which workers write what "
         "their steps do, and when\n"
         ".TP\n.B SUMAC_PROGRESS\nset by sumac run to 1: a worker's line that ends in a carriage "
         "return is written over on a terminal, and shown once a second elsewhere\n"
         ".SH SEE ALSO");
    for (size_t i = 0; commands[i] != NULL; i++)
        printf("%ssumac\\-%s(1)", i == 0 ? "" : ", ", commands[i]->name);
    putchar('\n');
}

static int print(const void *given, struct command_words words)
{
    static const char prefix[] = "sumac-"; /* the page's own name is meant as well */
    (void)given;

    if (words.count > 1)
        return command_say(
            &man_command, EXIT_MISUSED, "name one command; `sumac --help` lists them");
    if (words.count == 0) {
        print_sumac_page();
        return EXIT_FINE;
    }
    const char *const name = words.items[0];
    const bool whole = strncmp(name, prefix, sizeof prefix - 1) == 0;
    const struct command *const about = command_find(name + (whole ? sizeof prefix - 1 : 0));
    if (about == NULL)
        return command_unknown("sumac man", name);
    print_command_page(about);
    return EXIT_FINE;
}

const struct command man_command = {
    .name = "man",
    .summary = "print a manual page, as man reads it",
    .arguments = "[COMMAND]",
    .about = "The page of one command, or of sumac itself. An installation puts them where man "
             "finds them.",
    .examples = "  sumac man ps | man -l -\n",
    .run = print,
};
