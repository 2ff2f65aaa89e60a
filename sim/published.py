"""Published numbers of the papers, with the definition of each.

A system has them in a file ``published.yaml``, whose package is an entry point of the kind
``published``, named after the system. Keys are the paper's sections, tables and figures. A number
is a string where it is shown as printed: with trailing zeros (``"33.90"``), or with words
(``"about 24"``). The key ``of`` of a mapping defines the numbers below it, field by field; a number
that differs is ``{value: 33, of: {place: "§7"}}``::

    fig10:
      of: {metric: value attained, population: jobs of a week, conditions: queues, place: Fig. 10}
      0.4: {priority: 62, wing_agg: 77}

``draws: one`` in a definition says that the paper's numbers are of one drawn workload, such as a
month of one cluster, or of a single run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from sim.base import entry_points
from sim.base.errors import InputError, unknown

MODULES_FOUND = ()
MODULES_INSTALLED = ("published",)  # for sim.base.sources
KIND, FILE = "published", "published.yaml"
DEFINITION, VALUE, ONE_DRAW = "of", "value", "one"
"""Keys of a mapping that defines its numbers, and of a number with a definition of its own; the
value of `Definition.draws`."""


class UnknownNumberError(InputError, KeyError):
    """Unknown paper, or unknown key of a paper."""


@dataclass(frozen=True)
class Definition:
    """Definition of a published number, by the paper's own words; empty where nobody gave it."""

    metric: str = ""
    population: str = ""
    conditions: str = ""
    place: str = ""  # of the sentence: section, table, figure
    uncompared: str = ""  # reason why no page compares it
    draws: str = ""  # ``one`` of a single drawn workload or run

    def missing(self) -> list[str]:
        """Return the names of the fields that a number must have and that are empty."""
        return [name for name in OBLIGATORY if not getattr(self, name)]


_FIELDS = tuple(field.name for field in fields(Definition))
OBLIGATORY = tuple(name for name in _FIELDS if name not in ("draws", "uncompared"))
"""Fields that each number has; without them a plug-in's page says that they are not stated."""


class Printed(str):
    """A printed number, its keys, the paper's name first, and if it is of one draw."""

    __slots__ = ("is_one_draw", "path")
    path: tuple[str, ...]
    is_one_draw: bool

    def __new__(
        cls, text: str, path: tuple[str, ...] = (), *, is_one_draw: bool = False
    ) -> Printed:
        """Build the text of a number."""
        printed = super().__new__(cls, text)
        printed.path, printed.is_one_draw = path, is_one_draw
        return printed


class Numbers(Mapping[str, Any]):
    """Read-only mapping of the numbers under a key of a paper's file; keys are strings."""

    def __init__(
        self, path: str, content: Mapping[Any, Any], above: Mapping[str, str] | None = None
    ) -> None:
        self._path = path
        self._content: dict[str, Any] = {}
        self._definitions: dict[str, Definition] = {}
        common = _defined(path, content, above or {})
        for key, value in content.items():
            if key != DEFINITION:
                is_own = isinstance(value, Mapping) and VALUE in value
                name, own = f"{path}, {key}", _defined(path, value, common) if is_own else common
                self._content[str(key)] = _frozen(name, value[VALUE] if is_own else value, own)
                self._definitions[str(key)] = Definition(**own)

    def __getitem__(self, key: object) -> Any:
        """Return the number, or the numbers, of a key."""
        if str(key) not in self._content:
            raise UnknownNumberError(unknown(f"number of {self._path}", key, self._content))
        return self._content[str(key)]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys, in the file's order."""
        return iter(self._content)

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._content)

    def __or__(self, other: Numbers) -> Numbers:
        """Join the numbers of two files of a paper, which have no key in common."""
        joined = Numbers(self._path, {})
        joined._content = {**self._content, **other._content}
        joined._definitions = {**self._definitions, **other._definitions}
        if len(joined) < len(self) + len(other):
            twice = ", ".join(self._content.keys() & other._content.keys())
            raise InputError(f"{self._path}: {twice} is in both files of published numbers")
        return joined

    def definition(self, key: object, *below: object) -> Definition:
        """Return the definition of the number under some keys."""
        inner = self[key]
        return inner.definition(*below) if below else self._definitions[str(key)]

    def paths(self) -> Iterator[tuple[str, ...]]:
        """Yield the keys of each number, in the file's order."""
        for key, value in self._content.items():
            below = value.paths() if isinstance(value, Numbers) else ((),)
            yield from ((key, *path) for path in below)


def papers() -> list[str]:
    """Return the names of the papers, sorted."""
    return sorted(entry_points.installed(KIND))


@cache
def numbers(paper: str) -> Numbers:
    """Read the published numbers of a paper.

    Parameters
    ----------
    paper : str
        System of the paper: alibaba, backfill, dagps, jockey, slearn or wing.

    Returns
    -------
    Numbers
        A read-only mapping of mappings, numbers, strings and tuples.

    Raises
    ------
    InputError
        If there is no such paper; the mappings raise the same for an unknown key.
    """
    if paper not in papers():
        raise UnknownNumberError(unknown("paper", paper, papers()))
    return load(paper, Path(str(entry_points.load(KIND, paper).__file__)).with_name(FILE))


def load(paper: str, path: Path) -> Numbers:
    """Load the numbers in a file of a paper.

    Raises InputError if a definition has an unknown field.
    """
    import yaml  # late: `import sim` does not need it

    text = path.read_text(encoding="utf-8")
    return Numbers(paper, yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def _defined(path: str, content: Mapping[Any, Any], above: Mapping[str, str]) -> dict[str, str]:
    own = content.get(DEFINITION, {})
    for name in own:
        if name not in _FIELDS:
            raise InputError(unknown(f"field of the definition of {path}", name, _FIELDS))
    if own.get("draws", ONE_DRAW) != ONE_DRAW:
        raise InputError(f"draws of the definition of {path}: {ONE_DRAW}, or none at all")
    return {**above, **own}


def _frozen(path: str, value: Any, above: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return Numbers(path, value, above)
    if isinstance(value, list):
        return tuple(value)
    return value
