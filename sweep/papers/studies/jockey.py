"""Jockey's curves, predictions and arbiter (Ferguson et al., EuroSys 2012)."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from policies.jockey.bound import utility_bound
from policies.jockey.control import POINTS, utility
from sim.base.arrays import F8
from sim.published import numbers
from sweep.papers.figures import Findings, column, grouped, mean, means, printed, together
from sweep.report.findings import Finding, FinishedSweep

CASES = {
    "jockey_fig6a": "F, 45 min, 1.85 times the work",
    "jockey_fig6b": "E, 45 min, a slow stage",
    "jockey_fig6c": "G, 60 min, a light run",
}
CURVES = ("raw", "tokens", "running", "oracle")
ALONG = "minutes since the submission"
STEP_MIN = 5

DRAWN = ("totalworkWithQ", "cp")

MODELS = {"jockey": "simulator", "jockey_amdahl": "Amdahl's law"}

SEVEN = tuple("ABCDEFG")
"""The jobs of Table 2."""

OWN = 3
"""Runs of each job at each allocation (§5.3)."""

FAIR, ARBITER, ALONE, BOUND = "drf", "jockey_arbiter", "jockey", "bound"
FILL, WHOLE = "jockey_with/greedy_fill", "bound of whole jobs"
READY = "jockey_with/ready_first"
WHOLE_STEP_S = 120.0
"""Of the search for that bound, which is the shorter for it."""
NEEDED = 630
"""The tokens that Jockey gives the jobs A to T together at first."""
NEVER_S = 60_000.0
"""How late a job counts that never ends: as the last point of the utility."""
WAY, UP_TO, LITTLE = 80.0, 200, 0.5
"""Percent of the way to the bound that is wanted of the arbiter, up to which need in percent, and
where there is that much utility to earn."""
CROWDED = 160
"""The need, in percent, from which on one way of taking turns is held against the other."""


def fig6(finished: FinishedSweep) -> Findings:
    """Give completion, and the four curves of each run: every five minutes, and as a plot."""
    for row in finished.cells:
        case = CASES.get(row["trace"], row["trace"])
        percent, paper = 100.0 * row["relative_finish"], printed("jockey", "fig6", row["trace"])
        yield Finding(case, "completion, % of the deadline", percent, paper=paper)
        looks = finished.table(row).to_pylist()
        for curve in CURVES:
            for look in looks:
                if not math.isnan(look[curve]):
                    yield from _drawn(case, curve, look["elapsed_s"], look[curve])


def fig9(finished: FinishedSweep) -> Findings:
    """Give progress and the end that it foretells, by indicator, over time, and how long it took.

    As `fig6`: every five minutes, and as a plot. The indicators are those that the paper draws.
    """
    for row in finished.cells:
        case = f"job {row['trace.job']}"
        for look in finished.table(row).to_pylist():
            name, at_s = look["indicator"], look["elapsed_s"]
            if name in DRAWN:
                yield from _drawn(case, f"{name}, progress, %", at_s, 100.0 * look["progress"])
                yield from _drawn(
                    case, f"{name}, foretold end, min", at_s, look["predicted_s"] / 60
                )


def _drawn(case: str, curve: str, elapsed_s: float, value: float) -> Findings:
    """Give a point of a curve, and every five minutes a row of a table."""
    minute = round(elapsed_s / 60)
    if minute % STEP_MIN == 0:
        yield Finding(f"{case}, {curve}", f"after {minute} min", value)
    yield Finding(case, "", value, curve=curve, along=ALONG, x=minute)


def fig10(finished: FinishedSweep) -> Findings:
    """Give how steadily each indicator foretells the end, in percent of a job's duration."""
    groups = grouped(finished.cells, "policy.waits", label="waits={}")
    for key, figure in (("delta_t", "ΔT, %"), ("longest_constant", "longest constant interval, %")):
        for name in numbers("jockey")["fig10"][key]:
            paper = printed("jockey", "fig10", key, name)
            for waits, cells in groups.items():
                of = column(cells, f"{key}.{name}", 100.0)
                yield from mean(figure, f"{name}, {waits}", of, paper=paper)


def fig8(finished: FinishedSweep) -> Findings:
    """Give how far the largest prediction is from the slowest run, by allocation, over jobs.

    Each allocation has `OWN` runs of its own, of the seeds in order, or, as the other reading, all
    have the first `OWN`.
    """
    for policy, model in MODELS.items():
        for own in (True, False):
            yield from _of_errors(policy, model, _errors(finished, policy, own), own)


