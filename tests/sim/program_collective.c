/* SPDX-License-Identifier: Apache-2.0 */
/* program_collective.c -- members that meet: each comes to every round of two collectives,
 * whichever it chooses next, and asks what it came to, as lib/client does. */
#include "program_collective.h"

#include <assert.h>
#include <string.h>

#include "collective_places.h"
#include "collectives.h"

#define OPEN_MAX 6u
#define TIMEOUT_MS 40000u
#define TIMEOUT_MS_MIN 200u
#define PULL_TIMEOUT_MS 250000u
#define VERDICT_MS 5000u /* as lib/client: to one that may be over and gone */
#define PIECES (2u * SIM_PS_MAX)

void program_collectives_begin(struct world *world, const struct client *client)
{
    uint64_t *come = world->checker->collectives_come[client->task];

    if (!world_has(world, FAULT_COLLECTIVES) || !client->member)
        return;
    for (uint32_t name = 0; name < SIM_COLLECTIVE_NAMES; name++)
        if (come[name] > 0 && world_chance(world, 30))
            come[name]--;
}

bool program_collectives_left(const struct world *world, const struct client *client)
{
    const uint64_t *come = world->checker->collectives_come[client->task];
    bool left = false;

    for (uint32_t name = 0; name < SIM_COLLECTIVE_NAMES; name++)
        left = left || come[name] < world->collective_rounds;
    return left && world_has(world, FAULT_COLLECTIVES) && client->member;
}

/* ---- what it says and has */

static void differ(struct world *world, struct sim_collective *collective)
{
    struct collective_form *form = &collective->form;
    const struct collective_form right = *form;
    const bool arithmetic = form->operation <= COLLECTIVE_MAX;

    switch (world_below(world, 4)) {
    case 0:
        form->operation = arithmetic ? COLLECTIVE_SUM + (form->operation == COLLECTIVE_SUM)
                                     : COLLECTIVE_GATHER + (form->operation == COLLECTIVE_GATHER);
        form->operation = right.operation == COLLECTIVE_SUM ? COLLECTIVE_MIN : form->operation;
        form->axis = form->root = 0;
        break;
    case 1:
        form->dtype = form->dtype == SUMAC_FLOAT32 ? SUMAC_FLOAT64 : SUMAC_FLOAT32;
        break;
    case 2:
        if (arithmetic)
            form->split = !form->split;
        else if (form->operation == COLLECTIVE_BROADCAST && world->member_count > 1)
            form->root = (form->root + 1) % world->member_count;
        break;
    default:
        break;
    }
    if (memcmp(form, &right, sizeof right) == 0 ||
        (collective_joins(form) && form->shape.rank == 0)) {
        *form = right;
        form->shape.extent[form->shape.rank++] = 1;
    }
}

/* Whether a ps will refuse it. */
static void draw_defect(struct world *world, struct sim_collective *collective)
{
    const bool real = collective->form.dtype != SUMAC_INT64 &&
                      collective->form.dtype != SUMAC_INT32 &&
                      collective->form.dtype != SUMAC_UINT8;

    if (!world_has(world, FAULT_REFUSE))
        return;
    if (world->member_count > 1 && world_chance(world, 10)) {
        collective->differs = true;
        differ(world, collective);
    } else if (real && world_chance(world, 8)) {
        collective->defect = DEFECT_NON_FINITE;
    } else if (!collective->form.split && world->ps_count > 1 && world_chance(world, 4)) {
        collective->defect = DEFECT_ELSEWHERE;
    }
}

static void spoil(struct sim_collective *collective)
{
    const uint32_t element = collective_element_bytes(&collective->form);

    if (collective->defect != DEFECT_NON_FINITE)
        return;
    if (collective->bytes < collective_bytes_of_indices(&collective->form) + element)
        collective->defect = DEFECT_NONE; /* it has no element */
    else
        memset(collective->data + collective->bytes - element, 0xff, element);
}

