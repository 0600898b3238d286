/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.c -- a strategy from the environment joins its cluster and leaves it. If the cluster
 * has no ps, its first worker starts one on its own task's address, where the others find it.
 *
 * The ps begins with a pipe as its standard error. This process copies the pipe to its own standard
 * error, so the last line is known if the ps ends. That line is held back, for a second at most: if
 * the ps ends with it, the worker's error says it. A ps that listens sends a zero byte and logs to
 * the descriptor in SUMAC_LOG_FD from then on: this process's own standard error.
 */
#define _GNU_SOURCE /* pipe2, environ */
#include "strategy.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "loopback.h"
#include "member_jobs.h"
#include "text.h"

#define LOOK_MS 10u
#define ENDING_MS 1000u     /* from its last output to its end */
#define LISTENING_MS 60000u /* from its start to its port */

/* ---- the cluster with it */

static const struct sumac_job *first_job(const struct sumac_cluster *cluster)
{
    const struct sumac_job *chief = cluster_members(cluster, "chief");

    return chief != NULL ? chief : sumac_cluster_job(cluster, "worker");
}

/* Is this process's task the one that starts it: the chief, or the first worker without one? */
static bool starts_ps(const struct sumac_cluster *cluster)
{
    const struct sumac_job *job = first_job(cluster);

    return job != NULL && cluster->task_type != NULL &&
           strcmp(cluster->task_type, job->name) == 0 && cluster->task_index == job->tasks[0].index;
}

/* In a JSON text. */
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

/* The job's tasks, as a list, or by index, as they were given. The task whose address the ps has
 * gets an address that no process dials. */
static void print_job(FILE *file, const struct sumac_job *job, const struct sumac_task *taken)
{
    print_text(file, job->name);
    fputs(job->sparse ? ": {" : ": [", file);
    for (uint32_t i = 0; i < job->task_count; i++) {
        const struct sumac_task *task = &job->tasks[i];
        fputs(i == 0 ? "" : ", ", file);
        if (job->sparse)
            fprintf(file, "\"%" PRIu32 "\": ", task->index);
        print_text(file, task == taken ? STARTER_ADDRESS : task->address);
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
        return fail_argument(
            error,
            "TF_CONFIG has no ps, and its task is %s; a strategy is of a chief or a worker: let "
            "\"task\" be {\"type\": \"worker\", \"index\": N}",
            cluster->task_type == NULL ? "none" : cluster->task_type);
    if (cluster->told_only_itself)
        return fail_argument(
            error,
            "TF_CONFIG has no ps, and names this worker alone, which cannot tell where the first "
            "one starts a ps; add a job ps");
    return SUMAC_OK;
}

static enum sumac_status open_pipe(int ends[2], struct sumac_error *error)
{
    if (pipe2(ends, O_CLOEXEC) == 0)
        return SUMAC_OK;
    return fail(
        error, SUMAC_RESOURCE_EXHAUSTED, SUMAC_REASON_UNSPECIFIED, "no pipe for a ps: %s",
        strerror(errno));
}

static enum sumac_status no_memory(struct sumac_error *error)
{
    return fail_for_memory(error, "no memory for a cluster");
}

/* The cluster as it is with the ps that its first worker starts; each worker makes the same.
 * Gives    *with; release with sumac_cluster_deinit.
 * Fails    INVALID_ARGUMENT: the task is neither chief nor worker, or knows only itself.
 *          RESOURCE_EXHAUSTED. */
static enum sumac_status cluster_with_ps(
    const struct sumac_cluster *cluster, struct sumac_cluster *with, struct sumac_error *error)
{
    enum sumac_status status = check_cluster(cluster, error);

    if (status != SUMAC_OK)
        return status;
    char *text = print_cluster(cluster, cluster->task_type, cluster->task_index);
    status = text == NULL ? no_memory(error) : sumac_cluster_parse(text, NULL, with, error);
    free(text);
    return status;
}

/* ---- forked */

/* A ps under way to its port. */
struct start {
    pid_t ps;
    const char *path;
    int output; /* the pipe that is its standard error */
    int log;    /* where it logs once it listens */
    /* The last line that it printed and that is not empty, as much of it as fits. */
    char last[2048];
    size_t last_bytes;
    bool over;   /* another line is to come */
    bool copied; /* to this process's own standard error */
};

static bool is_own_variable(const char *variable)
{
    return strncmp(variable, "TF_CONFIG=", strlen("TF_CONFIG=")) == 0 ||
           strncmp(variable, "SUMAC_LOG_FD=", strlen("SUMAC_LOG_FD=")) == 0;
}

/* This process's variables, with these two. NULL: no memory. */
static char **make_environment(char *tf_config, char *log_fd)
{
    size_t count = 0, kept = 0;

    while (environ[count] != NULL)
        count++;
    char **variables = calloc(count + 3, sizeof *variables);
    for (size_t i = 0; variables != NULL && i < count; i++)
        if (!is_own_variable(environ[i]))
            variables[kept++] = environ[i];
    if (variables != NULL) {
        variables[kept++] = tf_config;
        variables[kept] = log_fd;
    }
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
static _Noreturn void become(
    const struct start *start, char *const *environment, pid_t parent, int error_output, int failed)
{
    char *const words[] = {(char[]){"sumac"}, (char[]){"ps"}, NULL};

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && fcntl(start->log, F_SETFD, 0) == 0 &&
        dup2(error_output, STDERR_FILENO) >= 0)
        (void)execvpe(start->path, words, environment);
    const int why = errno;
    (void)!write(failed, &why, sizeof why);
    _exit(127);
}

static enum sumac_status
fork_ps(struct start *start, char *const *environment, int error_output, struct sumac_error *error)
{
    const pid_t parent = getpid();
    int ends[2], why = 0;

    assert(start->path != NULL);
    if (open_pipe(ends, error) != SUMAC_OK)
        return SUMAC_RESOURCE_EXHAUSTED;
    start->ps = fork();
    if (start->ps == 0)
        become(start, environment, parent, error_output, ends[1]);
    why = start->ps < 0 ? errno : 0;
    (void)close(ends[1]);
    const bool started =
        start->ps > 0 && read(ends[0], &why, sizeof why) <= 0; /* it is closed by exec */
    (void)close(ends[0]);
    if (started)
        return SUMAC_OK;
    if (start->ps > 0)
        (void)waitpid(start->ps, NULL, 0);
    return fail(
        error, SUMAC_NOT_FOUND, SUMAC_REASON_UNSPECIFIED,
        "TF_CONFIG has no ps, and %s cannot be started as one: %s; install sumac beside this "
        "program or in PATH, or name it in SUMAC_PROGRAM",
        start->path, strerror(why));
}

/* ---- until it listens, or has ended */

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void copy_last(struct start *start)
{
    assert(start->last_bytes < sizeof start->last);
    if (start->last_bytes == 0 || start->copied)
        return;
    (void)!write(STDERR_FILENO, start->last, start->last_bytes);
    (void)!write(STDERR_FILENO, "\n", 1);
    start->copied = true;
}

/* Copy each line before the last. */
static void take_output(struct start *start, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n') {
            start->over = true;
            continue;
        }
        if (start->over) {
            copy_last(start);
            start->last_bytes = 0;
            start->over = start->copied = false;
        }
        if (start->last_bytes < sizeof start->last - 1)
            start->last[start->last_bytes++] = bytes[i];
        start->last[start->last_bytes] = '\0';
    }
}

