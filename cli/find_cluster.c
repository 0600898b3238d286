/* SPDX-License-Identifier: Apache-2.0 */
/* find_cluster.c -- three places to look for a run, in the order of how plainly they were said. The
 * ps that the user named, or that were found, are asked for all ps of their run. */
#define _DEFAULT_SOURCE /* strsep */
#include "roster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "address.h"
#include "alloc.h"
#include "ask.h"
#include "error.h"
#include "sumac/cluster.h"

#define REMEDY                                                                                     \
    "name a ps with --ps HOST:PORT (for another user's run, too), set TF_CONFIG, or start one "    \
    "here with `sumac run`"

static bool has_address(const struct roster *roster, const char *address)
{
    uint32_t i = 0;

    while (i < roster->count && strcmp(roster->ps[i].address, address) != 0)
        i++;
    return i < roster->count;
}

static enum sumac_status
from_option(const char *option, struct roster *roster, struct sumac_error *error)
{
    char *rest = cli_copy(option, strlen(option));

    for (char *word = strsep(&rest, ","); word != NULL; word = strsep(&rest, ",")) {
        const char *const flaw = word[0] == '\0' ? NULL : address_flaw(word, strlen(word));
        if (flaw != NULL)
            return fail_argument(error, "--ps wants HOST:PORT, not %.300s: %s", word, flaw);
        if (word[0] != '\0' && !has_address(roster, word)) /* who is named twice is asked once */
            roster_add(roster, word);
    }
    if (roster->count > 0)
        return SUMAC_OK;
    return fail_argument(error, "--ps wants HOST:PORT, not an empty word");
}

static enum sumac_status from_tf_config(struct roster *roster, struct sumac_error *error)
{
    struct sumac_cluster cluster;
    const enum sumac_status status = sumac_cluster_from_environment(NULL, &cluster, error);

    if (status != SUMAC_OK)
        return status;
    const struct sumac_job *ps = sumac_cluster_job(&cluster, "ps");
    for (uint32_t i = 0; ps != NULL && i < ps->task_count; i++)
        roster_add(roster, ps->tasks[i].address);
    sumac_cluster_deinit(&cluster);
    if (roster->count > 0)
        return SUMAC_OK;
    return fail_argument(error, "TF_CONFIG names no ps; " REMEDY);
}

static enum sumac_status
several(const struct run_record *records, uint32_t count, struct sumac_error *error)
{
    char runs[320] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < count && used + 80 < sizeof runs; i++)
        used += (size_t)snprintf(
            runs + used, sizeof runs - used, "%s--ps %s (%.40s, process %d)", i == 0 ? "" : ", ",
            records[i].ps[0], records[i].program, (int)records[i].pid);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
        "%u runs are going on on this machine; choose one: %s", count, runs);
}

static enum sumac_status from_record(struct roster *roster, struct sumac_error *error)
{
    struct run_record *records = NULL;
    uint32_t count = 0;
    const enum sumac_status status = run_record_list(&records, &count, error);

    if (status != SUMAC_OK)
        return status;
    if (count == 0)
        return fail(
            error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED,
            "you have no `sumac run` on this machine; " REMEDY);
    if (count > 1)
        return several(records, count, error);
    for (uint32_t i = 0; i < records[0].ps_count; i++)
        roster_add(roster, records[0].ps[i]);
    roster->run.pid = records[0].pid;
    (void)snprintf(roster->run.program, sizeof roster->run.program, "%s", records[0].program);
    return SUMAC_OK;
}

enum sumac_status
find_cluster(const char *ps_option, struct roster *roster, struct sumac_error *error)
{
    struct roster found = {.run = {.named = ps_option != NULL}};
    const char *config = getenv("TF_CONFIG");
    enum sumac_status status = SUMAC_OK;

    if (ps_option != NULL)
        status = from_option(ps_option, &found, error);
    else if (config != NULL && config[0] != '\0')
        status = from_tf_config(&found, error);
    else
        status = from_record(&found, error);
    if (status == SUMAC_OK)
        *roster = found;
    return status;
}

/* ---- all ps of it */

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
    for (uint32_t i = 0; i < all->count && status == SUMAC_OK; i++)
        if (strcmp(all->ps[i].address, address) == 0) /* it may list itself under another index */
            status = roster_check_index(all, i, reply->ps, error);
    answers_deinit(&answers);
    return status;
}

