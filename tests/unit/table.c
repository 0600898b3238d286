/* SPDX-License-Identifier: Apache-2.0 */
/* table.c -- columns, the names of their groups, and what gives way in a narrow terminal. */
#include <math.h>

#include "unit.h"
#include "table.h"

static const struct table_column traffic[] = {
    {NULL, "PS", 0},    {"push", ">/S", 0},      {"push", ">BYTES/S", 2}, {"push", ">P50", 0},
    {"pull", ">/S", 0}, {"pull", ">BYTES/S", 2}, {NULL, "ADDRESS", 3},
};
#define COLUMNS (sizeof traffic / sizeof traffic[0])

static void add_words(struct table *table, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        table_add(table, "%s", words[i]);
}

/* A row of figures. */
static void add_ps(struct table *table)
{
    static const char *const words[COLUMNS] = {"ps 0", "7", "1.2M", "31 µs", "8", "3.4M", "h:1"};

    add_words(table, words, COLUMNS);
}

/* The text of the table, which is done with. */
static char *printed(struct table *table, uint32_t width)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    assert_non_null(file);
    assert_true(table_print(table, width, file));
    assert_int_equal(fclose(file), 0);
    return text;
}

TEST(groups_are_named_above_their_columns)
{
    struct table table = {.columns = traffic, .column_count = COLUMNS};

    add_ps(&table);

    char *text = printed(&table, 0);

    assert_string_equal(
        text, "      ────── push ──────  ── pull ───\n"
              "PS    /S  BYTES/S    P50  /S  BYTES/S  ADDRESS\n"
              "ps 0   7     1.2M  31 µs   8     3.4M  h:1\n");
    free(text);
}

TEST(rows_of_the_middle_are_counted_where_lines_are_few)
{
    static const struct table_column columns[] = {{NULL, "PS", 0}};
    static const char *const expected[] = {
        [3] = "PS\nps 0\n… 4 more …\nps 5\n",
        [4] = "PS\nps 0\nps 1\n… 3 more …\nps 5\n",
        [5] = "PS\nps 0\nps 1\n… 2 more …\nps 4\nps 5\n",
        [6] = "PS\nps 0\nps 1\nps 2\nps 3\nps 4\nps 5\n",
        [7] = "PS\nps 0\nps 1\nps 2\nps 3\nps 4\nps 5\n"};

    for (uint32_t lines = 3; lines <= 7; lines++) {
        struct table table = {.columns = columns, .column_count = 1, .lines_max = lines};
        for (int ps = 0; ps < 6; ps++)
            table_add(&table, "ps %d", ps);
        char *text = printed(&table, 0);
        assert_string_equal(text, expected[lines]);
        free(text);
    }
}

TEST(what_can_be_spared_gives_way_where_lines_are_short)
{
    struct table table = {.columns = traffic, .column_count = COLUMNS};

    add_ps(&table);

    char *text = printed(&table, 25);

    assert_string_equal(
        text, "      ─ push ──  pull\n"
              "PS    /S    P50    /S\n"
              "ps 0   7  31 µs     8\n");
    free(text);
}

TEST(a_table_that_just_fits_has_all_its_columns_and_a_wider_one_has_not)
{
    struct table table = {.columns = traffic, .column_count = COLUMNS};

    add_ps(&table);
    char *const whole = printed(&table, 0);
    add_ps(&table);
    char *const fits = printed(&table, 46); /* as wide as its titles */
    add_ps(&table);
    char *const wider = printed(&table, 45);

    assert_non_null(strstr(whole, "PS    /S  BYTES/S    P50  /S  BYTES/S  ADDRESS\n"));
    assert_string_equal(fits, whole);
    assert_string_not_equal(wider, whole);
    free(wider);
    free(fits);
    free(whole);
}

TEST(what_cannot_be_spared_stays_however_short_lines_are)
{
    struct table table = {.columns = traffic, .column_count = COLUMNS};

    add_ps(&table);

    char *text = printed(&table, 5);

    assert_non_null(text);
    assert_non_null(strstr(text, "31 µs"));
    assert_null(strstr(text, "h:1"));
    free(text);
}

TEST(a_text_may_go_on_to_the_end_of_its_row_and_widens_no_column)
{
    struct table table = {.columns = traffic, .column_count = COLUMNS};

    table_add(&table, "ps 1");
    table_add_rest(&table, "no answer for %d s, and a text that is wider than all columns", 5);
    add_ps(&table);

    char *text = printed(&table, 0);

    assert_non_null(strstr(
        text, "ps 1  no answer for 5 s, and a text that is wider than all columns\n"
              "ps 0   7     1.2M"));
    free(text);
}

TEST(a_group_that_is_narrower_than_its_name_makes_room_for_it)
{
    static const struct table_column columns[] = {{"staleness", ">MEAN", 0}, {"x", ">P", 0}};
    struct table table = {.columns = columns, .column_count = 2};
    static const char *const words[] = {"1.0", "2"};

    add_words(&table, words, 2);

    char *text = printed(&table, 0);

    assert_string_equal(
        text, "staleness  x\n"
              "     MEAN  P\n"
              "      1.0  2\n");
    free(text);
}

TEST(figures_are_short)
{
    assert_string_equal(table_bytes(0).text, "0");
    assert_string_equal(table_bytes(1023).text, "1023");
    assert_string_equal(table_bytes(1536).text, "1.5K");
    assert_string_equal(table_bytes(99.94 * 1048576).text, "99.9M");
    assert_string_equal(table_bytes(99.96 * 1048576).text, "100M");
    assert_string_equal(table_bytes(100.0 * 1048576).text, "100M");
    assert_string_equal(table_bytes((double)NAN).text, "-");
    assert_string_equal(table_rate((double)NAN).text, "-");
    assert_string_equal(table_rate(0).text, "0");
    assert_string_equal(table_rate(0.123).text, "0.12");
    assert_string_equal(table_rate(9.96).text, "10");
    assert_string_equal(table_rate(8123.4).text, "8123");
}
