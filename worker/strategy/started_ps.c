/* SPDX-License-Identifier: Apache-2.0 */
/* started_ps.c -- a ps for workers whose cluster has none. */
#define _GNU_SOURCE /* pipe2, environ */
#include "started_ps.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "member_jobs.h"
#include "text.h"

#define LOOK_MS 10u

/* ---- the cluster with it */

static const struct sumac_job *first_job(const struct sumac_cluster *cluster)
{
    const struct sumac_job *chief = cluster_members(cluster, "chief");

    return chief != NULL ? chief : sumac_cluster_job(cluster, "worker");
}

bool started_ps_is_ours(const struct sumac_cluster *cluster)
{
    const struct sumac_job *job = first_job(cluster);

    return job != NULL && cluster->task_type != NULL &&
           strcmp(cluster->task_type, job->name) == 0 && cluster->task_index == job->tasks[0].index;
}

/* Of a JSON text. */
static void print_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text > '\0' && *text < ' ')
            fprintf(file, "\\u%04x", (unsigned)*text);
        else
            fprintf(file, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    }
    fputc('"', file);
}

/* Its tasks, as a list, or by index, as they were given; that whose address the ps has gets one
 * that nobody dials. */
static void print_job(FILE *file, const struct sumac_job *job, const struct sumac_task *taken)
{
    print_text(file, job->name);
    fputs(job->sparse ? ": {" : ": [", file);
    for (uint32_t i = 0; i < job->task_count; i++) {
        const struct sumac_task *task = &job->tasks[i];
        fputs(i == 0 ? "" : ", ", file);
        if (job->sparse)
            fprintf(file, "\"%" PRIu32 "\": ", task->index);
        print_text(file, task == taken ? "started-the-ps:1" : task->address);
    }
    fputc(job->sparse ? '}' : ']', file);
}

/* TF_CONFIG's text. NULL: no memory. */
static char *print_cluster(const struct sumac_cluster *cluster, const char *type, uint32_t index)
{
    assert(first_job(cluster) != NULL);
    assert(type != NULL);
    const struct sumac_task *first = &first_job(cluster)->tasks[0];
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    if (file == NULL)
        return NULL;
    fputs("{\"cluster\": {\"ps\": [", file);
    print_text(file, first->address);
    fputc(']', file);
    for (uint32_t i = 0; i < cluster->job_count; i++) {
        fputs(", ", file);
        print_job(file, &cluster->jobs[i], first);
    }
    fputs("}, \"task\": {\"type\": ", file);
    print_text(file, type);
    fprintf(file, ", \"index\": %" PRIu32 "}}", index);
    if (fclose(file) == 0)
        return text;
    free(text);
    return NULL;
}

static enum sumac_status
check_cluster(const struct sumac_cluster *cluster, struct sumac_error *error)
{
    if (cluster_member_job(cluster->task_type) == NULL || first_job(cluster) == NULL)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "TF_CONFIG has no ps, and its task is %s; a strategy is of a chief or a worker: let "
            "\"task\" be {\"type\": \"worker\", \"index\": N}",
            cluster->task_type == NULL ? "none" : cluster->task_type);
    if (cluster->told_only_itself)
        return fail(
            error, SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
            "TF_CONFIG has no ps, and names this worker alone, which cannot tell where the first "
            "one starts a ps; add a job ps");
    return SUMAC_OK;
}

static enum sumac_status fail_for_memory(struct sumac_error *error)
{
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_OUT_OF_MEMORY, "no memory for a cluster");
}

enum sumac_status started_ps_cluster(
    const struct sumac_cluster *cluster, struct sumac_cluster *with, struct sumac_error *error)
{
    enum sumac_status status = check_cluster(cluster, error);

    if (status != SUMAC_OK)
        return status;
    char *text = print_cluster(cluster, cluster->task_type, cluster->task_index);
    status = text == NULL ? fail_for_memory(error) : sumac_cluster_parse(text, NULL, with, error);
    free(text);
    return status;
}

/* ---- started */

/* "TF_CONFIG=…" and all other variables. NULL: no memory. */
static char **make_environment(char *tf_config)
{
    size_t count = 0, kept = 0;

    while (environ[count] != NULL)
        count++;
    char **variables = calloc(count + 2, sizeof *variables);
    for (size_t i = 0; variables != NULL && i < count; i++)
        if (strncmp(environ[i], "TF_CONFIG=", strlen("TF_CONFIG=")) != 0)
            variables[kept++] = environ[i];
    if (variables != NULL)
        variables[kept] = tf_config;
    return variables;
}

/* The program beside this one, if it is there. */
static bool find_beside(char path[PATH_MAX])
{
    const ssize_t bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);

    if (bytes <= 0)
        return false;
    path[bytes] = '\0';
    char *after = strrchr(path, '/') + 1;
    (void)text_print(after, (size_t)(path + PATH_MAX - after), "sumac");
    return access(path, X_OK) == 0;
}

/* In the child: what may be called after a fork alone. */
static _Noreturn void become(const char *path, char *const *environment, pid_t parent, int failed)
{
    char *const words[] = {(char[]){"sumac"}, (char[]){"ps"}, NULL};

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent)
        (void)execvpe(path, words, environment);
    const int why = errno;
    (void)!write(failed, &why, sizeof why);
    _exit(127);
}

static enum sumac_status
start(const char *path, char *const *environment, pid_t *ps, struct sumac_error *error)
{
    const pid_t parent = getpid();
    int ends[2], why = 0;

    assert(path != NULL);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail(
            error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED, "no pipe for a ps: %s",
            strerror(errno));
    *ps = fork();
    if (*ps == 0)
        become(path, environment, parent, ends[1]);
    why = *ps < 0 ? errno : 0;
    (void)close(ends[1]);
    const bool started = *ps > 0 && read(ends[0], &why, sizeof why) <= 0; /* it is closed by exec */
    (void)close(ends[0]);
    if (started)
        return SUMAC_OK;
    if (*ps > 0)
        (void)waitpid(*ps, NULL, 0);
    return fail(
        error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED,
        "TF_CONFIG has no ps, and %s cannot be started as one: %s; install sumac beside this "
        "program or in PATH, or name it in SUMAC_PROGRAM",
        path, strerror(why));
}

enum sumac_status
started_ps_start(const struct sumac_cluster *cluster, pid_t *ps, struct sumac_error *error)
{
    char beside[PATH_MAX];
    const char *named = getenv("SUMAC_PROGRAM");
    char *config = print_cluster(cluster, "ps", 0), *variable = NULL;

    assert(started_ps_is_ours(cluster));
    if (config != NULL && asprintf(&variable, "TF_CONFIG=%s", config) < 0)
        variable = NULL;
    char **environment = variable == NULL ? NULL : make_environment(variable);
    const char *path = named != NULL && named[0] != '\0' ? named
                       : find_beside(beside)             ? beside
                                                         : "sumac";
    const enum sumac_status status =
        environment == NULL ? fail_for_memory(error) : start(path, environment, ps, error);
    free(environment);
    free(variable);
    free(config);
    return status;
}

void started_ps_wait(pid_t ps, uint32_t timeout_ms)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    uint64_t waited_ms = 0;

    assert(ps > 0);
    for (; waited_ms < timeout_ms; waited_ms += LOOK_MS) {
        if (waitpid(ps, NULL, WNOHANG) != 0)
            return;
        (void)nanosleep(&look, NULL);
    }
    (void)kill(ps, SIGTERM);
    (void)waitpid(ps, NULL, 0);
}
