/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.c -- variables: created at ps 0, known by name, found again. */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "function.h"
#include "partitioner.h"
#include "push.h"

#define NAME_BYTES_MAX 1024

static struct sumac_client_variable *find(const struct sumac_client *client, const char *name)
{
    assert(client_is_locked(client));
    return key_map_get(&client->variables_by_name, name, strlen(name));
}

/* Its name is free; whoever has its handle keeps it. */
static void forget_name(struct sumac_client *client, struct sumac_client_variable *variable)
{
    assert(!variable->deleted);
    variable->deleted = true;
    key_map_remove(&client->variables_by_name, &variable->by_name);
}

static void fill_shape(struct sumac_client_variable *variable, const wire_variable *wire)
{
    assert(wire->n_shape <= SUMAC_RANK_MAX);
    variable->shape.rank = (uint32_t)wire->n_shape;
    variable->rows = wire->n_shape > 0 ? wire->shape[0] : 1;
    variable->row_bytes = sumac_dtype_bytes(variable->dtype);
    for (size_t i = 0; i < wire->n_shape; i++) {
        variable->shape.extent[i] = wire->shape[i];
        if (i > 0)
            variable->row_bytes *= wire->shape[i];
    }
}

/* Does the answer hold together? A transfer relies on it. */
static bool is_sound(const wire_variable *wire)
{
    struct sumac_shape shape = {.rank = (uint32_t)wire->n_shape};

    if (wire->n_shape > SUMAC_RANK_MAX)
        return false;
    for (size_t i = 0; i < wire->n_shape; i++)
        shape.extent[i] = wire->shape[i];
    if (sumac_shape_size(&shape, (enum sumac_dtype)wire->data_type, NULL, NULL) != SUMAC_OK)
        return false;
    const uint64_t all = wire->n_shape > 0 ? wire->shape[0] : 1;
    uint64_t rows = 0;
    for (size_t i = 0; i < wire->n_shards; i++) {
        const wire_shard *shard = wire->shards[i];
        if (shard->ps >= SESSION_PS_MAX || shard->first_row != rows || shard->rows > all - rows)
            return false;
        rows += shard->rows;
    }
    return wire->n_shards > 0 && rows == all;
}

struct sumac_client_variable *client_learn(struct sumac_client *client, const wire_variable *wire)
{
    struct sumac_client_variable *known = find(client, wire->name);

    if (known != NULL && known->variable_id == wire->variable_id) {
        known->every_shard |= wire->every_shard != 0; /* it may have a schedule by now */
        return known;
    }
    if (!is_sound(wire))
        return NULL;
    const size_t name_bytes = strlen(wire->name) + 1;
    const size_t bytes = sizeof *known + wire->n_shards * sizeof known->shards[0] + name_bytes;
    struct sumac_client_variable *variable = calloc(1, bytes);
    if (variable == NULL)
        return NULL;
    variable->client = client;
    variable->variable_id = wire->variable_id;
    variable->function =
        wire->function != NULL ? (uint32_t)wire->function->function : UPDATE_ASSIGN;
    variable->dtype = (enum sumac_dtype)wire->data_type;
    variable->every_shard = wire->every_shard != 0;
    fill_shape(variable, wire);
    variable->shard_count = (uint32_t)wire->n_shards;
    for (size_t i = 0; i < wire->n_shards; i++) {
        const wire_shard *shard = wire->shards[i];
        variable->shards[i] = (struct variable_shard){
            .shard_id = shard->shard_id,
            .layout_epoch = shard->layout_epoch,
            .ps = shard->ps,
            .first_row = shard->first_row,
            .rows = shard->rows,
            .bytes = shard->bytes,
            .version = shard->version};
    }
    assert(variable->shards[0].first_row == 0);
    variable->name = (char *)&variable->shards[wire->n_shards];
    memcpy(variable->name, wire->name, name_bytes);
    assert(known == NULL || known->client == client);
    variable->by_name =
        (struct key_entry){.key = variable->name, .key_bytes = name_bytes - 1, .value = variable};
    if (!key_map_put(&client->variables_by_name, &variable->by_name)) {
        free(variable);
        return NULL;
    }
    if (known != NULL)
        forget_name(client, known); /* another one has it now */
    LIST_APPEND(&client->variables, variable, in_client);
    return variable;
}

