/* SPDX-License-Identifier: Apache-2.0 */
/* lane_tight.c -- each kind of request, with 4 KiB for what a step says: it is answered, or
 * refused, or its stream ends, or the ps does, in order.
 *
 * A row of rpcs.h has its requests here: whoever adds one is asked for them by the compiler. A call
 * is made at ps 0, where the controller answers most of them, and at ps 1; streams are ps 1's.
 */
#include <stdio.h>

#include "controller_state.h"
#include "pull.h"
#include "lane_talk.h"
#include "ps_core_check.h"
#include "ps_core_state.h"
#include "requests.h"

#define STEP_BYTES 4096u
#define VARIABLE 5u
#define CALLS_MAX 16u
#define MANY 700u    /* more than 4 KiB of versions, or of shards */
#define WAIT_S 200u  /* longer than any call waits */
#define SHORT_S 10u  /* there is memory again after so long */
#define SESSION 1u   /* of ps 1 */
#define STRANGER 77u /* that it does not know */

/* One ps, and what it was asked. */
struct asked {
    struct talk *talk;
    uint32_t calls, answered[CALLS_MAX + 1];
    uint8_t session[16]; /* at ps 0, of the first join */
    bool has_ended;      /* for want of memory */
    uint64_t ordered;    /* of ps 1, by ps 0, and not answered; 0: nothing is */
    uint64_t closing;    /* likewise, which closes a session: … */
    uint8_t closed[16];  /* … this one */
};

static void short_steps(struct talk *talk, uint32_t bytes)
{
    talk->lane->arena.bytes_max = bytes;
    if (talk->core->controller != NULL)
        talk->core->controller->out->arena->bytes_max = bytes;
}

static struct talk *begin(void **state, uint32_t index, uint32_t ps_count)
{
    static const char *const addresses[] = {"h0:1", "h1:1"};
    struct lane_config config = talk_config();
    struct talk *talk;

    assert_int_equal(talk_setup(state), 0);
    talk = *state;
    config.index = index;
    config.ps_addresses = addresses;
    config.ps_count = ps_count;
    config.report_ms = 1000000;
    config.staging_bytes_max = 1u << 20;
    config.view_bytes_max = 1u << 20;
    talk_start(talk, &config);
    return talk;
}

/* ---- calls ---- */

static void note_order(struct asked *asked, const wire_peer_order *order)
{
    asked->ordered = order->number;
    if (order->close == NULL)
        return;
    asked->closing = order->number;
    assert_int_equal(order->close->session_id.len, sizeof asked->closed);
    memcpy(asked->closed, order->close->session_id.data, sizeof asked->closed);
}

/* An exit is the last thing that is said but for a wake. */
static void note(struct asked *asked, const struct lane_effects *effects)
{
    bool exits = false;

    for (uint32_t i = 0; i < effects->count; i++) {
        const struct lane_effect *effect = &effects->items[i];
        const bool answers = effect->kind == LANE_EFFECT_REPLY || effect->kind == LANE_EFFECT_FAIL;
        assert_true(!exits || effect->kind == LANE_EFFECT_WAKE);
        exits |= effect->kind == LANE_EFFECT_EXIT;
        asked->has_ended |= exits && effect->exit_code == LANE_EXIT_NO_MEMORY;
        asked->answered[answers ? effect->call : 0]++;
        if (effect->kind == LANE_EFFECT_ORDER)
            note_order(asked, effect->order);
        if (effect->kind == LANE_EFFECT_REPLY &&
            effect->reply->descriptor == &sumac__v1__join_reply__descriptor && asked->calls == 1)
            memcpy(
                asked->session, ((const wire_join_reply *)effect->reply)->session_id.data,
                sizeof asked->session);
    }
}

