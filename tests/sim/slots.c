/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c -- rows that are pushed through momentum and adam, and what they must have become. */
#include "slots.h"

#include <math.h>
#include <string.h>

#include "program_transfers.h"

#define ADAM_RATE 0.001 /* the defaults */
#define ADAM_BETA_1 0.9
#define ADAM_BETA_2 0.999
#define ADAM_EPSILON 1e-7
/* Of a sum of up to COLUMNS steps of at most 0.004 in float64, whose rates are right to 2^-46. */
#define ADAM_ERROR_MAX 1e-12
#define DECAY_RATE 0.5
#define DECAY_STEPS 8

static wire_hyperparameter *hyperparameter(struct world *world, uint32_t name, double value)
{
    wire_hyperparameter *made = world_take(world, sizeof *made);

    *made = (wire_hyperparameter)WIRE_HYPERPARAMETER_INIT;
    made->name = (Sumac__V1__HyperparameterName)name;
    made->value = value;
    return made;
}

wire_function *slots_function(struct world *world, enum variable which)
{
    wire_function *function = world_take(world, sizeof *function);

    *function = (wire_function)WIRE_FUNCTION_INIT;
    if (which == ADAM) {
        function->function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_ADAM;
        return function;
    }
    function->function = SUMAC__V1__UPDATE_FUNCTION__UPDATE_FUNCTION_MOMENTUM;
    function->n_hyperparameters = 2;
    function->hyperparameters = world_take(world, 2 * sizeof *function->hyperparameters);
    function->hyperparameters[0] =
        hyperparameter(world, SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE, 1);
    function->hyperparameters[1] =
        hyperparameter(world, SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_MOMENTUM, 1);
    return function;
}

wire_function *const *slots_draw_rate(struct world *world, struct sim_push *push)
{
    push->rate = (uint8_t)world_between(world, 1, 4);
    push->rate_first = world_chance(world, 50);
    push->rate_decays = world_chance(world, 50);
    made(world, MADE_rate_set);
    made_if(world, MADE_rate_decays, push->rate_decays);
    wire_function **functions = world_take(world, sizeof *functions);
    wire_function *function = functions[0] = slots_function(world, ADAM);
    function->n_hyperparameters = 1;
    function->hyperparameters = world_take(world, sizeof *function->hyperparameters);
    function->hyperparameters[0] = hyperparameter(
        world, SUMAC__V1__HYPERPARAMETER_NAME__HYPERPARAMETER_NAME_LEARNING_RATE,
        push->rate * ADAM_RATE);
    if (!push->rate_decays)
        return functions;
    function->schedule = world_take(world, sizeof *function->schedule);
    *function->schedule = (wire_schedule)WIRE_SCHEDULE_INIT;
    function->schedule->kind = SUMAC__V1__SCHEDULE__KIND__KIND_EXPONENTIAL_DECAY;
    function->schedule->decay_rate = DECAY_RATE;
    function->schedule->decay_steps = DECAY_STEPS;
    return functions;
}

static void set_rate(struct world *world, struct sim_push *push, uint32_t ps, uint8_t *data)
{
    struct session_piece *piece =
        program_put_piece(push, checker_shard(world, ADAM, ps, 0), 0, 0, data);

    piece->kind = WIRE_PIECE_HYPERPARAMETERS;
    piece->function = 1;
}

uint8_t *slots_put(struct world *world, struct sim_push *push, uint32_t ps, uint8_t *data)
{
    const float one_slow = 1;
    const double one_adam = 1;

    memset(data, 0, COLUMNS * (sizeof one_slow + sizeof one_adam));
    memcpy(data + push->number * sizeof one_slow, &one_slow, sizeof one_slow);
    program_put_piece(push, checker_shard(world, SLOW, ps, 0), 0, COLUMNS * sizeof one_slow, data);
    data += COLUMNS * sizeof one_slow;
    memcpy(data + push->number * sizeof one_adam, &one_adam, sizeof one_adam);
    if (push->rate != 0 && push->rate_first)
        set_rate(world, push, ps, data);
    program_put_piece(push, checker_shard(world, ADAM, ps, 0), 0, COLUMNS * sizeof one_adam, data);
    if (push->rate != 0 && !push->rate_first)
        set_rate(world, push, ps, data);
    push->data_bytes += COLUMNS * (sizeof one_slow + sizeof one_adam);
    made(world, MADE_slotted);
    return data + COLUMNS * sizeof one_adam;
}