void client_forget_variables(struct sumac_client *client)
{
    assert(client->session == NULL); /* transfers that are under way point into them */
    while (client->variables.first != NULL) {
        struct sumac_client_variable *variable = client->variables.first;
        assert(variable->client == client);
        LIST_REMOVE(&client->variables, variable, in_client);
        free(variable);
    }
    key_map_deinit(&client->variables_by_name);
}

/* ---- create */

/* A variable in a request, with what its pointers refer to. */
struct variable_creation {
    struct sumac_client *client;
    wire_variable variable;
    wire_initializer initializer;
    wire_partitioner partitioner;
    struct sumac_client_variable *made;
    bool assign;
};

static void take_created(void *context, const wire_message *message)
{
    struct variable_creation *creation = context;
    const wire_create_reply *reply = (const wire_create_reply *)message;

    if (reply->variable != NULL)
        creation->made = client_learn(creation->client, reply->variable);
    creation->assign = reply->assign;
}

static enum sumac_status check_name(const char *name, struct sumac_error *error)
{
    return client_check_name(name, "variable", NAME_BYTES_MAX, error);
}

/* An option that some kinds of initializers or partitioners have. */
struct given_option {
    const char *name, *kinds;
    bool given, used;
};

/* What an initializer or a partitioner of another kind would make of an option is not what was
 * meant by it. */
static enum sumac_status check_given(
    const struct given_option *options, size_t count, const char *variable,
    struct sumac_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (options[i].given && !options[i].used)
            return fail_argument(
                error, "%.200s: %s is given, which only %s has", variable, options[i].name,
                options[i].kinds);
    return SUMAC_OK;
}

enum sumac_status partitioner_check(
    const struct sumac_partitioner *partitioner, const char *variable, struct sumac_error *error)
{
    const enum sumac_partitioner_kind kind = partitioner->kind;
    const bool bounded = kind == SUMAC_PARTITIONER_MIN_SIZE || kind == SUMAC_PARTITIONER_MAX_SIZE;

    const struct given_option options[] = {
        {"num_shards", "partitioner FIXED_SHARDS", partitioner->num_shards != 0,
         kind == SUMAC_PARTITIONER_FIXED_SHARDS},
        {"min_shard_bytes", "partitioner MIN_SIZE", partitioner->min_shard_bytes != 0,
         kind == SUMAC_PARTITIONER_MIN_SIZE},
        {"max_shards", "partitioner MIN_SIZE or MAX_SIZE", partitioner->max_shards != 0, bounded},
        {"max_shard_bytes", "partitioner MAX_SIZE", partitioner->max_shard_bytes != 0,
         kind == SUMAC_PARTITIONER_MAX_SIZE},
    };
    return check_given(options, sizeof options / sizeof options[0], variable, error);
}

wire_partitioner partitioner_pack(const struct sumac_partitioner *partitioner, uint32_t ps_count)
{
    wire_partitioner packed = WIRE_PARTITIONER_INIT;

    assert(ps_count > 0);
    packed.kind = (Sumac__V1__Partitioner__Kind)partitioner->kind;
    packed.num_shards = partitioner->num_shards;
    if (partitioner->kind == SUMAC_PARTITIONER_SHARD_PER_PS) {
        packed.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_FIXED_SHARDS;
        packed.num_shards = ps_count;
    }
    packed.min_shard_bytes = partitioner->min_shard_bytes;
    packed.max_shards = partitioner->max_shards;
    packed.max_shard_bytes = partitioner->max_shard_bytes;
    return packed;
}

static enum sumac_status
check_kinds(const struct sumac_client_variable_options *options, struct sumac_error *error)
{
    const enum sumac_initializer_kind initializer = options->initializer;
    const bool random =
        initializer == SUMAC_INITIALIZER_UNIFORM || initializer == SUMAC_INITIALIZER_NORMAL;

    const struct given_option given[] = {
        {"a", "initializer CONSTANT, UNIFORM or NORMAL", options->a != 0,
         random || initializer == SUMAC_INITIALIZER_CONSTANT},
        {"b", "initializer UNIFORM or NORMAL", options->b != 0, random},
        {"seed", "initializer UNIFORM or NORMAL", options->seed != 0, random},
        {"initial_value", "initializer ASSIGNED", options->initial_value != NULL,
         initializer == SUMAC_INITIALIZER_ASSIGNED},
        {"hyperparameters", "a function by name", function_has_hyperparameters(&options->function),
         options->function.name != NULL},
    };
    const enum sumac_status status =
        check_given(given, sizeof given / sizeof given[0], options->name, error);
    if (status != SUMAC_OK)
        return status;
    return partitioner_check(&options->partitioner, options->name, error);
}

