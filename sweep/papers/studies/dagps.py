"""How much sooner jobs, and single DAGs, end under DAGPS than under others (MSR-TR-2016-19)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.papers.figures import Findings, Row, column, grouped, mean, paired, percent_less, printed
from sweep.papers.studies import dagps_online
from sweep.report.findings import Finding, FinishedSweep

TEZ = "tez"
LOCAL = "local tasks, %"
BREADTH_FIRST = "list_scheduling/bfs_cpu_mem"
"""The paper does not say whether its BFS looks at all resources; we take it that it does not."""

MOST = "no schedule more than"
"""What a schedule as short as the tighter lower bound would gain; of the makespan of a cluster,
one that keeps the bottleneck busy from the first to the last moment."""

PRODUCTION = "production_dags"
"""The DAGs that Fig. 13 and Table 5 are of."""

PERCENTILES = (25, 50, 75, 90)
SPREAD = "trace.task_sigma"
"""How different the tasks of a stage are, which the paper does not say."""

AS_BUILT_ONLY = ("list_scheduling/heft",)
"""Policies whose schedules are looked at and whose runs are not: these go by the critical path."""

BINS = ((0.0, 1.0), (1.0, 2.0), (2.0, np.inf))
"""Of machines times critical path over the work on one machine."""

CLOSE = 1e-6
"""A schedule this close to a bound, relatively, is optimal."""


def cluster(finished: FinishedSweep) -> Findings:
    """Give each scheme's improvement over Tez, %: the median of the runs, seeds (§8.2, §8.5)."""
    variants = [key for key in finished.config["swept"] if key.startswith("policy.")]
    for (trace, capacity), cells in finished.group_by("trace", "capacity").items():
        base = {row["seed"]: row for row in cells if row["policy"] == TEZ}
        figure = f"{trace}, capacity {capacity:g}, improvement over {TEZ} %"
        most = [100.0 * (1.0 - row["utilization_makespan"]) for row in base.values()]
        yield Finding(figure, f"{MOST}, makespan", float(np.median(most)))
        least = [gain for row in base.values() for gain in dagps_online.most(row).values()]
        if least:
            yield Finding(figure, dagps_online.MOST_MEAN, float(np.median(least)))
        local = [share for row in base.values() for share in _local(row).values()]
        if local:
            yield Finding(figure, f"{TEZ}, {LOCAL}", float(np.median(local)))
        schemes: dict[tuple[str, str], dict[str, list[float]]] = {}
        for row in cells:
            if row["policy"] == TEZ:
                continue
            words = [f"{key.removeprefix('policy.')}={row[key]}" for key in variants]
            gains = schemes.setdefault((row["policy"], " ".join(words)), {})
            found = {**dagps_online.gains(finished, row, base[row["seed"]]), **_local(row)}
            for name, value in found.items():
                gains.setdefault(name, []).append(value)
        for (policy, parameters), gains in schemes.items():
            for name, values in gains.items():
                what = f"{policy} {parameters}".strip() + f", {name}"
                paper = _of_cluster(finished.config["experiment"], trace, policy, name)
                yield Finding(figure, what, float(np.median(values)), paper=paper)


def _of_cluster(experiment: str, trace: str, policy: str, name: str) -> str:
    if experiment == "dagps/table3" and name == "makespan":
        return printed("dagps", "table3", trace, policy)
    if experiment == "dagps/fig10":
        both = policy == "dagps" and trace.startswith("tpc")
        of_both = printed("dagps", "fig10", "both", name) if both else ""
        return of_both or printed("dagps", "fig10", trace, policy, name)
    return ""


def _local(row: Row) -> dict[str, float]:
    """Give the share of the tasks that ran where their input lies, %, if any lies anywhere."""
    share = row.get("tasks_local", math.nan)
    return {LOCAL: 100.0 * share} if math.isfinite(share) else {}


def table4(finished: FinishedSweep) -> Findings:
    """Give what two queues cost each scheme, and how fair it is to them in windows of time."""
    two_queues, one = "tpcds_two_queues", "tpcds_stream"
    for policy, cells in grouped(finished.cells, "policy").items():
        traces = grouped(cells, "trace")
        cost = paired(traces, (two_queues, one), "jct_p50_s", percent_less)
        paper = printed("dagps", "table4", policy, "gap")
        yield from mean(policy, "two queues against one, %", cost, paper=paper)
        rows = traces.get(two_queues, [])
        above = column(rows, "gap_lb_mean", 100.0)
        yield from mean(policy, "mean JCT above its bound, %", above)
        for window in (10, 60, 240):
            what, metric = f"Jain's index, windows of {window} s", f"jain_{window}s"
            paper = printed("dagps", "table4", policy, metric)
            yield from mean(policy, what, column(rows, metric), paper=paper)


