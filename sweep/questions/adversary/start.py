"""First instances: draws of a generator, whose parameters may be intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from sim.base.errors import InputError
from sim.base.random import Stream
from sweep.driver.worlds import World, build_worlds
from sweep.grid.options import Options
from sweep.grid.overrides import Interval, parse, quote

Words = Sequence[str]


def draw_words(words: Words, rng: Stream) -> list[str]:
    """Return words of a grid in which a value is drawn for each ``interval(low,high)``."""
    drawn = []
    for assignment in parse(words, Options().names_swept):
        interval = assignment.values[0] if len(assignment.values) == 1 else None
        if isinstance(interval, Interval):
            drawn.append(quote(assignment.key, _draw(interval, assignment.text, rng)))
        else:
            drawn.append(assignment.text)
    return drawn


def _draw(interval: Interval, text: str, rng: Stream) -> Any:
    """Draw a value; a whole number between ends that are written as such."""
    low, high = interval.low, interval.high
    value = low + (high - low) * rng.uniform()
    if interval.is_log:
        value = low * (high / low) ** rng.uniform()
    is_whole = not any(sign in text.partition("interval")[2] for sign in ".e")
    return int(min(math.floor(value * 1.0 + rng.uniform()), high)) if is_whole else value


def worlds(words: Words, n: int, seed: int, rng: Stream, options: Words) -> Iterator[World]:
    """Yield `n` worlds of a generator, with the seeds from `seed` on."""
    seeds = range(seed, seed + n)
    if not any("interval(" in word for word in words):
        yield from _one_trace(build_worlds([_text(words)], seeds, options), seeds)
        return
    for own in seeds:
        text = _text(draw_words(words, rng))
        yield from _one_trace(build_worlds([text], [own], options), [own])


def _text(words: Words) -> str:
    return " ".join(f"'{word}'" for word in words)


def _one_trace(built: list[World], seeds: Sequence[int]) -> list[World]:
    if len(built) != len(seeds):
        raise InputError("an adversary looks at one trace and capacity: no comma lists")
    return built
