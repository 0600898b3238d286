/* SPDX-License-Identifier: Apache-2.0 */
/* acceptor.h -- the thread that lets clients in: it accepts connections, within a bound, and hands
 * them to gRPC. Inside lib/rpc only.
 *
 * gRPC could listen itself. But it bounds no number of connections, and after it had once no
 * descriptor for one, gRPC 1.51 accepts none ever again and tells nobody. The thread costs the one
 * that polls nothing; it touches gRPC's server, which any thread may, and its own table.
 */
#pragma once

#include <sys/types.h>

#include <grpc/grpc.h>

#include "listener.h"
#include "reader.h"
#include "rpc.h"

#define ACCEPTED_AT_ONCE                                                                           \
    64u /* at a socket, before it looks at the others and whether it is to stop */

struct acceptor;

/* Listen on options' host and port; clients may connect from here on, and wait.
 *
 * Fails    as listener_open. RESOURCE_EXHAUSTED: no memory, or no descriptor. */
enum sumac_status acceptor_open(
    const struct rpc_server_options *options, struct acceptor **acceptor,
    struct sumac_error *error);
uint32_t acceptor_port(const struct acceptor *acceptor);
bool acceptor_lacks_ipv6(const struct acceptor *acceptor);
/* Let them in. Borrows core, which was started, and poller, which the calling thread polls. False:
 * no thread to be had. */
bool acceptor_start(struct acceptor *acceptor, grpc_server *core, struct reader *poller);
/* Nobody is let in any more. Whoever holds a thread by what it sends is cut until
 * acceptor_close. */
void acceptor_stop(struct acceptor *acceptor);
void acceptor_close(struct acceptor *acceptor);
/* One more call of that connection was cancelled before it said anything; of too many, the
 * connection is cut. Threads: any. */
void acceptor_note_cancelled(struct acceptor *acceptor, int descriptor, ino_t inode);
/* How many it lets in at a time. */
uint32_t acceptor_connections_max(const struct acceptor *acceptor);
/* Threads  any. */
struct rpc_connections acceptor_count(const struct acceptor *acceptor);
