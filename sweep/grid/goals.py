"""What is looked for: the capacity that meets a target, the parameters that do best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from sim.base.errors import InputError
from sim.base.parameters import Between, Positive, check
from sim.metrics import metric
from sweep.grid.overrides import Assignment, Interval
from sweep.stats import FIRST_SEEDS
from sweep.stats.metric_format import style

KEYS = {
    "target": ("metric", "at_most", "at_least", "tolerance"),
    "search": ("metric", "cells", "seeds", "test_seeds"),
}
LEAST_CELLS = 40
"""Of a search: with fewer no setting meets enough seeds to be told from another."""


@dataclass(frozen=True)
class Target:
    """The least capacity is looked for at which a metric, its mean over seeds, is good enough."""

    metric: str
    bound: float
    is_most: bool  # whether the metric may be `bound` at most, or has to be at least that
    tolerance: float | None  # of the answer, relative; None: one machine, or 1 % if that is more
    low: float  # capacities between which it is looked for
    high: float

    @property
    def words(self) -> str:
        """The target in short, such as ``jct_p99_s <= 600``."""
        return f"{self.metric} {'<=' if self.is_most else '>='} {self.bound:g}"


@dataclass(frozen=True)
class Search:
    """The values of a policy's parameters are looked for with which metrics are best."""

    metrics: tuple[str, ...]  # one, or two of which the front is wanted
    cells: int  # at most, over all policies, traces and capacities
    seeds: int  # that the best settings meet in the race
    test_seeds: int  # others, on which the best are compared with the default
    space: Mapping[str, Interval | tuple[Any, ...]]  # by key ``policy.X``


Goal = Target | Search
Lines = dict[str, Assignment]


def take(lines: Lines, defaults: Mapping[str, Any]) -> Goal | None:
    """Take what is looked for out of a command line's assignments; None if nothing is.

    What is left sweeps over the two ends of what were intervals, and over seeds.
    """
    asked = {group: _asked(group, lines, defaults) for group in KEYS}
    target, search = asked["target"], asked["search"]
    if target is not None and search is not None:
        raise InputError(
            "target.metric finds a capacity, search.metric finds parameters: ask for one, then "
            "for the other with what was found",
            rule="two goals",
        )
    if target is not None:
        return _target(target, lines, defaults)
    if search is not None:
        return _search(search, lines, defaults)
    for line in lines.values():
        if _interval(line) is not None:
            raise InputError(
                f"{line.text}: an interval has no steps. For the least capacity that is good "
                "enough add target.metric=jct_p99_s target.at_most=600; for the parameters that "
                "do best search.metric=jct_mean_s; for steps write range(start,stop,step)",
                rule="interval",
            )
    return None


