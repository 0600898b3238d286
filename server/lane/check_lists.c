/* SPDX-License-Identifier: Apache-2.0 */
/* check_lists.c -- does what this ps was started with go with what ps 0 was: the ps and the members
 * of the cluster, the functions of plug-ins?
 */
#include "handlers.h"

#include "error.h"
#include "identity.h"
#include "listing.h"
#include "loopback.h"

enum sumac_status lane_order_fail_other_index(
    const struct lane *lane, const wire_peer_hello *hello, struct sumac_error *error)
{
    const bool known = hello->index < hello->n_ps_addresses;
    const char *address = known ? hello->ps_addresses[hello->index] : "";

    assert(error != NULL);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "ps %u answers at %.200s, which the configuration of ps 0 calls ps %u: %s", lane->index,
        address[0] == '\0' ? "an unknown address" : address, hello->index,
        loopback_remedy(
            address,
            (struct address_list){(const char *const *)hello->ps_addresses, hello->n_ps_addresses},
            (struct address_list){lane->config.members_addresses, lane->config.member_count},
            OTHER_PS_REMEDY));
}

static bool names_member(const wire_peer_hello *hello, const char *job, uint32_t index, size_t from)
{
    for (size_t i = 0; i < hello->n_members; i++) {
        const wire_task_name *name = hello->members[(from + i) % hello->n_members];
        if (name->index == index && strcmp(name->job, job) == 0)
            return true;
    }
    return false;
}

/* Both lists are whole, so neither may name who is not in the other. */
static bool same_members(const struct lane *lane, const wire_peer_hello *hello)
{
    const struct lane_config *config = &lane->config;

    if (config->member_count == 0 || hello->n_members == 0 || config->members_partial ||
        hello->members_partial)
        return true;
    if (config->member_count != hello->n_members)
        return false;
    for (uint32_t i = 0; i < config->member_count; i++) {
        if (!names_member(hello, config->members_jobs[i], config->members_indices[i], i))
            return false;
    }
    return true;
}

enum sumac_status lane_check_ps_list(
    const struct lane *lane, const char *const *addresses, size_t count, struct sumac_error *error)
{
    struct listing ours = {0}, theirs = {0};
    size_t first, second, index;

    assert(count == 0 || addresses != NULL);
    if (count > LANE_PS_MAX) /* no list of a cluster's, and not learnt */
        return SUMAC_OK;
    if (listing_names_twice(addresses, count, &first, &second))
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "the configuration of ps 0 has %s as ps %zu and as ps %zu; give each ps its own "
            "address",
            addresses[first], first, second);
    if (lane->config.ps_count == 0 ||
        listing_same_ps(lane->config.ps_addresses, lane->config.ps_count, addresses, count))
        return SUMAC_OK;
    if (count == lane->config.ps_count &&
        listing_other_port(lane->config.ps_addresses, addresses, count, &index))
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "the configuration of ps %u has ps %zu at %.200s, that of ps 0 at %.200s; give every "
            "task the same",
            lane->index, index, lane->config.ps_addresses[index], addresses[index]);
    listing_add_addresses(&ours, lane->config.ps_addresses, lane->config.ps_count);
    listing_add_addresses(&theirs, addresses, count);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "the configuration of ps %u has the ps %s, that of ps 0 %s; give every task the same, in "
        "the same order",
        lane->index, listing_end(&ours), listing_end(&theirs));
}

static bool names_function(const wire_peer_hello *hello, const char *name)
{
    assert(name[0] != '\0');
    for (size_t i = 0; i < hello->n_plugin_functions; i++)
        if (strcmp(hello->plugin_functions[i]->name, name) == 0)
            return true;
    return false;
}

/* Have both ps the same functions of plug-ins, which they number by their names? */
static enum sumac_status
check_plugins(const struct lane *lane, const wire_peer_hello *hello, struct sumac_error *error)
{
    const struct plugins *const plugins = lane->config.plugins;

    assert(lane->index != 0);
    assert(plugins_count(plugins) <= SUMAC_PLUGIN_FUNCTIONS_MAX);
    for (size_t i = 0; i < hello->n_plugin_functions; i++) {
        const wire_plugin_function *const said = hello->plugin_functions[i];
        const struct plugin_function *const own = plugins_find_by_name(plugins, said->name);
        if (own == NULL)
            return fail(
                error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
                "ps 0 has the function %.63s of the plug-in %.127s, and ps %u has none of that "
                "name: give every ps the same --plugin",
                said->name, said->plugin, lane->index);
        if (own->digest != said->digest)
            return fail(
                error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
                "the function %s is that of the plug-in %s on ps %u and that of %.127s on ps 0, "
                "%s: give every ps the same --plugin",
                own->row.name, own->row.plugin, lane->index, said->plugin,
                strcmp(own->row.plugin, said->plugin) == 0 ? "whose tables differ"
                                                           : "which is another");
    }
    for (uint32_t i = 0; i < plugins_count(plugins); i++) {
        const struct update_plugged *const row = &plugins->functions[i]->row;
        if (!names_function(hello, row->name))
            return fail(
                error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
                "ps %u has the function %s of the plug-in %s, and ps 0 has none of that name: give "
                "every ps the same --plugin",
                lane->index, row->name, row->plugin);
    }
    return SUMAC_OK;
}

/* Another run's ps may have the address of one of ours. */
static enum sumac_status
check_run(const struct lane *lane, const wire_peer_hello *hello, struct sumac_error *error)
{
    struct run_identity theirs;
    char ours_text[RUN_IDENTITY_TEXT_BYTES], theirs_text[RUN_IDENTITY_TEXT_BYTES];
    const enum sumac_status status = wire_identity_read(hello->identity, &theirs, error);

    assert(!lane->any_hello);
    if (status != SUMAC_OK || !run_identity_differs(&lane->config.identity, &theirs))
        return status;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "ps %u is of %s, and ps 0 of %s; give each run its own addresses", lane->index,
        run_identity_print(&lane->config.identity, ours_text),
        run_identity_print(&theirs, theirs_text));
}

enum sumac_status lane_order_check_lists(
    const struct lane *lane, const wire_peer_hello *hello, struct sumac_error *error)
{
    struct listing ours = {0}, theirs = {0};

    if (lane->any_hello)
        return SUMAC_OK;
    enum sumac_status status = check_run(lane, hello, error);
    if (status == SUMAC_OK && hello->index != lane->index)
        status = lane_order_fail_other_index(lane, hello, error);
    if (status == SUMAC_OK)
        status = lane_check_ps_list(
            lane, (const char *const *)hello->ps_addresses, hello->n_ps_addresses, error);
    if (status == SUMAC_OK)
        status = check_plugins(lane, hello, error);
    if (status != SUMAC_OK || same_members(lane, hello))
        return status;
    for (uint32_t i = 0; i < lane->config.member_count; i++)
        listing_add_task(&ours, lane->config.members_jobs[i], lane->config.members_indices[i]);
    for (size_t i = 0; i < hello->n_members; i++)
        listing_add_task(&theirs, hello->members[i]->job, hello->members[i]->index);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "the configuration of ps %u lists %s, that of ps 0 %s; give every task the same",
        lane->index, listing_end(&ours), listing_end(&theirs));
}
