/* SPDX-License-Identifier: Apache-2.0 */
/* strategy_peers.c (test) -- when this process tells the other workers that a call has failed. They
 * are played here: nothing is sent. */
#include <semaphore.h>
#include <time.h>

#include "unit.h"
#include "peers.h"
#include "strategy.h"
#include "strategy_made.h"
#include "sumac/variable.h"

#define PATIENCE_S 30

static struct {
    sem_t refused; /* posted by each replica whose call has failed */
    uint32_t given_up, exchanged, finished;
    bool replicas_went_on, no_none;
    enum sumac_status told, answer; /* `answer`: of the other workers */
} seen;

/* ---- the other workers, and memory */

void __wrap_peers_give_up(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_error *why);
enum sumac_status __wrap_peers_exchange(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_value *const *own,
    const struct sumac_error *failed, struct sumac_value **all, struct sumac_error *error);
void __wrap_peers_finish(struct strategy_peers *peers);
struct sumac_value *__real_sumac_value_none(void);
struct sumac_value *__wrap_sumac_value_none(void);

/* As if it waited for the network: until a replica hears that its call has failed. */
void __wrap_peers_give_up(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_error *why)
{
    struct timespec until;

    (void)strategy;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    seen.given_up++;
    seen.told = why->status;
    seen.replicas_went_on = sem_timedwait(&seen.refused, &until) == 0;
    assert_int_equal(call->kind, CALL_ALL_REDUCE);
    assert_non_null(call->value); /* of which the rounds of its sums are planned */
}

enum sumac_status __wrap_peers_exchange(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_value *const *own,
    const struct sumac_error *failed, struct sumac_value **all, struct sumac_error *error)
{
    (void)call, (void)own, (void)all;
    seen.exchanged++;
    seen.told = failed == NULL ? SUMAC_OK : failed->status;
    if (failed == NULL && seen.answer != SUMAC_OK) {
        *error = (struct sumac_error){.status = seen.answer, .text = "worker 1 has failed"};
        return seen.answer;
    }
    for (uint32_t i = 0; failed == NULL && i < strategy->in_sync; i++)
        all[i] = sumac_value_ref(own[i]);
    if (failed != NULL)
        *error = *failed;
    return seen.told;
}

void __wrap_peers_finish(struct strategy_peers *peers)
{
    (void)peers;
    seen.finished++;
}

struct sumac_value *__wrap_sumac_value_none(void)
{
    return seen.no_none ? NULL : __real_sumac_value_none();
}

static struct sumac_strategy *with_other_workers(uint32_t replicas)
{
    static char peers; /* never read */
    struct sumac_strategy *strategy = mirrored(replicas);

    strategy->peers = (void *)&peers;
    seen.given_up = seen.exchanged = seen.finished = 0;
    seen.answer = SUMAC_OK;
    seen.replicas_went_on = seen.no_none = false;
    return strategy;
}

static void forget(struct sumac_strategy *strategy)
{
    strategy->peers = NULL;
    sumac_strategy_destroy(strategy);
}

/* ---- a replica that returns without the call */

static enum sumac_status
all_but_one(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    struct sumac_value *returned = NULL;

    if (sumac_replica_id(replica) == *(const uint32_t *)context)
        return SUMAC_OK;
    struct sumac_value *one = sumac_value_float32(1);
    const enum sumac_status status =
        sumac_replica_all_reduce(replica, SUMAC_REDUCE_SUM, one, NULL, &returned, error);
    sumac_value_unref(one);
    assert_int_equal(status, SUMAC_DEADLINE_EXCEEDED);
    sem_post(&seen.refused);
    return SUMAC_OK;
}

TEST(replicas_go_on_while_the_other_workers_are_told)
{
    for (uint32_t missing = 0; missing < 3; missing++) {
        struct sumac_strategy *strategy = with_other_workers(3);
        const struct sumac_run_options step = {.function = all_but_one, .context = &missing};

        sem_init(&seen.refused, 0, 0);

        assert_int_equal(sumac_strategy_run(strategy, &step, NULL, NULL), SUMAC_OK);

        assert_int_equal(seen.given_up, 1);
        assert_int_equal(seen.told, SUMAC_DEADLINE_EXCEEDED);
        assert_true(seen.replicas_went_on);
        sem_destroy(&seen.refused);
        forget(strategy);
    }
}

/* ---- no memory */

