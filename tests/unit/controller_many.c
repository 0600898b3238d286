/* SPDX-License-Identifier: Apache-2.0 */
/* controller_many.c -- one create of many variables. */

#include "unit.h"
#include "controller_state.h"
#include "controller_world.h"

#define VARIABLES_MAX (WIRE_CREATE_VARIABLES_MAX + 1)

/* Variables "v0", "v1", … of float32 [10], and a world of two ps in which worker 0 has joined. */
struct many {
    struct world *world;
    uint32_t session;
    char names[VARIABLES_MAX][1024];
    uint64_t shape[1];
    wire_initializer initializer;
    wire_partitioner partitioner;
    wire_variable variables[VARIABLES_MAX];
    wire_variable *list[VARIABLES_MAX];
};

static int begin(void **state)
{
    struct many *many = calloc(1, sizeof *many);

    if (many == NULL)
        return 1;
    many->world = world_new(2, 1);
    world_all_up(many->world);
    many->session = world_joined(many->world, "worker", 0, 1);
    world_forget(many->world);
    many->shape[0] = 10;
    many->initializer = (wire_initializer)WIRE_INITIALIZER_INIT;
    many->partitioner = (wire_partitioner)WIRE_PARTITIONER_INIT;
    for (size_t i = 0; i < VARIABLES_MAX; i++) {
        wire_variable *variable = &many->variables[i];
        *variable = (wire_variable)WIRE_VARIABLE_INIT;
        snprintf(many->names[i], sizeof many->names[i], "v%zu", i);
        variable->name = many->names[i];
        variable->data_type = SUMAC__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
        variable->shape = many->shape;
        variable->n_shape = 1;
        many->list[i] = variable;
    }
    *state = many;
    return 0;
}

static int end(void **state)
{
    struct many *many = *state;

    world_free(many->world);
    free(many);
    return 0;
}

static const struct world_answer *created(struct many *many, size_t count)
{
    const uint64_t call = world_create_many(many->world, many->session, many->list, count);

    world_settle_down(many->world);
    assert_non_null(world_answer(many->world, call));
    return world_answer(many->world, call);
}

/* It is refused with these words, and no ps hears of any of them. */
static void assert_refused(struct many *many, size_t count, const char *text)
{
    char answer[1200];

    world_forget(many->world);
    created(many, count);

    (void)snprintf(answer, sizeof answer, "%s…", text);
    world_expect_answer(many->world, answer);
}

#define MANY_TEST(name) FIXTURE_TEST(name, struct many *many, begin, end)

MANY_TEST(many_are_answered_in_the_order_of_the_request_when_all_are_published)
{
    many->world->ps[1].silent = true; /* given */

    world_create_many(many->world, many->session, many->list, 5); /* when */
    world_settle_down(many->world);
    world_expect(
        many->world, "ps 0, 1: add 1 v0\n"
                     "ps 0: add 2 v1\n"
                     "ps 0: add 3 v2\n"
                     "ps 0: add 4 v3\n"
                     "ps 0: add 5 v4\n");
    many->world->ps[1].silent = false;
    world_settle_down(many->world);

    world_expect(
        many->world,
        "ps 1: add 2 v1\n"
        "ps 0: publish 1\n"
        "ps 1: add 3 v2\n"
        "ps 0: publish 2\n"
        "ps 1: add 4 v3\n"
        "ps 0: publish 3\n"
        "ps 1: add 5 v4\n"
        "ps 0: publish 4\n"
        "ps 1: publish 1\n"
        "ps 0: publish 5\n"
        "ps 1: publish 2\n"
        "ps 1: publish 3\n"
        "ps 1: publish 4\n"
        "ps 1: publish 5\n"
        "2: created 1 shard 1 on ps 0 published 2 shard 2 on ps 1 published 3 shard 3 on ps 0 "
        "published 4 shard 4 on ps 1 published 5 shard 5 on ps 0 published\n");
}

/* Whether the first answer was lost or not, the same call gets the same variables, and none
 * twice. */
