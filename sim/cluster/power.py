"""Power of machines, and the carbon and money that it costs, both of which may change over time.

A machine draws ``idle_w`` while it is up, and more in proportion to what its tasks demand of one
of its resources, up to ``busy_w`` when that is full: the linear model of Fan, Weber and Barroso
(ISCA 2007, §4.1), with processors as the resource.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sim.base.parameters import NotNegative, Positive, check, check_keys

CARBON, PRICE = "carbon_g_per_kwh", "price_per_kwh"
SERIES = (CARBON, PRICE)
"""Keys whose numbers may change over time."""
OTHERS = "*"
"""Class that stands for all that a table does not name."""
_TABLES = ("idle_w", "busy_w", "machine_h")
_KEYS = (*_TABLES, "of", *SERIES, "repeat_s", "offset_s")

Table = Mapping[str, float]
"""A number by class of machines; `OTHERS` for those that are not named."""


@dataclass(frozen=True, eq=False)
class Series:
    """A number that changes by steps.

    Attributes
    ----------
    from_s : (N,) float64
        Times from which each value holds, s, ascending; the first is 0.
    value : (N,) float64
    repeat_s : float
        Time after which it begins again; inf for never: the last value then holds on.
    offset_s : float
        Where in it time 0 of `integral` lies, s.
    """

    from_s: F8
    value: F8
    repeat_s: float = math.inf
    offset_s: float = 0.0

    def integral(self, time_s: F8 | float) -> F8:
        """Return the integral up to each time, of the same shape; differences alone have meaning.

        Times before 0 count as 0.
        """
        time = np.maximum(np.asarray(time_s, np.float64), 0.0) + self.offset_s
        rounds = np.floor(time / self.repeat_s)
        within = time - rounds * self.repeat_s if math.isfinite(self.repeat_s) else time
        integral: F8 = self._within(within)
        if math.isfinite(self.repeat_s):
            integral = integral + rounds * self._within(np.float64(self.repeat_s))
        return integral

    def _within(self, time: Any) -> F8:
        sums = np.append(0.0, np.cumsum(np.diff(self.from_s) * self.value[:-1]))
        step = np.searchsorted(self.from_s, time, side="right") - 1
        integral: F8 = sums[step] + (time - self.from_s[step]) * self.value[step]
        return integral


STEADY = Series(np.zeros(1), np.ones(1))
"""1 at all times, whose integral is the time."""


@dataclass(frozen=True, eq=False)
class Power:
    """Power of machines, and what it costs; use `Power.parse`.

    Attributes
    ----------
    idle_w, busy_w : Table
        Power of an idle machine, and of a full one, W.
    machine_h : Table
        Price of an hour of a machine.
    resource : str or None
        The resource by which the power rises. None: devices, of machines that have some, or else
        the first resource of each machine.
    series : mapping of str to Series
        Carbon intensity of electricity, g/kWh, and its price per kWh, by key of `SERIES`; those
        that are known.
    """

    idle_w: Table
    busy_w: Table
    machine_h: Table
    resource: str | None = None
    series: Mapping[str, Series] = field(default_factory=dict)

    @classmethod
    def parse(cls, spec: Any, name: str = "power") -> Power:
        """Make it of a mapping such as ``{idle_w: 120, busy_w: {v100: 2000, "*": 350}}``.

        Parameters
        ----------
        spec : mapping
            ``idle_w`` and ``busy_w``, W, ``machine_h``, a price (0 by default): numbers, or tables
            by class. ``of``: a resource. ``carbon_g_per_kwh``, ``price_per_kwh``: numbers, lists of
            [seconds, number] (`read_series` makes one of a file), which begin again after
            ``repeat_s`` and in which the first submission is at ``offset_s``.
        name : str
            Name in messages.

        Raises
        ------
        InputError
            If a key is unknown or missing, or a value out of its range.
        """
        check_keys(name, spec, _KEYS, "power")
        for key in ("idle_w", "busy_w"):
            if spec.get(key) is None:
                raise InputError(
                    f"{name} has no {key!r}; for example {{idle_w: 120, busy_w: 350}}", rule="power"
                )
        idle_w, busy_w, machine_h = (_table(f"{name}.{key}", spec.get(key, 0.0)) for key in _TABLES)
        for kind in {*idle_w, *busy_w}:
            idle, busy = (t.get(kind, t.get(OTHERS)) for t in (idle_w, busy_w))
            if idle is not None and busy is not None and busy < idle:
                raise InputError(
                    f"{name}: machines of class {kind!r} draw {busy:g} W when busy and {idle:g} W "
                    "when idle; busy_w is the power of a full machine, idle_w included",
                    rule="power",
                )
        check(f"{name}.of", spec.get("of"), str | None)
        check(f"{name}.repeat_s", spec.get("repeat_s"), Positive | None)
        check(f"{name}.offset_s", spec.get("offset_s", 0.0), NotNegative)
        repeat_s = spec.get("repeat_s")
        times = math.inf if repeat_s is None else float(repeat_s), float(spec.get("offset_s", 0.0))
        series = {
            key: _series(f"{name}.{key}", spec[key], *times)
            for key in SERIES
            if spec.get(key) is not None
        }
        return cls(idle_w, busy_w, machine_h, spec.get("of"), series)

    def check(self, resources: Sequence[str], classes: Sequence[str]) -> None:
        """Refuse a resource or classes of machines that a cluster lacks."""
        if self.resource is not None and self.resource not in resources:
            raise InputError(unknown("resource in power.of", self.resource, resources))
        classes = [*dict.fromkeys(classes or ("",))]
        for key, table in zip(_TABLES, (self.idle_w, self.busy_w, self.machine_h), strict=True):
            for kind in table:
                if kind not in (OTHERS, *classes):
                    raise InputError(unknown("class in power", kind, sorted(classes)))
            for kind in classes:
                if kind not in table and OTHERS not in table:
                    raise InputError(
                        f"power.{key} has no number for machines of class {kind!r}; add "
                        f'{{{kind or OTHERS!r}: ...}}, or "{OTHERS}" for all others',
                        rule="power",
                    )


def read_series(path: str | Path) -> list[list[float]]:
    """Read a CSV file of a series: seconds from its begin and a number a row, below a header.

    Raises
    ------
    InputError
        If there is no such file, or a row is not two numbers.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}; it must be a CSV file of seconds and numbers") from None
    series = []
    for line, row in enumerate(rows[1:], 2):
        try:
            time_s, value = (float(cell) for cell in row)
        except ValueError:
            raise InputError(
                f"{path}, line {line}: a row has two numbers, such as 3600,412.5, not {row!r}"
            ) from None
        series.append([time_s, value])
    return series


