/* SPDX-License-Identifier: Apache-2.0 */
/* run_keeper.c -- the process between `sumac run` and a worker, which leaves nothing of the
 * worker's behind.
 *
 *     sumac run --- keeper --- worker, who leads a process group --- what it starts
 *
 * Whatever the worker starts, in a group or session of its own too, is the keeper's child once its
 * parent has ended, and never init's (PR_SET_CHILD_SUBREAPER). So when the worker has ended, or
 * `sumac run` has (killed, even), what the keeper still has for children is all there is, and is
 * killed. If a keeper is killed itself, `sumac run` inherits its processes, and kills them when the
 * run ends.
 */
#define _GNU_SOURCE /* close_range */
#include "run.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
        if (number == RUN_KEEPER_KILLS || getppid() != run)
            return;
        if (number > 0 && number != SIGCHLD)
            (void)kill(-worker, number);
    }
}

void run_keeper_fork(pid_t run)
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
    setpgid(worker, worker); /* both sides: whoever comes first */
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
