/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c -- TF_CONFIG and questions to a cluster, beyond the conformance cases: what messages
 * say, order, environment. */

#include "unit.h"
#include "address.h"
#include "member_jobs.h"
#include "sumac/cluster.h"

#define TWO_OF_EACH "\"cluster\": {\"ps\": [\"a:1\", \"b:1\"], \"worker\": [\"c:1\", \"d:1\"]}"

static struct sumac_cluster parse(const char *text)
{
    struct sumac_cluster cluster = {0};
    struct sumac_error error = {0};

    if (sumac_cluster_parse(text, NULL, &cluster, &error) != SUMAC_OK)
        fail_msg("%s", error.text);
    return cluster;
}

static void assert_refused(const char *text, const char *mention)
{
    struct sumac_cluster cluster = {.task_index = 77};
    struct sumac_error error = {0};

    assert_int_equal(sumac_cluster_parse(text, NULL, &cluster, &error), SUMAC_INVALID_ARGUMENT);
    if (strstr(error.text, mention) == NULL)
        fail_msg("\"%s\" does not mention \"%s\"", error.text, mention);
    assert_int_equal(cluster.task_index, 77);
}

static void assert_check(const char *text, const char *mention)
{
    struct sumac_cluster cluster = parse(text);
    struct sumac_error error = {0};
    const enum sumac_status status = sumac_cluster_check_task(&cluster, &error);

    if (mention == NULL) {
        assert_int_equal(status, SUMAC_OK);
    } else {
        assert_int_equal(status, SUMAC_INVALID_ARGUMENT);
        if (strstr(error.text, mention) == NULL)
            fail_msg("\"%s\" does not mention \"%s\"", error.text, mention);
    }
    sumac_cluster_deinit(&cluster);
}

TEST(text_that_is_no_json_is_refused_with_line_and_column)
{
    assert_refused("{\"cluster\":\n  {worker: []}}", "line 2, column 9");
    assert_refused("{\"cluster\": {}, \"cluster\": {}}", "\"cluster\"");
    assert_refused("\xef\xbb\xbf{}", "byte-order mark");
    assert_refused("[]", "not a JSON object");
    assert_refused("{\"a\": \"\xff\"}", "line 1");
}

/* The object itself is the first level. */
TEST(a_hundred_levels_are_read_and_one_more_is_refused_with_its_key)
{
    char text[512] = "{\"deep\": ";
    size_t end = strlen(text);

    memset(text + end, '[', 99);
    memset(text + end + 99, ']', 99);
    strcpy(text + end + 198, "}");
    struct sumac_cluster cluster = parse(text);
    sumac_cluster_deinit(&cluster);

    memset(text + end, '[', 100);
    memset(text + end + 100, ']', 100);
    strcpy(text + end + 200, "}");
    assert_refused(text, "\"deep\"");
}

TEST(an_address_given_twice_is_told_with_both_its_tasks)
{
    assert_refused(
        "{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:1\", \"a:1\"]}}",
        "a:1 twice, for ps 0 and worker 1");
    assert_refused(
        "{\"cluster\": {\"ps\": [\"a:1\"], \"master\": [\"b:1\"], \"worker\": [\"b:1\"]}}",
        "b:1 twice, for master 0 and worker 0: do not list a master among the workers as well");
}

TEST(an_index_given_twice_in_other_digits_is_refused)
{
    assert_refused("{\"cluster\": {\"ps\": {\"1\": \"a:1\", \"01\": \"b:1\"}}}", "index 1 twice");
}

TEST(a_zero_byte_in_a_text_is_refused)
{
    assert_refused("{\"cluster\": {\"ps\": [\"a\\u0000:1\"]}}", "host:port");
    assert_refused("{\"task\": {\"type\": \"ps\\u0000\"}}", "type");
    assert_refused("{\"task\": {\"index\": \"0\\u0000\"}}", "index");
    assert_refused("{\"rpc_layer\": \"grpc\\u0000\"}", "rpc_layer");
}

