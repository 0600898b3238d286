/* SPDX-License-Identifier: Apache-2.0 */
/* session_talk.h -- a conversation with a session: events in, its effects looked at one by one. */
#pragma once

#include "unit.h"
#include "session.h"
#include "session_answers.h"
#include "session_check.h"

#define GRANT 1000000u
#define LEASE_MS 9000u
#define LOST_MS 60000u

struct talk {
    struct session *session;
    struct session_effects effects; /* of the last event */
    uint64_t now_us;
    uint64_t wake_us; /* the tick that the session has asked for; UINT64_MAX: none */
    uint64_t random;
    uint64_t open_step; /* that talk_done says */
    /* of the streams that the session asked for last, by ps and kind */
    uint64_t generation[SESSION_PS_MAX][2];
    uint64_t calls[WIRE_SESSIONS_METHODS]; /* the last call of each method of Sessions */
    uint64_t finds[4];                     /* the last that asked each ps who it is */
    uint64_t first_clock;                  /* that the answer to the join says */
    wire_replaced *replaced;               /* by the join, as its answer says */
    uint64_t first_step;                   /* synchronous, likewise */
};

static const char *const talk_addresses[] = {"h0:2222", "h1:2222", "h2:2222", "h3:2222"};

static inline void talk_note(struct talk *talk, const struct session_effect *effect)
{
    if (effect->kind == SESSION_EFFECT_WAKE && effect->at_us < talk->wake_us)
        talk->wake_us = effect->at_us;
    if (effect->kind == SESSION_EFFECT_OPEN_STREAM)
        talk->generation[effect->ps][effect->stream_kind] = effect->generation;
    if (effect->kind == SESSION_EFFECT_CALL && effect->service == WIRE_SESSIONS)
        talk->calls[effect->method] = effect->call;
    if (effect->kind == SESSION_EFFECT_CALL && effect->service == WIRE_VARIABLES &&
        effect->request->descriptor == &sumac__v1__list_request__descriptor &&
        ((const wire_list_request *)effect->request)->after_id == UINT64_MAX)
        talk->finds[effect->ps] = effect->call;
}

static inline void talk_step(struct talk *talk, struct session_event event)
{
    if (event.kind == SESSION_EVENT_TICK && talk->now_us >= talk->wake_us)
        talk->wake_us = UINT64_MAX;
    event.now_us = talk->now_us;
    event.wall_us = 1000000 + talk->now_us;
    event.random[0] = ++talk->random;
    event.random[1] = ++talk->random;
    session_step(talk->session, &event, &talk->effects);
    struct check check = {.text = ""};
    session_check(talk->session, &check);
    if (!check_is_good(&check))
        fail_msg("%s", check.text);
    for (uint32_t i = 0; i < talk->effects.count; i++)
        talk_note(talk, &talk->effects.items[i]);
}

/* The n-th effect of that kind, from 0; NULL: there is none. */
static inline const struct session_effect *
talk_nth(const struct talk *talk, enum session_effect_kind kind, uint32_t n)
{
    for (uint32_t i = 0; i < talk->effects.count; i++)
        if (talk->effects.items[i].kind == kind && n-- == 0)
            return &talk->effects.items[i];
    return NULL;
}

static inline const struct session_effect *
talk_find(const struct talk *talk, enum session_effect_kind kind)
{
    return talk_nth(talk, kind, 0);
}

/* The request of that method of Sessions that is called now; NULL: it is not. */
static inline const wire_message *talk_called(const struct talk *talk, unsigned method)
{
    for (uint32_t i = 0; i < talk->effects.count; i++) {
        const struct session_effect *effect = &talk->effects.items[i];
        if (effect->kind == SESSION_EFFECT_CALL && effect->service == WIRE_SESSIONS &&
            effect->method == method)
            return effect->request;
    }
    return NULL;
}

static inline const wire_join_request *talk_join(const struct talk *talk)
{
    return (const wire_join_request *)talk_called(talk, WIRE_SESSIONS_JOIN);
}

static inline void talk_called_back(struct talk *talk, unsigned method, const wire_message *reply)
{
    talk_step(
        talk,
        (struct session_event){
            .kind = SESSION_EVENT_CALL_ANSWERED, .call = talk->calls[method], .reply = reply});
}

static inline void talk_renewed(struct talk *talk)
{
    const wire_renew_reply reply = WIRE_RENEW_REPLY_INIT;

    talk_called_back(talk, WIRE_SESSIONS_RENEW, &reply.base);
}

