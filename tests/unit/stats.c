/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c -- what `sumac stats` makes of the answers of the ps: sums over them, rates between two
 * looks, sentences, tables, JSON. */
#include <math.h>

#include "unit.h"
#include "assert_number.h"
#include "json.h"
#include "stats.h"

#define AS_JSON UINT32_MAX

/* A run of three ps, of which the last does not answer; worker 0 is known to both others. */
struct told {
    wire_stats_reply replies[2];
    wire_memory_stats memory;
    wire_session_stats sessions[2][3];
    wire_session_stats *pointers[2][3];
    wire_histogram staleness, push_us, pull_us;
    uint64_t counts[3][12];
    char *waits[2];
    const wire_message *messages[3];
    struct answers answers;
    struct roster_ps ps[3];
    struct roster roster;
};

/* One value, in a bucket of its own, for each. */
static void count(wire_histogram *histogram, uint64_t *counts, size_t bucket, double sum)
{
    *histogram = (wire_histogram)WIRE_HISTOGRAM_INIT;
    counts[bucket] = 1;
    histogram->counts = counts;
    histogram->n_counts = 12;
    histogram->count = 1;
    histogram->sum = sum;
}

static void fill_session(struct told *told, uint32_t ps, uint32_t place, const char *task)
{
    wire_session_stats *session = &told->sessions[ps][place];
    const uint64_t from = 1000 * (ps + 1) + 100 * place;

    *session = (wire_session_stats)WIRE_SESSION_STATS_INIT;
    session->task = (char *)(uintptr_t)task;
    session->state = (char *)(uintptr_t) "open";
    session->attempt = 1;
    session->pushes = from + 1;
    session->push_bytes = from + 2;
    session->pulls = from + 3;
    session->pull_bytes = from + 4;
    session->refused = from + 5;
    session->non_finite = from + 6;
    session->duplicates = from + 7;
    session->late = from + 14;
    session->clock = from + 8;
    session->weight = (double)from + 9;
    session->last_heard_ms = from + 10;
    session->staleness = &told->staleness;
    session->push_us = &told->push_us;
    session->pull_us = &told->pull_us;
    told->pointers[ps][place] = session;
    told->replies[ps].n_sessions = place + 1;
}

static void fill_memory(wire_memory_stats *memory)
{
    *memory = (wire_memory_stats)WIRE_MEMORY_STATS_INIT;
    memory->resident_bytes = 1 << 10;
    memory->base_bytes = 2 << 10;
    memory->state_bytes = 3 << 10;
    memory->view_bytes = 4 << 10;
    memory->view_bytes_max = 5 << 10;
    memory->staged_bytes = 6 << 10;
    memory->staging_bytes_max = 7 << 10;
    memory->grpc_memory_bytes_max = 8 << 10;
    memory->pull_bytes = 9 << 10;
    memory->pulls_bytes_max = 10 << 10;
    memory->sessions_bytes_max = 11 << 10;
    memory->state_bytes_max = 12 << 10;
    memory->connections_bytes_max = 13 << 10;
    memory->step_bytes_max = 14 << 10;
    memory->unread_answers_bytes_max = 15 << 10;
    memory->calls_bytes_max = 16 << 10;
    memory->collective_bytes = 17 << 10;
    memory->collective_bytes_max = 18 << 10;
}

static void fill_ps(struct told *told, uint32_t ps)
{
    wire_stats_reply *reply = &told->replies[ps];
    const uint64_t from = 100 * (ps + 1);

    *reply = (wire_stats_reply)WIRE_STATS_REPLY_INIT;
    reply->ps = ps;
    reply->address = (char *)(uintptr_t)(ps == 0 ? "h0:1" : "h1:1");
    reply->version = (char *)(uintptr_t) "1.2.3";
    reply->pushes = from + 1;
    reply->push_bytes = from + 2;
    reply->pulls = from + 3;
    reply->pull_bytes = from + 4;
    reply->refused = from + 5;
    reply->non_finite = from + 6;
    reply->duplicates = from + 7;
    reply->late = from + 14;
    reply->uptime_ms = from + 8;
    reply->position = from + 9;
    reply->variables = from + 10;
    reply->shards = from + 11;
    reply->connections = from + 12;
    reply->connections_max = from + 13;
    reply->staleness = &told->staleness;
    reply->push_us = &told->push_us;
    reply->pull_us = &told->pull_us;
    reply->sessions = told->pointers[ps];
    told->messages[ps] = &reply->base;
}

