/* SPDX-License-Identifier: Apache-2.0 */
/* roster.c -- the ps of a run, and who of them does not answer. */
#include "roster.h"

#include <assert.h>
#include <string.h>

#include "alloc.h"
#include "error.h"
#include "last_word.h"
#include "loopback.h"
#include "text.h"

#define SAID_FROM_US 1000000u /* a silence that is shorter was no wait */

void roster_add(struct roster *roster, const char *address)
{
    roster->ps = cli_grow(roster->ps, roster->count, sizeof *roster->ps);
    roster->ps[roster->count++].address = cli_copy(address, strlen(address));
}

void roster_leave_out_all_but(struct roster *roster, uint32_t one)
{
    for (uint32_t i = 0; i < roster->count; i++)
        roster->ps[i].left_out = i != one;
}

const char *roster_remedy(const struct roster *roster, uint32_t index)
{
    bool beside_others = false;

    for (size_t i = 0; i < roster->count; i++)
        beside_others |= !loopback_is(roster->ps[i].address);
    return beside_others && loopback_is(roster->ps[index].address) ? LOOPBACK_REMEDY
                                                                   : OTHER_PS_REMEDY;
}

enum sumac_status roster_check_index(
    const struct roster *roster, uint32_t index, uint32_t said, struct sumac_error *error)
{
    assert(index < roster->count);
    if (!roster->by_index || said == index)
        return SUMAC_OK;
    return fail(
        error, SUMAC_FAILED_PRECONDITION, SUMAC_REASON_WRONG_CLUSTER,
        "ps %u answers at %.200s, which the list of the ps calls ps %u: %s", said,
        roster->ps[index].address, index, roster_remedy(roster, index));
}

uint32_t roster_missing(const struct roster *roster)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < roster->count; i++)
        count += roster->ps[i].missing;
    return count;
}

bool roster_has_last_word(const struct roster *roster)
{
    for (uint32_t i = 0; i < roster->count; i++)
        if (roster->ps[i].missing && last_word_is(&roster->ps[i].why))
            return true;
    return false;
}

struct roster_silence roster_silence(const struct roster_ps *ps)
{
    const uint64_t silent_us = ps->told_us - ps->silent_us;
    const bool is_late =
        ps->why.status == SUMAC_DEADLINE_EXCEEDED || ps->why.status == SUMAC_CANCELLED;
    const bool says_why = !is_late && ps->why.text[0] != '\0';
    struct roster_silence silence;

    (void)text_print_line(
        silence.text, sizeof silence.text, "no answer%s%s%s%.160s%s",
        silent_us >= SAID_FROM_US ? " for " : "",
        silent_us >= SAID_FROM_US ? text_time_us(silent_us).text : "", says_why ? " (" : "",
        says_why ? ps->why.text : "", says_why ? ")" : "");
    return silence;
}

int roster_report(const struct command *command, const struct roster *roster, const char *left_out)
{
    int code = EXIT_FINE;

    for (uint32_t i = 0; i < roster->count; i++) {
        const struct roster_ps *ps = &roster->ps[i];
        if (!ps->missing)
            continue;
        (void)command_say(
            command, EXIT_FAILED, "ps %u at %s: %s; %s", i, ps->address, roster_silence(ps).text,
            left_out);
        code = code == EXIT_FINE ? command_exit_code(&ps->why) : code;
    }
    return code;
}

json_t *roster_to_json(const struct roster *roster)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < roster->count; i++) {
        const struct roster_ps *ps = &roster->ps[i];
        if (!ps->missing)
            continue;
        json_add(
            array, JSON_OBJECT(
                       {"ps", json_number(i)}, {"address", json_string(ps->address)},
                       {"error", json_string(roster_silence(ps).text)}));
    }
    return array;
}
