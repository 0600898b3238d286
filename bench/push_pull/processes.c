/* SPDX-License-Identifier: Apache-2.0 */
/* processes.c -- the other processes of a benchmark: their start, their ports, and their end with
 * this one. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "path.h"

void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGTERM); }

void start_server(struct path *path)
{
    int standard_in[2], standard_out[2];

    if (pipe(standard_in) != 0 || pipe(standard_out) != 0)
        die("no pipe");
    const pid_t child = fork();
    if (child == 0) {
        end_with_parent();
        (void)dup2(standard_in[0], 0);
        (void)dup2(standard_out[1], 1);
        (void)close(standard_in[1]);
        execl("/proc/self/exe", program_invocation_short_name, path->serve, (char *)NULL);
        _exit(127);
    }
    (void)close(standard_in[0]);
    (void)close(standard_out[1]);
    FILE *said = fdopen(standard_out[0], "r");
    unsigned port;
    if (child < 0 || fscanf(said, "%u", &port) != 1)
        die("%s: its server did not start", path->name);
    path->servers[0] = child;
    path->ports[0] = port;
}

uint32_t free_port(void)
{
    const int probe = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;

    if (bind(probe, (struct sockaddr *)&address, length) != 0 ||
        getsockname(probe, (struct sockaddr *)&address, &length) != 0)
        die("no free port");
    (void)close(probe);
    return ntohs(address.sin_port);
}