static int begin(void **state)
{
    struct told *const told = calloc(1, sizeof *told);

    count(&told->staleness, told->counts[0], 2, 3);   /* 2 … 4 */
    count(&told->push_us, told->counts[1], 5, 20);    /* 16 … 32 */
    count(&told->pull_us, told->counts[2], 11, 1500); /* 1024 … 2048 */
    fill_memory(&told->memory);
    for (uint32_t ps = 0; ps < 2; ps++)
        fill_ps(told, ps);
    told->replies[0].memory = &told->memory;
    fill_session(told, 0, 0, "worker 0");
    fill_session(told, 0, 1, "worker 1");
    fill_session(told, 0, 2, "observer 2");
    fill_session(told, 1, 0, "worker 0");
    told->answers = (struct answers){.count = 3, .replies = told->messages};
    for (uint32_t ps = 0; ps < 3; ps++)
        told->ps[ps] = (struct roster_ps){.address = (char *)(uintptr_t) "h2:1"};
    told->ps[2].missing = true;
    told->ps[2].silent_us = 1000000;
    told->ps[2].told_us = 6000000;
    told->roster = (struct roster){.count = 3, .ps = told->ps};
    *state = told;
    return 0;
}

static int end(void **state)
{
    free(*state);
    return 0;
}

static struct sample take(const struct told *told, uint64_t now_us)
{
    struct sample sample;

    sample_take(&told->answers, now_us, &sample);
    return sample;
}

#define TOLD_TEST(name) FIXTURE_TEST(name, struct told *const told, begin, end)

TOLD_TEST(what_a_client_did_at_several_ps_is_added_up)
{
    struct sample sample = take(told, 0);
    const struct activity *const worker = &sample.clients[0];

    assert_int_equal(sample.client_count, 3);
    assert_string_equal(worker->name, "worker 0");
    assert_string_equal(worker->state, "open");
    assert_int_equal(worker->attempt, 1);
    assert_int_equal(worker->pushes, 3002);
    assert_int_equal(worker->push_bytes, 3004);
    assert_int_equal(worker->pulls, 3006);
    assert_int_equal(worker->pull_bytes, 3008);
    assert_int_equal(worker->refused, 3010);
    assert_int_equal(worker->non_finite, 3012);
    assert_int_equal(worker->duplicates, 3014);
    assert_int_equal(worker->late, 2014);
    assert_int_equal(worker->steps, 2008);     /* the ps that knows most of it */
    assert_number_equal(worker->weight, 2009); /* likewise */
    assert_int_equal(worker->heard_ms, 1010);  /* the ps that heard it last */
    assert_int_equal(worker->staleness.counts[2], 2);
    assert_int_equal(worker->push_us.counts[5], 2);
    assert_int_equal(worker->pull_us.counts[11], 2);
    assert_string_equal(sample.clients[1].name, "worker 1");
    assert_int_equal(sample.clients[1].pushes, 1101);
    sample_deinit(&sample);
}

TOLD_TEST(what_the_ps_that_knows_most_tells_counts_whichever_it_is)
{
    told->sessions[0][0].weight = 5000;
    told->sessions[0][0].late = told->sessions[0][0].clock = 5000;
    told->sessions[1][0].last_heard_ms = 7;
    struct sample sample = take(told, 0);

    assert_number_equal(sample.clients[0].weight, 5000);
    assert_int_equal(sample.clients[0].late, 5000);
    assert_int_equal(sample.clients[0].steps, 5000);
    assert_int_equal(sample.clients[0].heard_ms, 7);
    sample_deinit(&sample);
}

