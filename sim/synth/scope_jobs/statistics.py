"""How the jobs compare with the published numbers of Tables 2 and 3: wanted and got."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim.base.random import stream
from sim.published import numbers
from sim.synth.scope_jobs.structure import INIT_S, TABLE_2, WIDE
from sim.synth.scope_jobs.templates import WORK_H, recorded_run, template, training_of
from sim.workload.workload import Workload

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
