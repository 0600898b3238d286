/* SPDX-License-Identifier: Apache-2.0 */
/* program_calls.c -- what a client calls by its session: it creates the variables, lists them, and
 * creates and deletes one that nobody pushes to. */
#include "program_calls.h"

#include <assert.h>
#include <string.h>

#include "slots.h"

#define CALL_TIMEOUT_MS 60000u
#define UNMADE "unmade"

static uint32_t count_known(const struct world *world)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < VARIABLES; i++)
        count += world->checker->variables[i].known;
    return count;
}

static void
call(struct world *world, struct client *client, unsigned method, const wire_message *request)
{
    const struct session_call wanted = {
        .token = ++client->calls_made,
        .service = WIRE_VARIABLES,
        .method = method,
        .request = request,
        .timeout_ms = CALL_TIMEOUT_MS,
        .needs_session = method != WIRE_VARIABLES_LIST,
        .once = method == WIRE_VARIABLES_DELETE,
    };
    struct session_event event = {.kind = SESSION_EVENT_CALL, .wanted_call = &wanted};

    assert(client->calling == 0);
    client->calling = wanted.token;
    client->called = request->descriptor;
    client_step(world, client, &event);
}

/* A create that its caller waits for: what it lends the session. */
struct creation {
    uint64_t shape[2];
    uint8_t session_id[16];
    wire_initializer initializer;
    wire_partitioner partitioner;
    wire_function function;
    wire_variable variable;
    wire_create_request request;
};

static void define(struct world *world, enum variable which, struct creation *creation)
{
    static const char *const names[VARIABLES] = {"ledger", "last", "grad", "slow",
                                                 "adam",   "seed", "mix"};
    static const uint64_t columns[VARIABLES] = {COLUMNS, LIVES_MAX,    COLUMNS,    COLUMNS,
                                                COLUMNS, SEED_COLUMNS, MIX_COLUMNS};
    static const enum sumac_dtype dtypes[VARIABLES] = {SUMAC_INT64,   SUMAC_INT64,   SUMAC_FLOAT32,
                                                       SUMAC_FLOAT32, SUMAC_FLOAT64, SUMAC_INT64,
                                                       SUMAC_FLOAT32};
    const uint64_t rows = which >= SLOW ? world->ps_count : 2 * world->ps_count;
    const int initializer = which == SEED ? WIRE_INITIALIZER_ASSIGNED : WIRE_INITIALIZER_ZEROS;
    wire_variable *variable = &creation->variable;

    creation->shape[0] = rows;
    creation->shape[1] = columns[which];
    if (world_has(world, FAULT_ROWS) && (which == LAST || which == MIX)) {
        creation->shape[0] *= columns[which]; /* each shard has as many rows */
        creation->shape[1] = 1;
    }
    creation->initializer = (wire_initializer)WIRE_INITIALIZER_INIT;
    creation->initializer.kind = (Sumac__V1__Initializer__Kind)initializer;
    creation->partitioner = (wire_partitioner)WIRE_PARTITIONER_INIT;
    creation->partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_FIXED_SHARDS;
    creation->partitioner.num_shards = rows;
    creation->function = (wire_function)WIRE_FUNCTION_INIT;
    creation->function.function = which == LEDGER || which == GRAD || which == MIX
                                      ? SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN_ADD
                                      : SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ASSIGN;
    *variable = (wire_variable)WIRE_VARIABLE_INIT;
    variable->name = (char *)(uintptr_t)names[which];
    variable->data_type = (Sumac__V1__DataType)dtypes[which];
    variable->n_shape = 2;
    variable->shape = creation->shape;
    variable->trainable = true;
    if (world_has(world, FAULT_STEPS) && (which == LEDGER || which == MIX))
        variable->aggregation = which == LEDGER ? SUMAC__V1__AGGREGATION__AGGREGATION_SUM
                                                : SUMAC__V1__AGGREGATION__AGGREGATION_MEAN;
    variable->initializer = &creation->initializer;
    variable->partitioner = &creation->partitioner;
    variable->function =
        which == SLOW || which == ADAM ? slots_function(world, which) : &creation->function;
}

static void fill(
    struct world *world, const struct client *client, enum variable which,
    struct creation *creation)
{
    struct session_state state;

    define(world, which, creation);
    session_read(client->session, &state);
    memcpy(creation->session_id, state.session_id, sizeof creation->session_id);
    creation->request = (wire_create_request)WIRE_CREATE_REQUEST_INIT;
    creation->request.session_id =
        (wire_bytes){.data = creation->session_id, .len = sizeof creation->session_id};
    creation->request.variable = &creation->variable;
}

