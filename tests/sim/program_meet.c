/* SPDX-License-Identifier: Apache-2.0 */
/* program_meet.c -- members that meet: each comes to every round of two rendezvous, whichever it
 * chooses next, and asks what it came to, as lib/client does. */
#include "program_meet.h"

#include <assert.h>
#include <string.h>

#include "meeting_places.h"
#include "meets.h"

#define OPEN_MAX 6u
#define TIMEOUT_MS 40000u
#define TIMEOUT_MS_MIN 200u
#define PULL_TIMEOUT_MS 250000u
#define VERDICT_MS 5000u /* as lib/client: to one that may be over and gone */
#define PIECES (2u * SIM_PS_MAX)

void program_meets_begin(struct world *world, const struct client *client)
{
    uint64_t *come = world->checker->meets_come[client->task];

    if (!world_has(world, FAULT_MEETS) || !client->member)
        return;
    for (uint32_t name = 0; name < SIM_MEET_NAMES; name++)
        if (come[name] > 0 && world_chance(world, 30))
            come[name]--;
}

bool program_meets_left(const struct world *world, const struct client *client)
{
    const uint64_t *come = world->checker->meets_come[client->task];
    bool left = false;

    for (uint32_t name = 0; name < SIM_MEET_NAMES; name++)
        left = left || come[name] < world->meet_rounds;
    return left && world_has(world, FAULT_MEETS) && client->member;
}

/* ---- what it says and has */

static void differ(struct world *world, struct sim_meet *meet)
{
    struct meet_form *form = &meet->form;
    const struct meet_form right = *form;
    const bool arithmetic = form->operation <= MEETING_MAX;

    switch (world_below(world, 4)) {
    case 0:
        form->operation = arithmetic ? MEETING_SUM + (form->operation == MEETING_SUM)
                                     : MEETING_GATHER + (form->operation == MEETING_GATHER);
        form->operation = right.operation == MEETING_SUM ? MEETING_MIN : form->operation;
        form->axis = form->root = 0;
        break;
    case 1:
        form->dtype = form->dtype == SUMAC_FLOAT32 ? SUMAC_FLOAT64 : SUMAC_FLOAT32;
        break;
    case 2:
        if (arithmetic)
            form->split = !form->split;
        else if (form->operation == MEETING_BROADCAST && world->member_count > 1)
            form->root = (form->root + 1) % world->member_count;
        break;
    default:
        break;
    }
    if (memcmp(form, &right, sizeof right) == 0 || (meet_joins(form) && form->shape.rank == 0)) {
        *form = right;
        form->shape.extent[form->shape.rank++] = 1;
    }
}

/* Whether a ps will refuse it. */
static void draw_defect(struct world *world, struct sim_meet *meet)
{
    const bool real = meet->form.dtype != SUMAC_INT64 && meet->form.dtype != SUMAC_INT32 &&
                      meet->form.dtype != SUMAC_UINT8;

    if (!world_has(world, FAULT_REFUSE))
        return;
    if (world->member_count > 1 && world_chance(world, 10)) {
        meet->differs = true;
        differ(world, meet);
    } else if (real && world_chance(world, 8)) {
        meet->defect = DEFECT_NON_FINITE;
    } else if (!meet->form.split && world->ps_count > 1 && world_chance(world, 4)) {
        meet->defect = DEFECT_ELSEWHERE;
    }
}

static void spoil(struct sim_meet *meet)
{
    const uint32_t element = meet_element_bytes(&meet->form);

    if (meet->defect != DEFECT_NON_FINITE)
        return;
    if (meet->bytes < meet_index_bytes(&meet->form) + element)
        meet->defect = DEFECT_NONE; /* it has no element */
    else
        memset(meet->data + meet->bytes - element, 0xff, element);
}

