/* SPDX-License-Identifier: Apache-2.0 */
/* judge_many.c -- one create of many variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "judge_world.h"

#define VARIABLES_MAX (WIRE_CREATE_VARIABLES_MAX + 1)

/* Variables "v0", "v1", … of float32 [10], and a world of two ps in which worker 0 has joined. */
struct many {
    struct world *world;
    uint8_t session[16];
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
    const uint64_t join = world_join(many->world, "worker", 0, 1);
    world_settle_down(many->world);
    memcpy(many->session, world_answer(many->world, join)->session_id, sizeof many->session);
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
    const size_t told = world_told_count(many->world, 0, ORDER_ADD_SHARDS);
    const struct world_answer *answer = created(many, count);

    assert_int_not_equal(answer->status, SUMAC_OK);
    assert_non_null(strstr(answer->text, text));
    assert_int_equal(world_told_count(many->world, 0, ORDER_ADD_SHARDS), told);
}

static void many_are_answered_in_the_order_of_the_request_when_all_are_published(void **state)
{
    struct many *many = *state;

    many->world->ps[1].silent = true; /* given */

    const uint64_t call = world_create_many(many->world, many->session, many->list, 5); /* when */
    world_settle_down(many->world);
    assert_null(world_answer(many->world, call));
    many->world->ps[1].silent = false;
    world_settle_down(many->world);

    const struct world_answer *answer = world_answer(many->world, call); /* then */
    assert_int_equal(answer->status, SUMAC_OK);
    assert_int_equal(answer->variable_count, 5);
    assert_int_equal(answer->published_count, 5);
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(answer->variable_ids[i], answer->variable_ids[0] + i);
    assert_int_equal(world_told_count(many->world, 1, ORDER_PUBLISH), 5);
}

/* Whether the first answer was lost or not, the same call gets the same variables, and none
 * twice. */
static void a_retry_gets_the_same_variables(void **state)
{
    struct many *many = *state;

    many->world->ps[1].silent = true;
    const uint64_t lost = world_create_many(many->world, many->session, many->list, 4);
    const uint64_t waiting_bytes = many->world->bytes_taken;
    world_cancel(many->world, lost);
    assert_true(many->world->bytes_taken < waiting_bytes); /* nothing is kept for who has gone */
    const uint64_t again = world_create_many(many->world, many->session, many->list, 4);
    many->world->ps[1].silent = false;
    world_settle_down(many->world);
    const struct world_answer first = *world_answer(many->world, again);

    const struct world_answer *answer = created(many, 4);

    assert_null(world_answer(many->world, lost));
    assert_int_equal(answer->variable_count, 4);
    assert_memory_equal(answer->variable_ids, first.variable_ids, sizeof first.variable_ids);
    assert_int_equal(world_told_count(many->world, 1, ORDER_ADD_SHARDS), 4);
}

static void one_bad_definition_among_many_is_named_and_none_is_made(void **state)
{
    struct many *many = *state;

    many->variables[3].data_type = (Sumac__V1__DataType)99;
    assert_refused(many, 5, "v3: data type 99");
}

static void one_that_exists_otherwise_is_named_and_none_is_made(void **state)
{
    struct many *many = *state;

    assert_int_equal(created(many, 1)->status, SUMAC_OK);
    many->variables[4].name = many->names[0];
    many->variables[4].trainable = true;
    many->list[0] = &many->variables[4];

    assert_refused(many, 3, "v0 exists with trainable false, this create says true");
}

static void a_name_that_is_there_twice_is_refused(void **state)
{
    struct many *many = *state;

    many->variables[2].name = many->names[1];
    assert_refused(many, 3, "create names v1 twice in one call");
}

static void one_that_its_creator_assigns_is_refused_in_a_list(void **state)
{
    struct many *many = *state;

    many->initializer.kind = (Sumac__V1__Initializer__Kind)WIRE_INITIALIZER_ASSIGNED;
    many->variables[1].initializer = &many->initializer;
    assert_refused(many, 2, "v1 is to be assigned by its creator: create it in a call of its own");
}

static void a_list_that_is_too_long_is_refused_with_both_figures(void **state)
{
    struct many *many = *state;

    assert_refused(
        many, VARIABLES_MAX, "create names 257 variables, and 256 are the most of one call");
}

