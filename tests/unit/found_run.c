/* SPDX-License-Identifier: Apache-2.0 */
/* found_run.c -- what is said of a run that a command has found, and whom it lets change it. */
#include <unistd.h>

#include "unit.h"
#include "roster.h"

#define MINUTE_MS 60000u

/* What ps 1 of run 4711, of this user on another host, tells. */
static void tell(struct found_run *run, uint64_t uptime_ms, const char *name)
{
    wire_stats_reply stats = WIRE_STATS_REPLY_INIT;
    wire_identity identity = WIRE_IDENTITY_INIT;

    identity.run = (char *)(uintptr_t)name;
    identity.source = SUMAC__V1__IDENTITY__SOURCE__SOURCE_SLURM;
    identity.host = (char *)(uintptr_t) "another.host";
    identity.pid = 812;
    stats.ps = 1;
    stats.address = (char *)(uintptr_t) "h1:2222";
    stats.uptime_ms = uptime_ms;
    stats.identity = &identity;
    stats.user = (uint32_t)geteuid();
    found_run_learn(run, &stats);
}

static struct found_run learn(uint64_t uptime_ms, const char *name)
{
    struct found_run run = {.named = false};

    tell(&run, uptime_ms, name);
    return run;
}

static void assert_said(const struct found_run *run, const char *said)
{
    char text[FOUND_RUN_TEXT_BYTES];

    assert_string_equal(found_run_print(run, text), said);
}

TEST(a_run_is_said_by_its_record_else_by_its_name_else_by_a_ps)
{
    struct found_run recorded = learn(3 * MINUTE_MS, "4711");
    const struct found_run named = learn(3 * MINUTE_MS, "4711"), nameless = learn(0, "");
    const struct found_run silent = {.pid = 9, .program = "./digits"}, unknown = {.pid = 0};

    recorded.pid = 9;
    strcpy(recorded.program, "./digits");
    assert_said(&recorded, "run of ./digits (pid 9), ps 1 at h1:2222, up 3 min");
    assert_said(
        &named, "run \"4711\" (SLURM_JOB_ID), ps 1 at h1:2222 (pid 812 on another.host), up 3 min");
    assert_said(&nameless, "run of ps 1 at h1:2222 (pid 812 on another.host), up 0 s");
    assert_said(&silent, "run of ./digits (pid 9)");
    assert_said(&unknown, "");
}

TEST(an_age_has_two_units_at_most)
{
    static const struct {
        uint64_t ms;
        const char *said;
    } ages[] = {
        {59999, "59 s"},
        {MINUTE_MS, "1 min"},
        {60 * MINUTE_MS - 1, "59 min"},
        {125 * MINUTE_MS, "2 h 5 min"},
        {1440 * MINUTE_MS, "1 d 0 h"},
    };

    for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++) {
        const struct found_run run = learn(ages[i].ms, "4711");
        char text[FOUND_RUN_TEXT_BYTES], said[32];
        snprintf(said, sizeof said, ", up %s", ages[i].said);
        const char *const at = strstr(found_run_print(&run, text), ", up ");
        assert_string_equal(at, said);
    }
}

TEST(another_users_run_is_changed_only_if_it_is_named)
{
    const uint32_t user = (uint32_t)geteuid();
    struct found_run run = learn(0, "4711");
    struct sumac_error error = {0};

    assert_int_equal(found_run_check_user(&run, user, &error), SUMAC_OK);
    run.user = user + 1;
    assert_int_equal(found_run_check_user(&run, user, &error), SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "give --ps h1:2222"));
    assert_null(strchr(error.text, '(')); /* another host's users have other names */
    run.named = true;
    assert_int_equal(found_run_check_user(&run, user, &error), SUMAC_OK);
    run.named = false;
    run.identity.pid = 0; /* of an earlier release: its user is not known */
    assert_int_equal(found_run_check_user(&run, user, &error), SUMAC_OK);
}

/* An identity beyond the bounds is ignored. */
TEST(what_a_ps_tells_is_not_trusted)
{
    struct found_run run = learn(0, "4711"); /* and what it told before is no longer so */

    tell(&run, 0, "a\nb");

    assert_int_equal(run.identity.pid, 0);
    assert_said(&run, "run of ps 1 at h1:2222, up 0 s");
}
