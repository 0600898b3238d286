/* SPDX-License-Identifier: Apache-2.0 */
/* client_played.h -- a client whose only ps is played in the same thread: what it asks is written
 * down, and answered. */
#pragma once

#include "unit.h"
#include "check.h"
#include "transfer.h"

#define ASKED_MAX 8u

/* What one create or delete said. */
struct asked {
    char names[128]; /* each with a space behind it */
    uint32_t timeout_ms;
    uint8_t session;
};

/* A client and its ps, in one thread: the client's waiting serves as well. What is wrong with a
 * request the ps notes, and the test fails at its end: an assertion within a handler
 * would leave the client's lock taken. */
struct played {
    struct sumac_client client;
    struct rpc_server *server;
    struct rpc_handler sessions[WIRE_SESSIONS_METHODS];
    struct rpc_handler variables[WIRE_VARIABLES_METHODS];
    struct rpc_handler transfers[WIRE_TRANSFER_METHODS];
    struct rpc_handler observe[WIRE_OBSERVE_METHODS];
    /* What the next lists answer instead of one scalar, and what they ask: for variables behind
     * which one. The answer to stats. */
    const wire_list_reply *pages[ASKED_MAX];
    uint64_t after[ASKED_MAX];
    uint32_t lists;
    const wire_stats_reply *stats;
    struct asked asked[ASKED_MAX];
    uint32_t count; /* of asked */
    void (*look)(const wire_create_request *request, struct check *seen);
    struct check seen;
    uint32_t answered_max; /* of one create of many, in its answer */
    enum sumac_status refusal;
    bool cancelled;                           /* a part */
    bool unpublished, renames, assigns, mute; /* of a push, and a pull, it says nothing */
    bool stages;                              /* of a push it says that it is staged, and no more */
    char address[32];
    void *own;           /* of a test that has handlers of its own */
    const char *missing; /* for whom a pull has waited until its time was over; NULL: no pull has */
    /* What the join said, with a space behind each member. */
    char task[32], members[128];
    bool is_member, partial;
    uint32_t local_replicas, listed_ps;
    /* The last push, pull and leave. */
    uint32_t parts, leaves, pull_timeout_ms;
    bool allow_non_finite, left_done;
    double weight, scale;
    int function, hyperparameter; /* that the part names first, and the first of that one */
    uint64_t clock, based_on, started_at_us, after_sequence, pull_clock, lag_max, at_step;
    uint64_t newest_step; /* that it answers a pull with */
    bool bounded;
    /* The last barrier, and how it is answered: as over, or with an error of the call. */
    struct played_barrier {
        uint32_t calls, timeout_ms, breaks; /* so many calls break */
        uint64_t asked_round, round;
        char name[32], tasks[64]; /* with a space behind each task */
        uint8_t session;
        uint32_t status;
        enum sumac_reason reason;
        enum sumac_status refusal;
        bool mute;
        bool asks_for_number; /* of a round 0, as of one whose answer was lost */
    } barrier;
    /* The last define, and the functions that it says the cluster has. */
    struct played_functions {
        uint32_t defines, lists, breaks, count, answer; /* so many defines break */
        uint32_t timeout_ms;
        const char *names[4], *texts[4];
        uint32_t numbers[4];
        wire_known_function *described[4]; /* NULL: it is said by its text */
        char name[32], text[256], answered_name[32];
        uint8_t session;
        enum sumac_status refusal; /* of both */
    } functions;
    /* What is not said yet of pushes: a greeting, and parts that are done, with their pieces. */
    bool greets;
    bool holds_greeting; /* not to be said yet; whom it is due, once its hello has come */
    struct rpc_call *held_call;
    uint64_t done[ASKED_MAX];
    size_t done_pieces[ASKED_MAX];
    uint32_t done_count;
    uint64_t staged;
    /* Likewise of pulls; they come one at a time. */
    bool greets_pulls;
    uint64_t asked_pull;
};

static inline struct asked *
note(struct played *played, const wire_bytes *session, uint32_t timeout_ms)
{
    if (played->count == ASKED_MAX)
        check_object(&played->seen, "more than %u requests have come", ASKED_MAX);
    else
        played->count++;
    struct asked *asked = &played->asked[played->count - 1];
    asked->session = session->len == 16 ? session->data[0] : 0;
    asked->timeout_ms = timeout_ms;
    return asked;
}

