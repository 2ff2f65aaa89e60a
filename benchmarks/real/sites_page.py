"""Section of whole sites on the page of real schedulers, from the rows of ``sites.judge``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from benchmarks.real.markdown import markdown, percent, signed
from benchmarks.real.slurm.sites import plan
from benchmarks.real.slurm.sites.plan import FREE, NEAREST, STEPS, WHAT_IF

Row = Mapping[str, Any]
LEAST_WAIT_S = 60.0
"""Partitions that waited less in the mean are listed and not judged: a second of real time."""
_INTRO = """Whole sites of unmodified Slurm (`tests/real/sites/README.md`) and their twins,
`python -m sim site` and nothing edited, by the rule of `docs/decisions/0052-site-twins.md`.
`python -m benchmarks.real.slurm.sites.judge` makes the numbers.

- **steps**: the twin in each state that the log shows: starts found, false starts over real ones,
  quiet moments in which it starts nothing.
- **free runs**: mean waits of 30 simulations beside those of two real runs of the same
  submissions. **error**: the mean of both errors, with their signs; **noise**: by how much the two
  real runs differ, over their mean; **job**: mean absolute error of a job's wait, over the recorded
  mean.
- **what-ifs**: the change of the mean wait of all jobs that the twin foresees, beside that which
  was made in reality; **noise**: the range over the pairs of a real run without and one with the
  change."""


def sections(table: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return the paragraphs of the sections; none without rows."""
    if not any(table.get(part) for part in (STEPS, FREE, WHAT_IF, NEAREST)):
        return []
    parts = ["## Whole sites", _INTRO]
    for title, workloads in (*reversed(plan.JUDGED.items()), ("Developed on", plan.DEVELOPED)):
        own = {
            part: [row for row in table.get(part, ()) if workload(row) in workloads]
            for part in (STEPS, FREE, WHAT_IF, NEAREST)
        }
        if not any(own.values()):
            continue
        parts.append(f"### {title}: {', '.join(workloads)}")
        writers = ((STEPS, _steps), (FREE, _free), (WHAT_IF, _what_ifs), (NEAREST, _nearest))
        parts += [write(own[part]) for part, write in writers if own[part]]
    return parts


def workload(row: Row) -> str:
    """Return the workload of a row: shape and seed."""
    return str(row["workload"] if "workload" in row else row["run"].rsplit("-", 2)[0])


def _steps(rows: Sequence[Row]) -> str:
    lines = []
    for shape, own in groupby(sorted(rows, key=_shape), key=_shape):
        mine = [*own]
        total = {
            key: sum(row[key] for row in mine)
            for key in ("starts", "found", "false_starts", "quiet", "quiet_kept")
        }
        found_share, false = (
            total["found"] / total["starts"],
            total["false_starts"] / total["starts"],
        )
        kept_share = total["quiet_kept"] / max(total["quiet"], 1)
        holds = found_share >= 0.95 and false <= 0.05 and kept_share >= 0.99
        lines.append((
            shape, len(mine), total["starts"], percent(found_share), percent(false), total["quiet"],
            percent(kept_share), _yes(holds),
        ))  # fmt: skip
    head = ("steps of", "runs", "starts", "found", "false", "quiet moments", "kept")
    return markdown((*head, "95, 5, 99 %"), lines)


def _shape(row: Row) -> str:
    return workload(row).rpartition("-")[0]


def free_groups(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a row a workload and partition: error, noise, bound, and if it holds."""

    def key(row: Row) -> tuple[str, str]:
        return workload(row), str(row["partition"])

    groups = []
    for (name, partition), own in groupby(sorted(rows, key=key), key=key):
        mine = [*own]
        means = [row["recorded_s"] for row in mine]
        mean_s = sum(means) / len(means)
        noise = (max(means) - min(means)) / mean_s if mean_s > 0 else 0.0
        errors = [
            row["simulated_s"] / row["recorded_s"] - 1 for row in mine if row["recorded_s"] > 0
        ]
        error = sum(errors) / len(errors) if errors else 0.0
        groups.append({
            "workload": name, "partition": partition, "jobs": mine[0]["jobs"], "recorded_s": mean_s,
            "simulated_s": sum(row["simulated_s"] for row in mine) / len(mine), "error": error,
            "noise": noise,
            "job": sum(row["job_s"] for row in mine) / len(mine) / max(mean_s, 1e-9),
            "is_judged": partition != "all" and mean_s >= LEAST_WAIT_S,
            "holds": abs(error) <= max(0.1, 2 * noise),
        })  # fmt: skip
    return groups


def _free(rows: Sequence[Row]) -> str:
    groups = free_groups(rows)
    judged = [group for group in groups if group["is_judged"]]
    n_held = sum(group["holds"] for group in judged)
    lines = [
        (
            group["workload"], group["partition"], group["jobs"], f"{group['recorded_s']:,.0f}",
            f"{group['simulated_s']:,.0f}", signed(group["error"]), percent(group["noise"]),
            percent(group["job"]), _yes(group["holds"]) if group["is_judged"] else "–",
        )
        for group in groups
    ]  # fmt: skip
    head = ("free runs of", "partition", "jobs", "recorded, s", "simulated, s", "error", "noise")
    text = f"Free runs: {n_held} of {len(judged)} partitions within 10 % or twice the noise."
    return f"{text}\n\n" + markdown((*head, "job", "holds"), lines)


def what_if_holds(row: Row) -> tuple[bool, bool]:
    """Tell if the sign is right, or the change within its noise; and if the change is near."""
    is_clear = abs(row["real"]) > row["noise"]
    right = not is_clear or (row["real"] > 0) == (row["foreseen"] > 0)
    return right, abs(row["foreseen"] - row["real"]) <= max(0.1, row["noise"])


def _what_ifs(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        right, near = what_if_holds(row)
        lines.append((
            row["workload"], f"`{row['change']}`", signed(row["real"]), percent(row["noise"]),
            signed(row["foreseen"]), _yes(right), _yes(near),
        ))  # fmt: skip
    head = ("what-if of", "change", "real", "noise", "foreseen", "sign", "10 points or noise")
    return markdown(head, lines)


def _nearest(rows: Sequence[Row]) -> str:
    n_right = sum(row["nearest"] == "site" for row in rows)
    missed = [f"{row['run']} ({row['nearest']})" for row in rows if row["nearest"] != "site"]
    text = f"Nearest: the site's own policy in {n_right} of {len(rows)} runs (nine of ten wanted)"
    return text + (f"; not in {', '.join(missed)}." if missed else ".")


def _yes(holds: bool) -> str:
    return "yes" if holds else "**no**"
