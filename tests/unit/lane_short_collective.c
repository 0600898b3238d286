/* SPDX-License-Identifier: Apache-2.0 */
/* lane_short_collective.c -- rounds of collectives on a lane of which each take of memory fails
 * once. */
#include <stdio.h>

#include "lane_scarce.h"

#define HERE "h" /* at home on ps 1 of 2 */
#define ELEMENTS 4u
#define FIRST_OF_SESSION                                                                           \
    100u /* sequences of session 1 are above it, those of session 2 above twice */

/* Of sessions 1 and 2; its number is that of what is said. */
struct collectives {
    wire_collective collective;
    uint64_t tasks[2], shape[1];
    bool beside; /* the result is asked for with the contribution */
};

static void collectives_init(struct collectives *collectives, const struct scarce *scarce)
{
    wire_collective *const collective = &collectives->collective;

    *collectives = (struct collectives){.tasks = {3, 5}, .shape = {ELEMENTS}};
    *collective = (wire_collective)WIRE_COLLECTIVE_INIT;
    collective->name = (wire_bytes){.len = strlen(HERE), .data = (uint8_t *)(uintptr_t)HERE};
    collective->round = scarce->number;
    collective->tasks = collectives->tasks;
    collective->n_tasks = 2;
    collective->operation = SUMAC__V1__COLLECTIVE__OPERATION__OPERATION_SUM;
    collective->data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    collective->shape = collectives->shape;
    collective->n_shape = 1;
}

static wire_pull_request request_of(
    const struct collectives *collectives, wire_collective_round *asked, uint64_t request,
    uint32_t timeout_ms)
{
    wire_pull_request pull = WIRE_PULL_REQUEST_INIT;

    *asked = (wire_collective_round)WIRE_COLLECTIVE_ROUND_INIT;
    asked->name = collectives->collective.name;
    asked->round = collectives->collective.round;
    pull.request = request;
    pull.collective = asked;
    pull.timeout_ms = timeout_ms;
    return pull;
}

/* Its last push was refused: a program contributes again. */
static bool is_refused(const struct scarce *scarce, uint32_t session)
{
    char text[40];

    (void)snprintf(text, sizeof text, "refused %u ", (unsigned)scarce->last[session]);
    return strstr(scarce->talk->text, text) != NULL;
}

static void contribute(struct scarce *scarce, struct collectives *collectives, uint32_t session)
{
    static const float values[ELEMENTS] = {1, 2, 3, 4};
    wire_part header = WIRE_PART_INIT, *parts[] = {&header};
    wire_piece piece = WIRE_PIECE_INIT, *pieces[] = {&piece};
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;
    wire_collective_round asked;
    wire_pull_request pull = request_of(collectives, &asked, 10 * scarce->number + session, 120000);
    wire_pull_request *pulls[] = {&pull};

    header.sequence = scarce->last[session];
    header.previous = header.sequence % FIRST_OF_SESSION == 1 ? 0 : header.sequence - 1;
    header.first = header.last = header.eager = true;
    header.bytes = piece.bytes =
        (collectives->collective.split ? ELEMENTS / 2 : ELEMENTS) * sizeof *values;
    header.weight = 1;
    header.collective = &collectives->collective;
    header.pieces = pieces;
    header.n_pieces = 1;
    request.parts = parts;
    request.n_parts = 1;
    request.pulls = pulls;
    request.n_pulls = collectives->beside;
    talk_push(scarce->talk, scarce_push(scarce, session), &request, values, piece.bytes);
}

/* Each number has two sequences, if it takes them. */
static void come(struct scarce *scarce, struct collectives *collectives, uint32_t session)
{
    if (scarce->last[session] == 0)
        scarce->last[session] = session * FIRST_OF_SESSION;
    if (scarce->of[session] != scarce->number)
        scarce->last[session]++;
    scarce->of[session] = scarce->number;
    contribute(scarce, collectives, session);
    if (!is_refused(scarce, session))
        return;
    scarce->last[session]++;
    contribute(scarce, collectives, session);
}

