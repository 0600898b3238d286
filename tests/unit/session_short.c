/* SPDX-License-Identifier: Apache-2.0 */
/* session_short.c -- a session of which each take of memory fails once, among ps that answer
 * everything.
 *
 * It goes on, and then what was begun is answered once, and the same again succeeds and takes no
 * more than without a failure. Or it ends, which it says once with the reason, and what is begun
 * later is refused at once.
 */
#include <inttypes.h>
#include <stdio.h>

#include "each_take.h"
#include "session_talk.h"
#include "sumac/tensor.h"

#define PS 2u
#define FLOOR 4000u
#define POOL 20000u
#define LARGE_BYTES 4096u
#define TOKENS_MAX 32u
#define STAGED_MAX 8u
#define TODO_MAX 64u
#define IDLE_MAX 200 /* ticks of 100 ms */

/* ---- ps that answer ---- */

struct told_part {
    uint64_t sequence;
    uint32_t resend, shards;
};

/* What is to be answered to one effect: copied, since effects are lent until the next step. */
struct todo {
    enum session_effect_kind kind;
    uint32_t ps;
    enum session_stream_kind stream;
    uint64_t generation, call;
    bool hello, joins, leaves, renews, finds;
    struct told_part whole[4], asks[4];
    uint32_t whole_count, ask_count;
    uint64_t commit_through, withdrawn;
    uint64_t pulls[4], pull_shard;
    uint32_t pull_count;
    bool is_collective;
};

struct peers {
    struct talk talk;
    struct todo todo[TODO_MAX];
    uint32_t todo_count;
    struct told_part staged[PS][STAGED_MAX]; /* and not committed yet */
    uint32_t staged_count[PS];
    bool refuses;   /* the next part is refused, … */
    bool gives_way; /* … the next one that is staged is to give way */
    uint32_t answers[TOKENS_MAX], failures;
    uint32_t ended, left;
};

static bool is_find(const struct session_effect *effect)
{
    return effect->service == WIRE_VARIABLES &&
           ((const wire_list_request *)effect->request)->after_id == UINT64_MAX;
}

static void note_part(struct todo *todo, const wire_part *part)
{
    struct told_part told = {.sequence = part->sequence, .resend = part->resend};

    for (size_t i = 0; i < part->n_pieces; i++)
        told.shards += i == 0 || part->pieces[i]->shard_id != part->pieces[i - 1]->shard_id;
    assert_true(todo->whole_count < 4 && todo->ask_count < 4);
    if (part->room_bytes > 0 && part->n_pieces == 0)
        todo->asks[todo->ask_count++] = told;
    else if (part->last)
        todo->whole[todo->whole_count++] = told;
    if (part->eager && part->sequence > todo->commit_through)
        todo->commit_through = part->sequence;
}

static void note_pull(struct todo *todo, const wire_pull_request *request)
{
    if (request == NULL || request->request == 0 || request->cancel)
        return;
    assert_true(todo->pull_count < 4);
    todo->pulls[todo->pull_count++] = request->request;
    todo->is_collective = request->collective != NULL;
    todo->pull_shard = request->n_pieces > 0 ? request->pieces[0]->shard_id : 0;
}

static void note_request(struct todo *todo, const wire_push_request *request)
{
    todo->hello = request->hello != NULL;
    for (size_t i = 0; i < request->n_parts; i++)
        note_part(todo, request->parts[i]);
    if (request->commit != NULL && request->commit->commit_through > todo->commit_through)
        todo->commit_through = request->commit->commit_through;
    if (request->n_withdraws > 0)
        todo->withdrawn = request->withdraws[0]->sequence;
    for (size_t i = 0; i < request->n_pulls; i++)
        note_pull(todo, request->pulls[i]);
}

static void note_answer(struct peers *peers, const struct session_effect *effect)
{
    assert_in_range(effect->token, 1, TOKENS_MAX - 1);
    assert_int_equal(++peers->answers[effect->token], 1);
    if (effect->error.status == SUMAC_OK)
        return;
    if (effect->error.reason != SUMAC_REASON_OUT_OF_MEMORY)
        fail_msg("token %" PRIu64 ": %s", effect->token, effect->error.text);
    peers->failures++;
}