/* Of 1500 shards each: they are answered in two messages. */
static void an_answer_has_as_many_as_fit_and_the_rest_is_asked_for_again(void **state)
{
    struct many *many = *state;

    many->shape[0] = 4000;
    many->partitioner.kind = (Sumac__V1__Partitioner__Kind)WIRE_PARTITIONER_FIXED_SHARDS;
    many->partitioner.num_shards = 1500;
    for (size_t i = 0; i < 4; i++)
        many->variables[i].partitioner = &many->partitioner;

    const struct world_answer first = *created(many, 4);
    memmove(many->list, many->list + first.variable_count, 2 * sizeof many->list[0]);
    const struct world_answer *rest = created(many, 4 - first.variable_count);

    assert_int_equal(first.variable_count, 2);
    assert_int_equal(rest->variable_count, 2);
    assert_int_equal(rest->variable_ids[0], first.variable_ids[1] + 1);
    assert_int_equal(world_told_count(many->world, 1, ORDER_ADD_SHARDS), 4);
}

/* Those that a ps could not make are deleted again; the others stay, and the same call finds
 * them. */
static void what_a_ps_cannot_make_fails_the_call_and_is_made_by_the_next(void **state)
{
    struct many *many = *state;

    many->world->ps[1].out_of_memory = true;

    const struct world_answer *failed = created(many, 3);
    many->world->ps[1].out_of_memory = false;

    assert_int_equal(failed->status, SUMAC_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(failed->text, "cannot make its part of v0"));
    assert_int_equal(created(many, 3)->variable_count, 3);
}

/* Whichever of them is waited for when it fails. */
static void one_that_a_ps_cannot_make_is_named_with_the_cause_wherever_it_stands(void **state)
{
    struct many *many = *state;

    many->world->ps[1].silent = true;
    const uint64_t call = world_create_many(many->world, many->session, many->list, 3);
    many->world->ps[1].bad_add = 3;
    many->world->ps[1].silent = false;
    world_settle_down(many->world);

    const struct world_answer *answer = world_answer(many->world, call);
    assert_int_equal(answer->status, SUMAC_RESOURCE_EXHAUSTED);
    assert_int_equal(answer->reason, SUMAC_REASON_OUT_OF_MEMORY);
    assert_non_null(strstr(answer->text, "cannot make its part of v2"));
    assert_int_equal(created(many, 3)->variable_count, 3);
}

/* It was there when the call came, and goes while another is made. */
static void one_that_is_deleted_while_the_others_are_made_is_named(void **state)
{
    struct many *many = *state;

    assert_int_equal(created(many, 1)->status, SUMAC_OK);
    many->world->ps[1].silent = true;
    const uint64_t call = world_create_many(many->world, many->session, many->list, 2);
    world_delete(many->world, many->session, "v0");
    many->world->ps[1].silent = false;
    world_settle_down(many->world);

    const struct world_answer *answer = world_answer(many->world, call);
    assert_int_equal(answer->status, SUMAC_NOT_FOUND);
    assert_non_null(strstr(answer->text, "variable number 1 of the 2 of this create was deleted"));
    assert_int_equal(created(many, 2)->variable_count, 2);
}

static void without_memory_for_the_list_the_call_is_answered(void **state)
{
    struct many *many = *state;

    many->world->out_of_memory = true;

    const uint64_t call = world_create_many(many->world, many->session, many->list, 3);

    assert_int_equal(world_answer(many->world, call)->reason, SUMAC_REASON_OUT_OF_MEMORY);
    many->world->out_of_memory = false;
    assert_int_equal(created(many, 3)->variable_count, 3);
}

#define many_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        many_test(many_are_answered_in_the_order_of_the_request_when_all_are_published),
        many_test(a_retry_gets_the_same_variables),
        many_test(one_bad_definition_among_many_is_named_and_none_is_made),
        many_test(one_that_exists_otherwise_is_named_and_none_is_made),
        many_test(a_name_that_is_there_twice_is_refused),
        many_test(one_that_its_creator_assigns_is_refused_in_a_list),
        many_test(a_list_that_is_too_long_is_refused_with_both_figures),
        many_test(an_answer_has_as_many_as_fit_and_the_rest_is_asked_for_again),
        many_test(what_a_ps_cannot_make_fails_the_call_and_is_made_by_the_next),
        many_test(one_that_a_ps_cannot_make_is_named_with_the_cause_wherever_it_stands),
        many_test(one_that_is_deleted_while_the_others_are_made_is_named),
        many_test(without_memory_for_the_list_the_call_is_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
