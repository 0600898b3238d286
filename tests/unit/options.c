/* SPDX-License-Identifier: Apache-2.0 */
/* options.c -- command lines, by a command's table of options. */
#include <unistd.h>

#include "unit.h"
#include "nearest.h"
#include "command.h"

struct target {
    bool json;
    const char *ps;
    uint32_t count;
    uint64_t size;
    struct option_list list;
};

static const struct option_row rows[] = {
    {"json", NULL, "", OPTION_FLAG, .offset = offsetof(struct target, json)},
    {"ps", "HOST:PORT", "", OPTION_TEXT, .offset = offsetof(struct target, ps), .letter = 'p'},
    {"sessions-max", "N", "", OPTION_COUNT, .offset = offsetof(struct target, count)},
    {"staging-max", "SIZE", "", OPTION_SIZE, .offset = offsetof(struct target, size)},
    {"set", "WORD", "", OPTION_LIST, .offset = offsetof(struct target, list)},
};
static const struct command ordinary = {
    .name = "ls",
    .summary = "",
    .arguments = "",
    .about = "",
    .examples = "",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
};

/* Parse the words, the last of which is NULL; they are left as the parser leaves them. */
static enum options_outcome
parsed(const struct command *command, char **words, struct target *target, int *count)
{
    int given = 0;

    while (words[given] != NULL)
        given++;
    return options_parse(command, given, words, target, count);
}

TEST(options_and_words_may_be_mixed)
{
    char *words[] = {
        (char[]){"ls"},
        (char[]){"W1"},
        (char[]){"--ps"},
        (char[]){"h:1"}, /* given */
        (char[]){"--sessions-max=7"},
        (char[]){"W2"},
        (char[]){"--json"},
        NULL};
    struct target target = {0};
    int count = 0;

    assert_int_equal(parsed(&ordinary, words, &target, &count), OPTIONS_GO); /* when */

    assert_true(target.json); /* then */
    assert_string_equal(target.ps, "h:1");
    assert_int_equal(target.count, 7);
    assert_int_equal(count, 2);
    assert_string_equal(words[0], "W1");
    assert_string_equal(words[1], "W2");
}

TEST(a_list_has_each_value_in_turn_and_an_end)
{
    char name[] = "ls", a[] = "--set=a", b[] = "--set=b";
    char *words[OPTION_LIST_MAX + 3] = {name};
    struct target target = {0};
    int count = 0;

    for (uint32_t i = 1; i <= OPTION_LIST_MAX; i++)
        words[i] = i % 2 == 1 ? a : b;

    assert_int_equal(parsed(&ordinary, words, &target, &count), OPTIONS_GO);

    assert_int_equal(target.list.count, OPTION_LIST_MAX);
    assert_string_equal(target.list.items[0], "a");
    assert_string_equal(target.list.items[1], "b");
    for (uint32_t i = 0; i <= OPTION_LIST_MAX + 1; i++)
        words[i] = i == 0 ? name : a;
    target.list.count = 0;
    assert_int_equal(parsed(&ordinary, words, &target, &count), OPTIONS_BAD);
}

TEST(after_two_dashes_everything_is_a_word)
{
    char *words[] = {(char[]){"ls"}, (char[]){"--"}, (char[]){"--json"}, (char[]){"-h"}, NULL};
    struct target target = {0};
    int count = 0;

    assert_int_equal(parsed(&ordinary, words, &target, &count), OPTIONS_GO);
    assert_false(target.json);
    assert_int_equal(count, 2);
    assert_string_equal(words[0], "--json");
}

TEST(another_programs_options_are_left_to_it)
{
    struct command run = ordinary;

    run.program_follows = true;
    char *words[] = {
        (char[]){"run"}, (char[]){"--json"}, (char[]){"program"}, (char[]){"--ps"}, NULL};
    struct target target = {0};
    int count = 0;
    assert_int_equal(parsed(&run, words, &target, &count), OPTIONS_GO);
    assert_true(target.json);
    assert_null(target.ps);
    assert_int_equal(count, 2);
    assert_string_equal(words[1], "--ps");
}