void program_create(struct world *world, struct client *client)
{
    struct creation *creation = world_take(world, sizeof *creation);

    fill(world, client, (enum variable)client->variable, creation);
    call(world, client, WIRE_VARIABLES_CREATE, &creation->request.base);
}

/* ---- a variable of its own, and lists */

static const char *scratch_of(const struct client *client, uint32_t nth)
{
    static const char *const names[SIM_CLIENTS_MAX][SIM_SCRATCH_MAX] = {
        {"scratch 0", "scratch 0, second", "scratch 0, third"},
        {"scratch 1", "scratch 1, second", "scratch 1, third"},
        {"scratch 2", "scratch 2, second", "scratch 2, third"},
        {"scratch 3", "scratch 3, second", "scratch 3, third"}};

    return names[client->index][nth];
}

static void define_scratch(struct world *world, const char *name, struct creation *creation)
{
    define(world, LAST, creation);
    creation->shape[0] = creation->partitioner.num_shards = world->ps_count; /* a shard at each */
    creation->variable.name = (char *)(uintptr_t)name;
}

static void create_scratch(struct world *world, struct client *client)
{
    struct creation *creation = world_take(world, sizeof *creation);

    fill(world, client, LAST, creation);
    define_scratch(world, scratch_of(client, 0), creation);
    client->creates = 1;
    call(world, client, WIRE_VARIABLES_CREATE, &creation->request.base);
}

/* In one call. One that is another than there is makes all of them fail, and none is made. */
static void create_many(struct world *world, struct client *client)
{
    const bool fails = world_chance(world, 25);
    struct creation *creations = world_take(world, SIM_SCRATCH_MAX * sizeof *creations);
    wire_variable **variables = world_take(world, SIM_SCRATCH_MAX * sizeof(wire_variable *));
    wire_create_request *request = &creations[0].request;

    fill(world, client, LAST, &creations[0]);
    for (uint32_t i = 0; i < SIM_SCRATCH_MAX; i++) {
        define_scratch(world, fails ? UNMADE : scratch_of(client, i), &creations[i]);
        variables[i] = &creations[i].variable;
    }
    if (fails)
        variables[0]->name = (char *)(uintptr_t) "last"; /* which has more rows */
    request->variable = NULL;
    request->n_variables = fails ? 2 : SIM_SCRATCH_MAX;
    request->variables = variables;
    client->creates = fails ? 0 : SIM_SCRATCH_MAX;
    call(world, client, WIRE_VARIABLES_CREATE, &request->base);
}

static void delete_scratch(struct world *world, struct client *client)
{
    wire_delete_request *request = world_take(world, sizeof *request);
    uint8_t *session_id = world_take(world, 16);
    struct session_state state;

    session_read(client->session, &state);
    memcpy(session_id, state.session_id, sizeof state.session_id);
    *request = (wire_delete_request)WIRE_DELETE_REQUEST_INIT;
    request->session_id = (wire_bytes){.data = session_id, .len = sizeof state.session_id};
    request->name = (char *)(uintptr_t)scratch_of(client, client->scratches - 1);
    call(world, client, WIRE_VARIABLES_DELETE, &request->base);
}

/* The next page: `list_limit` variables, or as many as an answer takes. */
static void call_list(struct world *world, struct client *client)
{
    wire_list_request *request = world_take(world, sizeof *request);

    *request = (wire_list_request)WIRE_LIST_REQUEST_INIT;
    request->after_id = client->listed_through;
    request->limit = client->list_limit;
    call(world, client, WIRE_VARIABLES_LIST, &request->base);
}

static void next_page(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];

    if (client->calling == 0 && (client->phase == PHASE_WORKING || client->phase == PHASE_DRAINING))
        call_list(world, client);
}

static void begin_list(struct world *world, struct client *client)
{
    client->known_then = count_known(world);
    client->found = 0;
    client->listed_through = 0;
    client->list_limit = world_below(world, 4);
    call_list(world, client);
}

void program_call(struct world *world, struct client *client)
{
    if (client->calling != 0 || !world_chance(world, 6))
        return;
    if (client->reader || world_chance(world, 50))
        begin_list(world, client);
    else if (client->scratches > 0)
        delete_scratch(world, client);
    else if (world_chance(world, 50))
        create_many(world, client);
    else
        create_scratch(world, client);
}

