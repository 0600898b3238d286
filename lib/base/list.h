/* SPDX-License-Identifier: Apache-2.0 */
/* list.h -- lists whose links are in their items: adding and removing take no memory, and a time
 * that does not grow.
 *
 *   struct part {
 *       LINKS(struct part) in_session;
 *   };
 *   LIST(struct part) parts;                               zeroed: empty
 *
 *   LIST_APPEND(&session->parts, part, in_session);
 *   for (struct part *part = session->parts.first; part != NULL; part = part->in_session.next)
 *
 * An item is in as many lists as it has links, and in at most one by each. Whoever removes within
 * the loop reads `next` first. The arguments are names, or have no effects: they are used several
 * times.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stddef.h>

#define LIST(type)                                                                                 \
    struct {                                                                                       \
        type *first, *last;                                                                        \
    }

#define LINKS(type)                                                                                \
    struct {                                                                                       \
        type *next, *prev;                                                                         \
    }

/* Behind `before`, which is in the list; NULL: as the first. */
#define LIST_INSERT(list, before, item, links)                                                     \
    do {                                                                                           \
        (item)->links.prev = (before);                                                             \
        (item)->links.next =                                                                       \
            (item)->links.prev == NULL ? (list)->first : (item)->links.prev->links.next;           \
        *((item)->links.prev == NULL ? &(list)->first : &(item)->links.prev->links.next) = (item); \
        *((item)->links.next == NULL ? &(list)->last : &(item)->links.next->links.prev) = (item);  \
    } while (0)

#define LIST_APPEND(list, item, links) LIST_INSERT(list, (list)->last, item, links)
#define LIST_PREPEND(list, item, links) LIST_INSERT(list, NULL, item, links)

/* Its links are NULL then. */
#define LIST_REMOVE(list, item, links)                                                             \
    do {                                                                                           \
        *((item)->links.prev == NULL ? &(list)->first : &(item)->links.prev->links.next) =         \
            (item)->links.next;                                                                    \
        *((item)->links.next == NULL ? &(list)->last : &(item)->links.next->links.prev) =          \
            (item)->links.prev;                                                                    \
        (item)->links.next = (item)->links.prev = NULL;                                            \
    } while (0)

#endif