static enum sumac_dtype dtype_of(const struct sumac_client_variable_options *options)
{
    return options->dtype == SUMAC_DTYPE_UNSPECIFIED ? SUMAC_FLOAT32 : options->dtype;
}

static enum sumac_status
check_initial_value(const struct sumac_client_variable_options *options, struct sumac_error *error)
{
    char expected[128], given[128];
    const struct sumac_tensor *value = options->initial_value;

    if (value == NULL)
        return fail_argument(
            error, "%s is to be assigned by its creator: give initial_value", options->name);
    if (value->dtype != dtype_of(options))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_DATA_TYPE, "the initial value of %s: expected %s, given %s",
            options->name, sumac_dtype_name(dtype_of(options)), sumac_dtype_name(value->dtype));
    if (!sumac_shape_equal(&value->shape, &options->shape))
        return fail_invalid(
            error, SUMAC_REASON_WRONG_SHAPE, "the initial value of %s: expected shape %s, given %s",
            options->name, sumac_shape_print(&options->shape, expected, sizeof expected),
            sumac_shape_print(&value->shape, given, sizeof given));
    return client_check_memory(
        value, sumac_tensor_bytes(value), "initial value", options->name, error);
}

static enum sumac_status
check_options(const struct sumac_client_variable_options *options, struct sumac_error *error)
{
    const enum sumac_status status = check_name(options->name, error);
    struct sumac_error why;

    if (status != SUMAC_OK)
        return status;
    if (options->shape.rank > SUMAC_RANK_MAX)
        return fail_invalid(
            error, SUMAC_REASON_BAD_SHAPE, "%s has %" PRIu32 " axes, and %d are the most",
            options->name, options->shape.rank, SUMAC_RANK_MAX);
    if (options->colocate_with != NULL && check_name(options->colocate_with, &why) != SUMAC_OK)
        return fail(
            error, why.status, why.reason, "%.200s: colocate_with: %.250s", options->name,
            why.text);
    if (check_kinds(options, error) != SUMAC_OK)
        return SUMAC_INVALID_ARGUMENT;
    return options->initializer == SUMAC_INITIALIZER_ASSIGNED ? check_initial_value(options, error)
                                                              : SUMAC_OK;
}

static enum sumac_status fill(
    struct variable_creation *creation, const struct sumac_client_variable_options *options,
    struct arena *arena, struct sumac_error *error)
{
    static const struct sumac_function assign = {.name = "assign"};
    const struct sumac_function *function =
        options->function.name != NULL ? &options->function : &assign;

    creation->initializer = (wire_initializer)WIRE_INITIALIZER_INIT;
    creation->initializer.kind = (Sumac__V1__Initializer__Kind)options->initializer;
    creation->initializer.a = options->a;
    creation->initializer.b = options->b;
    creation->initializer.seed = options->seed;
    creation->partitioner = partitioner_pack(&options->partitioner, creation->client->peer_count);
    wire_variable *variable = &creation->variable;
    *variable = (wire_variable)WIRE_VARIABLE_INIT;
    variable->name = (char *)(uintptr_t)options->name;
    variable->data_type = (Sumac__V1__DataType)dtype_of(options);
    variable->n_shape = options->shape.rank;
    variable->shape = (uint64_t *)(uintptr_t)options->shape.extent;
    variable->aggregation = (Sumac__V1__Aggregation)options->aggregation;
    variable->synchronization = (Sumac__V1__Synchronization)options->synchronization;
    variable->trainable = !options->frozen;
    if (options->colocate_with != NULL)
        variable->colocate_with = (char *)(uintptr_t)options->colocate_with;
    variable->initializer = &creation->initializer;
    variable->partitioner = &creation->partitioner;
    const enum sumac_status status = client_know_function(creation->client, function, error);
    return status != SUMAC_OK
               ? status
               : function_encode(creation->client, function, arena, &variable->function, error);
}

/* Of one variable, or of many. */
static enum sumac_status call_create(
    struct sumac_client *client, wire_create_request *request, client_take *take, void *context,
    struct sumac_error *error)
{
    struct client_call call =
        client_variables_call(WIRE_VARIABLES_CREATE, &request->base, take, context);

