/* SPDX-License-Identifier: Apache-2.0 */
/* lane_waits.c -- what a ps says that it waits for itself, in lines that become rarer and in its
 * statistics, and for what the parts there wait. */
#include "lane_talk.h"
#include "silence.h"

/* ps 1, which nobody has called yet; of a cluster of so many ps. */
static void begin_uncalled(struct talk *talk, uint32_t ps_count)
{
    static const char *const jobs[] = {"chief", "worker"};
    static const uint32_t indices[] = {0, 3};
    struct lane_config config = talk_config();

    config.ps_count = ps_count;
    config.members_jobs = jobs;
    config.members_indices = indices;
    config.member_count = 2;
    talk_make(talk, &config);
    talk->shows_logs = true;
}

static void seconds_pass(struct talk *talk, int count)
{
    for (int i = 0; i < count; i++)
        talk_tick(talk, 1000);
}

static void call_from_ps_0(struct talk *talk)
{
    wire_peer_hello hello = talk_good_hello();

    talk->controller = talk_stream(talk, LANE_STREAM_PEER);
    hello.n_ps_incarnations = 0;
    talk_order_of(talk, hello, &hello);
}

/* The only sentence of Stats.waits; fails the test when there are others, and when there is none
 * gives "". */
static const char *wait_in_stats(struct talk *talk)
{
    const wire_stats_reply *stats = talk_stats(talk);

    assert_in_range(stats->n_waits, 0, 1);
    return stats->n_waits == 0 ? "" : stats->waits[0];
}

/* The clock's count before that start is no silence of ps 0, and no sleep. */
TALK_TEST(a_ps_waits_from_its_start_whatever_its_clock_says_then)
{
    struct lane_config config = talk_config();
    const struct lane_event start = {.kind = LANE_EVENT_START};

    config.started_us = 1000 * UINT64_C(1000000);
    talk_make(talk, &config);
    talk->now_us = config.started_us;

    talk_step(talk, &start);

    assert_non_null(strstr(talk_stats(talk)->waits[0], "gives up in 60 s"));
}

TALK_TEST(a_ps_that_was_told_only_itself_waits_without_limit)
{
    static const char line[] = "log ps 1 waits for its first call from ps 0 at an address that it "
                               "was not told; this wait has no limit, so far 5 s\n";
    static const char later[] = "log ps 1 waits for its first call from ps 0 at an address that it "
                                "was not told; this wait has no limit, so far 15 s\n";

    begin_uncalled(talk, 0);

    seconds_pass(talk, 5);
    talk_expect(talk, line);
    seconds_pass(talk, 9); /* and less and less often */
    talk_expect(talk, "");
    seconds_pass(talk, 1);
    talk_expect(talk, later);
    talk->shows_logs = false;
    seconds_pass(talk, 100);

    talk_expect(talk, "");
}

TALK_TEST(a_ps_that_ps_0_never_calls_says_when_it_gives_up_and_that_nobody_called)
{
    begin_uncalled(talk, 2);

    seconds_pass(talk, 5);
    talk_expect(talk, "log ps 1 waits for its first call from ps 0 at h0:1; gives up in 55 s\n");
    seconds_pass(talk, 50);
    talk_forget(talk);
    seconds_pass(talk, 5);

    assert_non_null(strstr(talk->text, "exit 138 PS_MISSING\n"));
    assert_string_equal(
        talk->end.text, "ps 0 at h0:1 has never called ps 1, which has waited 60 s; start it, "
                        "or correct its address");
}

/* At ps 0's address: nothing but this, or that ps, of that cluster, with ps 1 at this address. */
static void probe(struct talk *talk, const char *trouble, uint32_t ps, uint64_t cluster, char *own)
{
    char *addresses[] = {"h0:1", own};
    wire_list_reply reply = WIRE_LIST_REPLY_INIT;

    reply.ps = ps;
    reply.cluster_id = cluster;
    reply.ps_addresses = addresses;
    reply.n_ps_addresses = own == NULL ? 0 : 2;
    const struct lane_event event = {
        .kind = LANE_EVENT_PS0_PROBED, .text = trouble, .request = &reply.base};
    talk_step(talk, &event);
}

