/* SPDX-License-Identifier: Apache-2.0 */
/* client.c -- a client opened, left and closed. */
#include "transfer.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "error.h"
#include "own_variables.h"

#define TIMEOUT_MS 60000u

_Static_assert(SUMAC_CHUNK_BYTES_MAX == SESSION_CHUNK_BYTES_MAX, "the header says the same");

/* ---- the session */

/* The session is open, or will never be. */
static bool is_joined(void *context)
{
    const struct sumac_client *client = context;

    assert(client_is_locked(client));
    return client->joined || client->ended;
}

static void say_joined(struct sumac_client *client)
{
    assert(client->joined);
    struct session_state state;
    char replaced[REPLACED_TEXT_BYTES];
    session_read(client->session, &state);
    if (!client->reader)
        client_log(
            client,
            "joined as %s, attempt %" PRIu64 ", at ps 0 at %s: %" PRIu32 " ps, cluster %016" PRIx64
            "%s",
            client->who, state.attempt, client->peers[0].address, state.ps_count, state.cluster_id,
            wire_replaced_print(&state.replaced, replaced));
}

/* A misspelt variable would be ignored without a word. */
static void say_misspelt(struct sumac_client *client)
{
    char name[MISSPELT_VARIABLE_BYTES];
    const char *const meant = misspelt_variable(name);

    if (meant != NULL)
        client_log(client, "%s is ignored: did you mean %s?", name, meant);
}

enum sumac_status client_join(struct sumac_client *client, struct sumac_error *error)
{
    assert(client_is_locked(client));
    assert(client->session != NULL);
    if (!client->reader)
        say_misspelt(client);
    client_step(client, &(struct session_event){.kind = SESSION_EVENT_START});
    (void)client_wait(client, is_joined, client, NEVER_US);
    if (client->ended)
        return fail_again(error, &client->end);
    say_joined(client);
    return SUMAC_OK;
}

/* ---- open and close */

static struct sumac_client *make(const struct sumac_client_options *options)
{
    struct sumac_client *client = calloc(1, sizeof *client);

    if (client == NULL)
        return NULL;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->happened, &monotonic);
    pthread_cond_init(&client->quiet, &monotonic);
    pthread_condattr_destroy(&monotonic);
    client_note_process(client);
    key_map_init(&client->variables_by_name, &memory_heap);
    round_numbers_init(&client->barrier_rounds);
    round_numbers_init(&client->collective_rounds);
    client->wake_us = NEVER_US;
    client->staleness_mean = -1;
    client->timeout_ms = options->timeout_ms == 0 ? TIMEOUT_MS : options->timeout_ms;
    assert(client->timeout_ms > 0);
    client->reader = options->reader;
    client_name(client, options);
    client->log = options->log != NULL ? options->log : client_log_to_stderr;
    client->log_context = options->log != NULL ? options->log_context : client;
    if (getrandom(&client->random_state, sizeof client->random_state, 0) < 0)
        client->random_state = client_now_us() ^ (uint64_t)(uintptr_t)client;
    rpc_init();
    if (rpc_poller_create(&client->poller) != SUMAC_OK) {
        sumac_client_close(client);
        return NULL;
    }
    return client;
}

static enum sumac_status open_in(
    const struct sumac_client_options *options, struct sumac_client **client,
    struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;
    bool synchronous; /* a worker reads it, too late: it has taken the place of another by then */

    if (!options->reader && !options->observer)
        status = client_check_member(options->cluster, error);
    if (status == SUMAC_OK && !options->reader && !options->observer)
        status = synchronous_from_environment(&synchronous, error);
    if (status == SUMAC_OK)
        status = rpc_check_threads(error);
    if (status != SUMAC_OK)
        return status;
    struct sumac_client *made = make(options);
    if (made == NULL)
        return fail_for_memory(error, "no memory for a client");
    client_lock(made);
    status = client_make_session(made, options, error);
    if (status == SUMAC_OK)
        status = client_join(made, error);
    assert(status != SUMAC_OK || made->joined);
    client_unlock(made);
    if (status == SUMAC_OK && !client_start_background(made))
        status = fail_for_memory(error, "no background thread could be started");
    if (status == SUMAC_OK)
        *client = made;
    else
        sumac_client_close(made);
    return status;
}

static enum sumac_status
check_options(const struct sumac_client_options *options, struct sumac_error *error)
{
    if (options->reader && options->observer)
        return fail_argument(
            error,
            "a client is a reader, which has no session, or an observer, which has one; not both");
    if (options->ps_count > 0 && options->ps_addresses == NULL)
        return fail_argument(
            error, "ps_count is %" PRIu32 ", and ps_addresses is NULL", options->ps_count);
    if (options->chunk_bytes != 0 && (options->chunk_bytes < SUMAC_CHUNK_BYTES_MIN ||
                                      options->chunk_bytes > SUMAC_CHUNK_BYTES_MAX))
        return fail_argument(
            error, "chunk_bytes is %" PRIu32 "; it is %d to %d, or 0 for %u", options->chunk_bytes,
            SUMAC_CHUNK_BYTES_MIN, SUMAC_CHUNK_BYTES_MAX, SESSION_CHUNK_BYTES);
    return SUMAC_OK;
}