static void step(struct asked *asked, struct lane_event event)
{
    struct check check = {.text = ""};
    struct lane_effects effects;

    event.now_us = asked->talk->now_us;
    event.random[0] = event.random[1] = asked->talk->now_us + asked->calls;
    ps_core_step(asked->talk->core, &event, &effects);
    ps_core_check(asked->talk->core, &check);
    if (!check_is_good(&check))
        fail_msg("%s", check.text);
    note(asked, &effects);
}

static void call(struct asked *asked, enum lane_call_kind kind, const wire_message *request)
{
    assert_true(asked->calls < CALLS_MAX);
    step(
        asked, (struct lane_event){
                   .kind = LANE_EVENT_CALL,
                   .call = ++asked->calls,
                   .call_kind = kind,
                   .request = request});
}

/* Of a new member, and of one whose list of ps is long, and another. */
static void ask_join(struct asked *asked)
{
    static char *addresses[200];
    struct join_request request;

    join_request_init(&request, asked->calls);
    call(asked, LANE_CALL_JOIN, &request.message.base);
    if (asked->calls == 1)
        return;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        addresses[i] = "a-host-with-a-long-name.of-some-cluster.example:2222";
    join_request_init(&request, asked->calls);
    request.message.ps_addresses = addresses;
    request.message.n_ps_addresses = sizeof addresses / sizeof *addresses;
    call(asked, LANE_CALL_JOIN, &request.message.base);
}

static wire_bytes session_of(struct asked *asked)
{
    return (wire_bytes){sizeof asked->session, asked->session};
}

static void ask_renew(struct asked *asked)
{
    wire_renew_request request = WIRE_RENEW_REQUEST_INIT;

    request.session_id = session_of(asked);
    call(asked, LANE_CALL_RENEW, &request.base);
}

static void ask_leave(struct asked *asked)
{
    wire_leave_request request = WIRE_LEAVE_REQUEST_INIT;

    request.session_id = session_of(asked);
    call(asked, LANE_CALL_LEAVE, &request.base);
    call(asked, LANE_CALL_LEAVE, &request.base);
}

/* One that is of this worker alone, and one whose other task never comes, said twice. */
static void ask_barrier(struct asked *asked)
{
    wire_task_name names[2] = {WIRE_TASK_NAME_INIT, WIRE_TASK_NAME_INIT};
    wire_task_name *tasks[] = {&names[0], &names[1]};
    wire_barrier_request request = WIRE_BARRIER_REQUEST_INIT;

    names[0].job = names[1].job = (char *)"worker";
    names[1].index = 70;
    request.session_id = session_of(asked);
    request.name = (char *)"alone";
    request.tasks = tasks;
    request.n_tasks = 1;
    call(asked, LANE_CALL_BARRIER, &request.base);
    request.name = (char *)"together";
    request.n_tasks = 2;
    call(asked, LANE_CALL_BARRIER, &request.base);
    call(asked, LANE_CALL_BARRIER, &request.base);
}

/* One that is there, one that is not, and as many as a call may name. */
static void ask_create(struct asked *asked)
{
    static char names[WIRE_CREATE_VARIABLES_MAX][16];
    static wire_variable variables[WIRE_CREATE_VARIABLES_MAX];
    wire_variable *list[WIRE_CREATE_VARIABLES_MAX];
    uint64_t shape[] = {4};
    wire_function function;
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;

    for (uint32_t i = 0; i < WIRE_CREATE_VARIABLES_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "v%u", i);
        vector_init(&variables[i], names[i], shape, &function);
        list[i] = &variables[i];
    }
    request.session_id = session_of(asked);
    request.variable = list[0];
    call(asked, LANE_CALL_CREATE, &request.base);
    request.variable = list[1];
    call(asked, LANE_CALL_CREATE, &request.base);
    request.variable = NULL;
    request.variables = list;
    request.n_variables = WIRE_CREATE_VARIABLES_MAX;
    call(asked, LANE_CALL_CREATE, &request.base);
}

