/* SPDX-License-Identifier: Apache-2.0 */
/* client_reports.c -- a wait that lasts: what a client logs of it, what it asks its ps meanwhile,
 * and when it ends.
 *
 * The linker hands the clock and the wait for the network to this program: where nothing more
 * comes, the time that is waited for is there at once.
 */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "client_played.h"

#define S_US UINT64_C(1000000)
#define LOOKS 10u /* one after the other that find nothing, before time goes on */
#define LOOKS_MAX 1000000u

static atomic_uint_fast64_t stopped_us; /* the time that it is; 0: the clock's */
static unsigned quiet;
static struct transfer *lent; /* gRPC gives back a run of it when nothing more comes */

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
enum rpc_polled
__real_rpc_wait(struct rpc_poller *poller, uint64_t until_us, struct rpc_event *event);
enum rpc_polled
__wrap_rpc_wait(struct rpc_poller *poller, uint64_t until_us, struct rpc_event *event);

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    const uint64_t us = atomic_load(&stopped_us);

    if (id != CLOCK_MONOTONIC || us == 0)
        return __real_clock_gettime(id, now);
    *now = (struct timespec){.tv_sec = (time_t)(us / S_US), .tv_nsec = (long)(us % S_US) * 1000};
    return 0;
}

static uint64_t real_us(void)
{
    struct timespec now;

    (void)__real_clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * S_US + (uint64_t)now.tv_nsec / 1000;
}

enum rpc_polled
__wrap_rpc_wait(struct rpc_poller *poller, uint64_t until_us, struct rpc_event *event)
{
    const uint64_t now_us = atomic_load(&stopped_us);

    if (now_us == 0)
        return __real_rpc_wait(poller, until_us, event);
    const enum rpc_polled polled = __real_rpc_wait(poller, real_us() + 1000, event);
    quiet = polled == RPC_POLLED_NOTHING ? quiet + 1 : 0;
    if (quiet < LOOKS)
        return polled;
    quiet = 0;
    if (lent != NULL)
        transfer_released(lent, 0);
    else if (until_us != UINT64_MAX && until_us > now_us)
        atomic_store(&stopped_us, until_us);
    lent = NULL;
    return polled;
}

/* The ps follows this: its answers to a pull, to the question for whom that waits, and to a
 * push. */
struct script {
    struct played *played;
    const char *missing; /* the answer to a question; NULL: none */
    bool refuses;        /* it answers that with another error */
    bool ends;           /* it answers the pull instead */
    const char *room;    /* that a push waits for */
    bool closes;         /* the session, at the next push */
    uint64_t pull, room_due;
    /* The last question. */
    unsigned questions;
    uint32_t timeout_ms;
    size_t pieces;
    uint64_t offset_bytes;
    unsigned lines;
    char line[1024];
};

static void hear_pull(struct rpc_call *call, const struct wire_received *received)
{
    struct played *const played = rpc_call_user(call);
    struct script *const script = played->own;
    const wire_pull_request *request = (const wire_pull_request *)received->message;
    const bool asks = script->pull != 0;

    played->greets_pulls |= request->hello != NULL;
    if (request->request != 0 && !request->cancel && !asks)
        script->pull = request->request;
    if (request->request != 0 && !request->cancel && asks) {
        script->questions++;
        script->timeout_ms = request->timeout_ms;
        script->pieces = request->n_pieces;
        script->offset_bytes = request->n_pieces > 0 ? request->pieces[0]->offset_bytes : 0;
        played->missing = script->missing;
        played->asked_pull = script->ends                                 ? script->pull
                             : script->missing != NULL || script->refuses ? request->request
                                                                          : 0;
    }
    say_pulled(call);
}

static void say_of_push(struct rpc_call *call)
{
    struct script *const script = ((struct played *)rpc_call_user(call))->own;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    wire_room_wait wait = WIRE_ROOM_WAIT_INIT, *waits[] = {&wait};

    say_pushed(call);
    if (script->room_due == 0 || !rpc_call_writable(call))
        return;
    wait.sequence = script->room_due;
    wait.message = (char *)(uintptr_t)script->room;
    answer.room_waits = waits;
    answer.n_room_waits = 1;
    script->room_due = 0;
    rpc_call_send(call, &answer.base, NULL, 0);
}

static void hear_push(struct rpc_call *call, const struct wire_received *received)
{
    struct script *const script = ((struct played *)rpc_call_user(call))->own;
    const wire_push_request *request = (const wire_push_request *)received->message;

    if (script->closes && request->n_parts > 0) {
        rpc_call_finish(
            call, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_SESSION_CLOSED, "its lease ran out");
        return;
    }
    if (script->room != NULL && request->n_parts > 0)
        script->room_due = request->parts[0]->sequence;
    answer_push(call, received);
    say_of_push(call);
}

