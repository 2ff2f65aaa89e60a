"""Fidelity test: compare a synthesized workload with a held-out half of a real one.

A real trace is cut in two by a hash of the job ids. The synthesized workload is fitted on the first
half. Its distance to the second half is compared with the distance between two random halves of the
real trace: the maximum over `SPLITS` ways to cut it, which is chance. The workloads are similar in
a property if the first distance is at most `MAX_RATIO` times the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.correlation import rank_correlation
from sim.dags.properties import distance
from sim.describe import flow
from sim.describe.dataset import Dataset
from sim.workload.columns import job_n_tasks, stage_demand, stage_work_s
from sim.workload.halves import second_half
from sim.workload.tables import values

MAX_RATIO: Final = 1.5
NAME_COLUMNS: Final = {"program": "template", "user": "user"}
RECURRENCE: Final = "recurrence (among equally many jobs)"
SPLITS: Final = 5


@dataclass(frozen=True)
class Verdict:
    """Distance of a workload to the held-out half of a real one, in one property."""

    group: str
    label: str
    real: float  # value in the held-out half; NaN where distributions are compared
    other: float
    distance: float  # between the two; NaN if the other has no such value
    halves: float  # maximum distance between random halves of the real one

    @property
    def is_similar(self) -> bool:
        """Test the distance against that of random halves."""
        return self.distance <= MAX_RATIO * self.halves


@dataclass(frozen=True, eq=False)
class WorkloadFacts:
    """Properties to compare, of J jobs and their G stages."""

    submit_s: F8
    job: dict[str, F8]  # (J,) each
    names: dict[str, I8]  # codes of user and program, (J,) each; -1 unknown
    stage_job: I8
    stage_s: F8  # mean duration of a stage's tasks

    @classmethod
    def from_dataset(cls, data: Dataset) -> WorkloadFacts:
        """Compute the properties of a workload."""
        workload = data.workload
        assert workload is not None
        stage_job = values(workload.stages, "job").astype(np.int64)
        n_tasks = values(workload.stages, "n_tasks")
        work_s, n_job_tasks = stage_work_s(workload), job_n_tasks(workload)
        _, demand, _ = stage_demand(workload)
        job_columns: dict[str, Any] = {
            "stages": np.bincount(stage_job, minlength=workload.n_jobs).astype(np.float64),
            "width": n_job_tasks.astype(np.float64),
            "work": np.bincount(stage_job, work_s, workload.n_jobs),
            "mean duration": np.bincount(stage_job, work_s, workload.n_jobs) / n_job_tasks,
            "critical path": flow.ideal_run_s(data),
        }
        for r, name in enumerate(workload.resources):
            job_columns[name] = (
                np.bincount(stage_job, demand[:, r] * n_tasks, workload.n_jobs) / n_job_tasks
            )
        names = {words: flow.codes(workload, column) for words, column in NAME_COLUMNS.items()}
        return cls(
            values(workload.jobs, "submit_s"), job_columns, names, stage_job, work_s / n_tasks
        )

    def take(self, jobs: Mask) -> WorkloadFacts:
        """Return a subset of the jobs."""
        stages = jobs[self.stage_job]
        number = np.cumsum(jobs) - 1
        return WorkloadFacts(
            self.submit_s[jobs], {name: x[jobs] for name, x in self.job.items()},
            {name: x[jobs] for name, x in self.names.items()},
            number[self.stage_job[stages]], self.stage_s[stages],
        )  # fmt: skip


def fidelity(real: Dataset, other: Dataset) -> list[Verdict]:
    """Compare a workload with the second half of a real one.

    Parameters
    ----------
    real : Dataset
        The trace; its job ids decide the halves.
    other : Dataset
        The workload to test: fitted on the first half alone, with about as many jobs an hour.

    Returns
    -------
    list of Verdict
        For distributions the Kolmogorov–Smirnov distance, for dispersions the difference of
        logarithms, else the difference. Properties that the real one lacks are left out.
    """
    assert real.workload is not None
    whole, synthesized = WorkloadFacts.from_dataset(real), WorkloadFacts.from_dataset(other)
    cuts = [second_half(real.workload, split) for split in range(SPLITS)]
    pairs = [(whole.take(~cut), whole.take(cut)) for cut in cuts]
    held_out = pairs[0][1]
    same_length = synthesized.take(np.arange(len(synthesized.submit_s)) < len(held_out.submit_s))
    verdicts = []
    for group, label, measure, difference in _rows(whole):
        chance = [difference(measure(first), measure(second)) for first, second in pairs]
        finite = [x for x in chance if not np.isnan(x)]
        if not finite:
            continue
        # in a longer workload more jobs have an earlier run
        a, b = measure(held_out), measure(same_length if group == RECURRENCE else synthesized)
        values_ = (np.nan, np.nan) if difference is ks else (float(a), float(b))
        verdicts.append(Verdict(group, label, *values_, difference(a, b), max(finite)))
    return verdicts


def verdict_table(verdicts: Iterable[tuple[str, Verdict]]) -> pa.Table:
    """Build a table of verdicts, each with the name of its dataset."""
    rows = [
        {"dataset": name, **vars(verdict), "alike": verdict.is_similar}
        for name, verdict in verdicts
    ]
    return pa.Table.from_pylist(rows)


Measure = Callable[[WorkloadFacts], Any]


def _rows(facts: WorkloadFacts) -> Iterator[tuple[str, str, Measure, Callable[[Any, Any], float]]]:
    group = "distributions (largest difference)"
    yield group, "duration of a stage", lambda f: f.stage_s, ks
    has_dependencies = bool((facts.job["stages"] > 1).any())
    for name in ("stages", "width", "work", "critical path"):
        if name != "stages" or has_dependencies:
            yield group, f"{name} of a job", partial(_column, name), ks
    # to the microsecond: smaller differences are rounding errors of sums
    yield group, "time between submissions", lambda f: np.round(np.diff(f.submit_s), 6), ks
    group = "correlation of ranks"
    pairs = [("width", "mean duration"), ("width", "critical path"), ("work", "critical path")]
    pairs = [("stages", "mean duration"), *pairs] if has_dependencies else pairs
    known = ("stages", "width", "work", "mean duration", "critical path")
    pairs += [("mean duration", name) for name in facts.job if name not in known]
    for x, y in pairs:
        yield group, f"{x} and {y}", partial(_rank, x, y), _difference
    group = "arrivals"
    for words, window_s in flow.WINDOWS_S.items():
        yield group, f"dispersion in {words}", partial(_dispersion, window_s), _log_difference
    yield (group, "intervals, lag 1", lambda f: flow.lag_1(np.diff(f.submit_s)), _difference)
    for name in NAME_COLUMNS:
        if (facts.names[name] >= 0).any():
            yield (
                RECURRENCE,
                f"jobs whose {name} appeared before",
                partial(_seen_before, name),
                _difference,
            )
            label = f"jobs of the same {name} as the previous job"
            yield RECURRENCE, label, partial(_same_as_previous, name), _difference
            yield RECURRENCE, f"jobs of the busiest {name}", partial(_busiest, name), _difference
            label_ = f"mean duration and that of the {name}'s previous job"
            yield RECURRENCE, label_, partial(_previous_run_correlation, name), _difference


def ks(x: F8, y: F8) -> float:
    """Compute the Kolmogorov-Smirnov distance of two samples; NaN if one is empty."""
    return distance(x, y) if len(x) and len(y) else np.nan


def _column(name: str, facts: WorkloadFacts) -> F8:
    return facts.job.get(name, np.empty(0))


def _rank(x: str, y: str, facts: WorkloadFacts) -> float:
    known = x in facts.job and y in facts.job
    return rank_correlation(facts.job[x], facts.job[y]) if known else np.nan


def _seen_before(name: str, facts: WorkloadFacts) -> float:
    return flow.recurrence(facts.names[name])


def _same_as_previous(name: str, facts: WorkloadFacts) -> float:
    code = facts.names[name]
    pairs = (code[1:] >= 0) & (code[:-1] >= 0)
    return float((code[1:] == code[:-1])[pairs].mean()) if pairs.any() else np.nan


def _busiest(name: str, facts: WorkloadFacts) -> float:
    code = facts.names[name][facts.names[name] >= 0]
    return float(np.bincount(code).max() / len(code)) if len(code) else np.nan


def _previous_run_correlation(name: str, facts: WorkloadFacts) -> float:
    """Compute the rank correlation of jobs' mean durations with the previous run's."""
    code = facts.names[name]
    order = np.argsort(code, kind="stable")
    order = order[code[order] >= 0]
    repeats = code[order[1:]] == code[order[:-1]]
    durations = facts.job["mean duration"][order]
    return rank_correlation(durations[:-1][repeats], durations[1:][repeats])


def _dispersion(window_s: float, facts: WorkloadFacts) -> float:
    return flow.dispersion(facts.submit_s, window_s)


def _difference(a: float, b: float) -> float:
    return abs(a - b)


def _log_difference(a: float, b: float) -> float:
    return float(abs(maths.log(a) - maths.log(b))) if min(a, b) > 0 else np.nan
