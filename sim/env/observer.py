"""Observations of a run, for policies that are trained: what is in the system, as arrays.

An environment and the policy that is made of what was trained in it share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4
from sim.base.errors import InputError, PolicyError
from sim.engine.plan import Batch, Event, World

JOB_FEATURES = (
    *("age_s", "n_tasks", "left", "running", "started", "done_work_s"),
    *("priority", "due_s", "share", "left_work_s"),
)
"""Columns of observed jobs; the last only where durations are known."""
STAGE_FEATURES = ("n_tasks", "left", "started", "share", "left_work_s")
"""Columns of observed stages; the last only where durations are known."""
NO_DEADLINE_S = 1e9
"""``due_s`` of jobs without a deadline."""

Observation = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Form:
    """Form of observations.

    Attributes
    ----------
    jobs : int or None
        Number of jobs that are shown, the first by submission; rows without a job are 0. None for
        all in the system: a ragged observation.
    stages, edges : int or None
        Number of unfinished stages of these jobs, and of edges between these stages; None for all,
        0 for none.
    durations : {"nothing", "true"}
        Knowledge of durations: with "true", ``left_work_s`` is shown, and a policy is an oracle.
    """

    jobs: int | None = 100
    stages: int | None = 0
    edges: int | None = 0
    durations: Literal["nothing", "true"] = "nothing"

    def __post_init__(self) -> None:
        """Raise InputError on a number or a word out of range."""
        if self.jobs is not None and self.jobs < 1:
            raise InputError(f"jobs of a form must be at least 1, or None for all, not {self.jobs}")
        for name in ("stages", "edges"):
            number = getattr(self, name)
            if number is not None and number < 0:
                raise InputError(f"{name} of a form must be 0 or more, or None, not {number}")
        if self.durations not in ("nothing", "true"):
            raise InputError(f"durations must be 'nothing' or 'true', not {self.durations!r}")

    @property
    def job_features(self) -> tuple[str, ...]:
        """Names of the columns of jobs."""
        return JOB_FEATURES if self.durations == "true" else JOB_FEATURES[:-1]

    @property
    def stage_features(self) -> tuple[str, ...]:
        """Names of the columns of stages."""
        return STAGE_FEATURES if self.durations == "true" else STAGE_FEATURES[:-1]

    @property
    def events(self) -> Event:
        """Events after which there is an observation."""
        jobs = Event.JOB_ARRIVED | Event.JOB_DONE | Event.JOB_FAILED
        return jobs if self.stages == 0 else jobs | Event.STAGE_DONE


class Observer:
    """The jobs in the system of one run, from its events, and their features.

    Parameters
    ----------
    world : World
        The run's.
    form : Form
        What is shown of it.

    Attributes
    ----------
    now : float
        Time of the last batch, s.
    stage_job : (G,) int32
        Row of the job of each stage.
    is_in : (J,) int8
        1 for jobs in the system.
    """

    def __init__(self, world: World, form: Form) -> None:
        from sim.env.kernels import observing as kernels  # loads numba

        columns, self._kernels = world.columns, kernels
        n_jobs, n_stages = len(columns.job_submit), len(columns.stage_job)
        self._world, self._form, self.now = world, form, 0.0
        self.stage_job = columns.stage_job
        self._numbers = np.zeros(2, np.int64)
        self._jobs, self.is_in = np.zeros(n_jobs, np.int32), np.zeros(n_jobs, np.int8)
        self._stages, self._place = np.zeros(n_stages, np.int32), np.full(n_stages, -1, np.int32)
        self._n_stages = 0
        view = world.view
        self._job_counts = (view["left"], view["running"], view["started"])
        share = self._stage_share = _shares(world)
        self._constants = np.column_stack(
            [
                view["submit"],
                columns.job_n_tasks,
                columns.job_priority,
                np.nan_to_num(columns.job_deadline, nan=NO_DEADLINE_S),
                columns.job_work if form.durations == "true" else np.zeros(n_jobs),
                np.maximum.reduceat(share, columns.job_stage0[:-1]) if n_jobs else share,
            ]
        )
        self._stage_n_tasks = columns.stage_n_tasks.astype(np.int32)
        n_parts = view["free"].shape[1] - len(world.cluster.resources)  # of whole machines, if any
        n_rigid = len(world.cluster.resources) - len(world.cluster.fungible)
        self._rooms = np.delete(np.arange(view["free"].shape[1]), slice(n_rigid, n_rigid + n_parts))
        self._free_total = np.maximum(view["free"].sum(axis=0), 1)[self._rooms]

    @property
    def jobs(self) -> I4:
        """Rows of the shown jobs, by submission; valid until the next update."""
        limit = self._form.jobs
        n = self.n_jobs if limit is None else min(self.n_jobs, limit)
        return self._jobs[:n]

    @property
    def n_jobs(self) -> int:
        """Number of jobs in the system."""
        return self._numbers.item(0)

    @property
    def n_ended(self) -> int:
        """Number of jobs that have ended or failed."""
        return self._numbers.item(1)

    @property
    def stages(self) -> I4:
        """Rows of the shown stages, by job; valid until the next observation."""
        return self._stages[: self._n_stages]

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Arrays that a kernel follows in its place (`sim.env.kernels.stepping.FIELDS`)."""
        free = (self._rooms, self._free_total)
        return (*free, self._jobs, self.is_in, self._constants, self._numbers)

    def update(self, batch: Batch) -> None:
        """Take the events of one instant."""
        self.now = batch.now
        self._kernels.follow(
            batch.now, batch[1:3], self._jobs, self.is_in, self._constants, self._numbers
        )

    def set_keys(self, keys: NDArray[np.float32], column: F8) -> I4:
        """Set the keys of the first jobs shown; return the jobs whose key differs.

        Raises PolicyError on a key that is not from -1 to 1.
        """
        changed = np.empty(len(self.jobs), np.int32)
        n = self._kernels.set_keys(keys, self.jobs, column, changed)
        if n < 0:
            raise PolicyError(f"keys must be -1 to 1, not {keys[-1 - n]}")
        return changed[:n]

    def observe(self) -> Observation:
        """Return the observation of this instant, in new arrays.

        Returns
        -------
        dict
            ``n_jobs``, (1,) int64: number in the system, shown or not; ``time_s``, (1,) float64;
            ``free``, (R,) float32, free shares of the resources, those that decide what fits
            first; ``jobs``, (N, F) float32, columns as `Form.job_features`. With stages:
            ``stages``, (S, F) float32, `Form.stage_features`; ``stage_job``, (S,) int32, rows of
            ``jobs``, -1 for none; ``ready``, (S,) int8; and ``edges``, (E, 2) int32, rows of
            ``stages``, -1 for none. Of a ragged form ``stage_job`` and ``ready`` are (S, 1).
        """
        form, view, jobs = self._form, self._world.view, self.jobs
        shown = np.empty(
            (len(jobs) if form.jobs is None else form.jobs, len(form.job_features)), np.float32
        )
        self._kernels.observe_jobs(
            self.now, jobs, self._job_counts, view["done_work"], self._constants, shown
        )
        free = np.empty(len(self._free_total), np.float32)
        self._kernels.free_shares(view["free"], self._rooms, self._free_total, free)
        observed: Observation = {
            "n_jobs": np.array([self.n_jobs]),
            "time_s": np.array([self.now]),
            "free": free,
            "jobs": shown,
        }
        if form.stages != 0:
            observed.update(self._observe_stages(jobs))
        return observed

    def _observe_stages(self, jobs: I4) -> Observation:
        columns, view, form = self._world.columns, self._world.view, self._form
        room = len(self._stages) if form.stages is None else min(form.stages, len(self._stages))
        self._place[self.stages] = -1
        self._n_stages = n = self._kernels.place_stages(
            jobs, columns.job_stage0, view["stage_left"], self._place, self._stages[:room]
        )
        stages, n_tasks = self.stages, self._stage_n_tasks
        left, started = view["stage_left"], view["stage_started"]
        features = [n_tasks[stages], left[stages], started[stages], self._stage_share[stages]]
        if form.durations == "true":
            features.append(columns.stage_work[stages] - view["stage_done_work"][stages])
        ready = np.zeros(n, np.int8)
        topology = (columns.edge0, columns.edge_child)
        counts = (n_tasks, left, started)
        self._kernels.find_ready(stages, self._place, *topology, columns.edge_kind, counts, ready)
        n_edges = int(np.diff(columns.edge0)[stages].sum()) if form.edges is None else form.edges
        edges = np.full((n_edges, 2), -1, np.int32)
        n_listed = self._kernels.list_edges(stages, self._place, *topology, edges)
        return {
            "stages": _padded(np.column_stack(features).astype(np.float32), form.stages, 0),
            "stage_job": _padded(_places(columns.stage_job[stages]), form.stages, -1),
            "ready": _padded(ready, form.stages, 0),
            "edges": edges[:n_listed] if form.edges is None else edges,
        }


