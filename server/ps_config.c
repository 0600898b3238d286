/* SPDX-License-Identifier: Apache-2.0 */
/* ps_config.c -- options and a cluster's description, as the lane is told them. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "loopback.h"
#include "member_jobs.h"
#include "own_identity.h"
#include "plural.h"
#include "rpc.h"
#include "ps_state.h"
#include "text.h"

#define HOST_BYTES 272u

static uint32_t either_ms(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

static uint64_t either_bytes(uint64_t given, uint64_t otherwise)
{
    return given != 0 ? given : otherwise;
}

static size_t host_bytes(const char *address)
{
    const char *const colon = strrchr(address, ':');

    return colon == NULL ? strlen(address) : (size_t)(colon - address);
}

_Static_assert(PS_THREADS_MAX == COMPUTE_THREADS_MAX, "what the option takes is what the pool has");
_Static_assert(
    PS_CALLS_PER_METHOD_MAX <= WIRE_BARRIER_TASKS_MAX, "who may wait at a barrier is one of it");

/* How many ps the configuration puts on the host of this one, itself included: they share its
 * memory. */
static uint32_t ps_count_on_host(const struct sumac_cluster *cluster)
{
    const struct sumac_job *const job = sumac_cluster_job(cluster, "ps");
    const char *const own = sumac_cluster_address(cluster, "ps", cluster->task_index);
    uint32_t count = 0;

    for (uint32_t i = 0; own != NULL && job != NULL && i < job->task_count; i++) {
        const char *const other = job->tasks[i].address;
        count += host_bytes(other) == host_bytes(own) && memcmp(other, own, host_bytes(own)) == 0;
    }
    return count > 0 ? count : 1;
}

/* The chiefs and workers, whose leaving ends the run. */
static const char *const members_jobs[] = {"chief", "worker"};

/* A place for each listed member, and some for observers. */
static uint32_t default_sessions(const struct sumac_cluster *cluster)
{
    const uint32_t places = cluster_member_count(cluster) + PS_OBSERVERS_SPARE;

    return places > PS_SESSIONS_MIN ? places : PS_SESSIONS_MIN;
}

/* Those that are left by what a ps has open beside them; of very few descriptors, half. */
static uint32_t connections_possible(const struct sumac_cluster *cluster)
{
    const struct sumac_job *const job = sumac_cluster_job(cluster, "ps");
    const uint64_t all = ps_descriptors();
    const uint64_t own = PS_DESCRIPTORS_OWN + (job != NULL ? job->task_count : 0);
    const uint64_t left = all > 2 * own ? all - own : all / 2;

    return left < INT32_MAX ? (uint32_t)left : INT32_MAX;
}

static uint32_t default_connections(const struct ps_options *options)
{
    const uint64_t wanted = (uint64_t)options->sessions_max * PS_CONNECTIONS_PER_SESSION;
    const uint32_t possible = connections_possible(options->cluster);
    const uint64_t count = wanted > PS_CONNECTIONS_MIN ? wanted : PS_CONNECTIONS_MIN;

    return count < possible ? (uint32_t)count : possible;
}

static uint32_t default_calls(uint32_t sessions_max)
{
    if (sessions_max > PS_LINKS_MAX / PS_CALLS_PER_SESSION)
        return PS_LINKS_MAX;
    const uint32_t count = sessions_max * PS_CALLS_PER_SESSION;
    return count > PS_CALLS_MIN ? count : PS_CALLS_MIN;
}

/* The pool, which is half of it, takes a model that fills a good part of the memory. */
static uint64_t default_staging(const struct sumac_cluster *cluster)
{
    const uint64_t share = ps_memory_bytes() / 8 * 3 / ps_count_on_host(cluster);

    return share > PS_STAGING_BYTES_MIN ? share : PS_STAGING_BYTES_MIN;
}

