/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c -- what the ps say of variables, and of themselves. */
#include "client_state.h"

#include "error.h"
#include "update.h"

/* ---- one variable */

/* What is put together of the answers. */
struct description {
    struct sumac_client *client;
    const struct sumac_client_variable *variable;
    struct sumac_client_variable_facts facts;
    struct update_hyperparameters created, now; /* `set` has those that were said */
    uint32_t shards;                            /* that were answered for */
};

/* What it was created with, and what pushes have made of that. */
static void note_hyperparameters(struct update_hyperparameters *noted, const wire_function *said)
{
    assert(said != NULL);
    *noted = (struct update_hyperparameters){.set = 0};
    for (size_t i = 0; i < said->n_hyperparameters; i++) {
        const uint32_t number = (uint32_t)said->hyperparameters[i]->name;
        if (number == 0 || number > UPDATE_HYPERPARAMETERS_MAX)
            continue;
        noted->set |= UINT32_C(1) << number;
        noted->value[number] = said->hyperparameters[i]->value;
    }
}

static void note_schedule(struct sumac_client_variable_facts *facts, const wire_schedule *said)
{
    facts->has_schedule = said != NULL;
    if (said == NULL)
        return;
    facts->schedule = (struct sumac_schedule){
        .kind = (enum sumac_schedule_kind)said->kind,
        .decay_steps = said->decay_steps,
        .decay_rate = said->decay_rate,
        .staircase = said->staircase != 0,
        .alpha = said->alpha,
        .warmup_steps = said->warmup_steps,
        .warmup_target = said->warmup_target,
        .first_version = said->first_version};
}

static void note_definition(struct description *description, const wire_variable *said)
{
    static const wire_function nothing = WIRE_FUNCTION_INIT;
    const wire_function *created = said->function != NULL ? said->function : &nothing;
    const wire_function *now = said->current != NULL ? said->current : created;
    struct sumac_client_variable_facts *facts = &description->facts;

    assert(said->variable_id == description->variable->variable_id);
    assert(description->shards == 0);
    facts->aggregation = (enum sumac_reduce_op)said->aggregation;
    facts->synchronization = (enum sumac_synchronization)said->synchronization;
    facts->trainable = said->trainable != 0;
    note_hyperparameters(&description->created, created);
    note_hyperparameters(&description->now, now);
    note_schedule(facts, now->schedule);
}

static void take_description(void *context, const wire_message *message)
{
    struct description *description = context;
    struct sumac_client_variable_facts *facts = &description->facts;
    const wire_list_reply *reply = (const wire_list_reply *)message;

    for (size_t i = 0; i < reply->n_variables; i++) {
        const wire_variable *said = reply->variables[i];
        if (said->variable_id != description->variable->variable_id)
            continue;
        if (description->shards == 0)
            note_definition(description, said);
        for (size_t j = 0; j < said->n_shards; j++) {
            const uint64_t version = said->shards[j]->version;
            if (!said->shards[j]->held)
                continue;
            const bool first = description->shards++ == 0;
            facts->version_min =
                first || version < facts->version_min ? version : facts->version_min;
            facts->version_max = version > facts->version_max ? version : facts->version_max;
        }
    }
}

/* The names that its function gives them. */
static void name_all(struct description *description, const struct update_function *row)
{
    struct sumac_client_variable_facts *facts = &description->facts;
    uint32_t count = 0;

    assert(row->number == description->variable->function);
    facts->function.name = row->name;
    for (uint32_t left = description->now.set & row->hyperparameters; left != 0; left &= left - 1) {
        const uint32_t number = (uint32_t)__builtin_ctz(left);
        assert(count < SUMAC_HYPERPARAMETERS_MAX);
        facts->function.hyperparameters[count++] = (struct sumac_hyperparameter){
            .name = update_hyperparameter_of(row, number)->name,
            .value = description->now.value[number]};
    }
    facts->slot_count = update_slot_count(row, &description->created);
    assert(facts->slot_count <= SUMAC_SLOTS_MAX);
    for (uint32_t i = 0; i < facts->slot_count; i++)
        facts->slots[i] = row->slot_names[i];
}

/* Each ps knows of its own shards; with the lock held. */
static enum sumac_status ask_each(struct description *description, struct sumac_error *error)
{
    const struct sumac_client_variable *variable = description->variable;
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    char *names[] = {variable->name};
    bool asked[SESSION_PS_MAX] = {false};

    assert(client_is_locked(description->client));
    assert(variable->shard_count > 0);
    request.n_names = 1;
    request.names = names;
    for (uint32_t i = 0; i < variable->shard_count; i++) {
        struct client_call call = client_variables_call(
            WIRE_VARIABLES_LIST, &request.base, take_description, description);
        call.ps = variable->shards[i].ps;
        if (asked[call.ps])
            continue;
        asked[call.ps] = true;
        const enum sumac_status status = client_call(description->client, &call, error);
        if (status != SUMAC_OK)
            return status;
    }
    if (description->shards == variable->shard_count)
        return SUMAC_OK;
    return fail(
        error, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
        "%" PRIu32 " of the %" PRIu32 " shards of %.200s are on the ps: it was deleted",
        description->shards, variable->shard_count, variable->name);
}

