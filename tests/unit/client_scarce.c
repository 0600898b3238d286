/* SPDX-License-Identifier: Apache-2.0 */
/* client_scarce.c -- calls of a client whose takes from the heap fail one after the other: each
 * says so, leaves nothing behind, and works when there is memory. */
#include "client_played.h"

/* The takes of calloc and realloc; the one of that number fails. 0: none. */
static unsigned takes, failing;
static bool grows = true; /* false: the next realloc fails, too */

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_realloc(void *data, size_t bytes);
void *__wrap_realloc(void *data, size_t bytes);

void *__wrap_calloc(size_t count, size_t bytes)
{
    return ++takes == failing ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *data, size_t bytes)
{
    const bool fails = ++takes == failing || !grows;

    grows = true;
    return fails ? NULL : __real_realloc(data, bytes);
}

/* A call, of which every take fails in its turn until none is left. */
struct scarce {
    struct played *played;
    struct sumac_client_variable *variable;
    enum sumac_status (*call)(struct scarce *scarce, struct sumac_error *error);
};

static float value = 1, into;

static struct sumac_tensor over(float *memory)
{
    return sumac_tensor_over(memory, SUMAC_FLOAT32, SUMAC_SCALAR);
}

/* A transfer is taken anew each time. */
static void drop_free_transfers(struct sumac_client *client)
{
    for (struct transfer *one; (one = client->free_transfers) != NULL;) {
        client->free_transfers = one->next;
        arena_deinit(&one->arena);
        free(one);
    }
}

static void assert_every_take_is_needed(struct scarce *scarce, unsigned least, const char *text)
{
    struct sumac_client *const client = &scarce->played->client;
    enum sumac_status status = SUMAC_RESOURCE_EXHAUSTED;
    struct sumac_error error = {0};
    unsigned number = 0;

    while (status != SUMAC_OK && number < 100) {
        drop_free_transfers(client);
        error = (struct sumac_error){.status = SUMAC_OK};
        takes = 0;
        failing = ++number;
        status = scarce->call(scarce, &error);
        failing = 0;

        if (status != SUMAC_OK) {
            assert_int_equal(status, SUMAC_RESOURCE_EXHAUSTED);
            assert_int_equal(error.reason, SUMAC_REASON_OUT_OF_MEMORY);
            assert_non_null(strstr(error.text, "no memory"));
            assert_null(client->live_transfers.first);
            assert_null(client->collectives.first);
        }
    }
    assert_int_equal(status, SUMAC_OK);
    if (number <= least)
        fail_msg("%s: %u takes failed, of %u at least", text, number - 1, least);
}

static enum sumac_status push(struct scarce *scarce, struct sumac_error *error)
{
    const struct sumac_delta delta = {.variable = scarce->variable, .value = over(&value)};
    struct sumac_push *made = NULL;
    const enum sumac_status status =
        sumac_client_push(&scarce->played->client, &delta, 1, NULL, &made, error);

    return status != SUMAC_OK ? status : sumac_push_wait(made, 0, error);
}

static enum sumac_status pull(struct scarce *scarce, struct sumac_error *error)
{
    const struct sumac_fetch fetch = {.variable = scarce->variable, .into = over(&into)};
    struct sumac_pull *made = NULL;
    const enum sumac_status status =
        sumac_client_pull(&scarce->played->client, &fetch, 1, NULL, &made, error);

    if (status == SUMAC_OK) /* its ps knows the variable no more */
        assert_int_equal(sumac_pull_wait(made, 0, NULL), SUMAC_NOT_FOUND);
    return status;
}

static enum sumac_status collective(struct scarce *scarce, struct sumac_error *error)
{
    const struct sumac_collective_options options = {.name = "s"};
    const struct sumac_tensor tensor = over(&value);
    struct sumac_collective *made = NULL;

    scarce->played->mute = true; /* it is under way to the end */
    return sumac_client_all_reduce(
        &scarce->played->client, &options, SUMAC_REDUCE_SUM, &tensor, &made, error);
}

static enum sumac_status come(struct scarce *scarce, struct sumac_error *error)
{
    static const struct sumac_member task = {"worker", 1};
    const struct sumac_collective_options options = {
        .name = "epoch", .tasks = &task, .task_count = 1};

    scarce->played->barrier.round = 1;
    return sumac_client_barrier(&scarce->played->client, &options, NULL, error);
}

