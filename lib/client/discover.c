/* SPDX-License-Identifier: Apache-2.0 */
/* discover.c -- which ps there are, and a first word with each: their List says who they are.
 *
 * A ps that is not up is asked again until the time is over; every five seconds a line names those
 * that are missing, and why. A reader needs all of them, or any one if it says so. Who joins needs
 * ps 0, which waits for the others itself; they are asked while it does, so that both sides can say
 * who is missing.
 */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "text.h"

/* What is known of one ps while it is looked for. */
struct probe {
    struct search *search;
    uint32_t ps;
    struct rpc_call *call; /* NULL: none under way */
    uint64_t again_us;
    bool found;
    struct sumac_error error; /* of the last try */
};

struct search {
    struct sumac_client *client;
    struct probe *probes;
    uint32_t count, missing;
    enum client_search until;
    bool grew;   /* a ps named more ps than were known */
    bool failed; /* what went wrong will not mend */
    uint64_t began_us, until_us;
};

enum sumac_status
client_set_peers(struct sumac_client *client, uint32_t count, struct sumac_error *error)
{
    assert(count <= SESSION_PS_MAX);
    if (count <= client->peer_count)
        return SUMAC_OK;
    struct peer *peers = realloc(client->peers, count * sizeof *peers);
    if (peers == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
            "no memory for %" PRIu32 " ps", count);
    client->peers = peers;
    for (uint32_t i = client->peer_count; i < count; i++) {
        peers[i] = (struct peer){.address = calloc(1, 1)};
        if (peers[i].address == NULL)
            return fail(
                error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
                "no memory for an address");
        client->peer_count = i + 1;
    }
    assert(client->peer_count == count);
    return SUMAC_OK;
}

/* An address that was configured stays; one that was unknown is filled in. */
bool client_set_address(struct sumac_client *client, uint32_t ps, const char *address)
{
    assert(ps < client->peer_count);
    struct peer *peer = &client->peers[ps];
    if (peer->address[0] != '\0')
        return true;
    char *copy = strdup(address);
    if (copy == NULL)
        return false;
    free(peer->address);
    peer->address = copy;
    return true;
}

/* The ps that answers says who it is, and who the others are. A member has its list from its
 * configuration: ps 0 compares it. */
static void take_list(struct probe *probe, const wire_list_reply *reply)
{
    struct search *search = probe->search;
    struct sumac_client *client = search->client;

    assert(!search->grew); /* its ps would be another one */
    assert(probe->ps < client->peer_count);
    probe->found = true;
    client->peers[probe->ps].incarnation = reply->ps_incarnation;
    client->peers[probe->ps].heard_us = client_now_us();
    if (client->cluster_id == 0)
        client->cluster_id = reply->cluster_id;
    if (reply->epoch > client->epoch)
        client->epoch = reply->epoch;
    if (client->member || search->until == CLIENT_SEARCH_JOINED ||
        reply->n_ps_addresses <= client->peer_count || reply->n_ps_addresses > SESSION_PS_MAX)
        return;
    client_hang_up(client); /* which ps the one address belongs to is known only now */
    for (uint32_t i = 0; i < client->peer_count; i++) {
        client->peers[i].address[0] = '\0';
        client->peers[i].incarnation = 0;
    }
    if (client_set_peers(client, (uint32_t)reply->n_ps_addresses, &probe->error) != SUMAC_OK)
        search->failed = true;
    assert(client->peer_count <= reply->n_ps_addresses);
    for (uint32_t i = 0; i < client->peer_count; i++)
        (void)client_set_address(client, i, reply->ps_addresses[i]);
    search->grew = true;
}

static void answered(struct rpc_call *call, const struct wire_received *received)
{
    struct probe *probe = rpc_call_user(call);

    if (!probe->search->grew)
        take_list(probe, (const wire_list_reply *)received->message);
}

static void closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct probe *probe = rpc_call_user(call);

    assert(probe->call == call); /* one at a time */
    probe->call = NULL;
    probe->again_us = client_now_us() + CALL_RETRY_MS * 1000;
    if (probe->found)
        return;
    if (error->status != SUMAC_CANCELLED) /* that is our own doing */
        probe->error = *error;
    if (error->status == SUMAC_UNIMPLEMENTED || error->status == SUMAC_INVALID_ARGUMENT)
        probe->search->failed = true; /* something else listens there */
}

static const struct rpc_handler handler = {.message = answered, .closed = closed};

