/* SPDX-License-Identifier: Apache-2.0 */
/* own_variables.c (test) -- which variables in the environment are misspelt, and what they say. */
#include "own_variables.h"

#include "unit.h"

static int clear(void **state)
{
    (void)state;
    return clearenv();
}

FIXTURE_TEST(
    a_name_that_is_nearly_known_is_found_with_the_one_that_is_meant, void *none, clear, NULL)
{
    static const struct {
        const char *name, *meant;
    } rows[] = {
        {"SUMAC_SYNCHRONOS", "SUMAC_SYNCHRONOUS"},
        {"SUMAC_REPLICA", "SUMAC_REPLICAS"},
        {"SUMAC_synchronous", "SUMAC_SYNCHRONOUS"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[MISSPELT_VARIABLE_BYTES];
        clearenv();
        setenv("SUMAC_RUN", "one", 1); /* given */
        setenv(rows[i].name, "1", 1);

        const char *const meant = misspelt_variable(name); /* when */

        assert_non_null(meant); /* then */
        assert_string_equal(meant, rows[i].meant);
        assert_string_equal(name, rows[i].name);
    }
}

FIXTURE_TEST(known_names_and_the_users_own_are_left_alone, void *none, clear, NULL)
{
    static const char *const names[] = {
        "SUMAC_RUN",
        "SUMAC_SYNCHRONOUS",
        "SUMAC_REPLICAS",
        "SUMAC_DEVICES",
        "SUMAC_TRACE",
        "SUMAC_STRATEGY",
        "SUMAC_LOG_FD",
        "SUMAC_PROGRESS",
        "SUMAC_PROGRAM",
        "SUMAC_FOLDER",
        "SUMAC_",
        "SYNCHRONOS",
        "SUMAC_OF_MORE_THAN_64_BYTES_WHICH_NO_NAME_OF_OURS_WILL_EVER_HAVE_I_HOPE"};
    char name[MISSPELT_VARIABLE_BYTES];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        setenv(names[i], "1", 1);
    assert_null(misspelt_variable(name));
}
