/* waits.c -- what is being waited for, in sentences: for the statistics, and for a line every few
 * seconds. */
#include "judge_state.h"

#define WAITS_MAX 256u /* sentences in one answer */

struct sentences {
    char **items;
    uint32_t count;
    uint64_t left_out;
};

/* A sentence that there is no room for is counted, and not made. */
static bool has_room(struct sentences *sentences)
{
    sentences->left_out += sentences->count == WAITS_MAX;
    return sentences->count < WAITS_MAX;
}

static void say(struct sentences *sentences, const char *text)
{
    sentences->items[sentences->count++] = (char *)text;
}

static const char *join_wait(const struct judge *judge, const struct judge_session *session)
{
    const uint32_t missing = judge_peers_missing(judge);
    if (missing < judge->ps_count)
        return out_text(
            judge->out, "join of %s waits for %s", session->label, judge_peer_text(judge, missing));
    if (session->state == JUDGE_SESSION_WAITING)
        return out_text(
            judge->out, "join of %s waits for its earlier session to be settled", session->label);
    return out_text(judge->out, "join of %s waits for every ps to open it", session->label);
}

static const char *settle_wait(const struct judge *judge, const struct judge_session *session)
{
    const uint32_t missing = judge_peers_missing(judge);
    if (missing < judge->ps_count)
        return out_text(
            judge->out, "settle of %s waits for %s", session->label,
            judge_peer_text(judge, missing));
    const uint32_t short_of_memory = judge_order_short(judge, session);
    if (short_of_memory < judge->ps_count)
        return out_text(
            judge->out, "settle of %s waits for memory for what was refused, as %s has it",
            session->label, judge_peer_text(judge, short_of_memory));
    return out_text(judge->out, "settle of %s is under way", session->label);
}

static void say_sessions(const struct judge *judge, struct sentences *sentences)
{
    for (const struct judge_session *session = judge->first_session; session != NULL;
         session = session->next) {
        const bool settles =
            session->state == JUDGE_SESSION_CLOSING || session->state == JUDGE_SESSION_DECIDING;
        if ((session->state < JUDGE_SESSION_OPEN || settles) && has_room(sentences))
            say(sentences, settles ? settle_wait(judge, session) : join_wait(judge, session));
    }
}

uint32_t judge_waits(
    struct judge *judge, uint64_t now_us, struct out *out, char ***waits, uint64_t *left_out)
{
    struct sentences sentences = {.items = arena_take(out->arena, WAITS_MAX * sizeof(char *))};
    *left_out = 0;
    if (sentences.items == NULL)
        return 0;
    judge_look(judge, now_us, out);
    for (uint32_t ps = 0; ps < judge->ps_count; ps++)
        if (!judge->peers[ps].met && has_room(&sentences))
            say(&sentences, out_text(out, "ps 0 waits for %s", judge_peer_text(judge, ps)));
    say_sessions(judge, &sentences);
    for (const struct judge_call *call = judge->first_call; call != NULL; call = call->next)
        if (has_room(&sentences))
            say(&sentences, judge_call_wait(judge, call));
    *waits = sentences.items;
    *left_out = sentences.left_out;
    return sentences.count;
}

void judge_report_waits(struct judge *judge)
{
    if (judge->phase != JUDGE_RUNNING || judge->now_us < judge->next_report_us)
        return;
    judge->next_report_us = judge->now_us + judge_ms(judge->config->report_ms);
    bool any_missing = false;
    for (uint32_t ps = 0; ps < judge->ps_count; ps++) {
        if (judge->peers[ps].met && !judge_peer_is_late(judge, ps))
            continue;
        any_missing = true;
        out_log(judge->out, "ps 0 waits for %s", judge_peer_text(judge, ps));
    }
    if (judge->first_join_us == 0 && !any_missing)
        out_log(judge->out, "ps 0 waits for the first join");
}
