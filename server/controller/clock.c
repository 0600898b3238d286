/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c -- the beginning of a step, and the controller's time, which stands still while this
 * process is suspended. */
#include "controller_state.h"

#include <assert.h>

#include "text.h"

#define ARENA_KEPT_BYTES_MAX 1048576u /* what is beyond is given back with the next step */

void controller_begin(struct controller *controller, bool follows)
{
    out_reset(controller->out);
    if (!follows && controller->arena.bytes_used > ARENA_KEPT_BYTES_MAX)
        arena_deinit(&controller->arena);
    else if (!follows)
        arena_reset(&controller->arena);
}

const char *controller_ago(const struct controller *controller, uint64_t when_us)
{
    assert(when_us <= controller->now_us);
    if (when_us == 0)
        return "never";
    return out_text(controller->out, "%s ago", text_time_us(controller->now_us - when_us).text);
}

/* The controller's time stands still while this process is suspended, so that everyone's silence is
 * not taken from its own sleep: all leases and deadlines are extended by the jump. Ticks come every
 * quarter of a lease; half of one without any event is a suspension. */
void controller_notice_time(struct controller *controller, uint64_t event_us)
{
    const uint64_t passed = event_us - controller->last_event_us;
    const uint64_t pause_us = controller_ms(controller->config->lease_ms) / 2u;
    const bool jumped = controller->last_event_us != 0 && passed > pause_us;

    if (jumped && rule_holds(controller->config->broken, RULE_time_jump)) {
        controller->slept_us += passed;
        controller->sleep_to_tell_us += passed;
    }
    controller->last_event_us = event_us;
    controller->now_us = event_us - controller->slept_us;
    if (controller->now_us == 0) /* 0 means never */
        controller->now_us = 1;
    controller->out->now_us = controller->now_us;
    assert(controller->now_us > 0);
}

void controller_wake(struct controller *controller, uint64_t at_us)
{
    out_add(controller->out, LANE_EFFECT_WAKE)->at_us = at_us + controller->slept_us;
}

void controller_reports_begin(struct controller *controller)
{
    controller->report_us = controller_ms(controller->config->report_ms);
    controller->next_report_us = controller->now_us + controller->report_us;
}
