/* SPDX-License-Identifier: Apache-2.0 */
/* worker_trace.c -- what the trace of a worker's steps says, and in which file. */
#include "far_device.h"
#include "trace_read.h"
#include "worker_client.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder of the test's own, and the trace in it. */
struct place {
    char folder[64], path[96];
};

static int make_folder(void **state)
{
    static struct place place;

    snprintf(place.folder, sizeof place.folder, "/tmp/trace-XXXXXX");
    assert_non_null(mkdtemp(place.folder));
    snprintf(place.path, sizeof place.path, "%s/steps.json", place.folder);
    *state = &place;
    return 0;
}

static int remove_folder(void **state)
{
    struct place *place = *state;

    unsetenv("SUMAC_TRACE");
    unlink(place->path);
    assert_int_equal(rmdir(place->folder), 0); /* no test leaves a trace under another name */
    return 0;
}

static void prepare_traced(struct fixture *fixture, uint32_t replicas, const char *path)
{
    prepare(fixture, replicas);
    fixture->client.member_count = 1;
    fixture->options.trace = path;
}

/* ---- what is told */

#define FOLDER_TEST(name) FIXTURE_TEST(name, struct place *place, make_folder, remove_folder)

FOLDER_TEST(a_step_tells_what_replicas_network_and_caller_did_each_on_its_track)
{
    struct fixture fixture;

    prepare_traced(&fixture, 2, place->path); /* given */
    fixture.options.variable_count = 2;
    fixture.options.pushed_count = 1;
    struct sumac_worker *worker = created(&fixture);
    for (int i = 0; i < 3; i++) /* when */
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    sumac_worker_destroy(worker);

    json_t *events = trace_read(place->path); /* then */
    assert_string_equal(word(args(json_array_get(events, 0)), "name"), "worker 1");
    for (uint64_t step = 0; step < 3; step++) {
        const json_t *whole = event_of(events, "worker", "step", step);
        const json_t *pull = event_of(events, "pull", "pull", step);
        const json_t *push = event_of(events, step % 2 == 0 ? "push 0" : "push 1", "push", step);
        for (int i = 0; i < 2; i++) {
            const char *track = i == 0 ? "replica 0 (CPU:0)" : "replica 1 (CPU:1)";
            const json_t *compute = event_of(events, track, "compute", step);
            const json_t *reduce = event_of(events, track, "reduce", step);
            assert_in_turn(pull, compute);
            assert_in_turn(compute, reduce);
            assert_in_turn(reduce, push);
            assert_within(compute, whole);
        }
        assert_within(event_of(events, "worker", "wait for replicas", step), whole);
        assert_within(event_of(events, "worker", "wait for reduction", step), whole);
        event_of(events, "worker", "wait for push", step);
        assert_true(number(args(pull), "bytes") == 3 * 4 + 3 * 8);
        assert_true(number(args(push), "bytes") == 3 * 4);
    }
    assert_true(track_of(events, "CPU:0 stream") == 0); /* its memory is the host's */
    /* and the pull of a fourth, and the first one's own, are waited for, too */
    assert_int_equal(count_of(events, "X"), 3 * (2 + 2 * 2 + 5) + 2);
    json_decref(events);
}

FOLDER_TEST(devices_with_memory_of_their_own_have_a_track_for_their_copies)
{
    struct fixture fixture;
    struct sumac_worker *worker = NULL;

    far_ops = make_far_ops();
    const struct devices far = devices_first(&far_ops, 2);
    prepare_traced(&fixture, 2, place->path); /* given */
    assert_int_equal(worker_create(&far, &fixture.options, &worker, &fixture.error), SUMAC_OK);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK); /* when */
    sumac_worker_destroy(worker);

    json_t *events = trace_read(place->path); /* then */
    const json_t *first = event_of(events, "FAR:0 copies", "copy in", 0);
    const json_t *second = event_of(events, "FAR:1 copies", "copy in", 1); /* the next step's */
    const json_t *out = event_of(events, "FAR:0 copies", "copy out", 0);
    assert_true(number(args(second), "bytes") == 64 && number(args(out), "bytes") == 64);
    const json_t *compute = event_of(events, "FAR:0 stream", "compute", 0);
    assert_in_turn(first, compute);
    assert_within(event_of(events, "replica 0 (FAR:0)", "compute", 0), compute);
    assert_in_turn(compute, event_of(events, "FAR:0 stream", "reduce", 0));
    assert_in_turn(compute, out); /* each variable when it is reduced, beside the rest */
    assert_null(the_only(events, "FAR:1 copies", "copy out", 0)); /* replica 0's are pushed */
    assert_in_turn(out, event_of(events, "push 0", "push", 0));
    event_of(events, "worker", "wait for copy", 0);
    json_decref(events);
}

static enum sumac_status
step_that_fails_at_last(struct sumac_replica *replica, void *context, struct sumac_error *error)
{
    return sumac_replica_step(replica) < 2 ? observed_step(replica, context, error)
                                           : SUMAC_DATA_LOSS;
}

