/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c (test) -- a value as bytes, and back; and bytes that are none. */
#include <malloc.h>

#include "unit.h"
#include "pack.h"

/* ---- how much memory is taken */

#define HEADER_BYTES 8u /* of malloc, beside what may be used */

static size_t taken_bytes, peak_bytes;
static uint32_t fails_in; /* the next time, or one of those after it; 0: none fails */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
char *__real_strdup(const char *text);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
void __wrap_free(void *memory);

static void *count_taken(void *memory)
{
    taken_bytes += memory == NULL ? 0 : malloc_usable_size(memory) + HEADER_BYTES;
    peak_bytes = taken_bytes > peak_bytes ? taken_bytes : peak_bytes;
    return memory;
}

static void count_given(void *memory)
{
    taken_bytes -= memory == NULL ? 0 : malloc_usable_size(memory) + HEADER_BYTES;
}

static bool fails(void) { return fails_in > 0 && --fails_in == 0; }

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : count_taken(__real_malloc(bytes)); }

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : count_taken(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    count_given(memory);
    return count_taken(__real_realloc(memory, bytes));
}

char *__wrap_strdup(const char *text) { return fails() ? NULL : count_taken(__real_strdup(text)); }

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    const int failed = __real_posix_memalign(memory, alignment, bytes);

    if (failed == 0)
        (void)count_taken(*memory);
    return failed;
}

void __wrap_free(void *memory)
{
    count_given(memory);
    __real_free(memory);
}

/* ---- values */

static struct sumac_value *vector(float first, float second)
{
    const float elements[] = {first, second};

    return sumac_value_tensor(SUMAC_FLOAT32, SUMAC_SHAPE(2), elements);
}

/* One of each kind that goes from worker to worker. */
static struct sumac_value *everything(void)
{
    const int64_t rows[] = {3};
    struct sumac_value *slices = sumac_value_indexed_slices(
        sumac_value_tensor(SUMAC_INT8, SUMAC_SHAPE(1, 2), NULL),
        sumac_value_tensor(SUMAC_INT64, SUMAC_SHAPE(1), rows), SUMAC_SHAPE(5, 2));
    struct sumac_value *const in_tuple[] = {sumac_value_none(), sumac_value_float64(0.5)};
    struct sumac_value *const in_list[] = {
        vector(1, 2), sumac_value_tuple(in_tuple, 2), slices,
        sumac_value_tensor(SUMAC_BFLOAT16, SUMAC_SHAPE(0, 7), NULL)};
    struct sumac_value *const in_dict[] = {sumac_value_list(in_list, 4), sumac_value_list(NULL, 0)};

    return sumac_value_dict((const char *const[]){"a", "ä"}, in_dict, 2);
}

static struct unpack over(const struct pack *pack)
{
    return (struct unpack){.at = pack->bytes, .end = pack->bytes + pack->used};
}

/* NULL: the bytes are no value. */
static struct sumac_value *read_value(struct unpack *unpack)
{
    struct sumac_value *value = NULL;
    const enum sumac_status status = unpack_value(unpack, &value);

    assert_int_equal(status, value == NULL ? SUMAC_INVALID_ARGUMENT : SUMAC_OK);
    return value;
}

TEST(a_value_comes_back_as_it_was)
{
    struct sumac_value *value = everything();
    struct pack pack = {.bytes = NULL};
    char text[4];

    pack_u32(&pack, 7);
    pack_value(&pack, value, NULL, NULL);
    pack_text(&pack, "seven");
    pack_u64(&pack, UINT64_MAX);
    assert_false(pack.failed);

    struct unpack unpack = over(&pack);
    assert_int_equal(unpack_u32(&unpack), 7);
    struct sumac_value *back = read_value(&unpack);
    assert_non_null(back);
    assert_true(sumac_value_equal(value, back));
    assert_string_equal(unpack_text(&unpack, text, sizeof text), "sev");
    assert_true(unpack_u64(&unpack) == UINT64_MAX);
    assert_false(unpack.failed);
    assert_ptr_equal(unpack.at, unpack.end);
    assert_int_equal(unpack_u32(&unpack), 0);
    assert_true(unpack.failed);

    sumac_value_unref(value);
    sumac_value_unref(back);
    pack_deinit(&pack);
}

static bool large_ones_alone(const void *context, const struct sumac_tensor *tensor)
{
    (void)context;
    return sumac_tensor_bytes(tensor) < 8;
}

