/* SPDX-License-Identifier: Apache-2.0 */
/* one_case.c -- a case of a strategy: what it gives. */
#include "one_case.h"

#include <stdio.h>
#include <string.h>

#include "cluster_client.h"

#define WORKERS_MAX 4u /* relay.c starts so many */
#define DEVICES_COUNTED_MAX 16u

static const char *const strategy_keys[] = {"kind", "workers", "replicas", "ps", NULL};

json_t *one_get(const struct one_case *one, const char *key)
{
    return json_object_get(one->given, key);
}

bool one_is(const struct one_case *one, const char *key, const char *text)
{
    const char *own = json_string_value(one_get(one, key));

    return own != NULL && strcmp(own, text) == 0;
}

/* ---- what the case gives */

struct sumac_value *one_read_value(struct one_case *one, json_t *given)
{
    struct sumac_value *value = case_value_read(one->run, given, &one->replicas);

    if (value != NULL)
        return value;
    one->status = SUMAC_INVALID_ARGUMENT;
    (void)snprintf(
        one->error.text, sizeof one->error.text, "the library has no such value: %.400s",
        one->run->why);
    one->broken = one_get(one, "error") == NULL;
    if (!one->broken)
        one->run->why[0] = '\0';
    return NULL;
}

/* What strategies are made on; NULL: CPUs. */
static const char *devices;

bool one_has_devices(void) { return devices != NULL; }

struct sumac_value *one_bring(struct one_case *one, struct sumac_value *value)
{
    struct sumac_value *placed = NULL;
    struct sumac_error error;

    if (devices == NULL || value == NULL ||
        sumac_strategy_to_devices(one->strategy, value, &placed, &error) != SUMAC_OK)
        return value;
    sumac_value_unref(value);
    return placed;
}

struct sumac_value *one_read_args(struct one_case *one)
{
    json_t *given = one_get(one, "args");
    json_t *tuple = json_pack("{s:O}", "tuple", given);
    struct sumac_value *args =
        given == NULL ? sumac_value_tuple(NULL, 0) : one_read_value(one, tuple);

    json_decref(tuple);
    return one_bring(one, args);
}

struct sumac_value *one_read_kwargs(struct one_case *one)
{
    json_t *given = one_get(one, "kwargs");
    json_t *dict = json_pack("{s:O}", "dict", given);
    struct sumac_value *kwargs =
        given == NULL ? sumac_value_dict(NULL, NULL, 0) : one_read_value(one, dict);

    json_decref(dict);
    return one_bring(one, kwargs);
}

enum sumac_status one_status_of(const char *name)
{
    for (int status = SUMAC_OK; status <= SUMAC_UNAUTHENTICATED; status++)
        if (name != NULL && strcmp(name, sumac_status_name((enum sumac_status)status)) == 0)
            return (enum sumac_status)status;
    return SUMAC_UNKNOWN;
}

/* ---- its strategy */

static const char *const kinds[] = {
    [SUMAC_STRATEGY_DEFAULT] = "default",
    [SUMAC_STRATEGY_ONE_DEVICE] = "one_device",
    [SUMAC_STRATEGY_MIRRORED] = "mirrored",
    [SUMAC_STRATEGY_MULTI_WORKER] = "multi_worker",
    [SUMAC_STRATEGY_PARAMETER_SERVER] = "parameter_server"};
#define KINDS (sizeof kinds / sizeof kinds[0])

static enum sumac_strategy_kind kind_of(const char *name)
{
    for (uint32_t i = 1; name != NULL && i < KINDS; i++)
        if (strcmp(name, kinds[i]) == 0)
            return (enum sumac_strategy_kind)i;
    return (enum sumac_strategy_kind)0;
}

static uint32_t number_or_one(json_t *given, const char *key)
{
    const uint32_t number = (uint32_t)json_integer_value(json_object_get(given, key));

    return number == 0 ? 1 : number;
}

enum sumac_status one_use_devices(const char *text, struct sumac_error *error)
{
    struct sumac_strategy *strategy = NULL;
    const struct sumac_strategy_options options = {
        .kind = SUMAC_STRATEGY_MIRRORED, .devices = text};
    const enum sumac_status status = sumac_strategy_create(&options, &strategy, error);

    sumac_strategy_destroy(strategy);
    if (status == SUMAC_OK)
        devices = text;
    return status;
}

/* The first so many of them, as far as they are named: "gpu:0" of "gpu:0,1". */
static const char *first_devices(uint32_t count, char *text, size_t text_bytes)
{
    (void)snprintf(text, text_bytes, "%s", devices);
    char *at = strchr(text, ':');
    for (uint32_t i = 0; at != NULL && i < count; i++)
        at = strchr(at + 1, ',');
    if (at != NULL)
        *at = '\0';
    return text;
}

/* NULL: why not, or that it is skipped. */
static struct sumac_strategy *open_strategy(
    struct cases_run *run, enum sumac_strategy_kind kind, uint32_t replicas, uint32_t workers)
{
    struct sumac_member tasks[WORKERS_MAX];
    char text[256];
    struct sumac_strategy *strategy = NULL;
    struct sumac_error error;

