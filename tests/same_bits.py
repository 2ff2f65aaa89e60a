"""Digests of results that must have the same bits on every machine, part by part.

    python -m tests.same_bits FOLDER [PART ...]    print them as JSON

`tests.e2e.test_same_bits` runs this with the features of other processors, and compares it with
recorded digests.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import policies
import sim
from sim import transforms
from sim.base import maths
from sim.base.maths.matrices import eigh, svd
from sim.base.random import stream
from sim.evaluators import NO_POLICY
from sweep.execution import plan
from sweep.execution.rerun import rerun
from sweep.grid import grid
from tests.sweep.small import request

GENERATORS: dict[str, dict[str, Any]] = {
    "alibaba2018": {"jobs": 60},
    "alibaba2018 joint": {"jobs": 60, "joint": True},
    "cosmos": {"scale": 0.02},
    "everything": {"jobs": 50},
    "hard_dags": {"jobs": 20, "wide": 0.5},
    "other_domains": {"jobs": 20},
    "production_dags": {"jobs": 15},
    "programs": {"seed": 0},
    "recurring": {"jobs": 60},
    "scope_jobs": {"job": "A", "deadline": "short"},
    "training": {"jobs": 60},
}
PLAIN = (
    "alibaba2018", "production_dags", "recurring", "hard_dags", "other_domains", "training",
)  # fmt: skip
"""Generators that take only seconds as plain Python."""
TRACES = {
    "alibaba_synth": ("trace.jobs=40", "trace.max_tasks_per_stage=5", "capacity=0.05"),
    "cosmos": ("trace.scale=0.02",),
    "scope_jobs": ("trace.job=A", "trace.deadline=short"),
    "slearn_2sigma": ("trace.jobs=50", "trace.history=60"),
}
PACKAGE_TRACES = {
    "backfill": "parquet", "jockey": "scope_jobs", "wing": "cosmos", "slearn": "slearn_2sigma",
}  # fmt: skip
"""Trace of the policies of a package; all are loaded so heavily that policies differ."""
OPTIONS = {"slurm": "backfill/slurm"}
"""Options of policies that have none of their own name."""
LATER = ("wait_p50_s", "wait_p95_s", "wait_p99_s", "slowdown_p95", "utility")
LATER_COLUMN = "slowdown"
OMITTED_COLUMNS = ("utility", "worth")
OMITTED_METRICS = (
    *("outages_met", "slow_periods_met", "reservations_met"),
    *("stops_mean", "work_lost_mean_s", "work_lost", "utilization_used"),
    *("jct_p95_s", "wait_p90_s"),
    *("finish_time_fairness_p95", "finish_time_fairness_max", "jobs_unfair"),
    "goodput",
)
LATER_OF = ("policy=fifo", "policy=easy", "policy=las", "policy=jockey")
"""Metrics and columns of jobs added later, and the cells whose digest of these is one, but for
`OMITTED_COLUMNS`; other digests leave them out, and `OMITTED_METRICS`."""
EVALUATORS = {
    "alone": "heft", "stream": "tez", "sized": "slearn", "kinds": "wing_mil",
    "deadlines": "jockey",
    "progress": "jockey", "predictions": "jockey", "due": "jockey_online", "described": NO_POLICY,
    "dag_distances": NO_POLICY, "published": NO_POLICY, "readers": NO_POLICY, "worth": NO_POLICY,
    "trained": NO_POLICY, "variation": NO_POLICY, "two_jobs": NO_POLICY,
}  # fmt: skip
EVALUATOR_TRACES = {
    "sized": "slearn_2sigma", "kinds": "cosmos", "deadlines": "scope_jobs",
    "progress": "scope_jobs", "predictions": "scope_jobs", "due": "scope_jobs",
    "published": "scope_jobs", "readers": "cosmos", "worth": "cosmos", "trained": "scope_jobs",
    "variation": "slearn_2sigma",
}  # fmt: skip


def digest(*values: Any) -> str:
    """Digest the bytes of arrays, and the repr of other values."""
    total = hashlib.sha256()
    for value in values:
        is_array = isinstance(value, np.ndarray)
        total.update(np.ascontiguousarray(value).tobytes() if is_array else repr(value).encode())
    return total.hexdigest()[:16]


def functions() -> Iterator[tuple[str, str]]:
    """Yield the functions of `sim.base.maths` with digests, for arguments of every kind."""
    rng = stream(0, "same bits")
    bits = rng.integers(-(2**63), 2**63 - 1, 2_000).view(np.float64)
    x = np.concatenate([rng.uniform(-20, 20, 2_000), rng.random(2_000), bits])
    y = rng.uniform(-5, 5, len(x))
    named: dict[str, Callable[..., Any]] = {
        f.__name__: f
        for f in (
            maths.exp, maths.expm1, maths.log, maths.log1p, maths.sin,
            maths.normal_cdf, maths.normal_quantile,
        )
    }  # fmt: skip
    for name, function in named.items():
        yield name, digest(_with_one_nan(function(x)))
    yield "power", digest(_with_one_nan(maths.power(np.abs(x), y)))
    square = rng.random((40, 40))
    yield "products", digest(maths.dot(square, square), maths.dot(y, y), maths.dot(square, y[:40]))
    symmetric = square[:6, :6] + square[:6, :6].T
    yield "eigenvalues", digest(*eigh(symmetric), *svd(square[:6, :6]))
    yield "interpolation", digest(maths.interp(y, [-5.0, 0.1, 5.0], [1.0, 3.0, -2.0]))


def _with_one_nan(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), np.nan, x)  # IEEE 754 leaves its payload open


def draws() -> Iterator[tuple[str, str]]:
    """Yield each distribution of the random streams with its digest."""
    rng = stream(0, "same bits", "draws")
    n = 3_000
    yield "uniform", digest(rng.random(n), rng.uniform(-3.0, 7.0, n), rng.integers(1_000, size=n))
    yield "normal", digest(rng.normal(1.0, 3.0, n), rng.standard_normal((n, 2)))
    yield "exponential", digest(rng.exponential(3.0, n))
    yield "geometric", digest(rng.geometric(0.1, n), rng.geometric(np.linspace(0.1, 1.0, 50)))
    yield "beta", digest(rng.beta(2, 3, n))
    yield "poisson", digest([rng.poisson(mean) for mean in (0.1, 3.0, 700.0)])
    chances = np.array([0.1, 0.2, 0.7])
    yield "choice", digest(rng.choice(3, n, p=chances), rng.multinomial(n, chances))
    yield "order", digest(rng.permutation(n), rng.choice(n, 5, replace=False))


def generators(names: tuple[str, ...] = (*GENERATORS,)) -> Iterator[tuple[str, str]]:
    """Yield each generator with the digest of a small workload."""
    for name in names:
        if name == "programs":  # it needs a fitted workload
            past = sim.synthesize("recurring", seed=0, **GENERATORS["recurring"])
            yield name, transforms.apply(past, "resynthesize", **GENERATORS[name]).digest[:16]
            continue
        chosen = GENERATORS[name]
        yield name, sim.synthesize(name.partition(" ")[0], seed=0, **chosen).digest[:16]


def cells(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield every policy and evaluator with the digest of a cell's metrics and tables."""
    rigid_jobs(folder / "rigid")
    later: list[object] = []
    for name in policies.names():
        trace = PACKAGE_TRACES.get(policies.spec(name).__module__.split(".")[1], "alibaba_synth")
        yield f"policy {name}", _cell(folder, later, trace, f"policy={OPTIONS.get(name, name)}")
    for preset in ("dagps/true_order", "tetris/alignment", "tez_tetris/alignment"):
        yield f"policy {preset}", _cell(folder, later, "alibaba_synth", f"policy={preset}")
    for evaluator, policy in EVALUATORS.items():
        words = [f"evaluator={evaluator}", *([] if policy == NO_POLICY else [f"policy={policy}"])]
        trace = EVALUATOR_TRACES.get(evaluator, "alibaba_synth")
        yield f"evaluator {evaluator}", _cell(folder, later, trace, *words)
    yield "later", digest(later)


