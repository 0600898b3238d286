/* SPDX-License-Identifier: Apache-2.0 */
/* array_pass.c (test) -- a pass over a part of an array writes that part alone, however it is
 * aligned. */

#include "unit.h"
#include "array_pass.h"

#define ROWS 5u
#define NARROW 3u
#define WIDE 203u /* more than two lines of 64 bytes, wherever it begins */
#define ALL ((NARROW + WIDE) * ROWS)
#define GUARD 0xEE

static uint8_t narrow[NARROW * ROWS], wide[WIDE * ROWS], whole[ALL];

/* Every byte of both arrays is known by its place, and none is a guard. */
static void fill(void)
{
    uint8_t *to = whole;

    for (size_t i = 0; i < sizeof narrow; i++)
        narrow[i] = (uint8_t)(i % 200);
    for (size_t i = 0; i < sizeof wide; i++)
        wide[i] = (uint8_t)(i * 7 % 200);
    for (size_t row = 0; row < ROWS; row++, to += NARROW + WIDE) {
        memcpy(to, narrow + row * NARROW, NARROW);
        memcpy(to + NARROW, wide + row * WIDE, WIDE);
    }
}

static void assert_alone(const uint8_t *to, const uint8_t *expected, size_t first, size_t bytes)
{
    for (size_t i = 0; i < ALL + 64; i++)
        if (to[i] != (i >= first && i < first + bytes ? expected[i] : GUARD))
            fail_msg("byte %zu of the part of %zu from %zu on is %u", i, bytes, first, to[i]);
}

TEST(a_part_of_arrays_side_by_side_is_written_alone)
{
    static _Alignas(64) uint8_t to[ALL + 64];
    static const uint64_t row_bytes[] = {NARROW, WIDE};
    const uint8_t *const from[] = {narrow, wide};

    fill();
    for (int stream = 0; stream < 2; stream++)
        for (size_t first = 0; first < ALL; first += 41)
            for (size_t bytes = ALL - first; bytes > 0; bytes /= 2) {
                const struct pass_join join = {
                    .from = from,
                    .row_bytes = row_bytes,
                    .count = 2,
                    .all_bytes = NARROW + WIDE,
                    .to = to,
                    .stream = stream != 0};
                memset(to, GUARD, sizeof to);
                pass_join(&join, first, bytes);
                assert_alone(to, whole, first, bytes);
            }
}

TEST(a_part_of_a_sum_is_written_alone)
{
    static _Alignas(64) uint8_t to[ALL + 64];
    static uint8_t sums[ALL];
    const void *const from[] = {whole, whole};

    fill();
    for (uint32_t count = 1; count <= 2; count++)
        for (size_t first = 0; first < ALL; first += 41)
            for (size_t bytes = ALL - first; bytes > 0; bytes /= 2) {
                const struct pass_sum sum = {
                    .op = SUMAC_REDUCE_SUM,
                    .dtype = SUMAC_UINT8,
                    .from = from,
                    .count = count,
                    .to = to,
                    .stream = true};
                for (size_t i = 0; i < ALL; i++)
                    sums[i] = (uint8_t)(whole[i] * count);
                memset(to, GUARD, sizeof to);
                pass_sum(&sum, first, bytes);
                assert_alone(to, sums, first, bytes);
            }
}

/* The array is longer than a tile. */
TEST(a_sum_of_one_is_what_that_has)
{
    static _Alignas(64) uint16_t to[3 * 2048 + 5];
    static uint16_t own[3 * 2048 + 5];
    const uint64_t first = 3, elements = 3 * 2048 + 1;
    const void *const from[] = {own};

    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        own[i] = (uint16_t)i;
    for (int stream = 0; stream < 2; stream++) {
        const struct pass_sum sum = {
            .op = SUMAC_REDUCE_SUM,
            .dtype = SUMAC_UINT16,
            .from = from,
            .count = 1,
            .to = to,
            .stream = stream != 0};
        memset(to, 0, sizeof to);
        pass_sum(&sum, first, elements);
        assert_memory_equal(to + first, own + first, elements * sizeof *own);
        assert_true(to[first - 1] == 0 && to[first + elements] == 0);
    }
}