static inline void add_name(struct asked *asked, const char *name)
{
    const size_t used = strlen(asked->names);

    (void)snprintf(asked->names + used, sizeof asked->names - used, "%s ", name);
}

static inline void print_task(const wire_task_name *task, char *text, size_t text_bytes)
{
    (void)snprintf(text, text_bytes, "%s %u ", task->job, task->index);
}

static inline void answer_join(struct rpc_call *call, const struct wire_received *received)
{
    struct played *const played = rpc_call_user(call);
    uint8_t id[16] = {7};
    uint64_t incarnation = 100;
    char *address = played->address;
    wire_join_reply reply = WIRE_JOIN_REPLY_INIT;
    const wire_join_request *request = (const wire_join_request *)received->message;

    played->is_member = request->role == (Sumac__V1__Role)WIRE_ROLE_MEMBER;
    if (request->task != NULL)
        print_task(request->task, played->task, sizeof played->task);
    played->members[0] = '\0';
    for (size_t i = 0; i < request->n_members; i++) {
        const size_t used = strlen(played->members);
        print_task(request->members[i], played->members + used, sizeof played->members - used);
    }
    played->partial = request->members_partial;
    played->local_replicas = request->local_replicas;
    played->listed_ps = (uint32_t)request->n_ps_addresses;
    reply.cluster_id = 42;
    reply.epoch = 1;
    reply.session_id = (wire_bytes){.data = id, .len = sizeof id};
    reply.attempt = 3;
    reply.previous_final = 5;
    reply.lease_ms = 600000;
    reply.n_ps_addresses = 1;
    reply.ps_addresses = &address;
    reply.n_ps_incarnations = 1;
    reply.ps_incarnations = &incarnation;
    reply.ps_lost_ms = 600000;
    rpc_call_send(call, &reply.base, NULL, 0);
}

/* A scalar of one shard. */
static inline void make_scalar(wire_variable *variable, wire_shard *shard, wire_shard **list)
{
    *shard = (wire_shard)WIRE_SHARD_INIT;
    shard->rows = 1;
    *list = shard;
    variable->data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    variable->shards = list;
    variable->n_shards = 1;
    variable->published = true;
}

static inline void answer_list(struct rpc_call *call, const struct wire_received *received)
{
    struct played *const played = rpc_call_user(call);
    const wire_list_request *request = (const wire_list_request *)received->message;
    wire_list_reply reply = WIRE_LIST_REPLY_INIT;
    wire_variable variable = WIRE_VARIABLE_INIT, *all[] = {&variable};
    wire_shard shard, *shards[1];

    if (played->lists < ASKED_MAX && played->pages[played->lists] != NULL) {
        played->after[played->lists] = request->after_id;
        reply = *played->pages[played->lists++];
    }
    reply.cluster_id = 42;
    reply.epoch = 1;
    reply.ps_incarnation = 100;
    if (request->n_names > 0 && reply.n_variables == 0) {
        add_name(note(played, &(wire_bytes){.len = 0}, 0), request->names[0]);
        make_scalar(&variable, &shard, shards);
        variable.name = request->names[0];
        variable.variable_id = 90 + played->count;
        variable.published = !played->unpublished;
        reply.variables = all;
        reply.n_variables = strcmp(request->names[0], "nothing") != 0;
    }
    rpc_call_send(call, &reply.base, NULL, 0);
}

static inline void answer_create(struct rpc_call *call, const struct wire_received *received)
{
    struct played *const played = rpc_call_user(call);
    const wire_create_request *request = (const wire_create_request *)received->message;
    wire_create_reply reply = WIRE_CREATE_REPLY_INIT;
    wire_variable made[ASKED_MAX], *list[ASKED_MAX];
    wire_shard shard[ASKED_MAX], *shards[ASKED_MAX];
    struct asked *asked = note(played, &request->session_id, request->timeout_ms);

    if (played->look != NULL)
        played->look(request, &played->seen);
    for (size_t i = 0; i < request->n_variables || (request->variable != NULL && i == 0); i++) {
        const wire_variable *wanted =
            request->variable != NULL ? request->variable : request->variables[i];
        add_name(asked, wanted->name);
        made[i] = (wire_variable)WIRE_VARIABLE_INIT;
        make_scalar(&made[i], &shard[i], &shards[i]);
        made[i].name = played->renames ? (char *)(uintptr_t) "another" : wanted->name;
        made[i].variable_id = 10 * played->count + i;
        list[i] = &made[i];
    }
    if (request->variable != NULL) {
        reply.variable = &made[0];
        reply.assign = played->assigns;
    } else {
        reply.variables = list;
        reply.n_variables = request->n_variables < played->answered_max ? request->n_variables
                                                                        : played->answered_max;
    }
    rpc_call_send(call, &reply.base, NULL, 0);
}