TALK_TEST(a_wait_for_the_call_of_ps_0_says_who_answers_at_its_address)
{
    static const char refused[] =
        "that address does not answer (refused): start ps 0 there, or correct its address";

    begin_uncalled(talk, 2);
    probe(talk, "refused", 0, 0, NULL);
    assert_non_null(strstr(wait_in_stats(talk), refused));
    probe(talk, NULL, 2, 7, "h1:1");
    assert_non_null(strstr(wait_in_stats(talk), "that address is that of ps 2: correct the index"));
    probe(talk, NULL, 0, 7, NULL);
    assert_non_null(strstr(wait_in_stats(talk), "answers, and ps 0 has no address of ps 1 yet"));
    probe(talk, NULL, 0, 7, "h9:1");
    assert_non_null(
        strstr(wait_in_stats(talk), "answers, and ps 0 does not reach ps 1 at h9:1; check"));
    assert_true(lane_seeks_ps0(talk->lane));
    probe(talk, NULL, 2, 7, "h1:1"); /* which has gone when ps 1 gives up */

    probe(talk, "refused", 0, 0, NULL);
    seconds_pass(talk, 60); /* and so does its last line */

    assert_non_null(strstr(talk->text, "exit 138 PS_MISSING\n"));
    assert_non_null(strstr(talk->end.text, "has never called ps 1, which has waited 60 s; "));
    assert_non_null(strstr(talk->end.text, refused));
    assert_false(lane_seeks_ps0(talk->lane));
}

/* Starting again is no use then; while things start, it may be the ps of an earlier run. */
TALK_TEST(a_ps_that_ps_0_never_calls_ends_with_2_if_their_configurations_differ)
{
    static const char list[] = "that address answers, but the configuration of ps 1 has ps 1 at "
                               "h1:1, that of ps 0 at h1:2; give every task the same";

    begin_uncalled(talk, 2);
    probe(talk, NULL, 0, 7, "h1:2"); /* given */
    assert_non_null(strstr(wait_in_stats(talk), list));

    seconds_pass(talk, 59); /* when */
    assert_null(strstr(talk->text, "exit "));
    seconds_pass(talk, 1);

    assert_non_null(strstr(talk->text, "exit 2 WRONG_CLUSTER\n")); /* then */
    assert_non_null(strstr(talk->end.text, list));
}

TALK_TEST(a_ps_that_finds_another_one_at_ps_0s_address_to_the_end_ends_with_2)
{
    begin_uncalled(talk, 2);
    probe(talk, NULL, 1, 7, "h1:1"); /* given */

    seconds_pass(talk, 60); /* when */

    assert_non_null(strstr(talk->text, "exit 2 WRONG_CLUSTER\n")); /* then */
    assert_non_null(strstr(talk->end.text, "that address is that of ps 1: correct the index"));
}

/* Perhaps a firewall is in the way. */
TALK_TEST(a_ps_that_ps_0_never_calls_ends_with_138_if_nothing_differs)
{
    begin_uncalled(talk, 2);
    probe(talk, NULL, 0, 7, "h9:1"); /* given: another name of the host */

    seconds_pass(talk, 60); /* when */

    assert_non_null(strstr(talk->text, "exit 138 PS_MISSING\n")); /* then */
}

/* It waits for the first join, and its listed address does not lead to it. */
TALK_TEST(ps_0_says_where_its_listed_address_leads_until_somebody_joins)
{
    struct lane_config config = talk_config();

    config.index = 0;
    config.ps_count = 2;
    talk_make(talk, &config);
    talk->shows_logs = true;
    assert_true(lane_seeks_ps0(talk->lane));
    seconds_pass(talk, 5);
    assert_null(strstr(talk->text, "listed address")); /* nothing is known */

    probe(talk, "refused", 0, 0, NULL);
    talk_tick(talk, 1000);
    assert_non_null(strstr(
        talk->text, "log the listed address of ps 0, h0:1, does not answer (refused): correct the "
                    "host, --port or --bind of ps 0, or that address in the list\n"));
    probe(talk, NULL, 1, 7, "h1:1");
    talk_forget(talk);
    seconds_pass(talk, 20);
    assert_non_null(
        strstr(talk->text, "the listed address of ps 0, h0:1, is that of ps 1: correct the index"));
    assert_true(lane_seeks_ps0(talk->lane));

    seconds_pass(talk, 100); /* it is not what ends a run */

    assert_null(strstr(talk->text, "exit "));
}

