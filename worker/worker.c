/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c -- the replica step loop.
 *
 * A step k, with one push of its own that it may run ahead of:
 *
 *     devices   | replica 0: values(k) -> gradients(k)   |
 *               | replica 1: values(k) -> gradients(k)   |
 *     caller    | pull k+1: waits for push k-1 at the ps | reduce | push k |
 *
 * The caller's thread waits for the pull while the devices compute, and so drives the network
 * meanwhile. Values are double-buffered; gradients have a place for each push that may be under
 * way, and one more to compute into. The network reads and writes the host's memory; each device
 * works on mirrors of it, which are that memory itself where the device can (tensors.h).
 */
#include "worker_state.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "elements.h"
#include "error.h"
#include "log.h"
#include "step_trace.h"

static uint32_t place_count(const struct sumac_worker *worker)
{
    assert(worker->options.pushes_in_flight > 0);
    return worker->options.pushes_in_flight + 1;
}

static bool is_synchronous(const struct sumac_worker *worker)
{
    return worker->options.synchronous == SUMAC_SYNCHRONOUS_YES;
}

/* ---- making one */

/* Is a contribution of float32 to that variable, which is of a half type? */
static bool is_widened(const struct sumac_worker *worker, uint32_t variable)
{
    assert(variable < worker->options.pushed_count);
    return is_synchronous(worker) &&
           sumac_dtype_kind(sumac_client_variable_dtype(worker->options.variables[variable])) ==
               SUMAC_KIND_HALF;
}

static enum sumac_status allocate(struct sumac_worker *worker, struct sumac_error *error)
{
    struct sumac_worker_options *options = &worker->options;

    assert(options->replicas > 0);
    struct sumac_client_variable **variables = calloc(options->variable_count, sizeof(void *));
    if (variables != NULL)
        memcpy(variables, options->variables, options->variable_count * sizeof(void *));
    options->variables = variables;
    worker->runners = calloc(options->replicas, sizeof *worker->runners);
    worker->places = calloc(place_count(worker), sizeof *worker->places);
    worker->fetches = calloc(options->variable_count, sizeof *worker->fetches);
    worker->deltas = calloc(options->pushed_count, sizeof *worker->deltas);
    const size_t sources = (size_t)options->pushed_count * options->replicas;
    worker->source_data = calloc(sources, sizeof *worker->source_data);
    worker->source_elements = calloc(sources, sizeof *worker->source_elements);
    worker->weights = calloc(options->replicas, sizeof *worker->weights);
    worker->halves = calloc(options->pushed_count, sizeof(void *));
    if (variables == NULL || worker->runners == NULL || worker->places == NULL ||
        worker->fetches == NULL || worker->deltas == NULL || worker->source_data == NULL ||
        worker->source_elements == NULL || worker->weights == NULL || worker->halves == NULL)
        return fail_for_memory(error, "no memory for a worker");
    for (uint32_t v = 0; v < options->pushed_count; v++)
        if (is_widened(worker, v))
            worker->halves[worker->half_count++] = options->variables[v];
    return SUMAC_OK;
}

/* The host's tensors, which the network reads and writes, and the devices'. */
static enum sumac_status make_tensors(struct sumac_worker *worker, struct sumac_error *error)
{
    const struct sumac_worker_options *options = &worker->options;
    struct device *const *devices = worker->replicas.devices;
    struct runner *runners = worker->runners;
    enum sumac_status status = SUMAC_OK;

