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
 *   LIST_FOREACH(struct part, part, &session->parts, in_session)
 *
 * An item is in as many lists as it has links, and in at most one by each. The arguments are names,
 * or have no effects: they are used several times.
 */
#pragma once

#include <stdbool.h>
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

/* The body leaves `item` in the list. */
#define LIST_FOREACH(type, item, list, links)                                                      \
    for (type *item = (list)->first; item != NULL; item = item->links.next)

/* The body may remove `item`, and no other. */
#define LIST_FOREACH_SAFE(type, item, list, links)                                                 \
    for (type *item = (list)->first, *item##_next;                                                 \
         item != NULL && (item##_next = item->links.next, true); item = item##_next)