TALK_TEST(ps_0_without_memory_is_not_told_to_correct_its_address)
{
    struct lane_config config = talk_config();

    config.index = 0;
    config.ps_count = 2;
    talk_make(talk, &config);

    talk->shows_logs = true;
    seconds_pass(talk, 5);

    probe(talk, SILENCE_NO_MEMORY, 0, 0, NULL);
    talk_tick(talk, 1000);

    assert_non_null(strstr(
        talk->text,
        "log the listed address of ps 0, h0:1, does not answer (" SILENCE_NO_MEMORY ")\n"));
}

/* ps 0 calls the others: that says nothing about its own address. */
TALK_TEST(a_wait_for_a_join_says_that_ps_0s_address_does_not_lead_to_ps_0)
{
    begin_uncalled(talk, 2);
    probe(talk, NULL, 0, 7, "h9:1");
    call_from_ps_0(talk);
    assert_null(strstr(wait_in_stats(talk), "h9:1")); /* that was before the call */

    probe(talk, "refused", 0, 0, NULL);
    assert_non_null(strstr(
        wait_in_stats(talk),
        "ps 0 has called, but its listed address h0:1 does not answer (refused): correct the host, "
        "--port or --bind of ps 0, or that address in the list; this wait has no limit"));
    probe(talk, NULL, 0, 0xC2, "h1:1");
    assert_non_null(strstr(wait_in_stats(talk), "is that of another ps 0, of cluster "));
    assert_true(lane_seeks_ps0(talk->lane));
    probe(talk, NULL, 0, 0xC1, "h1:1");

    assert_null(strstr(wait_in_stats(talk), "listed address"));
    assert_false(lane_seeks_ps0(talk->lane));
}

TALK_TEST(localhost_beside_other_hosts_is_what_to_correct)
{
    static const char *const addresses[] = {"localhost:1", "h1:1"};
    struct lane_config config = talk_config();

    config.ps_addresses = addresses;
    talk_make(talk, &config);
    probe(talk, "refused", 0, 0, NULL);

    assert_non_null(
        strstr(wait_in_stats(talk), "(refused): localhost and 127.0.0.1 mean each host"));
}

TALK_TEST(a_ps_that_was_called_names_the_members_that_have_not_joined)
{
    static const char *const said[] = {
        "log ps 1 waits for the first join, of chief 0, worker 3; this wait has no limit, so far "
        "5 s\n",
        "log ps 1 waits for the first join, of chief 0, worker 3; this wait has no limit, so far "
        "15 s\n",
        "log ps 1 waits for the first join, of chief 0, worker 3; this wait has no limit, so far "
        "35 s\n"};
    wire_peer_order alive = WIRE_PEER_ORDER_INIT;

    begin_uncalled(talk, 2);
    call_from_ps_0(talk);
    talk_forget(talk);
    alive.alive = true;

    unsigned lines = 0;
    for (int i = 0; i < 36; i++) { /* after 5, 15 and 35 s */
        talk_tick(talk, 1000);
        lines += lines < 3 && strstr(talk->text, said[lines]) != NULL;
        talk_order(talk, &alive);
        talk_forget(talk);
    }

    assert_int_equal(lines, 3);
}

TALK_TEST(a_ps_whose_configuration_lists_no_member_waits_for_any)
{
    struct lane_config config = talk_config();

    config.member_count = 0;
    talk_make(talk, &config);
    call_from_ps_0(talk);

    seconds_pass(talk, 3);

    assert_string_equal(
        wait_in_stats(talk),
        "ps 1 waits for the first join, of any chief or worker, its configuration lists none; this "
        "wait has no limit, so far 3 s");
}

