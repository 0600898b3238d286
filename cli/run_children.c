/* SPDX-License-Identifier: Apache-2.0 */
/* run_children.c -- start the processes of a run, and bury them with all that they leave. */
#define _GNU_SOURCE /* pipe2, close_range */
#include "run.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "command.h"
#include "json.h"

struct run_name run_child_name(const struct run_child *child)
{
    struct run_name name;

    (void)snprintf(
        name.text, sizeof name.text, "%s %u", child->is_ps ? "ps" : "worker", child->index);
    return name;
}

/* ---- the keeper: a process between `sumac run` and a worker. It leaves nothing of the worker
 * behind.
 *
 *     sumac run --- keeper --- worker, which leads a process group --- its children.
 *
 * A process that the worker starts, in a group or session of its own too, is the keeper's child
 * once its parent has ended, and never init's (PR_SET_CHILD_SUBREAPER). When the worker or `sumac
 * run` has ended, even if it was killed, the keeper kills all children that it still has. If a
 * keeper is killed itself, `sumac run` inherits its processes, and kills them when the run ends. A
 * keeper ends with the worker's code, and passes on to the worker's process group every signal that
 * it is sent.
 */

/* Kills the worker and all that it started: a keeper cannot pass on SIGKILL itself. */
#define KEEPER_KILLS SIGALRM

/* How often children that are there, but that we may not kill (a program of another user), are
 * asked for in vain. */
#define VAIN_TRIES_MAX 100
#define VAIN_TRY_NS 10000000

uint64_t run_process_field(pid_t pid, int field)
{
    char path[64], text[1024];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[bytes] = '\0';
    const char *at = strrchr(text, ')'); /* field 2 is the name, which may hold anything */
    for (int number = 2; at != NULL && number < field; number++)
        at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/* True: there was one at least, and it may be waited for. */
static bool kill_children(void)
{
    DIR *processes = opendir("/proc");
    bool some = false;

    if (processes == NULL)
        return false;
    for (struct dirent *entry = readdir(processes); entry != NULL; entry = readdir(processes)) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10); /* 0: it is no process's */
        if (pid > 0 && run_process_field(pid, 4) == (uint64_t)getpid())
            some |= kill(pid, SIGKILL) == 0;
    }
    closedir(processes);
    return some;
}

/* Until no child is left: with each that ends, its own children become ours. Gives back how the
 * worker ended. */
static int bury_all(pid_t worker)
{
    int worker_status = 0;

    for (int vain = 0; vain < VAIN_TRIES_MAX;) {
        int status = 0;
        const bool some = kill_children();
        const pid_t ended = waitpid(-1, &status, some ? 0 : WNOHANG);
        if (ended == worker)
            worker_status = status;
        if (ended < 0 && errno == ECHILD)
            break;
        if (ended <= 0) {
            vain++;
            (void)nanosleep(&(struct timespec){.tv_nsec = VAIN_TRY_NS}, NULL);
        }
    }
    return worker_status;
}

/* Bury those that were left to us and have ended. True: the worker has ended, and is not buried
 * yet: until then its number is its group's. */
static bool worker_has_ended(pid_t worker)
{
    siginfo_t info = {0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        if (info.si_pid == worker)
            return true;
        (void)waitpid(info.si_pid, NULL, 0);
        info.si_pid = 0;
    }
    return false;
}

/* Pass signals on to the worker's group until the worker, or `run`, has ended. */
static void watch(pid_t run, pid_t worker, const sigset_t *signals)
{
    while (!worker_has_ended(worker)) {
        const int number = sigwaitinfo(signals, NULL);
        if (number == KEEPER_KILLS || getppid() != run)
            return;
        if (number > 0 && number != SIGCHLD)
            (void)kill(-worker, number);
    }
}

/* Called in a child of process `run`, which has one thread: become a keeper, and fork. Returns in
 * the worker-to-be only, whose parent the keeper is. */
