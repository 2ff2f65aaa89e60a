"""What a parameter may be, said where it is declared, and checked in one place.

A parameter says its type and range in its annotation: ``load: Positive``, ``chance: Share``,
``queues: Annotated[int, Between(1, 1000)]``, ``mode: Literal["drop", "compress"]``. `check` holds
a value to an annotation; `checked` holds every call of a function to its own.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sim.base.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Between:
    """The range of a number: from `low` to `high`, both of them valid; `above` is not."""

    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf

    def holds(self, value: float) -> bool:
        """Tell whether a number is finite and in the range."""
        finite = abs(value) <= sys.float_info.max  # also of a whole number that no float holds
        return finite and self.low <= value <= self.high and value > self.above

    def __str__(self) -> str:
        """Word it as it follows ``must be a number``."""
        least = f"above {self.above:g}" if self.above > self.low else f"of at least {self.low:g}"
        if self.high == math.inf:
            return least
        if self.above > self.low:
            return f"{least} and at most {self.high:g}"
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
    """Refuse a value that is not of the type, or not in the range, that its annotation says.

    Parameters
    ----------
    what : str
        The parameter, as the message begins: ``policy las: queues``.
    value : object
        What was given for it; an int passes for a float, a bool for neither.
    hint : type
        The annotation, resolved.

    Raises
    ------
    InputError
        Naming the parameter, what it may be, and the value.
    """
    if not fits(value, hint):
        arms = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        rule = "range" if any(fits(value, _bare(arm)) for arm in arms) else "wrong type"
        raise InputError(f"{name} must be {describe_type(hint)}, not {value!r}", rule=rule)


def coerce(value: Any, hint: Any) -> Any:
    """Turn a value that fits its annotation into that type: ints into floats, lists into tuples."""
    hint = _bare(hint)
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

    Those that name what only a type checker imports are left out: nobody gives them by name.
    """
    if inspect.isclass(declared):
        return get_type_hints(declared, include_extras=True)
    function = inspect.unwrap(declared)
    found: dict[str, Any] = {}
    for name, hint in function.__annotations__.items():
        alone = SimpleNamespace(__annotations__={name: hint})
        with contextlib.suppress(NameError):
            found |= get_type_hints(alone, function.__globals__, include_extras=True)
    return found


def checked(function: F) -> F:
    """Hold every argument of each call of `function` to its annotation."""
    signature, hints = inspect.signature(function), type_hints(function)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for name, value in signature.bind(*args, **given).arguments.items():
            if name in hints:
                check(name, value, hints[name])
        return function(*args, **given)

    return call  # type: ignore[return-value]


def describe_type(hint: Any) -> str:
    """Word what a parameter may be: ``a whole number of at least 1``, ``'a' or 'b'``."""
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


def fits(value: Any, hint: Any) -> bool:
    """Tell whether a value is of the type, and in the range, that an annotation says."""
    if hint is Any:
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return fits(value, inner[0]) and inner[1].holds(value)
    if origin is Literal:
        return value in inner
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
