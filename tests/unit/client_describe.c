/* SPDX-License-Identifier: Apache-2.0 */
/* client_describe.c -- every field of a variable and of a ps reaches the client. */
#include "client_played.h"
#include "update.h"

#define SHARDS 3u

/* A variable of six rows in three shards, created with one set of hyperparameters, changed since.
 */
struct said {
    wire_variable variable;
    wire_function created, now;
    wire_hyperparameter hyperparameters[4];
    wire_hyperparameter *of_created[2], *of_now[2];
    wire_schedule schedule;
    wire_shard shards[SHARDS];
    wire_shard *all[SHARDS];
    uint64_t shape[1];
    wire_variable *variables[1];
    wire_list_reply reply;
};

static void say_hyperparameter(wire_hyperparameter *said, uint32_t name, double value)
{
    *said = (wire_hyperparameter)WIRE_HYPERPARAMETER_INIT;
    said->name = (Sumac__V1__HyperparameterName)name;
    said->value = value;
}

static void say_functions(struct said *said)
{
    for (uint32_t i = 0; i < 4; i++)
        *(i < 2 ? &said->of_created[i] : &said->of_now[i - 2]) = &said->hyperparameters[i];
    say_hyperparameter(&said->hyperparameters[0], UPDATE_HYPERPARAMETER_LEARNING_RATE, 0.5);
    say_hyperparameter(&said->hyperparameters[1], UPDATE_HYPERPARAMETER_CENTERED, 1);
    say_hyperparameter(&said->hyperparameters[2], UPDATE_HYPERPARAMETER_LEARNING_RATE, 0.25);
    say_hyperparameter(&said->hyperparameters[3], UPDATE_HYPERPARAMETER_CENTERED, 0);
    said->created = said->now = (wire_function)WIRE_FUNCTION_INIT;
    said->created.function = said->now.function = (Sumac__V1__UpdateFunction)UPDATE_RMSPROP;
    said->created.hyperparameters = said->of_created;
    said->now.hyperparameters = said->of_now;
    said->created.n_hyperparameters = said->now.n_hyperparameters = 2;
    said->now.schedule = &said->schedule;
    said->schedule = (wire_schedule)WIRE_SCHEDULE_INIT;
    said->schedule.kind = (Sumac__V1__Schedule__Kind)SUMAC_SCHEDULE_COSINE_DECAY;
    said->schedule.decay_steps = 11;
    said->schedule.decay_rate = 0.12;
    said->schedule.staircase = true;
    said->schedule.alpha = 0.13;
    said->schedule.warmup_steps = 14;
    said->schedule.warmup_target = 0.15;
    said->schedule.first_version = 16;
}

static void say(struct said *said, const char *name, uint64_t id)
{
    static const uint64_t versions[SHARDS] = {9, 5, 7};
    wire_variable *const variable = &said->variable;

    say_functions(said);
    for (uint32_t i = 0; i < SHARDS; i++) {
        said->shards[i] = (wire_shard)WIRE_SHARD_INIT;
        said->shards[i].shard_id = 10 * id + i;
        said->shards[i].first_row = 2 * i;
        said->shards[i].rows = 2;
        said->shards[i].bytes = 8;
        said->shards[i].held = true;
        said->shards[i].version = versions[i];
        said->all[i] = &said->shards[i];
    }
    *variable = (wire_variable)WIRE_VARIABLE_INIT;
    variable->name = (char *)(uintptr_t)name;
    variable->variable_id = id;
    variable->data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
    said->shape[0] = 2 * SHARDS;
    variable->shape = said->shape;
    variable->n_shape = 1;
    variable->aggregation = (Sumac__V1__Aggregation)SUMAC_REDUCE_MEAN;
    variable->synchronization = (Sumac__V1__Synchronization)SUMAC_SYNCHRONIZATION_ON_READ;
    variable->function = &said->created;
    variable->current = &said->now;
    variable->shards = said->all;
    variable->n_shards = SHARDS;
    variable->published = true;
    said->variables[0] = variable;
    said->reply = (wire_list_reply)WIRE_LIST_REPLY_INIT;
    said->reply.variables = said->variables;
    said->reply.n_variables = 1;
}

static struct sumac_client_variable *find(struct played *played, const struct said *said)
{
    struct sumac_client_variable *variable = NULL;
    struct sumac_error error = {0};

