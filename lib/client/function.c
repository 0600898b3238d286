/* SPDX-License-Identifier: Apache-2.0 */
/* function.c -- update functions and hyperparameters by name: those of lib/update's table, and
 * those that are made of texts, which are defined at ps 0, or of plug-ins. The client asks for a
 * function whose name is not known.
 */
#include "client_state.h"

#include <stdlib.h>
#include <string.h>

#include "defined.h"
#include "described.h"
#include "error.h"
#include "function.h"
#include "nearest.h"
#include "plugged.h"

_Static_assert(
    SUMAC_HYPERPARAMETERS_MAX >= UPDATE_HYPERPARAMETERS_MAX, "a function may give all it has");
_Static_assert(SUMAC_SLOTS_MAX >= UPDATE_SLOTS_MAX, "there is a place for each slot");

/* That an answer tells of. */
#define FUNCTIONS_MAX (UPDATE_PLUGGED_FIRST + SUMAC_PLUGIN_FUNCTIONS_MAX)

/* It stays where it is until the close: its row points into itself. */
struct client_function {
    LINKS(struct client_function) in_client;
    struct update_function *row; /* that of one of these */
    union {
        struct update_defined defined;
        struct update_plugged plugged;
    } of;
};

static struct client_function *find(const struct sumac_client *client, const char *name)
{
    struct client_function *known = client->functions.first;

    assert(client_is_locked(client));
    while (known != NULL && strcmp(known->row->name, name) != 0)
        known = known->in_client.next;
    return known;
}

const struct update_function *client_function(const struct sumac_client *client, const char *name)
{
    const struct update_function *const row = update_find_by_name(name);
    const struct client_function *const known =
        row == NULL && client != NULL ? find(client, name) : NULL;

    return known != NULL ? known->row : row;
}

const char *client_functions_list(const struct sumac_client *client, char *text, size_t text_bytes)
{
    const struct update_function *row;
    const struct client_function *known = client == NULL ? NULL : client->functions.first;
    size_t used = 0;

    assert(text_bytes > 0);
    for (uint32_t i = 0; (row = update_at(i)) != NULL; i++)
        used +=
            text_print(text + used, text_bytes - used, "%s%s", used == 0 ? "" : ", ", row->name);
    for (; known != NULL; known = known->in_client.next)
        used += text_print(text + used, text_bytes - used, ", %s", known->row->name);
    return text;
}

/* Those whose names are near to this one. */
static struct nearest functions_near(const struct sumac_client *client, const char *name)
{
    const struct client_function *known = client == NULL ? NULL : client->functions.first;
    const struct update_function *row;
    struct nearest nearest = {.count = 0};

    assert(name != NULL);
    for (uint32_t i = 0; (row = update_at(i)) != NULL; i++)
        nearest_try(&nearest, name, row->name);
    for (; known != NULL; known = known->in_client.next)
        nearest_try(&nearest, name, known->row->name);
    return nearest;
}

/* ---- on the wire */

static enum sumac_status check_function(
    const struct sumac_client *client, const struct sumac_function *function,
    const struct update_function *row, struct sumac_error *error)
{
    char known[320];

    if (row != NULL)
        return SUMAC_OK;
    (void)client_functions_list(client, known, sizeof known);
    if (function->name == NULL)
        return fail_invalid(
            error, SUMAC_REASON_UNKNOWN_FUNCTION,
            "an update function is given without its name; there are %s", known);
    const struct nearest nearest = functions_near(client, function->name);
    if (nearest.count == 0)
        return fail_invalid(
            error, SUMAC_REASON_UNKNOWN_FUNCTION, "there is no update function %.64s; there are %s",
            function->name, known);
    nearest_print(&nearest, known, sizeof known);
    return fail_invalid(
        error, SUMAC_REASON_UNKNOWN_FUNCTION, "there is no update function %.64s; did you mean %s?",
        function->name, known);
}

bool function_has_hyperparameters(const struct sumac_function *function)
{
    bool has = false;

    for (uint32_t i = 0; i < SUMAC_HYPERPARAMETERS_MAX; i++)
        has = has || !function_place_is_free(function, i);
    return has;
}

/* The number of a hyperparameter that the function has. */
static enum sumac_status find_hyperparameter(
    const struct update_function *function, const char *name, uint32_t *number,
    struct sumac_error *error)
{
    char known[256];

