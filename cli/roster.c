/* SPDX-License-Identifier: Apache-2.0 */
/* roster.c -- the ps of a run, and who of them does not answer; whose run it is, and whether a
 * command may change it. */
#include "roster.h"

#include <assert.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "error.h"
#include "identity.h"
#include "last_word.h"
#include "loopback.h"
#include "text.h"

#define SAID_FROM_US 1000000u /* a silence that is shorter was no wait */

void roster_add(struct roster *roster, const char *address)
{
    roster->ps = cli_grow(roster->ps, roster->count, sizeof *roster->ps);
    roster->ps[roster->count++].address = cli_copy(address, strlen(address));
}

void roster_leave_out_all_but(struct roster *roster, uint32_t one)
{
    for (uint32_t i = 0; i < roster->count; i++)
        roster->ps[i].left_out = i != one;
}

const char *roster_remedy(const struct roster *roster, uint32_t index)
{
    bool beside_others = false;

    for (size_t i = 0; i < roster->count; i++)
        beside_others |= !loopback_is(roster->ps[i].address);
    return beside_others && loopback_is(roster->ps[index].address) ? LOOPBACK_REMEDY
                                                                   : OTHER_PS_REMEDY;
}

enum sumac_status roster_check_index(
    const struct roster *roster, uint32_t index, uint32_t said, struct sumac_error *error)
{
    assert(index < roster->count);
    if (!roster->by_index || said == index)
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "ps %u answers at %.200s, which the list of the ps calls ps %u: %s", said,
        roster->ps[index].address, index, roster_remedy(roster, index));
}

bool roster_has_last_word(const struct roster *roster)
{
    for (uint32_t i = 0; i < roster->count; i++)
        if (roster->ps[i].missing && last_word_is(&roster->ps[i].why))
            return true;
    return false;
}

struct roster_silence roster_silence(const struct roster_ps *ps)
{
    const uint64_t silent_us = ps->told_us - ps->silent_us;
    const bool is_late =
        ps->why.status == SUMAC_DEADLINE_EXCEEDED || ps->why.status == SUMAC_CANCELLED;
    const bool says_why = !is_late && ps->why.text[0] != '\0';
    struct roster_silence silence;

    (void)text_print_line(
        silence.text, sizeof silence.text, "no answer%s%s%s%.160s%s",
        silent_us >= SAID_FROM_US ? " for " : "",
        silent_us >= SAID_FROM_US ? text_time_us(silent_us).text : "", says_why ? " (" : "",
        says_why ? ps->why.text : "", says_why ? ")" : "");
    return silence;
}

int roster_report(const struct command *command, const struct roster *roster, const char *left_out)
{
    int code = EXIT_FINE;

    for (uint32_t i = 0; i < roster->count; i++) {
        const struct roster_ps *ps = &roster->ps[i];
        if (!ps->missing)
            continue;
        (void)command_say(
            command, EXIT_FAILED, "ps %u at %s: %s; %s", i, ps->address, roster_silence(ps).text,
            left_out);
        code = code == EXIT_FINE ? command_exit_code(&ps->why) : code;
    }
    return code;
}

json_t *roster_to_json(const struct roster *roster)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < roster->count; i++) {
        const struct roster_ps *ps = &roster->ps[i];
        if (!ps->missing)
            continue;
        json_add(
            array, JSON_OBJECT(
                       {"ps", json_number(i)}, {"address", json_string(ps->address)},
                       {"error", json_string(roster_silence(ps).text)}));
    }
    return array;
}

/* ---- whose run it is */

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