static void ask_delete(struct asked *asked)
{
    wire_delete_request request = WIRE_DELETE_REQUEST_INIT;

    request.session_id = session_of(asked);
    request.name = "v0";
    call(asked, LANE_CALL_DELETE, &request.base);
    request.name = "nothing of this name";
    call(asked, LANE_CALL_DELETE, &request.base);
}

/* All there are, and as many by name as a call may ask for. */
static void ask_list(struct asked *asked)
{
    static char *names[WIRE_LIST_NAMES_MAX];
    wire_list_request request = WIRE_LIST_REQUEST_INIT;

    call(asked, LANE_CALL_LIST, &request.base);
    for (uint32_t i = 0; i < WIRE_LIST_NAMES_MAX; i++)
        names[i] = "v0";
    request.names = names;
    request.n_names = 1;
    call(asked, LANE_CALL_LIST, &request.base);
    request.n_names = WIRE_LIST_NAMES_MAX;
    call(asked, LANE_CALL_LIST, &request.base);
}

static void ask_define(struct asked *asked)
{
    wire_define_request request = WIRE_DEFINE_REQUEST_INIT;

    request.session_id = session_of(asked);
    request.name = (char *)"mine";
    request.text = (char *)"value = value + g";
    call(asked, LANE_CALL_DEFINE, &request.base);
    call(asked, LANE_CALL_DEFINE, &request.base);
}

static void ask_functions(struct asked *asked)
{
    const wire_functions_request request = WIRE_FUNCTIONS_REQUEST_INIT;

    call(asked, LANE_CALL_FUNCTIONS, &request.base);
}

static void ask_stats(struct asked *asked)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;

    call(asked, LANE_CALL_STATS, &request.base);
}

#define CALL_ROW(method) {#method, ask_##method},
#define X(SERVICE, METHOD, method, what, bytes_max, who) RPC_IF_CALL(what, CALL_ROW(method))
static const struct {
    const char *name;
    void (*ask)(struct asked *asked);
} calls[] = {RPC_LIST(X)};
#undef X

/* ---- ps 1, of two */

static void ps_1_reports(struct asked *asked, wire_peer_report *report)
{
    report->ps_incarnation = 0x1001;
    report->epoch = 1;
    step(asked, (struct lane_event){.kind = LANE_EVENT_REPORT, .ps = 1, .report = report});
}

/* It obeys and answers until there is no order; what it has voided of a session is more than 4
 * KiB. */
static void ps_1_answers(struct asked *asked)
{
    static uint64_t voided[MANY];

    for (uint32_t i = 0; i < MANY; i++)
        voided[i] = 1 + i;
    while (asked->ordered != 0 && !asked->has_ended) {
        wire_peer_report report = WIRE_PEER_REPORT_INIT;
        wire_close_report close = WIRE_CLOSE_REPORT_INIT;
        report.answers = asked->ordered;
        if (asked->closing == asked->ordered) {
            close.session_id = (wire_bytes){.len = 16, .data = asked->closed};
            close.commit_through = MANY;
            close.voided = voided;
            close.n_voided = MANY;
            report.close_report = &close;
        }
        asked->ordered = 0;
        ps_1_reports(asked, &report);
        step(asked, (struct lane_event){.kind = LANE_EVENT_PEER_UP, .ps = 1});
    }
}

/* What it says of itself: whom it has heard, and what has been assigned. */
static void ps_1_tells(struct asked *asked)
{
    static wire_bytes renewed[MANY];
    static uint64_t assigned[MANY];
    wire_peer_report report = WIRE_PEER_REPORT_INIT;

    for (uint32_t i = 0; i < MANY; i++) {
        renewed[i] = (wire_bytes){.len = 16, .data = asked->session};
        assigned[i] = 1 + i;
    }
    report.renewed = renewed;
    report.n_renewed = MANY;
    report.assigned = assigned;
    report.n_assigned = MANY;
    if (!asked->has_ended)
        ps_1_reports(asked, &report);
}

/* Whatever ps 1 answers while there is little memory, the call for which it was asked is answered.
 */
