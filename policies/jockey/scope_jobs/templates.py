"""Templates of the 21 recurring jobs; runs of them, as workload tables and as training records.

Seven jobs have the statistics of Table 2; fourteen more are drawn like them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np

from policies.jockey.scope_jobs.structure import (
    TABLE_2,
    RunTimes,
    Structure,
    draw_init_s,
    draw_run_times,
    draw_structure,
    fit_run_times,
)
from sim.base import maths
from sim.base.arrays import F8, I8, inverse, offsets
from sim.base.errors import InputError
from sim.base.plugins import check_names
from sim.base.random import Stream, stream
from sim.cluster.faults import NO_SLOWDOWNS, draw_slowdowns
from sim.engine.recording import record_alone, run_alone, training_table
from sim.published import numbers
from sim.transforms.faults import SLOWER, STRAGGLERS, fail_tasks, straggler_factors
from sim.workload.tables import values
from sim.workload.workload import Workload

STAGES, VERTICES = (10, 60), (700, 8500)
FASTEST_P90_S, SLOWEST_P90_S = (1.4, 4.0), (22.0, 320.0)
"""Ranges of the fourteen drawn jobs, log-uniform: about the ranges of Table 2."""
BARRIERS = (0.0, 0.25)
"""Range of the share of stages that begin with a full shuffle, uniform; Table 2 has 0 to 0.26."""
BULK, SKEW, SIGMA = (0.35, 1.0), (0.5, 2.5), (0.25, 0.5)
"""Ranges of the spread of stage times (`policies.jockey.scope_jobs.structure`)."""
INIT_EXPONENT = 1 / 3
"""A run with x times the work has initialisations x to this power as long:
ln(6.8 / 5.8) over ln(23.5 / 12.7), and ln(6.9 / 5.8) over ln(18.5 / 12.7), are 0.26 and 0.46 (Table
3)."""
WORK_H = {name: numbers_of_run[0] for name, numbers_of_run in numbers("jockey")["table3"].items()}
"""Total work of job F in training and of the two runs of Table 3, hours."""
RUN_SIGMA = 0.05
"""Spread of the logarithm of the factor that all vertices of a run share."""
P_OVERLOADED = 0.02
"""Chance that the cluster is overloaded while a job runs."""
OVERLOAD_EXTRA = float(np.mean([WORK_H[r] / WORK_H["training"] - 1 for r in ("job 1", "job 2")]))
OVERLOAD_EXTRA_WITHIN, OVERLOAD_EXTRA_SPREAD = 0.3, 0.85
"""Extra work of a run of the median job on an overloaded cluster: 0.65, the mean of the runs of
Table 3, within as wide a range as they lie apart. Other jobs have that times exp(0.85 z), z being
the normal score of their rank by variation."""
INPUT_VARIATION = (0.10, 0.14, 0.45, 2.8)
"""Coefficient of variation of input sizes, where inputs are not similar, at Table 1's percentiles
of jobs. docs/jockey_workload.md says how this and the spreads above were set."""
LIKE_INPUTS = 0.05
"""Similar inputs are at most this much smaller or larger than usual."""
STAGE_SIGMA = 0.1
"""Spread of the logarithm of a single stage's factor in a run; an assumption."""


@dataclass(frozen=True)
class Assumptions:
    """Numbers that the paper lacks, and that can be set."""

    run_sigma: float = RUN_SIGMA
    stragglers: float = STRAGGLERS  # share of vertices, in recorded runs too
    slower: tuple[float, float] = SLOWER  # range of their factor
    narrow: bool = False  # stages of few vertices after a shuffle; narrow ones may be the slowest


AS_ASSUMED = Assumptions()


@dataclass(frozen=True, eq=False)
class Template:
    """A recurring job."""

    name: str
    structure: Structure  # its g stages
    run_times: RunTimes  # of the vertices, in a run like the published one
    variation_rank: float  # rank among all recurring jobs by how much their runs vary, 0 to 1
    recorded_rank: float = 0.5  # rank of the recorded run among all runs of the job by work, 0 to 1


