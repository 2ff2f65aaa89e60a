"""Checks of metrics: numbers of declared names, from ``compute`` or from an evaluator.

A family of metrics has ``METRICS`` and ``compute(run, bounds)``; an evaluator has ``evaluate(run,
workload, cluster, policy, seed)`` and returns numbers and a table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from sim.check.broken import BrokenRuleError
from sim.check.subject import ModuleSubject, Options, Subject, digest_numbers, own_function
from sim.check.workloads import chosen_options
from sim.check.worlds import MACHINES, SLOTS, FirstCome, crowd, with_deadlines
from sim.metrics.common import Metric
from sim.result import Result
from sim.simulation import simulate

RUNS = ((0, SLOTS), (1, MACHINES), (2, SLOTS))
"""Seed of the workload and cluster of each run."""


@dataclass(frozen=True)
class Family(ModuleSubject):
    """METRICS and `compute` of a module."""

    kind = "metric"

    def rules(self) -> Iterator[str]:
        """Yield the sentences of broken rules."""
        declared: Mapping[str, object] = self.module.METRICS
        for name, metric in declared.items():
            if not isinstance(metric, Metric):
                yield f"METRICS[{name!r}] is a {type(metric).__name__}, not a sim.metrics.Metric"
        computed = [self._compute(result) for result in _results()]
        missing = sorted(declared.keys() - {name for numbers in computed for name in numbers})
        if missing:
            yield f"METRICS declares {missing[0]!r}, which compute never returns"
        extra = sorted({name for numbers in computed for name in numbers} - declared.keys())
        if extra:
            yield f"compute returns {extra[0]!r}, which METRICS does not declare"
        yield from _number_rules(computed)

    def fingerprint(self) -> str:
        """Return the digest of all numbers."""
        return digest_numbers(_numbered(self._compute(result) for result in _results()))

    def _compute(self, result: Result) -> dict[str, Any]:
        with self.calling("compute"):
            return _dictionary(self.module.compute(result, result.bounds), "compute")


@dataclass(frozen=True)
class Evaluator(ModuleSubject):
    """The function `evaluate` of a module."""

    kind = "evaluator"

    def rules(self) -> Iterator[str]:
        """Yield the sentences of broken rules."""
        yield from _number_rules([self._evaluate(seed, cluster) for seed, cluster in RUNS])

    def fingerprint(self) -> str:
        """Return the digest of all numbers."""
        return digest_numbers(_numbered(self._evaluate(*run) for run in RUNS))

    def _evaluate(self, seed: int, cluster: Any) -> dict[str, Any]:
        workload = with_deadlines(crowd(seed))
        with self.calling("evaluate"):
            returned = self.module.evaluate(
                partial(simulate), workload, cluster, FirstCome(), seed, **self.options
            )
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise BrokenRuleError("evaluate returns no pair of numbers by name and a table")
        numbers, table = returned
        if not isinstance(table, pa.Table):
            raise BrokenRuleError(
                f"evaluate returns a {type(table).__name__} as its second value, not a "
                "pyarrow.Table"
            )
        return _dictionary(numbers, "evaluate")


def subjects(module: ModuleType, options: Options) -> list[Subject]:
    """Return the metrics and the evaluator of a module, if it has some."""
    subjects: list[Subject] = []
    if isinstance(getattr(module, "METRICS", None), Mapping) and hasattr(module, "compute"):
        subjects.append(Family(module))
    function = own_function(module, "evaluate")
    if function is not None:
        chosen = chosen_options("evaluator", function, options.values, 5)
        subjects.append(Evaluator(module, chosen))
    return subjects


def _results() -> Iterator[Result]:
    for seed, cluster in RUNS:
        yield simulate(with_deadlines(crowd(seed)), cluster, FirstCome(), seed=seed)


def _dictionary(numbers: object, name: str) -> dict[str, Any]:
    if not isinstance(numbers, dict) or not all(isinstance(key, str) for key in numbers):
        raise BrokenRuleError(f"{name} returns no dictionary of numbers by name")
    return numbers


def _numbered(computed: Iterator[dict[str, Any]]) -> dict[str, Any]:
    return {f"{i} {name}": value for i, n in enumerate(computed) for name, value in n.items()}


def _number_rules(computed: list[dict[str, Any]]) -> Iterator[str]:
    """Yield sentences for values that are no numbers, infinite, or not known in any run."""
    names = dict.fromkeys(name for numbers in computed for name in numbers)
    for name in names:
        values = [numbers[name] for numbers in computed if name in numbers]
        wrong = [value for value in values if not _is_number(value)]
        if wrong:
            yield f"{name} is a {type(wrong[0]).__name__}, not a number"
        elif any(math.isinf(value) for value in values):
            yield f"{name} is infinite: a value that is not known is NaN"
        elif all(math.isnan(value) for value in values) and not _may_be_unknown(name):
            yield f"{name} is NaN in each of {len(values)} runs in which all jobs end"


def _may_be_unknown(name: str) -> bool:
    """Tell whether the simulator's own metric of that name needs what these runs lack."""
    from sim.metrics import names  # late: METRICS of all families are imported

    return name in names()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