void ps_options_fill(struct ps_options *options)
{
    if (options->bind_host == NULL)
        options->bind_host = "0.0.0.0";
    options->lease_ms = either_ms(options->lease_ms, 10000);
    options->rejoin_ms = either_ms(options->rejoin_ms, 10000);
    options->rejoin_first_ms = either_ms(options->rejoin_first_ms, 60000);
    options->ps_lost_ms = either_ms(options->ps_lost_ms, 60000);
    options->report_ms = either_ms(options->report_ms, 5000);
    options->terminate_ms = either_ms(options->terminate_ms, 5000);
    if (options->sessions_max == 0)
        options->sessions_max = default_sessions(options->cluster);
    if (options->connections_max == 0)
        options->connections_max = default_connections(options);
    if (options->calls_max == 0)
        options->calls_max = default_calls(options->sessions_max);
    options->streams_max = options->streams_max != 0 ? options->streams_max : 1024;
    options->staging_bytes_max =
        either_bytes(options->staging_bytes_max, default_staging(options->cluster));
    options->pulls_bytes_max = either_bytes(options->pulls_bytes_max, LANE_PULLS_BYTES_MAX);
    options->collective_bytes_max =
        either_bytes(options->collective_bytes_max, LANE_COLLECTIVE_BYTES_MAX);
    options->state_bytes_max = either_bytes(
        options->state_bytes_max, ps_memory_bytes() / 4 * 3 / ps_count_on_host(options->cluster));
    options->grpc_memory_bytes_max =
        either_bytes(options->grpc_memory_bytes_max, UINT64_C(256) << 20);
    if (options->threads == PS_THREADS_DEFAULT) {
        const uint32_t spare = ps_processors() - 1;
        options->threads = spare < 3 ? spare : 3;
    }
    assert(options->threads <= PS_THREADS_MAX);
}

static enum sumac_status take_addresses(
    const struct ps_options *options, struct ps_lane_config *config, struct sumac_error *error)
{
    const struct sumac_cluster *const cluster = options->cluster;
    const struct sumac_job *const job = sumac_cluster_job(cluster, "ps");

    config->lane.ps_addresses = config->addresses;
    config->lane.plugins = options->plugins;
    if (cluster->told_only_itself) /* the others come with the first Join */
        return SUMAC_OK;
    for (uint32_t i = 0; i < job->task_count; i++) {
        const struct sumac_task *const task = &job->tasks[i];
        if (task->index >= LANE_PS_MAX)
            return fail_argument(
                error, "TF_CONFIG has ps %u; a cluster has at most %u, numbered from 0",
                task->index, LANE_PS_MAX);
        config->addresses[task->index] = task->address;
        config->lane.ps_count = task->index + 1; /* they are in order */
    }
    return SUMAC_OK;
}

/* It is ps 0 that takes the steps. */
static enum sumac_status check_quorum(
    const struct ps_options *options, const struct lane_config *lane, struct sumac_error *error)
{
    const uint32_t listed = lane->members_partial ? 0 : lane->member_count;
    const uint32_t members = options->members != 0 ? options->members : listed;

    if (options->quorum == 0)
        return SUMAC_OK;
    if (options->loss_fails)
        return fail_argument(
            error,
            "--quorum %u does without a worker that is lost, and --on-loss fail does not; give one "
            "of the two",
            options->quorum);
    if (options->cluster->task_index == 0 && members == 0)
        return fail_argument(
            error,
            "--quorum %u, and how many members a synchronous step has is not known; list all "
            "workers in TF_CONFIG, or give --members N",
            options->quorum);
    if (members != 0 && options->quorum > members)
        return fail_argument(
            error, "--quorum %u, and a synchronous step has %u member%s; give at most as many",
            options->quorum, members, plural(members));
    return SUMAC_OK;
}

static enum sumac_status take_members(
    const struct ps_options *options, struct ps_lane_config *config, struct sumac_error *error)
{
    const uint32_t count = cluster_member_count(options->cluster);

    config->members_jobs = calloc(count + 1, sizeof *config->members_jobs);
    config->members_indices = calloc(count + 1, sizeof *config->members_indices);
    config->members_addresses = calloc(count + 1, sizeof *config->members_addresses);
    if (config->members_jobs == NULL || config->members_indices == NULL ||
        config->members_addresses == NULL)
        return fail_for_memory(error, "no memory for the names of %u members", count);
    for (size_t n = 0; n < 2; n++) {
        const struct sumac_job *const job = cluster_members(options->cluster, members_jobs[n]);
        for (uint32_t i = 0; job != NULL && i < job->task_count; i++) {
            config->members_jobs[config->lane.member_count] = members_jobs[n];
            config->members_addresses[config->lane.member_count] = job->tasks[i].address;
            config->members_indices[config->lane.member_count++] = job->tasks[i].index;
        }
    }
    for (uint32_t i = 0; i < options->cluster->job_count; i++)
        config->lane.members_partial |= options->cluster->jobs[i].sparse;
    config->lane.members_partial |= options->cluster->told_only_itself;
    if (options->members != 0 && !config->lane.members_partial && count != options->members &&
        count != 0)
        return fail_argument(
            error,
            "--members %u, and TF_CONFIG lists %u chiefs and workers; leave the option out, or "
            "give every task a TF_CONFIG with as many",
            options->members, count);
    config->lane.members_jobs = config->members_jobs;
    config->lane.members_indices = config->members_indices;
    config->lane.members_addresses = config->members_addresses;
    return check_quorum(options, &config->lane, error);
}

