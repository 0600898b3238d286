/* SPDX-License-Identifier: Apache-2.0 */
/* find_cluster.c -- the ps that --ps names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "find_cluster.h"

static void who_is_named_twice_is_asked_once(void **state)
{
    (void)state;
    struct ps_list list = {0};
    struct sumac_error error = {0};

    assert_int_equal(find_cluster("a:1,b:2,a:1,a:2", &list, &error), SUMAC_OK);

    assert_int_equal(list.count, 3);
    assert_string_equal(list.addresses[0], "a:1");
    assert_string_equal(list.addresses[1], "b:2");
    assert_string_equal(list.addresses[2], "a:2");
    ps_list_deinit(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_named_twice_is_asked_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
