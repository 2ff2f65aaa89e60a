"""Names of nodes, from Slurm's node lists (``n[1-4,7],m3``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

NODE_LIST = "node_list"
"""Column of ``stages``: the nodes that a stage ran on."""
NODE_TASKS = "node_tasks"
"""Column of ``stages``: tasks on some of these nodes (``n1=4,n3=2``), as far as they are known."""
MAX_NODES = 100_000
"""Largest number of nodes that one list may name; a longer one is unknown."""
_NUMBER = re.compile(r"(.*?)(\d*)", re.DOTALL)
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


def fold(names: Iterable[str]) -> str:
    """Return the list of some names, in their order, which `expand` takes apart.

    >>> fold(["n1", "n2", "n4", "m", "n09", "n10"])
    'n[1-2,4],m,n[09-10]'
    """
    parts: list[tuple[str, list[list[str]]]] = []  # prefix, and first and last of each range
    for name in names:
        prefix, number = _NUMBER.fullmatch(name).groups()  # type: ignore[union-attr]  # any is one
        if not number or not parts or parts[-1][0] != prefix or not parts[-1][1]:
            parts.append((prefix, [[number, number]] if number else []))
            continue
        last = parts[-1][1][-1][1]
        if f"{int(last) + 1:0{len(last)}d}" == number:
            parts[-1][1][-1][1] = number
        elif len(last) == len(number) or (last[0] != "0" and number[0] != "0"):
            parts[-1][1].append([number, number])
        else:
            parts.append((prefix, [[number, number]]))
    return ",".join(_folded(prefix, ranges) for prefix, ranges in parts)


@cache
def node_tasks(text: str) -> Mapping[str, int]:
    """Return the tasks on nodes; none of a text of another form.

    >>> dict(node_tasks("n1=4,n3=2"))
    {'n1': 4, 'n3': 2}
    """
    pairs = [part.rpartition("=") for part in text.split(",") if part]
    if not all(name and n.isdigit() for name, _, n in pairs):
        return {}
    return {name: int(n) for name, _, n in pairs}


def _folded(prefix: str, ranges: list[list[str]]) -> str:
    texts = [first if first == last else f"{first}-{last}" for first, last in ranges]
    if len(texts) > 1 or (texts and "-" in texts[0]):
        return f"{prefix}[{','.join(texts)}]"
    return prefix + "".join(texts)
