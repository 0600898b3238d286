/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h -- the messages of proto/ as C structs: the one door to protobuf-c and the code generated from proto/.
 *
 * The structs are protobuf-c's own, under short names: what a handler, a core or the simulator reads is what was on the
 * wire, without a second set of structs and a translation to keep true. Two things differ from plain protobuf-c:
 *
 * - unpacking goes into an arena with a bound (hostile input inflates up to 50 times), checks strings for UTF-8 and NUL, and never
 *   copies a `payload` field (number 15): its bytes stay where they arrived, as spans;
 * - packing leaves `payload` out; who sends it appends the field's header and then the bytes by reference.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <stdbool.h>

#include "memory.h"
#include "sumac/status.h"

#include "sumac/v1/observe.pb-c.h"
#include "sumac/v1/peer.pb-c.h"
#include "sumac/v1/sessions.pb-c.h"
#include "sumac/v1/transfer.pb-c.h"
#include "sumac/v1/types.pb-c.h"
#include "sumac/v1/variables.pb-c.h"

/* typedefs, the house's one exception to "no typedef": the generated names are unreadable in the cores. */
typedef Sumac__V1__Hyperparameter wire_hyperparameter;
typedef Sumac__V1__Function wire_function;
typedef Sumac__V1__Initializer wire_initializer;
typedef Sumac__V1__Partitioner wire_partitioner;
typedef Sumac__V1__Shard wire_shard;
typedef Sumac__V1__Variable wire_variable;
typedef Sumac__V1__TaskName wire_task_name;
typedef Sumac__V1__JoinRequest wire_join_request;
typedef Sumac__V1__JoinReply wire_join_reply;
typedef Sumac__V1__RenewRequest wire_renew_request;
typedef Sumac__V1__RenewReply wire_renew_reply;
typedef Sumac__V1__LeaveRequest wire_leave_request;
typedef Sumac__V1__LeaveReply wire_leave_reply;
typedef Sumac__V1__CreateRequest wire_create_request;
typedef Sumac__V1__CreateReply wire_create_reply;
typedef Sumac__V1__DeleteRequest wire_delete_request;
typedef Sumac__V1__DeleteReply wire_delete_reply;
typedef Sumac__V1__ListRequest wire_list_request;
typedef Sumac__V1__ListReply wire_list_reply;
typedef Sumac__V1__Hello wire_hello;
typedef Sumac__V1__Greeting wire_greeting;
typedef Sumac__V1__Limits wire_limits;
typedef Sumac__V1__Piece wire_piece;
typedef Sumac__V1__Part wire_part;
typedef Sumac__V1__Commit wire_commit;
typedef Sumac__V1__Withdraw wire_withdraw;
typedef Sumac__V1__PushRequest wire_push_request;
typedef Sumac__V1__Staged wire_staged;
typedef Sumac__V1__Refused wire_refused;
typedef Sumac__V1__Done wire_done;
typedef Sumac__V1__GiveWay wire_give_way;
typedef Sumac__V1__CloseCause wire_close_cause;
typedef Sumac__V1__Closed wire_closed;
typedef Sumac__V1__PushAnswer wire_push_answer;
typedef Sumac__V1__PullRequest wire_pull_request;
typedef Sumac__V1__PullAnswer wire_pull_answer;
typedef Sumac__V1__StatsRequest wire_stats_request;
typedef Sumac__V1__Histogram wire_histogram;
typedef Sumac__V1__SessionStats wire_session_stats;
typedef Sumac__V1__MemoryStats wire_memory_stats;
typedef Sumac__V1__StatsReply wire_stats_reply;
typedef Sumac__V1__PeerHello wire_peer_hello;
typedef Sumac__V1__OpenSession wire_open_session;
typedef Sumac__V1__AddShards wire_add_shards;
typedef Sumac__V1__Publish wire_publish;
typedef Sumac__V1__DeleteVariable wire_delete_variable;
typedef Sumac__V1__CloseSession wire_close_session;
typedef Sumac__V1__DecideSession wire_decide_session;
typedef Sumac__V1__Membership wire_membership;
typedef Sumac__V1__End wire_end;
typedef Sumac__V1__PeerOrder wire_peer_order;
typedef Sumac__V1__CloseReport wire_close_report;
typedef Sumac__V1__PeerReport wire_peer_report;