static inline void answer_delete(struct rpc_call *call, const struct wire_received *received)
{
    struct played *const played = rpc_call_user(call);
    const wire_delete_request *request = (const wire_delete_request *)received->message;
    const wire_delete_reply reply = WIRE_DELETE_REPLY_INIT;

    add_name(note(played, &request->session_id, request->timeout_ms), request->name);
    if (played->refusal == SUMAC_OK)
        rpc_call_send(call, &reply.base, NULL, 0);
    else
        rpc_call_finish(call, played->refusal, SUMAC_REASON_UNSPECIFIED, "no");
}

static inline void answer_define(struct rpc_call *call, const struct wire_received *received)
{
    struct played_functions *const functions = &((struct played *)rpc_call_user(call))->functions;
    const wire_define_request *request = (const wire_define_request *)received->message;
    wire_define_reply reply = WIRE_DEFINE_REPLY_INIT;
    wire_known_function function = WIRE_KNOWN_FUNCTION_INIT;

    functions->defines++;
    functions->timeout_ms = request->timeout_ms;
    functions->session = request->session_id.len == 16 ? request->session_id.data[0] : 0;
    (void)snprintf(functions->name, sizeof functions->name, "%s", request->name);
    (void)snprintf(functions->text, sizeof functions->text, "%s", request->text);
    function.number = functions->answer;
    function.name = functions->answered_name[0] != '\0' ? functions->answered_name : request->name;
    reply.function = &function;
    if (functions->breaks > 0) {
        functions->breaks--;
        rpc_call_finish(call, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, "Socket closed");
    } else if (functions->refusal != SUMAC_OK) {
        rpc_call_finish(call, functions->refusal, SUMAC_REASON_MALFORMED, "it has another text");
    } else {
        rpc_call_send(call, &reply.base, NULL, 0);
    }
}

static inline void answer_functions(struct rpc_call *call, const struct wire_received *received)
{
    struct played_functions *const functions = &((struct played *)rpc_call_user(call))->functions;
    wire_functions_reply reply = WIRE_FUNCTIONS_REPLY_INIT;
    wire_known_function each[4], *all[4];

    (void)received;
    functions->lists++;
    for (uint32_t i = 0; i < functions->count; i++) {
        each[i] = (wire_known_function)WIRE_KNOWN_FUNCTION_INIT;
        each[i].number = functions->numbers[i];
        each[i].name = (char *)(uintptr_t)functions->names[i];
        each[i].text = (char *)(uintptr_t)functions->texts[i];
        all[i] = functions->described[i] == NULL ? &each[i] : functions->described[i];
    }
    reply.functions = all;
    reply.n_functions = functions->count;
    if (functions->refusal != SUMAC_OK)
        rpc_call_finish(call, functions->refusal, SUMAC_REASON_MALFORMED, "no");
    else
        rpc_call_send(call, &reply.base, NULL, 0);
}

static inline void answer_stats(struct rpc_call *call, const struct wire_received *received)
{
    const struct played *const played = rpc_call_user(call);

    (void)received;
    rpc_call_send(call, &played->stats->base, NULL, 0);
}

static inline void answer_leave(struct rpc_call *call, const struct wire_received *received)
{
    struct played *const played = rpc_call_user(call);
    const wire_leave_request *request = (const wire_leave_request *)received->message;
    wire_leave_reply reply = WIRE_LEAVE_REPLY_INIT;

    played->leaves++;
    played->left_done = request->done;
    reply.final = request->last_sequence;
    rpc_call_send(call, &reply.base, NULL, 0);
}

