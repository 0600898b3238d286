/* SPDX-License-Identifier: Apache-2.0 */
/* ps_config.c -- what a ps makes of its options and its cluster. */

#include "unit.h"
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

/* The TF_CONFIG of the only ps. */
#define ONLY_PS "{\"cluster\":{\"ps\":[\"a:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}"

/* The options of a ps, and the configuration made of them. */
struct made {
    struct ps_options options;
    struct sumac_cluster cluster;
    struct ps_lane_config config;
    struct sumac_error error;
};

/* The configuration made of a TF_CONFIG, and the status it came to. */
static enum sumac_status configure(const char *tf_config, struct made *made)
{
    assert_int_equal(sumac_cluster_parse(tf_config, NULL, &made->cluster, &made->error), SUMAC_OK);
    made->options.cluster = &made->cluster;
    ps_options_fill(&made->options);
    return ps_config_make(&made->options, &made->config, &made->error);
}

static void drop(struct made *made)
{
    ps_config_free(&made->config);
    sumac_cluster_deinit(&made->cluster);
}

TEST(the_lane_is_told_all_ps_and_all_members)
{
    struct made made = {.options = PS_OPTIONS_INIT};

    const enum sumac_status status = configure(
        "{\"cluster\":{\"ps\":[\"a:1000\",\"b:2000\"],\"chief\":[\"c:1\"],\"worker\":[\"d:1\","
        "\"e:1\"],\"evaluator\":[\"f:1\"]},\"task\":{\"type\":\"ps\",\"index\":1}}",
        &made);

    assert_int_equal(status, SUMAC_OK);
    assert_int_equal(made.config.lane.index, 1);
    assert_int_equal(made.config.port, 2000);
    assert_int_equal(made.config.lane.ps_count, 2);
    assert_string_equal(made.config.lane.ps_addresses[0], "a:1000");
    assert_string_equal(made.config.lane.ps_addresses[1], "b:2000");
    assert_int_equal(made.config.lane.member_count, 3);
    assert_string_equal(made.config.lane.members_jobs[0], "chief");
    assert_string_equal(made.config.lane.members_jobs[2], "worker");
    assert_int_equal(made.config.lane.members_indices[2], 1);
    drop(&made);
}

TEST(limits_left_out_have_their_defaults)
{
    struct made made = {.options = PS_OPTIONS_INIT};

    made.options.rejoin_ms = 1234;

    assert_int_equal(configure(ONLY_PS, &made), SUMAC_OK);

    assert_int_equal(made.config.lane.rejoin_ms, 1234);
    assert_int_equal(made.config.lane.lease_ms, 10000);
    assert_int_equal(made.config.lane.rejoin_first_ms, 60000);
    assert_int_equal(made.config.lane.ps_lost_ms, 60000);
    assert_int_equal(made.config.lane.sessions_max, 32);
    assert_int_equal(made.config.lane.terminate_ms, 5000);
    assert_int_equal(made.config.lane.report_ms, 5000);
    const uint64_t share = ps_memory_bytes() / 8 * 3, least = UINT64_C(2304) << 20;
    assert_true(made.config.lane.staging_bytes_max == (share > least ? share : least));
    assert_true(made.options.grpc_memory_bytes_max == UINT64_C(256) << 20);
    assert_true(made.config.lane.pulls_bytes_max == UINT64_C(64) << 20);
    assert_true(made.config.lane.collective_bytes_max == UINT64_C(512) << 20);
    assert_true(made.config.lane.state_bytes_max == ps_memory_bytes() / 4 * 3);
    assert_true(made.options.threads <= 3);
    const uint64_t descriptors = ps_descriptors();
    assert_int_equal(
        made.config.lane.connections_max, descriptors > 2048 ? 1024 : made.options.connections_max);
    assert_true(made.config.lane.connections_max < descriptors);
    assert_string_equal(made.options.bind_host, "0.0.0.0");
    drop(&made);
}

