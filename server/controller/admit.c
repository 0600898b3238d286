/* SPDX-License-Identifier: Apache-2.0 */
/* admit.c -- who may join: what the request says, whether the joiner's configuration contradicts
 * that of ps 0, whether there is a place. All of it is looked at before a join changes anything, so
 * that one that is refused leaves nothing behind. */
#include "controller_members.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "identity.h"
#include "listing.h"
#include "text.h"

#define ADDRESSES_LOOKED_AT 64u /* of a list of members: each is looked for among all tasks */

/* Sessions that are not settled, but for the joiner's own. */
struct places {
    uint32_t taken, observers;
};

/* ---- the request ---- */

static enum sumac_status check_job(const char *job, struct sumac_error *error)
{
    if (strlen(job) > CONTROLLER_JOB_BYTES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME, "its job name has %zu bytes, at most %u may be: %s",
            strlen(job), CONTROLLER_JOB_BYTES_MAX, job);
    if (text_has_control(job, strlen(job)))
        return fail_invalid(
            error, SUMAC_REASON_BAD_NAME,
            "its job name has a control character, shown here as ?: %s", job);
    return SUMAC_OK;
}

static bool is_member_job(const char *job)
{
    return strcmp(job, "worker") == 0 || strcmp(job, "chief") == 0;
}

/* Barriers and the end of the run wait for each member that is listed. */
static enum sumac_status check_listed_job(const wire_task_name *task, struct sumac_error *error)
{
    const enum sumac_status status = check_job(task->job, error);

    if (status != SUMAC_OK || is_member_job(task->job))
        return status;
    return fail_invalid(
        error, SUMAC_REASON_BAD_NAME,
        "it lists %s %u as a member, and only tasks of the jobs chief and worker are members: "
        "leave it out of members",
        task->job, task->index);
}

static enum sumac_status check_member(const wire_task_name *task, struct sumac_error *error)
{
    if (is_member_job(task->job))
        return SUMAC_OK;
    return fail_invalid(
        error, SUMAC_REASON_BAD_NAME,
        "only tasks of the jobs chief and worker are members; join as an observer");
}

enum sumac_status controller_join_check(
    const struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    if (join->protocol_version != WIRE_PROTOCOL_VERSION)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_PROTOCOL_VERSION,
            "it speaks protocol version %u, ps 0 version %u: use one release of both",
            join->protocol_version, WIRE_PROTOCOL_VERSION);
    if (join->cluster_id != 0 && join->cluster_id != controller->cluster_id)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "it is meant for cluster %016" PRIx64 ", this is %016" PRIx64 ": the cluster has "
            "restarted, or the configurations list its ps differently",
            join->cluster_id, controller->cluster_id);
    if (join->nonce.len != CONTROLLER_ID_BYTES)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "its nonce has %zu bytes; give %d random ones",
            join->nonce.len, CONTROLLER_ID_BYTES);
    const bool member = join->role == SUMAC__V1__ROLE__ROLE_MEMBER;
    const bool named = join->task != NULL && join->task->job[0] != '\0';
    if (!member && join->role != SUMAC__V1__ROLE__ROLE_OBSERVER)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "its role is %u; give member or observer",
            (uint32_t)join->role);
    if (member && !named)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "give the task, of the job chief or worker");
    struct run_identity identity;
    if (wire_identity_read(join->identity, &identity, error) != SUMAC_OK ||
        (named && check_job(join->task->job, error) != SUMAC_OK))
        return error->status;
    for (size_t i = 0; i < join->n_members; i++)
        if (check_listed_job(join->members[i], error) != SUMAC_OK)
            return error->status;
    return member ? check_member(join->task, error) : SUMAC_OK;
}

/* ---- the ps and the members that it was configured with ----
 *
 * Processes that disagree would wait for each other in vain, or end without each other. Both lists
 * are in the error.
 */