    played->pages[played->lists] = &said->reply;
    if (sumac_client_variable_find(&played->client, said->variable.name, &variable, &error) !=
        SUMAC_OK)
        fail_msg("%s", error.text);
    return variable;
}

static enum sumac_status describe(
    struct played *played, struct sumac_client_variable *variable, const struct said *said,
    struct sumac_client_variable_facts *facts, struct sumac_error *error)
{
    played->pages[played->lists] = &said->reply;
    return sumac_client_variable_describe(variable, facts, error);
}

PLAYED_TEST(all_that_a_ps_says_of_a_variable_is_told)
{
    struct sumac_client_variable_facts facts;
    struct said said;

    say(&said, "w", 4);
    struct sumac_client_variable *const variable = find(played, &said); /* given */
    const uint32_t asked = played->lists;

    assert_int_equal(describe(played, variable, &said, &facts, NULL), SUMAC_OK); /* when */

    assert_int_equal(played->lists, asked + 1); /* then: one ps is asked once, for all its shards */
    assert_int_equal(played->count, 0);
    assert_int_equal(facts.version_min, 5);
    assert_int_equal(facts.version_max, 9);
    assert_int_equal(facts.aggregation, SUMAC_REDUCE_MEAN);
    assert_int_equal(facts.synchronization, SUMAC_SYNCHRONIZATION_ON_READ);
    assert_false(facts.trainable);
    assert_string_equal(facts.function.name, "rmsprop");
    assert_string_equal(facts.function.hyperparameters[0].name, "learning_rate");
    assert_true(facts.function.hyperparameters[0].value == 0.25);
    assert_string_equal(facts.function.hyperparameters[1].name, "centered");
    assert_true(facts.function.hyperparameters[1].value == 0);
    assert_null(facts.function.hyperparameters[2].name);
    assert_int_equal(facts.slot_count, 3); /* as it was created centered */
    assert_string_equal(facts.slots[2], "mean_gradient");
    const struct sumac_schedule *const schedule = &facts.schedule;
    assert_true(facts.has_schedule);
    assert_int_equal(schedule->kind, SUMAC_SCHEDULE_COSINE_DECAY);
    assert_int_equal(schedule->decay_steps, 11);
    assert_true(schedule->decay_rate == 0.12);
    assert_true(schedule->staircase);
    assert_true(schedule->alpha == 0.13);
    assert_int_equal(schedule->warmup_steps, 14);
    assert_true(schedule->warmup_target == 0.15);
    assert_int_equal(schedule->first_version, 16);
}

PLAYED_TEST(a_variable_that_no_push_has_changed_is_as_it_was_created)
{
    struct sumac_client_variable_facts facts;
    struct said said;

    say(&said, "w", 4);
    said.variable.current = NULL;
    said.variable.trainable = true;
    struct sumac_client_variable *const variable = find(played, &said);

    assert_int_equal(describe(played, variable, &said, &facts, NULL), SUMAC_OK);

    assert_true(facts.function.hyperparameters[0].value == 0.5);
    assert_true(facts.function.hyperparameters[1].value == 1);
    assert_false(facts.has_schedule);
    assert_true(facts.trainable);
}

PLAYED_TEST(a_shard_that_no_ps_holds_is_missed)
{
    struct sumac_client_variable_facts facts;
    struct sumac_error error = {0};
    struct said said;

    say(&said, "w", 4);
    struct sumac_client_variable *const variable = find(played, &said);
    said.shards[1].held = false;

    assert_int_equal(describe(played, variable, &said, &facts, &error), SUMAC_NOT_FOUND);

    assert_int_equal(error.reason, SUMAC_REASON_UNKNOWN_VARIABLE);
    assert_string_equal(error.text, "2 of the 3 shards of w are on the ps: it was deleted");
}

PLAYED_TEST(another_variable_of_the_name_is_not_described)
{
    struct sumac_client_variable_facts facts;
    struct said first, second;

    say(&first, "w", 4);
    say(&second, "w", 5);
    struct sumac_client_variable *const variable = find(played, &first);

    assert_int_equal(describe(played, variable, &second, &facts, NULL), SUMAC_NOT_FOUND);
}

