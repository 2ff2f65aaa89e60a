"""How the jobs compare with the published numbers of Tables 1 to 3: wanted and got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sim.base.arrays import F8
from sim.base.random import stream
from sim.cluster.cluster import Cluster
from sim.engine.recording import FirstComeFirstServed
from sim.engine.simulate import simulate
from sim.published import numbers
from sim.synth.scope_jobs.structure import INIT_S, TABLE_2, WIDE
from sim.synth.scope_jobs.templates import (
    WORK_H,
    JobRun,
    Template,
    draw_run,
    draw_template,
    joined,
    of_runs,
    recorded_run,
    template,
    training_of,
)
from sim.workload.workload import Workload

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
    paper = numbers("jockey")["table1"]
    by_inputs = {}
    for inputs, like in (("all", False), ("like inputs", True)):
        of_all = [
            draw_run(template_of, stream(seed, "population", inputs, i, k), like)
            for i, template_of in enumerate(drawn)
            for k in range(runs)
        ]
        took_s = _alone_s(of_all).reshape(templates, runs)
        cov = took_s.std(axis=1, ddof=1) / took_s.mean(axis=1)
        got = np.percentile(cov, paper["percentiles"])
        by_inputs[inputs] = {
            p: (published, float(ours))
            for p, published, ours in zip(paper["percentiles"], paper[inputs], got, strict=True)
        }
    return by_inputs


def _alone_s(runs: Sequence[JobRun], tokens: int = TOKENS) -> F8:
    """Return how long each run takes with so many tokens of its own, (n,) s."""
    took_s = []
    for begin in range(0, len(runs), AT_ONCE):
        some = runs[begin : begin + AT_ONCE]
        piece = of_runs(some, [f"run-{i}" for i in range(len(some))], [0.0] * len(some))
        workload = Workload.from_tables(**joined([piece]), validate=False)
        cluster = Cluster.slots(tokens * len(some))
        took_s.append(simulate(workload, cluster, FirstComeFirstServed(limit=tokens)).job_finish)
    return np.concatenate(took_s)


def _template(i: int, seed: int) -> Template:
    rng = stream(seed, "population", "template", i)
    return draw_template(f"template-{i}", rng, VERTICES, place=float(rng.random()))


_OF_TRAINING = ("work, h", "queueing, median, s", "queueing, 90th percentile, s")
_OF_RUN = (*_OF_TRAINING, "latency, median, s", "latency, 90th percentile, s")


def statistics(job: str) -> dict[str, tuple[float, float]]:
    """Measure what Table 2 publishes of a job, and Table 3 of job F, in the recorded run.

    The fastest and the slowest stage are those of at least `times.WIDE` vertices: the percentile of
    a few vertices says nothing.
    """
    wanted = TABLE_2[job]
    recorded = training_of([job])
    held_s = recorded["finish_s"] - recorded["start_s"]
    init_s = recorded["init_s"]
    run_s = held_s - init_s
    stage = recorded["stage"]
    n_tasks = np.bincount(stage)
    each = [np.percentile(run_s[stage == g], 90) for g in np.flatnonzero(n_tasks >= WIDE)]
    structure = template(job).structure
    pairs = {
        "stages": (wanted.n_stages, len(n_tasks)),
        "barrier stages": (wanted.n_barriers, len(set(structure.child[~structure.one_to_one]))),
        "vertices": (wanted.n_vertices, len(stage)),
        "median, s": (wanted.median_s, np.median(run_s)),
        "90th percentile, s": (wanted.p90_s, np.percentile(run_s, 90)),
        "90th percentile of the fastest stage, s": (wanted.fastest_p90_s, min(each)),
        "90th percentile of the slowest stage, s": (wanted.slowest_p90_s, max(each)),
    }
    if job == "F":
        pairs |= {
            "work, h": (WORK_H["training"], run_s.sum() / 3600),
            "queueing, median, s": (INIT_S[0], np.median(init_s)),
            "queueing, 90th percentile, s": (INIT_S[1], np.percentile(init_s, 90)),
        }
    return {row: (float(w), float(g)) for row, (w, g) in pairs.items()}


def beside(workload: Workload, seed: int) -> Iterator[tuple[str, str, float, float]]:
    """Give what is published beside what is synthesized: where it stands, what, both numbers."""
    for row, percentiles in variation(seed=seed).items():
        for percentile, (wanted, got) in percentiles.items():
            yield "Table 1", f"variation over runs, {row}, P{percentile}", wanted, got
    for job in TABLE_2:
        for row, (wanted, got) in statistics(job).items():
            is_chosen = (job, row) == ("A", "90th percentile, s")
            table = "Table 3" if row in _OF_TRAINING else "Table 2"
            name = "training" if row in _OF_TRAINING else f"job {job}"
            if not is_chosen:  # the table leaves it out
                yield table, f"{name}, {row}", wanted, got
    for name, wanted_all in numbers("jockey")["table3"].items():
        if name == "training":
            continue
        rng = stream(seed, "scope_jobs", "Table 3", name)
        run = recorded_run(template("F"), rng, WORK_H[name] / WORK_H["training"])
        got_all = (
            run.run_s.sum() / 3600,
            *np.percentile(run.init_s, (50, 90)),
            *np.percentile(run.run_s, (50, 90)),
        )
        for row, wanted, got in zip(_OF_RUN, wanted_all, got_all, strict=True):
            yield "Table 3", f"{name}, {row}", wanted, float(got)