/* The columns of `slow` by the time of their pushes, and how many there are. */
static uint32_t order_of(
    struct world *world, uint32_t ps, const struct snapshot *snapshot, uint64_t applied,
    uint32_t *columns)
{
    const struct checker *checker = world->checker;
    uint32_t count = 0;

    for (uint32_t i = 0; i < checker->push_count; i++)
        count += (applied >> i & 1) != 0 && checker->pushes[i]->slotted;
    memset(columns, 0xff, count * sizeof columns[0]);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        const bool is_there = i < checker->push_count && checker->pushes[i]->slotted &&
                              (applied >> i & 1) != 0 &&
                              (checker->pushes[i]->participants >> ps & 1) != 0;
        const float after = -snapshot->slow[i];
        if (!is_there && after != 0)
            checker_violation(world, "a slot has a push that its row has not");
        if (!is_there)
            continue;
        if (after < 1 || after > (float)count || columns[count - (uint32_t)after] != UINT32_MAX) {
            checker_violation(world, "a push is not once in a slot");
            return 0;
        }
        columns[count - (uint32_t)after] = i;
    }
    return count;
}

static void check_order(struct world *world, const uint32_t *columns, uint32_t count)
{
    struct sim_push *const *pushes = world->checker->pushes;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t later = i + 1; later < count; later++)
            if (columns[later] < columns[i] &&
                pushes[columns[later]]->session == pushes[columns[i]]->session)
                checker_violation(world, "a slot has a session's pushes in another order");
}

/* Each of its pushes is a version of the shard. */
static double rate_of(const struct sim_push *set, uint32_t version)
{
    if (set == NULL)
        return ADAM_RATE;
    return set->rate * ADAM_RATE *
           (set->rate_decays ? pow(DECAY_RATE, (double)version / DECAY_STEPS) : 1);
}

static void check_adam(
    struct world *world, const struct snapshot *snapshot, const uint32_t *columns, uint32_t count)
{
    double value[COLUMNS] = {0}, m[COLUMNS] = {0}, v[COLUMNS] = {0};
    const struct sim_push *set = NULL; /* the last that has set the rate */

    for (uint32_t step = 1; step <= count; step++) {
        const struct sim_push *push = world->checker->pushes[columns[step - 1]];
        if (push->rate != 0 && push->rate_first)
            set = push;
        const double rate = rate_of(set, step - 1) * sqrt(1 - pow(ADAM_BETA_2, step)) /
                            (1 - pow(ADAM_BETA_1, step));
        if (push->rate != 0)
            set = push;
        for (uint32_t i = 0; i < step; i++) { /* the others are zeros yet */
            const uint32_t column = columns[i];
            const double g = i + 1 == step ? 1 : 0;
            m[column] += (g - m[column]) * (1 - ADAM_BETA_1);
            v[column] += (g * g - v[column]) * (1 - ADAM_BETA_2);
            value[column] -= rate * m[column] / (sqrt(v[column]) + ADAM_EPSILON);
        }
    }
    for (uint32_t i = 0; i < COLUMNS; i++)
        if (!(fabs(snapshot->adam[i] - value[i]) <= ADAM_ERROR_MAX))
            checker_violation(world, "adam is not what its pushes make of it");
}

void slots_examine(
    struct world *world, uint32_t ps, const struct snapshot *snapshot, uint64_t applied)
{
    uint32_t columns[COLUMNS];
    const uint32_t count = order_of(world, ps, snapshot, applied, columns);

    check_order(world, columns, count);
    check_adam(world, snapshot, columns, count);
}
