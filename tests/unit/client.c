/* SPDX-License-Identifier: Apache-2.0 */
/* client.c -- what a client does without a server: rows to shards, names to numbers, exit codes, ps
 * that never appear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_state.h"
#include "session_talk.h"

/* ---- rows to shards */

/* A variable "w" of float32 [10, 4], rows 0 to 5 on ps 1 and 6 to 9 on ps 0, known to a client that
 * is not open. */
struct known {
    struct sumac_client client;
    struct sumac_variable *variable;
    struct sumac_buffer *buffer;
    struct transfer *transfer;
};

static void know(struct known *known)
{
    memset(known, 0, sizeof *known);
    key_map_init(&known->client.variables_by_name, &memory_heap);
    client_lock(&known->client);
    wire_shard shards[2] = {WIRE_SHARD_INIT, WIRE_SHARD_INIT};
    shards[0].shard_id = 5;
    shards[0].ps = 1;
    shards[0].rows = 6;
    shards[0].version = 8;
    shards[1].shard_id = 6;
    shards[1].first_row = 6;
    shards[1].rows = 4;
    wire_shard *list[] = {&shards[0], &shards[1]};
    uint64_t shape[] = {10, 4};
    wire_variable wire = WIRE_VARIABLE_INIT;
    wire.name = "w";
    wire.variable_id = 3;
    wire.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    wire.n_shape = 2;
    wire.shape = shape;
    wire.n_shards = 2;
    wire.shards = list;
    known->variable = client_learn(&known->client, &wire);
    assert_non_null(known->variable);
    assert_int_equal(sumac_buffer_create(160, &known->buffer), SUMAC_OK);
    known->transfer = transfer_take(&known->client);
}

static void forget(struct known *known)
{
    transfer_give(known->transfer);
    arena_deinit(&known->transfer->arena);
    free(known->transfer);
    client_forget_variables(&known->client);
    sumac_buffer_unref(known->buffer);
    client_unlock(&known->client);
}

/* ---- a variable that is too large for one push */

static void keep_line(void *context, const char *line)
{
    char *lines = context;

    strcat(lines, line);
    strcat(lines, "\n");
}

/* Rows 0 to 5 are 1.5 MiB of ps 1. */
static void a_variable_too_large_for_one_push_is_said_once_when_every_grant_is_known(void **state)
{
    (void)state;
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
        lines, "w pushed whole takes 1.63 MiB of staging on ps 1, where a session is granted 0.95 "
               "MiB: push "
               "fewer of its rows at once, or start each ps with, for instance, --sessions-max 2 "
               "--staging-max 4M\n");
    known.client.session = NULL;
    talk_close(&talk);
    forget(&known);
}

static struct sumac_tensor tensor(const struct known *known, uint64_t rows, enum sumac_dtype dtype)
{
    return (struct sumac_tensor){
        .buffer = known->buffer, .dtype = dtype, .shape = {.rank = 2, .extent = {rows, 4}}};
}

static enum sumac_status
add(struct known *known, const struct sumac_tensor *tensor, const struct sumac_range *rows,
    struct sumac_error *error)
{
    const struct selection selection = {
        .variable = known->variable,
        .tensor = tensor,
        .has_rows = rows != NULL,
        .rows = rows != NULL ? *rows : (struct sumac_range){0},
        .verb = "push"};

    return selection_add(known->transfer, &selection, error);
}

static void a_whole_variable_has_a_piece_for_each_shard(void **state)
{
    (void)state;
    struct known known;

    know(&known);
    const struct sumac_tensor whole = tensor(&known, 10, SUMAC_FLOAT32);

    assert_int_equal(add(&known, &whole, NULL, NULL), SUMAC_OK);

    const struct session_piece *pieces = known.transfer->pieces;
    const uint8_t *data = sumac_buffer_data(known.buffer);
    assert_int_equal(known.transfer->piece_count, 2);
    assert_int_equal(pieces[0].ps, 1);
    assert_int_equal(pieces[0].shard_id, 5);
    assert_int_equal(pieces[0].based_on, 8);
    assert_int_equal(pieces[0].bytes, 96);
    assert_int_equal(pieces[1].ps, 0);
    assert_int_equal(pieces[1].bytes, 64);
    assert_int_equal(pieces[1].offset_bytes, 0);
    assert_ptr_equal(pieces[1].data, data + 96);
    forget(&known);
}