TOLD_TEST(another_attempt_of_a_task_is_another_client)
{
    told->sessions[1][0].attempt = 2; /* given */

    struct sample sample = take(told, 0); /* when */

    assert_int_equal(sample.client_count, 4); /* then */
    assert_string_equal(sample.clients[1].name, "worker 0");
    assert_int_equal(sample.clients[1].attempt, 2);
    assert_int_equal(sample.clients[0].pushes, 1001);
    sample_deinit(&sample);
}

TOLD_TEST(clients_are_in_the_order_of_their_tasks)
{
    struct sample sample;

    told->sessions[0][0].task = (char *)(uintptr_t) "worker 10"; /* given */
    told->sessions[0][1].task = (char *)(uintptr_t) "observer 1";
    told->sessions[1][0].task = (char *)(uintptr_t) "worker 9";
    fill_session(told, 1, 1, "chief 0");

    sample = take(told, 0); /* when */

    assert_int_equal(sample.client_count, 5); /* then */
    assert_string_equal(sample.clients[0].name, "chief 0");
    assert_true(sample.clients[0].is_member); /* as a worker is */
    assert_false(sample.clients[3].is_member);
    assert_string_equal(sample.clients[1].name, "worker 9");
    assert_string_equal(sample.clients[2].name, "worker 10");
    assert_string_equal(sample.clients[3].name, "observer 1");
    sample_deinit(&sample);
}

TOLD_TEST(a_ps_is_shown_as_it_counts_itself_and_one_that_does_not_answer_has_no_name)
{
    struct sample sample = take(told, 77);
    const struct activity *const ps = &sample.ps[1];

    assert_int_equal(sample.at_us, 77);
    assert_int_equal(sample.ps_count, 3);
    assert_string_equal(ps->name, "ps 1");
    assert_int_equal(ps->pushes, 201);
    assert_int_equal(ps->push_bytes, 202);
    assert_int_equal(ps->pulls, 203);
    assert_int_equal(ps->pull_bytes, 204);
    assert_int_equal(ps->refused, 205);
    assert_int_equal(ps->non_finite, 206);
    assert_int_equal(ps->duplicates, 207);
    assert_int_equal(ps->late, 214);
    assert_int_equal(ps->staleness.counts[2], 1);
    assert_int_equal(ps->push_us.counts[5], 1);
    assert_int_equal(ps->pull_us.counts[11], 1);
    assert_string_equal(sample.ps[2].name, "");
    sample_deinit(&sample);
}

/* Two seconds in which worker 0 did more at ps 0: 4 steps, 10 pushes of 20 bytes, 30 pulls of 40.
 */
static void work(struct told *told)
{
    wire_session_stats *const session = &told->sessions[0][0];

    session->clock = 2012; /* ps 1 knew 2008 */
    session->pushes += 10;
    session->push_bytes += 20;
    session->pulls += 30;
    session->pull_bytes += 40;
    told->replies[0].pushes += 10;
    told->replies[0].push_bytes += 20;
    told->replies[0].pulls += 30;
    told->replies[0].pull_bytes += 40;
}

TOLD_TEST(a_rate_is_what_was_added_in_a_second)
{
    struct sample before = take(told, 1000000);

    work(told);
    struct sample now = take(told, 3000000);
    sample_compare(&before, &now); /* when */

    const struct activity *const rows[] = {&now.clients[0], &now.ps[0]}; /* then */
    for (int i = 0; i < 2; i++) {
        assert_number_equal(rows[i]->push_rate, 5);
        assert_number_equal(rows[i]->push_bytes_rate, 10);
        assert_number_equal(rows[i]->pull_rate, 15);
        assert_number_equal(rows[i]->pull_bytes_rate, 20);
    }
    assert_number_equal(now.clients[0].step_rate, 2);
    assert_number_equal(now.clients[1].push_rate, 0);
    sample_deinit(&before);
    sample_deinit(&now);
}

