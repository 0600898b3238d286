/* SPDX-License-Identifier: Apache-2.0 */
/* log.c -- what a client says while it works: a line with its time and whose client it is. */
#include "client_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 1024u

/* "2026-11-21T14:02:03.123Z sumac worker 0: text", in one write. */
void client_log_to_stderr(void *context, const char *line)
{
    const struct sumac_client *client = context;
    char text[LINE_BYTES + 128u], stamp[32];
    struct timespec now;
    struct tm utc;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    const size_t bytes = text_print(
        text, sizeof text - 1, "%s.%03dZ sumac %s: %s", stamp, (int)(now.tv_nsec / 1000000),
        client->who, line);
    assert(bytes < sizeof text);
    text[bytes] = '\n';
    const ssize_t written = write(STDERR_FILENO, text, bytes + 1);
    (void)written; /* whose reader has gone does not stop the client */
}

void client_log(struct sumac_client *client, const char *format, ...)
{
    assert(client->log != NULL);
    char line[LINE_BYTES];
    va_list values;
    va_start(values, format);
    (void)text_print_line_values(line, sizeof line, format, values);
    va_end(values);
    client->log(client->log_context, line);
}

const char *client_who(const struct sumac_client *client)
{
    assert(client->who[0] != '\0');
    return client->who;
}

void client_name(struct sumac_client *client, const struct sumac_client_options *options)
{
    const struct sumac_cluster *cluster = options->cluster;

    if (!options->reader && !options->observer && cluster != NULL)
        (void)text_print_line(
            client->who, sizeof client->who, "%s %" PRIu32, cluster->task_type,
            cluster->task_index);
    else
        (void)text_print(client->who, sizeof client->who, options->reader ? "reader" : "observer");
}
