"""The page of real schedulers beside their simulations, rendered from its stored table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.real import sites_page
from benchmarks.real.markdown import markdown, percent, signed
from benchmarks.real.slurm import noise
from benchmarks.real.slurm.batch import N_RUNS
from benchmarks.real.slurm.workloads import JUDGES, LAST_JUDGES, LATER_JUDGES
from sweep.questions.papers import ledger

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "tests" / "real" / "slurm"
PAGES = ROOT / "results" / "reproductions"
TABLE, PAGE = PAGES / "tables" / "real.json", PAGES / "real.md"
FIFO = "Slurm FIFO"
SHIPPED = "Slurm backfill as shipped, jobs of minutes and hours"
SHORT = "Slurm backfill with short intervals, jobs of minutes and hours"
SECONDS = "Slurm backfill, jobs of seconds"
PRIORITY = "Slurm with multifactor priorities"
JUDGED, JUDGED_LATER, DEVELOPED = "Judged", "Judged later", "Developed on"
JUDGED_LAST, MOMENTS = "Judged last", "Begun at drawn moments"
FIRST, CHANGED, WINDOWS, MENDED = "backtests", "changed", "windows", "mended"
EXPERIMENTS = "experiments"
"""Parts of the table: backtests by the model as first judged, and with what was changed."""
PURPOSES = (JUDGED, JUDGED_LATER, JUDGED_LAST, MOMENTS, DEVELOPED)
KINDS = (FIFO, SHIPPED, SHORT, SECONDS, PRIORITY)
Row = Mapping[str, Any]
"""A backtest of a run by a policy, or the noise between the runs of a workload and settings."""
_INTRO = """Runs of unmodified Slurm (`tests/real/slurm/README.md`) and simulations of their logs by
`python -m sweep backtest`, 30 of each policy, by the rule of
`docs/decisions/0040-real-schedulers.md`. `python -m benchmarks.real.slurm.backtests` makes the
numbers, `python -m benchmarks.real.page` this page.

- **error**: simulated mean wait over the recorded one, less 1.
- **job**: mean absolute error of a job's wait, divided by the recorded mean wait.
- **within 10 %**: share of the jobs that waited whose simulated wait is within 10 % of their own.
- **noise**: how much two real runs of the same submissions differ, in the mean wait and job by job,
  over the mean wait.
- **oracle**: a run against the mean of the others of its kind: what a simulator would reach that is
  Slurm itself.
- **nearest**: runs in which the policy that Slurm's settings name (in bold) is the nearest of
  `fifo`, `easy`, `easy` with all jobs reserved (`easy_all`), `conservative`, and the model of Slurm
  (`slurm`; `builtin` is the model without its backfill thread). With multifactor priorities all of
  them take jobs in that order, except `slurm_fcfs`."""


_CHANGES = {
    FIRST: ("", "The model of Slurm as it was first judged."),
    CHANGED: (
        ", with time to complete",
        "The model of Slurm with the time for which nodes complete a job, measured on `kth1` and\n"
        "`synth1` after the first judgement (2.5 ms and 0.5 ms a node of the real clock).",
    ),
    WINDOWS: (
        ", windows mended",
        "The model of Slurm in which a window of expected ends is over by the next running job,\n"
        "wherever it runs.",
    ),
    MENDED: (
        ", windows and plans mended",
        "The same, and the length of plans is drawn, with the mean measured on `kth1` and\n"
        "`synth1` (0.5 ms and 0.2 ms a waiting job of the real clock).",
    ),
}
_EXPERIMENTS = """Two to five runs each, by the rule of the decision. **noise**: between two runs.
**oracle**: each run against the mean of the others, what a simulator would reach that is Slurm
itself. **model**: `policy=backfill/slurm` with the changed setting, windows and plans mended. Of
each: the error of the mean wait, of a job's wait over the mean wait, and the share of the jobs that
waited within 10 %. `interval1`: as shipped with `bf_interval=1`; `interval120`; `resolution1`:
`bf_resolution=1`; `linear1`: `bf_window_linear=1`; `shortlinear1`: that with short intervals;
`x20`, `shortx20`: the clock 20 times as fast, not 60; `delay0`: `batch_sched_delay=0`."""
_SPARK = """Spark 3.5 with sleeping tasks (`tests/real/spark/README.md`): stages of 40 jobs on 16
slots. Seed 1 was for development, 2 and 3 are judges. **error** and **job** are of completion
times."""
_RAY = """Ray 2.60 with sleeping tasks (`tests/real/ray/README.md`), on three raylets of four CPUs.
The tasks of `plain` are of one scheduling class, those of `classes` of three, those of `mixed` ask
for different resources: no policy here does what Ray does with those. Not judged: the lag of the
raylets was chosen after these runs had been seen."""


def group(row: Row) -> str:
    """Return workload and settings of a row's run, and how it was begun."""
    name, _, number = str(row["run"]).rpartition("-")
    return name + (noise.DRAWN if int(number) > N_RUNS else "")


