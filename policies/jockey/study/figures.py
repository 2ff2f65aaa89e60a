"""Jockey's curves, predictions and arbiter (Ferguson et al., EuroSys 2012)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from policies.jockey.bound import utility_bound
from sim.base.arrays import F8
from sim.published import Printed, numbers
from sim.workload.utility import POINTS, utility_curve
from sweep.questions.papers import printed
from sweep.questions.papers.figures import (
    Findings,
    column,
    grouped,
    mean,
    means,
    published,
    sort_by_figure,
)
from sweep.report.findings import Finding, FinishedSweep

CASES = {
    "jockey_fig6a": "F, 45 min, 1.85 times the work",
    "jockey_fig6b": "E, 45 min, a slow stage",
    "jockey_fig6c": "G, 60 min, a light run",
}
CURVES = ("raw", "tokens", "running", "oracle")
X_LABEL = "minutes since the submission"
STEP_MIN = 5

PLOTTED = ("totalworkWithQ", "cp")
"""Indicators of Fig. 9."""

STEADINESS = (("delta_t", "ΔT, %"), ("longest_constant", "longest constant interval, %"))
"""Fig. 10's statistics: metric and title."""

MODELS = {"jockey": "simulator", "jockey_amdahl": "Amdahl's law"}

TABLE_2_JOBS = tuple("ABCDEFG")
"""The jobs of Table 2."""

N_RUNS = 3
"""Runs of each job at each allocation (§5.3)."""

FAIR, ARBITER, ALONE, BOUND = "drf", "jockey_arbiter", "jockey", "bound"
FILL, WHOLE = "jockey_with/greedy_fill", "bound of whole jobs"
READY = "jockey_with/ready_first"
WHOLE_STEP_S = 120.0
"""Time step of the search for that bound; a coarse one shortens it."""
N_TOKENS_NEEDED = 630
"""Tokens that Jockey gives the jobs A to T in all at first."""
NEVER_S = 60_000.0
"""Lateness of a job that never ends: that of the last point of the utility."""
MIN_SHARE, MAX_NEED, MIN_GAP = 80.0, 200, 0.5
"""Expected share of the gap to the bound that the arbiter closes, %, up to this need, %, and where
the gap is at least this much utility."""
CROWDED = 160
"""Smallest need, %, at which the two orders of turns are compared."""


def fig6(finished: FinishedSweep) -> Findings:
    """Compute completion, and the four curves of each run: every five minutes, and as a plot."""
    for row in finished.cells:
        case = CASES.get(row["trace"], row["trace"])
        percent, paper = 100.0 * row["relative_finish"], published("jockey", "fig6", row["trace"])
        yield Finding(case, "completion, % of the deadline", percent, paper=paper)
        samples = finished.table(row).to_pylist()
        for curve in CURVES:
            for sample in samples:
                if not math.isnan(sample[curve]):
                    yield from _plotted(case, curve, sample["elapsed_s"], sample[curve])


def fig9(finished: FinishedSweep) -> Findings:
    """Compute progress and the predicted end over time, by indicator.

    As `fig6`: every five minutes, and as a plot. The indicators are those that the paper plots.
    """
    for row in finished.cells:
        case = f"job {row['trace.job']}"
        for sample in finished.table(row).to_pylist():
            name, time_s = sample["indicator"], sample["elapsed_s"]
            if name in PLOTTED:
                progress, end_min = 100.0 * sample["progress"], sample["predicted_s"] / 60
                yield from _plotted(case, f"{name}, progress, %", time_s, progress)
                yield from _plotted(case, f"{name}, predicted end, min", time_s, end_min)


def _plotted(case: str, curve: str, elapsed_s: float, value: float) -> Findings:
    """Yield a point of a curve, and every five minutes a row of the table."""
    minute = round(elapsed_s / 60)
    if minute % STEP_MIN == 0:
        yield Finding(f"{case}, {curve}", f"after {minute} min", value)
    yield Finding(case, "", value, curve=curve, along=X_LABEL, x=minute)