    *number = name == NULL ? 0 : update_hyperparameter_find_of(function, name);
    assert(*number <= UPDATE_HYPERPARAMETERS_MAX); /* a bit of the row's */
    if (*number != 0)
        return SUMAC_OK;
    (void)update_hyperparameters_list(function, known, sizeof known);
    if (name == NULL)
        return fail_invalid(
            error, SUMAC_REASON_BAD_HYPERPARAMETER,
            "a hyperparameter of %s is given without its name; it has %s", function->name, known);
    return fail_invalid(
        error, SUMAC_REASON_BAD_HYPERPARAMETER, "%s has no hyperparameter %.64s; it has %s",
        function->name, name, known);
}

/* A ps says what is wrong with it. NULL: no memory. */
static wire_schedule *encode_schedule(const struct sumac_schedule *given, struct arena *arena)
{
    wire_schedule *made = arena_take(arena, sizeof *made);

    if (made == NULL)
        return NULL;
    *made = (wire_schedule)WIRE_SCHEDULE_INIT;
    made->kind = (Sumac__V1__Schedule__Kind)given->kind;
    made->decay_steps = given->decay_steps;
    made->decay_rate = given->decay_rate;
    made->staircase = given->staircase;
    made->alpha = given->alpha;
    made->warmup_steps = given->warmup_steps;
    made->warmup_target = given->warmup_target;
    made->first_version = given->first_version;
    return made;
}

enum sumac_status function_encode(
    const struct sumac_client *client, const struct sumac_function *function, struct arena *arena,
    wire_function **wire, struct sumac_error *error)
{
    const struct update_function *row =
        function->name == NULL ? NULL : client_function(client, function->name);
    const enum sumac_status status = check_function(client, function, row, error);

    return status == SUMAC_OK ? function_encode_row(row, function, arena, wire, error) : status;
}

enum sumac_status function_encode_row(
    const struct update_function *row, const struct sumac_function *function, struct arena *arena,
    wire_function **wire, struct sumac_error *error)
{
    enum sumac_status status = check_function(NULL, function, row, error);

    if (status != SUMAC_OK)
        return status;
    wire_function *made = arena_take(arena, sizeof *made);
    wire_hyperparameter *values = arena_take(arena, SUMAC_HYPERPARAMETERS_MAX * sizeof *values);
    wire_hyperparameter **pointers =
        arena_take(arena, SUMAC_HYPERPARAMETERS_MAX * sizeof *pointers);
    size_t count = 0;
    if (made == NULL || values == NULL || pointers == NULL)
        return fail_for_memory(error, "no memory for a function");
    for (uint32_t i = 0; i < SUMAC_HYPERPARAMETERS_MAX; i++) {
        const struct sumac_hyperparameter *given = &function->hyperparameters[i];
        uint32_t name = 0;
        if (function_place_is_free(function, i))
            continue;
        status = find_hyperparameter(row, given->name, &name, error);
        if (status != SUMAC_OK)
            return status;
        values[count] = (wire_hyperparameter)WIRE_HYPERPARAMETER_INIT;
        values[count].name = (Sumac__V1__HyperparameterName)name;
        values[count].value = given->value;
        pointers[count] = &values[count];
        count++;
    }
    *made = (wire_function)WIRE_FUNCTION_INIT;
    made->function = (Sumac__V1__UpdateFunction)row->number;
    made->n_hyperparameters = count;
    made->hyperparameters = pointers;
    if (function->schedule != NULL)
        made->schedule = encode_schedule(function->schedule, arena);
    if (function->schedule != NULL && made->schedule == NULL)
        return fail_for_memory(error, "no memory for a function");
    *wire = made;
    return SUMAC_OK;
}

/* ---- those that a client knows of */

static enum sumac_status make(struct client_function **made, struct sumac_error *error)
{
    *made = calloc(1, sizeof **made);
    return *made == NULL ? fail_for_memory(error, "no memory for a function") : SUMAC_OK;
}

/* Reads a copy of the text. The caller frees *made on failure, too. */
static enum sumac_status read_text(
    const char *name, const char *text, size_t bytes, struct client_function **made,
    struct sumac_error *error)
{
    const enum sumac_status status = make(made, error);