#define WIRE_HYPERPARAMETER_INIT SUMAC__V1__HYPERPARAMETER__INIT
#define WIRE_FUNCTION_INIT SUMAC__V1__FUNCTION__INIT
#define WIRE_INITIALIZER_INIT SUMAC__V1__INITIALIZER__INIT
#define WIRE_PARTITIONER_INIT SUMAC__V1__PARTITIONER__INIT
#define WIRE_SHARD_INIT SUMAC__V1__SHARD__INIT
#define WIRE_VARIABLE_INIT SUMAC__V1__VARIABLE__INIT
#define WIRE_TASK_NAME_INIT SUMAC__V1__TASK_NAME__INIT
#define WIRE_JOIN_REQUEST_INIT SUMAC__V1__JOIN_REQUEST__INIT
#define WIRE_JOIN_REPLY_INIT SUMAC__V1__JOIN_REPLY__INIT
#define WIRE_RENEW_REQUEST_INIT SUMAC__V1__RENEW_REQUEST__INIT
#define WIRE_RENEW_REPLY_INIT SUMAC__V1__RENEW_REPLY__INIT
#define WIRE_LEAVE_REQUEST_INIT SUMAC__V1__LEAVE_REQUEST__INIT
#define WIRE_LEAVE_REPLY_INIT SUMAC__V1__LEAVE_REPLY__INIT
#define WIRE_CREATE_REQUEST_INIT SUMAC__V1__CREATE_REQUEST__INIT
#define WIRE_CREATE_REPLY_INIT SUMAC__V1__CREATE_REPLY__INIT
#define WIRE_DELETE_REQUEST_INIT SUMAC__V1__DELETE_REQUEST__INIT
#define WIRE_DELETE_REPLY_INIT SUMAC__V1__DELETE_REPLY__INIT
#define WIRE_LIST_REQUEST_INIT SUMAC__V1__LIST_REQUEST__INIT
#define WIRE_LIST_REPLY_INIT SUMAC__V1__LIST_REPLY__INIT
#define WIRE_HELLO_INIT SUMAC__V1__HELLO__INIT
#define WIRE_GREETING_INIT SUMAC__V1__GREETING__INIT
#define WIRE_LIMITS_INIT SUMAC__V1__LIMITS__INIT
#define WIRE_PIECE_INIT SUMAC__V1__PIECE__INIT
#define WIRE_PART_INIT SUMAC__V1__PART__INIT
#define WIRE_COMMIT_INIT SUMAC__V1__COMMIT__INIT
#define WIRE_WITHDRAW_INIT SUMAC__V1__WITHDRAW__INIT
#define WIRE_PUSH_REQUEST_INIT SUMAC__V1__PUSH_REQUEST__INIT
#define WIRE_STAGED_INIT SUMAC__V1__STAGED__INIT
#define WIRE_REFUSED_INIT SUMAC__V1__REFUSED__INIT
#define WIRE_DONE_INIT SUMAC__V1__DONE__INIT
#define WIRE_GIVE_WAY_INIT SUMAC__V1__GIVE_WAY__INIT
#define WIRE_CLOSE_CAUSE_INIT SUMAC__V1__CLOSE_CAUSE__INIT
#define WIRE_CLOSED_INIT SUMAC__V1__CLOSED__INIT
#define WIRE_PUSH_ANSWER_INIT SUMAC__V1__PUSH_ANSWER__INIT
#define WIRE_PULL_REQUEST_INIT SUMAC__V1__PULL_REQUEST__INIT
#define WIRE_PULL_ANSWER_INIT SUMAC__V1__PULL_ANSWER__INIT
#define WIRE_STATS_REQUEST_INIT SUMAC__V1__STATS_REQUEST__INIT
#define WIRE_HISTOGRAM_INIT SUMAC__V1__HISTOGRAM__INIT
#define WIRE_SESSION_STATS_INIT SUMAC__V1__SESSION_STATS__INIT
#define WIRE_MEMORY_STATS_INIT SUMAC__V1__MEMORY_STATS__INIT
#define WIRE_STATS_REPLY_INIT SUMAC__V1__STATS_REPLY__INIT
#define WIRE_PEER_HELLO_INIT SUMAC__V1__PEER_HELLO__INIT
#define WIRE_OPEN_SESSION_INIT SUMAC__V1__OPEN_SESSION__INIT
#define WIRE_ADD_SHARDS_INIT SUMAC__V1__ADD_SHARDS__INIT
#define WIRE_PUBLISH_INIT SUMAC__V1__PUBLISH__INIT
#define WIRE_DELETE_VARIABLE_INIT SUMAC__V1__DELETE_VARIABLE__INIT
#define WIRE_CLOSE_SESSION_INIT SUMAC__V1__CLOSE_SESSION__INIT
#define WIRE_DECIDE_SESSION_INIT SUMAC__V1__DECIDE_SESSION__INIT
#define WIRE_MEMBERSHIP_INIT SUMAC__V1__MEMBERSHIP__INIT
#define WIRE_END_INIT SUMAC__V1__END__INIT
#define WIRE_PEER_ORDER_INIT SUMAC__V1__PEER_ORDER__INIT
#define WIRE_CLOSE_REPORT_INIT SUMAC__V1__CLOSE_REPORT__INIT
#define WIRE_PEER_REPORT_INIT SUMAC__V1__PEER_REPORT__INIT

