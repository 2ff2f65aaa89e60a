"""Value of jobs and of everything downstream of them, as columns of a workload.

Policies after Wing (Chung et al., OSDI 2020) learn the value of a program's jobs from past jobs;
their oracles know the value of every job. So a workload's ``history`` and ``jobs`` have the columns
`COLUMNS`, beside those of `sim.workload.schema`; ``history`` also has ``template``.
`week_workload` turns `RecordedJobs`, a month in which no job waited, into such a workload: the jobs
of a week, and earlier jobs as their history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.aggregates import aggregate
from policies.wing.lineage.analyses import value_functions
from policies.wing.lineage.dependencies import OMEGA_S, Window, edges_from_pairs, window
from policies.wing.lineage.multi_hop import multi_hop
from policies.wing.lineage.predict import Uses, first_uses, reader_columns
from sim.base.arrays import F8, I8, Mask
from sim.workload.schema import INPUT_MODES, JOB_EDGE_KINDS
from sim.workload.workload import Workload

WAITS_S: Final = tuple(3600.0 * h for h in (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96))
"""Delays after a job's submission at which the remaining value is given."""
DECAYED: Final = ("value", "agg_value", "rescued")


def decay_columns(name: str) -> list[str]:
    """Return the names of the columns of one of `DECAYED` after each of `WAITS_S`."""
    return [f"{name}_after_{wait / 3600:g}h" for wait in WAITS_S]


COLUMNS: Final = (
    "value", "compute_s", "agg_value", "agg_compute_s",
    *(column for name in DECAYED for column in decay_columns(name)),
)  # fmt: skip
"""``value`` is the number of downloads of a job's output, ``compute_s`` its resources held × time.
``agg_value`` and ``agg_compute_s`` add the shares of all downstream jobs submitted within ω of its
end (§4.5.1): each job's own is divided equally among the jobs it depends on.

The other columns are the value that remains if the job completes so much later. Downloads made
before then are lost. For each reader submitted before then that needs the output, the job also
loses its share of that reader's aggregate value (§6.2, Fig. 5). ``rescued`` is aggregate value
again, but without loss for readers that wait for their input. In ``jobs`` only oracles may use
these columns."""