/* A named ps that the run does not list is one of its ps under another address, or belongs to
 * another run. A ps that does not answer is not checked here. */
static enum sumac_status
check_named(struct roster *some, const struct roster *all, struct sumac_error *error)
{
    struct answers answers = {0};
    struct sumac_error nobody;
    enum sumac_status status = SUMAC_OK;
    uint32_t asked = 0;

    for (uint32_t i = 0; i < some->count; i++) {
        struct roster_ps *ps = &some->ps[i];
        ps->left_out = i == some->first || has_address(all, ps->address);
        asked += !ps->left_out;
    }
    if (asked == 0 || all->cluster_id == 0 || ask_who(some, false, &answers, &nobody) != SUMAC_OK)
        return SUMAC_OK;
    for (uint32_t i = 0; i < answers.count && status == SUMAC_OK; i++) {
        const wire_list_reply *const reply = list_of(&answers, i);
        if (reply == NULL || reply->cluster_id == 0 || reply->cluster_id == all->cluster_id)
            continue;
        status = fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "the ps at %.200s is of cluster %016" PRIx64 ", and the one at %.200s of cluster "
            "%016" PRIx64 ": these are two runs; name the ps of one of them (--ps, or TF_CONFIG)",
            some->ps[some->first].address, all->cluster_id, some->ps[i].address, reply->cluster_id);
    }
    answers_deinit(&answers);
    return status;
}

enum sumac_status
roster_find(const char *ps_option, struct roster *roster, struct sumac_error *error)
{
    struct roster some = {0}, all = {0};
    enum sumac_status status = find_cluster(ps_option, &some, error);

    if (status != SUMAC_OK)
        return status;
    status = learn(&some, &all, error);
    if (status != SUMAC_OK && some.run.pid != 0) { /* the user did not type the address */
        const struct sumac_error why = *error;
        return fail(
            error, status, why.reason, "%s; `sumac run` of %.128s, process %d, gave that address",
            why.text, some.run.program, (int)some.run.pid);
    }
    if (status == SUMAC_OK)
        status = check_named(&some, &all, error);
    if (status == SUMAC_OK)
        *roster = all;
    return status;
}

void roster_tell(struct roster *roster, bool json)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct inquiry inquiry = {
        .service = WIRE_OBSERVE, .method = WIRE_OBSERVE_STATS, .request = &request.base};
    struct answers answers = {0};
    char text[FOUND_RUN_TEXT_BYTES];

    if (roster->run.named && !json)
        return;
    roster_leave_out_all_but(roster, roster->first); /* the ps that answered first tells it */
    if (ask(roster, &inquiry, &answers, NULL) == SUMAC_OK)
        found_run_learn(
            &roster->run, (const wire_stats_reply *)(const void *)answers.replies[answers.first]);
    answers_deinit(&answers);
    for (uint32_t i = 0; i < roster->count; i++)
        roster->ps[i].left_out = false;
    if (!roster->run.named && found_run_print(&roster->run, text)[0] != '\0')
        fprintf(stderr, "%s\n", text);
}

/* ---- a session in it */

enum sumac_status roster_open(
    const struct roster *roster, struct sumac_client_options options, struct sumac_client **client,
    struct sumac_error *error)
{
    const char *const address = roster->ps[roster->first].address;

    options.ps_addresses = &address;
    options.ps_count = 1;
    return sumac_client_open(&options, client, error);
}

static void say_nothing(void *context, const char *line)
{
    (void)context;
    (void)line;
}

enum sumac_status observer_join(
    const char *ps_option, bool json, uint32_t timeout_ms, struct roster *roster,
    struct sumac_client **client, struct sumac_error *error)
{
    const struct sumac_client_options options = {
        .observer = true, .timeout_ms = timeout_ms, .log = say_nothing};
    enum sumac_status status = roster_find(ps_option, roster, error);

    if (status != SUMAC_OK)
        return status;
    roster_tell(roster, json);
    status = found_run_check_user(&roster->run, (uint32_t)geteuid(), error);
    return status == SUMAC_OK ? roster_open(roster, options, client, error) : status;
}

/* The command has done its work: a session that does not end in time ends with its lease. */
void observer_leave(struct sumac_client *client)
{
    if (client != NULL)
        (void)!sumac_client_leave(client, SUMAC_LEAVING_DONE, NULL);
    sumac_client_close(client);
}
