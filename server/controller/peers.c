/* SPDX-License-Identifier: Apache-2.0 */
/* peers.c -- the ps: their addresses, which of them are met, and which of them are silent.
 *
 * ps 0 itself is a ps like the others, but its stream stays in the process and is never missing.
 */
#include "controller_orders.h"

#include <assert.h>

#include "loopback.h"
#include "silence.h"
#include "text.h"

static void set_text(char *text, size_t text_bytes, const char *from)
{
    (void)text_print_line(text, text_bytes, "%s", from == NULL ? "" : from);
}

/* ---- addresses ---- */

/* ps 0 itself needs no address. */
static void dial(struct controller *controller, uint32_t ps)
{
    assert(ps < controller->ps_count);
    struct controller_peer *peer = &controller->peers[ps];
    if (peer->dialled || (!controller_peer_is_self(controller, ps) && peer->address[0] == '\0'))
        return;
    struct lane_effect *effect = out_add(controller->out, LANE_EFFECT_DIAL);
    effect->ps = ps;
    effect->text = peer->address;
    peer->dialled = true;
}

/* The controller sends ps 0 itself each change of addresses, on the existing stream. */
static void greet_self(struct controller *controller)
{
    assert(controller->config->index < controller->ps_count);
    struct controller_peer *self = &controller->peers[controller->config->index];
    self->incarnation = controller->config->incarnation;
    controller_row_changed(controller, &controller->peers[controller->config->index].row);
    self->hello = 0;
}

void controller_peers_start(struct controller *controller)
{
    const struct lane_config *config = controller->config;

    assert(config->ps_count <= LANE_PS_MAX);
    if (config->ps_count > 0)
        controller->ps_count = config->ps_count;
    if (controller->ps_count == 0)
        return;
    for (uint32_t ps = 0; ps < controller->ps_count; ps++) {
        if (ps < config->ps_count) {
            const char *address = config->ps_addresses == NULL ? NULL : config->ps_addresses[ps];
            set_text(controller->peers[ps].address, sizeof controller->peers[ps].address, address);
            controller_row_changed(controller, &controller->peers[ps].row);
        }
        dial(controller, ps);
    }
    greet_self(controller);
}

void controller_peers_learn(struct controller *controller, const wire_join_request *request)
{
    const size_t count = request->n_ps_addresses;
    bool learnt = controller->ps_count == 0;

    if (controller->ps_count == 0)
        controller->ps_count = (uint32_t)count;
    if (learnt)
        controller_row_changed(controller, &controller->row);
    for (uint32_t ps = 0; ps < controller->ps_count && count == controller->ps_count; ps++) {
        struct controller_peer *peer = &controller->peers[ps];
        if (peer->address[0] != '\0')
            continue;
        set_text(peer->address, sizeof peer->address, request->ps_addresses[ps]);
        controller_row_changed(controller, &controller->peers[ps].row);
        dial(controller, ps);
        learnt = true;
    }
    assert(controller->ps_count > 0);
    assert(controller->ps_count <= LANE_PS_MAX);
    if (learnt)
        greet_self(controller);
}

size_t controller_list_ps(struct controller *controller, char ***addresses, uint64_t **incarnations)
{
    const uint32_t count = controller->ps_count;

    assert(count > 0);
    *addresses = out_take(controller->out, count * sizeof **addresses);
    *incarnations = out_take(controller->out, count * sizeof **incarnations);
    if (*addresses == NULL || *incarnations == NULL)
        return 0;
    for (uint32_t ps = 0; ps < count; ps++) {
        (*addresses)[ps] = controller->peers[ps].address;
        (*incarnations)[ps] = controller->peers[ps].incarnation;
    }
    return count;
}

/* ---- who is there ---- */

/* The first ps that is not met; ps_count: none. */
static uint32_t first_unmet(const struct controller *controller)
{
    uint32_t ps = 0;

    while (ps < controller->ps_count && controller->peers[ps].met)
        ps++;
    return ps;
}

bool controller_peers_all_met(const struct controller *controller)
{
    return controller->ps_count > 0 && first_unmet(controller) == controller->ps_count;
}

uint32_t controller_peers_missing(const struct controller *controller)
{
    uint32_t missing = first_unmet(controller);

    for (uint32_t ps = 0; missing == controller->ps_count && ps < controller->ps_count; ps++)
        if (controller->peers[ps].silent_us != 0)
            missing = ps;
    return missing;
}

const char *controller_peer_text(const struct controller *controller, uint32_t ps)
{
    assert(ps < controller->ps_count);
    const struct controller_peer *peer = &controller->peers[ps];
    const bool troubled = peer->trouble[0] != '\0';
    const bool heard = peer->heard_us != 0;
    return out_text(
        controller->out, "ps %u at %s, %s%s%s%.200s%s", ps, /* what is said after it has room */
        peer->address[0] == '\0' ? "an unknown address" : peer->address,
        heard ? "last heard from " : "never heard from",
        heard ? controller_ago(controller, peer->heard_us) : "", troubled ? " (" : "",
        peer->trouble, troubled ? ")" : "");
}

const char *controller_peer_remedy(const struct controller *controller, uint32_t ps)
{
    const struct lane_config *const config = controller->config;

    assert(ps < controller->ps_count);
    const struct controller_peer *const peer = &controller->peers[ps];
    if (silence_is_own(peer->trouble))
        return "";
    if (peer->met)
        return "; if that ps does not come back, start the whole run again, ps and workers";
    const char *const remedy = loopback_remedy(
        peer->address, (struct address_list){config->ps_addresses, config->ps_count},
        (struct address_list){config->members_addresses, config->member_count},
        "start it, or correct its address");
    return out_text(controller->out, "; %s", silence_remedy(peer->trouble, remedy));
}

/* How long this ps has owed a stream, an answer or a sign of life. */
static uint64_t overdue_us(const struct controller *controller, uint32_t ps)
{
    assert(ps < controller->ps_count);
    const struct controller_peer *peer = &controller->peers[ps];
    if (controller_peer_is_self(controller, ps))
        return 0;
    assert(peer->heard_us <= controller->now_us);
    const uint64_t quiet_us = peer->up ? controller->now_us - peer->heard_us : 0;
    const uint64_t silent_us = peer->silent_us == 0 ? 0 : controller->now_us - peer->silent_us;
    return quiet_us > silent_us ? quiet_us : silent_us;
}

bool controller_peer_is_lost(const struct controller *controller, uint32_t ps)
{
    return controller->peers[ps].met &&
           overdue_us(controller, ps) >= controller_ms(controller->config->ps_lost_ms);
}

bool controller_peer_is_late(const struct controller *controller, uint32_t ps)
{
    const uint32_t half_ms = controller->config->ps_lost_ms / 2;

    return overdue_us(controller, ps) >=
           controller_ms(half_ms < LANE_QUIET_MS ? half_ms : LANE_QUIET_MS);
}

const char *controller_peer_limit(const struct controller *controller, uint32_t ps)
{
    const uint64_t patience_us = controller_ms(controller->config->ps_lost_ms);
    uint64_t waited_us = overdue_us(controller, ps);

    if (controller->peers[ps].refused_us != 0)
        return "the run ends for it";
    if (!controller->peers[ps].met && controller->first_join_us == 0)
        return out_text(
            controller->out, "until a member joins this wait has no limit, so far %s",
            text_time_us(controller->now_us - controller->config->started_us).text);
    if (!controller->peers[ps].met)
        waited_us = controller->now_us - controller->first_join_us;
    return out_text(
        controller->out, "gives up in %s",
        text_time_left(patience_us > waited_us ? patience_us - waited_us : 0).text);
}
