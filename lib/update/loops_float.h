/* SPDX-License-Identifier: Apache-2.0 */
/* loops_float.h -- the loops of one float type: included by loops_body.h with FLOAT, its
 * arithmetic's type, ELEMENT, the same as it lies in memory, LEAF, what a function is, LOOP(name),
 * and SQUARE_ROOT and MAGNITUDE.
 *
 * Kernels of GPUs are made of the same text, so it is C++ as well: worker/cuda/updates.cu includes
 * it with arrays that are a thread's registers. What differs between both types is undefined at
 * the end.
 *
 * `out` may be `in`, and nothing else overlaps: element i of the outputs depends on element i of
 * the inputs only, which is what INDEPENDENT tells the vectoriser. θ is value, g gradient
 * (docs/ARCHITECTURE.md, "Update functions").
 */

/* The arrays and numbers of a slice, by the names that the loops have for them. */
#define VALUES(slice)                                                                              \
    ELEMENT *const out = (slice)->value_out;                                                       \
    const ELEMENT *const in = (slice)->value_in;                                                   \
    const ELEMENT *const restrict gradient = (slice)->gradient;                                    \
    const size_t count = (slice)->count
#define SLOT(slice, number, name)                                                                  \
    ELEMENT *const name##_out = (slice)->slot_out[number];                                         \
    const ELEMENT *const name##_in = (slice)->slot_in[number];                                     \
    assert(name##_in != NULL && name##_out != NULL)
#define NUMBER(slice, name, PLACE) const FLOAT name = (FLOAT)(slice)->scalar[UPDATE_SCALAR_##PLACE]
#define RATED_VALUES(slice)                                                                        \
    VALUES(slice);                                                                                 \
    NUMBER(slice, rate, RATE)
/* The values that adam, its relatives and both loops of rmsprop read. */
#define MOMENTS(slice)                                                                             \
    RATED_VALUES(slice);                                                                           \
    SLOT(slice, 0, m);                                                                             \
    SLOT(slice, 1, v);                                                                             \
    NUMBER(slice, one_less_beta_1, ONE_LESS_BETA_1);                                               \
    NUMBER(slice, epsilon, EPSILON)
#define MOVE_MOMENTS                                                                               \
    const FLOAT g = gradient[i];                                                                   \
    const FLOAT m = m_in[i] + (g - m_in[i]) * one_less_beta_1;                                     \
    const FLOAT v = v_in[i] + (g * g - v_in[i]) * one_less_beta_2;                                 \
    m_out[i] = m;                                                                                  \
    v_out[i] = v
#define MEAN_SQUARES(slice)                                                                        \
    RATED_VALUES(slice);                                                                           \
    SLOT(slice, 0, rms);                                                                           \
    SLOT(slice, 1, momentum);                                                                      \
    NUMBER(slice, mu, MOMENTUM);                                                                   \
    NUMBER(slice, rho, RHO);                                                                       \
    NUMBER(slice, one_less_rho, ONE_LESS_RHO);                                                     \
    NUMBER(slice, epsilon, EPSILON)
#define BY_FLAG(name, with, without)                                                               \
    LEAF void LOOP(name)(const struct update_slice *slice)                                         \
    {                                                                                              \
        if (slice->flag)                                                                           \
            LOOP(with)(slice);                                                                     \
        else                                                                                       \
            LOOP(without)(slice);                                                                  \
    }

/* θ = θ operator g */
#define BINARY(name, expression)                                                                   \
    LEAF void LOOP(name)(const struct update_slice *slice)                                         \
    {                                                                                              \
        VALUES(slice);                                                                             \
        INDEPENDENT                                                                                \
        for (size_t i = 0; i < count; i++)                                                         \
            out[i] = expression;                                                                   \
    }
BINARY(assign_add, in[i] + gradient[i])
BINARY(assign_sub, in[i] - gradient[i])
BINARY(multiply, in[i] * gradient[i])
BINARY(divide, in[i] / gradient[i])
/* As in an expression: a NaN on either side gives a NaN, and equal numbers give the second. */
BINARY(min, in[i] < gradient[i] || in[i] != in[i] ? in[i] : gradient[i])
BINARY(max, in[i] > gradient[i] || in[i] != in[i] ? in[i] : gradient[i])

/* θ −= η·g */
LEAF void LOOP(sgd)(const struct update_slice *slice)
{
    RATED_VALUES(slice);
    INDEPENDENT
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] - rate * gradient[i];
}

