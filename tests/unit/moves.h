/* SPDX-License-Identifier: Apache-2.0 */
/* moves.h -- what may follow each state of an object, as a test sees it: a move that is not allowed
 * ends the process. After cmocka.h.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATES_MAX 16u

/* Does a process that makes the move live on? */
static inline bool lives(void (*move)(uint32_t from, uint32_t to), uint32_t from, uint32_t to)
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
static inline void expect_moves(
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
