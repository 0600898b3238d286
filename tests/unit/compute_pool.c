/* SPDX-License-Identifier: Apache-2.0 */
/* compute_pool.c (test) -- every slice of every job runs once, whoever takes it. */
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include "unit.h"
#include "compute_pool.h"

static bool is_scarce;

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_scarce ? NULL : __real_calloc(count, bytes);
}

#define SLICE_ELEMENTS 64u
#define PATIENCE_S 60 /* beyond it something is lost, and the test fails */

/* `slice_count` slices that add 1 to each of their int32 elements. */
struct increments {
    struct update_slice *slices;
    int32_t *values;
    int32_t ones[SLICE_ELEMENTS];
    uint32_t slice_count;
};

static void make_increments(struct increments *made, uint32_t slice_count)
{
    made->slice_count = slice_count;
    made->slices = calloc(slice_count, sizeof *made->slices);
    made->values = calloc((size_t)slice_count * SLICE_ELEMENTS, sizeof *made->values);
    assert_true(made->slices != NULL && made->values != NULL);
    for (size_t i = 0; i < SLICE_ELEMENTS; i++)
        made->ones[i] = 1;
    for (size_t i = 0; i < slice_count; i++) {
        int32_t *const values = made->values + i * SLICE_ELEMENTS;
        made->slices[i] = (struct update_slice){
            .function = update_find(UPDATE_ASSIGN_ADD),
            .dtype = SUMAC_INT32,
            .count = SLICE_ELEMENTS,
            .value_out = values,
            .value_in = values,
            .gradient = made->ones,
        };
    }
}

static void check_and_free(struct increments *increments, int32_t expected)
{
    for (size_t i = 0; i < (size_t)increments->slice_count * SLICE_ELEMENTS; i++)
        assert_int_equal(increments->values[i], expected);
    free(increments->slices);
    free(increments->values);
}

static struct compute_pool *make_pool(uint32_t threads)
{
    struct compute_pool *pool = NULL;

    assert_true(compute_pool_create(threads, &pool));
    return pool;
}

static time_t now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Help until a job is finished. */
static uint64_t finish_one(struct compute_pool *pool)
{
    const time_t end_s = now_s() + PATIENCE_S;
    uint64_t job;

    while ((job = compute_pool_finished(pool)) == 0 && now_s() < end_s)
        compute_pool_help(pool);
    return job;
}

TEST(without_threads_the_owner_runs_every_slice)
{
    struct compute_pool *const pool = make_pool(0);
    struct increments increments;

    make_increments(&increments, 3);
    assert_true(compute_pool_submit(pool, 7, increments.slices, NULL, 3));

    for (int i = 0; i < 3; i++) {
        assert_int_equal(compute_pool_finished(pool), 0);
        assert_true(compute_pool_help(pool));
    }

    assert_false(compute_pool_help(pool));
    assert_int_equal(compute_pool_jobs(pool), 1);
    assert_int_equal(compute_pool_finished(pool), 7);
    assert_int_equal(compute_pool_jobs(pool), 0);
    assert_int_equal(compute_pool_finished(pool), 0);
    check_and_free(&increments, 1);
    compute_pool_destroy(pool);
}

/* ---- while a slice runs: the linker hands the pool's update_run to this one */

void __real_update_run(const struct update_slice *slice);
void __wrap_update_run(const struct update_slice *slice);

/* Asked for a finished job in the middle of each slice; NULL: none is asked. */
static struct compute_pool *asked_while_running;
static uint64_t finished_while_running;

void __wrap_update_run(const struct update_slice *slice)
{
    if (asked_while_running != NULL)
        finished_while_running += compute_pool_finished(asked_while_running);
    __real_update_run(slice);
}

TEST(a_job_is_not_finished_while_its_last_slice_runs)
{
    struct compute_pool *const pool = make_pool(0);
    struct increments increments;

    make_increments(&increments, 2);
    assert_true(compute_pool_submit(pool, 7, increments.slices, NULL, 2));

    asked_while_running = pool;
    const bool helped = compute_pool_help(pool) && compute_pool_help(pool);
    asked_while_running = NULL;

    assert_true(helped);
    assert_int_equal(finished_while_running, 0);
    assert_int_equal(compute_pool_finished(pool), 7);
    check_and_free(&increments, 1);
    compute_pool_destroy(pool);
}

TEST(jobs_are_given_back_in_the_order_they_were_submitted)
{
    struct compute_pool *const pool = make_pool(2);
    struct increments increments[5];

    for (uint32_t i = 0; i < 5; i++) {
        make_increments(&increments[i], 1 + 3 * i);
        assert_true(compute_pool_submit(
            pool, 100 + i, increments[i].slices, NULL, increments[i].slice_count));
    }

    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(finish_one(pool), 100 + i);

    for (uint32_t i = 0; i < 5; i++)
        check_and_free(&increments[i], 1);
    compute_pool_destroy(pool);
}