/* Of one that was not seen before, or not at the same ps, or whose ps began to count anew. */
TOLD_TEST(a_rate_that_cannot_be_known_is_not)
{
    struct sample before = take(told, 1000000), none = {0};

    told->replies[1].pulls = 1; /* it began anew */
    told->sessions[0][1].attempt = 2;
    struct sample now = take(told, 2000000);
    sample_compare(&before, &now);
    assert_true(isnan(now.ps[1].pull_rate));
    assert_number_equal(now.ps[1].push_rate, 0);
    assert_true(isnan(now.clients[1].push_rate));
    assert_number_equal(now.clients[0].push_rate, 0);

    sample_compare(&none, &now); /* nothing was seen before */
    assert_true(isnan(now.ps[0].push_rate));
    assert_true(isnan(now.clients[0].step_rate));

    told->messages[1] = NULL; /* ps 1 answers no more: clients' sums lack it */
    struct sample less = take(told, 3000000);
    sample_compare(&before, &less);
    assert_number_equal(less.ps[0].push_rate, 0);
    assert_true(isnan(less.clients[0].push_rate));
    sample_compare(&less, &now); /* and what it did before nobody had seen */
    assert_true(isnan(now.clients[0].push_rate));
    assert_true(isnan(now.ps[1].push_rate)); /* which was silent at first */
    assert_number_equal(now.ps[1].refused, 205);
    sample_compare(&now, &now); /* no time has passed */
    assert_true(isnan(now.ps[0].push_rate));
    sample_deinit(&before);
    sample_deinit(&now);
    sample_deinit(&less);
}

TOLD_TEST(a_push_that_concerns_two_ps_counts_once_in_its_clients_rate)
{
    struct sample before = take(told, 1000000);

    for (int ps = 0; ps < 2; ps++) {
        told->sessions[ps][0].pushes += 10;
        told->sessions[ps][0].pulls += ps == 0 ? 4 : 6; /* two of them of ps 1 alone */
    }
    struct sample now = take(told, 2000000);
    sample_compare(&before, &now);

    assert_number_equal(now.clients[0].push_rate, 20);
    assert_number_equal(now.clients[0].whole_push_rate, 10);
    assert_number_equal(now.clients[0].pull_rate, 10);
    assert_number_equal(now.clients[0].whole_pull_rate, 6);
    sample_deinit(&before);
    sample_deinit(&now);
}

/* As JSON where `width` is AS_JSON; 0: as wide, or as long, as it gets. */
static char *
printed_in(const struct told *told, const struct sample *sample, uint32_t width, uint32_t lines)
{
    const struct picture picture = {
        .roster = &told->roster, .answers = &told->answers, .sample = sample};
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);

    assert_true(
        width == AS_JSON ? stats_print_json(&picture, true, file)
                         : stats_print_tables(&picture, width, lines, file));
    assert_int_equal(fclose(file), 0);
    return text;
}

static char *printed(const struct told *told, const struct sample *sample, bool json)
{
    return printed_in(told, sample, json ? AS_JSON : 0, 0);
}

static void assert_says(const char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL)
        fail_msg("there is no\n%s\nin\n%s", wanted, text);
}

/* What waits, what was refused, and the rates of two looks. */
static struct sample look_twice(struct told *told)
{
    struct sample before = take(told, 1000000);

    told->waits[0] = (char *)(uintptr_t) "ps 1 waits for ps 2";
    told->waits[1] = (char *)(uintptr_t) "a push waits";
    told->replies[1].waits = told->waits;
    told->replies[1].n_waits = 2;
    told->replies[1].waits_left_out = 5;
    told->replies[1].sessions_left_out = 6;
    told->replies[0].connections_refused = 1;
    told->replies[1].connections_refused = 3;
    work(told);
    struct sample now = take(told, 3000000);
    sample_compare(&before, &now);
    sample_deinit(&before);
    return now;
}

