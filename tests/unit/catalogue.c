/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue.c -- the list of variables, read from ps whose pages end at different variables.
 *
 * The linker calls this program's `ask`.
 */

#include "unit.h"
#include "catalogue.h"
#include "memory.h"

#define VARIABLES 5u

/* Two ps have the same variables, numbered from 1. Each has its own page size. */
static struct {
    wire_variable variables[VARIABLES], *list[VARIABLES];
    size_t page_size[2];
    bool stuck;  /* ps 1 tells of the first variable again and again */
    bool empty;  /* ps 1 lists no variable, and says that it has more */
    bool silent; /* ps 1 answers nothing */
    bool lacks;  /* ps 1 does not have the first variable */
    bool left_out;
    uint32_t asked, asked_max;
} run;

enum sumac_status __wrap_ask(
    struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error);

enum sumac_status __wrap_ask(
    struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error)
{
    const wire_list_request *request = (const wire_list_request *)(const void *)inquiry->request;
    const size_t left = request->n_names > 0 ? request->n_names : VARIABLES - request->after_id;

    (void)error;
    assert_true(request->n_names <= WIRE_LIST_NAMES_MAX);
    run.left_out = roster->ps[1].left_out;
    assert_true(++run.asked <= run.asked_max);
    *answers = (struct answers){
        .count = roster->count, .replies = calloc(roster->count, sizeof *answers->replies)};
    arena_init(&answers->arena, &memory_heap, WIRE_ARENA_BYTES_MAX);
    for (uint32_t ps = 0; ps < roster->count; ps++) {
        wire_list_reply *reply = arena_take(&answers->arena, sizeof *reply);
        *reply = (wire_list_reply)WIRE_LIST_REPLY_INIT;
        reply->variables = run.list + request->after_id;
        reply->more = left > run.page_size[ps];
        reply->n_variables = reply->more ? run.page_size[ps] : left;
        if (request->n_names > 0)
            reply->variables = arena_take(&answers->arena, left * sizeof *reply->variables);
        for (size_t i = 0; i < request->n_names; i++)
            reply->variables[i] = run.list[request->names[i][0] - '1'];
        if (ps == 1 && run.lacks) {
            reply->variables++;
            reply->n_variables--;
        }
        if (ps == 1 && run.empty) {
            reply->n_variables = 0;
            reply->more = true;
        }
        if (ps == 1 && run.stuck) {
            reply->variables = run.list;
            reply->n_variables = 1;
            reply->more = true;
        }
        roster->ps[ps].missing = ps == 1 && run.silent;
        if (!roster->ps[ps].missing)
            answers->replies[ps] = &reply->base;
    }
    return SUMAC_OK;
}

static void make_variables(void)
{
    run.asked = 0;
    run.asked_max = 2 * VARIABLES;
    run.stuck = run.empty = run.silent = run.lacks = false;
    for (size_t i = 0; i < VARIABLES; i++) {
        run.variables[i] = (wire_variable)WIRE_VARIABLE_INIT;
        run.variables[i].variable_id = i + 1;
        run.list[i] = &run.variables[i];
    }
}

TEST(every_variable_is_read_once_wherever_the_pages_end)
{
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
    }
}

TEST(what_is_named_is_read_in_the_order_of_the_names)
{
    static const size_t page_size[][2] = {{1, 2}, {2, 1}, {4, 3}, {3, 4}, {4, 4}};
    char *names[] = {(char[]){"5"}, (char[]){"1"}, (char[]){"3"}, (char[]){"2"}};
    struct roster_ps ps[2] = {{.left_out = false}};
    struct roster roster = {.count = 2, .ps = ps};

    for (size_t i = 0; i < sizeof page_size / sizeof page_size[0]; i++) {
        struct catalogue catalogue = {0};
        struct sumac_error error = {0};
        size_t seen = 0;
        make_variables();
        run.page_size[0] = page_size[i][0];
        run.page_size[1] = page_size[i][1];
        assert_int_equal(catalogue_ask(&roster, names, 4, &catalogue, &error), SUMAC_OK);
        for (uint32_t page = 0; page < catalogue.page_count; page++)
            for (size_t j = 0; j < catalogue.pages[page].count; j++) {
                const wire_variable *found = page_held_variable(&catalogue.pages[page], j, 1);
                assert_non_null(found);
                assert_int_equal(found->variable_id, names[seen++][0] - '0');
            }
        assert_int_equal(seen, 4);
    }
}

TEST(more_names_than_a_request_holds_are_asked_for_in_several)
{
    static char *names[WIRE_LIST_NAMES_MAX + 1], one[] = "1";
    struct roster_ps ps[2] = {{.left_out = false}};
    struct roster roster = {.count = 2, .ps = ps};
    struct catalogue catalogue = {0};
    struct sumac_error error = {0};

    make_variables();
    run.page_size[0] = run.page_size[1] = VARIABLES;
    for (size_t i = 0; i <= WIRE_LIST_NAMES_MAX; i++)
        names[i] = one;
    run.asked_max = WIRE_LIST_NAMES_MAX;
    assert_int_equal(
        catalogue_ask(&roster, names, WIRE_LIST_NAMES_MAX + 1, &catalogue, &error), SUMAC_OK);
    assert_int_equal(run.asked, (WIRE_LIST_NAMES_MAX + VARIABLES) / VARIABLES);
}

/* It would be waited for with each page. */
TEST(a_ps_that_is_silent_is_not_asked_for_the_next_page)
{
    struct roster_ps ps[2] = {{.left_out = false}};
    struct roster roster = {.count = 2, .ps = ps};
    struct catalogue catalogue = {0};
    struct sumac_error error = {0};

    make_variables();
    run.page_size[0] = run.page_size[1] = 3;
    run.silent = true;

    assert_int_equal(catalogue_ask(&roster, NULL, 0, &catalogue, &error), SUMAC_OK);

    assert_int_equal(run.asked, 2);
    assert_true(run.left_out);
}

TEST(a_variable_that_a_ps_does_not_have_is_not_mistaken_for_another)
{
    struct roster_ps ps[2] = {{.left_out = false}};
    struct roster roster = {.count = 2, .ps = ps};
    struct catalogue catalogue = {0};
    struct sumac_error error = {0};

    make_variables();
    run.page_size[0] = run.page_size[1] = VARIABLES;
    run.lacks = true;

    assert_int_equal(catalogue_ask(&roster, NULL, 0, &catalogue, &error), SUMAC_OK);

    assert_int_equal(catalogue.pages[0].count, VARIABLES);
    assert_null(page_held_variable(&catalogue.pages[0], 0, 1));
    assert_int_equal(page_held_variable(&catalogue.pages[0], 1, 1)->variable_id, 2);
}

TEST(a_list_that_does_not_go_on_is_refused)
{
    for (int empty = 0; empty < 2; empty++) {
        struct roster_ps ps[2] = {{.left_out = false}};
        struct roster roster = {.count = 2, .ps = ps};
        struct catalogue catalogue = {0};
        struct sumac_error error = {0};
        make_variables();
        run.page_size[0] = run.page_size[1] = 2;
        run.stuck = empty == 0;
        run.empty = empty == 1;

        assert_int_equal(catalogue_ask(&roster, NULL, 0, &catalogue, &error), SUMAC_INTERNAL);

        assert_int_equal(error.reason, SUMAC_REASON_MALFORMED);
        assert_int_equal(run.asked, empty == 0 ? 2 : 1);
        assert_int_equal(catalogue.page_count, 0);
    }
}
