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
from typing import Any

from sweep.grid.config_tree import canonical
from sweep.search.space import Parameter, Values, n_settings

N_STARTUP = 10
"""Settings drawn at random before the sampler has something to go by."""


class Proposals:
    """The settings of one policy that are worth trying.

    Parameters
    ----------
    parameters : list of Parameter
        What they are made of.
    n_metrics : int
        How many numbers are told of each, each better the lower it is.
    seed : int
        Of the sampler.
    most : int
        Settings there is room for: where there are no more than these, all are proposed.
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

    def tell(self, values: Values, scores: Sequence[float]) -> None:
        """Say how good a setting is; what is not finite says that it failed."""
        is_good = all(map(math.isfinite, scores))
        trial = self._given.get(str(values))
        if trial is not None:
            self._tell(trial, scores if is_good else None)
        elif is_good and all(p.holds(values[p.key]) for p in self._parameters):
            params = {
                p.key: _named(values[p.key]) if p.choices else values[p.key]
                for p in self._parameters
            }
            known = self._optuna.trial.create_trial(
                params=params, distributions=self._distributions(), values=list(scores)
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
            if scores is None:
                self._study.tell(trial, state=state.FAIL)
            else:
                self._study.tell(trial, list(scores))

    def _distributions(self) -> dict[str, Any]:
        of = self._optuna.distributions
        return {
            p.key: of.CategoricalDistribution([_named(value) for value in p.choices])
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


def _of(parameter: Parameter, proposed: Any) -> Any:
    """Return the value that a trial's stands for."""
    if parameter.choices:
        return next(value for value in parameter.choices if _named(value) == proposed)
    return parameter.tidy(proposed)


def _named(choice: Any) -> str:
    """Name a choice, which may be a list: Optuna knows texts and numbers alone."""
    return canonical(choice)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep to ourselves what Optuna calls experimental."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
