/* SPDX-License-Identifier: Apache-2.0 */
/* worker_devices.c -- the end of a step on its devices: gradients are added up and brought to the
 * host, and each wait for that has a deadline.
 *
 * A reduction that is over its time is ended. A device whose work does not end even then is given
 * up: the worker's memory is left to it, and only the end of the process frees it.
 */
#include "worker_state.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "error.h"
#include "log.h"
#include "step_trace.h"

enum sumac_status worker_tell_failed(
    struct sumac_worker *worker, const struct transfers_failure *failure, enum sumac_status status,
    struct sumac_error *error)
{
    char name[32];
    const uint32_t failed = failure->replica;
    const char *said = worker->runners[failed].error.text;
    const char *why = said[0] == '\0' ? device_why(failure->queue) : said;
    const char *remedy = replicas_remedy(&worker->replicas, "");

    assert(status != SUMAC_OK);
    return fail(
        error, status, SUMAC_REASON_UNSPECIFIED,
        "replica %u (device %s) ended step %" PRIu64 " with %s%s%s%s%s", failed,
        device_name(worker->replicas.devices[failed], name, sizeof name), worker->steps,
        sumac_status_name(status), why[0] == '\0' ? "" : ": ", why, remedy[0] == '\0' ? "" : "; ",
        remedy);
}

/* Of variable v the replicas' gradients become one, where replica 0's are: that is what is pushed.
 */
static enum sumac_status add_reduction(
    struct sumac_worker *worker, const struct tensor_place *place, uint32_t v,
    struct sumac_error *error)
{
    const uint32_t replicas = worker->options.replicas;
    void **const data = &worker->source_data[(size_t)v * replicas];
    uint64_t *const elements = &worker->source_elements[(size_t)v * replicas];
    const struct sumac_tensor *tensor = &place->written.items[v];
    struct device_event *written = transfers_written(&worker->transfers, v);
    const uint64_t bytes = sumac_tensor_bytes(tensor);

    assert(v < worker->options.pushed_count);
    for (uint32_t i = 0; i < replicas; i++) {
        if (i > 0)
            tensor = &worker->runners[i].gradients.items[v];
        data[i] = sumac_tensor_data(tensor);
        elements[i] = bytes / sumac_dtype_bytes(tensor->dtype);
    }
    const struct device_group_values values = {
        .dtype = tensor->dtype,
        .from = (const void *const *)data,
        .to = data,
        .elements = elements,
        .weights = worker->weights,
    };
    const enum sumac_status status =
        device_group_add(worker->group, GROUP_REDUCE, worker->options.reduce, 0, &values, error);
    if (status == SUMAC_OK && written != NULL)
        device_group_record(worker->group, written);
    return status;
}

/* The group has ended for good. */
enum sumac_status worker_tell_lost(const struct sumac_worker *worker, struct sumac_error *error)
{
    const struct sumac_error *lost = &worker->lost;

    assert(lost->status != SUMAC_OK);
    return fail(
        error, lost->status, lost->reason, "%.400s; the worker takes no more steps: %s", lost->text,
        replicas_remedy(&worker->replicas, "make another worker"));
}

/* The devices' work does not end, and the worker's memory is left to it. */
static void give_up(struct sumac_worker *worker)
{
    assert(worker->lost.status != SUMAC_OK);
    replicas_give_up(&worker->replicas);
    client_log(worker->options.client, "%s; the worker gives its devices up", worker->lost.text);
    if (worker->options.abort_when_stuck)
        (void)raise(SIGABRT);
}

/* The sentence is in the log before anything is done that may never end. */
static enum sumac_status await_reduction(struct sumac_worker *worker, struct sumac_error *why)
{
    const bool ends = worker->replicas.devices[0]->ops->place == SUMAC_PLACE_HOST;
    const uint32_t timeout_ms = worker->options.step_timeout_ms;
    const enum sumac_status status = device_group_wait(worker->group, timeout_ms, why);

    if (status != SUMAC_DEADLINE_EXCEEDED) {
        if (status != SUMAC_OK && worker->group->has_ended)
            worker->lost = *why;
        return status;
    }
    worker->lost = *why;
    client_log(worker->options.client, "%s", why->text);
    device_group_abort(worker->group);
    if (device_group_wait(worker->group, ends ? DEVICE_GROUP_NO_LIMIT : timeout_ms, NULL) ==
        SUMAC_DEADLINE_EXCEEDED)
        give_up(worker);
    return status;
}

/* All replicas have written their gradients, or have begun to: the group has nobody to wait for but
 * the devices. One that takes too long is not waited for by the others, either. */
