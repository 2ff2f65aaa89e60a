"""The page of Alibaba's whole trace, rendered from its stored table.

``python -m benchmarks.whole_trace_page``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.whole_trace import (
    GROWING,
    LOADS,
    MACHINES,
    MAX_CPU_S,
    MAX_GB,
    N_TASKS,
    PAGE,
    SIZES,
    TABLE,
    WHOLE,
)

INTRO = """Alibaba's whole trace (`cluster-trace-v2018`): read, simulated and reported, and how time
and memory grow up to it. `python -m benchmarks.whole_trace` makes the numbers, `python -m
benchmarks.whole_trace_page` this page.

The trace itself is not at hand. 637 copies of a real sample of 6,599 jobs stand in for it, each
with its own times of submission and its own durations, so that none repeats another's instants; a
stage keeps 69 % of its tasks, as the whole trace has fewer a job than the sample. One
process reads the folder and works out what clusters are sized by; for each row a process forked
from it simulates with records of all tasks, and computes every metric.

- **CPU s** are seconds of one core, those of the system included; other work ran on the machine.
- **batches**: like tasks of a stage that started at one instant, which the simulation moves as one.
- **report** is the computation of all metrics; tables, plots and the page that shows them are part
  of the sweep at the end of the first section.
- **peak** is the largest resident memory of the process until then, GB.

