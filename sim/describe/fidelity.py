"""Whether one workload is alike another in what matters to a scheduler, by the other's halves.

A real trace is cut in two by the hash of the job's id. What a synthesized one (fitted on the first
half) differs from the second half by stands beside what two such halves differ by at most in
`SPLITS` ways to cut, which is chance. A row is alike if the first is at most `MOST` times that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.dags.properties import distance
from sim.describe import flow
from sim.describe.dataset import Dataset
from sim.workload.columns import job_n_tasks, stage_demand, stage_work_s
from sim.workload.tables import values
from sim.workload.workload import Workload

MOST: Final = 1.5
NAMES: Final = {"program": "template", "user": "user"}
RECURRENCE: Final = "recurrence (of as many jobs)"
SPLITS: Final = 5


@dataclass(frozen=True)
class Verdict:
    """How far a workload is from the held half of a real one, in one respect."""

    group: str
    label: str
    real: float  # of the held half; NaN where a distribution is compared
    other: float
    distance: float  # between the two; NaN if the other has nothing of the kind
    halves: float  # the same between halves of the real one, at most

    @property
    def alike(self) -> bool:
        """Tell whether it is as near as halves are."""
        return self.distance <= MOST * self.halves


@dataclass(frozen=True, eq=False)
class Facts:
    """What is compared of J jobs and their G stages."""

    submit_s: F8
    job: dict[str, F8]  # (J,) each
    names: dict[str, I8]  # whose runs, and of which program they are, (J,) each; -1 unknown
    stage_job: I8
    stage_s: F8  # mean duration of a stage's tasks

    @classmethod
    def of(cls, data: Dataset) -> Facts:
        """Take the columns of a workload."""
        workload = data.workload
        assert workload is not None
        job = values(workload.stages, "job").astype(np.int64)
        n_tasks = values(workload.stages, "n_tasks")
        work_s, n = stage_work_s(workload), job_n_tasks(workload)
        _, demand, _ = stage_demand(workload)
        of_job: dict[str, Any] = {
            "stages": np.bincount(job, minlength=workload.n_jobs).astype(np.float64),
            "width": n.astype(np.float64),
            "work": np.bincount(job, work_s, workload.n_jobs),
            "mean duration": np.bincount(job, work_s, workload.n_jobs) / n,
            "critical path": flow.run_s(data),
        }
        for r, name in enumerate(workload.resources):
            of_job[name] = np.bincount(job, demand[:, r] * n_tasks, workload.n_jobs) / n
        names = {words: flow.codes(workload, column) for words, column in NAMES.items()}
        return cls(values(workload.jobs, "submit_s"), of_job, names, job, work_s / n_tasks)

    def take(self, jobs: Mask) -> Facts:
        """Keep some of the jobs."""
        stages = jobs[self.stage_job]
        number = np.cumsum(jobs) - 1
        return Facts(
            self.submit_s[jobs], {name: x[jobs] for name, x in self.job.items()},
            {name: x[jobs] for name, x in self.names.items()},
            number[self.stage_job[stages]], self.stage_s[stages],
        )  # fmt: skip


def second_half(workload: Workload, split: int = 0) -> Mask:
    """Tell which jobs are in the second half, (J,): by one bit of a hash of their ids."""
    ids = workload.jobs["job_id"].to_pylist()
    digests = (blake2b(name.encode(), digest_size=8).digest() for name in ids)
    number = np.frombuffer(b"".join(digests), np.dtype("<u8"))
    second: Mask = (number >> np.uint64(split)) % np.uint64(2) == 1
    return second


def fidelity(real: Dataset, other: Dataset) -> list[Verdict]:
    """Compare a workload with the second half of a real one.

    Parameters
    ----------
    real : Dataset
        The trace; its job ids tell the halves.
    other : Dataset
        What shall be like it: fitted on its first half alone, of about as many jobs an hour.

    Returns
    -------
    list of Verdict
        Of distributions the Kolmogorov–Smirnov distance, of dispersions the difference of
        logarithms, of all else the difference. What the real one has not is left out.
    """
    assert real.workload is not None
    whole, drawn = Facts.of(real), Facts.of(other)
    cuts = [second_half(real.workload, split) for split in range(SPLITS)]
    pairs = [(whole.take(~cut), whole.take(cut)) for cut in cuts]
    held = pairs[0][1]
    head = drawn.take(np.arange(len(drawn.submit_s)) < len(held.submit_s))
    verdicts = []
    for group, label, measure, off in _rows(whole):
        by_chance = [off(measure(first), measure(second)) for first, second in pairs]
        known = [x for x in by_chance if not np.isnan(x)]
        if not known:
            continue
        # of a longer workload more jobs are runs of what ran before
        a, b = measure(held), measure(head if group == RECURRENCE else drawn)
        distance = off(a, b)
        shown = (np.nan, np.nan) if off is ks else (float(a), float(b))
        verdicts.append(Verdict(group, label, *shown, distance, max(known)))
    return verdicts


def to_table(found: Iterable[tuple[str, Verdict]]) -> pa.Table:
    """Make a table of verdicts, each with the dataset that it is about."""
    rows = [{"dataset": name, **vars(of), "alike": of.alike} for name, of in found]
    return pa.Table.from_pylist(rows)


Measure = Callable[[Facts], Any]


def _rows(of: Facts) -> Iterator[tuple[str, str, Measure, Callable[[Any, Any], float]]]:
    group = "distributions (largest difference)"
    yield group, "duration of a stage", lambda f: f.stage_s, ks
    linked = bool((of.job["stages"] > 1).any())
    for name in ("stages", "width", "work", "critical path"):
        if name != "stages" or linked:
            yield group, f"{name} of a job", partial(_column, name), ks
    # to the microsecond: what lies below is of the sums, and no two sums have it alike
    yield group, "time between submissions", lambda f: np.round(np.diff(f.submit_s), 6), ks
    group = "correlation of ranks"
    pairs = [("width", "mean duration"), ("width", "critical path"), ("work", "critical path")]
    pairs = [("stages", "mean duration"), *pairs] if linked else pairs
    own = ("stages", "width", "work", "mean duration", "critical path")
    pairs += [("mean duration", name) for name in of.job if name not in own]
    for x, y in pairs:
        yield group, f"{x} and {y}", partial(_rank, x, y), _difference
    group = "arrivals"
    for words, window_s in flow.WINDOWS_S.items():
        yield group, f"dispersion in {words}", partial(_dispersion, window_s), _of_logarithms
    yield (group, "intervals, lag 1", lambda f: flow.lag_1(np.diff(f.submit_s)), _difference)
    for name in NAMES:
        if (of.names[name] >= 0).any():
            yield RECURRENCE, f"jobs whose {name} came before", partial(_again, name), _difference
            next_to = f"jobs of the {name} of the job before"
            yield RECURRENCE, next_to, partial(_same, name), _difference
            yield RECURRENCE, f"jobs of the busiest {name}", partial(_busiest, name), _difference
            last = f"mean duration and that of the {name}'s job before"
            yield RECURRENCE, last, partial(_foreseen, name), _difference


def ks(x: F8, y: F8) -> float:
    """Return the largest difference of two empirical distributions; NaN of nothing."""
    return distance(x, y) if len(x) and len(y) else np.nan


def _column(name: str, of: Facts) -> F8:
    return of.job.get(name, np.empty(0))


def _rank(x: str, y: str, of: Facts) -> float:
    known = x in of.job and y in of.job
    return flow.rank_correlation(of.job[x], of.job[y]) if known else np.nan


def _again(name: str, of: Facts) -> float:
    return flow.recurrence(of.names[name])


def _same(name: str, of: Facts) -> float:
    code = of.names[name]
    pairs = (code[1:] >= 0) & (code[:-1] >= 0)
    return float((code[1:] == code[:-1])[pairs].mean()) if pairs.any() else np.nan


def _busiest(name: str, of: Facts) -> float:
    code = of.names[name][of.names[name] >= 0]
    return float(np.bincount(code).max() / len(code)) if len(code) else np.nan


def _foreseen(name: str, of: Facts) -> float:
    """Return how the mean durations of jobs rank with those of the same one's job before."""
    code = of.names[name]
    order = np.argsort(code, kind="stable")
    order = order[code[order] >= 0]
    again = code[order[1:]] == code[order[:-1]]
    lasts = of.job["mean duration"][order]
    return flow.rank_correlation(lasts[:-1][again], lasts[1:][again])


def _dispersion(window_s: float, of: Facts) -> float:
    return flow.dispersion(of.submit_s, window_s)


def _difference(a: float, b: float) -> float:
    return abs(a - b)


def _of_logarithms(a: float, b: float) -> float:
    return float(abs(maths.log(a) - maths.log(b))) if min(a, b) > 0 else np.nan
