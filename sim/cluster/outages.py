"""Machines that are lost and come back, drawn or given before the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I4
from sim.base.errors import InputError
from sim.base.random import stream


@dataclass(frozen=True, eq=False)
class Outages:
    """K times at which a machine is lost until it is back.

    Use `Outages.of` or `draw`.

    Attributes
    ----------
    machine : (K,) int32
        Which machine.
    down_s, up_s : (K,) float64
        When it is lost and when it is back, s; inf for never.
    """

    machine: I4
    down_s: F8
    up_s: F8

    @classmethod
    def of(cls, machine: ArrayLike, down_s: ArrayLike, up_s: ArrayLike) -> Outages:
        """Make columns of them.

        Raises
        ------
        InputError
            If a machine or time is negative, one is back before it is lost, or lost while it is.
        """
        made = cls(
            np.atleast_1d(np.asarray(machine, np.int32)),
            np.atleast_1d(np.asarray(down_s, np.float64)),
            np.atleast_1d(np.asarray(up_s, np.float64)),
        )
        made._check()
        return made

    def __len__(self) -> int:
        return len(self.machine)

    @property
    def columns(self) -> tuple[I4, F8, F8]:
        """Machine, down_s and up_s."""
        return self.machine, self.down_s, self.up_s

    def in_order(self) -> dict[str, NDArray[Any]]:
        """Return what the kernel reads: each loss and return by time, machine, returns first."""
        machine = np.concatenate([self.machine, self.machine])
        time_s = np.concatenate([self.down_s, self.up_s])
        back = np.repeat(np.array([0, 1], np.int8), len(self))
        comes = np.flatnonzero(np.isfinite(time_s))
        order = comes[np.lexsort((-back[comes], machine[comes], time_s[comes]))]
        return {
            "w_outage_time": time_s[order],
            "w_outage_machine": machine[order].astype(np.int32),
            "w_outage_back": back[order],
        }

    def _check(self) -> None:
        machine, down_s, up_s = self.columns
        if not len(machine) == len(down_s) == len(up_s):
            raise InputError(f"outages of {len(machine)}, {len(down_s)} and {len(up_s)} rows")
        order = np.lexsort((down_s, machine))
        again = (np.diff(machine[order]) == 0) & (down_s[order][1:] < up_s[order][:-1])
        for what, broken in (
            ("its machine is negative", machine < 0),
            ("it begins before 0 or never", ~(np.isfinite(down_s) & (down_s >= 0))),
            ("it must end after it begins", ~(up_s > down_s)),
            ("its machine is lost already", np.isin(np.arange(len(self)), order[1:][again])),
        ):
            if broken.any():
                row = int(np.argmax(broken))
                raise InputError(
                    f"outage {row} of machine {machine[row]}, {down_s[row]:g} to {up_s[row]:g} s: "
                    f"{what}",
                    rule="outage",
                )


NO_OUTAGES = Outages.of([], [], [])


def draw(n_machines: int, seed: int, *, mtbf_s: float, repair_s: float, until_s: float) -> Outages:
    """Draw outages: times between failures and to repair are exponential, machine by machine.

    Parameters
    ----------
    n_machines : int
        How many machines; each has a stream of its own, so that more of them change no other's.
    seed : int
        Seed of the streams.
    mtbf_s, repair_s : float
        Mean time that a machine is up, and down, s; positive.
    until_s : float
        No outage begins later than that, s.

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    for name, value in (("mtbf_s", mtbf_s), ("repair_s", repair_s)):
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} must be a positive number of seconds, not {value!r}")
    rows: list[tuple[int, float, float]] = []
    for machine in range(n_machines):
        rng = stream(seed, "outages", str(machine))
        time_s = rng.exponential(mtbf_s)
        while time_s <= until_s:
            back_s = time_s + rng.exponential(repair_s)
            rows.append((machine, time_s, back_s))
            time_s = back_s + rng.exponential(mtbf_s)
    return Outages.of(*zip(*rows, strict=True)) if rows else NO_OUTAGES