FOLDER_TEST(what_led_to_a_step_that_fails_is_in_the_file_at_once)
{
    struct fixture fixture;
    char written[8192] = "";

    prepare_traced(&fixture, 1, place->path); /* given */
    fixture.options.step = step_that_fails_at_last;
    struct sumac_worker *worker = created(&fixture);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);

    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_DATA_LOSS); /* when */

    FILE *file = fopen(place->path, "r"); /* then */
    assert_non_null(file);
    (void)fread(written, 1, sizeof written - 1, file);
    (void)fclose(file);
    assert_non_null(strstr(written, "\"compute\""));
    assert_non_null(strstr(written, "\"step\":2"));
    sumac_worker_destroy(worker);
}

FOLDER_TEST(a_push_ends_where_its_end_is_heard_and_not_where_it_is_waited_for)
{
    struct fixture fixture;

    prepare_traced(&fixture, 1, place->path); /* given */
    struct sumac_worker *worker = created(&fixture);
    assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    fixture.client.heard = 1; /* when: with the next pull, and no other is heard with the third */
    for (int i = 0; i < 2; i++)
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    sumac_worker_destroy(worker);

    json_t *events = trace_read(place->path); /* then */
    const json_t *push = event_of(events, "push 0", "push", 0);
    assert_in_turn(push, event_of(events, "worker", "wait for push", 0));
    const json_t *other = event_of(events, "push 1", "push", 1);
    assert_true(end_of(other) + 0.002 >= end_of(event_of(events, "worker", "wait for push", 1)));
    json_decref(events);
}

/* ---- the file */

FOLDER_TEST(which_trace_is_written_the_options_say_or_else_the_environment)
{
    struct fixture fixture;

    setenv("SUMAC_TRACE", place->path, 1);
    prepare_traced(&fixture, 1, ""); /* none, whatever the environment says */
    sumac_worker_destroy(created(&fixture));
    assert_int_equal(access(place->path, F_OK), -1);
    prepare_traced(&fixture, 1, NULL);
    sumac_worker_destroy(created(&fixture));
    assert_int_equal(unlink(place->path), 0);
    setenv("SUMAC_TRACE", "", 1);
    sumac_worker_destroy(created(&fixture));
    unsetenv("SUMAC_TRACE");
    sumac_worker_destroy(created(&fixture));
    assert_int_equal(access(place->path, F_OK), -1);
    setenv("SUMAC_TRACE", "/none/steps.json", 1);
    prepare_traced(&fixture, 1, place->path);
    sumac_worker_destroy(created(&fixture));
    assert_int_equal(access(place->path, F_OK), 0);
}

struct name {
    uint32_t members;
    const char *asked, *made;
};

FOLDER_TEST(a_worker_that_is_not_alone_has_its_name_in_that_of_its_file)
{
    const struct name names[] = {
        {1, "steps.json", "steps.json"},
        {2, "steps.json", "steps.worker-1.json"},
        /* how many there are is not known */
        {0, "steps.json", "steps.worker-1.json"},
        {2, "steps", "steps.worker-1"},
        {2, ".steps", ".steps.worker-1"},
        {2, "a.b.json", "a.b.worker-1.json"},
        {2, "a.b/steps", "a.b/steps.worker-1"},
    };
    char asked[192], made[192], folder[192];

    snprintf(folder, sizeof folder, "%s/a.b", place->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct fixture fixture;
        snprintf(asked, sizeof asked, "%s/%s", place->folder, names[i].asked); /* given */
        snprintf(made, sizeof made, "%s/%s", place->folder, names[i].made);
        prepare_traced(&fixture, 1, asked);
        fixture.client.member_count = names[i].members;

        sumac_worker_destroy(created(&fixture)); /* when */

        assert_int_equal(unlink(made), 0); /* then */
    }
    assert_int_equal(rmdir(folder), 0);
}

FOLDER_TEST(a_trace_that_cannot_be_written_is_refused_before_the_first_step)
{
    static char longest[PATH_MAX + 1];
    struct fixture fixture;
    struct sumac_worker *worker = NULL;

    prepare_traced(&fixture, 2, "/none/steps.json"); /* given */
    assert_int_equal(
        sumac_worker_create(&fixture.options, &worker, &fixture.error),
        SUMAC_INVALID_ARGUMENT); /* when */
    assert_non_null(strstr(
        fixture.error.text,
        "the trace /none/steps.json cannot be written: No such file or directory; "));
    memset(longest, 'x', sizeof longest - 1);
    fixture.options.trace = longest;
    for (uint32_t members = 1; members <= 2; members++) {
        fixture.client.member_count = members;
        assert_int_equal(
            sumac_worker_create(&fixture.options, &worker, &fixture.error), SUMAC_INVALID_ARGUMENT);
        assert_non_null(strstr(fixture.error.text, "has a name of 4096 bytes; name a file by"));
    }

    assert_null(worker); /* then */
    assert_string_equal(fixture.client.transcript, "");
}

FOLDER_TEST(a_disk_that_is_full_is_said_in_the_clients_log_and_steps_go_on)
{
    struct fixture fixture;

    prepare_traced(&fixture, 2, "/dev/full"); /* given */
    struct sumac_worker *worker = created(&fixture);
    for (int i = 0; i < 60; i++) /* when */
        assert_int_equal(sumac_worker_step(worker, NULL), SUMAC_OK);
    sumac_worker_destroy(worker);

    assert_string_equal(/* then */
                        fixture.client.said, "the trace /dev/full ends here: No space left on "
                                             "device; the work goes on without it");
    assert_int_equal(fixture.client.pushed, 60);
}
