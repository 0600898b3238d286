/* SPDX-License-Identifier: Apache-2.0 */
/* run_watch.c -- one loop over signals and output, and the order in which a run ends.
 *
 *     GOING --all workers have ended--> ENDING --patience--> ASKING --ps 0 has ended--> STOPPING_PS
 *     --all have-->
 *       |                                                                                   ^
 *       '--a failure, or a signal--> STOPPING --workers ended-------------------------------'
 *
 * Whether workers that exit with 0 have left as done is known to ps 0: its exit code says so,
 * whoever ended it. It is told to stop before the others: it ends the run on them, and one that
 * went first would be lost to it.
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"
#include "text.h"

/* How long the ps may take to end by themselves once the workers are done, and anybody after a
 * signal: a ps finishes what is in flight first, within 5 s by default. */
#define ENDING_MS 3000
#define STOPPING_MS 10000
/* Wait this long for output that something outside the process groups keeps open, and, after a
 * signal, for a reader of our output. */
#define LAST_OUTPUT_MS 1000

enum watch_phase { GOING, ENDING, STOPPING, ASKING, STOPPING_PS };

struct watch {
    struct cluster_run *run;
    int signals;
    enum watch_phase phase;
    uint64_t deadline_ms; /* of the phase; 0: none */
    uint64_t told_ms;     /* when a signal came that ends the run; 0: none has */
    int code;
    const struct run_child *failed; /* the first that did; NULL: none has */
    bool port_taken;
    bool killed; /* who did not end in the time of the phase, and it was said */
    bool asked;  /* all workers exited with 0; ps 0 has yet to say whether they left as done */
};

static uint64_t now_ms(void) { return clock_now_us() / 1000; }

static bool all_ended(const struct cluster_run *run, bool ps)
{
    for (uint32_t i = 0; i < run->child_count; i++)
        if (run->children[i].is_ps == ps && !run->children[i].ended)
            return false;
    return true;
}

static void __attribute__((format(printf, 2, 3))) say(struct watch *watch, const char *format, ...)
{
    char text[256];
    const size_t used = text_print(text, sizeof text, "sumac run: ");
    va_list values;

    va_start(values, format);
    (void)text_print_values(text + used, sizeof text - used, format, values);
    va_end(values);
    run_screen_end(&watch->run->screens[0]);
    run_screen_say(&watch->run->screens[1], text);
}

/* ---- what ends */

static void enter(struct watch *watch, enum watch_phase phase, uint64_t patience_ms)
{
    watch->phase = phase;
    watch->deadline_ms = now_ms() + patience_ms;
}

/* Stop the workers; when they have ended, the ps. */
static void stop(struct watch *watch, int signal_number)
{
    enter(watch, STOPPING, STOPPING_MS);
    run_signal(watch->run, false, signal_number);
}

/* Kill what was told to end and did not, and name the first of them. */
static void kill_late(struct watch *watch, bool ps)
{
    struct cluster_run *run = watch->run;
    const struct run_child *first = NULL;
    uint32_t count = 0;
    char more[32] = "";

    for (uint32_t i = run->child_count; i-- > 0;)
        if (run->children[i].is_ps == ps && !run->children[i].ended) {
            first = &run->children[i];
            count++;
        }
    if (count > 1)
        (void)snprintf(more, sizeof more, " and %u more", (unsigned)count - 1);
    run_signal(run, ps, SIGKILL);
    if (count > 0 && !watch->killed)
        say(watch, "%s%s did not end within %d s of being told to, and %s killed",
            run_child_name(first).text, more, STOPPING_MS / 1000, count > 1 ? "are" : "is");
    watch->killed = true;
}

static void tell_code(struct watch *watch, const struct run_child *child, const char *then)
{
    const struct run_name name = run_child_name(child);

    if (child->code > 128 && child->code < 128 + NSIG)
        say(watch, "%s ended with %d (%s)%s", name.text, child->code,
            child->code == EXIT_RETRYABLE ? "starting again may help"
                                          : strsignal(child->code - 128),
            then);
    else
        say(watch, "%s ended with %d%s", name.text, child->code, then);
}

