/* SPDX-License-Identifier: Apache-2.0 */
/* run_output.c -- what processes write, cut into lines with their names; the screen is a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "unit.h"
#include <unistd.h>

#include "run_output.h"

struct fixture {
    int pipe[2];
    bool progress_shown;
    struct run_screen screen;
    struct run_output output;
    char text[4 * RUN_OUTPUT_LINE_BYTES_MAX];
};

static struct fixture *prepared(bool terminal)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    assert_int_equal(pipe(fixture->pipe), 0);
    fixture->screen = (struct run_screen){
        .fd = fixture->pipe[1], .terminal = terminal, .progress_shown = &fixture->progress_shown};
    fixture->output.screen = &fixture->screen;
    strcpy(fixture->output.label, "w 0 | ");
    return fixture;
}

static void take(struct fixture *fixture, const char *text, uint64_t now_ms)
{
    run_output_take(&fixture->output, text, strlen(text), now_ms);
}

/* Everything that was shown; the fixture is gone after it. */
static void assert_shown(struct fixture *fixture, const char *expected)
{
    close(fixture->pipe[1]);
    size_t used = 0;
    ssize_t count = 0;
    while ((count = read(fixture->pipe[0], fixture->text + used, sizeof fixture->text - used - 1)) >
           0)
        used += (size_t)count;
    assert_string_equal(fixture->text, expected);
    close(fixture->pipe[0]);
    free(fixture);
}

TEST(lines_come_whole_whatever_the_pieces)
{
    struct fixture *fixture = prepared(false); /* given */

    take(fixture, "one\ntw", 0); /* when */
    take(fixture, "o\r", 0);
    take(fixture, "\n", 0);
    take(fixture, "the end", 0);
    run_output_end(&fixture->output);
    assert_shown(fixture, "w 0 | one\nw 0 | two\nw 0 | the end\n"); /* then */
}

TEST(a_progress_line_passes_once_a_second)
{
    struct fixture *fixture = prepared(false);

    take(fixture, "1\r2\r", 5000);
    take(fixture, "3\r4\r", 5999);
    take(fixture, "5\r6\r", 6000);
    take(fixture, "done\n", 6001);
    assert_shown(fixture, "w 0 | 1\nw 0 | 4\nw 0 | done\n");
}

TEST(on_a_terminal_a_progress_line_is_written_over_by_the_next_line)
{
    struct fixture *fixture = prepared(true);

    take(fixture, "1\r2\rdone\nmore\n", 0);
    assert_shown(fixture, "\r\033[Kw 0 | 1\r\033[Kw 0 | 2\r\033[Kw 0 | done\nw 0 | more\n");
}

TEST(a_progress_line_that_is_last_stays)
{
    struct fixture *fixture = prepared(true);

    take(fixture, "1\r2", 0);
    take(fixture, "\r3\r", 0);
    run_screen_end(&fixture->screen);
    run_screen_end(&fixture->screen);
    run_output_end(&fixture->output);
    assert_shown(fixture, "\r\033[Kw 0 | 1\r\033[Kw 0 | 2\r\033[Kw 0 | 3\n");
}

TEST(a_line_without_end_is_cut)
{
    struct fixture *fixture = prepared(false);
    static char text[RUN_OUTPUT_LINE_BYTES_MAX + 2];
    static char expected[RUN_OUTPUT_LINE_BYTES_MAX + 32];

    memset(text, 'x', RUN_OUTPUT_LINE_BYTES_MAX + 1);
    take(fixture, text, 0);
    run_output_end(&fixture->output);
    strcpy(expected, "w 0 | ");
    memset(expected + 6, 'x', RUN_OUTPUT_LINE_BYTES_MAX);
    strcpy(expected + 6 + RUN_OUTPUT_LINE_BYTES_MAX, "\nw 0 | x\n");
    assert_shown(fixture, expected);
}

/* ---- writes that fail, and a terminal's width: the linker hands these calls to the test */

