/* SPDX-License-Identifier: Apache-2.0 */
/* session_find.c -- which ps there are, before there is a session: who is asked, what is enough,
 * who is missing. */
#include "loopback.h"
#include "session_talk.h"

static struct session_config of_role(uint32_t role, uint32_t ps_count)
{
    return (struct session_config){
        .role = role,
        .job = role == WIRE_ROLE_MEMBER ? "worker" : "",
        .ps_addresses = talk_addresses,
        .ps_count = ps_count};
}

static struct session_config reader(uint32_t ps_count, bool any_ps)
{
    struct session_config config = of_role(WIRE_ROLE_OBSERVER, ps_count);

    config.reader = true;
    config.any_ps = any_ps;
    return config;
}

static struct talk *start(struct talk *talk, struct session_config config)
{
    talk_config(talk, &config);
    talk_step(talk, (struct session_event){.kind = SESSION_EVENT_START});
    return talk;
}

/* The list that this ps was asked for by the last event; NULL: it was not. */
static const struct session_effect *asked(const struct talk *talk, uint32_t ps)
{
    for (uint32_t i = 0; i < talk->effects.count; i++)
        if (talk->effects.items[i].kind == SESSION_EFFECT_CALL &&
            talk->effects.items[i].service == WIRE_VARIABLES && talk->effects.items[i].ps == ps)
            return &talk->effects.items[i];
    return NULL;
}

static void refuse(struct talk *talk, uint32_t ps, struct sumac_error error)
{
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_CALL_FAILED, .call = talk->finds[ps], .error = &error});
}

static void unreachable(struct talk *talk, uint32_t ps)
{
    refuse(
        talk, ps, (struct sumac_error){.status = SUMAC_UNAVAILABLE, .text = "Connection refused"});
}

/* A ps of that cluster, which knows so many. */
static void says(struct talk *talk, uint32_t ps, uint64_t cluster_id, uint32_t count)
{
    wire_list_reply reply = WIRE_LIST_REPLY_INIT;

    reply.cluster_id = cluster_id;
    reply.epoch = 1;
    reply.ps = ps;
    reply.ps_incarnation = 100 + ps;
    reply.n_ps_addresses = count;
    reply.ps_addresses = (char **)(uintptr_t)talk_addresses;
    talk_said(talk, ps, &reply);
}

/* At the address of `ps`, ps number `index` of that cluster answers. */
static void says_as(struct talk *talk, uint32_t ps, uint32_t index, uint64_t cluster_id)
{
    wire_list_reply reply = WIRE_LIST_REPLY_INIT;

    reply.cluster_id = cluster_id;
    reply.ps = index;
    reply.ps_incarnation = 100 + index;
    talk_said(talk, ps, &reply);
}

/* The n-th line of the last event; NULL: there is none. */
static const char *line(const struct talk *talk, uint32_t n)
{
    const struct session_effect *log = talk_nth(talk, SESSION_EFFECT_LOG, n);

    return log == NULL ? NULL : log->text;
}

static const struct sumac_error *ended(const struct talk *talk)
{
    const struct session_effect *end = talk_find(talk, SESSION_EFFECT_ENDED);

    assert_non_null(end);
    return &end->error;
}

/* ---- who is asked */

TALK_TEST(every_ps_is_asked_who_it_is_and_for_no_variables)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 2));

    const struct session_effect *addresses = talk_find(talk, SESSION_EFFECT_ADDRESSES);
    assert_int_equal(addresses->address_count, 2);
    assert_string_equal(addresses->addresses[1], "h1:2222");
    for (uint32_t ps = 0; ps < 2; ps++) {
        assert_non_null(asked(talk, ps));
        assert_int_equal(asked(talk, ps)->method, WIRE_VARIABLES_LIST);
        const wire_list_request *list = (const wire_list_request *)asked(talk, ps)->request;
        assert_true(list->after_id == UINT64_MAX);
    }
    assert_null(talk_join(talk));
}

