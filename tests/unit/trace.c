/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c -- a trace's file: what is in it, when it is written, and how it ends. */

#include "unit.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace.h"
#include "trace_read.h"

/* A folder of the test's own, the file in it, and what was said. */
struct fixture {
    char folder[64], path[96];
    uint32_t said;
    char line[512];
    struct sumac_error error;
    struct trace *trace;
};

static void note(void *context, const char *line)
{
    struct fixture *fixture = context;

    fixture->said++;
    snprintf(fixture->line, sizeof fixture->line, "%s", line);
}

static int make_folder(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/trace-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof fixture->path, "%s/steps.json", fixture->folder);
    *state = fixture;
    return 0;
}

static int remove_folder(void **state)
{
    struct fixture *fixture = *state;

    unlink(fixture->path);
    rmdir(fixture->folder);
    free(fixture);
    return 0;
}

static enum sumac_status
open_at(struct fixture *fixture, const char *path, uint64_t bytes_max, struct trace **trace)
{
    const struct trace_options options = {
        .path = path,
        .process = "worker 3",
        .bytes_max = bytes_max,
        .say = note,
        .context = fixture,
    };

    return trace_open(&options, trace, &fixture->error);
}

static void begin(struct fixture *fixture)
{
    assert_int_equal(open_at(fixture, fixture->path, 0, &fixture->trace), SUMAC_OK);
}

static long bytes_of(const char *path)
{
    struct stat facts;

    assert_int_equal(stat(path, &facts), 0);
    return (long)facts.st_size;
}

/* All that is in the file; whoever calls it frees it. */
static char *text_of(const char *path)
{
    const size_t bytes = (size_t)bytes_of(path);
    char *text = calloc(1, bytes + 4);
    FILE *file = fopen(path, "r");

    assert_non_null(text);
    assert_non_null(file);
    assert_int_equal(fread(text, 1, bytes, file), bytes);
    fclose(file);
    return text;
}

/* An event of a microsecond that is over so soon that nothing is written for its age. */
static struct trace_event short_event(uint64_t step)
{
    return (struct trace_event){
        .kind = TRACE_COMPUTE, .track = 1, .begin_ns = 5000, .end_ns = 6000, .step = step};
}

#define FOLDER_TEST(name) FIXTURE_TEST(name, struct fixture *fixture, make_folder, remove_folder)

FOLDER_TEST(events_are_read_again_as_they_were_written)
{
    begin(fixture); /* given */
    const uint32_t first = trace_track(fixture->trace, "worker");
    const uint32_t second = trace_track(fixture->trace, "replica 0 (CPU:0)");
    trace_write(
        fixture->trace, &(struct trace_event){
                            .kind = TRACE_COPY_OUT,
                            .track = second,
                            .begin_ns = 1234567,
                            .end_ns = 2000008,
                            .step = 41,
                            .bytes = 4096,
                            .variable = "w"}); /* when */
    trace_write(
        fixture->trace,
        &(struct trace_event){
            .kind = TRACE_WAIT_FOR_PUSH, .track = first, .begin_ns = 9000, .end_ns = 8000});
    trace_close(fixture->trace);

    json_t *events = trace_read(fixture->path); /* then */
    assert_int_equal(json_array_size(events), 1 + 2 * 2 + 2);
    assert_string_equal(word(json_array_get(events, 0), "name"), "process_name");
    assert_string_equal(word(args(json_array_get(events, 0)), "name"), "worker 3");
    const json_t *named = json_array_get(events, 3), *sorted = json_array_get(events, 4);
    assert_string_equal(word(named, "name"), "thread_name");
    assert_string_equal(word(args(named), "name"), "replica 0 (CPU:0)");
    assert_true(number(named, "tid") == second && first != second);
    assert_true(
        number(args(sorted), "sort_index") > number(args(json_array_get(events, 2)), "sort_index"));
    const json_t *copy = json_array_get(events, 5), *wait = json_array_get(events, 6);
    assert_string_equal(word(copy, "ph"), "X");
    assert_string_equal(word(copy, "name"), "copy out");
    assert_string_equal(word(copy, "cat"), "copy");
    assert_true(number(copy, "ts") == 1234.567);
    assert_true(number(copy, "dur") == 765.441);
    assert_true(number(copy, "pid") == getpid() && number(copy, "tid") == second);
    assert_true(number(args(copy), "step") == 41 && number(args(copy), "bytes") == 4096);
    assert_string_equal(word(args(copy), "variable"), "w");
    assert_string_equal(word(wait, "name"), "wait for push");
    assert_true(number(wait, "ts") == 9 && number(wait, "dur") == 0); /* it ended before it began */
    assert_null(json_object_get(args(wait), "bytes"));
    assert_null(json_object_get(args(wait), "variable"));
    json_decref(events);
    assert_int_equal(fixture->said, 0);
}