enum sumac_status worker_reduce(
    struct sumac_worker *worker, const struct tensor_place *place, double weight,
    struct sumac_error *error)
{
    const bool has_mean = weight > 0 || worker->options.reduce == SUMAC_REDUCE_SUM;
    const uint32_t replicas = worker->options.replicas;
    enum sumac_status status = SUMAC_OK;
    struct sumac_error why;

    if (worker->group == NULL || !has_mean) {
        transfers_record_written(&worker->transfers);
        transfers_fetch(&worker->transfers, &place->gradients, &place->written);
        return SUMAC_OK;
    }
    const uint64_t begin_ns = step_trace_begin(worker->traced);
    for (uint32_t v = 0; status == SUMAC_OK && v < worker->options.pushed_count; v++)
        status = add_reduction(worker, place, v, error);
    assert(status == SUMAC_OK); /* what could be wrong was looked at when the worker was made */
    for (uint32_t i = 0; i < replicas; i++)
        step_trace_begins(worker->traced, STEP_COMPUTES, i);
    device_group_start(worker->group);
    for (uint32_t i = 0; i < replicas; i++)
        step_trace_ends(worker->traced, STEP_COMPUTES, i, (struct step_part){TRACE_REDUCE, 0});
    transfers_fetch(&worker->transfers, &place->gradients, &place->written);
    status = await_reduction(worker, &why);
    for (uint32_t i = 0; i < replicas; i++)
        step_trace_done(
            worker->traced, STEP_TRACE_REPLICA(i), TRACE_REDUCE, begin_ns, worker->steps);
    step_trace_done(
        worker->traced, STEP_TRACE_CALLER, TRACE_WAIT_FOR_REDUCTION, begin_ns, worker->steps);
    if (status == SUMAC_OK || worker->lost.status != SUMAC_OK)
        return status == SUMAC_OK ? SUMAC_OK : worker_tell_lost(worker, error);
    return fail(error, why.status, why.reason, "%s", why.text); /* nothing of it has begun */
}

/* What a device is late with, in the second half of its time: the log has it, and then the error.
 */
static enum sumac_status
tell_late(struct sumac_worker *worker, uint32_t replica, struct sumac_error *error)
{
    char name[32];

    return fail(
        error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
        "step %" PRIu64 " waits for what replica %u (device %s) has begun for more than %u ms",
        worker->steps, replica, device_name(worker->replicas.devices[replica], name, sizeof name),
        worker->options.step_timeout_ms);
}

static enum sumac_status
join_devices(struct sumac_worker *worker, struct transfers_failure *failure)
{
    const uint32_t timeout_ms = worker->options.step_timeout_ms;
    struct sumac_error late;
    enum sumac_status status =
        transfers_join(&worker->transfers, device_until(timeout_ms), failure);

    if (status != SUMAC_DEADLINE_EXCEEDED)
        return status;
    (void)tell_late(worker, failure->replica, &late);
    client_log(worker->options.client, "%s", late.text);
    status = transfers_join(&worker->transfers, device_until(timeout_ms), failure);
    if (status != SUMAC_DEADLINE_EXCEEDED)
        return status;
    if (worker->lost.status == SUMAC_OK)
        worker->lost = late;
    give_up(worker);
    return status;
}

/* A GPU that has failed makes NCCL say an error of its own, and of another replica perhaps. */
static void add_cause(struct sumac_worker *worker, const struct transfers_failure *failure)
{
    const struct sumac_error was = worker->lost;
    const char *why = device_why(failure->queue);
    char name[32];

    if (was.status == SUMAC_OK || why[0] == '\0' || strstr(was.text, why) != NULL)
        return;
    (void)fail(
        &worker->lost, was.status, was.reason, "%.280s; replica %u (%s) has failed: %s", was.text,
        failure->replica,
        device_name(worker->replicas.devices[failure->replica], name, sizeof name), why);
}

/* Nothing of the step is under way on any device then, and its gradients are where the push reads
 * them. */
enum sumac_status worker_finish_devices(
    struct sumac_worker *worker, enum sumac_status reduced, struct sumac_error *error)
{
    struct transfers_failure failure;
    const uint64_t begin_ns = step_trace_begin(worker->traced);
    enum sumac_status status = reduced;

    if (!replicas_are_given_up(&worker->replicas))
        status = join_devices(worker, &failure);
    if (replicas_are_given_up(&worker->replicas)) /* the trace's parts are not written any more */
        return worker_tell_lost(worker, error);
    step_trace_write_parts(worker->traced, begin_ns);
    if (status == SUMAC_OK)
        return reduced;
    assert(failure.replica < worker->options.replicas);
    if (reduced == SUMAC_OK)
        return worker_tell_failed(worker, &failure, status, error);
    add_cause(worker, &failure);
    return worker->lost.status == SUMAC_OK ? reduced : worker_tell_lost(worker, error);
}
