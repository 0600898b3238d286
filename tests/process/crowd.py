# SPDX-License-Identifier: Apache-2.0
"""Bare connections to a ps, perhaps more than it lets in: one too many may hear so while it still connects."""
import contextlib
import socket

from cluster import PATIENCE_S


@contextlib.contextmanager
def crowd(port, count):
    """So many connections, less those that were turned away while they connected; all are closed in the end."""
    with contextlib.ExitStack() as opened:
        connections = []
        for _ in range(count):
            with contextlib.suppress(ConnectionError):
                connections.append(opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)))
        yield connections


def is_turned_away(connection):
    """Closed or reset at once; whoever is let in hears gRPC's settings."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
