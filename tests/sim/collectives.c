/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.c -- the form of each round of a collective, its contributions and its result. */
#include "collectives.h"

#include <assert.h>
#include <string.h>

#include "dtype.h"
#include "half.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

const char *collective_name(uint32_t name)
{
    static const char *const names[SIM_COLLECTIVE_NAMES] = {"home", "split", "a", "b", "c", "d"};

    assert(name < SIM_COLLECTIVE_NAMES);
    return names[name];
}

/* ---- what a round is */

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static uint64_t bits_of(const struct world *world, uint32_t name, uint64_t round, uint64_t of_what)
{
    return mix(mix(mix(world->seed + 0x9e3779b97f4a7c15u) + name * 977 + round) + of_what);
}

static enum sumac_dtype draw_dtype(enum collective_operation operation, uint64_t bits)
{
    static const enum sumac_dtype all[] = {SUMAC_FLOAT32,  SUMAC_FLOAT64, SUMAC_FLOAT16,
                                           SUMAC_BFLOAT16, SUMAC_FLOAT32, SUMAC_INT64,
                                           SUMAC_INT32,    SUMAC_UINT8};
    const uint64_t count = operation == COLLECTIVE_MEAN ? 5 : operation <= COLLECTIVE_MAX ? 7 : 8;

    return all[bits % count];
}

/* Of what is joined each member has another extent, at times none. */
struct collective_form
collective_form(const struct world *world, uint32_t name, uint64_t round, uint32_t task)
{
    const uint64_t bits = bits_of(world, name, round, 0);
    const bool splits = name == 1;
    struct collective_form form = {.split = splits};

    form.operation = (enum collective_operation)(1 + bits % (splits ? 4 : 7));
    if (name > 1 && bits >> 63 != 0) /* the client takes memory for what these come to */
        form.operation = bits % 2 == 0 ? COLLECTIVE_GATHER : COLLECTIVE_CONCATENATE;
    form.dtype = draw_dtype(form.operation, bits >> 8);
    form.shape.rank = (uint32_t)(bits >> 16) % 3;
    if (collective_joins(&form) && form.shape.rank == 0)
        form.shape.rank = 1;
    form.shape.extent[0] = form.shape.rank == 1 ? 1 + (bits >> 24) % 30 : 1 + (bits >> 24) % 5;
    form.shape.extent[1] = 1 + (bits >> 32) % 6;
    for (uint32_t axis = form.shape.rank; axis < SUMAC_RANK_MAX; axis++)
        form.shape.extent[axis] = 0;
    if (form.operation == COLLECTIVE_GATHER)
        form.axis = (uint32_t)(bits >> 40) % form.shape.rank;
    if (form.operation == COLLECTIVE_BROADCAST)
        form.root = (uint32_t)(bits >> 40) % world->member_count;
    if (collective_joins(&form))
        form.shape.extent[form.axis] = bits_of(world, name, round, 1 + task) % 5;
    return form;
}

double collective_weight(const struct world *world, uint32_t name, uint64_t round, uint32_t task)
{
    const bool nothing = bits_of(world, name, round, 99) % 5 == 0;
    const uint64_t weight = bits_of(world, name, round, 100 + task) % 4;

    return nothing ? 0 : (double)weight;
}

bool collective_joins(const struct collective_form *form)
{
    return form->operation == COLLECTIVE_GATHER || form->operation == COLLECTIVE_CONCATENATE;
}

static bool adds(const struct collective_form *form)
{
    return form->operation == COLLECTIVE_SUM || form->operation == COLLECTIVE_MEAN;
}

static bool is_half(enum sumac_dtype dtype)
{
    return dtype == SUMAC_FLOAT16 || dtype == SUMAC_BFLOAT16;
}

static enum sumac_dtype contributed(const struct collective_form *form)
{
    return adds(form) && is_half(form->dtype) ? SUMAC_FLOAT32 : form->dtype;
}

