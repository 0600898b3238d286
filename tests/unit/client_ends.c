/* SPDX-License-Identifier: Apache-2.0 */
/* client_ends.c -- how a client's waits, streams and processes end, and what is said then. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assert_number.h"
#include "client_played.h"

#define SOON_US 10000000u

static float value = 1;

static struct sumac_tensor over(float *memory)
{
    return (struct sumac_tensor){.memory = memory, .dtype = SUMAC_FLOAT32};
}

static void assert_says(const char *said, const char *text)
{
    if (strstr(said, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", said, text);
}

/* ---- waits */

/* The ps is asked before the time is over, and is waited for until it is. */
PLAYED_TEST(a_wait_says_for_whom_its_ps_waits)
{
    float read = 0;
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = over(&value)};
    const struct sumac_fetch fetch = {.variable = delta.variable, .into = over(&read)};
    const struct sumac_push_options options = {.synchronous = true};
    struct sumac_push *made = NULL;
    struct sumac_error error = {0};

    assert_int_equal(/* given: both streams are greeted */
                     sumac_client_pull(&played->client, &fetch, 1, NULL, NULL, NULL),
                     SUMAC_NOT_FOUND);
    played->stages = true;
    played->missing = "it waits for worker 1";
    assert_int_equal(
        sumac_client_push(&played->client, &delta, 1, &options, &made, NULL), SUMAC_OK);
    const uint64_t began_us = client_now_us();

    assert_int_equal(sumac_push_wait(made, 1000, &error), SUMAC_DEADLINE_EXCEEDED); /* when */

    assert_true(client_now_us() - began_us >= 1000000);
    assert_string_equal(
        error.text, "the synchronous push was not over within 1 s; ps 0: it waits for worker 1");
}

/* It gives up a second later than the wait at most, and knows why. */
PLAYED_TEST(a_pull_is_waited_for_until_it_has_given_up)
{
    float read = 0;
    const struct sumac_fetch fetch = {.variable = create(played, "w"), .into = over(&read)};
    struct sumac_pull *pull = NULL;

    played->mute = true;
    assert_int_equal(
        sumac_client_pull(
            &played->client, &fetch, 1, &(struct sumac_pull_options){.timeout_ms = 300}, &pull,
            NULL),
        SUMAC_OK);

    assert_int_equal(sumac_pull_wait(pull, 300, NULL), SUMAC_UNAVAILABLE);

    assert_null(played->client.live_transfers.first);
}

/* It is over, and gRPC still reads its bytes. */
PLAYED_TEST(a_push_whose_bytes_are_lent_is_still_under_way)
{
    client_lock(&played->client);
    struct transfer *const transfer = transfer_take(&played->client);
    client_unlock(&played->client);
    transfer->over = true;
    atomic_store(&transfer->lent, 1);

    assert_int_equal(transfer_wait(transfer, "push", 50, NULL), SUMAC_DEADLINE_EXCEEDED);

    transfer_released(transfer, 0);
    assert_int_equal(transfer_wait(transfer, "push", 50, NULL), SUMAC_OK);
    assert_null(played->client.live_transfers.first);
}

static void lose_state(struct rpc_call *call, const struct wire_received *received)
{
    (void)received;
    rpc_call_finish(call, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST, "a ps was restarted");
}

