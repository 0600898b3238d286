/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.c -- digits·10^e as a quotient of two large integers, divided bit by bit: slow, exact,
 * short. */
#include "decimal.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LIMBS 44u /* 1408 bits: 10^19 · 10^345, and a bit more */
#define EXPONENT_MAX 345
#define QUOTIENT_BITS 62

struct large {
    uint32_t limb[LIMBS]; /* the lowest first */
};

struct decimal_parts {
    uint64_t digits;
    int exponent; /* of 10 */
};

static void multiply(struct large *large, uint32_t factor)
{
    uint64_t carry = 0;

    for (uint32_t i = 0; i < LIMBS; i++) {
        carry += (uint64_t)large->limb[i] * factor;
        large->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    assert(carry == 0);
}

static void multiply_by_power_of_10(struct large *large, int exponent)
{
    for (; exponent >= 9; exponent -= 9)
        multiply(large, 1000000000u);
    for (; exponent > 0; exponent--)
        multiply(large, 10);
}

static void shift_left(struct large *large, uint32_t bits)
{
    const uint32_t limbs = bits / 32, rest = bits % 32;

    assert(limbs < LIMBS);
    memmove(large->limb + limbs, large->limb, (LIMBS - limbs) * sizeof large->limb[0]);
    memset(large->limb, 0, limbs * sizeof large->limb[0]);
    multiply(large, (uint32_t)1 << rest);
}

static int count_bits(const struct large *large)
{
    uint32_t limbs = LIMBS;

    while (limbs > 0 && large->limb[limbs - 1] == 0)
        limbs--;
    assert(limbs > 0);
    return (int)(32 * limbs) - __builtin_clz(large->limb[limbs - 1]);
}

static bool is_less(const struct large *one, const struct large *other)
{
    for (uint32_t i = LIMBS; i-- > 0;)
        if (one->limb[i] != other->limb[i])
            return one->limb[i] < other->limb[i];
    return false;
}

static void subtract(struct large *from, const struct large *other)
{
    int64_t borrow = 0;

    for (uint32_t i = 0; i < LIMBS; i++) {
        borrow += (int64_t)from->limb[i] - other->limb[i];
        from->limb[i] = (uint32_t)borrow;
        borrow = borrow < 0 ? -1 : 0;
    }
    assert(borrow == 0);
}

/* digits·10^exponent: the first QUOTIENT_BITS bits of the quotient, and a last one for the rest. */
static double divide(const struct decimal_parts *parts)
{
    struct large over = {{(uint32_t)parts->digits, (uint32_t)(parts->digits >> 32)}};
    struct large under = {{1}};
    uint64_t quotient = 0;
    int power = 0; /* of 2 */

    assert(parts->digits > 0);
    multiply_by_power_of_10(&over, parts->exponent);
    multiply_by_power_of_10(&under, -parts->exponent);
    power = count_bits(&over) - count_bits(&under) + 1;
    if (power > 0)
        shift_left(&under, (uint32_t)power);
    else
        shift_left(&over, (uint32_t)-power);
    /* over < under, over > under/4 */
    for (int bit = 0; bit < QUOTIENT_BITS; bit++, power--) {
        shift_left(&over, 1);
        quotient <<= 1;
        if (is_less(&over, &under))
            continue;
        subtract(&over, &under);
        quotient |= 1;
    }
    const struct large nothing = {{0}};
    quotient = quotient << 1 | (is_less(&nothing, &over) ? 1 : 0);
    return ldexp((double)quotient, power - 1);
}

static bool is_digit(char character) { return character >= '0' && character <= '9'; }

/* Digits and a point. Returns how many bytes they are; 0: there is no digit, or there are too
 * many. */
static size_t read_digits(const char *text, size_t bytes, struct decimal_parts *parts)
{
    uint32_t significant = 0, seen = 0;
    bool point = false;
    size_t at = 0;

    for (; at < bytes && (is_digit(text[at]) || (text[at] == '.' && !point)); at++) {
        if (text[at] == '.') {
            point = true;
            continue;
        }
        seen++;
        if (significant > 0 || text[at] != '0')
            significant++;
        if (significant > DECIMAL_DIGITS_MAX)
            return 0;
        parts->digits = parts->digits * 10 + (uint64_t)(text[at] - '0');
        parts->exponent -= point ? 1 : 0;
    }
    return seen > 0 ? at : 0;
}

/* "e-4" */
static bool read_exponent(const char *text, size_t bytes, struct decimal_parts *parts)
{
    const bool negative = bytes > 1 && text[1] == '-';
    size_t at = negative || (bytes > 1 && text[1] == '+') ? 2 : 1;
    int exponent = 0;

    if ((text[0] != 'e' && text[0] != 'E') || at == bytes)
        return false;
    for (; at < bytes; at++) {
        if (!is_digit(text[at]))
            return false;
        if (exponent < 100000) /* far beyond the range */
            exponent = exponent * 10 + (text[at] - '0');
    }
    parts->exponent += negative ? -exponent : exponent;
    return true;
}

bool decimal_read(const char *text, size_t bytes, double *number)
{
    struct decimal_parts parts = {0, 0};

    assert(text != NULL && number != NULL);
    if (bytes > 10000) /* so that the exponent is no overflow */
        return false;
    const size_t read = read_digits(text, bytes, &parts);
    if (read == 0 || (read < bytes && !read_exponent(text + read, bytes - read, &parts)))
        return false;
    if (parts.digits == 0 || parts.exponent < -EXPONENT_MAX) {
        *number = 0;
        return true;
    }
    const double value = parts.exponent > EXPONENT_MAX ? HUGE_VAL : divide(&parts);
    if (!(value < HUGE_VAL))
        return false;
    *number = value;
    return true;
}
