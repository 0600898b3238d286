/* SPDX-License-Identifier: Apache-2.0 */
/* found_run.c -- say whose run a command has found, and refuse to change another user's. */
#include "found_run.h"

#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "identity.h"
#include "text.h"

#define USER_TEXT_BYTES 80

void found_run_learn(struct found_run *run, const wire_stats_reply *stats)
{
    run->answered = true;
    run->ps = stats->ps;
    run->uptime_ms = stats->uptime_ms;
    run->user = stats->user;
    (void)text_print_line(run->address, sizeof run->address, "%s", stats->address);
    if (wire_identity_read(stats->identity, &run->identity, NULL) != SUMAC_OK)
        run->identity = (struct run_identity){0};
}

/* "45 s", "3 min", "2 h 5 min", "12 d 3 h": the age of a run, which may be weeks. */
static size_t print_age(uint64_t uptime_ms, char *text, size_t bytes)
{
    const uint64_t seconds = uptime_ms / 1000, minutes = seconds / 60, hours = minutes / 60;

    if (minutes == 0)
        return text_print(text, bytes, "%" PRIu64 " s", seconds);
    if (hours == 0)
        return text_print(text, bytes, "%" PRIu64 " min", minutes);
    if (hours < 24)
        return text_print(text, bytes, "%" PRIu64 " h %" PRIu64 " min", hours, minutes % 60);
    return text_print(text, bytes, "%" PRIu64 " d %" PRIu64 " h", hours / 24, hours % 24);
}

/* "1000 (alice)". The name is this host's, and is not said of a ps on another host.
 * Lends  text. */
static const char *
print_user(const struct found_run *run, uint32_t user, char text[USER_TEXT_BYTES])
{
    char host[RUN_HOST_BYTES_MAX + 1] = "";
    const bool here =
        gethostname(host, sizeof host - 1) == 0 && strcmp(host, run->identity.host) == 0;
    const struct passwd *known = here ? getpwuid((uid_t)user) : NULL;

    (void)text_print_line(
        text, USER_TEXT_BYTES, known != NULL ? "%" PRIu32 " (%.60s)" : "%" PRIu32, user,
        known != NULL ? known->pw_name : "");
    return text;
}

static void print_ps(const struct found_run *run, char *text, size_t bytes)
{
    size_t used = text_print_line(text, bytes, "ps %" PRIu32 " at %s", run->ps, run->address);

    if (run->pid == 0 && run->identity.pid != 0) /* else the pid of `sumac run` is said */
        used += text_print_line(
            text + used, bytes - used, " (pid %" PRIu32 " on %s)", run->identity.pid,
            run->identity.host);
    used += text_print(text + used, bytes - used, ", up ");
    used += print_age(run->uptime_ms, text + used, bytes - used);
    if (run->identity.pid != 0 && run->user != (uint32_t)geteuid()) {
        char user[USER_TEXT_BYTES];
        (void)text_print_line(
            text + used, bytes - used, ", of user %s", print_user(run, run->user, user));
    }
}

const char *found_run_print(const struct found_run *run, char text[FOUND_RUN_TEXT_BYTES])
{
    const size_t bytes = FOUND_RUN_TEXT_BYTES;
    size_t used = 0;

    text[0] = '\0';
    if (run->pid != 0)
        used = text_print_line(text, bytes, "run of %s (pid %d)", run->program, (int)run->pid);
    else if (run->answered && run->identity.run[0] != '\0')
        used = text_print_line(
            text, bytes, "run \"%s\"%s", run->identity.run, run_source_text(run->identity.source));
    if (!run->answered)
        return text;
    used += text_print(text + used, bytes - used, "%s", used > 0 ? ", " : "run of ");
    print_ps(run, text + used, bytes - used);
    return text;
}

json_t *found_run_to_json(const struct found_run *run)
{
    const bool recorded = run->pid != 0, answered = run->answered;
    const bool identified = answered && run->identity.pid != 0;

    return JSON_OBJECT(
        {"program", recorded ? json_string(run->program) : NULL},
        {"pid", recorded ? json_number((uint64_t)run->pid) : NULL},
        {"ps", answered ? json_number(run->ps) : NULL},
        {"address", answered ? json_string(run->address) : NULL},
        {"uptime_ms", answered ? json_number(run->uptime_ms) : NULL},
        {"name", identified ? json_string(run->identity.run) : NULL},
        {"host", identified ? json_string(run->identity.host) : NULL},
        {"ps_pid", identified ? json_number(run->identity.pid) : NULL},
        {"user", identified ? json_number(run->user) : NULL});
}

enum sumac_status
found_run_check_user(const struct found_run *run, uint32_t user, struct sumac_error *error)
{
    char theirs[USER_TEXT_BYTES], ours[USER_TEXT_BYTES];

    if (run->named || run->identity.pid == 0 || run->user == user)
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
        "ps %" PRIu32 " at %.200s is of user %s, and this command is of user %s; if you mean to "
        "change that run, give --ps %.200s",
        run->ps, run->address, print_user(run, run->user, theirs), print_user(run, user, ours),
        run->address);
}
