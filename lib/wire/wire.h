/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h -- the messages of proto/ as C structs: the one door to protobuf-c and the code generated
 * from proto/.
 *
 * The structs are protobuf-c's own, under short names: what a handler, a core or the simulator
 * reads is what was on the wire, without a second set of structs and a translation to keep true.
 * Two things differ from plain protobuf-c:
 *
 * - unpacking goes into an arena with a bound (hostile input inflates up to 50 times), checks
 *   strings for UTF-8 and NUL, and never copies a `payload` field (number 15): its bytes stay where
 *   they arrived, as spans;
 * - packing leaves `payload` out; who sends it appends the field's header and then the bytes by
 *   reference.
 */
#pragma once

#include <stdbool.h>

#include "memory.h"
#include "sumac/status.h"

#include "sumac/v1/observe.pb-c.h"
#include "sumac/v1/peer.pb-c.h"
#include "sumac/v1/sessions.pb-c.h"
#include "sumac/v1/transfer.pb-c.h"
#include "sumac/v1/types.pb-c.h"
#include "sumac/v1/variables.pb-c.h"

/* wire_join_request, WIRE_JOIN_REQUEST_INIT … of every message; WIRE_SESSIONS, a service, and
 * WIRE_SESSIONS_JOIN … WIRE_SESSIONS_METHODS, its methods in the order of proto/: what
 * rpc_server_add and rpc_channel_call take. They are typedefs, the house's one exception to "no
 * typedef": the generated names are unreadable in the cores. */
#include "sumac/v1/names.h"

#define WIRE_PROTOCOL_VERSION 2
#define WIRE_PAYLOAD_FIELD 15

/* Enumerations under short names; data types, functions and reasons have the numbers of their
 * public twins. */
enum {
    WIRE_PIECE_VALUES = SUMAC__V1__PIECE__KIND__KIND_VALUES,
    WIRE_PIECE_ROW_INDICES = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES,
    WIRE_PIECE_SLOT_VALUE = SUMAC__V1__PIECE__KIND__KIND_SLOT_VALUE,
    WIRE_PIECE_HYPERPARAMETERS = SUMAC__V1__PIECE__KIND__KIND_HYPERPARAMETERS,
    WIRE_ROLE_OBSERVER = SUMAC__V1__ROLE__ROLE_OBSERVER,
    WIRE_ROLE_MEMBER = SUMAC__V1__ROLE__ROLE_MEMBER,
    WIRE_INITIALIZER_ZEROS = SUMAC__V1__INITIALIZER__KIND__KIND_ZEROS,
    WIRE_INITIALIZER_ONES = SUMAC__V1__INITIALIZER__KIND__KIND_ONES,
    WIRE_INITIALIZER_CONSTANT = SUMAC__V1__INITIALIZER__KIND__KIND_CONSTANT,
    WIRE_INITIALIZER_UNIFORM = SUMAC__V1__INITIALIZER__KIND__KIND_UNIFORM,
    WIRE_INITIALIZER_NORMAL = SUMAC__V1__INITIALIZER__KIND__KIND_NORMAL,
    WIRE_INITIALIZER_ASSIGNED = SUMAC__V1__INITIALIZER__KIND__KIND_ASSIGNED,
    WIRE_CLOSE_LEFT = SUMAC__V1__CLOSE_CAUSE__KIND__KIND_LEFT,
    WIRE_CLOSE_LEASE_OVER = SUMAC__V1__CLOSE_CAUSE__KIND__KIND_LEASE_OVER,
    WIRE_CLOSE_NEWER_ATTEMPT = SUMAC__V1__CLOSE_CAUSE__KIND__KIND_NEWER_ATTEMPT,
    WIRE_CLOSE_STALLED = SUMAC__V1__CLOSE_CAUSE__KIND__KIND_STALLED,
    WIRE_PARTITIONER_NONE = SUMAC__V1__PARTITIONER__KIND__KIND_NONE,
    WIRE_PARTITIONER_FIXED_SHARDS = SUMAC__V1__PARTITIONER__KIND__KIND_FIXED_SHARDS,
    WIRE_PARTITIONER_MIN_SIZE = SUMAC__V1__PARTITIONER__KIND__KIND_MIN_SIZE,
    WIRE_PARTITIONER_MAX_SIZE = SUMAC__V1__PARTITIONER__KIND__KIND_MAX_SIZE,
};