MANY_TEST(a_retry_gets_the_same_variables)
{
    many->world->ps[1].silent = true;
    const uint64_t lost = world_create_many(many->world, many->session, many->list, 4);
    const uint64_t waiting_bytes = many->world->bytes_taken;
    world_cancel(many->world, lost);
    assert_true(many->world->bytes_taken < waiting_bytes); /* nothing is kept for who has gone */
    world_create_many(many->world, many->session, many->list, 4);
    many->world->ps[1].silent = false;
    world_settle_down(many->world);

    created(many, 4);

    world_expect(
        many->world, "ps 0, 1: add 1 v0\n"
                     "ps 0, 1: add 2 v1\n"
                     "ps 0, 1: add 3 v2\n"
                     "ps 0, 1: add 4 v3\n"
                     "ps 0, 1: publish 1\n"
                     "ps 0, 1: publish 2\n"
                     "ps 0, 1: publish 3\n"
                     "ps 0, 1: publish 4\n"
                     "3: created 1 shard 1 on ps 0 published 2 shard 2 on ps 1 published 3 "
                     "shard 3 on ps 0 published 4 shard 4 on ps 1 published\n"
                     "4: created 1 shard 1 on ps 0 published 2 shard 2 on ps 1 published 3 "
                     "shard 3 on ps 0 published 4 shard 4 on ps 1 published\n");
}

MANY_TEST(one_bad_definition_among_many_is_named_and_none_is_made)
{
    many->variables[3].data_type = (Sumac__V1__DataType)99;
    assert_refused(many, 5, "INVALID_ARGUMENT …v3: data type 99");
}

MANY_TEST(one_that_exists_otherwise_is_named_and_none_is_made)
{
    created(many, 1);
    world_expect(
        many->world, "ps 0, 1: add 1 v0\n"
                     "ps 0, 1: publish 1\n"
                     "2: created 1 shard 1 on ps 0 published\n");
    many->variables[4].name = many->names[0];
    many->variables[4].trainable = true;
    many->list[0] = &many->variables[4];

    assert_refused(
        many, 3, "ALREADY_EXISTS …v0 exists with trainable false, this create says true");
}

/* One that there is already: not another of the list. */
MANY_TEST(one_beside_what_is_not_there_is_named_and_none_is_made)
{
    many->variables[2].colocate_with = many->names[0];
    assert_refused(many, 3, "NOT_FOUND …v2: it is to lie beside v0, and there is no such variable");

    created(many, 1);
    world_forget(many->world);
    created(many, 3);
    world_expect(
        many->world, "ps 0, 1: add 2 v1\n"
                     "ps 0, 1: add 3 v2\n"
                     "ps 0, 1: publish 2\n"
                     "ps 0, 1: publish 3\n"
                     "4: created 1 shard 1 on ps 0 published 2 shard 2 on ps 1 published 3 shard 3 "
                     "on ps 0 published\n");
}

/* Each is compared with the variable of its name before any is made, wherever it stands. */
MANY_TEST(one_that_exists_otherwise_is_named_behind_new_ones)
{
    char text[64];

    created(many, 3);
    for (size_t i = 0; i < 5; i++)
        many->list[i] = &many->variables[(i + 3) % 5]; /* v3 and v4 are new */
    for (size_t place = 0; place < 3; place++) {
        many->variables[place].trainable = true;
        (void)snprintf(
            text, sizeof text, "ALREADY_EXISTS …v%zu exists with trainable false", place);

        assert_refused(many, 5, text);

        many->variables[place].trainable = false;
    }
}

MANY_TEST(a_name_that_is_there_twice_is_refused)
{
    many->variables[2].name = many->names[1];
    assert_refused(many, 3, "INVALID_ARGUMENT …create names v1 twice in one call");
}

MANY_TEST(one_that_its_creator_assigns_is_refused_in_a_list)
{
    many->initializer.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ASSIGNED;
    many->variables[1].initializer = &many->initializer;
    assert_refused(
        many, 2,
        "INVALID_ARGUMENT …v1 is to be assigned by its creator: create it in a call of its own");
}

MANY_TEST(a_list_that_is_too_long_is_refused_with_both_figures)
{
    assert_refused(
        many, VARIABLES_MAX,
        "INVALID_ARGUMENT …create names 257 variables, and 256 are the most of one call");
}

MANY_TEST(one_beside_the_list_is_refused)
{
    many->world->beside = &many->variables[9];
    assert_refused(
        many, 3,
        "INVALID_ARGUMENT MALFORMED create names one variable, and 3 beside it: name all of them "
        "in the list");
    many->world->beside = NULL;
}

