/* SPDX-License-Identifier: Apache-2.0 */
/* run_command.c -- `sumac run`: a cluster on this machine, from the first process to the last.
 *
 * This process never initialises gRPC: it forks.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "command.h"
#include "descriptors.h"
#include "run.h"
#include "run_record.h"
#include "text.h"

#define REPLICAS_MAX                                                                               \
    256u               /* SUMAC_REPLICAS_MAX of sumac/worker.h, which a worker refuses more than */
#define ATTEMPTS_MAX 5 /* clusters started because a port was taken in the meantime */

static const struct option_row rows[] = {
    {"ps", "P", "ps processes (1)", OPTION_COUNT, .offset = offsetof(struct run_plan, ps_count),
     .max = RUN_RECORD_PS_MAX},
    {"workers", "W", "worker processes (1)", OPTION_COUNT,
     .offset = offsetof(struct run_plan, worker_count), .max = RUN_PROCESSES_MAX - 1},
    {"devices", "D",
     "what each worker's replicas run on, told to it as SUMAC_DEVICES: cpu:N, gpu:0,1 for these "
     "GPUs (gpu: all), or auto: GPUs, where there are as many as replicas are asked for, and the "
     "program has a step for them",
     OPTION_TEXT, .offset = offsetof(struct run_plan, devices)},
    {"replicas", "R",
     "replicas of each worker, told to it as SUMAC_REPLICAS, at most 256 (as many as it has "
     "devices; of the CPU 1)",
     OPTION_COUNT, .offset = offsetof(struct run_plan, replicas), .max = REPLICAS_MAX},
    {"synchronous", NULL,
     "each step of the workers is one update of all of them together. They read it from "
     "SUMAC_SYNCHRONOUS=1: a worker of the C library makes synchronous steps, a strategy is "
     "multi_worker. A program that pushes by hand ignores it",
     OPTION_FLAG, .offset = offsetof(struct run_plan, synchronous)},
    {"trace", "FILE",
     "each worker writes what its steps do, and when, in Chrome's trace event format: to FILE, or, "
     "of several workers, to one of its own beside it (steps.worker-0.json for steps.json); told "
     "to "
     "them as SUMAC_TRACE, and theirs to heed: a worker of the C library does, a strategy has no "
     "trace",
     OPTION_TEXT, .offset = offsetof(struct run_plan, trace)},
    {"ps-options", "TEXT",
     "more options for every ps, separated by blanks; run picks --port and --index", OPTION_TEXT,
     .offset = offsetof(struct run_plan, ps_options)},
};

static const char *const own_ps_options[] = {"port", "index", NULL};

/* 0: it can be started; else why it cannot. */
static int look_at_file(const char *path)
{
    struct stat file;

    if (access(path, X_OK) != 0)
        return errno;
    return stat(path, &file) == 0 && S_ISDIR(file.st_mode) ? EISDIR : 0;
}

/* The same of a program as execvp looks for it. */
static int look_for_program(const char *name)
{
    const char *folders = getenv("PATH");
    int why = ENOENT;

    if (strchr(name, '/') != NULL)
        return look_at_file(name);
    if (folders == NULL)
        return 0; /* execvp knows where the system's own are */
    for (const char *folder = folders; folder != NULL && why != 0;) {
        const char *end = folder + strcspn(folder, ":");
        char path[PATH_MAX];
        (void)snprintf(
            path, sizeof path, "%.*s%s%s", (int)(end - folder), folder, end == folder ? "" : "/",
            name);
        const int here = look_at_file(path);
        why = here == 0 || here == EACCES ? here : why;
        folder = *end == ':' ? end + 1 : NULL;
    }
    return why;
}

/* As shells say it; 0: it can be started. */
static int check_program(const char *name)
{
    if (name[0] == '\0')
        return command_say(&run_command, 127, "the name of the program is empty");
    const int why = look_for_program(name);
    if (why == 0)
        return EXIT_FINE;
    if (why == ENOENT && strchr(name, '/') == NULL && look_at_file(name) == 0)
        return command_say(
            &run_command, 127, "%s is not in PATH; write ./%s for the one in this folder", name,
            name);
    return command_say(&run_command, why == ENOENT ? 127 : 126, "%s: %s", name, strerror(why));
}

/* Does the word name an option that one ps alone may have? Its value may be the word's end. */
static bool names_address(const char *word)
{
    for (const char *const *name = own_ps_options; *name != NULL; name++) {
        const size_t bytes = strlen(*name);
        if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, *name, bytes) == 0 &&
            (word[2 + bytes] == '\0' || word[2 + bytes] == '='))
            return true;
    }
    return false;
}