def _of_errors(policy: str, model: str, errors: dict[int, dict[str, float]], own: bool) -> Findings:
    if errors:
        title = f"prediction error, {model}, %" if own else f"the same runs at all, {model}, %"
        by_job = defaultdict(list)
        for of in errors.values():
            for job, error in of.items():
                by_job[job].append(error)
        means = [float(np.mean(of)) for of in by_job.values()]
        paper = printed("jockey", "fig8", policy)
        yield Finding.from_seeds(title, "all jobs and allocations", means, paper=paper)
        yield Finding(
            title, "largest", max(error for of in errors.values() for error in of.values())
        )
        for tokens, of in sorted(errors.items()):
            yield Finding.from_seeds(title, f"{tokens} tokens", list(of.values()))


def _errors(finished: FinishedSweep, policy: str, own: bool) -> dict[int, dict[str, float]]:
    """Return the error of the largest prediction at the slowest run, by allocation and job, %."""
    took: dict[tuple[int, str], float] = {}
    predicted: dict[tuple[int, str], float] = {}
    seeds = sorted({row["seed"] for row in finished.cells})
    for row in finished.cells:
        if row["policy"] != policy:
            continue
        runs, turn = finished.table(row).to_pylist(), seeds.index(row["seed"]) // OWN
        for i, run in enumerate(runs):
            if turn != (i if own else 0):
                continue
            key = (run["tokens"], row["trace.job"])
            took[key] = max(run["took_s"], took.get(key, 0.0))
            predicted[key] = max(run["predicted_s"], predicted.get(key, 0.0))
    errors: dict[int, dict[str, float]] = {}
    for (tokens, job), slowest in took.items():
        off = 100.0 * abs(predicted[tokens, job] / slowest - 1.0)
        errors.setdefault(tokens, {})[job] = off
    return errors


def variance(finished: FinishedSweep) -> Findings:
    """Give how completion varies over the runs of a job, over jobs, and with spare tokens or not.

    By Table 1, and §2.4: how many times the variation without spare tokens that with them is, and
    what part of the seven jobs' vertices runs on them.
    """
    over_runs, on_spare = {}, []
    for keys, cells in finished.group_by("policy.spare", "trace.like_inputs", "trace.job").items():
        took = np.array([row["relative_finish"] for row in cells])
        over_runs[keys] = float(took.std(ddof=1) / took.mean())
        if keys[0] and keys[1] and keys[2] in SEVEN:
            on_spare += [100.0 * row["spare_share"] for row in cells]
    rows = numbers("jockey")["table1"]
    for row, like in (("all", False), ("like inputs", True)):
        of_jobs = [of for keys, of in over_runs.items() if keys[:2] == (True, like)]
        for percentile, paper in zip(rows["percentiles"], rows[row], strict=True):
            what, ours = f"P{percentile} of jobs", float(np.percentile(of_jobs, percentile))
            yield Finding(f"variation over runs, {row}", what, ours, paper=f"{paper:g}")
    ratios = [over_runs[True, True, job] / over_runs[False, True, job] for job in SEVEN]
    title, paper = "variation with spare tokens over that without", ("jockey", "section 2.4")
    yield Finding(title, "the most of seven jobs", max(ratios), paper=printed(*paper, "ratio"))
    yield Finding(title, "their median", float(np.median(ratios)))
    title = "of a job's vertices on spare tokens, %"
    for percentile, what in ((5, "least"), (95, "most")):
        share = float(np.percentile(on_spare, percentile))
        yield Finding(title, f"P{percentile} of runs", share, paper=printed(*paper, what))


@together
def spark(finished: FinishedSweep) -> Findings:
    """Give the errors of models by executors trained at and run with (§5.3, on measured tasks)."""
    for policy, model in MODELS.items():
        for row in finished.cells:
            if row["policy"] != policy:
                continue
            between = f"trained with {row['trace.trained_at']}, run with {row['trace.executors']}"
            table = finished.table(row)
            ratio = table["predicted_s"].to_numpy() / table["took_s"].to_numpy()
            off = (100.0 * np.abs(ratio - 1)).tolist()
            yield Finding.from_seeds(f"prediction error, {model}, %", between, off)
            title = f"predicted over measured, {model}, median over queries"
            yield Finding(title, between, float(np.median(ratio)))


