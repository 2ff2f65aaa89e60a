"""Improvement of jobs and of single DAGs under DAGPS over baseline policies (MSR-TR-2016-19)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from policies.dagps.study import online as dagps_online
from sim.base.arrays import F8
from sweep.questions.papers.figures import (
    Findings,
    Row,
    column,
    compare_seeds,
    grouped,
    mean,
    percent_reduction,
    published,
)
from sweep.report.findings import Finding, FinishedSweep

TEZ = "tez"
LOCAL = "local tasks, %"
BREADTH_FIRST = "list_scheduling/bfs_cpu_mem"
"""The paper does not say whether its BFS looks at all resources; we take it that it does not. Nor
does it of its random order, which is taken to look at the same."""

AS_BUILT = "dagps, as built"
"""DAGPS's schedules before they run, of which Table 5 is; so Fig. 16's one number is taken, too."""

RIVALS = ("tetris", "list_scheduling/critical_path")
"""The schemes next to DAGPS (§8.3)."""

COMPARED = (AS_BUILT, "tetris", "strip")
"""Schemes of Table 5 by which no constant of the DAGs was set, and which are read in one way."""

LIMIT = "limit for any schedule"
"""Improvement of a schedule as short as the tighter lower bound; for the makespan of a cluster, of
one that keeps the bottleneck busy from the first to the last moment."""

PRODUCTION = ("production_dags", "production_dags_bounds", "production_dags_alike")
"""The DAGs of Fig. 13 and Table 5, by reading."""

RISING = ("JCT, p50", "mean JCT", "makespan")
"""Gains whose rise is shown; the first one is beside the paper's."""

PERCENTILES = (25, 50, 75, 90)
SPREAD = "trace.task_sigma"
"""Spread of the durations inside a stage, which the paper does not state."""

AS_BUILT_ONLY = ("list_scheduling/heft",)
"""Policies of which only the schedules count: their runs go by the critical path."""

BINS = ((0.0, 1.0), (1.0, 2.0), (2.0, np.inf))
"""Bins of machines times critical path over the work on one machine."""

CLOSE = 1e-6
"""A schedule this close to a bound, relatively, is optimal."""


def cluster(finished: FinishedSweep) -> Findings:
    """Compute each scheme's improvement over Tez, %: the median of the runs, seeds (§8.2, §8.5)."""
    variants = [key for key in finished.config["swept"] if key.startswith("policy.")]
    rises: dict[tuple[str, str, str], dict[float, float]] = {}
    for (trace, capacity), cells in finished.group_by("trace", "capacity").items():
        base = {row["seed"]: row for row in cells if row["policy"] == TEZ}
        figure = f"{trace}, capacity {capacity:g}, improvement over {TEZ} %"
        limits = [100.0 * (1.0 - row["utilization_makespan"]) for row in base.values()]
        yield Finding(figure, f"{LIMIT}, makespan", float(np.median(limits)))
        limits = [gain for row in base.values() for gain in dagps_online.limit(row).values()]
        if limits:
            yield Finding(figure, dagps_online.LIMIT_MEAN, float(np.median(limits)))
        local = [share for row in base.values() for share in _local(row).values()]
        if local:
            yield Finding(figure, f"{TEZ}, {LOCAL}", float(np.median(local)))
        schemes: dict[tuple[str, str], dict[str, list[float]]] = {}
        for row in cells:
            if row["policy"] == TEZ:
                continue
            words = [f"{key.removeprefix('policy.')}={row[key]}" for key in variants]
            gains = schemes.setdefault((row["policy"], " ".join(words)), {})
            values = {**dagps_online.gains(finished, row, base[row["seed"]]), **_local(row)}
            for name, value in values.items():
                gains.setdefault(name, []).append(value)
        for (policy, parameters), gains in schemes.items():
            for name, by_seed in gains.items():
                label = f"{policy} {parameters}".strip() + f", {name}"
                paper = _published(finished.config["experiment"], trace, policy, name)
                yield Finding(figure, label, float(np.median(by_seed)), paper=paper)
                rises.setdefault((trace, policy, name), {})[capacity] = float(np.median(by_seed))
    if finished.config["experiment"] == "dagps/fig15":
        yield from _rises(rises)


