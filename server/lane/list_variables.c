/* SPDX-License-Identifier: Apache-2.0 */
/* list_variables.c -- the catalogue as this ps has it: published variables, with the versions of
 * the shards it holds itself, in answers of less than 1 MiB.
 */
#include "handlers.h"

/* Of one answer, if it has more than one variable: about a millisecond, with its packing. As many
 * shards as a variable may have take 0.3 to 0.6 MB, and two. */
#define LIST_BYTES_MAX 262144u
#define POINTERS_PER_WORK 64u /* that are compared */
#define LIST_VARIABLES_MAX (LIST_BYTES_MAX / DEFINITION_VARIABLE_BYTES_MAX + 1)

static wire_shard *pack_shard(struct lane *lane, const struct placement *placement)
{
    wire_shard *shard = arena_take(&lane->arena, sizeof *shard);

    assert(placement->here == NULL || placement->here->id == placement->shard_id);
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
        shard->version = store_version(placement->here);
        shard->last_worker = placement->here->last_worker;
    }
    return shard;
}

/* The first of its shards here, if its hyperparameters are not those that it was created with. */
static const struct shard *find_changed(const struct variable *variable)
{
    const struct shard *first = variable->made_count == 0 ? NULL : &variable->shards[0];

    if (first == NULL || definition_same_hyperparameters(
                             &first->hyperparameters, &variable->definition.hyperparameters))
        return NULL;
    return first;
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
    message->published = variable->published;
    message->shards = shards;
    for (uint32_t i = 0; i < variable->placement_count; i++) {
        wire_shard *shard = pack_shard(lane, &variable->placements[i]);
        if (shard == NULL)
            return NULL;
        shards[message->n_shards++] = shard;
    }
    assert(message->n_shards == variable->placement_count);
    const struct shard *changed = find_changed(variable);
    if (changed != NULL) {
        message->current = definition_write_current(
            variable->definition.function, &changed->hyperparameters, &lane->arena);
        if (message->current == NULL)
            return NULL;
        message->every_shard = update_schedule_is_any(&changed->hyperparameters.schedule);
    }
    return definition_write(&variable->definition, &lane->arena, message) ? message : NULL;
}

/* ---- an answer ---- */

/* An answer as it is put together. */
struct page {
    wire_list_reply *reply;
    size_t bytes, limit;
    bool no_memory;
};

/* On the wire, at most: every number with as many bytes as it may take. */
static size_t bytes_of(const struct variable *variable)
{
    size_t bytes = DEFINITION_VARIABLE_BYTES_MAX + strlen(variable->name);

    if (find_changed(variable) != NULL)
        bytes += DEFINITION_CURRENT_BYTES_MAX;

    for (uint32_t i = 0; i < variable->placement_count; i++) {
        const struct shard *here = variable->placements[i].here;
        bytes += DEFINITION_SHARD_BYTES_MAX + (here == NULL ? 0 : strlen(here->last_worker));
    }
    return bytes;
}

/* One at least goes into every answer. False: this one has to wait for the next. */
static bool add(struct lane *lane, struct page *page, struct variable *variable)
{
    wire_list_reply *reply = page->reply;
    const size_t bytes = bytes_of(variable);

    assert(reply->n_variables <= page->limit);
    assert(variable->published);
    reply->more =
        reply->n_variables == page->limit ||
        (reply->n_variables > 0 && (page->bytes + bytes > LIST_BYTES_MAX || !lane_has_time(lane)));
    if (reply->more)
        return false;
    wire_variable *packed = pack_variable(lane, variable);
    if (packed == NULL) {
        reply->more = reply->n_variables > 0;
        page->no_memory = reply->n_variables == 0;
        return false;
    }
    reply->variables[reply->n_variables++] = packed;
    page->bytes += bytes;
    return true;
}

/* ---- by name ---- */

static bool fail_request(struct lane *lane, uint64_t call, const char *why)
{
    out_fail(
        &lane->out, call, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_MALFORMED, "list of variables: %s",
        why);
    return false;
}

