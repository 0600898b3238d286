/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h -- test cases that register themselves: a test file needs no list of its cases and no
 * `main`.
 *
 * unit.c runs the cases in the order of their lines. A file of tests whose `main` has more to do
 * has its own, which calls unit_run.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct unit_test {
    struct CMUnitTest test;
    int line;
};

void unit_register(struct unit_test test);

/* Run all cases, after `set_up` and before `tear_down` of the group (NULL: none). Gives the number
 * of failed cases. */
int unit_run(CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* A test case: TEST(name) { … } */
#define TEST(name)                                                                                 \
    static void name(void);                                                                        \
    static void unit_call_##name(void **state)                                                     \
    {                                                                                              \
        (void)state;                                                                               \
        name();                                                                                    \
    }                                                                                              \
    UNIT_REGISTER(name, unit_call_##name, NULL, NULL)                                              \
    static void name(void)

/* A test case whose body has the fixture that set_up left at *state: `parameter` declares it. */
#define FIXTURE_TEST(name, parameter, set_up, tear_down)                                           \
    static void name(parameter);                                                                   \
    static void unit_call_##name(void **state) { name(*state); }                                   \
    UNIT_REGISTER(name, unit_call_##name, set_up, tear_down)                                       \
    static void name(__attribute__((unused)) parameter)

/* A test case that makes its fixture again: its body has `state`. */
#define STATE_TEST(name, set_up, tear_down)                                                        \
    static void name(void **state);                                                                \
    UNIT_REGISTER(name, name, set_up, tear_down)                                                   \
    static void name(__attribute__((unused)) void **state)

#define UNIT_REGISTER(name, function, set_up, tear_down)                                           \
    __attribute__((constructor)) static void unit_register_##name(void)                            \
    {                                                                                              \
        unit_register((struct unit_test){{#name, function, set_up, tear_down, NULL}, __LINE__});   \
    }