STATE_TEST(observers_that_are_gone_are_left_out_unless_they_have_pushed, begin, end)
{
    static const struct {
        const char *state;
        uint64_t pushes;
        bool shown;
    } observers[] = {{"open", 0, true}, {"done", 0, false}, {"done", 1, true}};
    struct told *const told = *state;

    for (size_t i = 0; i < sizeof observers / sizeof *observers; i++) {
        told->sessions[0][2].state = (char *)(uintptr_t)observers[i].state;
        told->sessions[0][2].pushes = observers[i].pushes;
        told->sessions[0][2].clock = 777001; /* where it joined: it has taken no step */
        struct sample sample = take(told, 0);
        char *const text = printed(told, &sample, false);
        assert_int_equal(strstr(text, "\nobserver 2 ") != NULL, observers[i].shown);
        assert_int_equal(strstr(text, "\nobserver 2: ") != NULL, observers[i].shown); /* refused */
        assert_null(strstr(text, "777001"));
        free(text);
        sample_deinit(&sample);
    }
}

TOLD_TEST(the_staleness_of_a_run_is_that_of_all_its_ps)
{
    wire_histogram staler = told->staleness;

    staler.sum = 9; /* where ps 0 has 3 */
    told->replies[1].staleness = &staler;
    struct sample sample = take(told, 0);
    char *const text = printed(told, &sample, false);
    assert_says(text, ", staleness 6.0 (");
    free(text);
    sample_deinit(&sample);
}

TOLD_TEST(sentences_say_who_is_slow_what_waits_and_what_was_refused)
{
    told->replies[0].waits_left_out = told->replies[0].sessions_left_out = 1;
    struct sample now = look_twice(told);
    char *const text = printed(told, &now, false);
    static const char expected[] =
        "2 workers: 2.0 steps/s, staleness 3.0 (P99 4)\n"
        "slowest: worker 1 with 0 steps/s, of worker 0's 2.0\n"
        "ps 0: 1 other waits are left out\n"
        "ps 0: 1 other sessions are left out\n"
        "ps 0: refused 1 connection so far; 112 are open, at most 113\n"
        "ps 1 waits for ps 2\n"
        "ps 1: a push waits\n"
        "ps 1: 5 other waits are left out\n"
        "ps 1: 6 other sessions are left out\n"
        "ps 1: refused 3 connections so far; 212 are open, at most 213\n"
        "worker 0: 3010 parts refused, 3012 of them for values that are not fin"
        "ite\n"
        "worker 0: 2014 contributions came late: a synchronous step was taken without each\n"
        "worker 0: 3014 parts came again and were passed over\n"
        "worker 1: 1105 parts refused, 1106 of them for values that are not fin"
        "ite\n"
        "worker 1: 1114 contributions came late: a synchronous step was taken without each\n"
        "worker 1: 1107 parts came again and were passed over\n"
        "observer 2: 1205 parts refused, 1206 of them for values that are not f"
        "inite\n"
        "observer 2: 1214 contributions came late: a synchronous step was taken without each\n"
        "observer 2: 1207 parts came again and were passed over\n";

    assert_memory_equal(text, expected, sizeof expected - 1);

    free(text);
    sample_deinit(&now);
}

TOLD_TEST(a_ps_that_refused_no_connection_says_nothing_of_it)
{
    struct sample now = take(told, 3000000);

    told->replies[0].connections_refused = told->replies[1].connections_refused = 0;
    char *const text = printed(told, &now, false);

    assert_null(strstr(text, " connection"));
    free(text);
    sample_deinit(&now);
}

TOLD_TEST(in_80_columns_who_does_what_is_left_and_observers_that_are_gone_are_not)
{
    static const char *const titles[] = {"STATE", "DONE", "LAG", "AGO"};

    told->sessions[0][2].state = (char *)(uintptr_t) "done"; /* given: of observer 2 */
    told->sessions[0][2].pushes = 0;
    struct sample sample = take(told, 0);
    char *const text = printed_in(told, &sample, 80, 0); /* when */

    const char *const table = strstr(text, "CLIENT"); /* then */
    assert_non_null(table);
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        assert_true(
            strstr(table, titles[i]) != NULL && strstr(table, titles[i]) < strchr(table, '\n'));
    assert_null(strstr(table, "observer 2"));
    free(text);
    sample_deinit(&sample);
}