/* False: the call was failed. */
static bool find_all(
    struct lane *lane, uint64_t call, const wire_list_request *request, struct variable **found)
{
    for (size_t i = 0; i < request->n_names; i++) {
        found[i] = store_find_by_name(&lane->store, request->names[i]);
        if (found[i] == NULL || !found[i]->published) {
            out_fail(
                &lane->out, call, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE,
                "variable %s is not known to ps %u",
                *request->names[i] == 0 ? "\"\"" : request->names[i], lane->index);
            return false;
        }
        lane->work += i / POINTERS_PER_WORK;
        for (size_t before = 0; before < i; before++) {
            if (found[before] == found[i])
                return fail_request(
                    lane, call, out_text(&lane->out, "%s is named twice", request->names[i]));
        }
    }
    return true;
}

/* False: the call was failed. */
static bool
list_named(struct lane *lane, uint64_t call, const wire_list_request *request, struct page *page)
{
    assert(request->n_names > 0);
    if (request->n_names > WIRE_LIST_NAMES_MAX)
        return fail_request(
            lane, call,
            out_text(
                &lane->out, "%zu names, and %u are the most: ask in several calls",
                request->n_names, WIRE_LIST_NAMES_MAX));
    if (request->after_id != 0)
        return fail_request(lane, call, "after_id goes through all variables: leave out the names");
    struct variable **found = arena_take(&lane->arena, request->n_names * sizeof *found);
    page->no_memory = found == NULL;
    if (found == NULL)
        return true;
    if (!find_all(lane, call, request, found))
        return false;
    for (size_t i = 0; i < request->n_names; i++) {
        if (!add(lane, page, found[i]))
            break;
    }
    return true;
}

/* ---- all of them ---- */

static void list_after(struct lane *lane, uint64_t id, struct page *page)
{
    const struct variable *last = id == UINT64_MAX ? NULL : store_find(&lane->store, id);
    struct variable *variable = last == NULL ? lane->store.variables.first : last->in_store.next;

    while (variable != NULL && variable->id <= id) /* that one is gone */
        variable = variable->in_store.next;
    while (variable != NULL && (!variable->published || add(lane, page, variable)))
        variable = variable->in_store.next;
}

/* ---- the call ---- */

const char *lane_ps0_address(const struct lane *lane)
{
    const char *const address = lane->ps_count > 0 ? lane->ps_addresses[0] : NULL;

    return address != NULL && address[0] != '\0' ? address : NULL;
}

/* NULL: no memory. */
static wire_list_reply *begin(struct lane *lane)
{
    wire_list_reply *reply = arena_take(&lane->arena, sizeof *reply);
    char **addresses = arena_take(&lane->arena, LANE_PS_MAX * sizeof *addresses);
    void *variables = arena_take(&lane->arena, LIST_VARIABLES_MAX * sizeof(wire_variable *));

    assert(lane->ps_count <= LANE_PS_MAX);
    if (reply == NULL || addresses == NULL || variables == NULL)
        return NULL;
    *reply = (wire_list_reply)WIRE_LIST_REPLY_INIT;
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
    reply->variables = variables;
    return reply;
}

void lane_list_call(struct lane *lane, const struct lane_event *event)
{
    const wire_list_request *request = (const wire_list_request *)event->request;
    const bool limited = request->limit != 0 && request->limit < LIST_VARIABLES_MAX;
    struct page page = {
        .reply = begin(lane), .limit = limited ? request->limit : LIST_VARIABLES_MAX};

    assert(page.limit > 0);
    if (page.reply == NULL)
        page.no_memory = true;
    else if (request->n_names == 0)
        list_after(lane, request->after_id, &page);
    else if (!list_named(lane, event->call, request, &page))
        return;
    out_reply_or_fail(&lane->out, event->call, page.no_memory ? NULL : &page.reply->base);
}