FOLDER_TEST(whatever_a_name_has_in_it_the_file_can_be_read)
{
    char name[3 * TRACE_NAME_BYTES_MAX];
    struct trace_event event = short_event(1);

    begin(fixture); /* given */
    trace_track(fixture->trace, "a \"quoted\" \\ name\n\x01 \xff µ");
    for (size_t i = 0; i < sizeof name - 1; i++)
        name[i] = "\"\xc2\xb5"[i % 3];
    name[sizeof name - 1] = '\0';
    event.variable = name;
    trace_write(fixture->trace, &event); /* when */
    trace_close(fixture->trace);

    json_t *events = trace_read(fixture->path); /* then */
    assert_string_equal(
        word(args(json_array_get(events, 1)), "name"), "a \"quoted\" \\ name?? ? µ");
    const char *cut = word(args(json_array_get(events, 3)), "variable");
    assert_in_range(strlen(cut), TRACE_NAME_BYTES_MAX - 3, TRACE_NAME_BYTES_MAX - 1);
    assert_memory_equal(cut, name, strlen(cut));
    json_decref(events);
}

FOLDER_TEST(a_trace_that_is_off_takes_all_and_writes_nothing)
{
    const struct trace_event event = short_event(1);

    assert_int_equal(trace_track(NULL, "worker"), 0);
    trace_write(NULL, &event);
    trace_close(NULL);

    assert_int_equal(access(fixture->path, F_OK), -1);
    assert_int_equal(fixture->said, 0);
}

FOLDER_TEST(a_buffer_that_is_full_is_written_and_ends_at_a_whole_event)
{
    uint64_t written = 0;

    begin(fixture); /* given */
    assert_int_equal(bytes_of(fixture->path), 0);
    while (bytes_of(fixture->path) == 0) { /* when */
        const struct trace_event event = short_event(written++);
        trace_write(fixture->trace, &event);
    }

    char *text = text_of(fixture->path); /* then: as a process leaves it that is killed now */
    assert_in_range(strlen(text), TRACE_BUFFER_BYTES_MAX * 9 / 10, TRACE_BUFFER_BYTES_MAX);
    strcat(text, "]");
    json_t *events = json_loads(text, 0, NULL);
    assert_non_null(events);
    assert_int_equal(count_of(events, "X"), written - 1); /* the last did not fit */
    json_decref(events);
    free(text);
    trace_close(fixture->trace);
    events = trace_read(fixture->path);
    assert_int_equal(count_of(events, "X"), written);
    json_decref(events);
}

FOLDER_TEST(what_has_lain_for_a_second_is_written)
{
    struct trace_event event = short_event(1);

    begin(fixture); /* given: the process's name lies there since now */
    trace_write(fixture->trace, &event);
    assert_int_equal(bytes_of(fixture->path), 0);
    event.end_ns = trace_now() + TRACE_HELD_NS_MAX;
    trace_write(fixture->trace, &event); /* when */

    const long bytes = bytes_of(fixture->path); /* then */
    assert_true(bytes > 0);
    event.end_ns += TRACE_HELD_NS_MAX; /* and it is the oldest that counts, not the last write */
    trace_write(fixture->trace, &event);
    assert_int_equal(bytes_of(fixture->path), bytes);
    trace_close(fixture->trace);
}

FOLDER_TEST(a_disk_that_is_full_is_said_once_and_ends_the_trace_alone)
{
    for (int full_before_the_end = 0; full_before_the_end < 2; full_before_the_end++) {
        fixture->said = 0;
        assert_int_equal(open_at(fixture, "/dev/full", 0, &fixture->trace), SUMAC_OK); /* given */
        for (uint64_t i = 0; i < 10000 && full_before_the_end; i++) {                  /* when */
            const struct trace_event event = short_event(i);
            trace_write(fixture->trace, &event);
        }
        assert_int_equal(fixture->said, full_before_the_end);
        trace_close(fixture->trace);

        assert_int_equal(fixture->said, 1); /* then */
        assert_string_equal(
            fixture->line,
            "the trace /dev/full ends here: No space left on device; the work goes on without it");
    }
}