static inline void talk_left(struct talk *talk)
{
    const wire_leave_reply reply = WIRE_LEAVE_REPLY_INIT;

    talk_called_back(talk, WIRE_SESSIONS_LEAVE, &reply.base);
}

/* There was no memory for the first such effect of the last event. */
static inline void talk_undone(struct talk *talk, enum session_effect_kind kind)
{
    struct session_effect *items = talk->effects.items;
    uint32_t i = 0;

    while (i < talk->effects.count && items[i].kind != kind)
        i++;
    assert_true(i < talk->effects.count);
    items[i].undone = true;
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_UNDONE});
}

/* The message that the last event sent to this ps; NULL: none. */
static inline const struct session_effect *talk_sent(const struct talk *talk, uint32_t ps)
{
    for (uint32_t i = 0; i < talk->effects.count; i++)
        if (talk->effects.items[i].kind == SESSION_EFFECT_SEND_PUSH &&
            talk->effects.items[i].ps == ps)
            return &talk->effects.items[i];
    return NULL;
}

static inline const wire_push_request *talk_request(const struct talk *talk, uint32_t ps)
{
    const struct session_effect *sent = talk_sent(talk, ps);

    return sent == NULL ? NULL : sent->push_request;
}

static inline void talk_config(struct talk *talk, const struct session_config *config)
{
    *talk = (struct talk){.now_us = 1000, .wake_us = UINT64_MAX};
    talk->session = session_create(config, &memory_heap);
    assert_non_null(talk->session);
}

static inline struct session_state talk_state(const struct talk *talk)
{
    struct session_state state;

    session_read(talk->session, &state);
    return state;
}

/* This ps says who it is. */
static inline void talk_said(struct talk *talk, uint32_t ps, const wire_list_reply *reply)
{
    talk_step(
        talk,
        (struct session_event){
            .kind = SESSION_EVENT_CALL_ANSWERED, .call = talk->finds[ps], .reply = &reply->base});
}

/* The same, as one of the cluster that the session is of. */
static inline void talk_known(struct talk *talk, uint32_t ps)
{
    wire_list_reply reply = WIRE_LIST_REPLY_INIT;

    reply.cluster_id = 42;
    reply.epoch = 1;
    reply.ps = ps;
    reply.ps_incarnation = 100 + ps;
    talk_said(talk, ps, &reply);
}

/* Every ps is asked, and answers, ps 0 last: it is this that a join follows. */
static inline void talk_start(struct talk *talk)
{
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
    for (uint32_t ps = talk_state(talk).ps_count; ps-- > 0;)
        talk_known(talk, ps);
}

static inline struct session_config talk_member(uint32_t ps_count)
{
    return (struct session_config){
        .role = WIRE_ROLE_MEMBER,
        .job = "worker",
        .task = 3,
        .ps_addresses = talk_addresses,
        .ps_count = ps_count};
}

static inline void talk_joined_with(struct talk *talk, uint32_t ps_count, uint32_t lost_ms)
{
    uint8_t id[16] = {7};
    uint64_t incarnations[] = {100, 101, 102, 103};
    wire_join_reply reply = WIRE_JOIN_REPLY_INIT;

    reply.cluster_id = 42;
    reply.epoch = 1;
    reply.session_id = (wire_bytes){.data = id, .len = sizeof id};
    reply.attempt = 1;
    reply.lease_ms = LEASE_MS;
    reply.clock = talk->first_clock;
    reply.first_step = talk->first_step;
    reply.n_ps_addresses = ps_count;
    reply.ps_addresses = (char **)(uintptr_t)talk_addresses;
    reply.n_ps_incarnations = ps_count;
    reply.ps_incarnations = incarnations;
    reply.ps_lost_ms = lost_ms;
    reply.replaced = talk->replaced;
    talk_called_back(talk, WIRE_SESSIONS_JOIN, &reply.base);
}

static inline void talk_joined(struct talk *talk, uint32_t ps_count)
{
    talk_joined_with(talk, ps_count, LOST_MS);
}

/* A member that has found every ps and is about to join. */
static inline struct talk *talk_found(struct talk *talk, uint32_t ps_count)
{
    const struct session_config config = talk_member(ps_count);

    talk_config(talk, &config);
    talk_start(talk);
    return talk;
}

/* A member that has joined, and whose streams are not open yet. */
static inline struct talk *talk_join_member(struct talk *talk, uint32_t ps_count)
{
    (void)talk_found(talk, ps_count);
    talk_joined(talk, ps_count);
    return talk;
}