/* It is kept, compared, and put into errors. `whose`: "ps 3". */
static enum sumac_status
check_address(const char *whose, size_t index, const char *address, struct sumac_error *error)
{
    const size_t bytes = strlen(address);

    assert(bytes <= UINT32_MAX);
    if (bytes > CONTROLLER_ADDRESS_BYTES_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "its address of %s %zu is longer than %u bytes", whose,
            index, CONTROLLER_ADDRESS_BYTES_MAX);
    if (text_has_control(address, bytes))
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "its address of %s %zu has a control character, shown here as ?: %s", whose, index,
            address);
    return SUMAC_OK;
}

/* Only a member knows the whole cluster: a command may have been given the address of one ps. */
static enum sumac_status check_addresses(
    const struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    const size_t count = join->n_ps_addresses;
    const bool member = join->role == SUMAC__V1__ROLE__ROLE_MEMBER;

    if (count > LANE_PS_MAX)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED, "it names %zu ps; a cluster has at most %u", count,
            LANE_PS_MAX);
    for (size_t ps = 0; ps < count; ps++) {
        const enum sumac_status status = check_address("ps", ps, join->ps_addresses[ps], error);
        if (status != SUMAC_OK)
            return status;
    }
    if (controller->ps_count == 0 && count <= 1 && !member)
        return fail(
            error, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
            "ps 0 was told only itself, and no member has joined yet that names the ps");
    if (controller->ps_count == 0 && count == 0)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "ps 0 was told only itself and it names no ps: give ps_addresses");
    return SUMAC_OK;
}

static enum sumac_status refuse_ps(
    const struct controller *controller, const wire_join_request *join, const char *const *ours,
    struct sumac_error *error)
{
    assert(controller->ps_count > 0);
    const char *const *theirs = (const char *const *)join->ps_addresses;
    struct listing known = {0}, given = {0};
    size_t index;
    if (join->n_ps_addresses == controller->ps_count &&
        listing_other_port(ours, theirs, controller->ps_count, &index))
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "its configuration has ps %zu at %.200s, that of ps 0 at %.200s; give every task the "
            "same",
            index, theirs[index], ours[index]);
    listing_add_addresses(&known, ours, controller->ps_count);
    listing_add_addresses(&given, theirs, join->n_ps_addresses);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "its configuration has the ps %s, that of ps 0 %s; give every task the same, in the same "
        "order",
        listing_end(&given), listing_end(&known));
}

/* One process would be two ps, whether or not ps 0 has a list to compare with. */
static enum sumac_status
refuse_twice(const wire_join_request *join, size_t first, size_t second, struct sumac_error *error)
{
    assert(first < second);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "its configuration has %s as ps %zu and as ps %zu; give each ps its own address",
        join->ps_addresses[first], first, second);
}

/* Who is no member may have been given the address of one ps. */
static enum sumac_status check_ps(
    const struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    const char *ours[LANE_PS_MAX];
    const size_t count = join->n_ps_addresses;

    assert(count <= LANE_PS_MAX); /* check_addresses has refused more */
    const bool member = join->role == SUMAC__V1__ROLE__ROLE_MEMBER;
    size_t first, second;
    if (listing_names_twice((const char *const *)join->ps_addresses, count, &first, &second))
        return refuse_twice(join, first, second, error);
    if (controller->ps_count == 0 || count == 0 || (count == 1 && !member))
        return SUMAC_OK;
    for (uint32_t ps = 0; ps < controller->ps_count; ps++)
        ours[ps] = controller->peers[ps].address;
    if (listing_same_ps(ours, controller->ps_count, (const char *const *)join->ps_addresses, count))
        return SUMAC_OK;
    return refuse_ps(controller, join, ours, error);
}

