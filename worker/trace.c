/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c -- a trace's file: its events as lines of JSON, gathered and written. */
#include "trace.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "text.h"

#define LINE_BYTES_MAX (2 * TRACE_NAME_BYTES_MAX + 512u) /* a name's bytes are doubled at most */
#define END "\n]\n"

_Static_assert(LINE_BYTES_MAX < TRACE_BUFFER_BYTES_MAX, "each event fits into an empty buffer");

struct trace {
    int file;
    pid_t process;
    struct trace_options options; /* with defaults filled in; the path is our copy */
    pthread_mutex_t mutex;        /* guards what follows */
    bool over;                    /* before its time: nothing is added any more */
    uint32_t tracks;              /* that were made */
    uint64_t bytes;               /* in the file */
    uint64_t oldest_ns;           /* when the first that is in the buffer was over */
    size_t used;
    char buffer[TRACE_BUFFER_BYTES_MAX];
};

static const struct {
    const char *name, *category;
} kinds[] = {
#define X(NAME, name, category) [TRACE_##NAME] = {name, category},
    TRACE_KIND_LIST(X)
#undef X
};

uint64_t trace_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- writing: all with the mutex */

/* Says how it came to its end, the first time. */
static void end_early(struct trace *trace, const char *why)
{
    char line[512];

    assert(!trace->over);
    trace->over = true;
    (void)text_print_line(
        line, sizeof line, "the trace %.300s ends here: %s; the work goes on without it",
        trace->options.path, why);
    trace->options.say(trace->options.context, line);
}

/* 0, or why not. A file that may not grow further would end the process by a signal. */
static int write_whole(int file, const char *bytes, size_t count)
{
    sigset_t too_large, before;
    int why = 0;

    assert(file >= 0);
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    (void)pthread_sigmask(SIG_BLOCK, &too_large, &before);
    while (count > 0 && why == 0) {
        const ssize_t written = write(file, bytes, count);
        if (written >= 0) {
            bytes += written;
            count -= (size_t)written;
        } else if (errno != EINTR) {
            why = errno;
        }
    }
    if (why == EFBIG && sigismember(&before, SIGXFSZ) == 0)
        (void)sigtimedwait(&too_large, NULL, &(struct timespec){0});
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}

/* Whole events, as ever: the buffer has no others. */
static void write_out(struct trace *trace)
{
    assert(trace->used <= sizeof trace->buffer);
    const int why = write_whole(trace->file, trace->buffer, trace->used);
    if (why != 0) {
        /* The half of an event is taken back. */
        if (ftruncate(trace->file, (off_t)trace->bytes) == 0 &&
            lseek(trace->file, (off_t)trace->bytes, SEEK_SET) >= 0)
            (void)write_whole(trace->file, END, sizeof END - 1);
        end_early(trace, strerror(why));
        return;
    }
    trace->bytes += trace->used;
    trace->used = 0;
}

static void end_at_most(struct trace *trace)
{
    char why[64];

    assert(trace->bytes + trace->used + sizeof END - 1 <= trace->options.bytes_max);
    write_out(trace);
    if (trace->over)
        return;
    (void)write_whole(trace->file, END, sizeof END - 1);
    (void)text_print(why, sizeof why, "it has %" PRIu64 " bytes", trace->bytes + sizeof END - 1);
    end_early(trace, why);
}

/* A line that begins or goes on with the array; `now_ns`: when what it tells was over. */
static void append(struct trace *trace, const char *line, size_t bytes, uint64_t now_ns)
{
    assert(bytes > 0 && bytes < LINE_BYTES_MAX - 1); /* it was not cut */
    pthread_mutex_lock(&trace->mutex);
    if (!trace->over && trace->used + bytes > sizeof trace->buffer)
        write_out(trace);
    if (!trace->over && trace->bytes + trace->used + bytes + sizeof END > trace->options.bytes_max)
        end_at_most(trace);
    if (!trace->over) {
        if (trace->used == 0)
            trace->oldest_ns = now_ns;
        memcpy(trace->buffer + trace->used, line, bytes);
        trace->used += bytes;
        if (now_ns > trace->oldest_ns && now_ns - trace->oldest_ns >= TRACE_HELD_NS_MAX)
            write_out(trace);
    }
    pthread_mutex_unlock(&trace->mutex);
}

/* ---- lines */

/* One printable line of UTF-8, as it stands between quotes. */
struct quoted {
    char text[2 * TRACE_NAME_BYTES_MAX];
};

static struct quoted quote(const char *name)
{
    struct quoted quoted;
    char line[TRACE_NAME_BYTES_MAX];
    const size_t bytes = text_print_line(line, sizeof line, "%s", name);
    size_t used = 0;

    for (size_t i = 0; i < bytes; i++) {
        if (line[i] == '"' || line[i] == '\\')
            quoted.text[used++] = '\\';
        quoted.text[used++] = line[i];
    }
    assert(used < sizeof quoted.text);
    quoted.text[used] = '\0';
    return quoted;
}

static void append_name(
    struct trace *trace, const char *before, const char *what, uint32_t track, const char *name)
{
    const struct quoted quoted = quote(name);
    char line[LINE_BYTES_MAX];
    const size_t bytes = text_print(
        line, sizeof line,
        "%s{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%ld,\"tid\":%" PRIu32
        ",\"args\":{\"name\":\"%s\"}}",
        before, what, (long)trace->process, track, quoted.text);

    append(trace, line, bytes, trace_now());
}

