/* SPDX-License-Identifier: Apache-2.0 */
/* wanted.c -- slices of rows, as Python cuts them; who need not answer for them. */

#include "unit.h"
#include "catalogue.h"
#include "wanted.h"

static void assert_slice(const char *text, uint64_t first, uint64_t count)
{
    struct sumac_range rows = {0};
    struct sumac_error error = {0};

    if (wanted_parse_slice(text, "w", 10, &rows, &error) != SUMAC_OK)
        fail_msg("%s: %s", text, error.text);
    assert_int_equal(rows.first, first);
    assert_int_equal(rows.count, count);
}

static void assert_refused(const char *text, const char *said)
{
    struct sumac_range rows = {.first = 77};
    struct sumac_error error = {0};

    assert_int_equal(wanted_parse_slice(text, "w", 10, &rows, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(error.text, said);
    assert_int_equal(rows.first, 77);
}

TEST(a_slice_goes_from_its_first_row_up_to_its_end)
{
    assert_slice("0:4", 0, 4);
    assert_slice("3:4", 3, 1);
    assert_slice("9:10", 9, 1);
    assert_slice(":", 0, 10);
    assert_slice("7:", 7, 3);
    assert_slice(":2", 0, 2);
}

TEST(a_number_below_0_counts_from_the_end)
{
    assert_slice("-3:", 7, 3);
    assert_slice(":-1", 0, 9);
    assert_slice("-10:-9", 0, 1);
    assert_slice("-1:", 9, 1);
}

TEST(what_is_beyond_either_end_is_cut_off)
{
    assert_slice("8:99", 8, 2);
    assert_slice("-11:1", 0, 1);
    assert_slice("-9223372036854775808:9223372036854775807", 0, 10);
}

TEST(a_slice_without_rows_is_refused_with_how_many_there_are)
{
    assert_refused("4:4", "the slice 4:4 of w has no rows; the variable has 10");
    assert_refused("5:4", "the slice 5:4 of w has no rows; the variable has 10");
    assert_refused("10:", "the slice 10: of w has no rows; the variable has 10");
}

TEST(what_is_no_slice_is_refused)
{
    assert_refused("4", "a slice is FIRST:END, such as 0:4 or -3:, not 4");
    assert_refused("a:4", "a slice is FIRST:END, such as 0:4 or -3:, not a:4");
    assert_refused("0:4:2", "a slice is FIRST:END, such as 0:4 or -3:, not 0:4:2");
    assert_refused(
        "0:9223372036854775808",
        "a slice is FIRST:END, such as 0:4 or -3:, not 0:9223372036854775808");
}

/* ---- a ps is away: the linker hands what is asked to this one */

enum sumac_status __wrap_ask(
    struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error);

/* The variables of a run of three ps: "w" has 2 rows on each, "v" 3 rows on ps 2, "s" is a
 * scalar there. */
static struct {
    wire_list_reply reply;
    wire_variable variables[3], *list[3];
    wire_shard shards[5], *pointers[5];
    uint64_t shapes[3][2];
    bool away[3], contradicts; /* another ps answers at the address of ps 2 */
    char asked[4];             /* who was asked whether it is there, by number */
} run;

static void make_run(void)
{
    memset(&run, 0, sizeof run);
    run.reply = (wire_list_reply)WIRE_LIST_REPLY_INIT;
    run.reply.variables = run.list;
    for (uint32_t i = 0; i < 5; i++) {
        run.shards[i] = (wire_shard)WIRE_SHARD_INIT;
        run.shards[i].ps = i < 3 ? i : 2;
        run.shards[i].first_row = i < 3 ? 2 * i : 0;
        run.shards[i].rows = i < 3 ? 2 : i == 3 ? 3 : 1;
        run.pointers[i] = &run.shards[i];
    }
    for (uint32_t i = 0; i < 3; i++) {
        wire_variable *variable = &run.variables[i];
        *variable = (wire_variable)WIRE_VARIABLE_INIT;
        variable->name = (char *)(uintptr_t)(i == 0 ? "w" : i == 1 ? "v" : "s");
        variable->variable_id = i + 1;
        variable->data_type = (Sumac__V1__DataType)SUMAC_FLOAT32;
        run.shapes[i][0] = i == 0 ? 6 : 3;
        run.shapes[i][1] = 5;
        variable->shape = run.shapes[i];
        variable->n_shape = i < 2 ? 2 : 0;
        variable->shards = &run.pointers[i == 0 ? 0 : 2 + i];
        variable->n_shards = i == 0 ? 3 : 1;
    }
}

static bool names(const wire_list_request *request, const char *name)
{
    if (request->n_names == 0 && request->after_id != UINT64_MAX)
        return true; /* all are asked for */
    for (size_t i = 0; i < request->n_names; i++)
        if (strcmp(request->names[i], name) == 0)
            return true;
    return false;
}

static enum sumac_status refused(
    struct answers *answers, enum sumac_status status, enum sumac_reason reason, const char *text,
    struct sumac_error *error)
{
    free(answers->replies);
    *error = (struct sumac_error){.status = status, .reason = reason};
    (void)snprintf(error->text, sizeof error->text, "%s", text);
    return status;
}

/* ps 0 tells of the variables; whoever is asked and away is missing from then on. */
enum sumac_status __wrap_ask(
    struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error)
{
    const wire_list_request *request = (const wire_list_request *)(const void *)inquiry->request;

    *answers = (struct answers){
        .count = roster->count, .replies = calloc(roster->count, sizeof *answers->replies)};
    for (uint32_t i = 0; i < roster->count; i++) {
        struct roster_ps *ps = &roster->ps[i];
        if (ps->left_out)
            continue;
        if (request->after_id == UINT64_MAX)
            run.asked[strlen(run.asked)] = (char)('0' + i);
        ps->missing = run.away[i];
        if (i == 2 && run.contradicts)
            return refused(
                answers, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
                "ps 1 answers there", error);
    }
    if (request->after_id != UINT64_MAX)
        run.reply.n_variables = 0; /* told anew */
    for (size_t i = 0; i < 3; i++)
        if (names(request, run.variables[i].name))
            run.list[run.reply.n_variables++] = &run.variables[i];
    if (request->n_names > 0 && run.reply.n_variables == 0)
        return refused(
            answers, SUMAC_NOT_FOUND, SUMAC_REASON_UNKNOWN_VARIABLE, "no variable is named x",
            error);
    answers->replies[0] = &run.reply.base;
    return SUMAC_OK;
}

struct sight {
    const char *words[2], *slice;
    const char *asked;  /* ps 0 has answered, and is always asked */
    int32_t missing[2]; /* while ps 1 and 2 are away */
};

static void see(const struct sight *sight)
{
    struct roster_ps ps[3] = {{.left_out = false}};
    struct roster roster = {.count = 3, .ps = ps};
    struct wanted_list list = {0};
    struct sumac_error error = {0};
    const size_t words = sight->words[1] == NULL ? 1 : 2;

    make_run();
    run.away[1] = run.away[2] = true;
    if (wanted_find(
            &roster, (char **)(uintptr_t)sight->words, words, sight->slice, &list, &error) !=
        SUMAC_OK)
        fail_msg("%s", error.text);
    assert_int_equal(list.count, words);
    assert_string_equal(run.asked, sight->asked);
    for (size_t i = 0; i < words; i++)
        assert_int_equal(list.items[i].missing, sight->missing[i]);
}

/* Who holds none of these rows is neither asked nor missed, whatever the other words name. */
TEST(those_alone_are_missing_who_hold_rows_that_are_wanted)
{
    static const struct sight sights[] = {
        {{"w"}, NULL, "012", {1}},
        {{"w"}, "0:2", "0", {-1}},
        {{"w"}, "1:3", "01", {1}},
        {{"w"}, "2:4", "01", {1}},
        {{"w"}, "4:5", "02", {2}},
        {{"w"}, ":-2", "01", {1}},
        {{"w[:2]", "w[4:]"}, NULL, "02", {-1, 2}},
        {{"w[:2]", "v"}, NULL, "02", {-1, 2}},
        {{"w[2:3]", "v[:1]"}, NULL, "012", {1, 2}},
        {{"w[2:3]", "w[4:]"}, NULL, "012", {1, 2}},
        {{"w", "v"}, ":1", "02", {-1, 2}},
    };

    for (size_t i = 0; i < sizeof sights / sizeof sights[0]; i++)
        see(&sights[i]);
}

static void expect_unknown(const char *said)
{
    struct roster_ps ps[3] = {{.left_out = false}};
    struct roster roster = {.count = 3, .ps = ps};
    struct wanted_list list = {0};
    struct sumac_error error = {0};

    assert_int_not_equal(
        wanted_find(&roster, (char *[]){(char[]){"x"}}, 1, NULL, &list, &error), SUMAC_OK);
    assert_string_equal(run.asked, "012");
    assert_non_null(strstr(error.text, said));
}

/* The ps that answered first may not be of the run that the caller means. */
TEST(a_variable_that_is_not_found_is_an_address_to_correct_if_another_ps_is_there)
{
    make_run();
    run.contradicts = true;

    expect_unknown("ps 1 answers there");
}

TEST(a_ps_that_is_away_contradicts_nothing)
{
    make_run();
    run.away[2] = true;

    expect_unknown("no variable is named x");
}

TEST(of_a_slice_the_shape_and_bytes_are_those_of_its_rows)
{
    struct roster_ps ps[3] = {{.left_out = false}};
    struct roster roster = {.count = 3, .ps = ps};
    struct wanted_list list = {0};
    struct sumac_error error = {0};
    char *words[] = {(char[]){"w[1:4]"}, (char[]){"v"}};

    make_run();
    assert_int_equal(wanted_find(&roster, words, 2, NULL, &list, &error), SUMAC_OK);

    assert_string_equal(list.items[0].label, "w[1:4]");
    assert_string_equal(list.items[0].name, "w");
    assert_true(list.items[0].has_rows);
    assert_int_equal(list.items[0].rows.first, 1);
    assert_int_equal(list.items[0].rows.count, 3);
    assert_int_equal(list.items[0].shape.extent[0], 3);
    assert_int_equal(list.items[0].shape.extent[1], 5);
    assert_int_equal(list.items[0].bytes, 60);
    assert_string_equal(list.items[1].label, "v");
    assert_false(list.items[1].has_rows);
    assert_int_equal(list.items[1].bytes, 60);
    assert_int_equal(list.items[1].missing, -1);
}

/* Names, slices and patterns: what is read, or why nothing is. */
TEST(words_are_names_rows_or_patterns)
{
    static const struct {
        const char *words[2], *slice, *labels;
    } cases[] = {
        {{"w", "w[0:2]"}, NULL, "w w[0:2] "},
        {{"v", "?"}, NULL, "v w s "}, /* what a pattern names again is read once */
        {{"w[0:2]", "v"},
         "0:1",
         "w[0:2] has its rows, and --slice 0:1 says other ones: give them once"},
        {{"s[0:1]", "v"}, NULL, "s is a scalar: it has no rows to slice"},
        {{"w[3]", "v"},
         NULL,
         "no variable is named w[3]; rows are given as FIRST:END, such as w[3:4]"},
        {{"w", "xylophone"},
         NULL,
         "no variable is named xylophone; there are 3 others: `sumac ls` lists them"},
        {{"q[3]", "v"},
         NULL,
         "no variable is named q[3]; there are 3 others: `sumac ls` lists them"},
        {{"0:4", "w"}, NULL, "no variable is named 0:4; its rows are w[0:4]"},
        {{"w", "[0:4]"}, NULL, "no variable is named [0:4]; its rows are w[0:4]"},
        {{"w", "3,1"}, NULL, "no variable is named 3,1; its rows are w --rows 3,1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct roster_ps ps[3] = {{.left_out = false}};
        struct roster roster = {.count = 3, .ps = ps};
        struct wanted_list list = {0};
        struct sumac_error error = {0};
        char labels[SUMAC_ERROR_TEXT_BYTES] = "";
        make_run();
        if (wanted_find(
                &roster, (char **)(uintptr_t)cases[i].words, 2, cases[i].slice, &list, &error) !=
            SUMAC_OK)
            strcpy(labels, error.text);
        for (size_t j = 0; j < list.count; j++)
            strcat(strcat(labels, list.items[j].label), " ");
        assert_string_equal(labels, cases[i].labels);
    }
}

/* Another release of Sumac may allow more axes. */
TEST(axes_that_no_tensor_can_have_are_left_out)
{
    uint64_t shape[SUMAC_RANK_MAX + 3];
    struct roster_ps ps[3] = {{.left_out = false}};
    struct roster roster = {.count = 3, .ps = ps};
    struct wanted_list list = {0};
    struct sumac_error error = {0};

    make_run();
    for (size_t i = 0; i < SUMAC_RANK_MAX + 3; i++)
        shape[i] = i == 0 ? 3 : 1;
    run.variables[1].shape = shape;
    run.variables[1].n_shape = SUMAC_RANK_MAX + 3;

    assert_int_equal(
        wanted_find(&roster, (char *[]){(char[]){"v"}}, 1, NULL, &list, &error), SUMAC_OK);

    assert_int_equal(list.items[0].shape.rank, SUMAC_RANK_MAX);
    assert_int_equal(list.items[0].bytes, 12);
}

static void assert_rows(const char *text, enum sumac_status wanted_status, const int64_t *rows)
{
    struct wanted table = {
        .name = (char[]){"t"},
        .dtype = SUMAC_UINT8,
        .shape = (struct sumac_shape){.extent = {6}, .rank = 1}};
    struct wanted_list wanted = {.count = 1, .items = &table};
    struct listed_rows list;
    struct sumac_error error = {0};

    assert_int_equal(row_list_parse(text, &list, &error), SUMAC_OK);
    assert_int_equal(row_list_apply(&list, &wanted, &error), wanted_status);
    for (size_t i = 0; wanted_status == SUMAC_OK && i < list.count; i++)
        assert_int_equal(list.indices[i], rows[i]);
}

TEST(rows_by_number_count_from_either_end)
{
    static const int64_t rows[] = {0, 5, 5, 0};

    assert_rows("0,5,-1,-6", SUMAC_OK, rows);
    assert_rows("6", SUMAC_OUT_OF_RANGE, NULL);
    assert_rows("-7", SUMAC_OUT_OF_RANGE, NULL);
}

TEST(rows_of_several_variables_are_those_of_each)
{
    struct wanted tables[] = {
        {.name = (char[]){"t"}, .dtype = SUMAC_UINT8, .shape = {.extent = {6, 2}, .rank = 2}},
        {.name = (char[]){"u"}, .dtype = SUMAC_FLOAT32, .shape = {.extent = {3}, .rank = 1}}};
    struct wanted_list wanted = {.count = 2, .items = tables};
    struct listed_rows list;
    struct sumac_error error = {0};

    assert_int_equal(row_list_parse("-1,0", &list, &error), SUMAC_OK);
    assert_int_equal(row_list_apply(&list, &wanted, &error), SUMAC_OK);

    for (size_t i = 0; i < 2; i++) {
        const int64_t *const rows = sumac_tensor_data(&list.tensors[i]);
        assert_int_equal(tables[i].shape.extent[0], 2);
        assert_int_equal(tables[i].bytes, i == 0 ? 4 : 8);
        assert_int_equal(rows[0], i == 0 ? 5 : 2);
        assert_int_equal(rows[1], 0);
    }
}

TEST(rows_are_given_once_and_are_numbers)
{
    struct wanted table = {
        .name = (char[]){"t"},
        .label = (char[]){"t[0:4]"},
        .has_rows = true,
        .dtype = SUMAC_UINT8,
        .shape = {.extent = {4}, .rank = 1}};
    struct wanted_list wanted = {.count = 1, .items = &table};
    struct listed_rows list;
    struct sumac_error error = {0};

    assert_int_equal(row_list_parse("1", &list, &error), SUMAC_OK);
    assert_int_equal(row_list_apply(&list, &wanted, &error), SUMAC_INVALID_ARGUMENT);
    assert_string_equal(
        error.text, "t[0:4] has its rows, and --rows says other ones: give them once");
    assert_int_equal(
        row_list_parse("1,99999999999999999999", &list, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "not 99999999999999999999"));
}
