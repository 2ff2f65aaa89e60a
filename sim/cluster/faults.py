"""Faults of the cluster, drawn or listed before the run: machine outages, drains, slow periods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I1, I4, Mask
from sim.base.errors import InputError
from sim.base.parameters import NotNegative, Positive, check, check_keys, checked
from sim.base.random import stream

LOST, DRAINED, KNOWN_LOST, KNOWN_DRAINED = 1, 2, 4, 8
"""Kinds of outages, as bits: machines that are lost, or drained; the last two known beforehand."""


@dataclass(frozen=True, eq=False)
class Outages:
    """K outages of machines.

    Use `Outages.from_columns` or `draw_outages`.

    Attributes
    ----------
    machine : (K,) int32
        The lost machine.
    down_s, up_s : (K,) float64
        Begin and end of the outage, s after the first submission; inf for no end.
    kind : (K,) int8
        `LOST`: what runs there stops, and waits again. `DRAINED`: it runs to its end, and nothing
        else starts there. `KNOWN_LOST` and `KNOWN_DRAINED`: the same, known beforehand.
    """

    machine: I4
    down_s: F8
    up_s: F8
    kind: I1

    @classmethod
    def from_columns(
        cls,
        machine: ArrayLike,
        down_s: ArrayLike,
        up_s: ArrayLike,
        known: ArrayLike = False,
        drain: ArrayLike = False,
    ) -> Outages:
        """Make outages from columns, and check them.

        Parameters
        ----------
        machine, down_s, up_s : (K,) array_like
            See the class.
        known : (K,) array_like of bool, optional
            Known beforehand, as maintenance is: a job that is expected to run into the outage
            does not start on the machine, and plans count with its begin and end.
        drain : (K,) array_like of bool, optional
            The machine only takes no new tasks, as a drained node of Slurm, or a cordoned one of
            Kubernetes.

        Raises
        ------
        InputError
            If a machine or time is negative, an outage ends before it begins, or overlaps another
            of its machine and kind.
        """
        machines = np.atleast_1d(np.asarray(machine, np.int32))
        is_known, is_drain = (np.asarray(flag, np.bool_) for flag in (known, drain))
        for name, flag in (("known", is_known), ("drain", is_drain)):
            if flag.shape not in ((), machines.shape):
                raise InputError(f"outages of {len(machines)} machines and {len(flag)} of {name}")
        bit = np.where(is_drain, DRAINED, LOST) << (2 * is_known.astype(int))
        outages = cls(
            machines,
            np.atleast_1d(np.asarray(down_s, np.float64)),
            np.atleast_1d(np.asarray(up_s, np.float64)),
            np.broadcast_to(bit, machines.shape).astype(np.int8),
        )
        outages._check()
        return outages

    @classmethod
    def parse(cls, rows: Sequence[Mapping[str, Any]], name: str = "outages") -> Outages:
        """Make outages from rows such as ``{"machine": 3, "from_s": 0, "until_s": 60}``.

        ``machine`` may be several, as a list; without ``until_s`` there is no end; ``known`` and
        ``drain`` are false by default.

        Raises
        ------
        InputError
            If a key is unknown or missing, or a value out of its range.
        """
        columns: list[tuple[int, float, float, bool, bool]] = []
        for i, row in enumerate(rows):
            machines, begin_s, end_s = parse_window(row, f"{name}[{i}]", ("known", "drain"))
            for key in ("known", "drain"):
                check(f"{name}[{i}].{key}", row.get(key, False), bool)
            flags = row.get("known", False), row.get("drain", False)
            columns += [(machine, begin_s, end_s, *flags) for machine in machines]
        return cls.from_columns(*zip(*columns, strict=True)) if columns else NO_OUTAGES

    def __len__(self) -> int:
        return len(self.machine)

    @property
    def columns(self) -> tuple[I4, F8, F8]:
        """Machine, down_s and up_s."""
        return self.machine, self.down_s, self.up_s

    @property
    def is_known(self) -> Mask:
        """Outages and drains that are known beforehand, (K,)."""
        return self.kind >= KNOWN_LOST

    @property
    def is_drain(self) -> Mask:
        """Drains, (K,)."""
        return (self.kind & (DRAINED | KNOWN_DRAINED)) > 0

    def delayed(self, by_s: float) -> Outages:
        """Return the same outages, each `by_s` later."""
        return replace(self, down_s=self.down_s + by_s, up_s=self.up_s + by_s)

    def joined(self, more: Outages) -> Outages:
        """Return these outages and more; those of a machine and kind that overlap become one."""
        both = [[*zip(*o.columns, o.is_known, o.is_drain, strict=True)] for o in (self, more)]
        rows: list[list[Any]] = []
        for machine, down_s, up_s, *kind in sorted(
            both[0] + both[1], key=lambda row: (row[0], row[3:], row[1])
        ):
            last = rows[-1] if rows else None
            if last and [last[0], *last[3:]] == [machine, *kind] and down_s <= last[2]:
                last[2] = max(last[2], up_s)
            else:
                rows.append([machine, down_s, up_s, *kind])
        return Outages.from_columns(*zip(*rows, strict=True)) if rows else self

    def _check(self) -> None:
        machine, down_s, up_s = self.columns
        if not len(machine) == len(down_s) == len(up_s):
            raise InputError(f"outages of {len(machine)}, {len(down_s)} and {len(up_s)} rows")
        order = np.lexsort((down_s, machine, self.kind))
        is_same = (np.diff(machine[order]) == 0) & (np.diff(self.kind[order]) == 0)
        overlaps = is_same & (down_s[order][1:] < up_s[order][:-1])
        problems = {
            "its machine is negative": machine < 0,
            "it begins before 0 or never": ~(np.isfinite(down_s) & (down_s >= 0)),
            "it must end after it begins": ~(up_s > down_s),
            "its machine is lost already": np.isin(np.arange(len(self)), order[1:][overlaps]),
        }
        name = "outage {0} of machine {1}, {2:g} to {3:g} s"
        _refuse("outage", problems, name, np.arange(len(self)), *self.columns)


def _refuse(rule: str, problems: Mapping[str, Mask], name: str, *columns: NDArray[Any]) -> None:
    """Raise InputError at the first row that has a problem, with its description."""
    for problem, broken in problems.items():
        if broken.any():
            row = int(np.argmax(broken))
            text = name.format(*(column[row] for column in columns))
            raise InputError(f"{text}: {problem}", rule=rule)


_WINDOW = ("machine", "from_s", "until_s")


def parse_window(row: Any, name: str, more_keys: Sequence[str]) -> tuple[list[int], float, float]:
    """Return machines, begin and end, s, of a row that has them under `_WINDOW` and `more_keys`."""
    keys = (*_WINDOW, *more_keys)
    check_keys(name, row, keys)
    for key in ("machine", "from_s"):
        if key not in row:
            raise InputError(f"{name} names no {key}", rule="missing key")
    machine, until_s = row["machine"], row.get("until_s")
    machines = list(machine) if isinstance(machine, (list, tuple)) else [machine]
    for m in machines:
        check(f"{name}.machine", m, int)
    check(f"{name}.from_s", row["from_s"], NotNegative)
    check(f"{name}.until_s", until_s, NotNegative | None)
    return machines, float(row["from_s"]), np.inf if until_s is None else float(until_s)


NO_OUTAGES = Outages.from_columns([], [], [])


@checked
def draw_outages(
    n_machines: int,
    seed: int,
    *,
    mtbf_s: Positive,
    repair_s: Positive,
    until_s: float,
    known: bool = False,
    drain: bool = False,
) -> Outages:
    """Draw outages: times between failures and to repair are exponential, machine by machine.

    Parameters
    ----------
    n_machines : int
        Number of machines; each has a random stream of its own, so more machines change no other's.
    seed : int
        Seed of the streams.
    mtbf_s, repair_s : float
        Mean time that a machine is up, and down, s; positive.
    until_s : float
        No outage begins later than that, s after the first submission.
    known, drain : bool
        As in `Outages.from_columns`.

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    rows: list[tuple[int, float, float]] = []
    for machine in range(n_machines):
        rng = stream(seed, "outages", str(machine))
        time_s = rng.exponential(mtbf_s)
        while time_s <= until_s:
            back_s = time_s + rng.exponential(repair_s)
            rows.append((machine, time_s, back_s))
            time_s = back_s + rng.exponential(mtbf_s)
    if not rows:
        return NO_OUTAGES
    machines, down_s, up_s = zip(*rows, strict=True)
    return Outages.from_columns(machines, down_s, up_s, known, drain)


