"""Runs that contain other runs: a DAG run, its tasks, an application and the queries inside.

The innermost runs do the work. What contains others would count it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from policies.wing.lineage.openlineage.runs import Key, Run
from sim.base.acyclic import nodes_on_cycles
from sim.base.arrays import I4


@dataclass(frozen=True)
class Containment:
    """Containers among runs.

    Attributes
    ----------
    wrappers : list of Run
        Runs that contain others, in order of their keys.
    extra_inputs, extra_outputs : dict of Key to set of int
        Datasets that wrappers alone name, by the innermost run that they are attributed to: the
        first one to start reads what its wrapper reads, the last one to end writes what it writes.
    n_circular : int
        Number of runs that contain themselves by way of others; they count as work.
    """

    wrappers: list[Run]
    extra_inputs: dict[Key, set[int]] = field(default_factory=dict)
    extra_outputs: dict[Key, set[tuple[Key, int]]] = field(default_factory=dict)
    n_circular: int = 0


def find_wrappers(runs: Mapping[Key, Run], rank: I4) -> Containment:
    """Find the runs that contain others; `rank` has the dataset of each number."""
    ordered = sorted((run for run in runs.values() if run.containers), key=lambda run: run.key)
    if not ordered:
        return Containment([])
    parts, n_circular = _parts(runs, ordered)
    containment = Containment([runs[key] for key in sorted(parts)], n_circular=n_circular)
    for wrapper in containment.wrappers:
        inner = _descendants(parts, wrapper.key)
        leaves = [runs[key] for key in inner if key not in parts]
        known = {
            rank[number] for key in inner for number in (*runs[key].inputs, *runs[key].outputs)
        }
        first = min(leaves, key=lambda run: (run.begin_s, run.key))
        last = max(leaves, key=lambda run: (run.finish_s, run.key))
        for number in wrapper.inputs:
            if rank[number] not in known:
                containment.extra_inputs.setdefault(first.key, set()).add(number)
        for number in wrapper.outputs:
            if rank[number] not in known:
                containment.extra_outputs.setdefault(last.key, set()).add((wrapper.key, number))
    return containment


def _parts(runs: Mapping[Key, Run], ordered: list[Run]) -> tuple[dict[Key, list[Key]], int]:
    """Return the runs inside each wrapper, and the number of those that contain themselves.

    A container is named by its job and id. As the name of its job may be spelled in another way,
    the id alone will do if it is one run's.
    """
    by_id: dict[str, list[Key]] = {key[2]: [] for run in ordered for key in run.containers}
    for key in runs:
        if key[2] in by_id:
            by_id[key[2]].append(key)
    pairs: list[tuple[Key, Key]] = []
    for run in ordered:
        for container in sorted(run.containers):
            if container not in runs:
                same_id = [key for key in by_id[container[2]] if key != run.key]
                if len(same_id) != 1:
                    continue
                container = same_id[0]
            pairs.append((container, run.key))
    row = {
        key: number for number, key in enumerate(sorted({key for pair in pairs for key in pair}))
    }
    keys = list(row)
    outer, inner = (np.array([row[pair[side]] for pair in pairs], np.int32) for side in (0, 1))
    circular = {keys[number] for number in nodes_on_cycles(outer, inner, len(keys)).tolist()}
    parts: dict[Key, list[Key]] = {}
    for container, key in pairs:
        if container not in circular or key not in circular:
            parts.setdefault(container, []).append(key)
    return parts, len(circular)


def _descendants(parts: Mapping[Key, list[Key]], wrapper: Key) -> list[Key]:
    """Return all runs inside a wrapper, in order of their keys."""
    reached: set[Key] = set()
    stack = [wrapper]
    while stack:
        for key in parts.get(stack.pop(), ()):
            if key not in reached:
                reached.add(key)
                stack.append(key)
    return sorted(reached)
