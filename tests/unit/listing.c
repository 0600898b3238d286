/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c -- names in one text that has an end, and lists of addresses. */

#include "unit.h"
#include "listing.h"
#include "loopback.h"

#define SHOWN_MAX 128u /* bytes of names, beside which the count has room */

/* A name with that number of bytes. */
static const char *name_of(size_t bytes)
{
    static char name[LISTING_BYTES];

    assert_in_range(bytes, 1, sizeof name - 1);
    memset(name, 'n', bytes);
    name[bytes] = '\0';
    return name;
}

TEST(names_are_listed_with_commas)
{
    struct listing listing = {0};

    listing_add_task(&listing, "worker", 0);
    listing_add(&listing, "ps 1");

    assert_string_equal(listing_end(&listing), "worker 0, ps 1");
}

TEST(a_name_is_shown_if_the_count_has_room_beside_it)
{
    struct listing whole = {0}, cut = {0};

    listing_add(&whole, name_of(SHOWN_MAX));
    listing_add(&cut, name_of(SHOWN_MAX + 1));

    assert_string_equal(listing_end(&whole), name_of(SHOWN_MAX));
    assert_string_equal(listing_end(&cut), "… 1 in all");
}

TEST(names_behind_one_without_room_are_only_counted)
{
    struct listing listing = {0};

    listing_add(&listing, "first");
    listing_add(&listing, name_of(SHOWN_MAX));
    listing_add(&listing, "third");

    assert_string_equal(listing_end(&listing), "first, … 3 in all");
}

TEST(lists_contradict_each_other_by_the_index_or_the_port_of_a_ps)
{
    static const struct {
        const char *ours[2], *theirs[2];
        size_t their_count;
        bool same;
    } rows[] = {
        {{"a:1", "b:1"}, {"a:1", "b:1"}, 2, true},
        {{"a:1", "b:1"}, {"a:1", "b:1"}, 1, false},
        {{"a:1", "b:1"}, {"b:1", "a:1"}, 2, false},
        {{"a:1", "b:1"}, {"proxy:1", "b:1"}, 2, true},
        {{"a:1", "b:1"}, {"proxy:1", "a:1"}, 2, false},
        {{"a:1", "b:1"}, {"b:1", "proxy:1"}, 2, false},
        {{"a:1", "b:1"}, {"a:1", "b:2"}, 2, false},
        {{"a:1", "b:1"}, {"a:1", "b.example:2"}, 2, true}, /* another name of the host */
        {{"a:1", "b.example:1"}, {"a:1", "b:2"}, 2, true},
        {{"a:1", "[fd00::1]:1"}, {"a:1", "[fd00::1]:2"}, 2, false},
        {{"a:1", "[fd00::1]:1"}, {"a:1", "[fd00::2]:2"}, 2, true},
        {{"a:1", "localhost:1"}, {"a:1", "localhost:2"}, 2, true}, /* it may be forwarded */
        {{"a:1", "127.0.0.2:1"}, {"a:1", "127.0.0.2:2"}, 2, true},
        {{"a:1", "[::1]:1"}, {"a:1", "[::1]:2"}, 2, true},
        {{"a:1", "localhost.example:1"}, {"a:1", "localhost.example:2"}, 2, false},
        {{"a:1", "b"}, {"a:1", "b:2"}, 2, true}, /* no port */
        {{"a:1", ""}, {NULL, "b:1"}, 2, true},   /* two unknown ones are not one */
        {{"a:1", NULL}, {"", "b:1"}, 2, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(
            listing_same_ps(rows[i].ours, 2, rows[i].theirs, rows[i].their_count), rows[i].same);
}

TEST(the_ps_on_another_port_of_its_host_is_found)
{
    static const char *const ours[] = {"a:1", "b:1", "c:1"};
    static const char *const theirs[] = {"x:1", "b:1", "c:2"};
    size_t index = 9;

    assert_false(listing_other_port(ours, theirs, 2, &index));
    assert_true(listing_other_port(ours, theirs, 3, &index));

    assert_int_equal(index, 2);
}

TEST(a_list_that_names_an_address_twice_is_told_where)
{
    static const char *const twice[] = {"", "a:1", NULL, "b:1", "a:1"};
    size_t first = 9, second = 9;

    assert_false(listing_names_twice(twice, 4, &first, &second));
    assert_true(listing_names_twice(twice, 5, &first, &second));

    assert_int_equal(first, 1);
    assert_int_equal(second, 4);
}

TEST(an_address_that_is_not_known_is_said_so)
{
    static const char *const addresses[] = {"a:1", "", NULL};
    struct listing listing = {0};

    listing_add_addresses(&listing, addresses, 3);

    assert_string_equal(listing_end(&listing), "a:1, (unknown), (unknown)");
}

static const char *const own[] = {"localhost:1", "127.0.0.2:1", NULL, "[::1]:2"};
static const char *const started[] = {STARTER_ADDRESS, "127.0.0.1:1"};
static const char *const mixed[] = {"127.0.0.1:1", "", "h1:1"};

TEST(loopback_is_a_remedy_only_beside_other_hosts)
{
    static const struct {
        const char *address;
        struct address_list ps, members;
        bool remedy;
    } rows[] = {
        {"localhost:1", {own, 4}, {NULL, 0}, false},
        {"localhost:1", {own, 4}, {own, 4}, false},
        {"localhost:1", {own, 4}, {mixed, 2}, false},
        {"localhost:1", {own, 4}, {started, 2}, false},
        {"localhost:1", {own, 4}, {mixed, 3}, true},
        {"127.0.0.1:1", {mixed, 3}, {NULL, 0}, true},
        {"[::1]:2", {mixed, 3}, {NULL, 0}, true},
        {"h1:1", {mixed, 3}, {NULL, 0}, false},
        {"localhost.net:1", {mixed, 3}, {NULL, 0}, false},
        {"local:1", {mixed, 3}, {NULL, 0}, false},
        {"[::]:1", {mixed, 3}, {NULL, 0}, false},
        {"an unknown address", {mixed, 3}, {NULL, 0}, false},
        {NULL, {mixed, 3}, {NULL, 0}, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(
            loopback_remedy(rows[i].address, rows[i].ps, rows[i].members, "otherwise"),
            rows[i].remedy ? LOOPBACK_REMEDY : "otherwise");
}