PLAYED_TEST(variables_are_listed_page_by_page)
{
    struct said said[3];
    wire_variable *both[] = {&said[0].variable, &said[1].variable};
    struct sumac_client_variable *listed[2] = {NULL, NULL};
    size_t count = 0;

    say(&said[0], "w", 4);
    say(&said[1], "x", 6);
    say(&said[2], "y", 8);
    said[1].variable.published = false; /* it is being created */
    said[0].reply.variables = both;
    said[0].reply.n_variables = 2;
    said[0].reply.more = true;
    played->pages[0] = &said[0].reply;
    played->pages[1] = &said[2].reply;

    assert_int_equal(sumac_client_list(&played->client, listed, 1, &count, NULL), SUMAC_OK);

    assert_int_equal(count, 2);
    assert_string_equal(sumac_client_variable_name(listed[0]), "w");
    assert_null(listed[1]); /* there was no place for it */
    assert_int_equal(played->after[0], 0);
    assert_int_equal(played->after[1], 6);
}

PLAYED_TEST(a_list_that_does_not_go_on_is_an_error)
{
    struct said said;
    struct sumac_error error = {0};
    size_t count = 7;

    say(&said, "w", 4);
    said.reply.more = true;
    played->pages[0] = played->pages[1] = played->pages[2] = &said.reply;

    assert_int_equal(sumac_client_list(&played->client, NULL, 0, &count, &error), SUMAC_INTERNAL);

    assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    assert_int_equal(count, 7);
}

PLAYED_TEST(a_variable_that_cannot_be_is_not_listed)
{
    struct said said[2];
    wire_variable *both[] = {&said[0].variable, &said[1].variable};
    struct sumac_client_variable *listed[2] = {NULL, NULL};
    size_t count = 7;

    say(&said[0], "w", 4);
    say(&said[1], "v", 5);
    said[0].variable.n_shards = 2; /* two of its rows are on no ps */
    said[0].reply.variables = both;
    said[0].reply.n_variables = 2;
    played->pages[0] = &said[0].reply;

    assert_int_equal(
        sumac_client_list(&played->client, listed, 2, &count, NULL), SUMAC_RESOURCE_EXHAUSTED);

    assert_int_equal(count, 7);
}

/* Each page goes on behind the largest id before it, and the last one may be empty. */
PLAYED_TEST(a_list_may_end_with_an_empty_page)
{
    struct said said[2];
    wire_variable *both[] = {&said[1].variable, &said[0].variable};
    const wire_list_reply empty = WIRE_LIST_REPLY_INIT;
    size_t count = 0;

    say(&said[0], "w", 4);
    say(&said[1], "x", 6);
    said[0].reply.variables = both;
    said[0].reply.n_variables = 2;
    said[0].reply.more = true;
    played->pages[0] = &said[0].reply;
    played->pages[1] = &empty;

    assert_int_equal(sumac_client_list(&played->client, NULL, 0, &count, NULL), SUMAC_OK);

    assert_int_equal(count, 2);
    assert_int_equal(played->after[1], 6);
}

/* As a later release may name more. */
PLAYED_TEST(a_hyperparameter_that_is_not_known_is_passed_over)
{
    static const uint32_t unknown[] = {0, UPDATE_HYPERPARAMETERS_MAX + 1, 1000};
    struct sumac_client_variable_facts facts;
    struct said said;

    say(&said, "w", 4);
    struct sumac_client_variable *const variable = find(played, &said);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        say_hyperparameter(&said.hyperparameters[3], unknown[i], 7);

        assert_int_equal(describe(played, variable, &said, &facts, NULL), SUMAC_OK);

        assert_string_equal(facts.function.hyperparameters[0].name, "learning_rate");
        assert_null(facts.function.hyperparameters[1].name);
    }
}

static void refuse(struct rpc_call *call, const struct wire_received *received)
{
    (void)received;
    rpc_call_finish(call, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED, "it cannot say");
}

