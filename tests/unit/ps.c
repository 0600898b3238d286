/* SPDX-License-Identifier: Apache-2.0 */
/* ps.c (test) -- what a ps makes of its options and its cluster, the numbers it gives to calls, and
 * its log.
 *
 * The process itself is tested by tests/process.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sys/resource.h>

#include "ps_state.h"
#include "room.h"

static uint32_t processors; /* of the machine; 0: of this one */

uint32_t __real_ps_processors(void);
uint32_t __wrap_ps_processors(void);

uint32_t __wrap_ps_processors(void)
{
    return processors != 0 ? processors : __real_ps_processors();
}

/* The configuration made of a TF_CONFIG, and the status it came to. */
static enum sumac_status configure(
    const char *tf_config, struct ps_options *options, struct sumac_cluster *cluster,
    struct ps_lane_config *config, struct sumac_error *error)
{
    assert_int_equal(sumac_cluster_parse(tf_config, NULL, cluster, error), SUMAC_OK);
    options->cluster = cluster;
    ps_options_fill(options);
    return ps_config_make(options, config, error);
}

static void drop(struct ps_lane_config *config, struct sumac_cluster *cluster)
{
    ps_config_free(config);
    sumac_cluster_deinit(cluster);
}

static void the_lane_is_told_all_ps_and_all_members(void **state)
{
    (void)state;
    struct ps_options options = PS_OPTIONS_INIT;
    struct sumac_cluster cluster;
    struct ps_lane_config config;
    struct sumac_error error = {0};

    const enum sumac_status status = configure(
        "{\"cluster\":{\"ps\":[\"a:1000\",\"b:2000\"],\"chief\":[\"c:1\"],\"worker\":[\"d:1\","
        "\"e:1\"],\"evaluator\":[\"f:1\"]},\"task\":{\"type\":\"ps\",\"index\":1}}",
        &options, &cluster, &config, &error);

    assert_int_equal(status, SUMAC_OK);
    assert_int_equal(config.lane.index, 1);
    assert_int_equal(config.port, 2000);
    assert_int_equal(config.lane.ps_count, 2);
    assert_string_equal(config.lane.ps_addresses[0], "a:1000");
    assert_string_equal(config.lane.ps_addresses[1], "b:2000");
    assert_int_equal(config.lane.member_count, 3);
    assert_string_equal(config.lane.members_jobs[0], "chief");
    assert_string_equal(config.lane.members_jobs[2], "worker");
    assert_int_equal(config.lane.members_indices[2], 1);
    drop(&config, &cluster);
}

static void limits_left_out_have_their_defaults(void **state)
{
    (void)state;
    struct ps_options options = PS_OPTIONS_INIT;

    options.rejoin_ms = 1234;
    struct sumac_cluster cluster;
    struct ps_lane_config config;
    struct sumac_error error = {0};

    assert_int_equal(
        configure(
            "{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}", &options,
            &cluster, &config, &error),
        SUMAC_OK);

    assert_int_equal(config.lane.rejoin_ms, 1234);
    assert_int_equal(config.lane.lease_ms, 10000);
    assert_int_equal(config.lane.rejoin_first_ms, 60000);
    assert_int_equal(config.lane.ps_lost_ms, 60000);
    assert_int_equal(config.lane.sessions_max, 32);
    assert_int_equal(config.lane.terminate_ms, 5000);
    assert_int_equal(config.lane.report_ms, 5000);
    assert_true(config.lane.staging_bytes_max == UINT64_C(2304) << 20);
    const uint64_t grant = config.lane.staging_bytes_max / config.lane.sessions_max;
    assert_true(wire_part_cost(UINT64_C(64) << 20, 1024, 1) <= grant);
    assert_true(options.grpc_memory_bytes_max == UINT64_C(256) << 20);
    assert_true(config.lane.pulls_bytes_max == UINT64_C(64) << 20);
    assert_true(config.lane.state_bytes_max == ps_memory_bytes() / 4 * 3);
    assert_true(options.threads <= 3);
    const uint64_t descriptors = ps_descriptors();
    assert_int_equal(
        config.lane.connections_max, descriptors > 2048 ? 1024 : options.connections_max);
    assert_true(config.lane.connections_max < descriptors);
    assert_string_equal(options.bind_host, "0.0.0.0");
    drop(&config, &cluster);
}