static void ask(struct probe *probe, uint64_t until_us)
{
    assert(probe->call == NULL);
    struct sumac_client *client = probe->search->client;
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    struct rpc_channel *channel = client_channel(client, probe->ps, SESSION_PULL_STREAM);
    request.after_id = UINT64_MAX; /* no variables */
    if (channel == NULL || rpc_channel_call(
                               channel, WIRE_VARIABLES, WIRE_VARIABLES_LIST, &request.base,
                               until_us, false, &handler, probe, &probe->call) != SUMAC_OK) {
        probe->call = NULL;
        probe->again_us = client_now_us() + CALL_RETRY_MS * 1000;
        (void)fail(
            &probe->error, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
            "its address is not known, or there is no memory");
    }
}

/* Every ps that has not answered is being asked, or will be soon. Returns the earliest such
 * time. */
static uint64_t ask_missing(struct search *search, uint64_t until_us)
{
    uint64_t next_us = NEVER_US;
    const uint64_t now_us = client_now_us();

    search->missing = 0;
    for (uint32_t i = 0; i < search->count; i++) {
        struct probe *probe = &search->probes[i];
        if (probe->found)
            continue;
        search->missing++;
        if (probe->call == NULL && now_us >= probe->again_us)
            ask(probe, until_us);
        if (probe->call == NULL && probe->again_us < next_us)
            next_us = probe->again_us;
    }
    assert(search->missing <= search->count);
    return next_us;
}

static void report(const struct search *search)
{
    for (uint32_t i = 0; i < search->count; i++) {
        const struct probe *probe = &search->probes[i];
        if (!probe->found)
            client_log(
                search->client, "waiting for ps %" PRIu32 " at %s: %s; gives up in %s", probe->ps,
                search->client->peers[probe->ps].address,
                probe->error.status == SUMAC_OK ? "no answer yet" : probe->error.text,
                client_time_until(search->until_us).text);
    }
}

/* Something changed: one more was found, one try failed, or the search is settled. */
struct glance {
    struct search *search;
    uint32_t missing, calling;
    bool joined;
};

static struct glance look(struct search *search)
{
    struct glance glance = {.search = search, .joined = client_is_joined(search->client)};

    for (uint32_t i = 0; i < search->count; i++) {
        glance.missing += !search->probes[i].found;
        glance.calling += search->probes[i].call != NULL;
    }
    assert(glance.missing <= search->missing); /* who was found stays found */
    return glance;
}

static bool has_changed(void *context)
{
    const struct glance *before = context;
    const struct glance now = look(before->search);

    return now.missing != before->missing || now.calling != before->calling ||
           now.joined != before->joined;
}

static bool has_no_calls(void *context) { return look(context).calling == 0; }

static bool is_enough(const struct search *search)
{
    assert(search->count > 0);
    if (search->missing == 0)
        return true;
    if (search->until == CLIENT_SEARCH_FIRST)
        return search->probes[0].found;
    if (search->until == CLIENT_SEARCH_ANY)
        return search->missing < search->count;
    return search->until == CLIENT_SEARCH_JOINED && client_is_joined(search->client);
}

static void search_until(struct search *search, uint64_t until_us)
{
    struct sumac_client *client = search->client;
    uint64_t report_us = client_now_us() + REPORT_US;

    for (;;) {
        const uint64_t next_us = ask_missing(search, until_us);
        const uint64_t now_us = client_now_us();
        if (is_enough(search) || search->grew || search->failed || now_us >= until_us)
            return;
        if (now_us >= report_us) {
            report(search);
            report_us = now_us + REPORT_US;
        }
        uint64_t to_us = next_us < report_us ? next_us : report_us;
        to_us = to_us < until_us ? to_us : until_us;
        struct glance glance = look(search);
        (void)client_wait(client, has_changed, &glance, to_us);
    }
}

static enum sumac_status missing_error(const struct search *search, struct sumac_error *error)
{
    const struct text_time waited = text_time_us(client_now_us() - search->began_us);

