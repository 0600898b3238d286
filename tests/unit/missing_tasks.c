/* SPDX-License-Identifier: Apache-2.0 */
/* missing_tasks.c -- the words for the tasks that others wait for. */

#include "unit.h"
#include "missing_tasks.h"

TEST(each_task_is_named_with_its_state)
{
    static const struct {
        struct missing_task task;
        const char *text;
    } rows[] = {
        {{.name = "worker 1"}, "worker 1"},
        {{.name = "worker 1", .state = MISSING_NEVER_JOINED, .address = "h1:2222"},
         "worker 1 (at h1:2222, never joined)"},
        {{.name = "worker 1", .address = "", .silence = "alive, no push or pull on ps 0 for 3 s"},
         "worker 1 (alive, no push or pull on ps 0 for 3 s)"},
        {{.name = "worker 1", .own_pace = true, .silence = "no push or pull on ps 0 for 3 s"},
         "worker 1 (its pushes are asynchronous, no push or pull on ps 0 for 3 s)"},
        {{.name = "chief 0", .silence = "last heard from 2 s ago", .barrier = "end"},
         "chief 0 (last heard from 2 s ago, waiting at barrier \"end\")"},
        {{.name = "worker 1", .silence = "last heard from 2 s ago", .state = MISSING_LEFT},
         "worker 1 (last heard from 2 s ago, left)"},
        {{.name = "worker 1", .state = MISSING_DONE}, "worker 1 (left as done)"},
        {{.name = "worker 1", .state = MISSING_LOST}, "worker 1 (lost)"},
        {{.name = "worker 1", .state = MISSING_ABSENT}, "worker 1 (no session)"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct missing_tasks missing = {.own_pace = false}; /* given */

        missing_tasks_add(&missing, &rows[i].task); /* when */

        assert_string_equal(missing_tasks_end(&missing), rows[i].text); /* then */
    }
}

TEST(tasks_that_do_not_fit_are_counted)
{
    struct missing_tasks missing = {.own_pace = false};

    for (int i = 0; i < 9; i++)
        missing_tasks_add(
            &missing, &(struct missing_task){
                          .name = "worker 1", .silence = "no push or pull on ps 1 for 60 s"});

    const char *text = missing_tasks_end(&missing);
    assert_non_null(strstr(text, "), … 9 in all"));
    for (int i = 0; i < 4; i++, text++) /* that many are named */
        assert_non_null(text = strstr(text, "worker 1 (no push or pull on ps 1 for 60 s)"));
}

TEST(the_states_say_what_to_do)
{
    static const struct missing_task away = {.name = "worker 1", .state = MISSING_NEVER_JOINED},
                                     alone = {.name = "worker 2", .own_pace = true},
                                     lost = {.name = "worker 3", .state = MISSING_LOST};
    struct missing_tasks missing = {.own_pace = false};

    missing_tasks_add(&missing, &lost);
    assert_string_equal(missing_tasks_remedy(&missing, "; otherwise"), "; otherwise");

    missing_tasks_add(&missing, &away);
    assert_string_equal(missing_tasks_remedy(&missing, ""), "; start each missing task");

    missing_tasks_add(&missing, &alone);
    assert_string_equal(
        missing_tasks_remedy(&missing, ""),
        "; start each missing task; start all workers with the same SUMAC_SYNCHRONOUS");
}
