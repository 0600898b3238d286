/* SPDX-License-Identifier: Apache-2.0 */
/* own_identity.c (test) -- the run that a process takes from its environment. */
#include "own_identity.h"

#include <unistd.h>

#include "unit.h"

static const char *const variables[] = {
    "SUMAC_RUN",         "SLURM_HET_JOB_ID",          "SLURM_JOB_ID_HET_GROUP_0",
    "SLURM_PACK_JOB_ID", "SLURM_JOB_ID_PACK_GROUP_0", "SLURM_JOB_ID"};

#define VARIABLES (sizeof variables / sizeof variables[0])

static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < VARIABLES; i++)
        unsetenv(variables[i]);
    return 0;
}

static void expect(const char *run, uint32_t source)
{
    struct run_identity identity;

    assert_int_equal(own_identity(&identity, NULL), SUMAC_OK);
    assert_string_equal(identity.run, run);
    assert_int_equal(identity.source, source);
    assert_int_equal(identity.pid, getpid());
}

/* From the last one to the first, each goes before those that are set already. */
FIXTURE_TEST(each_variable_goes_before_those_behind_it, void *none, clear, NULL)
{
    expect("", RUN_SOURCE_NONE);
    for (size_t i = VARIABLES; i-- > 0;) {
        setenv(variables[i], variables[i], 1);
        expect(variables[i], i == 0 ? RUN_SOURCE_ENVIRONMENT : RUN_SOURCE_SLURM);
    }
}

FIXTURE_TEST(an_empty_name_is_no_run, void *none, clear, NULL)
{
    setenv("SLURM_HET_JOB_ID", "", 1);
    setenv("SLURM_JOB_ID", "4711", 1);
    expect("4711", RUN_SOURCE_SLURM);
    setenv("SUMAC_RUN", "", 1); /* it is set: nothing else is looked at */
    expect("", RUN_SOURCE_NONE);
}

FIXTURE_TEST(a_name_has_128_bytes_without_control_characters, void *none, clear, NULL)
{
    char name[RUN_NAME_BYTES_MAX + 2] = {0};
    struct run_identity identity;
    struct sumac_error error;

    memset(name, 'n', RUN_NAME_BYTES_MAX);
    setenv("SUMAC_RUN", name, 1);
    expect(name, RUN_SOURCE_ENVIRONMENT);
    name[RUN_NAME_BYTES_MAX] = 'n';
    setenv("SUMAC_RUN", name, 1);
    assert_int_equal(own_identity(&identity, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "SUMAC_RUN has 129 bytes: give at most 128"));
    unsetenv("SUMAC_RUN");
    setenv("SLURM_JOB_ID", "a\nb", 1);
    assert_int_equal(own_identity(&identity, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "SLURM_JOB_ID, shown here with ?, has a control"));
}
