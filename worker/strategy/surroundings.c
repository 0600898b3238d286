/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.c -- a strategy from the environment joins its cluster and leaves it. */
#include "surroundings.h"

#include <assert.h>
#include <stdlib.h>

#include "started_ps.h"

enum sumac_status surroundings_join(
    const struct sumac_cluster *cluster, struct surroundings *surroundings,
    struct sumac_error *error)
{
    const struct sumac_client_options options = {.cluster = cluster};

    assert(surroundings->client == NULL);
    return sumac_client_open(&options, &surroundings->client, error);
}

enum sumac_status surroundings_join_without_ps(
    const struct sumac_cluster *cluster, struct surroundings *surroundings,
    struct sumac_error *error)
{
    struct sumac_cluster with = {.job_count = 0};

    assert(surroundings->ps == 0);
    enum sumac_status status = started_ps_cluster(cluster, &with, error);

    if (status == SUMAC_OK && started_ps_is_ours(cluster))
        status = started_ps_start(cluster, &surroundings->ps, error);
    if (status == SUMAC_OK)
        status = surroundings_join(&with, surroundings, error);
    sumac_cluster_deinit(&with);
    return status;
}

enum sumac_status surroundings_leave(
    struct surroundings *surroundings, bool done, uint32_t timeout_ms, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    if (surroundings == NULL)
        return SUMAC_OK;
    if (surroundings->client != NULL && done) /* one that cannot leave is gone with its lease */
        status = sumac_client_leave(surroundings->client, SUMAC_LEAVING_DONE, error);
    sumac_client_close(surroundings->client);
    if (surroundings->ps > 0)
        started_ps_wait(surroundings->ps, timeout_ms);
    free(surroundings);
    return status;
}