def rigid_jobs(folder: Path) -> None:
    """Write a workload of rigid jobs that overloads 12 slots."""
    jobs = (
        {
            "submit_s": 2.0 * i,
            "user": f"u{i % 3}",
            "stages": [{"durations_s": [1.0 + 7 * i % 31] * (1 + 5 * i % 11)}],
            "min_tasks": 1 + 5 * i % 11,
            "requested_s": 40.0 + 13 * i % 47,
        }
        for i in range(60)
    )
    sim.Workload.from_jobs(jobs).write(folder)


def _cell(folder: Path, later: list[object], trace: str, *words: str) -> str:
    more = TRACES.get(trace, (f"trace.path={folder / 'rigid'}", "cluster.count=12"))
    spec = request((*words, f"trace={trace}", *more, f"paths.results={folder}"))
    prepared = plan.prepare(grid.build(spec))
    result = rerun(prepared.inputs, prepared.planned[0])
    assert result.error is None, result.error["traceback"]
    table = result.jobs.to_pydict() if result.jobs is not None else None
    column = table.pop(LATER_COLUMN, None) if table is not None else None
    for name in OMITTED_COLUMNS if table is not None else ():
        table.pop(name, None)
    if words[0] in LATER_OF:
        later += [(words, name, result.metrics[name]) for name in LATER]
        later.append(column)
    left_out = (*LATER, *OMITTED_METRICS)
    metrics = {name: value for name, value in result.metrics.items() if name not in left_out}
    return digest(sorted(metrics.items()), table)


def main(folder: str, *parts: str) -> None:
    """Print the digests."""
    functions_by_part: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
        "functions": functions,
        "draws": draws,
        "generators": generators,
        "plain generators": lambda: generators(PLAIN),
        "cells": lambda: cells(Path(folder)),
    }
    digests = {f"{p}: {name}": value for p in parts for name, value in functions_by_part[p]()}
    print(json.dumps(digests))


if __name__ == "__main__":
    main(*sys.argv[1:])
