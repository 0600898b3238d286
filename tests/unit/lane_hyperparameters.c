/* SPDX-License-Identifier: Apache-2.0 */
/* lane_hyperparameters.c (test) -- a push that changes what a variable is trained with: its place
 * in the order, all of it or nothing, what of it is refused; and schedules, by a shard's version.
 */
#include <math.h>

#include "assert_number.h"
#include "lane_members.h"

#define RATE SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE
#define MOMENTUM SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_MOMENTUM
#define CENTERED SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_CENTERED
#define RHO SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_RHO
#define START SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_INITIAL_ACCUMULATOR_VALUE
#define OWN UINT32_MAX /* the variable's own function, not named */
#define ELEMENTS 40u   /* 160 bytes: vector work that is given out */
#define ITEMS_MAX 4u

/* A piece: a gradient of ones, or what becomes the shard's own. */
struct item {
    uint64_t shard;
    uint32_t elements; /* 0: it sets hyperparameters */
    uint32_t function; /* OWN, or one that the part names, with … */
    int name;          /* … this hyperparameter; 0: none */
    double value;
    const wire_schedule *schedule;
    uint64_t bytes, offset; /* said beside, where there are to be none */
    bool alike;             /* it names the function of the item before it */
};

struct sent {
    uint64_t sequence, step;
    bool waits; /* for its commit */
    struct item items[ITEMS_MAX];
    uint32_t count;
};

static void send(struct talk *talk, uint64_t stream, const struct sent *sent)
{
    static float ones[ITEMS_MAX * ELEMENTS];
    wire_hyperparameter values[ITEMS_MAX], *named[ITEMS_MAX];
    wire_function functions[ITEMS_MAX], *function_pointers[ITEMS_MAX];
    wire_piece pieces[ITEMS_MAX], *piece_pointers[ITEMS_MAX];
    wire_part part = WIRE_PART_INIT;

    for (uint32_t i = 0; i < sent->count; i++) {
        const struct item *item = &sent->items[i];
        values[i] = (wire_hyperparameter)WIRE_HYPERPARAMETER_INIT;
        values[i].name = (Sumac__V1__HyperparameterName)item->name;
        values[i].value = item->value;
        named[i] = &values[i];
        functions[i] = (wire_function)WIRE_FUNCTION_INIT;
        functions[i].function =
            (Sumac__V1__UpdateFunction)(item->function == OWN ? UPDATE_SGD : item->function);
        functions[i].hyperparameters = &named[i];
        functions[i].n_hyperparameters = item->name != 0;
        functions[i].schedule = (wire_schedule *)(uintptr_t)item->schedule;
        function_pointers[i] = &functions[i];
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = item->shard;
        pieces[i].function = item->function == OWN ? 0 : i + 1 - item->alike;
        pieces[i].kind = item->elements == 0 ? SUMAC__V1__PIECE__KIND__KIND_HYPERPARAMETERS
                                             : SUMAC__V1__PIECE__KIND__KIND_VALUES;
        pieces[i].bytes = item->elements * sizeof(float) + item->bytes;
        pieces[i].offset_bytes = item->offset;
        piece_pointers[i] = &pieces[i];
        part.bytes += pieces[i].bytes;
    }
    for (uint32_t i = 0; i < ITEMS_MAX * ELEMENTS; i++)
        ones[i] = 1;
    part.sequence = sent->sequence;
    part.previous = sent->sequence - 1;
    part.first = part.last = true;
    part.eager = !sent->waits && sent->step == 0;
    part.synchronous = sent->step != 0;
    part.step = sent->step;
    part.weight = 1;
    part.functions = function_pointers;
    part.n_functions = sent->count;
    part.pieces = piece_pointers;
    part.n_pieces = sent->count;
    talk_push_part(talk, stream, &part, ones, part.bytes);
}

/* A push of ones to all of the variable, by its own function. */
static void push_ones(struct talk *talk, uint64_t stream, uint64_t sequence, uint32_t elements)
{
    const struct sent sent = {
        .sequence = sequence,
        .items = {{.shard = VARIABLE, .elements = elements, .function = OWN}},
        .count = 1};

    send(talk, stream, &sent);
}

/* A push that sets one hyperparameter of the variable, whose function it is. */
static struct sent setting(uint64_t sequence, uint32_t function, int name, double value)
{
    return (struct sent){
        .sequence = sequence,
        .items = {{.shard = VARIABLE, .function = function, .name = name, .value = value}},
        .count = 1};
}

static struct members begin_sgd(struct talk *talk, uint32_t count, uint64_t elements)
{
    const struct members members = begin(talk, count);

