/* SPDX-License-Identifier: Apache-2.0 */
/* ps_machine.c -- clock, randomness, memory use, the log and signals: what the machine gives a ps.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "ps_state.h"
#include "text.h"

#define LOG_LINE_BYTES 2048u

static uint64_t clock_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

uint64_t ps_now_us(void) { return clock_us(CLOCK_MONOTONIC); }

uint64_t ps_cpu_us(void) { return clock_us(CLOCK_THREAD_CPUTIME_ID); }

bool ps_random_init(struct ps_random *random)
{
    uint8_t *const bytes = (uint8_t *)random->bits;
    size_t got = 0;

    while (got < sizeof random->bits) {
        const ssize_t more = getrandom(bytes + got, sizeof random->bits - got, 0);
        if (more > 0)
            got += (size_t)more;
        else if (more == 0 || errno != EINTR)
            return false;
    }
    random->used = 0;
    return true;
}

uint64_t ps_random_bits(struct ps_random *random)
{
    /* A kernel that has given bits once goes on giving them. */
    if (random->used == sizeof random->bits / sizeof random->bits[0])
        (void)ps_random_init(random);
    const uint64_t bits = random->bits[random->used];
    random->bits[random->used++] = 0;
    return bits;
}

uint64_t ps_resident_bytes(void)
{
    FILE *const file = fopen("/proc/self/statm", "r");

    if (file == NULL)
        return 0;
    uint64_t size_pages, resident_pages;
    const int read = fscanf(file, "%" SCNu64 " %" SCNu64, &size_pages, &resident_pages);
    (void)fclose(file);
    return read == 2 ? (uint64_t)resident_pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t ps_memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const uint64_t machine = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;

    /* In a container this is the container's own; elsewhere, and with version 1, the file is not
     * there. */
    FILE *const file = fopen("/sys/fs/cgroup/memory.max", "r");
    if (file == NULL)
        return machine;
    uint64_t group = 0;
    const int read = fscanf(file, "%" SCNu64, &group); /* or "max" */
    (void)fclose(file);
    return read == 1 && (machine == 0 || group < machine) ? group : machine;
}

uint64_t ps_descriptors(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

void ps_heap_trim(void) { (void)malloc_trim(0); }

uint32_t ps_processors(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return (uint32_t)CPU_COUNT(&set);
}

uint32_t
ps_log_line(uint64_t wall_ms, uint32_t index, const char *text, char *line, uint32_t line_bytes)
{
    const time_t seconds = (time_t)(wall_ms / 1000);
    struct tm utc;

    gmtime_r(&seconds, &utc);
    const size_t stamp = strftime(line, line_bytes, "%Y-%m-%dT%H:%M:%S", &utc);
    char subject[16];
    const size_t subject_bytes = text_print(subject, sizeof subject, "ps %u", index);
    const bool named = strncmp(text, subject, subject_bytes) == 0;
    const size_t rest = text_print_line(
        line + stamp, line_bytes - stamp - 1, ".%03uZ %s%s%s", (unsigned)(wall_ms % 1000),
        named ? "" : subject, named ? "" : ": ", text);
    line[stamp + rest] = '\n';
    line[stamp + rest + 1] = '\0';
    return (uint32_t)(stamp + rest + 1);
}

void ps_log(uint32_t index, const char *format, ...)
{
    char text[LOG_LINE_BYTES], line[LOG_LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)text_print_values(text, sizeof text, format, arguments);
    va_end(arguments);
    const uint64_t wall_ms = clock_us(CLOCK_REALTIME) / 1000u;
    const uint32_t bytes = ps_log_line(wall_ms, index, text, line, sizeof line);
    /* A log whose reader has gone must not stop a ps. */
    const ssize_t written = write(STDERR_FILENO, line, bytes);
    (void)written;
}

/* A zero byte tells the reader of the old standard error that this ps listens. */
void ps_log_move(void)
{
    const char *named = getenv("SUMAC_LOG_FD");
    const int log = named == NULL ? -1 : (int)strtol(named, NULL, 10);

    if (log <= STDERR_FILENO || fcntl(log, F_GETFD) < 0)
        return;
    (void)!write(STDERR_FILENO, "", 1);
    (void)dup2(log, STDERR_FILENO);
    (void)close(log);
}

void ps_signals_block(struct ps *ps)
{
    sigemptyset(&ps->signals);
    sigaddset(&ps->signals, SIGTERM);
    sigaddset(&ps->signals, SIGINT);
    struct sigaction hangup; /* its terminal goes; nohup has it ignored */
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset(&ps->signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &ps->signals, NULL);
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, &ps->pipe_before);
}

int ps_signals_take(const struct ps *ps)
{
    const struct timespec at_once = {0, 0};
    const int number = sigtimedwait(&ps->signals, NULL, &at_once);

    return number > 0 ? number : 0;
}

void ps_signals_restore(const struct ps *ps)
{
    /* The others stay blocked: the exit code is decided. */
    (void)sigaction(SIGPIPE, &ps->pipe_before, NULL);
    const struct itimerval never = {0};
    (void)setitimer(ITIMER_REAL, &never, NULL);
}

static volatile sig_atomic_t late_exit_code;

static void exit_late(int number)
{
    (void)number;
    _exit(late_exit_code);
}

void ps_exit_within(int exit_code, uint32_t ms)
{
    const struct sigaction exits = {.sa_handler = exit_late};
    const struct itimerval once = {
        .it_value = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000}};

    late_exit_code = exit_code;
    (void)sigaction(SIGALRM, &exits, NULL);
    sigset_t alarm; /* a parent process may have blocked it */
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    (void)pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
    (void)setitimer(ITIMER_REAL, &once, NULL);
}

void ps_exit_at_once(int exit_code) { _exit(exit_code); }
