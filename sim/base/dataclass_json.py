"""Dataclasses as JSON files, written and read by their annotations.

An object has an entry for each field, but for one that is None by default and is None. A dataclass
of a single field is written as that field is. Keys of a mapping may be whole numbers; an array is a
list of numbers. A field with ``metadata={"prefix": "demand "}`` is a mapping whose entries lie
beside the other fields', under that prefix.

``Annotated`` says what more a value must be: `sim.base.parameters.Between` of a number, or of all
in an array; `Shape` of an array of several axes; or any object with ``holds(value)`` whose text
follows ``must be``. What fields must be together, a method ``check`` of their class says: it raises
ValueError.

No library does this: none knows arrays, so that ranges, shapes and the wording of errors would have
to be written all the same; pydantic alone takes 60 ms to import.
"""

from __future__ import annotations

import json
import os
import reprlib
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import InputError, unknown
from sim.base.files import write_text
from sim.base.parameters import Between, coerce, describe_type, fits, type_hints

T = TypeVar("T")
Reader = Callable[[Any], Any]

WIDTH = 100
"""Maximum line length, in characters; longer values are broken into several lines."""
EXACT = 2**53
"""Whole numbers below this are exact as float64."""


@dataclass(frozen=True)
class Shape:
    """Lengths of an array's axes; -1 for any."""

    lengths: tuple[int, ...]

    def holds(self, array: NDArray[Any]) -> bool:
        """Tell whether an array is of this shape."""
        return array.ndim == len(self.lengths) and all(
            wanted in (-1, n) for wanted, n in zip(self.lengths, array.shape, strict=True)
        )

    def __str__(self) -> str:
        """Word it as it follows ``must be numbers``."""
        return "of " + " x ".join("n" if n < 0 else str(n) for n in self.lengths)


class MisfitError(ValueError):
    """A value that is not what its annotation says; `place` leads to it."""

    def __init__(self, text: str, rule: str | None = None) -> None:
        super().__init__(text)
        self.rule = rule or "wrong value"
        self.place: list[str] = []


def save(path: str | os.PathLike[str], form: str, value: Any) -> None:
    """Write a dataclass to a file that begins with the name of its form, whole or not at all."""
    write_text(Path(path), _lines({"format": form, **encode(value)}) + "\n")


