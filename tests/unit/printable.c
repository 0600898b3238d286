/* SPDX-License-Identifier: Apache-2.0 */
/* printable.c -- the strings of a message, made safe for a terminal. */

#include "unit.h"
#include "wire.h"

TEST(every_string_of_a_message_becomes_a_printable_line)
{
    char address[] = "a\x1b[2J\nb:5", worker[] = "w\r", name[] = "v\xc2\x9b";
    char *addresses[] = {address};
    wire_shard shard = WIRE_SHARD_INIT, *shards[] = {&shard};
    wire_variable variable = WIRE_VARIABLE_INIT, *variables[] = {&variable};
    wire_list_reply reply = WIRE_LIST_REPLY_INIT; /* with strings that are not set */

    shard.last_worker = worker;
    variable.name = name;
    variable.shards = shards;
    variable.n_shards = 1;
    reply.ps_addresses = addresses;
    reply.n_ps_addresses = 1;
    reply.variables = variables;
    reply.n_variables = 1;

    wire_make_printable(&reply.base);

    assert_string_equal(address, "a?[2J?b:5");
    assert_string_equal(worker, "w?");
    assert_string_equal(name, "v??");
}

TEST(the_text_of_a_function_keeps_its_lines)
{
    char text[] = "a = g\n\x1b[2J\n", name[] = "f\n";
    wire_known_function function = WIRE_KNOWN_FUNCTION_INIT;

    function.name = name;
    function.text = text;

    wire_make_printable(&function.base);

    assert_string_equal(text, "a = g\n?[2J\n");
    assert_string_equal(name, "f?");
}