uint32_t collective_element_bytes(const struct collective_form *form)
{
    return (uint32_t)dtype_bytes(contributed(form));
}

uint64_t collective_elements(const struct collective_form *form)
{
    uint64_t count = 1;

    for (uint32_t axis = 0; axis < form->shape.rank; axis++)
        count *= form->shape.extent[axis];
    return count;
}

uint64_t collective_bytes_of_indices(const struct collective_form *form)
{
    return form->operation == COLLECTIVE_CONCATENATE ? form->shape.extent[0] * sizeof(int64_t) : 0;
}

/* ---- numbers of any type of those that there are */

static double get(enum sumac_dtype dtype, const uint8_t *data, uint64_t i)
{
    const void *const at = data + i * dtype_bytes(dtype);
    int64_t whole;
    int32_t small;
    uint16_t half;
    float single;
    double real;

    switch ((int)dtype) {
    case SUMAC_FLOAT64:
        memcpy(&real, at, sizeof real);
        return real;
    case SUMAC_FLOAT32:
        memcpy(&single, at, sizeof single);
        return single;
    case SUMAC_FLOAT16:
        memcpy(&half, at, sizeof half);
        return float32_of_float16(half);
    case SUMAC_BFLOAT16:
        memcpy(&half, at, sizeof half);
        return float32_of_bfloat16(half);
    case SUMAC_INT64:
        memcpy(&whole, at, sizeof whole);
        return (double)whole;
    case SUMAC_INT32:
        memcpy(&small, at, sizeof small);
        return small;
    default:
        return *(const uint8_t *)at;
    }
}

/* As it is rounded to nearest; integers are exact. */
static void put(enum sumac_dtype dtype, uint8_t *data, uint64_t i, double value)
{
    void *const at = data + i * dtype_bytes(dtype);
    const float single = (float)value;
    const uint16_t half =
        dtype == SUMAC_FLOAT16 ? float16_of_float32(single) : bfloat16_of_float32(single);
    const int64_t whole = (int64_t)value;
    const int32_t small = (int32_t)whole;

    switch ((int)dtype) {
    case SUMAC_FLOAT64:
        memcpy(at, &value, sizeof value);
        break;
    case SUMAC_FLOAT32:
        memcpy(at, &single, sizeof single);
        break;
    case SUMAC_FLOAT16:
    case SUMAC_BFLOAT16:
        memcpy(at, &half, sizeof half);
        break;
    case SUMAC_INT64:
        memcpy(at, &whole, sizeof whole);
        break;
    case SUMAC_INT32:
        memcpy(at, &small, sizeof small);
        break;
    default:
        *(uint8_t *)at = (uint8_t)whole;
        break;
    }
}

/* ---- what is contributed */

static uint64_t bits_at(const struct sim_collective *collective, uint64_t i)
{
    const uint64_t whose = collective->session->number * 64u + collective->task;

    return mix(mix(whose * 1000 + collective->name * 100 + collective->round) + i);
}

/* Of sums whose order shows in their bits; of integers it is 0 … 2000000. */
static double value_at(const struct sim_collective *collective, uint64_t i)
{
    const uint64_t bits = bits_at(collective, i);
    const double whole = (double)(bits % 2000001);
    const double scale = (double)(1 + (bits >> 40) % 7) / 3000;

    return collective->form.dtype == SUMAC_INT64 || collective->form.dtype == SUMAC_INT32 ||
                   collective->form.dtype == SUMAC_UINT8
               ? whole
               : (whole - 1000000) * scale;
}

