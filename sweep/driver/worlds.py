"""Worlds: the workloads and clusters of a grid's cells, built in this process and kept there.

For questions that simulate the same few workloads again and again, without a sweep around it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sweep.driver.request import make_request
from sweep.execution.inputs import Inputs
from sweep.grid import clusters
from sweep.grid.cell_factory import CellFactory
from sweep.grid.grid import build_policy
from sweep.grid.overrides import quote

if TYPE_CHECKING:
    from policies.base import Policy
    from sim.cluster.cluster import Cluster
    from sim.workload.workload import Workload
    from sweep.grid.grid import Cell
    from sweep.grid.options import Options

FIXED = ("launcher=inline", "tracking=none")


@dataclass(frozen=True)
class World:
    """A workload and the cluster it runs on, of one seed.

    Attributes
    ----------
    name : str
        The words that describe it.
    seed : int
        The seed of its trace, its faults and its policy.
    workload : Workload
    cluster : Cluster
        At its capacity, without faults.
    cell : Cell or None
        The cell whose world it is; None if a caller brought the workload.
    """

    name: str
    seed: int
    workload: Workload
    cluster: Cluster
    cell: Cell | None = None

    def cluster_for(self, policy: object) -> Cluster:
        """Return the cluster with faults and lags as a policy meets them."""
        if self.cell is None:
            return self.cluster
        config: Any = self.cell.cluster
        return clusters.with_faults(self.cluster, config, self.seed, policy)  # type: ignore[arg-type]


def build_worlds(
    texts: Iterable[str], seeds: Sequence[int], options: Sequence[str] | Options = ()
) -> list[World]:
    """Build the worlds of some grids, each text the words of one without policy and seed.

    Parameters
    ----------
    texts : iterable of str
        Such as ``"trace=training capacity=0.9"``; a comma list stands for several workloads.
    seeds : sequence of int
        Seeds of each.
    options : sequence of str or Options
        Folders of options of one's own.

    Raises
    ------
    InputError
        On a wrong word.
    """
    return [world for text in texts for world in _worlds(text, seeds, options)]


def _worlds(text: str, seeds: Sequence[int], options: Sequence[str] | Options) -> list[World]:
    words = shlex.split(text)
    taken = [word for word in words if word.split("=")[0] in ("policy", "seed", "baseline")]
    if taken:
        raise InputError(f"{text!r}: policies and seeds are chosen elsewhere; leave out {taken[0]}")
    if not any(word.startswith("trace=") for word in words):
        raise InputError(f"{text!r} names no trace; a workload is such as 'trace=training'")
    request = make_request([*words, "policy=fifo", _seed_word(seeds), *FIXED], options)
    cells = CellFactory(request).grid(request.axes)
    inputs = Inputs(request.settings.results)
    worlds = []
    for cell in cells:
        workload = inputs.workload(inputs.workload_id(cell))
        built = clusters.build_for(workload, cell.cluster, cell.capacity)
        name = text if len(cells) == len(seeds) else _name(cell)
        worlds.append(World(name, cell.seed, workload, built.cluster, cell))
    return sorted(worlds, key=lambda world: world.name)  # stable: seeds in their order


def _name(cell: Cell) -> str:
    """Return the labels of a cell but its policy and seed, in words."""
    labels = {k: v for k, v in cell.labels.items() if k not in ("policy", "seed") and v is not None}
    return " ".join(f"{key}={value}" for key, value in labels.items())


def _seed_word(seeds: Sequence[int]) -> str:
    return f"seed={','.join(map(str, seeds))}"


def build_named(
    texts: Iterable[str], options: Sequence[str] | Options = ()
) -> list[tuple[str, Policy]]:
    """Build policies from words, such as ``"las policy.queues=3"``: name and policy of each.

    Raises
    ------
    InputError
        On a wrong word.
    """
    built = []
    for text in texts:
        name, *parameters = shlex.split(text)
        words = [quote("policy", name), *parameters, "trace=training", "seed=0", *FIXED]
        (cell,) = CellFactory(request := make_request(words, options)).grid(request.axes)
        policy = build_policy(cell.policy)
        assert policy is not None
        built.append((text, policy))
    return built