    for (uint32_t i = 0; status == SUMAC_OK && i < 2; i++)
        status = tensors_init(
            &worker->values[i], TENSORS_OF_HOST, devices[0], options->variables,
            options->variable_count, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < place_count(worker); i++) {
        struct tensor_place *place = &worker->places[i];
        status = tensors_init(
            &place->gradients, TENSORS_OF_HOST, devices[0], options->variables,
            options->pushed_count, error);
        if (status == SUMAC_OK && worker->half_count > 0)
            status = tensors_init(
                &place->widened, TENSORS_FLOAT32, NULL, worker->halves, worker->half_count, error);
        if (status == SUMAC_OK)
            status = tensors_mirror(&place->written, devices[0], &place->gradients, error);
    }
    for (uint32_t i = 0; status == SUMAC_OK && i < 2 * options->replicas; i++)
        status = tensors_mirror(
            &runners[i / 2].values[i % 2], devices[i / 2], &worker->values[i % 2], error);
    for (uint32_t i = 1; status == SUMAC_OK && i < options->replicas; i++)
        status = tensors_init(
            &runners[i].gradients, TENSORS_OF_DEVICE, devices[i], options->variables,
            options->pushed_count, error);
    if (status == SUMAC_OK)
        status = transfers_open(
            &worker->replicas, &worker->places[0].gradients, TRANSFERS_PART_BYTES,
            &worker->transfers, error);
    return status;
}

static enum sumac_status open_devices(struct sumac_worker *worker, struct sumac_error *error)
{
    const uint32_t timeout_ms = worker->options.step_timeout_ms;
    const uint32_t replicas = worker->options.replicas;

    assert(worker->devices.count == replicas);
    assert(replicas <= SUMAC_REPLICAS_MAX);
    for (uint32_t i = 0; i < replicas; i++)
        worker->runners[i].worker = worker;
    const enum sumac_status status = replicas_open(&worker->devices, &worker->replicas, error);
    for (uint32_t i = 0; status == SUMAC_OK && i < replicas; i++)
        worker->replicas.queues[i]->wait_ms_max = timeout_ms == UINT32_MAX ? 0 : timeout_ms;
    if (status != SUMAC_OK || replicas == 1)
        return status;
    return device_group_open(
        worker->replicas.queues, replicas, worker->options.pushed_count, &worker->group, error);
}

enum sumac_status worker_create(
    const struct devices *devices, const struct sumac_worker_options *options,
    struct sumac_worker **worker, struct sumac_error *error)
{
    struct sumac_worker_options filled;
    struct devices chosen = *devices;
    enum sumac_status status = worker_options_read(options, &filled, &chosen, error);

    if (status != SUMAC_OK)
        return status;
    struct sumac_worker *made = calloc(1, sizeof *made);
    if (made == NULL)
        return fail_for_memory(error, "no memory for a worker");
    made->options = filled;
    made->devices = chosen;
    made->process = getpid();
    status = allocate(made, error);
    if (status == SUMAC_OK)
        status = open_devices(made, error);
    if (status == SUMAC_OK)
        status = make_tensors(made, error);
    if (status == SUMAC_OK)
        status = step_trace_open(&made->options, &made->transfers, &made->traced, error);
    made->transfers.traced = made->traced;
    if (status != SUMAC_OK) {
        sumac_worker_destroy(made);
        return status;
    }
    if (is_synchronous(made))
        client_log(made->options.client, "this worker makes synchronous steps");
    *worker = made;
    return SUMAC_OK;
}

enum sumac_status sumac_worker_create(
    const struct sumac_worker_options *options, struct sumac_worker **worker,
    struct sumac_error *error)
{
    const struct devices as_options_say = {.kind = NULL};

    if (options == NULL || worker == NULL)
        return fail_for_null(error, "sumac_worker_create", options == NULL ? "options" : "worker");
    return worker_create(&as_options_say, options, worker, error);
}

/* ---- pushes and pulls */

/* True: the synchronous step was taken without this worker, which goes on with the next one. */
static bool is_late(struct sumac_worker *worker, const struct sumac_error *error)
{
    if (error->reason != SUMAC_REASON_STEP_LATE)
        return false;
    worker->late++;
    return true;
}

