"""The 21 recurring jobs, alone on the cluster and recorded; runs, also as tables of a workload.

Seven jobs are as in Table 2, fourteen more of their kind.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, inverse, offsets
from sim.base.random import Stream, stream
from sim.engine.recording import record_alone, run_alone, training_table
from sim.published import numbers
from sim.synth.scope_jobs.structure import (
    TABLE_2,
    Law,
    Structure,
    draw_init_s,
    draw_law,
    draw_structure,
    fit_law,
)
from sim.transforms.faults import fail_tasks, straggling
from sim.workload.workload import Workload

STAGES, VERTICES = (10, 60), (700, 8500)
FASTEST_P90_S, SLOWEST_P90_S = (1.4, 4.0), (22.0, 320.0)
"""Between which the others are drawn, evenly in the logarithm: about the ranges of Table 2."""
BARRIERS = (0.0, 0.25)
"""What part of the stages begins with a full shuffle, evenly; Table 2 has 0 to 0.26."""
BULK, SKEW, SIGMA = (0.35, 1.0), (0.5, 2.5), (0.25, 0.5)
"""Of how the times of stages spread (`sim.synth.scope_jobs.structure`)."""
INIT_EXPONENT = 1 / 3
"""Where a run needs x times the work, what goes before a vertex runs takes x to this power as long:
ln(6.8 / 5.8) over ln(23.5 / 12.7), and ln(6.9 / 5.8) over ln(18.5 / 12.7), are 0.26 and 0.46 (Table
3)."""
WORK_H = {name: numbers_of_run[0] for name, numbers_of_run in numbers("jockey")["table3"].items()}
"""Total work of job F in training and of the two runs of Table 3, hours."""
RUN_SIGMA = 0.05
"""Spread of the logarithm of what all vertices of a run take longer or shorter."""
OVERLOADED = 0.02
"""Chance that the cluster is overloaded while a job runs."""
EXTRA = float(np.mean([WORK_H[run] / WORK_H["training"] - 1 for run in ("job 1", "job 2")]))
EXTRA_WITHIN, EXTRA_SPREAD = 0.3, 0.85
"""What a run of the median job takes longer then, 0.65 as the runs of Table 3 on average, give or
take as much of it as they lie apart; for others that times exp(0.85 z), by the normal score z of
their place."""
INPUT_VARIATION = (0.10, 0.14, 0.45, 2.8)
"""Variation of the factor of inputs that are not alike, at Table 1's percentiles of jobs. How this
and the spreads above were set says docs/jockey_workload.md."""
LIKE = 0.05
"""Inputs that are alike are at most this much smaller or larger than usual."""
STAGE_SIGMA = 0.1
"""Spread of what a single stage takes longer or shorter in a run; an assumption."""


@dataclass(frozen=True, eq=False)
class Template:
    """A recurring job."""

    name: str  # what it is called
    structure: Structure  # its g stages
    law: Law  # how long their vertices run in a run like the one that was published
    place: float  # how much its runs vary: its place among all recurring jobs, between 0 and 1
    # how much the run that was recorded took: its place among all runs of the job, 0 to 1
    recorded: float = 0.5


@dataclass(frozen=True, eq=False)
class JobRun:
    """One run of a job of T tasks, stage by stage."""

    template: Template  # the job
    run_s: F8  # how long each vertex runs, and what goes before
    init_s: F8

    @property
    def duration_s(self) -> F8:
        """How long each task holds its token, (T,) s."""
        return self.run_s + self.init_s

    def at_once(self) -> JobRun:
        """Return the run whose vertices need no initialisation."""
        return JobRun(self.template, self.run_s, np.zeros(len(self.init_s)))


def draw_template(
    name: str, rng: Stream, vertices: tuple[int, int], place: float = 0.5, recorded: float = 0.5
) -> Template:
    """Draw a job like the seven, with a number of vertices in a range."""
    n_stages = round(_between(STAGES, rng))
    n_barriers = round(n_stages * rng.uniform(*BARRIERS))
    n_vertices = max(round(_between(vertices, rng)), 6 * n_stages)
    structure = draw_structure(n_stages, n_barriers, n_vertices, rng)
    ends = (_between(FASTEST_P90_S, rng), _between(SLOWEST_P90_S, rng))
    shape = (rng.uniform(*BULK), _between(SKEW, rng))
    law = draw_law(structure.n_tasks, shape, ends, rng.uniform(*SIGMA), rng)
    return Template(name, structure, law, place, recorded)


def _between(ends: tuple[float, float], rng: Stream) -> float:
    low, high = maths.log(ends)
    return float(maths.exp(rng.uniform(low, high)))


def recorded_run(template: Template, rng: Stream, slower: float = 1.0) -> JobRun:
    """Draw a run that takes as much work as published of the recorded one, or `slower` times it."""
    return _run(template, 1.0, slower, np.ones(len(template.structure.n_tasks)), rng)


def draw_run(template: Template, rng: Stream, like_inputs: bool = True) -> JobRun:
    """Draw a run: factors of the run, its input, overload and each stage, log-normal of median 1.

    Initialisation grows less (`INIT_EXPONENT`), and not with the input. The recorded run is one of
    them, so that another takes more or less than it did.
    """
    z_input, z_run = rng.normal(size=2)
    chance, within = rng.random(2)
    size = input_of(template, z_input)
    if like_inputs:
        size = rng.uniform(1 - LIKE, 1 + LIKE)
    slower = float(maths.exp(RUN_SIGMA * (z_run - _score(template.recorded))))
    if chance < OVERLOADED:
        slower *= 1 + extra(template.place) * (1 + EXTRA_WITHIN * (2 * within - 1))
    each = maths.exp(STAGE_SIGMA * rng.normal(size=len(template.structure.n_tasks)))
    return _run(template, float(size), slower, each, rng)


def input_of(template: Template, z: float) -> float:
    """Return the size of an input over that of the usual one, by its normal score z."""
    return float(maths.exp(input_sigma(template.place) * z))


def extra(place: float) -> float:
    """Return what a run takes longer while the cluster is overloaded, on average."""
    return EXTRA * float(maths.exp(EXTRA_SPREAD * _score(place)))


def input_sigma(place: float) -> float:
    """Return the spread of the logarithm of the inputs of the job at `place` among all, 0 to 1.

    Between Table 1's percentiles the logarithm of the variation is linear in the normal score, and
    below the first as between the first two.
    """
    at, log_cov = (
        maths.normal_quantile(np.array(numbers("jockey")["table1"]["percentiles"]) / 100),
        maths.log(INPUT_VARIATION),
    )
    slope = (log_cov[1] - log_cov[0]) / (at[1] - at[0])
    z = _score(place)
    log_at = maths.interp(z, at, log_cov) + slope * min(z - at[0], 0.0)
    return float(np.sqrt(maths.log1p(maths.exp(2 * log_at))))


def _score(place: float) -> float:
    return float(maths.normal_quantile(np.clip(place, 0.01, 0.99)))


def _run(template: Template, size: float, slower: float, each: F8, rng: Stream) -> JobRun:
    n_tasks = template.structure.n_tasks
    run_s = template.law.run_s(n_tasks, rng) * np.repeat(each, n_tasks) * size * slower
    init_s = draw_init_s(len(run_s), rng) * maths.power(slower, INIT_EXPONENT)
    return JobRun(template, run_s * straggling(len(run_s), rng), init_s)


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
            "cpu_s": [float(run.run_s.sum()) for run in runs],
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
    row_of = inverse(order)
    stages = np.argsort(row_of[job], kind="stable")
    new_stage = inverse(stages)
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
NTH = {"E": 5}
"""Which draw of the structure is taken where it is not the first: the first in which the known
deadline leaves the job at least twice the time that it takes with 100 tokens."""
ALONE_MIN = (10.0, 25.0)
"""How long one of the others takes alone with 100 tokens, minutes; others are drawn again, as the
paper left out what is too short or too big (§5.1)."""


@lru_cache(maxsize=len(NAMES))
def template(name: str) -> Template:
    """Return one of the jobs of `NAMES`, which are spread evenly among all recurring jobs."""
    if name in TABLE_2:
        rng = _rng(name, NTH.get(name, 0))
        wanted = TABLE_2[name]
        structure = draw_structure(wanted.n_stages, wanted.n_barriers, wanted.n_vertices, rng)
        law = fit_law(structure.n_tasks, wanted, rng)
        return Template(name, structure, law, *_places(name, SEVEN))
    places = _places(name, NAMES[len(SEVEN) :])
    drawn = (draw_template(name, _rng(name, n), VERTICES, *places) for n in itertools.count())
    return next(one for one in drawn if _fits(one))


def _rng(name: str, n: int) -> Stream:
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


def alone_s(template: Template) -> float:
    """Return how long a run like the recorded one takes alone with `TOKENS`, s."""
    run = recorded_run(template, stream(0, "synth", "scope_jobs", "alone", template.name))
    return float(run_alone(workload_of(run), TOKENS).job_finish[0])


TRAINING_TOKENS = 50
"""With how many tokens, alone on the cluster, a job is run to be recorded."""


SEEN = 10
"""Of how many inputs the largest is taken."""


def training_of(
    names: Sequence[str], initialise: bool = True, inputs: str | None = None
) -> dict[str, Any]:
    """Return the table of recorded tasks (`sim.workload.schema.TRAINING`) of some of the jobs.

    With `inputs` the recorded run is of the largest of `SEEN` inputs: "alike", or "all".
    """
    return training_table(names, [_training(name, initialise, inputs) for name in names])


@cache
def _training(name: str, initialise: bool, inputs: str | None) -> dict[str, Any]:
    run = recorded_run(template(name), stream(0, "synth", "scope_jobs", "training", name))
    if inputs is not None:
        seen = stream(0, "synth", "scope_jobs", "inputs", name)
        alike = float(seen.uniform(1 - LIKE, 1 + LIKE, SEEN).max())
        every = input_of(run.template, float(seen.normal(size=SEEN).max()))
        run = JobRun(run.template, run.run_s * (alike if inputs == "alike" else every), run.init_s)
    run = run if initialise else run.at_once()
    seed = int(stream(0, "synth", "scope_jobs", "training faults", name).integers(2**31))
    return record_alone(fail_tasks(workload_of(run), seed=seed), TRAINING_TOKENS, run.init_s)