PLAYED_TEST(a_leave_that_ends_the_session_says_why)
{
    struct sumac_error error = {0};

    played->sessions[WIRE_SESSIONS_LEAVE].message = lose_state;
    played->client.timeout_ms = 5000;

    assert_int_equal(
        sumac_client_leave(&played->client, SUMAC_LEAVING_DONE, &error), SUMAC_DATA_LOSS);

    assert_int_equal(error.reason, SUMAC_REASON_STATE_LOST);
    assert_int_equal(sumac_client_leave(NULL, SUMAC_LEAVING_DONE, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_leave: client is NULL");
}

/* As when the session ends in the step that its call fails in. */
static void end_session(struct rpc_call *call, const struct wire_received *received)
{
    struct sumac_client *const client = &((struct played *)rpc_call_user(call))->client;

    (void)received;
    client->end =
        (struct sumac_error){SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST, "a ps was restarted"};
    client->ended = true;
    rpc_call_finish(call, SUMAC_INTERNAL, SUMAC_REASON_UNSPECIFIED, "no");
}

PLAYED_TEST(a_call_that_fails_without_a_reason_has_that_of_the_sessions_end)
{
    struct sumac_error error = {0};

    played->variables[WIRE_VARIABLES_DELETE].message = end_session;

    assert_int_equal(sumac_client_variable_delete(&played->client, "w", &error), SUMAC_DATA_LOSS);

    assert_int_equal(error.reason, SUMAC_REASON_STATE_LOST);
    assert_string_equal(error.text, "a ps was restarted");
}

/* ---- streams */

static void count_room(void *context, const char *line)
{
    *(uint32_t *)context += strstr(line, " MiB of staging on ps 0") != NULL;
}

PLAYED_TEST(a_variable_that_is_too_large_is_said_when_its_ps_has_greeted)
{
    struct sumac_client *const client = &played->client;
    struct sumac_delta delta = {.value = over(&value)};
    uint32_t lines = 0;

    played->holds_greeting = true; /* given: its room is due, as the ps has yet to greet */
    delta.variable = create(played, "w");
    client->log = count_room;
    client->log_context = &lines;
    delta.variable->shards[0].bytes = 3 << 20;
    say_held_greeting(played); /* when */

    assert_int_equal(sumac_client_push(client, &delta, 1, NULL, NULL, NULL), SUMAC_OK);

    assert_int_equal(lines, 1);
    client->log = drop_line;
}

static void note_closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct played *const played = rpc_call_user(call);

    (void)error;
    *(bool *)played->own = true;
}

static bool is_set(void *context) { return *(bool *)context; }

PLAYED_TEST(a_client_that_leaves_ends_its_streams)
{
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = over(&value)};
    bool closed = false;

    played->own = &closed;
    played->transfers[WIRE_TRANSFER_PUSH].closed = note_closed;
    assert_int_equal(sumac_client_push(&played->client, &delta, 1, NULL, NULL, NULL), SUMAC_OK);
    assert_false(closed);

    assert_int_equal(sumac_client_leave(&played->client, SUMAC_LEAVING_DONE, NULL), SUMAC_OK);

    client_lock(&played->client);
    assert_true(client_wait(&played->client, is_set, &closed, client_now_us() + SOON_US));
    client_unlock(&played->client);
    played->transfers[WIRE_TRANSFER_PUSH].closed = NULL;
}

/* A greeting, and then the values of a pull. */
struct values {
    bool greets;
    uint64_t asked, version;
    float value;
};

static void say_values(struct rpc_call *call)
{
    struct values *const values = ((struct played *)rpc_call_user(call))->own;
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    wire_greeting greeting = WIRE_GREETING_INIT;
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};

    if (!rpc_call_writable(call) || (!values->greets && values->asked == 0))
        return;
    greeting.epoch = 1;
    greeting.ps_incarnation = 100;
    greeting.cluster_id = 42;
    answer.greeting = values->greets ? &greeting : NULL;
    const struct rpc_payload payload = {
        .bytes = {.data = (const void *)&values->value, .bytes = sizeof values->value}};
    const uint32_t runs = values->asked != 0;
    if (values->asked != 0) {
        piece.bytes = sizeof values->value;
        answer.request = values->asked;
        answer.last = true;
        answer.pieces = pieces;
        answer.n_pieces = 1;
        answer.versions = &values->version;
        answer.n_versions = 1;
        answer.version_epoch = 1;
    }
    values->greets = false;
    values->asked = 0;
    rpc_call_send(call, &answer.base, &payload, runs);
}

static void answer_values(struct rpc_call *call, const struct wire_received *received)
{
    struct values *const values = ((struct played *)rpc_call_user(call))->own;
    const wire_pull_request *request = (const wire_pull_request *)received->message;

    values->greets |= request->hello != NULL;
    if (request->request != 0 && !request->cancel)
        values->asked = request->request;
    say_values(call);
}

