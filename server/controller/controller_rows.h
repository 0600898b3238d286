/* SPDX-License-Identifier: Apache-2.0 */
/* controller_rows.h -- what a controller writes down, and what one that starts again reads.
 *
 * A record is what one step has changed, a row for each object: all of what must not be lost of it,
 * so that the last row of an object is what it is.
 *
 *   row:  | kind 1 | gone 1 | zeros 2 | bytes 4, of all of it | what it is found by | the rest |
 *
 * A number is 8 bytes, little-endian; a text, or anything else whose length differs, has its bytes'
 * count before it. Clocks, streams, calls and orders have no rows: who begins with these records
 * hears everybody anew, and has what was under way done again, which every ps takes for done. Of
 * rounds of rendezvous a ps may have forgotten that it is done: their orders keep their numbers.
 */
#ifndef CONTROLLER_ROWS_H
#define CONTROLLER_ROWS_H

#define CONTROLLER_ROW_HEAD_BYTES 8u
#define CONTROLLER_ORDERS_OF_BEGINNING_BITS                                                        \
    40u /* of an order's number; above them it says how many beginnings there were before */

/* In the order of a record, after what is gone. What it is found by. */
enum controller_row_kind {
    CONTROLLER_ROW_CLUSTER = 1, /* nothing: there is one */
    CONTROLLER_ROW_PS,          /* its index */
    CONTROLLER_ROW_TASK,        /* job, index */
    CONTROLLER_ROW_SESSION,     /* its id, 16 bytes */
    CONTROLLER_ROW_FUNCTION,    /* its number */
    CONTROLLER_ROW_VARIABLE,    /* its id */
    CONTROLLER_ROW_BARRIER,     /* its name */
    CONTROLLER_ROW_MEETING,     /* the number of its order */
    CONTROLLER_ROW_STEP,        /* nothing: the last one that was taken */
    CONTROLLER_ROW_KINDS,
};

#endif
