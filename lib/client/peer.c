/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c -- a ps as its client knows it: its channels, and when it was last heard from. */
#include "client_state.h"

#include <assert.h>
#include <inttypes.h>

#include "text.h"

struct rpc_channel *client_channel(struct sumac_client *client, uint32_t ps, int kind)
{
    assert(client_is_locked(client));
    assert(ps < client->peer_count);
    struct peer *peer = &client->peers[ps];
    if (peer->channels[kind] == NULL && peer->address[0] != '\0')
        (void)rpc_channel_open(client->poller, peer->address, &peer->channels[kind]);
    return peer->channels[kind];
}

const char *
client_peer_text(const struct sumac_client *client, uint32_t ps, char *text, size_t text_bytes)
{
    assert(ps < client->peer_count);
    const struct peer *peer = &client->peers[ps];
    if (peer->heard_us == 0)
        (void)text_print(
            text, text_bytes, "ps %" PRIu32 " at %s, which was never heard from", ps,
            peer->address);
    else
        (void)text_print(
            text, text_bytes, "ps %" PRIu32 " at %s, which was last heard from %s ago", ps,
            peer->address, text_time_us(client_now_us() - peer->heard_us).text);
    return text;
}