TEST(a_list_of_no_items_is_told_to_the_other_workers)
{
    struct sumac_strategy *strategy = with_other_workers(2);
    struct sumac_value *values = sumac_value_list(NULL, 0), *results = NULL;

    assert_int_equal(
        sumac_strategy_batch_reduce(strategy, SUMAC_REDUCE_MEAN, values, &results, NULL), SUMAC_OK);
    assert_int_equal(seen.exchanged, 1);
    assert_int_equal(seen.told, SUMAC_OK);
    expect_printed(results, "[]");

    seen.no_none = true;
    assert_int_equal(
        sumac_strategy_batch_reduce(strategy, SUMAC_REDUCE_MEAN, values, &results, NULL),
        SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(seen.exchanged, 2);
    assert_int_equal(seen.finished, 2); /* the next call would wait */
    assert_int_equal(seen.told, SUMAC_RESOURCE_EXHAUSTED);
    sumac_value_unref(values);
    sumac_value_unref(results);
    forget(strategy);
}

/* ---- variables that all workers have */

static struct sumac_variable *read_by_all(struct sumac_strategy *strategy)
{
    struct sumac_value *initial = sumac_value_float32(1);
    struct strategy_peers *const peers = strategy->peers;
    struct sumac_variable *variable = NULL;
    const struct sumac_variable_options options = {
        .name = "v",
        .initial = initial,
        .synchronization = SUMAC_SYNCHRONIZATION_ON_READ,
        .aggregation = SUMAC_REDUCE_SUM};

    strategy->peers = NULL; /* they create theirs as well */
    assert_int_equal(sumac_variable_create(strategy, &options, &variable, NULL), SUMAC_OK);
    strategy->peers = peers;
    sumac_value_unref(initial);
    return variable;
}

static void assert_heard(enum sumac_status told)
{
    assert_int_equal(seen.exchanged, 1);
    assert_int_equal(seen.finished, 1);
    assert_int_equal(seen.told, told);
    seen.exchanged = seen.finished = 0;
}

TEST(a_read_that_is_refused_is_told_to_the_other_workers)
{
    struct sumac_strategy *strategy = with_other_workers(2);
    struct sumac_variable *const variable = read_by_all(strategy);
    struct sumac_value *value = NULL;

    assert_int_equal(sumac_variable_read(variable, NULL, NULL, NULL), SUMAC_INVALID_ARGUMENT);
    assert_heard(SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_variable_read_all(&variable, 1, NULL, NULL, NULL), SUMAC_INVALID_ARGUMENT);
    assert_heard(SUMAC_INVALID_ARGUMENT);

    assert_int_equal(sumac_variable_read(variable, NULL, &value, NULL), SUMAC_OK);
    assert_heard(SUMAC_OK);
    expect_printed(value, "float32[] 2");
    sumac_value_unref(value);
    forget(strategy);
}

TEST(a_read_that_another_worker_refuses_fails)
{
    struct sumac_strategy *strategy = with_other_workers(2);
    struct sumac_variable *const variable = read_by_all(strategy);
    struct sumac_value *value = NULL;
    struct sumac_error error = {0};

    seen.answer = SUMAC_ABORTED;
    assert_int_equal(sumac_variable_read(variable, NULL, &value, &error), SUMAC_ABORTED);

    assert_null(value);
    assert_string_equal(error.text, "worker 1 has failed");
    assert_heard(SUMAC_OK);
    forget(strategy);
}

TEST(a_variable_that_is_refused_is_told_to_the_other_workers)
{
    struct sumac_strategy *strategy = with_other_workers(2);
    struct sumac_variable *variable = NULL;
    const struct sumac_variable_options nameless = {.name = NULL};
    struct sumac_variable_options own = nameless;

    assert_int_equal(
        sumac_variable_create(strategy, NULL, &variable, NULL), SUMAC_INVALID_ARGUMENT);
    assert_heard(SUMAC_INVALID_ARGUMENT);
    assert_int_equal(
        sumac_variable_create(strategy, &nameless, &variable, NULL), SUMAC_INVALID_ARGUMENT);
    assert_heard(SUMAC_INVALID_ARGUMENT);

    own.process_local = true; /* of this process alone */
    assert_int_equal(
        sumac_variable_create(strategy, &own, &variable, NULL), SUMAC_INVALID_ARGUMENT);
    assert_int_equal(seen.exchanged, 0);
    forget(strategy);
}

/* ---- what the ps sum */

#define SENT_BYTES 65536u /* of all replicas in sync together, at most */

static bool is_summed_apart(uint32_t in_sync, enum sumac_dtype dtype, uint64_t bytes)
{
    static char peers;
    const struct sumac_strategy strategy = {
        .peers = (void *)&peers, .replicas = 1, .in_sync = in_sync};
    const struct sumac_tensor tensor = {
        .dtype = dtype, .shape = SUMAC_SHAPE(bytes / sumac_dtype_bytes(dtype))};

    return peers_sum_apart(&strategy, SUMAC_REDUCE_SUM, &tensor);
}

/* The number of replicas and the bytes of each count together. */
TEST(a_tensor_is_summed_by_the_ps_when_all_of_them_send_more)
{
    static const uint32_t in_sync[] = {1, 2, 3, 7, 256};

    for (size_t i = 0; i < sizeof in_sync / sizeof *in_sync; i++) {
        const uint64_t bytes = SENT_BYTES / in_sync[i] / 8 * 8;
        assert_false(is_summed_apart(in_sync[i], SUMAC_FLOAT64, bytes));
        assert_true(is_summed_apart(in_sync[i], SUMAC_FLOAT64, bytes + 8));
        assert_true(is_summed_apart(in_sync[i], SUMAC_UINT8, SENT_BYTES / in_sync[i] + 1));
        assert_false(is_summed_apart(in_sync[i], SUMAC_UINT8, SENT_BYTES / in_sync[i]));
    }
    assert_false(is_summed_apart(2, SUMAC_BFLOAT16, SENT_BYTES));
}
