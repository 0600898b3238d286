/* ask.h -- one unary call to each of several ps, and their answers. Needs no session. */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include "find_cluster.h"
#include "wire.h"

/* Answers in the order of the ps; valid until answers_deinit. */
struct answers {
    uint32_t count;
    const wire_message **replies;
    struct arena arena;
};

/* What is asked: service->methods[method], with `request`. */
struct inquiry {
    const wire_service *service;
    unsigned method;
    const wire_message *request;
};

/* Ask every ps of the list, all at once.
 *
 * Gives    *answers; release with answers_deinit.
 * Fails    with the status of the first ps, in order, that did not answer; the text names it, and says what to do. */
enum sumac_status ask_every(
    const struct ps_list *list, const struct inquiry *inquiry, struct answers *answers,
    struct sumac_error *error);
void answers_deinit(struct answers *answers);

/* The addresses of all ps of the run, as the first of `some` that answers knows them.
 * Gives    *all; release with ps_list_deinit. Fails  as ask_every. */
enum sumac_status
ask_addresses(const struct ps_list *some, struct ps_list *all, struct sumac_error *error);

#endif
