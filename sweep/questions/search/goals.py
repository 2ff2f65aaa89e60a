"""Goals of a search: the capacity that meets a target, the best parameters of a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from sim.base.errors import InputError
from sim.base.parameters import Between, NotNegative, Positive, check
from sim.metrics import metric
from sim.metrics.groups import split
from sweep.grid import planner
from sweep.grid.cluster_size import EXTRA
from sweep.grid.goal import Goal
from sweep.grid.machine_kinds import EXTRA_KIND
from sweep.grid.overrides import Assignment, Interval
from sweep.stats import FIRST_SEEDS
from sweep.stats.metric_format import style

KEYS = {
    "target": ("metric", "at_most", "at_least", "tolerance", "nodes"),
    "search": ("metric", "cells", "seeds", "test_seeds"),
}
KIND, MORE = f"cluster.{EXTRA_KIND}", f"cluster.{EXTRA}"
"""Keys of cells of a target over one kind of machines; `MORE` is an axis."""
MIN_CELLS = 40
"""Cells of a search: with fewer no setting meets enough seeds to be told from another."""


@dataclass(frozen=True)
class Target(Goal):
    """Goal of a search for the least capacity at which a metric's mean over seeds meets a bound."""

    metric: str
    bound: float
    is_most: bool  # `bound` is the maximum of the metric, otherwise its minimum
    tolerance: float | None  # of the answer, relative; None: one machine, or 1 % if that is more
    low: float  # range of capacities to search, or of the machines of one kind over today's
    high: float
    # the kind of machines that is searched; None: the whole cluster. Its cells name it in the id
    nodes: str | None = field(default=None, repr=False)

    def record(self) -> dict[str, Any]:
        """Return its entry of ``config.yaml``."""
        return {"goal": asdict(self)}

    @property
    def words(self) -> str:
        """The target in short, such as ``jct_p99_s <= 600``."""
        return f"{self.metric} {'<=' if self.is_most else '>='} {self.bound:g}"


@dataclass(frozen=True)
class Search(Goal):
    """Goal of a search for the values of a policy's parameters at which metrics are best."""

    metrics: tuple[str, ...]  # one, or two for a Pareto front
    cells: int  # at most, over all policies, traces and capacities
    seeds: int  # that the best settings meet in the race
    test_seeds: int  # further ones, on which the best are compared with the default
    space: Mapping[str, Interval | tuple[Any, ...]]  # by key ``policy.X``

    def record(self) -> dict[str, Any]:
        """Return its entry of ``config.yaml``."""
        return {"goal": asdict(self)}


Assignments = dict[str, Assignment]


def take_goal(lines: Assignments, defaults: Mapping[str, Any]) -> Target | Search | None:
    """Remove the goal's assignments from a command line's; return the goal, None if there is none.

    The remaining assignments sweep over the two ends of the intervals, and over seeds.
    """
    groups = {group: _take_group(group, lines, defaults) for group in KEYS}
    target, search = groups["target"], groups["search"]
    if target is not None and search is not None:
        raise InputError(
            "target.metric finds a capacity, search.metric finds parameters: use one, then the "
            "other with the result of the first",
            rule="two goals",
        )
    if target is not None:
        return _target(target, lines, defaults)
    if search is not None:
        return _search(search, lines, defaults)
    for line in lines.values():
        if _interval(line) is not None:
            raise InputError(
                f"{line.text}: an interval has no steps. To find the least capacity that meets a "
                "target add target.metric=jct_p99_s target.at_most=600; to find the best "
                "parameters add search.metric=jct_mean_s; for steps write range(start,stop,step)",
                rule="interval",
            )
    return None