static void fill_header(const struct world *world, struct sim_collective *collective)
{
    const char *const name = collective_name(collective->name);
    const wire_bytes said = {.data = (uint8_t *)(uintptr_t)name, .len = strlen(name)};
    wire_collective *header = &collective->header;

    for (uint32_t i = 0; i < world->member_count; i++)
        collective->tasks[i] = 2 * i + 1;
    *header = (wire_collective)WIRE_COLLECTIVE_INIT;
    header->name = said;
    header->round = collective->round;
    header->tasks = collective->tasks;
    header->n_tasks = world->member_count;
    header->operation = (Sumac__V1__Collective__Operation)collective->form.operation;
    header->data_type = (Sumac__V1__DataType)collective->form.dtype;
    header->shape = collective->form.shape.extent;
    header->n_shape = collective->form.shape.rank;
    header->axis = collective->form.axis;
    header->root = collective->form.root;
    header->timeout_ms = collective->timeout_ms;
    header->split = collective->form.split;
    collective->which = (wire_collective_round)WIRE_COLLECTIVE_ROUND_INIT;
    collective->which.name = said;
    collective->which.round = collective->round;
}

static struct sim_collective *make(struct world *world, const struct client *client, uint32_t name)
{
    struct sim_collective *collective = checker_collective(world, client->life);

    if (collective == NULL)
        return NULL;
    collective->task = client->task;
    collective->name = name;
    collective->round = world->checker->collectives_come[client->task][name];
    collective->form = collective_form(world, name, collective->round, client->task);
    collective->weight = collective->form.operation == COLLECTIVE_MEAN
                             ? collective_weight(world, name, collective->round, client->task)
                             : 1;
    collective->timeout_ms =
        world_chance(world, 70) ? TIMEOUT_MS : world_between(world, TIMEOUT_MS_MIN, TIMEOUT_MS);
    draw_defect(world, collective);
    collective->data = world_take(world, COLLECTIVE_BYTES_MAX);
    collective->into = world_take(world, COLLECTIVE_RESULT_BYTES_MAX);
    memset(collective->into, 0xee, COLLECTIVE_RESULT_BYTES_MAX);
    collective->bytes = collective_fill(collective, collective->data);
    spoil(collective);
    fill_header(world, collective);
    return collective;
}

/* ---- its pieces */

static uint32_t place_of(const struct world *world, const struct sim_collective *collective)
{
    const char *const name = collective_name(collective->name);
    const uint32_t home = wire_collective_home(name, strlen(name), world->ps_count);

    return collective->defect == DEFECT_ELSEWHERE ? (home + 1) % world->ps_count : home;
}

static struct session_piece piece_of(uint32_t ps, uint8_t *data, uint64_t bytes)
{
    return (struct session_piece){
        .ps = ps, .kind = WIRE_PIECE_VALUES, .data = data, .bytes = bytes};
}

static uint32_t
cut_push(const struct world *world, struct sim_collective *collective, struct session_piece *to)
{
    const uint64_t index_bytes = collective_bytes_of_indices(&collective->form);
    const uint32_t element = collective_element_bytes(&collective->form),
                   home = place_of(world, collective);
    uint32_t count = 0;

    if (collective->form.operation == COLLECTIVE_CONCATENATE)
        to[count++] = piece_of(home, collective->data, index_bytes);
    if (!collective->form.split) {
        to[count] = piece_of(home, collective->data + index_bytes, collective->bytes - index_bytes);
        to[count++].offset_bytes = index_bytes;
    }
    for (uint32_t ps = 0; collective->form.split && ps < world->ps_count; ps++) {
        const uint64_t elements = collective->bytes / element;
        const uint64_t first = wire_collective_first(elements, ps, world->ps_count);
        const uint64_t beyond = wire_collective_first(elements, ps + 1, world->ps_count);
        to[count++] = piece_of(ps, collective->data + first * element, (beyond - first) * element);
    }
    for (uint32_t i = 0; i < count; i++)
        collective->pushed_to |= (uint8_t)(1u << to[i].ps);
    return count;
}

