"""JSON serialization of dataclasses, driven by their annotations.

An object has an entry for each field, except a field that is None and defaults to None. A dataclass
of a single field is written as that field. Keys of a mapping may be whole numbers; an array is a
list of numbers. A field with ``metadata={"prefix": "demand "}`` is a mapping; its entries are
written beside the other fields, under that prefix.

``Annotated`` adds constraints on a value: `sim.base.parameters.Between` on a number or on every
number of an array, `Shape` on an array of several axes, or any object with ``holds(value)`` whose
text follows ``must be``. A constraint on several fields is a method ``check`` of their class, which
raises ValueError.

No library does this: none supports arrays with ranges and shapes, and their files have other bytes
(decision 19).
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
MAX_EXACT = 2**53
"""Largest whole number up to which all are exact as float64."""


@dataclass(frozen=True)
class Shape:
    """Lengths of an array's axes; -1 for any."""

    lengths: tuple[int, ...]

    def holds(self, array: NDArray[Any]) -> bool:
        """Check an array's shape."""
        return array.ndim == len(self.lengths) and all(
            length in (-1, n) for length, n in zip(self.lengths, array.shape, strict=True)
        )

    def __str__(self) -> str:
        """Format for a message, after ``must be numbers``."""
        return "of " + " x ".join("n" if n < 0 else str(n) for n in self.lengths)


class MisfitError(ValueError):
    """A value that does not match its annotation; `path` holds the keys that lead to it."""

    def __init__(self, text: str, rule: str | None = None) -> None:
        super().__init__(text)
        self.rule = rule or "wrong value"
        self.path: list[str] = []


def save(path: str | os.PathLike[str], form: str, value: Any) -> None:
    """Write a dataclass to a JSON file atomically; its entry ``format`` is the name `form`."""
    write_text(Path(path), _lines({"format": form, **encode(value)}) + "\n")


