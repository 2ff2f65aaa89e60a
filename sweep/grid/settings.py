"""Where and how a sweep runs; nothing here changes a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.base.errors import InputError, unknown
from sweep.grid import config_tree
from sweep.grid.overrides import Assignment

_GRANULARITIES = ("cell", "policy", "sweep")
_HEADS = ("launcher", "tracking", "paths", "max_failures")


@dataclass(frozen=True)
class Settings:
    """Where and how to run."""

    results: Path  # folder under which everything is written, absolute
    launcher: Mapping[str, Any]  # the chosen options, resolved
    tracking: Mapping[str, Any]
    max_failures: int | None = None  # stop once this many cells have failed
    traces: str = ""  # folder of real traces, as given


def is_about_running(key: str) -> bool:
    """Tell whether a key says where or how a sweep runs."""
    return key.split(".")[0] in _HEADS


def read(
    given: Sequence[Assignment], defaults: Mapping[str, Any], *, fail_fast: bool = False
) -> Settings:
    """Apply assignments to the composed launcher, tracking and paths."""
    config = {head: defaults[head] for head in _HEADS}
    for line in given:
        add = line.kind == "add" or line.key == "max_failures"
        config = config_tree.with_value(config, line.key, line.value, add=add)
    config = config_tree.resolved(config)
    failures = _count("max_failures", 1 if fail_fast else config["max_failures"])
    results = config["paths"]["results"]
    if not isinstance(results, str) or not results:
        raise InputError(f"paths.results must be a folder, not {results!r}", rule="wrong type")
    traces = config["paths"]["traces"]
    if not isinstance(traces, str) or not traces:
        raise InputError(f"paths.traces must be a folder, not {traces!r}", rule="wrong type")
    _count("launcher.workers", config["launcher"].get("workers"))
    _check_kind("launcher", config["launcher"], ("inline", "local", "ray"))
    _check_kind("tracking", config["tracking"], ("mlflow", "none"))
    granularity = config["tracking"].get("granularity")
    if granularity not in (None, *_GRANULARITIES):
        message = unknown("tracking.granularity", str(granularity), _GRANULARITIES)
        raise InputError(f"{message}; null chooses by the number of cells", rule="wrong type")
    return Settings(
        results=Path(results).expanduser().resolve(),
        launcher=config["launcher"],
        tracking=config["tracking"],
        max_failures=failures,
        traces=traces,
    )


def _count(key: str, value: Any) -> int | None:
    if value is None or (type(value) is int and value >= 1):
        return value
    raise InputError(f"{key} must be a whole number >= 1 or null, not {value!r}", rule="wrong type")


def _check_kind(group: str, config: Mapping[str, Any], kinds: Sequence[str]) -> None:
    kind = config.get("kind")
    if kind not in kinds:
        raise InputError(unknown(f"{group}.kind", str(kind), kinds), rule=f"unknown {group}")
