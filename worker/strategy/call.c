/* SPDX-License-Identifier: Apache-2.0 */
/* call.c -- calls that all replicas make: each waits until all have, they are compared, and whoever
 * came last computes what it comes to, in the order of the replicas; of much those that wait
 * compute their share (shares.c).
 *
 *     replica 0   | make ........ wait ...... help . | take |
 *     replica 1       | make .... wait ............. | take |
 *     replica 2             | make, compare, compute | take |
 *
 * Who has taken may make the next call while others have yet to take: that is not over before they
 * make it as well.
 *
 * When the time of one is over, or one has returned without it, the call has failed for all, and so
 * has each later one of the run: what a replica would come to then is not what the others did.
 */
#include "variable.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "error.h"
#include "peers.h"
#include "text.h"
#include "on_device.h"

/* For so long a thread looks whether it need wait any more, and gives way to others in between,
 * before it sleeps: to be woken takes longer. But beside other processes who gives way may get its
 * turn again long after the call was over; when that has been seen, so many waits go to sleep at
 * once, the more the oftener. */
#define LOOK_NS_MAX 50000u
#define LATE_NS_MAX 500000u
#define SLEEPS_MIN 64u
#define SLEEPS_MAX 4096u

void calls_init(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;
    pthread_condattr_t attributes;

    pthread_mutex_init(&calls->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&calls->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_cond_init(&calls->helped, NULL);
    calls->sleeps_next = SLEEPS_MIN;
}

void calls_deinit(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;

    assert(calls->made_count == 0);
    pthread_cond_destroy(&calls->helped);
    pthread_cond_destroy(&calls->changed);
    pthread_mutex_destroy(&calls->mutex);
}

void calls_begin(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;

    pthread_mutex_lock(&calls->mutex);
    assert(calls->made_count == 0);
    memset(calls->returned, 0, strategy->replicas * sizeof *calls->returned);
    calls->returned_count = 0;
    calls->number = 1;
    calls->over = 0;
    calls->ends_run = false;
    calls->broken.status = SUMAC_OK;
    pthread_mutex_unlock(&calls->mutex);
}

/* ---- who has not come */

/* "replica 1, replica 3", of those that are not there; with `returned` those alone that never
 * will be. */
static const char *
list_missing(const struct sumac_strategy *strategy, bool returned, char *text, size_t text_bytes)
{
    size_t used = 0;

    assert(text_bytes > 0);
    text[0] = '\0';
    for (uint32_t i = 0; i < strategy->replicas; i++) {
        if (strategy->calls.made[i] != NULL || (returned && !strategy->calls.returned[i]))
            continue;
        used += text_print(
            text + used, text_bytes - used, "%sreplica %" PRIu32, used == 0 ? "" : ", ",
            strategy->first + i);
    }
    return text;
}

/* The call under way, as the first replica that has made it says. */
static const struct call *first_made(const struct sumac_strategy *strategy)
{
    uint32_t first = 0;

    assert(strategy->calls.made_count > 0);
    while (strategy->calls.made[first] == NULL)
        first++;
    return strategy->calls.made[first];
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void note_change(struct calls *calls)
{
    (void)atomic_fetch_add_explicit(&calls->changes, 1, memory_order_release);
}

/* The call is over for all that made it, and the next one may begin. */
static void end(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;

    assert(calls->made_count > 0);
    assert(calls->shares == NULL);
    memset(calls->made, 0, strategy->replicas * sizeof(struct call *));
    calls->made_count = 0;
    calls->number++;
    calls->over_ns = now_ns();
    note_change(calls);
}

/* The call has failed for all replicas, and so has each later one of the run. Unlocks while it
 * tells the other workers: that can wait for the network, and the replicas go on meanwhile. */
static void break_off(struct sumac_strategy *strategy, const struct sumac_error *error)
{
    struct calls *calls = &strategy->calls;
    struct call first;

    assert(error->status != SUMAC_OK);
    assert(calls->made_count < strategy->replicas); /* nobody computes */
    if (calls->broken.status == SUMAC_OK)
        calls->broken = *error;
    if (calls->made_count == 0)
        return;
    first = *first_made(strategy); /* its owner goes on now */
    struct sumac_value *value = sumac_value_ref(first.value);
    const bool is_merge = calls->is_merge;
    end(strategy);
    pthread_cond_broadcast(&calls->changed);
    if (strategy->peers != NULL && !is_merge) { /* other workers wait for it */
        pthread_mutex_unlock(&calls->mutex);
        peers_give_up(strategy, &first, error);
        pthread_mutex_lock(&calls->mutex);
    }
    sumac_value_unref(value);
}

bool calls_all_made(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;

    pthread_mutex_lock(&calls->mutex);
    const bool all = calls->made_count == strategy->replicas;
    pthread_mutex_unlock(&calls->mutex);
    return all;
}

void calls_end_run(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;

    pthread_mutex_lock(&calls->mutex);
    calls->ends_run = true;
    pthread_mutex_unlock(&calls->mutex);
}

/* A replica that was called wrongly. */
static enum sumac_status
hear_failure(const struct sumac_strategy *strategy, uint32_t replica, struct sumac_error *error)
{
    const struct call *call = strategy->calls.made[replica];
    const struct sumac_error *failed = call->failed;

    assert(failed == NULL || failed->status != SUMAC_OK);
    if (failed == NULL)
        return SUMAC_OK;
    return fail(
        error, failed->status, failed->reason, "%s: replica %" PRIu32 ": %.440s",
        call_name(call->kind), strategy->first + replica, failed->text);
}

/* Some will not come. One of those that are there may have failed already: then that is why. */
static bool has_failed(const struct sumac_strategy *strategy, struct sumac_error *error)
{
    assert(strategy->calls.made_count < strategy->replicas);
    for (uint32_t i = 0; i < strategy->replicas; i++)
        if (strategy->calls.made[i] != NULL && hear_failure(strategy, i, error) != SUMAC_OK)
            return true;
    return false;
}

/* One that others wait for will not come. */
static void look_for_returned(struct sumac_strategy *strategy)
{
    struct calls *calls = &strategy->calls;
    struct sumac_error error;
    char missing[160];

    if (calls->made_count == 0 || list_missing(strategy, true, missing, sizeof missing)[0] == '\0')
        return;
    if (!has_failed(strategy, &error))
        (void)fail(
            &error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_MEMBER_GONE,
            "%s, call %" PRIu64 " of the run: %s returned without it, and the others wait for that",
            call_name(first_made(strategy)->kind), calls->number, missing);
    break_off(strategy, &error);
}

void calls_returned(
    struct sumac_strategy *strategy, uint32_t replica, const struct sumac_error *error)
{
    struct calls *calls = &strategy->calls;

    pthread_mutex_lock(&calls->mutex);
    assert(!calls->returned[replica]);
    calls->returned[replica] = true;
    calls->returned_count++;
    if (error->status != SUMAC_OK)
        break_off(strategy, error);
    look_for_returned(strategy);
    pthread_mutex_unlock(&calls->mutex);
}

/* ---- computed */

/* As the thread that is in the cross-replica context of the strategy for as long. */
static enum sumac_status merge(
    struct sumac_strategy *strategy, const struct sumac_value *const *values,
    struct sumac_value **result, struct sumac_error *error)
{
    const struct call *first = strategy->calls.made[0];
    struct context *present = context_present();
    const struct context before = *present;
    struct sumac_value *args = NULL;

    assert(first->kind == CALL_MERGE || first->kind == CALL_CREATE);
    assert(first->function != NULL);
    enum sumac_status status = value_regroup_as(
        SUMAC_VALUE_PER_REPLICA, values, strategy->replicas, strategy->first, &args, error);
    if (status != SUMAC_OK)
        return status;
    *present = (struct context){
        .kind = CONTEXT_CROSS_REPLICA,
        .strategy = strategy,
        .replica = before.replica,
        .depth = before.depth + 1};
    status = first->function(strategy, args, first->context, result, error);
    *present = before;
    sumac_value_unref(args);
    if (status != SUMAC_OK)
        return function_failed(error, status, "the function of merge_call");
    error->status = SUMAC_OK; /* of what the function has got over */
    return *result == NULL ? value_give(sumac_value_none(), result, error) : SUMAC_OK;
}

/* With the other workers, of what lies on devices as of what is here. */
static enum sumac_status exchange_here(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_value *const *own,
    const struct sumac_error *failed, struct sumac_value **heard, struct sumac_error *error)
{
    struct sumac_value *here[SUMAC_REPLICAS_MAX] = {NULL};
    struct sumac_error why;
    enum sumac_status status = SUMAC_OK;

    assert(strategy->replicas <= SUMAC_REPLICAS_MAX);
    if (strategy->on_device != NULL)
        status = on_device_settle(strategy, &why);
    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++)
        if (own[i] != NULL)
            status = sumac_value_to_host(own[i], &here[i], &why);
    const struct sumac_error *const told = failed != NULL || status == SUMAC_OK ? failed : &why;
    status = peers_exchange(
        strategy, call, status == SUMAC_OK ? value_lend(here) : own, told, heard, error);
    value_unref_all(here, strategy->replicas);
    return status;
}

enum sumac_status call_hear_all(
    struct sumac_strategy *strategy, const struct call *call, const struct sumac_value *const *own,
    const struct sumac_error *failed, struct sumac_value *all[SUMAC_REPLICAS_MAX],
    struct sumac_error *error)
{
    assert(own != NULL);
    assert(strategy->in_sync >= strategy->replicas);
    assert(strategy->in_sync <= SUMAC_REPLICAS_MAX);
    memset(all, 0, strategy->in_sync * sizeof *all);
    if (strategy->peers != NULL)
        return exchange_here(strategy, call, own, failed, all, error);
    if (failed != NULL)
        return failed->status;
    for (uint32_t i = 0; i < strategy->replicas; i++)
        all[i] = sumac_value_ref(own[i]);
    return SUMAC_OK;
}

void call_forget_all(const struct sumac_strategy *strategy, struct sumac_value *const *all)
{
    if (strategy->peers != NULL)
        peers_finish(strategy->peers);
    value_unref_all(all, strategy->in_sync);
}

static enum sumac_status
compute(struct sumac_strategy *strategy, struct sumac_value **result, struct sumac_error *error)
{
    const struct call *first = strategy->calls.made[0];
    const struct sumac_value *own[SUMAC_REPLICAS_MAX] = {NULL};
    struct sumac_value *all[SUMAC_REPLICAS_MAX];
    enum sumac_status status = SUMAC_OK;
    bool reads = false;

    assert(strategy->calls.made_count == strategy->replicas);
    for (uint32_t i = 0; status == SUMAC_OK && i < strategy->replicas; i++) {
        own[i] = strategy->calls.made[i]->value;
        reads = reads || strategy->calls.made[i]->reads;
        status = hear_failure(strategy, i, error);
    }
    for (uint32_t i = 1; status == SUMAC_OK && i < strategy->replicas; i++)
        status = call_compare(
            first, strategy->first, strategy->calls.made[i], strategy->first + i, error);
    if (status == SUMAC_OK && strategy->on_device != NULL &&
        (first->kind == CALL_MERGE || first->kind == CALL_WRITE || first->kind == CALL_CREATE))
        status = on_device_settle(strategy, error);
    if (status == SUMAC_OK && (first->kind == CALL_MERGE || first->kind == CALL_CREATE))
        return merge(strategy, own, result, error);
    if (first->kind == CALL_MERGE)
        return status;
    if (first->kind == CALL_CREATE) /* the other workers wait for this one's */
        return call_refuse_across(strategy, CALL_CREATE, error, error);
    status = call_hear_all(strategy, first, own, status == SUMAC_OK ? NULL : error, all, error);
    if (status == SUMAC_OK && first->kind == CALL_WRITE)
        status = write_together(
            first->variable, (enum sumac_write)first->write, value_lend(all), reads ? result : NULL,
            error);
    else if (status == SUMAC_OK)
        status = collect_call(strategy, first, value_lend(all), result, error);
    call_forget_all(strategy, all);
    return status;
}

/* ---- made, and waited for */

static void time_out(struct sumac_strategy *strategy, uint32_t timeout_ms)
{
    struct calls *calls = &strategy->calls;
    struct sumac_error error;
    char missing[160];

    assert(calls->made_count < strategy->replicas);
    if (!has_failed(strategy, &error))
        (void)fail(
            &error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "%s, call %" PRIu64 " of the run, has waited %s for %s",
            call_name(first_made(strategy)->kind), calls->number, text_time_ms(timeout_ms).text,
            list_missing(strategy, false, missing, sizeof missing));
    break_off(strategy, &error);
}

static struct timespec after_ms(uint32_t ms)
{
    const uint64_t at_ns = now_ns() + UINT64_C(1000000) * ms;

    return (struct timespec){
        .tv_sec = (time_t)(at_ns / 1000000000u), .tv_nsec = (long)(at_ns % 1000000000u)};
}

/* Has something changed? Who waits for it may sleep if not. Unlocks meanwhile. */
static bool look(struct calls *calls)
{
    const uint64_t seen = atomic_load_explicit(&calls->changes, memory_order_relaxed);
    const uint64_t until_ns = now_ns() + LOOK_NS_MAX;

    if (calls->sleeps > 0) {
        calls->sleeps--;
        return false;
    }
    pthread_mutex_unlock(&calls->mutex);
    while (atomic_load_explicit(&calls->changes, memory_order_acquire) == seen &&
           now_ns() < until_ns)
        (void)sched_yield();
    pthread_mutex_lock(&calls->mutex);
    return atomic_load_explicit(&calls->changes, memory_order_relaxed) != seen;
}

/* A replica that had looked hears of what is over. */
static void note_lateness(struct calls *calls)
{
    if (now_ns() > calls->over_ns + LATE_NS_MAX) {
        calls->sleeps = calls->sleeps_next;
        calls->sleeps_next = 2 * calls->sleeps < SLEEPS_MAX ? 2 * calls->sleeps : SLEEPS_MAX;
    } else if (calls->sleeps_next > SLEEPS_MIN) {
        calls->sleeps_next--;
    }
}

static void help(struct calls *calls)
{
    struct shares *shares = calls->shares;

    calls->helping++;
    pthread_mutex_unlock(&calls->mutex);
    shares_take(shares);
    pthread_mutex_lock(&calls->mutex);
    calls->shares = NULL; /* nothing is left of it */
    if (--calls->helping > 0)
        return;
    note_change(calls);
    pthread_cond_signal(&calls->helped);
}

void calls_share(struct sumac_strategy *strategy, struct shares *shares)
{
    struct calls *calls = &strategy->calls;

    pthread_mutex_lock(&calls->mutex);
    assert(calls->made_count == strategy->replicas);
    assert(calls->shares == NULL);
    calls->shares = shares;
    note_change(calls);
    for (uint32_t i = 0; i < strategy->helpers; i++)
        pthread_cond_signal(&calls->changed);
    pthread_mutex_unlock(&calls->mutex);
    shares_take(shares);
    pthread_mutex_lock(&calls->mutex);
    calls->shares = NULL;
    while (calls->helping > 0)
        if (!look(calls) && calls->helping > 0)
            pthread_cond_wait(&calls->helped, &calls->mutex);
    pthread_mutex_unlock(&calls->mutex);
}

static bool is_over(const struct calls *calls, uint64_t number)
{
    return calls->over == number || calls->broken.status != SUMAC_OK;
}

static void wait_for_others(struct sumac_strategy *strategy, uint64_t number, uint32_t timeout_ms)
{
    struct calls *calls = &strategy->calls;
    const struct timespec until = after_ms(timeout_ms);
    bool looked = false;

    assert(timeout_ms > 0);
    while (!is_over(calls, number)) {
        assert(calls->number == number);
        if (calls->shares != NULL && calls->helping < strategy->helpers)
            help(calls);
        else if ((looked = look(calls)))
            continue;
        else if (calls->made_count == strategy->replicas) /* it is being computed */
            pthread_cond_wait(&calls->changed, &calls->mutex);
        else if (
            pthread_cond_timedwait(&calls->changed, &calls->mutex, &until) == ETIMEDOUT &&
            !is_over(calls, number) && calls->made_count < strategy->replicas)
            time_out(strategy, timeout_ms);
    }
    if (looked)
        note_lateness(calls);
}

/* What is there is that of call `number`, or it was broken off: for who has not taken it nobody has
 * computed another. */
static enum sumac_status
take(struct calls *calls, uint64_t number, struct sumac_value **result, struct sumac_error *error)
{
    const struct sumac_error *why = calls->over == number ? &calls->error : &calls->broken;

    if (why->status != SUMAC_OK)
        return fail_again(error, why);
    *result = calls->result; /* its own reference */
    return SUMAC_OK;
}

/* The last one to come computes. True: it is over, of which those that sleep are to be told. */
static bool make(struct sumac_strategy *strategy, uint32_t replica, const struct call *call)
{
    struct calls *calls = &strategy->calls;
    struct sumac_value *result = NULL;
    struct sumac_error error = {.status = SUMAC_OK};

    assert(calls->made[replica] == NULL);
    if (calls->made_count++ == 0)
        calls->is_merge = call->kind == CALL_MERGE;
    calls->made[replica] = call;
    if (calls->made_count < strategy->replicas) {
        look_for_returned(strategy);
        return false;
    }
    pthread_mutex_unlock(&calls->mutex); /* the others wait, and nobody else comes */
    (void)compute(strategy, &result, &error);
    for (uint32_t i = 1; error.status == SUMAC_OK && i < strategy->replicas; i++)
        (void)sumac_value_ref(result);
    if (error.status != SUMAC_OK) {
        sumac_value_unref(result);
        result = NULL;
    }
    pthread_mutex_lock(&calls->mutex);
    if (calls->ends_run && error.status != SUMAC_OK && calls->broken.status == SUMAC_OK)
        calls->broken = error;
    calls->over = calls->number;
    calls->result = result;
    calls->error = error;
    end(strategy);
    return true;
}

enum sumac_status call_with_others(
    struct sumac_replica *replica, const struct call *call, struct sumac_value **result,
    struct sumac_error *error)
{
    struct sumac_strategy *strategy = replica->strategy;
    struct calls *calls = &strategy->calls;
    const uint32_t timeout_ms =
        call->options.timeout_ms != 0 ? call->options.timeout_ms : strategy->options.timeout_ms;
    enum sumac_status status;
    bool over = false;

    assert(call->value != NULL || call->failed != NULL);
    assert(replica->index < strategy->replicas);
    if (strategy->on_device != NULL)
        on_device_come(replica);
    pthread_mutex_lock(&calls->mutex);
    if (calls->broken.status != SUMAC_OK) {
        status = fail_again(error, &calls->broken);
    } else {
        const uint64_t number = calls->number;
        over = make(strategy, replica->index, call);
        wait_for_others(strategy, number, timeout_ms);
        status = take(calls, number, result, error);
    }
    pthread_mutex_unlock(&calls->mutex);
    if (over) /* who wakes finds the mutex free */
        pthread_cond_broadcast(&calls->changed);
    return status;
}

enum sumac_status call_for_own(
    struct sumac_replica *replica, const struct call *call, struct sumac_value **result,
    struct sumac_error *error)
{
    struct sumac_value *all = NULL;

    enum sumac_status status = call_with_others(replica, call, &all, error);
    if (status == SUMAC_OK && result != NULL)
        status = sumac_value_select(all, replica->id, result, error);
    sumac_value_unref(all);
    return status;
}

enum sumac_status call_fail_with_others(
    struct sumac_replica *replica, const struct call *call, const struct sumac_error *failed,
    struct sumac_error *error)
{
    struct call own = *call;
    struct sumac_value *result = NULL;

    assert(failed->status != SUMAC_OK);
    own.failed = failed;
    own.value = NULL;
    own.options.timeout_ms = 0;
    const enum sumac_status status = call_with_others(replica, &own, &result, error);
    assert(status != SUMAC_OK);
    return status;
}

enum sumac_status call_refuse(
    struct sumac_replica *replica, enum call_kind kind, const struct sumac_error *failed,
    struct sumac_error *error)
{
    const struct sumac_strategy *strategy = replica->strategy;
    const struct call call = {.kind = kind};

    assert(context_is_of(replica));
    return (kind == CALL_MERGE ? strategy->replicas : strategy->in_sync) > 1
               ? call_fail_with_others(replica, &call, failed, error)
               : fail_again(error, failed);
}

enum sumac_status call_refuse_across(
    struct sumac_strategy *strategy, enum call_kind kind, const struct sumac_error *failed,
    struct sumac_error *error)
{
    const struct sumac_value *const none[SUMAC_REPLICAS_MAX] = {NULL}; /* who has failed has none */
    const struct call call = {.kind = kind};
    struct sumac_value *all[SUMAC_REPLICAS_MAX];
    struct sumac_error why = *failed;

    assert(failed->status != SUMAC_OK);
    if (strategy->peers != NULL) {
        why.status = call_hear_all(strategy, &call, none, failed, all, &why);
        call_forget_all(strategy, all);
    }
    assert(why.status != SUMAC_OK);
    return fail_again(error, &why);
}