def load(kind: type[T], path: str | os.PathLike[str], form: str, way_out: str) -> T:
    """Read a dataclass from a file that `save` wrote.

    Parameters
    ----------
    kind : type
        The dataclass.
    path : path-like
        The file, plain or compressed.
    form : str
        The expected entry ``format``.
    way_out : str
        The end of every error message: ``make it with ...``.

    Raises
    ------
    InputError
        If the file can't be read, has another format, or holds a value that does not match.
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
        text = ": ".join(filter(None, (".".join(error.path), str(error))))
        raise InputError(f"{text}; {way_out}", file=path, rule=error.rule) from error


def encode(value: Any) -> Any:
    """Convert a value into objects that `json` can write."""
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
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _numbers(value)
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def _numbers(array: NDArray[Any]) -> list[Any]:
    """Convert an array into lists, whole numbers into ints."""
    if array.ndim > 1:
        return [_numbers(row) for row in array]
    return [int(x) if x % 1 == 0 else x for x in array.tolist()]


def _lines(tree: Any, indent: int = 1) -> str:
    """Write JSON: on one line if it fits, else a line an entry; lists of numbers are wrapped."""
    line = json.dumps(tree, ensure_ascii=False)
    if len(line) <= WIDTH or not isinstance(tree, (dict, list)):
        return line
    pad = "\n" + " " * indent
    if isinstance(tree, dict):
        entries = [f"{json.dumps(key)}: {_lines(item, indent + 1)}" for key, item in tree.items()]
        return "{" + pad + f",{pad}".join(entries) + "}"
    if all(isinstance(item, (int, float)) for item in tree):
        return "[" + "\n".join(textwrap.wrap(line[1:-1], WIDTH)) + "]"
    return "[" + pad + f",{pad}".join(_lines(item, indent + 1) for item in tree) + "]"


def decode(kind: type[T], raw: Any) -> T:
    """Convert parsed JSON back into the dataclass; raise `MisfitError` if it does not match."""
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
        readers = {name: _reader(field) for name, field in type_hints(base).items()}
        return partial(_object, base, readers, rules)
    if origin is Mapping:
        return partial(_mapping, inner[0], _reader(inner[1]))
    if origin is tuple:
        return partial(_tuple, [_reader(arm) for arm in inner if arm is not Ellipsis], len(inner))
    if origin is UnionType and NoneType in inner:
        (reader,) = (_reader(arm) for arm in inner if arm is not NoneType)
        return lambda raw: None if raw is None else reader(raw)
    return partial(_plain, hint)


def _object(kind: type[Any], readers: Mapping[str, Reader], rules: Sequence[Any], raw: Any) -> Any:
    if _is_transparent(kind):
        return _checked(kind(*(reader(raw) for reader in readers.values())), rules, raw)
    if not isinstance(raw, dict):
        raise _misfit(f"an object of {', '.join(readers)}", raw)
    entries = {name: item for name, item in raw.items() if name != "format"}  # of a nested file
    for field in fields(kind):
        prefix = field.metadata.get("prefix")
        if prefix is not None:
            prefixed = [key for key in raw if key.startswith(prefix)]
            entries[field.name] = {key.removeprefix(prefix): entries.pop(key) for key in prefixed}
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in entries:
            raise MisfitError(f"there is no entry {field.name!r}")
    for name in entries:
        if name not in readers:
            raise MisfitError(unknown("entry", name, readers))
    values = {name: _read_item(name, readers[name], item) for name, item in entries.items()}
    return _checked(kind(**values), rules, raw)


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


def _read_item(key: object, reader: Reader, raw: Any) -> Any:
    try:
        return reader(raw)
    except MisfitError as error:
        error.path.insert(0, str(key))
        raise


def _array(dtype: np.dtype[Any], rules: Sequence[Any], raw: Any) -> NDArray[Any]:
    kind = "whole numbers" if dtype.kind == "i" else "numbers"
    try:
        numbers = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _misfit(f"a list of {kind}", raw) from None
    if not np.isfinite(numbers).all() or (np.abs(numbers) > MAX_EXACT).any():
        raise _misfit(f"finite {kind}, up to 2^53", raw)
    if dtype.kind == "i" and (numbers % 1 != 0).any():
        raise _misfit(kind, raw)
    for rule in rules:
        ends = (numbers.min(), numbers.max()) if numbers.size else ()
        if not (all(map(rule.holds, ends)) if isinstance(rule, Between) else rule.holds(numbers)):
            raise _misfit(f"{kind} {rule}", raw)
    return numbers.astype(dtype)


def _mapping(key: Any, reader: Reader, raw: Any) -> dict[Any, Any]:
    if not isinstance(raw, dict):
        raise _misfit("an object", raw)
    try:
        keys = [key(name) for name in raw]
    except ValueError:
        raise _misfit("an object with whole numbers for names", raw) from None
    items = zip(keys, raw.values(), strict=True)
    return {name: _read_item(name, reader, item) for name, item in items}


def _tuple(readers: list[Reader], length: int, raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise _misfit("a list", raw)
    if len(readers) < length:  # an ellipsis: any length, all of one type
        readers = readers * len(raw)
    if len(raw) != len(readers):
        raise _misfit(f"a list of {length}", raw)
    pairs = enumerate(zip(readers, raw, strict=True))
    return tuple(_read_item(i, reader, item) for i, (reader, item) in pairs)


def _plain(hint: Any, raw: Any) -> Any:
    try:
        if fits(raw, hint):
            return coerce(raw, hint)
    except OverflowError:
        pass  # a whole number beyond float64
    raise _misfit(describe_type(hint), raw)


def _is_transparent(kind: type[Any]) -> bool:
    return len(fields(kind)) == 1


def _misfit(expected: str, raw: Any) -> MisfitError:
    return MisfitError(f"must be {expected}, not {_short(raw)}")


def _short(raw: Any) -> str:
    return textwrap.shorten(reprlib.repr(raw), WIDTH)