TALK_TEST(a_ps_looks_for_ps_0_until_a_session_is_opened)
{
    begin_uncalled(talk, 2);
    assert_true(lane_seeks_ps0(talk->lane));
    call_from_ps_0(talk);
    assert_true(lane_seeks_ps0(talk->lane));

    talk_open(talk, 1);

    assert_false(lane_seeks_ps0(talk->lane));
}

TALK_TEST(a_ps_that_has_given_up_does_not_look_for_ps_0)
{
    begin_uncalled(talk, 2);

    seconds_pass(talk, 61);

    assert_non_null(strstr(talk->text, "exit"));
    assert_false(lane_seeks_ps0(talk->lane));
}

/* Though nothing but itself is in its configuration. */
TALK_TEST(a_ps_that_was_called_once_gives_up_when_ps_0_is_silent)
{
    begin_uncalled(talk, 0);
    seconds_pass(talk, 100);
    assert_null(strstr(talk->text, "exit"));

    call_from_ps_0(talk);
    seconds_pass(talk, 61);

    assert_non_null(strstr(talk->text, "exit 138 STATE_LOST\n"));
}

TALK_TEST(the_first_call_of_ps_0_is_a_sign_of_life)
{
    begin_uncalled(talk, 2);
    seconds_pass(talk, 59);
    call_from_ps_0(talk);

    seconds_pass(talk, 5);

    assert_null(strstr(talk->text, "exit"));
}

/* ---- the same in the statistics ---- */

TALK_TEST(a_ps_that_nobody_has_called_says_so_in_its_statistics)
{
    begin_uncalled(talk, 2);

    seconds_pass(talk, 2);

    assert_string_equal(
        wait_in_stats(talk), "ps 1 waits for its first call from ps 0 at h0:1; gives up in 58 s");
}

TALK_TEST(a_ps_without_workers_names_them_in_its_statistics)
{
    begin_uncalled(talk, 2);
    probe(talk, "refused", 0, 0, NULL); /* ps 0 was not there yet */
    call_from_ps_0(talk);
    seconds_pass(talk, 3);

    assert_string_equal(
        wait_in_stats(talk),
        "ps 1 waits for the first join, of chief 0, worker 3; this wait has no limit, so far 3 s");
    probe(talk, "refused", 0, 0, NULL); /* it calls from elsewhere */
    call_from_ps_0(talk);
    assert_non_null(
        strstr(wait_in_stats(talk), "its listed address h0:1 does not answer (refused)"));
}

TALK_TEST(a_ps_whose_ps_0_is_silent_says_so_in_its_statistics_until_it_speaks)
{
    wire_peer_order alive = WIRE_PEER_ORDER_INIT;

    talk_start(talk, NULL);
    talk_open(talk, 1);
    assert_string_equal(wait_in_stats(talk), "");
    seconds_pass(talk, 4); /* a line every 5 s: it is not late yet */
    assert_string_equal(wait_in_stats(talk), "");

    seconds_pass(talk, 3);

    assert_string_equal(
        wait_in_stats(talk),
        "ps 1 waits for ps 0 at h0:1, last heard from 7 s ago; gives up in 53 s");
    alive.alive = true;
    talk_order(talk, &alive);
    assert_string_equal(wait_in_stats(talk), "");
}

/* Unlike of one that has none. */
TALK_TEST(of_a_wait_with_a_limit_one_speaks_as_often_as_it_should)
{
    begin_uncalled(talk, 2);
    unsigned lines = 0;
    for (int i = 0; i < 55; i++) {
        talk_tick(talk, 1000);
        lines += strstr(talk->text, "waits for its first call") != NULL;
        talk_forget(talk);
    }

    assert_int_equal(lines, 55 / 5);
}

/* After 5, 15, 35 and 75 s, and then each minute. */
TALK_TEST(a_wait_without_limit_is_told_once_a_minute_at_least)
{
    unsigned lines = 0;

    begin_uncalled(talk, 0);
    for (int i = 0; i < 315; i++) {
        talk_tick(talk, 1000);
        lines += strstr(talk->text, "waits for its first call") != NULL;
        talk_forget(talk);
    }

    assert_int_equal(lines, 4 + 4);
}

