"""Topology: machines in domains of levels, such as racks in blocks, and gangs that cross them.

A *level* divides the machines into domains; each domain of a narrower level lies in one of the
level before it. A gang may require a level: all of its slots are in one domain of it. It may prefer
one: its slots are in one domain of it where they fit, else in one of the next wider level, and so
on; if they fit none, in the fewest domains of the preferred level, those with the most room first.
Of several domains that hold a gang it takes the one with the least room. These are the terms of
Kueue (``podset-required-topology``, ``podset-preferred-topology``, BestFit) and the best fit of
Slurm's topology/tree over leaf switches. A gang whose slots are in several domains of a level runs
slower by a factor: that of the widest level that it crosses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sim.base.arrays import F8, I4, I8, frozen
from sim.base.errors import InputError, did_you_mean
from sim.base.parameters import Count, Factor, check
from sim.workload.node_names import expand

KEYS = ("levels", "preferred")
LEVEL_KEYS = ("size", "nodes", "factor")


@dataclass(frozen=True, eq=False)
class Topology:
    """Domains of M machines at L levels, the widest first.

    Attributes
    ----------
    levels : tuple of str
        Names.
    domain : (L, M) int32, read-only
        Domain of each machine, from 0 on in the order of the machines.
    factor : (L,) float64, read-only
        Factor on the run time of the tasks of a gang that crosses domains of the level, at least 1.
    preferred : str
        The level that gangs prefer that ask for none; "" for none.
    sizes : tuple of int
        Machines in each domain of a level, 0 where domains have names of machines.
    """

    levels: tuple[str, ...] = ()
    domain: I4 = field(default_factory=lambda: frozen(np.zeros((0, 0), np.int32)))
    factor: F8 = field(default_factory=lambda: frozen(np.zeros(0)))
    preferred: str = ""
    sizes: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.levels)

    @property
    def slows(self) -> bool:
        """Tell whether a gang that crosses domains runs slower."""
        return bool((self.factor > 1.0).any())

    def take(self, rows: I8) -> Topology:
        """Return the topology of machines that are some of these, or copies.

        Domains of a size are those of the new order. In others a copy is beside its original.
        """
        if not self:
            return self
        domain = self.domain[:, rows]
        for level, size in enumerate(self.sizes):
            if size:
                domain[level] = _in_order(len(rows), size)
        return replace(self, domain=frozen(domain))


NO_TOPOLOGY = Topology()


def check_spec(spec: object, name: str = "topology") -> Mapping[str, Any]:
    """Return a description of a topology; refuse one that is of another form.

    Parameters
    ----------
    spec : mapping
        ``{"levels": {"block": {"size": 16, "factor": 1.5}, "rack": {"size": 4}}, "preferred":
        "rack"}``: levels by name, the widest first. ``size`` is the number of machines in each
        domain, in the order of the cluster; or ``nodes`` has names of machines by domain, as in
        Slurm's topology.conf: ``{"s0": "n[1-8]", "s1": "n[9-16]"}``. ``factor`` is 1 by default.

    Raises
    ------
    InputError
        If a key, a number or a level is not valid.
    """
    example = "{levels: {block: {size: 16, factor: 1.5}, rack: {size: 4}}, preferred: rack}"
    levels = spec.get("levels") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(levels, Mapping) or not levels:
        raise InputError(f"{name} must be like {example}, not {spec!r}", rule="wrong type")
    _check_keys(name, spec, KEYS)
    for level, row in levels.items():
        where = f"{name}.levels.{level}"
        if not isinstance(row, Mapping) or ("size" in row) == ("nodes" in row):
            raise InputError(
                f"{where} needs either size, the machines in each domain, or nodes, the names of "
                f"machines by domain, as in {example}; not {row!r}",
                rule="wrong type",
            )
        _check_keys(where, row, LEVEL_KEYS)
        check(f"{where}.size", row.get("size", 1), Count)
        check(f"{where}.factor", row.get("factor", 1.0), Factor)
        check(f"{where}.nodes", row.get("nodes", {}), Mapping[str, Any])
    preferred = spec.get("preferred") or ""
    if preferred and preferred not in levels:
        raise InputError(
            f"{name}.preferred is {preferred!r}, which is no level; "
            f"{did_you_mean(preferred, levels)}levels are {', '.join(levels)}"
        )
    return spec


def parse_topology(
    spec: Mapping[str, Any], n_machines: int, machine_names: Sequence[str], name: str = "topology"
) -> Topology:
    """Return the topology of `n_machines` by a description (`check_spec`).

    Raises
    ------
    InputError
        If it is invalid, a machine is in no domain of a level or in two, or a domain lies in two of
        the level before it.
    """
    levels = check_spec(spec, name)["levels"]
    domain = np.zeros((len(levels), n_machines), np.int32)
    for k, (level, row) in enumerate(levels.items()):
        if "size" in row:
            domain[k] = _in_order(n_machines, int(row["size"]))
        else:
            where = f"{name}.levels.{level}.nodes"
            domain[k] = _by_names(row["nodes"], n_machines, machine_names, where)
        wider = domain[k - 1] if k else np.zeros(n_machines, np.int32)
        pairs = np.unique(np.column_stack([domain[k], wider]), axis=0)
        if len(pairs) > len(np.unique(domain[k])):
            twice = int(pairs[:-1][np.diff(pairs[:, 0]) == 0][0, 0])
            raise InputError(
                f"{name}.levels.{level}: its domain {twice} lies in several of the level before "
                f"it, {[*levels][k - 1]}; levels are listed from the widest to the narrowest, and "
                "each domain lies in one"
            )
    factor = np.array([float(row.get("factor", 1.0)) for row in levels.values()])
    sizes = tuple(int(row.get("size", 0)) for row in levels.values())
    preferred = spec.get("preferred") or ""
    return Topology(tuple(levels), frozen(domain), frozen(factor), preferred, sizes)


def _in_order(n_machines: int, size: int) -> I4:
    """Return the domain of each machine, so many machines after the other in each."""
    return (np.arange(n_machines) // size).astype(np.int32)


def _by_names(
    nodes: Mapping[str, Any], n_machines: int, machine_names: Sequence[str], where: str
) -> I4:
    """Return the domain of each machine by lists of names."""
    row_of = {name: row for row, name in enumerate(machine_names) if name}
    domain = np.full(n_machines, -1, np.int32)
    for number, (label, text) in enumerate(nodes.items()):
        for name in expand(str(text)):
            row = row_of.get(name)
            if row is None:
                continue  # a part of the machines may have been left out
            if domain[row] >= 0:
                raise InputError(f"{where}: machine {name} is in {label} and in another domain")
            domain[row] = number
    if (domain < 0).any():
        row = int(np.argmax(domain < 0))
        label = (machine_names[row] if row < len(machine_names) else "") or str(row)
        raise InputError(
            f"{where}: machine {label} is in no domain; name all machines (nodes of the kinds in "
            "cluster.shape), or give a size"
        )
    return np.unique(domain, return_inverse=True)[1].astype(np.int32)


def _check_keys(name: str, row: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in row:
        if key not in known:
            raise InputError(
                f"{name} has no {key!r}; {did_you_mean(str(key), known)}it has {', '.join(known)}"
            )
