/* SPDX-License-Identifier: Apache-2.0 */
/* store_fixture.h -- a store of small blocks whose memory is counted, and views of it. */
#pragma once

#include "unit.h"
#include "assert_number.h"
#include "store_check.h"

#define BLOCK_BYTES 64u
#define ELEMENTS 40u /* float32: 160 bytes, blocks of 64, 64 and 32 */

struct fixture {
    struct memory memory;
    uint64_t bytes_taken;
    bool scarce; /* the source gives `takes_left` times more, and then nothing */
    uint32_t takes_left;
    struct store store;
};

static inline void *take(void *context, size_t bytes)
{
    struct fixture *fixture = context;

    if (fixture->scarce && fixture->takes_left == 0)
        return NULL;
    fixture->takes_left -= fixture->scarce;
    fixture->bytes_taken += bytes;
    return memory_take(&memory_heap, bytes);
}

static inline void give(void *context, void *data, size_t bytes)
{
    struct fixture *fixture = context;

    fixture->bytes_taken -= bytes;
    memory_give(&memory_heap, data, bytes);
}

static inline int begin(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    if (fixture == NULL)
        return 1;
    fixture->memory = (struct memory){.take = take, .give = give, .context = fixture};
    store_init(&fixture->store, &fixture->memory, BLOCK_BYTES, 0);
    *state = fixture;
    return 0;
}

static inline int end(void **state)
{
    struct fixture *fixture = *state;

    store_deinit(&fixture->store);
    const uint64_t kept = fixture->bytes_taken;
    free(fixture);
    return kept != 0;
}

/* A vector of `elements` of the type, all here, with the initial value of that kind. */
static inline enum sumac_status try_add_of(
    struct store *store, enum sumac_dtype dtype, uint64_t id, uint64_t elements, uint32_t function,
    int initializer, struct variable **added, struct sumac_error *error)
{
    uint64_t shape[] = {elements};
    char name[] = "v?";
    wire_shard shard = WIRE_SHARD_INIT;
    wire_shard *shards[] = {&shard};
    wire_function own = WIRE_FUNCTION_INIT;
    wire_initializer initial = WIRE_INITIALIZER_INIT;
    wire_variable given = WIRE_VARIABLE_INIT;

    name[1] = (char)('0' + id % 64);
    shard.shard_id = given.variable_id = id;
    shard.rows = elements;
    shard.bytes = elements * sumac_dtype_bytes(dtype);
    own.function = (Sumac__V1__UpdateFunction)function;
    initial.kind = (Sumac__V1__Initializer__Kind)initializer;
    given.name = name;
    given.data_type = (Sumac__V1__DataType)dtype;
    given.shape = shape;
    given.n_shape = 1;
    given.function = &own;
    given.initializer = &initial;
    given.shards = shards;
    given.n_shards = 1;
    return store_add(store, &given, 0, added, error);
}

static inline enum sumac_status try_add_saying(
    struct store *store, uint64_t id, uint64_t elements, uint32_t function, int initializer,
    struct variable **added, struct sumac_error *error)
{
    return try_add_of(store, SUMAC_FLOAT32, id, elements, function, initializer, added, error);
}

static inline enum sumac_status
fill(struct store *store, struct variable *variable, struct sumac_error *error)
{
    uint64_t done;

    return store_fill(store, variable, UINT64_MAX, &done, error);
}

static inline enum sumac_status try_add(
    struct store *store, uint64_t id, uint64_t elements, uint32_t function, int initializer,
    struct variable **added)
{
    struct sumac_error error;

    return try_add_saying(store, id, elements, function, initializer, added, &error);
}

static inline struct variable *
add_with(struct store *store, uint64_t id, uint64_t elements, uint32_t function, int initializer)
{
    struct variable *added = NULL;
    struct sumac_error error;

    assert_int_equal(try_add(store, id, elements, function, initializer, &added), SUMAC_OK);
    assert_int_equal(fill(store, added, &error), SUMAC_OK);
    assert_true(added->filled);
    return added;
}

static inline struct variable *
add(struct store *store, uint64_t id, uint64_t elements, uint32_t function)
{
    return add_with(store, id, elements, function, SUMAC__V1__INITIALIZER__KIND__KIND_ONES);
}

static inline float first_of(const struct block *block)
{
    return *(const float *)(const void *)block->data;
}

/* Write `value` to every element of a block of that list, as the operation at hand. */
static inline struct block *
write_list(struct store *store, struct shard *shard, uint32_t list, uint32_t index, float value)
{
    struct block *block = store_block_write(store, shard->list[list][index], store->position);

    assert_non_null(block);
    for (uint32_t i = 0; i < block->bytes / sizeof value; i++)
        memcpy(block->data + i * sizeof value, &value, sizeof value);
    return block;
}

/* The value's, as the next operation. */
static inline struct block *
overwrite(struct store *store, struct shard *shard, uint32_t index, float value)
{
    store->position++;
    return write_list(store, shard, STORE_VALUE, index, value);
}

static inline void
open_view(struct store *store, struct view *view, enum view_scope scope, struct shard *shard)
{
    store_view_open(store, view, scope);
    store_use(shard);
    store_view_cover(view, shard);
}

/* What so many old blocks take, of BLOCK_BYTES or less. */
static inline uint64_t old_bytes(uint64_t blocks)
{
    return blocks * (sized_pool_bytes(BLOCK_BYTES) + sized_pool_bytes(sizeof(struct block)));
}

/* Without what is done over steps then. */
static inline void end_view(struct store *store, struct view *view, struct shard *shard)
{
    store_view_uncover(view, shard);
    store_view_close(store, view);
    store_let_go(store, shard);
}

static inline void close_view(struct store *store, struct view *view, struct shard *shard)
{
    end_view(store, view, shard);
    while (store->unswept != NULL)
        (void)store_sweep(store);
}

static inline void expect_consistent(const struct store *store)
{
    struct store_sums sums = {0};
    struct check check = {.text = ""};

    store_check(store, &sums, &check);
    store_check_sums(store, &sums, &check);
    assert_string_equal(check.text, "");
}

#define STORE_TEST(name) FIXTURE_TEST(name, struct fixture *fixture, begin, end)