/* Each may wait by itself, and two more would be too many. */
MANY_TEST(a_list_of_more_than_there_is_room_for_orders_is_told_to_come_again)
{
    struct pool *orders = &many->world->controller->orders_pool;
    void **taken = calloc(CONTROLLER_ORDERS_MAX, sizeof *taken);
    uint32_t count = 0;

    assert_non_null(taken);
    many->world->holds_orders = true; /* given */
    while (orders->used < CONTROLLER_ORDERS_MAX - 2)
        taken[count++] = pool_take(orders);

    assert_refused(
        many, 3,
        "RESOURCE_EXHAUSTED BUSY 8190 orders wait for the ps already, and 8192 are the most: "
        "create 3 variables later"); /* when, then */

    while (count > 0)
        pool_give(orders, taken[--count]);
    free(taken);
    many->world->holds_orders = false;
    created(many, 3);
}

/* Of 1500 shards each: they are answered in two messages. */
MANY_TEST(an_answer_has_as_many_as_fit_and_the_rest_is_asked_for_again)
{
    many->shape[0] = 4000;
    many->partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_FIXED_SHARDS;
    many->partitioner.num_shards = 1500;
    for (size_t i = 0; i < 4; i++)
        many->variables[i].partitioner = &many->partitioner;

    assert_int_equal(created(many, 4)->variable_count, 2);
    world_expect(
        many->world, "ps 0, 1: add 1 v0\n"
                     "ps 0, 1: add 2 v1\n"
                     "ps 0, 1: add 3 v2\n"
                     "ps 0, 1: add 4 v3\n"
                     "ps 0, 1: publish 1\n"
                     "ps 0, 1: publish 2\n"
                     "ps 0, 1: publish 3\n"
                     "ps 0, 1: publish 4\n"
                     "2: created 1 shard 1 on ps 0 … published 2 … published\n");
    memmove(many->list, many->list + 2, 2 * sizeof many->list[0]);
    assert_int_equal(created(many, 2)->variable_count, 2);
    world_expect(many->world, "3: created 3 shard 3001 on ps 0 … published 4 … published\n");
}

/* Those that a ps could not make are deleted again; the others stay, and the same call finds
 * them. */
MANY_TEST(what_a_ps_cannot_make_fails_the_call_and_is_made_by_the_next)
{
    many->world->ps[1].out_of_memory = true;

    created(many, 3);
    many->world->ps[1].out_of_memory = false;

    created(many, 3);
    world_expect(
        many->world, "ps 0, 1: add 1 v0\n"
                     "ps 0, 1: add 2 v1\n"
                     "2: RESOURCE_EXHAUSTED OUT_OF_MEMORY ps 1 at h1:1 "
                     "cannot make its part of v0: no memory\n"
                     "ps 0, 1: add 3 v2\n"
                     "ps 0, 1: delete 1\n"
                     "ps 0, 1: delete 2\n"
                     "ps 0, 1: delete 3\n"
                     "ps 0, 1: add 4 v0\n"
                     "ps 0, 1: add 5 v1\n"
                     "ps 0, 1: add 6 v2\n"
                     "ps 0, 1: publish 4\n"
                     "ps 0, 1: publish 5\n"
                     "ps 0, 1: publish 6\n"
                     "3: created 4 shard 4 on ps 1 published 5 shard 5 on ps 0 "
                     "published 6 shard 6 on ps 1 published\n");
}

/* Whichever of them is waited for when it fails. */
MANY_TEST(one_that_a_ps_cannot_make_is_named_with_the_cause_wherever_it_stands)
{
    many->world->ps[1].silent = true;
    world_create_many(many->world, many->session, many->list, 3);
    many->world->ps[1].bad_add = 3;
    many->world->ps[1].silent = false;
    world_settle_down(many->world);

    created(many, 3);
    world_expect(
        many->world, "ps 0, 1: add 1 v0\n"
                     "ps 0, 1: add 2 v1\n"
                     "ps 0, 1: add 3 v2\n"
                     "ps 0, 1: publish 1\n"
                     "2: RESOURCE_EXHAUSTED OUT_OF_MEMORY ps 1 at h1:1 "
                     "cannot make its part of v2: no memory\n"
                     "ps 0, 1: publish 2\n"
                     "ps 0, 1: delete 3\n"
                     "ps 0, 1: add 4 v2\n"
                     "ps 0, 1: publish 4\n"
                     "3: created 1 shard 1 on ps 0 published 2 shard 2 on ps 1 "
                     "published 4 shard 4 on ps 1 published\n");
}