/* What the next writes come to: so many bytes, or, below 0, an errno; 0: as the system likes. */
static int outcomes[4];
static size_t outcome = 4;
static unsigned short columns; /* 0: it is no terminal */

ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);
int __wrap_ioctl(int fd, unsigned long request, void *argument);

ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    const int wanted = outcome < 4 ? outcomes[outcome++] : 0;

    if (wanted >= 0)
        return __real_write(fd, bytes, wanted == 0 ? count : (size_t)wanted);
    errno = -wanted;
    return -1;
}

int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
    (void)fd;
    if (columns == 0 || request != TIOCGWINSZ)
        return -1;
    *(struct winsize *)argument = (struct winsize){.ws_col = columns};
    return 0;
}

TEST(what_is_written_in_pieces_is_whole_and_what_is_lost_is_noted)
{
    static const struct {
        int outcomes[4];
        bool terminal;
        const char *shown;
        int lost;
    } cases[] = {
        {{3, 2, -EINTR, 4}, false, "w 0 | one\nw 0 | two\n", 0},
        {{-EAGAIN, 1}, false, "w 0 | one\nw 0 | two\n", 0},
        {{-ENOSPC, -EBADF}, false, "", ENOSPC}, /* the first is told */
        {{-EPIPE}, false, "w 0 | two\n", 0},    /* nobody wants it */
        {{-EIO}, false, "w 0 | two\n", EIO},
        {{-EIO}, true, "w 0 | two\n", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture *fixture = prepared(cases[i].terminal); /* given */
        memcpy(outcomes, cases[i].outcomes, sizeof outcomes);
        outcome = 0;

        take(fixture, "one\ntwo\n", 0); /* when */
        outcome = 4;

        assert_int_equal(fixture->screen.lost, cases[i].lost); /* then */
        assert_shown(fixture, cases[i].shown);
    }
}

TEST(a_progress_line_fits_on_its_row)
{
    struct fixture *fixture = prepared(true);

    columns = 10; /* of which the last stays free, and six are the label's */
    take(fixture, "abcdef\r", 0);
    take(fixture, "xy\r", 0);
    columns = 0;
    assert_shown(fixture, "\r\033[Kw 0 | abc\r\033[Kw 0 | xy");
}

/* ---- a screen that takes nothing */

/* Reads the pipe when it is waited for, reads_left times; then the screen is given up. */
struct reader {
    struct fixture *fixture;
    uint32_t waits, reads_left;
    size_t bytes;
};

static bool read_some(void *context, int fd)
{
    struct reader *reader = context;
    char bytes[65536];

    assert_int_equal(fd, reader->fixture->pipe[1]);
    reader->waits++;
    if (reader->reads_left-- == 0)
        return false;
    reader->bytes += (size_t)read(reader->fixture->pipe[0], bytes, sizeof bytes);
    return true;
}

/* More lines than a pipe holds, three times over. */
static struct reader write_much(uint32_t reads)
{
    struct fixture *fixture = prepared(false);
    struct reader reader = {.fixture = fixture, .reads_left = reads};

    assert_int_equal(fcntl(fixture->pipe[1], F_SETFL, O_NONBLOCK), 0);
    fixture->screen.wait = read_some;
    fixture->screen.context = &reader;
    for (uint32_t i = 0; i < 3 * 65536 / 10; i++)
        take(fixture, "abc\n", 0); /* "w 0 | abc\n" */
    fixture->screen.wait = NULL;
    reader.fixture = NULL;
    close(fixture->pipe[0]);
    close(fixture->pipe[1]);
    free(fixture);
    return reader;
}

TEST(a_screen_that_is_full_is_waited_for)
{
    const struct reader reader = write_much(UINT32_MAX);

    assert_in_range(reader.waits, 2, 100);
    assert_true(reader.bytes >= 2 * 65536);
}

TEST(a_screen_that_is_given_up_is_waited_for_no_more)
{
    const struct reader reader = write_much(1);

    assert_int_equal(reader.waits, 2);
}
