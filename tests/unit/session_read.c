/* SPDX-License-Identifier: Apache-2.0 */
/* session_read.c -- what a session says of itself: each fact is its own. */
#include "state.h"
#include "session_talk.h"

TALK_TEST(each_fact_is_its_own)
{
    const struct session_config config = talk_member(2);

    talk_config(talk, &config);
    struct session *const session = talk->session;
    session->state.cluster_id = 1;
    session->state.epoch = 2;
    session->state.attempt = 3;
    session->state.membership_epoch = 4;
    session->state.clock = 5;
    session->state.previous_final = 6;
    session->state.replaced.pid = 19;
    session->state.lease_ms = 7;
    session->state.first_step = 8;
    session->state.last_step = 9;
    session->state.newest_step = 10;
    session->state.open_step = 11;
    session->state.step_members = 12;
    session->state.step_quorum = 13;
    session->state.step_deadline_ms = 14;
    session->state.on_loss = 20;
    session->state.last_sequence = 17;
    session->state.commit_through = 16;
    session->state.acked_through = 15;
    memset(session->state.session_id, 18, sizeof session->state.session_id);
    uint8_t id[16];
    memset(id, 18, sizeof id);

    const struct session_state facts = talk_state(talk);

    assert_int_equal(facts.cluster_id, 1);
    assert_int_equal(facts.epoch, 2);
    assert_int_equal(facts.attempt, 3);
    assert_int_equal(facts.membership_epoch, 4);
    assert_int_equal(facts.clock, 5);
    assert_int_equal(facts.previous_final, 6);
    assert_int_equal(facts.replaced.pid, 19);
    assert_int_equal(facts.lease_ms, 7);
    assert_int_equal(facts.first_step, 8);
    assert_int_equal(facts.last_step, 9);
    assert_int_equal(facts.newest_step, 10);
    assert_int_equal(facts.open_step, 11);
    assert_int_equal(facts.step_members, 12);
    assert_int_equal(facts.step_quorum, 13);
    assert_int_equal(facts.step_deadline_ms, 14);
    assert_int_equal(facts.on_loss, 20);
    assert_int_equal(facts.last_sequence, 17);
    assert_int_equal(facts.commit_through, 16);
    assert_int_equal(facts.acked_through, 15);
    assert_int_equal(facts.pushes_in_flight, 2);
    assert_memory_equal(facts.session_id, id, sizeof id);
    assert_int_equal(facts.ps_count, 2); /* those that are configured, before the join */
}

TALK_TEST(a_session_is_joined_from_its_join_to_its_end)
{
    static const struct {
        enum phase phase;
        bool joined, ended;
    } rows[] = {
        {PHASE_NEW, false, false}, {PHASE_FINDING, false, false}, {PHASE_JOINING, false, false},
        {PHASE_OPEN, true, false}, {PHASE_SETTLING, true, false}, {PHASE_LEAVING, true, false},
        {PHASE_OVER, false, true},
    };
    const struct session_config config = talk_member(1);

    talk_config(talk, &config);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        talk->session->phase = rows[i].phase;

        const struct session_state facts = talk_state(talk);

        assert_int_equal(facts.joined, rows[i].joined);
        assert_int_equal(facts.ended, rows[i].ended);
    }
}

TALK_TEST(a_join_that_takes_a_place_says_whose)
{
    const struct session_config config = talk_member(1);
    wire_replaced replaced = WIRE_REPLACED_INIT;

    replaced.attempt = 1;
    replaced.host = (char[]){"h1"};
    replaced.pid = 12;
    replaced.alive = true;
    talk_config(talk, &config);
    talk_start(talk);
    talk->replaced = &replaced;

    talk_joined(talk, 1);

    const struct replaced said = talk_state(talk).replaced;
    assert_string_equal(said.host, "h1");
    assert_int_equal(said.pid, 12);
    assert_true(said.alive);
}

TEST(a_session_has_1_to_256_ps)
{
    static const struct {
        uint32_t count;
        bool fits;
    } rows[] = {{0, false}, {1, true}, {SESSION_PS_MAX, true}, {SESSION_PS_MAX + 1, false}};
    static const char *addresses[SESSION_PS_MAX + 1];

    for (size_t i = 0; i < SESSION_PS_MAX + 1; i++)
        addresses[i] = "h:1";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct session_config config = talk_member(rows[i].count);
        config.ps_addresses = addresses;

        struct session *session = session_create(&config, &memory_heap);

        assert_int_equal(session != NULL, rows[i].fits);
        session_destroy(session);
    }
}
