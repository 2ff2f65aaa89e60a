"""The numbers that a paper prints: those that the system's generators read, and all others.

The first are an input of cells, and stand in the system's package of the kind ``published``
(`sim.published`). The others are compared by studies alone, stand in ``published.yaml`` beside
these, and are in no cell's key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from sim import published as inputs
from sim.base import entry_points
from sim.base.sources import modules
from sim.published import ONE_DRAW, Definition, Numbers, Printed

KIND = "studies"
"""Kind of `sim.base.entry_points` of the studies; one is named after its paper."""


@cache
def read(paper: str) -> Numbers:
    """Read all published numbers of a paper.

    Raises InputError if there is no such paper.
    """
    entry = entry_points.installed(KIND).get(paper)
    module = modules.find(entry.module) if entry else None
    path = module.file.with_name(inputs.FILE) if module else None
    numbers = inputs.numbers(paper)
    return numbers | inputs.load(paper, path) if path and path.is_file() else numbers


def text(paper: str, *keys: object) -> Printed:
    """Format the number under these keys; empty if there is none."""
    value: Any = read(paper)
    for key in keys:
        value = value.get(str(key), "") if isinstance(value, Mapping) else ""
    words = f"{value:g}" if isinstance(value, int | float) else value
    if not isinstance(words, str) or not words:
        return Printed("")
    return with_text((paper, *map(str, keys)), words)


def with_text(path: tuple[str, ...], words: str) -> Printed:
    """Build the number under these keys, the paper's name first, with a text of its own."""
    return Printed(words, path, is_one_draw=definition(path).draws == ONE_DRAW)


def definition(path: tuple[str, ...]) -> Definition:
    """Return the definition of a number by its keys, the paper's name first."""
    paper, *keys = path
    return read(paper).definition(*keys)


def parse(path: str | None) -> tuple[str, ...]:
    """Parse the keys of a number in a table of findings; none for an empty text."""
    return tuple(json.loads(path)) if path else ()
