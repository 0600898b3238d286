/* SPDX-License-Identifier: Apache-2.0 */
/* expression_loops_float.h -- the loops of one float type: included by expression_loops_body.h with
 * FLOAT, its arithmetic's type, ELEMENT and CONDITION, the same and a comparison's result as they
 * lie in memory, LOOP(name), SQUARE_ROOT, MAGNITUDE and POWER. */

ONE(negate, -a)
ONE(abs, MAGNITUDE(a))
ONE(sign, NEAR_SIGN(a))
ONE(sqrt, SQUARE_ROOT(a))
ONE(rsqrt, 1 / SQUARE_ROOT(a))
ONE(exp, near_exp((double)a))
ONE(log, near_log((double)a))
ONE(tanh, near_tanh((double)a))
ONE(copy, a)
TWO(add, a + b)
TWO(subtract, a - b)
TWO(multiply, a *b)
TWO(divide, a / b)
TWO(min, NEAR_MIN(a, b))
TWO(max, NEAR_MAX(a, b))
TWO(pow, POWER((double)a, (double)b))
COMPARE(less, a < b)
COMPARE(less_equal, a <= b)
COMPARE(equal, a == b)
COMPARE(not_equal, a != b)
THREE_OF(where, c, v, v, a ? b : c)
THREE_OF(where, c, s, v, a ? b : c)
THREE_OF(where, c, v, s, a ? b : c)
THREE_OF(where, c, s, s, a ? b : c)
/* Two roundings, as of the operations that they are fused of. */
PRODUCT(multiply_add, a *b + c)
PRODUCT(multiply_subtract, a *b - c)
PRODUCT(subtract_product, c - a * b)

HEAD(combine)
{
    BEGIN_s(a, 0) BEGIN_v(b, 1) BEGIN_s(c, 2) BEGIN_v(d, 3) EACH(ELEMENT)
    {
        READ_s(a) READ_v(b) READ_s(c) READ_v(d) out[i] = a * b + c * d;
    }
}

HEAD(fill)
{
    BEGIN_s(a, 0) EACH(ELEMENT) { READ_s(a) out[i] = a; }
}
