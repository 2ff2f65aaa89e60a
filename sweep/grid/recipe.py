"""Make a workload: draw or read it, cut it to a window, apply transforms, stretch its arrivals.

The modules imported here are part of every recipe, so code that only checks or fetches traces is
elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import sim
from sim import transforms
from sim.base.errors import InputError
from sweep.grid import cluster_size

if TYPE_CHECKING:
    from sim.workload.workload import Workload

WINDOW_KEYS = ("begin_s", "end_s")
AFTER = "after"
"""Key of a trace: transforms, ``[{name: options}, ...]``, that apply once arrivals are stretched
and the cluster is sized, so that neither follows them."""
GENERIC_KEYS = ("format", "synth", "module", "path", "transforms", AFTER, *WINDOW_KEYS)
"""Keys of a trace that are not options of its generator or reader."""
ADD = "add"
"""Transform whose option is another trace's configuration."""


def make(trace: Mapping[str, Any], cluster: Mapping[str, Any]) -> Workload:
    """Build the workload of a trace configuration whose file is on this machine."""
    workload = cluster_size.stretched(_read(trace), cluster)
    after = [*all_transforms({AFTER: trace.get(AFTER)})]
    if after and cluster.get("count") is None:
        full = cluster_size.full_count(workload, cluster)
        workload = workload.with_meta({cluster_size.FULL: full})
    for name, chosen in after:
        workload = _apply(workload, name, chosen)
    return workload


def all_transforms(trace: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and options of each transform of a trace, in the order of application."""
    for chosen in (trace.get("transforms") or {}, *(trace.get(AFTER) or ())):
        yield from ((name, options or {}) for name, options in chosen.items())


def _read(trace: Mapping[str, Any]) -> Workload:
    """Draw or read the workload, cut it to its window, apply the transforms before any stretch."""
    options = {key: value for key, value in trace.items() if key not in GENERIC_KEYS}
    module = trace.get("module")
    try:
        if "synth" in trace:
            workload = sim.synthesize(trace["synth"], module=module, **options)
        else:
            workload = sim.read_trace(trace["format"], trace["path"], module=module, **options)
    except OSError as error:
        raise InputError(f"can't be read: {error}", file=trace.get("path")) from error
    begin, end = (trace.get(key) for key in WINDOW_KEYS)
    if begin is not None or end is not None:
        workload = workload.slice_time(begin or 0.0, math.inf if end is None else end)
    for name, chosen in all_transforms({"transforms": trace.get("transforms")}):
        workload = _apply(workload, name, chosen)
    return workload


def _apply(workload: Workload, name: str, chosen: Mapping[str, Any]) -> Workload:
    if name == ADD:
        chosen = {"other": _read(chosen["trace"])}
    return transforms.apply(workload, name, **chosen)