/* The first process that failed decides the run's code. Those that we stopped have not failed. */
static void conclude(struct watch *watch)
{
    const struct cluster_run *run = watch->run;

    for (uint32_t i = 0; i < run->child_count; i++) {
        const struct run_child *child = &run->children[i];
        if (!child->ended || child->code == 0 || watch->phase >= STOPPING)
            continue;
        if (child->is_ps && child->code == EXIT_PORT_TAKEN) {
            watch->port_taken = true;
            stop(watch, SIGKILL);
            return;
        }
        watch->code = child->code;
        watch->failed = child;
        stop(watch, SIGTERM);
        tell_code(watch, child, "; stopping the others");
    }
}

/* The ps that were stopped because of a failure have said to start the whole run again; and the
 * last lines of the processes that a signal ended look like failures. */
static void tell_why(struct watch *watch)
{
    const struct run_child *failed = watch->failed;

    if (failed != NULL && failed->code < 128)
        tell_code(watch, failed, ": correct that error before you start the run again");
    if (watch->told_ms != 0 && watch->failed == NULL && !watch->port_taken)
        say(watch, "the run was interrupted by a signal (%s) and ends with %d",
            strsignal(watch->code - 128), watch->code);
}

/* Told to terminate, ps 0 still ends with 0 when everybody has left as done. A worker that exited
 * with 0 and has not left so is no failure of a process: its program is to be mended, and starting
 * it again helps nobody. */
static void conclude_by_ps_0(struct watch *watch)
{
    const struct run_child *ps_0 = &watch->run->children[0];

    if (!watch->asked || watch->code != 0 || ps_0->code == 0)
        return;
    watch->code = ps_0->code == 128 + SIGTERM ? EXIT_FAILED : ps_0->code;
    if (watch->code == EXIT_FAILED)
        say(watch, "every worker exited with 0, but not every one has joined and left as done "
                   "(sumac_client_leave): the run ends with 1");
    else
        tell_code(watch, ps_0, "");
}