TALK_TEST(a_ps_that_is_not_up_is_asked_again_after_a_while)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 1));

    unreachable(talk, 0);
    assert_null(asked(talk, 0));
    talk_tick_when_due(talk);
    assert_non_null(asked(talk, 0));
    assert_in_range(talk->now_us, 1000 + 10000, 1000 + 20000);
}

/* ---- what is enough */

TALK_TEST(who_joins_waits_for_ps_0_alone_and_asks_the_others_until_it_has_joined)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 3));

    says(talk, 1, 42, 3);
    assert_null(talk_join(talk));
    says(talk, 0, 42, 3);
    assert_non_null(talk_join(talk));
    assert_int_equal(talk_join(talk)->cluster_id, 42);
    assert_null(talk_find(talk, SESSION_EFFECT_CANCEL_CALL));
    unreachable(talk, 2);
    talk_tick_when_due(talk);
    const uint64_t last = asked(talk, 2)->call;
    talk_joined(talk, 3);

    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
    assert_int_equal(talk_find(talk, SESSION_EFFECT_CANCEL_CALL)->call, last);
}

TALK_TEST(a_reader_is_open_when_every_ps_has_answered)
{
    start(talk, reader(2, false));

    says(talk, 0, 42, 2);
    assert_null(talk_find(talk, SESSION_EFFECT_JOINED));
    says(talk, 1, 42, 2);

    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
    assert_int_equal(talk_state(talk).cluster_id, 42);
    assert_int_equal(talk_state(talk).epoch, 1);
    assert_null(talk_join(talk));
}

TALK_TEST(of_any_ps_a_reader_waits_for_one)
{
    start(talk, reader(2, true));

    const uint64_t other = asked(talk, 0)->call;
    says(talk, 1, 42, 2);

    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
    assert_int_equal(talk_find(talk, SESSION_EFFECT_CANCEL_CALL)->call, other);
}

/* ---- more of them than were known */

/* The one address is of ps 1, say. */
TALK_TEST(who_is_no_member_learns_the_others_from_the_first_that_names_them)
{
    static const char *const one[] = {"h1:2222"};
    struct session_config config = of_role(WIRE_ROLE_OBSERVER, 1);

    config.ps_addresses = one;
    (void)start(talk, config);
    says(talk, 0, 42, 3);

    const struct session_effect *addresses = talk_find(talk, SESSION_EFFECT_ADDRESSES);
    assert_int_equal(addresses->address_count, 3);
    assert_string_equal(addresses->addresses[0], "h0:2222");
    assert_string_equal(addresses->addresses[1], "h1:2222");
    assert_null(talk_join(talk));
    for (uint32_t ps = 0; ps < 3; ps++)
        assert_non_null(asked(talk, ps));
    says(talk, 0, 42, 3);
    assert_non_null(talk_join(talk));
    assert_int_equal(talk_join(talk)->n_ps_addresses, 3);
}

/* What was asked under the old numbers is nobody's answer. */
TALK_TEST(an_answer_that_comes_when_the_list_is_another_is_not_heard)
{
    start(talk, reader(2, true));

    const uint64_t old = asked(talk, 1)->call;
    says(talk, 0, 42, 3);
    assert_int_equal(talk_find(talk, SESSION_EFFECT_CANCEL_CALL)->call, old);
    const wire_list_reply reply = WIRE_LIST_REPLY_INIT;
    talk_step(
        talk, (struct session_event){
                  .kind = SESSION_EVENT_CALL_ANSWERED, .call = old, .reply = &reply.base});

    assert_null(talk_find(talk, SESSION_EFFECT_JOINED));
}

/* ps 0 compares it with its own. */
TALK_TEST(a_members_list_stays_its_configurations)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 1));

    says(talk, 0, 42, 3);

    assert_null(talk_find(talk, SESSION_EFFECT_ADDRESSES));
    assert_int_equal(talk_join(talk)->n_ps_addresses, 1);
}