    add_variable(talk, VARIABLE, UPDATE_SGD, MEAN, elements);
    return members;
}

static void expect_held(struct talk *talk, uint64_t variable, double expected)
{
    float held[ELEMENTS];
    const size_t bytes = lane_peek(talk->lane, variable, (uint8_t *)held, sizeof held);

    assert_true(bytes > 0);
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        if (!(fabs((double)held[i] - expected) <= 1e-6))
            fail_msg("element %zu is %.9g, and %.9g was expected", i, (double)held[i], expected);
}

/* ---- the order ---- */

TALK_TEST(what_a_push_sets_counts_for_those_after_it)
{
    const struct members members = begin_sgd(talk, 1, 4);
    const struct sent set = setting(2, UPDATE_SGD, RATE, 0.5);

    push_ones(talk, members.push[1], 1, 4);
    expect_held(talk, VARIABLE, -0.01);
    send(talk, members.push[1], &set);
    talk_expect(talk, "staged 1\ndone 1 [1]\nstaged 2\ndone 2 [2]\n"); /* a version of the shard */
    expect_held(talk, VARIABLE, -0.01);

    push_ones(talk, members.push[1], 3, 4);

    expect_held(talk, VARIABLE, -0.51);
}

/* In one push the pieces before it go by what was, those after it by what is set: here and where
 * the vector work is given out. */
TALK_TEST(within_a_push_the_order_of_the_pieces_counts)
{
    const struct members members = begin_sgd(talk, 1, ELEMENTS);
    const uint32_t elements[] = {2, ELEMENTS};

    for (uint64_t i = 0; i < 2; i++) {
        const struct sent sent = {
            .sequence = i + 1,
            .items =
                {{.shard = VARIABLE, .elements = elements[i], .function = OWN},
                 {.shard = VARIABLE, .function = UPDATE_SGD, .name = RATE, .value = 1},
                 {.shard = VARIABLE, .elements = elements[i], .function = OWN},
                 {.shard = VARIABLE, .function = UPDATE_SGD, .name = RATE, .value = 0.01}},
            .count = 4};
        send(talk, members.push[1], &sent);
    }

    float held[ELEMENTS];
    assert_int_equal(lane_peek(talk->lane, VARIABLE, (uint8_t *)held, sizeof held), sizeof held);
    assert_true(fabs((double)held[1] + 2.02) < 1e-6); /* of both pushes */
    assert_true(fabs((double)held[2] + 1.01) < 1e-6); /* of the second alone */
    talk_expect(talk, "staged 1\ndone 1 [1]\nstaged 2\ndone 2 [2]\n");
}

/* Also where both name the same function. */
TALK_TEST(a_piece_goes_on_with_no_setting)
{
    const struct members members = begin_sgd(talk, 1, ELEMENTS);
    const struct sent sent = {
        .sequence = 1,
        .items =
            {{.shard = VARIABLE, .function = UPDATE_SGD, .name = RATE, .value = 1},
             {.shard = VARIABLE, .elements = ELEMENTS, .function = UPDATE_SGD, .alike = true}},
        .count = 2};

    send(talk, members.push[1], &sent);

    expect_held(talk, VARIABLE, -1);
}

/* Another variable's, and what other sessions have committed before, stay as they are. */
TALK_TEST(a_push_that_waits_sets_nothing_yet)
{
    const struct members members = begin_sgd(talk, 2, 4);
    struct sent set = setting(1, UPDATE_SGD, RATE, 1);

    set.waits = true;
    send(talk, members.push[1], &set);
    push_ones(talk, members.push[2], 1, 4);
    expect_held(talk, VARIABLE, -0.01);
    talk_commit(talk, members.push[1], 1, 0, 0);
    push_ones(talk, members.push[2], 2, 4);

    expect_held(talk, VARIABLE, -1.01);
}

/* What is not named stays; a push that names its own goes by that, once. */
TALK_TEST(what_is_not_named_stays)
{
    const struct members members = begin(talk, 1);
    const struct sent rate = setting(1, UPDATE_MOMENTUM, RATE, 1);
    const struct sent momentum = setting(2, UPDATE_MOMENTUM, MOMENTUM, 0.5);
    const struct sent once = {
        .sequence = 4,
        .items =
            {{.shard = VARIABLE,
              .elements = 4,
              .function = UPDATE_MOMENTUM,
              .name = RATE,
              .value = 0}},
        .count = 1};

    add_variable(talk, VARIABLE, UPDATE_MOMENTUM, SUM, 4);
    send(talk, members.push[1], &rate);
    send(talk, members.push[1], &momentum);
    push_ones(talk, members.push[1], 3, 4);
    expect_held(talk, VARIABLE, -1);
    send(talk, members.push[1], &once); /* the slot is 1.5 */
    expect_held(talk, VARIABLE, -1);

    push_ones(talk, members.push[1], 5, 4);

    expect_held(talk, VARIABLE, -2.75); /* 0.5·1.5 + 1 */
}