static void fill_header(const struct world *world, struct sim_meet *meet)
{
    const char *const name = meet_name(meet->name);
    const wire_bytes said = {.data = (uint8_t *)(uintptr_t)name, .len = strlen(name)};
    wire_meeting *header = &meet->header;

    for (uint32_t i = 0; i < world->member_count; i++)
        meet->tasks[i] = 2 * i + 1;
    *header = (wire_meeting)WIRE_MEETING_INIT;
    header->name = said;
    header->round = meet->round;
    header->tasks = meet->tasks;
    header->n_tasks = world->member_count;
    header->operation = (Sumac__V1__Meeting__Operation)meet->form.operation;
    header->data_type = (Sumac__V1__DataType)meet->form.dtype;
    header->shape = meet->form.shape.extent;
    header->n_shape = meet->form.shape.rank;
    header->axis = meet->form.axis;
    header->root = meet->form.root;
    header->timeout_ms = meet->timeout_ms;
    header->split = meet->form.split;
    meet->which = (wire_meeting_round)WIRE_MEETING_ROUND_INIT;
    meet->which.name = said;
    meet->which.round = meet->round;
}

static struct sim_meet *make(struct world *world, const struct client *client, uint32_t name)
{
    struct sim_meet *meet = checker_meet(world, client->life);

    if (meet == NULL)
        return NULL;
    meet->task = client->task;
    meet->name = name;
    meet->round = world->checker->meets_come[client->task][name];
    meet->form = meet_form(world, name, meet->round, client->task);
    meet->weight = meet->form.operation == MEETING_MEAN
                       ? meet_weight(world, name, meet->round, client->task)
                       : 1;
    meet->timeout_ms =
        world_chance(world, 70) ? TIMEOUT_MS : world_between(world, TIMEOUT_MS_MIN, TIMEOUT_MS);
    draw_defect(world, meet);
    meet->data = world_take(world, MEET_BYTES_MAX);
    meet->into = world_take(world, MEET_RESULT_BYTES_MAX);
    memset(meet->into, 0xee, MEET_RESULT_BYTES_MAX);
    meet->bytes = meet_fill(meet, meet->data);
    spoil(meet);
    fill_header(world, meet);
    return meet;
}

/* ---- its pieces */

static uint32_t place_of(const struct world *world, const struct sim_meet *meet)
{
    const char *const name = meet_name(meet->name);
    const uint32_t home = wire_meeting_home(name, strlen(name), world->ps_count);

    return meet->defect == DEFECT_ELSEWHERE ? (home + 1) % world->ps_count : home;
}

static struct session_piece piece_of(uint32_t ps, uint8_t *data, uint64_t bytes)
{
    return (struct session_piece){
        .ps = ps, .kind = WIRE_PIECE_VALUES, .data = data, .bytes = bytes};
}

static uint32_t cut_push(const struct world *world, struct sim_meet *meet, struct session_piece *to)
{
    const uint64_t index_bytes = meet_index_bytes(&meet->form);
    const uint32_t element = meet_element_bytes(&meet->form), home = place_of(world, meet);
    uint32_t count = 0;

    if (meet->form.operation == MEETING_CONCATENATE)
        to[count++] = piece_of(home, meet->data, index_bytes);
    if (!meet->form.split) {
        to[count] = piece_of(home, meet->data + index_bytes, meet->bytes - index_bytes);
        to[count++].offset_bytes = index_bytes;
    }
    for (uint32_t ps = 0; meet->form.split && ps < world->ps_count; ps++) {
        const uint64_t elements = meet->bytes / element;
        const uint64_t first = wire_meeting_first(elements, ps, world->ps_count);
        const uint64_t beyond = wire_meeting_first(elements, ps + 1, world->ps_count);
        to[count++] = piece_of(ps, meet->data + first * element, (beyond - first) * element);
    }
    for (uint32_t i = 0; i < count; i++)
        meet->pushed_to |= (uint8_t)(1u << to[i].ps);
    return count;
}