/* ---- what is said of a part that waits ---- */

#define VARIABLE 5u

/* One session, one variable of four zeros with assign_add, a push and a pull stream. */
struct streams {
    uint64_t push, pull;
};

static const float one[] = {1, 1, 1, 1};

static struct streams begin(struct talk *talk)
{
    struct streams streams;

    talk_start(talk, NULL);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_ASSIGN_ADD);
    streams.push = talk_push_stream(talk, 1, 1);
    streams.pull = talk_pull_stream(talk, 1);
    talk_forget(talk);
    return streams;
}

static void
send(struct talk *talk, uint64_t stream, uint64_t sequence, uint64_t previous, const float *values)
{
    const struct talk_part sent = {
        .sequence = sequence,
        .previous = previous,
        .shard = VARIABLE,
        .shards = 1,
        .values = values,
        .count = 4};

    talk_part(talk, stream, &sent);
}

static void expect_waits(struct talk *talk, uint64_t later_ms, const char *expected)
{
    wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    const struct lane_event event = {
        .kind = LANE_EVENT_CALL,
        .now_us = talk->now_us + later_ms * 1000,
        .call = 9,
        .call_kind = LANE_CALL_STATS,
        .request = &request.base};
    struct lane_effects effects;
    char said[4096] = "";

    ps_core_step(talk->core, &event, &effects);
    for (uint32_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind != LANE_EFFECT_REPLY)
            continue;
        const wire_stats_reply *stats = (const wire_stats_reply *)effects.items[i].reply;
        for (size_t j = 0; j < stats->n_waits; j++) {
            strcat(said, stats->waits[j]);
            strcat(said, "\n");
        }
    }
    assert_string_equal(said, expected);
}

TALK_TEST(a_part_that_waits_says_for_what)
{
    const struct streams streams = begin(talk);

    send(talk, streams.push, 2, 0, one);
    send(talk, streams.push, 5, 4, one);
    send(talk, streams.push, 6, 5, one);
    talk_commit(talk, streams.push, 1, 0, 0);
    expect_waits(talk, 900, "");

    expect_waits(
        talk, 1500,
        "push 2 of worker 1 is staged on ps 1 and waits for its commit: its client has not heard "
        "from all ps that it concerns, or has stopped; no push or pull on ps 1 for 1.5 s; 2 later "
        "pushes wait for it\n");

    talk_commit(talk, streams.push, 6, 0, 0); /* and when they are committed */
    expect_waits(
        talk, 3000,
        "push 5 of worker 1 is staged on ps 1 and waits for push 4 before it: push 4 is "
        "missing, and the last push applied is 2; no push or pull on ps 1 for 1.5 s; 1 later push "
        "waits for it\n");
}

/* It has its place, and nothing of it is staged. */
TALK_TEST(a_refused_part_that_waits_says_that_it_was_refused)
{
    static const float not_a_number[] = {__builtin_nanf(""), 1, 1, 1};
    const struct streams streams = begin(talk);

    send(talk, streams.push, 2, 0, not_a_number);
    send(talk, streams.push, 3, 2, not_a_number);
    send(talk, streams.push, 5, 4, not_a_number);
    talk_pull(talk, streams.pull, 1, VARIABLE, 1, 2);
    talk_forget(talk);

    expect_waits(
        talk, 1500,
        "pull 1 has waited 1.5 s for push 2 of worker 1: on ps 1 push 2 was refused and is not "
        "committed, and the last push applied is 0; no push or pull on ps 1 for 1.5 s\n"
        "push 2 of worker 1 was refused on ps 1 and waits for its commit: its client has not heard "
        "from all ps that it concerns, or has stopped; no push or pull on ps 1 for 1.5 s; refused: "
        "push 2 "
        "of worker 1: what it has for variable v5 is not finite; it is applied nowhere (allow it "
        "with allow_non_finite); 2 later "
        "pushes wait for it\n");
}