/* Below the ps and the memory. */
TOLD_TEST(clients_of_the_middle_are_counted_where_lines_are_few)
{
    uint32_t lines = 0;

    told->sessions[1][0].attempt = 9; /* given: four clients */
    struct sample sample = take(told, 0);
    char *whole = printed_in(told, &sample, 0, 0);
    for (const char *at = whole; *at != '\0'; at++)
        lines += *at == '\n';
    assert_true(strstr(whole, "\nPS ") < strstr(whole, "\nMEMORY "));
    assert_true(strstr(whole, "\nMEMORY ") < strstr(whole, "\nCLIENT "));

    char *const fits = printed_in(told, &sample, 0, lines);
    char *const less = printed_in(told, &sample, 0, lines - 1);
    char *const least = printed_in(told, &sample, 0, 1);

    assert_string_equal(fits, whole);
    assert_says(less, "\n… 2 more …\n");
    assert_string_equal(least, less);
    assert_non_null(strstr(strstr(least, "CLIENT"), "\nworker 0 "));
    assert_non_null(strstr(strstr(least, "2 more"), "\nobserver 2 "));
    free(whole);
    free(fits);
    free(less);
    free(least);
    sample_deinit(&sample);
}

TOLD_TEST(a_count_that_is_more_than_a_signed_one_keeps_its_magnitude)
{
    told->replies[0].push_bytes = UINT64_MAX;
    struct sample now = take(told, 0);
    char *const text = printed(told, &now, true);

    assert_says(text, "\"push_bytes\": 1.8446744073709552e+19,");
    free(text);
    sample_deinit(&now);
}

TOLD_TEST(a_run_without_steps_is_measured_by_its_pushes)
{
    for (int ps = 0; ps < 2; ps++)
        for (int i = 0; i < 3; i++)
            told->sessions[ps][i].clock = 0;
    told->sessions[0][2].state = (char *)(uintptr_t) "closing";
    struct sample before = take(told, 1000000);
    told->sessions[0][0].pushes += 10;
    told->sessions[0][1].pushes += 8;
    struct sample now = take(told, 2000000);
    sample_compare(&before, &now);

    char *const text = printed(told, &now, false);

    assert_says(text, "2 workers: 18 pushes/s, staleness 3.0 (P99 4)\n");
    assert_null(strstr(text, "slowest")); /* 80 % of the fastest is not slow */
    free(text);
    sample_deinit(&before);
    sample_deinit(&now);
}

TOLD_TEST(a_worker_that_has_left_is_not_slow)
{
    told->sessions[0][1].state = (char *)(uintptr_t) "done";
    struct sample now = look_twice(told);
    char *const text = printed(told, &now, false);

    assert_says(text, "1 worker: 2.0 steps/s, staleness 3.0 (P99 4)\nps 0: refused");
    free(text);
    sample_deinit(&now);
}

TOLD_TEST(a_table_has_each_clients_figures)
{
    told->sessions[0][1].attempt = 3;
    told->sessions[0][2].clock = 0;
    struct sample now = look_twice(told);
    char *const text = printed(told, &now, false);

    assert_says(text, "2 workers: 2.0 steps/s"); /* though one of the clients counts none */

    assert_says(
        text, "\n"
              "                             ─── steps ────  ────────── push ──────────  st"
              "aleness  ─────────── pull ────────────  heard\n"
              "CLIENT                STATE   /S  DONE  LAG   /S  BYTES/S    P50    P99  ME"
              "AN  P99  /S  BYTES/S      P50      P99     AGO\n"
              "worker 0              open   2.0  2012  904  5.0       10  24 µs  32 µs   3"
              ".0    4  15       20  1.54 ms  2.04 ms  1.01 s\n"
              "worker 1 (attempt 3)  open     0  1108    0    0        0  24 µs  32 µs   3"
              ".0    4   0        0  1.54 ms  2.04 ms  1.11 s\n"
              "observer 2            open     -     -    -    0        0  24 µs  32 µs   3"
              ".0    4   0        0  1.54 ms  2.04 ms  1.21 s\n");
    free(text);
    sample_deinit(&now);
}