The numbers of this page are not judged by a rule: they are measurements of time and memory."""


def number(value: float) -> str:
    """Format a number with three digits, at least, and thousands."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 1) -> str:
    """Format a table, numbers to the right."""
    rule = ["---" if i < text_columns else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def where(entry: dict[str, Any]) -> str:
    """Describe the cluster of a run."""
    if entry["load"]:
        return f"{entry['capacity']:,.0f} slots"
    return f"{entry['capacity']:,.0f} machines"


def render(table: dict[str, Any]) -> str:
    """Render the page."""
    done = [entry for entry in table["runs"] if "refused" not in entry]
    runs = sorted(done, key=lambda e: list(SIZES).index(e["size"]))
    built = table["built"]
    parts = ["# whole_trace", INTRO, "## The whole trace", _whole(runs, built), _verdict(runs)]
    parts += [_command(table["command"]) if "command" in table else ""]
    parts += ["## From 10⁵ tasks on", _sizes(built), _growth(runs), _machines(runs), _reading(runs)]
    parts += [f"Measured on {table['machine']['cpu']}, {table['machine']['cores']} cores, Python "
              f"{table['machine']['python']}, NumPy {table['machine']['numpy']}, numba "
              f"{table['machine']['numba']}."]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _whole(runs: list[dict[str, Any]], built: dict[str, Any]) -> str:
    rows = []
    for e in runs:
        if e["size"] != WHOLE:
            continue
        seconds = [number(e[name]) for name in ("read_s", "size_s", "simulate_s", "report_s")]
        rows.append(
            [e["policy"] + "*" * bool(e.get("earlier")), where(e), f"{e['offered']:.2f}",
             f"{e['batches'] / 1e6:,.1f}", *seconds, f"{e['peak_gb']:.1f}",
             number(e["jct_mean_s"]), f"{e['utilization']:.3f}"]
        )  # fmt: skip
    head = (
        "policy", "cluster", "load", "batches, M", "read", "size the cluster", "simulate",
        "report", "peak, GB", "mean JCT, s", "utilization",
    )  # fmt: skip
    text = ""
    if WHOLE in built:
        b = built[WHOLE]
        text = (
            f"{b['jobs']:,} jobs, {b['stages']:,} stages, {b['tasks']:,} tasks; "
            f"{1000 * b['disk_gb']:,.0f} MB on disk. CPU s:\n\n"
        )
    note = ""
    if any(e.get("earlier") for e in runs):
        note = (
            "\n\n* Measured before columns of records grew in place and the kernel's state was let "
            "go of first, which takes less memory and time."
        )
    return text + markdown(head, rows, 2) + note


def _machines(runs: list[dict[str, Any]]) -> str:
    """Show the runs on Alibaba's machines, as many for each task as the whole trace has."""
    rows = [
        [e["size"], number(e["capacity"]), f"{e['offered']:.2f}", f"{e['batches'] / 1e6:,.2f}",
         number(e["simulate_s"]), f"{e['peak_gb']:.2f}"]
        for e in runs if e["policy"] == "tetris"
    ]  # fmt: skip
    head = ("tasks", "machines", "load", "batches, M", "simulate, CPU s", "peak, GB")
    return "tetris on machines:\n\n" + markdown(head, rows) if rows else ""


def _verdict(runs: list[dict[str, Any]]) -> str:
    """Compare the runs of the whole trace with what was wanted."""
    lines = []
    for policy, at_most in MAX_CPU_S.items():
        mine = [e for e in runs if e["size"] == WHOLE and e["policy"] == policy]
        target = f"{at_most:g} s and {MAX_GB:g} GB wanted"
        if not mine:
            lines.append(f"- **{policy}**: **not measured** ({target}).")
            continue
        slowest, largest = (max(e[k] for e in mine) for k in ("simulate_s", "peak_gb"))
        holds = slowest <= at_most and largest <= MAX_GB
        verdict = "holds" if holds else "**does not hold**"
        measured = f"{number(slowest)} s and {largest:.1f} GB at most"
        lines.append(f"- **{policy}**: {measured}; {target}: {verdict}.")
    return "\n".join(lines)


def _command(ran: dict[str, Any]) -> str:
    """Show what a sweep over the trace's own file took, up to its report."""
    cost = f"{number(ran['cpu_s'])} s of CPU, {number(ran['wall_s'])} s of time"
    return f"""The same jobs, written in the format of the trace's own file (`batch_task.csv`,
{ran["csv_gb"]:.2f} GB, whole seconds). One command reads it, simulates it, and writes a report of
{ran["report_mb"]:.1f} MB:

```sh
python -m sweep trace.path=batch_task.csv {" ".join(ran["words"])}
```

It takes {cost} and at most {ran["peak_gb"]:.1f} GB.
{ran["answer"]}"""


def _sizes(built: dict[str, Any]) -> str:
    rows = [
        [size, f"{b['jobs']:,.0f}", f"{b['stages']:,.0f}", f"{b['tasks']:,.0f}",
         number(1000 * b["disk_gb"]), number(b["make_s"]), number(b["write_s"])]
        for size in SIZES if (b := built.get(size))
    ]  # fmt: skip
    head = (
        "tasks",
        "jobs",
        "stages",
        "tasks, exactly",
        "MB on disk",
        "make, CPU s",
        "write, CPU s",
    )
    left_out = [size for size in SIZES if size not in built]
    note = f"\n\nNot run: {', '.join(left_out)} tasks." if left_out else ""
    return markdown(head, rows) + note


def _growth(runs: list[dict[str, Any]]) -> str:
    """Show time and memory of the policies that run at every size."""

    def cells(value: Callable[[dict[str, Any]], str]) -> list[list[str]]:
        by_key = {(e["size"], e["policy"], e["load"]): value(e) for e in runs}
        keys = [(policy, load) for policy in GROWING for load in LOADS]
        return [
            [size, *(by_key.get((size, *key), "") for key in keys)]
            for size in SIZES
            if any((size, *key) in by_key for key in keys)
        ]

    head = ["tasks", *(f"{policy}, {load:g}" for policy in GROWING for load in LOADS)]
    return "\n\n".join(
        [
            "Simulate, CPU s, by policy and load:",
            markdown(head, cells(lambda e: number(e["simulate_s"]))),
            "Read, size the cluster and report together, CPU s:",
            markdown(head, cells(lambda e: number(e["read_s"] + e["size_s"] + e["report_s"]))),
            "Batches a thousand tasks:",
            markdown(head, cells(lambda e: number(1000 * e["batches"] / e["tasks"]))),
            "Peak memory, GB, of which 0.3 are Python, its libraries and kernels:",
            markdown(head, cells(lambda e: f"{e['peak_gb']:.2f}")),
        ]
    )


def _reading(runs: list[dict[str, Any]]) -> str:
    """Say how time grows: a batch costs about the same, and a larger cluster has larger ones."""
    rates = [1e9 * e["simulate_s"] / e["batches"] for e in runs if e["batches"] > 1e6 and e["load"]]
    if not rates:
        return ""
    return (
        f"A batch costs {number(min(rates))} to {number(max(rates))} ns, its record included. Time "
        "grows with batches, not with tasks: on a larger cluster more of a stage's tasks start at "
        "once, so that there are fewer batches a task. At a load of 0.9 few slots are free at any "
        f"instant, and batches stay small up to 10⁸ tasks. {MACHINES:,} machines are another "
        "matter, as a batch there is of one machine." + _overload(runs)
    )


def _overload(runs: list[dict[str, Any]]) -> str:
    """Say what a cluster takes to which more work is offered than it can do."""
    over = [e for e in runs if (e["load"] or 0) >= 1]
    if not over:
        return ""
    e = max(over, key=lambda e: e["peak_gb"])
    whole_gb = e["peak_gb"] * N_TASKS / e["tasks"]
    return (
        f"\n\nAt a load of {e['load']:g} hardly two tasks start together: {e['policy']} has "
        f"{e['batches'] / e['tasks']:.2f} batches a task, and {e['size']} tasks take "
        f"{number(e['simulate_s'])} s and {e['peak_gb']:.1f} GB. The whole trace would take about "
        f"{whole_gb:.0f} GB in proportion; a run whose records do not fit ends, and says so."
    )


def main() -> int:
    """Render the page."""
    Path(PAGE).write_text(render(json.loads(Path(TABLE).read_text())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