static void note_call(struct todo *todo, const struct session_effect *effect)
{
    todo->call = effect->call;
    todo->finds = is_find(effect);
    todo->joins = effect->service == WIRE_SESSIONS && effect->method == WIRE_SESSIONS_JOIN;
    todo->leaves = effect->service == WIRE_SESSIONS && effect->method == WIRE_SESSIONS_LEAVE;
    todo->renews = effect->service == WIRE_SESSIONS && effect->method == WIRE_SESSIONS_RENEW;
}

static void note_effect(struct peers *peers, const struct session_effect *effect)
{
    struct todo todo = {
        .kind = effect->kind,
        .ps = effect->ps,
        .stream = effect->stream_kind,
        .generation = effect->generation};

    switch (effect->kind) {
    case SESSION_EFFECT_CALL:
        note_call(&todo, effect);
        break;
    case SESSION_EFFECT_OPEN_STREAM:
        break;
    case SESSION_EFFECT_SEND_PUSH:
        note_request(&todo, effect->push_request);
        break;
    case SESSION_EFFECT_SEND_PULL:
        todo.stream = SESSION_PULL_STREAM;
        todo.hello = effect->pull_request->hello != NULL;
        note_pull(&todo, effect->pull_request);
        break;
    case SESSION_EFFECT_PUSHED:
    case SESSION_EFFECT_PULLED:
    case SESSION_EFFECT_ANSWERED:
        note_answer(peers, effect);
        return;
    case SESSION_EFFECT_LEFT:
        peers->left++;
        return;
    case SESSION_EFFECT_ENDED:
        assert_int_equal(effect->error.reason, SUMAC_REASON_OUT_OF_MEMORY);
        peers->ended++;
        return;
    case SESSION_EFFECT_ADDRESSES:
    case SESSION_EFFECT_CANCEL_CALL:
    case SESSION_EFFECT_JOINED:
    case SESSION_EFFECT_CLOSE_STREAM:
    case SESSION_EFFECT_LOG:
    case SESSION_EFFECT_WAKE:
        return;
    }
    assert_true(peers->todo_count < TODO_MAX);
    peers->todo[peers->todo_count++] = todo;
}

static void note(struct peers *peers)
{
    for (uint32_t i = 0; i < peers->talk.effects.count; i++)
        note_effect(peers, &peers->talk.effects.items[i]);
}

static void step(struct peers *peers, struct session_event event)
{
    talk_step(&peers->talk, event);
    note(peers);
}

static void
answer_push(struct peers *peers, const struct todo *todo, const wire_push_answer *answer)
{
    step(
        peers, (struct session_event){
                   .kind = SESSION_EVENT_PUSH_ANSWER,
                   .ps = todo->ps,
                   .generation = todo->generation,
                   .push_answer = answer});
}

static wire_greeting greeting_of(uint32_t ps)
{
    wire_greeting greeting = WIRE_GREETING_INIT;

    greeting.epoch = 1;
    greeting.ps_incarnation = 100 + ps;
    greeting.cluster_id = 42;
    greeting.staging_grant_bytes = FLOOR;
    greeting.part_bytes_max = POOL;
    return greeting;
}

