/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c -- one push's instructions: numbers are folded, products fused with the sums that alone
 * read them, and registers given out.
 *
 *   nodes        fold            fuse                     place
 *   1 − beta_1   0.1             –                        –
 *   beta_1·m     (vector)        COMBINE 0.9·m + 0.1·g    written where the slot is, once nothing
 *   0.1·g        (vector)                                 reads the old slot any more
 *   … + …        (vector)
 */
#include <assert.h>
#include <string.h>

#include "arithmetic.h"
#include "expression.h"

#define AT_THE_END EXPRESSION_NODES_MAX /* later than every node */

/* What becomes of a node. */
struct fate {
    double scalar;
    uint16_t stands_for; /* itself, or the one that a where with a known condition has chosen */
    uint16_t uses;       /* 0: nobody wants it */
    uint16_t last_use;   /* the node that reads it last */
    uint16_t in[4];
    uint8_t operation;
    uint8_t place;  /* of a computed one */
    bool is_scalar; /* the same for every element */
    bool is_fused;  /* computed where it is read */
};

struct planner {
    const struct expression *expression;
    struct expression_plan *plan;
    struct fate fates[EXPRESSION_NODES_MAX];
    uint16_t results[EXPRESSION_RESULTS_MAX]; /* as they stand for themselves */
    uint8_t saved[EXPRESSION_RESULTS_MAX];    /* the register of another result's old value */
    bool taken[EXPRESSION_NODES_MAX];         /* registers */
};

static const uint8_t operand_counts[EXPRESSION_OPERATIONS] = {
#define X(NAME, name, shape, result) [EXPRESSION_##NAME] = EXPRESSION_TAKES_##shape,
    EXPRESSION_OPERATION_LIST(X) EXPRESSION_FUSED_LIST(X)
#undef X
};

uint32_t expression_operands(uint8_t operation)
{
    assert(operation < EXPRESSION_OPERATIONS);
    return operand_counts[operation];
}

bool expression_takes(enum sumac_dtype dtype)
{
    const enum sumac_dtype_kind kind = sumac_dtype_kind(dtype);

    return kind == SUMAC_KIND_FLOAT || kind == SUMAC_KIND_HALF;
}

#define MAGNITUDE fabs
#define SQUARE_ROOT sqrt
#define POWER near_pow
static double evaluate(uint8_t operation, double a, double b, double c)
{
    switch ((int)operation) {
#define X(NAME, name, shape, result)                                                               \
    case EXPRESSION_##NAME:                                                                        \
        return result;
        EXPRESSION_OPERATION_LIST(X)
#undef X
    }
    assert(false); /* of the language are those above */
    return 0;
}

static double round_to(enum sumac_dtype dtype, double number)
{
    return dtype == SUMAC_FLOAT64 ? number : (double)(float)number;
}

static bool is_leaf(const struct fate *fate) { return expression_operands(fate->operation) == 0; }

static void become_scalar(struct fate *fate, double scalar)
{
    assert(!fate->is_scalar);
    fate->is_scalar = true;
    fate->scalar = scalar;
}

static void fold_operation(struct planner *planner, struct fate *fate)
{
    const uint32_t operands = expression_operands(fate->operation);
    const struct fate *in[3] = {NULL, NULL, NULL};
    uint32_t scalars = 0;

    assert(operands > 0 && operands <= 3);
    for (uint32_t k = 0; k < operands; k++) {
        in[k] = &planner->fates[fate->in[k]];
        scalars += in[k]->is_scalar ? 1 : 0;
    }
    if (fate->operation == EXPRESSION_WHERE && in[0]->is_scalar) {
        const uint32_t chosen = in[0]->scalar > 0 ? 1 : 2;
        fate->stands_for = fate->in[chosen];
        if (in[chosen]->is_scalar)
            become_scalar(fate, in[chosen]->scalar);
    } else if (scalars == operands) {
        become_scalar(
            fate, evaluate(
                      fate->operation, in[0]->scalar, operands > 1 ? in[1]->scalar : 0,
                      operands > 2 ? in[2]->scalar : 0));
    }
}

/* Numbers, and what is computed of nothing else. */
static void fold(struct planner *planner, const double *hyperparameters, uint64_t step)
{
    const struct expression *const expression = planner->expression;
    const enum sumac_dtype dtype = planner->plan->dtype;

    for (uint16_t i = 0; i < expression->node_count; i++) {
        const struct expression_node *const node = &expression->nodes[i];
        struct fate *const fate = &planner->fates[i];
        fate->operation = node->operation;
        fate->stands_for = i;
        for (uint32_t k = 0; k < expression_operands(node->operation); k++)
            fate->in[k] = planner->fates[node->in[k]].stands_for;
        if (!is_leaf(fate))
            fold_operation(planner, fate);
        else if (node->operation == EXPRESSION_CONSTANT)
            become_scalar(fate, round_to(dtype, expression->constants[node->in[0]]));
        else if (node->operation == EXPRESSION_HYPERPARAMETER)
            become_scalar(fate, round_to(dtype, hyperparameters[node->in[0]]));
        else if (node->operation == EXPRESSION_STEP)
            become_scalar(fate, (double)step);
        else
            fate->in[0] = node->in[0];
    }
}

