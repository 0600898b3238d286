/* SPDX-License-Identifier: Apache-2.0 */
/* lane_scarce.c -- conversations with a lane in which each take of memory fails once. */
#include "lane_scarce.h"

#include <inttypes.h>
#include <stdio.h>

#include "part_state.h"
#include "peer_state.h"
#include "pull_state.h"
#include "replay_check.h"

#define TAKES_MAX 5000u
#define ORDERS_MAX 3u /* tries of one */
#define TICKS 8       /* of a second each, for what a lane does again by itself */

/* The counters of a lane, after its sessions have left. */
struct kept {
    int64_t out;
    uint64_t staged, claimed, pulls, state, views, rounds, rounds_bytes, beside_bytes;
    uint64_t parts, chunks, refusals, contributions, reports, holds, streams;
};

static struct kept look_at_what_is_kept(const struct lane *lane)
{
    return (struct kept){
        .out = each_take_out(),
        .staged = lane->staged_bytes,
        .claimed = lane->claims.bytes,
        .pulls = lane->pull_bytes,
        .state = lane->store.state_bytes,
        .views = lane->store.view_bytes,
        .rounds = lane->rounds.count,
        .rounds_bytes = lane->rounds.room_bytes,
        .beside_bytes = lane->rounds.beside_bytes,
        .parts = lane->parts->parts.used,
        .chunks = lane->parts->chunks.used,
        .refusals = lane->parts->refusals.used,
        .contributions = lane->parts->contributions.used,
        .reports = lane->peers->reports.used,
        .holds = lane->pulls->holds.used,
        .streams = lane->peers->streams.used};
}

bool scarce_said(const struct scarce *scarce, const char *what)
{
    char text[128];
    size_t used = 0;

    for (; *what != 0 && used + 24 < sizeof text; what++)
        if (*what == '#')
            used += (size_t)snprintf(text + used, 24, "%" PRIu64, scarce->number);
        else
            text[used++] = *what;
    text[used] = 0;
    return strstr(scarce->talk->text, text) != NULL;
}

/* ---- streams ---- */

uint64_t scarce_push(struct scarce *scarce, uint32_t session)
{
    if (scarce->push[session] == 0)
        scarce->push[session] =
            talk_push_stream(scarce->talk, (uint8_t)session, ++scarce->generations);
    return scarce->push[session];
}

uint64_t scarce_pull(struct scarce *scarce, uint32_t session)
{
    if (scarce->pull[session] == 0)
        scarce->pull[session] = talk_pull_stream(scarce->talk, (uint8_t)session);
    return scarce->pull[session];
}

static bool forget_if_ended(struct scarce *scarce, uint64_t *stream)
{
    if (!talk_has_ended(scarce->talk, *stream))
        return false;
    talk_hang_up(scarce->talk, *stream);
    *stream = 0;
    return true;
}

/* True: it had lost its stream. */
static bool meet_ps_0(struct scarce *scarce)
{
    uint64_t *const stream = &scarce->talk->controller;
    const bool ended = talk_has_ended(scarce->talk, *stream);

    for (uint32_t i = 0; i < ORDERS_MAX && forget_if_ended(scarce, stream); i++)
        talk_hello(scarce->talk);
    assert_true(scarce->talk->lane->exited || !talk_has_ended(scarce->talk, *stream));
    return ended;
}

/* True: a client, or ps 0, has lost its stream. */
static bool end_what_has_ended(struct scarce *scarce)
{
    bool ended = meet_ps_0(scarce);

    for (uint32_t i = 0; i <= SCARCE_SESSIONS; i++) {
        ended |= forget_if_ended(scarce, &scarce->push[i]);
        ended |= forget_if_ended(scarce, &scarce->pull[i]);
    }
    return ended;
}

static bool is_answered(const struct scarce *scarce)
{
    char good[40], better[40];

    (void)snprintf(good, sizeof good, "report %" PRIu64 "\n", scarce->talk->orders);
    (void)snprintf(better, sizeof better, "report %" PRIu64 " ", scarce->talk->orders);
    const char *const said = strstr(scarce->talk->text, better);
    return strstr(scarce->talk->text, good) != NULL ||
           (said != NULL && strncmp(said + strlen(better), "error", 5) != 0);
}

