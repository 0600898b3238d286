/* SPDX-License-Identifier: Apache-2.0 */
/* one_case.c -- a case of a strategy: what it gives. */
#include "one_case.h"

#include <stdio.h>
#include <string.h>

#include "cluster_client.h"

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
    struct sumac_value *value = case_value_read(one->run, given, one->replicas);

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

struct sumac_value *one_read_args(struct one_case *one)
{
    json_t *given = one_get(one, "args");
    json_t *tuple = json_pack("{s:O}", "tuple", given);
    struct sumac_value *args =
        given == NULL ? sumac_value_tuple(NULL, 0) : one_read_value(one, tuple);

    json_decref(tuple);
    return args;
}

struct sumac_value *one_read_kwargs(struct one_case *one)
{
    json_t *given = one_get(one, "kwargs");
    json_t *dict = json_pack("{s:O}", "dict", given);
    struct sumac_value *kwargs =
        given == NULL ? sumac_value_dict(NULL, NULL, 0) : one_read_value(one, dict);

    json_decref(dict);
    return kwargs;
}

enum sumac_status one_status_of(const char *name)
{
    for (int status = SUMAC_OK; status <= SUMAC_UNAUTHENTICATED; status++)
        if (name != NULL && strcmp(name, sumac_status_name((enum sumac_status)status)) == 0)
            return (enum sumac_status)status;
    return SUMAC_UNKNOWN;
}

/* ---- its strategy */

static enum sumac_strategy_kind kind_of(const char *name)
{
    if (name != NULL && strcmp(name, "default") == 0)
        return SUMAC_STRATEGY_DEFAULT;
    if (name != NULL && strcmp(name, "one_device") == 0)
        return SUMAC_STRATEGY_ONE_DEVICE;
    if (name != NULL && strcmp(name, "parameter_server") == 0)
        return SUMAC_STRATEGY_PARAMETER_SERVER;
    return name != NULL && strcmp(name, "mirrored") == 0 ? SUMAC_STRATEGY_MIRRORED
                                                         : (enum sumac_strategy_kind)0;
}

static const char *why_skipped(const char *kind)
{
    if (kind != NULL && strcmp(kind, "multi_worker") == 0)
        return "strategies of several workers are not there yet";
    if (kind_of(kind) == SUMAC_STRATEGY_PARAMETER_SERVER && !cluster_client_is_there())
        return "there are no ps; --rpc starts some";
    return NULL;
}

struct sumac_strategy *one_open_strategy(struct cases_run *run, json_t *given, const char **skipped)
{
    const char *kind = json_string_value(json_object_get(given, "kind"));
    const uint32_t replicas = (uint32_t)json_integer_value(json_object_get(given, "replicas"));
    struct sumac_strategy_options options = {
        .kind = kind_of(kind), .replicas = replicas == 0 ? 1 : replicas};
    struct sumac_strategy *strategy = NULL;
    struct sumac_error error;

    *skipped = why_skipped(kind);
    if (*skipped != NULL || !cases_keys_known(run, given, "\"strategy\"", strategy_keys))
        return NULL;
    if ((int)options.kind == 0) {
        (void)cases_fail(run, "no strategy of kind %s", kind);
        return NULL;
    }
    if (options.kind == SUMAC_STRATEGY_PARAMETER_SERVER &&
        cluster_client_get(&options.client, &error) != SUMAC_OK) {
        (void)cases_fail(run, "no client: %s", error.text);
        return NULL;
    }
    if (sumac_strategy_create(&options, &strategy, &error) != SUMAC_OK) {
        (void)cases_fail(run, "no strategy: %s", error.text);
        return NULL;
    }
    return strategy;
}