TEST(what_is_wrong_is_refused)
{
    static const char *const wrong[][2] = {
        {"--jsn", NULL},         {"--ps", NULL},           {"--json=1", NULL},
        {"--sessions-max", "x"}, {"--sessions-max", "-1"}, {"--sessions-max", "4294967296"},
        {"--staging-max", "1Q"}, {"--staging-max", ""},    {"--sessions-max", "0"},
        {"--staging-max", "0"},  {"--sessions-max", "7x"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char option[32], value[32];
        strcpy(option, wrong[i][0]);
        strcpy(value, wrong[i][1] != NULL ? wrong[i][1] : "");
        char *words[] = {(char[]){"ls"}, option, wrong[i][1] != NULL ? value : NULL, NULL};
        struct target target = {0};
        int count = 0;
        assert_int_equal(parsed(&ordinary, words, &target, &count), OPTIONS_BAD);
    }
}

TEST(sizes_are_powers_of_two)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {
        {"0", 0},
        {"4096", 4096},
        {"64K", 65536},
        {"256m", 1u << 28},
        {"2GiB", 2ull << 30},
        {"1TB", 1ull << 40},
        {"16777215T", 16777215ull << 40}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t bytes = 1;
        assert_true(options_parse_size(sizes[i].text, &bytes));
        assert_true(bytes == sizes[i].bytes);
    }
    static const char *const wrong[] = {"",   "M",   "-1",           "1.5G",
                                        "1X", "1Kx", "99999999999T", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint64_t bytes = 1;
        assert_false(options_parse_size(wrong[i], &bytes));
        assert_int_equal(bytes, 1);
    }
}

static const char *fruit(const void *context, size_t index)
{
    (void)context;
    static const char *const names[] = {"apple", "pear", "fig"};

    return index < 3 ? names[index] : NULL;
}

TEST(the_nearest_word_is_meant_unless_none_is_near)
{
    assert_string_equal(nearest_word("aple", fruit, NULL), "apple");
    assert_string_equal(nearest_word("pears", fruit, NULL), "pear");
    assert_null(nearest_word("xylophone", fruit, NULL));
    assert_string_equal(nearest_word("dig", fruit, NULL), "fig");
    assert_string_equal(nearest_word("APPLE", fruit, NULL), "apple");
    assert_null(nearest_word("q", fruit, NULL));
    assert_null(nearest_word("meat", fruit, NULL)); /* half of its letters would be wrong */
}

TEST(the_nearest_are_at_most_three_best_first)
{
    static const char *const names[] = {"W10", "layer1/kernel", "w1", "b1",
                                        "W",   "embedding",     "W2", "done"};

    static const struct {
        const char *word, *said;
    } cases[] = {
        {"W1", "w1, W10 or b1"},
        {"kernel", "layer1/kernel"},
        {"embeding", "embedding"},
        {"Embedding", "embedding"},
        {"xylophone", ""},
        {"nope", ""},
        {"V", ""},
        {"er", ""}, /* which is in too many */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nearest nearest = {0};
        char text[64];
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++)
            nearest_try(&nearest, cases[i].word, names[j]);
        nearest_print(&nearest, text, sizeof text);
        assert_string_equal(text, cases[i].said);
    }
}

TEST(a_letter_stands_for_an_option_and_an_unknown_one_for_none)
{
    char *words[] = {
        (char[]){"ls"},
        (char[]){"-p"},
        (char[]){"h:1"},
        (char[]){"-"},
        (char[]){"--"},
        (char[]){"-p"},
        NULL};
    char *unknown[] = {(char[]){"ls"}, (char[]){"-l"}, NULL};
    char *longer[] = {(char[]){"ls"}, (char[]){"-ps"}, (char[]){"h:1"}, NULL};
    struct target target = {0};
    int count = 0;

    assert_int_equal(parsed(&ordinary, words, &target, &count), OPTIONS_GO);

    assert_string_equal(target.ps, "h:1");
    assert_int_equal(count, 2);
    assert_string_equal(words[0], "-");
    assert_string_equal(words[1], "-p");
    assert_int_equal(parsed(&ordinary, unknown, &target, &count), OPTIONS_BAD);
    assert_int_equal(parsed(&ordinary, longer, &target, &count), OPTIONS_BAD);
}