/* ---- ps of two clusters */

TALK_TEST(a_ps_of_another_cluster_than_ps_0s_is_not_found_yet)
{
    start(talk, reader(2, false));

    says(talk, 0, 42, 2);
    says(talk, 1, 41, 2);
    assert_null(talk_find(talk, SESSION_EFFECT_JOINED));
    talk_tick_when_due(talk);
    assert_non_null(asked(talk, 1));
    says(talk, 1, 42, 2);

    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
}

TALK_TEST(who_answered_for_another_cluster_before_ps_0_did_is_asked_again)
{
    start(talk, reader(2, false));

    says(talk, 1, 41, 2);
    says(talk, 0, 42, 2);
    assert_null(talk_find(talk, SESSION_EFFECT_JOINED));
    assert_non_null(asked(talk, 1));
    says(talk, 1, 42, 2);

    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
    assert_int_equal(talk_state(talk).cluster_id, 42);
}

/* Its join would be refused by ps 0. */
TALK_TEST(who_joins_goes_by_the_cluster_of_ps_0)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 2));

    says(talk, 1, 41, 2);
    says(talk, 0, 42, 2);

    assert_int_equal(talk_join(talk)->cluster_id, 42);
}

/* It has not heard of ps 0 yet. */
TALK_TEST(a_ps_of_no_cluster_yet_is_found)
{
    start(talk, reader(2, false));

    says(talk, 0, 42, 2);
    says(talk, 1, 0, 2);

    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
    assert_int_equal(talk_state(talk).cluster_id, 42);
}

/* ---- who is missing */

TALK_TEST(who_is_missing_is_said_every_five_seconds_and_why)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 3));

    says(talk, 1, 42, 3);
    unreachable(talk, 2);
    talk_tick_after(talk, 4999);
    assert_null(line(talk, 0));
    talk_tick_after(talk, 1);

    assert_string_equal(
        line(talk, 0), "waiting for ps 0 at h0:2222: no answer yet; gives up in 55 s");
    assert_string_equal(
        line(talk, 1), "waiting for ps 2 at h2:2222: Connection refused; gives up in 55 s");
    assert_null(line(talk, 2));
    says(talk, 0, 42, 3);
    talk_tick_after(talk, 5000);
    assert_string_equal(
        line(talk, 0), "waiting for ps 2 at h2:2222: Connection refused; gives up in 55 s");
    assert_null(line(talk, 1));
}

TALK_TEST(while_nobody_is_missing_the_join_is_waited_for)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 1));

    says(talk, 0, 42, 1);
    talk_tick_after(talk, 5000);

    assert_string_equal(
        line(talk, 0),
        "waiting for ps 0 at h0:2222 to open the session at every ps, for 5 s; gives up in 55 s");
    talk_joined(talk, 1);
    talk_tick_after(talk, 2000);
    talk_tick_after(talk, 3000);
    assert_null(line(talk, 0));
}

/* As long as nobody answers, a ps is asked; then it is named, with what the last try came to. */
TALK_TEST(a_ps_that_does_not_appear_is_named_with_its_address_and_why)
{
    start(talk, reader(2, false));

    says(talk, 0, 42, 2);
    unreachable(talk, 1);
    while (talk_find(talk, SESSION_EFFECT_ENDED) == NULL) {
        if (asked(talk, 1) != NULL)
            unreachable(talk, 1);
        else
            talk_tick_after(talk, 10);
        assert_true(talk->now_us <= 1000 + 1000 * LOST_MS);
    }

    assert_int_equal(ended(talk)->status, SUMAC_UNAVAILABLE);
    assert_int_equal(ended(talk)->reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(ended(talk)->text, "ps 1 at h1:2222 did not appear within "));
    assert_non_null(
        strstr(ended(talk)->text, " s (Connection refused); start it, or correct its address"));
}