TALK_TEST(a_push_that_comes_again_sets_nothing_again)
{
    const struct members members = begin_sgd(talk, 1, 4);
    const struct sent half = setting(1, UPDATE_SGD, RATE, 0.5),
                      one = setting(2, UPDATE_SGD, RATE, 1);

    send(talk, members.push[1], &half);
    send(talk, members.push[1], &one);
    talk_forget(talk);
    send(talk, members.push[1], &half);
    talk_expect(talk, "done 1 [2]\n");

    push_ones(talk, members.push[1], 3, 4);

    expect_held(talk, VARIABLE, -1);
}

/* ---- what is refused ---- */

static void expect_refusal(
    struct talk *talk, uint64_t stream, const struct sent *sent, const char *reason,
    const char *words)
{
    char expected[64];

    (void)snprintf(
        expected, sizeof expected, "refused %u %s\ndone %u voided\n", (unsigned)sent->sequence,
        reason, (unsigned)sent->sequence);
    talk_forget(talk);
    send(talk, stream, sent);
    talk_expect(talk, expected);
    if (strstr(talk->refused, words) == NULL)
        fail_msg("%s: it lacks %s", talk->refused, words);
}

/* All of the push is void: what is right of it, too. */
TALK_TEST(what_a_create_would_not_take_refuses_the_push)
{
    const struct members members = begin_sgd(talk, 1, 4);
    wire_schedule schedule = WIRE_SCHEDULE_INIT;
    struct sent sent = setting(1, UPDATE_SGD, RATE, -1);

    expect_refusal(
        talk, members.push[1], &sent, "BAD_HYPERPARAMETER",
        "hyperparameter learning_rate of sgd is -1; it must be finite and at least 0");
    sent = setting(2, UPDATE_SGD, RATE, 1e300); /* as float32 has it */
    expect_refusal(talk, members.push[1], &sent, "BAD_HYPERPARAMETER", "learning_rate of sgd");
    sent = setting(3, UPDATE_SGD, MOMENTUM, 0.5);
    expect_refusal(
        talk, members.push[1], &sent, "BAD_HYPERPARAMETER", "sgd has no hyperparameter momentum");
    sent = setting(4, UPDATE_SGD, 0, 0);
    schedule.kind = SUMAC__V1__SCHEDULE__KIND__KIND_COSINE_DECAY;
    sent.items[0].schedule = &schedule;
    expect_refusal(
        talk, members.push[1], &sent, "BAD_HYPERPARAMETER",
        "decay_steps of the schedule cosine_decay is 0");
    const struct sent partly = {
        .sequence = 5,
        .items =
            {{.shard = VARIABLE, .elements = 4, .function = OWN},
             {.shard = VARIABLE, .function = UPDATE_SGD, .name = RATE, .value = 1},
             {.shard = 77, .function = UPDATE_SGD, .name = RATE, .value = 1}},
        .count = 3};
    expect_refusal(talk, members.push[1], &partly, "UNKNOWN_SHARD", "shard 77");
    expect_held(talk, VARIABLE, 0);

    push_ones(talk, members.push[1], 6, 4);

    expect_held(talk, VARIABLE, -0.01);
}

TALK_TEST(only_a_variables_own_function_has_what_is_set)
{
    const struct members members = begin_sgd(talk, 1, 4);
    struct sent sent = setting(1, UPDATE_ASSIGN, 0, 0);

    expect_refusal(
        talk, members.push[1], &sent, "BAD_HYPERPARAMETER",
        "variable v10 was created with sgd, and a push sets hyperparameters of assign");
    sent = setting(2, OWN, 0, 0);
    expect_refusal(
        talk, members.push[1], &sent, "MALFORMED",
        "sets hyperparameters of variable v10 names function 0 and has 0 bytes");
    sent = setting(3, UPDATE_SGD, RATE, 1);
    sent.items[0].bytes = 4;
    expect_refusal(talk, members.push[1], &sent, "MALFORMED", "names function 1 and has 4 bytes");
    sent = setting(4, UPDATE_SGD, RATE, 1);
    sent.items[0].offset = 4;
    expect_refusal(talk, members.push[1], &sent, "MALFORMED", "names function 1");
    sent = setting(5, 99, RATE, 1);
    expect_refusal(talk, members.push[1], &sent, "UNKNOWN_FUNCTION", "number 99");
}