TEST(tasks_of_a_map_come_in_the_order_of_their_index)
{
    struct sumac_cluster cluster =
        parse("{\"cluster\": {\"worker\": {\"10\": \"a:1\", \"2\": \"b:1\", \"0\": \"c:1\"}}}");

    const struct sumac_job *job = sumac_cluster_job(&cluster, "worker");

    assert_int_equal(job->task_count, 3);
    assert_true(job->sparse);
    assert_int_equal(job->tasks[0].index, 0);
    assert_int_equal(job->tasks[1].index, 2);
    assert_int_equal(job->tasks[2].index, 10);
    assert_string_equal(sumac_cluster_address(&cluster, "worker", 2), "b:1");
    assert_null(sumac_cluster_address(&cluster, "worker", 1));
    assert_null(sumac_cluster_address(&cluster, "ps", 0));
    sumac_cluster_deinit(&cluster);
}

TEST(jobs_come_in_the_order_they_were_given)
{
    struct sumac_cluster cluster =
        parse("{\"cluster\": {\"worker\": [\"a:1\"], \"master\": [\"b:1\"], \"ps\": [], \"aux\": "
              "[\"c:1\"]}}");

    assert_int_equal(cluster.job_count, 3);
    assert_string_equal(cluster.jobs[0].name, "worker");
    assert_string_equal(cluster.jobs[1].name, "master");
    assert_string_equal(cluster.jobs[2].name, "aux");
    sumac_cluster_deinit(&cluster);
}

TEST(the_environment_is_where_tf_config_comes_from)
{
    struct sumac_cluster cluster = {0};

    setenv("TF_CONFIG", "{" TWO_OF_EACH ", \"task\": {\"type\": \"ps\", \"index\": 1}}", 1);

    assert_int_equal(sumac_cluster_from_environment(NULL, &cluster, NULL), SUMAC_OK);

    assert_string_equal(cluster.task_type, "ps");
    assert_int_equal(cluster.task_index, 1);
    sumac_cluster_deinit(&cluster);
    unsetenv("TF_CONFIG");
    assert_int_equal(sumac_cluster_from_environment(NULL, &cluster, NULL), SUMAC_OK);
    assert_int_equal(cluster.job_count, 0);
    assert_null(cluster.task_type);
}

/* Kubeflow's dynamic form tells a ps only of itself; other jobs' lists of one keep their index 0.
 */
TEST(a_list_of_one_beside_a_map_belongs_to_the_tasks_own_index)
{
    struct sumac_cluster ps =
        parse("{\"cluster\": {\"worker\": {}, \"ps\": [\"p1:1\"]}, \"task\": {\"type\": \"ps\", "
              "\"index\": 1}}");

    assert_string_equal(sumac_cluster_address(&ps, "ps", 1), "p1:1");
    assert_null(sumac_cluster_address(&ps, "ps", 0));
    assert_true(ps.told_only_itself);
    sumac_cluster_deinit(&ps);

    struct sumac_cluster worker = parse(
        "{\"cluster\": {\"worker\": {\"3\": \"w3:1\"}, \"ps\": [\"p0:1\"]}, \"task\": {\"type\": "
        "\"worker\", \"index\": 3}}");
    assert_string_equal(sumac_cluster_address(&worker, "ps", 0), "p0:1");
    assert_false(worker.told_only_itself);
    sumac_cluster_deinit(&worker);
}

TEST(an_evaluator_need_not_be_one_of_the_listed)
{
    struct sumac_cluster cluster =
        parse("{\"cluster\": {\"ps\": [\"a:1\"], \"evaluator\": [\"b:1\"]}, \"task\": {\"type\": "
              "\"evaluator\", \"index\": 3}}");

    assert_int_equal(cluster.task_index, 3);
    sumac_cluster_deinit(&cluster);
}