@dataclass(frozen=True, eq=False)
class JobGraph:
    """N jobs in order of submission, E dependencies between them and D downloads."""

    submit_s: F8  # submission, completion, and resources held × time; (N,)
    finish_s: F8
    compute_s: F8
    up: I8  # rows of jobs; ``down`` depends on ``up``; (E,)
    down: I8
    hard: Mask  # the reader needs the input; it waits until the input is there
    waits: Mask
    download_job: I8  # job whose output is downloaded, time, and number of downloads; (D,)
    download_s: F8
    n_downloads: I8

    def ended_before(self, end_s: float) -> tuple[I8, JobGraph]:
        """Return the rows of jobs that ended before `end_s`, and their graph as known by then."""
        return self.where(self.finish_s < end_s, end_s)

    def where(self, selected: Mask, end_s: float = np.inf) -> tuple[I8, JobGraph]:
        """Return the rows of the selected jobs, and their graph with downloads before `end_s`."""
        rows = np.flatnonzero(selected)
        number = np.cumsum(selected) - 1
        edge = selected[self.up] & selected[self.down]
        download = selected[self.download_job] & (self.download_s < end_s)
        return rows, JobGraph(
            self.submit_s[rows], self.finish_s[rows], self.compute_s[rows], number[self.up[edge]],
            number[self.down[edge]], self.hard[edge], self.waits[edge],
            number[self.download_job[download]], self.download_s[download],
            self.n_downloads[download],
        )  # fmt: skip

    def columns(
        self,
        end_s: float | None = None,
        rounds: int | None = None,
        omega_s: float = OMEGA_S,
        *,
        since_s: float = -np.inf,
    ) -> dict[str, Any]:
        """Compute `COLUMNS`, (N,) float64 each."""
        within = window(self.submit_s, self.finish_s, omega_s, end_s)
        valid = within.valid if end_s is not None else np.ones(len(self.submit_s), dtype=bool)
        within = Window(within.submit_s, within.cut_s, valid & (self.submit_s >= since_s))
        value = np.bincount(self.download_job, self.n_downloads, len(self.submit_s)).astype(
            np.float64
        )
        own = {"value": value, "compute_s": self.compute_s}
        edges = edges_from_pairs(len(value), self.up, self.down)
        if rounds is None:
            total = {f"agg_{k}": aggregate(edges, x, within=within) for k, x in own.items()}
        else:
            total = {
                f"agg_{k}": x + multi_hop(edges, value_functions(x), within=within, rounds=rounds)
                for k, x in own.items()
            }
        own["value"] = np.where(within.valid, value, np.nan)
        return own | total | self._decay(value, own["value"], total["agg_value"])

    def _decay(self, local: F8, value: F8, agg_value: F8) -> dict[str, F8]:
        """Compute the columns `decay_columns` of each of `DECAYED`."""
        share = 1.0 / np.bincount(self.down, minlength=len(local))[self.down]
        downstream_value = np.where(np.isnan(agg_value), local, agg_value)
        reader, reader_s = downstream_value[self.down] * share, self.submit_s[self.down]
        lost = self._lost(self.download_job, self.download_s, self.n_downloads.astype(np.float64))
        lost_hard, lost_blind = (
            self._lost(self.up[edge], reader_s[edge], reader[edge])
            for edge in (self.hard, self.hard & ~self.waits)
        )
        left = {
            "value": value[:, None] - lost,
            "agg_value": np.maximum(agg_value[:, None] - lost - lost_hard, 0.0),
            "rescued": np.maximum(agg_value[:, None] - lost - lost_blind, 0.0),
        }
        return {
            column: np.ascontiguousarray(left[name][:, i])
            for name in DECAYED
            for i, column in enumerate(decay_columns(name))
        }

    def _lost(self, job: I8, time_s: F8, amount: F8) -> F8:
        """Sum the amounts that each job has lost after each of `WAITS_S`, (N, W)."""
        n, k = len(self.submit_s), len(WAITS_S)
        wait = np.searchsorted(WAITS_S, time_s - self.submit_s[job], side="right")
        in_range = wait < k  # an event at the very instant of completion is not lost
        steps = np.bincount(job[in_range] * k + wait[in_range], amount[in_range], n * k).reshape(
            n, k
        )
        return np.cumsum(steps, axis=1)


NONE, BLIND, POLL = range(3)
"""Codes of `sim.workload.schema.INPUT_MODES`."""


@dataclass(frozen=True, eq=False)
class RecordedJobs:
    """N one-task jobs in order of submission; time 0 is the begin of the scheduled week."""

    graph: JobGraph  # times, dependencies and downloads
    duration_s: F8
    lag_s: F8  # of polling jobs: delay from the last input to the submission
    priority: F8  # higher runs first
    tokens: I8 | F8  # resources held
    mode: I8  # input mode: `NONE`, `BLIND` or `POLL`
    # (codes, names); the template of ad hoc jobs has an empty name
    template: tuple[I8, Sequence[str]]
    user: tuple[I8, Sequence[str]]
    queue: tuple[I8, Sequence[str]]
    job_ids: Callable[[I8], pa.Array]  # from rows to job ids

    def where(self, selected: Mask) -> RecordedJobs:
        """Return the selected jobs, and the dependencies among them."""
        rows, graph = self.graph.where(selected)
        template, user, queue = (
            (codes[rows], names) for codes, names in (self.template, self.user, self.queue)
        )
        return RecordedJobs(
            graph, self.duration_s[rows], self.lag_s[rows], self.priority[rows], self.tokens[rows],
            self.mode[rows], template, user, queue, lambda some: self.job_ids(rows[some]),
        )  # fmt: skip