/* It is done with its work. */
static inline void talk_leave(struct talk *talk)
{
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_LEAVE, .done = true});
}

static inline void talk_writable(struct talk *talk, uint32_t ps)
{
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_STREAM_WRITABLE,
                  .ps = ps,
                  .stream_kind = SESSION_PUSH_STREAM,
                  .generation = talk->generation[ps][SESSION_PUSH_STREAM]});
}

static inline void talk_pull(struct talk *talk, const struct session_pull *pull)
{
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PULL, .pull = pull});
}

static inline void talk_pull_writable(struct talk *talk, uint32_t ps)
{
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_STREAM_WRITABLE,
                  .ps = ps,
                  .stream_kind = SESSION_PULL_STREAM,
                  .generation = talk->generation[ps][SESSION_PULL_STREAM]});
}

static inline void talk_pull_answer(struct talk *talk, uint32_t ps, const wire_pull_answer *answer)
{
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_PULL_ANSWER,
                  .ps = ps,
                  .stream_kind = SESSION_PULL_STREAM,
                  .generation = talk->generation[ps][SESSION_PULL_STREAM],
                  .pull_answer = answer});
}

static inline void talk_answer(struct talk *talk, uint32_t ps, const wire_push_answer *answer)
{
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_PUSH_ANSWER,
                  .ps = ps,
                  .stream_kind = SESSION_PUSH_STREAM,
                  .generation = talk->generation[ps][SESSION_PUSH_STREAM],
                  .push_answer = answer});
}

static inline void
talk_greet_as(struct talk *talk, uint32_t ps, uint64_t epoch, uint64_t incarnation, uint64_t grant)
{
    wire_greeting greeting = WIRE_GREETING_INIT;

    greeting.epoch = epoch;
    greeting.ps_incarnation = incarnation;
    greeting.cluster_id = 42;
    greeting.staging_grant_bytes = grant;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    answer.greeting = &greeting;
    talk_answer(talk, ps, &answer);
}

static inline void talk_greet(struct talk *talk, uint32_t ps)
{
    talk_greet_as(talk, ps, 1, 100 + ps, GRANT);
}

/* The stream is open, its hello is out and it is writable again; not greeted. */
static inline void talk_hello(struct talk *talk, uint32_t ps)
{
    talk_writable(talk, ps);
    assert_non_null(talk_request(talk, ps));
    assert_non_null(talk_request(talk, ps)->hello);
    talk_writable(talk, ps);
}

/* A member that has joined, with every push stream open, greeted and writable. */
static inline void talk_open_with(struct talk *talk, const struct session_config *config)
{
    talk_config(talk, config);
    talk_start(talk);
    talk_joined(talk, config->ps_count);
    for (uint32_t ps = 0; ps < config->ps_count; ps++) {
        talk_hello(talk, ps);
        talk_greet(talk, ps);
    }
}

static inline struct talk *talk_open(struct talk *talk, uint32_t ps_count)
{
    const struct session_config config = talk_member(ps_count);

    talk_open_with(talk, &config);
    return talk;
}

static inline void talk_close(struct talk *talk) { session_destroy(talk->session); }

/* A test whose *state is a talk, which is closed afterwards. */
#define TALK_TEST(name) FIXTURE_TEST(name, struct talk *const talk, talk_setup, talk_teardown)

static inline int talk_setup(void **state)
{
    *state = calloc(1, sizeof(struct talk));
    return *state == NULL;
}

static inline int talk_teardown(void **state)
{
    talk_close(*state);
    free(*state);
    return 0;
}

static inline struct session_piece
talk_piece(uint32_t ps, uint64_t shard, void *data, uint64_t bytes)
{
    return (struct session_piece){
        .ps = ps, .shard_id = shard, .layout_epoch = 1, .bytes = bytes, .data = data};
}

static inline void
talk_push(struct talk *talk, uint64_t token, const struct session_piece *pieces, uint32_t count)
{
    const struct session_push push = {
        .token = token, .pieces = pieces, .piece_count = count, .weight = 1};

    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = &push});
}

/* A push of 8 bytes to each of the ps named in the mask: shard 10 on ps 0, 11 on ps 1 … */
static inline void talk_push_to(struct talk *talk, uint64_t token, uint32_t ps_mask)
{
    static uint8_t data[8];
    struct session_piece pieces[4];
    uint32_t count = 0;

    for (uint32_t ps = 0; ps < 4; ps++)
        if (ps_mask >> ps & 1u)
            pieces[count++] = talk_piece(ps, 10 + ps, data, sizeof data);
    talk_push(talk, token, pieces, count);
}

