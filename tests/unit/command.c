/* SPDX-License-Identifier: Apache-2.0 */
/* command.c (test) -- the exit code of a command that failed, and its line. */
#include <unistd.h>

#include "unit.h"
#include "command.h"
#include "sumac/client.h"

/* Let `ls` fail for `error`. Returns the exit code; *said is what stderr was told. */
static int fail_with(const struct sumac_error *error, char said[static 256])
{
    const int terminal = dup(STDERR_FILENO);
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    const int code = command_failed(command_find("ls"), error);
    assert_true(dup2(terminal, STDERR_FILENO) >= 0);
    rewind(file);
    said[fread(said, 1, 255, file)] = '\0';
    (void)close(terminal);
    (void)fclose(file);
    return code;
}

TEST(a_command_that_the_runs_end_cuts_short_may_be_tried_again)
{
    char said[256];
    const struct sumac_error error = {
        .status = SUMAC_FAILED_PRECONDITION,
        .reason = SUMAC_REASON_RUN_ENDED,
        .text = "ps 0 has ended"};

    assert_int_equal(sumac_exit_code(&error), 0); /* of a worker: it is done */

    assert_int_equal(command_exit_code(&error), EXIT_RETRYABLE);
    assert_int_equal(fail_with(&error, said), EXIT_RETRYABLE);
    assert_string_equal(said, "sumac ls: the run has ended: ps 0 has ended\n");
}

TEST(an_unknown_variable_names_the_command_that_lists_them)
{
    char said[256];
    const struct sumac_error unknown = {
        .status = SUMAC_NOT_FOUND,
        .reason = SUMAC_REASON_UNKNOWN_VARIABLE,
        .text = "there is no W"};
    const struct sumac_error missing = {
        .status = SUMAC_UNAVAILABLE, .reason = SUMAC_REASON_PS_MISSING, .text = "no ps 1"};

    assert_int_equal(fail_with(&unknown, said), EXIT_MISUSED);
    assert_string_equal(said, "sumac ls: there is no W; `sumac ls` lists the variables\n");
    assert_int_equal(fail_with(&missing, said), EXIT_RETRYABLE);
    assert_string_equal(said, "sumac ls: no ps 1\n");
}

TEST(a_command_is_found_by_its_whole_name)
{
    size_t count = 0;

    for (; commands[count] != NULL; count++)
        assert_ptr_equal(command_find(commands[count]->name), commands[count]);
    assert_int_equal(count, 11);
    assert_null(command_find("l"));
    assert_null(command_find("ls2"));
}
