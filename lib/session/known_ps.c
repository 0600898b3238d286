/* SPDX-License-Identifier: Apache-2.0 */
/* known_ps.c -- the ps as this session knows them: where each listens, how long it is tried, and
 * whether the one that answers is still the same. */
#include "deeds.h"

#include "loopback.h"

const char *ps_address(const struct session *session, uint32_t ps)
{
    const char *address = ps < session->config.ps_count ? session->config.ps_addresses[ps] : "";

    return address[0] == '\0' ? "an unknown address" : address;
}

const char *ps_remedy(const struct session *session, uint32_t ps, const char *otherwise)
{
    const struct session_config *config = &session->config;

    return loopback_remedy(
        ps_address(session, ps), (struct address_list){config->ps_addresses, config->ps_count},
        (struct address_list){config->members_addresses, config->member_count}, otherwise);
}

bool ps_is_started(const struct session *session, uint32_t ps)
{
    assert(ps < session->link_count);
    return ps == 0 && session->config.ps_starter != NULL;
}

bool link_is_known(const struct session *session, const struct link *link)
{
    if (session->config.reader)
        return link->incarnation != 0;
    return link->knows_grant || link->ps == 0;
}

void fail_restarted(
    const struct session *session, const struct link *link, struct sumac_error *error)
{
    (void)fail(
        error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
        "ps %" PRIu32 " at %s was restarted and its state is lost; start the run again", link->ps,
        ps_address(session, link->ps));
}

void fail_another_ps(
    const struct session *session, const struct link *link, uint32_t ps, struct sumac_error *error)
{
    assert(ps != link->ps);
    (void)fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "ps %" PRIu32 " answers at %s, which this configuration calls ps %" PRIu32 ": %s", ps,
        ps_address(session, link->ps), link->ps, ps_remedy(session, link->ps, OTHER_PS_REMEDY));
}

/* Which ps has that incarnation; NULL: none that is known. */
static const struct link *find_incarnation(const struct session *session, uint64_t incarnation)
{
    assert(session->link_count > 0);
    for (uint32_t i = 0; incarnation != 0 && i < session->link_count; i++)
        if (session->links[i].incarnation == incarnation)
            return &session->links[i];
    return NULL;
}

bool link_is_same(
    const struct session *session, const struct link *link, const struct ps_identity *it,
    struct sumac_error *error)
{
    const bool other_cluster = session->state.cluster_id != 0 && it->cluster_id != 0 &&
                               it->cluster_id != session->state.cluster_id;

    const struct link *other = find_incarnation(session, it->incarnation);

    assert(link->ps < session->link_count);
    if (other != NULL && other != link) {
        fail_another_ps(session, link, other->ps, error);
    } else if (other_cluster && !link_is_known(session, link)) {
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
            "ps %" PRIu32 " at %s belongs to another cluster, %016" PRIx64 " instead of %016" PRIx64
            "; check the addresses of job ps",
            link->ps, ps_address(session, link->ps), it->cluster_id, session->state.cluster_id);
    } else if (other_cluster || (link->incarnation != 0 && it->incarnation != link->incarnation)) {
        fail_restarted(session, link, error);
    } else if (session->state.epoch != 0 && it->epoch != session->state.epoch) {
        (void)fail(
            error, SUMAC_DATA_LOSS, SUMAC_REASON_STATE_LOST,
            "ps %" PRIu32 " at %s went back to epoch %" PRIu64
            " and this session is of epoch %" PRIu64 "; start the run again",
            link->ps, ps_address(session, link->ps), it->epoch, session->state.epoch);
    } else {
        return true;
    }
    return false;
}
