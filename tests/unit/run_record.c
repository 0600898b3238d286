/* SPDX-License-Identifier: Apache-2.0 */
/* run_record.c -- the records of runs: found while their process lives, and taken for no
 * other's. */
#include <inttypes.h>

#include "unit.h"
#include <sys/stat.h>
#include <unistd.h>

#include "run_record.h"

/* A folder of its own for the records, as XDG_RUNTIME_DIR says it. */
struct place {
    char runtime[64], folder[80], record[160];
};

static int set_up(void **state)
{
    struct place *const place = calloc(1, sizeof *place);

    assert_non_null(place);
    strcpy(place->runtime, "/tmp/sumac-records-XXXXXX");
    assert_non_null(mkdtemp(place->runtime));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", place->runtime, 1), 0);
    snprintf(place->folder, sizeof place->folder, "%s/sumac", place->runtime);
    snprintf(place->record, sizeof place->record, "%s/run-%d.json", place->folder, (int)getpid());
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *const place = *state;

    (void)unlink(place->record);
    (void)rmdir(place->folder);
    assert_int_equal(rmdir(place->runtime), 0);
    free(place);
    return 0;
}

static struct run_record write_one(void)
{
    struct run_record record = {.program = "train", .ps_count = 1, .ps = {"127.0.0.1:4711"}};
    struct sumac_error error = {0};

    assert_int_equal(run_record_write(&record, &error), SUMAC_OK);
    return record;
}

static uint32_t count_runs(void)
{
    struct run_record *records = NULL;
    uint32_t count = 0;
    struct sumac_error error = {0};

    assert_int_equal(run_record_list(&records, &count, &error), SUMAC_OK);
    return count;
}

FIXTURE_TEST(
    a_record_is_found_while_its_process_lives, struct place *const place, set_up, tear_down)
{
    const struct run_record written = write_one();
    struct run_record *records = NULL;
    uint32_t count = 0;
    struct sumac_error error = {0};

    assert_int_equal(run_record_list(&records, &count, &error), SUMAC_OK);

    assert_int_equal(count, 1);
    assert_int_equal(records[0].pid, getpid());
    assert_true(written.started != 0 && records[0].started == written.started);
    assert_string_equal(records[0].program, "train");
    assert_string_equal(records[0].ps[0], "127.0.0.1:4711");
    run_record_remove();
    assert_int_equal(count_runs(), 0);
}

/* A run that was killed leaves its record, and the system gives its number to another process. */
FIXTURE_TEST(
    a_record_is_not_of_a_later_process_with_the_same_number, struct place *const place, set_up,
    tear_down)
{
    const struct run_record written = write_one();
    FILE *const file = fopen(place->record, "w"); /* given */

    assert_non_null(file);
    fprintf(
        file, "{\"pid\": %d, \"started\": %" PRIu64 ", \"program\": \"train\", \"ps\": [\"h:1\"]}",
        (int)getpid(), written.started - 1);
    assert_int_equal(fclose(file), 0);

    assert_int_equal(count_runs(), 0); /* when, then */

    assert_int_equal(access(place->record, F_OK), -1);
}