static enum sumac_status refuse_members(
    const struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    assert(controller->members_listed);
    struct listing given = {0};
    for (size_t i = 0; i < join->n_members; i++)
        listing_add_task(&given, join->members[i]->job, join->members[i]->index);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "its configuration lists %s, that of ps 0 %s; give every task the same",
        listing_end(&given), controller_tasks_text(controller, CONTROLLER_TASKS_LISTED));
}

uint32_t controller_on_loss(const struct controller *controller)
{
    return controller->config->loss_fails ? SUMAC__V1__ON_LOSS__ON_LOSS_FAIL
                                          : SUMAC__V1__ON_LOSS__ON_LOSS_CONTINUE;
}

/* Who goes by other rules of synchronous steps would wait for what does not come. */
static enum sumac_status check_step_options(
    const struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    const uint32_t members = controller_step_members(controller);
    const uint32_t quorum =
        controller->config->step_quorum != 0 ? controller->config->step_quorum : members;
    const uint32_t own = controller_on_loss(controller), given = (uint32_t)join->on_loss;

    assert(quorum <= members || members == 0);
    if (join->step_members != 0 && join->step_members != members)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "it takes synchronous steps to begin with %u members, and ps 0 with %u (--members, or "
            "as many as its configuration lists): give both the same",
            join->step_members, members);
    if (join->step_quorum != 0 && join->step_quorum != quorum)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "it takes a synchronous step to need %u contributions, and ps 0 %u (--quorum, or as "
            "many as there are members): give both the same",
            join->step_quorum, quorum);
    if (given != SUMAC__V1__ON_LOSS__ON_LOSS_UNSPECIFIED && given != own)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "it takes a loss to %s, and ps 0 was started with --on-loss %s: give both the same",
            given == SUMAC__V1__ON_LOSS__ON_LOSS_FAIL       ? "fail synchronous steps"
            : given == SUMAC__V1__ON_LOSS__ON_LOSS_CONTINUE ? "let synchronous steps go on"
                                                            : "do what no version knows",
            own == SUMAC__V1__ON_LOSS__ON_LOSS_FAIL ? "fail" : "continue");
    return SUMAC_OK;
}

/* Where ps 0 lists none it may have been told how many begin the synchronous steps: those who do
 * list as many. */
static enum sumac_status check_member_count(
    const struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    const uint32_t told = controller->config->step_members;

    assert(join->task != NULL); /* of a member */
    if (controller->initials >= told || join->n_members == 0 || join->members_partial ||
        join->n_members == told)
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "its configuration lists %zu chiefs and workers, and ps 0 was started with --members %u: "
        "give both the same number, or list no workers",
        join->n_members, told);
}

/* A list that is whole contradicts what it leaves out; one that is not contradicts nothing by
 * that. */
static enum sumac_status check_members(
    struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    if (!controller->members_listed || join->n_members == 0)
        return SUMAC_OK;
    const uint64_t look = ++controller->lists_looked_at;
    for (size_t i = 0; i < join->n_members; i++) {
        struct controller_task *task = controller_task_find(controller, join->members[i]);
        if (task != NULL && task->listed)
            task->named = look;
        else if (!controller->config->members_partial)
            return refuse_members(controller, join, error);
    }
    LIST_FOREACH(const struct controller_task, task, &controller->tasks, in_controller)
        if (task->listed && task->named != look && !join->members_partial)
            return refuse_members(controller, join, error);
    return SUMAC_OK;
}

/* They are in the order of the members. */
static enum sumac_status
read_member_addresses(const wire_join_request *join, struct sumac_error *error)
{
    if (join->n_member_addresses != 0 && join->n_member_addresses != join->n_members)
        return fail_invalid(
            error, SUMAC_REASON_MALFORMED,
            "it names %zu members and %zu addresses of members; give as many, or none",
            join->n_members, join->n_member_addresses);
    for (size_t i = 0; i < join->n_member_addresses; i++) {
        const wire_task_name *member = join->members[i];
        const char *address = join->member_addresses[i];
        const enum sumac_status status = check_address(member->job, member->index, address, error);
        if (status != SUMAC_OK)
            return status;
        if (address[0] == '\0')
            return fail_invalid(
                error, SUMAC_REASON_MALFORMED,
                "its address of %s %u is empty: give the addresses of all members, or none",
                member->job, member->index);
    }
    return SUMAC_OK;
}

