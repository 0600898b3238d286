/* SPDX-License-Identifier: Apache-2.0 */
/* peers_open.c (test) -- which workers are in step, and under which name: what there is of it
 * before the first call. The linker hands what is asked of the client to these. */

#include "unit.h"
#include "members.h"
#include "sumac/strategy.h"

static struct sumac_member told[3]; /* what the client is asked for */
static uint32_t told_count, index_there, count_there;

uint32_t __wrap_client_count_strategy(struct sumac_client *client);
enum sumac_status __wrap_client_collective_place(
    struct sumac_client *client, const struct sumac_member *workers, uint32_t worker_count,
    uint32_t *index, uint32_t *count, struct sumac_error *error);
void __wrap_sumac_client_describe(struct sumac_client *client, struct sumac_client_facts *facts);

uint32_t __wrap_client_count_strategy(struct sumac_client *client)
{
    (void)client;
    return 1;
}

enum sumac_status __wrap_client_collective_place(
    struct sumac_client *client, const struct sumac_member *workers, uint32_t worker_count,
    uint32_t *index, uint32_t *count, struct sumac_error *error)
{
    (void)client, (void)error;
    told_count = worker_count;
    for (uint32_t i = 0; i < worker_count && i < 3; i++)
        told[i] = workers[i];
    *index = index_there;
    *count = count_there;
    return SUMAC_OK;
}

void __wrap_sumac_client_describe(struct sumac_client *client, struct sumac_client_facts *facts)
{
    (void)client;
    *facts = (struct sumac_client_facts){.attempt = 1};
}

static struct sumac_error error;

static enum sumac_status
opened(struct sumac_strategy_options options, struct sumac_strategy **strategy)
{
    options.kind = SUMAC_STRATEGY_MULTI_WORKER;
    options.client = (struct sumac_client *)told; /* never read */
    *strategy = NULL;
    return sumac_strategy_create(&options, strategy, &error);
}

TEST(workers_are_those_that_are_listed_with_their_jobs)
{
    char job[] = "chief";
    const struct sumac_member workers[] = {{job, 0}, {"worker", 3}, {"evaluator", 0}};
    struct sumac_strategy *strategy;

    index_there = 1;
    count_there = 3;
    assert_int_equal(
        opened(
            (struct sumac_strategy_options){.workers = workers, .worker_count = 3, .replicas = 2},
            &strategy),
        SUMAC_OK);
    memset(job, 'x', strlen(job)); /* it is the caller's again */

    assert_int_equal(told_count, 3);
    assert_string_equal(told[0].job, "chief");
    assert_string_equal(told[1].job, "worker");
    assert_int_equal(told[1].index, 3);
    assert_null(told[2].job); /* no such job */
    assert_int_equal(sumac_strategy_num_replicas_in_sync(strategy), 6);
    sumac_strategy_destroy(strategy);
}

TEST(what_makes_no_group_is_refused)
{
    static char longest[202];
    static const char *const names[] = {"", "a\nb", "\xff", longest};
    struct sumac_strategy *strategy;

    index_there = 0;
    count_there = 1;
    assert_int_equal(
        opened((struct sumac_strategy_options){.worker_count = 2}, &strategy),
        SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, "a strategy of 2 workers, and workers is NULL");
    memset(longest, 'x', sizeof longest - 1);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(
            opened((struct sumac_strategy_options){.name = names[i]}, &strategy),
            SUMAC_INVALID_ARGUMENT);
        assert_int_equal(error.reason, SUMAC_REASON_BAD_NAME);
        assert_string_equal(
            error.text, "a strategy's name is UTF-8 of 1 to 200 bytes, without control characters");
        assert_null(strategy);
    }
    longest[200] = '\0';
    assert_int_equal(opened((struct sumac_strategy_options){.name = longest}, &strategy), SUMAC_OK);
    sumac_strategy_destroy(strategy);
}

TEST(replicas_of_all_workers_together_have_a_most)
{
    struct sumac_strategy *strategy;

    index_there = 0;
    count_there = SUMAC_REPLICAS_MAX / 2;
    assert_int_equal(
        opened((struct sumac_strategy_options){.replicas = 3}, &strategy), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "128 workers with 3 replicas each, and 256 are the most together");
    assert_int_equal(opened((struct sumac_strategy_options){.replicas = 2}, &strategy), SUMAC_OK);
    assert_int_equal(sumac_strategy_num_replicas_in_sync(strategy), SUMAC_REPLICAS_MAX);
    sumac_strategy_destroy(strategy);
}

/* The second of three workers with two replicas each has the replicas 2 and 3. */
static enum sumac_status
note_ids(struct sumac_replica *replica, void *context, struct sumac_error *why)
{
    (void)context, (void)why;
    sumac_replica_return(replica, sumac_value_float32((float)sumac_replica_id(replica)));
    return SUMAC_OK;
}

static enum sumac_status make_of_id(
    const struct sumac_value_context *of, void *context, struct sumac_value **value,
    struct sumac_error *why)
{
    (void)context, (void)why;
    *value = sumac_value_float32((float)of->replica_id_in_sync_group);
    return SUMAC_OK;
}

TEST(a_workers_replicas_are_numbered_behind_those_of_the_ones_before)
{
    const struct sumac_run_options step = {.function = note_ids};
    struct sumac_strategy *strategy;
    struct sumac_value *ran = NULL, *made = NULL, *local = NULL;
    char text[128];

    index_there = 1; /* given */
    count_there = 3;
    assert_int_equal(opened((struct sumac_strategy_options){.replicas = 2}, &strategy), SUMAC_OK);

    assert_int_equal(sumac_strategy_run(strategy, &step, &ran, NULL), SUMAC_OK); /* when */
    assert_int_equal(
        sumac_strategy_values_from_function(strategy, make_of_id, NULL, &made, NULL), SUMAC_OK);
    assert_int_equal(sumac_strategy_local_results(strategy, made, &local, NULL), SUMAC_OK);

    assert_true(sumac_value_equal(ran, made)); /* then */
    (void)sumac_value_print(local, text, sizeof text);
    assert_string_equal(text, "(float32[] 2, float32[] 3)");
    sumac_value_unref(ran);
    sumac_value_unref(made);
    sumac_value_unref(local);
    sumac_strategy_destroy(strategy);
}
