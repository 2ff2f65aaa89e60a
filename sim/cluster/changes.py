"""Machines that come and go during a run: capacity on demand, spot machines that are reclaimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sim.base.errors import InputError, unknown
from sim.base.parameters import NotNegative, check, check_keys
from sim.cluster.cluster import Cluster
from sim.cluster.faults import Outages

_KEYS = ("at_s", "machines", "class", "known")


def with_changes(
    cluster: Cluster, rows: Sequence[Mapping[str, Any]], name: str = "changes"
) -> Cluster:
    """Return a cluster to which machines come and from which they go, by outages of its own.

    Machines that come are first those that went, the last first, then further ones like the first
    of their class. Of those that go the last in the cluster goes first; what runs there stops, and
    waits again.

    Parameters
    ----------
    cluster : Cluster
        As it is at the first submission.
    rows : sequence of mapping
        ``at_s``: when, s after the first submission, ascending. ``machines``: how many come, or, if
        negative, go. ``class``: of which class; without it of any. ``known``: true if known
        beforehand, as of `sim.cluster.faults.Outages`: nothing that is expected to run longer
        starts on a machine that goes, and plans count with those that come; false by default, as of
        spot machines.

    Raises
    ------
    InputError
        If a row is invalid, more machines go than there are, or they are slots of a pool.
    """
    checked = parse_changes(rows, name)
    if not checked:
        return cluster
    if cluster.unit:
        raise InputError(
            f"{name}: slots of a pool neither come nor go; simulate machines of one slot each "
            "(cluster=machines cluster.shape={cpu:1})",
            rule="changes",
        )
    grown, windows = cluster, []
    left: list[tuple[int, float, bool]] = []  # machine, since when, and if that was known
    absent: set[int] = set()
    for i, (at_s, n, kind, known) in enumerate(checked):
        rows_of_kind = _rows_of(grown, kind, f"{name}[{i}]")
        if n < 0:
            present = [m for m in rows_of_kind if m not in absent]
            if len(present) < -n:
                raise InputError(
                    f"{name}[{i}] takes {-n} machines, and {len(present)} are in the cluster then",
                    rule="changes",
                )
            for machine in present[n:][::-1]:
                left.append((machine, at_s, known))
                absent.add(machine)
            continue
        back = [entry for entry in left[::-1] if entry[0] in rows_of_kind][:n]
        for entry in back:
            left.remove(entry)
            absent.discard(entry[0])
            windows.append((entry[0], entry[1], at_s, entry[2]))
        n_new, first = n - len(back), grown.n_machines
        if n_new:
            grown = grown.with_copies(rows_of_kind[0], n_new)
            windows += [(m, 0.0, at_s, known) for m in range(first, first + n_new) if at_s > 0]
    windows += [(machine, since_s, np.inf, known) for machine, since_s, known in left]
    absences = [window for window in windows if window[2] > window[1]]
    if not absences:
        return grown
    return grown.with_outages(
        cluster.outages.joined(Outages.from_columns(*zip(*absences, strict=True)))
    )


def parse_changes(
    rows: Sequence[Mapping[str, Any]], name: str
) -> list[tuple[float, int, str | None, bool]]:
    """Return time, machines, class and whether it is known of each row, checked."""
    checked = [_parse(row, f"{name}[{i}]") for i, row in enumerate(rows)]
    for i in range(1, len(checked)):
        if checked[i][0] < checked[i - 1][0]:
            raise InputError(
                f"{name}[{i}].at_s is {checked[i][0]:g}, before that of the row above; rows are by "
                "time",
                rule="changes",
            )
    return checked


def _rows_of(cluster: Cluster, kind: str | None, name: str) -> list[int]:
    if kind is None:
        return list(range(cluster.n_machines))
    if kind not in cluster.classes:
        names = sorted({text for text in cluster.classes if text})
        if not names:
            raise InputError(f"{name}: machines have no classes; leave class out", rule="changes")
        raise InputError(f"{name}: {unknown('class', kind, names)}", rule="changes")
    codes = [code for code, text in enumerate(cluster.classes) if text == kind]
    return np.flatnonzero(np.isin(cluster.machine_class, codes)).tolist()


def _parse(row: Any, name: str) -> tuple[float, int, str | None, bool]:
    check_keys(name, row, _KEYS, "changes")
    for key in ("at_s", "machines"):
        if key not in row:
            raise InputError(f"{name} names no {key}", rule="changes")
    check(f"{name}.at_s", row["at_s"], NotNegative)
    check(f"{name}.machines", row["machines"], int)
    check(f"{name}.class", row.get("class"), str | None)
    check(f"{name}.known", row.get("known", False), bool)
    if row["machines"] == 0:
        raise InputError(f"{name}.machines is 0: so many come, or, if negative, go", rule="changes")
    return float(row["at_s"]), row["machines"], row.get("class"), row.get("known", False)