/* All but one processor, three at most: a ps shares its host with workers. */
static void three_threads_compute_at_most_where_nothing_is_said(void **state)
{
    (void)state;
    const uint32_t expected[][2] = {{1, 0}, {2, 1}, {4, 3}, {5, 3}, {64, 3}};

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct ps_options options = PS_OPTIONS_INIT;
        struct sumac_cluster cluster;
        struct ps_lane_config config;
        struct sumac_error error = {0};

        processors = expected[i][0];
        assert_int_equal(
            configure(
                "{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}", &options,
                &cluster, &config, &error),
            SUMAC_OK);
        processors = 0;

        assert_int_equal(options.threads, expected[i][1]);
        drop(&config, &cluster);
    }
}

/* Those of one host share its memory. */
static void a_ps_may_fill_its_share_of_the_memory(void **state)
{
    (void)state;
    struct ps_options options = PS_OPTIONS_INIT;
    struct sumac_cluster cluster;
    struct ps_lane_config config;
    struct sumac_error error = {0};

    assert_int_equal(
        configure(
            "{\"cluster\":{\"ps\":[\"ab:1\",\"a:1\",\"a:2\",\"abc:1\",\"a:3\"]},"
            "\"task\":{\"type\":\"ps\",\"index\":2}}",
            &options, &cluster, &config, &error),
        SUMAC_OK);

    assert_true(config.lane.state_bytes_max == ps_memory_bytes() / 4 * 3 / 3);
    drop(&config, &cluster);
}

static void a_ps_whose_sessions_could_push_nothing_is_refused(void **state)
{
    (void)state;
    const char *const tf_config =
        "{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}";
    struct ps_options options = PS_OPTIONS_INIT;
    struct sumac_cluster cluster;
    struct ps_lane_config config;
    struct sumac_error error = {0};

    options.sessions_max = 100; /* given */
    options.staging_bytes_max = 65536;

    enum sumac_status status = configure(tf_config, &options, &cluster, &config, &error); /* when */

    assert_int_equal(status, SUMAC_INVALID_ARGUMENT); /* then */
    assert_non_null(strstr(error.text, "--staging-max 65536 divided by --sessions-max 100"));
    assert_non_null(strstr(error.text, "655 bytes"));
    assert_non_null(strstr(error.text, "at least 6553600"));
    drop(&config, &cluster);
    options.staging_bytes_max = 6553600;
    status = configure(tf_config, &options, &cluster, &config, &error);
    assert_int_equal(status, SUMAC_OK);
    drop(&config, &cluster);
}

static uint32_t sessions_of(const char *tf_config, uint32_t asked)
{
    struct ps_options options = PS_OPTIONS_INIT;
    struct sumac_cluster cluster;
    struct ps_lane_config config;
    struct sumac_error error = {0};

    options.sessions_max = asked;
    assert_int_equal(configure(tf_config, &options, &cluster, &config, &error), SUMAC_OK);
    const uint32_t sessions_max = config.lane.sessions_max;
    drop(&config, &cluster);
    return sessions_max;
}

static void there_is_a_place_for_every_listed_member_and_for_eight_observers(void **state)
{
    (void)state;
    char workers[1024] = "";

    for (int i = 0; i < 40; i++)
        snprintf(
            workers + strlen(workers), sizeof workers - strlen(workers), "%s\"w:%d\"",
            i == 0 ? "" : ",", i + 1);
    char many[2048], few[] = "{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"w:1\"]},\"task\":{"
                             "\"type\":\"ps\",\"index\":0}}";
    snprintf(
        many, sizeof many,
        "{\"cluster\":{\"ps\":[\"a:1\"],\"chief\":[\"c:1\"],\"worker\":[%s]},\"task\":{\"type\":"
        "\"ps\","
        "\"index\":0}}",
        workers);

    assert_int_equal(sessions_of(many, 0), 49);
    assert_int_equal(sessions_of(many, 7), 7);
    assert_int_equal(sessions_of(few, 0), 32);
}

