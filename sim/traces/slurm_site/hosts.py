"""Expansion of Slurm's node expressions: ``n[1-4,07],r[1-2]c[1-8]-ib``."""

from __future__ import annotations

import itertools
import re

from sim.base.errors import InputError

MAX_NODES = 100_000
"""Most nodes of one expression; more are a typing error."""
_PARTS = re.compile(r"\[([^\[\]]*)\]|([^\[\],]+)")
_ITEM = re.compile(r"(?:[^\[\],]|\[[^\[\]]*\])+")


def expand(text: str) -> list[str]:
    """Return the names of a node expression, in its order, each once.

    >>> expand("n[1-3,07],r[1-2]c[1-2]-ib,m")
    ['n1', 'n2', 'n3', 'n07', 'r1c1-ib', 'r1c2-ib', 'r2c1-ib', 'r2c2-ib', 'm']

    Raises
    ------
    InputError
        If a range is no range of numbers, a bracket is left open, or there are too many nodes.
    """
    items = _ITEM.findall(text)
    if ",".join(items) != text.strip(","):
        raise InputError(f"{text!r} is no list of nodes such as n[1-4,7],m3", rule="wrong nodes")
    names: dict[str, None] = {}
    for item in items:
        choices = [
            _choices(ranges, text) if not plain else [plain]
            for ranges, plain in _PARTS.findall(item)
        ]
        n = len(names)
        for choice in choices:
            n = max(n, 1) * len(choice)
        if n > MAX_NODES:
            raise InputError(f"{text[:60]!r} names more than {MAX_NODES:,} nodes", rule="range")
        names |= dict.fromkeys("".join(parts) for parts in itertools.product(*choices))
    return list(names)


def _choices(ranges: str, text: str) -> list[str]:
    """Return the numbers of ``1-3,07``, with leading zeros."""
    numbers: list[str] = []
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(
                f"{text!r} is no list of nodes: {part!r} is no range", rule="wrong nodes"
            )
        low, high = int(first), int(last or first)
        if high - low >= MAX_NODES:
            raise InputError(f"{text[:60]!r} names more than {MAX_NODES:,} nodes", rule="range")
        numbers += [f"{n:0{len(first)}d}" for n in range(low, high + 1)]
    return numbers
