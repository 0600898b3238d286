/* SPDX-License-Identifier: Apache-2.0 */
/* last_word.c -- a reader's pull stream that pulls nothing. */
#include "last_word.h"

#include "clock.h"
#include "wire.h"

bool last_word_is(const struct sumac_error *error)
{
    const enum sumac_reason reason = error->reason;

    return reason == SUMAC_REASON_RUN_ENDED || reason == SUMAC_REASON_STATE_LOST ||
           reason == SUMAC_REASON_PS_MISSING || reason == SUMAC_REASON_TERMINATED ||
           reason == SUMAC_REASON_WRONG_CLUSTER;
}

/* A stream that says no hello is ended after some seconds; a reader's stays. */
static void say_hello(struct rpc_call *call)
{
    wire_hello hello = WIRE_HELLO_INIT;
    wire_pull_request request = WIRE_PULL_REQUEST_INIT;

    hello.protocol_version = WIRE_PROTOCOL_VERSION;
    request.hello = &hello;
    rpc_call_send(call, &request.base, NULL, 0);
}

static void end(struct rpc_call *call, const struct sumac_error *error)
{
    struct last_word *word = rpc_call_user(call);

    word->call = NULL;
    if (last_word_is(error))
        word->reason = *error;
}

static const struct rpc_handler handler = {.opened = say_hello, .closed = end};

void last_word_init(struct last_word *word)
{
    *word = (struct last_word){0};
    rpc_init();
    (void)rpc_poller_create(&word->poller);
}

void last_word_deinit(struct last_word *word)
{
    rpc_channel_close(word->channel);
    rpc_poller_destroy(word->poller);
    rpc_deinit();
}

void last_word_attend(struct last_word *word, const char *address)
{
    if (word->poller == NULL || word->call != NULL)
        return;
    rpc_channel_close(word->channel);
    word->channel = NULL;
    if (rpc_channel_open(word->poller, address, &word->channel) == SUMAC_OK)
        (void)rpc_channel_call(
            word->channel,
            &(struct rpc_start){
                .service = WIRE_TRANSFER,
                .method = WIRE_TRANSFER_PULL,
                .handler = &handler,
                .user = word},
            &word->call);
}

bool last_word_listen(struct last_word *word, uint64_t until_us)
{
    while (word->poller != NULL && word->call != NULL && word->reason.status == SUMAC_OK &&
           clock_now_us() < until_us)
        (void)rpc_poll(word->poller, until_us);
    return word->reason.status != SUMAC_OK;
}