TALK_TEST(localhost_beside_other_hosts_is_what_to_correct)
{
    static const char *const addresses[] = {"localhost:1", "h1:2222"};
    struct session_config config = of_role(WIRE_ROLE_MEMBER, 2);

    config.ps_addresses = addresses;
    (void)start(talk, config);
    talk_tick_after(talk, 5000);

    assert_string_equal(
        line(talk, 0),
        "waiting for ps 0 at localhost:1: no answer yet; " LOOPBACK_REMEDY "; gives up in 55 s");
    assert_string_equal(
        line(talk, 1), "waiting for ps 1 at h1:2222: no answer yet; gives up in 55 s");
    talk_tick_after(talk, LOST_MS - 5000);

    assert_string_equal(
        ended(talk)->text,
        "ps 0 at localhost:1 did not appear within 60 s (no answer); " LOOPBACK_REMEDY);
}

/* It was asked, and takes its time. */
TALK_TEST(a_ps_that_never_answers_is_given_up_in_time)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 1));

    talk_tick_after(talk, LOST_MS - 1);
    assert_null(talk_find(talk, SESSION_EFFECT_ENDED));
    talk_tick_after(talk, 1);

    assert_int_equal(talk_find(talk, SESSION_EFFECT_CANCEL_CALL)->call, talk->finds[0]);
    assert_string_equal(
        ended(talk)->text, "ps 0 at h0:2222 did not appear within 60 s (no answer); start it, or "
                           "correct its address; if its run has ended, there is nothing to join");
}

/* A reader waits for every ps as long as for ps 0. */
TALK_TEST(a_ps_that_never_answers_a_reader_is_given_up_as_late)
{
    start(talk, reader(2, false));

    says(talk, 0, 42, 2);
    talk_tick_after(talk, LOST_MS);

    assert_string_equal(
        ended(talk)->text, "ps 1 at h1:2222 did not appear within 60 s (no answer); start it, or "
                           "correct its address; if its run has ended, there is nothing to join");
}

/* The list that a ps gave lacks one: nobody can be asked. */
TALK_TEST(a_ps_whose_address_nobody_knows_is_given_up_in_time)
{
    static const char *const addresses[] = {"h0:2222", ""};
    struct session_config config = reader(2, false);

    config.ps_addresses = addresses;
    (void)start(talk, config);
    says(talk, 0, 42, 2);
    assert_null(asked(talk, 1));
    talk_tick_after(talk, LOST_MS);

    assert_string_equal(
        ended(talk)->text, "ps 1 at an unknown address did not appear within 60 s (its address is "
                           "not known); start it, or correct its address; if its run has ended, "
                           "there is nothing to join");
}

TALK_TEST(a_join_that_waited_in_vain_for_a_ps_names_the_one_that_is_missing_here_too)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 2));

    says(talk, 0, 42, 2);
    unreachable(talk, 1);
    talk_tick_after(talk, LOST_MS);

    assert_int_equal(ended(talk)->reason, SUMAC_REASON_PS_MISSING);
    assert_non_null(strstr(
        ended(talk)->text, "ps 1 at h1:2222 did not appear within 60 s (Connection refused)"));
}

/* ps 0 answers at once what no other ps can mend. */
TALK_TEST(a_join_that_was_refused_names_no_ps_that_is_missing)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 2));

    says(talk, 0, 42, 2);

    talk_call_failed(talk, WIRE_SESSIONS_JOIN, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_RUN_ENDED);

    assert_int_equal(ended(talk)->reason, SUMAC_REASON_RUN_ENDED);
    assert_string_equal(ended(talk)->text, "the call failed");
}

/* ---- who answers otherwise */