PLAYED_TEST(a_ps_that_cannot_say_is_an_error_and_no_facts)
{
    struct said said;
    struct sumac_client_variable_facts facts = {.version_min = 7};
    struct sumac_ps_facts stats = {.pushes = 7};
    struct sumac_error error = {0};
    size_t count = 7;

    say(&said, "w", 4);
    struct sumac_client_variable *const variable = find(played, &said);
    played->variables[WIRE_VARIABLES_LIST].message = refuse;
    played->observe[WIRE_OBSERVE_STATS].message = refuse;

    assert_int_equal(sumac_client_list(&played->client, NULL, 0, &count, NULL), SUMAC_INTERNAL);
    assert_int_equal(sumac_client_stats(&played->client, 0, &stats, NULL), SUMAC_INTERNAL);
    assert_int_equal(sumac_client_variable_describe(variable, &facts, &error), SUMAC_INTERNAL);

    assert_non_null(strstr(error.text, "it cannot say"));
    assert_int_equal(count, 7);
    assert_int_equal(stats.pushes, 7);
    assert_int_equal(facts.version_min, 7);
}

static void
assert_named(enum sumac_status status, const struct sumac_error *error, const char *text)
{
    assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error->text, text);
}

PLAYED_TEST(where_to_put_facts_is_to_be_given)
{
    struct sumac_client *const client = &played->client;
    struct sumac_client_variable *listed;
    struct sumac_ps_facts facts;
    struct sumac_error error;
    size_t count;

    assert_named(
        sumac_client_list(NULL, &listed, 1, &count, &error), &error,
        "sumac_client_list: client is NULL");
    assert_named(
        sumac_client_list(client, NULL, 1, &count, &error), &error,
        "sumac_client_list: variables is NULL");
    assert_named(
        sumac_client_list(client, &listed, 1, NULL, &error), &error,
        "sumac_client_list: count is NULL");
    assert_named(
        sumac_client_stats(NULL, 0, &facts, &error), &error, "sumac_client_stats: client is NULL");
    assert_named(
        sumac_client_stats(client, 0, NULL, &error), &error, "sumac_client_stats: facts is NULL");
    assert_int_equal(played->lists, 0);
}

PLAYED_TEST(a_variable_whose_function_is_not_known_is_not_described)
{
    struct said said;
    struct sumac_client_variable_facts facts;
    struct sumac_error error = {0};

    say(&said, "w", 4);
    said.created.function = (Sumac__V1__UpdateFunction)77;
    struct sumac_client_variable *const variable = find(played, &said);

    assert_int_equal(describe(played, variable, &said, &facts, &error), SUMAC_FAILED_PRECONDITION);

    assert_int_equal(error.reason, SUMAC_REASON_UNSUPPORTED);
    assert_string_equal(
        error.text,
        "update function 77 of the cluster is not known here; use the release of the ps");
    assert_int_equal(sumac_client_variable_describe(NULL, &facts, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_variable_describe: variable is NULL");
    assert_int_equal(
        sumac_client_variable_describe(variable, NULL, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "sumac_client_variable_describe: facts is NULL");
}

PLAYED_TEST(all_that_a_ps_says_of_itself_is_told)
{
    wire_stats_reply reply = WIRE_STATS_REPLY_INIT;
    wire_memory_stats memory = WIRE_MEMORY_STATS_INIT;
    struct sumac_ps_facts facts = {0};
    struct sumac_error error = {0};

    reply.uptime_ms = 1;
    reply.pushes = 2;
    reply.push_bytes = 3;
    reply.pulls = 4;
    reply.pull_bytes = 5;
    reply.refused = 6;
    reply.non_finite = 7;
    reply.late = 8;
    reply.duplicates = 9;
    reply.variables = 10;
    reply.shards = 11;
    memory.resident_bytes = 12;
    memory.state_bytes = 13;
    reply.memory = &memory;
    played->stats = &reply;
    const struct sumac_ps_facts expected = {
        .uptime_ms = 1,
        .pushes = 2,
        .push_bytes = 3,
        .pulls = 4,
        .pull_bytes = 5,
        .refused = 6,
        .non_finite = 7,
        .late = 8,
        .duplicates = 9,
        .variables = 10,
        .shards = 11,
        .resident_bytes = 12,
        .state_bytes = 13};

    assert_int_equal(sumac_client_stats(&played->client, 0, &facts, NULL), SUMAC_OK);
    assert_memory_equal(&facts, &expected, sizeof facts);

    reply.memory = NULL; /* it was not measured */
    assert_int_equal(sumac_client_stats(&played->client, 0, &facts, NULL), SUMAC_OK);
    assert_int_equal(facts.resident_bytes + facts.state_bytes, 0);

    assert_int_equal(
        sumac_client_stats(&played->client, 1, &facts, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "there is no ps 1; the cluster has 1");
}