/* a = μ·a + g; θ −= η·a */
LEAF void LOOP(momentum_plain)(const struct update_slice *slice)
{
    RATED_VALUES(slice);
    SLOT(slice, 0, accumulator);
    NUMBER(slice, momentum, MOMENTUM);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT a = momentum * accumulator_in[i] + gradient[i];
        accumulator_out[i] = a;
        out[i] = in[i] - rate * a;
    }
}

/* a = μ·a + g; θ −= η·(g + μ·a) */
LEAF void LOOP(momentum_nesterov)(const struct update_slice *slice)
{
    RATED_VALUES(slice);
    SLOT(slice, 0, accumulator);
    NUMBER(slice, momentum, MOMENTUM);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT a = momentum * accumulator_in[i] + g;
        accumulator_out[i] = a;
        out[i] = in[i] - rate * (g + momentum * a);
    }
}

BY_FLAG(momentum, momentum_nesterov, momentum_plain)

/* a += g²; θ −= η·g/(√a + ε) */
LEAF void LOOP(adagrad)(const struct update_slice *slice)
{
    RATED_VALUES(slice);
    SLOT(slice, 0, accumulator);
    NUMBER(slice, epsilon, EPSILON);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT a = accumulator_in[i] + g * g;
        accumulator_out[i] = a;
        out[i] = in[i] - rate * g / (SQUARE_ROOT(a) + epsilon);
    }
}

/* s = ρ·s + (1 − ρ)·g²; u = μ·u + η·g/√(s + ε); θ −= u */
LEAF void LOOP(rmsprop_plain)(const struct update_slice *slice)
{
    MEAN_SQUARES(slice);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT s = rho * rms_in[i] + one_less_rho * (g * g);
        const FLOAT u = mu * momentum_in[i] + rate * g / SQUARE_ROOT(s + epsilon);
        rms_out[i] = s;
        momentum_out[i] = u;
        out[i] = in[i] - u;
    }
}

/* The same with c = ρ·c + (1 − ρ)·g and √(s − c² + ε) */
LEAF void LOOP(rmsprop_centered)(const struct update_slice *slice)
{
    MEAN_SQUARES(slice);
    SLOT(slice, 2, mean);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT s = rho * rms_in[i] + one_less_rho * (g * g);
        const FLOAT c = rho * mean_in[i] + one_less_rho * g;
        const FLOAT u = mu * momentum_in[i] + rate * g / SQUARE_ROOT(s - c * c + epsilon);
        rms_out[i] = s;
        mean_out[i] = c;
        momentum_out[i] = u;
        out[i] = in[i] - u;
    }
}

BY_FLAG(rmsprop, rmsprop_centered, rmsprop_plain)

/* m += (g − m)(1 − β₁); v += (g² − v)(1 − β₂); θ −= η·√(1 − β₂ᵗ)/(1 − β₁ᵗ) · m/(√v + ε); the rate
 * is all that precedes m. */
LEAF void LOOP(adam)(const struct update_slice *slice)
{
    MOMENTS(slice);
    NUMBER(slice, one_less_beta_2, ONE_LESS_BETA_2);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        MOVE_MOMENTS;
        out[i] = in[i] - rate * m / (SQUARE_ROOT(v) + epsilon);
    }
}

/* θ −= η·λ·θ, then adam; the decay is η·λ */
LEAF void LOOP(adamw)(const struct update_slice *slice)
{
    MOMENTS(slice);
    NUMBER(slice, decay, DECAY);
    NUMBER(slice, one_less_beta_2, ONE_LESS_BETA_2);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        MOVE_MOMENTS;
        const FLOAT decayed = in[i] - decay * in[i];
        out[i] = decayed - rate * m / (SQUARE_ROOT(v) + epsilon);
    }
}

/* n′ = n + g²; z += g + 2·l2s·θ − (n′^−p − n^−p)/η·θ; q = n′^−p/η + 2·l2; θ = (sign(z)·l1 − z)/q
 * where |z| > l1, else 0. Both loops' element, with n^−p as each has it. */