static void fork_worker(pid_t run)
{
    sigset_t signals;

    sigfillset(&signals);
    (void)sigprocmask(SIG_SETMASK, &signals, NULL);
    signal(SIGCHLD, SIG_DFL);
    (void)prctl(PR_SET_NAME, "sumac-keeper");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* wakes it; that `run` is gone it sees by itself */
    const pid_t worker = getppid() == run ? fork() : -1;
    if (worker == 0)
        return;
    if (worker < 0) {
        dprintf(STDERR_FILENO, "cannot be started: %s\n", strerror(errno));
        _exit(EXIT_FAILURE);
    }
    setpgid(worker, worker); /* on both sides, as the order is not known */
    close_range(STDERR_FILENO + 1, ~0U, 0);
    watch(run, worker, &signals);
    (void)kill(-worker, SIGKILL);
    const int status = bury_all(worker);
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

bool run_keeper_adopt(void)
{
    siginfo_t info = {0};
    const bool childless =
        waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;

    assert(info.si_pid == 0 || !childless);
    return childless && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

void run_keeper_bury(void) { (void)bury_all(0); }

/* ---- the processes */

/* The cluster as every process's TF_CONFIG tells it, and which task this one is. Gives  text to
 * free. */
static char *tf_config(const struct run_plan *plan, const struct run_child *child)
{
    json_t *const ps = json_array(), *const workers = json_array();

    for (uint32_t i = 0; i < plan->ps_count + plan->worker_count; i++)
        json_add(
            i < plan->ps_count ? ps : workers, json_sprintf("%s:%u", plan->host, plan->ports[i]));
    json_t *const cluster = JSON_OBJECT({"ps", ps}, {"worker", workers});
    json_t *const task = JSON_OBJECT(
        {"type", json_string(child->is_ps ? "ps" : "worker")},
        {"index", json_number(child->index)});
    json_t *const whole = JSON_OBJECT({"cluster", cluster}, {"task", task});
    char *const text = json_dumps(whole, 0);
    json_decref(whole);
    return cli_need(text);
}

/* In the child, up to exec: only what may be called after a fork. */
static _Noreturn void
become(const struct run_plan *plan, const struct run_child *child, pid_t parent)
{
    sigset_t none;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL); /* what is ignored stays so through exec */
    signal(SIGINT, SIG_DFL);  /* a shell ignores these two for what it starts in the background */
    signal(SIGQUIT, SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE); /* it was killed before it could be said */
    /* Those of the command line come last: they count. When `sumac run` tells a ps to terminate,
     * its workers have ended, and nothing more comes. */
    char *ps_words[RUN_PS_WORDS_MAX + 8] = {
        (char[]){"sumac"},          (char[]){"ps"},
        (char[]){"--bind"},         (char *)(uintptr_t)plan->host,
        (char[]){"--terminate-ms"}, (char[]){"1000"}};
    for (int i = 0; plan->ps_words[i] != NULL; i++)
        ps_words[6 + i] = plan->ps_words[i];
    const char *const program = child->is_ps ? "/proc/self/exe" : plan->program[0];
    execvp(program, child->is_ps ? ps_words : plan->program);
    dprintf(STDERR_FILENO, "%s: %s\n", program, strerror(errno));
    _exit(errno == ENOENT ? 127 : 126); /* as shells say it */
}

/* NULL: the variable stays as it is in this process's environment. */
static bool set(const char *name, const char *value)
{
    return value == NULL || setenv(name, value, 1) == 0;
}

static bool set_environment(const struct run_plan *plan, const struct run_child *child)
{
    char number[16];
    char *const config = tf_config(plan, child);

    (void)snprintf(number, sizeof number, "%u", plan->replicas);
    const bool all_set = set("TF_CONFIG", config) && set("SUMAC_RUN", plan->run) &&
                         set("SUMAC_REPLICAS", plan->replicas != 0 ? number : NULL) &&
                         set("SUMAC_DEVICES", plan->devices) &&
                         set("SUMAC_SYNCHRONOUS", plan->synchronous ? "1" : NULL) &&
                         set("SUMAC_TRACE", plan->trace) && set("SUMAC_PROGRESS", "1");
    free(config);
    return all_set;
}

static void make_outputs(struct cluster_run *run, struct run_child *child)
{
    for (int i = 0; i < 2; i++) {
        child->output[i] = cli_alloc(1, sizeof *child->output[i]);
        child->output[i]->screen = &run->screens[i];
        (void)snprintf(
            child->output[i]->label, sizeof child->output[i]->label, "%-9.20s| ",
            run_child_name(child).text);
    }
}

/* In the child: a ps goes on as itself, a worker in a child of its keeper. */
static _Noreturn void
go_on(const struct cluster_run *run, const struct run_child *child, pid_t parent)
{
    setpgid(0, 0);
    if (!child->is_ps) {
        const pid_t keeper = getpid();
        fork_worker(parent);
        setpgid(0, 0);
        parent = keeper;
    }
    become(run->plan, child, parent);
}

static bool start(struct cluster_run *run, struct run_child *child)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};

    child->pipe[0] = child->pipe[1] = -1;
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const pid_t parent = getpid();
    make_outputs(run, child);
    bool started = nothing >= 0 && pipe2(out, O_CLOEXEC) == 0 &&
                   (run->one_screen || pipe2(err, O_CLOEXEC) == 0) &&
                   set_environment(run->plan, child);
    if (started) {
        child->pid = fork();
        if (child->pid == 0) {
            (void)dup2(nothing, STDIN_FILENO);
            (void)dup2(out[1], STDOUT_FILENO);
            (void)dup2(run->one_screen ? out[1] : err[1], STDERR_FILENO);
            go_on(run, child, parent);
        }
        started = child->pid > 0;
    }
    if (started) {
        setpgid(child->pid, child->pid); /* both sides: whoever comes first */
        child->pipe[0] = out[0];
        child->pipe[1] = err[0];
        (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
        if (err[0] >= 0)
            (void)fcntl(err[0], F_SETFL, O_NONBLOCK);
        out[0] = err[0] = -1;
    }
    const int reason = errno;
    const int rest[] = {nothing, out[0], out[1], err[0], err[1]};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        if (rest[i] >= 0)
            (void)close(rest[i]);
    errno = reason;
    return started;
}