/* The same, and its message is out. */
static inline void talk_push_out(struct talk *talk, uint64_t token, uint32_t ps_mask)
{
    talk_push_to(talk, token, ps_mask);
    for (uint32_t ps = 0; ps < 4; ps++)
        if (ps_mask >> ps & 1u)
            talk_writable(talk, ps);
}

static inline void talk_staged(struct talk *talk, uint32_t ps, uint64_t sequence)
{
    struct said said;

    talk_answer(talk, ps, say_staged(&said, sequence, 0));
}

static inline void
talk_done_with(struct talk *talk, uint32_t ps, uint64_t sequence, uint64_t version, bool voided)
{
    wire_done done = WIRE_DONE_INIT;

    done.sequence = sequence;
    done.voided = voided;
    done.n_versions = 1;
    done.versions = &version;
    done.open_step = talk->open_step;
    wire_done *list[] = {&done};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    answer.n_done = 1;
    answer.done = list;
    talk_answer(talk, ps, &answer);
}

static inline void talk_done(struct talk *talk, uint32_t ps, uint64_t sequence)
{
    talk_done_with(talk, ps, sequence, 1, false);
}

static inline void talk_refused(struct talk *talk, uint32_t ps, uint64_t sequence)
{
    struct said said;

    talk_answer(
        talk, ps, say_refused(&said, sequence, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_NON_FINITE));
}

static inline void talk_closed_for(
    struct talk *talk, uint32_t ps, bool decided, uint64_t final, uint64_t voided,
    wire_close_cause *cause)
{
    wire_closed closed = WIRE_CLOSED_INIT;

    closed.cause = cause;
    closed.final = final;
    closed.decided = decided;
    closed.n_voided = voided != 0;
    closed.voided = &voided;
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    answer.closed = &closed;
    talk_answer(talk, ps, &answer);
}

static inline void
talk_closed(struct talk *talk, uint32_t ps, bool decided, uint64_t final, uint64_t voided)
{
    talk_closed_for(talk, ps, decided, final, voided, NULL);
}

static inline void talk_ended(
    struct talk *talk, uint32_t ps, enum session_stream_kind kind, const struct sumac_error *error)
{
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_STREAM_LOST,
                  .ps = ps,
                  .stream_kind = kind,
                  .generation = talk->generation[ps][kind],
                  .error = error});
}

static inline void talk_lost(struct talk *talk, uint32_t ps, enum session_stream_kind kind)
{
    const struct sumac_error error = {.status = SUMAC_UNAVAILABLE, .text = "Socket closed"};

    talk_ended(talk, ps, kind, &error);
}

/* A tick at the time that the last event asked for first. */
static inline void talk_tick_when_due(struct talk *talk)
{
    const struct session_effect *wake = NULL;

    for (uint32_t i = 0; i < talk->effects.count; i++)
        if (talk->effects.items[i].kind == SESSION_EFFECT_WAKE)
            wake = &talk->effects.items[i];
    assert_non_null(wake); /* each is earlier than the one before it */
    if (wake->at_us > talk->now_us)
        talk->now_us = wake->at_us;
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_TICK});
}

static inline void talk_tick_after(struct talk *talk, uint32_t ms)
{
    talk->now_us += (uint64_t)ms * 1000;
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_TICK});
}

/* The stream breaks, and the next one is opened when it is due. */
static inline void talk_broke(struct talk *talk, uint32_t ps, enum session_stream_kind kind)
{
    const uint64_t broken = talk->generation[ps][kind];

    talk_lost(talk, ps, kind);
    for (int i = 0; i < 250 && talk->generation[ps][kind] == broken; i++)
        talk_tick_after(talk, 10);
    assert_true(talk->generation[ps][kind] > broken);
}

/* The stream breaks, and the next one is open, greeted and writable. */
static inline void talk_reconnect(struct talk *talk, uint32_t ps)
{
    talk_broke(talk, ps, SESSION_PUSH_STREAM);
    talk_hello(talk, ps);
    talk_greet(talk, ps);
}

static inline void talk_call_failed(
    struct talk *talk, unsigned method, enum sumac_status status, enum sumac_reason reason)
{
    const struct sumac_error error = {
        .status = status, .reason = reason, .text = "the call failed"};

    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_CALL_FAILED, .call = talk->calls[method], .error = &error});
}