def kind(row: Row) -> str:
    """Return which of `KINDS` a run is."""
    workload, scheduler, priority = group(row).split("-")
    if priority == "multifactor":
        return PRIORITY
    if scheduler.startswith("builtin"):
        return FIFO
    if workload.startswith("seconds"):
        return SECONDS
    return SHORT if scheduler == "backfill_short" else SHIPPED


def purpose(row: Row) -> str:
    """Return for what the runs of a row's workload are: one of `PURPOSES`."""
    workload = group(row).split("-")[0]
    if group(row).endswith(noise.DRAWN):
        return MOMENTS
    if workload in JUDGES:
        return JUDGED
    if workload in LAST_JUDGES:
        return JUDGED_LAST
    return JUDGED_LATER if workload in LATER_JUDGES else DEVELOPED


def thresholds(rows: Sequence[Row]) -> list[tuple[str, str, str, bool]]:
    """Return the thresholds of a kind of run: statistic, wanted, what came out, whether it holds.

    `rows` are the runs' backtests by the policy that their settings name; a threshold holds if the
    mean over the runs holds it.
    """
    error, job = abs(_mean(rows, "error", abs)), _mean(rows, "mae")
    order, near = _mean(rows, "pairs_in_order"), _mean(rows, "waited_within_10pct")
    match kind(rows[0]):
        case "Slurm FIFO":
            return [
                ("error of the mean", "1 %", percent(error), error <= 0.01),
                ("pairs in order", "100 %", percent(order), order == 1.0),
            ]
        case "Slurm backfill as shipped, jobs of minutes and hours":
            return [
                ("error of the mean", "3 %", percent(error), error <= 0.03),
                ("within 10 %", "80 %", percent(near), near >= 0.8),
            ]
        case "Slurm backfill, jobs of seconds":
            inside = _mean(rows, "is_inside")
            in_range, drawn = _mean(rows, "in_range"), _mean(rows, "mae_between_runs")
            return [
                ("recorded mean in 95 % of the draws", "all", percent(inside), inside == 1.0),
                ("jobs in the ensemble's range", "95 %", percent(in_range), in_range >= 0.95),
                ("job, over two draws'", "1.2", f"{job / drawn:.2f}", job <= 1.2 * drawn),
            ]
    return []


def render(table: Mapping[str, Sequence[Row]]) -> str:
    """Render the page in Markdown from the rows of ``noise`` and ``backtests``."""
    parts = ["# real", "Real schedulers beside their simulations.", _INTRO]
    for title in PURPOSES:
        for part, (suffix, text) in _CHANGES.items():
            rows = [row for row in table.get(part, ()) if purpose(row) == title]
            if rows:
                parts += [f"## {title}{suffix}: {_workloads(rows)}", text]
                parts += [_summary(rows)] + ([_by_group(rows)] if part != WINDOWS else [])
    if table.get(EXPERIMENTS):
        parts += ["## One setting changed at a time", _EXPERIMENTS]
        parts.append(_experiments(table[EXPERIMENTS]))
    parts += sites_page.sections(table)
    parts += ["## Noise between real runs of Slurm", _noise(table["noise"])]
    parts += ["## Spark", _SPARK, _completions("spark"), "## Ray", _RAY, _completions("ray")]
    parts.append(ledger.page_text(ledger.read(PAGES.parent / ledger.NAME), PAGE.stem, {}))
    return "\n\n".join(parts) + "\n"


def _workloads(rows: Sequence[Row]) -> str:
    return ", ".join(sorted({group(row).split("-")[0] for row in rows}))


def _summary(rows: Sequence[Row]) -> str:
    lines = []
    for name in KINDS:
        best = [row for row in _best_named(rows) if kind(row) == name]
        if not best:
            continue
        hits = sum(any(row["is_nearest"] for row in rows if _is_named(row, run)) for run in best)
        share = ("nearest", "9 of 10", f"{hits} of {len(best)}", hits >= 0.9 * len(best))
        for statistic, threshold, measured, holds in [*thresholds(best), share]:
            lines.append((name, statistic, threshold, measured, "yes" if holds else "**no**"))
    return markdown(("runs", "statistic", "wanted", "measured", "holds"), lines)


def _is_named(row: Row, best: Row) -> bool:
    return row["run"] == best["run"] and row["is_named"]


def _best_named(rows: Sequence[Row]) -> list[Row]:
    """Return a row a run: the policy that its settings name, the first of two that do the same."""
    first: dict[str, Row] = {}
    for row in rows:
        if row["is_named"]:
            inside = row["low"] <= row["wait_mean_recorded_s"] <= row["high"]
            first.setdefault(row["run"], {**row, "is_inside": inside})
    return list(first.values())


def _by_group(rows: Sequence[Row]) -> str:
    """Write a row a workload, settings and policy: means over the runs."""
    lines = []
    names = list(dict.fromkeys((group(row), row["policy"]) for row in rows))
    for name, policy in sorted(names, key=lambda pair: pair[0]):
        same = [row for row in rows if (group(row), row["policy"]) == (name, policy)]
        label = f"**{policy}**" if same[0]["is_named"] else policy
        lines.append((
            name, label, len(same), f"{_mean(same, 'wait_mean_recorded_s'):,.0f}",
            signed(_mean(same, "error")), percent(_mean(same, "mae")),
            percent(_mean(same, "waited_within_10pct")), percent(_mean(same, "pairs_in_order")),
            sum(row["is_nearest"] for row in same),
        ))  # fmt: skip
    head = ("workload and settings", "policy", "runs", "wait, s", "error", "job", "within 10 %")
    return markdown((*head, "pairs in order", "nearest"), lines)