/* A variable that some create was answered with, and that may be used. */
static bool is_known(const struct world *world, const wire_variable *listed)
{
    for (uint32_t i = 0; i < VARIABLES; i++) {
        const struct sim_variable *variable = &world->checker->variables[i];
        if (variable->known && listed->published && listed->n_shards == variable->rows &&
            listed->shards[0]->shard_id == variable->shards[0].id)
            return true;
    }
    return false;
}

/* What had been created when the list was asked for is in it, in the order of the ids. */
static void listed(struct world *world, struct client *client, const wire_list_reply *reply)
{
    struct session_state state;

    session_read(client->session, &state);
    if (reply->cluster_id != state.cluster_id)
        checker_violation(world, "a list is of another cluster than the session");
    made(world, client->list_limit == 0 ? MADE_listed : MADE_listed_page);
    if (client->list_limit != 0 && reply->n_variables > client->list_limit)
        checker_violation(world, "a page has more variables than were asked for");
    for (size_t i = 0; i < reply->n_variables; i++) {
        if (reply->variables[i]->variable_id <= client->listed_through)
            checker_violation(world, "a list is not in the order of its ids");
        client->listed_through = reply->variables[i]->variable_id;
        client->found += is_known(world, reply->variables[i]);
        if (strcmp(reply->variables[i]->name, UNMADE) == 0)
            checker_violation(world, "a create of many that was refused has made a variable");
    }
    if (reply->more && reply->n_variables > 0)
        world_after(world, 0, process_of_client(client->index), next_page, client->index, NULL);
    else if (reply->more)
        checker_violation(world, "a list has more, and nothing of it");
    else if (client->found < client->known_then && !world->checker->state_lost)
        checker_violation(world, "a list lacks a variable that was created");
}

/* Of calls that came twice a delete may be followed by an older create, and find its variable on
 * the way. */
static bool may_fail(const struct world *world, const struct sumac_error *error)
{
    return error->reason >= SUMAC_REASON_SESSION_UNKNOWN || error->status == SUMAC_UNAVAILABLE ||
           error->status == SUMAC_DEADLINE_EXCEEDED || error->status == SUMAC_NOT_FOUND ||
           error->reason == SUMAC_REASON_UNKNOWN_VARIABLE ||
           (world_was_short(world) && error->reason == SUMAC_REASON_OUT_OF_MEMORY);
}

/* The one of many that is not as it is there. */
static bool names_it(const struct sumac_error *error)
{
    return error->status == SUMAC_ALREADY_EXISTS && strstr(error->text, "last") != NULL;
}

static void
created_scratch(struct world *world, struct client *client, const wire_create_reply *reply)
{
    const bool is_many = client->creates > 1;

    if (client->creates == 0)
        checker_violation(world, "a create of many has made what is there as something else");
    if (is_many && reply->n_variables != client->creates)
        checker_violation(world, "a create of many is answered with another number of them");
    for (size_t i = 0; is_many && i < reply->n_variables; i++)
        if (strcmp(reply->variables[i]->name, scratch_of(client, (uint32_t)i)) != 0)
            checker_violation(world, "a create of many is answered in another order");
    client->scratches = client->creates;
    made_if(world, MADE_created_many, is_many);
}

bool program_answered(
    struct world *world, struct client *client, const struct session_effect *effect)
{
    const wire_type *called = client->called;

    if (effect->token != client->calling)
        checker_violation(world, "a call is answered that was answered before");
    client->calling = 0;
    if (client->phase == PHASE_CREATING)
        return true;
    const bool creates = called == &sumac__v1__create_request__descriptor;
    const bool deletes = called == &sumac__v1__delete_request__descriptor;
    client->scratches -= deletes && effect->error.status == SUMAC_NOT_FOUND;
    if (effect->error.status != SUMAC_OK) {
        const bool is_refused = creates && client->creates == 0 && names_it(&effect->error);
        made_if(world, MADE_many_refused, is_refused);
        if (!is_refused && !may_fail(world, &effect->error))
            checker_violation(world, "a list, a create or a delete fails");
    } else if (called == &sumac__v1__list_request__descriptor) {
        listed(world, client, (const wire_list_reply *)effect->reply);
    } else if (creates) {
        created_scratch(world, client, (const wire_create_reply *)effect->reply);
    } else {
        client->scratches--;
        made(world, MADE_deleted);
    }
    return false;
}
