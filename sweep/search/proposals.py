"""Optuna proposes settings, is told how good they are, and says what mattered.

Its study lives in memory alone: the same command asks for the same settings again, whose cells are
cached. So that nothing depends on who answers first, settings are asked for and told in batches.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell
from sweep.search.space import Parameter, Values, n_settings

N_STARTUP = 10
"""Settings drawn at random before the sampler has something to go by."""


@dataclass
class TriedSetting:
    """A setting, and on how many seeds it was tried."""

    number: int  # in the order proposed; 0 is the default
    values: Values
    seeds: int = 0
    scores: list[float] = field(default_factory=list)  # means, a metric each; lower is better
    role: str = ""  # ``default``, ``best`` or ``front``


class Proposals:
    """The settings of one policy that are worth trying.

    Where there are no more settings than there is room for (`most`), all are proposed; scores told
    of them, one a metric, are better the lower they are.
    """

    def __init__(self, parameters: list[Parameter], n_metrics: int, seed: int, most: int) -> None:
        import optuna  # 0.7 s: only where something is searched

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna, self._parameters = optuna, parameters
        self.is_grid = n_settings(parameters) <= most
        with _quiet():
            sampler = optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=N_STARTUP, constant_liar=True
            )
            self._study = optuna.create_study(sampler=sampler, directions=["minimize"] * n_metrics)
        self._given: dict[str, Any] = {}  # trials by the text of their values
        self._left = self._all() if self.is_grid else iter(())

    def ask(self, n: int) -> list[Values]:
        """Propose up to `n` settings, none twice; fewer where no new one comes up."""
        found: list[Values] = []
        if self.is_grid:
            return list(itertools.islice(self._left, n))
        for _ in range(4 * n):
            if len(found) == n:
                break
            with _quiet():
                trial = self._study.ask(self._distributions())
            values = {p.key: _of(p, trial.params[p.key]) for p in self._parameters}
            if str(values) in self._given:  # as good as it was
                self._tell(trial, None)
                continue
            self._given[str(values)] = trial
            found.append(values)
        return found

    def tell(self, *tried: TriedSetting) -> None:
        """Say how good settings are; scores that are not finite say that it failed."""
        for one in tried:
            values, is_good = one.values, all(map(math.isfinite, one.scores))
            trial = self._given.get(str(values))
            if trial is not None:
                self._tell(trial, one.scores if is_good else None)
            elif is_good and all(p.holds(values[p.key]) for p in self._parameters):
                params = {
                    p.key: canonical(values[p.key]) if p.choices else values[p.key]
                    for p in self._parameters
                }
                known = self._optuna.trial.create_trial(
                    params=params, distributions=self._distributions(), values=list(one.scores)
                )
                self._study.add_trial(known)

    def importance(self, metric: int) -> dict[str, float]:
        """Return how much of a metric's variance each parameter makes (fANOVA), by key.

        Nothing where nothing varies.
        """
        evaluator = self._optuna.importance.FanovaImportanceEvaluator(seed=0)
        try:
            with _quiet():
                found = self._optuna.importance.get_param_importances(
                    self._study, evaluator=evaluator, target=lambda trial: trial.values[metric]
                )
        except (RuntimeError, ValueError):
            return {}
        return {p.key: round(float(found.get(p.key, 0.0)), 3) for p in self._parameters}

    def _tell(self, trial: Any, scores: Sequence[float] | None) -> None:
        state = self._optuna.trial.TrialState
        with _quiet():
            self._study.tell(trial, scores, state=state.FAIL if scores is None else None)

    def _distributions(self) -> dict[str, Any]:
        of = self._optuna.distributions
        return {
            p.key: of.CategoricalDistribution([canonical(value) for value in p.choices])
            if p.choices
            else of.IntDistribution(int(p.low), int(p.high), log=p.is_log)
            if p.is_int
            else of.FloatDistribution(p.low, p.high, log=p.is_log)
            for p in self._parameters
        }

    def _all(self) -> Iterator[Values]:
        """Every setting there is."""
        values = [p.choices or range(int(p.low), int(p.high) + 1) for p in self._parameters]
        keys = [p.key for p in self._parameters]
        return (dict(zip(keys, each, strict=True)) for each in itertools.product(*values))


@dataclass
class Case:
    """The search through one policy's parameters on one trace at one capacity."""

    cell: Cell  # one of the default's
    parameters: list[Parameter]
    proposals: Proposals
    batch: int
    cells_left: int
    tried: list[TriedSetting]  # the default first
    tested: list[TriedSetting] = field(default_factory=list)  # compared with the default


def _of(parameter: Parameter, proposed: Any) -> Any:
    """Return the value that a trial's stands for: choices, which may be lists, go by their text."""
    if parameter.choices:
        return next(value for value in parameter.choices if canonical(value) == proposed)
    return parameter.tidy(proposed)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what Optuna calls experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
