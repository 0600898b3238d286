/* SPDX-License-Identifier: Apache-2.0 */
/* screen.c -- xterm's alternate page, as every terminal of today has it. */
#include "screen.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define COLUMNS_ELSEWHERE 120

static const char enter[] = "\033[?1049h\033[?25l";
static const char leave[] = "\033[?25h\033[?1049l";
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
static bool is_open;

/* From a handler, too: one write, and no buffer. */
static void say(const char *sequence, size_t bytes)
{
    const int before = errno;
    ssize_t written = write(STDOUT_FILENO, sequence, bytes);
    (void)written;

    errno = before;
}

/* ---- signals: only what a handler may do */

/* The handler was taken away when the signal came, and the signal comes once more when this
 * returns. */
static void give_back(int number)
{
    say(leave, sizeof leave - 1);
    (void)raise(number);
}

static sigset_t only(int number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, number);
    return set;
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

    sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

/* The process stands still within raise, until somebody wants it to go on. */
static void stop_and_go_on(int number)
{
    const sigset_t this_one = only(number);
    sigset_t before;

    say(leave, sizeof leave - 1);
    handle(number, SIG_DFL, 0);
    (void)raise(number);
    (void)pthread_sigmask(SIG_UNBLOCK, &this_one, &before);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    handle(number, stop_and_go_on, 0);
    say(enter, sizeof enter - 1);
    (void)kill(getpid(), SIGWINCH); /* whoever waits draws again */
}

static void resized(int number) { (void)number; }

/* ---- the page */

static struct winsize measure(void)
{
    struct winsize size = {0};

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size : (struct winsize){0};
}

uint32_t screen_columns(void)
{
    const uint32_t columns = measure().ws_col;

    return columns == 0 ? COLUMNS_ELSEWHERE : columns;
}

uint32_t screen_lines(void) { return measure().ws_row; }

void screen_open(void)
{
    const sigset_t waited_for = only(SIGWINCH);

    (void)pthread_sigmask(SIG_BLOCK, &waited_for, NULL);
    handle(SIGWINCH, resized, 0); /* one that is ignored would not be waited for */
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        handle(ends[i], give_back, (int)SA_RESETHAND);
    handle(SIGTSTP, stop_and_go_on, 0);
    is_open = true;
    (void)atexit(screen_close);
    say(enter, sizeof enter - 1);
}

void screen_close(void)
{
    if (!is_open)
        return;
    is_open = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        handle(ends[i], SIG_DFL, 0);
    handle(SIGTSTP, SIG_DFL, 0);
    say(leave, sizeof leave - 1);
}

/* One line, cut to `columns` characters; what was there before is wiped out behind it. Returns
 * where the next begins. */
static const char *draw_line(const char *text, uint32_t columns)
{
    uint32_t used = 0;

    for (; *text != '\0' && *text != '\n'; text++) {
        const bool begins = ((unsigned char)*text & 0xc0) != 0x80; /* of UTF-8 */
        used += begins;
        if (used <= columns)
            fputc(*text, stdout);
    }
    fputs("\033[K", stdout);
    return *text == '\n' ? text + 1 : text;
}

bool screen_draw(const char *text)
{
    struct winsize size = measure();

    if (size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_col = COLUMNS_ELSEWHERE, .ws_row = UINT16_MAX};
    fputs("\033[H", stdout);
    for (uint32_t line = 0; line < size.ws_row && *text != '\0'; line++) {
        if (line > 0)
            fputs("\r\n", stdout);
        text = draw_line(text, size.ws_col);
    }
    fputs("\033[J", stdout);
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}

bool screen_wait(uint64_t until_us)
{
    const sigset_t waited_for = only(SIGWINCH);
    const uint64_t now_us = clock_now_us();
    const uint64_t left_us = until_us > now_us ? until_us - now_us : 0;
    const struct timespec left = {
        .tv_sec = (time_t)(left_us / 1000000), .tv_nsec = (long)(left_us % 1000000) * 1000};

    return sigtimedwait(&waited_for, NULL, &left) == SIGWINCH || errno == EINTR;
}
