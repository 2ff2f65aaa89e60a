"""The 21 recurring jobs, alone on the cluster and recorded; runs as the tables of a workload.

Seven jobs are as in Table 2, fourteen more of their kind.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8, offsets
from sim.base.random import stream
from sim.engine.recording import alone, record
from sim.knobs.faults import fail_tasks
from sim.published import numbers
from sim.synth.scope_jobs.runs import VERTICES, JobRun, Template, draw_template, recorded_run
from sim.synth.scope_jobs.structure import TABLE_2, draw_structure, fit_law
from sim.workload.workload import Workload

NAN = float("nan")


@dataclass(frozen=True, eq=False)
class Piece:
    """Jobs that come at some times: what the tables are made of."""

    jobs: dict[str, list[Any]]  # columns of ``jobs``
    stage_job: I8  # job of each stage, counted within the piece, and its number of tasks
    stage_tasks: I8
    duration_s: F8  # how long each task lasts, s
    edges: I8  # parent and child, counted within the piece, and 1 for one to one


def of_runs(
    runs: Sequence[JobRun], names: Sequence[str], submit_s: Sequence[float], **columns: list[Any]
) -> Piece:
    """Put runs of recurring jobs together, with further columns of ``jobs``."""
    structures = [run.template.structure for run in runs]
    n_stages = [len(structure.n_tasks) for structure in structures]
    first = offsets(np.array(n_stages))[:-1].tolist()
    edges = [
        np.stack([s.parent + at, s.child + at, s.one_to_one.astype(np.int64)])
        for s, at in zip(structures, first, strict=True)
    ]
    return Piece(
        {
            "job_id": list(names),
            "submit_s": list(submit_s),
            "template": [run.template.name for run in runs],
            "user": [run.template.name for run in runs],
            **columns,
        },
        np.repeat(np.arange(len(runs)), n_stages),
        np.concatenate([structure.n_tasks for structure in structures]),
        np.concatenate([run.duration_s for run in runs]),
        np.concatenate(edges, axis=1),
    )


def joined(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Return the tables of all pieces, jobs by when they are submitted."""
    n_jobs = [len(p.jobs["job_id"]) for p in pieces]
    n_stages = [len(p.stage_job) for p in pieces]
    job0, stage0 = offsets(np.array(n_jobs))[:-1], offsets(np.array(n_stages))[:-1]
    submit_s = np.concatenate([p.jobs["submit_s"] for p in pieces])
    order = np.argsort(submit_s, kind="stable")
    job = np.concatenate([p.stage_job + at for p, at in zip(pieces, job0, strict=True)])
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
    stages = np.argsort(row_of[job], kind="stable")
    new_stage = np.empty(len(stages), np.int64)
    new_stage[stages] = np.arange(len(stages))
    n_tasks = np.concatenate([p.stage_tasks for p in pieces])
    task_stage = new_stage[np.repeat(np.arange(len(n_tasks)), n_tasks)]
    tasks = np.argsort(task_stage, kind="stable")
    duration_s = np.concatenate([p.duration_s for p in pieces])
    edges = [p.edges + np.array([[at], [at], [0]]) for p, at in zip(pieces, stage0, strict=True)]
    parent, child, kind = np.concatenate(edges, axis=1)
    named = {key: [v for p in pieces for v in p.jobs[key]] for key in pieces[0].jobs}
    return {
        "jobs": {key: [values[i] for i in order] for key, values in named.items()},
        "stages": {
            "job": row_of[job][stages].astype(np.int32),
            "n_tasks": n_tasks[stages].astype(np.int32),
        },
        "tasks": {"stage": task_stage[tasks].astype(np.int32), "duration_s": duration_s[tasks]},
        "stage_edges": {
            "parent": new_stage[parent].astype(np.int32),
            "child": new_stage[child].astype(np.int32),
            "kind": np.where(kind == 1, "one_to_one", "barrier").tolist(),
        },
    }


SEVEN = tuple(TABLE_2)
NAMES = (*SEVEN, *"HIJKLMNOPQRSTU")
"""The jobs: A to G are Table 2's, H to U are drawn like them."""
NTH = {"E": 1}
"""Which draw of the structure is taken where it is not the first: the first in which the known
deadline leaves the job at least twice the time that it takes with 100 tokens."""
ALONE_MIN = (10.0, 25.0)
"""How long one of the others takes alone with 100 tokens, minutes; others are drawn again, as the
paper left out what is too short or too big (§5.1)."""


@lru_cache(maxsize=len(NAMES))
def template(name: str) -> Template:
    """Return one of the jobs of `NAMES`.

    Their places among all recurring jobs, and those of the recorded among all runs of a job, are
    spread evenly, over the seven and over the others.
    """
    if name in TABLE_2:
        rng = _rng(name, NTH.get(name, 0))
        wanted = TABLE_2[name]
        structure = draw_structure(wanted.n_stages, wanted.n_barriers, wanted.n_vertices, rng)
        law = fit_law(structure.n_tasks, wanted, rng)
        return Template(name, structure, law, *_places(name, SEVEN))
    places = _places(name, NAMES[len(SEVEN) :])
    drawn = (draw_template(name, _rng(name, n), VERTICES, *places) for n in itertools.count())
    return next(one for one in drawn if _fits(one))


def _rng(name: str, n: int) -> np.random.Generator:
    return stream(0, "synth", "scope_jobs", "template", name, n)


def _fits(drawn: Template) -> bool:
    low, high = ALONE_MIN
    return low <= alone_s(drawn) / 60 <= high


def _places(name: str, names: tuple[str, ...]) -> tuple[float, float]:
    rng = stream(0, "synth", "scope_jobs", "places", len(names))
    at = names.index(name)
    place, recorded = ((rng.permutation(len(names))[at] + 0.5) / len(names) for _ in range(2))
    return float(place), float(recorded)


def workload_of(run: JobRun) -> Workload:
    """Make a workload of one run, submitted at 0."""
    piece = of_runs([run], [run.template.name], [0.0])
    return Workload.from_tables(**joined([piece]), validate=False)


TOKENS: int = numbers("jockey")["cluster"]["tokens"]
"""The most that a job was guaranteed (§5.1)."""


def alone_s(template: Template, tokens: int = TOKENS) -> float:
    """Return how long a run like the recorded one takes alone with so many tokens, s."""
    run = recorded_run(template, stream(0, "synth", "scope_jobs", "alone", template.name))
    return float(alone(workload_of(run), tokens).job_finish[0])


TRAINING_TOKENS = 50
"""With how many tokens, alone on the cluster, a job is run to be recorded."""


def training_of(names: Sequence[str]) -> dict[str, Any]:
    """Return the table of recorded tasks (`sim.workload.schema.TRAINING`) of some of the jobs."""
    recorded = [_training(name) for name in names]
    return {
        "template": [name for name, r in zip(names, recorded, strict=True) for _ in r["task"]],
        **{key: np.concatenate([r[key] for r in recorded]) for key in recorded[0]},
    }


@cache
def _training(name: str) -> dict[str, Any]:
    run = recorded_run(template(name), stream(0, "synth", "scope_jobs", "training", name))
    seed = int(stream(0, "synth", "scope_jobs", "training faults", name).integers(2**31))
    return record(fail_tasks(workload_of(run), seed=seed), TRAINING_TOKENS, run.init_s)