static enum sumac_status create_two(struct scarce *scarce, struct sumac_error *error)
{
    const struct sumac_client_variable_options options[] = {scalar("w"), scalar("v")};
    struct sumac_client_variable *made[2];
    const enum sumac_status status =
        sumac_client_variable_create_many(&scarce->played->client, options, 2, made, error);

    if (status != SUMAC_INTERNAL)
        return status;
    *error =
        (struct sumac_error){/* an answer for which there is no memory is not usable */
                             SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory"};
    return SUMAC_RESOURCE_EXHAUSTED;
}

static enum sumac_status define(struct scarce *scarce, struct sumac_error *error)
{
    scarce->played->functions.answer = 64;
    return sumac_client_define(&scarce->played->client, "set", "value = g", 9, error);
}

/* Its function is one that another client has defined. */
static enum sumac_status push_as_another(struct scarce *scarce, struct sumac_error *error)
{
    static const struct sumac_function nova = {.name = "nova"};
    struct played_functions *const functions = &scarce->played->functions;
    const struct sumac_delta delta = {
        .variable = scarce->variable, .value = over(&value), .function = &nova};
    struct sumac_push *made = NULL;

    functions->count = 1;
    functions->numbers[0] = 65;
    functions->names[0] = "nova";
    functions->texts[0] = "value = g";
    const enum sumac_status status =
        sumac_client_push(&scarce->played->client, &delta, 1, NULL, &made, error);
    return status != SUMAC_OK ? status : sumac_push_wait(made, 0, error);
}

TEST(a_call_without_memory_says_so_and_leaves_nothing)
{
    static const struct {
        const char *text;
        enum sumac_status (*call)(struct scarce *scarce, struct sumac_error *error);
        unsigned least; /* takes of its own */
    } rows[] = {{"push", push, 1},      {"pull", pull, 1},
                {"barrier", come, 3},   {"create many", create_two, 3},
                {"define", define, 1},  {"push of another's function", push_as_another, 2},
                {"meet", collective, 4}};
    struct sumac_client_options options = {0};
    struct played *played = join_as(
        "{\"cluster\": {\"ps\": [\"PS\"], \"worker\": [\"w:1\", \"w:2\"]}, "
        "\"task\": {\"type\": \"worker\", \"index\": 1}}",
        &options);
    struct scarce scarce = {.played = played, .variable = create(played, "given")};

    assert_int_equal(push(&scarce, NULL), SUMAC_OK); /* the streams are open */
    assert_int_equal(pull(&scarce, NULL), SUMAC_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scarce.call = rows[i].call;
        assert_every_take_is_needed(&scarce, rows[i].least, rows[i].text);
    }
    (void)end((void **)&played);
}

/* The members are those of the configuration. */
TEST(a_session_without_memory_is_not_made)
{
    struct played *played = play();
    struct sumac_cluster cluster;
    struct sumac_error error = {0};
    enum sumac_status status = SUMAC_RESOURCE_EXHAUSTED;
    unsigned number = 0;

    assert_int_equal(
        sumac_cluster_parse(
            "{\"cluster\": {\"ps\": [\"h:1\"], \"worker\": [\"w:1\"]}, "
            "\"task\": {\"type\": \"worker\", \"index\": 0}}",
            NULL, &cluster, NULL),
        SUMAC_OK);
    const struct sumac_client_options options = {.cluster = &cluster};
    client_lock(&played->client);
    while (status != SUMAC_OK && number < 10) {
        takes = 0;
        failing = ++number;
        status = client_make_session(&played->client, &options, &error);
        failing = 0;
        if (status != SUMAC_OK)
            assert_string_equal(error.text, "no memory for a session");
    }
    client_unlock(&played->client);
    assert_int_equal(status, SUMAC_OK);
    assert_true(number > 4); /* jobs, addresses, indices, tasks */
    sumac_cluster_deinit(&cluster);
    (void)end((void **)&played);
}

/* Its stream ends, and the next one has the push. */
PLAYED_TEST(a_message_that_there_was_no_memory_for_is_sent_again)
{
    struct scarce scarce = {.played = played, .variable = create(played, "w")};

    free(played->client.payload);
    played->client.payload = NULL;
    played->client.payload_capacity = 0;
    const struct sumac_delta delta = {.variable = scarce.variable, .value = over(&value)};
    struct sumac_push *made = NULL;
    grows = false; /* the list of what a message has */
    assert_int_equal(sumac_client_push(&played->client, &delta, 1, NULL, &made, NULL), SUMAC_OK);

    assert_int_equal(sumac_push_wait(made, 0, NULL), SUMAC_OK);

    assert_true(grows);
    assert_int_equal(played->parts, 1);
}
