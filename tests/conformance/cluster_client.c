/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_client.c -- the program as one worker of several: they agree on what became of a case by
 * a collective. */
#include "cluster_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAID_BYTES 512u

static struct {
    struct sumac_cluster cluster;
    struct sumac_client *client;
    struct sumac_client_facts facts;
    bool serves_all;
} now;

enum sumac_status cluster_client_open(struct sumac_error *error)
{
    enum sumac_status status = sumac_cluster_from_environment(NULL, &now.cluster, error);

    if (status != SUMAC_OK || now.cluster.job_count == 0)
        return status;
    const struct sumac_client_options options = {.cluster = &now.cluster};
    status = sumac_client_open(&options, &now.client, error);
    if (status == SUMAC_OK)
        sumac_client_describe(now.client, &now.facts);
    else
        sumac_cluster_deinit(&now.cluster);
    return status;
}

void cluster_client_close(void)
{
    struct sumac_error error = {0};

    if (now.client == NULL)
        return;
    if (sumac_client_leave(now.client, SUMAC_LEAVING_DONE, &error) != SUMAC_OK)
        fprintf(stderr, "%s\n", error.text);
    sumac_client_close(now.client);
    sumac_cluster_deinit(&now.cluster);
    now.client = NULL;
}

void cluster_client_serve_all(bool all) { now.serves_all = all; }

bool cluster_client_serves_all(void) { return now.serves_all; }

struct sumac_client *cluster_client(void) { return now.client; }

uint32_t cluster_client_ps_count(void) { return now.client == NULL ? 0 : now.facts.ps_count; }

uint32_t cluster_client_index(void) { return now.facts.member_index; }

uint32_t cluster_client_count(void) { return now.client == NULL ? 1 : now.facts.member_count; }

bool cluster_client_agree(const char *case_id, uint32_t workers, char *why, size_t why_bytes)
{
    char said[SAID_BYTES] = "", name[256];
    struct sumac_member tasks[8];
    struct sumac_error error;
    struct sumac_collective_result result = {.buffer = NULL};

    (void)snprintf(said, sizeof said, "%s", why);
    (void)snprintf(name, sizeof name, "what became of %.220s", case_id);
    for (uint32_t i = 0; i < workers && i < 8; i++)
        tasks[i] = (struct sumac_member){"worker", i};
    const struct sumac_collective_options options = {
        .name = name,
        .tasks = tasks,
        .task_count = workers,
        .timeout_ms = CLUSTER_CLIENT_TIMEOUT_MS};
    const struct sumac_tensor tensor =
        sumac_tensor_over(said, SUMAC_UINT8, SUMAC_SHAPE(SAID_BYTES));
    if (sumac_client_all_gather(now.client, &options, &tensor, &result, NULL, &error) != SUMAC_OK) {
        (void)snprintf(why, why_bytes, "the workers do not meet: %.400s", error.text);
        return false;
    }
    const char *all = sumac_tensor_data(&result.value);
    for (uint32_t i = 0; i < workers; i++)
        if (all[i * SAID_BYTES] != '\0') {
            (void)snprintf(why, why_bytes, "worker %" PRIu32 ": %.500s", i, all + i * SAID_BYTES);
            break;
        }
    sumac_buffer_unref(result.buffer);
    return true;
}