TOLD_TEST(tables_have_each_ps_and_its_memory)
{
    struct sample now = look_twice(told);
    char *const text = printed(told, &now, false);

    assert_says(
        text, "\n"
              "      ────────── push ──────────  staleness  ─────────── pull ────────"
              "────   held\n"
              "PS     /S  BYTES/S    P50    P99  MEAN  P99  /S  BYTES/S      P50     "
              " P99  SHARDS  ADDRESS\n"
              "ps 0  5.0       10  24 µs  32 µs   3.0    4  15       20  1.54 ms  2.0"
              "4 ms     111  h0:1\n"
              "ps 1    0        0  24 µs  32 µs   3.0    4   0        0  1.54 ms  2.0"
              "4 ms     211  h1:1\n"
              "ps 2  no answer for 5 s at h2:1\n");
    assert_says(
        text, "\n"
              "        ────── process ──────  ── state ──  ─ staged ─  ─ views ──  ──"
              " pulls ──  collectives   sessions  conns  calls  unread  step   gRPC\n"
              "MEMORY  RESIDENT  BOUND  BASE  USED    MAX  USED   MAX  USED   MAX  US"
              "ED    MAX   USED    MAX       MAX    MAX    MAX     MAX    MAX   MAX\n"
              "ps 0        1.0K   122K  2.0K  3.0K  12.0K  6.0K  7.0K  4.0K  5.0K  9."
              "0K  10.0K  17.0K  18.0K     11.0K  13.0K  16.0K   15.0K  14.0K  8.0K\n");
    free(text);
    sample_deinit(&now);
}

TOLD_TEST(a_ps_without_a_bound_has_none_in_the_table)
{
    told->memory.state_bytes_max = 0;
    struct sample now = take(told, 0);
    char *const text = printed(told, &now, false);

    assert_says(text, "3.0K    -  6.0K  7.0");
    free(text);
    sample_deinit(&now);
}

/* Of a ps that was silent at first, and of the clients, whose sums lack what it did. */
TOLD_TEST(a_rate_that_is_not_known_is_a_dash_and_null)
{
    told->messages[1] = NULL;
    struct sample before = take(told, 1000000);
    told->messages[1] = &told->replies[1].base;
    struct sample now = take(told, 3000000);
    sample_compare(&before, &now);
    char *const tables = printed(told, &now, false), *const json = printed(told, &now, true);

    assert_says(tables, "2 workers: 0 steps/s");
    assert_says(
        tables, "worker 0    open    -  2008  900   -        -  24 µs  32 µs   3"
                ".0    4   -        -  1.54 ms  2.04 ms  1.01 s\n");
    assert_says(tables, "\nps 1   -        -  24 µs  32 µs   3.0    4   -        -  1.54 ms");
    assert_says(tables, "\nps 0   0        0  24 µs  32 µs   3.0    4   0        0  1.54 ms");
    assert_says(
        json, "{\"name\": \"ps 1\", \"pushes\": 201, \"push_bytes\": 202, \"pushes_per_s\": "
              "null, \"push_bytes_per_s\": null, \"pulls\": 203, \"pull_bytes\": 204, "
              "\"pulls_per_s\": null, \"pull_bytes_per_s\": null, ");
    assert_says(json, "\"steps\": 2008, \"lag\": 900, \"steps_per_s\": null, ");
    free(tables);
    free(json);
    sample_deinit(&before);
    sample_deinit(&now);
}