def _places(stage_job: I4) -> I4:
    """Return the place among jobs of the job of each stage: stages are listed job by job."""
    is_first = np.diff(stage_job, prepend=-1) != 0
    places: I4 = (np.cumsum(is_first) - 1).astype(np.int32)
    return places


def _padded(rows: NDArray[Any], n: int | None, missing: int) -> NDArray[Any]:
    """Return the rows, and rows of `missing` up to `n`; of None as they are, two-dimensional."""
    if n is None:
        return rows.reshape(len(rows), -1)
    if len(rows) == n:
        return rows
    padded = np.full((n, *rows.shape[1:]), missing, rows.dtype)
    padded[: len(rows)] = rows
    return padded


def _shares(world: World) -> F8:
    """Return the dominant share of the cluster that a task of each stage takes, (G,)."""
    columns, cluster = world.columns, world.cluster
    if cluster.unit:
        return np.full(len(columns.stage_job), 1 / cluster.total[0])
    by_name = dict(zip(cluster.resources, cluster.total, strict=True))
    total = np.array([by_name.get(name, 0.0) for name in columns.resources])
    demand = columns.stage_demand_f
    shares = np.divide(demand, total, where=total > 0, out=np.zeros_like(demand))
    dominant: F8 = shares.max(axis=1, initial=0.0)
    return dominant
