/* SPDX-License-Identifier: Apache-2.0 */
/* judge_rows.h -- what a judge writes down, and what one that starts again reads.
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
#ifndef JUDGE_ROWS_H
#define JUDGE_ROWS_H

#define JUDGE_ROW_HEAD_BYTES 8u
#define JUDGE_ORDERS_OF_BEGINNING_BITS                                                             \
    40u /* of an order's number; above them it says how many beginnings there were before */

/* In the order of a record, after what is gone. What it is found by. */
enum judge_row_kind {
    JUDGE_ROW_CLUSTER = 1, /* nothing: there is one */
    JUDGE_ROW_PS,          /* its index */
    JUDGE_ROW_TASK,        /* job, index */
    JUDGE_ROW_SESSION,     /* its id, 16 bytes */
    JUDGE_ROW_FUNCTION,    /* its number */
    JUDGE_ROW_VARIABLE,    /* its id */
    JUDGE_ROW_BARRIER,     /* its name */
    JUDGE_ROW_MEETING,     /* the number of its order */
    JUDGE_ROW_STEP,        /* nothing: the last one that was taken */
    JUDGE_ROW_KINDS,
};

#endif