/* For a trace: which pushes the worker has heard the end of, before it waits for it. */
static void note_ends(struct sumac_worker *worker)
{
    for (uint64_t i = worker->applied; worker->traced != NULL && i < worker->pushed; i++) {
        const uint32_t place = (uint32_t)(i % place_count(worker));
        if (sumac_push_done(worker->places[place].push))
            step_trace_pushed(worker->traced, place);
    }
}

/* Wait for the oldest pushes, each for so long, until no more than `left` are under way. A push
 * that failed is over as well. */
static enum sumac_status drain_for(
    struct sumac_worker *worker, uint64_t left, uint32_t timeout_ms, struct sumac_error *error)
{
    assert(worker->applied <= worker->pushed);
    while (worker->pushed - worker->applied > left) {
        struct tensor_place *place = &worker->places[worker->applied % place_count(worker)];
        assert(place->push != NULL);
        struct sumac_error why = {0};
        const uint64_t begin_ns = step_trace_begin(worker->traced);
        const enum sumac_status status = sumac_push_wait(place->push, timeout_ms, &why);
        step_trace_done(
            worker->traced, STEP_TRACE_CALLER, TRACE_WAIT_FOR_PUSH, begin_ns, worker->applied);
        worker->waited_out = status == SUMAC_DEADLINE_EXCEEDED;
        if (!worker->waited_out) { /* else it is still under way */
            step_trace_pushed(worker->traced, (uint32_t)(place - worker->places));
            place->push = NULL;
            worker->applied++;
        }
        if (status == SUMAC_OK || is_late(worker, &why))
            continue;
        if (error != NULL)
            *error = why;
        return status;
    }
    return SUMAC_OK;
}

static enum sumac_status
drain(struct sumac_worker *worker, uint64_t left, struct sumac_error *error)
{
    return drain_for(worker, left, worker->options.timeout_ms, error);
}

/* Is the next step's pull made while this one computes? */
static bool pulls_early(const struct sumac_worker *worker)
{
    return !worker->options.sequential &&
           !(worker->options.bounded && worker->options.lag_max == 0);
}

static void fill_fetches(struct sumac_worker *worker, const struct tensors *into)
{
    for (uint32_t i = 0; i < into->count; i++)
        worker->fetches[i] = (struct sumac_fetch){
            .variable = worker->options.variables[i],
            .into = into->items[i],
        };
}

/* Begin the pull of the next step's values, beside a step that has begun (`beside`), or after the
 * last. The next step may run ahead of pushes_in_flight own
 * pushes, this step's included: of one, the ps itself lets the pull wait for the push before; of
 * more, the push that must be seen is waited for here, which seldom takes any time. */
static enum sumac_status
begin_pull(struct sumac_worker *worker, bool beside, struct sumac_error *error)
{
    const uint32_t ahead = worker->options.pushes_in_flight;
    const uint64_t lag_max = worker->options.lag_max;

    assert(!beside || pulls_early(worker));
    assert(worker->pushed - worker->applied <= ahead);
    if (worker->pull != NULL || worker->pulled)
        return SUMAC_OK;
    if (ahead > 1) {
        const enum sumac_status status = drain(worker, ahead - 1, error);
        if (status != SUMAC_OK)
            return status;
    }
    const struct tensors *next = &worker->values[1 - worker->current];
    fill_fetches(worker, next);
    const struct sumac_pull_options options = {
        .skip_own_pushes = ahead > 1,
        .bounded = worker->options.bounded,
        .lag_max = beside && lag_max > 0 ? lag_max - 1 : lag_max, /* the step has not finished */
        .timeout_ms = worker->options.timeout_ms,
    };
    step_trace_pull(worker->traced, worker->steps + (beside ? 1 : 0), next);
    return sumac_client_pull(
        worker->options.client, worker->fetches, next->count, &options, &worker->pull, error);
}

