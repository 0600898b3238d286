/* SPDX-License-Identifier: Apache-2.0 */
/* ps_probe.c -- before the first join a ps asks at ps 0's listed address who answers there. Its
 * wait then says why the call of ps 0, or the join, does not come. ps 0 asks, too: the list may
 * name another host, or two processes have its index.
 *
 * ps 0 calls the others, so it may be reached by no process and still have met all of them. What is
 * asked is what a client asks first: a List of no variables. It says who answers, and where that ps
 * looks for the others.
 */
#include "ps_state.h"

#define PROBE_APART_MS 2000u  /* from the end of one try to the next */
#define PROBE_ANSWER_MS 5000u /* as long a try takes at most */

static void tell(struct ps *ps, const char *text, const wire_message *reply)
{
    struct lane_event event = {.kind = LANE_EVENT_PS0_PROBED, .text = text, .request = reply};

    if (!ps->exiting)
        ps_step(ps, &event);
}

static void message(struct rpc_call *call, const struct wire_received *received)
{
    struct ps *const ps = rpc_call_user(call);

    if (ps->probe.call == call)
        tell(ps, NULL, received->message);
}

static void closed(struct rpc_call *call, const struct sumac_error *error)
{
    struct ps *const ps = rpc_call_user(call);

    if (ps->probe.call != call)
        return;
    ps->probe.call = NULL;
    ps->probe.due_us = ps_now_us() + (uint64_t)PROBE_APART_MS * 1000u;
    if (error->status == SUMAC_DEADLINE_EXCEEDED)
        tell(ps, "no answer within 5 s", NULL);
    else if (error->status != SUMAC_OK)
        tell(ps, error->text, NULL);
}

static const struct rpc_handler handler = {.message = message, .closed = closed};

void ps_probe_end(struct ps *ps)
{
    ps->probe.call = NULL;
    rpc_channel_close(ps->probe.channel);
    ps->probe.channel = NULL;
}

/* On a channel of its own: one that has failed before waits as long as gRPC pleases. */
static void begin(struct ps *ps, const char *address, uint64_t now_us)
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;

    request.after_id = UINT64_MAX; /* no variables */
    ps_probe_end(ps);
    if (rpc_channel_open(ps->poller, address, &ps->probe.channel) != SUMAC_OK ||
        rpc_channel_call(
            ps->probe.channel,
            &(struct rpc_start){
                .service = WIRE_VARIABLES,
                .method = WIRE_VARIABLES_LIST,
                .message = &request.base,
                .deadline_us = now_us + (uint64_t)PROBE_ANSWER_MS * 1000u,
                .handler = &handler,
                .user = ps},
            &ps->probe.call) != SUMAC_OK)
        ps->probe.call = NULL;
}

void ps_probe_tick(struct ps *ps, uint64_t now_us)
{
    if (ps->exiting || now_us < ps->probe.due_us)
        return;
    const struct lane *const lane = ps_core_lane(ps->core);
    const char *const address = lane_ps0_address(lane);
    ps->probe.due_us = now_us + (uint64_t)PROBE_APART_MS * 1000u;
    if (!lane_seeks_ps0(lane))
        ps_probe_end(ps);
    else if (address != NULL && ps->probe.call == NULL)
        begin(ps, address, now_us);
}
