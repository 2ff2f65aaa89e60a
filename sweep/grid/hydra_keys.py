"""Habits of Hydra that mean something else here: a line says what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from sim.base.errors import InputError
from sweep.grid.overrides import Assignment

_FOLDER = "paths.results=DIR is the folder of all output"
_WAY_OUT = {
    "hydra.run": _FOLDER,
    "hydra.sweep": _FOLDER,
    "hydra.output_subdir": _FOLDER,
    "hydra.launcher": "launcher=inline, local or ray runs cells; launcher.workers=N limits them",
    "hydra.sweeper": "policy.X=1,2 sweeps; search.metric=M (docs/targets.md) searches",
    "hydra.mode": "policy=fifo,srpt sweeps in any case",
    "hydra.searchpath": "--config-dir DIR adds a folder of options",
    "hydra.job.name": "name=NAME names the sweep",
}
_TOP = "cells are not run by Hydra"
_OPTIONAL = ("experiment", "baseline", "metrics", "seeds", "name")
"""Keys of which ``null`` means none."""


def check(lines: Sequence[Assignment]) -> None:
    """Refuse keys of Hydra itself, and ``+`` and ``~`` where they would do nothing.

    Raises
    ------
    InputError
        With what to write instead.
    """
    for line in lines:
        key = line.key.replace("/", ".")
        if key.partition(".")[0] == "hydra":
            ways = [way for start, way in _WAY_OUT.items() if f"{key}.".startswith(f"{start}.")]
            way_out = ways[0] if ways else f"{_FOLDER}, launcher=NAME runs cells"
            raise InputError(f"{line.text}: {_TOP}; {way_out}", rule="hydra")
        if "." in line.key:
            continue
        if line.kind == "delete":
            value = "null" if line.key in _OPTIONAL else "VALUE"
            raise InputError(
                f"{line.text} ({line.source}): {line.key} can't be deleted; "
                f"give {line.key}={value}",
                rule="wrong type",
            )
        if line.kind == "add" and not line.text.startswith("++"):
            plain = line.text.removeprefix("+")
            raise InputError(
                f"{line.text} ({line.source}): + adds a key that is not there; write {plain} to "
                f"replace its value, {line.key}=A,B for an axis",
                rule="wrong type",
            )