    assert(name != NULL && text != NULL);
    if (status != SUMAC_OK)
        return status;
    (*made)->row = &(*made)->of.defined.function;
    return update_define(UPDATE_DEFINED_FIRST, name, text, bytes, &(*made)->of.defined, error);
}

static bool is_of_text(uint32_t number)
{
    return number >= UPDATE_DEFINED_FIRST && number < UPDATE_DEFINED_FIRST + UPDATE_DEFINED_MAX;
}

static bool is_of_plugin(uint32_t number)
{
    return number >= UPDATE_PLUGGED_FIRST &&
           number < UPDATE_PLUGGED_FIRST + SUMAC_PLUGIN_FUNCTIONS_MAX;
}

/* It has this number from now on. Takes  function: it may be known already. */
static void learn(struct sumac_client *client, struct client_function *function, uint32_t number)
{
    assert(is_of_text(number) || is_of_plugin(number));
    if (find(client, function->row->name) != NULL) {
        free(function);
        return;
    }
    function->row->number = number;
    LIST_APPEND(&client->functions, function, in_client);
}

void client_forget_functions(struct sumac_client *client)
{
    assert(client->session == NULL);
    while (client->functions.first != NULL) {
        struct client_function *function = client->functions.first;
        LIST_REMOVE(&client->functions, function, in_client);
        free(function);
    }
}

/* ---- those of the cluster */

struct asking {
    struct sumac_client *client;
    const char *name;         /* that is wanted; NULL: the one of … */
    uint32_t number;          /* … that number */
    struct sumac_error error; /* of its text; status OK: it is known, or there is none */
};

/* A text is read anew; what a plug-in's function is, is said. */
static enum sumac_status
read_said(const wire_known_function *said, struct client_function **made, struct sumac_error *error)
{
    enum sumac_status status;

    if (is_of_text(said->number)) {
        status = read_text(said->name, said->text, strlen(said->text), made, error);
        return status != SUMAC_OK ? status : update_check_described((*made)->row, said, error);
    }
    status = make(made, error);
    if (status != SUMAC_OK)
        return status;
    (*made)->row = &(*made)->of.plugged.function;
    return update_read_described(said, &(*made)->of.plugged, error);
}

static void take_functions(void *context, const wire_message *message)
{
    struct asking *const asking = context;
    const wire_functions_reply *reply = (const wire_functions_reply *)message;

    assert(client_is_locked(asking->client));
    for (size_t i = 0; i < reply->n_functions && i < FUNCTIONS_MAX; i++) {
        const wire_known_function *said = reply->functions[i];
        struct client_function *made = NULL;
        struct sumac_error error = {0};
        if ((!is_of_text(said->number) && !is_of_plugin(said->number)) ||
            find(asking->client, said->name) != NULL)
            continue;
        if (read_said(said, &made, &error) == SUMAC_OK) {
            learn(asking->client, made, said->number);
            continue;
        }
        free(made);
        if (asking->name != NULL ? strcmp(said->name, asking->name) == 0
                                 : said->number == asking->number)
            asking->error = error;
    }
}

/* A ps of an earlier release has no such call, and no such functions. */
static enum sumac_status ask_for(struct asking *asking, struct sumac_error *error)
{
    const wire_functions_request request = WIRE_FUNCTIONS_REQUEST_INIT;
    const struct client_call call =
        client_variables_call(WIRE_VARIABLES_FUNCTIONS, &request.base, take_functions, asking);
    const enum sumac_status status = client_call(asking->client, &call, error);

    if (status != SUMAC_OK)
        return status == SUMAC_UNIMPLEMENTED ? SUMAC_OK : status;
    if (asking->error.status == SUMAC_OK)
        return SUMAC_OK;
    if (asking->error.status == SUMAC_RESOURCE_EXHAUSTED)
        return fail_again(error, &asking->error);
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
        "the function %.64s of the cluster cannot be read here: %.300s: use the release of the ps",
        asking->name != NULL ? asking->name : "of the variable", asking->error.text);
}

enum sumac_status client_know_function(
    struct sumac_client *client, const struct sumac_function *function, struct sumac_error *error)
{
    struct asking asking = {.client = client};

    assert(client_is_locked(client));
    if (function == NULL || function->name == NULL ||
        client_function(client, function->name) != NULL ||
        update_defined_name_check(function->name, NULL) != SUMAC_OK)
        return SUMAC_OK;
    asking.name = function->name;
    return ask_for(&asking, error);
}