    for (uint32_t i = 0; i < workers && i < WORKERS_MAX; i++)
        tasks[i] = (struct sumac_member){"worker", i};
    const bool over_workers = kind == SUMAC_STRATEGY_MULTI_WORKER;
    const struct sumac_strategy_options options = {
        .kind = kind,
        .replicas = replicas,
        .devices = kind == SUMAC_STRATEGY_DEFAULT ? NULL
                   : devices == NULL              ? "cpu"
                                                  : first_devices(replicas, text, sizeof text),
        .client = kind < SUMAC_STRATEGY_MULTI_WORKER ? NULL : cluster_client(),
        .timeout_ms = CLUSTER_CLIENT_TIMEOUT_MS,
        .workers = over_workers ? tasks : NULL,
        .worker_count = over_workers ? workers : 0,
        .name = over_workers ? run->case_id : NULL};
    if (sumac_strategy_create(&options, &strategy, &error) != SUMAC_OK)
        (void)cases_fail(run, "no strategy: %s", error.text);
    return strategy;
}

/* As many replicas as there are devices for, of those that were named. */
static uint32_t count_devices(void)
{
    uint32_t count = 0;

    for (bool there = true; there && count < DEVICES_COUNTED_MAX;) {
        struct sumac_strategy *strategy = NULL;
        struct sumac_error error;
        char text[256];
        const struct sumac_strategy_options options = {
            .kind = SUMAC_STRATEGY_MIRRORED,
            .replicas = count + 1,
            .devices = first_devices(count + 1, text, sizeof text)};
        there = sumac_strategy_create(&options, &strategy, &error) == SUMAC_OK;
        count += there;
        sumac_strategy_destroy(strategy);
    }
    return count;
}

/* Is it a case that the devices do not do? Says so. */
static bool
is_beyond_devices(struct cases_run *run, enum sumac_strategy_kind kind, json_t *strategy)
{
    static uint32_t count; /* they are counted once */
    const uint32_t replicas = number_or_one(strategy, "replicas");

    if (devices == NULL)
        return false;
    count = count == 0 ? count_devices() : count;
    if (kind == SUMAC_STRATEGY_DEFAULT)
        (void)cases_skip(run, "the default strategy runs on no device");
    else if (replicas > count)
        (void)cases_skip(run, "it takes more GPUs than there are");
    return kind == SUMAC_STRATEGY_DEFAULT || replicas > count;
}

/* How many workers have a part in a case of that kind. 0: it cannot be run here, and why. */
static uint32_t
workers_of(struct cases_run *run, enum sumac_strategy_kind kind, json_t *strategy, bool *skipped)
{
    const uint32_t workers =
        kind == SUMAC_STRATEGY_MULTI_WORKER ? number_or_one(strategy, "workers") : 1;

    *skipped = false;
    if ((int)kind == 0 || workers > WORKERS_MAX) {
        (void)cases_fail(run, "no strategy of that kind, or of so many workers");
        return 0;
    }
    if (kind >= SUMAC_STRATEGY_MULTI_WORKER &&
        (cluster_client() == NULL || workers > cluster_client_count())) {
        *skipped = true;
        (void)cases_skip(run, "it takes ps, and more workers; --rpc starts some");
        return 0;
    }
    return workers;
}

static bool act_alone(
    struct one_case *one, enum sumac_strategy_kind kind, uint32_t workers,
    bool (*act)(struct one_case *one))
{
    const uint32_t replicas = number_or_one(one_get(one, "strategy"), "replicas");

    one->worker = workers > 1 ? cluster_client_index() : 0;
    one->replicas = (struct case_replicas){
        .first = one->worker * replicas, .count = replicas, .in_sync = workers * replicas};
    one->strategy = open_strategy(one->run, kind, replicas, workers);
    const bool passed = one->strategy != NULL && act(one);
    sumac_value_unref(one->result);
    sumac_strategy_destroy(one->strategy);
    return passed;
}

enum cases_result one_run(struct cases_run *run, json_t *given, bool (*act)(struct one_case *one))
{
    struct one_case one = {.run = run, .given = given};
    json_t *strategy = one_get(&one, "strategy");
    const enum sumac_strategy_kind kind =
        kind_of(json_string_value(json_object_get(strategy, "kind")));
    bool skipped;

    if (!cases_keys_known(run, strategy, "\"strategy\"", strategy_keys))
        return CASES_FAILED;
    const uint32_t workers = workers_of(run, kind, strategy, &skipped);
    if (workers == 0)
        return skipped ? CASES_SKIPPED : CASES_FAILED;
    if (is_beyond_devices(run, kind, strategy))
        return CASES_SKIPPED;
    if (cluster_client_index() >= workers)
        return cases_skip(run, "other workers run it");
    bool passed = act_alone(&one, kind, workers, act);
    if (workers > 1) {
        if (!passed && run->why[0] == '\0')
            (void)cases_fail(run, "it has not passed");
        passed = cluster_client_agree(run->case_id, workers, run->why, sizeof run->why) &&
                 run->why[0] == '\0';
    }
    return passed ? CASES_PASSED : CASES_FAILED;
}