TEST(an_override_may_name_another_task)
{
    const struct sumac_cluster_overrides overrides = {
        .task_type = "worker", .has_task_index = true, .task_index = 0};
    struct sumac_cluster cluster = {0};

    assert_int_equal(
        sumac_cluster_parse(
            "{" TWO_OF_EACH ", \"task\": {\"type\": \"ps\", \"index\": 1}}", &overrides, &cluster,
            NULL),
        SUMAC_OK);

    assert_string_equal(cluster.task_type, "worker");
    assert_int_equal(cluster.task_index, 0);
    sumac_cluster_deinit(&cluster);
}

TEST(the_master_of_one_task_needs_no_task_and_of_more_does)
{
    struct sumac_cluster one = parse("{\"cluster\": {\"ps\": [\"a:1\"]}, \"rpc_layer\": \"grpc\"}");
    char *master = NULL;

    assert_int_equal(sumac_cluster_master(&one, &master, NULL), SUMAC_OK);
    assert_string_equal(master, "grpc://a:1");
    free(master);
    sumac_cluster_deinit(&one);

    struct sumac_cluster more = parse("{" TWO_OF_EACH "}");
    struct sumac_error error = {0};
    master = NULL;
    assert_int_equal(sumac_cluster_master(&more, &master, &error), SUMAC_INVALID_ARGUMENT);
    assert_null(master);
    assert_non_null(strstr(error.text, "task.type"));
    sumac_cluster_deinit(&more);

    struct sumac_cluster typed = parse("{" TWO_OF_EACH ", \"task\": {\"type\": \"worker\"}}");
    assert_int_equal(sumac_cluster_master(&typed, &master, &error), SUMAC_INVALID_ARGUMENT);
    assert_null(master); /* worker 0 is somebody, and not this process */
    assert_non_null(strstr(error.text, "task.index"));
    sumac_cluster_deinit(&typed);
}

TEST(a_task_of_a_cluster_with_both_jobs_may_run)
{
    assert_check("{" TWO_OF_EACH ", \"task\": {\"type\": \"ps\", \"index\": 1}}", NULL);
    assert_check("{" TWO_OF_EACH ", \"task\": {\"type\": \"worker\", \"index\": 0}}", NULL);
    assert_check(
        "{\"cluster\": {\"worker\": {}, \"ps\": [\"a:1\"]}, \"task\": {\"type\": \"ps\", "
        "\"index\": 4}}",
        NULL);
}

TEST(a_cluster_without_a_ps_or_without_a_worker_is_told_what_to_add)
{
    assert_check(NULL, "set TF_CONFIG");
    assert_check(
        "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}",
        "has no ps: add \"ps\"");
    assert_check(
        "{\"cluster\": {\"ps\": [\"a:1\"], \"other\": [\"b:1\"]}, \"task\": {\"type\": \"other\", "
        "\"index\": 0}}",
        "has no worker and no chief: add \"worker\"");
    assert_check(
        "{\"cluster\": {\"ps\": [\"a:1\"], \"chief\": [\"b:1\"]}, \"task\": {\"type\": \"chief\", "
        "\"index\": 0}}",
        NULL);
    assert_check(
        "{\"task\": {\"type\": \"worker\", \"index\": 0}}",
        "has no \"cluster\", or an empty one: add");
    assert_check(
        "{\"clutser\": {\"ps\": [\"a:1\"]}, \"task\": {\"type\": \"ps\", \"index\": 0}}",
        "has no \"cluster\", but \"clutser\"");
    assert_check("{\"ps\": {\"count\": 1}}", "has no \"cluster\", but \"ps\"");
    assert_check(
        "{\"cluster\": {\"server\": [\"a:1\"], \"trainer\": [\"b:1\"]}}",
        "to its \"cluster\", which has server, trainer");
    assert_check(
        "{\"cluster\": {\"PS\": [\"a:1\"], \"Worker\": [\"b:1\"]}}",
        "has a job PS, and no job ps: did you mean ps?");
    assert_check("{\"cluster\": {\"ds\": [\"a:1\"], \"worker\": [\"b:1\"]}}", "has no ps: add");
    assert_check("{\"cluster\": {\"ps\": [\"a:1\"], \"walker\": [\"b:1\"]}}", "mean worker?");
    assert_check("{\"cluster\": {\"ps\": [\"a:1\"], \"cheif\": [\"b:1\"]}}", "mean chief?");
    assert_check(
        "{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:1\"], \"thief\": [\"c:1\"]}, \"task\": "
        "{\"type\": \"ps\", \"index\": 0}}",
        NULL);
    assert_check(
        "{" TWO_OF_EACH
        ", \"task\": {\"type\": \"ps\", \"index\": 0}, \"rpc_layer\": \"grpc+verbs\"}",
        "rpc_layer is grpc+verbs");
    assert_check(
        "{\"cluster\": {\"ps\": [\"a:1\"], \"chief\": [\"b:1\"], \"master\": [\"c:1\"]}, \"task\": "
        "{\"type\": \"ps\", \"index\": 0}}",
        "a job chief and a job master");
}