@dataclass(frozen=True, eq=False)
class Slowdowns:
    """K periods, in each of which everything on the cluster runs at one speed.

    Use `Slowdowns.from_columns` or `draw_slowdowns`. Outside of the periods the speed is 1.

    Attributes
    ----------
    begin_s, end_s : (K,) float64
        Begin and end of each period, s after the first submission; by time, without overlaps. The
        last may never end.
    speed : (K,) float64
        Seconds of a task's duration that pass in a second; positive.
    """

    begin_s: F8
    end_s: F8
    speed: F8

    @classmethod
    def from_columns(cls, begin_s: ArrayLike, end_s: ArrayLike, speed: ArrayLike) -> Slowdowns:
        """Make slow periods from columns, by time, and check them.

        Raises
        ------
        InputError
            If a time is negative, a period ends before it begins or overlaps the next, or a speed
            is not positive and finite.
        """
        columns = [np.atleast_1d(np.asarray(c, np.float64)) for c in (begin_s, end_s, speed)]
        if len({len(c) for c in columns}) > 1:
            raise InputError(f"slow periods of {', '.join(str(len(c)) for c in columns)} rows")
        order = np.argsort(columns[0], kind="stable")
        begin, end, sorted_speed = (c[order] for c in columns)
        problems = {
            "it begins before 0 or never": ~(np.isfinite(begin) & (begin >= 0)),
            "it must end after it begins": ~(end > begin),
            "its speed must be positive and finite": ~(
                np.isfinite(sorted_speed) & (sorted_speed > 0)
            ),
            "it overlaps the next": np.append(begin[1:] < end[:-1], False)[: len(begin)],
        }
        name = "slow period from {0:g} to {1:g} s at speed {2:g}"
        _refuse("slow period", problems, name, begin, end, sorted_speed)
        return cls(begin, end, sorted_speed)

    def __len__(self) -> int:
        return len(self.speed)

    def delayed(self, by_s: float) -> Slowdowns:
        """Return the same periods, each `by_s` later."""
        return replace(self, begin_s=self.begin_s + by_s, end_s=self.end_s + by_s)

    def steps(self) -> tuple[F8, F8]:
        """Return times, the first 0, and the speed from each time on: (N,) float64 each."""
        times, speeds = [0.0], [1.0]
        for begin, end, speed in zip(self.begin_s, self.end_s, self.speed, strict=True):
            for time, new_speed in ((float(begin), float(speed)), (float(end), 1.0)):
                if time == times[-1]:
                    speeds[-1] = new_speed
                elif np.isfinite(time):
                    times.append(time)
                    speeds.append(new_speed)
        return np.array(times), np.array(speeds)