def _noise(rows: Iterable[Row]) -> str:
    lines = [
        (
            row["group"], row["runs"], f"{row['waited']:.0f}", f"{row['wait_mean_s']:,.1f}",
            f"{row['wait_least_s']:,.1f} to {row['wait_greatest_s']:,.1f}",
            percent(row["mean_differs"]), percent(row["job_differs"]),
            percent(row["waited_within_10pct"]),
            *(percent(row[f"oracle_{name}"]) for name in ("error", "job", "within_10pct")),
        )
        for row in rows
        if row["runs"] > 1
    ]  # fmt: skip
    head = ("workload and settings", "runs", "waited", "mean wait, s", "range over runs, s")
    names = ("mean", "job", "within 10 %")
    return markdown((*head, *names, *(f"oracle: {name}" for name in names)), lines)


def _experiments(rows: Iterable[Row]) -> str:
    names = [
        (f"{prefix}{statistic}", f"{label}: {short}")
        for prefix, label in (("", "noise"), ("oracle_", "oracle"), ("model_", "model"))
        for statistic, short in (("error", "mean"), ("job", "job"), ("within_10pct", "10 %"))
    ]
    noisy = {"error": "mean_differs", "job": "job_differs", "within_10pct": "waited_within_10pct"}
    lines = [
        (
            row["group"], row["runs"], f"{row['wait_mean_s']:,.1f}",
            *(percent(row[noisy.get(name, name)]) for name, _ in names),
        )
        for row in rows
    ]  # fmt: skip
    head = ("workload and settings", "runs", "mean wait, s", *(label for _, label in names))
    return markdown(head, lines)


def _completions(scheduler: str) -> str:
    """Write a row a kind of run and policy of Spark or Ray: means over the runs."""
    path = RUNS.parent / scheduler / "accuracy.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    lines = []
    for name, policy in sorted({(_workload(row), row["policy"]) for row in rows}):
        same = [row for row in rows if (_workload(row), row["policy"]) == (name, policy)]
        between = [row["real_error"] for row in same if row["real_error"] is not None]
        lines.append((
            name, policy, len(same), f"{_mean(same, 'recorded_mean_s'):.2f}",
            signed(_mean(same, "error")), percent(_mean(same, "job_error")),
            percent(sum(between) / len(between)) if between else "–",
        ))  # fmt: skip
    head = ("runs of", "policy", "runs", "mean completion, s", "error", "job", "two real runs, job")
    return markdown(head, lines)


def _workload(row: Row) -> str:
    return str(row["run"]).removesuffix(".gz").rpartition("-")[0]


def _mean(rows: Sequence[Row], name: str, transform: Callable[[float], float] = float) -> float:
    return sum(transform(row[name]) for row in rows) / len(rows)


def read_table(path: Path = TABLE) -> dict[str, list[dict[str, Any]]]:
    """Read the stored table: rows of ``noise`` and of backtests; none if there is no table."""
    if not path.exists():
        return {"noise": []} | {part: [] for part in _CHANGES}
    stored: dict[str, list[list[Any]]] = json.loads(path.read_text(encoding="utf-8"))
    table = {
        name: [dict(zip(columns, values, strict=True)) for values in rows]
        for name, (columns, *rows) in stored.items()
    }
    return {part: [] for part in (*_CHANGES, EXPERIMENTS)} | table


def write_table(table: Mapping[str, Iterable[Row]], path: Path = TABLE) -> None:
    """Write the table: of each part its columns, then a row a line, numbers to six digits."""
    parts = []
    for name, part in table.items():
        rows = [*part]
        columns = [*rows[0]] if rows else []
        lines = [json.dumps(columns), *(_line(row, columns) for row in rows)]
        parts.append(f"{json.dumps(name)}: [\n" + ",\n".join(lines) + "\n]")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _line(row: Row, columns: Sequence[str]) -> str:
    if [*row] != [*columns]:
        raise ValueError(f"a row has the columns {[*row]}, the first one {[*columns]}")
    rounded = (float(f"{v:.6g}") if isinstance(v, float) else v for v in row.values())
    return json.dumps([None if value != value else value for value in rounded])


def main() -> None:
    """Compute the noise of the kept runs, and render the page."""
    table = read_table() | {"noise": noise_rows()}
    write_table(table)
    PAGE.write_text(render(read_table()), encoding="utf-8")


def noise_rows() -> list[dict[str, Any]]:
    """Return the noise between the kept runs, a row a workload and settings."""
    return [
        {"group": "-".join(names), **noise.between(runs), **noise.oracle(runs)}
        for names, runs in (
            (names, [noise.read(path) for path in paths])
            for names, paths in noise.groups(RUNS).items()
        )
    ]


if __name__ == "__main__":
    main()
