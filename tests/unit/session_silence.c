/* SPDX-License-Identifier: Apache-2.0 */
/* session_silence.c -- a ps that is not reached: the remedy fits the cause. */
#include <stdio.h>

#include "session_talk.h"
#include "silence.h"

/* A client that waits for ps 0, whose last call ended so. */
static struct sumac_error gives_up_after(const char *why)
{
    struct talk talk;
    const struct sumac_error error = {.status = SUMAC_UNAVAILABLE};
    struct sumac_error said = error;

    talk_config(
        &talk, &(struct session_config){
                   .role = WIRE_ROLE_MEMBER,
                   .job = "worker",
                   .ps_addresses = talk_addresses,
                   .ps_count = 1});
    talk_step(&talk, (struct session_event){.kind = SESSION_EVENT_START});
    (void)snprintf(said.text, sizeof said.text, "%s", why);
    for (uint64_t last = 0; talk_find(&talk, SESSION_EFFECT_ENDED) == NULL;) {
        const bool asks = talk.finds[0] != last;
        last = talk.finds[0];
        if (asks)
            talk_step(
                &talk, (struct session_event){
                           .kind = SESSION_EVENT_CALL_FAILED, .call = last, .error = &said});
        else
            talk_tick_after(&talk, 10);
    }
    said = talk_find(&talk, SESSION_EFFECT_ENDED)->error;
    talk_close(&talk);
    return said;
}

static void assert_ends_with(const char *text, const char *end)
{
    const size_t bytes = strlen(text), end_bytes = strlen(end);

    assert_true(bytes >= end_bytes);
    assert_string_equal(text + bytes - end_bytes, end);
}

TEST(a_process_without_memory_is_not_told_to_mend_the_ps)
{
    assert_ends_with(gives_up_after(SILENCE_NO_MEMORY).text, " s (" SILENCE_NO_MEMORY ")");
}

TEST(a_ps_that_took_the_connection_need_not_be_started)
{
    const struct sumac_error error = gives_up_after(SILENCE_MUTE);

    assert_non_null(strstr(error.text, "ps 0 at h0:2222 did not answer within "));
    assert_ends_with(error.text, " s (" SILENCE_MUTE "); " SILENCE_MUTE_REMEDY);
}