PLAYED_TEST(a_push_is_based_on_what_was_pulled)
{
    struct values values = {.version = 0};
    float read = 0;
    const struct sumac_delta delta = {.variable = create(played, "w"), .value = over(&value)};
    const struct sumac_fetch fetch = {.variable = delta.variable, .into = over(&read)};

    played->own = &values;
    played->transfers[WIRE_TRANSFER_PULL].message = answer_values;
    played->transfers[WIRE_TRANSFER_PULL].writable = say_values;
    for (uint32_t i = 0; i < 2; i++) {
        values.version = 17 + i;
        values.value = (float)i + 0.5f;
        assert_int_equal(sumac_client_pull(&played->client, &fetch, 1, NULL, NULL, NULL), SUMAC_OK);
        assert_number_equal(read, i + 0.5);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct sumac_push_options options = {.earlier_pull = i == 0};

        assert_int_equal(
            sumac_client_push(&played->client, &delta, 1, &options, NULL, NULL), SUMAC_OK);

        assert_int_equal(played->based_on, 17 + i);
    }
}

/* ---- from its open to its close */

/* A program beside the ps, in a thread of its own. */
struct program {
    struct played *played;
    void (*run)(struct program *program);
    struct sumac_client_facts facts;
    struct sumac_error error;
    enum sumac_status status;
    char lines[512];
    atomic_bool over;
};

static void keep_line(void *context, const char *line)
{
    struct program *const program = context;
    const size_t used = strlen(program->lines);

    (void)snprintf(program->lines + used, sizeof program->lines - used, "%s\n", line);
}

static void *run_program(void *context)
{
    struct program *const program = context;

    program->run(program);
    atomic_store(&program->over, true);
    return NULL;
}

static bool is_over(void *program) { return atomic_load(&((struct program *)program)->over); }

/* The ps serves it meanwhile. */
static void run_beside(struct program *program)
{
    struct sumac_client *const ps = &program->played->client;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, run_program, program), 0);
    client_lock(ps);
    while (!client_wait(ps, is_over, program, client_now_us() + 10000))
        continue;
    client_unlock(ps);
    pthread_join(thread, NULL);
}

static enum sumac_status open_for(struct program *program, struct sumac_client **client)
{
    const char *const address = program->played->address;
    const struct sumac_client_options options = {
        .ps_addresses = &address,
        .ps_count = 1,
        .observer = true,
        .timeout_ms = 20000,
        .log = keep_line,
        .log_context = program};

    return sumac_client_open(&options, client, &program->error);
}

/* The second push is under way as the client is closed. */
static void push_and_close(struct program *program)
{
    struct sumac_client *client = NULL;
    struct sumac_client_variable *variable = NULL;
    struct sumac_push *push = NULL;
    uint64_t round = 0;

    program->status = open_for(program, &client);
    if (program->status != SUMAC_OK)
        return;
    const struct sumac_collective_options barrier = {.name = "b"};
    program->status = sumac_client_barrier(client, &barrier, &round, &program->error);
    if (program->status == SUMAC_OK)
        program->status = sumac_client_variable_find(client, "w", &variable, &program->error);
    const struct sumac_delta delta = {.variable = variable, .value = over(&value)};
    if (program->status == SUMAC_OK)
        program->status = sumac_client_push(client, &delta, 1, NULL, NULL, &program->error);
    sumac_client_describe(client, &program->facts);
    program->played->mute = true;
    if (program->status == SUMAC_OK)
        program->status = sumac_client_push(client, &delta, 1, NULL, &push, &program->error);
    sumac_client_close(client);
}