def table5(finished: FinishedSweep) -> Findings:
    """Give percentiles over DAGs of what is shorter than breadth first's, averaged over seeds.

    In parts of breadth first's time, then in parts of the scheme's: the paper's divisor is "the
    runtime of the job with some scheme" (§8.1). Then the medians by number of machines.
    """
    for (trace,), cells in finished.group_by("trace").items():
        gains = _gains_of_dags(BREADTH_FIRST, finished, cells)
        for name, of_seed in gains.items():
            for q in PERCENTILES:
                values = [float(np.percentile(gain, q)) for gain, _ in of_seed]
                paper = printed("dagps", "table5", name, f"p{q}") if trace == PRODUCTION else ""
                paper += ", rounded" if paper else ""  # to whole percents
                figure = f"{trace}, improvement %"
                yield Finding.from_seeds(figure, f"{name}, p{q}", values, paper=paper)
        for name, of_seed in gains.items():
            for q in PERCENTILES:
                longer = [100.0 * (1.0 / (1.0 - gain / 100.0) - 1.0) for gain, _ in of_seed]
                values = [float(np.percentile(of, q)) for of in longer]
                figure = f"{trace}, breadth first takes longer by, %"
                yield Finding.from_seeds(figure, f"than {name}, p{q}", values)
        for low, high in BINS:
            where = f"{trace}, machines {low:g} to {high:g} × work / path, median improvement %"
            for name, of_seed in gains.items():
                inside = [gain[(factor >= low) & (factor < high)] for gain, factor in of_seed]
                values = [float(np.median(gain)) for gain in inside if len(gain)]
                yield Finding.from_seeds(where, name, values)


def domains(finished: FinishedSweep) -> Findings:
    """Give quartiles over DAGs, averaged over seeds, of DAGPS over every other policy (Fig. 16)."""
    as_built = "dagps, as built"  # the paper has one number; Table 5's are of schedules, too
    for (trace,), cells in finished.group_by("trace").items():
        others = dict.fromkeys(row["policy"] for row in cells if row["policy"] != "dagps")
        for other in others:
            gains = _gains_of_dags(other, finished, cells)
            for scheme in (as_built, "dagps"):
                for q in (25, 50, 75):
                    values = [float(np.percentile(gain, q)) for gain, _ in gains[scheme]]
                    is_printed = q == 50 and scheme == as_built
                    paper = printed("dagps", "fig16", trace, other) if is_printed else ""
                    figure = f"{trace}, improvement over {other}, %"
                    yield Finding.from_seeds(figure, f"{scheme}, p{q}", values, paper=paper)


def _gains_of_dags(
    baseline: str, finished: FinishedSweep, cells: list[Row]
) -> dict[str, list[tuple[F8, F8]]]:
    """Improvement over a policy in percent, and factor, per DAG, of each scheme and seed."""
    base = {row["seed"]: finished.table(row) for row in cells if row["policy"] == baseline}
    gains: dict[str, list[tuple[F8, F8]]] = {}
    for row in cells:
        table = finished.table(row)
        factor = table["factor"].to_numpy()
        if row["policy"] == baseline:
            least = 1.0 - table["tight_lb"].to_numpy() / table["makespan_s"].to_numpy()
            gains.setdefault(MOST, []).append((100.0 * least, factor))
            continue
        before = _seconds(base[row["seed"]], baseline)
        names = {"built_s": f"{row['policy']}, as built"}
        if row["policy"] not in AS_BUILT_ONLY:
            names["makespan_s"] = row["policy"]
        for key, name in names.items():
            seconds = table[key].to_numpy()
            if not np.isnan(seconds).all():
                gains.setdefault(name, []).append((100.0 * (1.0 - seconds / before), factor))
    return gains


def _seconds(table: Any, policy: str) -> F8:
    """Give how long each DAG takes under a policy that others are compared with."""
    column = "built_s" if policy in AS_BUILT_ONLY else "makespan_s"
    return np.asarray(table[column].to_numpy())


def fig13(finished: FinishedSweep) -> Findings:
    """Give the share of DAGs proven optimal and percentiles of the distance to bounds, %."""
    for (trace,), cells in finished.group_by("trace").items():
        for bound in ("new_lb", "tight_lb", "best of cp_len and twork"):
            is_published = trace == PRODUCTION and bound == "new_lb"
            for what, of in _above(bound, finished, cells).items():
                paper = printed("dagps", "fig13", what) if is_published else ""
                figure = f"{trace}, DAGPS above {bound}, %"
                yield Finding.from_seeds(figure, what, of, paper=paper)


def durations(finished: FinishedSweep) -> Findings:
    """Give what Table 5 and Fig. 13 would be with other spreads of durations inside stages."""
    for (sigma,), cells in finished.group_by(SPREAD).items():
        for name, of_seed in _gains_of_dags(BREADTH_FIRST, finished, cells).items():
            for q in PERCENTILES:
                values = [float(np.percentile(gain, q)) for gain, _ in of_seed]
                figure = f"{SPREAD}={sigma:g}, improvement %"
                yield Finding.from_seeds(figure, f"{name}, p{q}", values)
        for what, of in _above("new_lb", finished, cells).items():
            yield Finding.from_seeds(f"{SPREAD}={sigma:g}, DAGPS above new_lb, %", what, of)


def _above(bound: str, finished: FinishedSweep, cells: list[Row]) -> dict[str, list[float]]:
    """Measure how far DAGPS's schedules are above a bound, %, each a value a seed."""
    values: dict[str, list[float]] = {}
    for row in cells:
        if row["policy"] != "dagps":
            continue
        table = finished.table(row)
        if bound in table.column_names:
            least = table[bound].to_numpy()
        else:
            least = np.maximum(table["cp_len"].to_numpy(), table["twork"].to_numpy())
        gap = 100.0 * (table["built_s"].to_numpy() / least - 1.0)
        values.setdefault("optimal", []).append(float(100 * (gap <= 100 * CLOSE).mean()))
        for q in (50, 75, 90):
            values.setdefault(f"p{q}", []).append(float(np.percentile(gap, q)))
        values.setdefault("worst", []).append(float(gap.max()))
    return values