static uint32_t cut_pull(const struct world *world, struct sim_meet *meet, struct session_piece *to)
{
    const uint64_t elements = meet_elements(&meet->form);
    const uint32_t element = (uint32_t)sumac_dtype_bytes(meet->form.dtype);
    uint32_t count = 0;

    if (!meet->form.split) {
        const bool joins = meet_joins(&meet->form);
        to[0] = piece_of(
            place_of(world, meet), joins ? NULL : meet->into, joins ? 0 : elements * element);
        return 1;
    }
    for (uint32_t ps = 0; ps < world->ps_count; ps++) {
        const uint64_t first = wire_meeting_first(elements, ps, world->ps_count);
        const uint64_t beyond = wire_meeting_first(elements, ps + 1, world->ps_count);
        to[count++] = piece_of(ps, meet->into + first * element, (beyond - first) * element);
    }
    return count;
}

/* ---- its push and its pull */

static void take_push(
    const struct world *world, struct sim_meet *meet, struct session_piece *pieces,
    struct session_push *wanted)
{
    *wanted = (struct session_push){
        .token = meet->token,
        .pieces = pieces,
        .piece_count = cut_push(world, meet, pieces),
        .weight = meet->weight,
        .meeting = &meet->header};
}

/* What one came to that may have been heard of by all before it may be gone. */
static void take_pull(
    const struct world *world, struct sim_meet *meet, struct session_piece *pieces,
    struct session_pull *wanted)
{
    *wanted = (struct session_pull){
        .token = meet->token,
        .pieces = pieces,
        .piece_count = cut_pull(world, meet, pieces),
        .meeting = &meet->which,
        .has_rows = meet->form.operation == MEETING_CONCATENATE,
        .timeout_ms =
            checker_meets_again(world, meet) ? meet->timeout_ms + VERDICT_MS : PULL_TIMEOUT_MS};
}

/* Contribute, and ask for the result where `event` has a pull. */
static void contribute(
    struct world *world, struct client *client, struct sim_meet *meet, struct session_event *event)
{
    const bool asks = event->pull != NULL;

    meet->sequence = ++client->life->sequence;
    meet->made_us = world->now_us;
    meet->asked |= asks;
    client->pushes_open++;
    client->pulls_open += asks;
    client_step(world, client, event);
    if (meet->fate != FATE_REFUSED)
        return;
    client->life->sequence--; /* refused at once: it has no number */
    meet->sequence = 0;
    if (asks && !meet->heard) {
        meet->asked = false;
        client->pulls_open--;
    }
}

static void push(struct world *world, struct client *client, struct sim_meet *meet)
{
    struct session_piece pieces[PIECES];
    struct session_push wanted;
    struct session_event event = {.kind = SESSION_EVENT_PUSH, .push = &wanted};

    take_push(world, meet, pieces, &wanted);
    contribute(world, client, meet, &event);
}

static void pull(struct world *world, struct client *client, struct sim_meet *meet)
{
    struct session_piece pieces[PIECES];
    struct session_pull wanted;
    struct session_event event = {.kind = SESSION_EVENT_PULL, .pull = &wanted};

    take_pull(world, meet, pieces, &wanted);
    meet->asked = true;
    client->pulls_open++;
    client_step(world, client, &event);
}

/* As lib/client does: in one step, and a short result is asked for beside the contribution. */
static void push_and_pull(struct world *world, struct client *client, struct sim_meet *meet)
{
    struct session_piece pushed[PIECES], pulled[PIECES];
    struct session_push wanted;
    struct session_pull result;
    struct session_event event = {.kind = SESSION_EVENT_MEET, .push = &wanted, .pull = &result};

    take_push(world, meet, pushed, &wanted);
    take_pull(world, meet, pulled, &result);
    result.beside = true;
    contribute(world, client, meet, &event);
}

static bool is_refused(const struct sim_meet *meet)
{
    return meet->fate != FATE_UNDER_WAY && meet->fate != FATE_OK;
}

static void ask(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];
    struct sim_meet *meet = event->data;

    if (!is_refused(meet))
        pull(world, client, meet);
}

