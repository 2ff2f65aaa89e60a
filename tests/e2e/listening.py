"""Addresses on which a process and its descendants listen, from ``/proc``."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator
from pathlib import Path

_LISTEN = "0A"


def listening(pid: int) -> set[tuple[str, int]]:
    """Address and port of every TCP socket that a process or one below it listens on."""
    inodes = {inode for item in below(pid) for inode in _sockets(item)}
    pids = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
        except OSError:  # it has ended
            lines = []
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and fields[9] in inodes:
                address, _, port = fields[1].partition(":")
                pids.add((_address(address), int(port, 16)))
    return pids


def below(pid: int) -> set[int]:
    """Give a process and all that descend from it or belong to its session."""
    parents, sessions = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)], sessions[int(folder.name)] = int(fields[1]), int(fields[3])
    pids = {pid}
    pids |= {item for item, session in sessions.items() if session == sessions.get(pid) == pid}
    while True:
        more = {item for item, parent in parents.items() if parent in pids} - pids
        if not more:
            return pids
        pids |= more


def is_loopback(address: str) -> bool:
    """Tell whether only this machine reaches an address."""
    item = ipaddress.ip_address(address)
    mapped = getattr(item, "ipv4_mapped", None)
    return (mapped or item).is_loopback


def _sockets(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(link.readlink())
                if target.startswith("socket:["):
                    yield target[8:-1]


def _address(text: str) -> str:
    """Read the kernel's way of writing an address: words of 32 bits, each least byte first."""
    words = [bytes.fromhex(text[offset : offset + 8])[::-1] for offset in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(words)))
