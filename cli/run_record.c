/* SPDX-License-Identifier: Apache-2.0 */
/* run_record.c -- write, list and remove the records of runs. */
#include "run_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "error.h"
#include "json.h"
#include "run.h"

#define PATH_BYTES 512
#define RECORD_BYTES_MAX 65536

static void folder_path(char path[PATH_BYTES])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct stat found;

    if (runtime != NULL && runtime[0] == '/' && stat(runtime, &found) == 0)
        (void)snprintf(path, PATH_BYTES, "%s/sumac", runtime);
    else
        (void)snprintf(path, PATH_BYTES, "/tmp/sumac-%u", (unsigned)geteuid());
}

static void record_path(char path[PATH_BYTES])
{
    folder_path(path);
    const size_t bytes = strnlen(path, PATH_BYTES - 32);
    (void)snprintf(path + bytes, PATH_BYTES - bytes, "/run-%d.json", (int)getpid());
}

/* The folder is there, ours, and closed to others: /tmp is everybody's, and a record tells commands
 * whom to talk to. NOT_FOUND: it is not there. */
static enum sumac_status check_folder(const char *path, struct sumac_error *error)
{
    struct stat found;

    if (lstat(path, &found) != 0)
        return fail(
            error, errno == ENOENT ? SUMAC_NOT_FOUND : SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED,
            "%s: %s", path, strerror(errno));
    if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077) != 0)
        return fail(
            error, SUMAC_PERMISSION_DENIED, SUMAC_REASON_UNSPECIFIED,
            "%s is not a folder that only this user may open; remove it, or set XDG_RUNTIME_DIR",
            path);
    return SUMAC_OK;
}

/* When the process began, in the kernel's ticks since boot. 0: there is no such process. */
static uint64_t process_started(pid_t pid) { return run_process_field(pid, 22); }

static json_t *to_json(const struct run_record *record)
{
    json_t *const ps = json_array();

    for (uint32_t i = 0; i < record->ps_count; i++)
        json_add(ps, json_string(record->ps[i]));
    return JSON_OBJECT(
        {"pid", json_number((uint64_t)record->pid)}, {"started", json_number(record->started)},
        {"program", json_string(record->program)}, {"ps", ps});
}

/* Takes  whole. */
static bool from_json(json_t *whole, struct run_record *record)
{
    const json_t *const ps = json_object_get(whole, "ps");
    const char *const program = json_string_value(json_object_get(whole, "program"));

    *record = (struct run_record){
        .pid = (pid_t)json_integer_value(json_object_get(whole, "pid")),
        .started = (uint64_t)json_integer_value(json_object_get(whole, "started")),
    };
    (void)snprintf(record->program, sizeof record->program, "%s", program != NULL ? program : "");
    for (size_t i = 0; i < json_array_size(ps) && i < RUN_RECORD_PS_MAX; i++) {
        const char *const address = json_string_value(json_array_get(ps, i));
        (void)snprintf(
            record->ps[record->ps_count++], RUN_RECORD_ADDRESS_BYTES, "%s",
            address != NULL ? address : "");
    }
    json_decref(whole);
    return record->pid > 0 && record->ps_count > 0;
}

enum sumac_status run_record_write(struct run_record *record, struct sumac_error *error)
{
    char path[PATH_BYTES];

    folder_path(path);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return fail(
            error, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, "%s: %s", path, strerror(errno));
    const enum sumac_status status = check_folder(path, error);
    if (status != SUMAC_OK)
        return status;
    record->pid = getpid();
    record->started = process_started(record->pid);
    record_path(path);
    (void)unlink(path); /* of a process that had our number */
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    const bool written = file != NULL && json_print(to_json(record), false, file);
    if (file == NULL || fclose(file) != 0 || !written)
        return fail(
            error, SUMAC_UNAVAILABLE, SUMAC_REASON_UNSPECIFIED, "%s: %s", path, strerror(errno));
    return SUMAC_OK;
}

void run_record_remove(void)
{
    char path[PATH_BYTES];

    record_path(path);
    (void)unlink(path);
}

/* The record in a file of the folder; false, and the file is removed, when its process is gone. */
static bool read_record(const char *path, struct run_record *record)
{
    static const mode_t regular = S_IFREG;
    struct stat found;

    if (lstat(path, &found) != 0 || (found.st_mode & S_IFMT) != regular ||
        found.st_size > RECORD_BYTES_MAX)
        return false;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const bool readable = from_json(json_loadf(file, 0, NULL), record);
    (void)fclose(file);
    if (!readable)
        return false; /* it is being written */
    if (process_started(record->pid) == record->started)
        return true;
    (void)unlink(path);
    return false;
}

enum sumac_status
run_record_list(struct run_record **records, uint32_t *count, struct sumac_error *error)
{
    char folder[PATH_BYTES];

    folder_path(folder);
    *records = NULL;
    *count = 0;
    const enum sumac_status status = check_folder(folder, error);
    if (status != SUMAC_OK)
        return status == SUMAC_NOT_FOUND ? SUMAC_OK : status;
    DIR *listing = opendir(folder);
    struct run_record *found = cli_alloc(RUN_RECORDS_MAX, sizeof *found);
    uint32_t used = 0;
    struct dirent *entry = NULL;
    while (listing != NULL && used < RUN_RECORDS_MAX && (entry = readdir(listing)) != NULL) {
        char path[PATH_BYTES + 256];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strncmp(entry->d_name, "run-", 4) == 0 && read_record(path, &found[used]))
            used++;
    }
    if (listing != NULL)
        closedir(listing);
    *records = found;
    *count = used;
    return SUMAC_OK;
}
