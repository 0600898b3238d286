/* SPDX-License-Identifier: Apache-2.0 */
/* lane_moves.c -- parts and streams go from state to state as their tables say, and any other move ends the process. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lane_state.h"

#define STATES_MAX 16u

/* Does a process that makes the move live on? */
static bool lives(void (*move)(uint32_t from, uint32_t to), uint32_t from, uint32_t to)
{
    int status = 0;

    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO); /* what the assertion says */
        move(from, to);
        _exit(EXIT_SUCCESS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

/* `expected` has a text for each state: the states that may follow it, by their letters. */
static void expect_moves(
    void (*move)(uint32_t from, uint32_t to), const char *letters, const char *const *expected)
{
    for (uint32_t from = 0; letters[from] != '\0'; from++) {
        char seen[STATES_MAX] = "";
        size_t count = 0;
        for (uint32_t to = 0; letters[to] != '\0'; to++) {
            if (lives(move, from, to))
                seen[count++] = letters[to];
        }
        assert_string_equal(seen, expected[from]);
    }
}

static void move_part(uint32_t from, uint32_t to)
{
    struct part part = {.state = (enum part_state)from};

    lane_part_move(&part, (enum part_state)to);
}

static void a_part_is_over_once_and_for_all(void **state)
{
    /* New, Received, dUplicate, Dropped, reFused, Staged, Void, Applied, Over. */
    static const char *const expected[] = {"RUD", "DFSO", "DO", "O", "VO", "AO", "O", "O", ""};
    (void)state;

    expect_moves(move_part, "NRUDFSVAO", expected);
}

static void move_stream(uint32_t from, uint32_t to)
{
    struct stream stream = {.state = (enum stream_state)from};

    lane_stream_move(&stream, (enum stream_state)to);
}

static void a_stream_is_greeted_once_and_ended_once(void **state)
{
    /* Silent, sTale, Greeted, Ended. */
    static const char *const expected[] = {"TGE", "E", "SE", ""};
    (void)state;

    expect_moves(move_stream, "STGE", expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_over_once_and_for_all),
        cmocka_unit_test(a_stream_is_greeted_once_and_ended_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
