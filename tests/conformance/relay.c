/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c -- the same program as each worker of some ps, which `sumac run` starts and ends. */
#include "relay.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NOT_THERE 127
#define OWN "worker 0 | " /* what `sumac run` puts before the worker's lines */

#define RUN_ARGUMENTS 6u

/* The file of that name beside this program's own, or this program's own for NULL. */
static bool find_beside(const char *name, char path[PATH_MAX])
{
    const ssize_t bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);

    if (bytes <= 0)
        return false;
    path[bytes] = '\0';
    if (name == NULL)
        return true;
    char *after = strrchr(path, '/') + 1;
    return snprintf(after, (size_t)(path + PATH_MAX - after), "%s", name) < path + PATH_MAX - after;
}

/* In the child: does not return. */
static void begin(int out, const char *ps, const char *workers, int argc, char **argv)
{
    const char *const run_arguments[RUN_ARGUMENTS] = {"run",       "--ps",  ps,
                                                      "--workers", workers, "--"};
    char sumac[PATH_MAX], self[PATH_MAX];
    char **arguments = calloc((size_t)argc + RUN_ARGUMENTS + 2, sizeof *arguments);
    size_t count = 0;

    if (arguments == NULL || !find_beside("sumac", sumac) || !find_beside(NULL, self))
        _exit(EXIT_FAILURE);
    arguments[count++] = sumac;
    for (size_t i = 0; i < RUN_ARGUMENTS; i++)
        arguments[count++] = (char *)(uintptr_t)run_arguments[i];
    arguments[count++] = self;
    for (int i = 1; i < argc; i++)
        arguments[count++] = argv[i];
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)dup2(out, STDOUT_FILENO);
    execv(sumac, arguments);
    fprintf(
        stderr, "%s cannot be executed: %s; build sumac beside this program\n", sumac,
        strerror(errno));
    _exit(EXIT_NOT_THERE);
}

static void pass_on(FILE *said, struct relay_counts *counts)
{
    struct relay_counts more;
    char *line = NULL;
    size_t room = 0;

    while (getline(&line, &room, said) > 0) {
        const bool own = strncmp(line, OWN, strlen(OWN)) == 0;
        if (own && sscanf(
                       line + strlen(OWN), "%zu passed, %zu failed, %zu skipped", &more.passed,
                       &more.failed, &more.skipped) == 3) {
            counts->passed += more.passed;
            counts->failed += more.failed;
            counts->skipped += more.skipped;
            continue;
        }
        fputs(own ? line + strlen(OWN) : line, own ? stdout : stderr);
    }
    free(line);
}

int relay_run(
    const char *ps, const char *workers, int argc, char **argv, struct relay_counts *counts)
{
    int ends[2], status = 0;

    if (pipe(ends) != 0) {
        perror("sumac-conformance: no pipe");
        return EXIT_FAILURE;
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        begin(ends[1], ps, workers, argc, argv);
    }
    (void)close(ends[1]);
    FILE *said = child < 0 ? NULL : fdopen(ends[0], "r");
    if (said == NULL) {
        perror("sumac-conformance: no process for the ps");
        return EXIT_FAILURE;
    }
    pass_on(said, counts);
    (void)fclose(said);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