static void write_text(const char *path, const char *text)
{
    FILE *const file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A process that was killed may have had our number. */
FIXTURE_TEST(
    a_record_takes_the_place_of_what_is_there, struct place *const place, set_up, tear_down)
{
    assert_int_equal(count_runs(), 0); /* there is no folder yet */
    (void)write_one();
    write_text(place->record, "{}");
    (void)write_one();
    assert_int_equal(count_runs(), 1);
}

/* Only records are read, and no more of them, or of their ps, than the list holds. */
FIXTURE_TEST(what_is_no_record_is_left_alone, struct place *const place, set_up, tear_down)
{
    static char text[RUN_RECORD_PS_MAX * 16];
    char path[160], link[160];
    struct run_record *records = NULL;
    struct sumac_error error = {0};
    uint32_t count = 0;
    const struct run_record written = write_one();

    size_t used = (size_t)snprintf(
        text, sizeof text, "{\"pid\": %d, \"started\": %" PRIu64 ", \"ps\": [\"h:1\"",
        (int)getpid(), written.started);
    for (int i = 0; i < RUN_RECORD_PS_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ", \"h:2\"");
    (void)snprintf(text + used, sizeof text - used, "]}");
    (void)snprintf(path, sizeof path, "%s/other.json", place->folder);
    (void)snprintf(link, sizeof link, "%s/run-0.json", place->folder);
    write_text(path, text);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(count_runs(), 1);

    assert_int_equal(rename(path, place->record), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(run_record_list(&records, &count, &error), SUMAC_OK);
    assert_int_equal(count, 1);
    assert_int_equal(records[0].ps_count, RUN_RECORD_PS_MAX);

    for (int i = 0; i < RUN_RECORDS_MAX; i++) {
        (void)snprintf(path, sizeof path, "%s/run-x%d.json", place->folder, i);
        write_text(path, text);
    }
    assert_int_equal(count_runs(), RUN_RECORDS_MAX);
    for (int i = 0; i < RUN_RECORDS_MAX; i++) {
        (void)snprintf(path, sizeof path, "%s/run-x%d.json", place->folder, i);
        assert_int_equal(unlink(path), 0);
    }
}

/* Each has this process's number. */
FIXTURE_TEST(
    a_record_with_values_of_other_types_is_no_run, struct place *const place, set_up, tear_down)
{
    static const char *const ends[] = {
        ", \"program\": 1, \"ps\": \"h:1\"}", ", \"ps\": {}}", ", \"ps\": [\"h:1\"", "}"};
    const struct run_record written = write_one();
    char text[256];

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        (void)snprintf(
            text, sizeof text, "{\"pid\": %d, \"started\": %" PRIu64 "%s", (int)getpid(),
            written.started, ends[i]);
        write_text(place->record, text);
        assert_int_equal(count_runs(), 0);
    }
    write_text(place->record, "{\"pid\": \"7\", \"started\": 1, \"ps\": [\"h:1\"]}");
    assert_int_equal(count_runs(), 0);
}

/* A relative XDG_RUNTIME_DIR is ignored. */
FIXTURE_TEST(
    a_folder_below_the_present_one_is_not_the_users, struct place *const place, set_up, tear_down)
{
    struct run_record *records = NULL;
    struct sumac_error error = {0};
    char before[512];
    uint32_t count = 0;

    (void)write_one();
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(place->runtime), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", ".", 1), 0);

    const enum sumac_status status = run_record_list(&records, &count, &error);

    assert_int_equal(setenv("XDG_RUNTIME_DIR", place->runtime, 1), 0);
    assert_int_equal(chdir(before), 0);
    for (uint32_t i = 0; status == SUMAC_OK && i < count; i++)
        assert_int_not_equal(records[i].pid, getpid());
}

FIXTURE_TEST(
    a_record_is_its_users_alone_and_has_every_ps, struct place *const place, set_up, tear_down)
{
    struct run_record record = {.program = "train", .ps_count = RUN_RECORD_PS_MAX};
    struct run_record *records = NULL;
    struct sumac_error error = {0};
    struct stat found;
    uint32_t count = 0;

    for (uint32_t i = 0; i < RUN_RECORD_PS_MAX; i++)
        snprintf(record.ps[i], sizeof record.ps[i], "127.0.0.1:%u", i + 1);
    const mode_t before = umask(0);
    assert_int_equal(run_record_write(&record, &error), SUMAC_OK);
    (void)umask(before);

    assert_int_equal(stat(place->record, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(stat(place->folder, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0700);
    assert_int_equal(run_record_list(&records, &count, &error), SUMAC_OK);
    assert_int_equal(records[0].ps_count, RUN_RECORD_PS_MAX);
    assert_string_equal(records[0].ps[RUN_RECORD_PS_MAX - 1], "127.0.0.1:256");
}

/* What others may write to could name anybody's ps. */
FIXTURE_TEST(
    a_folder_that_others_may_open_or_lead_elsewhere_is_refused, struct place *const place, set_up,
    tear_down)
{
    struct run_record record = {.program = "train", .ps_count = 1, .ps = {"127.0.0.1:4711"}};
    struct run_record *records = NULL;
    struct sumac_error error = {0};
    char elsewhere[96];
    uint32_t count = 0;

    (void)write_one();
    for (mode_t mode = 0701; mode <= 0740; mode = mode == 0701   ? 0710
                                                  : mode == 0710 ? 0740
                                                                 : 01000) {
        assert_int_equal(chmod(place->folder, mode), 0);
        assert_int_equal(run_record_list(&records, &count, &error), SUMAC_PERMISSION_DENIED);
        assert_int_equal(run_record_write(&record, &error), SUMAC_PERMISSION_DENIED);
    }
    assert_int_equal(chmod(place->folder, 0700), 0);
    if (geteuid() == 0) { /* who else can give it away? */
        assert_int_equal(chown(place->folder, 1, (gid_t)-1), 0);
        assert_int_equal(run_record_list(&records, &count, &error), SUMAC_PERMISSION_DENIED);
        assert_int_equal(chown(place->folder, 0, (gid_t)-1), 0);
    }
    snprintf(elsewhere, sizeof elsewhere, "%s/other", place->runtime);
    assert_int_equal(rename(place->folder, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, place->folder), 0);
    assert_int_equal(run_record_list(&records, &count, &error), SUMAC_PERMISSION_DENIED);
    assert_int_equal(unlink(place->folder), 0);
    assert_int_equal(rename(elsewhere, place->folder), 0);
    assert_int_equal(count_runs(), 1);
}

/* Whatever it is, it is no record of ours. */
FIXTURE_TEST(a_file_that_is_too_large_is_left_alone, struct place *const place, set_up, tear_down)
{
    (void)write_one();
    FILE *const file = fopen(place->record, "a");
    assert_non_null(file);
    for (int i = 0; i < 65536; i++)
        fputc(' ', file);
    assert_int_equal(fclose(file), 0);

    assert_int_equal(count_runs(), 0);

    assert_int_equal(access(place->record, F_OK), 0);
}