/* Cut the ps's options at blanks. NULL, or what is wrong with them. */
static const char *take_ps_words(struct run_plan *plan)
{
    char *const text =
        plan->ps_options == NULL ? NULL : cli_copy(plan->ps_options, strlen(plan->ps_options));
    size_t count = 0;

    for (char *word = text == NULL ? NULL : strtok(text, " \t"); word != NULL;
         word = strtok(NULL, " \t")) {
        if (names_address(word))
            return "--ps-options has --port or --index: run picks these for each ps itself; leave "
                   "them out";
        if (count == RUN_PS_WORDS_MAX)
            return "--ps-options has more than 64 words";
        plan->ps_words[count++] = word;
    }
    return NULL;
}

_Static_assert(RUN_PS_WORDS_MAX == 64 && RUN_PROCESSES_MAX == 512, "messages say these bounds");

static bool check(struct run_plan *plan)
{
    const char *wrong = NULL;

    if (plan->program[0] == NULL)
        wrong = "which program? sumac run [options] -- PROGRAM [argument…]";
    else if (plan->worker_count > RUN_PROCESSES_MAX - plan->ps_count)
        wrong = "at most 512 processes altogether, ps and workers";
    else
        wrong = take_ps_words(plan);
    if (wrong != NULL)
        (void)command_say(&run_command, EXIT_MISUSED, "%s", wrong);
    return wrong == NULL;
}

/* From here on these signals come as bytes on the returned descriptor. */
static int take_over_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
    sigset_t taken;
    struct sigaction hangup;

    sigemptyset(&taken);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&taken, numbers[i]);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN)
        sigdelset(&taken, SIGHUP); /* nohup's: the run outlives its terminal */
    (void)sigprocmask(SIG_BLOCK, &taken, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed standard output ends no run */
    signal(SIGCHLD, SIG_DFL); /* children that are ignored have no exit code */
    return signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Other commands find the run by it; a run without is a run all the same. */
static void record(const struct run_plan *plan)
{
    struct run_record *record = cli_alloc(1, sizeof *record);
    struct sumac_error error = {0};
    size_t used = 0;

    for (size_t i = 0; plan->program[i] != NULL; i++) /* of a script, the first word says little */
        used += text_print_line(
            record->program + used, sizeof record->program - used, "%s%s", i > 0 ? " " : "",
            plan->program[i]);
    for (uint32_t i = 0; i < plan->ps_count; i++)
        (void)snprintf(
            record->ps[record->ps_count++], RUN_RECORD_ADDRESS_BYTES, "%s:%u", plan->host,
            plan->ports[i]);
    if (run_record_write(record, &error) != SUMAC_OK)
        (void)command_say(
            &run_command, EXIT_FINE, "other commands will need --ps %s:%u: %s", plan->host,
            plan->ports[0], error.text);
}

/* ---- ports: the system chooses, and all are held until the last is chosen: so they differ */

static int bind_socket(sa_family_t family, uint16_t *port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.any.sa_family = family};
    socklen_t bytes = family == AF_INET ? sizeof address.v4 : sizeof address.v6;
    const int held = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (held < 0)
        return -1;
    if (family == AF_INET)
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        address.v6.sin6_addr = in6addr_loopback;
    if (bind(held, &address.any, bytes) != 0 || getsockname(held, &address.any, &bytes) != 0) {
        const int why = errno;
        (void)close(held);
        errno = why;
        return -1;
    }
    *port = ntohs(family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
    return held;
}

static bool pick(sa_family_t family, uint16_t *ports, uint32_t count)
{
    int *held = cli_alloc(count, sizeof *held);
    uint32_t picked = 0;

    while (picked < count && (held[picked] = bind_socket(family, &ports[picked])) >= 0)
        picked++;
    const int why = errno;
    for (uint32_t i = 0; i < picked; i++)
        (void)close(held[i]);
    errno = why;
    return picked == count;
}

/* Pick `count` different free ports of *host, which is 127.0.0.1, or [::1] on a machine without
 * IPv4. Nothing keeps them free: another process may take one before it is used.
 * False: the system has none; errno says why. */
static bool pick_ports(uint16_t *ports, uint32_t count, const char **host)
{
    *host = "127.0.0.1";
    if (pick(AF_INET, ports, count))
        return true;
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT)
        return false;
    *host = "[::1]";
    return pick(AF_INET6, ports, count);
}

