"""Changes made in reality: the same submissions on a site that differs in one respect.

Each is a function of a site and its submissions. A change is named ``KIND:WORDS``, as in
``nodes:c:4`` or ``limit:batch:0.5``; `apply` reads that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from benchmarks.real.slurm.sites.shape import Closure, Partition, Shape
from benchmarks.real.slurm.sites.submissions import Submission, chains_of, in_order
from sim.traces.slurm_site.hosts import expand

Changed = tuple[Shape, list[Submission]]
TWICE_AFTER_S = 120.0
"""Time after which a user's copy of a job is submitted."""


def apply(change: str, shape: Shape, jobs: Sequence[Submission]) -> Changed:
    """Return a site and its submissions after a change; "" for none.

    Raises
    ------
    ValueError
        If there is no such change, or it has other words.
    """
    kind, *words = change.split(":")
    if not change:
        return shape, list(jobs)
    if kind not in CHANGES or len(words) != CHANGES[kind][1]:
        known = ", ".join(f"{name} with {n} words" for name, (_, n) in CHANGES.items())
        raise ValueError(f"change {change!r}: one of {known}, separated by colons")
    return CHANGES[kind][0](shape, list(jobs), *words)


def more_nodes(shape: Shape, jobs: list[Submission], prefix: str, n: str) -> Changed:
    """Add nodes like the last one whose name begins so, in the same partitions."""
    last = [name for name in shape.node_names if name.startswith(prefix)][-1]
    digits = last.removeprefix(prefix)
    names = tuple(f"{prefix}{int(digits) + 1 + i:0{len(digits)}d}" for i in range(int(n)))
    kinds = tuple(
        replace(kind, names=kind.names + names) if last in kind.names else kind
        for kind in shape.kinds
    )
    partitions = {
        name: replace(p, nodes=p.nodes + names) if last in p.nodes else p
        for name, p in shape.partitions.items()
    }
    return replace(shape, kinds=kinds, partitions=partitions), jobs


def limit(shape: Shape, jobs: list[Submission], partition: str, factor: str) -> Changed:
    """Multiply a partition's longest time limit; users ask for that at most."""
    max_min = round(shape.partitions[partition].max_min * float(factor))
    changed = _with_partition(shape, partition, max_min=max_min)
    return changed, [
        replace(job, limit_min=min(job.limit_min, max_min)) if job.partition == partition else job
        for job in jobs
    ]


def qos(shape: Shape, jobs: list[Submission], name: str, option: str, value: str) -> Changed:
    """Set a limit of a QOS to a value; ``none`` lifts it."""
    options = dict(shape.qos[name])
    del options[option]
    options |= {} if value == "none" else {option: value}
    return replace(shape, qos={**shape.qos, name: options}), jobs


def move(shape: Shape, jobs: list[Submission], nodes: str, source: str, target: str) -> Changed:
    """Move nodes from a partition to another; "" for none."""
    moved = expand(nodes)
    if source:
        left = tuple(n for n in shape.partitions[source].nodes if n not in moved)
        shape = _with_partition(shape, source, nodes=left)
    if target:
        had = shape.partitions[target].nodes
        joined = tuple(n for n in shape.node_names if n in had or n in moved)
        shape = _with_partition(shape, target, nodes=joined)
    return shape, jobs


def twice(shape: Shape, jobs: list[Submission], user: str) -> Changed:
    """Submit all jobs of a user twice, the copies `TWICE_AFTER_S` later."""
    chains = chains_of(jobs)
    copies = [
        [replace(job, at_s=round(job.at_s + TWICE_AFTER_S, 1)) for job in chain]
        for chain in chains
        if chain[0].user == user
    ]
    return shape, in_order([*chains, *copies])


def maintenance(
    shape: Shape, jobs: list[Submission], nodes: str, from_s: str, until_s: str, announced_s: str
) -> Changed:
    """Add a maintenance."""
    names = tuple(expand(nodes))
    closure = Closure("added", names, float(from_s), float(until_s), float(announced_s))
    return replace(shape, closures=(*shape.closures, closure)), jobs


def _with_partition(shape: Shape, name: str, **changes: object) -> Shape:
    changed: Partition = replace(shape.partitions[name], **changes)  # type: ignore[arg-type]
    return replace(shape, partitions={**shape.partitions, name: changed})


CHANGES: Mapping[str, tuple[Callable[..., Changed], int]] = {
    "nodes": (more_nodes, 2), "limit": (limit, 2), "qos": (qos, 3), "move": (move, 3),
    "twice": (twice, 1), "maintenance": (maintenance, 4),
}  # fmt: skip
"""Functions of the changes, and how many words they take."""