@dataclass(frozen=True, eq=False)
class JobRun:
    """One run of a job of T tasks, stage by stage."""

    template: Template
    run_s: F8  # run time of each vertex
    init_s: F8  # initialisation before it
    lag_s: F8 | None = None  # lag of each stage behind its parents

    @property
    def duration_s(self) -> F8:
        """Time for which each task holds its token, (T,) s."""
        return self.run_s + self.init_s

    def without_init(self) -> JobRun:
        """Return the same run without the initialisation of vertices."""
        return JobRun(self.template, self.run_s, np.zeros(len(self.init_s)))

    def with_lags(self, lag_s: F8) -> JobRun:
        """Return the same run with queueing that holds no token, `lag_s` of each stage.

        As a lag is behind parents, a vertex without duration comes before the stages that read the
        input (the job manager's).
        """
        managed = replace(self.template, structure=self.template.structure.with_manager())
        run_s = np.append(0.0, self.run_s)
        return JobRun(managed, run_s, np.zeros(len(run_s)), np.append(0.0, lag_s))


def draw_template(
    name: str,
    rng: Stream,
    vertices: tuple[int, int],
    variation_rank: float = 0.5,
    recorded_rank: float = 0.5,
    narrow: bool = False,
) -> Template:
    """Draw a job like the seven, with a number of vertices in a range."""
    n_stages = round(_draw_log_uniform(STAGES, rng))
    n_barriers = round(n_stages * rng.uniform(*BARRIERS))
    n_vertices = max(round(_draw_log_uniform(vertices, rng)), 6 * n_stages)
    structure = draw_structure(n_stages, n_barriers, n_vertices, rng, narrow)
    ends = (_draw_log_uniform(FASTEST_P90_S, rng), _draw_log_uniform(SLOWEST_P90_S, rng))
    shape = (rng.uniform(*BULK), _draw_log_uniform(SKEW, rng))
    run_times = draw_run_times(structure.n_tasks, shape, ends, rng.uniform(*SIGMA), rng, narrow)
    return Template(name, structure, run_times, variation_rank, recorded_rank)


def _draw_log_uniform(ends: tuple[float, float], rng: Stream) -> float:
    low, high = maths.log(ends)
    return float(maths.exp(rng.uniform(low, high)))


def recorded_run(
    template: Template, rng: Stream, slower: float = 1.0, assumed: Assumptions = AS_ASSUMED
) -> JobRun:
    """Draw a run with the published work of the recorded run, or `slower` times as much."""
    return _run(template, 1.0, slower, np.ones(len(template.structure.n_tasks)), rng, assumed)


def draw_run(
    template: Template, rng: Stream, like_inputs: bool = True, assumed: Assumptions = AS_ASSUMED
) -> JobRun:
    """Draw a run: factors of the run, its input, overload and each stage, log-normal of median 1.

    Initialisation grows less (`INIT_EXPONENT`), and not with the input. The recorded run is one of
    these runs, so that another one needs more or less work.
    """
    z_input, z_run = rng.normal(size=2)
    chance, within = rng.random(2)
    size = input_size(template, z_input)
    if like_inputs:
        size = rng.uniform(1 - LIKE_INPUTS, 1 + LIKE_INPUTS)
    slower = float(maths.exp(assumed.run_sigma * (z_run - _score(template.recorded_rank))))
    if chance < P_OVERLOADED:
        mean = overload_extra(template.variation_rank)
        slower *= 1 + mean * (1 + OVERLOAD_EXTRA_WITHIN * (2 * within - 1))
    stage_factors = maths.exp(STAGE_SIGMA * rng.normal(size=len(template.structure.n_tasks)))
    return _run(template, float(size), slower, stage_factors, rng, assumed)


def input_size(template: Template, z: float) -> float:
    """Return the size of an input relative to the usual one, by its normal score z."""
    return float(maths.exp(input_sigma(template.variation_rank) * z))


def overload_extra(variation_rank: float) -> float:
    """Return the mean extra work, as a part of the usual, of a run on an overloaded cluster."""
    return OVERLOAD_EXTRA * float(maths.exp(OVERLOAD_EXTRA_SPREAD * _score(variation_rank)))


