"""A DAG written down stage by stage."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sim.synth._dag import Dag

RESOURCES = ("cpu", "mem", "disk", "net")
Range = tuple[float, float]
Kind = tuple[float, float, Range, Range, Range, Range]
"""Of a stage's tasks: median duration in s, its sigma, and from-to of what each resource gives."""


class Recipe:
    """Stages as they are added, each drawn from its kind."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._names: list[str] = []
        self._numbers: list[tuple[int, float, list[float]]] = []
        self._edges: list[tuple[int, int, bool]] = []

    def stage(
        self,
        name: str,
        n_tasks: int,
        kind: Kind,
        barrier: Iterable[int] = (),
        one_to_one: Iterable[int] = (),
    ) -> int:
        """Add a stage that waits for earlier ones; return its number."""
        median, sigma, *amounts = kind
        duration = median * float(np.exp(sigma * self._rng.normal()))
        demand = [float(self._rng.uniform(*amount)) for amount in amounts]
        n = len(self._names)
        self._names.append(name)
        self._numbers.append((n_tasks, duration, demand))
        self._edges += [(p, n, False) for p in barrier] + [(p, n, True) for p in one_to_one]
        return n

    def dag(self) -> Dag:
        """Return what has been added as arrays."""
        edges = np.array(sorted(self._edges), np.int64).reshape(-1, 3)
        return Dag(
            tuple(self._names),
            np.array([n for n, _, _ in self._numbers], np.int64),
            np.array([s for _, s, _ in self._numbers]),
            np.array([d for _, _, d in self._numbers]).reshape(-1, len(RESOURCES)),
            edges[:, 0].copy(),
            edges[:, 1].copy(),
            edges[:, 2].astype(bool),
        )