#define WIRE_PROTOCOL_VERSION 1
#define WIRE_PAYLOAD_FIELD 15

/* Enumerations under short names; data types, functions and reasons have the numbers of their public twins. */
enum {
    WIRE_PIECE_VALUES = SUMAC__V1__PIECE__KIND__KIND_VALUES,
    WIRE_PIECE_ROW_INDICES = SUMAC__V1__PIECE__KIND__KIND_ROW_INDICES,
    WIRE_PIECE_SLOT_VALUE = SUMAC__V1__PIECE__KIND__KIND_SLOT_VALUE,
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
    WIRE_PARTITIONER_NONE = SUMAC__V1__PARTITIONER__KIND__KIND_NONE,
    WIRE_PARTITIONER_FIXED_SHARDS = SUMAC__V1__PARTITIONER__KIND__KIND_FIXED_SHARDS,
    WIRE_PARTITIONER_MIN_SIZE = SUMAC__V1__PARTITIONER__KIND__KIND_MIN_SIZE,
    WIRE_PARTITIONER_MAX_SIZE = SUMAC__V1__PARTITIONER__KIND__KIND_MAX_SIZE,
};

/* Services, and their methods in the order of proto/: what rpc_server_add and rpc_channel_call take. */
#define WIRE_SESSIONS (&sumac__v1__sessions__descriptor)
#define WIRE_VARIABLES (&sumac__v1__variables__descriptor)
#define WIRE_TRANSFER (&sumac__v1__transfer__descriptor)
#define WIRE_OBSERVE (&sumac__v1__observe__descriptor)
#define WIRE_PEER (&sumac__v1__peer__descriptor)
enum { WIRE_SESSIONS_JOIN, WIRE_SESSIONS_RENEW, WIRE_SESSIONS_LEAVE, WIRE_SESSIONS_METHODS };
enum { WIRE_VARIABLES_CREATE, WIRE_VARIABLES_DELETE, WIRE_VARIABLES_LIST, WIRE_VARIABLES_METHODS };
enum { WIRE_TRANSFER_PUSH, WIRE_TRANSFER_PULL, WIRE_TRANSFER_METHODS };
enum { WIRE_OBSERVE_STATS, WIRE_OBSERVE_METHODS };
enum { WIRE_PEER_ATTEND, WIRE_PEER_METHODS };

typedef ProtobufCMessage wire_message;
typedef ProtobufCMessageDescriptor wire_type;
typedef ProtobufCServiceDescriptor wire_service;
typedef ProtobufCBinaryData wire_bytes;

/* A message that was received: the struct, and where its payload lies. All in the arena or in the received bytes. */
struct wire_received {
    const wire_message *message;
    const struct span *payload; /* in order; empty spans do not occur */
    size_t payload_spans;
    uint64_t payload_bytes;
};

#define WIRE_HEADER_BYTES_MAX                                                                      \
    (1u                                                                                            \
     << 20) /* beside a payload, there or not; a type that has none is bounded by its transport */
#define WIRE_ARENA_BYTES_MAX                                                                       \
    (16u << 20) /* what unpacking one message may take: the bound to give its arena */

#define WIRE_MESSAGE_BYTES_MAX                                                                     \
    (4u << 20) /* to a ps, payload and all: gRPC's own bound, that of every stock server */
#define WIRE_PULL_BYTES_MAX                                                                        \
    (1u << 20) /* of one PullRequest: its pieces; a client of ours names 16384 */

#define WIRE_LIST_NAMES_MAX 1000u /* in one ListRequest */

/* Unpack a message that arrived as `spans`.
 *
 * Borrows  spans and their bytes; *received refers to them, and to `arena`.
 * Fails    INVALID_ARGUMENT (REASON_MALFORMED): not this type, truncated, two payloads, a string that is not UTF-8 or has a NUL, a
 *          header above WIRE_HEADER_BYTES_MAX. RESOURCE_EXHAUSTED: the arena's bound. */
enum sumac_status wire_unpack(
    const wire_type *type, const struct span *spans, size_t span_count, struct arena *arena,
    struct wire_received *received, struct sumac_error *error);

/* Is `type` one whose field 15 is `bytes payload`? */
bool wire_has_payload(const wire_type *type);
/* May a message of this type, or one within it, have a string? */
bool wire_may_have_strings(const wire_type *type);

/* Bytes that wire_pack writes: the message without payload, then, if payload_bytes > 0, the payload field's own header. */
size_t wire_packed_bytes(const wire_message *message, uint64_t payload_bytes);
void wire_pack(const wire_message *message, uint64_t payload_bytes, uint8_t *out);

/* The descriptor set of all of proto/, serialized, as protoc wrote it. Lends  for ever. */
extern const uint8_t wire_descriptor_set[];
extern const uint8_t wire_descriptor_set_end[];

#endif