#define FTRL_NUMBERS(slice)                                                                        \
    RATED_VALUES(slice);                                                                           \
    SLOT(slice, 0, accumulator);                                                                   \
    SLOT(slice, 1, linear);                                                                        \
    NUMBER(slice, l1, L1);                                                                         \
    NUMBER(slice, twice_l2, TWICE_L2);                                                             \
    NUMBER(slice, twice_shrinkage, TWICE_L2_SHRINKAGE)
#define FTRL_ELEMENT(POWER_OF)                                                                     \
    {                                                                                              \
        const FLOAT g = gradient[i], value = in[i];                                                \
        const FLOAT n = accumulator_in[i] + g * g;                                                 \
        const FLOAT after = POWER_OF(n), before = POWER_OF(accumulator_in[i]);                     \
        const FLOAT z =                                                                            \
            linear_in[i] + (g + twice_shrinkage * value - (after - before) / rate * value);        \
        const FLOAT q = after / rate + twice_l2;                                                   \
        const FLOAT size = MAGNITUDE(z);                                                           \
        const FLOAT moved = ((z > 0 ? l1 : -l1) - z) / q;                                          \
        accumulator_out[i] = n;                                                                    \
        linear_out[i] = z;                                                                         \
        out[i] = size > l1 ? moved : 0;                                                            \
    }

LEAF void LOOP(ftrl_root)(const struct update_slice *slice)
{
    FTRL_NUMBERS(slice);
    INDEPENDENT
    for (size_t i = 0; i < count; i++)
        FTRL_ELEMENT(SQUARE_ROOT)
}

/* No compiler vectorises it. */
LEAF void LOOP(ftrl_any)(const struct update_slice *slice)
{
    FTRL_NUMBERS(slice);
    const double power = slice->scalar[UPDATE_SCALAR_POWER];
#define ANY_POWER(n) (FLOAT) power_real((double)(n), power)
    IN_TURN
    for (size_t i = 0; i < count; i++)
        FTRL_ELEMENT(ANY_POWER)
#undef ANY_POWER
}
BY_FLAG(ftrl, ftrl_root, ftrl_any)

/* m, v as adam's; θ −= η·√(1 − β₂ᵗ)·(β₁·m/(1 − β₁ᵗ⁺¹) + (1 − β₁)·g/(1 − β₁ᵗ))/(√v + ε); the rates
 * are all that precedes m and g. */
LEAF void LOOP(nadam)(const struct update_slice *slice)
{
    MOMENTS(slice);
    NUMBER(slice, ahead_rate, AHEAD_RATE);
    NUMBER(slice, one_less_beta_2, ONE_LESS_BETA_2);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        MOVE_MOMENTS;
        out[i] = in[i] - (rate * m + ahead_rate * g) / (SQUARE_ROOT(v) + epsilon);
    }
}

/* m += (g − m)(1 − β₁); v = max(β₂·v, |g|); θ −= η/(1 − β₁ᵗ) · m/(v + ε) */
LEAF void LOOP(adamax)(const struct update_slice *slice)
{
    MOMENTS(slice);
    NUMBER(slice, beta_2, BETA_2);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT m = m_in[i] + (g - m_in[i]) * one_less_beta_1;
        const FLOAT size = MAGNITUDE(g), faded = beta_2 * v_in[i];
        const FLOAT v = size > faded ? size : faded;
        m_out[i] = m;
        v_out[i] = v;
        out[i] = in[i] - rate * m / (v + epsilon);
    }
}

/* a = ρ·a + (1 − ρ)·g²; u = g·√(d + ε)/√(a + ε); d = ρ·d + (1 − ρ)·u²; θ −= η·u */
LEAF void LOOP(adadelta)(const struct update_slice *slice)
{
    RATED_VALUES(slice);
    SLOT(slice, 0, accumulator);
    SLOT(slice, 1, delta);
    NUMBER(slice, rho, RHO);
    NUMBER(slice, one_less_rho, ONE_LESS_RHO);
    NUMBER(slice, epsilon, EPSILON);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT a = rho * accumulator_in[i] + one_less_rho * (g * g);
        const FLOAT u = g * SQUARE_ROOT(delta_in[i] + epsilon) / SQUARE_ROOT(a + epsilon);
        accumulator_out[i] = a;
        delta_out[i] = rho * delta_in[i] + one_less_rho * (u * u);
        out[i] = in[i] - rate * u;
    }
}

