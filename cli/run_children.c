/* SPDX-License-Identifier: Apache-2.0 */
/* run_children.c -- start the processes of a run, and bury them. */
#define _GNU_SOURCE /* pipe2 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc.h"
#include "command.h"

struct run_name run_child_name(const struct run_child *child)
{
    struct run_name name;

    (void)snprintf(
        name.text, sizeof name.text, "%s %u", child->is_ps ? "ps" : "worker", child->index);
    return name;
}

/* The cluster as every process's TF_CONFIG tells it, and which task this one is. Gives  text to
 * free. */
static char *tf_config(const struct run_plan *plan, const struct run_child *child)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const file = cli_need(open_memstream(&text, &bytes));

    fputs("{\"cluster\": {\"ps\": [", file);
    for (uint32_t i = 0; i < plan->ps_count + plan->worker_count; i++)
        fprintf(
            file, "%s\"%s:%u\"",
            i == 0                ? ""
            : i == plan->ps_count ? "], \"worker\": ["
                                  : ", ",
            plan->host, plan->ports[i]);
    fprintf(
        file, "]}, \"task\": {\"type\": \"%s\", \"index\": %u}}", child->is_ps ? "ps" : "worker",
        child->index);
    return cli_need(fclose(file) == 0 ? text : NULL);
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
    if (child->is_ps) {
        char *words[RUN_PS_WORDS_MAX + 8] = {
            (char[]){"sumac"}, (char[]){"ps"}, (char[]){"--bind"}, (char *)(uintptr_t)plan->host};
        for (int i = 0; plan->ps_words[i] != NULL; i++)
            words[4 + i] = plan->ps_words[i];
        execv("/proc/self/exe", words);
    } else {
        execvp(plan->program[0], plan->program);
    }
    const char *program = child->is_ps ? "/proc/self/exe" : plan->program[0];
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
        run_keeper_fork(parent);
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
            (void)kill(
                -child->pid, !ps && signal_number == SIGKILL ? RUN_KEEPER_KILLS : signal_number);
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