uint32_t trace_track(struct trace *trace, const char *name)
{
    char line[LINE_BYTES_MAX];

    if (trace == NULL)
        return 0;
    pthread_mutex_lock(&trace->mutex);
    assert(trace->tracks < UINT32_MAX);
    const uint32_t track = ++trace->tracks;
    pthread_mutex_unlock(&trace->mutex);
    append_name(trace, ",\n", "thread_name", track, name);
    const size_t bytes = text_print(
        line, sizeof line,
        ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%ld,\"tid\":%" PRIu32
        ",\"args\":{\"sort_index\":%" PRIu32 "}}",
        (long)trace->process, track, track);
    append(trace, line, bytes, trace_now());
    return track;
}

void trace_write(struct trace *trace, const struct trace_event *event)
{
    char line[LINE_BYTES_MAX];
    const uint64_t begin_ns = event->begin_ns;
    const uint64_t long_ns = event->end_ns > begin_ns ? event->end_ns - begin_ns : 0;

    if (trace == NULL)
        return;
    assert(event->track > 0);
    assert(event->kind < sizeof kinds / sizeof kinds[0]);
    size_t bytes = text_print(
        line, sizeof line,
        ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"ts\":%" PRIu64 ".%03" PRIu64
        ",\"dur\":%" PRIu64 ".%03" PRIu64 ",\"pid\":%ld,\"tid\":%" PRIu32
        ",\"args\":{\"step\":%" PRIu64,
        kinds[event->kind].name, kinds[event->kind].category, begin_ns / 1000, begin_ns % 1000,
        long_ns / 1000, long_ns % 1000, (long)trace->process, event->track, event->step);
    if (event->bytes > 0)
        bytes += text_print(line + bytes, sizeof line - bytes, ",\"bytes\":%" PRIu64, event->bytes);
    if (event->variable != NULL)
        bytes += text_print(
            line + bytes, sizeof line - bytes, ",\"variable\":\"%s\"", quote(event->variable).text);
    bytes += text_print(line + bytes, sizeof line - bytes, "}}");
    append(trace, line, bytes, begin_ns + long_ns);
}

/* ---- the file */

static enum sumac_status refuse(const char *path, const char *why, struct sumac_error *error)
{
    return fail_argument(
        error,
        "the trace %.300s cannot be written: %s; name a file in a folder where this process may "
        "write (--trace, SUMAC_TRACE)",
        path, why);
}

/* Nobody else's trace is cut short: the lock is the file's for as long as it is open. A file system
 * without locks has none. */
static enum sumac_status take(int file, const char *path, struct sumac_error *error)
{
    struct stat facts;

    assert(file >= 0);
    if (fstat(file, &facts) != 0)
        return refuse(path, strerror(errno), error);
    if (S_ISCHR(facts.st_mode))
        return SUMAC_OK;
    if (!S_ISREG(facts.st_mode))
        return refuse(path, "it is no file", error);
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return fail(
            error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_UNSPECIFIED,
            "another worker is writing its trace to %.300s; give each a file of its own", path);
    return ftruncate(file, 0) == 0 ? SUMAC_OK : refuse(path, strerror(errno), error);
}

/* A pipe without a reader is refused by the system, and waited for without O_NONBLOCK. */
static enum sumac_status open_file(const char *path, int *file, struct sumac_error *error)
{
    const int opened = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);

    if (opened < 0)
        return refuse(path, errno == ENXIO ? "it is no file" : strerror(errno), error);
    const enum sumac_status status = take(opened, path, error);
    if (status == SUMAC_OK)
        *file = opened;
    else
        (void)close(opened);
    return status;
}

enum sumac_status
trace_open(const struct trace_options *options, struct trace **trace, struct sumac_error *error)
{
    int file = -1;
    const enum sumac_status status = open_file(options->path, &file, error);

    if (status != SUMAC_OK)
        return status;
    struct trace *made = calloc(1, sizeof *made);
    char *path = strdup(options->path);
    if (made == NULL || path == NULL) {
        free(made);
        free(path);
        (void)close(file);
        return fail_for_memory(error, "no memory for a trace");
    }
    assert(options->say != NULL);
    made->file = file;
    made->process = getpid();
    made->options = *options;
    made->options.path = path;
    if (options->bytes_max == 0)
        made->options.bytes_max = TRACE_FILE_BYTES_MAX;
    pthread_mutex_init(&made->mutex, NULL);
    append_name(made, "[\n", "process_name", 0, options->process);
    *trace = made;
    return SUMAC_OK;
}

void trace_flush(struct trace *trace)
{
    if (trace == NULL)
        return;
    pthread_mutex_lock(&trace->mutex);
    if (!trace->over)
        write_out(trace);
    pthread_mutex_unlock(&trace->mutex);
}

void trace_close(struct trace *trace)
{
    if (trace == NULL)
        return;
    pthread_mutex_lock(&trace->mutex);
    assert(trace->process == getpid());
    if (!trace->over)
        write_out(trace);
    int why = trace->over ? 0 : write_whole(trace->file, END, sizeof END - 1);
    if (close(trace->file) != 0 && why == 0) /* a file system of a network may say it only now */
        why = errno;
    if (why != 0 && !trace->over)
        end_early(trace, strerror(why));
    pthread_mutex_unlock(&trace->mutex);
    pthread_mutex_destroy(&trace->mutex);
    free((void *)(uintptr_t)trace->options.path);
    free(trace);
}