static inline void answer_barrier(struct rpc_call *call, const struct wire_received *received)
{
    struct played_barrier *const barrier = &((struct played *)rpc_call_user(call))->barrier;
    const wire_barrier_request *request = (const wire_barrier_request *)received->message;
    wire_barrier_reply reply = WIRE_BARRIER_REPLY_INIT;

    barrier->calls++;
    barrier->timeout_ms = request->timeout_ms;
    barrier->asked_round = request->round;
    barrier->session = request->session_id.len == 16 ? request->session_id.data[0] : 0;
    (void)snprintf(barrier->name, sizeof barrier->name, "%s", request->name);
    barrier->tasks[0] = '\0';
    for (size_t i = 0; i < request->n_tasks; i++) {
        const size_t used = strlen(barrier->tasks);
        print_task(request->tasks[i], barrier->tasks + used, sizeof barrier->tasks - used);
    }
    reply.round = barrier->round;
    reply.status = barrier->status;
    reply.reason = (Sumac__V1__Reason)barrier->reason;
    if (barrier->asks_for_number && request->round == 0) {
        reply.status = SUMAC_FAILED_PRECONDITION;
        reply.reason = (Sumac__V1__Reason)SUMAC_REASON_ROUND_OVER;
    }
    reply.message = (char *)(uintptr_t) "worker 1 is missing";
    if (barrier->breaks > 0) {
        barrier->breaks--;
        rpc_call_finish(call, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, "Socket closed");
    } else if (barrier->refusal != SUMAC_OK) {
        rpc_call_finish(
            call, barrier->refusal, barrier->reason == 0 ? SUMAC_REASON_MALFORMED : barrier->reason,
            "no");
    } else if (!barrier->mute) {
        rpc_call_send(call, &reply.base, NULL, 0);
    }
}

/* What waits to be said on the push stream: all of it in one answer, once the call takes one. */
static inline void say_pushed(struct rpc_call *call)
{
    struct played *const played = rpc_call_user(call);
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    wire_greeting greeting = WIRE_GREETING_INIT;
    wire_done done[ASKED_MAX], *dones[ASKED_MAX];
    wire_staged staged = WIRE_STAGED_INIT, *stagings[] = {&staged};
    uint64_t versions[] = {30, 30};

    if (played->holds_greeting) {
        played->held_call = call;
        return;
    }
    if (!rpc_call_writable(call) ||
        (!played->greets && played->done_count == 0 && played->staged == 0))
        return;
    greeting.epoch = 1;
    greeting.ps_incarnation = 100;
    greeting.cluster_id = 42;
    greeting.staging_grant_bytes = 1000000;
    answer.greeting = played->greets ? &greeting : NULL;
    for (uint32_t i = 0; i < played->done_count; i++) {
        done[i] = (wire_done)WIRE_DONE_INIT;
        done[i].sequence = played->done[i];
        done[i].n_versions = played->done_pieces[i];
        done[i].versions = versions;
        dones[i] = &done[i];
    }
    answer.done = dones;
    answer.n_done = played->done_count;
    staged.sequence = played->staged;
    answer.staged = stagings;
    answer.n_staged = played->staged != 0;
    played->staged = 0;
    played->greets = false;
    played->done_count = 0;
    rpc_call_send(call, &answer.base, NULL, 0);
}

/* A hello is greeted; a part is applied as version 30 of each shard. */
static inline void answer_push(struct rpc_call *call, const struct wire_received *received)
{
    struct played *const played = rpc_call_user(call);
    const wire_push_request *request = (const wire_push_request *)received->message;

    played->greets = played->greets || request->hello != NULL;
    if (request->commit != NULL)
        played->clock = request->commit->clock;
    if (request->n_parts > 0) {
        const wire_part *part = request->parts[0];
        played->parts++;
        if (part->cancelled) {
            played->cancelled = true;
            return;
        }
        played->weight = part->weight;
        played->scale = part->scale;
        played->allow_non_finite = part->allow_non_finite;
        played->based_on = part->pieces[0]->based_on;
        played->started_at_us = part->started_at_us;
        played->function = part->n_functions > 0 ? (int)part->functions[0]->function : 0;
        played->hyperparameter = part->n_functions > 0 && part->functions[0]->n_hyperparameters > 0
                                     ? (int)part->functions[0]->hyperparameters[0]->name
                                     : 0;
        if (played->stages) {
            played->staged = part->sequence;
        } else if (!played->mute && played->done_count < ASKED_MAX) {
            played->done_pieces[played->done_count] = part->n_pieces;
            played->done[played->done_count++] = part->sequence;
        }
    }
    say_pushed(call);
}

