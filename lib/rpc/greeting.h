/* SPDX-License-Identifier: Apache-2.0 */
/* greeting.h -- a new connection, until its client has acknowledged the server's settings. Inside
 * lib/rpc only; one thread at a time.
 *
 * gRPC 1.51 applies its limits of headers and streams only after the client has acknowledged its
 * settings: before, a call may have 16 MB of headers. So the server sends these two settings
 * itself, and looks at what the client says without taking it. A connection whose client has
 * acknowledged them is gRPC's. gRPC sends its own settings before it reads, and takes the
 * acknowledgement for theirs.
 */
#pragma once

#include <stdint.h>

#define METADATA_BYTES_MAX 8192u /* the headers of one call: gRPC's own are a few hundred bytes */
/* Limits for a client before it acknowledges the settings: all bytes, and those of headers. It need
 * not wait for the settings, but HTTP/2 lets it send no more than 64 KiB of data before it reads
 * them. */
#define GREETING_BYTES_MAX 98304u
#define GREETING_HEADER_BYTES_MAX (2 * METADATA_BYTES_MAX)
#define GREETING_LOOKS_MAX 256u /* the cost of a client that sends byte by byte */
#define GREETING_US_MAX 20000000u

struct greeting {
    int socket;
    uint32_t next_frame; /* where its head begins; 0: after the preface */
    uint32_t header_bytes, looks;
    uint64_t begun_us;
};

enum greeting_state { GREETING_WAITS, GREETING_OVER, GREETING_FAILED };

/* Send the settings.
 *
 * Borrows  socket, which is connected and does not block, until the greeting is over or has failed.
 * streams_max  concurrent calls; 0: no limit. */
struct greeting greeting_begin(int socket, uint32_t streams_max, uint64_t now_us);
/* Look at what the client has said. `bytes` has room for GREETING_BYTES_MAX.
 *
 * Returns  WAITS: look again when the socket is readable or GREETING_US_MAX have passed. OVER: the
 * client has acknowledged. FAILED: it speaks no HTTP/2, has gone, or is beyond a bound. */
enum greeting_state greeting_look(struct greeting *greeting, unsigned char *bytes, uint64_t now_us);
/* Let gRPC read, after it has the socket and has sent its own settings: a thread that reads the
 * acknowledgement before that leaves the connection without limits until the next one. A look that
 * gave OVER keeps the socket from becoming readable until then. */
void greeting_hand_over(int socket);
