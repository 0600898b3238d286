/* SPDX-License-Identifier: Apache-2.0 */
/* loops_float.h -- the loops of one float type: included by loops_body.h with FLOAT, its
 * arithmetic's type, ELEMENT, the same as it lies in memory, LOOP(name), and SQUARE_ROOT.
 *
 * `out` may be `in`, and nothing else overlaps: element i of the outputs depends on element i of
 * the inputs only, which is what INDEPENDENT tells the vectoriser. θ is value, g gradient
 * (docs/ARCHITECTURE.md, "Update functions").
 */

static void LOOP(assign_add)(const struct update_slice *slice)
{
    ELEMENT *const out = slice->value_out;
    const ELEMENT *const in = slice->value_in;

    const ELEMENT *const restrict gradient = slice->gradient;
    const size_t count = slice->count;
    INDEPENDENT
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] + gradient[i];
}

static void LOOP(assign_sub)(const struct update_slice *slice)
{
    ELEMENT *const out = slice->value_out;
    const ELEMENT *const in = slice->value_in;

    const ELEMENT *const restrict gradient = slice->gradient;
    const size_t count = slice->count;
    INDEPENDENT
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] - gradient[i];
}

/* θ −= η·g */
static void LOOP(sgd)(const struct update_slice *slice)
{
    ELEMENT *const out = slice->value_out;
    const ELEMENT *const in = slice->value_in;

    const ELEMENT *const restrict gradient = slice->gradient;
    const size_t count = slice->count;
    const FLOAT rate = (FLOAT)slice->scalar[UPDATE_SCALAR_RATE];
    INDEPENDENT
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] - rate * gradient[i];
}

/* a = μ·a + g; θ −= η·a */
static void LOOP(momentum_plain)(const struct update_slice *slice)
{
    ELEMENT *const out = slice->value_out;
    const ELEMENT *const in = slice->value_in;
    ELEMENT *const accumulator_out = slice->slot_out[0];
    const ELEMENT *const accumulator_in = slice->slot_in[0];

    const ELEMENT *const restrict gradient = slice->gradient;
    const size_t count = slice->count;
    const FLOAT rate = (FLOAT)slice->scalar[UPDATE_SCALAR_RATE];
    const FLOAT momentum = (FLOAT)slice->scalar[UPDATE_SCALAR_MOMENTUM];
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT a = momentum * accumulator_in[i] + gradient[i];
        accumulator_out[i] = a;
        out[i] = in[i] - rate * a;
    }
}

/* a = μ·a + g; θ −= η·(g + μ·a) */
static void LOOP(momentum_nesterov)(const struct update_slice *slice)
{
    ELEMENT *const out = slice->value_out;
    const ELEMENT *const in = slice->value_in;
    ELEMENT *const accumulator_out = slice->slot_out[0];
    const ELEMENT *const accumulator_in = slice->slot_in[0];

    const ELEMENT *const restrict gradient = slice->gradient;
    const size_t count = slice->count;
    const FLOAT rate = (FLOAT)slice->scalar[UPDATE_SCALAR_RATE];
    const FLOAT momentum = (FLOAT)slice->scalar[UPDATE_SCALAR_MOMENTUM];
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT a = momentum * accumulator_in[i] + g;
        accumulator_out[i] = a;
        out[i] = in[i] - rate * (g + momentum * a);
    }
}

static void LOOP(momentum)(const struct update_slice *slice)
{
    assert(slice->slot_in[0] != NULL && slice->slot_out[0] != NULL);
    if (slice->flag)
        LOOP(momentum_nesterov)(slice);
    else
        LOOP(momentum_plain)(slice);
}

/* m += (g − m)(1 − β₁); v += (g² − v)(1 − β₂); θ −= η·√(1 − β₂ᵗ)/(1 − β₁ᵗ) · m/(√v + ε); the rate
 * is all that precedes m. */
static void LOOP(adam)(const struct update_slice *slice)
{
    ELEMENT *const out = slice->value_out;
    const ELEMENT *const in = slice->value_in;
    ELEMENT *const m_out = slice->slot_out[0];
    const ELEMENT *const m_in = slice->slot_in[0];
    ELEMENT *const v_out = slice->slot_out[1];
    const ELEMENT *const v_in = slice->slot_in[1];

    const ELEMENT *const restrict gradient = slice->gradient;
    const size_t count = slice->count;
    const FLOAT rate = (FLOAT)slice->scalar[UPDATE_SCALAR_RATE];
    const FLOAT one_less_beta_1 = (FLOAT)slice->scalar[UPDATE_SCALAR_ONE_LESS_BETA_1];
    const FLOAT one_less_beta_2 = (FLOAT)slice->scalar[UPDATE_SCALAR_ONE_LESS_BETA_2];
    const FLOAT epsilon = (FLOAT)slice->scalar[UPDATE_SCALAR_EPSILON];

    assert(m_in != NULL && m_out != NULL);
    assert(v_in != NULL && v_out != NULL);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT m = m_in[i] + (g - m_in[i]) * one_less_beta_1;
        const FLOAT v = v_in[i] + (g * g - v_in[i]) * one_less_beta_2;
        m_out[i] = m;
        v_out[i] = v;
        out[i] = in[i] - rate * m / (SQUARE_ROOT(v) + epsilon);
    }
}

static void LOOP(sum)(void *sum, const void *const *summands, uint32_t summand_count, size_t count)
{
    ELEMENT *const out = sum;

    SUM_LOOPS(ELEMENT, FLOAT, )
}

static void LOOP(mean)(
    void *sum, const void *const *summands, uint32_t summand_count, double divisor, size_t count)
{
    ELEMENT *const out = sum;
    const FLOAT by = (FLOAT)divisor;

    assert(by > 0);
    SUM_LOOPS(ELEMENT, FLOAT, / by)
}