enum sumac_status sumac_client_open(
    const struct sumac_client_options *options, struct sumac_client **client,
    struct sumac_error *error)
{
    struct sumac_client_options given = {.cluster = NULL};
    struct sumac_cluster cluster = {.jobs = NULL};

    if (client == NULL)
        return fail_for_null(error, "sumac_client_open", "client");
    if (options != NULL)
        given = *options;
    enum sumac_status status = check_options(&given, error);
    if (status == SUMAC_OK && given.cluster == NULL && given.ps_addresses == NULL) {
        status = sumac_cluster_from_environment(NULL, &cluster, error);
        given.cluster = &cluster;
    }
    if (status == SUMAC_OK)
        status = open_in(&given, client, error);
    sumac_cluster_deinit(&cluster);
    return status;
}

static bool has_left(void *context)
{
    const struct sumac_client *client = context;

    assert(client_is_locked(client));
    return client->left || client->ended;
}

enum sumac_status sumac_client_leave(
    struct sumac_client *client, enum sumac_leaving leaving, struct sumac_error *error)
{
    struct session_event leave = {
        .kind = SESSION_EVENT_LEAVE, .done = leaving == SUMAC_LEAVING_DONE};

    if (leaving != SUMAC_LEAVING_UNFINISHED && leaving != SUMAC_LEAVING_DONE)
        return fail_argument(
            error,
            "leave: %d is no way to leave; give SUMAC_LEAVING_DONE or SUMAC_LEAVING_UNFINISHED",
            (int)leaving);
    enum sumac_status status =
        client_enter(client, client == NULL ? "client" : NULL, __func__, error);
    if (status != SUMAC_OK)
        return status;
    client_step(client, &leave);
    const uint64_t until_us = client_now_us() + (uint64_t)client->timeout_ms * 1000;
    if (!client_wait(client, has_left, client, until_us)) {
        char peer[192];
        status = fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "the session did not end within %s; the leave waits for %s",
            text_time_ms(client->timeout_ms).text, client_peer_text(client, 0, peer, sizeof peer));
    } else if (client->ended) {
        status = fail_again(error, &client->end);
    }
    assert(status != SUMAC_OK || client->left);
    client_unlock(client);
    return status;
}

/* gRPC's threads may still tell of bytes that were sent: wait for the last word, or leave what is
 * left to them. */
static void drop_transfers(struct sumac_client *client)
{
    assert(client->session == NULL); /* nothing lends bytes any more */
    for (int tries = 0; client->live_transfers.first != NULL && tries < 5000;) {
        struct transfer *transfer = client->live_transfers.first;
        if (atomic_load_explicit(&transfer->lent, memory_order_acquire) == 0) {
            transfer_give(transfer);
            continue;
        }
        tries++;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (struct transfer *transfer = client->free_transfers, *next; transfer != NULL;
         transfer = next) {
        assert(transfer->kept == NULL); /* the reference was given back with the transfer */
        next = transfer->next;
        arena_deinit(&transfer->arena);
        free(transfer);
    }
}

void sumac_client_close(struct sumac_client *client)
{
    if (client == NULL || !client_is_here(client)) /* the connections are the parent's, too */
        return;
    client_stop_background(client);
    client_lock(client);
    struct session *session = client->session;
    client->session = NULL; /* what still comes is nobody's */
    client_hang_up(client);
    client_unlock(client);
    rpc_poller_destroy(client->poller);
    rpc_deinit();
    drop_transfers(client);
    session_destroy(session);
    client_forget_variables(client);
    round_numbers_deinit(&client->barrier_rounds);
    round_numbers_deinit(&client->collective_rounds);
    client_forget_collectives(client);
    client_forget_functions(client);
    free(client->member_tasks);
    free(client->payload);
    pthread_cond_destroy(&client->happened);
    pthread_cond_destroy(&client->quiet);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

void sumac_client_describe(struct sumac_client *client, struct sumac_client_facts *facts)
{
    struct session_state state;

    if (facts == NULL)
        return;
    *facts = (struct sumac_client_facts){0};
    if (client == NULL || !client_is_here(client))
        return;
    client_lock(client);
    assert(client->session != NULL);
    session_read(client->session, &state);
    const double staleness_mean = client->staleness_mean;
    client_unlock(client);
    *facts = (struct sumac_client_facts){
        .cluster_id = state.cluster_id,
        .epoch = state.epoch,
        .attempt = state.attempt,
        .previous_final = state.previous_final,
        .ps_count = state.ps_count,
        .lease_ms = state.lease_ms,
        .pushes_in_flight = state.pushes_in_flight,
        .contributed_step = state.last_step,
        .newest_step = state.newest_step,
        .step_options =
            {.members = state.step_members,
             .quorum = state.step_quorum,
             .on_loss = (enum sumac_on_loss)state.on_loss,
             .deadline_ms = state.step_deadline_ms},
        .member_index = client->member_index,
        .member_count = client->member_count,
        .staleness_mean = staleness_mean > 0 ? staleness_mean : 0};
}