def input_sigma(variation_rank: float) -> float:
    """Return the spread of the logarithm of input sizes, for a job of that rank by variation.

    Between Table 1's percentiles the logarithm of the variation is linear in the normal score;
    below the first it has the slope between the first two.
    """
    percentile_z, log_cov = (
        maths.normal_quantile(np.array(numbers("jockey")["table1"]["percentiles"]) / 100),
        maths.log(INPUT_VARIATION),
    )
    slope = (log_cov[1] - log_cov[0]) / (percentile_z[1] - percentile_z[0])
    z = _score(variation_rank)
    log_variation = maths.interp(z, percentile_z, log_cov) + slope * min(z - percentile_z[0], 0.0)
    return float(np.sqrt(maths.log1p(maths.exp(2 * log_variation))))


def _score(rank: float) -> float:
    return float(maths.normal_quantile(np.clip(rank, 0.01, 0.99)))


def _run(
    template: Template,
    size: float,
    slower: float,
    stage_factors: F8,
    rng: Stream,
    assumed: Assumptions,
) -> JobRun:
    n_tasks = template.structure.n_tasks
    run_s = (
        template.run_times.run_s(n_tasks, rng) * np.repeat(stage_factors, n_tasks) * size * slower
    )
    init_s = draw_init_s(len(run_s), rng) * maths.power(slower, INIT_EXPONENT)
    factors = straggler_factors(len(run_s), rng, assumed.stragglers, assumed.slower)
    return JobRun(template, run_s * factors, init_s)


NAN = float("nan")


@dataclass(frozen=True, eq=False)
class JobBatch:
    """Jobs with their submission times, from which the tables are concatenated."""

    jobs: dict[str, list[Any]]  # columns of ``jobs``
    stage_job: I8  # job of each stage, counted within the batch
    stage_tasks: I8  # tasks of each stage
    duration_s: F8  # duration of each task, s
    edges: I8  # parent and child, counted within the batch, and 1 for one to one
    lag_s: F8 | None = None  # lag of each stage; none lags without


def batch_runs(
    runs: Sequence[JobRun], names: Sequence[str], submit_s: Sequence[float], **columns: list[Any]
) -> JobBatch:
    """Return a batch of runs of recurring jobs, with further columns of ``jobs``."""
    structures = [run.template.structure for run in runs]
    n_stages = [len(structure.n_tasks) for structure in structures]
    first = offsets(np.array(n_stages))[:-1].tolist()
    edges = [
        np.stack([s.parent + stage0, s.child + stage0, s.one_to_one.astype(np.int64)])
        for s, stage0 in zip(structures, first, strict=True)
    ]
    return JobBatch(
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
        _stage_lags([run.lag_s for run in runs], n_stages),
    )


def _stage_lags(lags_s: Sequence[F8 | None], n_stages: Sequence[int]) -> F8 | None:
    """Concatenate the lags of stages, part by part; None if no part has any."""
    if all(lag_s is None for lag_s in lags_s):
        return None
    parts = zip(lags_s, n_stages, strict=True)
    return np.concatenate([np.zeros(n) if lag_s is None else lag_s for lag_s, n in parts])