static void keep_line(void *context, const char *line)
{
    struct script *const script = context;

    script->lines++;
    (void)snprintf(script->line, sizeof script->line, "%s", line);
}

/* A ps whose streams are greeted, and that says what the script says. */
static void follow(struct script *script, struct played *played)
{
    script->played = played;
    played->own = script;
    played->transfers[WIRE_TRANSFER_PUSH].message = hear_push;
    played->transfers[WIRE_TRANSFER_PUSH].writable = say_of_push;
    played->transfers[WIRE_TRANSFER_PULL].message = hear_pull;
    played->client.log = keep_line;
    played->client.log_context = script;
}

static float value = 1, into = 7;

static struct sumac_tensor over(float *memory)
{
    return sumac_tensor_over(memory, SUMAC_FLOAT32, SUMAC_SCALAR);
}

static struct sumac_push *push(struct played *played, struct sumac_client_variable *variable)
{
    const struct sumac_delta delta = {.variable = variable, .value = over(&value)};
    struct sumac_push *made = NULL;

    assert_int_equal(sumac_client_push(&played->client, &delta, 1, NULL, &made, NULL), SUMAC_OK);
    return made;
}

static struct sumac_pull *
pull(struct played *played, struct sumac_client_variable *variable, uint32_t timeout_ms)
{
    const struct sumac_fetch fetch = {.variable = variable, .into = over(&into)};
    const struct sumac_pull_options options = {.timeout_ms = timeout_ms};
    struct sumac_pull *made = NULL;

    assert_int_equal(
        sumac_client_pull(&played->client, &fetch, 1, &options, &made, NULL), SUMAC_OK);
    return made;
}

/* The variable is found once both streams are open: from then on time is this program's. */
static struct sumac_client_variable *open_streams(struct played *played)
{
    struct sumac_client_variable *const variable = create(played, "w");

    variable->shards[0].bytes = sizeof(float);
    assert_int_equal(sumac_push_wait(push(played, variable), 0, NULL), SUMAC_OK);
    assert_int_equal(sumac_pull_wait(pull(played, variable, 0), 0, NULL), SUMAC_NOT_FOUND);
    atomic_store(&stopped_us, real_us());
    return variable;
}

static void close_streams(struct played *played)
{
    atomic_store(&stopped_us, 0);
    (void)end((void **)&played);
}

/* ---- lines */

struct row {
    bool pulls;
    uint32_t pull_ms, wait_ms;
    uint32_t late_ms; /* the wait begins so long after the pull */
    bool is_short;    /* there is no memory for the question */
    struct script script;
    const char *says[2]; /* NULL: no line */
    enum sumac_status status;
};

static const struct row rows[] = {
    {.wait_ms = 9000, .says = {"a push waits for ps 0 at ", "; gives up in 4 s"}},
    {.wait_ms = 9000,
     .script = {.room = "held by worker 1"},
     .says = {"a push waits for room (held by worker 1); gives up in 4 s", ""}},
    {.pulls = true,
     .pull_ms = 60000,
     .wait_ms = 9000,
     .says = {"a pull waits for ps 0 at ", "; gives up in 4 s"}},
    {.pulls = true, /* its own time is over first */
     .pull_ms = 8000,
     .wait_ms = 20000,
     .says = {"a pull waits for ps 0 at ", "; gives up in 3 s"},
     .status = SUMAC_UNAVAILABLE},
    {.pulls = true, /* its own time is over, and no end was said yet */
     .pull_ms = 8000,
     .wait_ms = 20000,
     .late_ms = 2350,
     .says = {"a pull waits for ps 0 at ", "; gives up in 15 s"},
     .status = SUMAC_UNAVAILABLE},
    {.pulls = true,
     .pull_ms = 60000,
     .wait_ms = 9000,
     .script = {.missing = "it waits for worker 1"},
     .says = {"a pull is not over; ps 0: it waits for worker 1; gives up in 4 s", ""}},
    {.pulls = true,
     .pull_ms = 60000,
     .wait_ms = 9000,
     .script = {.refuses = true},
     .says = {"a pull waits for ps 0 at ", "; gives up in 4 s"}},
    {.pulls = true,
     .pull_ms = 60000,
     .wait_ms = 9000,
     .is_short = true,
     .says = {"a pull waits for ps 0 at ", "; gives up in 4 s"}},
    {.pulls = true,
     .pull_ms = 60000,
     .wait_ms = 9000,
     .script = {.ends = true},
     .status = SUMAC_NOT_FOUND},
};