static void answer_call(struct peers *peers, const struct todo *todo)
{
    uint8_t id[16] = {7};
    uint64_t incarnations[] = {100, 101};
    wire_join_reply join = WIRE_JOIN_REPLY_INIT;
    wire_leave_reply leave = WIRE_LEAVE_REPLY_INIT;
    wire_renew_reply renew = WIRE_RENEW_REPLY_INIT;
    wire_list_reply list = WIRE_LIST_REPLY_INIT;

    list.cluster_id = join.cluster_id = 42;
    list.epoch = join.epoch = 1;
    list.ps = todo->ps;
    list.ps_incarnation = 100 + todo->ps;
    join.session_id = (wire_bytes){.data = id, .len = sizeof id};
    join.attempt = 1;
    join.lease_ms = 60000;
    join.ps_lost_ms = LOST_MS;
    join.n_ps_addresses = join.n_ps_incarnations = PS;
    join.ps_addresses = (char **)(uintptr_t)talk_addresses;
    join.ps_incarnations = incarnations;
    step(
        peers, (struct session_event){
                   .kind = SESSION_EVENT_CALL_ANSWERED,
                   .call = todo->call,
                   .reply = todo->joins    ? &join.base
                            : todo->leaves ? &leave.base
                            : todo->renews ? &renew.base
                                           : &list.base});
}

static void writable(struct peers *peers, const struct todo *todo)
{
    step(
        peers, (struct session_event){
                   .kind = SESSION_EVENT_STREAM_WRITABLE,
                   .ps = todo->ps,
                   .stream_kind = todo->stream,
                   .generation = todo->generation});
}

/* Parts that are whole are staged, once. */
static void stage(struct peers *peers, const struct todo *todo, const struct told_part *part)
{
    struct told_part *const staged = peers->staged[todo->ps];
    uint32_t *const count = &peers->staged_count[todo->ps];
    struct said said;
    bool known = false;

    for (uint32_t i = 0; i < *count; i++)
        known = known || staged[i].sequence == part->sequence;
    assert_true(*count < STAGED_MAX);
    if (!known)
        staged[(*count)++] = *part;
    answer_push(
        peers, todo,
        peers->refuses
            ? say_refused(
                  &said, part->sequence, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY)
            : say_staged(&said, part->sequence, part->resend));
}

static void give_way(struct peers *peers, const struct todo *todo, const struct told_part *part)
{
    struct said said;

    peers->gives_way = false;
    answer_push(peers, todo, say_give_way(&said, part->sequence, part->resend));
}

static void finish(struct peers *peers, const struct todo *todo)
{
    struct told_part *const staged = peers->staged[todo->ps];
    uint64_t versions[16];

    for (uint32_t i = 0; i < 16; i++)
        versions[i] = 1;
    while (peers->staged_count[todo->ps] > 0 && staged[0].sequence <= todo->commit_through) {
        wire_done done = WIRE_DONE_INIT, *list[] = {&done};
        wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
        done.sequence = staged[0].sequence;
        done.versions = versions;
        done.n_versions = staged[0].shards;
        done.voided = peers->refuses;
        answer.done = list;
        answer.n_done = 1;
        peers->staged_count[todo->ps]--;
        memmove(staged, staged + 1, peers->staged_count[todo->ps] * sizeof *staged);
        answer_push(peers, todo, &answer);
    }
}

static wire_collective_result result_of(uint64_t *extent)
{
    wire_collective_result result = WIRE_COLLECTIVE_RESULT_INIT;

    *extent = 2;
    result.data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    result.shape = extent;
    result.n_shape = 1;
    return result;
}

static void answer_beside(struct peers *peers, const struct todo *todo, uint32_t i)
{
    static uint8_t values[8];
    uint64_t extent;
    wire_collective_result result = result_of(&extent);
    wire_pull_answer pulled = WIRE_PULL_ANSWER_INIT, *list[] = {&pulled};
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    pulled.request = todo->pulls[i];
    pulled.last = true;
    pulled.collective = &result;
    pulled.payload = (wire_bytes){.data = values, .len = sizeof values};
    answer.pulled = list;
    answer.n_pulled = 1;
    answer_push(peers, todo, &answer);
}

