"""Cells of finished sweeps that today's code would compute anew."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from sim.base.errors import InputError, PolicyError
from sweep.store import sources
from sweep.store.cache import Cache
from sweep.store.folder import SweepFolder

MAX_NAMES = 3


def stale_cells(folder: SweepFolder, cache: Cache) -> dict[str, int]:
    """Count, by policy, the cells whose code has changed since; policies without any are left out.

    The code of a policy, its evaluator and its traces is that of one of their cells. A cell that is
    not cached any more counts as it was recorded.
    """
    cells = folder.cells(["policy", "trace", "key", "status"])
    done = cells.filter(pc.not_equal(cells["status"], "failed"))
    first = [("key", "min"), ("key", "count")]
    counts: dict[str, int] = {}
    for group in done.group_by(["policy", "trace"], use_threads=False).aggregate(first).to_pylist():
        if _has_changed(cache.config(group["key_min"])):
            policy = group["policy"]
            counts[policy] = counts.get(policy, 0) + group["key_count"]
    return counts


def _has_changed(config: Mapping[str, Any] | None) -> bool:
    """Tell whether a cell comes from other sources than today's; False where that is not known."""
    if config is None or not isinstance(config.get("workload"), Mapping):
        return False
    try:
        if not all(_is_here(config.get(part)) for part in ("policy", "evaluator", "trace")):
            return False  # of a folder of a user's own, which only a request names
        cell = sources.cell_digest(config["policy"], config["evaluator"])
        workload = sources.workload_digest(config["trace"])
    except (InputError, PolicyError, ImportError, KeyError):  # a module that is not here
        return False
    return bool(config["sources"] != cell or config["workload"]["sources"] != workload)


def _is_here(named: object) -> bool:
    """Tell whether the module of a part of a cell's configuration, if it has one, can be found."""
    module = named.get("module") if isinstance(named, Mapping) else None
    return module is None or importlib.util.find_spec(module) is not None


def stale_words(counts: Mapping[str, int]) -> str:
    """Write counts such as ``stale: 300 cells (fifo, srpt changed)``; empty without any."""
    if not counts:
        return ""
    n = sum(counts.values())
    names = [*counts][:MAX_NAMES]
    more = [f"{len(counts) - MAX_NAMES} more"] if len(counts) > MAX_NAMES else []
    return f"stale: {n:,} cell{'s' * (n != 1)} ({', '.join([*names, *more])} changed)"
