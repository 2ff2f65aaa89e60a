"""Generator of submissions: what the users of a shape submit, drawn from a seed.

Each class of jobs in a shape's YAML is drawn until its work, in CPU or GPU seconds (`of`), is its
`load` of what its partition's nodes do in the time in which jobs are submitted; or `count` times.
Submission times are drawn evenly over that time, users by their weights. Of a job are drawn: the
CPUs of a node (`cpus`), the nodes (left to Slurm if there are no `nodes`), GPUs of a node, memory a
CPU or a node, each from values with weights; the run time, log-uniform; the limit, a multiple of
the run time that is drawn from `LIMITS`, rounded up to the next of `LIMITS_MIN`, or one of
`limit_min`. One job in `KILLED` asks for too little and is ended at its limit. Shares of jobs ask
for the QOS high, whole nodes, a feature, are held and released, or begin later. Elements of an
array have run times of their own; of a chain each job needs the success of the one before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.real.slurm.sites.shape import Shape
from sim.base.random import Stream, stream

LIMITS = (1.1, 6.0)
LIMITS_MIN = (15, 30, 60, 120, 240, 360, 480, 720, 1440, 2880)
KILLED = 50
HELD_S = (600.0, 3600.0)
BEGINS_S = (900.0, 4500.0)
CHAIN_S = 10.0
"""Time between the submissions of a chain."""


@dataclass(frozen=True)
class Submission:
    """Submission of a job or an array; seconds from the first instant.

    Attributes
    ----------
    n_nodes
        Nodes asked for, 0 where Slurm chooses.
    cpus
        CPUs of a node, or of the whole job.
    gpus
        GPUs of a node.
    mem_mb, mem_per_cpu_mb
        Memory of a node, or 0; then of a CPU.
    runs_s
        Run time of each element of an array; a single one for a job.
    throttle
        Most elements that run at once; 0 for no array.
    after
        Place in the list of the submission whose success it needs, or -1.
    held_s, begins_s
        Time until it is released, or may begin; 0 for at once.
    """

    at_s: float
    user: str
    account: str
    partition: str
    cpus: int
    limit_min: int
    runs_s: tuple[float, ...]
    n_nodes: int = 0
    gpus: int = 0
    mem_mb: int = 0
    mem_per_cpu_mb: int = 0
    qos: str = ""
    throttle: int = 0
    after: int = -1
    exclusive: bool = False
    feature: str = ""
    held_s: float = 0.0
    begins_s: float = 0.0

    def work_s(self, resource: str) -> float:
        """Return the CPU or GPU seconds that it takes."""
        a_node = self.gpus if resource == "gpu" else self.cpus
        return sum(self.runs_s) * a_node * max(self.n_nodes, 1)


def generate(shape: Shape, seed: int) -> list[Submission]:
    """Return the submissions of a shape by their time."""
    chains: list[list[Submission]] = []
    for name, options in shape.jobs.items():
        draws = stream(seed, f"site {shape.name} {name}")
        unit = options.get("of", "cpu")
        nodes = [shape.kind_of(node) for node in shape.partitions[options["partition"]].nodes]
        capacity = sum(kind.gpus if unit == "gpu" else kind.cpus for kind in nodes)
        wanted_s = options.get("load", 0.0) * capacity * shape.span_s
        work_s, n = 0.0, 0
        while work_s < wanted_s if "load" in options else n < options["count"]:
            chains.append(_chain(shape, options, draws))
            work_s += sum(job.work_s(unit) for job in chains[-1])
            n += 1
    chains.sort(key=lambda chain: chain[0].at_s)
    return in_order(chains)


def in_order(chains: Sequence[Sequence[Submission]]) -> list[Submission]:
    """Return the submissions of chains by time, with each one's place of the one before it."""
    jobs = [(job, i, k) for i, chain in enumerate(chains) for k, job in enumerate(chain)]
    jobs.sort(key=lambda item: (item[0].at_s, *item[1:]))
    places = {(i, k): place for place, (_, i, k) in enumerate(jobs)}
    return [replace(job, after=places[i, k - 1] if k else -1) for job, i, k in jobs]


def chains_of(submissions: Sequence[Submission]) -> list[list[Submission]]:
    """Return the chains of which submissions are made, most of a single one."""
    chains: dict[int, list[Submission]] = {}
    for place, job in enumerate(submissions):
        chain = chains.pop(job.after) if job.after >= 0 else []
        chains[place] = [*chain, job]
    return list(chains.values())


def _chain(shape: Shape, options: Mapping[str, Any], draws: Stream) -> list[Submission]:
    at_s = round(shape.span_s * draws.random(), 1)
    user = _choice(shape.users, draws)
    return [
        _job(shape, options, draws, at_s + CHAIN_S * k, user)
        for k in range(options.get("chain", 1))
    ]


def _job(
    shape: Shape, options: Mapping[str, Any], draws: Stream, at_s: float, user: str
) -> Submission:
    def drawn(key: str, default: int = 0) -> int:
        return int(_choice(options[key], draws)) if key in options else default

    def happens(key: str) -> bool:
        return bool(draws.random() < options.get(key, 0.0))

    n = _between(options.get("elements", (1, 1)), draws)
    runs_s = tuple(_log_uniform(options["run_s"], draws) for _ in range(n))
    longest_min = shape.partitions[options["partition"]].max_min
    limit_min = _limit_min(max(runs_s), options, draws, longest_min)
    feature = next((f for f, p in options.get("features", {}).items() if draws.random() < p), "")
    throttle = _between(options["throttle"], draws) if n > 1 else 0
    return Submission(
        at_s=at_s,
        user=user,
        account=shape.account_of(user),
        partition=options["partition"],
        cpus=drawn("cpus"),
        limit_min=limit_min,
        runs_s=tuple(min(run_s, 0.97 * 60 * longest_min) for run_s in runs_s),
        n_nodes=drawn("nodes"),
        gpus=drawn("gpus"),
        mem_mb=drawn("mem_mb"),
        mem_per_cpu_mb=drawn("mem_per_cpu_mb"),
        qos=options.get("qos", "high" if happens("high") else ""),
        throttle=throttle,
        exclusive=happens("exclusive"),
        feature=feature,
        held_s=round(draws.uniform(*HELD_S), 1) if happens("held") else 0.0,
        begins_s=round(draws.uniform(*BEGINS_S), 1) if happens("begins") else 0.0,
    )


def _limit_min(run_s: float, options: Mapping[str, Any], draws: Stream, longest_min: int) -> int:
    if "limit_min" in options:
        fit = [m for m in options["limit_min"] if 60 * m > 1.03 * run_s]
        return int(fit[int(draws.integers(len(fit)))])
    factor = draws.uniform(*LIMITS)
    if draws.random() * KILLED < 1.0:
        factor = 0.6
    asked_min = max(factor, 1.03 if factor > 1 else 0.0) * run_s / 60
    return min(next(m for m in LIMITS_MIN if m >= asked_min), longest_min)


def _between(bounds: Sequence[int], draws: Stream) -> int:
    return int(draws.integers(bounds[0], bounds[1] + 1))


def _log_uniform(bounds: Sequence[float], draws: Stream) -> float:
    low, high = bounds
    return round(low * math.exp(draws.random() * math.log(high / low)), 1)


def _choice(weights: Mapping[Any, float], draws: Stream) -> Any:
    values, total = list(weights), sum(weights.values())
    return values[int(draws.choice(len(values), p=[weights[value] / total for value in values]))]
