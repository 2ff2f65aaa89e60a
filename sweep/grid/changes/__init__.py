"""Changes that a what-if tries: a module each, found by its name (``what_if.NAME=VALUE``).

A module has these functions; a new file here, or an entry point of the kind ``changes``, is a new
what-if.

``check(change)``
    Refuse a value that is wrong for every cell.
``apply(parts, change) -> parts``
    Change the configurations of a cell's ``policy``, ``trace``, ``cluster`` and ``evaluator``,
    before interpolations are resolved. It raises `NotForPolicyError` for a policy that it can't
    change, whose cells are then left out.
``phrase(change) -> str``
    The change in words, such as ``half the time limit of long``.
``word(value) -> str``
    The value in labels; by default as it is written.
``note(change, cluster, transforms) -> str``
    A sentence on what it did, from the cell's cluster and the notes of its workload's transforms.

``ORDER`` is the place of a change of the workload among others (0). ``HAS_KEYS`` is True if its key
goes on: ``what_if.policy.interval_s=60``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from sim.base.errors import InputError
from sim.base.plugins import Plugins
from sweep.grid import config_tree
from sweep.grid.options import Options
from sweep.grid.overrides import Assignment
from sweep.grid.recipe import AFTER

MODULES_FOUND = ("sweep.grid.changes",)  # for sim.base.sources
MODULES_INSTALLED = ("changes",)
PREFIX = "what_if."
CHANGES = Plugins("what-if", __name__, "apply", "changes", arguments="parts, change")

Config = dict[str, Any]


class NotForPolicyError(InputError):
    """A policy that a change can't be made of."""


@dataclass(frozen=True)
class Change:
    """A value of a what-if.

    Attributes
    ----------
    name : str
        Its module.
    key : str
        What follows the name in its key: ``interval_s`` of ``what_if.policy.interval_s``; else "".
    value : object
        The value, as it is given.
    options : Options, optional
        Options that it may name.
    settings : sequence of Assignment
        Lines of the command line whose keys begin with its own.
    """

    name: str
    key: str
    value: Any
    options: Options | None = None
    settings: Sequence[Assignment] = ()

    @property
    def full_key(self) -> str:
        """Key on the command line."""
        return PREFIX + ".".join(filter(None, [self.name, self.key]))

    @property
    def text(self) -> str:
        """The change as on the command line."""
        return f"{self.full_key}={self.value}"

    @property
    def module(self) -> ModuleType:
        """Module that makes the change."""
        return CHANGES.module(self.name)

    @property
    def word(self) -> str:
        """Short label, such as ``nodes=+20``."""
        write = getattr(self.module, "word", _written)
        return f"{self.full_key.removeprefix(PREFIX)}={write(self.value)}"


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def change_of(key: str, value: Any, options: Options | None = None) -> Change:
    """Return the change of a key such as ``what_if.policy.interval_s``."""
    name, _, rest = key.removeprefix(PREFIX).partition(".")
    return Change(name, rest, value, options)


def is_key(key: str) -> bool:
    """Tell whether a key of the command line is that of a change."""
    name, _, rest = key.removeprefix(PREFIX).partition(".")
    if not key.startswith(PREFIX) or name not in CHANGES.names():
        return False
    return bool(rest) == getattr(CHANGES.module(name), "HAS_KEYS", False)


def with_transform(parts: Config, name: str, options: Mapping[str, Any]) -> Config:
    """Append a transform that applies after the stretch of arrivals and earlier changes."""
    trace = parts["trace"]
    return {**parts, "trace": {**trace, AFTER: [*(trace.get(AFTER) or ()), {name: dict(options)}]}}


def with_cluster(parts: Config, key: str, value: Any) -> Config:
    """Set a key of the cluster."""
    return {**parts, "cluster": config_tree.with_value(parts["cluster"], key, value, add=True)}


def times(factor: float) -> str:
    """Write a factor: ``half``, ``twice``, ``1.3 times``.

    >>> times(0.5), times(2), times(1.3)
    ('half', 'twice', '1.3 times')
    """
    return {0.5: "half", 2.0: "twice"}.get(float(factor), f"{factor:g} times")
