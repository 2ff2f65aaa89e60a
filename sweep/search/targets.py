"""How many machines does each policy need? The least capacity that meets a target.

Every policy on every trace is a hunt of its own (`sweep.search.bisect`), over whole machines; what
all of them want next is one round, whose cells run side by side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sweep.execution.notes import count
from sweep.grid.config_tree import canonical
from sweep.grid.goals import Target
from sweep.grid.grid import Cell
from sweep.grid.request import Request
from sweep.search.bisect import Answer, Hunt, looks
from sweep.search.machines import Machines
from sweep.search.points import Points, place
from sweep.search.rounds import Rounds
from sweep.stats import interval
from sweep.stats.arrange import AXES, text

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("policy", "trace", "settings", "target")),
        *((name, pa.float64()) for name in ("capacity", "low", "high")),
        ("status", pa.string()),
        *((name, pa.float64()) for name in ("machines", "machines_low", "machines_high")),
        ("unit", pa.string()),
        *((name, pa.int64()) for name in ("seeds", "cells")),
        *((name, pa.float64()) for name in ("value", "value_low", "value_high")),
        ("is_sure", pa.bool_()),
        ("note", pa.string()),
        # what was looked at: the metric's mean at each number of machines, and half its interval
        (
            "probes",
            pa.list_(
                pa.struct([(n, pa.float64()) for n in ("capacity", "machines", "mean", "half")])
            ),
        ),
    ]
)


@dataclass
class _Case:
    """A policy on a trace, and the hunt for what it needs there."""

    cell: Cell
    machines: Machines
    hunt: Hunt
    stopped: str = ""  # why it can't go on


class Targets:
    """All hunts of a request.

    Parameters
    ----------
    rounds : Rounds
        Runs what they ask for.
    """

    def __init__(self, rounds: Rounds) -> None:
        request = rounds.request
        assert isinstance(request.goal, Target)
        self._rounds, self._goal = rounds, request.goal
        self._seeds: tuple[int, ...] = request.axes["seed"]
        self._points = Points(request)
        self._cases = self._all_cases(request)

    def first(self) -> list[Cell]:
        """Return the cells of the first round."""
        return [
            cell
            for case in self._cases
            for n, k in case.hunt.wants()
            for cell in self._at(case, n, k)
        ]

    def settle(self) -> None:
        """Run rounds until every hunt is over."""
        while True:
            wanted = [
                (case, n, k)
                for case in self._cases
                if not case.stopped
                for n, k in self._wants(case)
            ]
            if not wanted:
                return
            cells = [cell for case, n, k in wanted for cell in self._at(case, n, k)]
            hunts = len({id(case) for case, _, _ in wanted})
            self._rounds.run(cells, f"{self._goal.words} for {count(hunts, 'policies')}")
            for case, n, k in wanted:
                self._take_in(case, n, self._at(case, n, k))

    def table(self) -> pa.Table:
        """Return ``targets.parquet``: a row a policy and trace."""
        return pa.Table.from_pylist([self._row(case) for case in self._cases], SCHEMA)

    def order(self, cell: Cell) -> Any:
        """Give a cell's place among the rows: by policy, trace and settings, capacity, seed."""
        at = [place(case.cell) for case in self._cases].index(place(cell))
        return at, cell.capacity, self._seeds.index(cell.seed)

    def _all_cases(self, request: Request) -> list[_Case]:
        """Make a hunt for each policy and world of the grid."""
        cases, known = [], dict[str, Machines]()
        inputs = self._rounds.inputs
        for cell in self._points.prototypes():
            name = inputs.id_of(cell)
            world = canonical([name, cell.cluster])
            if world not in known:
                known[world] = Machines(inputs.workload(name), cell.cluster)
            machines = known[world]
            first, last = machines.within(self._goal.low, self._goal.high)
            if why := machines.why_not(last):
                raise InputError(f"the high end of capacity's interval: {why}", rule="range")
            hunt = Hunt(
                *(first, last),
                *(self._goal.bound, self._goal.is_most),
                looks(len(self._seeds)),
                self._apart,
            )
            cases.append(_Case(cell, machines, hunt))
        return cases

    def _apart(self, n: int) -> int:
        tolerance = 0.01 if self._goal.tolerance is None else self._goal.tolerance
        return max(1, int(tolerance * n))

    def _wants(self, case: _Case) -> list[tuple[int, int]]:
        """Ask a hunt what it wants, less what is too small for the workload."""
        while True:
            wanted = case.hunt.wants()
            tried = [
                (n, k, "" if n in case.hunt.probes else case.machines.why_not(n)) for n, k in wanted
            ]
            for n, _, why in tried:
                if why:
                    case.hunt.refuse(n, why)
            fits = [(n, k) for n, k, why in tried if not why]
            if fits or not wanted:
                return fits

    def _at(self, case: _Case, n: int, n_seeds: int) -> list[Cell]:
        return self._points.cells(case.cell, case.machines.capacity(n), self._seeds[:n_seeds])

    def _take_in(self, case: _Case, n: int, cells: Sequence[Cell]) -> None:
        if any(self._rounds.failed(cell) for cell in cells):
            case.stopped = f"cells failed at {text(cells[0].capacity)}"
            return
        values = [self._rounds.metric(cell, self._goal.metric) for cell in cells]
        if np.isnan(values).any():
            known = [name for name in self._rounds.names(cells[0]) if name.startswith("jct")]
            raise InputError(
                f"target.metric={self._goal.metric} has no value for "
                f"{cells[0].labels['policy']} on {cells[0].labels['trace']} at capacity "
                f"{text(cells[0].capacity)}; {', '.join(known) or 'no metric'} has",
                rule="metric",
            )
        case.hunt.tell(n, values)

    def _row(self, case: _Case) -> dict[str, Any]:
        found = case.hunt.answer()
        if case.stopped:
            found = dataclasses.replace(found, status="unsure", at=None, high=None, is_sure=False)
        capacity, machines = case.machines.capacity, case.machines.count
        settings = {key: value for key, value in case.cell.labels.items() if key not in AXES}
        said = (f"{key}={text(value)}" for key, value in settings.items() if value is not None)
        probes = {n: probe for n, probe in sorted(case.hunt.probes.items()) if probe.values}
        at = _shown(found, case.hunt)
        values = probes[at].values if at in probes else []
        value = interval(values) if values else (None, None, None)
        ends = {
            "capacity": found.at,
            "low": found.low,
            "high": found.high if found.high is not None else None,
        }
        of_machines = {"machines": found.at, "machines_low": found.low, "machines_high": found.high}
        return {
            "policy": case.cell.labels["policy"],
            "trace": case.cell.labels["trace"],
            "settings": ", ".join(said),
            "target": self._goal.words,
            **{name: None if n is None else capacity(n) for name, n in ends.items()},
            "status": found.status,
            **{name: None if n is None else machines(n) for name, n in of_machines.items()},
            "unit": "slots" if case.cell.cluster["shape"] == "slots" else "machines",
            "seeds": max((len(probe.values) for probe in probes.values()), default=0),
            "cells": sum(len(probe.values) for probe in probes.values()),
            **dict(zip(("value", "value_low", "value_high"), map(_finite, value), strict=True)),
            "is_sure": found.is_sure and not case.stopped,
            "note": "; ".join(self._notes(case, found)),
            "probes": [
                {"capacity": capacity(n), "machines": machines(n), **_mean_half(probe.values)}
                for n, probe in probes.items()
            ],
        }

    def _notes(self, case: _Case, found: Answer) -> list[str]:
        """Say what else there is to know."""
        notes = []
        if case.stopped:
            notes.append(case.stopped)
        elif not found.is_sure:
            notes.append(f"{count(len(self._seeds), 'seeds')} (seeds_max) were not enough")
        probes, machines = case.hunt.probes, case.machines.count
        missing = [
            n
            for n, p in probes.items()
            if p.side == "missed" and found.at is not None and n > found.at
        ]
        if missing:
            notes.append(
                f"not monotone: {text(machines(max(missing)))} miss it, though "
                f"{text(machines(found.at or 0))} meet it"
            )
        elif found.worse:
            less, more = found.worse[0]
            notes.append(
                f"not monotone: {probes[more].mean:.4g} at {text(machines(more))}, after "
                f"{probes[less].mean:.4g} at {text(machines(less))}"
            )
        small = [n for n, probe in probes.items() if probe.why]
        if small:
            notes.append(f"{text(machines(max(small)))} are too few for its jobs")
        return notes


def _shown(found: Answer, hunt: Hunt) -> int:
    """Return the number of machines whose metric is worth saying."""
    if found.at is not None:
        return found.at
    return hunt.high


def _mean_half(values: Sequence[float]) -> Mapping[str, float | None]:
    mean, low, _ = interval(values)
    return {"mean": _finite(mean), "half": _finite(mean - low)}


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