static bool failed_for_memory(const struct scarce *scarce)
{
    char text[64];

    (void)snprintf(
        text, sizeof text, "report %" PRIu64 " error OUT_OF_MEMORY\n", scarce->talk->orders);
    return strstr(scarce->talk->text, text) != NULL;
}

void scarce_order(struct scarce *scarce, void (*order)(struct scarce *scarce))
{
    for (uint32_t i = 0; i < ORDERS_MAX && !scarce->talk->lane->exited; i++) {
        order(scarce);
        for (uint32_t wait = 0; wait < TICKS && !is_answered(scarce); wait++)
            talk_tick(scarce->talk, 1000);
        if (is_answered(scarce) || scarce->talk->lane->exited)
            return;
        if (!failed_for_memory(scarce) && !talk_has_ended(scarce->talk, scarce->talk->controller))
            fail_msg("order %" PRIu64 ":\n%s", scarce->talk->orders, scarce->talk->text);
        (void)meet_ps_0(scarce);
    }
    assert_true(scarce->talk->lane->exited);
}

/* ---- one conversation ---- */

static void open_session(struct scarce *scarce, uint32_t session)
{
    talk_open(scarce->talk, (uint8_t)session);
}

static void
begin(struct scarce *scarce, const struct scarce_conversation *conversation, bool records)
{
    struct lane_config config = talk_config();
    void *state;

    each_take_reset();
    assert_int_equal(talk_setup(&state), 0);
    *scarce = (struct scarce){.talk = state, .number = 1};
    config.staging_bytes_max = config.view_bytes_max = 1u << 20;
    config.report_ms = 1000000;
    config.records = scarce->talk->disk_is_quick = records;
    if (conversation->configure != NULL)
        conversation->configure(scarce->talk, &config);
    talk_start(scarce->talk, &config);
    for (uint32_t i = 1; i <= SCARCE_SESSIONS; i++)
        open_session(scarce, i);
    if (conversation->prepare != NULL)
        conversation->prepare(scarce);
    talk_forget(scarce->talk);
}

static void pass(struct scarce *scarce)
{
    for (int i = 0; i < TICKS && !scarce->talk->lane->exited; i++)
        talk_tick(scarce->talk, 1000);
}

static void expect_answers(
    const struct scarce *scarce, const struct scarce_answer *answers, bool only_good,
    uint64_t failing)
{
    for (uint32_t i = 0; i < SCARCE_ANSWERS_MAX && answers[i].good != NULL; i++) {
        bool said = scarce_said(scarce, answers[i].good);
        for (uint32_t j = 0; j < 2 && !only_good && !said; j++)
            said = answers[i].otherwise[j] != NULL && scarce_said(scarce, answers[i].otherwise[j]);
        if (!said)
            fail_msg(
                "take %" PRIu64 ": no answer \"%s\" to number %" PRIu64 ":\n%s", failing,
                answers[i].good, scarce->number, scarce->talk->text);
    }
}

/* All sessions leave. */
static void leave(struct scarce *scarce, const struct scarce_conversation *conversation)
{
    for (uint32_t i = 0; i <= SCARCE_SESSIONS; i++) {
        const uint64_t pushed = scarce->number * conversation->pushes;
        const uint64_t last = scarce->last[i] != 0 ? scarce->last[i] : pushed;
        if (i > 0 && last > 0 && scarce->push[i] != 0)
            talk_commit(scarce->talk, scarce->push[i], last, 0, last);
        if (i > 0) {
            talk_close(scarce->talk, (uint8_t)i);
            talk_decide(scarce->talk, (uint8_t)i, last, 0);
        }
        if (scarce->push[i] != 0)
            talk_hang_up(scarce->talk, scarce->push[i]);
        if (scarce->pull[i] != 0)
            talk_hang_up(scarce->talk, scarce->pull[i]);
    }
    pass(scarce);
}

/* Memory is short once; then there is some again. */
static uint64_t say_scarcely(
    struct scarce *scarce, const struct scarce_conversation *conversation, uint64_t failing)
{
    each_take_begin_run(failing, scarce->run);
    conversation->say(scarce);
    pass(scarce);
    const uint64_t takes = each_take_end();
    if (scarce->talk->lane->exited)
        return takes;
    pass(scarce);
    if (end_what_has_ended(scarce)) {
        conversation->say(scarce);
        pass(scarce);
    }
    expect_answers(scarce, conversation->answers, failing == 0, failing);
    assert_false(end_what_has_ended(scarce));
    return takes;
}