/* ---- the run */

static bool one_file(int left, int right)
{
    struct stat a, b;

    return fstat(left, &a) == 0 && fstat(right, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static int attempt(struct cluster_run *run, struct run_plan *plan, int signals, bool *again)
{
    *again = false;
    if (!pick_ports(plan->ports, plan->ps_count + plan->worker_count, &plan->host))
        return command_say(&run_command, EXIT_FAILED, "no free loopback port: %s", strerror(errno));
    *run = (struct cluster_run){0};
    for (int i = 0; i < 2; i++) {
        run->screens[i] = run_screen_open(STDOUT_FILENO + i);
        run->screens[i].progress_shown = &run->progress_shown;
    }
    run->one_screen = one_file(STDOUT_FILENO, STDERR_FILENO);
    int code = EXIT_FAILED;
    if (run_start(run, plan)) {
        record(plan);
        *again = run_watch(run, signals, &code);
        run_record_remove();
        run_deinit(run);
    }
    if (plan->adopts)
        run_keeper_bury();
    return code;
}

/* No other run has it: not even one that starts at the same moment. */
static bool name_run(struct run_plan *plan)
{
    uint64_t random[2];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    (void)snprintf(plan->run, sizeof plan->run, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    return true;
}

static int run_plan(struct run_plan *plan)
{
    struct cluster_run *run = cli_alloc(1, sizeof *run);
    const int signals = take_over_signals();
    int code = EXIT_FAILED;
    bool again = signals >= 0 && name_run(plan);

    plan->adopts = run_keeper_adopt();
    if (!again)
        (void)command_say(&run_command, EXIT_FAILED, "cannot start: %s", strerror(errno));
    for (int i = 0; again && i < ATTEMPTS_MAX; i++) {
        if (i > 0)
            (void)command_say(
                &run_command, EXIT_FINE,
                "a port that was free is taken; starting again with others");
        code = attempt(run, plan, signals, &again);
    }
    if (again)
        code = command_say(
            &run_command, EXIT_PORT_TAKEN, "free ports were taken %d times in a row; giving up",
            ATTEMPTS_MAX);
    if (signals >= 0)
        (void)close(signals);
    return code;
}

static int run_cluster(const void *given, struct command_words words)
{
    struct run_plan *const plan = cli_alloc(1, sizeof *plan);

    *plan = *(const struct run_plan *)given;
    plan->program = words.items;
    if (!check(plan))
        return EXIT_MISUSED;
    descriptors_raise();
    const int code = check_program(plan->program[0]);
    return code == EXIT_FINE ? run_plan(plan) : code;
}

const struct command run_command = {
    .name = "run",
    .summary = "start ps and workers on this machine, and end them",
    .arguments = "-- PROGRAM [argument…]",
    .about =
        "Starts P ps and W times PROGRAM, on loopback ports that it picks, each with a TF_CONFIG "
        "of its own in its environment. Every line that they print comes after the name of its "
        "process. The first failure ends the run with that process's exit code (128 + n: signal n; "
        "126: PROGRAM cannot be executed; 127: it is not there); workers that exit with 0 but have "
        "not all left as done end it with 1. Signals are forwarded to the workers; when they have "
        "ended the ps are, too; a second one ends all at once. With a worker ends whatever it has "
        "started, and nothing is left behind.\n\nEvery process has SUMAC_RUN, the random name of "
        "this run. ps 0 refuses a worker with another name, and accepts a worker without a name. "
        "SUMAC_PROGRESS=1 tells a worker that a line which ends in a carriage return is written "
        "over on a terminal, and shown once a second elsewhere.",
    .examples = "  sumac run --ps 2 --workers 2 --replicas 2 -- build/release/digits\n"
                "  sumac run --ps 2 --workers 2 --synchronous -- build/release/digits\n"
                "  sumac run --workers 2 --devices cpu:4 -- build/release/digits\n"
                "  sumac run --trace steps.json -- build/release/digits\n"
                "  sumac run --ps 1 --ps-options '--staging-max 512M' -- python3 my_worker.py\n",
    .carrier = "ps-options",
    .carries_to = &ps_command,
    .carries_not = own_ps_options,
    .program_follows = true,
    COMMAND_OPTIONS(struct run_plan, .ps_count = 1, .worker_count = 1),
    .run = run_cluster,
};
