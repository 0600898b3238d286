/* list.c -- the catalogue as this ps has it: every published variable, with the versions of the shards it holds itself. */
#include "lane_state.h"

#include <string.h>

static wire_shard *pack_shard(struct lane *lane, const struct placement *placement)
{
    wire_shard *shard = arena_take(&lane->arena, sizeof *shard);

    if (shard == NULL)
        return NULL;
    *shard = (wire_shard)WIRE_SHARD_INIT;
    shard->shard_id = placement->shard_id;
    shard->layout_epoch = placement->layout_epoch;
    shard->ps = placement->ps;
    shard->first_row = placement->first_row;
    shard->rows = placement->rows;
    shard->bytes = placement->bytes;
    if (placement->here != NULL) {
        shard->held = true;
        shard->version = placement->here->version;
        shard->last_worker = placement->here->last_worker;
    }
    return shard;
}

/* With every hyperparameter filled in. */
static wire_function *pack_function(struct lane *lane, const struct variable *variable)
{
    wire_function *function = arena_take(&lane->arena, sizeof *function);
    wire_hyperparameter *values =
        arena_take(&lane->arena, UPDATE_HYPERPARAMETERS_MAX * sizeof *values);
    wire_hyperparameter **pointers =
        arena_take(&lane->arena, UPDATE_HYPERPARAMETERS_MAX * sizeof *pointers);

    if (function == NULL || values == NULL || pointers == NULL)
        return NULL;
    *function = (wire_function)WIRE_FUNCTION_INIT;
    function->function = (Sumac__V1__UpdateFunction)variable->function->number;
    function->hyperparameters = pointers;
    for (uint32_t name = 1; name <= UPDATE_HYPERPARAMETERS_MAX; name++) {
        if ((variable->hyperparameters.set >> name & 1u) == 0)
            continue;
        wire_hyperparameter *value = &values[function->n_hyperparameters];
        *value = (wire_hyperparameter)WIRE_HYPERPARAMETER_INIT;
        value->name = (Sumac__V1__HyperparameterName)name;
        value->value = variable->hyperparameters.value[name];
        pointers[function->n_hyperparameters++] = value;
    }
    return function;
}

static bool
pack_initializer(struct lane *lane, const struct variable *variable, wire_variable *message)
{
    wire_initializer *initializer = arena_take(&lane->arena, sizeof *initializer);

    if (initializer == NULL)
        return false;
    *initializer = (wire_initializer)WIRE_INITIALIZER_INIT;
    initializer->kind = (Sumac__V1__Initializer__Kind)variable->initializer_kind;
    initializer->a = variable->initializer_a;
    initializer->b = variable->initializer_b;
    initializer->seed = variable->initializer_seed;
    message->initializer = initializer;
    return true;
}

static bool
pack_partitioner(struct lane *lane, const struct variable *variable, wire_variable *message)
{
    wire_partitioner *partitioner = arena_take(&lane->arena, sizeof *partitioner);

    if (partitioner == NULL)
        return false;
    *partitioner = (wire_partitioner)WIRE_PARTITIONER_INIT;
    partitioner->kind = (Sumac__V1__Partitioner__Kind)variable->partitioner_kind;
    partitioner->num_shards = variable->num_shards;
    partitioner->min_shard_bytes = variable->min_shard_bytes;
    partitioner->max_shards = variable->max_shards;
    partitioner->max_shard_bytes = variable->max_shard_bytes;
    message->partitioner = partitioner;
    return true;
}

/* NULL: the arena is full. */
static wire_variable *pack_variable(struct lane *lane, struct variable *variable)
{
    wire_variable *message = arena_take(&lane->arena, sizeof *message);
    wire_shard **shards = arena_take(&lane->arena, variable->placement_count * sizeof *shards);

    if (message == NULL || shards == NULL)
        return NULL;
    *message = (wire_variable)WIRE_VARIABLE_INIT;
    message->name = variable->name;
    message->variable_id = variable->id;
    message->data_type = (Sumac__V1__DataType)variable->dtype;
    message->n_shape = variable->shape.rank;
    message->shape = variable->shape.extent;
    message->aggregation = (Sumac__V1__Aggregation)variable->aggregation;
    message->synchronization = (Sumac__V1__Synchronization)variable->synchronization;
    message->trainable = variable->trainable;
    message->function = pack_function(lane, variable);
    message->published = variable->published;
    message->shards = shards;
    for (uint32_t i = 0; i < variable->placement_count; i++) {
        wire_shard *shard = pack_shard(lane, &variable->placements[i]);
        if (shard == NULL)
            return NULL;
        shards[message->n_shards++] = shard;
    }
    const bool complete = message->function != NULL && pack_initializer(lane, variable, message) &&
                          pack_partitioner(lane, variable, message);
    return complete ? message : NULL;
}

/* Those asked for, or all that are published. False: the call was failed. */
static bool pack_variables(
    struct lane *lane, uint64_t call, const wire_list_request *request, wire_list_reply *reply)
{
    const bool all = request->n_names == 0;
    const size_t most = all ? lane->store.variable_count : request->n_names;
    struct variable *variable = lane->store.first;

    reply->variables = arena_take(&lane->arena, most * sizeof *reply->variables);
    for (size_t i = 0; reply->variables != NULL && reply->n_variables < most; i++) {
        if (!all)
            variable = store_find_by_name(&lane->store, request->names[i]);
        else
            while (variable != NULL && !variable->published)
                variable = variable->next;
        if (variable == NULL || !variable->published) {
            out_fail(
                &lane->out, call, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
                "variable %s is not known to ps %u", all ? "?" : request->names[i], lane->index);
            return false;
        }
        reply->variables[reply->n_variables] = pack_variable(lane, variable);
        if (reply->variables[reply->n_variables] == NULL)
            break;
        reply->n_variables++;
        if (all)
            variable = variable->next;
    }
    if (reply->n_variables == most)
        return true;
    out_fail(
        &lane->out, call, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY,
        "ps %u has too many variables for one answer: list them by name", lane->index);
    return false;
}

void lane_reply(struct lane *lane, uint64_t call, const wire_message *reply)
{
    struct lane_effect *effect = out_add(&lane->out, LANE_EFFECT_REPLY);

    if (effect == NULL)
        return;
    effect->call = call;
    effect->reply = reply;
    effect->after_record = lane->last_record;
}

void lane_list_call(struct lane *lane, const struct lane_event *event)
{
    wire_list_reply *reply = arena_take(&lane->arena, sizeof *reply);
    char **addresses = arena_take(&lane->arena, LANE_PS_MAX * sizeof *addresses);

    if (reply == NULL || addresses == NULL)
        return;
    *reply = (wire_list_reply)WIRE_LIST_REPLY_INIT;
    if (!pack_variables(lane, event->call, (const wire_list_request *)event->request, reply))
        return;
    for (uint32_t i = 0; i < lane->ps_count; i++)
        addresses[i] =
            lane->ps_addresses[i] == NULL ? out_text(&lane->out, "%s", "") : lane->ps_addresses[i];
    reply->cluster_id = lane->cluster_id;
    reply->epoch = lane->epoch;
    reply->ps = lane->index;
    reply->ps_addresses = addresses;
    reply->n_ps_addresses = lane->ps_count;
    reply->position = lane->store.position;
    reply->ps_incarnation = lane->config.incarnation;
    lane_reply(lane, event->call, &reply->base);
}
