"""Launch lags: the time between the placement of a task, or a gang, and its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8, frozen
from sim.base.errors import InputError
from sim.base.parameters import NotNegative, check
from sim.base.random import key_words

LaunchSpec = float | Sequence[float] | Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Launch:
    """A lag for each start of a task or gang; use `Launch.parse`.

    Attributes
    ----------
    values_s : (N,) float64, read-only
        The lags that are drawn, each as often, s; or the two between which they are uniform.
    between : bool
        True for the two bounds.
    key : (2,) int64, read-only
        Key of the draws.
    """

    values_s: F8 = field(default_factory=lambda: frozen(np.zeros(1)))
    between: bool = False
    key: I8 = field(default_factory=lambda: frozen(np.zeros(2, np.int64)))

    @classmethod
    def parse(cls, launch_s: Any, seed: int = 0, *, name: str = "launch_s") -> Launch:
        """Build lags from a number, a list of numbers, or ``{"low": 0.5, "high": 1.5}``.

        Raises
        ------
        InputError
            If it is none of them, or a number is negative.
        """
        is_list = isinstance(launch_s, (Sequence, np.ndarray)) and not isinstance(launch_s, str)
        between = isinstance(launch_s, Mapping)
        values = list(launch_s) if is_list else [launch_s]
        if between:
            if {*launch_s} != {"low", "high"}:
                raise _wrong(name, dict(launch_s))
            values = [launch_s["low"], launch_s["high"]]
        if not values:
            raise _wrong(name, values)
        for value in values:
            check(name, value, NotNegative)
        if between and values[0] > values[1]:
            raise InputError(f"{name}: low {values[0]!r} is above high {values[1]!r}")
        column = frozen(np.array(values, dtype=np.float64))
        return cls(column, between, frozen(key_words(seed, "launch")))

    def __bool__(self) -> bool:
        """Tell whether some lag is above 0."""
        return bool(self.values_s.any())

    @property
    def is_drawn(self) -> bool:
        """Tell whether lags differ, and so follow the seed."""
        return bool((self.values_s != self.values_s[0]).any())


def _wrong(name: str, value: object) -> InputError:
    return InputError(
        f"{name} must be a number of seconds, a list of numbers from which lags are drawn, or "
        f"{{low: 0.5, high: 1.5}} between which they are uniform, not {value!r}",
        rule="wrong type",
    )


NO_LAUNCH = Launch()
