"""Search space of a policy: its parameters and their allowed values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

import policies
import policies.registry
from sim.base.errors import InputError
from sim.base.parameters import type_hints
from sweep.grid.grid import Cell
from sweep.grid.overrides import Interval

DIGITS = 3
"""Significant digits of proposed numbers: of the range's size, on a log scale of the number."""

Values = dict[str, Any]
"""Values of parameters by key ``policy.X``."""


@dataclass(frozen=True)
class Parameter:
    """A parameter and its allowed values: a range or choices."""

    key: str
    low: float = math.nan  # of a range; NaN where there are choices
    high: float = math.nan
    is_log: bool = False
    is_int: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """Name without ``policy.``."""
        return self.key.partition(".")[2]

    def tidy(self, value: Any) -> Any:
        """Round a value to `DIGITS`, and clip it to the range."""
        if self.choices or self.is_int:
            return value
        size = abs(value) if self.is_log else self.high - self.low
        decimals = DIGITS - 1 - math.floor(math.log10(size))
        return min(max(round(float(value), decimals), self.low), self.high)

    def holds(self, value: Any) -> bool:
        """Tell whether a value is allowed."""
        if self.choices:
            return value in self.choices
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and self.low <= value <= self.high


def policy_parameters(
    policy: Mapping[str, Any], space: Mapping[str, Interval | tuple[Any, ...]]
) -> list[Parameter]:
    """Return the parameters of the search space that a policy has, in the space's order."""
    if policy.get("module") is not None:
        policies.registry.load(str(policy["module"]), str(policy["name"]))
    spec = policies.spec(policy["name"])
    field_names = {field.name for field in dataclasses.fields(spec)}
    hints = type_hints(spec)
    parameters = []
    for key, values in space.items():
        path = key.split(".")[1:]
        if path[0] not in field_names:
            continue
        if isinstance(values, tuple):
            parameters.append(Parameter(key, choices=values))
        else:
            is_int = len(path) == 1 and _is_int(hints[path[0]])
            parameters.append(_range(key, values, is_int))
    return parameters


def default_values(cell: Cell, parameters: list[Parameter]) -> Values:
    """Return the values that a policy's option gives its parameters."""
    values = {}
    for parameter in parameters:
        value: Any = cell.policy["params"]
        for part in parameter.key.split(".")[1:]:
            value = value.get(part) if isinstance(value, Mapping) else None
        values[parameter.key] = value
    return values


def n_settings(parameters: list[Parameter]) -> float:
    """Count the settings; infinite if a parameter is a real number of a range."""
    n = 1.0
    for p in parameters:
        n *= len(p.choices) if p.choices else (p.high - p.low + 1 if p.is_int else math.inf)
    return n


def _range(key: str, span: Interval, is_int: bool) -> Parameter:
    if is_int and not (span.low == int(span.low) and span.high == int(span.high)):
        raise InputError(
            f"{key} is a whole number: interval({span.low:g},{span.high:g}) needs whole ends, such "
            f"as interval({math.floor(span.low)},{math.ceil(span.high)})",
            rule="wrong type",
        )
    kind = int if is_int else float
    return Parameter(key, kind(span.low), kind(span.high), span.is_log, is_int)


def _is_int(hint: Any) -> bool:
    """Tell by its annotation whether a parameter takes only whole numbers."""
    if get_origin(hint) is Annotated:
        return _is_int(get_args(hint)[0])
    arms = [arm for arm in get_args(hint) if arm is not type(None)]
    if arms and (get_origin(hint) is Union or type(hint).__name__ == "UnionType"):
        return all(_is_int(arm) for arm in arms)
    return hint is int