/* From the results back: what nobody wants has no uses. */
static void count_uses(struct planner *planner)
{
    for (uint32_t r = 0; r < planner->plan->result_count; r++) {
        const uint16_t node = planner->expression->results[r];
        assert(node < planner->expression->node_count);
        planner->results[r] = planner->fates[node].stands_for;
        planner->fates[planner->results[r]].uses++;
    }
    for (uint32_t i = planner->expression->node_count; i-- > 0;) {
        const struct fate *const fate = &planner->fates[i];
        if (fate->uses == 0 || fate->is_scalar)
            continue;
        for (uint32_t k = 0; k < expression_operands(fate->operation); k++)
            planner->fates[fate->in[k]].uses++;
    }
}

static bool is_fusable(const struct fate *fate)
{
    return fate->operation == EXPRESSION_MULTIPLY && fate->uses == 1 && !fate->is_scalar;
}

/* The factors of a product, a scalar one first: a·b has the bits of b·a. */
static bool take_factors(struct planner *planner, struct fate *product, uint16_t *in)
{
    const bool swap = planner->fates[product->in[1]].is_scalar;

    assert(!swap || !planner->fates[product->in[0]].is_scalar);
    in[0] = product->in[swap ? 1 : 0];
    in[1] = product->in[swap ? 0 : 1];
    return planner->fates[in[0]].is_scalar;
}

/* A sum or difference of which one side, or each, is a product that nothing else reads. */
static void fuse_one(struct planner *planner, struct fate *fate)
{
    struct fate *const left = &planner->fates[fate->in[0]];
    struct fate *const right = &planner->fates[fate->in[1]];
    const bool adds = fate->operation == EXPRESSION_ADD;
    uint16_t of_left[2], of_right[2];

    if (adds && is_fusable(left) && is_fusable(right) && take_factors(planner, left, of_left) &&
        take_factors(planner, right, of_right)) {
        const uint16_t in[4] = {of_left[0], of_left[1], of_right[0], of_right[1]};
        memcpy(fate->in, in, sizeof in);
        fate->operation = EXPRESSION_COMBINE;
        left->is_fused = right->is_fused = true;
        return;
    }
    assert(!fate->is_scalar && fate->uses > 0);
    const bool from_right = is_fusable(right);
    if (!from_right && !is_fusable(left))
        return;
    struct fate *const product = from_right ? right : left;
    const uint16_t other = fate->in[from_right ? 0 : 1];
    (void)take_factors(planner, product, fate->in);
    fate->in[2] = other;
    product->is_fused = true;
    fate->operation = (uint8_t)(adds         ? EXPRESSION_MULTIPLY_ADD
                                : from_right ? EXPRESSION_SUBTRACT_PRODUCT
                                             : EXPRESSION_MULTIPLY_SUBTRACT);
}

static bool is_computed(const struct fate *fate)
{
    return fate->uses > 0 && !fate->is_scalar && !fate->is_fused && !is_leaf(fate);
}

static void fuse(struct planner *planner)
{
    for (uint32_t i = 0; i < planner->expression->node_count; i++) {
        struct fate *const fate = &planner->fates[i];
        if (is_computed(fate) &&
            (fate->operation == EXPRESSION_ADD || fate->operation == EXPRESSION_SUBTRACT))
            fuse_one(planner, fate);
    }
}

/* The result whose old value it is; RESULTS_MAX: it is none. */
static uint32_t old_result(const struct fate *fate)
{
    if (fate->operation == EXPRESSION_VALUE)
        return 0;
    return fate->operation == EXPRESSION_SLOT ? 1u + fate->in[0] : EXPRESSION_RESULTS_MAX;
}

/* Who reads what last, and which results are computed where they belong: once nobody reads what
 * was there. */
static void find_places(struct planner *planner)
{
    uint16_t old_read[EXPRESSION_RESULTS_MAX + 1] = {0};

    for (uint16_t i = 0; i < planner->expression->node_count; i++) {
        struct fate *const fate = &planner->fates[i];
        fate->place = EXPRESSION_PLACES;
        if (!is_computed(fate))
            continue;
        for (uint32_t k = 0; k < expression_operands(fate->operation); k++) {
            struct fate *const in = &planner->fates[fate->in[k]];
            in->last_use = i;
            old_read[old_result(in)] = i;
        }
    }
    for (uint32_t r = 0; r < planner->plan->result_count; r++) {
        struct fate *const fate = &planner->fates[planner->results[r]];
        fate->last_use = AT_THE_END;
        if (is_computed(fate) && fate->place == EXPRESSION_PLACES &&
            old_read[r] <= planner->results[r])
            fate->place = (uint8_t)(EXPRESSION_PLACE_OUT + r);
    }
}