static uint32_t
cut_pull(const struct world *world, struct sim_collective *collective, struct session_piece *to)
{
    const uint64_t elements = collective_elements(&collective->form);
    const uint32_t element = (uint32_t)sumac_dtype_bytes(collective->form.dtype);
    uint32_t count = 0;

    if (!collective->form.split) {
        const bool joins = collective_joins(&collective->form);
        to[0] = piece_of(
            place_of(world, collective), joins ? NULL : collective->into,
            joins ? 0 : elements * element);
        return 1;
    }
    for (uint32_t ps = 0; ps < world->ps_count; ps++) {
        const uint64_t first = wire_collective_first(elements, ps, world->ps_count);
        const uint64_t beyond = wire_collective_first(elements, ps + 1, world->ps_count);
        to[count++] = piece_of(ps, collective->into + first * element, (beyond - first) * element);
    }
    return count;
}

/* ---- its push and its pull */

static void take_push(
    const struct world *world, struct sim_collective *collective, struct session_piece *pieces,
    struct session_push *wanted)
{
    *wanted = (struct session_push){
        .token = collective->token,
        .pieces = pieces,
        .piece_count = cut_push(world, collective, pieces),
        .weight = collective->weight,
        .collective = &collective->header};
}

/* A round may be gone after its last participant has its result. */
static void take_pull(
    const struct world *world, struct sim_collective *collective, struct session_piece *pieces,
    struct session_pull *wanted)
{
    *wanted = (struct session_pull){
        .token = collective->token,
        .pieces = pieces,
        .piece_count = cut_pull(world, collective, pieces),
        .collective = &collective->which,
        .has_rows = collective->form.operation == COLLECTIVE_CONCATENATE,
        .timeout_ms = checker_collectives_again(world, collective)
                          ? collective->timeout_ms + VERDICT_MS
                          : PULL_TIMEOUT_MS};
}

/* Contribute, and ask for the result where `event` has a pull. */
static void contribute(
    struct world *world, struct client *client, struct sim_collective *collective,
    struct session_event *event)
{
    const bool asks = event->pull != NULL;

    collective->sequence = ++client->life->sequence;
    collective->made_us = world->now_us;
    collective->asked |= asks;
    client->pushes_open++;
    client->pulls_open += asks;
    client_step(world, client, event);
    if (collective->fate != FATE_REFUSED)
        return;
    client->life->sequence--; /* refused at once: it has no number */
    collective->sequence = 0;
    if (asks && !collective->heard) {
        collective->asked = false;
        client->pulls_open--;
    }
}

static void push(struct world *world, struct client *client, struct sim_collective *collective)
{
    struct session_piece pieces[PIECES];
    struct session_push wanted;
    struct session_event event = {.kind = SESSION_EVENT_PUSH, .push = &wanted};

    take_push(world, collective, pieces, &wanted);
    contribute(world, client, collective, &event);
}

static void pull(struct world *world, struct client *client, struct sim_collective *collective)
{
    struct session_piece pieces[PIECES];
    struct session_pull wanted;
    struct session_event event = {.kind = SESSION_EVENT_PULL, .pull = &wanted};

    take_pull(world, collective, pieces, &wanted);
    collective->asked = true;
    client->pulls_open++;
    client_step(world, client, &event);
}

/* As lib/client does: in one step, and a short result is asked for beside the contribution. */
static void
push_and_pull(struct world *world, struct client *client, struct sim_collective *collective)
{
    struct session_piece pushed[PIECES], pulled[PIECES];
    struct session_push wanted;
    struct session_pull result;
    struct session_event event = {
        .kind = SESSION_EVENT_COLLECTIVE, .push = &wanted, .pull = &result};

    take_push(world, collective, pushed, &wanted);
    take_pull(world, collective, pulled, &result);
    result.beside = true;
    contribute(world, client, collective, &event);
}

static bool is_refused(const struct sim_collective *collective)
{
    return collective->fate != FATE_UNDER_WAY && collective->fate != FATE_OK;
}