    assert((request->variable != NULL) != (request->n_variables > 0));
    call.needs_session = call.waits_for_others = true;
    request->session_id = session_id_bytes(client->session);
    request->timeout_ms = client_ps_patience_ms(client->timeout_ms);
    return client_call(client, &call, error);
}

static void note_created(struct sumac_client *client, struct sumac_client_variable *variable)
{
    assert(variable->client == client);
    if (!variable->created)
        client_say_room(client, variable);
    variable->created = true;
}

/* Ask ps 0; with the lock held. */
static enum sumac_status create(
    struct variable_creation *creation, const struct sumac_client_variable_options *options,
    struct sumac_error *error)
{
    struct sumac_client *client = creation->client;
    struct arena arena;

    arena_init(&arena, &memory_heap, 1 << 20);
    enum sumac_status status = fill(creation, options, &arena, error);
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;
    request.variable = &creation->variable;
    if (status == SUMAC_OK)
        status = call_create(client, &request, take_created, creation, error);
    arena_deinit(&arena);
    if (status == SUMAC_OK && creation->made == NULL)
        status = fail(
            error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "ps 0 answered the create of %s with no usable variable", options->name);
    if (status == SUMAC_OK)
        note_created(client, creation->made);
    return status;
}

static uint32_t ms_until(uint64_t until_us)
{
    const uint64_t now_us = client_now_us();

    return now_us + 1000 < until_us ? (uint32_t)((until_us - now_us) / 1000) : 1;
}

/* The push goes on when the time is over; so the client keeps the value's buffer until it has
 * ended. */
static enum sumac_status assign_value(
    struct sumac_client_variable *variable, const struct sumac_tensor *value, uint64_t until_us,
    struct sumac_client *client, struct sumac_error *error)
{
    assert(variable->client == client);
    static const struct sumac_function assign = {.name = "assign"};
    const struct sumac_push_options options = {.allow_non_finite = true};
    const struct sumac_delta delta = {.variable = variable, .value = *value, .function = &assign};
    struct sumac_push *push;
    enum sumac_status status = sumac_client_push(client, &delta, 1, &options, &push, error);
    if (status != SUMAC_OK)
        return status;
    push_keep(push, value->buffer);
    struct sumac_error why;
    status = sumac_push_wait(push, ms_until(until_us), &why);
    if (status == SUMAC_DEADLINE_EXCEEDED)
        return fail(
            error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
            "%.200s is created, and this client, which is to assign it, could not within %s: "
            "%.200s",
            variable->name, text_time_ms(client->timeout_ms).text, why.text);
    return status == SUMAC_OK ? SUMAC_OK : fail_again(error, &why);
}

enum sumac_status sumac_client_variable_create(
    struct sumac_client *client, const struct sumac_client_variable_options *options,
    struct sumac_client_variable **variable, struct sumac_error *error)
{
    struct variable_creation creation = {.client = client};
    const char *const null = client == NULL     ? "client"
                             : options == NULL  ? "options"
                             : variable == NULL ? "variable"
                                                : NULL;

    enum sumac_status status = client_enter(client, null, __func__, error);
    if (status != SUMAC_OK)
        return status;
    const uint64_t until_us = client_now_us() + (uint64_t)client->timeout_ms * 1000;
    status = check_options(options, error);
    if (status == SUMAC_OK)
        status = create(&creation, options, error);
    client_unlock(client);
    if (status == SUMAC_OK && creation.assign && options->initial_value != NULL)
        status = assign_value(creation.made, options->initial_value, until_us, client, error);
    if (status == SUMAC_OK)
        *variable = creation.made;
    return status;
}

/* ---- create many */

#define BATCH_BYTES_MAX (WIRE_CREATE_BYTES_MAX - 4096u) /* of variables in one request */
#define BATCH_ARENA_BYTES_MAX (WIRE_CREATE_VARIABLES_MAX * (size_t)4096)

/* What one message creates. */
struct creation_batch {
    struct sumac_client *client;
    const struct sumac_client_variable_options *options; /* of all */
    struct sumac_client_variable **made;                 /* likewise */
    struct variable_creation creations[WIRE_CREATE_VARIABLES_MAX];
    wire_variable *variables[WIRE_CREATE_VARIABLES_MAX];
    size_t places[WIRE_CREATE_VARIABLES_MAX]; /* among all */
    uint32_t count, answered;
};

