"""Names of nodes, from Slurm's node lists (``n[1-4,7],m3``)."""

from __future__ import annotations

import re
from functools import cache

NODE_LIST = "node_list"
"""Column of ``stages``: the nodes that a stage ran on."""
MAX_NODES = 100_000
"""Largest number of nodes that one list may name; a longer one is unknown."""
_LIST = re.compile(r"([^,\[\]]+)(?:\[([\d,-]+)\])?(?:,|$)")


@cache
def expand(text: str) -> tuple[str, ...]:
    """Return the names of a list, each once; none of a text of another form.

    >>> expand("n[1-3,07],m")
    ('n1', 'n2', 'n3', 'n07', 'm')
    """
    names: list[str] = []
    end = 0
    for match in _LIST.finditer(text):
        if match.start() != end:
            return ()
        end = match.end()
        prefix, ranges = match.groups()
        for part in (ranges or "").split(","):
            first, _, last = part.partition("-")
            if not part:
                names.append(prefix)
                continue
            if not first.isdigit() or not (last or first).isdigit():
                return ()
            numbers = range(int(first), int(last or first) + 1)
            if len(names) + len(numbers) > MAX_NODES:
                return ()
            names += [f"{prefix}{n:0{len(first)}d}" for n in numbers]
    return tuple(dict.fromkeys(names)) if end == len(text) else ()