/* As ps 3 of the TF_CONFIG that begins so. */
static void
configure_ps_3(const char *clusters, struct sumac_cluster *cluster, struct ps_lane_config *config)
{
    struct ps_options options = PS_OPTIONS_INIT;
    struct sumac_error error = {0};
    char text[256];

    (void)snprintf(text, sizeof text, "%s,\"task\":{\"type\":\"ps\",\"index\":3}}", clusters);
    assert_int_equal(configure(text, &options, cluster, config, &error), SUMAC_OK);
}

/* A ps that some map in the configuration leaves alone in its list waits to be told of the
 * others. */
static void a_ps_that_is_told_only_itself_is_told_of_none(void **state)
{
    (void)state;
    struct sumac_cluster cluster;
    struct ps_lane_config config;

    configure_ps_3(
        "{\"cluster\":{\"worker\":{\"0\":\"w:1\"},\"ps\":[\"a:2222\"]}", &cluster, &config);

    assert_int_equal(config.lane.index, 3);
    assert_int_equal(config.lane.ps_count, 0);
    assert_int_equal(config.port, 2222);
    drop(&config, &cluster);
}

/* The workers are a map that names none of them yet. */
static void the_members_that_it_is_told_are_not_all(void **state)
{
    (void)state;
    struct sumac_cluster cluster;
    struct ps_lane_config config;

    configure_ps_3(
        "{\"cluster\":{\"chief\":[\"c:1\"],\"worker\":{},\"ps\":[\"a:2222\"]}", &cluster, &config);

    assert_int_equal(config.lane.member_count, 1);
    assert_true(config.lane.members_partial);
    drop(&config, &cluster);
}

static void a_sparse_map_of_ps_leaves_holes(void **state)
{
    (void)state;
    struct ps_options options = PS_OPTIONS_INIT;
    struct sumac_cluster cluster;
    struct ps_lane_config config;
    struct sumac_error error = {0};

    assert_int_equal(
        configure(
            "{\"cluster\":{\"ps\":{\"2\":\"c:3\",\"0\":\"a:1\"}},\"task\":{\"type\":\"ps\","
            "\"index\":2}}",
            &options, &cluster, &config, &error),
        SUMAC_OK);

    assert_int_equal(config.lane.ps_count, 3);
    assert_string_equal(config.lane.ps_addresses[0], "a:1");
    assert_null(config.lane.ps_addresses[1]);
    assert_string_equal(config.lane.ps_addresses[2], "c:3");
    drop(&config, &cluster);
}

static void a_port_that_is_given_goes_before_the_addresss(void **state)
{
    (void)state;
    struct ps_options options = PS_OPTIONS_INIT;

    options.port_given = true;
    options.port = 0;
    struct sumac_cluster cluster;
    struct ps_lane_config config;
    struct sumac_error error = {0};

    assert_int_equal(
        configure(
            "{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}", &options,
            &cluster, &config, &error),
        SUMAC_OK);
    assert_int_equal(config.port, 0);
    drop(&config, &cluster);

    options.port = 70000;
    assert_int_equal(
        configure(
            "{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}", &options,
            &cluster, &config, &error),
        SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "70000"));
    drop(&config, &cluster);
}

static void a_task_that_is_no_ps_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"b:1\"]},\"task\":{\"type\":\"worker\","
            "\"index\":0}}"};

    for (size_t i = 0; i < 2; i++) {
        struct ps_options options = PS_OPTIONS_INIT;
        struct sumac_cluster cluster;
        struct ps_lane_config config;
        struct sumac_error error = {0};

        const enum sumac_status status = configure(texts[i], &options, &cluster, &config, &error);

        assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "TF_CONFIG"));
        drop(&config, &cluster);
    }
}