/* One address of two tasks: the lists have other orders. What differs beyond the first
 * ADDRESSES_LOOKED_AT is not looked for. */
static enum sumac_status check_member_addresses(
    const struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    const enum sumac_status status = read_member_addresses(join, error);
    uint32_t looked_at = 0;

    assert(controller->tasks_pool.used <= CONTROLLER_TASKS_MAX);
    if (status != SUMAC_OK)
        return status;
    for (size_t i = 0; i < join->n_member_addresses && looked_at < ADDRESSES_LOOKED_AT; i++) {
        const char *address = join->member_addresses[i];
        const struct controller_task *own = controller_task_find(controller, join->members[i]);
        if (own == NULL || own->address == NULL || strcmp(own->address, address) == 0)
            continue;
        looked_at++;
        LIST_FOREACH(const struct controller_task, task, &controller->tasks, in_controller)
            if (task->address != NULL && strcmp(task->address, address) == 0)
                return fail(
                    error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
                    "its configuration has %.80s as %s %u, that of ps 0 as %s %u; give every task "
                    "the same, in the same order",
                    address, own->key.job, own->key.index, task->key.job, task->key.index);
    }
    return SUMAC_OK;
}

/* A member of another run may have the addresses of this one. */
static enum sumac_status check_run(
    const struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    struct run_identity theirs;
    char our_text[RUN_IDENTITY_TEXT_BYTES], their_text[RUN_IDENTITY_TEXT_BYTES];
    const enum sumac_status status = wire_identity_read(join->identity, &theirs, error);

    if (status != SUMAC_OK || !run_identity_differs(&controller->config->identity, &theirs))
        return status;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "it is of %s, and ps 0 of %s; give each run its own addresses, or set SUMAC_RUN to the "
        "same text in all processes to join on purpose",
        run_identity_print(&theirs, their_text),
        run_identity_print(&controller->config->identity, our_text));
}

/* Two processes that live would replace each other for ever. */
static enum sumac_status check_contested(
    struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    struct controller_task *task = controller_task_find(controller, join->task);
    const struct controller_session *present = controller->sessions.first;

    assert(join->task != NULL);
    if (task == NULL || !task->contested)
        return SUMAC_OK;
    while (present != NULL &&
           (present->task != task || present->state >= CONTROLLER_SESSION_CLOSING))
        present = present->in_controller.next;
    if (present == NULL) { /* the one that was kept has ended */
        task->contested = false;
        return SUMAC_OK;
    }
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "%s is process %" PRIu32 " on %s, which joined %s and lives; processes of this task have "
        "replaced each other %u times: " CLOSE_CAUSE_REPLACED_REMEDY,
        present->label, present->pid, present->host[0] != '\0' ? present->host : "an unknown host",
        controller_ago(controller, present->joined_us), CONTROLLER_FLAPS_MAX);
}

/* ---- who may join, and whether there is a place ---- */

/* Where the configuration lists members there are no others. */
static enum sumac_status check_listed(
    struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    assert(join->task != NULL);
    const struct controller_task *task = controller_task_find(controller, join->task);
    if (!controller->members_listed || (task != NULL && task->listed))
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "it is no member of this cluster, which lists %s: give every task the same cluster "
        "configuration, or join as an observer",
        controller_tasks_text(controller, CONTROLLER_TASKS_LISTED));
}

