/* SPDX-License-Identifier: Apache-2.0 */
/* find.c -- which ps there are, before there is a session: each that is known is asked for a List
 * of no variables, which says who it is and who the others are.
 *
 * A reader waits for all of them, or (any_ps) for one. Who joins waits for ps 0, which waits for
 * the others itself; they are asked on until the join is answered, so that both sides can say who
 * is missing. Whoever is no member may know one ps alone: the first answer that names more of them
 * gives the list. Every five seconds a line says who is missing, and why.
 */
#include "deeds.h"

#include <string.h>

#include "silence.h"

#define REPORT_US 5000000u

static const struct unary_kind find_call;

/* ---- the ps that are known */

static bool make_links(struct session *session, uint32_t count)
{
    assert(count > 0);
    assert(count <= SESSION_PS_MAX);
    memory_give(&session->memory, session->links, session->link_count * sizeof *session->links);
    session->link_count = 0;
    session->links = memory_take(&session->memory, count * sizeof *session->links);
    if (session->links == NULL) {
        session->exhausted = true;
        return false;
    }
    memset(session->links, 0, count * sizeof *session->links);
    session->link_count = count;
    for (uint32_t i = 0; i < count; i++) {
        session->links[i].ps = i;
        session->links[i].unreached_us = session->now_us;
        session->links[i].collective_due_us = NEVER;
    }
    return true;
}

/* Each that is configured has its link, and whoever makes the calls knows where it listens. */
static bool begin_links(struct session *session)
{
    const struct session_config *config = &session->config;

    if (!make_links(session, config->ps_count))
        return false;
    struct session_effect *effect = effect_add(session, SESSION_EFFECT_ADDRESSES);
    effect->addresses = config->ps_addresses;
    effect->address_count = config->ps_count;
    return true;
}

bool links_learn(struct session *session, char *const *addresses, size_t count)
{
    struct session_config *config = &session->config;
    const char **merged = step_take(session, count * sizeof *merged);

    assert(count > 0);
    assert(count <= SESSION_PS_MAX);
    if (merged == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const bool configured = i < config->ps_count && config->ps_addresses[i][0] != '\0';
        merged[i] = configured ? config->ps_addresses[i] : addresses[i];
    }
    const char *const *kept = session_keep_texts(session, merged, (uint32_t)count);
    session->told_addresses =
        session_keep_texts(session, (const char *const *)addresses, (uint32_t)count);
    if (session->exhausted)
        return false;
    config->ps_addresses = kept;
    config->ps_count = (uint32_t)count;
    return begin_links(session);
}

/* ---- who is missing */

static const char *why_missing(const struct session *session, uint32_t ps)
{
    const struct unary *call = call_of_kind(session, &find_call, ps);

    if (call == NULL)
        return "its address is not known";
    return call->why.status == SUMAC_OK ? "no answer yet" : call->why.text;
}

/* The first ps that is missing; link_count: none is. */
static uint32_t first_missing(const struct session *session)
{
    uint32_t ps = 0;

    while (ps < session->link_count && session->links[ps].found)
        ps++;
    return ps;
}

struct phrase {
    char text[384];
};

/* "ps 1 at h1:2222" */
static struct phrase name_ps(const struct session *session, uint32_t ps)
{
    struct phrase name;

    assert(ps < session->link_count);
    if (ps_is_started(session, ps))
        (void)text_print(
            name.text, sizeof name.text, "%s at %s, which starts the ps",
            session->config.ps_starter, ps_address(session, ps));
    else
        (void)text_print(
            name.text, sizeof name.text, "ps %" PRIu32 " at %s", ps, ps_address(session, ps));
    return name;
}

/* "; start it", or "" where `why` names the remedy. `otherwise`: of a ps that is not started by a
 * member. */
static struct phrase
missing_remedy(const struct session *session, uint32_t ps, const char *why, const char *otherwise)
{
    struct phrase start = {""}, remedy;

    assert(otherwise != NULL);
    if (ps_is_started(session, ps))
        (void)text_print(
            start.text, sizeof start.text, "start %s, or correct its address",
            session->config.ps_starter);
    const char *const text = silence_remedy(
        why, ps_remedy(session, ps, ps_is_started(session, ps) ? start.text : otherwise));
    (void)text_print(remedy.text, sizeof remedy.text, "%s%s", text[0] == '\0' ? "" : "; ", text);
    return remedy;
}