/* Each has a value of its own, so that none can stand for another. */
TEST(each_limit_is_the_option_of_its_name)
{
    struct made made = {
        .options = {
            .lease_ms = 1001,
            .rejoin_ms = 1002,
            .rejoin_first_ms = 1003,
            .ps_lost_ms = 1004,
            .report_ms = 1005,
            .terminate_ms = 1006,
            .sessions_max = 21,
            .streams_max = 22,
            .connections_max = 23,
            .calls_max = 500,
            .staging_bytes_max = 10000001,
            .view_bytes_max = 10000002,
            .pulls_bytes_max = 10000003,
            .collective_bytes_max = 10000006,
            .state_bytes_max = 10000004,
            .grpc_memory_bytes_max = 10000005,
            .threads = 1}};

    assert_int_equal(
        configure(
            "{\"cluster\":{\"ps\":[\"a:65535\"]},\"task\":{\"type\":\"ps\",\"index\":0}}", &made),
        SUMAC_OK);

    const struct lane_config *const lane = &made.config.lane;
    assert_int_equal(lane->lease_ms, 1001);
    assert_int_equal(lane->rejoin_ms, 1002);
    assert_int_equal(lane->rejoin_first_ms, 1003);
    assert_int_equal(lane->ps_lost_ms, 1004);
    assert_int_equal(lane->report_ms, 1005);
    assert_int_equal(lane->terminate_ms, 1006);
    assert_int_equal(lane->sessions_max, 21);
    assert_int_equal(lane->connections_max, 23);
    assert_int_equal(lane->calls_max, 500);
    assert_int_equal(lane->streams_max, 250);
    assert_int_equal(lane->staging_bytes_max, 10000001);
    assert_int_equal(lane->view_bytes_max, 10000002);
    assert_int_equal(lane->pulls_bytes_max, 10000003);
    assert_int_equal(lane->collective_bytes_max, 10000006);
    assert_int_equal(lane->state_bytes_max, 10000004);
    assert_int_equal(lane->grpc_memory_bytes_max, 10000005);
    assert_int_equal(lane->unread_answers_bytes_max, RPC_UNREAD_BYTES_MAX);
    assert_string_equal(lane->version, sumac_version());
    assert_int_equal(lane->ps_count, 1);
    assert_int_equal(made.config.port, 65535);
    assert_int_equal(made.options.streams_max, 22);
    drop(&made);
}

/* The last number that there is, and the one after it; of itself, and of another. */
TEST(ps_are_numbered_up_to_their_bound)
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t index = LANE_PS_MAX - 1 + i % 2;
        struct made made = {.options = PS_OPTIONS_INIT};
        char text[160];
        (void)snprintf(
            text, sizeof text,
            "{\"cluster\":{\"ps\":{\"0\":\"a:1\",\"%u\":\"b:1\"}},"
            "\"task\":{\"type\":\"ps\",\"index\":%u}}",
            index, i < 2 ? 0 : index);

        const enum sumac_status status = configure(text, &made);

        assert_int_equal(status, i % 2 == 0 ? SUMAC_OK : SUMAC_INVALID_ARGUMENT);
        if (status == SUMAC_OK)
            assert_int_equal(made.config.lane.ps_count, LANE_PS_MAX);
        else
            assert_non_null(strstr(made.error.text, i < 2 ? "TF_CONFIG has ps " : "this is ps "));
        drop(&made);
    }
}

/* All but one processor, three at most: a ps shares its host with workers. */
TEST(three_threads_compute_at_most_where_nothing_is_said)
{
    const uint32_t expected[][2] = {{1, 0}, {2, 1}, {4, 3}, {5, 3}, {64, 3}};

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct made made = {.options = PS_OPTIONS_INIT};

        processors = expected[i][0];
        assert_int_equal(configure(ONLY_PS, &made), SUMAC_OK);
        processors = 0;

        assert_int_equal(made.options.threads, expected[i][1]);
        drop(&made);
    }
}

/* Those of one host share its memory. */
TEST(a_ps_may_fill_its_share_of_the_memory)
{
    struct made made = {.options = PS_OPTIONS_INIT};

    assert_int_equal(
        configure(
            "{\"cluster\":{\"ps\":[\"ab:1\",\"a:1\",\"a:2\",\"abc:1\",\"a:3\"]},"
            "\"task\":{\"type\":\"ps\",\"index\":2}}",
            &made),
        SUMAC_OK);

    assert_true(made.config.lane.state_bytes_max == ps_memory_bytes() / 4 * 3 / 3);
    drop(&made);
}

TEST(a_ps_whose_sessions_could_push_nothing_is_refused)
{
    struct made made = {.options = PS_OPTIONS_INIT};

    made.options.sessions_max = 100; /* given */
    made.options.staging_bytes_max = 65536;

    enum sumac_status status = configure(ONLY_PS, &made); /* when */

    assert_int_equal(status, SUMAC_INVALID_ARGUMENT); /* then */
    assert_non_null(strstr(made.error.text, "--staging-max 65536 divided by --sessions-max 100"));
    assert_non_null(strstr(made.error.text, "327 bytes"));
    assert_non_null(strstr(made.error.text, "at least 13107200"));
    drop(&made);
    made.options.staging_bytes_max = 13107200;
    status = configure(ONLY_PS, &made);
    assert_int_equal(status, SUMAC_OK);
    drop(&made);
}

