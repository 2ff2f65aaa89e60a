"""Caps: most running or submitted jobs, or most of a resource, of each user, account, QOS or array.

A cap is a row of ``cluster.limits``. Jobs with the same values of its keys share a counter. The
groups of a workload's jobs are in `sim.cluster.cap_groups`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sim.base.errors import InputError, unknown
from sim.base.parameters import NotNegative, check, check_keys
from sim.workload.schema import LICENSE_PREFIX

KEYS = ("user", "account", "qos", "queue", "partition", "array")
"""Columns of ``jobs`` by which caps may count."""
RUNNING, SUBMITTED, NODES = "running_jobs", "submitted_jobs", "nodes"
JOBS = (RUNNING, SUBMITTED, NODES)
"""Counters of jobs, and of their nodes; all others are of licences or resources."""
MINUTES = "_minutes"
"""Suffix of the caps of a resource × the time left to the limits of running jobs."""
OTHER = "*"
"""Value of a key that stands for all that a table does not name."""
_ROW = ("name", "of", "at_most", "changes", "by", "where", "spares", "blocks")

Number = float | Mapping[str, Any]


@dataclass(frozen=True)
class Cap:
    """A cap, and the jobs that share its counters; use `Cap.parse`.

    Attributes
    ----------
    counted : str
        ``running_jobs``: jobs from their first start to their end; ``submitted_jobs``: from
        submission to end, and a job beyond them is rejected; ``nodes``: nodes of running jobs, each
        with all of its own (``n_nodes``) from its first start to its end; ``license_<name>``:
        licences, of which each running job likewise holds what this column of ``jobs`` says; a
        resource: its sum over running tasks and held slots; a resource and ``_minutes``: the sum
        over running jobs of the resource × the minutes left to their limits (``requested_s``),
        which go down every 300 s of the run's clock, as with Slurm's GrpTRESRunMins and default
        PriorityCalcPeriod.
    at_most : float or mapping
        The cap, in jobs or nodes, in the resource's unit, or its unit × min. A table has a number
        for each value of the first key, or again a table by the next key; ``*`` stands for all
        others.
        Values without a number have no cap.
    by : tuple of str
        The keys (`KEYS`), with a counter for each combination of values; empty: a single counter
        of all jobs. A job whose value is "" counts in none. ``account`` counts for each account
        all jobs of the accounts below it, too.
    where : mapping of str to str
        Values of keys that a job must have, to count.
    spares : mapping of str to tuple of str
        Values of keys of jobs that count, and may exceed the cap: those with any of them.
    blocks : bool
        True: a job beyond the cap blocks those behind it in its queue, as it would for room. False:
        it is passed over.
    name : str
        Name in messages.
    changes : tuple of (float, float or mapping)
        Times, s after the first submission, ascending, and what `at_most` is from each on. What
        runs goes on, and counts, when a cap falls below it.
    """

    counted: str
    at_most: Number
    by: tuple[str, ...] = ()
    where: Mapping[str, str] | None = None
    blocks: bool = False
    name: str = "a cap"
    changes: tuple[tuple[float, Number], ...] = ()
    spares: Mapping[str, tuple[str, ...]] | None = None

    @classmethod
    def parse(cls, row: Any, name: str = "limits[0]") -> Cap:
        """Build a cap from a mapping of its attributes; ``of`` and ``at_most`` are required.

        Raises
        ------
        InputError
            If a key is unknown or missing, or a value out of its range.
        """
        check_keys(name, row, _ROW, "limits")
        for key in ("of", "at_most"):
            if row.get(key) is None:
                raise InputError(
                    f"{name} has no {key!r}; for example {{of: running_jobs, by: [user], "
                    "at_most: 8}",
                    rule="limits",
                )
        label = f"{name} ({row['name']})" if row.get("name") else name
        by = row.get("by") or ()
        by = (by,) if isinstance(by, str) else by
        where = row.get("where") or {}
        check(f"{label}: of", row["of"], str)
        check(f"{label}: blocks", row.get("blocks", False), bool)
        check(f"{label}: where", where, Mapping[str, str])
        spares = row.get("spares") or {}
        check(f"{label}: spares", spares, Mapping[str, str | list[str]])
        spares = {k: (v,) if isinstance(v, str) else tuple(v) for k, v in spares.items()}
        if not isinstance(by, Sequence) or len(set(by)) < len(by):
            raise InputError(f"{label}: by must be a list of keys, not {by!r}", rule="limits")
        for key in (*by, *where, *spares):
            if key not in KEYS:
                raise InputError(f"{label}: {unknown('key', str(key), KEYS)}", rule="limits")
        _check_numbers(f"{label}: at_most", row["of"], row["at_most"], tuple(by))
        blocks = bool(row.get("blocks", False))
        if blocks and row["of"] == SUBMITTED:
            raise InputError(
                f"{label}: a job beyond {SUBMITTED} is rejected, so that it can't block; leave "
                "blocks out",
                rule="limits",
            )
        at_most = _with_texts(row["at_most"])
        changes = _parse_changes(f"{label}: changes", row.get("changes") or (), row["of"], by)
        return cls(row["of"], at_most, tuple(by), dict(where), blocks, label, changes, spares)

    def delayed(self, by_s: float) -> Cap:
        """Return the same cap, whose changes are `by_s` later."""
        return replace(self, changes=tuple((at_s + by_s, n) for at_s, n in self.changes))

    def number_of(self, key: Sequence[str], at_most: Number | None = None) -> float | None:
        """Return the cap of a combination of values of its keys, None for none.

        That of `at_most` if it is given, instead of the first one.
        """
        number: Any = self.at_most if at_most is None else at_most
        for value in key:
            if isinstance(number, Mapping):
                number = number.get(value, number.get(OTHER))
        return None if number is None else float(number)

    def may_count(self, values: Mapping[str, Collection[str]]) -> bool:
        """Tell whether a job with some of these values, by key, could be under the cap.

        Keys without an entry may have any value.
        """
        chosen = self.where or {}
        if any(value not in values.get(key, (value,)) for key, value in chosen.items()):
            return False
        tables: list[Any] = [self.at_most]
        for key in self.by:
            tables = [entry for table in tables for entry in _entries(table, values.get(key))]
        return any(entry is not None for entry in tables)

    @property
    def resource(self) -> str | None:
        """The resource that it counts, None for jobs, nodes and licences."""
        is_resource = self.counted not in JOBS and not is_licence(self.counted)
        return self.counted.removesuffix(MINUTES) if is_resource else None


def is_licence(counted: str) -> bool:
    """Tell whether a counter is one of licences."""
    return counted.startswith(LICENSE_PREFIX)


def parse_accounts(accounts: Mapping[str, str] | None) -> dict[str, str]:
    """Return the account above each account.

    Raises
    ------
    InputError
        If an account is above itself.
    """
    check("accounts", accounts, Mapping[str, str] | None)
    above = {str(child): str(parent) for child, parent in (accounts or {}).items()}
    for account in above:
        path = [account]
        while path[-1] in above:
            path.append(above[path[-1]])
            if path[-1] in path[:-1]:
                raise InputError(
                    f"accounts: {' is below '.join(path)}, in a circle; give each account one "
                    "above it, up to one that has none",
                    rule="limits",
                )
    return above


def accounts_above(account: str, above: Mapping[str, str]) -> list[str]:
    """Return an account and those above it."""
    path = [account]
    while path[-1] in above:
        path.append(above[path[-1]])
    return path


def _entries(at_most: Any, values: Collection[str] | None) -> list[Any]:
    """Return what a table has for these values of a key, None for any."""
    if not isinstance(at_most, Mapping):
        return [at_most] if values is None or len(values) else []
    if values is None:
        return [*at_most.values()]
    return [at_most.get(value, at_most.get(OTHER)) for value in values]


def _with_texts(at_most: Any) -> Any:
    """Return a number or table whose keys are strings, as YAML may read digits as numbers."""
    if not isinstance(at_most, Mapping):
        return at_most
    return {str(value): _with_texts(table) for value, table in at_most.items()}


def _parse_changes(
    name: str, rows: Any, counted: str, by: Sequence[str]
) -> tuple[tuple[float, Number], ...]:
    check(name, rows, Sequence)
    changes: list[tuple[float, Number]] = []
    for i, row in enumerate(rows):
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 2:
            raise InputError(
                f"{name}[{i}] must be [seconds, number], such as [3600, 40], not {row!r}",
                rule="limits",
            )
        check(f"{name}[{i}][0]", row[0], NotNegative)
        _check_numbers(f"{name}[{i}][1]", counted, row[1], tuple(by))
        if changes and row[0] <= changes[-1][0]:
            raise InputError(
                f"{name}[{i}] is at {row[0]:g} s, and the row above at {changes[-1][0]:g}: changes "
                "are by time",
                rule="limits",
            )
        changes.append((float(row[0]), _with_texts(row[1])))
    return tuple(changes)


def _check_numbers(name: str, counted: str, at_most: Any, by: tuple[str, ...]) -> None:
    if isinstance(at_most, Mapping):
        if not by:
            raise InputError(
                f"{name} must be a number, as the row counts by no further key, not {at_most!r}",
                rule="limits",
            )
        for value, table in at_most.items():
            _check_numbers(f"{name}[{value}]", counted, table, by[1:])
        return
    check(name, at_most, NotNegative)
    unit = NODES if counted == NODES else "licences" if is_licence(counted) else "jobs"
    is_whole = counted in JOBS or is_licence(counted)
    if is_whole and not math.isclose(at_most, round(at_most)):
        raise InputError(f"{name} must be a whole number of {unit}, not {at_most!r}", rule="limits")