/* Copy what the ps prints, except the last line if the output ends with that line. Returns whether
 * the ps listens; false: its output has ended, or the time is over. */
static bool copy_until_it_listens(struct start *start, uint64_t until_ms)
{
    struct pollfd output = {.fd = start->output, .events = POLLIN};
    char bytes[1024];

    assert(start->output >= 0);
    for (uint64_t now = now_ms(); now < until_ms; now = now_ms()) {
        const uint64_t left_ms = until_ms - now;
        const int ready = poll(&output, 1, (int)(left_ms < ENDING_MS ? left_ms : ENDING_MS));
        if (ready == 0 && start->over)
            copy_last(start); /* it does not end with that line */
        if (ready <= 0)
            continue; /* a signal, or the time is over */
        const ssize_t count = read(start->output, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        const char *zero = memchr(bytes, '\0', (size_t)count);
        take_output(start, bytes, zero == NULL ? (size_t)count : (size_t)(zero - bytes));
        if (zero != NULL) {
            copy_last(start);
            return true;
        }
    }
    copy_last(start);
    return false;
}

/* Waits so long for its end, at most; then it is ended. Returns its state as waitpid does. */
static int end_within(pid_t ps, uint32_t timeout_ms)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    int state = 0;

    assert(ps > 0);
    for (uint64_t waited_ms = 0; waited_ms < timeout_ms; waited_ms += LOOK_MS) {
        if (waitpid(ps, &state, WNOHANG) != 0)
            return state;
        (void)nanosleep(&look, NULL);
    }
    (void)kill(ps, SIGTERM);
    (void)waitpid(ps, &state, 0);
    return state;
}

/* What a ps that ended with this code did: only a code of 128 or more may be another the next time.
 */
static enum sumac_status fail_for_its_end(struct start *start, int state, struct sumac_error *error)
{
    const int code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    const char *blank = strchr(start->last, ' ');
    const bool stamped = blank != NULL && blank > start->last && blank[-1] == 'Z' &&
                         isdigit((unsigned char)start->last[0]);
    const char *said = stamped ? blank + 1 : start->last;

