"""The jobs of another trace, too; ``what_if.add.KEY=VALUE`` sets a key of it."""

from __future__ import annotations

from typing import Any

from sim.base.errors import InputError
from sweep.grid import config_tree, own_traces
from sweep.grid.changes import Change, Config, with_transform
from sweep.grid.recipe import ADD

ORDER = 2


def check(change: Change) -> None:
    """Refuse an unknown trace, or one without its file."""
    _trace(change)


def apply(parts: Config, change: Change) -> Config:
    """Add its jobs."""
    return with_transform(parts, ADD, {"trace": _trace(change)})


def word(value: Any) -> str:
    """Write the name of the trace."""
    return str(value).partition(":")[0]


def phrase(change: Change) -> str:
    """Write ``the jobs of cosmos, too``."""
    return f"the jobs of {word(change.value)}, too"


def _trace(change: Change) -> Config:
    """Return the configuration of the trace to add: an option, or ``NAME:FORMAT:PATH``."""
    text, options = str(change.value), change.options
    assert options is not None
    trace: Config
    if ":" in text:
        _, own = own_traces.parse(text, options, change.full_key)
        trace = own_traces.with_path(options.compose(trace=own.format)["trace"], own)
    else:
        trace = options.compose(trace=text)["trace"]
    for line in change.settings:
        key = line.key.removeprefix(f"{change.full_key}.")
        if line.kind == "delete":
            trace = config_tree.without(trace, key)
        else:
            trace = config_tree.with_value(trace, key, line.value, add=line.kind == "add")
    if trace.get("path") == "???":
        raise InputError(
            f"{change.text} needs a file: write {change.full_key}=NAME:{text}:FILE",
            rule="missing path",
        )
    return trace