static inline void say_held_greeting(struct played *played)
{
    client_lock(&played->client);
    played->holds_greeting = false;
    if (played->held_call != NULL)
        say_pushed(played->held_call);
    client_unlock(&played->client);
}

/* The same on the pull stream, where what is asked for is refused. */
static inline void say_pulled(struct rpc_call *call)
{
    struct played *const played = rpc_call_user(call);
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
    wire_greeting greeting = WIRE_GREETING_INIT;

    if (!rpc_call_writable(call) || (!played->greets_pulls && played->asked_pull == 0))
        return;
    greeting.epoch = 1;
    greeting.ps_incarnation = 100;
    greeting.cluster_id = 42;
    answer.greeting = played->greets_pulls ? &greeting : NULL;
    if (played->asked_pull != 0) {
        answer.request = played->asked_pull;
        answer.last = true;
        answer.status = SUMAC_NOT_FOUND;
        answer.reason = (Sumac__V1__Reason)SUMAC_REASON_UNKNOWN_VARIABLE;
        answer.step = played->newest_step;
        answer.message = (char *)(uintptr_t) "it was deleted";
        if (played->missing != NULL) {
            answer.status = SUMAC_DEADLINE_EXCEEDED;
            answer.reason = (Sumac__V1__Reason)SUMAC_REASON_TIMED_OUT;
            answer.message = (char *)(uintptr_t)played->missing;
        }
    }
    played->greets_pulls = false;
    played->asked_pull = 0;
    rpc_call_send(call, &answer.base, NULL, 0);
}

static inline void answer_pull(struct rpc_call *call, const struct wire_received *received)
{
    struct played *const played = rpc_call_user(call);
    const wire_pull_request *request = (const wire_pull_request *)received->message;

    played->greets_pulls = played->greets_pulls || request->hello != NULL;
    if (request->request != 0 && !played->mute) {
        played->after_sequence = request->after_sequence;
        played->pull_timeout_ms = request->timeout_ms;
        played->bounded = request->bounded;
        played->lag_max = request->lag_max;
        played->at_step = request->at_step;
        played->pull_clock = request->clock;
        played->asked_pull = request->request;
    }
    say_pulled(call);
}

static inline void drop_line(void *context, const char *line) { (void)context, (void)line; }

static inline struct played *play(void)
{
    struct played *const played = calloc(1, sizeof *played);
    const struct rpc_server_options on_any_port = {.bind_host = "127.0.0.1"};
    struct sumac_client *const client = &played->client;
    struct sumac_error error = {0};

    client->wake_us = NEVER_US;
    client->timeout_ms = 60000;
    client->log = drop_line;
    client_note_process(client);
    key_map_init(&client->variables_by_name, &memory_heap);
    round_numbers_init(&client->barrier_rounds);
    round_numbers_init(&client->collective_rounds);
    played->answered_max = ASKED_MAX;
    played->sessions[WIRE_SESSIONS_JOIN].message = answer_join;
    played->variables[WIRE_VARIABLES_LIST].message = answer_list;
    played->variables[WIRE_VARIABLES_CREATE].message = answer_create;
    played->variables[WIRE_VARIABLES_DELETE].message = answer_delete;
    played->variables[WIRE_VARIABLES_DEFINE].message = answer_define;
    played->variables[WIRE_VARIABLES_FUNCTIONS].message = answer_functions;
    played->sessions[WIRE_SESSIONS_LEAVE].message = answer_leave;
    played->sessions[WIRE_SESSIONS_BARRIER].message = answer_barrier;
    played->observe[WIRE_OBSERVE_STATS].message = answer_stats;
    played->transfers[WIRE_TRANSFER_PUSH].message = answer_push;
    played->transfers[WIRE_TRANSFER_PUSH].writable = say_pushed;
    played->transfers[WIRE_TRANSFER_PULL].message = answer_pull;
    played->transfers[WIRE_TRANSFER_PULL].writable = say_pulled;
    rpc_init();
    assert_int_equal(rpc_poller_create(&client->poller), SUMAC_OK);
    assert_int_equal(
        rpc_server_open(client->poller, &on_any_port, &played->server, &error), SUMAC_OK);
    const struct {
        const wire_service *service;
        const struct rpc_handler *handlers;
    } services[] = {
        {WIRE_SESSIONS, played->sessions},
        {WIRE_VARIABLES, played->variables},
        {WIRE_TRANSFER, played->transfers},
        {WIRE_OBSERVE, played->observe}};
    for (size_t i = 0; i < sizeof services / sizeof services[0]; i++)
        assert_int_equal(
            rpc_server_add(
                played->server, services[i].service, services[i].handlers, played, &error),
            SUMAC_OK);
    assert_int_equal(rpc_server_start(played->server, &error), SUMAC_OK);
    snprintf(
        played->address, sizeof played->address, "127.0.0.1:%u", rpc_server_port(played->server));
    return played;
}

