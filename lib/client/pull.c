/* pull.c -- variables read into the caller's memory; on each ps they are of one moment. */
#include "client_state.h"

#include "error.h"

_Static_assert(offsetof(struct sumac_pull, transfer) == 0, "a pull is its transfer");

static enum sumac_status add_fetches(
    struct transfer *transfer, const struct sumac_fetch *fetches, size_t count,
    struct sumac_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct selection selection = {
            .variable = fetches[i].variable,
            .tensor = &fetches[i].into,
            .has_rows = fetches[i].has_rows,
            .rows = fetches[i].rows,
            .verb = "pull"};
        const enum sumac_status status = selection_add(transfer, &selection, error);
        if (status != SUMAC_OK)
            return status;
    }
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
        .after_own_pushes = !options->without_own_pushes,
        .timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : client->timeout_ms};
    struct session_event event = {.kind = SESSION_EVENT_PULL, .pull = &pull};
    client_step(client, &event);
    if (!transfer->over || transfer->error.status == SUMAC_OK)
        return SUMAC_OK;
    if (error != NULL)
        *error = transfer->error;
    return transfer->error.status;
}

enum sumac_status sumac_client_pull(
    struct sumac_client *client, const struct sumac_fetch *fetches, size_t count,
    const struct sumac_pull_options *options, struct sumac_pull **pull, struct sumac_error *error)
{
    static const struct sumac_pull_options ordinary = {.timeout_ms = 0};
    if (client_check_process(client, error) != SUMAC_OK)
        return SUMAC_FAILED_PRECONDITION;
    pthread_mutex_lock(&client->lock);
    struct transfer *transfer = transfer_take(client);
    enum sumac_status status = transfer == NULL
                                   ? fail(
                                         error, SUMAC_RESOURCE_EXHAUSTED,
                                         SUMAC_REASON_OUT_OF_MEMORY, "no memory for a pull")
                                   : add_fetches(transfer, fetches, count, error);
    if (status == SUMAC_OK)
        status = submit(client, transfer, options != NULL ? options : &ordinary, error);
    if (status == SUMAC_OK)
        *pull = (struct sumac_pull *)(void *)transfer;
    else if (transfer != NULL)
        transfer_give(transfer);
    pthread_mutex_unlock(&client->lock);
    return status;
}

enum sumac_status
sumac_pull_wait(struct sumac_pull *pull, uint32_t timeout_ms, struct sumac_error *error)
{
    return transfer_wait(&pull->transfer, "pull", timeout_ms, error);
}

bool sumac_pull_done(struct sumac_pull *pull) { return transfer_poll(&pull->transfer); }
