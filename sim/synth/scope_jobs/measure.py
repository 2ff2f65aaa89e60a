"""How the seven jobs compare with the published numbers: wanted and got, job by job."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.synth.scope_jobs.published import INIT_S, TABLE_2, WORK_H
from sim.synth.scope_jobs.templates import template
from sim.synth.scope_jobs.times import WIDE
from sim.synth.scope_jobs.training import training_of

F8 = NDArray[np.float64]


def measure(job: str) -> dict[str, tuple[float, float]]:
    """Measure what Table 2 publishes of a job, and Table 3 of job F, in the recorded run.

    The fastest and the slowest stage are those of at least `times.WIDE` vertices: the percentile of
    a few vertices says nothing.

    Parameters
    ----------
    job : str
        One of the seven.

    Returns
    -------
    dict of str to (float, float)
        What is published, and what the job has.
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
    found = {
        "stages": (wanted.n_stages, len(n_tasks)),
        "barrier stages": (wanted.n_barriers, len(set(structure.child[~structure.one_to_one]))),
        "vertices": (wanted.n_vertices, len(stage)),
        "median, s": (wanted.median_s, np.median(run_s)),
        "90th percentile, s": (wanted.p90_s, np.percentile(run_s, 90)),
        "90th percentile of the fastest stage, s": (wanted.fastest_p90_s, min(each)),
        "90th percentile of the slowest stage, s": (wanted.slowest_p90_s, max(each)),
    }
    if job == "F":
        found |= {
            "work, h": (WORK_H["training"], run_s.sum() / 3600),
            "queueing, median, s": (INIT_S[0], np.median(init_s)),
            "queueing, 90th percentile, s": (INIT_S[1], np.percentile(init_s, 90)),
        }
    return {what: (float(w), float(g)) for what, (w, g) in found.items()}