/* u = sign(β₁·m + (1 − β₁)·g); θ −= η·(u + λ·θ); m = β₂·m + (1 − β₂)·g */
LEAF void LOOP(lion)(const struct update_slice *slice)
{
    RATED_VALUES(slice);
    SLOT(slice, 0, m);
    NUMBER(slice, decay, DECAY);
    NUMBER(slice, beta_1, BETA_1);
    NUMBER(slice, one_less_beta_1, ONE_LESS_BETA_1);
    NUMBER(slice, beta_2, BETA_2);
    NUMBER(slice, one_less_beta_2, ONE_LESS_BETA_2);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT ahead = beta_1 * m_in[i] + one_less_beta_1 * g;
        const FLOAT u = ahead > 0 ? 1 : ahead < 0 ? -1 : ahead;
        m_out[i] = beta_2 * m_in[i] + one_less_beta_2 * g;
        out[i] = in[i] - rate * (u + decay * in[i]);
    }
}

/* adam with v −= (1 − β₂)·sign(v − g²)·g² */
LEAF void LOOP(yogi)(const struct update_slice *slice)
{
    MOMENTS(slice);
    NUMBER(slice, one_less_beta_2, ONE_LESS_BETA_2);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT m = m_in[i] + (g - m_in[i]) * one_less_beta_1;
        const FLOAT above = v_in[i] - g * g;
        const FLOAT sign = above > 0 ? 1 : above < 0 ? -1 : above;
        const FLOAT v = v_in[i] - one_less_beta_2 * sign * (g * g);
        m_out[i] = m;
        v_out[i] = v;
        out[i] = in[i] - rate * m / (SQUARE_ROOT(v) + epsilon);
    }
}

/* d += g; θ −= η·(c·μ·m + g/N); the rates are all that precedes m and g. */
LEAF void LOOP(delayed_nesterov_between)(const struct update_slice *slice)
{
    RATED_VALUES(slice);
    SLOT(slice, 0, momentum);
    SLOT(slice, 1, delayed);
    NUMBER(slice, gradient_rate, GRADIENT_RATE);
    if (momentum_out != momentum_in)
        memcpy(momentum_out, momentum_in, count * sizeof *momentum_out);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i], m = momentum_in[i];
        delayed_out[i] = delayed_in[i] + g;
        out[i] = in[i] - (rate * m + gradient_rate * g);
    }
}

/* m = μ·m + (d + g)/N; d = 0; θ −= η·((1 − c·N + c)·μ·m + g/N) */
LEAF void LOOP(delayed_nesterov_moving)(const struct update_slice *slice)
{
    RATED_VALUES(slice);
    SLOT(slice, 0, momentum);
    SLOT(slice, 1, delayed);
    NUMBER(slice, gradient_rate, GRADIENT_RATE);
    NUMBER(slice, mu, MOMENTUM);
    NUMBER(slice, share, SHARE);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT g = gradient[i];
        const FLOAT m = mu * momentum_in[i] + share * (delayed_in[i] + g);
        momentum_out[i] = m;
        delayed_out[i] = 0;
        out[i] = in[i] - (rate * m + gradient_rate * g);
    }
}

BY_FLAG(delayed_nesterov, delayed_nesterov_moving, delayed_nesterov_between)

/* A NaN stays one: it is neither above nor below. */
LEAF void LOOP(condition)(void *to, const void *from, double scale, double clip, size_t count)
{
    ELEMENT *const out = (ELEMENT *)to;
    const ELEMENT *const in = (const ELEMENT *)from;
    const FLOAT by = (FLOAT)scale, most = (FLOAT)clip;

    assert(clip > 0);
    INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        const FLOAT scaled = in[i] * by;
        const FLOAT below = scaled > most ? most : scaled;
        out[i] = below < -most ? -most : below;
    }
}

#undef VALUES
#undef RATED_VALUES
#undef SLOT
#undef NUMBER
#undef MOMENTS
#undef MOVE_MOMENTS
#undef MEAN_SQUARES
#undef BY_FLAG
#undef BINARY
#undef FTRL_NUMBERS
#undef FTRL_ELEMENT
#undef FLOAT
#undef SQUARE_ROOT
#undef MAGNITUDE
