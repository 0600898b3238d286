/* SPDX-License-Identifier: Apache-2.0 */
/* controller_told.c -- an order to a ps of a controller's world (controller_world.h). */
#include <inttypes.h>

#include "unit.h"
#include "close_cause.h"
#include "controller_told.h"

static void keep_hello(struct world_order *kept, const wire_peer_hello *hello)
{
    kept->expected_incarnation = hello->expected_incarnation;
    kept->addresses = hello->n_ps_addresses;
    kept->index = hello->index;
    kept->cluster_id = hello->cluster_id;
    kept->controller_incarnation = hello->controller_incarnation;
    kept->controller_secret = hello->controller_secret;
    kept->members = hello->n_members;
    kept->initial = hello->step_members;
    kept->final = hello->quorum;
    kept->members_partial = hello->members_partial;
    (void)snprintf(kept->host, sizeof kept->host, "%s", hello->identity->host);
    kept->plugin_functions = hello->n_plugin_functions;
    if (hello->n_plugin_functions > 0) {
        const wire_plugin_function *const first = hello->plugin_functions[0];
        kept->digest = first->digest;
        (void)snprintf(kept->text, sizeof kept->text, "%s of %s", first->name, first->plugin);
    }
    assert_int_equal(hello->protocol_version, WIRE_PROTOCOL_VERSION);
    assert_int_equal(hello->epoch, 1);
    assert_int_equal(hello->n_ps_incarnations, hello->n_ps_addresses);
    for (size_t i = 0; i < hello->n_ps_incarnations && i < WORLD_PS_MAX; i++)
        kept->incarnations[i] = hello->ps_incarnations[i];
}

static void keep_collective(struct world_order *kept, const wire_collective_end *end)
{
    kept->kind = ORDER_COLLECTIVE;
    kept->variable_id = end->collective->round;
    snprintf(
        kept->text, sizeof kept->text, "%.*s %" PRIu64 " %s%s%s", (int)end->collective->name.len,
        (const char *)end->collective->name.data, end->collective->round,
        sumac_status_name((enum sumac_status)end->status), end->status == 0 ? "" : " ",
        end->message);
}

/* An order about an open session. Returns the session's id. */
static const wire_bytes *keep_end(struct world_order *kept, const wire_peer_order *order)
{
    if (order->first_step != NULL) {
        kept->kind = ORDER_FIRST_STEP;
        kept->final = order->first_step->step;
        return &order->first_step->session_id;
    }
    if (order->close != NULL) {
        const struct close_cause cause = wire_close_cause_of(order->close->cause);

        kept->kind = ORDER_CLOSE;
        kept->lost = order->close->lost;
        wire_close_cause_print(&cause, kept->text);
        return &order->close->session_id;
    }
    kept->kind = ORDER_DECIDE;
    kept->final = order->decide->final;
    kept->done = order->decide->done;
    kept->lost = order->decide->lost;
    kept->initial = order->decide->initial;
    kept->acked_through = order->decide->acked_through;
    kept->voided_count = order->decide->n_voided;
    for (size_t i = 0; i < kept->voided_count && i < 8; i++)
        kept->voided[i] = order->decide->voided[i];
    return &order->decide->session_id;
}

struct world_order told_order(const wire_peer_order *order)
{
    struct world_order kept = {.number = order->number};
    const wire_bytes *id = NULL;

    if (order->hello != NULL) {
        kept.kind = ORDER_HELLO;
        keep_hello(&kept, order->hello);
    } else if (order->open != NULL) {
        kept.kind = ORDER_OPEN;
        id = &order->open->session_id;
        kept.membership_epoch = order->open->membership_epoch;
        kept.role = (uint32_t)order->open->role;
        kept.attempt = order->open->attempt;
        kept.initial = order->open->initial;
        if (order->open->task != NULL)
            snprintf(
                kept.text, sizeof kept.text, "%s %u", order->open->task->job,
                order->open->task->index);
    } else if (order->define != NULL) {
        kept.kind = ORDER_DEFINE;
        kept.variable_id = order->define->number;
        snprintf(kept.text, sizeof kept.text, "%s", order->define->name);
    } else if (order->add_shards != NULL) {
        kept.kind = ORDER_ADD_SHARDS;
        assert_false(order->add_shards->variable->published);
        kept.variable_id = order->add_shards->variable->variable_id;
        snprintf(kept.text, sizeof kept.text, "%s", order->add_shards->variable->name);
    } else if (order->publish != NULL) {
        kept.kind = ORDER_PUBLISH;
        kept.variable_id = order->publish->variable_id;
    } else if (order->delete_ != NULL) {
        kept.kind = ORDER_DELETE;
        kept.variable_id = order->delete_->variable_id;
    } else if (order->first_step != NULL || order->close != NULL || order->decide != NULL) {
        id = keep_end(&kept, order);
    } else if (order->take != NULL) {
        kept.kind = ORDER_TAKE;
        kept.final = order->take->step;
        for (size_t i = 0; i < order->take->n_session_ids && i < 8; i++)
            memcpy(kept.taken[kept.taken_count++], order->take->session_ids[i].data, 16);
    } else if (order->collective != NULL) {
        keep_collective(&kept, order->collective);
    } else if (order->membership != NULL) {
        kept.kind = ORDER_MEMBERSHIP;
        kept.membership_epoch = order->membership->membership_epoch;
        kept.members = order->membership->n_members;
    } else if (order->end != NULL) {
        kept.kind = ORDER_END;
        kept.exit_code = order->end->exit_code;
        kept.reason = (enum sumac_reason)order->end->reason;
        snprintf(kept.text, sizeof kept.text, "%s", order->end->message);
    } else {
        assert_true(order->alive);
        kept.kind = ORDER_ALIVE;
    }
    if (id != NULL)
        memcpy(kept.session_id, id->data, 16);
    return kept;
}
