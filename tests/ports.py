"""Ports for servers of tests that run at the same time."""

import socket


def any_port() -> int:
    """Return a free port, chosen by the system, that no other test has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
