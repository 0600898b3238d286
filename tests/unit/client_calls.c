/* SPDX-License-Identifier: Apache-2.0 */
/* client_calls.c -- calls that a client waits for: how they end, when they are made again, and
 * which thread polls. */

#include "unit.h"
#include <pthread.h>

#include "client_state.h"

/* A client and a server of deletes, in one thread: the client's waiting serves as well. */
struct served {
    struct sumac_client client;
    struct rpc_server *server;
    struct rpc_handler handlers[WIRE_VARIABLES_METHODS];
    unsigned calls;
    char address[32];
};

static void open_session(struct served *served, const struct memory *memory)
{
    const char *const addresses[] = {served->address};
    const struct session_config config = {
        .reader = true, .job = "", .ps_addresses = addresses, .ps_count = 1};

    served->client.session = session_create(&config, memory);
}

static void say_who_it_is(struct rpc_call *call, const struct wire_received *received)
{
    wire_list_reply reply = WIRE_LIST_REPLY_INIT;

    (void)received;
    reply.ps_incarnation = 7;
    rpc_call_send(call, &reply.base, NULL, 0);
}

static void
serve(struct served *served, void (*message)(struct rpc_call *, const struct wire_received *))
{
    const struct rpc_server_options on_any_port = {.bind_host = "127.0.0.1"};
    struct sumac_error error = {0};

    *served = (struct served){.client = {.wake_us = NEVER_US, .timeout_ms = 60000, .reader = true}};
    served->handlers[WIRE_VARIABLES_LIST].message = say_who_it_is;
    served->handlers[WIRE_VARIABLES_DELETE].message = message;
    rpc_init();
    assert_int_equal(rpc_poller_create(&served->client.poller), SUMAC_OK);
    assert_int_equal(
        rpc_server_open(served->client.poller, &on_any_port, &served->server, &error), SUMAC_OK);
    assert_int_equal(
        rpc_server_add(served->server, WIRE_VARIABLES, served->handlers, served, &error), SUMAC_OK);
    assert_int_equal(rpc_server_start(served->server, &error), SUMAC_OK);
    snprintf(
        served->address, sizeof served->address, "127.0.0.1:%u", rpc_server_port(served->server));
    open_session(served, &memory_heap);
    assert_non_null(served->client.session);
}

static enum sumac_status call_delete(
    struct served *served, void (*take)(void *context, const wire_message *message),
    struct sumac_error *error)
{
    const wire_delete_request request = WIRE_DELETE_REQUEST_INIT;
    const struct client_call call = {
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_DELETE,
        .request = &request.base,
        .take = take,
        .context = served};

    client_lock(&served->client);
    assert_int_equal(client_join(&served->client, NULL), SUMAC_OK);
    const enum sumac_status status = client_call(&served->client, &call, error);
    client_hang_up(&served->client);
    client_unlock(&served->client);
    return status;
}

static void stop_serving(struct served *served)
{
    struct session *const session = served->client.session;

    served->client.session = NULL; /* what still comes is nobody's */
    rpc_server_close(served->server);
    rpc_poller_destroy(served->client.poller);
    rpc_deinit();
    session_destroy(session);
}

static void finish_without_an_answer(struct rpc_call *call, const struct wire_received *received)
{
    (void)received;
    rpc_call_finish(call, SUMAC_OK, SUMAC_REASON_UNSPECIFIED, NULL);
}

static void no_answer(void *context, const wire_message *message)
{
    (void)context;
    (void)message;
    fail_msg("there was an answer");
}

/* A server of somebody else's may say OK and nothing else; a delete would be taken for done. */
TEST(a_call_that_ends_well_without_an_answer_has_failed)
{
    struct served served;
    struct sumac_error error = {0};

    serve(&served, finish_without_an_answer);

    const enum sumac_status status = call_delete(&served, no_answer, &error);

    assert_int_equal(status, SUMAC_INTERNAL);
    assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    assert_non_null(strstr(error.text, served.address));
    stop_serving(&served);
}

/* As where the connection is cut, and then as it should. */
static void answer_the_second_call(struct rpc_call *call, const struct wire_received *received)
{
    struct served *const served = rpc_call_user(call);
    const wire_delete_reply reply = WIRE_DELETE_REPLY_INIT;
    (void)received;

    if (++served->calls == 1)
        rpc_call_finish(call, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, "Socket closed");
    else
        rpc_call_send(call, &reply.base, NULL, 0);
}

static void any_answer(void *context, const wire_message *message)
{
    (void)context;
    assert_ptr_equal(message->descriptor, &sumac__v1__delete_reply__descriptor);
}

TEST(a_call_that_reached_nobody_is_made_again)
{
    struct served served;
    struct sumac_error error = {0};

    serve(&served, answer_the_second_call);

    const enum sumac_status status = call_delete(&served, any_answer, &error);

    assert_int_equal(status, SUMAC_OK);
    assert_int_equal(served.calls, 2);
    stop_serving(&served);
}