uint64_t collective_fill(const struct sim_collective *collective, uint8_t *data)
{
    const struct collective_form *form = &collective->form;
    const uint64_t count = collective_elements(form),
                   index_bytes = collective_bytes_of_indices(form);

    assert(index_bytes + count * collective_element_bytes(form) <= COLLECTIVE_BYTES_MAX);
    if (form->operation == COLLECTIVE_BROADCAST && form->root != collective->task)
        return 0;
    for (uint64_t i = 0; i < index_bytes / sizeof(int64_t); i++)
        put(SUMAC_INT64, data, i, (double)(bits_at(collective, 1000 + i) % 50));
    for (uint64_t i = 0; i < count; i++)
        put(contributed(form), data + index_bytes, i, value_at(collective, i));
    return index_bytes + count * collective_element_bytes(form);
}

/* ---- what they come to */

/* As float32 and float64 are added: of integers the sums are exact in a double. */
static double
add(const struct collective_form *form, const struct sim_collective *const *from, uint64_t i,
    uint32_t members)
{
    const bool single = contributed(form) == SUMAC_FLOAT32;
    double sum = 0, weight = 0;
    bool any = false;

    for (uint32_t member = 0; member < members; member++) {
        uint8_t data[COLLECTIVE_BYTES_MAX];
        const bool counts = form->operation != COLLECTIVE_MEAN || from[member]->weight > 0;
        if (!counts)
            continue;
        (void)collective_fill(from[member], data);
        const double value = get(contributed(form), data, i);
        sum = !any ? value : single ? (double)((float)sum + (float)value) : sum + value;
        any = true;
        weight += from[member]->weight;
    }
    if (form->operation != COLLECTIVE_MEAN || !(weight > 0))
        return sum;
    return single ? (double)((float)sum / (float)weight) : sum / weight;
}

static double choose(
    const struct collective_form *form, const struct sim_collective *const *from, uint64_t i,
    uint32_t members)
{
    double chosen = 0;

    for (uint32_t member = 0; member < members; member++) {
        uint8_t data[COLLECTIVE_BYTES_MAX];
        (void)collective_fill(from[member], data);
        const double value = get(form->dtype, data, i);
        const bool better = form->operation == COLLECTIVE_MIN ? value < chosen : value > chosen;
        chosen = member == 0 || better ? value : chosen;
    }
    return chosen;
}

/* Of each member's bytes those of one index of the axes before the one that is joined. */
static void join(
    const struct sim_collective *const *from, uint32_t members, bool of_indices,
    struct collective_result *result)
{
    const struct collective_form *form = &from[0]->form;
    uint64_t outer = 1;

    for (uint32_t axis = 0; axis < form->axis; axis++)
        outer *= form->shape.extent[axis];
    for (uint64_t o = 0; o < outer; o++)
        for (uint32_t member = 0; member < members; member++) {
            uint8_t data[COLLECTIVE_BYTES_MAX];
            const uint64_t bytes = collective_fill(from[member], data);
            const uint64_t index_bytes = collective_bytes_of_indices(&from[member]->form);
            const uint64_t share = of_indices ? index_bytes : (bytes - index_bytes) / outer;
            const uint8_t *const at = data + (of_indices ? 0 : index_bytes + o * share);
            memcpy(result->data + result->bytes, at, share);
            result->bytes += share;
        }
}

void combine_round(
    const struct world *world, const struct sim_collective *const *from,
    struct collective_result *result)
{
    const struct collective_form *form = &from[0]->form;
    const uint32_t members = world->member_count;
    const uint64_t count = collective_elements(form);

    *result = (struct collective_result){.shape = form->shape};
    if (form->operation == COLLECTIVE_BROADCAST) {
        result->bytes = collective_fill(from[form->root], result->data);
        return;
    }
    if (collective_joins(form)) {
        result->shape.extent[form->axis] = 0;
        for (uint32_t member = 0; member < members; member++)
            result->shape.extent[form->axis] += from[member]->form.shape.extent[form->axis];
        if (form->operation == COLLECTIVE_CONCATENATE)
            join(from, members, true, result);
        join(from, members, false, result);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        put(form->dtype, result->data, i,
            adds(form) ? add(form, from, i, members) : choose(form, from, i, members));
    result->bytes = count * dtype_bytes(form->dtype);
}
