"""Many recurring jobs, each run several times: what Table 1 says of them, and what we get."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.base.arrays import F8
from sim.base.random import stream
from sim.engine.recording import FirstComeFirstServed
from sim.published import numbers
from sim.synth.scope_jobs import tables
from sim.synth.scope_jobs.runs import JobRun, draw_run
from sim.synth.scope_jobs.templates import Template, draw_template

VERTICES = (150, 500)
"""Of the jobs of the population: smaller than the 21, so that thousands of runs take seconds."""
TOKENS = 30
"""With how many tokens each run is simulated, alone."""
AT_ONCE = 100
"""Runs that are simulated side by side."""


def variation(
    templates: int = 500, runs: int = 10, seed: int = 0
) -> dict[str, dict[int, tuple[float, float]]]:
    """Measure how completion times vary over the runs of recurring jobs (Table 1).

    Every run is simulated alone on `TOKENS` tokens, first come, first served.
    """
    drawn = [_template(i, seed) for i in range(templates)]
    found = {}
    paper = numbers("jockey")["table1"]
    for what, like in (("all", False), ("like inputs", True)):
        of_all = [
            draw_run(one, stream(seed, "population", what, i, k), like)
            for i, one in enumerate(drawn)
            for k in range(runs)
        ]
        took_s = alone_s(of_all).reshape(templates, runs)
        cov = took_s.std(axis=1, ddof=1) / took_s.mean(axis=1)
        got = np.percentile(cov, paper["percentiles"])
        found[what] = {
            p: (published, float(ours))
            for p, published, ours in zip(paper["percentiles"], paper[what], got, strict=True)
        }
    return found


def alone_s(runs: Sequence[JobRun], tokens: int = TOKENS) -> F8:
    """Return how long each run takes with so many tokens of its own, (n,) s."""
    from sim.cluster.cluster import Cluster
    from sim.engine.simulate import simulate
    from sim.workload.workload import Workload

    took_s = []
    for begin in range(0, len(runs), AT_ONCE):
        some = runs[begin : begin + AT_ONCE]
        piece = tables.of_runs(some, [f"run-{i}" for i in range(len(some))], [0.0] * len(some))
        workload = Workload.from_tables(**tables.joined([piece]), validate=False)
        cluster = Cluster.slots(tokens * len(some))
        took_s.append(simulate(workload, cluster, FirstComeFirstServed(limit=tokens)).job_finish)
    return np.concatenate(took_s)


def _template(i: int, seed: int) -> Template:
    rng = stream(seed, "population", "template", i)
    return draw_template(f"template-{i}", rng, VERTICES, place=float(rng.random()))