TEST(a_job_without_slices_is_finished_at_once)
{
    struct compute_pool *const pool = make_pool(1);

    assert_true(compute_pool_submit(pool, 3, NULL, NULL, 0));

    assert_int_equal(compute_pool_finished(pool), 3);
    compute_pool_destroy(pool);
}

/* More jobs than the ring starts with, submitted while others finish: it grows, and each slice runs
 * exactly once. */
TEST(thousands_of_jobs_run_each_slice_once)
{
    enum { JOBS = 3000, FINISHED_FIRST = 40, AT_ONCE = 300, SLICES = 4 };
    struct compute_pool *const pool = make_pool(3);
    struct increments *const increments = calloc(JOBS, sizeof *increments);
    assert_non_null(increments);
    uint64_t finished = 0;
    for (uint32_t i = 0; i < JOBS; i++) {
        make_increments(&increments[i], SLICES);
        assert_true(compute_pool_submit(pool, i + 1, increments[i].slices, NULL, SLICES));
        if (i < FINISHED_FIRST || compute_pool_jobs(pool) == AT_ONCE)
            assert_int_equal(finish_one(pool), ++finished);
    }

    while (finished < JOBS)
        assert_int_equal(finish_one(pool), ++finished);

    for (uint32_t i = 0; i < JOBS; i++)
        check_and_free(&increments[i], 1);
    free(increments);
    compute_pool_destroy(pool);
}

/* The threads run all of a job while the owner only asks; they fall asleep between two, and are
 * woken. */
TEST(threads_work_without_the_owners_help)
{
    enum { TIMES = 500 };
    struct compute_pool *const pool = make_pool(1);
    struct increments increments;
    make_increments(&increments, 8);
    const time_t end_s = now_s() + PATIENCE_S;

    for (int i = 0; i < TIMES; i++) {
        assert_true(compute_pool_submit(pool, 1, increments.slices, NULL, 8));
        while (compute_pool_finished(pool) == 0) {
            assert_true(now_s() < end_s); /* they were woken */
            sched_yield();
        }
    }

    check_and_free(&increments, TIMES);
    compute_pool_destroy(pool);
}

/* Signals that the thread whose folder in /proc is `task` blocks, a bit each; false: it is none of
 * the pool's. */
static bool blocked_by(const char *task, uint64_t *blocked)
{
    char path[64], line[256];
    bool is_compute = false, found = false;

    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", task);
    FILE *const file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        is_compute = is_compute || strcmp(line, "Name:\tsumac-compute\n") == 0;
        found = found || sscanf(line, "SigBlk: %" SCNx64, blocked) == 1;
    }
    if (file != NULL)
        fclose(file);
    return is_compute && found;
}

/* How many threads of pools there are, each of which blocks what ends a process. */
static uint32_t count_blocking(void)
{
    DIR *const tasks = opendir("/proc/self/task");

    assert_non_null(tasks);
    uint32_t seen = 0;
    for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        uint64_t blocked;
        if (!blocked_by(task->d_name, &blocked))
            continue;
        seen++;
        assert_true(blocked >> (SIGTERM - 1) & 1);
        assert_true(blocked >> (SIGINT - 1) & 1);
    }
    closedir(tasks);
    return seen;
}

/* The first of the tests: the threads of one that has failed stay. */
TEST(no_thread_of_the_pool_takes_a_signal)
{
    struct compute_pool *const pool = make_pool(3);

    const uint32_t seen = count_blocking();

    assert_int_equal(seen, 3);
    compute_pool_destroy(pool);
}

/* The jobs before it are done. */
TEST(a_job_for_which_there_is_no_memory_is_not_taken)
{
    struct compute_pool *const pool = make_pool(1);
    uint64_t taken = 0, finished = 0, last = 0;

    is_scarce = true;
    while (compute_pool_submit(pool, taken + 1, NULL, NULL, 0))
        taken++;
    is_scarce = false;

    assert_true(taken > 0);
    assert_int_equal(compute_pool_jobs(pool), taken);
    for (uint64_t job; (job = compute_pool_finished(pool)) != 0; last = job)
        finished++;
    assert_int_equal(finished, taken);
    assert_int_equal(last, taken);
    assert_true(compute_pool_submit(pool, 1, NULL, NULL, 0));
    assert_int_equal(compute_pool_finished(pool), 1);
    compute_pool_destroy(pool);
}
