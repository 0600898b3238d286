/* SPDX-License-Identifier: Apache-2.0 */
/* session_refuses.c -- what a session does not take in: of its caller, a push, a pull or a call
 * that it answers at once with the reason; of a ps, a greeting of another cluster. */
#include "session_talk.h"

enum begun { A_PUSH, A_PULL, A_CALL };

static const wire_list_request list = WIRE_LIST_REQUEST_INIT;

/* The client begins that with ps `ps`. How it is refused; NULL: it goes on. */
static const struct sumac_error *begin(struct talk *talk, enum begun what, uint32_t ps)
{
    static uint8_t data[8];
    static const enum session_effect_kind ends[] = {
        SESSION_EFFECT_PUSHED, SESSION_EFFECT_PULLED, SESSION_EFFECT_ANSWERED};
    const struct session_piece piece = talk_piece(ps, 10, data, sizeof data);
    const struct session_pull pulled = {.token = 9, .pieces = &piece, .piece_count = 1};
    const struct session_call called = {
        .token = 9,
        .ps = ps,
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_LIST,
        .request = &list.base,
        .timeout_ms = 1000};

    if (what == A_PUSH)
        talk_push(talk, 9, &piece, 1);
    else if (what == A_PULL)
        talk_pull(talk, &pulled);
    else
        talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CALL, .wanted_call = &called});
    const struct session_effect *end = talk_find(talk, ends[what]);
    if (end == NULL)
        return NULL;
    assert_int_equal(end->token, 9);
    return &end->error;
}

static void assert_refused(
    const struct sumac_error *error, enum sumac_status status, enum sumac_reason reason,
    const char *text)
{
    assert_non_null(error);
    assert_int_equal(error->status, status);
    assert_int_equal(error->reason, reason);
    assert_string_equal(error->text, text);
}

TEST(what_names_a_ps_that_there_is_not_is_refused)
{
    static const struct {
        enum begun what;
        enum sumac_reason reason;
        const char *text;
    } rows[] = {
        {A_PUSH, SUMAC_REASON_UNKNOWN_SHARD, "a piece names a ps that is none of the 2"},
        {A_PULL, SUMAC_REASON_UNKNOWN_SHARD, "a piece names ps 2, and there are 2"},
        {A_CALL, SUMAC_REASON_UNSPECIFIED, "ps 2 is called, and there are 2"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct talk talk;
        talk_open(&talk, 2);

        assert_refused(
            begin(&talk, rows[i].what, 2), SUMAC_INVALID_ARGUMENT, rows[i].reason, rows[i].text);
        assert_null(begin(&talk, rows[i].what, 1)); /* the last one that there is */
        talk_close(&talk);
    }
}

TALK_TEST(before_the_session_is_open_nothing_begins)
{
    static const struct {
        enum begun what;
        enum sumac_reason reason;
        const char *text;
    } rows[] = {
        {A_PUSH, SUMAC_REASON_SESSION_CLOSED, "the session is not open, or is leaving; join again"},
        {A_PULL, SUMAC_REASON_UNSPECIFIED, "the session is not open yet"},
        {A_CALL, SUMAC_REASON_UNSPECIFIED, "the session is not open yet"},
    };
    const struct session_config config = talk_member(2);

    talk_config(talk, &config);
    talk_start(talk); /* before it joins */

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_refused(
            begin(talk, rows[i].what, 0), SUMAC_FAILED_PRECONDITION, rows[i].reason, rows[i].text);

    talk_joined(talk, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_null(begin(talk, rows[i].what, 0));
}

TALK_TEST(what_begins_when_the_session_is_over_ends_as_it_did)
{
    talk_open(talk, 2);
    const char *text = "ps 0 closed this session at push 0; start this process again";

    talk_closed(talk, 0, true, 0, 0);
    assert_string_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.text, text);

    for (enum begun what = A_PUSH; what <= A_CALL; what++)
        assert_refused(begin(talk, what, 0), SUMAC_ABORTED, SUMAC_REASON_SESSION_CLOSED, text);
}

/* The session is not over: what its other ps still answer counts. */
TALK_TEST(when_a_ps_was_terminated_neither_a_push_nor_a_pull_begins)
{
    talk_open(talk, 2);
    const struct sumac_error exits = {
        .status = SUMAC_UNAVAILABLE, .reason = SUMAC_REASON_TERMINATED, .text = "SIGTERM"};

    talk_push_out(talk, 7, 3);
    talk_staged(talk, 0, 1);
    talk_staged(talk, 1, 1);
    talk_done(talk, 0, 1);
    talk_ended(talk, 0, SESSION_PUSH_STREAM, &exits);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));

    for (enum begun what = A_PUSH; what <= A_PULL; what++) {
        const struct sumac_error *error = begin(talk, what, 1);
        assert_non_null(error);
        assert_int_equal(error->reason, SUMAC_REASON_TERMINATED);
        assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    }
}

