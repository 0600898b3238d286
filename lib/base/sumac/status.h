/* SPDX-License-Identifier: Apache-2.0 */
/* status.h -- what a call came to, why, and who must act.
 *
 * A status is a gRPC status code, in C as on the wire. A reason (enum Reason in
 * proto/sumac/v1/types.proto, the same numbers) tells the remedy apart where one code has several.
 * An error carries both with a sentence that names the peer, the variable, the shape.
 *
 * For every function of the library: NULL where a pointer is needed, a number that is no enumerator
 * and a number out of its range are INVALID_ARGUMENT, and a function without a status returns NULL,
 * 0 or false. Where NULL is allowed, the comment says so.
 */
#ifndef SUMAC_STATUS_H
#define SUMAC_STATUS_H

#include <stdint.h>

/* Before each function that the library exports; C++ sees C's linkage. */
#ifdef __cplusplus
#define SUMAC_API extern "C" __attribute__((visibility("default")))
#else
#define SUMAC_API __attribute__((visibility("default")))
#endif
/* Before each whose result must be looked at. */
#define SUMAC_CHECKED __attribute__((warn_unused_result))

#define SUMAC_STATUS_LIST(X)                                                                       \
    X(OK, 0)                                                                                       \
    X(CANCELLED, 1)                                                                                \
    X(UNKNOWN, 2)                                                                                  \
    X(INVALID_ARGUMENT, 3)                                                                         \
    X(DEADLINE_EXCEEDED, 4)                                                                        \
    X(NOT_FOUND, 5)                                                                                \
    X(ALREADY_EXISTS, 6)                                                                           \
    X(PERMISSION_DENIED, 7)                                                                        \
    X(RESOURCE_EXHAUSTED, 8)                                                                       \
    X(FAILED_PRECONDITION, 9)                                                                      \
    X(ABORTED, 10)                                                                                 \
    X(OUT_OF_RANGE, 11)                                                                            \
    X(UNIMPLEMENTED, 12)                                                                           \
    X(INTERNAL, 13)                                                                                \
    X(UNAVAILABLE, 14)                                                                             \
    X(DATA_LOSS, 15)                                                                               \
    X(UNAUTHENTICATED, 16)

enum sumac_status {
#define X(name, number) SUMAC_##name = number,
    SUMAC_STATUS_LIST(X)
#undef X
};

/* Groups by remedy: below 32 fix the call, below 48 retry, below 64 join again, from 64 stop;
 * REPLACED is the exception among them: do not join again. */
#define SUMAC_REASON_LIST(X)                                                                       \
    X(UNSPECIFIED, 0)                                                                              \
    X(UNKNOWN_VARIABLE, 1)                                                                         \
    X(UNKNOWN_SHARD, 2)                                                                            \
    X(STALE_LAYOUT, 3)                                                                             \
    X(WRONG_DATA_TYPE, 4)                                                                          \
    X(WRONG_SHAPE, 5)                                                                              \
    X(UNKNOWN_FUNCTION, 6)                                                                         \
    X(BAD_HYPERPARAMETER, 7)                                                                       \
    X(MISSING_SLOTS, 8)                                                                            \
    X(WHOLE_SHARD, 9)                                                                              \
    X(NON_FINITE, 10)                                                                              \
    X(PART_TOO_LARGE, 11)                                                                          \
    X(MALFORMED, 12)                                                                               \
    X(TOO_MANY_PIECES, 13)                                                                         \
    X(BAD_NAME, 14)                                                                                \
    X(BAD_SHAPE, 15)                                                                               \
    X(ALREADY_EXISTS, 16)                                                                          \
    X(UNSUPPORTED, 17)                                                                             \
    X(TOO_MANY_SESSIONS, 18)                                                                       \
    X(OUT_OF_MEMORY, 19)                                                                           \
    X(UNKNOWN_VIEW, 20)                                                                            \
    X(TOO_MANY_REFUSED, 21)                                                                        \
    X(TOO_MANY_IN_FLIGHT, 22)                                                                      \
    X(NONCE_TAKEN, 23)                                                                             \
    X(BAD_INITIALIZER, 24)                                                                         \
    X(MESSAGE_TOO_LARGE, 25)                                                                       \
    X(WRONG_STEP, 26)                                                                              \
    X(STEP_DIFFERS, 27)                                                                            \
    X(ZERO_WEIGHT, 28)                                                                             \
    X(STEP_OVER, 29)                                                                               \
    X(STEP_LATE, 30)                                                                               \
    X(BAD_EXPRESSION, 31)                                                                          \
    X(PS_MISSING, 32)                                                                              \
    X(VIEW_ENDED, 33)                                                                              \
    X(TIMED_OUT, 34)                                                                               \
    X(NOT_CONTROLLER, 35)                                                                          \
    X(BUSY, 36)                                                                                    \
    X(STREAM_REPLACED, 37)                                                                         \
    X(MEMBER_GONE, 38)                                                                             \
    X(ROUND_TIMED_OUT, 39)                                                                         \
    X(ROUND_OVER, 40)                                                                              \
    X(CANCELLED, 41)                                                                               \
    X(SESSION_UNKNOWN, 48)                                                                         \
    X(SESSION_CLOSED, 49)                                                                          \
    X(REPLACED, 50)                                                                                \
    X(STATE_LOST, 64)                                                                              \
    X(RUN_ENDED, 65)                                                                               \
    X(PROTOCOL_VERSION, 66)                                                                        \
    X(WRONG_CLUSTER, 67)                                                                           \
    X(TERMINATED, 68)                                                                              \
    X(MEMBER_LOST, 69)

enum sumac_reason {
#define X(name, number) SUMAC_REASON_##name = number,
    SUMAC_REASON_LIST(X)
#undef X
};

#define SUMAC_ERROR_TEXT_BYTES 512

/* Filled by a call that fails, untouched by one that succeeds. Wherever a `struct sumac_error *` is
 * taken, NULL will do. */
struct sumac_error {
    enum sumac_status status;
    enum sumac_reason reason;
    char text[SUMAC_ERROR_TEXT_BYTES]; /* one sentence, NUL-terminated UTF-8, cut if need be */
};

/* The code's gRPC name, "INVALID_ARGUMENT"; "UNKNOWN" for a number that is none.
 * Lends  a constant string. Threads  any. */
SUMAC_API const char *sumac_status_name(enum sumac_status status);

/* The reason's name, "WRONG_SHAPE"; "UNSPECIFIED" for a number that is none.
 * Lends  a constant string. Threads  any. */
SUMAC_API const char *sumac_reason_name(enum sumac_reason reason);

/* The release of this library, "0.1.0". Lends  a constant string. Threads  any. */
SUMAC_API const char *sumac_version(void);

#endif