bool run_start(struct cluster_run *run, const struct run_plan *plan)
{
    run->plan = plan;
    run->child_count = plan->ps_count + plan->worker_count;
    for (uint32_t i = 0; i < run->child_count; i++) {
        struct run_child *child = &run->children[i];
        child->is_ps = i < plan->ps_count;
        child->index = child->is_ps ? i : i - plan->ps_count;
        if (start(run, child))
            continue;
        (void)command_say(
            &run_command, EXIT_FAILED, "%s could not be started: %s", run_child_name(child).text,
            strerror(errno));
        child->pid = 0;
        run->child_count = i + 1;
        run_signal(run, true, SIGKILL);
        run_signal(run, false, SIGKILL);
        for (uint32_t j = 0; j < i; j++)
            (void)waitpid(run->children[j].pid, NULL, 0);
        run_deinit(run);
        return false;
    }
    return true;
}

void run_signal(struct cluster_run *run, bool ps, int signal_number)
{
    for (uint32_t i = 0; i < run->child_count; i++) {
        const struct run_child *child = &run->children[i];
        if (child->is_ps == ps && child->pid > 0 && !child->ended)
            (void)kill(-child->pid, !ps && signal_number == SIGKILL ? KEEPER_KILLS : signal_number);
    }
}

/* The process is looked at before it is buried: until then its number is its group's, and nobody
 * else's. */
void run_reap(struct cluster_run *run)
{
    for (uint32_t i = 0; i < run->child_count; i++) {
        struct run_child *child = &run->children[i];
        siginfo_t info = {0};
        if (child->ended || child->pid == 0 ||
            waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0)
            continue;
        (void)kill(-child->pid, SIGKILL);
        int status = 0;
        (void)waitpid(child->pid, &status, 0);
        child->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        child->ended = true;
    }
}

void run_deinit(struct cluster_run *run)
{
    for (uint32_t i = 0; i < run->child_count; i++)
        for (int j = 0; j < 2; j++) {
            struct run_child *child = &run->children[i];
            if (child->pipe[j] >= 0)
                (void)close(child->pipe[j]);
        }
    run->child_count = 0;
    for (int i = 0; i < 2; i++)
        run_screen_close(&run->screens[i]);
}
