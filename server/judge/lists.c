/* SPDX-License-Identifier: Apache-2.0 */
/* lists.c -- does what a joiner was configured with contradict what ps 0 was: the ps in their
 * order, the chiefs and workers?
 *
 * Processes that disagree would wait for each other in vain, or end without each other. Both lists
 * are in the error.
 */
#include "judge_state.h"

#include <assert.h>
#include <string.h>

#include "error.h"
#include "listing.h"

/* ---- the ps ---- */

static enum sumac_status
refuse_ps(const struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    assert(judge->ps_count > 0);
    const char *ours[LANE_PS_MAX];
    struct listing known = {0}, given = {0};
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        ours[ps] = judge->peers[ps].address;
    listing_add_addresses(&known, ours, judge->ps_count);
    listing_add_addresses(
        &given, (const char *const *)request->ps_addresses, request->n_ps_addresses);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "its configuration has the ps %s, that of ps 0 %s; give every task the same, in the same "
        "order",
        listing_end(&given), listing_end(&known));
}

/* One process would be two ps, whether or not ps 0 has a list to compare with. */
static enum sumac_status refuse_twice(
    const wire_join_request *request, size_t first, size_t second, struct sumac_error *error)
{
    assert(first < second);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "its configuration has %s as ps %zu and as ps %zu; give each ps its own address",
        request->ps_addresses[first], first, second);
}

/* Who is no member may have been given the address of one ps. */
static enum sumac_status
check_ps(const struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    const char *ours[LANE_PS_MAX];
    const size_t count = request->n_ps_addresses;

    assert(count <= LANE_PS_MAX); /* judge_peers_check has refused more */
    const bool member = request->role == SUMAC__V1__ROLE__ROLE_MEMBER;
    size_t first, second;
    if (listing_names_twice((const char *const *)request->ps_addresses, count, &first, &second))
        return refuse_twice(request, first, second, error);
    if (judge->ps_count == 0 || count == 0 || (count == 1 && !member))
        return SUMAC_OK;
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        ours[ps] = judge->peers[ps].address;
    if (listing_same_ps(ours, judge->ps_count, (const char *const *)request->ps_addresses, count))
        return SUMAC_OK;
    return refuse_ps(judge, request, error);
}

/* ---- the members ---- */

static enum sumac_status refuse_members(
    const struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    assert(judge->members_listed);
    struct listing given = {0};
    for (size_t i = 0; i < request->n_members; i++)
        listing_add_task(&given, request->members[i]->job, request->members[i]->index);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "its configuration lists %s, that of ps 0 %s; give every task the same",
        listing_end(&given), judge_tasks_text(judge, JUDGE_TASKS_LISTED));
}

/* A list that is whole contradicts what it leaves out; one that is not contradicts nothing by
 * that. */
static enum sumac_status
check_members(struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    if (!judge->members_listed || request->n_members == 0)
        return SUMAC_OK;
    const uint64_t look = ++judge->lists_looked_at;
    for (size_t i = 0; i < request->n_members; i++) {
        struct judge_task *task = judge_task_find(judge, request->members[i]);
        if (task != NULL && task->listed)
            task->named = look;
        else if (!judge->config->members_partial || i >= JUDGE_TASKS_MAX)
            return refuse_members(judge, request, error);
    }
    for (const struct judge_task *task = judge->tasks.first; task != NULL;
         task = task->in_judge.next)
        if (task->listed && task->named != look && !request->members_partial)
            return refuse_members(judge, request, error);
    return SUMAC_OK;
}

enum sumac_status
judge_lists_check(struct judge *judge, const wire_join_request *request, struct sumac_error *error)
{
    const bool member = request->role == SUMAC__V1__ROLE__ROLE_MEMBER;
    enum sumac_status status = check_ps(judge, request, error);

    if (status == SUMAC_OK && member)
        status = check_members(judge, request, error);
    return status;
}