/* The session ends before the thread that waits has looked. */
static void end_behind_the_answer(void *context, const wire_message *message)
{
    struct served *const served = context;
    const struct sumac_error end = {
        .status = SUMAC_DATA_LOSS, .reason = SUMAC_REASON_STATE_LOST, .text = "it was restarted"};

    (void)message;
    served->client.ended = true;
    client_fail_calls(&served->client, &end);
}

TEST(a_call_that_was_answered_stays_so_when_the_session_ends)
{
    struct served served;

    serve(&served, answer_the_second_call);

    assert_int_equal(call_delete(&served, end_behind_the_answer, NULL), SUMAC_OK);

    stop_serving(&served);
}

static void refuse_all_calls(struct rpc_call *call, const struct wire_received *received)
{
    struct served *const served = rpc_call_user(call);
    (void)received;

    served->calls++;
    rpc_call_finish(call, SUMAC_UNAVAILABLE, SUMAC_REASON_TERMINATED, "ps 0 was told to stop");
}

TEST(a_call_that_a_ps_refused_is_not_made_again)
{
    struct served served;
    struct sumac_error error = {0};

    serve(&served, refuse_all_calls);

    const enum sumac_status status = call_delete(&served, no_answer, &error);

    assert_int_equal(status, SUMAC_UNAVAILABLE);
    assert_int_equal(error.reason, SUMAC_REASON_TERMINATED);
    assert_int_equal(served.calls, 1);
    stop_serving(&served);
}

/* ---- without memory */

static unsigned takes_left;

static void *take_some(void *context, size_t bytes)
{
    (void)context;
    if (takes_left == 0)
        return NULL;
    takes_left--;
    return memory_take(&memory_heap, bytes);
}

static void give_back(void *context, void *data, size_t bytes)
{
    (void)context;
    memory_give(&memory_heap, data, bytes);
}

static void say_nothing(void *context, const char *line)
{
    (void)context;
    (void)line;
}

/* Pulls that there is a little more memory for each time, until there is some to accept one and
 * none to ask for it. */
static void exhaust(struct rpc_call *call, const struct wire_received *received)
{
    struct served *const served = rpc_call_user(call);
    uint8_t byte;
    struct transfer transfer = {.client = &served->client};
    const struct session_piece piece = {.bytes = 1, .data = &byte};
    const struct session_pull pull = {
        .token = (uintptr_t)&transfer, .pieces = &piece, .piece_count = 1};
    (void)received;

    for (int pulls = 0; pulls < 9 && !served->client.ended; pulls++) {
        transfer.over = false;
        takes_left = 1;
        client_step(
            &served->client, &(struct session_event){.kind = SESSION_EVENT_PULL, .pull = &pull});
    }
    assert_true(served->client.ended);
}

/* The session says nothing more of it then. */
TEST(a_call_of_a_session_that_ends_for_want_of_memory_is_over)
{
    const struct memory scarce = {.take = take_some, .give = give_back};
    struct served served;
    struct sumac_error error = {0};

    serve(&served, exhaust);
    served.client.log = say_nothing;
    session_destroy(served.client.session);
    takes_left = 100;
    open_session(&served, &scarce);

    const enum sumac_status status = call_delete(&served, no_answer, &error);

    assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    stop_serving(&served);
}

/* The linker hands this program's malloc to this one */

static bool is_scarce;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes) { return is_scarce ? NULL : __real_malloc(bytes); }

/* Nobody would be asked to let this client in. */
TEST(a_call_that_there_was_no_memory_for_is_made_when_there_is_some)
{
    const char *const addresses[] = {"127.0.0.1:1"};
    const struct session_config config = {
        .role = WIRE_ROLE_MEMBER, .job = "worker", .ps_addresses = addresses, .ps_count = 1};
    struct sumac_client client = {.wake_us = NEVER_US};

    client.session = session_create(&config, &memory_heap);
    assert_non_null(client.session);
    rpc_init();
    assert_int_equal(rpc_poller_create(&client.poller), SUMAC_OK);
    client_lock(&client);
    is_scarce = true;
    client_step(&client, &(struct session_event){.kind = SESSION_EVENT_START});
    is_scarce = false;
    assert_null(client.calls.first);
    assert_true(client.wake_us != NEVER_US);

    struct session_event due = {.kind = SESSION_EVENT_TICK, .now_us = client.wake_us};
    client.wake_us = 1; /* a tick that is due already */
    client_step(&client, &due);

    assert_non_null(client.calls.first);
    assert_int_equal(client.wake_us, 1); /* what the session wants next is later */
    struct session *const session = client.session;
    client.session = NULL;
    client_hang_up(&client);
    client_unlock(&client);
    rpc_poller_destroy(client.poller);
    rpc_deinit();
    session_destroy(session);
}

/* ---- who polls */

/* As an open client has it: its times are those of client_now_us. */
static void init_happened(struct sumac_client *client)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&client->happened, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static bool is_never(void *context)
{
    (void)context;
    return false;
}

static bool has_ticked(void *context)
{
    return ((const struct sumac_client *)context)->wake_us == NEVER_US;
}