static void ask(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];
    struct sim_collective *collective = event->data;

    if (!is_refused(collective))
        pull(world, client, collective);
}

/* It was refused, and waits for nothing; or all is known of it. */
static void end(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];
    struct sim_collective *collective = event->data;
    struct session_event cancel = {.kind = SESSION_EVENT_CANCEL_PULL, .token = collective->token};
    struct session_event over = {
        .kind = SESSION_EVENT_COLLECTIVE_RESULT, .token = collective->token};

    if (collective->over)
        return;
    collective->over = true;
    collective->cancelled = true;
    if (collective->asked && !collective->heard)
        client_step(world, client, &cancel);
    client_step(world, client, &over);
    client->collectives_open--;
}

static void look(struct world *world, struct client *client, struct sim_collective *collective)
{
    const bool over = is_refused(collective) || (collective->fate == FATE_OK && collective->heard);
    const uint64_t late_us = world_chance(world, 20) ? world_below(world, 3000000) : 0;

    if (over)
        world_after(
            world, late_us, process_of_client(client->index), end, client->index, collective);
}

static void come(struct world *world, struct client *client, struct sim_collective *collective)
{
    const bool together = world_chance(world, 60), before = world_chance(world, 50);
    const uint64_t late_us = world_chance(world, 20) ? world_below(world, 3000000) : 0;

    trace_say(
        world, "%s comes to round %u of %s, a %s%s%s%s",
        world->processes[process_of_client(client->index)].name, (unsigned)collective->round,
        collective_name(collective->name), collective_operation_name(collective->form.operation),
        collective->differs ? ", unlike others" : "",
        collective->defect == DEFECT_NONE ? "" : ", with a fault that one will refuse",
        checker_collectives_again(world, collective) ? ", perhaps again" : "");
    client->collectives_open++;
    if (together) {
        push_and_pull(world, client, collective);
        return;
    }
    if (before)
        pull(world, client, collective);
    push(world, client, collective);
    if (!before && !is_refused(collective))
        world_after(
            world, late_us, process_of_client(client->index), ask, client->index, collective);
}

/* Another attempt of its task may have gone back to a round that it has come to. */
static bool has_come(const struct world *world, const struct client *client, uint32_t name)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->collective_count; i++) {
        const struct sim_collective *collective = checker->collectives[i];
        if (collective->session == client->life && collective->name == name &&
            collective->round == checker->collectives_come[client->task][name])
            return true;
    }
    return false;
}

static void come_to_some(struct world *world, struct client *client)
{
    uint64_t *come_to = world->checker->collectives_come[client->task];
    uint32_t name = world_below(world, SIM_COLLECTIVE_NAMES);

    while (come_to[name] >= world->collective_rounds)
        name = (name + 1) % SIM_COLLECTIVE_NAMES;
    come_to[name]++;
    if (has_come(world, client, name))
        return;
    if (world_has(world, FAULT_REFUSE) && world_chance(world, 4))
        return; /* it stays away */
    struct sim_collective *collective = make(world, client, name);
    if (collective != NULL)
        come(world, client, collective);
}

/* At times to several rounds at once, so that their contributions, and results, share messages. */
void program_collective(struct world *world, struct client *client)
{
    const uint32_t most = world_chance(world, 50) ? 0 : world_between(world, 1, OPEN_MAX);

    for (uint32_t i = 0; i < most; i++)
        if (program_collectives_left(world, client) && client->collectives_open < OPEN_MAX)
            come_to_some(world, client);
}

bool program_result(struct world *world, struct client *client, const struct session_effect *effect)
{
    struct sim_collective *collective = checker_find_collective(world, effect->token);
    struct session_state state;

    if (collective == NULL)
        return false;
    session_read(client->session, &state);
    if (effect->kind == SESSION_EFFECT_PUSHED)
        checker_contributed(world, collective, effect, state.ended);
    else
        checker_result(world, collective, effect);
    look(world, client, collective);
    return true;
}
