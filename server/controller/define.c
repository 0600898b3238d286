/* SPDX-License-Identifier: Apache-2.0 */
/* define.c -- Define and Functions: a text becomes an update function of the cluster.
 *
 * 1. The text is read; the same one under the same name is the same function, another is refused.
 * 2. It gets the next number, and ps 0 orders every ps to define it (`define`). A ps has room for
 * the maximum count of functions and reads the text by the same code. So no ps of this release
 * refuses the function.
 * 3. When all ps have answered, ps 0 answers the caller. A client that knows the number may use it
 * on every ps.
 */
#include "catalogue.h"

#include <assert.h>
#include <string.h>

#include "described.h"
#include "error.h"
#include "controller_orders.h"
#include "controller_members.h"

/* Nothing is ever undefined, and any client that reaches ps 0 may join as an observer. Members
 * need numbers that observers cannot take. */
#define OBSERVERS_DEFINE_MAX (UPDATE_DEFINED_MAX / 2)

/* ---- its messages ---- */

/* A message ends it with a NUL. */
static char *copy_text(struct controller *controller, const struct defined_function *known)
{
    char *text = out_take(controller->out, known->text_bytes + 1);

    if (text != NULL) {
        memcpy(text, known->text, known->text_bytes);
        text[known->text_bytes] = '\0';
    }
    return text;
}

static char *copy_name(struct controller *controller, const struct defined_function *known)
{
    return out_copy(controller->out, known->row.name, strlen(known->row.name) + 1);
}

wire_define_function *controller_function_message(
    struct controller *controller, const struct controller_function *function)
{
    const struct defined_function *known = controller_function_known(controller, function);
    wire_define_function *message = OUT_MESSAGE(controller->out, define_function);

    message->number = known->row.function.number;
    message->name = copy_name(controller, known);
    message->text = copy_text(controller, known);
    return message;
}

/* The complete description of the function. NULL: no memory. */
static wire_known_function *
list_one(struct controller *controller, const struct update_function *function)
{
    wire_known_function *message = update_describe(function, controller->out->arena);

    controller->out->is_short |= message == NULL;
    if (message != NULL && function->expression != NULL)
        message->text = copy_text(
            controller, &controller->functions.known[function->number - UPDATE_DEFINED_FIRST]);
    return message;
}

/* ---- answers ---- */

/* True: there was one to give. */
static bool
try_answer(struct controller *controller, uint64_t call, const struct controller_function *function)
{
    if (function->state == CONTROLLER_FUNCTION_DEFINING &&
        rule_holds(controller->config->broken, RULE_define_after_every_ps))
        return false;
    if (function->state == CONTROLLER_FUNCTION_REFUSED) {
        controller_fail(
            controller, call, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
            "a ps does not take the function %s, as the log of ps 0 says: run the same release on "
            "every ps",
            controller_function_known(controller, function)->row.name);
        return true;
    }
    const struct defined_function *known = controller_function_known(controller, function);
    wire_define_reply *reply = OUT_MESSAGE(controller->out, define_reply);
    wire_known_function *made = OUT_MESSAGE(controller->out, known_function);
    made->number = known->row.function.number;
    made->name = copy_name(controller, known);
    reply->function = made;
    controller_reply_or_fail(controller, call, &reply->base);
    return true;
}

void controller_define_answered(
    struct controller *controller, const struct controller_order *order, uint32_t ps,
    const wire_peer_report *report)
{
    struct controller_function *function = order->function;

    assert(ps < controller->ps_count);
    if (report->status == 0)
        return;
    out_log(
        controller->out, "ps %u at %s does not take the function %s: %s", ps,
        controller->peers[ps].address, controller_function_known(controller, function)->row.name,
        report->message);
    function->state = CONTROLLER_FUNCTION_REFUSED;
    controller_row_changed(controller, &function->row);
}

void controller_define_complete(struct controller *controller, const struct controller_order *order)
{
    struct controller_function *function = order->function;

    assert(function->orders == 0);
    if (function->state == CONTROLLER_FUNCTION_DEFINING)
        function->state = CONTROLLER_FUNCTION_DEFINED;
    controller_row_changed(controller, &function->row);
    LIST_FOREACH_SAFE(struct controller_call, call, &controller->calls, in_controller)
        if (call->function == function && try_answer(controller, call->call, function))
            controller_call_drop(controller, call);
}