def _take_group(
    group: str, lines: Assignments, defaults: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Remove a group's keys and return their values; None where no metric is given."""
    found_lines = {key: lines.pop(f"{group}.{key}", None) for key in KEYS[group]}
    group_lines = {key: line for key, line in found_lines.items() if line is not None}
    metric = group_lines.get("metric")
    if metric is None or metric.values == (None,):
        if group_lines.keys() - {"metric"}:
            raise InputError(
                f"{group}.{min(group_lines.keys() - {'metric'})} needs {group}.metric=NAME",
                rule="wrong type",
            )
        return None
    values = {key: line.value for key, line in group_lines.items() if key != "metric"}
    names = metric.values if metric.swept else metric.value
    names = (names,) if isinstance(names, str) else tuple(names)
    return {**defaults[group], **values, "metric": names}


def _target(values: Mapping[str, Any], lines: Assignments, defaults: Mapping[str, Any]) -> Target:
    names = _metrics("target.metric", values["metric"], 1, lines)
    bounds = {key: values[key] for key in ("at_most", "at_least") if values[key] is not None}
    if len(bounds) != 1:
        raise InputError(
            f"give target.at_most=X or target.at_least=X for target.metric={names[0]}, "
            f"{'not both' if bounds else 'one of them'}",
            rule="target",
        )
    ((direction, bound),) = bounds.items()
    check(f"target.{direction}", bound, float)
    check(
        "target.tolerance", values["tolerance"], Annotated[float, Between(above=0, high=1)] | None
    )
    better = None if "evaluator" in lines else metric(names[0]).better
    if better == ("lower" if direction == "at_least" else "higher"):
        other = "at_most" if direction == "at_least" else "at_least"
        raise InputError(
            f"{names[0]} is better {better}, so more capacity does not bring it "
            f"{'up' if better == 'lower' else 'down'} to {bound!r}: give target.{other}",
            rule="direction",
        )
    _refuse_others("target", lines, ("capacity",))
    capacity_line = lines.get("capacity")
    span = None if capacity_line is None else _interval(capacity_line)
    if span is None or capacity_line is None:
        raise InputError(
            "a target needs a range of capacities to search: capacity='interval(0.3,1.5)'",
            rule="interval",
        )
    check("target.nodes", values["nodes"], str | None)
    check("capacity", span.low, Positive if values["nodes"] is None else NotNegative)
    lines["capacity"] = replace(capacity_line, values=(span.low, span.high))
    if values["nodes"] is not None:
        _search_kind(values["nodes"], lines)
    max_seeds_line = lines.pop("seeds_max", None)
    if max_seeds_line is not None and "seed" in lines:
        raise InputError("seed= lists the seeds to use: leave seeds_max= out", rule="seeds")
    n_seeds = defaults["seeds_max"] if max_seeds_line is None else max_seeds_line.value
    check("seeds_max", n_seeds, Annotated[int, Between(FIRST_SEEDS)])
    _seeds(lines, n_seeds)
    tolerance = None if values["tolerance"] is None else float(values["tolerance"])
    is_most = direction == "at_most"
    return Target(names[0], float(bound), is_most, tolerance, span.low, span.high, values["nodes"])


def _search_kind(kind: str, lines: Assignments) -> None:
    """Let the cells have the cluster of capacity 1 with other numbers of machines of a kind."""
    for key in (KIND, MORE):
        if key in lines:
            raise InputError(f"target.nodes={kind} sets {key}: leave it out", rule="two goals")
    text = f"target.nodes={kind}"
    lines["capacity"] = replace(lines["capacity"], values=(1.0,))
    lines[KIND] = Assignment(KIND, (kind,), False, "set", text)
    lines[MORE] = Assignment(MORE, (0,), True, "set", text)


def _search(values: Mapping[str, Any], lines: Assignments, defaults: Mapping[str, Any]) -> Search:
    names = _metrics("search.metric", values["metric"], 2, lines)
    for name in names:
        if style(name).better is None:
            raise InputError(
                f"search.metric={name}: it is not known if lower or higher is better; valid: the "
                "simulator's own metrics",
                rule="metric",
            )
    check("search.cells", values["cells"], Annotated[int, Between(MIN_CELLS)])
    check("search.seeds", values["seeds"], Annotated[int, Between(2)])
    check("search.test_seeds", values["test_seeds"], Annotated[int, Between(FIRST_SEEDS)])
    for key in ("seed", "seeds"):
        if key in lines:
            raise InputError(
                f"a search chooses its seeds, some to search on and others to test on: leave "
                f"{key}= out; search.seeds= and search.test_seeds= are their numbers",
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
            "a search needs parameters to vary: policy.m='interval(0,2)' or policy.rp=0.5,0.8,1",
            rule="interval",
        )
    _seeds(lines, values["seeds"])
    return Search(names, values["cells"], values["seeds"], values["test_seeds"], space)


def _seeds(lines: Assignments, n: int) -> None:
    if "seed" not in lines:
        lines["seed"] = Assignment("seed", tuple(range(n)), True, "set", f"seed=range(0,{n})")


def _metrics(key: str, names: Sequence[Any], n_max: int, lines: Assignments) -> tuple[str, ...]:
    """Check the metric names, as far as they are the simulation's and not an evaluator's."""
    if len(names) > n_max or len(set(names)) < len(names):
        count = {1: "one metric", 2: "one metric, or two"}[n_max]
        raise InputError(f"{key} takes {count}, not {', '.join(map(str, names))}", rule="range")
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{key} must be a metric's name, not {name!r}", rule="wrong type")
        if "evaluator" not in lines and metric(name).against_baseline:
            raise InputError(
                f"{key}={name} compares with a baseline's cells, which a search does not run; give "
                "the metric that it compares, such as jct_mean_s",
                rule="metric",
            )
        _check_group(key, name, lines)
    return tuple(names)


def _check_group(key: str, name: str, lines: Assignments) -> None:
    """Refuse a metric of a group of jobs if the cells will have none by its key."""
    grouped = split(name)
    if "evaluator" in lines or grouped is None:
        return
    by_lines = [lines[by] for by in (planner.BY, "evaluator.by") if by in lines]
    keys = [text for line in by_lines for value in line.values for text in _texts(value)]
    if grouped[1] not in keys:
        by = ",".join([*keys, grouped[1]])
        raise InputError(
            f"{key}={name} is of a group of jobs: give {planner.BY}={by} too", rule="metric"
        )


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value or ()]


def _refuse_others(group: str, lines: Assignments, allowed: Sequence[str]) -> None:
    """Refuse intervals of keys that are not searched, and ``seeds=auto``."""
    for key, line in lines.items():
        is_parameter = group == "search" and key.startswith("policy.")
        if _interval(line) is not None and key not in allowed and not is_parameter:
            subject = "a capacity" if group == "target" else "parameters of policies, policy.X"
            raise InputError(
                f"{line.text}: {group}.metric searches {subject}; give {key} one value, or several "
                "as a,b",
                rule="interval",
            )
    if "seeds" in lines:
        message = f"{group}.metric adds seeds by itself: leave seeds=auto out"
        raise InputError(f"{message}; seeds_max=N is their maximum number", rule="seeds")


def _interval(line: Assignment) -> Interval | None:
    first = line.values[0] if line.values else None
    return first if isinstance(first, Interval) else None
