"""What jobs turned out to be worth, with all that depended on them: as columns of a workload.

Policies after Wing (Chung et al., OSDI 2020) learn from jobs of the past what jobs of a program are
worth, and their oracles know it of every job. So a workload's ``history`` and ``jobs`` have, beside
the columns of `sim.workload.schema`, those of `COLUMNS`; ``history`` also has ``template``. A
`Recorded` month where no job waited becomes one: a `week` of its jobs, the past their history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask
from sim.lineage.aggregates import aggregate
from sim.lineage.analyses import value_functions
from sim.lineage.dependencies import OMEGA_S, Window, edges_from_pairs, window
from sim.lineage.multi_hop import multi_hop
from sim.lineage.predict import Uses, first_uses, reader_columns
from sim.workload.schema import INPUT_MODES, JOB_EDGE_KINDS
from sim.workload.workload import Workload

WAITS_S: Final = tuple(3600.0 * h for h in (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96))
"""After how long, from a job's submission, it is said what completing then is still worth."""
DECAYED: Final = ("value", "agg_value", "rescued")


def decay_columns(name: str) -> list[str]:
    """Return the columns that say how one of `DECAYED` falls, one for each of `WAITS_S`."""
    return [f"{name}_after_{wait / 3600:g}h" for wait in WAITS_S]


COLUMNS: Final = (
    "value", "compute_s", "agg_value", "agg_compute_s",
    *(column for name in DECAYED for column in decay_columns(name)),
)  # fmt: skip
"""Downloads of a job's output; resources held × time; and both with the shares of all jobs
downstream that are submitted within ω of its end (§4.5.1): each job shares its own equally among
those that it depends on.

Then what is left of value and aggregate value if the job completes so much later: downloads made
before are lost, and with each reader that can't do without and was submitted before, its share of
that reader's aggregate value (§6.2, Fig. 5). ``rescued`` is aggregate value again, but readers that
would wait for their input are not lost. In ``jobs`` only oracles may look at these columns."""


@dataclass(frozen=True, eq=False)
class JobGraph:
    """N jobs in order of submission, E dependencies and D downloads."""

    submit_s: F8  # when, till when, and resources held × time
    finish_s: F8
    compute_s: F8
    up: I8  # rows of jobs; ``down`` depends on ``up``
    down: I8
    hard: Mask  # whether the reader can't do without, and whether it would wait for its input
    waits: Mask
    download_job: I8  # of which job output is downloaded, when, and how often
    download_s: F8
    n_downloads: I8

    def ended_before(self, end_s: float) -> tuple[I8, JobGraph]:
        """Return the rows of jobs that had ended before a time, and what was known of them."""
        return self.where(self.finish_s < end_s, end_s)

    def where(self, kept: Mask, end_s: float = np.inf) -> tuple[I8, JobGraph]:
        """Return the rows of some jobs, and what is known of them alone up to a time."""
        rows = np.flatnonzero(kept)
        number = np.cumsum(kept) - 1
        edge = kept[self.up] & kept[self.down]
        load = kept[self.download_job] & (self.download_s < end_s)
        return rows, JobGraph(
            self.submit_s[rows], self.finish_s[rows], self.compute_s[rows], number[self.up[edge]],
            number[self.down[edge]], self.hard[edge], self.waits[edge],
            number[self.download_job[load]], self.download_s[load], self.n_downloads[load],
        )  # fmt: skip

    def columns(
        self,
        end_s: float | None = None,
        rounds: int | None = None,
        omega_s: float = OMEGA_S,
        *,
        since_s: float = -np.inf,
    ) -> dict[str, Any]:
        """Return `COLUMNS`, (N,) float64 each."""
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

    def _decay(self, seen: F8, value: F8, agg_value: F8) -> dict[str, F8]:
        """Return `after` of each of `DECAYED`."""
        share = 1.0 / np.bincount(self.down, minlength=len(seen))[self.down]
        worth = np.where(np.isnan(agg_value), seen, agg_value)
        reader, come_s = worth[self.down] * share, self.submit_s[self.down]
        lost = self._lost(self.download_job, self.download_s, self.n_downloads.astype(np.float64))
        of_hard, of_blind = (
            self._lost(self.up[edge], come_s[edge], reader[edge])
            for edge in (self.hard, self.hard & ~self.waits)
        )
        left = {
            "value": value[:, None] - lost,
            "agg_value": np.maximum(agg_value[:, None] - lost - of_hard, 0.0),
            "rescued": np.maximum(agg_value[:, None] - lost - of_blind, 0.0),
        }
        return {
            column: np.ascontiguousarray(left[name][:, i])
            for name in DECAYED
            for i, column in enumerate(decay_columns(name))
        }

    def _lost(self, job: I8, time_s: F8, much: F8) -> F8:
        """Return what is lost to each job by each of `WAITS_S`, (N, W)."""
        n, k = len(self.submit_s), len(WAITS_S)
        wait = np.searchsorted(WAITS_S, time_s - self.submit_s[job], side="right")
        seen = wait < k  # a loss at the very instant of completion is none
        steps = np.bincount(job[seen] * k + wait[seen], much[seen], n * k).reshape(n, k)
        return np.cumsum(steps, axis=1)