enum sumac_status sumac_client_variable_describe(
    struct sumac_client_variable *variable, struct sumac_client_variable_facts *facts,
    struct sumac_error *error)
{
    const char *const null = variable == NULL ? "variable" : facts == NULL ? "facts" : NULL;
    struct sumac_client *const client =
        null != NULL ? NULL : (struct sumac_client *)(uintptr_t)variable->client;
    struct description description = {.client = client, .variable = variable};
    const struct update_function *row = NULL;
    enum sumac_status status = client_enter(client, null, __func__, error);
    struct sumac_error why;

    if (status != SUMAC_OK)
        return status;
    status = ask_each(&description, error);
    if (status == SUMAC_OK) {
        row = client_know_number(client, variable->function, &why);
        if (row == NULL)
            status = fail_again(error, &why);
    }
    client_unlock(client);
    if (status != SUMAC_OK)
        return status;
    name_all(&description, row);
    *facts = description.facts;
    return SUMAC_OK;
}

/* ---- all variables */

/* What has been listed so far. */
struct variable_listing {
    struct sumac_client *client;
    struct sumac_client_variable **variables; /* (capacity) */
    size_t capacity, count;
    uint64_t last_id;
    bool more, exhausted;
};

static void take_page(void *context, const wire_message *message)
{
    struct variable_listing *listing = context;
    const wire_list_reply *reply = (const wire_list_reply *)message;

    assert(client_is_locked(listing->client));
    listing->more = reply->more != 0;
    for (size_t i = 0; i < reply->n_variables; i++) {
        const wire_variable *said = reply->variables[i];
        listing->last_id =
            said->variable_id > listing->last_id ? said->variable_id : listing->last_id;
        if (!said->published)
            continue;
        struct sumac_client_variable *known = client_learn(listing->client, said);
        listing->exhausted = listing->exhausted || known == NULL;
        if (listing->count < listing->capacity)
            listing->variables[listing->count] = known;
        listing->count++;
    }
}

/* Page by page, until one does not go on; with the lock held. */
static enum sumac_status list(struct variable_listing *listing, struct sumac_error *error)
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    struct client_call call =
        client_variables_call(WIRE_VARIABLES_LIST, &request.base, take_page, listing);

    call.any_ps = true;
    assert(client_is_locked(listing->client));
    assert(listing->count == 0);
    do {
        request.after_id = listing->last_id;
        const enum sumac_status status = client_call(listing->client, &call, error);
        if (status != SUMAC_OK)
            return status;
        if (listing->more && listing->last_id == request.after_id)
            return fail(
                error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
                "a ps's list of variables does not go on; use the release of the ps");
    } while (listing->more);
    return listing->exhausted
               ? fail_for_memory(error, "no memory for %zu variables", listing->count)
               : SUMAC_OK;
}

enum sumac_status sumac_client_list(
    struct sumac_client *client, struct sumac_client_variable **variables, size_t capacity,
    size_t *count, struct sumac_error *error)
{
    const char *const null = client == NULL                      ? "client"
                             : variables == NULL && capacity > 0 ? "variables"
                             : count == NULL                     ? "count"
                                                                 : NULL;
    struct variable_listing listing = {
        .client = client, .variables = variables, .capacity = capacity};

    enum sumac_status status = client_enter(client, null, __func__, error);
    if (status != SUMAC_OK)
        return status;
    status = list(&listing, error);
    client_unlock(client);
    if (status == SUMAC_OK)
        *count = listing.count;
    return status;
}

/* ---- a ps */

static void take_stats(void *context, const wire_message *message)
{
    const wire_stats_reply *reply = (const wire_stats_reply *)message;
    const bool measured = reply->memory != NULL;

    *(struct sumac_ps_facts *)context = (struct sumac_ps_facts){
        .uptime_ms = reply->uptime_ms,
        .pushes = reply->pushes,
        .push_bytes = reply->push_bytes,
        .pulls = reply->pulls,
        .pull_bytes = reply->pull_bytes,
        .refused = reply->refused,
        .non_finite = reply->non_finite,
        .late = reply->late,
        .duplicates = reply->duplicates,
        .variables = reply->variables,
        .shards = reply->shards,
        .resident_bytes = measured ? reply->memory->resident_bytes : 0,
        .state_bytes = measured ? reply->memory->state_bytes : 0};
}

enum sumac_status sumac_client_stats(
    struct sumac_client *client, uint32_t ps, struct sumac_ps_facts *facts,
    struct sumac_error *error)
{
    const wire_stats_request request = WIRE_STATS_REQUEST_INIT;
    struct sumac_ps_facts said = {.pushes = 0};
    const struct client_call call = {
        .ps = ps,
        .service = WIRE_OBSERVE,
        .method = WIRE_OBSERVE_STATS,
        .request = &request.base,
        .take = take_stats,
        .context = &said};

    const char *const null = client == NULL ? "client" : facts == NULL ? "facts" : NULL;
    enum sumac_status status = client_enter(client, null, __func__, error);
    if (status != SUMAC_OK)
        return status;
    status = ps < client->peer_count
                 ? client_call(client, &call, error)
                 : fail_argument(
                       error, "there is no ps %" PRIu32 "; the cluster has %" PRIu32, ps,
                       client->peer_count);
    client_unlock(client);
    if (status == SUMAC_OK)
        *facts = said;
    return status;
}
