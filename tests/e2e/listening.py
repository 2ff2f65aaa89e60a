"""Addresses on which a process and its descendants listen, from ``/proc``."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator
from pathlib import Path

_LISTEN = "0A"


def listening(pid: int) -> set[tuple[str, int]]:
    """Address and port of every TCP socket that a process or a descendant listens on."""
    inodes = {inode for process in descendants(pid) for inode in _sockets(process)}
    addresses = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        except OSError:  # it has ended
            lines = []
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and fields[9] in inodes:
                address, _, port = fields[1].partition(":")
                addresses.add((_address(address), int(port, 16)))
    return addresses


def descendants(pid: int) -> set[int]:
    """Return the ids of a process, of its descendants and of all processes of its session."""
    parents, sessions = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)], sessions[int(folder.name)] = int(fields[1]), int(fields[3])
    pids = {pid}
    pids |= {
        process for process, session in sessions.items() if session == sessions.get(pid) == pid
    }
    while True:
        children = {process for process, parent in parents.items() if parent in pids} - pids
        if not children:
            return pids
        pids |= children


def is_loopback(address: str) -> bool:
    """Return True if only this machine reaches an address."""
    parsed = ipaddress.ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def _sockets(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(link.readlink())
                if target.startswith("socket:["):
                    yield target[8:-1]


def _address(text: str) -> str:
    """Parse an address as the kernel writes it: words of 32 bits, each least byte first."""
    words = [bytes.fromhex(text[offset : offset + 8])[::-1] for offset in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(words)))