TEST(a_ps_that_has_another_index_than_its_address_is_a_configuration_to_mend)
{
    const struct {
        struct session_config config;
        uint64_t cluster_id; /* of the ps that answers */
    } rows[] = {
        {of_role(WIRE_ROLE_MEMBER, 2), 42},
        {of_role(WIRE_ROLE_MEMBER, 2), 0},
        {of_role(WIRE_ROLE_MEMBER, 2), 41}, /* each is ps 0 of its own cluster */
        {of_role(WIRE_ROLE_OBSERVER, 2), 42},
        {reader(2, false), 0},
        {reader(2, true), 42},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct talk talk;
        (void)start(&talk, rows[i].config); /* given */
        if (!rows[i].config.any_ps)
            says(&talk, 0, 42, 2);

        says_as(&talk, 1, 0, rows[i].cluster_id); /* when */

        assert_int_equal(ended(&talk)->reason, SUMAC_REASON_WRONG_CLUSTER); /* then */
        assert_string_equal(
            ended(&talk)->text,
            "ps 0 answers at h1:2222, which this configuration calls ps 1: correct the index of "
            "that ps, or the order of the ps addresses");
        talk_close(&talk);
    }
}

TALK_TEST(a_member_that_lists_one_ps_calls_it_ps_0)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 1));

    says_as(talk, 0, 1, 42);

    assert_int_equal(ended(talk)->reason, SUMAC_REASON_WRONG_CLUSTER);
}

/* The ps knows only its own address as long as ps 0 does not call it. */
TALK_TEST(the_single_address_of_a_reader_is_that_of_any_ps)
{
    start(talk, reader(1, false));

    says_as(talk, 0, 1, 0);

    assert_non_null(talk_find(talk, SESSION_EFFECT_JOINED));
}

TALK_TEST(what_is_no_ps_is_said)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 2));

    refuse(talk, 1, (struct sumac_error){.status = SUMAC_UNIMPLEMENTED, .text = "unknown service"});

    assert_int_equal(ended(talk)->status, SUMAC_FAILED_PRECONDITION);
    assert_int_equal(ended(talk)->reason, SUMAC_REASON_UNSUPPORTED);
    assert_string_equal(
        ended(talk)->text, "what listens at h1:2222, the address of ps 1, is no ps (unknown "
                           "service); check the addresses of job ps");
}

/* A cluster without a ps: a member starts one, on its own address. */
TALK_TEST(a_ps_that_a_member_starts_goes_by_that_member)
{
    struct session_config config = of_role(WIRE_ROLE_MEMBER, 1);

    config.ps_starter = "worker 0"; /* given */
    (void)start(talk, config);
    unreachable(talk, 0);

    talk_tick_after(talk, 5000); /* when */

    assert_string_equal(
        line(talk, 0), "waiting for worker 0 at h0:2222, which starts the ps: Connection refused; "
                       "start worker 0, or correct its address; gives up in 55 s"); /* then */
    talk_tick_after(talk, LOST_MS - 5000);
    assert_string_equal(
        ended(talk)->text,
        "worker 0 at h0:2222, which starts the ps, did not appear within 60 s (Connection "
        "refused); start worker 0, or correct its address");
}

TALK_TEST(a_ps_that_ends_with_the_member_that_started_it_is_told_so)
{
    struct session_config config = talk_member(1);
    const struct sumac_error terminated = {
        .status = SUMAC_UNAVAILABLE, .reason = SUMAC_REASON_TERMINATED, .text = "ps 0 was told to"};

    config.ps_starter = "worker 0";
    talk_open_with(talk, &config);

    talk_ended(talk, 0, SESSION_PUSH_STREAM, &terminated);

    assert_int_equal(ended(talk)->reason, SUMAC_REASON_TERMINATED);
    assert_string_equal(
        ended(talk)->text, "the ps at h0:2222 has ended, as it does when worker 0, which started "
                           "it, ends; start the whole run again");
}

