"""From a request to its cells, each with its whole resolved configuration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sim.base.errors import InputError, unknown
from sweep.grid import variants
from sweep.grid.request import Request
from sweep.grid.variants import Config, Resolver
from sweep.stats.arrange import AXES


@dataclass(frozen=True)
class Cell:
    """One point of a grid."""

    # its coordinates: ``policy``, ``trace``, ``capacity``, ``seed``, then the other swept keys;
    # None where a key of a policy's does not apply to this policy
    labels: dict[str, Any]
    # ``name``, ``module`` (a user's own, else None), ``params`` (every one, defaults too)
    policy: Config
    trace: Config  # resolved
    cluster: Config
    measure: Config

    @property
    def capacity(self) -> float:
        """Fraction of the trace's cluster."""
        return float(self.labels["capacity"])

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.labels["seed"])

    @cached_property
    def config(self) -> Config:
        """All of it as one tree, for people and for provenance."""
        return {
            "policy": self.policy,
            "trace": self.trace,
            "cluster": self.cluster,
            "measure": self.measure,
            "capacity": self.capacity,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Grid:
    """All cells of a request, in the order of its rows."""

    request: Request  # what was asked for
    cells: tuple[Cell, ...]  # policies outermost, seeds innermost
    swept: tuple[str, ...]  # keys swept besides policy, trace, capacity and seed


def build(request: Request) -> Grid:
    """Compose each option once and combine them into cells.

    A key ``policy.X`` applies to those of the policies that have a parameter X: the others get
    one cell where it is swept, not one a value.
    """
    if request.baseline is not None and request.baseline not in request.axes["policy"]:
        raise InputError(
            unknown("baseline", request.baseline, request.axes["policy"])
            + "; the baseline is one of the policies that are swept",
            rule="unknown baseline",
        )
    swept = tuple(key for key in request.axes if key not in AXES)
    of_policy = [key for key in swept if key.startswith("policy.")]
    of_world = [key for key in swept if not key.startswith("policy.")]
    chosen = variants.of_measure(request)
    if not chosen:
        chosen = [
            policy
            for name in request.axes["policy"]
            for policy in variants.of_policy(request, name, of_policy)
        ]
        variants.check_parameters_used(request, chosen)
    worlds = [
        world
        for name in request.axes["trace"]
        for world in variants.of_trace(request, name, of_world)
    ]
    numbers = list(itertools.product(request.axes["capacity"], request.axes["seed"]))
    resolver = Resolver()
    cells = []
    for policy, world in itertools.product(chosen, worlds):
        for capacity, seed in numbers:
            labels = {
                "policy": policy.option,
                "trace": world.option,
                "capacity": capacity,
                "seed": seed,
                **{key: {**policy.swept, **world.swept}.get(key) for key in swept},
            }
            context = {"capacity": capacity, "seed": seed}
            paths = {"paths": {"traces": request.settings.traces}}
            world_parts = resolver.world(world, context | paths)
            cells.append(Cell(labels, resolver.policy(policy, context), *world_parts))
    return Grid(request, tuple(cells), swept)
