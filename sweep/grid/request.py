"""Request of a command line: axes, fixed values, and where and how to run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from sim.base.errors import InputError, unknown
from sim.base.parameters import Between, Count, Positive, Whole, check
from sim.metrics import metric
from sweep.grid import (
    config_tree,
    hydra_keys,
    overrides,
    own_traces,
    planner,
    plugins,
    remote_results,
    what_ifs,
)
from sweep.grid.goal import Goal
from sweep.grid.options import SWEPT_GROUPS, Options
from sweep.grid.overrides import QUESTION, Assignment, parse, quote
from sweep.grid.tracking_uri import check_tracking_uri
from sweep.stats import FIRST_SEEDS
from sweep.stats.cell_columns import ALL_METRICS, AXES

_GRANULARITIES = ("cell", "policy", "sweep")
_SLURM: Mapping[str, Any] = {
    **dict.fromkeys(("partition", "account", "qos", "time"), str | None),
    "nodes": Count,
    "cpus_per_node": Count | None,
    "options": list[str],
}
"""Types of the options of ``launcher=slurm``."""
_RUN_KEYS = ("launcher", "tracking", "paths", "max_failures", "cell_timeout_s")


@dataclass(frozen=True)
class Settings:
    """Settings of a run: where and how to run it."""

    results: Path  # folder under which everything is written, absolute
    launcher: Mapping[str, Any]  # the chosen options, resolved
    tracking: Mapping[str, Any]
    max_failures: int | None = None  # stop once this many cells have failed
    traces: str = ""  # folder of real traces, as given
    cell_timeout_s: float | None = None  # a cell that runs for longer is ended


def is_run_setting(key: str) -> bool:
    """Tell whether a key sets where or how a sweep runs."""
    return key.split(".")[0] in _RUN_KEYS


def _settings(
    lines: Sequence[Assignment], defaults: Mapping[str, Any], *, fail_fast: bool = False
) -> Settings:
    """Apply assignments to the composed launcher, tracking and paths."""
    config = {head: defaults[head] for head in _RUN_KEYS}
    for line in lines:
        add = line.kind == "add" or line.key in ("max_failures", "cell_timeout_s")
        config = config_tree.with_value(config, line.key, line.value, add=add)
    config = config_tree.resolved(config)
    failures = 1 if fail_fast else config["max_failures"]
    check("max_failures", failures, Count | None)
    check("cell_timeout_s", config["cell_timeout_s"], Positive | None)
    check("launcher.workers", config["launcher"].get("workers"), Count | None)
    for key, folder in config["paths"].items():
        if not isinstance(folder, str) or not folder:
            raise InputError(f"paths.{key} must be a folder, not {folder!r}", rule="wrong type")
    _check_kind("launcher", config["launcher"], ("inline", "local", "ray", "slurm"))
    for key, kind in _SLURM.items():
        if config["launcher"]["kind"] == "slurm":
            check(f"launcher.{key}", config["launcher"].get(key), kind)
    _check_kind("tracking", config["tracking"], ("mlflow", "none"))
    check_tracking_uri(config["tracking"].get("uri"))
    granularity = config["tracking"].get("granularity")
    if granularity not in (None, *_GRANULARITIES):
        message = unknown("tracking.granularity", str(granularity), _GRANULARITIES)
        raise InputError(f"{message}; null chooses by the number of cells", rule="wrong type")
    return Settings(
        results=remote_results.working_folder(config["paths"]["results"]),
        launcher=config["launcher"],
        tracking=config["tracking"],
        max_failures=failures,
        traces=config["paths"]["traces"],
        cell_timeout_s=config["cell_timeout_s"],
    )


def _check_kind(group: str, config: Mapping[str, Any], kinds: Sequence[str]) -> None:
    kind = config.get("kind")
    if kind not in kinds:
        raise InputError(unknown(f"{group}.kind", str(kind), kinds), rule=f"unknown {group}")


DEMO = "demo"
MISSING = "`python -m sweep plugins` lists what is installed"
MAX_QUESTION = 300
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
SEEDS_AUTO = ("seeds", "seeds_metric", "seeds_width", "seeds_max")
"""Keys of ``seeds=auto``."""

_CHOSEN_ONCE = ("experiment", "launcher", "tracking")
VERDICT_METRIC = "verdict.metric"
_NOT_SWEPT = ("baseline", "evaluator", "name", QUESTION, VERDICT_METRIC, *SEEDS_AUTO, planner.BLOCK)
_CONFIG_GROUPS = (*SWEPT_GROUPS, "evaluator")


@dataclass(frozen=True)
class Precision:
    """Target precision of the numbers, with ``seeds=auto``."""

    metric: str  # whose confidence intervals are measured
    width: float  # maximum half-width: relative, or absolute if the metric is a fraction
    max_seeds: int


@dataclass(frozen=True)
class Request:
    """A grid as requested."""

    # policies, traces, capacities and seeds, then the other swept keys, in the order given
    axes: dict[str, tuple[Any, ...]]
    # values for all cells: keys under ``policy.``, ``trace.``, ``cluster.``, ``evaluator.``,
    # and the choice of ``cluster`` and of ``evaluator``
    fixed: tuple[Assignment, ...]
    baseline: str | None  # one of the policies
    metrics: tuple[str, ...]  # in the tables; empty: chosen by the workload; `ALL_METRICS`
    experiment: str | None  # name of the experiment it comes from
    study: dict[str, Any] | None  # the experiment's; see `sweep.questions.papers.studies`
    options: Options
    settings: Settings
    named: frozenset[str]  # keys named on the command line itself
    # the command line without run settings, except for the folder of real traces: they reproduce
    # the sweep
    words: tuple[str, ...]
    precision: Precision | None = None  # with ``seeds=auto``; the axis has the first few seeds
    verdict_metric: str | None = None  # None: chosen by the workload
    seeds: Mapping[str, Any] | None = None  # result of ``seeds=auto``
    # of a search the axes have the ends of its intervals, and all seeds
    goal: Goal | None = None  # of its strategy (`sweep.grid.plugins`)
    name: str | None = None  # of the sweep; None: after its experiment
    question: str | None = None  # in the asker's words; None: derived from the axes
    own_traces: Mapping[str, own_traces.OwnTrace] = field(default_factory=dict)  # by name
    bootstrap: str | None = None  # blocks of the log, of which each seed is a draw
    what_if: what_ifs.WhatIf | None = None
    is_recorded: bool = False  # of a sweep that ran elsewhere: its traces may be in other places

    @property
    def chooses_cells(self) -> bool:
        """True if cells are other than those of the axes, or results decide which follow these."""
        return self.goal is not None and self.goal.chooses_cells


def read(texts: Sequence[str], options: Options, *, fail_fast: bool = False) -> Request:
    """Parse the overrides of a command line into a request; add experiment and defaults."""
    lines_given = parse(texts, options.names_swept)
    hydra_keys.check(lines_given)
    experiment = _experiment_name(lines_given)
    choices = {line.key: line.value for line in lines_given if line.key in _CHOSEN_ONCE}
    choices["experiment"] = experiment
    defaults = options.compose(**{k: v for k, v in choices.items() if v is not None})
    words = tuple(
        line.text
        for line in lines_given
        if line.key == "paths.traces" or not is_run_setting(line.key)
    )
    lines_given = [line for line in lines_given if line.key not in _CHOSEN_ONCE]
    named = frozenset(line.key for line in lines_given)
    if experiment is not None:
        lines_given = [
            *overrides.assignments(experiment, defaults["experiment"], lines_given, options),
            *lines_given,
        ]
    run_lines = [line for line in lines_given if is_run_setting(line.key)]
    lines = {line.key: line for line in lines_given if not is_run_setting(line.key)}
    own = own_traces.take(lines, options)
    for line in lines.values():
        _check_key(line, defaults)
        if line.key in _CONFIG_GROUPS:
            for value in line.values:
                if line.key != "trace" or value not in own:
                    options.check(line.key, value)
    planner.take_by(lines)
    bootstrap = planner.take_bootstrap(lines, defaults)
    what_if = what_ifs.take(lines, defaults, options)
    goal = _goal(lines, defaults)
    sweep_name = _name(lines.pop("name", None))
    question = _question(lines.pop(QUESTION, None))
    precision = _precision(lines, defaults)
    if precision is not None:
        if "seed" in named:
            raise InputError("seeds=auto chooses the seeds: leave seed= out", rule="wrong type")
        lines["seed"] = Assignment("seed", tuple(range(FIRST_SEEDS)), True, "set", "seeds=auto")
    baseline, metrics = lines.pop("baseline", None), lines.pop("metrics", None)
    verdict_line = lines.pop(VERDICT_METRIC, None)
    return Request(
        axes=_axes(lines, defaults, options),
        fixed=tuple(line for line in lines.values() if not line.swept and line.key not in AXES),
        baseline=_baseline(baseline),
        metrics=table_metrics(metrics, lines.get("evaluator")),
        experiment=experiment,
        study=None if experiment is None else defaults["experiment"].get("study"),
        options=options,
        settings=_settings(run_lines, defaults, fail_fast=fail_fast),
        named=named,
        words=words,
        precision=precision,
        verdict_metric=_verdict_metric(verdict_line, _baseline(baseline), lines.get("evaluator")),
        goal=goal,
        name=sweep_name or (goal.sweep_name if goal else "") or None,
        question=question,
        own_traces=own,
        bootstrap=bootstrap,
        what_if=what_if,
    )


def _goal(lines: dict[str, Assignment], defaults: Mapping[str, Any]) -> Goal | None:
    """Let strategies take their keys of the command line; return the goal of one of them."""
    parts = plugins.results(plugins.STRATEGIES, "take", lines, defaults)
    goals: list[Goal] = [goal for goal in parts if goal is not None]
    if len(goals) > 1:
        kinds = " and ".join(type(goal).__name__.lower() for goal in goals)
        raise InputError(f"one goal at a time, not {kinds}", rule="two goals")
    return goals[0] if goals else None


def _name(line: Assignment | None) -> str | None:
    """Return the name of the sweep, which is part of its folder's name."""
    if line is None or line.value is None:
        return None
    name = str(line.value)
    if not _NAME.fullmatch(name):
        raise InputError(
            f"name={name}: a name has up to 64 letters, digits and . _ - and begins with a letter",
            rule="wrong type",
        )
    return name