TEST(a_process_that_is_not_told_its_task_is_told_what_to_add)
{
    assert_check("{" TWO_OF_EACH "}", "add \"task\"");
    assert_check("{" TWO_OF_EACH ", \"task\": {\"type\": \"ps\"}}", "add \"index\"");
    assert_check("{" TWO_OF_EACH ", \"task\": {\"index\": 1}}", "is task 1: add \"type\"");
    assert_refused(
        "{" TWO_OF_EACH ", \"task\": {\"type\": \"worker-0\"}}", "\"worker-0\"; it has ps, worker");
    assert_refused("{\"task\": {\"index\": \"$RANK\"}}", "2147483647: \"$RANK\"");
}

TEST(an_address_is_a_host_and_a_port)
{
    const char *const valid[] = {
        "a:1",
        "a.b-c_d:65535",
        "10.0.0.1:2222",
        "[::1]:80",
        "[fe80::1%eth0]:80",
        "a:00080",
        "a.b.:1",
        "123456789012:1",
        "127.1:1",
        "node.5:1",
        "_a-_:1",
        "none:1",
        "null.example:1",
        "[::ffff:10.0.0.1]:1",
    };

    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
        const char *flaw = address_flaw(valid[i], strlen(valid[i]));
        if (flaw != NULL)
            fail_msg("%s should be an address: %s", valid[i], flaw);
    }
}

struct flawed {
    const char *flaw;
    const char *addresses[16]; /* up to NULL */
};

TEST(what_no_host_has_is_no_address)
{
    static const struct flawed flawed[] = {
        {"it has no port", {"", "a", "localhost"}},
        {"its port is no number",
         {"a:", "a:0", "a:65536", "a:4294967297", "a:+1", "[::1]", "unix:/a", "h:80a"}},
        {"it has no host", {":1"}},
        {"goes in brackets", {"::1:1", "[::1:1", "[]:1", "x[::1]:1", "a:b:1"}},
        {"in brackets is no IPv6",
         {"[a]:1", "[::1%]:1", "[::1]]:1", "[10.0.0.1]:1", "[::1%a b]:1"}},
        {"every /", {"a/b:1", "http://a:1", "grpc://a:1"}},
        {"placeholder", {"$(POD_IP):1", "${HOST}:1", "$HOST:1", "<ps-host>:1", "{{ host }}:1"}},
        {"no value", {"None:1", "null:1"}},
        {"letters, digits",
         {"a b:1", "a\t:1", "a\x7f:1", "alice@h:1", "*:1", "h;rm:1", "'127.0.0.1':1",
          "127.0.0.1#:1", "h%C3:1", "h\xc3\xb6st:1", "task=0:1"}},
        {"a comma", {"a,b:1", "a:1,b:1", "10.0.0.1:1,10.0.0.2:1", "a:1,"}},
        {"each part", {"a..b:1", ".:1", "..:1", ".a:1", "-h:1", "h-:1", "a.-b:1"}},
        {"no IPv4 address", {"256.256.256.256:1", "1.2.3.4.5:1", "10.0.0.999:1", "300.1:1"}},
        {"no single host",
         {"0.0.0.0:1", "0:1", "224.0.0.1:1", "255.255.255.255:1", "[::]:1", "[ff02::1]:1"}},
    };

    for (size_t i = 0; i < sizeof flawed / sizeof *flawed; i++)
        for (const char *const *address = flawed[i].addresses; *address != NULL; address++) {
            const char *flaw = address_flaw(*address, strlen(*address));
            if (flaw == NULL || strstr(flaw, flawed[i].flaw) == NULL)
                fail_msg("%s: %s", *address, flaw == NULL ? "should be no address" : flaw);
        }
}

