"""Sweeps from Python, for notebooks: `run` and `load` return a `Sweep`.

Tables are pandas frames; figures draw themselves. Everything is read from the sweep's folder, so a
notebook shows the same as the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.base.errors import InputError
from sweep import driver
from sweep.api.cell import Cell
from sweep.api.results import Sweep, plain
from sweep.grid import remote_results
from sweep.grid.options import Options
from sweep.grid.overrides import quote
from sweep.store import sync

__all__ = ["Cell", "Sweep", "load", "run"]


def run(
    *words: str, config_dir: str | Sequence[str] = (), fail_fast: bool = False, **keys: Any
) -> Sweep:
    """Run a sweep to its end, as ``python -m sweep`` does; cached cells are not run again.

    Parameters
    ----------
    *words : str
        Words of the command line: ``"policy=fifo,srpt"``, ``"seed=range(0,10)"``.
    config_dir : str or sequence of str
        Folders of your own options.
    fail_fast : bool
        Stop at the first failed cell.
    **keys
        The same as keywords: ``baseline="fifo"``, ``capacity=[0.7, 1.0]``, ``seed=range(10)``. A
        string is read as on the command line; several values are an axis. Keys with a dot go as
        ``**{"policy.queues": [5, 10]}``.

    Returns
    -------
    Sweep
        Cells that failed have the status ``failed``.

    Raises
    ------
    InputError
        If the grid is wrong; nothing was started.
    """
    folders = [config_dir] if isinstance(config_dir, str) else list(config_dir)
    arguments = [*words, *(_word(key, value) for key, value in keys.items())]
    for word in arguments:
        if not isinstance(word, str) or not ("=" in word or word.startswith("~")):
            raise InputError(f"{word!r} is not key=value, e.g. policy=fifo,sjf", rule="grammar")
    return Sweep(driver.run(driver.make_request(arguments, folders, fail_fast=fail_fast)).folder)


def load(name: str | Path | None = None, *, results: str | Path | None = None) -> Sweep:
    """Load a finished sweep.

    Parameters
    ----------
    name : str or path, optional
        Its id, its name (the latest of that name) or its folder; left out: the latest begun.
    results : str or path, optional
        Folder of results; ``results`` unless `name` is itself a folder.

    Raises
    ------
    InputError
        If there is none, or it is not finished.
    """
    folder = Options().compose()["paths"]["results"] if results is None else results
    local = sync.fetch(remote_results.working_folder(str(folder)))
    return Sweep(driver.open_intact(local, None if name is None else str(name)))


def _word(key: str, value: Any) -> str:
    """Write a keyword in the command line's grammar."""
    if isinstance(value, str):
        return f"{key}={value}"
    if isinstance(value, range):
        return f"{key}=range({value.start},{value.stop},{value.step})"
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        parts = [quote(key, plain(item)).partition("=")[2] for item in value]
        if not parts:
            raise InputError(f"{key} has no values: an axis needs at least one", rule="empty axis")
        return f"{key}={','.join(parts)}"
    return quote(key, plain(value))