def _asked(group: str, lines: Lines, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
    """Take a group's keys out; None where no metric is given."""
    given = {key: lines.pop(f"{group}.{key}", None) for key in KEYS[group]}
    said = {key: line for key, line in given.items() if line is not None}
    metric = said.get("metric")
    if metric is None or metric.values == (None,):
        if said.keys() - {"metric"}:
            raise InputError(
                f"{group}.{min(said.keys() - {'metric'})} goes with {group}.metric=NAME",
                rule="wrong type",
            )
        return None
    values = {key: line.value for key, line in said.items() if key != "metric"}
    names = metric.values if metric.swept else metric.value
    names = (names,) if isinstance(names, str) else tuple(names)
    return {**defaults[group], **values, "metric": names}


def _target(asked: Mapping[str, Any], lines: Lines, defaults: Mapping[str, Any]) -> Target:
    names = _metrics("target.metric", asked["metric"], 1, lines)
    bounds = {key: asked[key] for key in ("at_most", "at_least") if asked[key] is not None}
    if len(bounds) != 1:
        raise InputError(
            f"give target.at_most=X or target.at_least=X for target.metric={names[0]}, "
            f"{'not both' if bounds else 'one of them'}",
            rule="target",
        )
    ((direction, bound),) = bounds.items()
    check(f"target.{direction}", bound, float)
    check("target.tolerance", asked["tolerance"], Annotated[float, Between(above=0, high=1)] | None)
    better = None if "evaluator" in lines else metric(names[0]).better
    if better == ("lower" if direction == "at_least" else "higher"):
        other = "at_most" if direction == "at_least" else "at_least"
        raise InputError(
            f"{names[0]} is better {better}, so more capacity does not bring it "
            f"{'up' if better == 'lower' else 'down'} to {bound!r}: give target.{other}",
            rule="direction",
        )
    _refuse_others("target", lines, ("capacity",))
    given = lines.get("capacity")
    span = None if given is None else _interval(given)
    if span is None or given is None:
        raise InputError(
            "a target needs the capacities between which to look: capacity='interval(0.3,1.5)'",
            rule="interval",
        )
    check("capacity", span.low, Positive)
    lines["capacity"] = replace(given, values=(span.low, span.high))
    most = lines.pop("seeds_max", None)
    if most is not None and "seed" in lines:
        raise InputError("seed= names the seeds there may be: leave seeds_max= out", rule="seeds")
    n_seeds = defaults["seeds_max"] if most is None else most.value
    check("seeds_max", n_seeds, Annotated[int, Between(FIRST_SEEDS)])
    _seeds(lines, n_seeds)
    tolerance = None if asked["tolerance"] is None else float(asked["tolerance"])
    is_most = direction == "at_most"
    return Target(names[0], float(bound), is_most, tolerance, span.low, span.high)


def _search(asked: Mapping[str, Any], lines: Lines, defaults: Mapping[str, Any]) -> Search:
    names = _metrics("search.metric", asked["metric"], 2, lines)
    for name in names:
        if style(name).better is None:
            raise InputError(
                f"search.metric={name}: nothing says whether it is better lower or higher; valid: "
                "the simulator's own metrics",
                rule="metric",
            )
    check("search.cells", asked["cells"], Annotated[int, Between(LEAST_CELLS)])
    check("search.seeds", asked["seeds"], Annotated[int, Between(2)])
    check("search.test_seeds", asked["test_seeds"], Annotated[int, Between(FIRST_SEEDS)])
    for key in ("seed", "seeds"):
        if key in lines:
            raise InputError(
                f"a search chooses its seeds, some to search on and others to test on: leave "
                f"{key}= out; search.seeds= and search.test_seeds= say how many",
                rule="seeds",
            )
    _refuse_others("search", lines, ())
    space: dict[str, Interval | tuple[Any, ...]] = {}
    for key, line in lines.items():
        if key.startswith("policy.") and line.swept:
            span = _interval(line)
            space[key] = line.values if span is None else span
            if span is not None:
                lines[key] = replace(line, values=(span.low, span.high))
    if not space:
        raise InputError(
            "a search needs parameters to look through: policy.m='interval(0,2)' or "
            "policy.rp=0.5,0.8,1",
            rule="interval",
        )
    _seeds(lines, asked["seeds"])
    return Search(names, asked["cells"], asked["seeds"], asked["test_seeds"], space)


def _seeds(lines: Lines, n: int) -> None:
    if "seed" not in lines:
        lines["seed"] = Assignment("seed", tuple(range(n)), True, "set", f"seed=range(0,{n})")


def _metrics(key: str, names: Sequence[Any], most: int, lines: Lines) -> tuple[str, ...]:
    """Check the names, as far as they are the simulation's and no evaluator's own."""
    if len(names) > most or len(set(names)) < len(names):
        count = {1: "one metric", 2: "one metric, or two"}[most]
        raise InputError(f"{key} takes {count}, not {', '.join(map(str, names))}", rule="range")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{key} must be a metric's name, not {name!r}", rule="wrong type")
        if "evaluator" not in lines and metric(name).against_baseline:
            raise InputError(
                f"{key}={name} compares with a baseline's cells, which a search has none of; "
                "take what it compares, such as jct_mean_s",
                rule="metric",
            )
    return tuple(names)


def _refuse_others(group: str, lines: Lines, allowed: Sequence[str]) -> None:
    """Refuse intervals where they are not what is looked for, and ``seeds=auto``."""
    for key, line in lines.items():
        is_parameter = group == "search" and key.startswith("policy.")
        if _interval(line) is not None and key not in allowed and not is_parameter:
            looks = "a capacity" if group == "target" else "parameters of policies, policy.X"
            raise InputError(
                f"{line.text}: {group}.metric looks for {looks}; give {key} one value, or several "
                "as a,b",
                rule="interval",
            )
    if "seeds" in lines:
        message = f"{group}.metric adds seeds by itself: leave seeds=auto out"
        raise InputError(f"{message}; seeds_max=N says how many there may be", rule="seeds")


def _interval(line: Assignment) -> Interval | None:
    first = line.values[0] if line.values else None
    return first if isinstance(first, Interval) else None
