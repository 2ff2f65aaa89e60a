"""Validation of parameters by their annotations.

An annotation declares type and range: ``load: Positive``, ``chance: Share``,
``queues: Annotated[int, Between(1, 1000)]``, ``mode: Literal["drop", "compress"]``. `check`
validates a value; `checked` validates the arguments of every call of a function.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sim.base.errors import InputError, unknown

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Between:
    """Range of a number: from `low` to `high`, both included; `above` excluded."""

    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf

    def holds(self, value: float) -> bool:
        """Check that a number is finite and in the range."""
        finite = abs(value) <= sys.float_info.max  # also for a whole number beyond float64
        return finite and self.low <= value <= self.high and value > self.above

    def __str__(self) -> str:
        """Format for a message, after ``must be a number``."""
        bound = f"above {self.above:g}" if self.above > self.low else f"of at least {self.low:g}"
        if self.high == math.inf:
            return bound
        if self.above > self.low:
            return f"{bound} and at most {self.high:g}"
        low = self.low
        return f"of at most {self.high:g}" if low == -math.inf else f"from {low:g} to {self.high:g}"


Count = Annotated[int, Between(1)]
Whole = Annotated[int, Between(0)]
Positive = Annotated[float, Between(above=0)]
NotNegative = Annotated[float, Between(0)]
Factor = Annotated[float, Between(1)]
Share = Annotated[float, Between(0, 1)]
Below1 = Annotated[float, Between(0, 1 - 2**-53)]


def check(name: str, value: object, hint: Any) -> None:
    """Refuse a value outside the type or range of its annotation.

    Parameters
    ----------
    name : str
        The parameter, as the message begins: ``policy las: queues``.
    value : object
        The value; an int is valid as a float, a bool is valid as neither.
    hint : type
        The annotation, resolved.

    Raises
    ------
    InputError
        With the parameter, its valid values, and the value.
    """
    if not fits(value, hint):
        arms = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        rule = "range" if any(fits(value, _bare(arm)) for arm in arms) else "wrong type"
        raise InputError(f"{name} must be {describe_type(hint)}, not {value!r}", rule=rule)


def check_keys(name: str, row: object, keys: Sequence[str], rule: str | None = None) -> None:
    """Refuse a value that is no mapping, or has a key that is not one of `keys`.

    Raises
    ------
    InputError
        Names the value and the keys; of `rule`, or else "wrong type" or "unknown key".
    """
    if not isinstance(row, Mapping):
        raise InputError(
            f"{name} has the keys {', '.join(keys)}, not {row!r}", rule=rule or "wrong type"
        )
    for key in row:
        if key not in keys:
            raise InputError(
                f"{name}: {unknown('key', str(key), keys)}", rule=rule or "unknown key"
            )


def coerce(value: Any, hint: Any) -> Any:
    """Convert a valid value to the type of its annotation: ints to floats, lists to tuples.

    YAML's true and false are the choices of these names.
    """
    hint = _bare(hint)
    if get_origin(hint) is Literal:
        return value if value in get_args(hint) else _as_choice(value)
    if hint is float:
        return float(value)
    if get_origin(hint) is tuple:
        (inner, *_) = get_args(hint)
        return tuple(coerce(item, inner) for item in value)
    if get_origin(hint) is Mapping:
        key, item = get_args(hint)
        return {coerce(k, key): coerce(v, item) for k, v in value.items()}
    return value


def type_hints(declared: Any) -> dict[str, Any]:
    """Return the resolved annotations of a class's fields or a function's parameters.

    Annotations that only a type checker can resolve are left out: no option has such a type.
    """
    if inspect.isclass(declared):
        return get_type_hints(declared, include_extras=True)
    function = inspect.unwrap(declared)
    hints: dict[str, Any] = {}
    for name, hint in function.__annotations__.items():
        holder = SimpleNamespace(__annotations__={name: hint})
        with contextlib.suppress(NameError):
            hints |= get_type_hints(holder, function.__globals__, include_extras=True)
    return hints


def checked(function: F) -> F:
    """Validate every argument of each call of `function` by its annotation."""
    signature, hints = inspect.signature(function), type_hints(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in hints:
                check(name, value, hints[name])
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def describe_type(hint: Any) -> str:
    """Describe a parameter's valid values: ``a whole number of at least 1``, ``'a' or 'b'``."""
    if hint in _NAMES:
        return _NAMES[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return f"{describe_type(inner[0])} {inner[1]}"
    if origin is Literal:
        return " or ".join(repr(choice) for choice in inner)
    if origin in (tuple, list):
        return f"a list, each item {describe_type(inner[0])}" if inner else "a list"
    if origin is Mapping:
        return f"a mapping from {describe_type(inner[0])} to {describe_type(inner[1])}"
    if origin is not None:  # a union
        return " or ".join(describe_type(arm) for arm in inner)
    return getattr(hint, "__name__", str(hint))


_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    type(None): "null",
    Any: "anything",
}


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _as_choice(value: Any) -> Any:
    """Return the name of a bool: ``knowledge=true`` is read as one."""
    return str(value).lower() if isinstance(value, bool) else value


def fits(value: Any, hint: Any) -> bool:
    """Check a value against the type and range of an annotation."""
    if hint is Any:
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return fits(value, inner[0]) and inner[1].holds(value)
    if origin is Literal:
        return _as_choice(value) in inner
    if origin in (tuple, list):
        is_list = isinstance(value, (list, tuple))
        return is_list and (not inner or all(fits(item, inner[0]) for item in value))
    if origin is Mapping:
        is_mapping = isinstance(value, Mapping)
        return is_mapping and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    if isinstance(origin, type) and origin is not UnionType:  # such as os.PathLike[str]
        return isinstance(value, origin)
    if origin is not None:  # a union
        return any(fits(value, arm) for arm in inner)
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    return isinstance(value, hint)