def fig10(finished: FinishedSweep) -> Findings:
    """Compute the steadiness of each indicator's predictions, in percent of a job's duration."""
    groups = grouped(finished.cells, "policy.waits", label="waits={}")
    for key, figure in STEADINESS:
        for name in printed.read("jockey")["fig10"][key]:
            paper = published("jockey", "fig10", key, name)
            for waits, cells in groups.items():
                values = column(cells, f"{key}.{name}", 100.0)
                yield from mean(figure, f"{name}, {waits}", values, paper=paper)


def fig8(finished: FinishedSweep) -> Findings:
    """Compute the error of the largest prediction against the slowest run, by allocation.

    Each allocation has `N_RUNS` runs of its own, of the seeds in order; in the other reading all
    allocations have the same first `N_RUNS`.
    """
    for policy, model in MODELS.items():
        for separate in (True, False):
            errors = _errors(finished, policy, separate)
            yield from _error_findings(policy, model, errors, separate)


def _error_findings(
    policy: str, model: str, errors: dict[int, dict[str, float]], separate: bool
) -> Findings:
    if errors:
        reading = "" if separate else ", same runs at all allocations"
        title = f"prediction error{reading}, {model}, %"
        by_job = defaultdict(list)
        for job_errors in errors.values():
            for job, error in job_errors.items():
                by_job[job].append(error)
        means = [float(np.mean(values)) for values in by_job.values()]
        paper = published("jockey", "fig8", policy)
        yield Finding.from_seeds(title, "all jobs and allocations", means, paper=paper)
        yield Finding(title, "largest", max(max(values) for values in by_job.values()))
        for tokens, job_errors in sorted(errors.items()):
            yield Finding.from_seeds(title, f"{tokens} tokens", list(job_errors.values()))


def _errors(finished: FinishedSweep, policy: str, separate: bool) -> dict[int, dict[str, float]]:
    """Compute the error of the largest prediction at the slowest run, by allocation and job, %."""
    slowest_s: dict[tuple[int, str], float] = {}
    predicted_s: dict[tuple[int, str], float] = {}
    seeds = sorted({row["seed"] for row in finished.cells})
    for row in finished.cells:
        if row["policy"] != policy:
            continue
        runs, group = finished.table(row).to_pylist(), seeds.index(row["seed"]) // N_RUNS
        for i, run in enumerate(runs):
            if group != (i if separate else 0):
                continue
            key = (run["tokens"], row["trace.job"])
            slowest_s[key] = max(run["took_s"], slowest_s.get(key, 0.0))
            predicted_s[key] = max(run["predicted_s"], predicted_s.get(key, 0.0))
    errors: dict[int, dict[str, float]] = {}
    for (tokens, job), duration_s in slowest_s.items():
        error = 100.0 * abs(predicted_s[tokens, job] / duration_s - 1.0)
        errors.setdefault(tokens, {})[job] = error
    return errors