static enum sumac_status end_pull(struct sumac_worker *worker, struct sumac_error *error)
{
    if (worker->pull == NULL)
        return SUMAC_OK;
    assert(!worker->pulled); /* its values are not written over */
    const uint64_t begin_ns = step_trace_begin(worker->traced);
    const enum sumac_status status =
        sumac_pull_wait(worker->pull, worker->options.timeout_ms, error);
    step_trace_done(
        worker->traced, STEP_TRACE_CALLER, TRACE_WAIT_FOR_PULL, begin_ns, worker->steps);
    if (status == SUMAC_DEADLINE_EXCEEDED)
        return status;
    step_trace_pulled(worker->traced);
    note_ends(worker);
    worker->pull = NULL;
    worker->pulled = status == SUMAC_OK;
    return status;
}

/* ---- a step */

static enum sumac_status run_replica(void *context)
{
    struct runner *runner = context;
    struct step_trace *traced = runner->worker->traced;
    const uint32_t id = runner->replica.id;
    const uint64_t step = runner->replica.step, begin_ns = step_trace_begin(traced);

    const enum sumac_status status = runner->worker->options.step(
        &runner->replica, runner->worker->options.context, &runner->error);
    step_trace_done(traced, STEP_TRACE_REPLICA(id), TRACE_COMPUTE, begin_ns, step);
    return status;
}

/* Values that the network has brought, to where the devices read them. */
static void send_values(struct sumac_worker *worker, uint32_t which)
{
    assert(!worker->transfers.sent);
    for (uint32_t i = 0; i < worker->options.replicas; i++)
        transfers_send(
            &worker->transfers, i, &worker->runners[i].values[which], &worker->values[which]);
}

static void start_replicas(struct sumac_worker *worker, const struct tensor_place *place)
{
    assert(place->push == NULL); /* nobody reads the gradients that are written now */
    if (!worker->transfers.sent)
        send_values(worker, worker->current);
    for (uint32_t i = 0; i < worker->options.replicas; i++) {
        struct runner *runner = &worker->runners[i];
        runner->replica = (struct sumac_replica){
            .id = i,
            .count = worker->options.replicas,
            .step = worker->steps,
            .device = device_for_step(worker->replicas.queues[i]),
            .values = runner->values[worker->current].items,
            .value_count = worker->options.variable_count,
            .gradients = i == 0 ? place->written.items : runner->gradients.items,
            .gradient_count = worker->options.pushed_count,
            .weight = 1,
        };
        runner->error.text[0] = '\0';
        transfers_await(&worker->transfers, i);
        step_trace_begins(worker->traced, STEP_COMPUTES, i);
        device_issue(worker->replicas.queues[i], run_replica, runner);
        step_trace_ends(worker->traced, STEP_COMPUTES, i, (struct step_part){TRACE_COMPUTE, 0});
    }
}

/* Wait until all replicas' steps have returned; the first one that failed decides. On a GPU what
 * they began may still be under way. */
static enum sumac_status settle_replicas(struct sumac_worker *worker, struct sumac_error *error)
{
    uint32_t failed = 0;
    const uint64_t begin_ns = step_trace_begin(worker->traced);
    const enum sumac_status status = queues_wait(
        worker->replicas.queues, worker->options.replicas, device_settle, DEVICE_NO_LIMIT, &failed);

    step_trace_done(
        worker->traced, STEP_TRACE_CALLER, TRACE_WAIT_FOR_REPLICAS, begin_ns, worker->steps);
    if (status == SUMAC_OK)
        return SUMAC_OK;
    const struct transfers_failure failure = {failed, worker->replicas.queues[failed]};
    return worker_tell_failed(worker, &failure, status, error);
}

/* Collect the replicas' weights and add them up. */
static enum sumac_status
weigh(struct sumac_worker *worker, double *total, struct sumac_error *error)
{
    double sum = 0;

    for (uint32_t i = 0; i < worker->options.replicas; i++) {
        const double weight = worker->runners[i].replica.weight;
        if (!isfinite(weight) || weight < 0)
            return fail_argument(
                error, "replica %u gave its step the weight %g; a weight counts examples", i,
                weight);
        worker->weights[i] = weight;
        sum += weight;
    }
    if (sum == 0 && worker->options.reduce == SUMAC_REDUCE_MEAN && !is_synchronous(worker))
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "step %" PRIu64 " has no mean: the weights of all %u replicas are 0", worker->steps,
            worker->options.replicas);
    assert(sum >= 0);
    *total = sum;
    return SUMAC_OK;
}