static void expect_kept(const struct kept *kept, const struct kept *expected, uint64_t failing)
{
    if (memcmp(kept, expected, sizeof *kept) == 0)
        return;
    for (size_t i = 0; i < sizeof *kept / sizeof(uint64_t); i++)
        print_error(
            "%" PRIu64 " of %" PRIu64 "\n", ((const uint64_t *)kept)[i],
            ((const uint64_t *)expected)[i]);
    fail_msg("take %" PRIu64 ": the lane holds other than without a failure", failing);
}

struct setting {
    uint64_t run; /* takes that fail one after the other */
    bool records;
};

/* Returns the takes; `failing` 0 gives what is kept. */
static uint64_t converse(
    const struct scarce_conversation *conversation, uint64_t failing, const struct setting *setting,
    struct kept *expected, uint64_t *exits)
{
    struct scarce scarce;

    begin(&scarce, conversation, setting->records);
    scarce.run = failing == 0 ? 0 : setting->run;
    const uint64_t takes = say_scarcely(&scarce, conversation, failing);
    const bool exited = scarce.talk->lane->exited;
    *exits += exited;
    if (!exited) {
        scarce.number = 2;
        talk_forget(scarce.talk);
        conversation->say(&scarce);
        pass(&scarce);
        expect_answers(&scarce, conversation->answers, true, failing);
        leave(&scarce, conversation);
        const struct kept kept = look_at_what_is_kept(scarce.talk->lane);
        if (failing == 0)
            *expected = kept;
        expect_kept(&kept, expected, failing);
    }
    void *state = scarce.talk;
    assert_int_equal(talk_teardown(&state), 0);
    return takes;
}

/* ---- its records ---- */

/* False: a take that failed has ended it. */
static bool replay_all(const struct talk *talk, struct lane *again)
{
    bool whole = true;

    for (size_t at = 0; at < talk->journal_bytes && whole;) {
        struct span record = {.data = talk->journal + at + sizeof record.bytes};
        struct sumac_error error;
        memcpy(&record.bytes, talk->journal + at, sizeof record.bytes);
        at += sizeof record.bytes + record.bytes;
        whole = lane_replay(again, &record, &error) == SUMAC_OK;
    }
    return whole;
}

/* A lane that there was memory for is what the first one is. Returns the takes. */
static uint64_t replay_once(const struct talk *talk, uint64_t failing)
{
    struct check check = {.text = ""};

    each_take_reset();
    struct lane *const again = lane_create(lane_config(talk->lane), &each_take_source);
    assert_non_null(again);
    each_take_begin(failing);
    const bool whole = replay_all(talk, again);
    const uint64_t takes = each_take_end();
    assert_true(whole || failing > 0);
    if (whole)
        lane_replay_check(talk->lane, again, &check);
    if (!check_is_good(&check))
        fail_msg("take %" PRIu64 " of a replay: %s", failing, check.text);
    lane_destroy(again);
    assert_int_equal(each_take_held(), 0);
    return takes;
}

static void replay_each(const struct scarce_conversation *conversation)
{
    struct scarce scarce;
    uint64_t failing = 1;

    begin(&scarce, conversation, true);
    conversation->say(&scarce);
    pass(&scarce);
    (void)replay_once(scarce.talk, 0);
    while (replay_once(scarce.talk, failing) >= failing)
        failing++;
    void *state = scarce.talk;
    assert_int_equal(talk_teardown(&state), 0);
}

void scarce_each_take(const struct scarce_conversation *conversation)
{
    static const struct setting settings[] = {{1, false}, {3, false}, {1, true}};

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct kept expected;
        uint64_t exits = 0, failing = 1;
        const uint64_t takes = converse(conversation, 0, &settings[i], &expected, &exits);
        assert_int_equal(exits, 0);
        while (converse(conversation, failing, &settings[i], &expected, &exits) >= failing)
            failing++;
        assert_in_range(takes, 5, TAKES_MAX);
        /* A ps that has no memory for a record ends. */
        assert_in_range(exits, 0, settings[i].records ? takes / 2 : takes / 4);
    }
    replay_each(conversation);
}