def variance(finished: FinishedSweep) -> Findings:
    """Compute the variation of completion over the runs of a job, with spare tokens and without.

    For Table 1, over jobs; for §2.4, the ratio of the variation with spare tokens to that without
    them, and the share of the seven jobs' vertices that run on them.
    """
    over_runs, on_spare = {}, []
    for keys, cells in finished.group_by("policy.spare", "trace.like_inputs", "trace.job").items():
        finishes = np.array([row["relative_finish"] for row in cells])
        over_runs[keys] = float(finishes.std(ddof=1) / finishes.mean())
        if keys[0] and keys[1] and keys[2] in TABLE_2_JOBS:
            on_spare += [100.0 * row["spare_share"] for row in cells]
    rows = numbers("jockey")["table1"]
    for row, like in (("all", False), ("like inputs", True)):
        over_jobs = [cov for keys, cov in over_runs.items() if keys[:2] == (True, like)]
        for percentile, paper in zip(rows["percentiles"], rows[row], strict=True):
            label, ours = f"P{percentile} of jobs", float(np.percentile(over_jobs, percentile))
            text = Printed(f"{paper:.2f}", ("jockey", "table1", row))
            yield Finding(f"variation over runs, {row}", label, ours, paper=text)
    ratios = [over_runs[True, True, job] / over_runs[False, True, job] for job in TABLE_2_JOBS]
    title, paper = "variation with spare tokens over that without", ("jockey", "section 2.4")
    yield Finding(title, "largest of seven jobs", max(ratios), paper=published(*paper, "ratio"))
    yield Finding(title, "median of seven jobs", float(np.median(ratios)))
    title = "vertices of a job on spare tokens, %"
    for percentile, key in ((5, "least"), (95, "most")):
        share = float(np.percentile(on_spare, percentile))
        yield Finding(title, f"P{percentile} of runs", share, paper=published(*paper, key))


@sort_by_figure
def spark(finished: FinishedSweep) -> Findings:
    """Compute errors of models by executors in training and in the run (§5.3, measured tasks)."""
    for policy, model in MODELS.items():
        for row in finished.cells:
            if row["policy"] != policy:
                continue
            label = f"trained with {row['trace.trained_at']}, run with {row['trace.executors']}"
            table = finished.table(row)
            ratio = table["predicted_s"].to_numpy() / table["took_s"].to_numpy()
            errors = (100.0 * np.abs(ratio - 1)).tolist()
            yield Finding.from_seeds(f"prediction error, {model}, %", label, errors)
            title = f"predicted over measured, {model}, median over queries"
            yield Finding(title, label, float(np.median(ratio)))


def spark_tasks(finished: FinishedSweep) -> Findings:
    """Compute the error of recorded tasks of one run in place of another's (§5.3)."""
    label = "trained with {}, run with {}"
    groups = grouped(finished.cells, "trace.trained_at", "trace.executors", label=label)
    for figure, metric in (
        ("error of the makespan, median over queries, %", "prediction_error_p50"),
        ("error of the makespan, 90th percentile over queries, %", "prediction_error_p90"),
        ("error of a stage's mean task time, median over stages, %", "task_error_p50"),
        ("distance of a stage's task times, median over stages, %", "task_distance_p50"),
    ):
        yield from means(figure, groups, metric, 100.0)