def concat_tables(batches: Sequence[JobBatch]) -> dict[str, Any]:
    """Concatenate batches into workload tables, jobs in order of submission."""
    n_jobs = [len(b.jobs["job_id"]) for b in batches]
    n_stages = [len(b.stage_job) for b in batches]
    job0, stage0 = offsets(np.array(n_jobs))[:-1], offsets(np.array(n_stages))[:-1]
    submit_s = np.concatenate([b.jobs["submit_s"] for b in batches])
    order = np.argsort(submit_s, kind="stable")
    job = np.concatenate([b.stage_job + row for b, row in zip(batches, job0, strict=True)])
    job_row = inverse(order)
    stages = np.argsort(job_row[job], kind="stable")
    new_stage = inverse(stages)
    n_tasks = np.concatenate([b.stage_tasks for b in batches])
    task_stage = new_stage[np.repeat(np.arange(len(n_tasks)), n_tasks)]
    tasks = np.argsort(task_stage, kind="stable")
    duration_s = np.concatenate([b.duration_s for b in batches])
    edges = [b.edges + np.array([[s], [s], [0]]) for b, s in zip(batches, stage0, strict=True)]
    parent, child, kind = np.concatenate(edges, axis=1)
    lag_s = _stage_lags([b.lag_s for b in batches], n_stages)
    job_columns = {key: [v for b in batches for v in b.jobs[key]] for key in batches[0].jobs}
    return {
        "jobs": {key: [values[i] for i in order] for key, values in job_columns.items()},
        "stages": {
            "job": job_row[job][stages].astype(np.int32),
            "n_tasks": n_tasks[stages].astype(np.int32),
            **({} if lag_s is None else {"lag_s": lag_s[stages]}),
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
NTH_DRAW = {"E": 5}
"""Number of the structure's draw where it is not the first: the first draw in which the published
deadline leaves the job at least twice the time that it takes with 100 tokens."""
ALONE_MIN = (10.0, 25.0)
"""Range of the time of a drawn job alone with 100 tokens, minutes; jobs outside it are drawn again,
as the paper left out jobs that are too short or too big (§5.1)."""


@lru_cache(maxsize=2 * len(NAMES))
def template(name: str, narrow: bool = False) -> Template:
    """Return the template of one of `NAMES`, whose ranks are spread evenly over recurring jobs."""
    if name in TABLE_2:
        rng = _rng(name, NTH_DRAW.get(name, 0))
        target = TABLE_2[name]
        structure = draw_structure(
            target.n_stages, target.n_barriers, target.n_vertices, rng, narrow
        )
        run_times = fit_run_times(structure.n_tasks, target, rng, narrow)
        return Template(name, structure, run_times, *_ranks(name, SEVEN))
    ranks = _ranks(name, NAMES[len(SEVEN) :])
    candidates = (
        draw_template(name, _rng(name, n), VERTICES, *ranks, narrow) for n in itertools.count()
    )
    return next(candidate for candidate in candidates if _has_fitting_length(candidate))


def _rng(name: str, draw: int) -> Stream:
    return stream(0, "synth", "scope_jobs", "template", name, draw)


def _has_fitting_length(candidate: Template) -> bool:
    low, high = ALONE_MIN
    return low <= alone_s(candidate) / 60 <= high


def _ranks(name: str, names: tuple[str, ...]) -> tuple[float, float]:
    rng = stream(0, "synth", "scope_jobs", "places", len(names))
    index = names.index(name)
    variation, recorded = (
        (rng.permutation(len(names))[index] + 0.5) / len(names) for _ in range(2)
    )
    return float(variation), float(recorded)


def run_workload(run: JobRun) -> Workload:
    """Return a workload of one run, submitted at 0."""
    batch = batch_runs([run], [run.template.name], [0.0])
    return Workload.from_tables(**concat_tables([batch]), validate=False)


TOKENS: int = numbers("jockey")["cluster"]["tokens"]
"""Maximum guarantee of a job (§5.1)."""


def alone_s(template: Template) -> float:
    """Return the time that a run like the recorded one takes alone with `TOKENS`, s."""
    run = recorded_run(template, stream(0, "synth", "scope_jobs", "alone", template.name))
    return float(run_alone(run_workload(run), TOKENS).job_finish[0])


Initialise = Literal["true", "false", "without_token"]
"""Readings of the initialisation of a vertex (`policies.jockey.scope_jobs.synthesize`)."""


def read_as(run: JobRun, initialise: Initialise, assumed: Assumptions = AS_ASSUMED) -> JobRun:
    """Return a run with its initialisation as that reading has it."""
    if initialise == "without_token":
        return run.with_lags(queueing_s(run.template.name, assumed))
    return run if initialise == "true" else run.without_init()


@cache
def queueing_s(name: str, assumed: Assumptions = AS_ASSUMED) -> F8:
    """Return the lag of each stage, (g,) s: a vertex queues for the mean of the recorded run's."""
    run = _usual_recorded(name, assumed)
    n_tasks = run.template.structure.n_tasks
    stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
    return run.template.structure.queueing_s(np.bincount(stage, run.init_s) / n_tasks)


def _usual_recorded(name: str, assumed: Assumptions) -> JobRun:
    rng = stream(0, "synth", "scope_jobs", "training", name)
    return recorded_run(template(name, assumed.narrow), rng, assumed=assumed)


N_PATHS = 11
"""Simulated runs of which the median is a job's critical path."""


@cache
def critical_path_s(name: str, assumed: Assumptions = AS_ASSUMED, queues: bool = False) -> float:
    """Return the time that a run like the recorded one takes with a token for every vertex, s.

    It is the median of simulated runs (§2.2), in which no attempt fails. A vertex initialises, or
    `queues` without a token.
    """
    rng = stream(0, "synth", "scope_jobs", "critical path", name)
    usual = template(name, assumed.narrow)
    drawn = [recorded_run(usual, rng, assumed=assumed) for _ in range(N_PATHS)]
    runs = [read_as(run, "without_token" if queues else "true", assumed) for run in drawn]
    took_s = [run_alone(run_workload(run), len(run.run_s)).job_finish[0] for run in runs]
    return float(np.median(took_s))


def fail_vertices(workload: Workload, scope: Literal["all", "deadline"], seed: int) -> Workload:
    """Draw failed attempts and lost inputs (`fail_tasks`); a job manager has no output to lose."""
    failing = fail_tasks(workload, scope=scope, seed=seed)
    lost = values(failing.failures, "lost")
    is_output = (lost < 0) | (failing.columns.task_duration[lost] > 0)
    return failing if is_output.all() else failing.with_failures(failing.failures.filter(is_output))


TRAINING_TOKENS = 50
"""Tokens of the recorded run of a job, which is alone on the cluster."""
N_INPUTS = 10
"""Number of inputs from which the largest is taken."""


SLOW_OPTIONS = ("every_s", "last_s", "speed", "until_s", "label")
"""Options of slow periods in training, as of `sim.cluster.faults.draw_slowdowns`."""


def recorded_training(
    names: Sequence[str],
    initialise: Initialise = "true",
    inputs: str | None = None,
    slowdowns: Mapping[str, Any] | None = None,
    assumed: Assumptions = AS_ASSUMED,
) -> dict[str, Any]:
    """Return the recorded tasks (`sim.workload.schema.TRAINING`) of the named jobs.

    With `inputs` the recorded run is of the largest of `N_INPUTS` inputs: of similar ones ("like"),
    or of any ("all"). With `slowdowns` (options of `draw_slowdowns`) the cluster is slow at times.
    """
    slow = None if slowdowns is None else _slow_options(slowdowns)
    records = [_training(name, initialise, inputs, slow, assumed) for name in names]
    return training_table(names, records)


def _slow_options(slowdowns: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the options of slow periods as a key of a cache, their label left out."""
    check_names("option of training_slowdowns", slowdowns, SLOW_OPTIONS)
    speed = slowdowns.get("speed")
    ends = tuple(speed) if isinstance(speed, list | tuple) else (speed, speed)
    options = {**slowdowns, "speed": ends, "label": None}
    missing = [key for key in SLOW_OPTIONS if key not in options]
    if missing:
        raise InputError(f"training_slowdowns lacks {missing[0]}; valid: {', '.join(SLOW_OPTIONS)}")
    return tuple(options.items())


@cache
def _training(
    name: str,
    initialise: Initialise,
    inputs: str | None,
    slowdowns: tuple[tuple[str, Any], ...] | None,
    assumed: Assumptions,
) -> dict[str, Any]:
    run = _usual_recorded(name, assumed)
    if inputs is not None:
        input_rng = stream(0, "synth", "scope_jobs", "inputs", name)
        like_input = float(input_rng.uniform(1 - LIKE_INPUTS, 1 + LIKE_INPUTS, N_INPUTS).max())
        any_input = input_size(run.template, float(input_rng.normal(size=N_INPUTS).max()))
        size = like_input if inputs == "like" else any_input
        run = JobRun(run.template, run.run_s * size, run.init_s)
    run = read_as(run, initialise, assumed)
    seed = int(stream(0, "synth", "scope_jobs", "training faults", name).integers(2**31))
    periods = NO_SLOWDOWNS
    if slowdowns is not None:
        periods = draw_slowdowns(0, **{**dict(slowdowns), "label": f"training {name}"})
    workload = fail_vertices(run_workload(run), "all", seed)
    return record_alone(workload, TRAINING_TOKENS, run.init_s, periods)
