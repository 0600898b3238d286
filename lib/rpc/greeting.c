/* SPDX-License-Identifier: Apache-2.0 */
/* greeting.c -- see greeting.h. The numbers are RFC 9113's. */
#include "greeting.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PREFACE_BYTES 24u
#define FRAME_HEAD_BYTES 9u
#define SETTING_BYTES 6u
/* More than a client can send while its connection is handed over. Linux takes half of the largest
 * receive buffer at most (net.ipv4.tcp_rmem), by default 3 MiB. */
#define UNREAD_BYTES_MAX 3145728u

enum frame_kind { HEADERS = 1, SETTINGS = 4, CONTINUATION = 9 };
enum setting { MAX_CONCURRENT_STREAMS = 3, MAX_HEADER_LIST_SIZE = 6 };
enum { ACK = 1 };

static uint32_t put_setting(unsigned char *frame, enum setting setting, uint32_t value)
{
    const uint32_t at = FRAME_HEAD_BYTES + frame[2], big_endian = htonl(value);

    frame[at + 1] = (unsigned char)setting;
    memcpy(frame + at + 2, &big_endian, sizeof big_endian);
    frame[2] = (unsigned char)(frame[2] + SETTING_BYTES);
    return at + SETTING_BYTES;
}

struct greeting greeting_begin(int socket, uint32_t streams_max, uint64_t now_us)
{
    unsigned char frame[FRAME_HEAD_BYTES + 2 * SETTING_BYTES] = {[3] = SETTINGS};

    uint32_t bytes = put_setting(frame, MAX_HEADER_LIST_SIZE, METADATA_BYTES_MAX);
    if (streams_max != 0)
        bytes = put_setting(frame, MAX_CONCURRENT_STREAMS, streams_max);
    /* A new socket has room for them. If it is gone, the first look says so. */
    (void)send(socket, frame, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    return (struct greeting){.socket = socket, .begun_us = now_us};
}

/* Note one frame. True: it is the acknowledgement. */
static bool take_frame(struct greeting *greeting, const unsigned char *head)
{
    const uint32_t bytes = (uint32_t)head[0] << 16 | (uint32_t)head[1] << 8 | head[2];

    if (head[3] == SETTINGS && (head[4] & ACK) != 0)
        return true;
    if (head[3] == HEADERS || head[3] == CONTINUATION)
        greeting->header_bytes += bytes;
    greeting->next_frame += FRAME_HEAD_BYTES + bytes;
    return false;
}

static bool is_within_bounds(const struct greeting *greeting)
{
    return greeting->next_frame + FRAME_HEAD_BYTES <= GREETING_BYTES_MAX &&
           greeting->header_bytes <= GREETING_HEADER_BYTES_MAX;
}

static enum greeting_state
read_frames(struct greeting *greeting, const unsigned char *bytes, uint32_t count)
{
    if (memcmp(bytes, PREFACE, count < PREFACE_BYTES ? count : PREFACE_BYTES) != 0)
        return GREETING_FAILED;
    if (greeting->next_frame == 0)
        greeting->next_frame = PREFACE_BYTES;
    while (greeting->next_frame + FRAME_HEAD_BYTES <= count) {
        if (take_frame(greeting, bytes + greeting->next_frame))
            return GREETING_OVER;
        if (!is_within_bounds(greeting))
            return GREETING_FAILED;
    }
    return GREETING_WAITS;
}

/* The socket becomes readable when that many bytes wait: bytes that were peeked at do not wake the
 * poller again. */
static void wake_at(int socket, uint32_t bytes)
{
    const int count = (int)bytes;

    (void)setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &count, sizeof count);
}

void greeting_hand_over(int socket) { wake_at(socket, 1); }

enum greeting_state greeting_look(struct greeting *greeting, unsigned char *bytes, uint64_t now_us)
{
    const ssize_t count =
        recv(greeting->socket, bytes, GREETING_BYTES_MAX, MSG_PEEK | MSG_DONTWAIT);
    enum greeting_state state = GREETING_WAITS;

    if (count > 0)
        state = read_frames(greeting, bytes, (uint32_t)count);
    else if (count == 0 || (errno != EAGAIN && errno != EINTR))
        state = GREETING_FAILED;
    if (state == GREETING_WAITS &&
        (now_us - greeting->begun_us >= GREETING_US_MAX || ++greeting->looks > GREETING_LOOKS_MAX))
        state = GREETING_FAILED;
    if (count > 0 && state != GREETING_FAILED)
        wake_at(
            greeting->socket, state == GREETING_OVER ? (uint32_t)count + UNREAD_BYTES_MAX
                                                     : greeting->next_frame + FRAME_HEAD_BYTES);
    return state;
}