/* Three ps, two workers and a chief: a ps hears from the five others. */
static void fewer_connections_than_other_tasks_are_refused(void **state)
{
    (void)state;
    const char *const text =
        "{\"cluster\":{\"ps\":[\"a:1\",\"b:1\",\"c:1\"],\"chief\":[\"d:1\"],"
        "\"worker\":[\"e:1\",\"f:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}";

    for (uint32_t count = 4; count <= 5; count++) {
        struct ps_options options = PS_OPTIONS_INIT;
        struct sumac_cluster cluster;
        struct ps_lane_config config;
        struct sumac_error error = {0};
        options.connections_max = count;

        const enum sumac_status status = configure(text, &options, &cluster, &config, &error);

        assert_int_equal(status, count < 5 ? SUMAC_INVALID_ARGUMENT : SUMAC_OK);
        if (count < 5)
            assert_non_null(strstr(error.text, "--connections-max 4 is fewer than the other ps"));
        drop(&config, &cluster);
    }
}

/* A process that may open 256 files: what its own take is left out. */
static void more_connections_than_there_are_descriptors_for_are_refused(void **state)
{
    (void)state;
    const char *const text =
        "{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}";
    struct rlimit before;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {.rlim_cur = 256, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct ps_options options = PS_OPTIONS_INIT;
    struct sumac_cluster cluster;
    struct ps_lane_config config;
    struct sumac_error error = {0};
    const enum sumac_status by_default = configure(text, &options, &cluster, &config, &error);
    drop(&config, &cluster);
    const uint32_t possible = options.connections_max;
    options.connections_max = possible + 1;

    const enum sumac_status one_more = configure(text, &options, &cluster, &config, &error);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    drop(&config, &cluster);
    assert_int_equal(by_default, SUMAC_OK);
    assert_true(possible > 128 && possible < 256);
    assert_int_equal(one_more, SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "connections that this process has descriptors for"));
    assert_non_null(strstr(error.text, "it may have 256"));
}

