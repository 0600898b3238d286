/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* strptime, timegm */
/* client.c -- what a client does without a server: waits that end, names to numbers, exit codes, ps
 * that never appear. */

#include <arpa/inet.h>
#include "unit.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client_known.h"
#include "function.h"
#include "client_state.h"
#include "session_talk.h"
#include "update.h"

/* ---- a variable that is too large for one push */

static void keep_line(void *context, const char *line)
{
    char *lines = context;

    strcat(lines, line);
    strcat(lines, "\n");
}

/* Rows 0 to 5 are 1.5 MiB of ps 1. */
TEST(a_variable_too_large_for_one_push_is_said_once_when_every_grant_is_known)
{
    static char lines[2048];
    struct known known;

    know(&known);
    known.client.log = keep_line;
    known.client.log_context = lines;
    known.variable->shards[0].bytes = 3 << 19;
    known.variable->shards[1].bytes = 8;
    client_say_room(&known.client, known.variable); /* given: no session */
    struct talk talk;
    talk_join_member(&talk, 2);
    known.client.session = talk.session;
    talk_hello(&talk, 1);
    talk_greet(&talk, 1);
    client_say_room(&known.client, known.variable); /* ps 0 has not greeted */
    assert_string_equal(lines, "");
    talk_hello(&talk, 0);
    talk_greet(&talk, 0);

    client_say_rooms(&known.client);
    client_say_rooms(&known.client);

    assert_string_equal(
        lines, "w pushed whole takes 1.63 MiB of staging on ps 1, where the largest part takes "
               "0.95 MiB: push "
               "fewer of its rows at once, use more ps, or start each ps with --staging-max 4M\n");
    known.client.session = NULL;
    talk_close(&talk);
    forget(&known);
}

/* DEADLINE_EXCEEDED is the wait's own word for "still under way": its caller would wait for what it
 * no longer has. */
TEST(a_pull_that_is_over_by_its_deadline_is_not_still_under_way)
{
    struct known known;
    struct sumac_error error = {0};

    know(&known);
    const struct sumac_error late = {
        .status = SUMAC_DEADLINE_EXCEEDED,
        .reason = SUMAC_REASON_TIMED_OUT,
        .text = "ps 1 is late"};
    struct transfer *transfer = transfer_take(&known.client);
    transfer_fail(transfer, &late);

    client_unlock(&known.client);
    const enum sumac_status status = transfer_wait(transfer, "pull", 1000, &error);
    client_lock(&known.client);

    assert_int_equal(status, SUMAC_UNAVAILABLE);
    assert_int_equal(error.status, SUMAC_UNAVAILABLE);
    assert_int_equal(error.reason, SUMAC_REASON_TIMED_OUT);
    assert_string_equal(error.text, "ps 1 is late");
    assert_ptr_equal(transfer_take(&known.client), transfer); /* it was given back */
    assert_int_equal(transfer->error.status, SUMAC_OK);       /* and is another's now */
    transfer_give(transfer);
    arena_deinit(&transfer->arena);
    free(transfer);
    forget(&known);
}

TEST(a_wait_names_the_ps_that_ends_its_stream_and_why)
{
    struct known known;
    struct talk talk;
    struct sumac_error error = {0};
    const struct sumac_error end = {SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "short"};

    know(&known);
    talk_open(&talk, 2);
    talk.now_us = client_now_us();
    known.client.session = talk.session;
    known.client.peer_count = 2;
    known.client.peers[1] = (struct peer){.address = "h1:1", .heard_us = talk.now_us};
    known.client.peers[0].address = "h0:1"; /* never heard from, and not waited for */
    talk_push_to(&talk, (uint64_t)(uintptr_t)known.transfer, 2);
    talk_ended(&talk, 1, SESSION_PUSH_STREAM, &end);

    client_unlock(&known.client);
    assert_int_equal(transfer_wait(known.transfer, "push", 0, &error), SUMAC_DEADLINE_EXCEEDED);
    client_lock(&known.client);

    assert_non_null(strstr(error.text, "it waits for ps 1 at h1:1, which was last heard from "));
    assert_non_null(strstr(strstr(error.text, "; its push stream ended "), " ago: short"));
    known.client.session = NULL;
    talk_close(&talk);
    forget(&known);
}

static bool is_scarce;

static void *take_while_there_is(void *context, size_t bytes)
{
    (void)context;
    return is_scarce ? NULL : memory_heap.take(memory_heap.context, bytes);
}

