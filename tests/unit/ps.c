/* SPDX-License-Identifier: Apache-2.0 */
/* ps.c (test) -- the numbers that a ps gives to calls, whose turn it is, its log, and what it has
 * of the machine.
 *
 * The process itself is tested by tests/process.
 */

#include "unit.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ps_state.h"

/* The table never looks into its calls. */
static struct rpc_call *call_at(char *place) { return (struct rpc_call *)(void *)place; }

TEST(a_number_is_never_used_again)
{
    struct ps_links links;

    assert_true(ps_links_init(&links));
    char calls[2];
    struct ps_link *const first = ps_links_add(&links, NULL, call_at(&calls[0]));
    const uint64_t first_id = first->id;
    assert_int_not_equal(first_id, 0);
    assert_ptr_equal(ps_links_find(&links, first_id), first);

    ps_links_remove(&links, first);
    struct ps_link *const second = ps_links_add(&links, NULL, call_at(&calls[1]));

    assert_null(ps_links_find(&links, first_id));
    assert_int_not_equal(second->id, first_id);
    assert_ptr_equal(ps_links_find(&links, second->id), second);
    assert_null(ps_links_find(&links, 0));
    ps_links_deinit(&links);
}

TEST(a_full_table_takes_no_more_until_one_goes)
{
    struct ps_links links;

    assert_true(ps_links_init(&links));
    char call;
    struct ps_link *last = NULL;
    for (uint32_t i = 0; i < PS_LINKS_MAX; i++) {
        last = ps_links_add(&links, NULL, call_at(&call));
        assert_non_null(last);
    }

    assert_null(ps_links_add(&links, NULL, call_at(&call)));
    ps_links_remove(&links, last);

    assert_non_null(ps_links_add(&links, NULL, call_at(&call)));
    ps_links_deinit(&links);
}

TEST(long_pulls_take_turns)
{
    struct ps_turns turns = {0};
    struct ps_link links[3] = {{0}};

    for (size_t i = 0; i < 3; i++)
        ps_turns_note(&turns, &links[i], true);
    assert_null(ps_turns_take(&turns));

    for (size_t i = 0; i < 3; i++)
        assert_true(ps_turns_wait(&turns, &links[i]));
    assert_ptr_equal(ps_turns_take(&turns), &links[0]);
    assert_true(ps_turns_wait(&turns, &links[0])); /* its next message, behind the others */

    assert_ptr_equal(ps_turns_take(&turns), &links[1]);
    assert_ptr_equal(ps_turns_take(&turns), &links[2]);
    assert_ptr_equal(ps_turns_take(&turns), &links[0]);
    assert_null(ps_turns_take(&turns));
}

/* Of thousands that are answered at once, so many go before what else has arrived is heard. */
TEST(short_answers_that_nobody_just_asked_for_wait_for_a_look_at_the_network)
{
    struct ps_turns turns = {0};
    struct ps_link reader = {.is_stream = true, .stream_kind = LANE_STREAM_PULL};
    struct ps_link pusher = {.is_stream = true, .stream_kind = LANE_STREAM_PUSH};

    for (uint32_t i = 0; i < PS_UNASKED_PER_TURN_MAX; i++)
        assert_false(ps_turns_wait(&turns, &reader));
    assert_true(ps_turns_wait(&turns, &reader));
    assert_false(ps_turns_wait(&turns, &pusher));
    assert_ptr_equal(ps_turns_take(&turns), &reader);
    ps_turns_looked(&turns);
    assert_false(ps_turns_wait(&turns, &reader));

    for (uint32_t i = 0; i < 4 * PS_UNASKED_PER_TURN_MAX; i++) {
        ps_turns_asked(&turns);
        assert_false(ps_turns_wait(&turns, &reader));
    }
}

TEST(short_answers_and_a_long_pull_alone_wait_for_no_turn)
{
    struct ps_turns turns = {0};
    struct ps_link reader = {.is_stream = true, .stream_kind = LANE_STREAM_PULL}, other = {0};

    assert_false(ps_turns_wait(&turns, &reader));
    ps_turns_note(&turns, &reader, true);
    ps_turns_note(&turns, &reader, true);
    for (uint32_t i = 0; i <= 2 * PS_UNASKED_PER_TURN_MAX; i++)
        assert_false(ps_turns_wait(&turns, &reader));

    ps_turns_note(&turns, &other, true);
    assert_true(ps_turns_wait(&turns, &reader));
    assert_ptr_equal(ps_turns_take(&turns), &reader);
    ps_turns_note(&turns, &other, false);
    assert_false(ps_turns_wait(&turns, &other));
    assert_false(ps_turns_wait(&turns, &reader));
}

TEST(who_goes_leaves_the_queue)
{
    for (size_t gone = 0; gone < 3; gone++) {
        struct ps_turns turns = {0};
        struct ps_link links[4] = {{0}};
        for (size_t i = 0; i < 4; i++)
            ps_turns_note(&turns, &links[i], true);
        for (size_t i = 0; i < 3; i++)
            assert_true(ps_turns_wait(&turns, &links[i]));

        ps_turns_forget(&turns, &links[gone]);

        assert_true(ps_turns_wait(&turns, &links[3]));
        for (size_t i = 0; i < 4; i++)
            if (i != gone)
                assert_ptr_equal(ps_turns_take(&turns), &links[i]);
        assert_null(ps_turns_take(&turns));
        assert_int_equal(turns.bulky, 3);
    }
}