    for (uint32_t i = 0; i < search->count; i++) {
        const struct probe *probe = &search->probes[i];
        const char *why = probe->error.status == SUMAC_OK ? "no answer" : probe->error.text;
        if (probe->found)
            continue;
        if (search->failed && probe->error.status != SUMAC_UNIMPLEMENTED &&
            probe->error.status != SUMAC_INVALID_ARGUMENT)
            continue;
        const char *address = search->client->peers[probe->ps].address;
        if (search->failed)
            return fail(
                error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
                "what listens at %s, the address of ps %" PRIu32
                ", is no ps (%.200s); check the addresses of job ps",
                address, probe->ps, why);
        return fail(
            error, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
            "ps %" PRIu32
            " at %s did not appear within %s (%.300s); start it, or correct its address",
            probe->ps, address, waited.text, why);
    }
    return fail(error, SUMAC_INTERNAL, SUMAC_REASON_UNSPECIFIED, "the search for ps failed");
}

enum sumac_status client_search(
    struct sumac_client *client, enum client_search until, uint64_t until_us, bool *grew,
    struct sumac_error *error)
{
    struct search search = {
        .client = client,
        .count = client->peer_count,
        .until = until,
        .began_us = client_now_us(),
        .until_us = until_us};

    search.probes = calloc(search.count, sizeof *search.probes);
    if (search.probes == NULL)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory to find ps");
    for (uint32_t i = 0; i < search.count; i++)
        search.probes[i] =
            (struct probe){.search = &search, .ps = i, .found = client->peers[i].incarnation != 0};
    search_until(&search, until_us);
    for (uint32_t i = 0; i < search.count; i++)
        if (search.probes[i].call != NULL)
            rpc_call_cancel(search.probes[i].call);
    (void)client_wait(client, has_no_calls, &search, NEVER_US);
    assert(has_no_calls(&search)); /* their probes go now */
    *grew = search.grew;
    /* The join that gave up names who is missing, if we know it. */
    const bool gave_up =
        client->ended && search.missing > 0 && client->end.reason == SUMAC_REASON_PS_MISSING;
    enum sumac_status status = SUMAC_OK;
    if (search.failed || gave_up || (!is_enough(&search) && !search.grew))
        status = missing_error(&search, error);
    free(search.probes);
    return status;
}

static enum sumac_status
check_addresses(const struct sumac_client_options *options, struct sumac_error *error)
{
    for (uint32_t second = 1; second < options->ps_count; second++)
        for (uint32_t first = 0; first < second; first++) {
            const char *a = options->ps_addresses[first], *b = options->ps_addresses[second];
            if (a != NULL && b != NULL && strcmp(a, b) == 0)
                return fail(
                    error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
                    "ps_addresses has %s as ps %" PRIu32 " and as ps %" PRIu32
                    "; give each ps its own address",
                    a, first, second);
        }
    return SUMAC_OK;
}

static enum sumac_status set_configured(
    struct sumac_client *client, const struct sumac_client_options *options,
    struct sumac_error *error)
{
    const struct sumac_job *job =
        options->cluster != NULL ? sumac_cluster_job(options->cluster, "ps") : NULL;
    const uint32_t count =
        job != NULL ? job->tasks[job->task_count - 1].index + 1 : options->ps_count;

    if (count == 0)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "the cluster has no ps; add a job ps to TF_CONFIG, or give a ps address");
    if (count > SESSION_PS_MAX)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "the cluster has %" PRIu32 " ps, and %d are the most", count, SESSION_PS_MAX);
    enum sumac_status status = job != NULL ? SUMAC_OK : check_addresses(options, error);
    if (status == SUMAC_OK)
        status = client_set_peers(client, count, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < count; i++) {
        const char *address = job != NULL ? sumac_cluster_address(options->cluster, "ps", i)
                                          : options->ps_addresses[i];
        if (address == NULL || address[0] == '\0')
            return fail(
                error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
                "the address of ps %" PRIu32 " is missing in the configuration", i);
        if (!client_set_address(client, i, address))
            return fail(error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory");
    }
    return status;
}

enum sumac_status client_discover(
    struct sumac_client *client, const struct sumac_client_options *options,
    struct sumac_error *error)
{
    assert(client_is_locked(client));
    assert(client->session == NULL);
    const uint64_t until_us = client_now_us() + (uint64_t)client->timeout_ms * 1000;
    enum sumac_status status = set_configured(client, options, error);
    const enum client_search until = !options->reader  ? CLIENT_SEARCH_FIRST
                                     : options->any_ps ? CLIENT_SEARCH_ANY
                                                       : CLIENT_SEARCH_ALL;
    bool grew = status == SUMAC_OK;
    while (status == SUMAC_OK && grew)
        status = client_search(client, until, until_us, &grew, error);
    return status;
}