    const enum sumac_status status = fail(
        error, code >= 128 ? SUMAC_UNAVAILABLE : SUMAC_INVALID_ARGUMENT, SUMAC_REASON_UNSPECIFIED,
        "TF_CONFIG has no ps, and the one that this worker started (%s ps) ended with %d before it "
        "listened: %s",
        start->path, code, said[0] == '\0' ? "it printed no reason" : said);
    if (error == NULL || strstr(error->text, said) == NULL)
        copy_last(start); /* the error does not say all of it */
    return status;
}

static enum sumac_status wait_until_it_listens(struct start *start, struct sumac_error *error)
{
    const uint64_t until_ms = now_ms() + LISTENING_MS;

    assert(start->ps > 0);
    if (copy_until_it_listens(start, until_ms))
        return SUMAC_OK;
    const bool late = now_ms() >= until_ms;
    const int state = end_within(start->ps, late ? 0 : ENDING_MS);
    text_make_line(start->last);
    return late ? fail(
                      error, SUMAC_DEADLINE_EXCEEDED, SUMAC_REASON_TIMED_OUT,
                      "TF_CONFIG has no ps, and the one that this worker started (%s ps) did not "
                      "listen within %u s, and was ended; see what it waits for",
                      start->path, LISTENING_MS / 1000)
                : fail_for_its_end(start, state, error);
}

/* ---- started */

static enum sumac_status
start_ps(struct start *start, char *const *environment, struct sumac_error *error)
{
    int output[2];

    if (open_pipe(output, error) != SUMAC_OK)
        return SUMAC_RESOURCE_EXHAUSTED;
    start->output = output[0];
    enum sumac_status status = fork_ps(start, environment, output[1], error);
    (void)close(output[1]);
    if (status == SUMAC_OK)
        status = wait_until_it_listens(start, error);
    (void)close(output[0]);
    return status;
}

/* Start `sumac ps`: the program that SUMAC_PROGRAM names, or that beside this one, or in PATH. It
 * dies with the thread that calls this. Returns when the ps listens, or has ended.
 * Fails    NOT_FOUND: there is no such program. RESOURCE_EXHAUSTED. INVALID_ARGUMENT, or
 *          UNAVAILABLE for an exit code of 128 or more: the ps ended before it listened, and its
 *          last line is in the error. DEADLINE_EXCEEDED: it did not listen within 60 s. */
static enum sumac_status
start_own_ps(const struct sumac_cluster *cluster, pid_t *ps, struct sumac_error *error)
{
    char beside[PATH_MAX], log_fd[32];
    const char *named = getenv("SUMAC_PROGRAM");
    char *config = print_cluster(cluster, "ps", 0), *variable = NULL;
    struct start start = {.log = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};

    assert(starts_ps(cluster));
    if (start.log < 0) /* standard error is closed */
        start.log = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (config != NULL && asprintf(&variable, "TF_CONFIG=%s", config) < 0)
        variable = NULL;
    (void)text_print(log_fd, sizeof log_fd, "SUMAC_LOG_FD=%d", start.log);
    char **environment = variable == NULL ? NULL : make_environment(variable, log_fd);
    start.path = named != NULL && named[0] != '\0' ? named : find_beside(beside) ? beside : "sumac";
    const enum sumac_status status =
        environment == NULL ? no_memory(error) : start_ps(&start, environment, error);
    if (status == SUMAC_OK)
        *ps = start.ps;
    if (start.log >= 0)
        (void)close(start.log);
    free(environment);
    free(variable);
    free(config);
    return status;
}

/* ---- joined and left */

enum sumac_status surroundings_join(
    const struct sumac_cluster *cluster, struct surroundings *surroundings,
    struct sumac_error *error)
{
    const struct sumac_client_options options = {.cluster = cluster};

    assert(surroundings->client == NULL);
    return sumac_client_open(&options, &surroundings->client, error);
}

enum sumac_status surroundings_join_without_ps(
    const struct sumac_cluster *cluster, struct surroundings *surroundings,
    struct sumac_error *error)
{
    struct sumac_cluster with = {.job_count = 0};

    assert(surroundings->ps == 0);
    enum sumac_status status = cluster_with_ps(cluster, &with, error);

    if (status == SUMAC_OK && starts_ps(cluster))
        status = start_own_ps(cluster, &surroundings->ps, error);
    if (status == SUMAC_OK)
        status = surroundings_join(&with, surroundings, error);
    sumac_cluster_deinit(&with);
    return status;
}

enum sumac_status surroundings_leave(
    struct surroundings *surroundings, bool done, uint32_t timeout_ms, struct sumac_error *error)
{
    enum sumac_status status = SUMAC_OK;

    if (surroundings == NULL)
        return SUMAC_OK;
    if (surroundings->client != NULL && done) /* one that cannot leave is gone with its lease */
        status = sumac_client_leave(surroundings->client, SUMAC_LEAVING_DONE, error);
    sumac_client_close(surroundings->client);
    if (surroundings->ps > 0)
        (void)end_within(surroundings->ps, timeout_ms);
    free(surroundings);
    return status;
}