static void answer_pull(struct peers *peers, const struct todo *todo, uint32_t i)
{
    static const uint8_t values[8];
    const struct span span = {.data = values, .bytes = sizeof values};
    uint64_t extent, version = 1;
    wire_collective_result result = result_of(&extent);
    wire_greeting greeting = greeting_of(todo->ps);
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;

    if (todo->hello)
        answer.greeting = &greeting;
    answer.request = todo->pulls[i];
    answer.last = true;
    piece.shard_id = todo->pull_shard;
    piece.bytes = sizeof values;
    answer.pieces = pieces;
    answer.n_pieces = !todo->is_collective;
    answer.versions = &version;
    answer.n_versions = !todo->is_collective;
    if (todo->is_collective)
        answer.collective = &result;
    step(
        peers, (struct session_event){
                   .kind = SESSION_EVENT_PULL_ANSWER,
                   .ps = todo->ps,
                   .stream_kind = SESSION_PULL_STREAM,
                   .generation = todo->generation,
                   .pull_answer = &answer,
                   .payload = &span,
                   .payload_spans = 1});
}

static void answer_message(struct peers *peers, const struct todo *todo)
{
    wire_greeting greeting = greeting_of(todo->ps);
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;
    struct said said;

    writable(peers, todo);
    answer.greeting = &greeting;
    if (todo->hello)
        answer_push(peers, todo, &answer);
    for (uint32_t i = 0; i < todo->ask_count; i++)
        answer_push(peers, todo, say_resend(&said, todo->asks[i].sequence));
    for (uint32_t i = 0; i < todo->whole_count; i++)
        stage(peers, todo, &todo->whole[i]);
    if (todo->withdrawn != 0)
        peers->staged_count[todo->ps] = 0;
    finish(peers, todo);
    for (uint32_t i = 0; i < todo->pull_count; i++)
        answer_beside(peers, todo, i);
    if (peers->gives_way && todo->whole_count > 0)
        give_way(peers, todo, &todo->whole[0]);
}

static void answer(struct peers *peers, const struct todo *todo)
{
    if (todo->kind == SESSION_EFFECT_CALL) {
        answer_call(peers, todo);
    } else if (todo->kind == SESSION_EFFECT_OPEN_STREAM) {
        writable(peers, todo);
    } else if (todo->kind == SESSION_EFFECT_SEND_PULL) {
        writable(peers, todo);
        for (uint32_t i = 0; i < todo->pull_count; i++)
            answer_pull(peers, todo, i);
    } else {
        answer_message(peers, todo);
    }
}

/* Until nothing is left to be answered. */
static void answer_all(struct peers *peers)
{
    while (peers->todo_count > 0 && peers->ended == 0) {
        const struct todo todo = peers->todo[0];
        peers->todo_count--;
        memmove(peers->todo, peers->todo + 1, peers->todo_count * sizeof todo);
        answer(peers, &todo);
    }
}

static bool are_answered(const struct peers *peers, uint64_t first, uint32_t count)
{
    bool all = true;

    for (uint32_t i = 0; i < count; i++)
        all = all && peers->answers[first + i] == 1;
    return all;
}

static void settle(struct peers *peers, uint64_t first, uint32_t count)
{
    answer_all(peers);
    for (int i = 0; i < IDLE_MAX && peers->ended == 0; i++) {
        if (are_answered(peers, first, count) && i >= 3)
            return;
        peers->talk.now_us += 100000;
        step(peers, (struct session_event){.kind = SESSION_EVENT_TICK});
        answer_all(peers);
    }
    if (peers->ended == 0)
        fail_msg("of tokens %" PRIu64 " and after it one is not answered", first);
}

/* ---- conversations ---- */

/* Begins `count` things, as tokens from `first` on. */
struct conversation {
    void (*say)(struct peers *peers, uint64_t first);
    uint32_t count;
    bool fails; /* the one that is refused */
};

static uint8_t data[LARGE_BYTES];

static void begin_push(struct peers *peers, const struct session_push *push)
{
    step(peers, (struct session_event){.kind = SESSION_EVENT_PUSH, .push = push});
}

/* One push to two ps, with two shards on ps 0, and one to ps 0 alone. */
static void push_to_both(struct peers *peers, uint64_t first)
{
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, 8), talk_piece(1, 11, data, 8), talk_piece(0, 12, data, 8)};

    begin_push(
        peers,
        &(struct session_push){.token = first, .pieces = pieces, .piece_count = 3, .weight = 1});
    begin_push(
        peers, &(struct session_push){
                   .token = first + 1, .pieces = pieces, .piece_count = 1, .weight = 1});
}