static void
fail_missing(const struct session *session, uint32_t ps, const char *why, struct sumac_error *error)
{
    assert(!session->links[ps].found);
    (void)fail(
        error, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING, "%s%s did not %s within %s (%.300s)%s",
        name_ps(session, ps).text, ps_is_started(session, ps) ? "," : "",
        silence_is_mute(why) ? "answer" : "appear",
        text_time_us(session->now_us - session->began_us).text, why,
        missing_remedy(
            session, ps, why,
            "start it, or correct its address; if its run has ended, there is nothing to join")
            .text);
}

bool find_missing(const struct session *session, struct sumac_error *error)
{
    const uint32_t ps = first_missing(session);

    if (ps == session->link_count)
        return false;
    fail_missing(session, ps, why_missing(session, ps), error);
    return true;
}

static void report(struct session *session)
{
    const uint64_t until_us = session->patience_until_us;
    const struct text_time left =
        text_time_left(until_us > session->now_us ? until_us - session->now_us : 0);

    for (uint32_t ps = 0; ps < session->link_count; ps++) {
        const char *const why = why_missing(session, ps);
        if (!session->links[ps].found)
            effect_log(
                session, "waiting for %s: %s%s; gives up in %s", name_ps(session, ps).text, why,
                missing_remedy(session, ps, why, "").text, left.text);
    }
    if (first_missing(session) == session->link_count)
        effect_log(
            session,
            "waiting for ps 0 at %s to open the session at every ps, for %s; gives up in %s",
            ps_address(session, 0), text_time_us(session->now_us - session->began_us).text,
            left.text);
}

void find_check(struct session *session)
{
    if (session->phase != PHASE_FINDING && session->phase != PHASE_JOINING)
        return;
    if (session->phase == PHASE_FINDING && session->now_us >= session->patience_until_us &&
        find_missing(session, &session->end)) {
        session_end(session, &session->end, NULL);
        return;
    }
    if (session->now_us >= session->report_us) {
        report(session);
        session->report_us = session->now_us + REPORT_US;
    }
    effect_wake(session, session->report_us);
    if (session->phase == PHASE_FINDING)
        effect_wake(session, session->patience_until_us);
}

/* ---- asking */

/* A session that joins asks the others than ps 0 for longer than it waits: so it is the join that
 * gives up, and names who is missing. */
static void ask(struct session *session, uint32_t ps)
{
    const bool is_other = !session->config.reader && ps != 0;

    assert(!session->links[ps].found);
    if (session->config.ps_addresses[ps][0] != '\0')
        call_begin(
            session, &find_call, ps, session->began_us + (is_other ? 2 : 1) * patience_us(session));
}

static void ask_all(struct session *session)
{
    for (uint32_t ps = 0; ps < session->link_count && !session->exhausted; ps++)
        ask(session, ps);
}

static const wire_message *compose(struct session *session, const struct unary *call)
{
    wire_list_request *list = step_take(session, sizeof *list);

    (void)call;
    assert(session->phase == PHASE_FINDING || session->phase == PHASE_JOINING);
    if (list == NULL)
        return NULL;
    *list = (wire_list_request)WIRE_LIST_REQUEST_INIT;
    list->after_id = UINT64_MAX; /* no variables */
    return &list->base;
}

static bool is_member(const struct session *session)
{
    return !session->config.reader && session->config.role == WIRE_ROLE_MEMBER;
}

/* The single address of a client that is no member may be that of any ps. */
static bool is_another_ps(const struct session *session, uint32_t ps, const wire_list_reply *reply)
{
    assert(ps < session->link_count);
    return reply->ps != ps && (is_member(session) || session->link_count > 1);
}

/* While a cluster is started again, some of its ps may be of the new one and some of the old. What
 * counts is the cluster that ps 0 is of. */
static bool is_of_one_cluster(
    const struct session *session, const struct unary *call, const wire_message *message,
    struct sumac_error *why)
{
    const struct link *first = &session->links[0];
    const wire_list_reply *reply = (const wire_list_reply *)message;
    const uint64_t its = reply->cluster_id;

    if (first->cluster_id == 0 || its == 0 || its == first->cluster_id ||
        is_another_ps(session, call->wanted.ps, reply))
        return true;
    (void)fail(
        why, SUMAC_UNAVAILABLE, SUMAC_REASON_PS_MISSING,
        "it is of cluster %016" PRIx64 ", and ps 0 of %016" PRIx64, its, first->cluster_id);
    return false;
}