NONE, BLIND, POLL = range(3)
"""Codes of `sim.workload.schema.INPUT_MODES`."""


@dataclass(frozen=True, eq=False)
class RecordedJobs:
    """N jobs in order of submission, of one task each; times count from the scheduled week."""

    past: JobGraph  # when they ran, who reads and downloads what
    duration_s: F8  # how long; if it polls, from its inputs to its submission; more is sooner
    lag_s: F8
    priority: F8
    tokens: I8 | F8  # resources held; what it does about inputs (`NONE`, `BLIND`, `POLL`)
    mode: I8
    # codes, and their names; a template without a name is of ad hoc jobs
    template: tuple[I8, Sequence[str]]
    user: tuple[I8, Sequence[str]]
    queue: tuple[I8, Sequence[str]]
    job_ids: Callable[[I8], pa.Array]  # what jobs are called

    def where(self, kept: Mask) -> RecordedJobs:
        """Return some of the jobs, and what is between them."""
        rows, past = self.past.where(kept)
        template, user, queue = (
            (codes[rows], names) for codes, names in (self.template, self.user, self.queue)
        )
        return RecordedJobs(
            past, self.duration_s[rows], self.lag_s[rows], self.priority[rows], self.tokens[rows],
            self.mode[rows], template, user, queue, lambda some: self.job_ids(rows[some]),
        )  # fmt: skip


def week_workload(
    of: RecordedJobs,
    end_s: float,
    rounds: int | None,
    meta: Mapping[str, Any],
    omega_s: float = OMEGA_S,
) -> Workload:
    """Return the jobs submitted from 0 until a time as a workload.

    Edges are those between its jobs: what was made before is there. Downloads are those of its
    jobs, however late. The history is of the jobs that had ended by 0; it and the jobs have what
    they were worth (`sim.lineage.worth.COLUMNS`) and who read them (`sim.lineage.predict.READERS`).
    """
    past = of.past
    inside = (past.submit_s >= 0) & (past.submit_s < end_s)
    rows = np.flatnonzero(inside)  # next to each other, as jobs are in order of submission
    first = int(rows[0]) if len(rows) else 0
    edge = inside[past.up] & inside[past.down]
    load = inside[past.download_job]
    known, learnt = past.ended_before(0.0)
    truth = past.columns(None, rounds, omega_s, since_s=0.0)
    uses, templates = _uses(of), of.template[1]
    kinds = list(JOB_EDGE_KINDS)
    soft, hard = kinds.index("soft"), kinds.index("hard")
    return Workload.from_tables(
        jobs={
            "job_id": of.job_ids(rows),
            "submit_s": past.submit_s[rows],
            "template": _named(of.template, rows),
            "user": _named(of.user, rows),
            "queue": _named(of.queue, rows),
            "priority": of.priority[rows],
            "input_mode": category(of.mode[rows], list(INPUT_MODES)),
            "poll_lag_s": of.lag_s[rows],
            **{name: column[rows] for name, column in truth.items()},
            **reader_columns(uses, rows, templates),
        },
        stages={
            "job": np.arange(len(rows), dtype=np.int32),
            "n_tasks": np.ones(len(rows), dtype=np.int32),
            "demand_tokens": of.tokens[rows].astype(np.float64),
            "duration_s": of.duration_s[rows],
        },
        job_edges={
            "upstream": (past.up[edge] - first).astype(np.int32),
            "downstream": (past.down[edge] - first).astype(np.int32),
            "kind": category(np.where(past.hard[edge], hard, soft), kinds),
        },
        downloads={
            "job": (past.download_job[load] - first).astype(np.int32),
            "time_s": past.download_s[load],
            "n": past.n_downloads[load].astype(np.int32),
        },
        history={
            "submit_s": past.submit_s[known],
            "finish_s": past.finish_s[known],
            "n_tasks": np.ones(len(known), dtype=np.int32),
            "mean_task_s": of.duration_s[known],
            "user": _named(of.user, known),
            "template": _named(of.template, known),
            **learnt.columns(0.0, rounds, omega_s),
            **reader_columns(uses.where(uses.come_s < 0.0), known, templates),
        },
        meta={"quantum": {"tokens": 1.0}, **meta},
    )


def _uses(of: RecordedJobs) -> Uses:
    codes, names = of.template
    edges = edges_from_pairs(len(codes), of.past.up, of.past.down)
    recurring = np.array([bool(name) for name in names], dtype=bool)
    return first_uses(edges, codes.astype(np.int32), of.past.submit_s, recurring)


def category(codes: I8, names: Sequence[str]) -> pa.DictionaryArray:
    """Return a column of names, without those that do not occur."""
    used, found = np.unique(codes, return_inverse=True)
    kept = pa.array([names[code] for code in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(found.astype(np.int32)), kept)


def _named(coded: tuple[I8, Sequence[str]], rows: I8) -> pa.DictionaryArray:
    return category(coded[0][rows], coded[1])