def _published(experiment: str, trace: str, policy: str, name: str) -> str:
    if experiment == "dagps/table3" and name == "makespan":
        return published("dagps", "table3", trace, policy)
    if experiment == "dagps/fig10":
        is_tpc = policy == "dagps" and trace.startswith("tpc")  # the sentence has no column
        both_tpc = published("dagps", "fig10", "both", name) if is_tpc else ""
        return both_tpc or published("dagps", "fig10", trace, policy, name)
    return ""


def _rises(gains: dict[tuple[str, str, str], dict[float, float]]) -> Findings:
    """Compute the rise of a gain with the load, points, from the lowest load on (Fig. 15)."""
    for (trace, policy, name), by_capacity in gains.items():
        if policy == "dagps" and name in RISING:
            for capacity, gain in by_capacity.items():
                if capacity < 1.0:
                    load = f"{1 / capacity:.2g} times"
                    paper = published("dagps", "fig15", load) if name == RISING[0] else ""
                    figure = f"{trace}, rise of the improvement over {TEZ} with the load, points"
                    rise = gain - by_capacity[1.0]
                    yield Finding(figure, f"{policy}, {name}, {load}", rise, paper=paper)


def _local(row: Row) -> dict[str, float]:
    """Return the share of tasks that ran on a machine with their input, %, if known."""
    share = row.get("tasks_local", math.nan)
    return {LOCAL: 100.0 * share} if math.isfinite(share) else {}


def table4(finished: FinishedSweep) -> Findings:
    """Compute the cost of two queues to each scheme, and its fairness in windows of time."""
    two_queues, one_queue = "tpcds_two_queues", "tpcds_stream"
    for policy, cells in grouped(finished.cells, "policy").items():
        traces = grouped(cells, "trace")
        cost = compare_seeds(traces, (two_queues, one_queue), "jct_p50_s", percent_reduction)
        paper = published("dagps", "table4", policy, "gap")
        yield from mean(policy, "two queues against one, %", cost, paper=paper)
        rows = traces.get(two_queues, [])
        above = column(rows, "gap_lb_mean", 100.0)
        yield from mean(policy, "mean JCT above its bound, %", above)
        for window in (10, 60, 240):
            label, metric = f"Jain's index, windows of {window} s", f"jain_{window}s"
            paper = published("dagps", "table4", policy, metric)
            yield from mean(policy, label, column(rows, metric), paper=paper)
    policies = grouped((row for row in finished.cells if row["trace"] == two_queues), "policy")
    gain = compare_seeds(policies, ("dagps", "tez"), "jct_p50_s", percent_reduction)
    paper = published("dagps", "table4", "dagps", "over_tez")
    yield from mean("two queues, improvement over tez %", "dagps", gain, paper=paper)


def table5(finished: FinishedSweep) -> Findings:
    """Compute percentiles over DAGs of the improvement over breadth first, averaged over seeds.

    Then that over breadth first that looks at all resources, and the medians by number of machines.
    """
    for (trace,), cells in finished.group_by("trace").items():
        gains = _gains_of_dags(BREADTH_FIRST, finished, cells)
        for name, by_seed in gains.items():
            for q in PERCENTILES:
                values = [float(np.percentile(gain, q)) for gain, _ in by_seed]
                paper = published("dagps", "table5", name, f"p{q}") if trace in PRODUCTION else ""
                figure = f"{trace}, improvement %"
                yield Finding.from_seeds(figure, f"{name}, p{q}", values, paper=paper)
        if trace in PRODUCTION:
            yield from _over_all_resources(trace, finished, cells)
        for low, high in BINS:
            where = f"{trace}, machines {low:g} to {high:g} × work / path, median improvement %"
            for name, by_seed in gains.items():
                inside = [gain[(factor >= low) & (factor < high)] for gain, factor in by_seed]
                values = [float(np.median(gain)) for gain in inside if len(gain)]
                if values:
                    yield Finding.from_seeds(where, name, values)