/* The next transfer that is taken has no memory for anything. */
static void leave_no_memory(struct sumac_client *client)
{
    client_lock(client);
    struct transfer *const transfer = transfer_take(client);
    arena_deinit(&transfer->arena);
    transfer->arena.bytes_max = 0;
    transfer_give(transfer);
    client_unlock(client);
}

static void check_row(const struct row *row, struct script *script)
{
    struct played *played = NULL;
    struct sumac_error error = {0};

    (void)begin((void **)&played);
    struct sumac_client_variable *const variable = open_streams(played);
    follow(script, played);
    played->mute = true;
    const uint64_t begun_us = client_now_us(); /* given */
    struct sumac_push *const pushed = row->pulls ? NULL : push(played, variable);
    struct sumac_pull *const pulled = row->pulls ? pull(played, variable, row->pull_ms) : NULL;
    atomic_fetch_add(&stopped_us, UINT64_C(1000) * row->late_ms);
    if (row->is_short)
        leave_no_memory(&played->client);

    const enum sumac_status status = row->pulls /* when */
                                         ? sumac_pull_wait(pulled, row->wait_ms, &error)
                                         : sumac_push_wait(pushed, row->wait_ms, &error);

    const uint64_t took_us = client_now_us() - begun_us; /* then */
    assert_int_equal(status, row->status != SUMAC_OK ? row->status : SUMAC_DEADLINE_EXCEEDED);
    if (row->script.ends) /* the wait for an answer to the question ends, too */
        assert_in_range(took_us, 5 * S_US, 5 * S_US + S_US / 2);
    close_streams(played);
}

TEST(a_wait_that_lasts_says_for_whom_and_for_how_much_longer)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script script = rows[i].script;
        check_row(&rows[i], &script);
        if (rows[i].says[0] == NULL) {
            assert_int_equal(script.lines, 0);
            continue;
        }
        if (script.lines == 0)
            fail_msg("row %zu: no line", i);
        if (script.questions > 0) { /* the shard from its end on, in half the time */
            assert_int_equal(script.pieces, 1);
            assert_int_equal(script.offset_bytes, sizeof(float));
            assert_int_equal(script.timeout_ms, 500);
        }
        if (strstr(script.line, rows[i].says[0]) == NULL ||
            strstr(script.line, rows[i].says[1]) == NULL)
            fail_msg("row %zu: \"%s\"", i, script.line);
    }
}

/* ---- rounds */

/* Nine others take part. */
TEST(a_round_that_lasts_names_the_others_and_its_own_end)
{
    static const struct {
        const char *missing;
        uint32_t timeout_ms;
        const char *line;
    } each[] = {
        {NULL, 30000,
         "a round is not over; round 1 of collective sum waits for one or more of worker 0, "
         "worker "
         "1, worker 2, worker 3, worker 4, worker 5, worker 6, worker 7, … 9 in all; see the log "
         "of each; its time is over in 25 s"},
        {"worker 3 is late", 0,
         "a round is not over; ps 0: worker 3 is late; its time is over in 55 s"}};

    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        struct sumac_client_options options = {0};
        struct script script = {.missing = each[i].missing};
        struct played *const played = join_as(
            "{\"cluster\": {\"ps\": [\"PS\"], \"worker\": [\"w:1\", \"w:2\", \"w:3\", \"w:4\", "
            "\"w:5\", \"w:6\", \"w:7\", \"w:8\", \"w:9\", \"w:10\"]}, "
            "\"task\": {\"type\": \"worker\", \"index\": 9}}",
            &options);
        const struct sumac_collective_options collective_options = {
            .name = "sum", .timeout_ms = each[i].timeout_ms};
        const struct sumac_tensor tensor = over(&value);
        struct sumac_collective *collective = NULL;

        (void)open_streams(played); /* given */
        follow(&script, played);
        played->mute = true;
        script.pull = UINT64_MAX; /* the round's comes beside its push: what is asked for is news */
        assert_int_equal(
            sumac_client_all_reduce(
                &played->client, &collective_options, SUMAC_REDUCE_SUM, &tensor, &collective, NULL),
            SUMAC_OK);

        assert_int_equal(/* when */
                         sumac_collective_wait(collective, 9000, NULL), SUMAC_DEADLINE_EXCEEDED);

        assert_string_equal(script.line, each[i].line); /* then */
        close_streams(played);
    }
}

/* ---- ends */