FOLDER_TEST(a_file_that_may_not_grow_ends_the_trace_and_not_the_process)
{
    struct rlimit limit, less;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0); /* given */
    less = limit;
    less.rlim_cur = 3 * TRACE_BUFFER_BYTES_MAX / 2;
    begin(fixture);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
    for (uint64_t i = 0; i < 3000; i++) { /* when */
        const struct trace_event event = short_event(i);
        trace_write(fixture->trace, &event);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    trace_close(fixture->trace);

    assert_int_equal(fixture->said, 1); /* then */
    assert_non_null(strstr(fixture->line, "File too large"));
    sigset_t pending;
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGXFSZ));
    json_t *events = trace_read(fixture->path); /* of whole events, with its end */
    assert_true(json_array_size(events) > 100);
    json_decref(events);
}

FOLDER_TEST(a_file_has_a_most_and_can_be_read_up_to_there)
{
    const uint64_t most = 100000;

    assert_int_equal(open_at(fixture, fixture->path, most, &fixture->trace), SUMAC_OK); /* given */
    for (uint64_t i = 0; i < 3000; i++) {                                               /* when */
        const struct trace_event event = short_event(i);
        trace_write(fixture->trace, &event);
    }
    trace_close(fixture->trace);

    assert_int_equal(fixture->said, 1); /* then */
    assert_non_null(strstr(fixture->line, "steps.json ends here: it has "));
    assert_in_range(bytes_of(fixture->path), most - 200, most);
    json_t *events = trace_read(fixture->path);
    assert_true(count_of(events, "X") > 500);
    json_decref(events);
}

/* The descriptor that the next open gets: the same as before if none was left open. */
static int next_descriptor(void)
{
    const int next = dup(STDIN_FILENO);

    assert_true(next >= 0);
    close(next);
    return next;
}

FOLDER_TEST(what_is_no_file_is_refused_by_its_name_and_with_a_remedy)
{
    char missing[128], pipe[128];
    struct trace *trace = NULL;

    snprintf(missing, sizeof missing, "%s/none/steps.json", fixture->folder); /* given */
    snprintf(pipe, sizeof pipe, "%s/pipe", fixture->folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    const struct {
        const char *path, *why;
    } bad[] = {
        {missing, "No such file or directory"},
        {fixture->folder, "Is a directory"},
        {pipe, "it is no file"},
        {"/proc/self/status", "Permission denied"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (i == 3 && geteuid() == 0)
            continue; /* who may do all hears of another reason */
        assert_int_equal(
            open_at(fixture, bad[i].path, 0, &trace), SUMAC_INVALID_ARGUMENT); /* when */

        assert_non_null(strstr(fixture->error.text, bad[i].path)); /* then */
        assert_non_null(strstr(fixture->error.text, bad[i].why));
        assert_non_null(strstr(fixture->error.text, "name a file in a folder where"));
        assert_null(trace);
    }
    const int reader = open(pipe, O_RDONLY | O_NONBLOCK); /* nor a pipe that is read */
    const int next = next_descriptor();
    assert_true(reader >= 0);
    assert_int_equal(open_at(fixture, pipe, 0, &trace), SUMAC_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture->error.text, "it is no file"));
    assert_int_equal(next_descriptor(), next);
    close(reader);
    unlink(pipe);
}

FOLDER_TEST(a_trace_is_written_over_but_not_while_it_is_being_written)
{
    struct trace *other = NULL;

    begin(fixture); /* given */
    trace_track(fixture->trace, "worker");
    assert_int_equal(
        open_at(fixture, fixture->path, 0, &other), SUMAC_FAILED_PRECONDITION); /* when */

    assert_null(other); /* then */
    assert_non_null(strstr(fixture->error.text, fixture->path));
    assert_non_null(strstr(fixture->error.text, "give each a file of its own"));
    trace_close(fixture->trace);
    json_t *events = trace_read(fixture->path);
    assert_int_equal(json_array_size(events), 3);
    json_decref(events);
    begin(fixture);
    trace_close(fixture->trace);
    events = trace_read(fixture->path);
    assert_int_equal(json_array_size(events), 1); /* of the one before nothing is left */
    json_decref(events);
}

#define THREADS 4
#define EVENTS_EACH 3000

static void *write_many(void *context)
{
    for (uint64_t i = 0; i < EVENTS_EACH; i++) {
        const struct trace_event event = short_event(i);
        trace_write(context, &event);
    }
    return NULL;
}

FOLDER_TEST(threads_write_whole_events_at_once)
{
    pthread_t threads[THREADS];

    begin(fixture);                   /* given */
    for (int i = 0; i < THREADS; i++) /* when */
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, fixture->trace), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    trace_close(fixture->trace);

    json_t *events = trace_read(fixture->path); /* then */
    assert_int_equal(count_of(events, "X"), THREADS * EVENTS_EACH);
    json_decref(events);
}
