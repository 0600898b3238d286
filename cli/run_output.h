/* SPDX-License-Identifier: Apache-2.0 */
/* run_output.h -- the output of several processes on one screen: whole lines, each after its
 * process's name.
 *
 *     ps 0     | listens on 127.0.0.1:4711
 *     worker 0 | step 120  loss 0.41  accuracy 91.2 %
 *
 * A line that ends in a carriage return alone is a progress line: on a terminal it stays the last
 * line of the screen and is written over; elsewhere it is passed on as an ordinary line, at most
 * once a second.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_OUTPUT_LINE_BYTES_MAX 8192 /* a longer line is cut into several */
#define RUN_OUTPUT_LABEL_BYTES 32

/* Where lines go: standard output or standard error of this process. */
struct run_screen {
    int fd;
    bool terminal;
    bool socket;   /* written with MSG_DONTWAIT */
    bool given_up; /* lines are dropped from here on */
    /* The screen takes nothing at present: wait until `fd` can be written. False: give it up.
     * NULL: wait without end. */
    bool (*wait)(void *context, int fd);
    void *context;
    int lost; /* errno of the first line that was lost on a screen with a reader; 0: none */
    bool *progress_shown; /* the cursor is behind a progress line; both may be one terminal's */
};

/* What one process writes, up to the end of its line. */
struct run_output {
    struct run_screen *screen;
    char label[RUN_OUTPUT_LABEL_BYTES]; /* "worker 0 | " */
    char line[RUN_OUTPUT_LINE_BYTES_MAX];
    size_t used;
    bool returned; /* the last byte was a carriage return: a line feed makes it a line's end */
    uint64_t progress_ms; /* when a progress line was last passed on, not to a terminal */
};

/* The screen for a file descriptor of this process, without `progress_shown`. A reader that does
 * not read must not block the run, so a pipe or a terminal is opened once more, to be written
 * without blocking: the flag of the file itself is shared with other processes.
 * Gives  the screen; release with run_screen_close. */
struct run_screen run_screen_open(int fd);
void run_screen_close(struct run_screen *screen);

/* Write a line of this process's own. */
void run_screen_say(struct run_screen *screen, const char *line);

/* Bytes that the process wrote at `now_ms`. */
void run_output_take(struct run_output *output, const char *bytes, size_t count, uint64_t now_ms);

/* The process has ended: pass on what is left of its last line. */
void run_output_end(struct run_output *output);

/* Leave a progress line that is shown where it is, and go on below it. */
void run_screen_end(struct run_screen *screen);
