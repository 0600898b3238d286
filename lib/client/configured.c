/* SPDX-License-Identifier: Apache-2.0 */
/* configured.c -- what the configuration says: which ps there are, who takes part, and which of
 * them this process is; and the session that is made of it. */
#include "client_state.h"

#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "error.h"
#include "loopback.h"
#include "member_jobs.h"
#include "own_identity.h"

/* ---- the members, and this process among them */

/* Who takes part, and whether this process does. */
struct roll {
    const char **jobs, **addresses;
    uint32_t *indices;
    uint32_t count;
    bool partial; /* it was given as a map, which need not name all */
};

static bool call_roll(const struct sumac_cluster *cluster, struct roll *roll)
{
    const uint32_t count = cluster_member_count(cluster);

    roll->jobs = calloc(count + 1, sizeof *roll->jobs);
    roll->addresses = calloc(count + 1, sizeof *roll->addresses);
    roll->indices = calloc(count + 1, sizeof *roll->indices);
    if (roll->jobs == NULL || roll->addresses == NULL || roll->indices == NULL)
        return false;
    roll->partial = cluster != NULL && cluster->told_only_itself;
    for (uint32_t i = 0; cluster != NULL && i < cluster->job_count; i++) {
        const struct sumac_job *job = &cluster->jobs[i];
        roll->partial = roll->partial || job->sparse;
        const char *const member_job = cluster_member_job(job->name);
        for (uint32_t t = 0; member_job != NULL && t < job->task_count; t++) {
            assert(roll->count < count);
            roll->jobs[roll->count] = member_job;
            roll->addresses[roll->count] = job->tasks[t].address;
            roll->indices[roll->count++] = job->tasks[t].index;
        }
    }
    assert(roll->count == count); /* each member is called once */
    return true;
}

enum sumac_status
client_check_member(const struct sumac_cluster *cluster, struct sumac_error *error)
{
    if (cluster == NULL)
        return fail_argument(
            error,
            "a member needs a cluster configuration with its task; give one, or open an observer");
    if (cluster->job_count == 0 && cluster->task_type == NULL && cluster->unread_key == NULL &&
        !cluster_is_configured())
        return fail_argument(
            error,
            "no cluster is configured: start this program with `sumac run -- PROGRAM`, or set "
            "TF_CONFIG, for example to {\"cluster\": {\"ps\": [\"HOST:PORT\"], \"worker\": "
            "[\"HOST:PORT\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}");
    const enum sumac_status status = sumac_cluster_check_task(cluster, error);
    if (status != SUMAC_OK)
        return status;
    if (cluster_member_job(cluster->task_type) == NULL)
        return fail_argument(
            error,
            "task %s %" PRIu32 " is no member: only chief and worker tasks are; for a worker set "
            "TF_CONFIG's task to {\"type\": \"worker\", \"index\": N}, a ps is started with `sumac "
            "ps`, and who only reads opens an observer",
            cluster->task_type == NULL ? "(none)" : cluster->task_type, cluster->task_index);
    return SUMAC_OK;
}

void client_find_place(struct sumac_client *client, const struct sumac_cluster *cluster)
{
    assert(cluster_member_job(cluster->task_type) != NULL);
    const struct sumac_job *chiefs = cluster_members(cluster, "chief");
    const struct sumac_job *workers = sumac_cluster_job(cluster, "worker");
    const uint32_t chief_count = chiefs == NULL ? 0 : chiefs->task_count;
    const bool is_chief = strcmp(cluster_member_job(cluster->task_type), "chief") == 0;
    client->member_index = cluster->task_index + (is_chief ? 0 : chief_count);
    if (!cluster->told_only_itself && (workers == NULL || !workers->sparse))
        client->member_count = cluster_member_count(cluster);
}

/* ---- the ps */

/* One address under two indexes would be a ps that waits for itself. */
static enum sumac_status
check_addresses(const struct sumac_client_options *options, struct sumac_error *error)
{
    for (uint32_t i = 0; i < options->ps_count; i++) {
        const char *address = options->ps_addresses[i];
        const char *flaw = address_flaw(address, strlen(address));
        if (flaw != NULL)
            return fail_argument(
                error, "ps_addresses has %.256s as ps %" PRIu32 ": %s", address, i, flaw);
    }
    for (uint32_t second = 1; second < options->ps_count; second++)
        for (uint32_t first = 0; first < second; first++) {
            const char *a = options->ps_addresses[first], *b = options->ps_addresses[second];
            if (strcmp(a, b) == 0)
                return fail_argument(
                    error,
                    "ps_addresses has %s as ps %" PRIu32 " and as ps %" PRIu32
                    "; give each ps its own address",
                    a, first, second);
        }
    return SUMAC_OK;
}

/* Where they listen, by index; borrowed. */
struct ps_list {
    const char *addresses[SESSION_PS_MAX];
    uint32_t count;
};