TEST(elements_may_stay_behind)
{
    struct sumac_value *const items[] = {vector(1, 2), sumac_value_float32(3)};
    struct sumac_value *value = sumac_value_list(items, 2);
    struct pack pack = {.bytes = NULL};

    pack_value(&pack, value, large_ones_alone, NULL);
    struct unpack unpack = over(&pack);
    struct sumac_value *back = read_value(&unpack);

    assert_non_null(back);
    assert_false(value_has_elements(sumac_value_item(back, 0)));
    assert_int_equal(sumac_value_shape(sumac_value_item(back, 0)).extent[0], 2);
    assert_true(value_has_elements(sumac_value_item(back, 1)));
    sumac_value_unref(value);
    sumac_value_unref(back);
    pack_deinit(&pack);
}

/* Each byte missing, each changed: a value, or none, and nothing is read beyond the end. */
TEST(bytes_of_strangers_are_a_value_or_none)
{
    struct sumac_value *value = everything();
    struct pack pack = {.bytes = NULL};

    pack_value(&pack, value, NULL, NULL);
    for (size_t bytes = 0; bytes < pack.used; bytes++) {
        uint8_t *cut = malloc(bytes + 1);
        memcpy(cut, pack.bytes, bytes);
        struct unpack unpack = {.at = cut, .end = cut + bytes};
        assert_null(read_value(&unpack));
        assert_true(unpack.failed);
        free(cut);
    }
    for (size_t at = 0; at < pack.used; at++)
        for (uint32_t bit = 0; bit < 8; bit++) {
            uint8_t *changed = malloc(pack.used);
            memcpy(changed, pack.bytes, pack.used);
            changed[at] ^= (uint8_t)(1u << bit);
            struct unpack unpack = {.at = changed, .end = changed + pack.used};
            sumac_value_unref(read_value(&unpack));
            free(changed);
        }
    sumac_value_unref(value);
    pack_deinit(&pack);
}

static void pack_nest(struct pack *pack, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++) {
        pack_u32(pack, SUMAC_VALUE_LIST);
        pack_u32(pack, 1);
    }
    pack_u32(pack, SUMAC_VALUE_NONE);
    pack_u32(pack, 0);
}

TEST(what_is_too_deep_or_too_many_is_none)
{
    struct pack deep = {.bytes = NULL}, many = {.bytes = NULL}, huge = {.bytes = NULL};

    pack_nest(&deep, 1000000);
    struct unpack unpack = over(&deep);
    assert_null(read_value(&unpack));

    pack_u32(&many, SUMAC_VALUE_TUPLE);
    pack_u32(&many, UINT32_MAX);
    unpack = over(&many);
    assert_null(read_value(&unpack));

    pack_u32(&huge, SUMAC_VALUE_TENSOR);
    pack_u32(&huge, SUMAC_FLOAT64);
    pack_u32(&huge, 1);
    pack_u64(&huge, UINT64_C(1) << 50);
    pack_u32(&huge, 1);
    unpack = over(&huge);
    assert_null(read_value(&unpack));

    pack_deinit(&deep);
    pack_deinit(&many);
    pack_deinit(&huge);
}

static void pack_list_of_nones(struct pack *pack, uint32_t count)
{
    pack_u32(pack, SUMAC_VALUE_LIST);
    pack_u32(pack, count);
    for (uint32_t i = 0; i < count; i++) {
        pack_u32(pack, SUMAC_VALUE_NONE);
        pack_u32(pack, 0);
    }
}

TEST(the_values_within_a_value_are_counted_together)
{
    struct pack pack = {.bytes = NULL};

    pack_u32(&pack, SUMAC_VALUE_LIST); /* too many, in two lists */
    pack_u32(&pack, 2);
    pack_list_of_nones(&pack, PACK_VALUES_MAX / 2);
    pack_list_of_nones(&pack, PACK_VALUES_MAX / 2);
    struct unpack unpack = over(&pack);
    assert_null(read_value(&unpack));
    pack_deinit(&pack);

    pack_list_of_nones(&pack, PACK_VALUES_MAX - 1); /* as many as there may be, twice */
    pack_list_of_nones(&pack, PACK_VALUES_MAX - 1);
    unpack = over(&pack);
    for (int i = 0; i < 2; i++) {
        struct sumac_value *value = read_value(&unpack);
        assert_non_null(value);
        sumac_value_unref(value);
    }
    pack_deinit(&pack);

    pack_u32(&pack, SUMAC_VALUE_NONE); /* with an item */
    pack_u32(&pack, 1);
    unpack = over(&pack);
    assert_null(read_value(&unpack));
    pack_deinit(&pack);
}

