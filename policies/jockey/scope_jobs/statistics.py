"""Statistics of the jobs beside the published numbers of Tables 2 and 3."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from policies.jockey.scope_jobs.structure import INIT_S, TABLE_2, WIDE
from policies.jockey.scope_jobs.templates import WORK_H, recorded_run, recorded_training, template
from sim.base.random import stream
from sim.published import numbers
from sim.workload.workload import Workload

_TRAINING_ROWS = ("work, h", "queueing, median, s", "queueing, 90th percentile, s")
_RUN_ROWS = (*_TRAINING_ROWS, "latency, median, s", "latency, 90th percentile, s")


def statistics(job: str) -> dict[str, tuple[float, float]]:
    """Return (published, recorded run) of Table 2 of a job, and of Table 3 of job F.

    The fastest and the slowest stage are those of at least `structure.WIDE` vertices: the
    percentile of a few vertices says nothing.
    """
    published = TABLE_2[job]
    recorded = recorded_training([job])
    held_s = recorded["finish_s"] - recorded["start_s"]
    init_s = recorded["init_s"]
    run_s = held_s - init_s
    stage = recorded["stage"]
    n_tasks = np.bincount(stage)
    stage_p90_s = [np.percentile(run_s[stage == g], 90) for g in np.flatnonzero(n_tasks >= WIDE)]
    structure = template(job).structure
    pairs = {
        "stages": (published.n_stages, len(n_tasks)),
        "barrier stages": (published.n_barriers, len(set(structure.child[~structure.one_to_one]))),
        "vertices": (published.n_vertices, len(stage)),
        "median, s": (published.median_s, np.median(run_s)),
        "90th percentile, s": (published.p90_s, np.percentile(run_s, 90)),
        "90th percentile of the fastest stage, s": (published.fastest_p90_s, min(stage_p90_s)),
        "90th percentile of the slowest stage, s": (published.slowest_p90_s, max(stage_p90_s)),
    }
    if job == "F":
        pairs |= {
            "work, h": (WORK_H["training"], run_s.sum() / 3600),
            "queueing, median, s": (INIT_S[0], np.median(init_s)),
            "queueing, 90th percentile, s": (INIT_S[1], np.percentile(init_s, 90)),
        }
    return {row: (float(a), float(b)) for row, (a, b) in pairs.items()}


def compare_published(workload: Workload, seed: int) -> Iterator[tuple[str, str, float, float]]:
    """Yield published beside synthesized statistics: (table, row, published, synthesized)."""
    for job in TABLE_2:
        for row, (published, actual) in statistics(job).items():
            is_chosen = (job, row) == ("A", "90th percentile, s")
            table = "Table 3" if row in _TRAINING_ROWS else "Table 2"
            name = "training" if row in _TRAINING_ROWS else f"job {job}"
            if not is_chosen:  # the table lacks it
                yield table, f"{name}, {row}", published, actual
    for name, published_row in numbers("jockey")["table3"].items():
        if name == "training":
            continue
        rng = stream(seed, "scope_jobs", "Table 3", name)
        run = recorded_run(template("F"), rng, WORK_H[name] / WORK_H["training"])
        actual_row = (
            run.run_s.sum() / 3600,
            *np.percentile(run.init_s, (50, 90)),
            *np.percentile(run.run_s, (50, 90)),
        )
        for row, published, actual in zip(_RUN_ROWS, published_row, actual_row, strict=True):
            yield "Table 3", f"{name}, {row}", published, float(actual)