void controller_defines_order(struct controller *controller)
{
    bool whole = true;

    for (uint32_t i = 0; whole && i < controller->functions.count; i++) {
        struct controller_function *function = &controller->defined[i];
        if (function->state == CONTROLLER_FUNCTION_DEFINING && function->orders == 0)
            whole = controller_order_function(controller, function);
    }
}

/* ---- the requests ---- */

static enum sumac_status
refuse_observer(const wire_define_request *request, struct sumac_error *error)
{
    return fail_for_memory(
        error,
        "%s: %u functions are defined, and the other %u numbers are kept for chiefs and workers: "
        "use a function that exists, or define it in a worker",
        request->name, OBSERVERS_DEFINE_MAX, UPDATE_DEFINED_MAX - OBSERVERS_DEFINE_MAX);
}

/* Find the function of that name and text, or make it. */
static enum sumac_status find_or_make(
    struct controller *controller, const struct controller_session *session,
    const wire_define_request *request, struct controller_function **function,
    struct sumac_error *error)
{
    const struct defined_function *known =
        functions_find_defined(&controller->functions, request->name);
    const uint32_t number =
        known == NULL ? functions_next(&controller->functions) : known->row.function.number;

    if (known == NULL && session->task == NULL &&
        controller->functions.count >= OBSERVERS_DEFINE_MAX)
        return refuse_observer(request, error);
    const enum sumac_status status = functions_add(
        &controller->functions, number, request->name, request->text, strlen(request->text), error);

    if (status != SUMAC_OK &&
        (known == NULL || rule_holds(controller->config->broken, RULE_one_text_for_a_name)))
        return status;
    assert(number - UPDATE_DEFINED_FIRST < controller->functions.count);
    *function = &controller->defined[number - UPDATE_DEFINED_FIRST];
    if (known != NULL)
        return SUMAC_OK;
    controller_row_changed(controller, &(*function)->row);
    (void)controller_order_function(controller, *function); /* without memory for it, a tick does */
    return SUMAC_OK;
}

void controller_define_call(struct controller *controller, const struct lane_event *event)
{
    const wire_define_request *request = (const wire_define_request *)event->request;
    struct controller_session *session =
        controller_session_of_call(controller, event->call, &request->session_id);
    struct controller_function *function = NULL;
    struct sumac_error error = {0};

    if (session == NULL || !controller_may_change_catalogue(controller, event->call))
        return;
    const uint32_t before = controller->functions.count;
    if (find_or_make(controller, session, request, &function, &error) != SUMAC_OK) {
        controller_fail_with(controller, event->call, &error);
        return;
    }
    if (controller->functions.count > before)
        out_log(controller->out, "%s defines the function %s", session->label, request->name);
    if (try_answer(controller, event->call, function))
        return;
    const struct controller_call call = {
        .kind = CONTROLLER_CALL_DEFINE,
        .call = event->call,
        .function = function,
        .session = session};
    controller_wait_call(controller, call, request->timeout_ms);
}

/* A text that is not defined yet is not told of. */
static bool is_listed(const struct controller *controller, const struct update_function *function)
{
    return function->expression == NULL ||
           controller->defined[function->number - UPDATE_DEFINED_FIRST].state ==
               CONTROLLER_FUNCTION_DEFINED;
}

void controller_functions_call(struct controller *controller, const struct lane_event *event)
{
    const struct update_function *function = NULL;
    uint32_t count = 0;

    while (functions_at(&controller->functions, count) != NULL)
        count++;
    assert(count <= UPDATE_FUNCTIONS_MAX + UPDATE_DEFINED_MAX + SUMAC_PLUGIN_FUNCTIONS_MAX);
    wire_functions_reply *reply = OUT_MESSAGE(controller->out, functions_reply);
    reply->functions = out_take(controller->out, count * sizeof *reply->functions);
    for (uint32_t i = 0; i < count && !controller->out->is_short; i++) {
        function = functions_at(&controller->functions, i);
        if (is_listed(controller, function))
            reply->functions[reply->n_functions++] = list_one(controller, function);
    }
    controller_reply_or_fail(controller, event->call, &reply->base);
}