def _question(line: Assignment | None) -> str | None:
    """Return the sweep's question in the asker's words, in one line."""
    if line is None or line.value is None:
        return None
    text = str(line.value).strip()
    if not any(sign.isalpha() for sign in text) or len(text) > MAX_QUESTION:
        raise InputError(
            f"{text[:40]!r} is no question: write a text of up to {MAX_QUESTION} characters, such "
            'as question="Do we need 20 more nodes?"',
            rule="wrong type",
        )
    return text


def _precision(lines: dict[str, Assignment], defaults: Mapping[str, Any]) -> Precision | None:
    """Remove the keys of ``seeds=auto``; return the precision, None without ``seeds=auto``."""
    values = {key: lines.pop(key).value for key in SEEDS_AUTO if key in lines}
    settings = {key: values.get(key, defaults[key]) for key in SEEDS_AUTO}
    if settings["seeds"] is None:
        if values.keys() - {"seeds"}:
            raise InputError(f"{min(values)} needs seeds=auto", rule="wrong type")
        return None
    if settings["seeds"] != "auto":
        known = unknown("seeds", str(settings["seeds"]), ["auto", planner.BOOTSTRAP])
        message = f"{known}; seed=0,1,2 names them"
        raise InputError(message, rule="wrong type")
    metric, width, max_seeds = (settings[key] for key in SEEDS_AUTO[1:])
    check("seeds_metric", metric, str)
    _check_seeds_metric(metric, lines)
    check("seeds_width", width, Positive)
    check("seeds_max", max_seeds, Annotated[int, Between(FIRST_SEEDS)])
    return Precision(metric, float(width), max_seeds)


