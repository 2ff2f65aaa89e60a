"""Random worlds that judge mutants: a pool that all share, then more of a survivor's mechanisms."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sim.base.errors import InputError, PolicyError
from tests.mutants.mutate import Mutant
from tests.mutants.reach import Reach, end_after
from tests.sim.engine.compared import kernel_outcome, reference_outcome
from tests.sim.engine.outcome import differences
from tests.sim.engine.random_worlds import draw, draw_with

LIMIT_S = 10
"""Longest CPU time of a world under a mutant; without one it takes a thirtieth of a second."""


class World(NamedTuple):
    """A random world and the naive simulator's outcome of it."""

    number: int
    drawn: dict[str, Any]
    expected: dict[str, Any]


def random_worlds(n_worlds: int) -> Iterator[World]:
    """Yield worlds that the engine accepts, each with the naive simulator's outcome."""
    drawn = number = 0
    while drawn < n_worlds:
        world = draw(np.random.default_rng([1, number]))
        number += 1
        try:
            kernel_outcome(world)
        except (InputError, PolicyError):
            continue
        yield World(drawn, world, reference_outcome(world))
        drawn += 1


def notice_of(world: World) -> str:
    """Return how the kernel's outcome of a world differs from the naive simulator's."""
    differing = differences(kernel_outcome(world.drawn), world.expected)
    return f"world {world.number}: {', '.join(differing)}" if differing else ""


def by_worlds(worlds: list[World], reach: Reach, mutant: Mutant, seconds: float) -> str:
    """Check a mutant by worlds for some CPU time: those that reach its line, then more like them.

    A world that takes too long ends the process, which counts as noticed.
    """
    names = reach.names_at(mutant)
    end = time.process_time() + seconds
    for name in names:
        if time.process_time() > end:
            return ""
        end_after(LIMIT_S)
        notice = notice_of(worlds[int(name)])
        if notice:
            return notice
    return by_fresh_worlds(worlds, reach, mutant, end - time.process_time())


def by_fresh_worlds(
    worlds: list[World], reach: Reach, mutant: Mutant, seconds: float, seed: int = 2
) -> str:
    """Check a mutant by fresh worlds, each with the mechanisms of one that reaches its line.

    Those of few mechanisms come more often, in proportion: less of a change is lost among others.
    """
    end = time.process_time() + seconds
    near = [worlds[int(name)] for name in reach.names_at(mutant) or reach.nearest(mutant)]
    if not near:
        return ""
    weights = np.array([1 / max(len(world.drawn["mechanisms"]), 1) for world in near])
    rng = np.random.default_rng([seed, len(near)])
    while time.process_time() < end:
        on = {*near[rng.choice(len(near), p=weights / weights.sum())].drawn["mechanisms"]}
        world = draw_with(rng, on)
        end_after(LIMIT_S)
        try:
            outcome = kernel_outcome(world)
        except (InputError, PolicyError):
            continue
        end_after(0)  # the naive simulator may take any time
        differing = differences(outcome, reference_outcome(world))
        if differing:
            return f"a world of {', '.join(sorted(on))}: {', '.join(differing)}"
    return ""