static void take_signals(struct watch *watch)
{
    struct signalfd_siginfo info;

    while (read(watch->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        const int number = (int)info.ssi_signo;
        if (number == SIGCHLD)
            continue;
        if (number == SIGUSR1 || number == SIGUSR2) {
            run_signal(watch->run, false, number);
        } else if (watch->phase >= STOPPING) { /* once more: at once */
            watch->told_ms = watch->told_ms == 0 ? now_ms() : watch->told_ms;
            watch->code = watch->code == 0 ? 128 + number : watch->code;
            run_signal(watch->run, false, SIGKILL);
            run_signal(watch->run, true, SIGKILL);
        } else {
            watch->code = 128 + number;
            watch->told_ms = now_ms();
            stop(watch, number);
            say(watch,
                "stopping the workers, then the ps; another signal ends all of them at once");
        }
    }
}

/* Move on from phase to phase. */
static void advance(struct watch *watch)
{
    struct cluster_run *run = watch->run;
    const bool workers_ended = all_ended(run, false);
    const bool late = watch->deadline_ms != 0 && now_ms() >= watch->deadline_ms;

    if (watch->phase == GOING && workers_ended) {
        enter(watch, ENDING, ENDING_MS);
    } else if (watch->phase == ENDING && late && !all_ended(run, true)) {
        watch->asked = true;
        enter(watch, ASKING, STOPPING_MS);
        if (!run->children[0].ended)
            (void)kill(-run->children[0].pid, SIGTERM);
        say(watch, "the workers have ended, and the ps wait for more of them; stopping the ps");
    } else if (watch->phase == ASKING && (late || run->children[0].ended)) {
        enter(watch, STOPPING_PS, STOPPING_MS);
        run_signal(run, true, SIGTERM);
    } else if (watch->phase == STOPPING && workers_ended) {
        watch->killed = false;
        enter(watch, STOPPING_PS, STOPPING_MS);
        run_signal(run, true, watch->port_taken ? SIGKILL : SIGTERM);
    } else if ((watch->phase == STOPPING || watch->phase == STOPPING_PS) && late) {
        kill_late(watch, watch->phase == STOPPING_PS);
    }
}

/* Everything but output. */
static void attend(struct watch *watch)
{
    take_signals(watch);
    run_reap(watch->run);
    conclude(watch);
    advance(watch);
}

/* ---- output */

/* Everything that a pipe holds now. False: it was closed at the other end. */
static bool take_output(struct run_child *child, int which)
{
    char bytes[65536];

    for (;;) {
        const ssize_t count = read(child->pipe[which], bytes, sizeof bytes);
        if (count > 0)
            run_output_take(child->output[which], bytes, (size_t)count, now_ms());
        else if (count < 0 && errno == EINTR)
            continue;
        else
            return count < 0 && errno == EAGAIN;
    }
}

/* False: nothing more can come. */
static bool take_outputs(struct cluster_run *run)
{
    bool open = false;

    for (uint32_t i = 0; i < run->child_count; i++)
        for (int which = 0; which < 2; which++) {
            struct run_child *child = &run->children[i];
            if (child->pipe[which] < 0)
                continue;
            if (take_output(child, which)) {
                open = true;
                continue;
            }
            run_output_end(child->output[which]);
            (void)close(child->pipe[which]);
            child->pipe[which] = -1;
        }
    return open;
}

/* Wait for a signal, for output, or for so long (-1: without a limit). */
static void wait_for_something(struct watch *watch, int timeout_ms)
{
    struct pollfd fds[1 + 2 * RUN_PROCESSES_MAX];
    nfds_t count = 0;

    fds[count++] = (struct pollfd){.fd = watch->signals, .events = POLLIN};
    for (uint32_t i = 0; i < watch->run->child_count; i++)
        for (int which = 0; which < 2; which++)
            if (watch->run->children[i].pipe[which] >= 0)
                fds[count++] =
                    (struct pollfd){.fd = watch->run->children[i].pipe[which], .events = POLLIN};
    (void)poll(fds, count, timeout_ms);
}

static int time_left_ms(const struct watch *watch)
{
    if (watch->deadline_ms == 0)
        return -1;
    const uint64_t now = now_ms();
    return now >= watch->deadline_ms ? 100 : (int)(watch->deadline_ms - now);
}

/* Nobody reads what a screen shows: signals and processes do not wait for that. After a signal that
 * ends the run the output is given up. */
static bool wait_for_screen(void *context, int fd)
{
    struct watch *watch = context;
    struct pollfd fds[] = {{.fd = fd, .events = POLLOUT}, {.fd = watch->signals, .events = POLLIN}};
    const int left_ms = time_left_ms(watch);
    const bool told = watch->told_ms != 0;

    (void)poll(fds, 2, told && left_ms > LAST_OUTPUT_MS ? LAST_OUTPUT_MS : left_ms);
    if (fds[0].revents != 0)
        return true;
    attend(watch);
    return watch->told_ms == 0 || now_ms() < watch->told_ms + LAST_OUTPUT_MS;
}

/* A full disk ends no training, but what was printed is not all there. */
static void tell_lost_output(struct watch *watch)
{
    static const char *const names[] = {"standard output", "standard error"};

    for (int i = 0; i < 2; i++) {
        const int lost = watch->run->screens[i].lost;
        if (lost == 0)
            continue;
        say(watch, "%s cannot be written, and what the processes printed is lost: %s", names[i],
            strerror(lost));
        watch->code = watch->code == 0 ? EXIT_FAILED : watch->code;
    }
}

bool run_watch(struct cluster_run *run, int signals, int *code)
{
    struct watch watch = {.run = run, .signals = signals};

    for (int i = 0; i < 2; i++) {
        run->screens[i].wait = wait_for_screen;
        run->screens[i].context = &watch;
    }
    while (!all_ended(run, false) || !all_ended(run, true)) {
        wait_for_something(&watch, time_left_ms(&watch));
        take_signals(&watch);
        run_reap(run);
        (void)take_outputs(run); /* all that they printed, before it is said that they have ended */
        conclude(&watch);
        advance(&watch);
    }
    const uint64_t last_ms = now_ms() + LAST_OUTPUT_MS;
    while (take_outputs(run) && now_ms() < last_ms)
        wait_for_something(&watch, LAST_OUTPUT_MS);
    conclude_by_ps_0(&watch);
    run_screen_end(&run->screens[0]);
    tell_lost_output(&watch);
    tell_why(&watch);
    *code = watch.code;
    return watch.port_taken;
}