static void *wait_for_tick(void *context)
{
    struct sumac_client *const client = context;

    client_lock(client);
    const bool ticked =
        client_wait(client, has_ticked, client, client_now_us() + UINT64_C(30000000));
    client_unlock(client);
    return ticked ? client : NULL;
}

/* It would sleep through what arrives, up to its own deadline. The other one can come in only while
 * this one polls, so that it sleeps first. */
TEST(when_the_thread_that_polls_is_done_another_one_that_waits_takes_its_place)
{
    struct sumac_client client = {.wake_us = NEVER_US - 1};
    pthread_t other;
    void *ticked = NULL;

    init_happened(&client);
    rpc_init();
    assert_int_equal(rpc_poller_create(&client.poller), SUMAC_OK);
    client_lock(&client);
    assert_int_equal(pthread_create(&other, NULL, wait_for_tick, &client), 0);

    while (client.waiters == 0)
        client_wait(&client, is_never, NULL, client_now_us() + 1000);
    client.wake_us = client_now_us();
    client_unlock(&client);

    assert_int_equal(pthread_join(other, &ticked), 0);
    assert_ptr_equal(ticked, &client);
    rpc_poller_destroy(client.poller);
    rpc_deinit();
    pthread_cond_destroy(&client.happened);
}

/* A thread that waits while another polls. */
struct hearer {
    struct sumac_client *client;
    struct rpc_channel *nowhere; /* a call of it fails at once, as whoever polls sees */
    unsigned asked;
    bool has_come, has_heard, is_late;
};

static void call_is_over(struct rpc_call *call, const struct sumac_error *error)
{
    (void)error;
    ((struct hearer *)rpc_call_user(call))->has_come = true;
}

static void call_nowhere(struct hearer *hearer)
{
    static const struct rpc_handler handler = {.closed = call_is_over};
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    struct rpc_call *call;

    assert_int_equal(
        rpc_channel_call(
            hearer->nowhere,
            &(struct rpc_start){
                .service = WIRE_OBSERVE,
                .method = WIRE_OBSERVE_STATS,
                .message = &request.base,
                .handler = &handler,
                .user = hearer},
            &call),
        SUMAC_OK);
}

/* It sleeps again when it has been woken once for nothing: only then something comes. */
static bool has_come(void *context)
{
    struct hearer *const hearer = context;

    if (++hearer->asked == 2)
        call_nowhere(hearer);
    return hearer->has_come;
}

static void *hear(void *context)
{
    struct hearer *const hearer = context;
    struct sumac_client *const client = hearer->client;
    const uint64_t until_us = client_now_us() + UINT64_C(20000000);

    client_lock(client);
    hearer->has_heard = client_wait(client, has_come, hearer, until_us);
    hearer->is_late = client_now_us() >= until_us;
    call_nowhere(hearer); /* so that the one that polls looks up */
    client_unlock(client);
    return NULL;
}

static bool has_heard(void *context) { return ((const struct hearer *)context)->has_heard; }

/* The one that polls waits for something else, and polls on. */
TEST(a_thread_that_does_not_poll_hears_at_once_of_what_came_for_it)
{
    struct sumac_client client = {.wake_us = NEVER_US - 1};
    struct hearer hearer = {.client = &client};
    pthread_t other;

    init_happened(&client);
    rpc_init();
    assert_int_equal(rpc_poller_create(&client.poller), SUMAC_OK);
    assert_int_equal(
        rpc_channel_open(client.poller, "unix:/nowhere/at/all", &hearer.nowhere), SUMAC_OK);
    client_lock(&client);
    assert_int_equal(pthread_create(&other, NULL, hear, &hearer), 0);

    while (client.waiters == 0)
        client_wait(&client, is_never, NULL, client_now_us() + 1000);
    (void)client_wait(&client, has_heard, &hearer, client_now_us() + UINT64_C(120000000));
    client_unlock(&client);

    assert_int_equal(pthread_join(other, NULL), 0);
    assert_true(hearer.has_heard);
    assert_false(hearer.is_late);
    rpc_channel_close(hearer.nowhere);
    rpc_poller_destroy(client.poller);
    rpc_deinit();
    pthread_cond_destroy(&client.happened);
}

static bool has_no_timer(void *context)
{
    return ((const struct sumac_client *)context)->wake_us == NEVER_US;
}

/* A thread that polls may have begun to before a shorter wait was asked for, and nothing may come
 * for it. */
TEST(a_timer_is_kept_while_another_thread_polls)
{
    struct sumac_client client = {.polling = true}; /* given */

    init_happened(&client);
    client.wake_us = client_now_us() + 1000;
    const uint64_t until_us = client_now_us() + UINT64_C(20000000);

    client_lock(&client);
    const bool kept = client_wait(&client, has_no_timer, &client, until_us); /* when */
    client.wake_us = client_now_us();
    client_poll_once(&client);
    client_unlock(&client);

    assert_true(kept); /* then */
    assert_true(has_no_timer(&client));
    pthread_cond_destroy(&client.happened);
}
