/* SPDX-License-Identifier: Apache-2.0 */
/* controller_rows.h -- what a controller writes down, and what one that starts again reads.
 *
 * A record is what one step has changed, with one row for each object. A row has everything of the
 * object that must not be lost, so the last row of an object is its state. A row is:
 *
 *   | kind 1 | gone 1 | zeros 2 | bytes 4 | key | the rest |
 *
 * `bytes` counts the whole row, and `key` finds the object. A number is 8 bytes, little-endian. A
 * text, or anything else whose length differs, has its count of bytes before it.
 *
 * Clocks, streams, calls and orders have no rows. A controller that begins with these records hears
 * from every ps and client anew. It has unfinished work done again, and every ps treats repeated
 * work as done. Only rounds of collectives need more: a ps may have forgotten that a round is done,
 * so their orders keep their numbers.
 */
#pragma once

#define CONTROLLER_ROW_HEAD_BYTES 8u
/* Low bits of an order's number. The higher bits count the earlier beginnings of a controller. */
#define CONTROLLER_ORDERS_OF_BEGINNING_BITS 40u

/* In the order of a record, after the rows of objects that are gone. The comment names the key. */
enum controller_row_kind {
    CONTROLLER_ROW_CLUSTER = 1, /* nothing: there is one */
    CONTROLLER_ROW_PS,          /* its index */
    CONTROLLER_ROW_TASK,        /* job, index */
    CONTROLLER_ROW_SESSION,     /* its id, 16 bytes */
    CONTROLLER_ROW_FUNCTION,    /* its number */
    CONTROLLER_ROW_VARIABLE,    /* its id */
    CONTROLLER_ROW_BARRIER,     /* its name */
    CONTROLLER_ROW_COLLECTIVE,  /* the number of its order */
    CONTROLLER_ROW_STEP,        /* nothing: the last one that was taken */
    CONTROLLER_ROW_KINDS,
};