/* Those that answered earlier, and for another cluster, are asked again. */
static void follow_ps_0(struct session *session)
{
    const uint64_t cluster_id = session->links[0].cluster_id;

    assert(session->links[0].found);
    for (uint32_t ps = 1; ps < session->link_count && !session->exhausted; ps++) {
        struct link *link = &session->links[ps];
        if (link->cluster_id == 0 || link->cluster_id == cluster_id)
            continue;
        link->found = false;
        ask(session, ps);
    }
}

static bool is_enough(const struct session *session)
{
    uint32_t found = 0;

    assert(session->link_count > 0);
    if (!session->config.reader)
        return session->links[0].found;
    for (uint32_t ps = 0; ps < session->link_count; ps++)
        found += session->links[ps].found;
    return found == session->link_count || session->config.any_ps;
}

/* A member keeps the list of its configuration: ps 0 compares it. */
static bool names_more(const struct session *session, const wire_list_reply *reply)
{
    return session->phase == PHASE_FINDING && !is_member(session) &&
           reply->n_ps_addresses > session->link_count && reply->n_ps_addresses <= SESSION_PS_MAX;
}

/* A ps whose run is over exits, and another one may be started in its place. */
static bool
may_appear(const struct session *session, const struct unary *call, const struct sumac_error *error)
{
    (void)session;
    (void)call;
    return is_worth_retrying(error) || error->reason == SUMAC_REASON_STATE_LOST ||
           error->reason == SUMAC_REASON_TERMINATED || error->reason == SUMAC_REASON_RUN_ENDED;
}

static void
not_found(struct session *session, const struct unary *call, const struct sumac_error *error)
{
    const uint32_t ps = call->wanted.ps;

    if (may_appear(session, call, error))
        fail_missing(
            session, ps, call->why.status == SUMAC_OK ? "no answer" : call->why.text,
            &session->end);
    else if (error->reason != SUMAC_REASON_UNSPECIFIED)
        (void)fail(
            &session->end, error->status, error->reason, "ps %" PRIu32 " at %s: %s", ps,
            ps_address(session, ps), error->text);
    else if (ps_is_started(session, ps))
        (void)fail(
            &session->end, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
            "what listens at %s, the address of %s, which starts the ps, is no ps (%.200s); check "
            "that address",
            ps_address(session, ps), session->config.ps_starter, error->text);
    else
        (void)fail(
            &session->end, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
            "what listens at %s, the address of ps %" PRIu32
            ", is no ps (%.200s); check the addresses of job ps",
            ps_address(session, ps), ps, error->text);
    session_end(session, &session->end, NULL);
}

static void answered(
    struct session *session, const struct unary *call, const wire_message *message,
    const struct sumac_error *error)
{
    const wire_list_reply *reply = (const wire_list_reply *)message;

    assert(session->phase == PHASE_FINDING || session->phase == PHASE_JOINING);
    if (error != NULL) {
        not_found(session, call, error);
        return;
    }
    if (names_more(session, reply)) {
        /* Only now it is known which of them the one address belongs to: all are asked anew. */
        find_end(session);
        session->config.ps_count = 0;
        if (links_learn(session, reply->ps_addresses, reply->n_ps_addresses))
            ask_all(session);
        return;
    }
    struct link *link = &session->links[call->wanted.ps];
    assert(!link->found); /* nobody else asks */
    if (is_another_ps(session, link->ps, reply)) {
        fail_another_ps(session, link, reply->ps, &session->end);
        session_end(session, &session->end, NULL);
        return;
    }
    link->found = true;
    link->incarnation = reply->ps_incarnation;
    link->cluster_id = reply->cluster_id;
    link->heard_us = link->answered_us = session->now_us;
    if (link->ps == 0 || session->state.cluster_id == 0)
        session->state.cluster_id = reply->cluster_id;
    if (reply->epoch > session->state.epoch)
        session->state.epoch = reply->epoch;
    if (link->ps == 0 && reply->cluster_id != 0)
        follow_ps_0(session);
    if (session->phase == PHASE_FINDING && is_enough(session))
        session->phase = PHASE_FOUND;
}

static const struct unary_kind find_call = {
    .service = WIRE_VARIABLES,
    .method = WIRE_VARIABLES_LIST,
    .compose = compose,
    .accepts = is_of_one_cluster,
    .over = answered,
    .is_made_again = may_appear};

void find_end(struct session *session) { calls_drop(session, &find_call); }

void find_begin(struct session *session)
{
    if (session->phase != PHASE_NEW)
        return;
    session->phase = PHASE_FINDING;
    session->began_us = session->now_us;
    session->patience_until_us = session->now_us + patience_us(session);
    session->report_us = session->now_us + REPORT_US;
    if (begin_links(session))
        ask_all(session);
    find_check(session);
}