def _over_all_resources(trace: str, finished: FinishedSweep, cells: list[Row]) -> Findings:
    """Compute the same of a random order over breadth first, if both look at all resources."""
    base, order = "list_scheduling/bfs", "list_scheduling/random"
    rows = [row for row in cells if row["policy"] in (base, order)]
    if {row["policy"] for row in rows} == {base, order}:
        for q in PERCENTILES:
            by_seed = _gains_of_dags(base, finished, rows)[order]
            values = [float(np.percentile(gain, q)) for gain, _ in by_seed]
            paper = published("dagps", "table5", f"{order}_cpu_mem", f"p{q}")
            figure = f"{trace}, improvement over {base}, %"
            yield Finding.from_seeds(figure, f"{order}, p{q}", values, paper=paper)


def table5_readings(finished: FinishedSweep) -> Findings:
    """Compute Table 5, DAGPS's median less those of the two next to it, and the distance to both.

    The rule is that of policies/dagps/decisions/0061-dagps-machines.md.
    """
    yield from table5(finished)
    for (trace,), cells in finished.group_by("trace").items():
        gains = _gains_of_dags(BREADTH_FIRST, finished, cells)
        medians = {
            name: np.array([np.median(gain) for gain, _ in by_seed])
            for name, by_seed in gains.items()
        }
        for rival in RIVALS:
            points = (medians[AS_BUILT] - medians[rival]).tolist()
            figure = f"{trace}, {AS_BUILT}, less another scheme, points, p50"
            yield Finding.from_seeds(figure, rival, points)
        figure = f"{trace}, mean distance to the paper's numbers, points"
        yield Finding(figure, ", ".join(COMPARED), _distance(gains))


def _distance(gains: dict[str, list[tuple[F8, F8]]]) -> float:
    """Return the mean distance to Table 5, points, over schemes by which nothing was set."""
    distances = [
        abs(
            float(np.mean([np.percentile(gain, q) for gain, _ in gains[name]]))
            - float(published("dagps", "table5", name, f"p{q}"))
        )
        for name in COMPARED
        for q in PERCENTILES
    ]
    return float(np.mean(distances))


def domains(finished: FinishedSweep) -> Findings:
    """Compute quartiles over DAGs of the improvement by DAGPS, averaged over seeds (Fig. 16)."""
    for (trace,), cells in finished.group_by("trace").items():
        baselines = dict.fromkeys(row["policy"] for row in cells if row["policy"] != "dagps")
        for baseline in baselines:
            gains = _gains_of_dags(baseline, finished, cells)
            for scheme in (AS_BUILT, "dagps"):
                for q in (25, 50, 75):
                    values = [float(np.percentile(gain, q)) for gain, _ in gains[scheme]]
                    is_printed = q == 50 and scheme == AS_BUILT
                    paper = published("dagps", "fig16", trace, baseline) if is_printed else ""
                    figure = f"{trace}, improvement over {baseline}, %"
                    yield Finding.from_seeds(figure, f"{scheme}, p{q}", values, paper=paper)


def _gains_of_dags(
    baseline: str, finished: FinishedSweep, cells: list[Row]
) -> dict[str, list[tuple[F8, F8]]]:
    """Compute the improvement over a policy, %, and the factor of each DAG, by scheme and seed."""
    base = {row["seed"]: finished.table(row) for row in cells if row["policy"] == baseline}
    gains: dict[str, list[tuple[F8, F8]]] = {}
    for row in cells:
        table = finished.table(row)
        factor = table["factor"].to_numpy()
        if row["policy"] == baseline:
            limit = 1.0 - table["tight_lb"].to_numpy() / table["makespan_s"].to_numpy()
            gains.setdefault(LIMIT, []).append((100.0 * limit, factor))
            continue
        base_s = _seconds(base[row["seed"]], baseline)
        names = {"built_s": f"{row['policy']}, as built"}
        if row["policy"] not in AS_BUILT_ONLY:
            names["makespan_s"] = row["policy"]
        for key, name in names.items():
            seconds = table[key].to_numpy()
            if not np.isnan(seconds).all():
                gains.setdefault(name, []).append((100.0 * (1.0 - seconds / base_s), factor))
    return gains