static bool is_assigned(const struct sumac_client_variable_options *options)
{
    return options->initializer == SUMAC_INITIALIZER_ASSIGNED;
}

/* The first of them, as many as ps 0 has put into the answer. */
static void take_batch(void *context, const wire_message *message)
{
    struct creation_batch *batch = context;
    const wire_create_reply *reply = (const wire_create_reply *)message;

    batch->answered = 0;
    for (size_t i = 0; i < reply->n_variables && i < batch->count; i++) {
        const size_t place = batch->places[i];
        if (strcmp(reply->variables[i]->name, batch->options[place].name) != 0)
            return;
        batch->made[place] = client_learn(batch->client, reply->variables[i]);
        if (batch->made[place] == NULL)
            return;
        batch->answered++;
    }
}

/* From `next` of `count` on, as many as one request may have. */
static enum sumac_status fill_batch(
    struct creation_batch *batch, size_t next, size_t count, struct arena *arena,
    struct sumac_error *error)
{
    size_t bytes = 0;
    enum sumac_status status = SUMAC_OK;

    batch->count = 0;
    for (; status == SUMAC_OK && next < count && batch->count < WIRE_CREATE_VARIABLES_MAX; next++) {
        struct variable_creation *creation = &batch->creations[batch->count];
        if (is_assigned(&batch->options[next]))
            continue;
        *creation = (struct variable_creation){.client = batch->client};
        status = fill(creation, &batch->options[next], arena, error);
        bytes += wire_packed_bytes(&creation->variable.base, 0) + 8;
        if (batch->count > 0 && bytes > BATCH_BYTES_MAX)
            break;
        batch->places[batch->count] = next;
        batch->variables[batch->count++] = &creation->variable;
    }
    return status;
}

/* One message each way; with the lock held. */
static enum sumac_status create_batch(struct creation_batch *batch, struct sumac_error *error)
{
    wire_create_request request = WIRE_CREATE_REQUEST_INIT;

    request.n_variables = batch->count;
    request.variables = batch->variables;
    const enum sumac_status status = call_create(batch->client, &request, take_batch, batch, error);
    if (status == SUMAC_OK && batch->answered == 0)
        return fail(
            error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "ps 0 answered the create of %s with no usable variable", batch->variables[0]->name);
    for (uint32_t i = 0; status == SUMAC_OK && i < batch->answered; i++)
        note_created(batch->client, batch->made[batch->places[i]]);
    return status;
}

/* All but those that their creator assigns; with the lock held. */
static enum sumac_status create_batches(
    struct creation_batch *batch, size_t count, uint64_t until_us, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    for (size_t next = 0; status == SUMAC_OK;) {
        struct arena arena;
        arena_init(&arena, &memory_heap, BATCH_ARENA_BYTES_MAX);
        status = fill_batch(batch, next, count, &arena, error);
        const bool over = status == SUMAC_OK && batch->count == 0;
        if (status == SUMAC_OK && !over && next > 0 && client_now_us() >= until_us)
            status = fail(
                error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
                "%zu of %zu variables are created, and the time of %s is over", next, count,
                text_time_ms(batch->client->timeout_ms).text);
        if (status == SUMAC_OK && !over)
            status = create_batch(batch, error);
        arena_deinit(&arena);
        if (over)
            break;
        if (status == SUMAC_OK)
            next = batch->places[batch->answered - 1] + 1;
    }
    return status;
}