/* What the tables have no room for is refused before any of it is in them. */
static enum sumac_status
check_names(struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    uint32_t fresh = 0;

    if (controller->members_listed)
        return SUMAC_OK;
    assert(controller->tasks_pool.used <= CONTROLLER_TASKS_MAX);
    if (join->n_members > CONTROLLER_NAMED_MAX) /* each is looked for among all tasks */
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
            "it names %zu members, and ps 0 takes %u at most: list them in its own cluster "
            "configuration",
            join->n_members, CONTROLLER_NAMED_MAX);
    for (size_t i = 0; i < join->n_members && fresh <= CONTROLLER_NAMED_MAX; i++) {
        const struct controller_task *task = controller_task_find(controller, join->members[i]);
        fresh += task == NULL || !task->listed;
    }
    const uint32_t known = controller_tasks_count(controller, CONTROLLER_TASKS_LISTED);
    if (known + fresh > CONTROLLER_NAMED_MAX)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
            "it names %zu members, ps 0 knows %u and takes %u in all: list them in its own "
            "cluster configuration",
            join->n_members, known, CONTROLLER_NAMED_MAX);
    const size_t needed = controller->tasks_pool.used + fresh + 1;
    if (needed <= CONTROLLER_TASKS_MAX ||
        needed - controller_tasks_forgettable(controller) <= CONTROLLER_TASKS_MAX)
        return SUMAC_OK;
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
        "ps 0 knows %zu tasks, it names %u more, %u are the most, and too few have left: list the "
        "members in the cluster configuration of ps 0",
        (size_t)controller->tasks_pool.used, fresh, CONTROLLER_TASKS_MAX);
}

static void count_others(
    const struct controller *controller, const struct controller_task *task, struct places *places)
{
    LIST_FOREACH(const struct controller_session, other, &controller->sessions, in_controller) {
        if (other->state == CONTROLLER_SESSION_SETTLED || (task != NULL && other->task == task))
            continue;
        places->taken++;
        places->observers += other->task == NULL;
    }
}

/* The members' places are their own: as many as are listed, or half of all where none is. */
static enum sumac_status check_places(
    const struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    const uint32_t sessions_max = controller->config->sessions_max,
                   listed = controller_tasks_count(controller, CONTROLLER_TASKS_LISTED);
    const bool member = join->role == SUMAC__V1__ROLE__ROLE_MEMBER;
    const uint32_t kept = listed > 0 ? listed : sessions_max / 2;
    const uint32_t observers_max = kept < sessions_max ? sessions_max - kept : 0;
    struct places places = {0};

    assert(!member || join->task != NULL); /* controller_join_check has refused it */
    count_others(controller, member ? controller_task_find(controller, join->task) : NULL, &places);
    if (places.taken >= sessions_max)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
            "%u sessions are open: start the ps with a larger --sessions-max", places.taken);
    if (!member && places.observers >= observers_max)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_TOO_MANY_SESSIONS,
            "%u observers are open, and %u of %u places are the members': start the ps with a "
            "larger --sessions-max",
            places.observers, sessions_max - observers_max, sessions_max);
    assert(places.observers <= places.taken);
    return SUMAC_OK;
}

enum sumac_status controller_join_admit(
    struct controller *controller, const wire_join_request *join, struct sumac_error *error)
{
    const bool member = join->role == SUMAC__V1__ROLE__ROLE_MEMBER;

    if (check_addresses(controller, join, error) != SUMAC_OK ||
        (member && check_run(controller, join, error) != SUMAC_OK) ||
        check_ps(controller, join, error) != SUMAC_OK ||
        (member && check_member_count(controller, join, error) != SUMAC_OK) ||
        check_step_options(controller, join, error) != SUMAC_OK ||
        (member && (check_members(controller, join, error) != SUMAC_OK ||
                    check_listed(controller, join, error) != SUMAC_OK ||
                    check_member_addresses(controller, join, error) != SUMAC_OK ||
                    check_contested(controller, join, error) != SUMAC_OK ||
                    check_names(controller, join, error) != SUMAC_OK)))
        return error->status;
    return check_places(controller, join, error);
}
