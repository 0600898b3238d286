/* SPDX-License-Identifier: Apache-2.0 */
/* pull.c -- variables read into the caller's memory; on each ps they are of one moment. */
#include "transfer.h"

#include "error.h"

_Static_assert(offsetof(struct sumac_pull, transfer) == 0, "a pull is its transfer");

static enum sumac_status add_fetches(
    struct transfer *transfer, const struct sumac_fetch *fetches, size_t count,
    struct sumac_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct selection selection = {
            .index = i,
            .variable = fetches[i].variable,
            .tensor = &fetches[i].into,
            .has_rows = fetches[i].has_rows,
            .rows = fetches[i].rows,
            .indices = fetches[i].indices,
            .pulls = true,
            .slot = fetches[i].slot,
            .verb = "pull"};
        const enum sumac_status status = selection_add(transfer, &selection, error);
        if (status != SUMAC_OK)
            return status;
    }
    return SUMAC_OK;
}

static enum sumac_status check_lag(
    const struct sumac_client *client, const struct sumac_pull_options *options,
    struct sumac_error *error)
{
    if (options->lag_max > 0 && !options->bounded)
        return fail_argument(
            error, "pull with lag_max %" PRIu64 ", which counts only with `bounded`",
            options->lag_max);
    if (options->bounded && client->reader)
        return fail_argument(
            error,
            "pull with bounded lag of a reader, which has no steps: join, or pull without it");
    return SUMAC_OK;
}

static enum sumac_status submit(
    struct sumac_client *client, struct transfer *transfer,
    const struct sumac_pull_options *options, struct sumac_error *error)
{
    const struct session_pull pull = {
        .token = (uint64_t)(uintptr_t)transfer,
        .pieces = transfer->pieces,
        .piece_count = transfer->piece_count,
        .after_own_pushes = !options->skip_own_pushes,
        .bounded = options->bounded,
        .lag_max = options->lag_max,
        .at_step = options->at_step,
        .timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : client->timeout_ms};

    assert(transfer->client == client);
    assert(!transfer->over);
    assert(pull.timeout_ms > 0); /* waiting for it has an end */
    transfer->ends_us = client_now_us() + (uint64_t)pull.timeout_ms * 1000 + END_US;
    struct session_event event = {.kind = SESSION_EVENT_PULL, .pull = &pull};
    client_step(client, &event);
    if (!transfer->over || transfer->error.status == SUMAC_OK)
        return SUMAC_OK;
    if (error != NULL)
        *error = transfer->error;
    return transfer->error.status;
}

static enum sumac_status wait_until_over(struct sumac_pull *pull, struct sumac_error *error)
{
    struct sumac_error why;
    enum sumac_status status;

    do
        status = sumac_pull_wait(pull, 0, &why);
    while (status == SUMAC_DEADLINE_EXCEEDED);
    if (status != SUMAC_OK && error != NULL)
        *error = why;
    return status;
}

enum sumac_status sumac_client_pull(
    struct sumac_client *client, const struct sumac_fetch *fetches, size_t count,
    const struct sumac_pull_options *options, struct sumac_pull **pull, struct sumac_error *error)
{
    static const struct sumac_pull_options ordinary = {.timeout_ms = 0};
    const char *const null = client == NULL                 ? "client"
                             : fetches == NULL && count > 0 ? "fetches"
                                                            : NULL;

    if (null != NULL)
        return fail_for_null(error, "sumac_client_pull", null);
    if (count > SUMAC_TRANSFER_VARIABLES_MAX)
        return fail_argument(
            error, "pull of %zu variables at once, and %d are the most", count,
            SUMAC_TRANSFER_VARIABLES_MAX);
    if (client_check_process(client, error) != SUMAC_OK)
        return SUMAC_FAILED_PRECONDITION;
    if (options == NULL)
        options = &ordinary;
    if (check_lag(client, options, error) != SUMAC_OK)
        return SUMAC_INVALID_ARGUMENT;
    client_lock(client);
    struct transfer *transfer = transfer_take(client);
    enum sumac_status status = transfer == NULL ? fail_for_memory(error, "no memory for a pull")
                                                : add_fetches(transfer, fetches, count, error);
    if (status == SUMAC_OK)
        status = submit(client, transfer, options, error);
    if (status != SUMAC_OK && transfer != NULL)
        transfer_drop(transfer);
    client_unlock(client);
    if (status != SUMAC_OK)
        return status;
    if (pull == NULL)
        return wait_until_over((struct sumac_pull *)(void *)transfer, error);
    *pull = (struct sumac_pull *)(void *)transfer;
    return SUMAC_OK;
}

enum sumac_status
sumac_pull_wait(struct sumac_pull *pull, uint32_t timeout_ms, struct sumac_error *error)
{
    if (pull == NULL)
        return fail_for_null(error, "sumac_pull_wait", "pull");
    return transfer_wait(&pull->transfer, "pull", timeout_ms, error);
}

bool sumac_pull_done(struct sumac_pull *pull)
{
    return pull == NULL || transfer_poll(&pull->transfer);
}

void sumac_pull_cancel(struct sumac_pull *pull)
{
    if (pull != NULL)
        transfer_cancel(&pull->transfer, SESSION_EVENT_CANCEL_PULL);
}