/* With a ps address, or else a cluster, in the options. */
static inline void join(struct played *played, const struct sumac_client_options *options)
{
    struct sumac_error error = {0};

    client_lock(&played->client);
    enum sumac_status status = client_make_session(&played->client, options, &error);
    if (status == SUMAC_OK)
        status = client_join(&played->client, &error);
    client_unlock(&played->client);
    if (status != SUMAC_OK)
        fail_msg("%s", error.text);
}

/* A client of this configuration, in which PS stands for the ps's address, has joined. */
static inline struct played *join_as(const char *config, struct sumac_client_options *options)
{
    struct played *const played = play();
    struct sumac_cluster cluster;
    struct sumac_error error = {0};
    char text[512];
    const char *const at = strstr(config, "PS");

    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - config), config, played->address, at + 2);
    if (sumac_cluster_parse(text, NULL, &cluster, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    options->cluster = &cluster;
    join(played, options);
    sumac_cluster_deinit(&cluster);
    return played;
}

static inline int begin(void **state)
{
    struct played *const played = play();
    const char *const address = played->address;
    const struct sumac_client_options options = {
        .ps_addresses = &address, .ps_count = 1, .observer = true};

    join(played, &options);
    *state = played;
    return 0;
}

static inline void drop_transfers(struct sumac_client *client)
{
    while (client->live_transfers.first != NULL)
        transfer_give(client->live_transfers.first);
    for (struct transfer *transfer = client->free_transfers, *next; transfer != NULL;
         transfer = next) {
        next = transfer->next;
        arena_deinit(&transfer->arena);
        free(transfer);
    }
}

static inline int end(void **state)
{
    struct played *const played = *state;
    struct session *const session = played->client.session;

    client_lock(&played->client);
    played->client.session = NULL; /* what still comes is nobody's */
    client_hang_up(&played->client);
    for (int kind = SESSION_PUSH_STREAM; kind <= SESSION_PULL_STREAM; kind++)
        assert_null(played->client.peers[0].channels[kind]);
    client_forget_variables(&played->client);
    round_numbers_deinit(&played->client.barrier_rounds);
    round_numbers_deinit(&played->client.collective_rounds);
    client_forget_collectives(&played->client);
    client_forget_functions(&played->client);
    client_unlock(&played->client);
    rpc_server_close(played->server);
    rpc_poller_destroy(played->client.poller);
    rpc_deinit();
    session_destroy(session);
    drop_transfers(&played->client);
    free(played->client.member_tasks);
    free(played->client.payload);
    const struct check seen = played->seen;
    free(played);
    if (!check_is_good(&seen))
        fail_msg("%s", seen.text);
    return 0;
}

static inline struct sumac_client_variable_options scalar(const char *name)
{
    return (struct sumac_client_variable_options){.name = name, .dtype = SUMAC_FLOAT32};
}

static inline struct sumac_client_variable *create(struct played *played, const char *name)
{
    const struct sumac_client_variable_options options = scalar(name);
    struct sumac_client_variable *variable = NULL;
    struct sumac_error error = {0};

    if (sumac_client_variable_create(&played->client, &options, &variable, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    return variable;
}

#define PLAYED_TEST(name) FIXTURE_TEST(name, struct played *const played, begin, end)
