"""Ports for servers of tests that run at the same time."""

import socket


def any_port() -> int:
    """Pick a port that is free: one of the system's choice, that no other test is given now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
