/* SPDX-License-Identifier: Apache-2.0 */
/* each_take.c -- memory that fails once. */
#include "each_take.h"

#include "id_map.h"
#include "sized_pool.h"

static struct {
    bool counts;
    uint64_t count, failing, run;
    int64_t out, held;
} takes;

void each_take_reset(void)
{
    takes.counts = false;
    takes.out = takes.held = 0;
}

void each_take_begin_run(uint64_t failing, uint64_t run)
{
    takes.counts = true;
    takes.count = 0;
    takes.failing = failing;
    takes.run = run;
}

void each_take_begin(uint64_t failing) { each_take_begin_run(failing, failing > 0); }

uint64_t each_take_end(void)
{
    takes.counts = false;
    return takes.count;
}

int64_t each_take_out(void) { return takes.out; }
int64_t each_take_held(void) { return takes.held; }

static bool fails(const struct memory *memory)
{
    if (!takes.counts || memory == &memory_heap)
        return false;
    takes.count++;
    return takes.count >= takes.failing && takes.count - takes.failing < takes.run;
}

static void *counted(void *data, size_t bytes)
{
    takes.out += data == NULL ? 0 : (int64_t)bytes;
    return data;
}

/* ---- the source ---- */

static void *take(void *context, size_t bytes)
{
    (void)context;
    if (fails(NULL))
        return NULL;
    void *const data = memory_take(&memory_heap, bytes);
    takes.held += data == NULL ? 0 : (int64_t)bytes;
    return data;
}

static void give(void *context, void *data, size_t bytes)
{
    (void)context;
    takes.held -= data == NULL ? 0 : (int64_t)bytes;
    memory_give(&memory_heap, data, bytes);
}

const struct memory each_take_source = {.take = take, .give = give};

/* ---- pools ---- */

void *__real_pool_take(struct pool *pool);
void *__wrap_pool_take(struct pool *pool);
void *__wrap_pool_take(struct pool *pool)
{
    return fails(pool->memory) ? NULL : counted(__real_pool_take(pool), pool->object_bytes);
}

void __real_pool_give(struct pool *pool, void *object);
void __wrap_pool_give(struct pool *pool, void *object);
void __wrap_pool_give(struct pool *pool, void *object)
{
    takes.out -= object == NULL ? 0 : (int64_t)pool->object_bytes;
    __real_pool_give(pool, object);
}

#define WRAP_SIZED(name)                                                                           \
    void *__real_##name(struct sized_pool *pool, size_t bytes);                                    \
    void *__wrap_##name(struct sized_pool *pool, size_t bytes);                                    \
    void *__wrap_##name(struct sized_pool *pool, size_t bytes)                                     \
    {                                                                                              \
        return fails(pool->memory) ? NULL : counted(__real_##name(pool, bytes), bytes);            \
    }
WRAP_SIZED(sized_pool_take)
WRAP_SIZED(sized_pool_take_zeroed)
WRAP_SIZED(sized_pool_take_reserved)

void __real_sized_pool_give(struct sized_pool *pool, void *data, size_t bytes);
void __wrap_sized_pool_give(struct sized_pool *pool, void *data, size_t bytes);
void __wrap_sized_pool_give(struct sized_pool *pool, void *data, size_t bytes)
{
    takes.out -= data == NULL ? 0 : (int64_t)bytes;
    __real_sized_pool_give(pool, data, bytes);
}

/* ---- arenas ---- */

#define WRAP_ARENA(name)                                                                           \
    void *__real_##name(struct arena *arena, size_t bytes);                                        \
    void *__wrap_##name(struct arena *arena, size_t bytes);                                        \
    void *__wrap_##name(struct arena *arena, size_t bytes)                                         \
    {                                                                                              \
        return fails(arena->memory) ? NULL : __real_##name(arena, bytes);                          \
    }
WRAP_ARENA(arena_take)
WRAP_ARENA(arena_take_zeroed)

/* ---- maps, those by key included, which are made of them: what is new takes memory ---- */

bool __real_id_map_put(struct id_map *map, uint64_t id, void *value);
bool __wrap_id_map_put(struct id_map *map, uint64_t id, void *value);
bool __wrap_id_map_put(struct id_map *map, uint64_t id, void *value)
{
    const bool takes_none = map->count > 0 && id_map_get(map, id) != NULL;

    return (takes_none || !fails(map->memory)) && __real_id_map_put(map, id, value);
}