def _seconds(table: Any, policy: str) -> F8:
    """Return the time of each DAG under the baseline policy."""
    column = "built_s" if policy in AS_BUILT_ONLY else "makespan_s"
    return np.asarray(table[column].to_numpy())


def fig13(finished: FinishedSweep) -> Findings:
    """Compute the share of DAGs proven optimal and percentiles of the gap to lower bounds, %."""
    for (trace,), cells in finished.group_by("trace").items():
        for bound in ("new_lb", "tight_lb", "best of cp_len and twork"):
            is_published = trace in PRODUCTION and bound == "new_lb"
            for label, values in _above(bound, finished, cells).items():
                paper = published("dagps", "fig13", label) if is_published else ""
                figure = f"{trace}, DAGPS above {bound}, %"
                yield Finding.from_seeds(figure, label, values, paper=paper)
        if trace in PRODUCTION:
            yield from _bound_gain(trace, finished, cells)


def _bound_gain(trace: str, finished: FinishedSweep, cells: list[Row]) -> Findings:
    """Compute percentiles over DAGs of the gain of NewLB on the better earlier bound, %."""
    tables = [finished.table(row) for row in cells if row["policy"] == "dagps"]
    pairs = [(table["new_lb"].to_numpy(), _earlier_bound_s(table)) for table in tables]
    gains = [100.0 * (new_s - earlier_s) / earlier_s for new_s, earlier_s in pairs]
    for q in (50, 75, 90):
        paper = published("dagps", "fig13", "bound") if q == 50 else ""
        values = [float(np.percentile(gain, q)) for gain in gains]
        figure = f"{trace}, new_lb above best of cp_len and twork, %"
        yield Finding.from_seeds(figure, f"p{q}", values, paper=paper)


def _earlier_bound_s(table: Any) -> F8:
    bound_s: F8 = np.maximum(table["cp_len"].to_numpy(), table["twork"].to_numpy())
    return bound_s


def durations(finished: FinishedSweep) -> Findings:
    """Compute Table 5 and Fig. 13 for baseline spreads of the durations inside stages."""
    for (sigma,), cells in finished.group_by(SPREAD).items():
        for name, by_seed in _gains_of_dags(BREADTH_FIRST, finished, cells).items():
            for q in PERCENTILES:
                values = [float(np.percentile(gain, q)) for gain, _ in by_seed]
                figure = f"{SPREAD}={sigma:g}, improvement %"
                yield Finding.from_seeds(figure, f"{name}, p{q}", values)
        for label, values in _above("new_lb", finished, cells).items():
            yield Finding.from_seeds(f"{SPREAD}={sigma:g}, DAGPS above new_lb, %", label, values)


def _above(bound: str, finished: FinishedSweep, cells: list[Row]) -> dict[str, list[float]]:
    """Compute the gap of DAGPS's schedules to a lower bound, %, by statistic and seed."""
    values: dict[str, list[float]] = {}
    for row in cells:
        if row["policy"] != "dagps":
            continue
        table = finished.table(row)
        if bound in table.column_names:
            bound_s = table[bound].to_numpy()
        else:
            bound_s = _earlier_bound_s(table)
        gap = 100.0 * (table["built_s"].to_numpy() / bound_s - 1.0)
        values.setdefault("optimal", []).append(float(100 * (gap <= 100 * CLOSE).mean()))
        for q in (50, 75, 90):
            values.setdefault(f"p{q}", []).append(float(np.percentile(gap, q)))
        values.setdefault("worst", []).append(float(gap.max()))
    return values