def load(kind: type[T], path: str | os.PathLike[str], form: str, way_out: str) -> T:
    """Read what `save` wrote.

    Parameters
    ----------
    kind : type
        The dataclass.
    path : path-like
        The file, plain or packed.
    form : str
        The name of its form.
    way_out : str
        The end of every error: ``make it with ...``.

    Raises
    ------
    InputError
        If the file can't be read, is of another form, or holds a value that does not fit.
    """
    from sim.base.reading import parse_json, read_text  # loads Arrow; classes are named without

    if not Path(path).is_file():
        raise InputError(f"there is no such file; {way_out}", file=path)
    text = read_text(path)
    try:
        raw = parse_json(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError(f"not JSON: {error}; {way_out}", file=path, line=line) from error
    if not isinstance(raw, dict) or raw.get("format") != form:
        raise InputError(f"must be of the format {form!r}; {way_out}", file=path)
    try:
        return decode(kind, raw)
    except MisfitError as error:
        text = ": ".join(filter(None, (".".join(error.place), str(error))))
        raise InputError(f"{text}; {way_out}", file=path, rule=error.rule) from error


def encode(value: Any) -> Any:
    """Return a value as what `json` writes."""
    if is_dataclass(value):
        entries: dict[str, Any] = {}
        for field in fields(value):
            content = getattr(value, field.name)
            prefix = field.metadata.get("prefix")
            if prefix is not None:
                entries |= {prefix + key: encode(item) for key, item in content.items()}
            elif content is not None or field.default is not None:
                entries[field.name] = encode(content)
        return entries.popitem()[1] if _is_transparent(type(value)) else entries
    if isinstance(value, Mapping):
        return {str(key): encode(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return _numbers(value)
    if isinstance(value, (list, tuple)):
        return [encode(each) for each in value]
    return value


def _numbers(array: NDArray[Any]) -> list[Any]:
    """Return an array as lists, whole numbers without a point."""
    if array.ndim > 1:
        return [_numbers(row) for row in array]
    return [int(x) if x % 1 == 0 else x for x in array.tolist()]


def _lines(tree: Any, indent: int = 1) -> str:
    """Write JSON: what fits on a line, else a line an entry; numbers as many as fit on each."""
    line = json.dumps(tree, ensure_ascii=False)
    if len(line) <= WIDTH or not isinstance(tree, (dict, list)):
        return line
    pad = "\n" + " " * indent
    if isinstance(tree, dict):
        inside = [f"{json.dumps(key)}: {_lines(each, indent + 1)}" for key, each in tree.items()]
        return "{" + pad + f",{pad}".join(inside) + "}"
    if all(isinstance(each, (int, float)) for each in tree):
        return "[" + "\n".join(textwrap.wrap(line[1:-1], WIDTH)) + "]"
    return "[" + pad + f",{pad}".join(_lines(each, indent + 1) for each in tree) + "]"


def decode(kind: type[T], raw: Any) -> T:
    """Return the dataclass that `encode` was given; raise `MisfitError` if it is none."""
    hint: Any = kind
    value: T = _reader(hint)(raw)
    return value


@cache
def _reader(hint: Any) -> Reader:
    base, rules = hint, []
    if get_origin(hint) is Annotated:
        base, *rules = get_args(hint)
    origin, inner = get_origin(base), get_args(base)
    if origin is np.ndarray:
        one_axis = () if any(isinstance(rule, Shape) for rule in rules) else (Shape((-1,)),)
        return partial(_array, np.dtype(get_args(inner[1])[0]), (*one_axis, *rules))
    if isinstance(base, type) and is_dataclass(base):
        return partial(_object, base, {n: _reader(of) for n, of in type_hints(base).items()}, rules)
    if origin is Mapping:
        return partial(_mapping, inner[0], _reader(inner[1]))
    if origin is tuple:
        return partial(_tuple, [_reader(of) for of in inner if of is not Ellipsis], len(inner))
    if origin is UnionType and NoneType in inner:
        (some,) = (_reader(of) for of in inner if of is not NoneType)
        return lambda raw: None if raw is None else some(raw)
    return partial(_plain, hint)


def _object(kind: type[Any], readers: Mapping[str, Reader], rules: Sequence[Any], raw: Any) -> Any:
    if _is_transparent(kind):
        return _checked(kind(*(reader(raw) for reader in readers.values())), rules, raw)
    if not isinstance(raw, dict):
        raise _misfit(f"an object of {', '.join(readers)}", raw)
    given = {name: of for name, of in raw.items() if name != "format"}  # of what was a file once
    for field in fields(kind):
        prefix = field.metadata.get("prefix")
        if prefix is not None:
            named = [key for key in raw if key.startswith(prefix)]
            given[field.name] = {key.removeprefix(prefix): given.pop(key) for key in named}
        needed = field.default is MISSING and field.default_factory is MISSING
        if needed and field.name not in given:
            raise MisfitError(f"there is no entry {field.name!r}")
    for name in given:
        if name not in readers:
            raise MisfitError(unknown("entry", name, readers))
    read = {name: _at(name, readers[name], of) for name, of in given.items()}
    return _checked(kind(**read), rules, raw)


def _checked(value: Any, rules: Sequence[Any], raw: Any) -> Any:
    check = getattr(value, "check", None)
    try:
        if check is not None:
            check()
    except InputError as error:
        raise MisfitError(error.message, error.rule) from error
    except ValueError as error:
        raise MisfitError(f"{error}, not {_short(raw)}") from error
    for rule in rules:
        if not rule.holds(value):
            raise _misfit(str(rule), raw)
    return value


def _at(place: object, reader: Reader, raw: Any) -> Any:
    try:
        return reader(raw)
    except MisfitError as error:
        error.place.insert(0, str(place))
        raise


def _array(dtype: np.dtype[Any], rules: Sequence[Any], raw: Any) -> NDArray[Any]:
    what = "whole numbers" if dtype.kind == "i" else "numbers"
    try:
        numbers = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _misfit(f"a list of {what}", raw) from None
    if not np.isfinite(numbers).all() or (np.abs(numbers) > EXACT).any():
        raise _misfit(f"finite {what}, up to 2^53", raw)
    if dtype.kind == "i" and (numbers % 1 != 0).any():
        raise _misfit(what, raw)
    for rule in rules:
        ends = (numbers.min(), numbers.max()) if numbers.size else ()
        if not (all(map(rule.holds, ends)) if isinstance(rule, Between) else rule.holds(numbers)):
            raise _misfit(f"{what} {rule}", raw)
    return numbers.astype(dtype)


def _mapping(key: Any, reader: Reader, raw: Any) -> dict[Any, Any]:
    if not isinstance(raw, dict):
        raise _misfit("an object", raw)
    try:
        keys = [key(name) for name in raw]
    except ValueError:
        raise _misfit("an object with whole numbers for names", raw) from None
    return {one: _at(one, reader, each) for one, each in zip(keys, raw.values(), strict=True)}


def _tuple(readers: list[Reader], length: int, raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise _misfit("a list", raw)
    if len(readers) < length:  # of any length, all alike
        readers = readers * len(raw)
    if len(raw) != len(readers):
        raise _misfit(f"a list of {length}", raw)
    return tuple(_at(i, of, each) for i, (of, each) in enumerate(zip(readers, raw, strict=True)))


def _plain(hint: Any, raw: Any) -> Any:
    try:
        if fits(raw, hint):
            return coerce(raw, hint)
    except OverflowError:
        pass  # a whole number that no float holds
    raise _misfit(describe_type(hint), raw)


def _is_transparent(kind: type[Any]) -> bool:
    return len(fields(kind)) == 1


def _misfit(words: str, raw: Any) -> MisfitError:
    return MisfitError(f"must be {words}, not {_short(raw)}")


def _short(raw: Any) -> str:
    return textwrap.shorten(reprlib.repr(raw), WIDTH)