def spark_tasks(finished: FinishedSweep) -> Findings:
    """Give how far off recorded tasks of one run are in place of another's (§5.3)."""
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
    """Give utility and deadlines met of jobs that need more tokens than there are (beyond §4.4).

    The utility of each is that of §5.1. By need: how much more the arbiter earns than the better of
    fair sharing and each its own Jockey, and how far that is of the way to the bounds of
    `policies.jockey.bound`, by means over seeds.
    """
    worth: dict[int, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    met: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in finished.cells:
        table, policy, seed = finished.table(row), row["policy"], row["seed"]
        need = round(100.0 * NEEDED / table["tokens"][0].as_py())
        late_s = _late_s(table)
        worth[need][policy][seed] = float(utility(POINTS)(late_s).sum())
        met[need][policy].append(float((late_s <= 0).sum()))
        if seed not in worth[need][BOUND]:
            worth[need][BOUND][seed] = loose = _bound(table)
            worth[need][WHOLE][seed] = min(loose, _bound(table, WHOLE_STEP_S, whole=True))
    findings = []
    for need, of in sorted(worth.items()):
        for policy in (FAIR, ALONE, ARBITER, READY, FILL, BOUND, WHOLE):
            if policy not in of:
                continue
            values = list(of[policy].values())
            drawn: dict[str, Any] = {"curve": policy, "along": "need, % of the tokens", "at": need}
            findings.append(
                Finding.from_seeds("total utility", f"{policy}, {need} %", values, **drawn)
            )
            if policy not in (BOUND, WHOLE):
                in_time = met[need][policy]
                findings.append(Finding.from_seeds("deadlines met", f"{policy}, {need} %", in_time))
        if {FAIR, ALONE, ARBITER} <= of.keys():
            findings += _judged(need, of)
    both = {need: of for need, of in worth.items() if {ARBITER, READY} <= of.keys()}
    if crowded := [of for need, of in both.items() if need >= CROWDED]:
        more = [sum(of[ARBITER][s] - of[READY][s] for of in crowded) for s in crowded[0][READY]]
        title, what = "arbiter more than with stages as they are ready", f"{CROWDED} % on, summed"
        findings.append(Finding.from_seeds(title, what, more))
    return sorted(findings, key=lambda finding: finding.figure)


def _judged(need: int, of: Mapping[str, Mapping[int, float]]) -> Findings:
    """Hold the arbiter against the better of the others, and against the way to the bound."""
    mean = {policy: float(np.mean(list(by_seed.values()))) for policy, by_seed in of.items()}
    other = max((FAIR, ALONE), key=lambda policy: mean[policy])
    more = [of[ARBITER][seed] - of[other][seed] for seed in sorted(of[ARBITER])]
    found = Finding.from_seeds("arbiter more than the better other", f"{need} %", more)
    within = 0.0 if math.isnan(found.low) else (found.high - found.low) / 2
    yield dataclasses.replace(found, at_least=-within)
    for bound in (BOUND, WHOLE):
        if mean[bound] - mean[other] > LITTLE:
            way = 100.0 * (mean[ARBITER] - mean[other]) / (mean[bound] - mean[other])
            wanted = WAY if need <= UP_TO else -math.inf
            title = f"way from the better other to the {bound}, %"
            yield Finding(title, f"{need} %", way, at_least=wanted)


@together
def online(finished: FinishedSweep) -> Findings:
    """Give deadlines met and utility of jobs that come and go, by admission (beyond §1, §4.4)."""
    for keys, cells in finished.group_by("trace.every_s", "policy", "policy.admission").items():
        every_s, policy, admission = keys
        what = f"a job every {every_s} s, {policy}, {admission}"
        tables = [finished.table(row) for row in cells]
        late_s = [_late_s(table) for table in tables]
        own = [table["guaranteed"].to_numpy() for table in tables]
        figures = {
            "accepted, %": [of.mean() for of in own],
            "deadlines met, % of all": [(s <= 0).mean() for s in late_s],
            "deadlines met, % of those accepted": [
                (s[of] <= 0).mean() for s, of in zip(late_s, own, strict=True) if of.any()
            ],
        }
        for figure, parts in figures.items():
            yield Finding.from_seeds(figure, what, [100.0 * float(part) for part in parts])
        worth = [float(utility(POINTS)(s).mean()) for s in late_s]
        yield Finding.from_seeds("utility of a job", what, worth)


def _late_s(jobs: pa.Table) -> F8:
    """Return how late each job was, s; one that never ended, `NEVER_S`."""
    submit, finish, due = (jobs[f"{n}_s"].to_numpy() for n in ("submit", "finish", "deadline"))
    late = finish - submit - due
    return np.where(np.isnan(late), NEVER_S, late)


def _bound(jobs: pa.Table, step_s: float = 60.0, whole: bool = False) -> float:
    """Return what the jobs can have been worth at most; infinite without jobs."""
    if not jobs.num_rows:
        return math.inf
    names = ("submit_s", "deadline_s", "work_s", "shortest_s")
    submit, due, work, shortest = (jobs[name].to_numpy() for name in names)
    n_tokens = int(jobs["tokens"][0].as_py())
    return utility_bound(submit, due, work, shortest, n_tokens, utility(POINTS), step_s, whole)
