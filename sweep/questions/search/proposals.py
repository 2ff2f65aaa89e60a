"""Interface to Optuna: propose settings, report their scores, estimate parameter importance.

Its study is in memory only: the same command proposes the same settings again, whose cells are
cached. Proposals and scores go in batches, so that nothing depends on the order of completion.
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
from sweep.questions.search.space import Parameter, Values, n_settings

N_STARTUP = 10
"""Settings drawn at random before the sampler starts to model."""


@dataclass
class TriedSetting:
    """A setting that was tried, its number of seeds and its scores."""

    number: int  # in the order proposed; 0 is the default
    values: Values
    seeds: int = 0
    scores: list[float] = field(default_factory=list)  # means, a metric each; lower is better
    role: str = ""  # ``default``, ``best`` or ``front``


class Proposals:
    """Source of settings to try for one policy.

    If there are no more than `n_max` settings, it proposes all of them. Scores, one a metric, are
    better the lower they are.
    """

    def __init__(self, parameters: list[Parameter], n_metrics: int, seed: int, n_max: int) -> None:
        import optuna  # takes 0.7 s

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna, self._parameters = optuna, parameters
        self.is_grid = n_settings(parameters) <= n_max
        with _quiet():
            sampler = optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=N_STARTUP, constant_liar=True
            )
            self._study = optuna.create_study(sampler=sampler, directions=["minimize"] * n_metrics)
        self._trials: dict[str, Any] = {}  # trials by the text of their values
        self._left = self._all() if self.is_grid else iter(())

    def ask(self, n: int) -> list[Values]:
        """Propose up to `n` settings, none twice; fewer if no new one comes up."""
        proposed: list[Values] = []
        if self.is_grid:
            return list(itertools.islice(self._left, n))
        for _ in range(4 * n):
            if len(proposed) == n:
                break
            with _quiet():
                trial = self._study.ask(self._distributions())
            values = {p.key: _value(p, trial.params[p.key]) for p in self._parameters}
            if str(values) in self._trials:  # proposed before
                self._tell_study(trial, None)
                continue
            self._trials[str(values)] = trial
            proposed.append(values)
        return proposed

    def tell(self, *tried: TriedSetting) -> None:
        """Report the scores of settings; a setting failed if one is not finite."""
        for setting in tried:
            values, is_good = setting.values, all(map(math.isfinite, setting.scores))
            trial = self._trials.get(str(values))
            if trial is not None:
                self._tell_study(trial, setting.scores if is_good else None)
            elif is_good and all(p.holds(values[p.key]) for p in self._parameters):
                params = {
                    p.key: canonical(values[p.key]) if p.choices else values[p.key]
                    for p in self._parameters
                }
                finished = self._optuna.trial.create_trial(
                    params=params, distributions=self._distributions(), values=list(setting.scores)
                )
                self._study.add_trial(finished)

    def importance(self, metric: int) -> dict[str, float]:
        """Return the share of a metric's variance due to each parameter (fANOVA), by key.

        Empty if nothing varies.
        """
        evaluator = self._optuna.importance.FanovaImportanceEvaluator(seed=0)
        try:
            with _quiet():
                shares = self._optuna.importance.get_param_importances(
                    self._study, evaluator=evaluator, target=lambda trial: trial.values[metric]
                )
        except (RuntimeError, ValueError):
            return {}
        return {p.key: round(float(shares.get(p.key, 0.0)), 3) for p in self._parameters}

    def _tell_study(self, trial: Any, scores: Sequence[float] | None) -> None:
        state = self._optuna.trial.TrialState
        with _quiet():
            self._study.tell(trial, scores, state=state.FAIL if scores is None else None)

    def _distributions(self) -> dict[str, Any]:
        kinds = self._optuna.distributions
        return {
            p.key: kinds.CategoricalDistribution([canonical(value) for value in p.choices])
            if p.choices
            else kinds.IntDistribution(int(p.low), int(p.high), log=p.is_log)
            if p.is_int
            else kinds.FloatDistribution(p.low, p.high, log=p.is_log)
            for p in self._parameters
        }

    def _all(self) -> Iterator[Values]:
        """Iterate over all settings."""
        values = [p.choices or range(int(p.low), int(p.high) + 1) for p in self._parameters]
        keys = [p.key for p in self._parameters]
        return (
            dict(zip(keys, combination, strict=True)) for combination in itertools.product(*values)
        )


@dataclass
class Case:
    """State of the search of one policy's parameters on one trace at one capacity."""

    cell: Cell  # with the default settings
    parameters: list[Parameter]
    proposals: Proposals
    batch: int
    cells_left: int
    tried: list[TriedSetting]  # the default first
    tested: list[TriedSetting] = field(default_factory=list)  # compared with the default


def _value(parameter: Parameter, proposed: Any) -> Any:
    """Decode a trial's value: choices, which may be lists, are encoded as text."""
    if parameter.choices:
        return next(value for value in parameter.choices if canonical(value) == proposed)
    return parameter.tidy(proposed)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Optuna's warnings about experimental features."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