/* RFC 1123: 63 characters between two dots, 253 in all. */
TEST(a_hosts_name_is_as_long_as_dns_has_it)
{
    char address[320];

    for (size_t length = 250; length <= 300; length++) {
        memset(address, 'x', length);
        for (size_t dot = 63; dot < length - 1; dot += 64)
            address[dot] = '.';
        strcpy(address + length, ":1");
        assert_int_equal(address_flaw(address, length + 2) == NULL, length <= 253);
        strcpy(address + length, ".:1"); /* the dot that ends a name does not count */
        assert_int_equal(address_flaw(address, length + 3) == NULL, length <= 253);
    }
    memset(address, 'x', 63);
    strcpy(address + 63, ":1");
    assert_null(address_flaw(address, 65));
    strcpy(address + 63, "x:1");
    assert_non_null(address_flaw(address, 66));
}

TEST(the_end_of_a_zeroed_description_does_nothing)
{
    struct sumac_cluster cluster = {0};

    sumac_cluster_deinit(&cluster);
    sumac_cluster_deinit(&cluster);
}

TEST(an_index_is_at_most_2_31_less_1)
{
    static const char *const refused[] = {"2147483648", "2147483649", "4294967296"};
    char text[128];
    struct sumac_cluster cluster =
        parse("{\"cluster\": {\"worker\": {\"2147483647\": \"a:1\"}}, \"task\": {\"type\": "
              "\"worker\", \"index\": \"2147483647\"}}");

    assert_string_equal(sumac_cluster_address(&cluster, "worker", 2147483647), "a:1");
    sumac_cluster_deinit(&cluster);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        snprintf(text, sizeof text, "{\"cluster\": {\"worker\": {\"%s\": \"a:1\"}}}", refused[i]);
        assert_refused(text, refused[i]);
        snprintf(text, sizeof text, "{\"task\": {\"index\": %s}}", refused[i]);
        assert_refused(text, "from 0 to 2147483647");
    }
}

/* Whoever is told of others of its job knows their indices by their places. */
TEST(a_list_of_two_beside_a_map_is_not_only_of_itself)
{
    struct sumac_cluster ps =
        parse("{\"cluster\": {\"worker\": {}, \"ps\": [\"p0:1\", \"p1:1\"]}, \"task\": {\"type\": "
              "\"ps\", \"index\": 1}}");

    assert_false(ps.told_only_itself);
    assert_string_equal(sumac_cluster_address(&ps, "ps", 0), "p0:1");
    assert_string_equal(sumac_cluster_address(&ps, "ps", 1), "p1:1");
    sumac_cluster_deinit(&ps);
}

TEST(a_text_that_is_null_is_none)
{
    struct sumac_cluster cluster = parse("{\"session_master\": null, \"rpc_layer\": null}");

    assert_null(cluster.session_master);
    assert_null(cluster.rpc_layer);
    sumac_cluster_deinit(&cluster);
}

TEST(an_index_of_the_command_line_counts_as_given)
{
    const struct sumac_cluster_overrides overrides = {.has_task_index = true, .task_index = 1};
    struct sumac_cluster cluster = {0};

    assert_int_equal(
        sumac_cluster_parse(
            "{" TWO_OF_EACH ", \"task\": {\"type\": \"ps\"}}", &overrides, &cluster, NULL),
        SUMAC_OK);

    assert_int_equal(cluster.task_index, 1);
    assert_int_equal(sumac_cluster_check_task(&cluster, NULL), SUMAC_OK);
    sumac_cluster_deinit(&cluster);
}

