"""Advance reservations: machines that only some jobs may use for a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError, did_you_mean
from sim.base.parameters import NotNegative, check
from sim.cluster.faults import parse_window
from sim.workload.schema import RESERVATION
from sim.workload.tables import names, values

if TYPE_CHECKING:
    from sim.workload.columns import Columns

MAX_RESERVATIONS = 63
"""Names are bits of an int64."""
_ENTITLED = ("users", "accounts")
_KEYS = ("name", "announced_s", *_ENTITLED)


@dataclass(frozen=True, eq=False)
class Reservations:
    """K windows of machines, each of one of N reservations.

    Use `Reservations.parse`.

    Attributes
    ----------
    names : tuple of str
        Names, for which ``jobs.reservation`` may ask.
    users, accounts : tuple of frozenset of str
        Of each name, those whose jobs may use it without asking, beside all other machines.
    code : (K,) int32
        Index into `names`.
    machine : (K,) int32
        The machine.
    from_s, until_s : (K,) float64
        Begin and end, s after the first submission; inf for no end.
    known_s : (K,) float64
        Time from which on it closes the machine to jobs that would run into it, s after the first
        submission.
    """

    names: tuple[str, ...]
    users: tuple[frozenset[str], ...]
    accounts: tuple[frozenset[str], ...]
    code: I4
    machine: I4
    from_s: F8
    until_s: F8
    known_s: F8

    @classmethod
    def parse(cls, rows: Sequence[Mapping[str, Any]], name: str = "reservations") -> Reservations:
        """Make reservations from rows; several rows may have one name.

        Parameters
        ----------
        rows : sequence of mapping
            ``{"name": "course", "machine": [0, 1], "from_s": 3600, "until_s": 7200, "users":
            ["ann"]}``. ``machine`` is one or several; without ``until_s`` there is no end;
            ``users``, ``accounts`` and ``announced_s``, 0 by default and at most ``from_s``, are
            optional: nobody knows of the window before it is announced.
        name : str
            Name of the rows in messages.

        Raises
        ------
        InputError
            If a key is unknown or missing, or a value out of its range.
        """
        columns: list[tuple[int, int, float, float, float]] = []
        entitled: dict[str, dict[str, frozenset[str]]] = {}
        for i, row in enumerate(rows):
            machines, from_s, until_s = parse_window(row, f"{name}[{i}]", _KEYS)
            check(f"{name}[{i}].name", row.get("name"), str)
            if not row["name"]:
                raise InputError(f"{name}[{i}].name is empty; give it one that jobs can ask for")
            if not until_s > from_s:
                raise InputError(
                    f"{name}[{i}]: {from_s:g} to {until_s:g} s is no time", rule="range"
                )
            known_s = row.get("announced_s", 0.0)
            check(f"{name}[{i}].announced_s", known_s, NotNegative)
            if known_s > from_s:
                raise InputError(
                    f"{name}[{i}]: announced at {known_s:g} s, it begins at {from_s:g} s; announce "
                    "it by then",
                    rule="range",
                )
            if min(machines, default=0) < 0:
                raise InputError(f"{name}[{i}].machine must be 0 or more", rule="range")
            allowed = entitled.setdefault(row["name"], dict.fromkeys(_ENTITLED, frozenset()))
            for key in _ENTITLED:
                check(f"{name}[{i}].{key}", row.get(key), list[str] | None)
                allowed[key] |= frozenset(row.get(key) or ())
            code = [*entitled].index(row["name"])
            columns += [(code, machine, from_s, until_s, known_s) for machine in machines]
        if len(entitled) > MAX_RESERVATIONS:
            raise InputError(f"{len(entitled)} names of reservations; at most {MAX_RESERVATIONS}")
        codes, machine, begin, end, known = zip(*columns, strict=True) if columns else ((),) * 5
        return cls(
            tuple(entitled),
            tuple(entitled[key]["users"] for key in entitled),
            tuple(entitled[key]["accounts"] for key in entitled),
            np.array(codes, np.int32),
            np.array(machine, np.int32),
            np.array(begin, np.float64),
            np.array(end, np.float64),
            np.array(known, np.float64),
        )

    def __len__(self) -> int:
        return len(self.code)

    def delayed(self, by_s: float) -> Reservations:
        """Return the same reservations, each `by_s` later."""
        return replace(
            self,
            from_s=self.from_s + by_s,
            until_s=self.until_s + by_s,
            known_s=self.known_s + by_s,
        )

    def over_s(self) -> F8:
        """Return the last end of each reservation, (N,) s."""
        last = np.zeros(len(self.names))
        np.maximum.at(last, self.code, self.until_s)
        return last


NO_RESERVATIONS = Reservations.parse([])


def jobs_in(columns: Columns, reservations: Reservations) -> tuple[I4, I8]:
    """Return the reservation that each job asks for, -1 for none, and all it may use, as bits.

    Without reservations nobody asks for one.

    Raises
    ------
    InputError
        If a job asks for one that does not exist.
    """
    n_jobs = len(columns.job_submit)
    own, may_use = np.full(n_jobs, -1, np.int32), np.zeros(n_jobs, np.int64)
    jobs = columns.features.jobs
    if not reservations.names:
        return own, may_use
    if RESERVATION.name in jobs.column_names:
        texts = names(jobs, RESERVATION.name)
        code = values(jobs, RESERVATION.name)
        for text in dict.fromkeys(texts[i] for i in np.unique(code)):
            if text and text not in reservations.names:
                raise InputError(
                    f"a job asks for reservation {text!r}, and the cluster has none of that name; "
                    f"{did_you_mean(text, reservations.names)}its reservations: "
                    f"{', '.join(reservations.names) or 'none'} (cluster.reservations)",
                    rule="no such reservation",
                )
        index = [reservations.names.index(text) if text else -1 for text in texts]
        own = np.array(index, np.int32)[code]
    may_use |= np.where(own >= 0, np.left_shift(1, np.maximum(own, 0).astype(np.int64)), 0)
    for column, entitled in (("user", reservations.users), ("account", reservations.accounts)):
        if column in jobs.column_names:
            texts = names(jobs, column)
            bits = [
                sum(1 << r for r, known in enumerate(entitled) if text in known) for text in texts
            ]
            may_use |= np.array(bits, np.int64)[values(jobs, column)]
    return own, may_use
