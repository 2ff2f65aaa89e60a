"""Notes on standard error: what is about to run, what traces lack, how much is kept."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any

import policies
from sim.base.text import printable
from sim.evaluators import NO_POLICY
from sweep.execution.plan import PlannedCell, PreparedGrid

_PLURAL = {"policy": "policies", "trace": "traces", "capacity": "capacities", "seed": "seeds"}
_SINGULAR = {plural: singular for singular, plural in _PLURAL.items()}
_SINGULAR |= {"cells": "cell", "searches": "search", "settings": "setting"}


def note(text: str) -> None:
    """Say one thing on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def grid(prepared: PreparedGrid, n_todo: int) -> None:
    """Say what is about to run."""
    axes = " × ".join(
        count(len(values), _PLURAL.get(key, key))
        for key, values in prepared.grid.request.axes.items()
        if len(values) > 1 or key in _PLURAL
    )
    n_cells = len(prepared.planned)
    n_cached = int(prepared.is_known().sum())
    note(f"{prepared.sweep}: {axes}: {n_cells} cells, {n_cached} cached, {n_todo} to run")
    traces(prepared)


def traces(prepared: PreparedGrid, names: Collection[str] | None = None) -> None:
    """Say what loading the traces left out or filled in; of `names` alone, if they are given.

    Of one that was never made nothing is known.
    """
    if names is not None and not names:
        return
    lines = []
    inputs = prepared.inputs
    kinds: dict[tuple[int, str], PlannedCell] = {}
    for each in prepared.first:
        if names is None or each.input in names:
            kinds.setdefault((id(each.cell.policy), each.input), each)
    chosen = [each for each in kinds.values() if inputs.known(each.input) is not None]
    for name in dict.fromkeys(planned.input for planned in chosen):
        about = inputs.describe(name)
        dropped = _dropped(about["meta"].get("report") or {})
        if dropped:
            trace = about["meta"].get("name", "trace")
            lines.append(f"  {trace}: {about['n_jobs']:,} jobs; {dropped}")
    lines += [line for planned in chosen if (line := _unfounded(prepared, planned))]
    for line in dict.fromkeys(lines):
        note(line)


def _unfounded(prepared: PreparedGrid, planned: PlannedCell) -> str:
    """Word that a policy learns from what the workload does not have; '' if it does not."""
    policy = planned.cell.policy
    if policy["name"] == NO_POLICY:
        return ""
    built = policies.build(policy["name"], module=policy.get("module"), **policy["params"])
    wanted = built.learns_from
    there = prepared.inputs.describe(planned.input).get("learnable", wanted)
    missing = " and ".join(f"no {what}" for what in wanted if what not in there)
    if not missing:
        return ""
    labels = planned.cell.labels
    return (
        f"  {labels['policy']} on {labels['trace']}: the workload has {missing} of jobs to predict "
        "by, so that its estimates tell little (docs/your_own_trace.md)"
    )


INTERRUPTED = "interrupted: what is done is kept; the same command goes on from here"


def interrupted(prepared: PreparedGrid, n_todo: int) -> str:
    """Word how much is kept."""
    left = len(prepared.rows_to_do())
    return (
        f"interrupted: {n_todo - left} of {n_todo} cells are done and kept; "
        "the same command goes on from here"
    )


def count(n: int, plural: str) -> str:
    """Write how many of a thing, such as ``1 cell``."""
    return f"{n:,} {_SINGULAR.get(plural, plural) if n == 1 else plural}"


def _dropped(report: Mapping[str, Any]) -> str:
    """Word what a loader dropped or filled in, by rule."""
    words: list[str] = []
    for happened in ("dropped", "filled", "edges_dropped", "bad_rows", "columns_unused"):
        counts = report.get(happened)
        if isinstance(counts, Mapping) and counts:
            rules = ", ".join(f"{rule} ({n:,})" for rule, n in counts.items())
            words.append(f"{happened.replace('_', ' ')}: {rules}")
    return "; ".join(words)