/* It was there when the call came, and goes while another is made. */
MANY_TEST(one_that_is_deleted_while_the_others_are_made_is_named)
{
    created(many, 1);
    world_expect(
        many->world, "ps 0, 1: add 1 v0\n"
                     "ps 0, 1: publish 1\n"
                     "2: created 1 shard 1 on ps 0 published\n");
    many->world->ps[1].silent = true;
    world_create_many(many->world, many->session, many->list, 2);
    world_delete(many->world, many->session, "v0");
    many->world->ps[1].silent = false;
    world_settle_down(many->world);

    world_expect(
        many->world, "ps 0, 1: add 2 v1\n"
                     "ps 0, 1: delete 1\n"
                     "ps 0, 1: publish 2\n"
                     "4: DeleteReply\n"
                     "3: NOT_FOUND UNKNOWN_VARIABLE variable number 1 of the 2 of this create "
                     "was deleted while the others were made: create them again\n");
    created(many, 2);
    world_expect(
        many->world, "ps 0, 1: add 3 v0\n"
                     "ps 0, 1: publish 3\n"
                     "5: created 3 shard 3 on ps 0 published 2 shard 2 on ps 1 published\n");
}

MANY_TEST(without_memory_for_the_list_the_call_is_answered)
{
    many->world->out_of_memory = true;

    world_create_many(many->world, many->session, many->list, 3);

    world_expect(
        many->world,
        "2: RESOURCE_EXHAUSTED OUT_OF_MEMORY ps 0 has no memory for a create of 3 variables\n");
    many->world->out_of_memory = false;
    created(many, 3);
    world_expect(
        many->world, "ps 0, 1: add 1 v0\n"
                     "ps 0, 1: add 2 v1\n"
                     "ps 0, 1: add 3 v2\n"
                     "ps 0, 1: publish 1\n"
                     "ps 0, 1: publish 2\n"
                     "ps 0, 1: publish 3\n"
                     "3: created 1 shard 1 on ps 0 published 2 shard 2 on ps 1 "
                     "published 3 shard 3 on ps 0 published\n");
}

/* Not even those that there is room for. */
MANY_TEST(several_that_there_is_no_room_for_together_are_refused_and_none_is_made)
{
    uint32_t *count = &many->world->controller->variable_count;

    many->world->holds_orders = true; /* given */
    *count = CONTROLLER_VARIABLES_MAX - 1;

    /* when, then: no ps hears of the first */
    assert_refused(
        many, 2, "RESOURCE_EXHAUSTED OUT_OF_MEMORY v1: there are 262144 variables already");
    *count = 0;
    many->world->holds_orders = false;
}

/* It is worth another try: the client makes it by itself, as long as its caller waits. */
MANY_TEST(beyond_the_orders_that_may_wait_a_create_is_told_to_come_again)
{
    struct pool *orders = &many->world->controller->orders_pool;
    void **taken = calloc(CONTROLLER_ORDERS_MAX, sizeof *taken);
    uint32_t count = 0;

    assert_non_null(taken);
    many->world->holds_orders = true; /* given */
    while (orders->used < CONTROLLER_ORDERS_MAX) {
        taken[count] = pool_take(orders);
        assert_non_null(taken[count++]);
    }

    world_create(many->world, many->session, many->list[0], 0); /* when */
    world_create_many(many->world, many->session, many->list, 3);
    while (count > 0)
        pool_give(orders, taken[--count]);
    free(taken);
    many->world->holds_orders = false;

    world_expect(
        many->world,
        "2: RESOURCE_EXHAUSTED BUSY 8192 orders wait for the ps already, and 8192 are the most: "
        "create, delete or define later\n"
        "3: RESOURCE_EXHAUSTED BUSY 8192 orders wait for the ps already, and 8192 are the most: "
        "create, delete or define later\n"); /* then */
    created(many, 3);
}