static void rows_are_split_where_the_shards_meet(void **state)
{
    (void)state;
    struct known known;

    know(&known);
    const struct sumac_tensor rows = tensor(&known, 3, SUMAC_FLOAT32);

    assert_int_equal(
        add(&known, &rows, &(struct sumac_range){.first = 5, .count = 3}, NULL), SUMAC_OK);

    const struct session_piece *pieces = known.transfer->pieces;
    assert_int_equal(known.transfer->piece_count, 2);
    assert_int_equal(pieces[0].offset_bytes, 80); /* row 5 of the first shard */
    assert_int_equal(pieces[0].bytes, 16);
    assert_int_equal(pieces[1].offset_bytes, 0); /* row 6 is row 0 of the second */
    assert_int_equal(pieces[1].bytes, 32);
    assert_ptr_equal(pieces[1].data, (uint8_t *)sumac_buffer_data(known.buffer) + 16);
    forget(&known);
}

static void a_tensor_of_another_type_is_refused_by_the_variables_name(void **state)
{
    (void)state;
    struct known known;
    struct sumac_error error;

    know(&known);
    const struct sumac_tensor wrong = tensor(&known, 10, SUMAC_INT32);

    assert_int_equal(add(&known, &wrong, NULL, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_WRONG_DATA_TYPE);
    assert_string_equal(error.text, "push of w: expected float32, given int32");
    forget(&known);
}

static void a_tensor_of_another_shape_is_refused_by_the_variables_name(void **state)
{
    (void)state;
    struct known known;
    struct sumac_error error;

    know(&known);
    const struct sumac_tensor wrong = tensor(&known, 9, SUMAC_FLOAT32);

    assert_int_equal(add(&known, &wrong, NULL, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_WRONG_SHAPE);
    assert_string_equal(error.text, "push of w: expected shape [10, 4], given [9, 4]");
    forget(&known);
}

static void rows_past_the_end_are_refused(void **state)
{
    (void)state;
    struct known known;
    struct sumac_error error;

    know(&known);
    const struct sumac_tensor rows = tensor(&known, 3, SUMAC_FLOAT32);

    assert_int_equal(
        add(&known, &rows, &(struct sumac_range){.first = 8, .count = 3}, &error),
        SUMAC_OUT_OF_RANGE);
    assert_int_equal(
        add(&known, &rows, &(struct sumac_range){.first = UINT64_MAX, .count = 3}, &error),
        SUMAC_OUT_OF_RANGE);

    assert_int_equal(known.transfer->piece_count, 0);
    forget(&known);
}

static void a_tensor_that_ends_past_its_buffer_is_refused(void **state)
{
    (void)state;
    struct known known;

    know(&known);
    struct sumac_error error = {0};
    struct sumac_tensor values = tensor(&known, 10, SUMAC_FLOAT32);
    values.offset_bytes = 16;

    assert_int_equal(add(&known, &values, NULL, &error), SUMAC_OUT_OF_RANGE);

    assert_non_null(strstr(error.text, "160 bytes begin at byte 16 of a buffer of 160"));
    forget(&known);
}

static void pulled_versions_are_what_the_next_push_is_based_on(void **state)
{
    (void)state;
    struct known known;
    const uint64_t versions[] = {9, 4};

    know(&known);
    const struct sumac_tensor whole = tensor(&known, 10, SUMAC_FLOAT32);
    assert_int_equal(add(&known, &whole, NULL, NULL), SUMAC_OK);

    transfer_note_pulled(known.transfer, versions, 2);
    known.transfer->piece_count = 0;
    assert_int_equal(add(&known, &whole, NULL, NULL), SUMAC_OK);

    assert_int_equal(known.transfer->pieces[0].based_on, 9);
    assert_int_equal(known.transfer->pieces[1].based_on, 4);
    forget(&known);
}

static void staleness_is_what_others_pushed_between_a_pull_and_a_push(void **state)
{
    (void)state;
    const uint64_t versions[] = {11, 21};
    struct known known;

    know(&known);
    struct sumac_error error;
    const struct sumac_tensor values = tensor(&known, 10, SUMAC_FLOAT32);
    assert_int_equal(add(&known, &values, NULL, &error), SUMAC_OK);
    known.client.staleness_mean = -1;
    known.transfer->pieces[0].based_on = 8;  /* 9 and 10 are others', 11 is this push */
    known.transfer->pieces[1].based_on = 20; /* nobody's but this push */

    transfer_note_pushed(known.transfer, versions, 2);

    assert_true(known.client.staleness_mean == 1);
    forget(&known);
}

/* DEADLINE_EXCEEDED is the wait's own word for "still under way": its caller would wait for what it
 * no longer has. */
static void a_pull_that_is_over_by_its_deadline_is_not_still_under_way(void **state)
{
    (void)state;
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
    transfer_give(transfer);
    arena_deinit(&transfer->arena);
    free(transfer);
    forget(&known);
}

static void a_wait_names_the_ps_that_ends_its_stream_and_why(void **state)
{
    (void)state;
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
static void a_session_without_memory_ends_all_that_is_under_way(void **state)
{
    (void)state;
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
    assert_non_null(strstr(lines, "the session ended: "));
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
static void a_push_that_came_to_nothing_is_dropped_when_its_bytes_are_given_back(void **state)
{
    (void)state;
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
static void a_push_is_not_over_while_its_bytes_are_lent(void **state)
{
    (void)state;
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

/* Of a vector of ten, whose rows are split like that. */
static void assert_not_believed(const wire_shard *shards, size_t count)
{
    struct sumac_client client = {0};
    wire_shard *list[4];
    uint64_t shape[] = {10};
    wire_variable wire = WIRE_VARIABLE_INIT;

    for (size_t i = 0; i < count; i++)
        list[i] = (wire_shard *)(uintptr_t)&shards[i];
    wire.name = "w";
    wire.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    wire.n_shape = 1;
    wire.shape = shape;
    wire.n_shards = count;
    wire.shards = list;
    client_lock(&client);

    assert_null(client_learn(&client, &wire));

    client_unlock(&client);
}

static void a_layout_with_a_gap_is_not_believed(void **state)
{
    (void)state;
    wire_shard shard = WIRE_SHARD_INIT;

    shard.rows = 9;
    assert_not_believed(&shard, 1);
}

/* The second shard ends before it begins, and the third has all rows again: the sum of all is
 * right. */
static void a_layout_that_wraps_around_is_not_believed(void **state)
{
    (void)state;
    wire_shard shards[3] = {WIRE_SHARD_INIT, WIRE_SHARD_INIT, WIRE_SHARD_INIT};

    shards[0].rows = 2;
    shards[1].first_row = 2;
    shards[1].rows = UINT64_MAX - 1;
    shards[2].rows = 10;
    assert_not_believed(shards, 3);
}

/* Its bytes would wrap around: memory for it, and what is pulled into that, would be too small. */
static void a_shape_of_more_bytes_than_there_are_is_not_believed(void **state)
{
    (void)state;
    struct sumac_client client = {0};
    uint64_t extents[] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
    wire_shard shard = WIRE_SHARD_INIT;

    shard.rows = extents[0];
    wire_shard *shards[] = {&shard};
    wire_variable wire = WIRE_VARIABLE_INIT;
    wire.name = "w";
    wire.data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    wire.n_shape = 2;
    wire.shape = extents;
    wire.n_shards = 1;
    wire.shards = shards;

    client_lock(&client);
    assert_null(client_learn(&client, &wire));
    client_unlock(&client);
    client_forget_variables(&client);
}

/* ---- names to numbers */

static enum sumac_status
encode(const char *name, const char *hyperparameter, wire_function *wire, struct sumac_error *error)
{
    struct arena arena;

    arena_init(&arena, &memory_heap, 1 << 16);
    const struct sumac_hyperparameter value = {.name = hyperparameter, .value = 0.5};
    const struct sumac_function function = {
        .name = name, .hyperparameters = &value, .hyperparameter_count = hyperparameter != NULL};
    wire_function *made = NULL;
    const enum sumac_status status = function_encode(&function, &arena, &made, error);
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

static void a_functions_name_is_its_number_on_the_wire(void **state)
{
    (void)state;
    wire_function wire;

    assert_int_equal(encode("adam", "beta_1", &wire, NULL), SUMAC_OK);

    assert_int_equal(wire.function, SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM);
    assert_int_equal(wire.n_hyperparameters, 1);
    assert_int_equal(encode("assign_add", NULL, &wire, NULL), SUMAC_OK);
    assert_int_equal(wire.function, SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN_ADD);
}

static void an_unknown_function_is_refused_with_those_that_there_are(void **state)
{
    (void)state;
    wire_function wire;
    struct sumac_error error;

    assert_int_equal(encode("adamw", NULL, &wire, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_FUNCTION);
    assert_string_equal(
        error.text, "there is no update function adamw; there are assign, assign_add, assign_sub, "
                    "sgd, momentum, adam");
    assert_int_equal(encode("unspecified", NULL, &wire, &error), SUMAC_INVALID_ARGUMENT);
}

static void a_hyperparameter_of_another_function_is_refused_with_its_own(void **state)
{
    (void)state;
    wire_function wire;
    struct sumac_error error;

    assert_int_equal(encode("adam", "beta", &wire, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(error.reason, SUMAC_REASON_BAD_HYPERPARAMETER);
    assert_string_equal(
        error.text,
        "adam has no hyperparameter beta; it has learning_rate, beta_1, beta_2, epsilon");
    assert_int_equal(encode("sgd", "nesterov", &wire, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sgd has no hyperparameter nesterov; it has learning_rate");
    assert_int_equal(encode("assign_add", "lr", &wire, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "assign_add has no hyperparameter lr; it has none");
}

/* ---- exit codes */

static int exit_code(enum sumac_status status, enum sumac_reason reason)
{
    const struct sumac_error error = {.status = status, .reason = reason};

    return sumac_exit_code(&error);
}

static void an_exit_code_says_whether_a_restart_may_help(void **state)
{
    (void)state;
    assert_int_equal(exit_code(SUMAC_OK, SUMAC_REASON_UNSPECIFIED), 0);
    assert_int_equal(sumac_exit_code(NULL), 0);
    assert_int_equal(exit_code(SUMAC_INVALID_ARGUMENT, SUMAC_REASON_WRONG_SHAPE), 2);
    assert_int_equal(exit_code(SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED), 2);
    assert_int_equal(exit_code(SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER), 2);
    assert_true(exit_code(SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING) >= 128);
    assert_true(exit_code(SUMAC_ABORTED, SUMAC_REASON_SESSION_CLOSED) >= 128);
    assert_true(exit_code(SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST) >= 128);
    assert_true(exit_code(SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT) >= 128);
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

static void a_ps_that_never_appears_is_named(void **state)
{
    (void)state;
    struct sumac_error error;
    char address[32];
    const int taken = take_dead_port(address, sizeof address);

    assert_int_equal(open_observer(address, &error), SUMAC_UNAVAILABLE);

    assert_int_equal(error.reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(error.text, "ps 0 at 127.0.0.1:"));
    assert_true(sumac_exit_code(&error) >= 128);
    close(taken);
}

static void a_name_that_does_not_resolve_is_said(void **state)
{
    (void)state;
    struct sumac_error error;

    assert_int_equal(open_observer("no-such-host.invalid:2222", &error), SUMAC_UNAVAILABLE);

    assert_int_equal(error.reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(error.text, "no-such-host.invalid:2222"));
}

static void a_cluster_without_ps_is_refused(void **state)
{
    (void)state;
    struct sumac_error error;
    struct sumac_client *client = NULL;
    const struct sumac_client_options options = {.observer = true};

    assert_int_equal(sumac_client_open(&options, &client, &error), SUMAC_INVALID_ARGUMENT);

    assert_int_equal(sumac_exit_code(&error), 2);
}

static void a_task_that_is_no_member_is_refused(void **state)
{
    (void)state;
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

/* Somebody starts a worker by hand: the example is a worker's, and the short way is said. */
static void a_member_without_a_configuration_is_told_a_workers(void **state)
{
    (void)state;
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

static void the_chief_is_the_first_member_and_the_workers_come_after_it(void **state)
{
    (void)state;
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
static void of_workers_in_a_map_no_count_is_told(void **state)
{
    (void)state;
    assert_place(
        "{\"cluster\": {\"ps\": [\"p:1\"], \"worker\": {\"3\": \"w:1\"}}, "
        "\"task\": {\"type\": \"worker\", \"index\": 3}}",
        3, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variable_too_large_for_one_push_is_said_once_when_every_grant_is_known),
        cmocka_unit_test(a_whole_variable_has_a_piece_for_each_shard),
        cmocka_unit_test(rows_are_split_where_the_shards_meet),
        cmocka_unit_test(a_tensor_of_another_type_is_refused_by_the_variables_name),
        cmocka_unit_test(a_tensor_of_another_shape_is_refused_by_the_variables_name),
        cmocka_unit_test(rows_past_the_end_are_refused),
        cmocka_unit_test(a_tensor_that_ends_past_its_buffer_is_refused),
        cmocka_unit_test(pulled_versions_are_what_the_next_push_is_based_on),
        cmocka_unit_test(staleness_is_what_others_pushed_between_a_pull_and_a_push),
        cmocka_unit_test(a_pull_that_is_over_by_its_deadline_is_not_still_under_way),
        cmocka_unit_test(a_wait_names_the_ps_that_ends_its_stream_and_why),
        cmocka_unit_test(a_push_is_not_over_while_its_bytes_are_lent),
        cmocka_unit_test(a_session_without_memory_ends_all_that_is_under_way),
        cmocka_unit_test(a_push_that_came_to_nothing_is_dropped_when_its_bytes_are_given_back),
        cmocka_unit_test(a_layout_with_a_gap_is_not_believed),
        cmocka_unit_test(a_layout_that_wraps_around_is_not_believed),
        cmocka_unit_test(a_shape_of_more_bytes_than_there_are_is_not_believed),
        cmocka_unit_test(a_functions_name_is_its_number_on_the_wire),
        cmocka_unit_test(an_unknown_function_is_refused_with_those_that_there_are),
        cmocka_unit_test(a_hyperparameter_of_another_function_is_refused_with_its_own),
        cmocka_unit_test(an_exit_code_says_whether_a_restart_may_help),
        cmocka_unit_test(a_ps_that_never_appears_is_named),
        cmocka_unit_test(a_name_that_does_not_resolve_is_said),
        cmocka_unit_test(a_cluster_without_ps_is_refused),
        cmocka_unit_test(a_task_that_is_no_member_is_refused),
        cmocka_unit_test(a_member_without_a_configuration_is_told_a_workers),
        cmocka_unit_test(the_chief_is_the_first_member_and_the_workers_come_after_it),
        cmocka_unit_test(of_workers_in_a_map_no_count_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