TEST(infinity_and_nan_are_null_in_json)
{
    const double numbers[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    json_t *const json = json_array();
    char text[64] = "";
    FILE *file = fmemopen(text, sizeof text, "w");

    for (size_t i = 0; i < 3; i++)
        json_add(json, json_finite(numbers[i]));
    assert_true(json_print(json, true, file));
    fclose(file);

    assert_string_equal(text, "[null, null, null]\n");
}

TOLD_TEST(json_has_all_of_it)
{
    struct sample now = look_twice(told);
    char *const text = printed(told, &now, true);

    assert_says(
        text,
        "{\"name\": \"ps 0\", \"pushes\": 111, \"push_bytes\": 122, \"pushes_per_s\": 5.0"
        ", \"push_bytes_per_s\": 10.0, \"pulls\": 133, \"pull_bytes\": 144, \"pulls_pe"
        "r_s\": 15.0, \"pull_bytes_per_s\": 20.0, \"refused\": 105, \"non_finite\": 10"
        "6, \"late\": 114, \"duplicates\": 107, \"push_us\": {\"count\": 1, \"mean\": 20.0, "
        "\"p50\": 24."
        "0, \"p90\": 30.4, \"p99\": 31.84}, \"pull_us\": {\"count\": 1, \"mean\": 1500.0,"
        " \"p50\": 1536.0, \"p90\": 1945.6, \"p99\": 2037.76}, \"staleness\": {\"count\":"
        " 1, \"mean\": 3.0, \"p50\": 3.0, \"p90\": 3.8, \"p99\": 3.98}, \"address\": \"h0:"
        "1\", \"uptime_ms\": 108, \"position\": 109, \"variables\": 110, \"shards\": 111"
        ", \"connections\": 112, \"connections_max\": 113, \"connections_refused\": 1"
        ", \"version\": \"1.2.3\", \"memory\": {\"resident_bytes\": 1024, \"base_bytes\":"
        " 2048, \"state_bytes\": 3072, \"view_bytes\": 4096, \"view_bytes_max\": 5120"
        ", \"staged_bytes\": 6144, \"staging_bytes_max\": 7168, \"state_bytes_max\": "
        "12288, \"pull_bytes\": 9216, \"pulls_bytes_max\": 10240, \"collective_bytes\": 17408, "
        "\"collective_bytes_max\": 18432, \"sessions_bytes_m"
        "ax\": 11264, \"connections_bytes_max\": 13312, \"calls_bytes_max\": 16384, "
        "\"unread_answers_bytes_max\": 15360, \"step_bytes_max\": 14336, \"grpc_memo"
        "ry_bytes_max\": 8192, \"bound_bytes\": 124928}, \"waits\": [], \"waits_left_"
        "out\": 0, \"sessions_left_out\": 0}");
    assert_says(
        text, "\"connections_refused\": 3, \"version\": \"1.2.3\", \"memory\": {}, \"waits\": ["
              "\"ps 1 waits for ps 2\", \"a push waits\"], \"waits_left_out\": 5, \"sessions"
              "_left_out\": 6}]");
    assert_says(
        text, "{\"name\": \"worker 0\", \"pushes\": 3012, \"push_bytes\": 3024, \"pushes_per_s"
              "\": 5.0, \"push_bytes_per_s\": 10.0, \"pulls\": 3036, \"pull_bytes\": 3048, \""
              "pulls_per_s\": 15.0, \"pull_bytes_per_s\": 20.0, \"refused\": 3010, \"non_fi"
              "nite\": 3012, \"late\": 2014, \"duplicates\": 3014, \"push_us\": {\"count\": 2, "
              "\"mean\": 20.0,"
              " \"p50\": 24.0, \"p90\": 30.4, \"p99\": 31.84}, \"pull_us\": {\"count\": 2, \"mea"
              "n\": 1500.0, \"p50\": 1536.0, \"p90\": 1945.6, \"p99\": 2037.76}, \"staleness\""
              ": {\"count\": 2, \"mean\": 3.0, \"p50\": 3.0, \"p90\": 3.8, \"p99\": 3.98}, \"att"
              "empt\": 1, \"state\": \"open\", \"steps\": 2012, \"lag\": 904, \"steps_per_s\": "
              "2.0, \"weight\""
              ": 2009.0, \"last_heard_ms\": 1010}");
    assert_says(
        text, "\"missing\": [{\"ps\": 2, \"address\": \"h2:1\", \"error\": \"no answer for 5 s\"}"
              "]}\n");
    assert_says(text, "\"state\": \"open\", \"steps\": 1208, \"lag\": null, "); /* an observer */
    assert_null(strchr(strchr(text, '\n') + 1, '\n'));                          /* it is one line */
    free(text);
    sample_deinit(&now);
}