def arbiter(finished: FinishedSweep) -> list[Finding]:
    """Compute utility and deadlines met of jobs that need more tokens than exist (beyond §4.4).

    A job's utility is that of §5.1. By need: the arbiter's gain over the better of fair sharing and
    one Jockey for each job, and the share of the gap to the bounds of `policies.jockey.bound` that
    it closes, by means over seeds.
    """
    utilities: dict[int, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    met: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in finished.cells:
        table, policy, seed = finished.table(row), row["policy"], row["seed"]
        need = round(100.0 * N_TOKENS_NEEDED / table["tokens"][0].as_py())
        late_s = _late_s(table)
        utilities[need][policy][seed] = float(utility_curve(POINTS)(late_s).sum())
        met[need][policy].append(float((late_s <= 0).sum()))
        if seed not in utilities[need][BOUND]:
            utilities[need][BOUND][seed] = bound = _bound(table)
            utilities[need][WHOLE][seed] = min(bound, _bound(table, WHOLE_STEP_S, whole=True))
    findings = []
    for need, by_policy in sorted(utilities.items()):
        for policy in (FAIR, ALONE, ARBITER, READY, FILL, BOUND, WHOLE):
            if policy not in by_policy:
                continue
            values = list(by_policy[policy].values())
            curve: dict[str, Any] = {"curve": policy, "along": "need, % of the tokens", "x": need}
            findings.append(
                Finding.from_seeds("total utility", f"{policy}, {need} %", values, **curve)
            )
            if policy not in (BOUND, WHOLE):
                in_time = met[need][policy]
                findings.append(Finding.from_seeds("deadlines met", f"{policy}, {need} %", in_time))
        if {FAIR, ALONE, ARBITER} <= by_policy.keys():
            findings += _arbiter_gain(need, by_policy)
    crowded = [
        by_policy
        for need, by_policy in utilities.items()
        if need >= CROWDED and {ARBITER, READY} <= by_policy.keys()
    ]
    if crowded:
        gains = [sum(by[ARBITER][s] - by[READY][s] for by in crowded) for s in crowded[0][READY]]
        title, label = "arbiter's gain on turns by ready stage", f"{CROWDED} % and more, summed"
        findings.append(Finding.from_seeds(title, label, gains))
    return sorted(findings, key=lambda finding: finding.figure)


def _arbiter_gain(need: int, by_policy: Mapping[str, Mapping[int, float]]) -> Findings:
    """Compare the arbiter with the better alternative, and its gain with the gap to the bound."""
    mean = {policy: float(np.mean(list(by_seed.values()))) for policy, by_seed in by_policy.items()}
    other = max((FAIR, ALONE), key=lambda policy: mean[policy])
    arbiter = by_policy[ARBITER]
    gains = [arbiter[seed] - by_policy[other][seed] for seed in sorted(arbiter)]
    title = "arbiter's gain on the better alternative"
    yield Finding.from_seeds(title, f"{need} %", gains, at_least=0.0)
    for bound in (BOUND, WHOLE):
        if mean[bound] - mean[other] > MIN_GAP:
            share = 100.0 * (mean[ARBITER] - mean[other]) / (mean[bound] - mean[other])
            at_least = MIN_SHARE if need <= MAX_NEED else -math.inf
            title = f"way from the better alternative to the {bound}, %"
            yield Finding(title, f"{need} %", share, at_least=at_least)


@sort_by_figure
def online(finished: FinishedSweep) -> Findings:
    """Compute deadlines met and utility of arriving jobs, by admission (beyond §1, §4.4)."""
    for keys, cells in finished.group_by("trace.every_s", "policy", "policy.admission").items():
        every_s, policy, admission = keys
        label = f"a job every {every_s} s, {policy}, {admission}"
        tables = [finished.table(row) for row in cells]
        late_s = [_late_s(table) for table in tables]
        accepted = [table["guaranteed"].to_numpy() for table in tables]
        figures = {
            "accepted, %": [mask.mean() for mask in accepted],
            "deadlines met, % of all": [(s <= 0).mean() for s in late_s],
            "deadlines met, % of those accepted": [
                (s[mask] <= 0).mean()
                for s, mask in zip(late_s, accepted, strict=True)
                if mask.any()
            ],
        }
        for figure, shares in figures.items():
            yield Finding.from_seeds(figure, label, [100.0 * float(share) for share in shares])
        values = [float(utility_curve(POINTS)(s).mean()) for s in late_s]
        yield Finding.from_seeds("utility of a job", label, values)


def _late_s(jobs: pa.Table) -> F8:
    """Return the lateness of each job, s; `NEVER_S` for a job that never ended."""
    submit, finish, due = (jobs[f"{n}_s"].to_numpy() for n in ("submit", "finish", "deadline"))
    late = finish - submit - due
    return np.where(np.isnan(late), NEVER_S, late)


def _bound(jobs: pa.Table, step_s: float = 60.0, whole: bool = False) -> float:
    """Return the upper bound of the jobs' total utility; infinite without jobs."""
    if not jobs.num_rows:
        return math.inf
    names = ("submit_s", "deadline_s", "work_s", "shortest_s")
    submit, due, work, shortest = (jobs[name].to_numpy() for name in names)
    n_tokens = int(jobs["tokens"][0].as_py())
    return utility_bound(
        submit, due, work, shortest, n_tokens, utility_curve(POINTS), step_s, whole
    )
