/* SPDX-License-Identifier: Apache-2.0 */
/* run_output.c -- cut what a process writes into lines, and put its name before each. */
#include "run_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"

#define PROGRESS_INTERVAL_MS 1000

/* A pipe or a terminal whose other side is gone: nobody wants the rest. */
static bool reader_is_gone(const struct run_screen *screen, int reason)
{
    return reason == EPIPE || (reason == EIO && screen->terminal);
}

struct run_screen run_screen_open(int fd)
{
    struct run_screen screen = {.fd = fd, .terminal = isatty(fd) == 1};
    struct stat file;
    char path[32];

    if (fstat(fd, &file) != 0)
        return screen;
    screen.socket = S_ISSOCK(file.st_mode);
    if (!S_ISFIFO(file.st_mode) && !screen.terminal)
        return screen;
    (void)text_print(path, sizeof path, "/proc/self/fd/%d", fd);
    const int again = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (again >= 0)
        screen.fd = again;
    return screen;
}

void run_screen_close(struct run_screen *screen)
{
    if (screen->fd > STDERR_FILENO)
        (void)close(screen->fd);
}

static bool wait_without_end(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLOUT};

    (void)poll(&polled, 1, -1);
    return true;
}

/* Everything, or as much as the other side takes: that it cannot be written is no reason to end a
 * run, but is noted. */
static void write_all(struct run_screen *screen, const char *bytes, size_t count)
{
    while (count > 0 && !screen->given_up) {
        const ssize_t written = screen->socket ? send(screen->fd, bytes, count, MSG_DONTWAIT)
                                               : write(screen->fd, bytes, count);
        const int reason = written < 0 ? errno : 0;
        if (written > 0) {
            bytes += written;
            count -= (size_t)written;
        } else if (reason == EAGAIN) {
            const bool goes_on = screen->wait == NULL ? wait_without_end(screen->fd)
                                                      : screen->wait(screen->context, screen->fd);
            screen->given_up = screen->given_up || !goes_on;
        } else if (reason != EINTR) {
            if (screen->lost == 0 && !reader_is_gone(screen, reason))
                screen->lost = reason;
            return;
        }
    }
}

/* One write per line: lines of several writers to one terminal do not mix. */
static void
write_line(struct run_output *output, const char *before, size_t text_bytes, const char *after)
{
    char whole[RUN_OUTPUT_LINE_BYTES_MAX + RUN_OUTPUT_LABEL_BYTES + 16];
    size_t used = 0;
    const char *parts[] = {before, output->label};

    for (int i = 0; i < 2; i++) {
        const size_t bytes = strlen(parts[i]);
        memcpy(whole + used, parts[i], bytes);
        used += bytes;
    }
    memcpy(whole + used, output->line, text_bytes);
    used += text_bytes;
    memcpy(whole + used, after, strlen(after));
    used += strlen(after);
    write_all(output->screen, whole, used);
}

#define CLEAR_LINE "\r\033[K"

static void pass_line(struct run_output *output)
{
    const bool over = output->screen->terminal && *output->screen->progress_shown;

    if (over) /* before the write, which may wait */
        *output->screen->progress_shown = false;
    write_line(output, over ? CLEAR_LINE : "", output->used, "\n");
    output->used = 0;
}

/* A progress line must fit on one row, or writing over it would leave rows behind. */
static size_t fitting(const struct run_output *output)
{
    struct winsize size = {0};
    const size_t label_bytes = strlen(output->label);

    if (ioctl(output->screen->fd, TIOCGWINSZ, &size) != 0 || size.ws_col <= label_bytes + 1)
        return output->used;
    const size_t columns = size.ws_col - label_bytes - 1;
    return output->used < columns ? output->used : columns;
}

/* On a terminal at once, elsewhere when it is clear that it is no line: by the byte that follows
 * the carriage return. */
static void show_progress(struct run_output *output)
{
    if (output->screen->terminal && output->used > 0) {
        *output->screen->progress_shown = false;
        write_line(output, CLEAR_LINE, fitting(output), "");
        *output->screen->progress_shown = true;
    }
}

static void pass_progress(struct run_output *output, uint64_t now_ms)
{
    if (!output->screen->terminal && output->used > 0 &&
        now_ms - output->progress_ms >= PROGRESS_INTERVAL_MS) {
        output->progress_ms = now_ms;
        write_line(output, "", output->used, "\n");
    }
    output->used = 0;
}

void run_output_take(struct run_output *output, const char *bytes, size_t count, uint64_t now_ms)
{
    for (size_t i = 0; i < count; i++) {
        const char byte = bytes[i];
        if (output->returned && byte != '\n')
            pass_progress(output, now_ms);
        output->returned = byte == '\r';
        if (byte == '\n')
            pass_line(output);
        else if (byte == '\r')
            show_progress(output);
        else
            output->line[output->used++] = byte;
        if (output->used == sizeof output->line)
            pass_line(output);
    }
}

void run_output_end(struct run_output *output)
{
    if (output->used > 0 && !(output->returned && output->screen->terminal))
        pass_line(output);
}

void run_screen_end(struct run_screen *screen)
{
    const bool shown = *screen->progress_shown;

    *screen->progress_shown = false;
    if (shown)
        write_all(screen, "\n", 1);
}

void run_screen_say(struct run_screen *screen, const char *line)
{
    char whole[RUN_OUTPUT_LINE_BYTES_MAX];

    (void)text_print(whole, sizeof whole, "%s\n", line);
    write_all(screen, whole, strlen(whole));
}
