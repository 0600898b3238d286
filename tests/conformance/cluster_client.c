/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_client.c -- the client of the cluster that TF_CONFIG describes. */
#include "cluster_client.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
    bool tried;
    struct sumac_client *client; /* NULL: error says why */
    struct sumac_error error;
} own;

bool cluster_client_is_there(void)
{
    const char *cluster = getenv("TF_CONFIG");

    return cluster != NULL && cluster[0] != '\0';
}

enum sumac_status cluster_client_get(struct sumac_client **client, struct sumac_error *error)
{
    if (!own.tried && sumac_client_open(NULL, &own.client, &own.error) != SUMAC_OK)
        own.client = NULL;
    own.tried = true;
    if (own.client == NULL) {
        *error = own.error;
        return own.error.status;
    }
    *client = own.client;
    return SUMAC_OK;
}

void cluster_client_close(void)
{
    struct sumac_error error = {0};

    if (own.client != NULL &&
        sumac_client_leave(own.client, SUMAC_LEAVING_DONE, &error) != SUMAC_OK)
        fprintf(stderr, "%s\n", error.text);
    sumac_client_close(own.client);
    own.client = NULL;
}