static uint8_t take_register(struct planner *planner)
{
    uint32_t number = 0;

    while (number < EXPRESSION_NODES_MAX && planner->taken[number])
        number++;
    assert(number < EXPRESSION_NODES_MAX);
    planner->taken[number] = true;
    if (planner->plan->register_count < number + 1)
        planner->plan->register_count = number + 1;
    return (uint8_t)number;
}

static uint8_t place_of(const struct fate *fate)
{
    if (fate->operation == EXPRESSION_GRADIENT)
        return EXPRESSION_PLACE_GRADIENT;
    if (old_result(fate) < EXPRESSION_RESULTS_MAX)
        return (uint8_t)(EXPRESSION_PLACE_IN + old_result(fate));
    assert(fate->place < EXPRESSION_PLACES);
    return fate->place;
}

static struct expression_instruction *emit(struct planner *planner, uint8_t operation, uint8_t out)
{
    struct expression_plan *const plan = planner->plan;

    assert(plan->instruction_count < EXPRESSION_INSTRUCTIONS_MAX);
    struct expression_instruction *const made = &plan->instructions[plan->instruction_count++];
    *made = (struct expression_instruction){.operation = operation, .out = out};
    return made;
}

static void emit_node(struct planner *planner, uint16_t node)
{
    struct fate *const fate = &planner->fates[node];
    struct expression_instruction *const made = emit(planner, fate->operation, 0);

    for (uint32_t k = 0; k < expression_operands(fate->operation); k++) {
        const struct fate *const in = &planner->fates[fate->in[k]];
        if (in->is_scalar) {
            made->scalars |= (uint8_t)(1u << k);
            made->scalar[k] = in->scalar;
            continue;
        }
        made->in[k] = place_of(in);
        if (made->in[k] < EXPRESSION_NODES_MAX && in->last_use == node)
            planner->taken[made->in[k]] = false;
    }
    if (fate->place == EXPRESSION_PLACES)
        fate->place = take_register(planner);
    assert(fate->place < EXPRESSION_NODES_MAX || fate->place >= EXPRESSION_PLACE_OUT);
    made->out = fate->place;
}

/* A result that is another's old value is set aside before that is written. */
static void emit_saved(struct planner *planner)
{
    for (uint32_t r = 0; r < planner->plan->result_count; r++) {
        const struct fate *const fate = &planner->fates[planner->results[r]];
        const uint32_t old = old_result(fate);
        planner->saved[r] = EXPRESSION_PLACES;
        if (old == EXPRESSION_RESULTS_MAX || old == r)
            continue;
        planner->saved[r] = take_register(planner);
        emit(planner, EXPRESSION_COPY, planner->saved[r])->in[0] = place_of(fate);
    }
}

/* What is not yet where it belongs. */
static void emit_results(struct planner *planner)
{
    for (uint32_t r = 0; r < planner->plan->result_count; r++) {
        const struct fate *const fate = &planner->fates[planner->results[r]];
        const uint8_t out = (uint8_t)(EXPRESSION_PLACE_OUT + r);
        if (fate->is_scalar) {
            struct expression_instruction *const made = emit(planner, EXPRESSION_FILL, out);
            made->scalars = 1;
            made->scalar[0] = fate->scalar;
        } else if (planner->saved[r] != EXPRESSION_PLACES)
            emit(planner, EXPRESSION_COPY, out)->in[0] = planner->saved[r];
        else if (place_of(fate) != out)
            emit(planner, EXPRESSION_COPY, out)->in[0] = place_of(fate);
    }
}

void expression_plan(
    const struct expression *expression, enum sumac_dtype dtype, const double *hyperparameters,
    uint64_t step, struct expression_plan *plan)
{
    struct planner planner;

    assert(expression_takes(dtype));
    assert(step > 0 || !expression->counts_steps);
    assert(expression->node_count <= EXPRESSION_NODES_MAX);
    memset(&planner, 0, sizeof planner);
    planner.expression = expression;
    planner.plan = plan;
    plan->dtype = dtype;
    plan->result_count = 1 + expression->slot_count;
    plan->register_count = plan->instruction_count = 0;
    fold(&planner, hyperparameters, step);
    count_uses(&planner);
    fuse(&planner);
    find_places(&planner);
    emit_saved(&planner);
    for (uint16_t i = 0; i < expression->node_count; i++)
        if (is_computed(&planner.fates[i]))
            emit_node(&planner, i);
    emit_results(&planner);
}