def _check_seeds_metric(name: str, lines: Mapping[str, Assignment]) -> None:
    """Refuse a metric that no cell will have; an evaluator has metrics of its own."""
    if "evaluator" in lines:
        return
    try:
        known = metric(name)
    except InputError as error:
        raise InputError(f"seeds_metric={name}: {error.message}", rule=error.rule) from None
    if known.against_baseline and "baseline" not in lines:
        raise InputError(
            f"seeds_metric={name} compares with a baseline: give baseline=POLICY", rule="wrong type"
        )


def _experiment_name(lines: Sequence[Assignment]) -> str | None:
    named = [line for line in lines if line.key == "experiment"]
    if named:
        return None if named[-1].value is None else str(named[-1].value)
    return None if any(line.key in AXES for line in lines) else DEMO


def _check_key(line: Assignment, defaults: Mapping[str, Any]) -> None:
    """Refuse an unknown key; keys inside a group are checked for each option."""
    head, _, inner = line.key.partition(".")
    if line.key == planner.BY or line.key.startswith(what_ifs.ADDED):
        return
    if line.kind != "delete" and what_ifs.is_known(line.key):
        return
    if line.kind != "delete" and line.key in plugins.constants(plugins.STRATEGIES, "KEYS"):
        return
    if line.key in (*AXES, "cluster", "metrics", *_NOT_SWEPT):
        if line.kind == "delete" or (line.swept and line.key in _NOT_SWEPT):
            raise InputError(
                f"{line.text}: give {line.key}=VALUE ({line.source})", rule="wrong type"
            )
    elif not (head in _CONFIG_GROUPS and inner):
        valid = [k for k in config_tree.keys(dict(defaults)) if ("." in k) == bool(inner)]
        if line.key in valid and line.kind != "delete":
            message = f"{line.text}: no installed plug-in takes {line.key}: {MISSING}"
            raise InputError(message, rule="unknown key")
        message = f"{unknown('key', line.key, valid)} ({line.source})"
        raise InputError(message, rule="unknown key")


