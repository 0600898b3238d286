/* SPDX-License-Identifier: Apache-2.0 */
/* controller_short.c -- a controller whose memory is short for a moment. Whichever request for
 * memory fails, ps 0 answers the caller, and the same call succeeds when repeated. */
#include <string.h>

#include "controller_two.h"
#include "key_map.h"

enum { CALLS = 8, PROPOSALS_MAX = 3 };

/* What fails once: a take of memory, an object of a pool, a place in a map. */
enum shortage { MEMORY, POOL, MAP, SHORTAGES };

static struct {
    uint64_t count, bad; /* which of them fails, from 1; 0: none */
} pools, maps;

void *__real_pool_take(struct pool *pool);
void *__wrap_pool_take(struct pool *pool);
bool __real_key_map_put(struct key_map *map, struct key_entry *entry);
bool __wrap_key_map_put(struct key_map *map, struct key_entry *entry);

void *__wrap_pool_take(struct pool *pool)
{
    return ++pools.count == pools.bad ? NULL : __real_pool_take(pool);
}

bool __wrap_key_map_put(struct key_map *map, struct key_entry *entry)
{
    return ++maps.count != maps.bad && __real_key_map_put(map, entry);
}

static uint64_t join_worker_0(struct world *world) { return world_join(world, "worker", 0, 1); }

static uint64_t join_worker_1(struct world *world) { return world_join(world, "worker", 1, 2); }

static uint64_t create(struct world *world)
{
    struct definition definition;

    define(&definition, "w");
    return world_create(world, 1, &definition.variable, 0);
}

static uint64_t create_several(struct world *world)
{
    struct definition definitions[3];
    wire_variable *list[3];
    static const char *const names[] = {"a", "b", "c"};

    for (int i = 0; i < 3; i++) {
        define(&definitions[i], names[i]);
        list[i] = &definitions[i].variable;
    }
    return world_create_many(world, 1, list, 3);
}

static uint64_t delete_one(struct world *world) { return world_delete(world, 1, "w"); }

static uint64_t leave(struct world *world) { return world_leave(world, 1, true); }

static uint64_t define_one(struct world *world)
{
    return world_define(world, 1, "mine", "value = g");
}

static uint64_t come_alone(struct world *world)
{
    static const uint32_t workers[] = {0, UINT32_MAX};

    return world_come(
        world, 1, &(struct world_arrival){.name = "alone", .round = 1, .workers = workers});
}

static uint64_t (*const calls[CALLS])(struct world *) = {join_worker_0,  join_worker_1, create,
                                                         create_several, define_one,    come_alone,
                                                         delete_one,     leave};

/* It is answered in a while. Not OK: for want of memory, and the same again is done. False: ps 0
 * has ended, since it could not say something. */
static bool is_done_in_the_end(struct world *world, uint64_t (*make)(struct world *))
{
    for (int tries = 0; tries < 3; tries++) {
        const uint64_t call = make(world);
        world_pass(world, 3 * SECOND);
        if (world->lost.status != SUMAC_OK)
            return false;
        const struct world_answer *answer = world_answer(world, call);
        if (answer == NULL)
            fail_msg("call %d is not answered", (int)call);
        if (answer->status == SUMAC_OK)
            return true;
        if (make == delete_one && tries > 0 && answer->status == SUMAC_NOT_FOUND)
            return true; /* the answer was lost, and it was deleted */
        assert_int_equal(answer->reason, SUMAC_REASON_OUT_OF_MEMORY);
    }
    fail_msg("the same call fails for want of memory again and again");
    return false;
}

/* A ps proposes it each second until it is ordered. */
static void end_a_round(struct world *world)
{
    for (int i = 0; i < PROPOSALS_MAX && world_told(world, 1, ORDER_COLLECTIVE) == NULL; i++) {
        world_report_collective(world, 1, "grads", 1, SUMAC_OK);
        world_pass(world, 3 * SECOND);
    }
    assert_true(world->lost.status != SUMAC_OK || world_told(world, 1, ORDER_COLLECTIVE) != NULL);
}

/* One ps has voided a push: ps 0 keeps that for the task's next attempt. */
static void void_a_push(struct world *world)
{
    struct world_ps *const ps = &world->ps[1];

    ps->commit_through = 9;
    ps->voided[0] = 3;
    ps->voided_count = 1;
}

/* Nothing is left of a take that failed: what is kept takes as much as when none does. */
static void look_at_what_is_kept(struct world *world, uint64_t bad, uint64_t *kept_bytes)
{
    struct controller_waits waits;

    controller_list_waits(world->controller, world->now_us, &waits);
    assert_int_equal(waits.count, 1);
    assert_non_null(strstr(waits.items[0], "no worker is left; the run ends in "));
    if (bad == 0)
        *kept_bytes = world->bytes_taken;
    assert_int_equal(world->bytes_taken, *kept_bytes);
}

/* Each ps hears who the members are before the session of one is opened, and whose that is. */
static void look_at_what_was_told(const struct world *world)
{
    for (uint32_t ps = 0; ps < 2; ps++) {
        bool members = false;
        for (size_t i = 0; i < world->ps[ps].told_count; i++) {
            const struct world_order *const told = &world->ps[ps].told[i];
            members = members || told->kind == ORDER_MEMBERSHIP;
            if (told->kind == ORDER_OPEN)
                assert_true(members && strncmp(told->text, "worker ", 7) == 0);
        }
    }
}