TEST(a_log_line_has_its_time_and_its_ps)
{
    char line[128];

    const uint32_t bytes =
        ps_log_line(UINT64_C(1795269723123), 3, "ps 3 listens on 0.0.0.0:2222", line, sizeof line);

    assert_string_equal(line, "2026-11-21T14:02:03.123Z ps 3 listens on 0.0.0.0:2222\n");
    assert_int_equal(bytes, strlen(line));
    (void)ps_log_line(UINT64_C(1795269723123), 0, "ps 3 is lost", line, sizeof line);
    assert_string_equal(line, "2026-11-21T14:02:03.123Z ps 0: ps 3 is lost\n");
}

TEST(a_long_log_line_is_cut_and_still_ends)
{
    char text[200], line[64];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';

    const uint32_t bytes = ps_log_line(0, 0, text, line, sizeof line);

    assert_int_equal(bytes, sizeof line - 1);
    assert_int_equal(line[bytes - 1], '\n');
    assert_int_equal(line[bytes], '\0');
}

TEST(a_log_line_is_one_printable_line_whatever_a_peer_said)
{
    char line[128];

    ps_log_line(
        0, 0, "variable \x1b]0;a\a\n1970-01-01T00:00:00.000Z ps 0: forged\xc2\x9b is gone", line,
        sizeof line);

    assert_string_equal(
        line, "1970-01-01T00:00:00.000Z ps 0: variable ?]0;a??1970-01-01T00:00:00.000Z ps 0: "
              "forged?? is gone\n");
}

/* And nobody finds them in its memory. */
TEST(random_bits_go_on_after_a_page)
{
    static struct ps_random random;

    assert_true(ps_random_init(&random));
    assert_int_equal(random.used, 0);
    uint64_t any = 0, before = 0;
    for (int i = 0; i < 1000; i++) {
        const uint64_t bits = ps_random_bits(&random);
        assert_true(bits != before);
        assert_int_equal(random.used, i % 256 + 1);
        assert_true(random.bits[random.used - 1] == 0);
        before = bits;
        any |= bits;
    }
    assert_true(any == UINT64_MAX);
}

/* Both wait until they are asked for; a peer that has gone ends nobody. */
TEST(signals_wait_and_a_broken_pipe_is_no_signal)
{
    static struct ps ps;
    sigset_t before, blocked;
    struct sigaction pipe;

    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    ps_signals_block(&ps);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    assert_int_equal(sigaction(SIGPIPE, NULL, &pipe), 0);
    assert_ptr_equal(pipe.sa_handler, SIG_IGN);
    for (int i = 0; i < 2; i++) {
        const int number = i == 0 ? SIGTERM : SIGINT;
        assert_true(sigismember(&blocked, number));
        assert_int_equal(raise(number), 0);
        assert_int_equal(ps_signals_take(&ps), number);
        assert_int_equal(ps_signals_take(&ps), 0);
    }
    ps_signals_restore(&ps);
    assert_int_equal(sigaction(SIGPIPE, NULL, &pipe), 0);
    assert_ptr_equal(pipe.sa_handler, SIG_DFL);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

TEST(a_ps_that_does_not_come_to_its_end_exits_all_the_same)
{
    const pid_t child = fork();

    if (child == 0) {
        ps_exit_within(143, 1);
        for (;;)
            (void)pause();
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 143);
}

/* As a parent process may leave it: a mask outlives the exec. */
TEST(a_blocked_alarm_does_not_keep_a_ps_from_its_end)
{
    const pid_t child = fork();

    if (child == 0) {
        sigset_t alarm; /* given */
        sigemptyset(&alarm);
        sigaddset(&alarm, SIGALRM);
        (void)pthread_sigmask(SIG_BLOCK, &alarm, NULL);
        ps_exit_within(143, 1); /* when */
        (void)poll(NULL, 0, 10000);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 143); /* then */
}

TEST(a_ps_that_has_come_to_its_end_gives_its_caller_the_code)
{
    static struct ps ps;
    struct itimerval left;

    ps_exit_within(143, PS_CLOSE_MS_MAX);
    ps_signals_restore(&ps);
    assert_int_equal(getitimer(ITIMER_REAL, &left), 0);
    assert_int_equal(left.it_value.tv_sec, 0);
    assert_int_equal(left.it_value.tv_usec, 0);
}

/* As nohup has it; else its terminal's end is a signal as others are. */
TEST(a_hangup_that_is_ignored_stays_so)
{
    static struct ps ps;
    sigset_t before;
    struct sigaction was;

    assert_int_equal(sigaction(SIGHUP, NULL, &was), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    for (int ignored = 0; ignored < 2; ignored++) {
        (void)signal(SIGHUP, ignored ? SIG_IGN : SIG_DFL);
        ps_signals_block(&ps);
        ps_signals_restore(&ps);
        assert_int_equal(sigismember(&ps.signals, SIGHUP), !ignored);
        assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    }
    assert_int_equal(sigaction(SIGHUP, &was, NULL), 0);
}

TEST(this_process_is_resident)
{
    assert_true(ps_resident_bytes() > 100000);
    assert_true(ps_memory_bytes() > ps_resident_bytes());
    assert_true(ps_processors() >= 1);
}