/* The last two words that are given; NULL: none. */
static void
assert_told(const struct command *command, const char *option, const char *next, const char *told)
{
    char first[48], second[48], said[256];
    struct target target = {0};
    const int terminal = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    int count = 0;

    (void)snprintf(first, sizeof first, "%s", option);
    (void)snprintf(second, sizeof second, "%s", next != NULL ? next : "");
    char *words[] = {(char[]){"ls"}, first, next != NULL ? second : NULL, NULL};
    assert_non_null(file);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    const enum options_outcome outcome = parsed(command, words, &target, &count);
    assert_true(dup2(terminal, STDERR_FILENO) >= 0);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    (void)close(terminal);
    (void)fclose(file);
    assert_int_equal(outcome, OPTIONS_BAD);
    assert_string_equal(said, told);
}

TEST(help_is_given_whatever_comes_behind)
{
    char *words[] = {(char[]){"ls"}, (char[]){"--help"}, (char[]){"--jsn"}, NULL};
    struct target target = {0};
    int count = 0;

    assert_int_equal(parsed(&ordinary, words, &target, &count), OPTIONS_HELP);
}

TEST(an_unknown_option_is_told_with_what_was_meant)
{
    assert_told(&ordinary, "--jsn", NULL, "sumac ls: unknown option --jsn; did you mean --json?\n");
    assert_told(
        &ordinary, "--sessions", NULL,
        "sumac ls: unknown option --sessions; did you mean --sessions-max?\n");
    assert_told(
        &ordinary, "--interval-ms", "7",
        "sumac ls: unknown option --interval-ms; `sumac stats` has it\n");
    assert_told(
        &ordinary, "--xylophone=7", NULL,
        "sumac ls: unknown option --xylophone; `sumac ls --help` lists them\n");
    assert_told(
        &ordinary, "-x", NULL, "sumac ls: unknown option -x; `sumac ls --help` lists them\n");
}

TEST(an_option_of_the_command_that_is_started_is_told_with_its_value)
{
    static const struct option_row own[] = {
        {"ps-args", "WORDS", "", OPTION_TEXT, .offset = offsetof(struct target, ps)}};
    static const char *const not_carried[] = {"ps", NULL};
    struct command carrying = ordinary;

    carrying.rows = own;
    carrying.row_count = 1;
    carrying.carrier = "ps-args";
    carrying.carries_to = &ordinary;
    carrying.carries_not = not_carried;
    assert_told(
        &carrying, "--sessions-max", "7",
        "sumac ls: unknown option --sessions-max; `sumac ls` has it: "
        "--ps-args '--sessions-max 7'\n");
    assert_told(
        &carrying, "--sessions-max=8", "7",
        "sumac ls: unknown option --sessions-max; `sumac ls` has it: "
        "--ps-args '--sessions-max 8'\n");
    assert_told(
        &carrying, "--sessions-max", "-7",
        "sumac ls: unknown option --sessions-max; `sumac ls` has it: "
        "--ps-args '--sessions-max N'\n");
    assert_told(
        &carrying, "--sessions-max", NULL,
        "sumac ls: unknown option --sessions-max; `sumac ls` has it: "
        "--ps-args '--sessions-max N'\n");
    assert_told(
        &carrying, "--json", "7",
        "sumac ls: unknown option --json; `sumac ls` has it: --ps-args '--json'\n");
    assert_told(&carrying, "--ps", "7", "sumac ls: unknown option --ps; `sumac run` has it\n");
}

TEST(a_value_that_is_wrong_or_missing_is_told_with_what_is_wanted)
{
    assert_told(&ordinary, "--json=1", NULL, "sumac ls: --json takes no value\n");
    assert_told(&ordinary, "--ps", NULL, "sumac ls: --ps wants a value\n");
    assert_told(
        &ordinary, "--sessions-max", "x",
        "sumac ls: --sessions-max wants a whole number, 1 to 4294967295, not x\n");
    assert_told(
        &ordinary, "--staging-max", "1Q",
        "sumac ls: --staging-max wants a size such as 4096, 64K, 256M or 2G, from 1 to 16777215T, "
        "not 1Q\n");
}