static void pull_round(
    struct scarce *scarce, const struct collectives *collectives, uint32_t session,
    uint32_t timeout_ms)
{
    wire_collective_round asked;
    wire_pull_request pull =
        request_of(collectives, &asked, 10 * scarce->number + session, timeout_ms);

    talk_step(
        scarce->talk, &(struct lane_event){
                          .kind = LANE_EVENT_PULL,
                          .stream = scarce_pull(scarce, session),
                          .pull_request = &pull});
}

/* The ps had no memory for the answer. */
static void ask_again(
    struct scarce *scarce, const struct collectives *collectives, uint32_t session,
    uint32_t timeout_ms)
{
    static const char *const failed[] = {
        "", "pulled #1 error OUT_OF_MEMORY\n", "pulled #2 error OUT_OF_MEMORY\n"};

    if (scarce_said(scarce, failed[session]))
        pull_round(scarce, collectives, session, timeout_ms);
}

static void
ask(struct scarce *scarce, const struct collectives *collectives, uint32_t session,
    uint32_t timeout_ms)
{
    pull_round(scarce, collectives, session, timeout_ms);
    ask_again(scarce, collectives, session, timeout_ms);
}

/* The session wants no more of the round. */
static void acknowledge(struct scarce *scarce, uint32_t session)
{
    wire_commit commit = WIRE_COMMIT_INIT;
    wire_push_request request = WIRE_PUSH_REQUEST_INIT;

    commit.commit_through = commit.collectives_through = scarce->last[session];
    commit.acked_through = scarce->last[session];
    request.commit = &commit;
    talk_push(scarce->talk, scarce_push(scarce, session), &request, NULL, 0);
}

/* Those whose results have come acknowledge them. */
static void acknowledge_heard(struct scarce *scarce)
{
    static const char *const answered[][2] = {
        {"met #1 float32 [4] 2 4", "met #2 float32 [4] 2 4"},
        {"pulled #1: ", "pulled #2: "},
        {"pulled #1 error ROUND_TIMED_OUT", "pulled #2 error ROUND_TIMED_OUT"},
        {"pulled #1 error STEP_DIFFERS", "pulled #2 error STEP_DIFFERS"}};

    for (uint32_t i = 0; i < sizeof answered / sizeof *answered; i++)
        for (uint32_t session = 1; session <= 2; session++)
            if (scarce_said(scarce, answered[i][session - 1]))
                acknowledge(scarce, session);
}

static void both_come_and_ask(struct scarce *scarce)
{
    struct collectives collectives;

    collectives_init(&collectives, scarce);
    pull_round(scarce, &collectives, 2, 120000); /* before it has contributed */
    come(scarce, &collectives, 1);
    come(scarce, &collectives, 2);
    ask(scarce, &collectives, 1, 120000);
    ask_again(scarce, &collectives, 2, 120000);
    acknowledge_heard(scarce);
}

#define HEARD_BY(WHO)                                                                              \
    {                                                                                              \
        "met #" WHO " float32 [4] 2 4 6 8\n"                                                       \
    }

TEST(a_round_passes_or_its_contribution_is_refused)
{
    scarce_each_take(&(struct scarce_conversation){
        .say = both_come_and_ask, .answers = {HEARD_BY("1"), HEARD_BY("2")}});
}

/* Lent from what has come, a message at a time. */
static void lend_results(struct talk *talk, struct lane_config *config)
{
    (void)talk;
    config->copied_pull_bytes_max = config->pull_chunk_bytes = 8;
    config->gathered_bytes_max = 1;
}

TEST(a_long_result_is_heard)
{
    scarce_each_take(&(struct scarce_conversation){
        .configure = lend_results,
        .say = both_come_and_ask,
        .answers = {{"pulled #1: 2 4 6 8"}, {"pulled #2: 2 4 6 8"}}});
}

static void both_come_and_hear_beside(struct scarce *scarce)
{
    struct collectives collectives;

    collectives_init(&collectives, scarce);
    collectives.beside = true;
    come(scarce, &collectives, 1);
    come(scarce, &collectives, 2);
    for (uint32_t i = 1; i <= 2; i++)
        ask_again(scarce, &collectives, i, 120000);
    acknowledge_heard(scarce);
}