def _axes(
    lines: Mapping[str, Assignment], defaults: Mapping[str, Any], options: Options
) -> dict[str, tuple[Any, ...]]:
    axes: dict[str, tuple[Any, ...]] = {
        **{key: () if key in lines else (options.default(key),) for key in ("policy", "trace")},
        "capacity": (defaults["capacity"],),
        "seed": (defaults["seed"],),
    }
    for line in lines.values():
        if line.swept or line.key in AXES:
            axes[line.key] = line.values
    axes["capacity"] = tuple(_capacity(value) for value in axes["capacity"])
    axes["seed"] = tuple(_seed(value) for value in axes["seed"])
    for key, values in axes.items():
        if repeated := _repeated(values):
            line = lines[key]
            raise InputError(
                f"{line.text} ({line.source}): {quote(key, repeated[0])} is given more than "
                "once; give it once",
                rule="repeated value",
            )
    return axes


def _capacity(value: Any) -> float:
    check("capacity", value, Positive)
    return float(value)


def _seed(value: Any) -> int:
    check("seed", value, Whole)
    if value >= 2**63:
        raise InputError(f"seed must be below 2**63, not {value!r}", rule="range")
    return int(value)


def _baseline(line: Assignment | None) -> str | None:
    return None if line is None or line.value is None else str(line.value)


def table_metrics(line: Assignment | None, evaluator: object | None) -> tuple[str, ...]:
    """Parse ``metrics=``: names for the tables; empty if not given."""
    if line is None or line.values == (None,):
        return ()
    values = line.values if line.swept else line.value
    names = [values] if isinstance(values, str) else list(values)
    if ALL_METRICS in names:
        return (ALL_METRICS,)
    for name in names if evaluator is None else ():  # an evaluator has metrics of its own
        metric(str(name))
    return tuple(map(str, names))


def _verdict_metric(
    line: Assignment | None, baseline: str | None, evaluator: Assignment | None
) -> str | None:
    if line is None or line.value is None:
        return None
    name = str(line.value)
    try:
        known = metric(name)
    except InputError as error:
        if evaluator is None:
            raise
        own = (
            f"; a number of evaluator={evaluator.value} has no direction, so that no policy is "
            f"best by it: metrics={name} shows it, target.metric={name} searches by it, and a "
            "family of metrics (`python -m sweep plugins`) has one"
        )
        raise InputError(f"{error.message}{own}", rule=error.rule) from None
    if known.against_baseline and baseline is None:
        raise InputError(f"{line.text} compares with a baseline: give baseline=POLICY")
    return name


def _repeated(values: Sequence[Any]) -> list[Any]:
    """Return the values that occur more than once."""
    try:
        return [value for value, n in Counter(values).items() if n > 1]
    except TypeError:  # lists and mappings have no hash, and are few
        return [value for k, value in enumerate(values) if value in values[:k]]
