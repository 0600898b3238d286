/* SPDX-License-Identifier: Apache-2.0 */
/* transfer_drop.c -- a transfer is given away as soon as gRPC has given its bytes back. */
#include "client_state.h"
#include "transfer.h"

static bool is_given_back(void *transfer)
{
    return atomic_load_explicit(&((struct transfer *)transfer)->lent, memory_order_acquire) == 0;
}

void transfer_drop(struct transfer *transfer)
{
    struct sumac_client *client = transfer->client;

    while (!is_given_back(transfer))
        (void)client_wait(client, is_given_back, transfer, client_now_us() + RELEASE_US);
    transfer_give(transfer);
}