/* It goes on, and may be waited for again. */
PLAYED_TEST(a_short_wait_for_a_long_pull_is_short)
{
    struct script script = {.pull = 0};
    struct sumac_client_variable *const variable = open_streams(played);

    follow(&script, played);
    struct sumac_pull *const made = pull(played, variable, 60000);
    const uint64_t begun_us = client_now_us();

    assert_int_equal(sumac_pull_wait(made, 100, NULL), SUMAC_DEADLINE_EXCEEDED);

    assert_int_equal(client_now_us() - begun_us, 100000);
    atomic_store(&stopped_us, 0);
}

/* It has been answered before its last bytes are given back. */
PLAYED_TEST(a_push_is_waited_for_until_its_bytes_are_given_back)
{
    struct sumac_push *const made = push(played, open_streams(played));

    lent = &made->transfer; /* given */
    atomic_fetch_add(&lent->lent, 1);

    assert_int_equal(sumac_push_wait(made, 0, NULL), SUMAC_OK); /* when, then */
    assert_null(lent);
    atomic_store(&stopped_us, 0);
}

/* Nobody else polls. */
PLAYED_TEST(a_push_that_is_only_asked_about_is_done_some_time)
{
    struct sumac_push *const made = push(played, open_streams(played));
    unsigned looks = 0;

    while (!sumac_push_done(made) && looks < LOOKS_MAX)
        looks++;

    assert_int_equal(sumac_push_wait(made, 1, NULL), SUMAC_OK);
    assert_true(looks < LOOKS_MAX);
    atomic_store(&stopped_us, 0);
}

PLAYED_TEST(a_push_that_was_done_stays_so_when_the_session_ends)
{
    struct script script = {.closes = true};
    struct sumac_client_variable *const variable = open_streams(played);
    struct sumac_push *const done = push(played, variable);
    struct sumac_error error = {0};

    while (!sumac_push_done(done)) /* given */
        ;
    follow(&script, played);

    assert_int_equal(/* when */
                     sumac_push_wait(push(played, variable), 0, &error), SUMAC_FAILED_PRECONDITION);

    assert_int_equal(error.reason, SUMAC_REASON_SESSION_CLOSED); /* then */
    assert_int_equal(sumac_push_wait(done, 0, NULL), SUMAC_OK);
    atomic_store(&stopped_us, 0);
}

/* It is created just before the time is over. */
static void take_nearly_all_of_its_time(const wire_create_request *request, struct check *seen)
{
    (void)request;
    (void)seen;
    atomic_fetch_add(&stopped_us, 60 * S_US - 500);
}

PLAYED_TEST(a_value_that_cannot_be_assigned_in_the_time_that_is_left_is_said)
{
    const struct sumac_tensor initial = over(&value);
    struct sumac_client_variable_options options = scalar("late");
    struct sumac_client_variable *made = NULL;
    struct sumac_error error = {0};

    (void)open_streams(played);
    options.initializer = SUMAC_INITIALIZER_ASSIGNED;
    options.initial_value = &initial;
    played->assigns = played->mute = true;
    played->look = take_nearly_all_of_its_time;
    const uint64_t begun_us = client_now_us();

    assert_int_equal(
        sumac_client_variable_create(&played->client, &options, &made, &error),
        SUMAC_DEADLINE_EXCEEDED);

    assert_in_range(client_now_us() - begun_us, 60 * S_US - 500, 61 * S_US);
    assert_non_null(strstr(
        error.text, "late is created, and this client, which is to assign it, could not within"));
    atomic_store(&stopped_us, 0);
}

static void say_no_stats(struct rpc_call *call, const struct wire_received *received)
{
    (void)call;
    (void)received;
}

/* Only one that spoke once may have been lost. */
PLAYED_TEST(a_ps_that_never_spoke_is_asked_again_and_a_silent_one_is_lost)
{
    struct sumac_ps_facts facts;
    struct sumac_error error = {0};

    (void)open_streams(played);
    played->observe[WIRE_OBSERVE_STATS].message = say_no_stats;

    assert_int_equal(
        sumac_client_stats(&played->client, 0, &facts, &error), SUMAC_DEADLINE_EXCEEDED);
    assert_non_null(strstr(error.text, "which was last heard from"));
    assert_non_null(strstr(error.text, "start the whole run again"));

    played->client.peers[0].heard_us = 0;
    assert_int_equal(
        sumac_client_stats(&played->client, 0, &facts, &error), SUMAC_DEADLINE_EXCEEDED);
    assert_non_null(
        strstr(error.text, "which was never heard from; call again, or allow the call more time"));
    atomic_store(&stopped_us, 0);
}