/* Two workers' work, of which number `bad` of these fails; 0: none. False: fewer than that are
 * taken.
 */
static bool work_without(enum shortage what, uint64_t bad, uint32_t *lost, uint64_t *kept_bytes)
{
    struct world *world = world_prepare(2, 0);
    bool goes_on = true;

    world->config.step_members = 1; /* the other one begins later */
    world_begin(world);
    world->takes = pools.count = maps.count = 0;
    world->bad_take = what == MEMORY ? bad : UINT64_MAX; /* none of it itself */
    pools.bad = what == POOL ? bad : 0;
    maps.bad = what == MAP ? bad : 0;
    world_all_up(world);
    void_a_push(world);
    end_a_round(world);
    goes_on = world->lost.status == SUMAC_OK;
    for (int i = 0; i < CALLS && goes_on; i++)
        goes_on = is_done_in_the_end(world, calls[i]);
    if (goes_on)
        look_at_what_is_kept(world, bad, kept_bytes);
    look_at_what_was_told(world);
    assert_true(!goes_on || world_told(world, 1, ORDER_FIRST_STEP) != NULL);
    *lost += !goes_on;
    const uint64_t taken = what == MEMORY ? world->takes : what == POOL ? pools.count : maps.count;
    pools.bad = maps.bad = 0;
    world_free(world);
    return taken >= bad;
}

TEST(whichever_place_in_memory_there_is_none_for_all_that_was_called_is_done)
{
    uint64_t kept_bytes = 0;

    for (enum shortage what = MEMORY; what < SHORTAGES; what++) {
        uint64_t bad = 0;
        uint32_t lost = 0;

        while (work_without(what, bad, &lost, &kept_bytes))
            bad++;

        assert_in_range(bad, what == MAP ? 5 : 10, 1000);
        assert_in_range(lost, 0, bad / 4);
    }
}

/* controller_create returns NULL and keeps no memory. */
TEST(a_controller_that_there_is_no_memory_for_is_none)
{
    struct controller *controller = NULL;
    uint64_t bad = 0;

    while (controller == NULL) {
        struct world *world = world_prepare(2, 1);
        world->bad_take = ++bad;
        controller = controller_create(&world->config, &world->memory);
        if (controller == NULL)
            assert_int_equal(world->bytes_taken, 0);
        controller_destroy(controller);
        world_free(world);
    }
    assert_in_range(bad, 3, 1000);
}

/* Worker 0 leaves, and ps 1 has no memory for that; by now it has. */
static struct world *ps_1_was_short(void)
{
    struct world *world = world_of_two();

    (void)world_joined(world, "worker", 0, 1);
    world->ps[1].out_of_memory = true;
    (void)world_leave(world, 1, false);
    world_settle_down(world);
    world->ps[1].out_of_memory = false;
    world_forget(world);
    return world;
}

TEST(of_two_ps_that_were_short_only_the_one_that_still_is_is_asked_again)
{
    struct world *world = world_of_two(); /* given */

    (void)world_joined(world, "worker", 0, 1);
    world->ps[0].out_of_memory = world->ps[1].out_of_memory = true;
    (void)world_leave(world, 1, false);
    world_settle_down(world);

    world->ps[1].out_of_memory = false; /* when */
    world_pass(world, 2 * SECOND);
    world_forget(world);
    world_pass(world, 2 * SECOND);

    world_expect(world, "ps 0, 0: close 1: it has left\n"); /* then */
    world_free(world);
}

TEST(a_ps_that_is_asked_again_is_asked_once_a_second)
{
    struct world *world = ps_1_was_short();

    world->ps[1].mute = true;
    world_pass(world, 3 * SECOND);

    world_expect(world, "ps 1, 1, 1: close 1: it has left\n");
    world_free(world);
}

/* A repeated order does not overtake an earlier one. */
TEST(a_ps_that_is_asked_again_as_it_comes_back_gets_its_orders_from_the_first_on)
{
    struct world *world = world_of_two(); /* given */

    (void)world_joined(world, "worker", 0, 1);
    world->ps[1].never_opens = true;
    (void)world_join(world, NULL, 0, 2);
    world->ps[1].out_of_memory = true;
    (void)world_leave(world, 1, false);
    world_settle_down(world);
    world->ps[1].never_opens = world->ps[1].out_of_memory = false;
    world_down(world, 1);
    world->ps[1].silent = true;
    world_up(world, 1);
    world_sleep(world, SECOND);
    world_forget(world);

    world->ps[1].silent = false; /* when */
    world_settle_down(world);

    assert_non_null(strstr(world->text, "ps 1: open 2\nps 1: close 1")); /* then */
    assert_non_null(strstr(world->text, "2: joined 2"));
    world_free(world);
}

/* Each settle waits for a ps of its own. */
TEST(who_waits_for_memory_names_the_ps_that_lacks_it)
{
    struct world *world = world_new(3, 2);

    world_all_up(world);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t joined = world_joined(world, "worker", i, i + 1);
        world->ps[i + 1].out_of_memory = true;
        (void)world_leave(world, joined, false);
        world_settle_down(world);
        world->ps[i + 1].out_of_memory = false;
    }

    assert_true(
        world_waits(world, "settle of worker 0 waits for memory for what was refused, as ps 1 at"));
    assert_true(
        world_waits(world, "settle of worker 1 waits for memory for what was refused, as ps 2 at"));
    world_free(world);
}