static void calls_are_open_for_every_session_and_no_more_than_there_are_links(void **state)
{
    (void)state;
    const char *const text =
        "{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}";

    const struct {
        uint32_t sessions_max, given, calls_max; /* 0: refused */
    } cases[] = {{1, 0, 4096},   {200, 0, 6400},    {3000, 0, 16384}, {100, 1600, 1600},
                 {100, 1599, 0}, {1, 16384, 16384}, {1, 16385, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ps_options options = PS_OPTIONS_INIT;
        struct sumac_cluster cluster;
        struct ps_lane_config config;
        struct sumac_error error = {0};
        options.sessions_max = cases[i].sessions_max;
        options.calls_max = cases[i].given;
        options.connections_max = 16;

        const enum sumac_status status = configure(text, &options, &cluster, &config, &error);

        assert_int_equal(status, cases[i].calls_max == 0 ? SUMAC_INVALID_ARGUMENT : SUMAC_OK);
        if (status == SUMAC_OK) {
            assert_int_equal(config.lane.calls_max, cases[i].calls_max);
            assert_int_equal(config.lane.streams_max, cases[i].calls_max / 2);
        } else {
            assert_non_null(strstr(error.text, "--calls-max"));
            assert_non_null(strstr(error.text, "--sessions-max"));
        }
        drop(&config, &cluster);
    }
}

/* The table never looks into its calls. */
static struct rpc_call *call_at(char *place) { return (struct rpc_call *)(void *)place; }

static void a_number_is_never_used_again(void **state)
{
    (void)state;
    struct ps_links links;

    assert_true(ps_links_init(&links));
    char calls[2];
    struct ps_link *const first = ps_links_add(&links, NULL, call_at(&calls[0]));
    const uint64_t first_id = first->id;
    assert_int_not_equal(first_id, 0);
    assert_ptr_equal(ps_links_find(&links, first_id), first);

    ps_links_remove(&links, first);
    struct ps_link *const second = ps_links_add(&links, NULL, call_at(&calls[1]));

    assert_null(ps_links_find(&links, first_id));
    assert_int_not_equal(second->id, first_id);
    assert_ptr_equal(ps_links_find(&links, second->id), second);
    assert_null(ps_links_find(&links, 0));
    ps_links_deinit(&links);
}

static void a_full_table_takes_no_more_until_one_goes(void **state)
{
    (void)state;
    struct ps_links links;

    assert_true(ps_links_init(&links));
    char call;
    struct ps_link *last = NULL;
    for (uint32_t i = 0; i < PS_LINKS_MAX; i++) {
        last = ps_links_add(&links, NULL, call_at(&call));
        assert_non_null(last);
    }

    assert_null(ps_links_add(&links, NULL, call_at(&call)));
    ps_links_remove(&links, last);

    assert_non_null(ps_links_add(&links, NULL, call_at(&call)));
    ps_links_deinit(&links);
}

static void long_pulls_take_turns(void **state)
{
    (void)state;
    struct ps_turns turns = {0};
    struct ps_link links[3] = {{0}};

    for (size_t i = 0; i < 3; i++)
        ps_turns_note(&turns, &links[i], true);
    assert_null(ps_turns_take(&turns));

    for (size_t i = 0; i < 3; i++)
        assert_true(ps_turns_wait(&turns, &links[i]));
    assert_ptr_equal(ps_turns_take(&turns), &links[0]);
    assert_true(ps_turns_wait(&turns, &links[0])); /* its next message, behind the others */

    assert_ptr_equal(ps_turns_take(&turns), &links[1]);
    assert_ptr_equal(ps_turns_take(&turns), &links[2]);
    assert_ptr_equal(ps_turns_take(&turns), &links[0]);
    assert_null(ps_turns_take(&turns));
}

/* Of thousands that are answered at once, so many go before what else has arrived is heard. */
static void short_answers_that_nobody_just_asked_for_wait_for_a_look_at_the_network(void **state)
{
    (void)state;
    struct ps_turns turns = {0};
    struct ps_link reader = {.is_stream = true, .stream_kind = LANE_STREAM_PULL};
    struct ps_link pusher = {.is_stream = true, .stream_kind = LANE_STREAM_PUSH};

    for (uint32_t i = 0; i < PS_UNASKED_PER_TURN_MAX; i++)
        assert_false(ps_turns_wait(&turns, &reader));
    assert_true(ps_turns_wait(&turns, &reader));
    assert_false(ps_turns_wait(&turns, &pusher));
    assert_ptr_equal(ps_turns_take(&turns), &reader);
    ps_turns_looked(&turns);
    assert_false(ps_turns_wait(&turns, &reader));

    for (uint32_t i = 0; i < 4 * PS_UNASKED_PER_TURN_MAX; i++) {
        ps_turns_asked(&turns);
        assert_false(ps_turns_wait(&turns, &reader));
    }
}

static void short_answers_and_a_long_pull_alone_wait_for_no_turn(void **state)
{
    (void)state;
    struct ps_turns turns = {0};
    struct ps_link reader = {.is_stream = true, .stream_kind = LANE_STREAM_PULL}, other = {0};

    assert_false(ps_turns_wait(&turns, &reader));
    ps_turns_note(&turns, &reader, true);
    ps_turns_note(&turns, &reader, true);
    for (uint32_t i = 0; i <= 2 * PS_UNASKED_PER_TURN_MAX; i++)
        assert_false(ps_turns_wait(&turns, &reader));

    ps_turns_note(&turns, &other, true);
    assert_true(ps_turns_wait(&turns, &reader));
    assert_ptr_equal(ps_turns_take(&turns), &reader);
    ps_turns_note(&turns, &other, false);
    assert_false(ps_turns_wait(&turns, &other));
    assert_false(ps_turns_wait(&turns, &reader));
}

static void who_goes_leaves_the_queue(void **state)
{
    (void)state;
    for (size_t gone = 0; gone < 3; gone++) {
        struct ps_turns turns = {0};
        struct ps_link links[4] = {{0}};
        for (size_t i = 0; i < 4; i++)
            ps_turns_note(&turns, &links[i], true);
        for (size_t i = 0; i < 3; i++)
            assert_true(ps_turns_wait(&turns, &links[i]));

        ps_turns_forget(&turns, &links[gone]);

        assert_true(ps_turns_wait(&turns, &links[3]));
        for (size_t i = 0; i < 4; i++)
            if (i != gone)
                assert_ptr_equal(ps_turns_take(&turns), &links[i]);
        assert_null(ps_turns_take(&turns));
        assert_int_equal(turns.bulky, 3);
    }
}

static void a_log_line_has_its_time_and_its_ps(void **state)
{
    (void)state;
    char line[128];

    const uint32_t bytes =
        ps_log_line(UINT64_C(1795269723123), 3, "ps 3 listens on 0.0.0.0:2222", line, sizeof line);

    assert_string_equal(line, "2026-11-21T14:02:03.123Z ps 3 listens on 0.0.0.0:2222\n");
    assert_int_equal(bytes, strlen(line));
}

static void a_long_log_line_is_cut_and_still_ends(void **state)
{
    (void)state;
    char text[200], line[64];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';

    const uint32_t bytes = ps_log_line(0, 0, text, line, sizeof line);

    assert_int_equal(bytes, sizeof line - 1);
    assert_int_equal(line[bytes - 1], '\n');
    assert_int_equal(line[bytes], '\0');
}

static void a_log_line_is_one_printable_line_whatever_a_peer_said(void **state)
{
    (void)state;
    char line[128];

    ps_log_line(
        0, 0, "variable \x1b]0;a\a\n1970-01-01T00:00:00.000Z ps 0: forged\xc2\x9b is gone", line,
        sizeof line);

    assert_string_equal(
        line, "1970-01-01T00:00:00.000Z ps 0: variable ?]0;a??1970-01-01T00:00:00.000Z ps 0: "
              "forged?? is gone\n");
}

static void random_bits_go_on_after_a_page(void **state)
{
    (void)state;
    static struct ps_random random;

    assert_true(ps_random_init(&random));
    uint64_t any = 0, before = 0;
    for (int i = 0; i < 1000; i++) {
        const uint64_t bits = ps_random_bits(&random);
        assert_true(bits != before);
        before = bits;
        any |= bits;
    }
    assert_true(any == UINT64_MAX);
}

static void this_process_is_resident(void **state)
{
    (void)state;
    assert_true(ps_resident_bytes() > 100000);
    assert_true(ps_memory_bytes() > ps_resident_bytes());
    assert_true(ps_processors() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lane_is_told_all_ps_and_all_members),
        cmocka_unit_test(limits_left_out_have_their_defaults),
        cmocka_unit_test(a_ps_may_fill_its_share_of_the_memory),
        cmocka_unit_test(a_ps_whose_sessions_could_push_nothing_is_refused),
        cmocka_unit_test(there_is_a_place_for_every_listed_member_and_for_eight_observers),
        cmocka_unit_test(a_ps_that_is_told_only_itself_is_told_of_none),
        cmocka_unit_test(the_members_that_it_is_told_are_not_all),
        cmocka_unit_test(a_sparse_map_of_ps_leaves_holes),
        cmocka_unit_test(a_port_that_is_given_goes_before_the_addresss),
        cmocka_unit_test(a_task_that_is_no_ps_is_refused),
        cmocka_unit_test(calls_are_open_for_every_session_and_no_more_than_there_are_links),
        cmocka_unit_test(fewer_connections_than_other_tasks_are_refused),
        cmocka_unit_test(more_connections_than_there_are_descriptors_for_are_refused),
        cmocka_unit_test(a_number_is_never_used_again),
        cmocka_unit_test(a_full_table_takes_no_more_until_one_goes),
        cmocka_unit_test(long_pulls_take_turns),
        cmocka_unit_test(short_answers_that_nobody_just_asked_for_wait_for_a_look_at_the_network),
        cmocka_unit_test(short_answers_and_a_long_pull_alone_wait_for_no_turn),
        cmocka_unit_test(who_goes_leaves_the_queue),
        cmocka_unit_test(three_threads_compute_at_most_where_nothing_is_said),
        cmocka_unit_test(a_log_line_has_its_time_and_its_ps),
        cmocka_unit_test(a_long_log_line_is_cut_and_still_ends),
        cmocka_unit_test(a_log_line_is_one_printable_line_whatever_a_peer_said),
        cmocka_unit_test(random_bits_go_on_after_a_page),
        cmocka_unit_test(this_process_is_resident),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