/* So many times the mean is the sum; 0 times it, nothing, whatever it would have been. */
static void scale(const struct sumac_tensor *tensor, double weight)
{
    const struct arithmetic *arithmetic = arithmetic_of(tensor->dtype);

    if (weight <= 0)
        memset(sumac_tensor_data(tensor), 0, sumac_tensor_bytes(tensor));
    else if (tensor->dtype == SUMAC_FLOAT32 || tensor->dtype == SUMAC_FLOAT64)
        arithmetic->scale(
            sumac_tensor_data(tensor), weight,
            sumac_tensor_bytes(tensor) / sumac_dtype_bytes(tensor->dtype));
}

/* A contribution is the sum over what it stands for, of half types in float32. */
static void
make_sums(const struct sumac_worker *worker, const struct tensor_place *place, double weight)
{
    const bool scales =
        worker->options.reduce == SUMAC_REDUCE_MEAN && !(weight >= 1 && weight <= 1);
    uint32_t half = 0;

    for (uint32_t i = 0; is_synchronous(worker) && i < worker->options.pushed_count; i++) {
        const struct sumac_tensor *tensor = &place->gradients.items[i];
        if (is_widened(worker, i)) {
            const struct sumac_tensor *wide = &place->widened.items[half++];
            const uint64_t count = sumac_tensor_bytes(wide) / sizeof(float);
            arithmetic_of(tensor->dtype)
                ->widen(sumac_tensor_data(tensor), sumac_tensor_data(wide), (size_t)count);
            tensor = wide;
        }
        if (scales)
            scale(tensor, weight);
    }
    assert(half == worker->half_count);
}

static enum sumac_status push(
    struct sumac_worker *worker, struct tensor_place *place, double weight,
    struct sumac_error *error)
{
    uint32_t half = 0;

    assert(place->push == NULL);
    for (uint32_t i = 0; i < worker->options.pushed_count; i++)
        worker->deltas[i] = (struct sumac_delta){
            .variable = worker->options.variables[i],
            .value =
                is_widened(worker, i) ? place->widened.items[half++] : place->gradients.items[i],
        };
    const struct sumac_push_options options = {
        .weight = weight,
        .zero_weight = is_synchronous(worker) && weight <= 0,
        .finishes_step = true,
        .synchronous = is_synchronous(worker),
        .earlier_pull = pulls_early(worker), /* the next step's has been made meanwhile */
        .scale = worker->options.loss_scale > 0 ? 1 / worker->options.loss_scale : 0,
        .clip_norm = worker->options.clip_norm,
    };
    step_trace_push(
        worker->traced, (uint32_t)(place - worker->places), worker->steps, worker->deltas,
        worker->options.pushed_count);
    const enum sumac_status status = sumac_client_push(
        worker->options.client, worker->deltas, worker->options.pushed_count, &options,
        &place->push, error);
    if (status == SUMAC_OK)
        worker->pushed++;
    assert(worker->pushed - worker->applied <= worker->options.pushes_in_flight);
    return status;
}

/* Values for this step: the pull that the step before began, or, at first and when steps are
 * sequential, one of our own. */
static enum sumac_status take_values(struct sumac_worker *worker, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    if (worker->options.sequential)
        status = drain(worker, 0, error);
    if (status == SUMAC_OK)
        status = begin_pull(worker, false, error);
    if (status == SUMAC_OK)
        status = end_pull(worker, error);
    if (status != SUMAC_OK)
        return status;
    assert(worker->pulled);
    worker->pulled = false;
    worker->current = 1 - worker->current;
    return SUMAC_OK;
}