TEST(a_client_says_that_it_joined_and_may_be_closed_at_any_time)
{
    struct played *played = play();
    wire_variable variable = WIRE_VARIABLE_INIT, *variables[] = {&variable};
    wire_shard shard, *shards[1];
    wire_list_reply page = WIRE_LIST_REPLY_INIT;
    struct program *const program = calloc(1, sizeof *program);
    char joined[128];

    make_scalar(&variable, &shard, shards);
    shard.version = 20;
    variable.name = (char *)(uintptr_t) "w";
    page.variables = variables;
    page.n_variables = 1;
    played->barrier.round = 1;
    program->played = played;
    program->run = push_and_close;
    played->pages[0] = played->pages[1] = played->pages[2] = &page; /* who it is, and then "w" */

    run_beside(program);

    if (program->status != SUMAC_OK)
        fail_msg("%s", program->error.text);
    snprintf(
        joined, sizeof joined,
        "joined as observer, attempt 3, at ps 0 at %s: 1 ps, cluster 000000000000002a\n",
        played->address);
    assert_says(program->lines, joined);
    assert_number_equal(program->facts.staleness_mean, 9); /* others' of 21 to 30 */
    struct sumac_client_facts facts = {.epoch = 7};
    sumac_client_describe(NULL, &facts);
    assert_int_equal(facts.epoch, 0);
    sumac_client_describe(NULL, NULL);
    free(program);
    (void)end((void **)&played);
}

static void fail_to_open(struct program *program)
{
    struct sumac_client *client = NULL;

    program->status = open_for(program, &client);
}

/* Its open says why; there is no session that a later call could tell of. */
TEST(a_client_that_could_not_join_says_nothing_of_its_session)
{
    struct played *played = play();
    struct program *const program = calloc(1, sizeof *program);

    played->sessions[WIRE_SESSIONS_JOIN].message = lose_state;
    program->played = played;
    program->run = fail_to_open;

    run_beside(program);

    assert_int_equal(program->status, SUMAC_DATA_LOSS);
    assert_int_equal(program->error.reason, SUMAC_REASON_STATE_LOST);
    assert_null(strstr(program->lines, "the session ended"));
    assert_null(strstr(program->lines, "joined as"));
    free(program);
    (void)end((void **)&played);
}

/* ---- processes */

/* What is under way in the process that opened the client. */
struct begun {
    struct sumac_client_variable *variable;
    struct sumac_push *push;
    struct sumac_pull *pull;
    struct sumac_collective *collective;
};

/* The place of the first call that is not refused in a child, from 1; 0: all are. */
static int find_unrefused(struct sumac_client *client, const struct begun *begun)
{
    static float read;
    const struct sumac_delta delta = {.variable = begun->variable, .value = over(&value)};
    const struct sumac_fetch fetch = {.variable = begun->variable, .into = over(&read)};
    const struct sumac_tensor tensor = over(&value);
    const struct sumac_client_variable_options options = scalar("new");
    const struct sumac_collective_options barrier = {.name = "b"};
    const struct sumac_collective_options collective_options = {.name = "m"};
    struct sumac_push *push;
    struct sumac_pull *pull;
    struct sumac_collective *collective;
    struct sumac_client_variable *made;
    struct sumac_ps_facts facts;
    struct sumac_client_variable_facts described;
    struct sumac_error errors[16];
    size_t count;
    char text[160];
    const enum sumac_status statuses[16] = {
        sumac_client_push(client, &delta, 1, NULL, &push, &errors[0]),
        sumac_client_pull(client, &fetch, 1, NULL, &pull, &errors[1]),
        sumac_client_all_reduce(
            client, &collective_options, SUMAC_REDUCE_SUM, &tensor, &collective, &errors[2]),
        sumac_client_variable_create(client, &options, &made, &errors[3]),
        sumac_client_variable_create_many(client, &options, 1, &made, &errors[4]),
        sumac_client_variable_find(client, "w", &made, &errors[5]),
        sumac_client_variable_delete(client, "w", &errors[6]),
        sumac_client_define(client, "set", "value = g", 9, &errors[7]),
        sumac_client_barrier(client, &barrier, NULL, &errors[8]),
        sumac_client_list(client, NULL, 0, &count, &errors[9]),
        sumac_client_stats(client, 0, &facts, &errors[10]),
        sumac_client_leave(client, SUMAC_LEAVING_DONE, &errors[11]),
        sumac_push_wait(begun->push, 1, &errors[12]),
        sumac_pull_wait(begun->pull, 1, &errors[13]),
        sumac_collective_wait(begun->collective, 1, &errors[14]),
        sumac_client_variable_describe(begun->variable, &described, &errors[15])};

    (void)snprintf(
        text, sizeof text,
        "this client was opened by process %d, and this is its child %d: fork first, then open a "
        "client in each process",
        (int)getppid(), (int)getpid());
    for (int i = 0; i < 16; i++)
        if (statuses[i] != SUMAC_FAILED_PRECONDITION || strcmp(errors[i].text, text) != 0)
            return i + 1;
    return 0;
}

