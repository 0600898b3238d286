/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.c -- the list of variables, read from ps whose pages end at different variables.
 *
 * The linker calls this program's `ask`.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "catalogue.h"
#include "memory.h"

#define VARIABLES 5u

/* Two ps have the same variables, numbered from 1. Each has its own page size. */
static struct {
    wire_variable variables[VARIABLES], *list[VARIABLES];
    size_t page_size[2];
    bool stuck; /* ps 1 tells of the first variable again and again */
    uint32_t asked;
} run;

enum sumac_status __wrap_ask(
    struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error);

enum sumac_status __wrap_ask(
    struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error)
{
    const wire_list_request *request = (const wire_list_request *)(const void *)inquiry->request;
    const size_t left = VARIABLES - request->after_id;

    (void)error;
    assert_true(++run.asked <= 2 * VARIABLES);
    *answers = (struct answers){
        .count = roster->count, .replies = calloc(roster->count, sizeof *answers->replies)};
    arena_init(&answers->arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    for (uint32_t ps = 0; ps < roster->count; ps++) {
        wire_list_reply *reply = arena_take(&answers->arena, sizeof *reply);
        *reply = (wire_list_reply)WIRE_LIST_REPLY_INIT;
        reply->variables = run.list + request->after_id;
        reply->more = left > run.page_size[ps];
        reply->n_variables = reply->more ? run.page_size[ps] : left;
        if (ps == 1 && run.stuck) {
            reply->variables = run.list;
            reply->n_variables = 1;
            reply->more = true;
        }
        answers->replies[ps] = &reply->base;
    }
    return SUMAC_OK;
}

static void make_variables(void)
{
    run.asked = 0;
    run.stuck = false;
    for (size_t i = 0; i < VARIABLES; i++) {
        run.variables[i] = (wire_variable)WIRE_VARIABLE_INIT;
        run.variables[i].variable_id = i + 1;
        run.list[i] = &run.variables[i];
    }
}

static void every_variable_is_read_once_wherever_the_pages_end(void **state)
{
    (void)state;
    static const size_t page_size[][2] = {{1, 3}, {3, 1}, {2, 3}, {5, 1}, {1, 5}, {5, 5}};
    struct roster_ps ps[2] = {{.left_out = false}};
    struct roster roster = {.count = 2, .ps = ps};

    for (size_t i = 0; i < sizeof page_size / sizeof page_size[0]; i++) {
        struct catalogue catalogue = {0};
        struct sumac_error error = {0};
        uint64_t seen = 0;
        make_variables();
        run.page_size[0] = page_size[i][0];
        run.page_size[1] = page_size[i][1];
        assert_int_equal(catalogue_ask(&roster, NULL, 0, &catalogue, &error), SUMAC_OK);
        for (uint32_t page = 0; page < catalogue.page_count; page++)
            for (size_t j = 0; j < catalogue.pages[page].count; j++) {
                const wire_variable *found = page_held_variable(&catalogue.pages[page], j, 1);
                assert_non_null(found); /* in the answer of ps 1, too */
                assert_int_equal(found->variable_id, ++seen);
            }
        assert_int_equal(seen, VARIABLES);
        catalogue_deinit(&catalogue);
    }
}

static void a_list_that_does_not_go_on_is_refused(void **state)
{
    (void)state;
    struct roster_ps ps[2] = {{.left_out = false}};
    struct roster roster = {.count = 2, .ps = ps};
    struct catalogue catalogue = {0};
    struct sumac_error error = {0};

    make_variables();
    run.page_size[0] = run.page_size[1] = 2;
    run.stuck = true;

    assert_int_equal(catalogue_ask(&roster, NULL, 0, &catalogue, &error), SUMAC_INTERNAL);

    assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
    assert_int_equal(run.asked, 2);
    assert_int_equal(catalogue.page_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variable_is_read_once_wherever_the_pages_end),
        cmocka_unit_test(a_list_that_does_not_go_on_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