static enum sumac_status take_step(struct sumac_worker *worker, struct sumac_error *error)
{
    enum sumac_status status;

    if (worker->lost.status != SUMAC_OK)
        return worker_tell_lost(worker, error);
    const uint64_t begin_ns = step_trace_step(worker->traced, worker->steps);
    status = take_values(worker, error);
    if (status != SUMAC_OK) {
        step_trace_done(worker->traced, STEP_TRACE_CALLER, TRACE_STEP, begin_ns, worker->steps);
        step_trace_flush(worker->traced);
        return status;
    }
    struct tensor_place *place = &worker->places[worker->pushed % place_count(worker)];
    assert(place->push == NULL); /* at most pushes_in_flight are under way */
    start_replicas(worker, place);
    if (pulls_early(worker))
        status = begin_pull(worker, true, error);
    if (status == SUMAC_OK)
        status = end_pull(worker, error);
    if (status == SUMAC_OK && worker->pulled)
        send_values(worker, 1 - worker->current);
    /* whatever the network does */
    const enum sumac_status computed = settle_replicas(worker, status == SUMAC_OK ? error : NULL);
    double weight = 0;
    if (status == SUMAC_OK)
        status = computed;
    if (status == SUMAC_OK)
        status = weigh(worker, &weight, error);
    if (status == SUMAC_OK)
        status = worker_reduce(worker, place, weight, error);
    status = worker_finish_devices(worker, status, error);
    if (status == SUMAC_OK)
        status = drain(worker, worker->options.pushes_in_flight - 1, error);
    if (status == SUMAC_OK)
        make_sums(worker, place, weight);
    if (status == SUMAC_OK)
        status = push(worker, place, weight, error);
    step_trace_done(worker->traced, STEP_TRACE_CALLER, TRACE_STEP, begin_ns, worker->steps);
    if (status == SUMAC_OK)
        worker->steps++;
    else
        step_trace_flush(worker->traced);
    worker->has_values = worker->has_values || status == SUMAC_OK;
    assert(worker->pushed == worker->steps); /* a step is one push */
    return status;
}

/* ---- who may call: the process that made the worker, one call at a time */

/* The devices' threads are not in a child, and its client is of no use there. */
static bool is_own(const struct sumac_worker *worker) { return worker->process == getpid(); }

static enum sumac_status enter(
    struct sumac_worker *worker, const char *function,
    enum sumac_status (*call)(struct sumac_worker *, struct sumac_error *),
    struct sumac_error *error)
{
    if (worker == NULL)
        return fail_for_null(error, function, "worker");
    if (!is_own(worker))
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "this worker was made by process %ld, and this is its child %ld: fork first, then open "
            "a client and make a worker in each process",
            (long)worker->process, (long)getpid());
    if (atomic_exchange(&worker->is_taken, true))
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "%s: another call of this worker is under way, in another thread or around this one; "
            "one at a time",
            function);
    const enum sumac_status status = call(worker, error);
    assert(atomic_load(&worker->is_taken));
    atomic_store(&worker->is_taken, false);
    return status;
}

enum sumac_status sumac_worker_step(struct sumac_worker *worker, struct sumac_error *error)
{
    return enter(worker, "sumac_worker_step", take_step, error);
}

static enum sumac_status flush(struct sumac_worker *worker, struct sumac_error *error)
{
    return drain(worker, 0, error);
}

enum sumac_status sumac_worker_flush(struct sumac_worker *worker, struct sumac_error *error)
{
    return enter(worker, "sumac_worker_flush", flush, error);
}

/* Into the values of the last step, which nothing reads between steps: what a step has pulled ahead
 * stays for the next one. */
static enum sumac_status pull_now(struct sumac_worker *worker, struct sumac_error *error)
{
    const struct tensors *into = &worker->values[worker->current];
    const struct sumac_pull_options options = {.timeout_ms = worker->options.timeout_ms};