static void push_rows(struct peers *peers, uint64_t first)
{
    static const int64_t rows[] = {3, 1};
    struct session_piece piece = talk_piece(0, 10, data, 8);

    piece.rows = rows;
    piece.row_bytes = 4;
    begin_push(
        peers,
        &(struct session_push){.token = first, .pieces = &piece, .piece_count = 1, .weight = 1});
}

/* It asks for room; then what is staged gives way, and comes again. */
static void push_large(struct peers *peers, uint64_t first)
{
    const struct session_piece pieces[] = {
        talk_piece(0, 10, data, LARGE_BYTES), talk_piece(1, 11, data, 8)};

    peers->gives_way = true;
    begin_push(
        peers,
        &(struct session_push){.token = first, .pieces = pieces, .piece_count = 2, .weight = 1});
}

static void push_refused(struct peers *peers, uint64_t first)
{
    peers->refuses = true;
    push_to_both(peers, first);
    settle(peers, first, 2);
    peers->refuses = false;
}

/* The stream of ps 0 breaks while it has something; all is said again on the next one. */
static void push_again(struct peers *peers, uint64_t first)
{
    push_to_both(peers, first);
    peers->todo_count = 0;
    memset(peers->staged_count, 0, sizeof peers->staged_count);
    for (uint32_t ps = 0; ps < PS && peers->ended == 0; ps++) {
        const struct sumac_error error = {.status = SUMAC_UNAVAILABLE, .text = "Socket closed"};
        step(
            peers, (struct session_event){
                       .kind = SESSION_EVENT_STREAM_LOST,
                       .ps = ps,
                       .stream_kind = SESSION_PUSH_STREAM,
                       .generation = peers->talk.generation[ps][SESSION_PUSH_STREAM],
                       .error = &error});
    }
}

static void pull_both(struct peers *peers, uint64_t first)
{
    static uint8_t into[16];
    static const int64_t rows[] = {3, 1};
    struct session_piece pieces[] = {
        talk_piece(0, 10, into, 8), talk_piece(1, 11, into + 8, 8), talk_piece(1, 12, into, 8)};
    const struct session_pull plain = {
        .token = first, .pieces = pieces, .piece_count = 2, .after_own_pushes = true};
    const struct session_pull by_rows = {
        .token = first + 1, .pieces = &pieces[2], .piece_count = 1};

    pieces[2].rows = rows;
    pieces[2].row_bytes = 4;
    step(peers, (struct session_event){.kind = SESSION_EVENT_PULL, .pull = &plain});
    step(peers, (struct session_event){.kind = SESSION_EVENT_PULL, .pull = &by_rows});
}

static void call_once(struct peers *peers, uint64_t first)
{
    static const wire_list_request list = WIRE_LIST_REQUEST_INIT;
    const struct session_call call = {
        .token = first,
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_LIST,
        .request = &list.base,
        .timeout_ms = 60000};

    step(peers, (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &call});
}

static void collective_as(struct peers *peers, uint64_t first, bool beside, bool known)
{
    static uint8_t into[8];
    static wire_collective header;
    static wire_collective_round round;
    const wire_bytes name = {.len = 5, .data = (uint8_t *)(uintptr_t) "grads"};
    const struct session_piece pushed = {.data = data, .bytes = 8};
    const struct session_piece pulled = {.data = known ? into : NULL, .bytes = known ? 8 : 0};

    header = (wire_collective)WIRE_COLLECTIVE_INIT;
    round = (wire_collective_round)WIRE_COLLECTIVE_ROUND_INIT;
    header.name = round.name = name;
    header.round = round.round = first;
    const struct session_push push = {
        .token = first, .pieces = &pushed, .piece_count = 1, .weight = 1, .collective = &header};
    const struct session_pull pull = {
        .token = first + 1,
        .pieces = &pulled,
        .piece_count = 1,
        .collective = &round,
        .beside = beside};
    step(
        peers,
        (struct session_event){.kind = SESSION_EVENT_COLLECTIVE, .push = &push, .pull = &pull});
    if (peers->answers[first] == 1 && peers->failures > 0)
        peers->answers[first + 1]++; /* there is no pull of one that is refused at once */
    settle(peers, first, 2);
    if (peers->ended == 0)
        step(
            peers, (struct session_event){.kind = SESSION_EVENT_COLLECTIVE_RESULT, .token = first});
}