static enum sumac_status
list_ps(const struct sumac_client_options *options, struct ps_list *list, struct sumac_error *error)
{
    const struct sumac_job *job =
        options->cluster != NULL ? sumac_cluster_job(options->cluster, "ps") : NULL;

    list->count = job != NULL ? job->tasks[job->task_count - 1].index + 1 : options->ps_count;
    if (list->count == 0)
        return fail_argument(
            error, "the cluster has no ps; add a job ps to TF_CONFIG, or give a ps address");
    if (list->count > SESSION_PS_MAX)
        return fail_argument(
            error, "the cluster has %" PRIu32 " ps, and %d are the most", list->count,
            SESSION_PS_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        const char *address = job != NULL ? sumac_cluster_address(options->cluster, "ps", i)
                                          : options->ps_addresses[i];
        if (address == NULL || address[0] == '\0')
            return fail_argument(
                error, "the address of ps %" PRIu32 " is missing in the configuration", i);
        list->addresses[i] = address;
    }
    return job != NULL ? SUMAC_OK : check_addresses(options, error);
}

/* ---- the session */

/* "worker 0": the other member that starts the ps. NULL: no member does, or this one. */
static const char *print_starter(const struct session_config *config, char *text, size_t text_bytes)
{
    for (uint32_t i = 0; i < config->member_count; i++) {
        const bool own = config->members_indices[i] == config->task &&
                         strcmp(config->members_jobs[i], config->job) == 0;
        if (strcmp(config->members_addresses[i], STARTER_ADDRESS) != 0 || own)
            continue;
        (void)text_print(
            text, text_bytes, "%s %" PRIu32, config->members_jobs[i], config->members_indices[i]);
        return text;
    }
    return NULL;
}

/* NULL: no memory. */
static struct session *make_session(
    struct sumac_client *client, const struct sumac_client_options *options,
    const struct ps_list *ps, const struct roll *roll, const struct run_identity *identity)
{
    const bool member = !options->reader && !options->observer;

    assert(ps->count > 0);
    assert(roll->jobs != NULL);
    char starter[32];
    struct session_config config = {
        .reader = options->reader,
        .any_ps = options->any_ps,
        .role = member ? WIRE_ROLE_MEMBER : WIRE_ROLE_OBSERVER,
        .job = member ? cluster_member_job(options->cluster->task_type) : "",
        .task = member ? options->cluster->task_index : 0,
        .local_replicas = options->local_replicas,
        .members_jobs = roll->jobs,
        .members_indices = roll->indices,
        .members_addresses = roll->addresses,
        .identity = *identity,
        .member_count = roll->count,
        .members_partial = roll->partial,
        .step_members = options->step_options.members,
        .step_quorum = options->step_options.quorum,
        .on_loss = options->step_options.on_loss,
        .ps_addresses = ps->addresses,
        .ps_count = ps->count,
        .ps_lost_ms = client->timeout_ms,
        .chunk_bytes = options->chunk_bytes};

    config.ps_starter = print_starter(&config, starter, sizeof starter);
    if (member)
        client_find_place(client, options->cluster);
    return session_create(&config, &memory_heap);
}

/* The participants of a collective that names none. False: no memory. */
static bool keep_tasks(
    struct sumac_client *client, const struct sumac_client_options *options,
    const struct roll *roll)
{
    const bool member = !options->reader && !options->observer;

    assert(client->member_tasks == NULL);
    assert(options->cluster != NULL || roll->count == 0);
    client->own_task = UINT64_MAX;
    if (member)
        client->own_task = 2 * (uint64_t)options->cluster->task_index +
                           (strcmp(cluster_member_job(options->cluster->task_type), "chief") != 0);
    if (roll->partial || roll->count == 0)
        return true;
    client->member_tasks = calloc(roll->count, sizeof *client->member_tasks);
    if (client->member_tasks == NULL)
        return false;
    client->member_task_count = roll->count;
    for (uint32_t i = 0; i < roll->count; i++)
        client->member_tasks[i] =
            2 * (uint64_t)roll->indices[i] + (strcmp(roll->jobs[i], "chief") != 0);
    return true;
}

enum sumac_status client_make_session(
    struct sumac_client *client, const struct sumac_client_options *options,
    struct sumac_error *error)
{
    struct ps_list ps;
    struct roll roll = {.count = 0};
    struct run_identity identity;
    enum sumac_status status = list_ps(options, &ps, error);

    if (status == SUMAC_OK)
        status = own_identity(&identity, error);
    assert(client_is_locked(client));
    assert(client->session == NULL);
    if (status != SUMAC_OK)
        return status;
    if (call_roll(options->cluster, &roll) && keep_tasks(client, options, &roll))
        client->session = make_session(client, options, &ps, &roll, &identity);
    free(roll.jobs);
    free(roll.addresses);
    free(roll.indices);
    if (client->session == NULL)
        return fail_for_memory(error, "no memory for a session");
    return SUMAC_OK;
}