static void report_of_each(void **state, size_t row)
{
    struct asked asked = {.talk = begin(state, 0, 2)};

    step(&asked, (struct lane_event){.kind = LANE_EVENT_PEER_UP, .ps = 1});
    ps_1_answers(&asked);
    ask_join(&asked);
    ps_1_answers(&asked);
    ask_create(&asked);
    ps_1_answers(&asked);
    const uint32_t before = asked.calls;

    calls[row].ask(&asked);
    short_steps(asked.talk, STEP_BYTES);
    for (uint32_t second = 0; second < WAIT_S && !asked.has_ended; second++) {
        if (second == SHORT_S)
            short_steps(asked.talk, 64u << 20);
        ps_1_answers(&asked);
        ps_1_tells(&asked);
        asked.talk->now_us += 1000000;
        if (!asked.has_ended)
            step(&asked, (struct lane_event){.kind = LANE_EVENT_TICK});
    }

    for (uint32_t i = before + 1; i <= asked.calls && !asked.has_ended; i++) {
        if (asked.answered[i] != 1)
            print_error("%s: call %u has %u answers\n", calls[row].name, i, asked.answered[i]);
        assert_int_equal(asked.answered[i], 1);
    }
    assert_int_equal(talk_teardown(state), 0);
}

STATE_TEST(reports_are_heard_with_little_memory, NULL, NULL)
{
    for (size_t row = 0; row < sizeof calls / sizeof *calls; row++)
        report_of_each(state, row);
}

static void answer_each(void **state, uint32_t index, size_t row)
{
    struct asked asked = {.talk = begin(state, index, index + 1)};

    if (index == 0) { /* given: somebody has joined, and there is a variable */
        ask_join(&asked);
        ask_create(&asked);
    }
    const uint32_t before = asked.calls;
    short_steps(asked.talk, STEP_BYTES);

    calls[row].ask(&asked); /* when */
    for (uint32_t second = 0; second < WAIT_S; second++) {
        if (second == SHORT_S)
            short_steps(asked.talk, 64u << 20);
        asked.talk->now_us += 1000000;
        step(&asked, (struct lane_event){.kind = LANE_EVENT_TICK});
    }

    for (uint32_t i = before + 1; i <= asked.calls && !asked.has_ended; i++) { /* then */
        if (asked.answered[i] != 1)
            print_error(
                "%s, ps %u: call %u has %u answers\n", calls[row].name, index, i,
                asked.answered[i]);
        assert_int_equal(asked.answered[i], 1);
    }
    assert_int_equal(talk_teardown(state), 0);
}

STATE_TEST(every_call_is_answered_once, NULL, NULL)
{
    for (size_t row = 0; row < sizeof calls / sizeof *calls; row++) {
        answer_each(state, 0, row);
        answer_each(state, 1, row);
    }
}

/* ---- streams ---- */

/* A message on a stream of ps 1, and the beginning of what answers it; NULL: nothing does. */
struct said {
    const char *name, *answer;
    void (*say)(struct talk *talk, uint64_t stream);
};

static const float ones[MANY] = {1};

static void push_part(struct talk *talk, uint64_t stream)
{
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = VARIABLE, .shards = 1, .values = ones, .count = 4};

    talk_part(talk, stream, &part);
}

static void push_many_shards(struct talk *talk, uint64_t stream)
{
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = 100, .shards = MANY, .values = ones, .count = 1};

    talk_part(talk, stream, &part);
}

static void push_refused(struct talk *talk, uint64_t stream)
{
    const struct talk_part part = {
        .sequence = 1, .shard = VARIABLE, .shards = 1, .offset = 999, .values = ones, .count = 4};

    talk_part(talk, stream, &part);
}

static void push_again(struct talk *talk, uint64_t stream)
{
    push_part(talk, stream);
    talk_forget(talk);
    push_part(talk, stream);
}

static void push_in_steps(struct talk *talk, uint64_t stream)
{
    const struct talk_part part = {
        .sequence = 1, .eager = true, .shard = VARIABLE, .shards = 1, .values = ones, .count = 4};

    talk_part_in_steps(talk, stream, &part, 1);
}