static const struct update_function *find_number(const struct sumac_client *client, uint32_t number)
{
    const struct client_function *known = client->functions.first;

    assert(client_is_locked(client));
    while (known != NULL && known->row->number != number)
        known = known->in_client.next;
    return known != NULL ? known->row : update_find(number);
}

const struct update_function *
client_know_number(struct sumac_client *client, uint32_t number, struct sumac_error *error)
{
    struct asking asking = {.client = client, .number = number};
    const struct update_function *row = find_number(client, number);

    if (row != NULL || ask_for(&asking, error) != SUMAC_OK)
        return row;
    row = find_number(client, number);
    if (row == NULL)
        (void)fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSUPPORTED,
            "update function %" PRIu32 " of the cluster is not known here; use the release of the "
            "ps",
            number);
    return row;
}

/* ---- define */

struct defining {
    struct client_function *made;
    uint32_t number; /* 0: ps 0 has not said one */
};

static void take_defined(void *context, const wire_message *message)
{
    struct defining *const defining = context;
    const wire_define_reply *reply = (const wire_define_reply *)message;

    if (reply->function != NULL && strcmp(reply->function->name, defining->made->row->name) == 0 &&
        is_of_text(reply->function->number))
        defining->number = reply->function->number;
}

/* Ask ps 0; with the lock held. */
static enum sumac_status call_define(
    struct sumac_client *client, struct defining *defining, const char *text, size_t text_bytes,
    struct sumac_error *error)
{
    char ended[EXPRESSION_TEXT_BYTES_MAX + 1] = {0};
    wire_define_request request = WIRE_DEFINE_REQUEST_INIT;
    struct client_call call =
        client_variables_call(WIRE_VARIABLES_DEFINE, &request.base, take_defined, defining);

    assert(client_is_locked(client));
    assert(defining->number == 0);
    call.needs_session = call.waits_for_others = true;
    request.session_id = session_id_bytes(client->session);
    request.name = defining->made->of.defined.name;
    assert(text_bytes <= EXPRESSION_TEXT_BYTES_MAX); /* else it is no expression */
    memcpy(ended, text, text_bytes);
    request.text = ended;
    request.timeout_ms = client_ps_patience_ms(client->timeout_ms);
    const enum sumac_status status = client_call(client, &call, error);
    if (status == SUMAC_OK && defining->number == 0)
        return fail(
            error, SUMAC_INTERNAL, SUMAC_REASON_MALFORMED,
            "ps 0 answered the define of %s with no usable function", request.name);
    return status;
}

/* A message's text ends at its first NUL: the rest would be lost. */
static enum sumac_status check_text(const char *text, size_t text_bytes, struct sumac_error *error)
{
    const char *const nul = memchr(text, '\0', text_bytes);
    uint32_t line = 1, column = 1;

    assert(text_bytes == 0 || text != NULL);
    if (nul == NULL)
        return SUMAC_OK;
    for (const char *at = text; at < nul; at++) {
        column = *at == '\n' ? 1 : column + ((*at & 0xc0) != 0x80); /* characters of UTF-8 */
        line += *at == '\n';
    }
    return fail_invalid(
        error, SUMAC_REASON_BAD_EXPRESSION,
        "line %" PRIu32 ", column %" PRIu32
        ": a NUL, which no expression has; text_bytes counts the text without the NUL at its end",
        line, column);
}

enum sumac_status sumac_client_define(
    struct sumac_client *client, const char *name, const char *text, size_t text_bytes,
    struct sumac_error *error)
{
    const char *const null = client == NULL ? "client"
                             : name == NULL ? "name"
                             : text == NULL ? "text"
                                            : NULL;
    struct defining defining = {.made = NULL};

    enum sumac_status status = client_enter(client, null, __func__, error);
    if (status != SUMAC_OK)
        return status;
    status = check_text(text, text_bytes, error);
    if (status == SUMAC_OK)
        status = read_text(name, text, text_bytes, &defining.made, error);
    if (status == SUMAC_OK)
        status = call_define(client, &defining, text, text_bytes, error);
    if (status == SUMAC_OK)
        learn(client, defining.made, defining.number);
    else
        free(defining.made);
    client_unlock(client);
    return status;
}