static int compare_names(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

/* ps 0 refuses a name that is given twice in one message. In the second of two messages it would
 * take the name for a create of what is there. */
static enum sumac_status check_names_differ(
    const struct sumac_client_variable_options *options, size_t count, struct sumac_error *error)
{
    const char **names = calloc(count + 1, sizeof *names);
    enum sumac_status status = SUMAC_OK;

    assert(options != NULL || count == 0);
    if (names == NULL)
        return fail_for_memory(error, "no memory to create %zu variables", count);
    for (size_t i = 0; i < count; i++)
        names[i] = options[i].name;
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; status == SUMAC_OK && i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = fail_invalid(
                error, SUMAC_REASON_BAD_NAME, "create names %.200s twice in one call", names[i]);
    free(names);
    return status;
}

enum sumac_status sumac_client_variable_create_many(
    struct sumac_client *client, const struct sumac_client_variable_options *options, size_t count,
    struct sumac_client_variable **variables, struct sumac_error *error)
{
    const char *const null = client == NULL                   ? "client"
                             : options == NULL && count > 0   ? "options"
                             : variables == NULL && count > 0 ? "variables"
                                                              : NULL;

    enum sumac_status status = client_enter(client, null, __func__, error);
    if (status != SUMAC_OK)
        return status;
    const uint64_t until_us = client_now_us() + (uint64_t)client->timeout_ms * 1000;
    struct creation_batch *batch = calloc(1, sizeof *batch);
    struct sumac_client_variable **made = calloc(count + 1, sizeof *made);
    if (batch == NULL || made == NULL) {
        status = fail_for_memory(error, "no memory to create %zu variables", count);
    } else {
        batch->client = client;
        batch->options = options;
        batch->made = made;
        for (size_t i = 0; status == SUMAC_OK && i < count; i++)
            status = check_options(&options[i], error);
        if (status == SUMAC_OK)
            status = check_names_differ(options, count, error);
        if (status == SUMAC_OK)
            status = create_batches(batch, count, until_us, error);
    }
    client_unlock(client);
    for (size_t i = 0; status == SUMAC_OK && i < count; i++)
        if (is_assigned(&options[i]))
            status = sumac_client_variable_create(client, &options[i], &made[i], error);
    if (status == SUMAC_OK && count > 0)
        memcpy(variables, made, count * sizeof(struct sumac_client_variable *));
    free(made);
    free(batch);
    return status;
}

/* ---- find, delete */

static void take_list(void *context, const wire_message *message)
{
    const wire_list_reply *reply = (const wire_list_reply *)message;

    for (size_t i = 0; i < reply->n_variables; i++)
        if (reply->variables[i]->published)
            (void)client_learn(context, reply->variables[i]);
}

static enum sumac_status
ask_for(struct sumac_client *client, const char *name, struct sumac_error *error)
{
    char *names[] = {(char *)(uintptr_t)name};
    wire_list_request request = WIRE_LIST_REQUEST_INIT;
    struct client_call call =
        client_variables_call(WIRE_VARIABLES_LIST, &request.base, take_list, client);

    request.n_names = 1;
    request.names = names;
    call.any_ps = true;
    return client_call(client, &call, error);
}

enum sumac_status sumac_client_variable_find(
    struct sumac_client *client, const char *name, struct sumac_client_variable **variable,
    struct sumac_error *error)
{
    const char *const null = client == NULL     ? "client"
                             : name == NULL     ? "name"
                             : variable == NULL ? "variable"
                                                : NULL;

    enum sumac_status status = client_enter(client, null, __func__, error);
    if (status != SUMAC_OK)
        return status;
    status = check_name(name, error);
    struct sumac_client_variable *found = status == SUMAC_OK ? find(client, name) : NULL;
    if (status == SUMAC_OK && found == NULL) {
        status = ask_for(client, name, error);
        found = find(client, name);
        if (status == SUMAC_OK && found == NULL)
            status = fail(
                error, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
                "there is no variable %.200s; sumac ls lists them", name);
    }
    client_unlock(client);
    if (status == SUMAC_OK)
        *variable = found;
    return status;
}

enum sumac_status sumac_client_variable_delete(
    struct sumac_client *client, const char *name, struct sumac_error *error)
{
    wire_delete_request request = WIRE_DELETE_REQUEST_INIT;
    struct client_call call =
        client_variables_call(WIRE_VARIABLES_DELETE, &request.base, NULL, NULL);
    const char *const null = client == NULL ? "client" : name == NULL ? "name" : NULL;

    enum sumac_status status = client_enter(client, null, __func__, error);
    if (status != SUMAC_OK)
        return status;
    call.needs_session = call.once = call.waits_for_others = true;
    request.session_id = session_id_bytes(client->session);
    request.name = (char *)(uintptr_t)name;
    request.timeout_ms = client_ps_patience_ms(client->timeout_ms);
    status = check_name(name, error);
    if (status == SUMAC_OK) {
        status = client_call(client, &call, error);
        struct sumac_client_variable *known = find(client, name);
        if (known != NULL && (status == SUMAC_OK || status == SUMAC_NOT_FOUND))
            forget_name(client, known);
    }
    client_unlock(client);
    return status;
}
