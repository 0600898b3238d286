/* SPDX-License-Identifier: Apache-2.0 */
/* find_roster.c -- asks the ps that the user named, or that were found, for all ps of their run. */
#include "roster.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "error.h"
#include "wire.h"

/* The ps that answered may list itself under another index. */
static enum sumac_status check_own_index(
    const struct roster *all, const char *address, uint32_t said, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; i < all->count && status == SUMAC_OK; i++)
        if (strcmp(all->ps[i].address, address) == 0)
            status = roster_check_index(all, i, said, error);
    return status;
}

/* Whoever of `some` answers first knows all. */
static enum sumac_status learn(struct roster *some, struct roster *all, struct sumac_error *error)
{
    struct answers answers = {0};
    enum sumac_status status = ask_who(some, true, &answers, error);

    if (status != SUMAC_OK)
        return status;
    const wire_list_reply *const reply = list_of(&answers, answers.first);
    const char *const address = some->ps[answers.first].address;
    if (reply->n_ps_addresses == 0 || reply->ps >= reply->n_ps_addresses)
        status = fail(
            error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "what answers at %s names no ps: is it one of this release?", address);
    *all = (struct roster){
        .first = reply->ps, .cluster_id = reply->cluster_id, .by_index = true, .run = some->run};
    for (size_t i = 0; i < reply->n_ps_addresses; i++)
        roster_add(all, reply->ps_addresses[i]);
    some->first = answers.first;
    if (status == SUMAC_OK)
        status = check_own_index(all, address, reply->ps, error);
    answers_deinit(&answers);
    return status;
}

static bool has_address(const struct roster *roster, const char *address)
{
    for (uint32_t i = 0; i < roster->count; i++)
        if (strcmp(roster->ps[i].address, address) == 0)
            return true;
    return false;
}

static enum sumac_status compare(
    const struct roster *some, const struct roster *all, const struct answers *answers,
    struct sumac_error *error)
{
    for (uint32_t i = 0; i < answers->count; i++) {
        const wire_list_reply *reply = list_of(answers, i);
        if (reply == NULL || reply->cluster_id == 0 || reply->cluster_id == all->cluster_id)
            continue;
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "the ps at %.200s is of cluster %016" PRIx64 ", and the one at %.200s of cluster "
            "%016" PRIx64 ": these are two runs; name the ps of one of them (--ps, or TF_CONFIG)",
            some->ps[some->first].address, all->cluster_id, some->ps[i].address, reply->cluster_id);
    }
    return SUMAC_OK;
}

/* A named ps that the run does not list is one of its ps under another address, or belongs to
 * another run. A ps that does not answer is not checked here. */
static enum sumac_status
check_named(struct roster *some, const struct roster *all, struct sumac_error *error)
{
    struct answers answers = {0};
    struct sumac_error nobody;
    uint32_t asked = 0;

    for (uint32_t i = 0; i < some->count; i++) {
        struct roster_ps *ps = &some->ps[i];
        ps->left_out = i == some->first || has_address(all, ps->address);
        asked += !ps->left_out;
    }
    if (asked == 0 || all->cluster_id == 0 || ask_who(some, false, &answers, &nobody) != SUMAC_OK)
        return SUMAC_OK;
    const enum sumac_status status = compare(some, all, &answers, error);
    answers_deinit(&answers);
    return status;
}

/* The user did not type the address: say where it came from. */
static enum sumac_status say_record(const struct found_run *run, struct sumac_error *error)
{
    const struct sumac_error why = *error;

    assert(run->pid != 0);
    return fail(
        error, why.status, why.reason, "%s; `sumac run` of %.128s, process %d, gave that address",
        why.text, run->program, (int)run->pid);
}

enum sumac_status
roster_find(const char *ps_option, struct roster *roster, struct sumac_error *error)
{
    struct roster some = {0}, all = {0};
    enum sumac_status status = find_cluster(ps_option, &some, error);

    if (status != SUMAC_OK)
        return status;
    status = learn(&some, &all, error);
    if (status != SUMAC_OK && some.run.pid != 0)
        return say_record(&some.run, error);
    if (status == SUMAC_OK)
        status = check_named(&some, &all, error);
    if (status == SUMAC_OK)
        *roster = all;
    return status;
}

/* The ps that answered first tells whose run it is. */
static void ask_whose(struct roster *roster)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct inquiry inquiry = {
        .service = WIRE_OBSERVE, .method = WIRE_OBSERVE_STATS, .request = &request.base};
    struct answers answers = {0};

    roster_leave_out_all_but(roster, roster->first);
    if (ask(roster, &inquiry, &answers, NULL) == SUMAC_OK)
        found_run_learn(
            &roster->run, (const wire_stats_reply *)(const void *)answers.replies[answers.first]);
    answers_deinit(&answers);
    for (uint32_t i = 0; i < roster->count; i++)
        roster->ps[i].left_out = false;
}

void roster_tell(struct roster *roster, bool json)
{
    char text[FOUND_RUN_TEXT_BYTES];

    if (roster->run.named && !json)
        return;
    ask_whose(roster);
    if (!roster->run.named && found_run_print(&roster->run, text)[0] != '\0')
        fprintf(stderr, "%s\n", text);
}

enum sumac_status roster_tell_and_check(struct roster *roster, bool json, struct sumac_error *error)
{
    roster_tell(roster, json);
    return found_run_check_user(&roster->run, (uint32_t)geteuid(), error);
}