NO_SLOWDOWNS = Slowdowns.from_columns([], [], [])


@checked
def draw_slowdowns(
    seed: int,
    *,
    every_s: Positive,
    last_s: Positive,
    speed: tuple[Positive, Positive],
    until_s: float,
    label: str | None = None,
) -> Slowdowns:
    """Draw slow periods: times between them and their lengths are exponential.

    Parameters
    ----------
    seed : int
        Seed of the stream.
    every_s, last_s : float
        Mean time from the end of one to the begin of the next, and mean length, s; positive.
    speed : (float, float)
        Each period's speed is uniform between the two; positive.
    until_s : float
        None begins later than that, s after the first submission.
    label : str, optional
        Periods with another label are drawn independently from the same seed.

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    low, high = speed
    if low > high:
        raise InputError(f"speed: [{low!r}, {high!r}] is reversed; the lower bound comes first")
    rng = stream(seed, "slowdowns", *([] if label is None else [label]))
    rows: list[tuple[float, float, float]] = []
    time_s = rng.exponential(every_s)
    while time_s <= until_s:
        end_s = time_s + rng.exponential(last_s)
        rows.append((time_s, end_s, rng.uniform(low, high)))
        time_s = end_s + rng.exponential(every_s)
    return Slowdowns.from_columns(*zip(*rows, strict=True)) if rows else NO_SLOWDOWNS