/* One step carries them all out. */
TALK_TEST(a_push_sets_as_much_as_a_step_has_time_for)
{
    static float nothing;
    static wire_piece pieces[4096], *pointers[4096];
    wire_function sgd = WIRE_FUNCTION_INIT, *functions[] = {&sgd};
    struct lane_config config = talk_config();

    config.staging_bytes_max = 64u << 20;
    talk_start(talk, &config);
    talk_open(talk, 1);
    talk_variable(talk, VARIABLE, 4, UPDATE_SGD);
    const uint64_t stream = talk_push_stream(talk, 1, 1);
    talk_forget(talk);
    sgd.function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_SGD;
    for (uint32_t i = 0; i < 4096; i++) {
        pieces[i] = (wire_piece)WIRE_PIECE_INIT;
        pieces[i].shard_id = VARIABLE;
        pieces[i].function = 1;
        pieces[i].kind = SUMAC__V1__PIECE__KIND__KIND_HYPERPARAMETERS;
        pointers[i] = &pieces[i];
    }
    for (uint64_t sequence = 1; sequence <= 2; sequence++) /* the second has one more */
        for (uint32_t message = 0; message < sequence; message++) {
            wire_part part = WIRE_PART_INIT;
            part.sequence = sequence;
            part.previous = sequence - 1;
            part.first = message == 0;
            part.last = message + 1 == sequence;
            part.eager = true;
            part.functions = functions;
            part.n_functions = message == 0;
            part.pieces = pointers;
            part.n_pieces = message == 0 ? 4096 : 1;
            talk_push_part(talk, stream, &part, &nothing, 0);
        }

    talk_expect(talk, "staged 1\nrefused 2 TOO_MANY_PIECES\n");
    for (uint32_t steps = 0; steps < 8; steps++) /* the first had a whole message to look at */
        talk_tick(talk, 0);
    talk_expect(talk, "done 1 [1]\ndone 2 voided\n");
    assert_non_null(strstr(talk->refused, "more than 4096 shards of ps 1"));
}

/* A slot that is not there is not asked for by the back door; one that is there may rest. */
TALK_TEST(slots_are_those_that_the_variable_was_created_with)
{
    const struct members members = begin(talk, 1);
    struct sent sent = setting(1, UPDATE_RMSPROP, CENTERED, 1);

    add_variable(talk, VARIABLE, UPDATE_RMSPROP, SUM, 4);
    expect_refusal(
        talk, members.push[1], &sent, "MISSING_SLOTS",
        "rmsprop with centered keeps the slot mean_gradient");
    talk_delete(talk, VARIABLE);
    add_variable(talk, VARIABLE, UPDATE_ADAGRAD, SUM, 4);
    sent = setting(2, UPDATE_ADAGRAD, START, 0.5);
    expect_refusal(
        talk, members.push[1], &sent, "BAD_HYPERPARAMETER",
        "the slots of adagrad have started from its initial_accumulator_value");
    sent = setting(3, UPDATE_ADAGRAD, RATE, 0.5);
    send(talk, members.push[1], &sent);

    talk_expect(talk, "staged 3\ndone 3 [1]\n");
}

/* ---- steps ---- */

/* Set by each member, and once: what a step is made of is one update. */
TALK_TEST(a_step_sets_what_all_its_members_say)
{
    const struct members members = begin_sgd(talk, 2, 4);
    struct sent sent = {
        .sequence = 1,
        .step = 1,
        .items =
            {{.shard = VARIABLE, .function = UPDATE_SGD, .name = RATE, .value = 0.5},
             {.shard = VARIABLE, .elements = 4, .function = OWN}},
        .count = 2};

    for (uint32_t i = 1; i <= 2; i++) {
        send(talk, members.push[i], &sent);
        talk_commit(talk, members.push[i], 1, 0, 0);
    }
    talk_expect(talk, "staged 1\nstaged 1\ndone 1 [1]\ndone 1 [1]\n");
    expect_held(talk, VARIABLE, -0.5);
    sent.sequence = sent.step = 2;
    send(talk, members.push[1], &sent);
    talk_forget(talk);

    sent.items[0].value = 1;
    send(talk, members.push[2], &sent);

    talk_expect(talk, "refused 2 STEP_DIFFERS\n");
    assert_non_null(strstr(talk->refused, "learning_rate 1 for variable v10"));
}