static void assert_master(const char *text, const char *expected)
{
    struct sumac_cluster cluster = parse(text);
    char *master = NULL;

    assert_int_equal(sumac_cluster_master(&cluster, &master, NULL), SUMAC_OK);
    assert_string_equal(master, expected);
    free(master);
    sumac_cluster_deinit(&cluster);
}

TEST(the_master_has_a_scheme_where_a_layer_is_given)
{
    assert_master("{\"cluster\": {\"ps\": [\"a:1\"]}}", "a:1");
    assert_master("{\"cluster\": {\"ps\": [\"a:1\"]}, \"rpc_layer\": \"\"}", "a:1");
    assert_master(
        "{" TWO_OF_EACH ", \"rpc_layer\": \"grpc\", \"task\": {\"type\": \"worker\", \"index\": "
        "1}}",
        "grpc://d:1");
    assert_master("{" TWO_OF_EACH ", \"session_master\": \"h:1\", \"rpc_layer\": \"grpc\"}", "h:1");
    assert_master("{}", "");
}

/* NULL: it is of a strategy that knows its place. */
static void assert_of_a_strategy(const char *text, const char *mention)
{
    struct sumac_cluster cluster = parse(text);
    struct sumac_error error = {0};
    const enum sumac_status status = cluster_check_member(&cluster, &error);

    assert_int_equal(status, mention == NULL ? SUMAC_OK : SUMAC_INVALID_ARGUMENT);
    if (mention != NULL && strstr(error.text, mention) == NULL)
        fail_msg("\"%s\" does not mention \"%s\"", error.text, mention);
    sumac_cluster_deinit(&cluster);
}