static void push_commit_of_voided(struct talk *talk, uint64_t stream)
{
    push_refused(talk, stream);
    talk_forget(talk);
    talk_commit(talk, stream, 1, 1, 0);
}

static void push_for_nobody(struct talk *talk, uint64_t stream)
{
    (void)stream;
    (void)talk_push_stream(talk, STRANGER, 1);
}

static void push_after_the_end(struct talk *talk, uint64_t stream)
{
    talk_close(talk, SESSION);
    talk_decide(talk, SESSION, 0, 0);
    talk_forget(talk);
    (void)stream;
    (void)talk_push_stream(talk, SESSION, 2);
}

static void push_what_is_malformed(struct talk *talk, uint64_t stream)
{
    talk_commit(talk, stream, 0, 0, 0);
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    wire_hello hello = WIRE_HELLO_INIT;

    request.hello = &hello;
    talk_push(talk, stream, &request, NULL, 0);
}

static const struct said pushes[] = {
    {"a part", "done 1", push_part},
    {"a part of many shards", "done 1", push_many_shards},
    {"a part that is refused", "refused 1", push_refused},
    {"a part that came before", "done 1", push_again},
    {"a part in steps", "done 1", push_in_steps},
    {"a commit of what is voided", "done 1 voided", push_commit_of_voided},
    {"a hello of nobody", "rejoin", push_for_nobody},
    {"a hello of a closed session", "closed", push_after_the_end},
    {"a second hello", "end of stream MALFORMED", push_what_is_malformed},
};

static void pull_one(struct talk *talk, uint64_t stream)
{
    talk_pull(talk, stream, 1, VARIABLE, 1, 0);
}

static void pull_many(struct talk *talk, uint64_t stream)
{
    talk_pull(talk, stream, 1, 100, MANY, 0);
}

static void pull_unknown(struct talk *talk, uint64_t stream)
{
    talk_pull(talk, stream, 1, 4711, 1, 0);
}

static void pull_too_early(struct talk *talk, uint64_t stream)
{
    talk_pull(talk, stream, 1, VARIABLE, 1, 9);
    for (int i = 0; i < 13; i++)
        talk_tick(talk, 5000);
}

static void pull_and_cancel(struct talk *talk, uint64_t stream)
{
    talk_pull(talk, stream, 1, VARIABLE, 1, 9);
    talk_cancel(talk, stream, 1);
}

static const struct said pulls[] = {
    {"a pull", "pulled 1 ", pull_one},
    {"a pull of many shards", "pulled 1 ", pull_many},
    {"a pull of what is not there", "pulled 1 error UNKNOWN_SHARD", pull_unknown},
    {"a pull that times out", "pulled 1 error TIMED_OUT", pull_too_early},
    {"a pull that is cancelled", NULL, pull_and_cancel},
};

static void order_open(struct talk *talk, uint64_t stream)
{
    (void)stream;
    talk_open(talk, SESSION + 1);
}

static void order_add(struct talk *talk, uint64_t stream)
{
    (void)stream;
    talk_add(talk, 7, 4, 1, SUMAC_FLOAT32, UPDATE_ASSIGN_ADD, WIRE_INITIALIZER_ZEROS);
}

static void order_delete(struct talk *talk, uint64_t stream)
{
    (void)stream;
    talk_delete(talk, VARIABLE);
}

/* With a thousand refusals to report. */
static void order_close(struct talk *talk, uint64_t stream)
{
    const uint64_t pushes_stream = talk_push_stream(talk, SESSION, 9);

    (void)stream;
    for (uint64_t sequence = 1; sequence <= MANY; sequence++)
        talk_commit(talk, pushes_stream, 0, sequence, 0);
    talk_forget(talk);
    talk_close(talk, SESSION);
}