/* It was refused, and waits for nothing; or all is known of it. */
static void end(struct world *world, const struct event *event)
{
    struct client *client = world->clients[event->number];
    struct sim_meet *meet = event->data;
    struct session_event cancel = {.kind = SESSION_EVENT_CANCEL_PULL, .token = meet->token};
    struct session_event over = {.kind = SESSION_EVENT_MET, .token = meet->token};

    if (meet->over)
        return;
    meet->over = true;
    meet->cancelled = true;
    if (meet->asked && !meet->heard)
        client_step(world, client, &cancel);
    client_step(world, client, &over);
    client->meets_open--;
}

static void look(struct world *world, struct client *client, struct sim_meet *meet)
{
    const bool over = is_refused(meet) || (meet->fate == FATE_OK && meet->heard);
    const uint64_t late_us = world_chance(world, 20) ? world_below(world, 3000000) : 0;

    if (over)
        world_after(world, late_us, process_of_client(client->index), end, client->index, meet);
}

static void come(struct world *world, struct client *client, struct sim_meet *meet)
{
    const bool together = world_chance(world, 60), before = world_chance(world, 50);
    const uint64_t late_us = world_chance(world, 20) ? world_below(world, 3000000) : 0;

    trace_say(
        world, "%s comes to round %u of %s, a %s%s%s%s",
        world->processes[process_of_client(client->index)].name, (unsigned)meet->round,
        meet_name(meet->name), meeting_operation_name(meet->form.operation),
        meet->differs ? ", unlike others" : "",
        meet->defect == DEFECT_NONE ? "" : ", with a fault that one will refuse",
        checker_meets_again(world, meet) ? ", perhaps again" : "");
    client->meets_open++;
    if (together) {
        push_and_pull(world, client, meet);
        return;
    }
    if (before)
        pull(world, client, meet);
    push(world, client, meet);
    if (!before && !is_refused(meet))
        world_after(world, late_us, process_of_client(client->index), ask, client->index, meet);
}

/* Another attempt of its task may have gone back to a round that it has come to. */
static bool has_come(const struct world *world, const struct client *client, uint32_t name)
{
    const struct checker *checker = world->checker;

    for (uint32_t i = 0; i < checker->meet_count; i++) {
        const struct sim_meet *meet = checker->meets[i];
        if (meet->session == client->life && meet->name == name &&
            meet->round == checker->meets_come[client->task][name])
            return true;
    }
    return false;
}

static void come_to_some(struct world *world, struct client *client)
{
    uint64_t *come_to = world->checker->meets_come[client->task];
    uint32_t name = world_below(world, SIM_MEET_NAMES);

    while (come_to[name] >= world->meet_rounds)
        name = (name + 1) % SIM_MEET_NAMES;
    come_to[name]++;
    if (has_come(world, client, name))
        return;
    if (world_has(world, FAULT_REFUSE) && world_chance(world, 4))
        return; /* it stays away */
    struct sim_meet *meet = make(world, client, name);
    if (meet != NULL)
        come(world, client, meet);
}

/* At times to several rounds at once, so that their contributions, and results, share messages. */
void program_meet(struct world *world, struct client *client)
{
    const uint32_t most = world_chance(world, 50) ? 0 : world_between(world, 1, OPEN_MAX);

    for (uint32_t i = 0; i < most; i++)
        if (program_meets_left(world, client) && client->meets_open < OPEN_MAX)
            come_to_some(world, client);
}

bool program_met(struct world *world, struct client *client, const struct session_effect *effect)
{
    struct sim_meet *meet = checker_find_meet(world, effect->token);
    struct session_state state;

    if (meet == NULL)
        return false;
    session_read(client->session, &state);
    if (effect->kind == SESSION_EFFECT_PUSHED)
        checker_contributed(world, meet, effect, state.ended);
    else
        checker_met(world, meet, effect);
    look(world, client, meet);
    return true;
}