    if (worker->lost.status != SUMAC_OK)
        return worker_tell_lost(worker, error);
    enum sumac_status status = drain(worker, 0, error);
    if (status == SUMAC_OK)
        status = end_pull(worker, error);
    if (status != SUMAC_OK)
        return status;
    fill_fetches(worker, into);
    assert(worker->pull == NULL);
    assert(worker->pushed == worker->applied);
    status = sumac_client_pull(
        worker->options.client, worker->fetches, into->count, &options, NULL, error);
    worker->has_values = worker->has_values || status == SUMAC_OK;
    return status;
}

enum sumac_status sumac_worker_pull(struct sumac_worker *worker, struct sumac_error *error)
{
    return enter(worker, "sumac_worker_pull", pull_now, error);
}

const struct sumac_tensor *sumac_worker_values(const struct sumac_worker *worker)
{
    return worker == NULL || !worker->has_values ? NULL : worker->values[worker->current].items;
}

uint64_t sumac_worker_steps(const struct sumac_worker *worker)
{
    return worker == NULL ? 0 : worker->steps;
}

uint64_t sumac_worker_late(const struct sumac_worker *worker)
{
    return worker == NULL ? 0 : worker->late;
}

/* ---- the end */

/* Wait for what the network still reads or writes. What does not end within its time keeps its
 * memory: giving it back would let the network write into somebody else's. A wait that the program
 * has heard the end of does not begin again, nor does a wait for the pushes behind that push. */
static void settle(struct sumac_worker *worker)
{
    while (worker->pushed != worker->applied)
        if (drain_for(worker, 0, worker->waited_out ? 1 : worker->options.timeout_ms, NULL) ==
            SUMAC_DEADLINE_EXCEEDED) {
            struct tensor_place *place = &worker->places[worker->applied % place_count(worker)];
            (void)sumac_buffer_ref(place->gradients.buffer);
            if (worker->half_count > 0)
                (void)sumac_buffer_ref(place->widened.buffer);
            worker->applied++;
        }
    if (end_pull(worker, NULL) == SUMAC_DEADLINE_EXCEEDED)
        (void)sumac_buffer_ref(worker->values[1 - worker->current].buffer);
}

/* No queue has work with them any more. */
static void free_tensors(struct sumac_worker *worker)
{
    for (uint32_t i = 0; worker->runners != NULL && i < worker->options.replicas; i++) {
        tensors_deinit(&worker->runners[i].gradients);
        tensors_deinit(&worker->runners[i].values[0]);
        tensors_deinit(&worker->runners[i].values[1]);
    }
    for (uint32_t i = 0; worker->places != NULL && i < place_count(worker); i++) {
        tensors_deinit(&worker->places[i].written);
        tensors_deinit(&worker->places[i].widened);
        tensors_deinit(&worker->places[i].gradients);
    }
    tensors_deinit(&worker->values[0]);
    tensors_deinit(&worker->values[1]);
}

void sumac_worker_destroy(struct sumac_worker *worker)
{
    if (worker == NULL || !is_own(worker)) /* the threads are the parent's */
        return;
    if (atomic_load(&worker->is_taken)) {
        client_log(
            worker->options.client,
            "sumac_worker_destroy: called within a step of the worker, or beside one: nothing was "
            "done; destroy it when the step has returned");
        return;
    }
    settle(worker);
    device_group_close(worker->group);
    if (replicas_are_given_up(&worker->replicas)) /* its threads may still use all of it */
        return;
    transfers_close(&worker->transfers);
    replicas_close_queues(&worker->replicas);
    step_trace_close(worker->traced);
    free_tensors(worker);
    replicas_close(&worker->replicas);
    free(worker->weights);
    free(worker->halves);
    free(worker->source_elements);
    free(worker->source_data);
    free(worker->deltas);
    free(worker->fetches);
    free(worker->places);
    free(worker->runners);
    free((void *)(uintptr_t)worker->options.variables);
    free(worker);
}
