/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h -- which tasks a run is made of, where they listen, and which one this process is.
 *
 * TensorFlow's ClusterSpec and resolvers (tensorflow/python/distribute/cluster_resolver/). A
 * description is a value that owns its strings; it may be sparse: a job's indices need not be 0 …
 * n-1.
 */
#ifndef SUMAC_CLUSTER_H
#define SUMAC_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "sumac/status.h"

struct sumac_task {
    uint32_t index;
    char *address; /* "host:port" */
};

struct sumac_job {
    char *name;               /* "ps", "worker", "chief", "evaluator", or any other */
    struct sumac_task *tasks; /* in the order of their index */
    uint32_t task_count;
    bool sparse; /* was given as a map from index to address */
};

/* A chief or a worker. */
struct sumac_member {
    const char *job; /* "chief", "worker" */
    uint32_t index;
};

struct sumac_cluster {
    struct sumac_job *jobs; /* in the order they were given; none is empty */
    uint32_t job_count;
    char *task_type; /* this process's job; NULL: none was named */
    uint32_t task_index;
    bool task_index_given;
    bool told_only_itself; /* Kubeflow's dynamic form: of its own job the task knows itself alone */
    char *rpc_layer;       /* NULL: none */
    char *session_master;  /* NULL: none */
    char *unread_key;      /* without a cluster: a further key, which may be meant as one */
    bool empty;            /* there is a cluster, and it has no job, not even an empty one */
};

/* What a caller says over what the configuration says; a zeroed one overrides nothing. Index 0 is
 * an override too. */
struct sumac_cluster_overrides {
    const char *task_type;
    bool has_task_index;
    uint32_t task_index;
    const char *rpc_layer;
};

/* Parse the text of a TF_CONFIG (NULL or empty: no cluster, no task). overrides NULL: none.
 *
 * Gives    *cluster; release with sumac_cluster_deinit.
 * Fails    INVALID_ARGUMENT, saying what is wrong, where (line and column when it is not JSON), and
 *          in which key.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_cluster_parse(
    const char *tf_config, const struct sumac_cluster_overrides *overrides,
    struct sumac_cluster *cluster, struct sumac_error *error);

/* The same for the environment variable TF_CONFIG of this process. Threads  any, while none sets
 * the environment. */
SUMAC_API SUMAC_CHECKED enum sumac_status sumac_cluster_from_environment(
    const struct sumac_cluster_overrides *overrides, struct sumac_cluster *cluster,
    struct sumac_error *error);

/* Free what a description owns and zero it; a zeroed one, or NULL, is fine. Threads  one at a
 * time. */
SUMAC_API void sumac_cluster_deinit(struct sumac_cluster *cluster);

/* The job of that name, or NULL. Lends  it, until the cluster's deinit. Threads  any. */
SUMAC_API const struct sumac_job *
sumac_cluster_job(const struct sumac_cluster *cluster, const char *name);
/* The address of a task, "host:port", or NULL. In Kubeflow's dynamic form (some job is a map, the
 * task's own job a list of one) that one is the own task's address whatever its index. Lends  it,
 * until the cluster's deinit. Threads  any. */
SUMAC_API const char *
sumac_cluster_address(const struct sumac_cluster *cluster, const char *job, uint32_t index);

/* TFConfigClusterResolver.master(): session_master if given; "" without jobs; else the own task's
 * address (a one-task cluster's too), after "rpc_layer://" if there is one.
 * Gives    *master; release with free.
 * Fails    INVALID_ARGUMENT: no task that the cluster has. RESOURCE_EXHAUSTED.
 * Threads  any. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_cluster_master(const struct sumac_cluster *cluster, char **master, struct sumac_error *error);

/* May this description run a parameter server, or a worker of one: at least one ps, at least one
 * worker for a worker, a task named? Fails  INVALID_ARGUMENT, saying what to add to TF_CONFIG. */
SUMAC_API SUMAC_CHECKED enum sumac_status
sumac_cluster_check_task(const struct sumac_cluster *cluster, struct sumac_error *error);

#endif