static void order_decide(struct talk *talk, uint64_t stream)
{
    (void)stream;
    talk_decide(talk, SESSION, 3, 2);
}

static void order_membership(struct talk *talk, uint64_t stream)
{
    Sumac__V1__Membership membership = SUMAC__V1__MEMBERSHIP__INIT;

    (void)stream;
    talk_order_of(talk, membership, &membership);
}

static void order_what_is_not_supported(struct talk *talk, uint64_t stream)
{
    Sumac__V1__Freeze freeze = SUMAC__V1__FREEZE__INIT;
    Sumac__V1__Cut cut = SUMAC__V1__CUT__INIT;
    Sumac__V1__Rollback rollback = SUMAC__V1__ROLLBACK__INIT;
    wire_peer_order order = WIRE_PEER_ORDER_INIT;

    (void)stream;
    order.freeze = &freeze;
    order.cut = &cut;
    order.rollback = &rollback;
    talk_order(talk, &order);
}

static void order_end(struct talk *talk, uint64_t stream)
{
    wire_end end = WIRE_END_INIT;

    (void)stream;
    talk_order_of(talk, end, &end);
}

static const struct said orders[] = {
    {"open", "report ", order_open},
    {"add shards, and publish", "report ", order_add},
    {"delete", "report ", order_delete},
    {"close", "report ", order_close},
    {"decide", "report ", order_decide},
    {"membership", "report ", order_membership},
    {"what is not supported", "report ", order_what_is_not_supported},
    {"end", "exit ", order_end},
};

static uint64_t stream_push(struct talk *talk) { return talk_push_stream(talk, SESSION, 1); }
static uint64_t stream_pull(struct talk *talk) { return talk_pull_stream(talk, SESSION); }
static uint64_t stream_attend(struct talk *talk) { return talk->controller; }

#define SAID_push pushes
#define SAID_pull pulls
#define SAID_attend orders
#define STREAM_ROW(method)                                                                         \
    {stream_##method, SAID_##method, sizeof SAID_##method / sizeof *SAID_##method},
#define ROW_CALL(method)
#define ROW_PUSH_STREAM(method) STREAM_ROW(method)
#define ROW_PULL_STREAM(method) STREAM_ROW(method)
#define ROW_PEER_STREAM(method) STREAM_ROW(method)
#define X(SERVICE, METHOD, method, what, bytes_max, who) ROW_##what(method)
static const struct {
    uint64_t (*open)(struct talk *talk);
    const struct said *said;
    size_t count;
} streams[] = {RPC_LIST(X)};
#undef X

static bool was_said(const struct talk *talk, const char *what)
{
    return strstr(talk->text, what) != NULL;
}

/* Whatever it is answered with, then or when there is memory again. */
static void
answer_or_end(void **state, uint64_t (*open)(struct talk *talk), const struct said *said)
{
    struct talk *talk = begin(state, 1, 2);

    talk_open(talk, SESSION);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    for (uint64_t id = 100; id < 100 + MANY; id++)
        talk_variable(talk, id, 1, UPDATE_ASSIGN_ADD);
    const uint64_t stream = open(talk);
    talk_forget(talk);
    short_steps(talk, STEP_BYTES);

    said->say(talk, stream);
    short_steps(talk, 64u << 20);
    for (int i = 0; i < 5; i++)
        talk_tick(talk, 1000);

    const bool is_over = was_said(talk, "end of stream ") || was_said(talk, "exit ");
    if (said->answer != NULL && !is_over && !was_said(talk, said->answer))
        fail_msg("%s: wanted %s, and the lane said\n%s", said->name, said->answer, talk->text);
    if (said->answer == NULL)
        assert_false(was_said(talk, "pulled "));
    assert_int_equal(talk_teardown(state), 0);
}

STATE_TEST(every_message_is_answered_or_its_stream_ends, NULL, NULL)
{
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        for (size_t j = 0; j < streams[i].count; j++)
            answer_or_end(state, streams[i].open, &streams[i].said[j]);
}