static enum sumac_status take_port(
    const struct ps_options *options, struct ps_lane_config *config, struct sumac_error *error)
{
    if (options->port_given) {
        config->port = options->port;
        return options->port <= 65535
                   ? SUMAC_OK
                   : fail_argument(error, "port %u: ports end at 65535", options->port);
    }
    const uint32_t index = options->cluster->task_index;
    const char *const address = sumac_cluster_address(options->cluster, "ps", index);
    const char *const colon = address != NULL ? strrchr(address, ':') : NULL;
    if (colon == NULL)
        return fail_argument(
            error, "TF_CONFIG has no address for ps %u; add it to cluster.ps", index);
    config->port = (uint32_t)strtoul(colon + 1, NULL, 10);
    return SUMAC_OK;
}

static bool is_any_host(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 || strcmp(host, "[::]") == 0;
}

/* A name would have to be looked up. */
static bool is_number(const char *host, size_t bytes)
{
    return host[0] == '[' || strspn(host, "0123456789.") >= bytes;
}

bool ps_config_listens_elsewhere(const struct ps_options *options, uint32_t port)
{
    const struct sumac_cluster *const cluster = options->cluster;
    const char *const listed = sumac_cluster_address(cluster, "ps", cluster->task_index);
    const char *const bind = options->bind_host;
    char own[HOST_BYTES];

    if (listed == NULL)
        return false;
    const size_t bytes = host_bytes(listed);
    const bool bare = strchr(bind, ':') != NULL && bind[0] != '[';
    (void)text_print(own, sizeof own, bare ? "[%s]:%u" : "%s:%u", bind, port);
    if (strtoul(listed + bytes + (listed[bytes] == ':'), NULL, 10) != port)
        return true;
    if (is_any_host(bind) || strcmp(own, listed) == 0)
        return false;
    return is_number(listed, bytes) || (loopback_is(own) && !loopback_is(listed));
}

/* That may wait at a time. */
static uint32_t calls_per_method(uint32_t calls_max)
{
    const uint32_t share = calls_max / RPC_METHOD_DIVISOR;

    assert(share > 0);
    return share < PS_CALLS_PER_METHOD_MAX ? share : PS_CALLS_PER_METHOD_MAX;
}

static void take_limits(const struct ps_options *options, struct lane_config *lane)
{
    lane->index = options->cluster->task_index;
    lane->version = sumac_version();
    lane->user = (uint32_t)geteuid();
    lane->lease_ms = options->lease_ms;
    lane->rejoin_ms = options->rejoin_ms;
    lane->rejoin_first_ms = options->rejoin_first_ms;
    lane->ps_lost_ms = options->ps_lost_ms;
    lane->report_ms = options->report_ms;
    lane->terminate_ms = options->terminate_ms;
    lane->step_members = options->members;
    lane->loss_fails = options->loss_fails;
    lane->places_by_bytes = options->places_by_bytes;
    lane->step_quorum = options->quorum;
    lane->step_deadline_ms = options->step_deadline_ms;
    lane->sessions_max = options->sessions_max;
    lane->connections_max = options->connections_max;
    lane->calls_max = options->calls_max;
    lane->barrier_tasks_max = calls_per_method(options->calls_max);
    lane->streams_max = options->calls_max / 2;
    lane->staging_bytes_max = options->staging_bytes_max;
    lane->view_bytes_max = options->view_bytes_max;
    lane->pulls_bytes_max = options->pulls_bytes_max;
    lane->collective_bytes_max = options->collective_bytes_max;
    lane->state_bytes_max = options->state_bytes_max;
    lane->grpc_memory_bytes_max = options->grpc_memory_bytes_max;
    lane->unread_answers_bytes_max = RPC_UNREAD_BYTES_MAX;
}

