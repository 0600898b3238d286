/* SPDX-License-Identifier: Apache-2.0 */
/* core_text.c -- shorten the errors of gRPC 1.51's client. */
#include "core_text.h"

#include <string.h>

#include "error.h"
#include "silence.h"
#include "text.h"

/* gRPC says "DNS resolution failed for h0:2222: UNKNOWN: Temporary failure in name resolution",
 * which is the system's word for a nameserver that is silent, refuses, or is not configured. */
static void say_unresolved(struct sumac_error *error)
{
    static const char begins[] = "DNS resolution failed for ",
                      silent[] = "Temporary failure in name";
    char text[SUMAC_ERROR_TEXT_BYTES];

    if (strncmp(error->text, begins, sizeof begins - 1) != 0)
        return;
    (void)text_print(text, sizeof text, "%s", error->text + sizeof begins - 1);
    char *const end = strstr(text, ": "); /* of the target */
    if (end == NULL)
        return;
    *end = '\0';
    const char *cause = strrchr(end + 1, ':');
    cause = cause == NULL ? end + 2 : cause + 2;
    char *const port = strrchr(text, ':');
    if (port != NULL)
        *port = '\0';
    if (strncmp(cause, silent, sizeof silent - 1) == 0)
        (void)fail(
            error, error->status, error->reason,
            "DNS did not answer for %.255s, and /etc/hosts does not have it", text);
    else
        (void)fail(
            error, error->status, error->reason, "no host is known by the name %.255s (%.100s)",
            text, cause);
}

/* gRPC's words that name no cause, and the cause. */
static const struct {
    const char *core, *plain;
} causes[] = {
    {"http1.x server", "another program listens there: it does not speak HTTP/2"},
    {"Failed parsing HTTP/2", "another program listens there: it does not speak HTTP/2"},
    {"SETTINGS frame", SILENCE_MUTE},
    {"tcp handshaker shutdown", SILENCE_MUTE},
    {"Cannot allocate memory", SILENCE_NO_MEMORY},
};

/* gRPC says "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to
 * connect to remote host: Connection refused". The caller knows the address, and the cause is at
 * the end. */
static void say_unconnected(struct sumac_error *error)
{
    static const char core[] = "failed to connect to all addresses";
    static const char *const before[] = {"last error: ", ": ", ": "};
    static const char *const may_follow[] = {"Failed to connect to remote host: ", "recvmsg:"};
    char text[SUMAC_ERROR_TEXT_BYTES];
    const char *cause = text;

    if (error->reason != SUMAC_REASON_UNSPECIFIED ||
        strncmp(error->text, core, sizeof core - 1) != 0)
        return;
    (void)text_print(text, sizeof text, "%s", error->text);
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        const char *const at = strstr(cause, before[i]);
        if (at == NULL)
            return;
        cause = at + strlen(before[i]);
    }
    for (size_t i = 0; i < sizeof may_follow / sizeof may_follow[0]; i++)
        if (strncmp(cause, may_follow[i], strlen(may_follow[i])) == 0)
            cause += strlen(may_follow[i]);
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (strstr(cause, causes[i].core) != NULL)
            cause = causes[i].plain;
    (void)fail(error, error->status, error->reason, "%s", cause);
}

/* The connection was made: gRPC pings what is silent, and then gives it up. */
static void say_broken(struct sumac_error *error)
{
    static const char call[] = "recvmsg:", watchdog[] = "keepalive watchdog timeout";
    char text[SUMAC_ERROR_TEXT_BYTES];

    if (error->reason != SUMAC_REASON_UNSPECIFIED)
        return;
    (void)text_print(text, sizeof text, "%s", error->text);
    if (strcmp(text, watchdog) == 0)
        (void)fail(error, error->status, error->reason, "it answered no ping");
    else if (strncmp(text, call, sizeof call - 1) == 0)
        (void)fail(error, error->status, error->reason, "%s", text + sizeof call - 1);
}

void core_text_make_plain(struct sumac_error *error)
{
    say_unresolved(error);
    say_unconnected(error);
    say_broken(error);
}