def _table(name: str, spec: Any) -> Table:
    if not isinstance(spec, Mapping):
        check(name, spec, NotNegative)
        return {OTHERS: float(spec)}
    check(name, spec, Mapping[str, NotNegative])
    return {str(kind): float(number) for kind, number in spec.items()}


def _series(name: str, spec: Any, repeat_s: float, offset_s: float) -> Series:
    if isinstance(spec, Sequence) and not isinstance(spec, str):
        rows = [row for row in spec if isinstance(row, Sequence) and len(row) == 2]
        if len(rows) < len(spec) or not rows:
            raise InputError(f"{name} must be rows of [seconds, number], not {spec!r}")
        for i, (time_s, number) in enumerate(rows):
            check(f"{name}[{i}]", time_s, NotNegative)
            check(f"{name}[{i}]", number, NotNegative)
        from_s, value = np.array(rows, np.float64).T
    else:
        check(name, spec, NotNegative)
        from_s, value = np.zeros(1), np.array([float(spec)])
    is_late = np.append(from_s[0] > 0, np.diff(from_s) <= 0)
    if is_late.any():
        row = int(np.argmax(is_late))
        raise InputError(
            f"{name}[{row}]: {from_s[row]:g} s; times begin at 0 and ascend, each above the last"
        )
    if from_s[-1] >= repeat_s:
        raise InputError(
            f"{name} begins again after repeat_s={repeat_s:g} s, and has a row at {from_s[-1]:g} s"
        )
    return Series(from_s, value, repeat_s, offset_s)