/* How a child ends that runs this; cmocka catches none of its signals. */
static int status_of_child(pid_t child)
{
    int status = -1;

    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(a_child_of_its_process_is_told_to_open_its_own)
{
    struct sumac_client_options options = {0};
    struct played *played = join_as(
        "{\"cluster\": {\"ps\": [\"PS\"], \"worker\": [\"w:1\", \"w:2\"]}, "
        "\"task\": {\"type\": \"worker\", \"index\": 1}}",
        &options);
    struct sumac_client *const client = &played->client;
    const struct sumac_collective_options collective_options = {.name = "m"};
    float into = 0;
    const struct sumac_tensor tensor = over(&value);
    struct begun begun = {.variable = create(played, "w")};
    const struct sumac_delta delta = {.variable = begun.variable, .value = over(&value)};
    const struct sumac_fetch fetch = {.variable = begun.variable, .into = over(&into)};

    played->mute = true; /* given */
    assert_int_equal(sumac_client_push(client, &delta, 1, NULL, &begun.push, NULL), SUMAC_OK);
    assert_int_equal(sumac_client_pull(client, &fetch, 1, NULL, &begun.pull, NULL), SUMAC_OK);
    assert_int_equal(
        sumac_client_all_reduce(
            client, &collective_options, SUMAC_REDUCE_SUM, &tensor, &begun.collective, NULL),
        SUMAC_OK);

    const pid_t child = fork(); /* when */
    if (child == 0) {
        for (int signal_number = 1; signal_number < 32; signal_number++)
            (void)signal(signal_number, SIG_DFL);
        alarm(20);
        sumac_client_close(client); /* it is the parent's */
        _exit(find_unrefused(client, &begun));
    }

    assert_int_equal(status_of_child(child), 0); /* then */
    (void)end((void **)&played);
}

_Noreturn void __wrap_exit(int code);

/* A leak checker would take a child's copy of this process for leaks. */
_Noreturn void __wrap_exit(int code) { _exit(code); }

TEST(a_check_ends_the_program_with_what_went_wrong)
{
    static const struct sumac_error
        lost = {SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST, "a ps was restarted"},
        bare = {SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, ""},
        other = {SUMAC_NOT_FOUND, SUMAC_REASON_RUN_ENDED, "an older"},
        ended = {SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED, "the run has ended"};
    static const struct {
        enum sumac_status status;
        const struct sumac_error *error;
        const char *said;
        int exit_code;
    } rows[] = {
        {SUMAC_DATA_LOSS, &lost, ": a ps was restarted\n", 138},
        {SUMAC_UNAVAILABLE, &bare, ": UNAVAILABLE\n", 138},
        {SUMAC_INVALID_ARGUMENT, NULL, ": INVALID_ARGUMENT\n", 2},
        {SUMAC_INVALID_ARGUMENT, &other, ": an older\n", 2},
        {SUMAC_FAILED_PRECONDITION, &ended, ": the run has ended\n", 0},
        {SUMAC_OK, &lost, "", 7},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int ends[2];
        char said[256] = "";
        assert_int_equal(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDERR_FILENO);
            sumac_check(rows[i].status, rows[i].error);
            _exit(7);
        }
        close(ends[1]);
        for (ssize_t used = 0, got; (got = read(ends[0], said + used, 255 - (size_t)used)) > 0;)
            used += got;
        close(ends[0]);

        assert_int_equal(status_of_child(child), rows[i].exit_code);

        assert_says(said, rows[i].said);
        assert_int_equal(said[0] == '\0', rows[i].status == SUMAC_OK);
    }
}