static void meet_beside(struct peers *peers, uint64_t first)
{
    collective_as(peers, first, true, true);
}
static void meet_apart(struct peers *peers, uint64_t first)
{
    collective_as(peers, first, false, false);
}

static const struct conversation conversations[] = {
    {push_to_both, 2, false}, {push_rows, 1, false},   {push_large, 1, false},
    {push_refused, 2, true},  {push_again, 2, false},  {pull_both, 2, false},
    {call_once, 1, false},    {meet_beside, 2, false}, {meet_apart, 2, false}};

/* ---- each take ---- */

static void open_session(struct peers *peers)
{
    step(peers, (struct session_event){.kind = SESSION_EVENT_START});
    settle(peers, 0, 0);
}

/* The session refuses at once what begins after its end. */
static void expect_refused(struct peers *peers, const struct conversation *conversation)
{
    const uint64_t first = 16;

    if (conversation->say == push_again || conversation->say == push_refused)
        return;
    const uint32_t before = peers->failures;
    conversation->say(peers, first);
    assert_true(peers->answers[first] == 1);
    assert_true(peers->failures > before);
    assert_int_equal(peers->ended, 1);
}

/* *out: the bytes that the session holds of its pools after all was said twice. Returns the takes.
 */
static uint64_t converse(
    const struct conversation *conversation, uint64_t failing, bool opening, int64_t *out,
    uint32_t *ends)
{
    const struct session_config config = talk_member(PS);
    struct peers peers = {.talk = {.now_us = 1000, .wake_us = UINT64_MAX}};

    each_take_reset();
    if (opening)
        each_take_begin(failing);
    peers.talk.session = session_create(&config, &each_take_source);
    if (peers.talk.session != NULL)
        open_session(&peers);
    if (!opening)
        each_take_begin(failing);
    if (peers.talk.session != NULL && peers.ended == 0) {
        conversation->say(&peers, 1);
        settle(&peers, 1, conversation->count);
    }
    const uint64_t takes = each_take_end();
    *ends += peers.talk.session == NULL || peers.ended > 0;
    if (peers.ended > 0)
        expect_refused(&peers, conversation);
    if (peers.talk.session != NULL && peers.ended == 0) {
        const uint32_t failures = peers.failures;
        conversation->say(&peers, 8);
        settle(&peers, 8, conversation->count);
        assert_int_equal(peers.failures - failures, conversation->fails ? conversation->count : 0);
        if (failing == 0)
            *out = each_take_out();
        assert_int_equal(each_take_out(), *out);
        step(&peers, (struct session_event){.kind = SESSION_EVENT_LEAVE, .done = true});
        settle(&peers, 0, 0);
        assert_int_equal(peers.left, 1);
    }
    session_destroy(peers.talk.session);
    assert_int_equal(each_take_held(), 0);
    return takes;
}

static void each_conversation(bool opening)
{
    for (size_t i = 0; i < sizeof conversations / sizeof *conversations; i++) {
        int64_t out = 0;
        uint32_t ends = 0;
        uint64_t failing = 1;
        (void)converse(&conversations[i], 0, opening, &out, &ends);
        assert_int_equal(ends, 0);
        while (converse(&conversations[i], failing, opening, &out, &ends) >= failing)
            failing++;
        assert_in_range(failing, 3, 1000);
    }
}

TEST(a_session_that_has_no_memory_once_goes_on_or_ends_with_that) { each_conversation(false); }

TEST(so_it_does_while_it_opens) { each_conversation(true); }
