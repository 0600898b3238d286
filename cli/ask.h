/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h -- one unary call to each ps of a run, and the answers that come. Needs no session. */
#pragma once

#include "roster.h"
#include "wire.h"

/* Answers in the order of the ps, NULL where none came; valid until answers_deinit. */
struct answers {
    uint32_t count;
    uint32_t first; /* the first ps that answered */
    const wire_message **replies;
    struct arena arena;
};

/* What is asked: service->methods[method], with `request`. */
struct inquiry {
    const wire_service *service;
    unsigned method;
    const wire_message *request;
    bool one_is_enough; /* the first answer ends it */
};

/* Ask every ps of the roster that is not left out, all at once. Whoever does not answer within 5 s
 * is missing from then on, and has half a second the next time.
 *
 * Gives    *answers, one at least; release with answers_deinit.
 * Fails    with what a ps answered, NOT_FOUND and INVALID_ARGUMENT alone; as roster_check_index; or
 *          when nobody answers, with why the first one does not. The text names the ps, and says
 *          what to do. */
enum sumac_status
ask(struct roster *roster, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error);
void answers_deinit(struct answers *answers);

/* The same question everywhere: which ps of which run is it? Each answer is a ListReply without a
 * variable. */
static inline enum sumac_status ask_who(
    struct roster *roster, bool one_is_enough, struct answers *answers, struct sumac_error *error)
{
    wire_list_request request = WIRE_LIST_REQUEST_INIT;

    request.after_id = UINT64_MAX; /* no variable has a larger one */
    const struct inquiry inquiry = {
        .service = WIRE_VARIABLES,
        .method = WIRE_VARIABLES_LIST,
        .request = &request.base,
        .one_is_enough = one_is_enough};
    return ask(roster, &inquiry, answers, error);
}

/* That ps's answer; NULL: it gave none. */
static inline const wire_list_reply *list_of(const struct answers *answers, uint32_t ps)
{
    return (const wire_list_reply *)(const void *)answers->replies[ps];
}