TALK_TEST(members_that_set_other_schedules_differ)
{
    const struct members members = begin_sgd(talk, 2, 4);
    wire_schedule schedule = WIRE_SCHEDULE_INIT;
    struct sent sent = setting(1, UPDATE_SGD, 0, 0);

    schedule.warmup_steps = 2;
    sent.step = 1;
    sent.items[0].schedule = &schedule;
    send(talk, members.push[1], &sent);
    schedule.warmup_steps = 3;
    send(talk, members.push[2], &sent);
    talk_expect(talk, "staged 1\nrefused 1 STEP_DIFFERS\n");
    assert_non_null(strstr(
        talk->refused, "schedule constant(warmup_steps 3, warmup_target 0) for variable v10, where "
                       "that of worker 1 has schedule constant(warmup_steps 2"));
}

TALK_TEST(setting_is_not_pushing)
{
    const struct members members = begin_sgd(talk, 2, 4);
    struct sent sent = setting(1, UPDATE_SGD, RATE, 1);

    sent.step = 1;
    send(talk, members.push[1], &sent);
    sent.items[0].elements = 4;
    send(talk, members.push[2], &sent);

    talk_expect(talk, "staged 1\nrefused 1 STEP_DIFFERS\n");
    assert_non_null(strstr(talk->refused, "hyperparameters of shard 10 of variable v10"));
}

/* ---- schedules ---- */

/* Halved with each version, the version of the push that sets it among them. */
TALK_TEST(a_schedule_goes_by_the_versions_of_the_shard)
{
    const struct members members = begin_sgd(talk, 1, ELEMENTS);
    struct sent sent = setting(1, UPDATE_SGD, RATE, 1);
    wire_schedule schedule = WIRE_SCHEDULE_INIT;

    schedule.kind = SUMAC__V1__SCHEDULE__KIND__KIND_EXPONENTIAL_DECAY;
    schedule.decay_steps = 1;
    schedule.decay_rate = 0.5;
    sent.items[0].schedule = &schedule;
    send(talk, members.push[1], &sent);
    push_ones(talk, members.push[1], 2, ELEMENTS);
    expect_held(talk, VARIABLE, -0.5);
    push_ones(talk, members.push[1], 3, ELEMENTS);
    expect_held(talk, VARIABLE, -0.75);
    struct sent own = setting(4, UPDATE_SGD, RATE, 1); /* a rate of its own goes before */
    own.items[0].elements = ELEMENTS;
    send(talk, members.push[1], &own);
    expect_held(talk, VARIABLE, -1.75);
    push_ones(talk, members.push[1], 5, ELEMENTS);
    expect_held(talk, VARIABLE, -1.8125);

    sent = setting(6, UPDATE_SGD, RATE, 0.5); /* and one that is set ends it */
    send(talk, members.push[1], &sent);
    for (uint64_t sequence = 7; sequence < 9; sequence++)
        push_ones(talk, members.push[1], sequence, ELEMENTS);

    expect_held(talk, VARIABLE, -2.8125);
}

/* ---- the catalogue ---- */

static const wire_variable *list(struct talk *talk)
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    const struct lane_event call = {
        .kind = LANE_EVENT_CALL,
        .now_us = talk->now_us,
        .call = 1,
        .call_kind = LANE_CALL_LIST,
        .request = &request.base};
    struct lane_effects effects;

    ps_core_step(talk->core, &call, &effects);
    for (uint32_t i = 0; i < effects.count; i++)
        if (effects.items[i].kind == LANE_EFFECT_REPLY)
            return ((const wire_list_reply *)effects.items[i].reply)->variables[0];
    return NULL;
}

/* What it was created with is what another create is compared with. */
TALK_TEST(a_list_says_what_counts_beside_what_was_created)
{
    const struct members members = begin_sgd(talk, 1, 4);
    wire_schedule schedule = WIRE_SCHEDULE_INIT;
    struct sent sent = setting(1, UPDATE_SGD, RATE, 0.5);

    assert_null(list(talk)->current);
    assert_false(list(talk)->every_shard);
    schedule.warmup_steps = 3;
    schedule.warmup_target = 2;
    sent.items[0].schedule = &schedule;
    send(talk, members.push[1], &sent);

    const wire_variable *listed = list(talk);
    assert_non_null(listed->current);
    assert_int_equal(listed->current->function, UPDATE_SGD);
    assert_int_equal(listed->current->hyperparameters[0]->name, RATE);
    assert_number_equal(listed->current->hyperparameters[0]->value, 0.5);
    assert_int_equal(listed->current->schedule->warmup_steps, 3);
    assert_true(listed->every_shard);
    assert_number_equal(listed->function->hyperparameters[0]->value, 0.01);
    assert_null(listed->function->schedule);
}