static uint32_t sessions_of(const char *tf_config, uint32_t asked)
{
    struct made made = {.options = PS_OPTIONS_INIT};

    made.options.sessions_max = asked;
    assert_int_equal(configure(tf_config, &made), SUMAC_OK);
    const uint32_t sessions_max = made.config.lane.sessions_max;
    drop(&made);
    return sessions_max;
}

TEST(there_is_a_place_for_every_listed_member_and_for_eight_observers)
{
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
static void configure_ps_3(const char *clusters, struct made *made)
{
    char text[256];

    *made = (struct made){.options = PS_OPTIONS_INIT};
    (void)snprintf(text, sizeof text, "%s,\"task\":{\"type\":\"ps\",\"index\":3}}", clusters);
    assert_int_equal(configure(text, made), SUMAC_OK);
}

/* A ps that some map in the configuration leaves alone in its list waits to be told of the
 * others. */
TEST(a_ps_that_is_told_only_itself_is_told_of_none)
{
    struct made made;

    configure_ps_3("{\"cluster\":{\"worker\":{\"0\":\"w:1\"},\"ps\":[\"a:2222\"]}", &made);

    assert_int_equal(made.config.lane.index, 3);
    assert_int_equal(made.config.lane.ps_count, 0);
    assert_int_equal(made.config.port, 2222);
    drop(&made);
}

/* The workers are a map that names none of them yet. */
TEST(the_members_that_it_is_told_are_not_all)
{
    struct made made;

    configure_ps_3("{\"cluster\":{\"chief\":[\"c:1\"],\"worker\":{},\"ps\":[\"a:2222\"]}", &made);

    assert_int_equal(made.config.lane.member_count, 1);
    assert_true(made.config.lane.members_partial);
    drop(&made);
}

/* It does not matter which of the jobs is not whole. */
TEST(a_map_of_members_with_holes_is_not_all_of_them)
{
    static const struct {
        const char *jobs;
        bool partial;
    } cases[] = {
        {"\"worker\":{\"1\":\"w:1\"},\"chief\":[\"c:1\"]", true},
        {"\"chief\":[\"c:1\"],\"worker\":{\"1\":\"w:1\"}", true},
        {"\"chief\":[\"c:1\"],\"worker\":[\"w:1\"]", false}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = {.options = PS_OPTIONS_INIT};
        char text[256];
        (void)snprintf(
            text, sizeof text,
            "{\"cluster\":{%s,\"ps\":[\"a:1\",\"b:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}",
            cases[i].jobs);

        assert_int_equal(configure(text, &made), SUMAC_OK);

        assert_int_equal(made.config.lane.members_partial, cases[i].partial);
        assert_int_equal(made.config.lane.member_count, 2);
        drop(&made);
    }
}

TEST(as_many_members_begin_as_are_listed_or_as_it_is_told)
{
    static const struct {
        const char *jobs;
        uint32_t members;
        const char *refused;
    } cases[] = {
        {"\"worker\":[\"w:1\",\"w:2\"]", 0, NULL},
        {"\"worker\":[\"w:1\",\"w:2\"]", 2, NULL},
        {"\"worker\":[\"w:1\",\"w:2\"]", 3,
         "--members 3, and TF_CONFIG lists 2 chiefs and workers"},
        {"\"worker\":{\"1\":\"w:1\"}", 3, NULL},
        {"\"evaluator\":[\"e:1\"]", 3, NULL}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = {.options = PS_OPTIONS_INIT};
        char text[256];
        (void)snprintf(
            text, sizeof text,
            "{\"cluster\":{%s,\"ps\":[\"a:1\",\"b:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}",
            cases[i].jobs);
        made.options.members = cases[i].members;

        const enum sumac_status status = configure(text, &made);

        if (cases[i].refused != NULL) {
            assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
            assert_non_null(strstr(made.error.text, cases[i].refused));
        } else {
            assert_int_equal(status, SUMAC_OK);
            assert_int_equal(made.config.lane.step_members, cases[i].members);
        }
        drop(&made);
    }
}

TEST(a_quorum_is_of_members_that_are_known_and_does_without_those_that_are_lost)
{
    static const struct {
        const char *jobs;
        uint32_t members, quorum, index;
        bool loss_fails;
        const char *refused;
    } cases[] = {
        {"\"worker\":[\"w:1\",\"w:2\"]", 0, 2, 0, false, NULL},
        {"\"worker\":[\"w:1\",\"w:2\"]", 0, 3, 0, false,
         "--quorum 3, and a synchronous step has 2 members"},
        {"\"worker\":{\"1\":\"w:1\"}", 3, 3, 0, false, NULL},
        {"\"worker\":{\"1\":\"w:1\"}", 3, 4, 0, false,
         "--quorum 4, and a synchronous step has 3 members"},
        {"\"worker\":{\"1\":\"w:1\"}", 0, 1, 0, false, "give --members N"},
        {"\"worker\":{\"1\":\"w:1\"}", 0, 1, 1, false, NULL}, /* ps 0 takes the steps */
        {"\"worker\":[\"w:1\",\"w:2\"]", 0, 1, 0, true, "give one of the two"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = {.options = PS_OPTIONS_INIT};
        char text[256];
        (void)snprintf(
            text, sizeof text,
            "{\"cluster\":{%s,\"ps\":[\"a:1\",\"b:1\"]},\"task\":{\"type\":\"ps\",\"index\":%u}}",
            cases[i].jobs, cases[i].index);
        made.options.members = cases[i].members;
        made.options.quorum = cases[i].quorum;
        made.options.loss_fails = cases[i].loss_fails;

        const enum sumac_status status = configure(text, &made);

        if (cases[i].refused != NULL) {
            assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
            assert_non_null(strstr(made.error.text, cases[i].refused));
        } else {
            assert_int_equal(status, SUMAC_OK);
            assert_int_equal(made.config.lane.step_quorum, cases[i].quorum);
            assert_int_equal(made.config.lane.step_deadline_ms, LANE_DEADLINE_AUTO);
        }
        drop(&made);
    }
}

TEST(a_sparse_map_of_ps_leaves_holes)
{
    struct made made = {.options = PS_OPTIONS_INIT};

    assert_int_equal(
        configure(
            "{\"cluster\":{\"ps\":{\"2\":\"c:3\",\"0\":\"a:1\"}},\"task\":{\"type\":\"ps\","
            "\"index\":2}}",
            &made),
        SUMAC_OK);

    assert_int_equal(made.config.lane.ps_count, 3);
    assert_string_equal(made.config.lane.ps_addresses[0], "a:1");
    assert_null(made.config.lane.ps_addresses[1]);
    assert_string_equal(made.config.lane.ps_addresses[2], "c:3");
    drop(&made);
}

TEST(a_port_that_is_given_goes_before_the_addresss)
{
    struct made made = {.options = PS_OPTIONS_INIT};

    made.options.port_given = true;
    made.options.port = 0;

    assert_int_equal(configure(ONLY_PS, &made), SUMAC_OK);
    assert_int_equal(made.config.port, 0);
    drop(&made);

    made.options.port = 65535;
    assert_int_equal(configure(ONLY_PS, &made), SUMAC_OK);
    assert_int_equal(made.config.port, 65535);
    drop(&made);

    made.options.port = 70000;
    assert_int_equal(configure(ONLY_PS, &made), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(made.error.text, "70000"));
    drop(&made);
}

TEST(a_task_that_is_no_ps_is_refused)
{
    static const char *const texts[] = {
        "", "{\"cluster\":{\"ps\":[\"a:1\"],\"worker\":[\"b:1\"]},\"task\":{\"type\":\"worker\","
            "\"index\":0}}"};

    for (size_t i = 0; i < 2; i++) {
        struct made made = {.options = PS_OPTIONS_INIT};

        const enum sumac_status status = configure(texts[i], &made);

        assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(made.error.text, "TF_CONFIG"));
        drop(&made);
    }
}

/* Three ps, two workers and a chief: a ps hears from the five others. */
TEST(fewer_connections_than_other_tasks_are_refused)
{
    const char *const text =
        "{\"cluster\":{\"ps\":[\"a:1\",\"b:1\",\"c:1\"],\"chief\":[\"d:1\"],"
        "\"worker\":[\"e:1\",\"f:1\"]},\"task\":{\"type\":\"ps\",\"index\":0}}";

    for (uint32_t count = 4; count <= 5; count++) {
        struct made made = {.options = PS_OPTIONS_INIT};
        made.options.connections_max = count;

        const enum sumac_status status = configure(text, &made);

        assert_int_equal(status, count < 5 ? SUMAC_INVALID_ARGUMENT : SUMAC_OK);
        if (count < 5)
            assert_non_null(
                strstr(made.error.text, "--connections-max 4 is fewer than the other ps"));
        drop(&made);
    }
}

/* A process that may open 256 files: what its own take is left out. */
TEST(more_connections_than_there_are_descriptors_for_are_refused)
{
    struct rlimit before;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {.rlim_cur = 256, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct made made = {.options = PS_OPTIONS_INIT};
    const enum sumac_status by_default = configure(ONLY_PS, &made);
    drop(&made);
    const uint32_t possible = made.options.connections_max;
    made.options.connections_max = possible + 1;

    const enum sumac_status one_more = configure(ONLY_PS, &made);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    drop(&made);
    assert_int_equal(by_default, SUMAC_OK);
    assert_true(possible > 128 && possible < 256);
    assert_int_equal(one_more, SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(made.error.text, "connections that this process has descriptors for"));
    assert_non_null(strstr(made.error.text, "it may have 256"));
}

/* Of very few descriptors half are its clients'. */
TEST(of_few_descriptors_half_are_for_connections)
{
    struct rlimit before;
    struct made made = {.options = PS_OPTIONS_INIT};

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit few = {.rlim_cur = 100, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    const enum sumac_status status = configure(ONLY_PS, &made);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);

    assert_int_equal(status, SUMAC_OK);
    assert_int_equal(made.config.lane.connections_max, 50);
    drop(&made);
}

TEST(calls_are_open_for_every_session_and_no_more_than_there_are_links)
{
    const struct {
        uint32_t sessions_max, given, calls_max; /* 0: refused */
    } cases[] = {{1, 0, 4096},   {200, 0, 6400},    {3000, 0, 16384}, {100, 1600, 1600},
                 {100, 1599, 0}, {1, 16384, 16384}, {1, 16385, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = {.options = PS_OPTIONS_INIT};
        made.options.sessions_max = cases[i].sessions_max;
        made.options.calls_max = cases[i].given;
        made.options.connections_max = 16;

        const enum sumac_status status = configure(ONLY_PS, &made);

        assert_int_equal(status, cases[i].calls_max == 0 ? SUMAC_INVALID_ARGUMENT : SUMAC_OK);
        if (status == SUMAC_OK) {
            assert_int_equal(made.config.lane.calls_max, cases[i].calls_max);
            assert_int_equal(made.config.lane.streams_max, cases[i].calls_max / 2);
            assert_int_equal(made.config.lane.barrier_tasks_max, cases[i].calls_max / 32);
        } else {
            assert_non_null(strstr(made.error.text, "--calls-max"));
            assert_non_null(strstr(made.error.text, "--sessions-max"));
        }
        drop(&made);
    }
}

/* Ports and numbers are compared; a name may lead to whatever address of this host. */
TEST(a_ps_that_listens_where_its_listed_address_may_not_lead_is_found)
{
    static const struct {
        const char *listed, *bind;
        uint32_t port;
        bool elsewhere;
    } rows[] = {
        {"h0:2222", "0.0.0.0", 2222, false},
        {"h0:2222", "0.0.0.0", 2223, true},
        {"h0:2222", "::", 2222, false},
        {"h0:2222", "[::]", 2222, false},
        {"h0:2222", "127.0.0.1", 2222, true},
        {"h0:2222", "192.0.2.1", 2222, false},
        {"192.0.2.1:1", "192.0.2.1", 1, false},
        {"192.0.2.1:1", "192.0.2.2", 1, true},
        {"192.0.2.1:1", "0.0.0.0", 1, false},
        {"localhost:1", "127.0.0.1", 1, false},
        {"127.0.0.1:1", "127.0.0.2", 1, true},
        {"[2001:db8::1]:1", "2001:db8::1", 1, false},
        {"[2001:db8::1]:1", "[2001:db8::1]", 1, false},
        {"[2001:db8::1]:1", "::1", 1, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sumac_cluster cluster;
        struct sumac_error error = {0};
        char text[256];
        (void)snprintf(
            text, sizeof text,
            "{\"cluster\":{\"ps\":[\"%s\"]},\"task\":{\"type\":\"ps\",\"index\":0}}",
            rows[i].listed);
        assert_int_equal(sumac_cluster_parse(text, NULL, &cluster, &error), SUMAC_OK);
        const struct ps_options options = {.bind_host = rows[i].bind, .cluster = &cluster};

        assert_int_equal(ps_config_listens_elsewhere(&options, rows[i].port), rows[i].elsewhere);
        sumac_cluster_deinit(&cluster);
    }
}
