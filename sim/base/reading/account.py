"""Account of a log: its amounts of work, by what became of them.

For each kind of amount (`sim.base.losses.KINDS`, and ``<resource>_s`` for other resources)

    log = workload + left out + changed

where *left out* is the work of rows that became no job, and *changed* what a reader took away from
the rows that did, by rounding or by a default; it is negative where these add work. A row whose
width or duration can't be read has no amount; such rows are counted (``unknown``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, Mask
from sim.base.losses import KINDS, WORK
from sim.base.reading.bad_rows import BadRows
from sim.base.reading.rules import count_rule

MAX_CENSORED: Final = 0.02
"""Share of a log's jobs, tasks or work from which on a user is told that they ran on."""


class Account:
    """Amounts of the rows of a log; a reader says which rows become no job, and what it changes.

    Parameters
    ----------
    amounts : mapping of str to (N,) float64
        Amounts of each row of the log by kind; NaN where they can't be read. ``jobs`` defaults to 1
        a row.

    Attributes
    ----------
    warnings : list of str
        What else a user must know of the log before trusting a result on it, a sentence each: a
        clock that jumps, licences that jobs wait for.
    """

    def __init__(self, amounts: Mapping[str, F8]) -> None:
        n_rows = len(next(iter(amounts.values()), ()))
        self._amounts = {"jobs": np.ones(n_rows), **amounts}
        self._log = {kind: _total(column) for kind, column in self._amounts.items()}
        self._left_out: dict[str, dict[str, float]] = {kind: {} for kind in self._log}
        self._changed: dict[str, dict[str, float]] = {kind: {} for kind in self._log}
        self._unknown: dict[str, int] = dict.fromkeys(self._log, 0)
        self._by_option: set[str] = set()
        self._wasted: set[str] = set()
        self.warnings: list[str] = []

    def leave_out(
        self,
        rule: str,
        rows: Mask | NDArray[Any],
        *,
        by_option: bool = False,
        wasted: bool = False,
    ) -> None:
        """Enter rows that become no job.

        `by_option`: an option of the user's says so. `wasted`: the cluster did that work in vain
        (an attempt that failed or was preempted, and ran again), so the job does not need it.
        """
        part = {kind: column[rows] for kind, column in self._amounts.items()}
        self._enter(rule, part)
        if by_option:
            self._by_option.add(rule)
        if wasted:
            self._wasted.add(rule)

    def keep(
        self,
        rules: Mapping[str, Mask],
        dropped: dict[str, int],
        by_option: Collection[str] = (),
        wasted: Collection[str] = (),
    ) -> Mask:
        """Return the rows that break no rule; count and enter each other row under the first one.

        `by_option` and `wasted` are the rules of which `leave_out` says so.
        """
        valid = np.ones(len(self._amounts["jobs"]), dtype=bool)
        for rule, broken in rules.items():
            rows = valid & broken
            if rows.any():
                count_rule(dropped, rule, rows)
                self.leave_out(rule, rows, by_option=rule in by_option, wasted=rule in wasted)
                valid &= ~broken
        return valid

    def add_bad(self, rule: str, amounts: Mapping[str, F8], n_rows: int) -> None:
        """Enter bad rows, which are in no other amount; what is not in `amounts` is not known."""
        part = {"jobs": np.ones(n_rows), **amounts}
        for kind in self._log:
            column = part.setdefault(kind, np.full(n_rows, np.nan))
            self._log[kind] += _total(column)
        self._enter(rule, {kind: part[kind] for kind in self._log})

    def add_bad_rows(
        self,
        bad: BadRows,
        amounts: Callable[[dict[str, Any]], Mapping[str, F8]],
        *,
        jobs: float = 1.0,
    ) -> None:
        """Enter the bad rows of a file; `amounts` has those of a block of readable columns.

        A row of which nothing can be read counts as `jobs`.
        """
        for rule, n_bad in bad.items():
            blocks = [(columns, n) for other, columns, n in bad.blocks() if other == rule]
            for columns, n in blocks:
                self.add_bad(rule, amounts(columns), n)
            n_rest = n_bad - sum(n for _, n in blocks)
            self.add_bad(rule, {"jobs": np.full(n_rest, jobs)}, n_rest)

    def add(self, rule: str, *, by_option: bool = False, **amounts: float) -> None:
        """Enter amounts of the log that are left out and of no row, such as dependencies."""
        for kind, amount in amounts.items():
            self._open(kind)
            self._log[kind] += amount
            if amount:
                by_rule = self._left_out[kind]
                by_rule[rule] = by_rule.get(rule, 0.0) + amount
        if by_option:
            self._by_option.add(rule)

    def mark_wasted(self, rule: str) -> None:
        """Say that the cluster did the work that a rule leaves out in vain; see `leave_out`."""
        self._wasted.add(rule)

    def add_unknown(self, n: int, *kinds: str) -> None:
        """Enter `n` records of the log that are left out, of unknown amounts of these kinds."""
        for kind in kinds:
            self._open(kind)
            self._unknown[kind] += n

    def count(self, **amounts: float) -> None:
        """Enter amounts of the log that are of no row and become part of the workload."""
        for kind, amount in amounts.items():
            self._open(kind)
            self._log[kind] += amount

    def leave_out_of(self, rule: str, **amounts: float) -> None:
        """Enter amounts that become no job, of rows that the log's amounts have already."""
        for kind, amount in amounts.items():
            if amount:
                by_rule = self._left_out[kind]
                by_rule[rule] = by_rule.get(rule, 0.0) + float(amount)

    def merge(self, other: Account) -> None:
        """Add the account of another part of the log."""
        for kind in other._log:
            self._open(kind)
            self._log[kind] += other._log[kind]
            self._unknown[kind] += other._unknown[kind]
            for mine, more in (
                (self._left_out[kind], other._left_out[kind]),
                (self._changed[kind], other._changed[kind]),
            ):
                for rule, amount in more.items():
                    mine[rule] = mine.get(rule, 0.0) + amount
        self._by_option |= other._by_option
        self._wasted |= other._wasted
        self.warnings += other.warnings

    def change(self, rule: str, **amounts: float) -> None:
        """Enter amounts that the reader takes away from rows that become jobs; negative: adds."""
        for kind, amount in amounts.items():
            self._open(kind)
            if amount:
                by_rule = self._changed[kind]
                by_rule[rule] = by_rule.get(rule, 0.0) + float(amount)

    def warn_of_censored(self, rule: str) -> None:
        """Warn if what is left out as still running when the log ended is much of a kind."""
        kinds = [kind for kind in ("jobs", "tasks", *WORK) if self._log.get(kind)]
        left_out = {kind: self._left_out[kind].get(rule, 0.0) for kind in kinds}
        counted = next((kind for kind in kinds if left_out[kind]), "")
        if any(left_out[kind] > MAX_CENSORED * self._log[kind] for kind in kinds):
            self.warnings.append(
                f"{left_out[counted]:,.0f} of {self._log[counted]:,.0f} {KINDS[counted]} still ran "
                "when the log ended (censored), and are left out: long ones are missing, and the "
                "load of its last part is too low"
            )

    def entries(self, workload: Mapping[str, float]) -> dict[str, dict[str, Any]]:
        """Return the account by kind, for the amounts of the workload that was made of the log.

        Each kind has ``log``, ``workload``, ``left_out`` and ``changed``; if it is not 0,
        ``by_option`` and ``wasted`` (the parts of ``left_out`` that options say, and that the
        cluster did in vain) and ``unknown`` (the number of rows left out whose amount is not
        known); and ``left_out_by`` and ``changed_by``, by rule.
        """
        kinds = [*KINDS, *(kind for kind in self._log if kind not in KINDS)]
        return {kind: self._entry(kind, workload) for kind in kinds if kind in self._log}

    def _entry(self, kind: str, workload: Mapping[str, float]) -> dict[str, Any]:
        left_out, changed = self._left_out[kind], self._changed[kind]
        entry: dict[str, Any] = {
            "log": self._log[kind],
            "workload": float(workload.get(kind, 0.0)),
            "left_out": sum(left_out.values(), 0.0),
            "changed": sum(changed.values(), 0.0),
        }
        by_option, wasted = (
            sum((left_out.get(rule, 0.0) for rule in sorted(rules)), 0.0)
            for rules in (self._by_option, self._wasted)
        )
        extra = {
            "by_option": by_option,
            "wasted": wasted,
            "unknown": self._unknown[kind],
            "left_out_by": dict(left_out),
            "changed_by": dict(changed),
        }
        return entry | {key: value for key, value in extra.items() if value}

    def _open(self, kind: str) -> None:
        if kind not in self._log:
            self._log[kind] = 0.0
            self._left_out[kind], self._changed[kind] = {}, {}
            self._unknown[kind] = 0

    def _enter(self, rule: str, part: Mapping[str, F8]) -> None:
        for kind, column in part.items():
            by_rule = self._left_out[kind]
            amount = _total(column)
            if len(column):
                by_rule[rule] = by_rule.get(rule, 0.0) + amount
            self._unknown[kind] += int(np.count_nonzero(np.isnan(column)))


def _total(column: F8) -> float:
    return float(np.nansum(column)) if len(column) else 0.0