/* A session whose floor is smaller than any push would join, and be refused all it does. */
static enum sumac_status check_grant(const struct lane_config *lane, struct sumac_error *error)
{
    const uint64_t grant_min = PS_GRANT_BYTES_MIN;
    const uint64_t grant = lane->staging_bytes_max / 2 / lane->sessions_max;

    if (grant >= grant_min)
        return SUMAC_OK;
    return fail_argument(
        error,
        "half of --staging-max %" PRIu64 " divided by --sessions-max %u leaves each session "
        "%" PRIu64 " bytes for its pushes, and %" PRIu64
        " is the least; give a --staging-max of at least %" PRIu64 ", or fewer sessions",
        lane->staging_bytes_max, lane->sessions_max, grant, grant_min,
        2 * lane->sessions_max * grant_min);
}

/* As many as the table of links has, and two streams for each session. */
static enum sumac_status check_calls(const struct ps_options *options, struct sumac_error *error)
{
    const uint64_t wanted = (uint64_t)options->sessions_max * PS_CALLS_PER_SESSION_MIN;
    const uint64_t needed = wanted < PS_LINKS_MAX ? wanted : PS_LINKS_MAX;

    if (options->calls_max >= needed && options->calls_max <= PS_LINKS_MAX)
        return SUMAC_OK;
    return fail_argument(
        error,
        "--calls-max %u does not fit: %u sessions (--sessions-max) need at least %" PRIu64 ", and "
        "%u are the most that a ps has",
        options->calls_max, options->sessions_max, needed, PS_LINKS_MAX);
}

/* One from each other ps, and from each member. */
static uint32_t connections_needed(const struct sumac_cluster *cluster)
{
    const struct sumac_job *const ps = sumac_cluster_job(cluster, "ps");
    const uint32_t count = (ps != NULL ? ps->task_count : 0) + cluster_member_count(cluster);

    return count > 0 ? count - 1 : 0; /* but for this one */
}

static enum sumac_status
check_connections(const struct ps_options *options, struct sumac_error *error)
{
    const uint32_t possible = connections_possible(options->cluster);
    const uint32_t needed = connections_needed(options->cluster);

    if (options->connections_max < needed)
        return fail_argument(
            error,
            "--connections-max %u is fewer than the other ps, the chiefs and the workers of "
            "TF_CONFIG, which are %u together; give at least as many, and descriptors for them "
            "(ulimit -Hn)",
            options->connections_max, needed);
    if (options->connections_max <= possible)
        return SUMAC_OK;
    return fail_argument(
        error,
        "--connections-max %u is more than the %u connections that this process has descriptors "
        "for (it may have %" PRIu64 ", and uses some itself); give fewer, or raise the hard limit "
        "of open files (ulimit -Hn)",
        options->connections_max, possible, ps_descriptors());
}

enum sumac_status ps_config_make(
    const struct ps_options *options, struct ps_lane_config *config, struct sumac_error *error)
{
    memset(config, 0, sizeof *config);
    const struct sumac_cluster *const cluster = options->cluster;
    if (sumac_cluster_check_task(cluster, error) != SUMAC_OK)
        return error->status;
    if (strcmp(cluster->task_type, "ps") != 0)
        return fail_argument(
            error, "TF_CONFIG says that this task is %s %u; a ps needs task.type \"ps\"",
            cluster->task_type, cluster->task_index);
    if (cluster->task_index >= LANE_PS_MAX)
        return fail_argument(
            error, "TF_CONFIG says that this is ps %u; a cluster has at most %u, numbered from 0",
            cluster->task_index, LANE_PS_MAX);
    take_limits(options, &config->lane);
    if (check_grant(&config->lane, error) != SUMAC_OK || check_calls(options, error) != SUMAC_OK ||
        check_connections(options, error) != SUMAC_OK ||
        take_addresses(options, config, error) != SUMAC_OK ||
        take_port(options, config, error) != SUMAC_OK ||
        take_members(options, config, error) != SUMAC_OK)
        return error->status;
    return own_identity(&config->lane.identity, error);
}

void ps_config_free(struct ps_lane_config *config)
{
    free(config->members_jobs);
    free(config->members_indices);
    free(config->members_addresses);
    *config = (struct ps_lane_config){.members_jobs = NULL};
}