def week_workload(
    recorded: RecordedJobs,
    end_s: float,
    rounds: int | None,
    meta: Mapping[str, Any],
    omega_s: float = OMEGA_S,
) -> Workload:
    """Build a workload of the jobs submitted in [0, `end_s`).

    Its edges are those among its jobs; output made before 0 is assumed to exist. Its downloads are
    those of its jobs' output, however late. The history has the jobs that ended by 0. Both have the
    columns `policies.wing.lineage.worth.COLUMNS` (values) and
    `policies.wing.lineage.predict.READERS` (readers).
    """
    graph = recorded.graph
    inside = (graph.submit_s >= 0) & (graph.submit_s < end_s)
    rows = np.flatnonzero(inside)  # contiguous, as jobs are in order of submission
    first = int(rows[0]) if len(rows) else 0
    edge = inside[graph.up] & inside[graph.down]
    download = inside[graph.download_job]
    known, learnt = graph.ended_before(0.0)
    truth = graph.columns(None, rounds, omega_s, since_s=0.0)
    uses, templates = _uses(recorded), recorded.template[1]
    kinds = list(JOB_EDGE_KINDS)
    soft, hard = kinds.index("soft"), kinds.index("hard")
    return Workload.from_tables(
        jobs={
            "job_id": recorded.job_ids(rows),
            "submit_s": graph.submit_s[rows],
            "template": _named(recorded.template, rows),
            "user": _named(recorded.user, rows),
            "queue": _named(recorded.queue, rows),
            "priority": recorded.priority[rows],
            "input_mode": category(recorded.mode[rows], list(INPUT_MODES)),
            "poll_lag_s": recorded.lag_s[rows],
            **{name: column[rows] for name, column in truth.items()},
            **reader_columns(uses, rows, templates),
        },
        stages={
            "job": np.arange(len(rows), dtype=np.int32),
            "n_tasks": np.ones(len(rows), dtype=np.int32),
            "demand_tokens": recorded.tokens[rows].astype(np.float64),
            "duration_s": recorded.duration_s[rows],
        },
        job_edges={
            "upstream": (graph.up[edge] - first).astype(np.int32),
            "downstream": (graph.down[edge] - first).astype(np.int32),
            "kind": category(np.where(graph.hard[edge], hard, soft), kinds),
        },
        downloads={
            "job": (graph.download_job[download] - first).astype(np.int32),
            "time_s": graph.download_s[download],
            "n": graph.n_downloads[download].astype(np.int32),
        },
        history={
            "submit_s": graph.submit_s[known],
            "finish_s": graph.finish_s[known],
            "n_tasks": np.ones(len(known), dtype=np.int32),
            "mean_task_s": recorded.duration_s[known],
            "user": _named(recorded.user, known),
            "template": _named(recorded.template, known),
            **learnt.columns(0.0, rounds, omega_s),
            **reader_columns(uses.where(uses.first_s < 0.0), known, templates),
        },
        meta={"quantum": {"tokens": 1.0}, **meta},
    )


def _uses(recorded: RecordedJobs) -> Uses:
    codes, names = recorded.template
    edges = edges_from_pairs(len(codes), recorded.graph.up, recorded.graph.down)
    recurring = np.array([bool(name) for name in names], dtype=bool)
    return first_uses(edges, codes.astype(np.int32), recorded.graph.submit_s, recurring)


def category(codes: I8, names: Sequence[str]) -> pa.DictionaryArray:
    """Build a dictionary column from codes, without the names that do not occur."""
    used, new_codes = np.unique(codes, return_inverse=True)
    spellings = pa.array([names[code] for code in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(new_codes.astype(np.int32)), spellings)


def _named(coded: tuple[I8, Sequence[str]], rows: I8) -> pa.DictionaryArray:
    return category(coded[0][rows], coded[1])