typedef ProtobufCMessage wire_message;
typedef ProtobufCMessageDescriptor wire_type;
typedef ProtobufCServiceDescriptor wire_service;
typedef ProtobufCBinaryData wire_bytes;

/* A message that was received: the struct, and where its payload lies. All of it is in the arena or
 * in the received bytes. */
struct wire_received {
    const wire_message *message;
    const struct span *payload; /* in order; empty spans do not occur */
    size_t payload_spans;
    uint64_t payload_bytes;
    size_t arena_bytes; /* what unpacking it took: a KiB for each microsecond, about */
};

/* What a message of a type with a payload has beside it. A type without one is bounded by its
 * transport. */
#define WIRE_HEADER_BYTES_MAX (1u << 20)
/* What unpacking one message may take: the bound to give its arena, … */
#define WIRE_ARENA_BYTES_MAX (16u << 20)
/* … of one to a server, whose only thread it takes: about a millisecond for a MiB, … */
#define WIRE_REQUEST_ARENA_BYTES_MAX (4u << 20)
/* … and of what is beside a payload, there or not, but of a PullRequest, which is pieces. */
#define WIRE_HEADER_ARENA_BYTES_MAX (2u << 20)

/* Of one message to a ps, payload and all: gRPC's own bound, that of every stock server. */
#define WIRE_MESSAGE_BYTES_MAX (4u << 20)
/* Of one PullRequest, which is pieces and indices of rows. */
#define WIRE_PULL_BYTES_MAX (1u << 20)
#define WIRE_PULL_PIECES_MAX 16384u  /* in one PullRequest */
#define WIRE_PUSH_PULLS_MAX 64u      /* in one PushRequest */
#define WIRE_COMMIT_WAITING_MAX 256u /* in one Commit */
#define WIRE_PUSH_PIECES_MAX 4096u   /* in one PushRequest, of all its parts */
#define WIRE_PUSH_ROWS_MAX 65536u    /* row indices of one PushRequest, of all its parts */
#define WIRE_PULL_ROWS_MAX 65536u    /* row indices of one PullRequest */

#define WIRE_LIST_NAMES_MAX 1000u      /* in one ListRequest */
#define WIRE_CREATE_VARIABLES_MAX 256u /* in one CreateRequest, … */
#define WIRE_CREATE_BYTES_MAX 262144u  /* … which has so many bytes at most */

#define WIRE_BARRIER_TASKS_MAX 512u /* in one BarrierRequest */
#define WIRE_ROUND_MS_MAX                                                                          \
    86400000u /* a day: a round of a barrier or a collective waits no longer */

/* Unpack a message that arrived as `spans`.
 *
 * Borrows  spans and their bytes; *received refers to them, and to `arena`.
 * Fails    INVALID_ARGUMENT (REASON_MALFORMED): not this type, truncated, two payloads, a string
 *          that is not UTF-8 or has a NUL, a header above WIRE_HEADER_BYTES_MAX.
 *          RESOURCE_EXHAUSTED: the arena's bound, or of a PushRequest and a PullAnswer
 *          WIRE_HEADER_ARENA_BYTES_MAX. */
enum sumac_status wire_unpack(
    const wire_type *type, const struct span *spans, size_t span_count, struct arena *arena,
    struct wire_received *received, struct sumac_error *error);

/* Make each string of the message, and of those within it, one printable line (text.h). The text of
 * an update function keeps its lines. */
void wire_make_printable(wire_message *message);

/* Is `type` one whose field 15 is `bytes payload`? */
bool wire_has_payload(const wire_type *type);
/* May a message of this type, or one within it, have a string? */
bool wire_may_have_strings(const wire_type *type);

/* Bytes that wire_pack writes: the message without payload, then, if payload_bytes > 0, the payload
 * field's own header. */
size_t wire_packed_bytes(const wire_message *message, uint64_t payload_bytes);
void wire_pack(const wire_message *message, uint64_t payload_bytes, uint8_t *out);

/* The descriptor set of all of proto/, serialized, as protoc wrote it. Lends  for ever. */
extern const uint8_t wire_descriptor_set[];
extern const uint8_t wire_descriptor_set_end[];