TALK_TEST(a_pull_of_more_pieces_of_one_ps_than_its_bound_is_refused)
{
    talk_open(talk, 2);
    static struct session_piece pieces[WIRE_PULL_PIECES_MAX + 2];
    static uint8_t data[1];

    for (uint32_t i = 0; i < WIRE_PULL_PIECES_MAX + 2; i++)
        pieces[i] = talk_piece(i > 0, 10, data, 1); /* ps 1 has one too many */
    struct session_pull pull = {.token = 5, .pieces = pieces};

    pull.piece_count = WIRE_PULL_PIECES_MAX + 2;
    talk_pull(talk, &pull);
    assert_refused(
        &talk_find(talk, SESSION_EFFECT_PULLED)->error, SUMAC_INVALID_ARGUMENT,
        SUMAC_REASON_TOO_MANY_PIECES,
        "a pull has more than 16384 pieces on ps 1; pull them in several");
    pull.piece_count = WIRE_PULL_PIECES_MAX + 1;
    talk_pull(talk, &pull);

    assert_null(talk_find(talk, SESSION_EFFECT_PULLED));
}

TALK_TEST(so_many_pulls_are_in_flight_and_no_more)
{
    talk_open(talk, 1);

    for (int i = 0; i < SESSION_PULLS_IN_FLIGHT_MAX; i++)
        assert_null(begin(talk, A_PULL, 0));

    assert_refused(
        begin(talk, A_PULL, 0), SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED,
        "1024 pulls are in flight, no more may be; wait for one of them first");
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_CANCEL_PULL, .token = 9});

    assert_null(begin(talk, A_PULL, 0));
}

/* ---- greetings */

static void greet_of(struct talk *talk, uint32_t ps, wire_greeting greeting)
{
    wire_push_answer answer = WIRE_PUSH_ANSWER_INIT;

    greeting.staging_grant_bytes = GRANT;
    answer.greeting = &greeting;
    talk_answer(talk, ps, &answer);
}

/* Its address is that of another run. A ps that was known, and is of another cluster now, was
 * restarted: that is another end. */
TALK_TEST(a_ps_of_another_cluster_that_greets_first_is_no_ps_of_this_one)
{
    const struct session_config config = talk_member(2);
    uint64_t incarnations[] = {100, 101}; /* ps 0 alone has heard from ps 1 */

    talk_config(talk, &config);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
    talk_known(talk, 0);
    uint8_t id[16] = {7};
    wire_join_reply reply = WIRE_JOIN_REPLY_INIT;
    reply.cluster_id = 42;
    reply.epoch = 1;
    reply.session_id = (wire_bytes){.data = id, .len = sizeof id};
    reply.lease_ms = LEASE_MS;
    reply.n_ps_addresses = 2;
    reply.ps_addresses = (char **)(uintptr_t)talk_addresses;
    reply.ps_lost_ms = LOST_MS;
    reply.n_ps_incarnations = 2;
    reply.ps_incarnations = incarnations;
    talk_called_back(talk, WIRE_SESSIONS_JOIN, &reply.base);
    talk_hello(talk, 1);
    wire_greeting greeting = WIRE_GREETING_INIT;
    greeting.epoch = 1;
    greeting.ps_incarnation = 101;
    greeting.cluster_id = 0xabc;

    greet_of(talk, 1, greeting);

    assert_refused(
        &talk_find(talk, SESSION_EFFECT_ENDED)->error, SUMAC_FAILED_PRECONDITION,
        SUMAC_REASON_WRONG_CLUSTER,
        "ps 1 at h1:2222 belongs to another cluster, 0000000000000abc instead of "
        "000000000000002a; check the addresses of job ps");
}

/* Members that come and go are counted by ps 0, and a greeting may be older than another's. */
TALK_TEST(a_greeting_tells_the_membership_when_it_is_newer)
{
    talk_open(talk, 1);

    static const struct {
        uint64_t said, known;
    } rows[] = {{5, 5}, {4, 5}, {6, 6}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wire_greeting greeting = WIRE_GREETING_INIT;
        greeting.epoch = 1;
        greeting.ps_incarnation = 100;
        greeting.cluster_id = 42;
        greeting.membership_epoch = rows[i].said;
        talk_broke(talk, 0, SESSION_PUSH_STREAM);
        talk_hello(talk, 0);

        greet_of(talk, 0, greeting);

        assert_int_equal(talk_state(talk).membership_epoch, rows[i].known);
    }
}

/* It pulls from a ps that was there before the cluster was known. */
TALK_TEST(a_reader_learns_cluster_and_epoch_by_a_greeting)
{
    const struct session_config config = {
        .reader = true, .any_ps = true, .job = "", .ps_addresses = talk_addresses, .ps_count = 1};
    wire_list_reply nobodys = WIRE_LIST_REPLY_INIT;

    nobodys.ps_incarnation = 100;
    talk_config(talk, &config);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
    talk_said(talk, 0, &nobodys);
    assert_null(begin(talk, A_PULL, 0));
    assert_int_equal(talk_state(talk).cluster_id, 0); /* given */
    wire_greeting greeting = WIRE_GREETING_INIT;
    greeting.ps_incarnation = 100;

    for (uint64_t n = 0; n < 2; n++) { /* the second is another cluster's */
        greeting.cluster_id = 42 + n;
        greeting.epoch = 3 + n;
        wire_pull_answer answer = WIRE_PULL_ANSWER_INIT;
        answer.greeting = &greeting;
        talk_pull_answer(talk, 0, &answer);
        assert_int_equal(talk_state(talk).cluster_id, 42);
        assert_int_equal(talk_state(talk).epoch, 3);
    }

    assert_int_equal(talk_find(talk, SESSION_EFFECT_ENDED)->error.reason, SUMAC_REASON_STATE_LOST);
}