TALK_TEST(what_is_no_ps_at_the_address_of_a_member_that_starts_one_is_said)
{
    struct session_config config = of_role(WIRE_ROLE_MEMBER, 1);

    config.ps_starter = "worker 0";
    (void)start(talk, config);
    refuse(talk, 0, (struct sumac_error){.status = SUMAC_UNIMPLEMENTED, .text = "unknown service"});

    assert_string_equal(
        ended(talk)->text, "what listens at h0:2222, the address of worker 0, which starts the "
                           "ps, is no ps (unknown service); check that address");
}

/* Its run is not the one that is joined: another ps is started in its place. */
TEST(a_ps_that_exits_is_waited_for)
{
    static const enum sumac_reason reasons[] = {
        SUMAC_REASON_STATE_LOST, SUMAC_REASON_TERMINATED, SUMAC_REASON_RUN_ENDED,
        SUMAC_REASON_PS_MISSING, SUMAC_REASON_BUSY};

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        struct talk talk;
        const struct session_config config = of_role(WIRE_ROLE_MEMBER, 1);
        (void)start(&talk, config);
        refuse(&talk, 0, (struct sumac_error){.status = SUMAC_UNAVAILABLE, .reason = reasons[i]});
        assert_null(talk_find(&talk, SESSION_EFFECT_ENDED));
        talk_tick_when_due(&talk);
        assert_non_null(asked(&talk, 0));
        talk_close(&talk);
    }
}

TALK_TEST(a_ps_that_refuses_the_call_ends_it_with_its_reason)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 1));

    refuse(
        talk, 0,
        (struct sumac_error){
            .status = SUMAC_INVALID_ARGUMENT,
            .reason = SUMAC_REASON_MALFORMED,
            .text = "no such field"});

    assert_int_equal(ended(talk)->reason, SUMAC_REASON_MALFORMED);
    assert_string_equal(ended(talk)->text, "ps 0 at h0:2222: no such field");
}

TALK_TEST(a_call_that_there_was_no_memory_for_is_made_later)
{
    start(talk, of_role(WIRE_ROLE_MEMBER, 1));

    talk_undone(talk, SESSION_EFFECT_CALL);
    talk_tick_when_due(talk);

    assert_non_null(asked(talk, 0));
}

TALK_TEST(a_list_of_more_ps_than_there_may_be_is_not_followed)
{
    struct session_config config = of_role(WIRE_ROLE_OBSERVER, 1);

    (void)start(talk, config);

    says(talk, 0, 42, SESSION_PS_MAX + 1);

    assert_null(talk_find(talk, SESSION_EFFECT_ADDRESSES));
    assert_int_equal(talk_join(talk)->n_ps_addresses, 1);
}

TALK_TEST(an_address_that_was_configured_is_kept)
{
    uint8_t id[16] = {7};
    char *addresses[] = {"10.0.0.1:2222", "10.0.0.2:2222"};
    const struct session_config config = talk_member(1); /* given: h0 alone */
    wire_join_reply reply = WIRE_JOIN_REPLY_INIT;

    talk_config(talk, &config);
    talk_start(talk);
    reply.session_id = (wire_bytes){.data = id, .len = sizeof id};
    reply.lease_ms = LEASE_MS;
    reply.n_ps_addresses = 2;
    reply.ps_addresses = addresses;
    reply.membership_epoch = 5;
    reply.step_members = 4;
    reply.step_quorum = 3;

    talk_called_back(talk, WIRE_SESSIONS_JOIN, &reply.base);
    assert_int_equal(talk_state(talk).membership_epoch, 5);
    assert_int_equal(talk_state(talk).step_members, 4);
    assert_int_equal(talk_state(talk).step_quorum, 3);

    const struct session_effect *learnt = talk_find(talk, SESSION_EFFECT_ADDRESSES);
    assert_int_equal(learnt->address_count, 2);
    assert_string_equal(learnt->addresses[0], "h0:2222");
    assert_string_equal(learnt->addresses[1], "10.0.0.2:2222");
}
