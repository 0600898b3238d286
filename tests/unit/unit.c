/* SPDX-License-Identifier: Apache-2.0 */
/* unit.c -- the cases of a test program, and its `main`. */
#include "unit.h"

#define CASES_MAX 256

static struct unit_test cases[CASES_MAX];
static size_t cases_count;

void unit_register(struct unit_test test)
{
    if (cases_count == CASES_MAX)
        abort();
    /* Constructors run in any order. */
    size_t at = cases_count++;

    for (; at > 0 && cases[at - 1].line > test.line; at--)
        cases[at] = cases[at - 1];
    cases[at] = test;
}

int unit_run(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    struct CMUnitTest tests[CASES_MAX];

    for (size_t i = 0; i < cases_count; i++)
        tests[i] = cases[i].test;
    return _cmocka_run_group_tests("tests", tests, cases_count, set_up, tear_down);
}

__attribute__((weak)) int main(void) { return unit_run(NULL, NULL); }