TEST(a_result_beside_the_answers_of_pushes_is_heard)
{
    scarce_each_take(&(struct scarce_conversation){
        .say = both_come_and_hear_beside, .answers = {HEARD_BY("1"), HEARD_BY("2")}});
}

/* Its time is over before the second comes: that one hears how the round ended. */
static void the_second_comes_late(struct scarce *scarce)
{
    struct collectives collectives;

    collectives_init(&collectives, scarce);
    collectives.collective.timeout_ms = 500;
    come(scarce, &collectives, 1);
    ask(scarce, &collectives, 1, 120000);
    talk_tick(scarce->talk, 1000);
    talk_tick(scarce->talk, 1000);
    come(scarce, &collectives, 2);
    ask(scarce, &collectives, 2, 1000);
    acknowledge_heard(scarce);
}

TEST(who_comes_late_hears_the_end)
{
    scarce_each_take(&(struct scarce_conversation){
        .say = the_second_comes_late,
        .answers = {{"pulled #1 error ROUND_TIMED_OUT\n"}, {"pulled #2 error ROUND_TIMED_OUT\n"}}});
}

/* ---- split over two ps: ps 0 says how it ends ---- */

static void order_pass(struct scarce *scarce)
{
    struct collectives collectives;
    wire_collective_end end = WIRE_COLLECTIVE_END_INIT;

    collectives_init(&collectives, scarce);
    collectives.collective.split = true;
    end.collective = &collectives.collective;
    end.message = (char *)(uintptr_t) "";
    talk_order_of(scarce->talk, collective, &end);
}

/* Of four elements the last two are here. */
static void both_come_and_ps_0_ends_it(struct scarce *scarce)
{
    struct collectives collectives;

    collectives_init(&collectives, scarce);
    collectives.collective.split = true;
    come(scarce, &collectives, 1);
    come(scarce, &collectives, 2);
    ask(scarce, &collectives, 1, 120000);
    scarce_order(scarce, order_pass);
    ask(scarce, &collectives, 2, 120000);
    acknowledge_heard(scarce);
}

TEST(a_split_round_passes_when_ps_0_says_so)
{
    scarce_each_take(&(struct scarce_conversation){
        .say = both_come_and_ps_0_ends_it,
        .answers = {{"met #1 float32 [4] 2 4\n"}, {"met #2 float32 [4] 2 4\n"}}});
}

/* This ps, at home for the name, proposes the end to ps 0. */
static void order_differs(struct scarce *scarce)
{
    struct collectives collectives;
    wire_collective_end end = WIRE_COLLECTIVE_END_INIT;

    collectives_init(&collectives, scarce);
    end.collective = &collectives.collective;
    end.status = SUMAC_FAILED_PRECONDITION;
    end.reason = (Sumac__V1__Reason)SUMAC_REASON_STEP_DIFFERS;
    end.message = (char *)(uintptr_t) "they differ";
    talk_order_of(scarce->talk, collective, &end);
}

/* ps 0 waits for the proposal, which comes again each second. */
static void one_is_split_and_the_other_is_not(struct scarce *scarce)
{
    struct collectives collectives;

    collectives_init(&collectives, scarce);
    come(scarce, &collectives, 1);
    collectives.collective.split = true;
    come(scarce, &collectives, 2);
    ask(scarce, &collectives, 1, 120000);
    ask(scarce, &collectives, 2, 120000);
    for (uint32_t i = 0; i < 3 && !scarce_said(scarce, "proposes h # STEP_DIFFERS"); i++)
        talk_tick(scarce->talk, 1000);
    if (scarce_said(scarce, "proposes h # STEP_DIFFERS"))
        scarce_order(scarce, order_differs);
    ask_again(scarce, &collectives, 1, 120000);
    ask_again(scarce, &collectives, 2, 120000);
    acknowledge_heard(scarce);
}

TEST(an_end_that_is_proposed_is_heard)
{
    scarce_each_take(&(struct scarce_conversation){
        .say = one_is_split_and_the_other_is_not,
        .answers = {
            {"proposes h # STEP_DIFFERS"},
            {"pulled #1 error STEP_DIFFERS\n"},
            {"pulled #2 error STEP_DIFFERS\n"}}});
}