/* ---- what strangers may make of little */

#define FACTOR 48u /* as pack.h says, and … */
#define MOST_BYTES (UINT64_C(40) << 20)

typedef void pack_item(struct pack *pack, uint32_t number);

static void pack_kind_and_none(struct pack *pack, uint32_t kind)
{
    pack_u32(pack, kind);
    pack_u32(pack, 0);
}

static void pack_none(struct pack *pack, uint32_t number)
{
    (void)number;
    pack_kind_and_none(pack, SUMAC_VALUE_NONE);
}

static void pack_empty_list(struct pack *pack, uint32_t number)
{
    (void)number;
    pack_kind_and_none(pack, SUMAC_VALUE_LIST);
}

static void pack_empty_dict(struct pack *pack, uint32_t number)
{
    (void)number;
    pack_kind_and_none(pack, SUMAC_VALUE_DICT);
}

static void pack_scalar_alone(struct pack *pack, uint32_t number)
{
    (void)number;
    pack_u32(pack, SUMAC_VALUE_TENSOR);
    pack_u32(pack, SUMAC_INT8);
    pack_u32(pack, 0);
    pack_u32(pack, 0); /* without elements */
}

static void pack_scalar(struct pack *pack, uint32_t number)
{
    pack_u32(pack, SUMAC_VALUE_TENSOR);
    pack_u32(pack, SUMAC_INT32);
    pack_u32(pack, 0);
    pack_u32(pack, 1);
    pack_u32(pack, number);
}

static void pack_entry(struct pack *pack, uint32_t number)
{
    char key[12];

    (void)snprintf(key, sizeof key, "%08x", number); /* in order, as keys are packed */
    pack_text(pack, key);
    pack_kind_and_none(pack, SUMAC_VALUE_NONE);
}

static void pack_same_entry(struct pack *pack, uint32_t number)
{
    (void)number;
    pack_text(pack, "");
    pack_kind_and_none(pack, SUMAC_VALUE_NONE);
}

/* A list of 4096 items, of which only the first is there. */
static void pack_lie(struct pack *pack, uint32_t number)
{
    (void)number;
    pack_u32(pack, SUMAC_VALUE_LIST);
    pack_u32(pack, 4096);
}

/* Reading a nest that claims `count` items, and has `items`, takes little memory. */
static void expect_little_memory(
    enum sumac_value_kind kind, uint32_t count, uint32_t items, pack_item *item, bool is_a_value)
{
    struct pack pack = {.bytes = NULL};

    pack_u32(&pack, kind);
    pack_u32(&pack, count);
    for (uint32_t i = 0; i < items; i++)
        item(&pack, i);
    assert_false(pack.failed);
    struct unpack unpack = over(&pack);
    const size_t before = peak_bytes = taken_bytes;
    struct sumac_value *value = read_value(&unpack);
    const size_t peak = peak_bytes - before;
    assert_int_equal(value != NULL, is_a_value);
    assert_true(peak <= FACTOR * pack.used);
    assert_true(peak <= MOST_BYTES);
    sumac_value_unref(value);
    assert_int_equal(taken_bytes, before);
    pack_deinit(&pack);
}

/* Beside the nest itself. */
#define ITEMS_MOST (PACK_VALUES_MAX - 1)

static pack_item *const each[] = {
    pack_none, pack_empty_list, pack_empty_dict, pack_scalar_alone, pack_scalar};

TEST(reading_takes_memory_in_proportion_to_the_bytes)
{
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        expect_little_memory(SUMAC_VALUE_LIST, 100, 100, each[i], true);
        expect_little_memory(SUMAC_VALUE_TUPLE, ITEMS_MOST, ITEMS_MOST, each[i], true);
        expect_little_memory(SUMAC_VALUE_LIST, ITEMS_MOST + 1, ITEMS_MOST + 1, each[i], false);
        expect_little_memory(SUMAC_VALUE_LIST, 4000000, 4000000, each[i], false);
    }
    expect_little_memory(SUMAC_VALUE_DICT, ITEMS_MOST, ITEMS_MOST, pack_entry, true);
    expect_little_memory(SUMAC_VALUE_DICT, ITEMS_MOST, ITEMS_MOST, pack_same_entry, false);
    expect_little_memory(SUMAC_VALUE_DICT, 4000000, 4000000, pack_entry, false);
}

