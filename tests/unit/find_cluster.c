/* SPDX-License-Identifier: Apache-2.0 */
/* find_cluster.c -- the ps that --ps names, or TF_CONFIG, or the one run on this machine. */
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "roster.h"
#include "run_record.h"

TEST(who_is_named_twice_is_asked_once)
{
    struct roster list = {0};
    struct sumac_error error = {0};

    assert_int_equal(find_cluster("a:1,b:2,a:1,a:2", &list, &error), SUMAC_OK);

    assert_int_equal(list.count, 3);
    assert_string_equal(list.ps[0].address, "a:1");
    assert_string_equal(list.ps[1].address, "b:2");
    assert_string_equal(list.ps[2].address, "a:2");
}

struct refused {
    const char *word, *said;
};

TEST(an_address_is_a_host_and_a_port_that_there_is)
{
    static const char *const good[] = {"h:1", "h:65535", "[::1]:80", "127.0.0.1:2222"};
    static const struct refused bad[] = {
        {"h:0", "--ps wants HOST:PORT, not h:0: its port is no number from 1 to 65535"},
        {"a:1,h", "--ps wants HOST:PORT, not h: it has no port"},
        {"http://h:1", "--ps wants HOST:PORT, not http://h:1: leave out what is before the host, "
                       "and every /"},
        {"alice@h:1", "--ps wants HOST:PORT, not alice@h:1: a host has letters, digits, '-', '_' "
                      "and '.' only"},
        {",", "--ps wants HOST:PORT, not an empty word"},
        {"", "--ps wants HOST:PORT, not an empty word"},
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct roster list = {0};
        assert_int_equal(find_cluster(good[i], &list, NULL), SUMAC_OK);
        assert_string_equal(list.ps[0].address, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct roster list = {0};
        struct sumac_error error = {0};
        assert_int_equal(find_cluster(bad[i].word, &list, &error), SUMAC_INVALID_ARGUMENT);
        assert_string_equal(error.text, bad[i].said);
        assert_int_equal(list.count, 0);
    }
}

static void record_run(const char *address)
{
    struct run_record record = {.program = "train", .ps_count = 1};
    struct sumac_error error = {0};

    snprintf(record.ps[0], sizeof record.ps[0], "%s", address);
    assert_int_equal(run_record_write(&record, &error), SUMAC_OK);
}

/* Another process that has a run, until its standard input is closed. */
static pid_t start_other_run(int *input)
{
    int ready[2], held[2];
    char byte;

    assert_int_equal(pipe(ready) | pipe(held), 0);
    const pid_t other = fork();
    if (other == 0) {
        (void)close(held[1]);
        record_run("other:1");
        (void)!write(ready[1], "r", 1);
        (void)!read(held[0], &byte, 1);
        run_record_remove();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    (void)close(held[0]);
    *input = held[1];
    return other;
}

TEST(every_ps_of_a_record_is_asked)
{
    char runtime[] = "/tmp/sumac-found-XXXXXX", folder[64]; /* given */
    struct run_record record = {
        .program = "train", .ps_count = 2, .ps = {"127.0.0.1:1", "127.0.0.1:2"}};
    struct roster list = {0};
    struct sumac_error error = {0};

    assert_non_null(mkdtemp(runtime));
    snprintf(folder, sizeof folder, "%s/sumac", runtime);
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    unsetenv("TF_CONFIG");
    assert_int_equal(run_record_write(&record, &error), SUMAC_OK);

    assert_int_equal(find_cluster(NULL, &list, &error), SUMAC_OK); /* when */

    assert_int_equal(list.count, 2); /* then */
    assert_string_equal(list.ps[1].address, "127.0.0.1:2");
    assert_int_equal(list.run.pid, getpid());
    assert_string_equal(list.run.program, "train");
    run_record_remove();
    assert_int_equal(rmdir(folder) | rmdir(runtime), 0);
}

static void assert_found(const char *option, const char *address)
{
    struct roster list = {0};
    struct sumac_error error = {0};

    if (find_cluster(option, &list, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.ps[0].address, address);
}

TEST(what_is_said_more_plainly_counts)
{
    char runtime[] = "/tmp/sumac-found-XXXXXX", folder[64]; /* given */
    struct roster list = {0};
    struct sumac_error error = {0};
    int input = -1;

    assert_non_null(mkdtemp(runtime));
    snprintf(folder, sizeof folder, "%s/sumac", runtime);
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    setenv("TF_CONFIG", "", 1);
    assert_int_equal(find_cluster(NULL, &list, &error), SUMAC_NOT_FOUND); /* when, then */
    record_run("here:1");
    assert_found(NULL, "here:1");
    setenv("TF_CONFIG", "{\"cluster\": {\"ps\": [\"config:1\"]}}", 1);
    assert_found(NULL, "config:1");
    assert_found("option:1", "option:1");
    setenv("TF_CONFIG", "{\"cluster\": {\"worker\": [\"config:1\"]}}", 1);
    assert_int_equal(find_cluster(NULL, &list, &error), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "TF_CONFIG names no ps"));
    unsetenv("TF_CONFIG");

    const pid_t other = start_other_run(&input); /* of two runs none is meant */
    const enum sumac_status status = find_cluster(NULL, &list, &error);
    (void)close(input);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_int_equal(status, SUMAC_FAILED_PRECONDITION);
    assert_non_null(strstr(error.text, "2 runs are going on on this machine; choose one: --ps "));
    assert_non_null(strstr(error.text, "--ps here:1 (train, process "));
    assert_non_null(strstr(error.text, "--ps other:1 (train, process "));
    run_record_remove();
    assert_int_equal(rmdir(folder) | rmdir(runtime), 0);
}