/* Its session tells no push or pull what it came to: whoever waits for one would wait for ever. */
TEST(a_session_without_memory_ends_all_that_is_under_way)
{
    static char lines[512];
    const struct memory scarce = {.take = take_while_there_is, .give = memory_heap.give};
    const struct session_config config = talk_member(1);
    struct known known;

    know(&known);
    known.client.log = keep_line;
    known.client.log_context = lines;
    is_scarce = false;
    known.client.session = session_create(&config, &scarce);
    assert_non_null(known.client.session);
    is_scarce = true;
    known.client.joined = true; /* as if it were open */

    client_step(&known.client, &(struct session_event){.kind = SESSION_EVENT_START});

    assert_true(known.client.ended);
    assert_true(transfer_is_done(known.transfer));
    assert_int_equal(known.transfer->error.reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_non_null(strstr(lines, "the session ended; "));
    assert_null(strstr(lines, known.transfer->error.text)); /* the program says it */
    session_destroy(known.client.session);
    known.client.session = NULL;
    forget(&known);
}

/* Not before the thread that has the lock waits for it. */
static void *give_back(void *context)
{
    struct transfer *const transfer = context;

    client_lock(transfer->client);
    transfer_released(transfer, 0);
    client_unlock(transfer->client);
    return NULL;
}

/* A session that ends in the very step that a push is made in may have sent some of it. Whoever
 * gets the transfer next would hear of bytes that are not its own. */
TEST(a_push_that_came_to_nothing_is_dropped_when_its_bytes_are_given_back)
{
    struct known known;
    pthread_t other;

    know(&known);
    rpc_init();
    assert_int_equal(rpc_poller_create(&known.client.poller), SUMAC_OK);
    known.client.wake_us = NEVER_US;
    struct transfer *const transfer = transfer_take(&known.client);
    atomic_store(&transfer->lent, 1);
    assert_int_equal(pthread_create(&other, NULL, give_back, transfer), 0);

    transfer_drop(transfer);

    assert_int_equal(atomic_load(&transfer->lent), 0);
    assert_ptr_equal(known.client.free_transfers, transfer);
    known.client.free_transfers = NULL;
    pthread_join(other, NULL);
    arena_deinit(&transfer->arena);
    free(transfer);
    rpc_poller_destroy(known.client.poller);
    rpc_deinit();
    forget(&known);
}

/* Its caller would overwrite what is still to go out. */
TEST(a_push_is_not_over_while_its_bytes_are_lent)
{
    struct known known;

    know(&known);
    known.transfer->over = true;
    atomic_store(&known.transfer->lent, 2);

    transfer_released(known.transfer, 0);
    assert_false(transfer_is_done(known.transfer));
    transfer_released(known.transfer, 0);

    assert_true(transfer_is_done(known.transfer));
    forget(&known);
}

/* ---- names to numbers */

/* In a client that has heard of no function beside the table's. */
static enum sumac_status encode_locked(
    const struct sumac_function *function, struct arena *arena, wire_function **made,
    struct sumac_error *error)
{
    struct sumac_client client = {.wake_us = 0};

    client_lock(&client);
    const enum sumac_status status = function_encode(&client, function, arena, made, error);
    client_unlock(&client);
    return status;
}

static enum sumac_status
encode(const char *name, const char *hyperparameter, wire_function *wire, struct sumac_error *error)
{
    struct arena arena;

    arena_init(&arena, &memory_heap, 1 << 16);
    const struct sumac_function function = {
        name, {{hyperparameter, hyperparameter != NULL ? 0.5 : 0}}, NULL};
    wire_function *made = NULL;
    const enum sumac_status status = encode_locked(&function, &arena, &made, error);
    if (status == SUMAC_OK) {
        *wire = *made;
        if (made->n_hyperparameters > 0) {
            assert_int_equal(
                made->hyperparameters[0]->name,
                SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_BETA_1);
            assert_true(made->hyperparameters[0]->value == 0.5);
        }
    }
    arena_deinit(&arena);
    return status;
}

TEST(a_functions_name_is_its_number_on_the_wire)
{
    wire_function wire;

    assert_int_equal(encode("adam", "beta_1", &wire, NULL), SUMAC_OK);

    assert_int_equal(wire.function, SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM);
    assert_int_equal(wire.n_hyperparameters, 1);
    assert_int_equal(encode("assign_add", NULL, &wire, NULL), SUMAC_OK);
    assert_int_equal(wire.function, SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN_ADD);
}

TEST(an_unknown_function_is_refused_with_those_that_there_are)
{
    wire_function wire;
    struct sumac_error error;

    assert_int_equal(encode("lamb", NULL, &wire, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_FUNCTION);
    assert_string_equal(
        error.text, "there is no update function lamb; there are assign, assign_add, assign_sub, "
                    "sgd, momentum, adam, adagrad, rmsprop, adamw, ftrl, nadam, adamax, adadelta, "
                    "lion, yogi, delayed_nesterov, multiply, divide, min, max");
    assert_int_equal(encode("unspecified", NULL, &wire, &error), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(encode("Adam", NULL, &wire, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "there is no update function Adam; did you mean adam, adamw or nadam?");
}

TEST(a_hyperparameter_of_another_function_is_refused_with_its_own)
{
    wire_function wire;
    struct sumac_error error;

    assert_int_equal(encode("adam", "beta", &wire, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_BAD_HYPERPARAMETER);
    assert_string_equal(
        error.text,
        "adam has no hyperparameter beta; it has learning_rate, beta_1, beta_2, epsilon, "
        "initial_accumulator_value, bias_correction, clip_value");
    assert_int_equal(encode("sgd", "nesterov", &wire, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "sgd has no hyperparameter nesterov; it has learning_rate, clip_value");
    assert_int_equal(encode("assign_add", "lr", &wire, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "assign_add has no hyperparameter lr; it has none");
}

TEST(each_hyperparameter_has_its_own_value_wherever_it_stands)
{
    struct arena arena;
    wire_function *made = NULL;
    struct sumac_error error = {0};

    arena_init(&arena, &memory_heap, 1 << 16);
    struct sumac_function adam = SUMAC_FUNCTION("adam", {"beta_2", 0.25}); /* given */
    adam.hyperparameters[SUMAC_HYPERPARAMETERS_MAX - 1] =
        (struct sumac_hyperparameter){"epsilon", 0.75};

    assert_int_equal(encode_locked(&adam, &arena, &made, NULL), SUMAC_OK); /* when */

    assert_int_equal(made->n_hyperparameters, 2); /* then */
    assert_true(made->hyperparameters[0]->value == 0.25);
    assert_true(made->hyperparameters[1]->value == 0.75);
    assert_int_not_equal(made->hyperparameters[0]->name, made->hyperparameters[1]->name);
    adam.hyperparameters[1].value = 0.5;
    assert_int_equal(encode_locked(&adam, &arena, &made, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "a hyperparameter of adam is given without its name"));
    arena_deinit(&arena);
}

/* Hyperparameters that a loop's body writes are still there when all are created. */
TEST(functions_that_a_loop_writes_keep_their_hyperparameters)
{
    const struct sumac_function plain = SUMAC_FUNCTION("adam"); /* without a warning */
    struct sumac_function functions[3];
    struct arena arena;
    wire_function *made = NULL;

    arena_init(&arena, &memory_heap, 1 << 16);
    for (int i = 0; i < 3; i++) /* given */
        functions[i] = SUMAC_FUNCTION("adam", {"learning_rate", i}, {"beta_1", 0.5});

    for (int i = 0; i < 3; i++) {
        assert_int_equal(encode_locked(&functions[i], &arena, &made, NULL), SUMAC_OK); /* when */
        assert_int_equal(made->n_hyperparameters, 2);                                  /* then */
        assert_true(made->hyperparameters[0]->value == i);
    }
    assert_int_equal(encode_locked(&plain, &arena, &made, NULL), SUMAC_OK);
    assert_int_equal(made->n_hyperparameters, 0);
    arena_deinit(&arena);
}

TEST(a_variable_says_its_shards_and_makes_a_tensor_that_fits)
{
    struct known known;
    struct sumac_tensor made;
    struct sumac_error error = {0};

    know(&known);
    assert_int_equal(sumac_client_variable_shards(known.variable), 2);
    assert_int_equal(sumac_client_variable_shards(NULL), 0);
    const struct sumac_shard first = sumac_client_variable_shard(known.variable, 0);
    const struct sumac_shard second = sumac_client_variable_shard(known.variable, 1);
    assert_int_equal(first.rows.first, 0);
    assert_int_equal(second.rows.first, first.rows.count);
    assert_int_not_equal(second.ps, first.ps);
    assert_int_equal(sumac_client_variable_shard(known.variable, 2).rows.count, 0);
    assert_int_equal(sumac_client_variable_shard(NULL, 0).rows.count, 0);
    assert_int_equal(sumac_client_variable_tensor(known.variable, &made, NULL), SUMAC_OK);
    assert_int_equal(sumac_tensor_bytes(&made), 160);
    sumac_buffer_unref(made.buffer);
    assert_int_equal(sumac_client_variable_tensor(NULL, &made, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_variable_tensor: variable is NULL");
    assert_int_equal(
        sumac_client_variable_tensor(known.variable, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_variable_tensor: tensor is NULL");
    forget(&known);
}

/* ---- open, without anybody there */

/* "127.0.0.1:PORT" of a port that nobody listens on while the socket is kept. */
static int take_dead_port(char *address, size_t bytes)
{
    struct sockaddr_in any = {.sin_family = AF_INET};

    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof any;
    const int taken = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(taken, (struct sockaddr *)&any, sizeof any), 0);
    assert_int_equal(getsockname(taken, (struct sockaddr *)&any, &length), 0);
    snprintf(address, bytes, "127.0.0.1:%d", ntohs(any.sin_port));
    return taken;
}

static void drop_line(void *context, const char *line)
{
    (void)context;
    (void)line;
}

static enum sumac_status open_observer(const char *address, struct sumac_error *error)
{
    struct sumac_client *client = NULL;
    const struct sumac_client_options options = {
        .ps_addresses = &address,
        .ps_count = 1,
        .observer = true,
        .timeout_ms = 300,
        .log = drop_line};
    const enum sumac_status status = sumac_client_open(&options, &client, error);

    assert_null(client);
    return status;
}

TEST(a_ps_that_never_appears_is_named)
{
    struct sumac_error error;
    char address[32];
    const int taken = take_dead_port(address, sizeof address);

    assert_int_equal(open_observer(address, &error), SUMAC_UNAVAILABLE);

    assert_int_equal(error.reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(error.text, "ps 0 at 127.0.0.1:"));
    assert_true(sumac_exit_code(&error) >= 128);
    close(taken);
}

TEST(a_name_that_does_not_resolve_is_said)
{
    struct sumac_error error;

    assert_int_equal(open_observer("no-such-host.invalid:2222", &error), SUMAC_UNAVAILABLE);

    assert_int_equal(error.reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(error.text, "no-such-host.invalid:2222"));
}

TEST(a_cluster_without_ps_is_refused)
{
    struct sumac_error error;
    struct sumac_client *client = NULL;
    const struct sumac_client_options options = {.observer = true};

    assert_int_equal(sumac_client_open(&options, &client, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(sumac_exit_code(&error), 2);
}

TEST(a_task_that_is_no_member_is_refused)
{
    struct sumac_error error;
    struct sumac_cluster cluster;
    struct sumac_client *client = NULL;
    const char *config = "{\"cluster\": {\"ps\": [\"h0:1\"], \"worker\": [\"h1:1\"]}, "
                         "\"task\": {\"type\": \"ps\", \"index\": 0}}";

    assert_int_equal(sumac_cluster_parse(config, NULL, &cluster, &error), SUMAC_OK);
    const struct sumac_client_options options = {.cluster = &cluster};

    assert_int_equal(sumac_client_open(&options, &client, &error), SUMAC_INVALID_ARGUMENT);

    assert_non_null(strstr(error.text, "ps 0"));
    assert_non_null(
        strstr(error.text, "for a worker set TF_CONFIG's task to {\"type\": \"worker\""));
    sumac_cluster_deinit(&cluster);
}

/* Its join would take the place of the process that has the task. */
TEST(a_variable_that_no_worker_can_read_is_refused_before_the_join)
{
    struct sumac_error error;
    struct sumac_cluster cluster;
    struct sumac_client *client = NULL;
    const char *config = "{\"cluster\": {\"ps\": [\"127.0.0.1:1\"], \"worker\": [\"h1:1\"]}, "
                         "\"task\": {\"type\": \"worker\", \"index\": 0}}";

    assert_int_equal(sumac_cluster_parse(config, NULL, &cluster, &error), SUMAC_OK);
    const struct sumac_client_options options = {.cluster = &cluster, .timeout_ms = 100};
    setenv("SUMAC_SYNCHRONOUS", "yes", 1);

    assert_int_equal(sumac_client_open(&options, &client, &error), SUMAC_INVALID_ARGUMENT);

    assert_string_equal(
        error.text, "SUMAC_SYNCHRONOUS is yes; 1 asks for synchronous steps, 0 for none");
    unsetenv("SUMAC_SYNCHRONOUS");
    sumac_cluster_deinit(&cluster);
}

/* Somebody starts a worker by hand: the example is a worker's, and the short way is said. */
TEST(a_member_without_a_configuration_is_told_a_workers)
{
    struct sumac_error error;
    struct sumac_client *client = NULL;

    unsetenv("TF_CONFIG");

    assert_int_equal(sumac_client_open(NULL, &client, &error), SUMAC_INVALID_ARGUMENT);

    assert_non_null(strstr(error.text, "\"task\": {\"type\": \"worker\", \"index\": 0}}"));
    assert_non_null(strstr(error.text, "sumac run -- PROGRAM"));
    assert_int_equal(sumac_exit_code(&error), 2);
}

/* ---- a member */

/* Its place among all, and how many there are. */
static void assert_place(const char *config, uint32_t index, uint32_t count)
{
    struct sumac_error error;
    struct sumac_cluster cluster;
    struct sumac_client client = {.reader = false};

    assert_int_equal(sumac_cluster_parse(config, NULL, &cluster, &error), SUMAC_OK);

    client_find_place(&client, &cluster);

    assert_int_equal(client.member_index, index);
    assert_int_equal(client.member_count, count);
    sumac_cluster_deinit(&cluster);
}

TEST(the_chief_is_the_first_member_and_the_workers_come_after_it)
{
    assert_place(
        "{\"cluster\": {\"ps\": [\"p:1\"], \"worker\": [\"w:1\", \"w:2\"], \"chief\": [\"c:1\"]}, "
        "\"task\": {\"type\": \"worker\", \"index\": 1}}",
        2, 3);
    assert_place(
        "{\"cluster\": {\"ps\": [\"p:1\"], \"worker\": [\"w:1\", \"w:2\"], \"chief\": [\"c:1\"]}, "
        "\"task\": {\"type\": \"chief\", \"index\": 0}}",
        0, 3);
    assert_place(
        "{\"cluster\": {\"ps\": [\"p:1\"], \"worker\": [\"w:1\", \"w:2\"]}, "
        "\"task\": {\"type\": \"worker\", \"index\": 1}}",
        1, 2);
}

/* A map need not name every worker. */
TEST(of_workers_in_a_map_no_count_is_told)
{
    assert_place(
        "{\"cluster\": {\"ps\": [\"p:1\"], \"worker\": {\"3\": \"w:1\"}}, "
        "\"task\": {\"type\": \"worker\", \"index\": 3}}",
        3, 0);
}

/* ---- its lines */

static void assert_name(const struct sumac_client_options *options, const char *name)
{
    struct sumac_client client = {0};

    client_name(&client, options);
    assert_string_equal(client.who, name);
}

TEST(a_client_is_called_by_its_task_or_by_what_it_is)
{
    const struct sumac_cluster cluster = {.task_type = (char[]){"worker"}, .task_index = 12};

    assert_name(&(struct sumac_client_options){.cluster = &cluster}, "worker 12");
    assert_name(&(struct sumac_client_options){.cluster = &cluster, .observer = true}, "observer");
    assert_name(&(struct sumac_client_options){.reader = true}, "reader");
}

/* "2026-11-21T14:02:03.123Z sumac worker 0: joined". */
TEST(a_line_on_standard_error_has_its_time_and_whose_it_is)
{
    const struct sumac_client client = {.who = "worker 0"};
    char line[128] = "";
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    const int before = dup(STDERR_FILENO);
    const time_t earliest = time(NULL);
    dup2(ends[1], STDERR_FILENO);
    client_log_to_stderr((void *)(uintptr_t)&client, "joined");
    dup2(before, STDERR_FILENO);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    const time_t latest = time(NULL);

    struct tm utc = {0};
    const char *const rest = strptime(line, "%Y-%m-%dT%H:%M:%S", &utc);
    assert_non_null(rest);
    assert_in_range(timegm(&utc), earliest, latest + 1); /* time() lags by up to a tick */
    assert_int_equal(rest[0], '.');
    assert_int_equal(strspn(rest + 1, "0123456789"), 3);
    assert_string_equal(rest + 4, "Z sumac worker 0: joined\n");
    close(before);
    close(ends[0]);
    close(ends[1]);
}

/* ---- room */

/* All of its bytes on ps 1 count, those of the ps that has the least room are said, and of a
 * variable that is there no more nothing is. */
TEST(the_room_that_a_variable_takes_is_that_of_all_its_shards_on_a_ps)
{
    static char lines[2048];
    struct known known;
    struct talk talk;

    know(&known);
    known.client.log = keep_line;
    known.client.log_context = lines;
    talk_open(&talk, 2);
    known.client.session = talk.session;
    known.variable->shards[0].bytes = known.variable->shards[1].bytes = 600000;
    known.variable->shards[1].ps = 1;
    client_say_room(&known.client, known.variable);
    assert_non_null(
        strstr(lines, " MiB of staging on ps 1, where the largest part takes 0.95 MiB"));

    lines[0] = '\0';
    known.variable->shards[1].ps = 0; /* each of them has room */
    client_say_room(&known.client, known.variable);
    assert_string_equal(lines, "");

    known.variable->shards[0].bytes = 1100000; /* on ps 1 */
    known.variable->shards[1].bytes = 2000000; /* on ps 0 */
    client_say_room(&known.client, known.variable);
    assert_non_null(strstr(lines, "on ps 0, "));
    known.variable->shards[0].bytes = 3000000;
    lines[0] = '\0';
    client_say_room(&known.client, known.variable);
    assert_non_null(strstr(lines, "on ps 1, "));

    lines[0] = '\0';
    known.variable->deleted = true;
    client_say_room(&known.client, known.variable);
    assert_string_equal(lines, "");
    known.variable->deleted = false;
    known.client.session = NULL;
    talk_close(&talk);
    forget(&known);
}

/* ---- ps that are configured wrongly */

static void assert_no_open(const struct sumac_client_options *options, const char *text)
{
    struct sumac_client *client = NULL;
    struct sumac_error error = {0};

    assert_int_equal(sumac_client_open(options, &client, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, text);
    assert_null(client);
}

TEST(ps_that_are_named_twice_or_not_at_all_are_refused)
{
    const char *const twice[] = {"a:1", "b:1", "a:1"}, *const gap[] = {"a:1", ""};
    const char *const beside[] = {"b:1", "a:1", "a:1"}, *const first[] = {"a:1", "a:1"};
    struct sumac_cluster cluster;

    assert_no_open(
        &(struct sumac_client_options){
            .ps_addresses = twice, .ps_count = 3, .observer = true, .timeout_ms = 300},
        "ps_addresses has a:1 as ps 0 and as ps 2; give each ps its own address");
    assert_no_open(
        &(struct sumac_client_options){
            .ps_addresses = beside, .ps_count = 3, .observer = true, .timeout_ms = 300},
        "ps_addresses has a:1 as ps 1 and as ps 2; give each ps its own address");
    assert_no_open(
        &(struct sumac_client_options){
            .ps_addresses = first, .ps_count = 2, .observer = true, .timeout_ms = 300},
        "ps_addresses has a:1 as ps 0 and as ps 1; give each ps its own address");
    assert_no_open(
        &(struct sumac_client_options){.ps_addresses = gap, .ps_count = 2, .observer = true},
        "the address of ps 1 is missing in the configuration");
    assert_int_equal(
        sumac_cluster_parse(
            "{\"cluster\": {\"ps\": {\"0\": \"a:1\", \"2\": \"b:1\"}}}", NULL, &cluster, NULL),
        SUMAC_OK);
    assert_no_open(
        &(struct sumac_client_options){.cluster = &cluster, .reader = true},
        "the address of ps 1 is missing in the configuration");
    sumac_cluster_deinit(&cluster);
}

TEST(options_that_contradict_each_other_are_refused)
{
    const char *const address[] = {"a:1"};

    assert_no_open(
        &(struct sumac_client_options){.reader = true, .observer = true, .timeout_ms = 300},
        "a client is a reader, which has no session, or an observer, which has one; not both");
    assert_no_open(
        &(struct sumac_client_options){.ps_count = 2, .reader = true},
        "ps_count is 2, and ps_addresses is NULL");
    assert_no_open(
        &(struct sumac_client_options){
            .ps_addresses = address,
            .ps_count = 1,
            .reader = true,
            .timeout_ms = 300,
            .chunk_bytes = 63},
        "chunk_bytes is 63; it is 64 to 1048576, or 0 for 262144");
    assert_no_open(
        &(struct sumac_client_options){
            .ps_addresses = address,
            .ps_count = 1,
            .reader = true,
            .timeout_ms = 300,
            .chunk_bytes = 1048577},
        "chunk_bytes is 1048577; it is 64 to 1048576, or 0 for 262144");
}