TEST(a_count_of_more_than_is_there_takes_no_memory)
{
    static const uint32_t counts[] = {2, 3, 40000, UINT32_MAX};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        expect_little_memory(SUMAC_VALUE_LIST, counts[i], 1, pack_none, false);
        expect_little_memory(SUMAC_VALUE_DICT, counts[i], 1, pack_entry, false);
        expect_little_memory(SUMAC_VALUE_TUPLE, counts[i], 0, NULL, false);
    }
    expect_little_memory(SUMAC_VALUE_LIST, 4096, 4096, pack_lie, false);
}

TEST(a_value_of_too_many_is_not_packed)
{
    struct sumac_value **items = calloc(PACK_VALUES_MAX, sizeof *items);

    for (uint32_t count = PACK_VALUES_MAX - 1; count <= PACK_VALUES_MAX; count++) {
        for (uint32_t i = 0; i < count; i++)
            items[i] = sumac_value_none();
        struct sumac_value *value = sumac_value_list(items, count);
        assert_int_equal(pack_fits(value), count < PACK_VALUES_MAX);
        sumac_value_unref(value);
    }
    free(items);
}

/* A key that is too long is refused. Cut short, it could be the same as another key. */
TEST(a_key_has_a_length)
{
    static char key[SUMAC_VALUE_KEY_BYTES_MAX + 2];

    for (uint32_t bytes = SUMAC_VALUE_KEY_BYTES_MAX; bytes < sizeof key; bytes++) {
        struct pack pack = {.bytes = NULL};
        memset(key, 'k', bytes);
        pack_u32(&pack, SUMAC_VALUE_DICT);
        pack_u32(&pack, 1);
        pack_text(&pack, key);
        pack_none(&pack, 0);
        struct unpack unpack = over(&pack);
        struct sumac_value *value = read_value(&unpack);
        assert_int_equal(value != NULL, bytes == SUMAC_VALUE_KEY_BYTES_MAX);
        sumac_value_unref(value);
        pack_deinit(&pack);
    }
}

/* Workers compute with the rows of slices, so both tensors must have elements. */
TEST(slices_without_elements_are_none)
{
    const int64_t index = 0;

    for (uint32_t sent = 0; sent < 4; sent++) {
        struct pack pack = {.bytes = NULL};
        pack_u32(&pack, SUMAC_VALUE_INDEXED_SLICES);
        pack_u32(&pack, 1); /* dense: (5) */
        pack_u64(&pack, 5);
        for (uint32_t i = 0; i < 2; i++) {
            const bool has = (sent >> i & 1u) != 0;
            pack_u32(&pack, SUMAC_INT64);
            pack_u32(&pack, 1);
            pack_u64(&pack, 1);
            pack_u32(&pack, has);
            pack_bytes(&pack, &index, has ? sizeof index : 0);
        }
        struct unpack unpack = over(&pack);
        struct sumac_value *value = read_value(&unpack);
        assert_int_equal(value != NULL, sent == 3);
        assert_int_equal(unpack.failed, sent != 3);
        sumac_value_unref(value);
        pack_deinit(&pack);
    }
}

/* Whatever there is no memory for: that is the status, and nothing is kept. */
TEST(no_memory_is_told_from_no_value)
{
    struct sumac_value *value = everything(), *back = NULL;
    struct pack pack = {.bytes = NULL};
    uint32_t failed = 0;

    pack_value(&pack, value, NULL, NULL); /* given */
    while (back == NULL) {
        struct unpack unpack = over(&pack);
        const size_t before = taken_bytes;
        fails_in = failed + 1; /* when */
        const enum sumac_status status = unpack_value(&unpack, &back);
        failed += fails_in == 0; /* then */
        fails_in = 0;
        assert_int_equal(status, back == NULL ? SUMAC_RESOURCE_EXHAUSTED : SUMAC_OK);
        assert_true(back != NULL || taken_bytes == before);
    }
    assert_true(failed > 10);
    assert_true(sumac_value_equal(value, back));
    sumac_value_unref(value);
    sumac_value_unref(back);
    pack_deinit(&pack);
}