TEST(a_text_that_no_strategy_understands_is_refused_with_its_key)
{
    static const struct {
        const char *text, *mention;
    } rows[] = {
        {NULL, NULL},
        {"{}", NULL},
        {"{\"cluster\": {}}", NULL},
        {"{\"cluster\": {}, \"task\": {\"type\": \"worker\", \"index\": 0}}", NULL},
        {"{\"cluster\": {\"worker\": [\"a:1\"]}}", NULL},
        {"{\"cluster\": {\"master\": [\"a:1\"]}, \"task\": {\"type\": \"master\", \"index\": 0}}",
         NULL},
        {"{\"sparseCluster\": {\"ps\": [\"a:1\"], \"worker\": {\"1\": \"b:1\"}}, \"task\": "
         "{\"type\": "
         "\"worker\", \"index\": 1}}",
         NULL},
        {"{\"environment\": \"cloud\", \"cluster\": {\"chief\": [\"a:1\"]}, \"task\": {\"type\": "
         "\"chief\", \"index\": 0}}",
         NULL},
        {"{\"clusters\": {\"worker\": [\"a:1\"]}}", "\"clusters\", which is not read"},
        {"{\"clusterSpec\": {}, \"task\": {\"type\": \"worker\", \"index\": 0}}",
         "\"clusterSpec\""},
        {"{\"ps\": {\"count\": 1}, \"worker\": {\"count\": 3}}", "\"ps\", which is not read"},
        {"{\"task\": {\"type\": \"worker\", \"index\": 2}}",
         "has a task, worker 2, and no \"cluster\""},
        {"{\"cluster\": {\"worker\": []}, \"task\": {\"type\": \"worker\", \"index\": 0}}",
         "has a task, worker 0"},
        {"{\"cluster\": {\"evaluator\": [\"a:1\"]}, \"task\": {\"type\": \"evaluator\", \"index\": "
         "0}}",
         "task is evaluator"},
        {"{\"cluster\": {\"chief\": [\"a:1\"]}, \"task\": {\"type\": \"evaluator\", \"index\": 0}}",
         "task is evaluator"},
        {"{\"cluster\": {\"trainer\": [\"a:1\", \"b:1\"]}, \"task\": {\"type\": \"trainer\", "
         "\"index\": "
         "1}}",
         "task is trainer"},
        {"{\"cluster\": {\"workers\": [\"a:1\"]}}", "has a job workers, and no job worker"},
        {"{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}}", "task is none"},
        {"{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}, "
         "\"rpc_layer\": \"grpc+verbs\"}",
         "rpc_layer is grpc+verbs"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_of_a_strategy(rows[i].text, rows[i].mention);
}

TEST(a_master_is_a_chief_among_the_members)
{
    struct sumac_cluster cluster = parse(
        "{\"cluster\": {\"master\": [\"a:1\"], \"worker\": [\"b:1\", \"c:1\"], \"ps\": [\"d:1\"]}, "
        "\"task\": {\"type\": \"master\", \"index\": 0}}");

    assert_int_equal(cluster_member_count(&cluster), 3);
    assert_string_equal(cluster_members(&cluster, "chief")->name, "master");
    assert_string_equal(cluster_member_job(cluster.task_type), "chief");
    assert_string_equal(cluster.task_type, "master"); /* as it was given */
    assert_null(cluster_member_job("evaluator"));
    sumac_cluster_deinit(&cluster);

    struct sumac_cluster alone = parse("{\"cluster\": {\"master\": [\"a:1\"], \"ps\": [\"d:1\"]}}");
    char *master = NULL;
    assert_int_equal(cluster_member_count(&alone), 1);
    assert_int_equal(/* it may be a task of either job */
                     sumac_cluster_master(&alone, &master, NULL), SUMAC_INVALID_ARGUMENT);
    sumac_cluster_deinit(&alone);
}

TEST(text_that_is_no_object_is_told_what_it_is)
{
    assert_refused("null", "TF_CONFIG is null");
    assert_refused("\"{\\\"cluster\\\": {}}\"", "a JSON string, not an object: it is quoted twice");
    assert_refused("{'cluster': {}}", "single ones: write it with Python's json.dumps");
    assert_refused(
        "{\"cluster\": {\"ps\": [\"h:1\", ]}}", "near ']'; leave out the comma before it");
    assert_refused(
        "{\"cluster\": {\"ps\": [\"h:1\"],\n}}", "near '}'; leave out the comma before it");
    assert_refused("'{\"cluster\": {}}'", "leave out the quotes around it");
    assert_refused("\"{\"cluster\": {}}\"", "leave out the quotes around it");
    assert_refused(" {\n \\\"cluster\\\": {}}", "leave out each backslash");
    assert_refused(
        "{\xe2\x80\x9c"
        "cluster\xe2\x80\x9d: {}}",
        "typographic ones");
    assert_refused("TF_CONFIG={}", "leave out the name at its beginning");
    assert_refused("/etc/tf_config.json", "not the name of a file");
    assert_refused("7", "a number");
}

TEST(an_index_that_is_no_number_is_shown)
{
    assert_refused("{\"task\": {\"index\": -1}}", "from 0 to 2147483647: -1");
    assert_refused("{\"task\": {\"index\": 1.5}}", "from 0 to 2147483647: 1.5");
    assert_refused("{\"task\": {\"index\": \"zero\"}}", "from 0 to 2147483647: \"zero\"");
    assert_refused("{\"task\": {\"index\": [0]}}", "from 0 to 2147483647: [0]");
    assert_refused("{\"task\": {\"index\": null}}", "from 0 to 2147483647: null");
}

TEST(a_misspelt_task_is_told_so)
{
    assert_refused(
        "{" TWO_OF_EACH ", \"tasks\": {\"type\": \"ps\", \"index\": 1}}",
        "TF_CONFIG has \"tasks\", and no \"task\": did you mean \"task\"?");
    assert_refused("{" TWO_OF_EACH ", \"Task\": {}}", "did you mean \"task\"?");
    struct sumac_cluster cluster = parse("{" TWO_OF_EACH ", \"environment\": \"cloud\"}");
    sumac_cluster_deinit(&cluster);
}
