"""Parameter search of policies: settings proposed by Optuna race on paired seeds.

Each policy, trace and capacity has a search of its own. Batch by batch Optuna proposes settings
(`sweep.questions.search.proposals`); they race (`sweep.questions.search.race`), each judged against
the default on the same seeds; at the end the best are compared with the default on seeds that the
search has not used, as the winner of a race was lucky, too. The next cells of all searches are one
batch.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sweep.execution.cell_results import CellResults, cell_text
from sweep.execution.inputs import Inputs
from sweep.execution.notes import count
from sweep.execution.strategy import Batches, Search, side_by_side
from sweep.grid.cell_factory import CellFactory, search_key
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell
from sweep.grid.request import Request
from sweep.questions.search import goals, race, settings, space
from sweep.questions.search.proposals import Case, Proposals, TriedSetting
from sweep.questions.search.scores import Scores, gain
from sweep.questions.search.space import Parameter, Values
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import format_contrast, is_fraction

MIN_BATCH = 8
N_BATCHES = 8
"""Approximate number of batches of settings: later proposals learn from earlier batches."""

MAX_TESTED = 3
"""Largest number of settings of a front that are compared with the default."""


MAX_STANDING = 3
"""Largest number of searches whose best settings are shown while they run."""


def best_so_far(case: Case, metric: str) -> str:
    """Write the best setting of a search and its gain on the seeds that it has; empty for none.

    The best of many is lucky, too: only the test at the end is fair.
    """
    tried = [setting for setting in case.tried[1:] if setting.seeds]
    if not tried:
        return ""
    best = tried[race.ranked([setting.scores for setting in tried])[0]]
    statistic = "difference" if is_fraction(metric) else "ratio"
    amount = format_contrast(metric, statistic, gain(metric, best.scores[0]), math.nan, math.nan)[0]
    values = " ".join(f"{key.rpartition('.')[2]}={text(v)}" for key, v in best.values.items())
    known = f"{amount} on {count(best.seeds, 'seeds')}"
    return f"{case.cell.labels['policy']} {values} ({known})"


class ParameterSearches:
    """Strategy of a request that searches parameters: one search a policy, trace and capacity."""

    def __init__(self, request: Request) -> None:
        goal = request.goal
        assert isinstance(goal, goals.Search)
        self.request, self.id_part, self.goal = request, goal, goal
        self._points = CellFactory(request)
        self.cases: list[Case] = []
        self.results = CellResults()
        self.search_seeds = range(goal.seeds)
        # used by the best and the default only
        self.test_seeds = range(goal.seeds, goal.seeds + goal.test_seeds)

    def batches(self, inputs: Inputs) -> Batches:
        """Yield the next cells of all searches, until the best settings have been tested."""
        self.cases = self._all_cases()
        searches = [self._search(case) for case in self.cases]
        words = " and ".join(self.goal.metrics)
        options: dict[str, Any] = {"standing": self._standing}
        return (yield from side_by_side(self.request, searches, words, self._order, **options))

    def tables(self) -> Mapping[str, pa.Table]:
        """Return ``settings.parquet`` and ``importance.parquet``."""
        seeds = self.search_seeds, self.test_seeds
        return settings.tables(self.cases, self.goal.metrics, *seeds, self.cells, self.results)

    def _standing(self) -> str:
        """Write the best settings so far; of several metrics there is none that is best."""
        if len(self.goal.metrics) > 1:
            return ""
        words = [best_so_far(case, self.goal.metrics[0]) for case in self.cases]
        words = [*filter(None, words)]
        more = f" and {len(words) - MAX_STANDING} more" if len(words) > MAX_STANDING else ""
        return f"best so far {', '.join(words[:MAX_STANDING])}{more}" if words else ""

    def _order(self, cell: Cell) -> Any:
        """Return a cell's sort key: search, setting and seed."""
        for index, case in enumerate(self.cases):
            searched = [p.key for p in case.parameters]
            if search_key(cell, *searched) == search_key(case.cell, *searched):
                values = {key: cell.labels[key] for key in searched}
                known = [canonical(tried.values) for tried in case.tried]
                return index, known.index(canonical(values)), cell.seed
        raise AssertionError(f"no search requested {cell.labels}")

    def cells(self, case: Case, values: Values, seeds: Sequence[int]) -> list[Cell]:
        """Return the cells of a setting, a seed each."""
        return self._points.cells(case.cell, seeds, **values)

    def _all_cases(self) -> list[Case]:
        """Build a search for each policy, trace, setting and capacity; check the parameters."""
        goal, axes = self.goal, self.request.axes | {"seed": (0,)}
        ends = {key: (self._end(key),) for key in goal.space}
        self._points.grid(axes | ends, is_strict=True)
        pairs = []
        for cell in self._points.grid({k: v for k, v in axes.items() if k not in goal.space}):
            parameters = space.policy_parameters(cell.policy, goal.space)
            if not parameters:
                raise InputError(
                    f"policy={cell.labels['policy']} has none of {', '.join(goal.space)}: leave it "
                    "out of the search, and sweep it with the settings found afterwards",
                    rule="unknown parameter",
                )
            for values in _corners(parameters):
                self._points.cells(cell, (0,), **values)
            pairs.append((cell, parameters))
        return [self._case(cell, parameters, len(pairs)) for cell, parameters in pairs]

    def _end(self, key: str) -> Any:
        """Return a valid value of a parameter: the low end or the first choice."""
        request = self.request
        for option in request.axes["policy"]:
            policy = request.options.compose(policy=option)["policy"]
            for parameter in space.policy_parameters(policy, {key: self.goal.space[key]}):
                return (parameter.choices or (parameter.low,))[0]
        return None

    def _case(self, cell: Cell, parameters: list[Parameter], n_cases: int) -> Case:
        goal = self.goal
        n_tested = 1 if len(goal.metrics) == 1 else MAX_TESTED
        fixed = goal.seeds + (1 + n_tested) * goal.test_seeds
        n_cells = goal.cells // n_cases - fixed
        cost_per_setting = race.cost(MIN_BATCH, goal.seeds) / MIN_BATCH
        batch = max(MIN_BATCH, 4 * round(n_cells / cost_per_setting / N_BATCHES / 4))
        n_first = min(space.n_settings(parameters), MIN_BATCH)
        if n_cells < race.cost(int(n_first), goal.seeds):
            n_cells_min = n_cases * (fixed + race.cost(int(n_first), goal.seeds))
            searches = f"{count(n_cases, 'searches')} (one a policy, trace and capacity)"
            raise InputError(
                f"search.cells={goal.cells} is too small: {searches} on {goal.seeds} seeds, and "
                f"{goal.test_seeds} to test on, need {n_cells_min} at least",
                rule="range",
            )
        n_settings_max = max(
            n for n in range(1, n_cells + 1) if race.cost(n, goal.seeds) <= n_cells
        )
        digest = hashlib.sha256(search_key(cell, *goal.space).encode()).digest()
        seed = int.from_bytes(digest[:4], "big") % 2**31
        proposals = Proposals(parameters, len(goal.metrics), seed, n_settings_max)
        if proposals.is_grid:
            batch = int(space.n_settings(parameters))
        zeros = [0.0] * len(goal.metrics)
        default = TriedSetting(0, space.default_values(cell, parameters), 0, zeros, "default")
        default_cell = self._points.cells(cell, (0,), **default.values)[0]
        return Case(default_cell, parameters, proposals, batch, n_cells, [default])

    def _search(self, case: Case) -> Search:
        """Race batches of settings until the budget of cells is used up, then test the best.

        The first request has the default's cells and those of the first batch.
        """
        default = case.tried[0]
        default_cells = self.cells(case, default.values, self.search_seeds)
        pending = default_cells
        case.proposals.tell(default)
        while batch := self._ask(case):
            for rung in race.rungs(self.goal.seeds):
                seeds = self.search_seeds[:rung]
                cells = {
                    setting.number: self.cells(case, setting.values, seeds) for setting in batch
                }
                self.results = yield [*pending, *chain.from_iterable(cells.values())]
                if pending:
                    self._check_default(default_cells)
                    default.seeds, pending = len(default_cells), []
                scores = Scores(self.results, self.goal.metrics)
                for setting in batch:
                    setting.seeds = rung
                    setting.scores = scores.against(cells[setting.number], default_cells[:rung])
                if rung < self.goal.seeds:
                    order = race.ranked([setting.scores for setting in batch])[
                        : race.n_kept(len(batch))
                    ]
                    advancing = {batch[setting].number for setting in order}
                    case.proposals.tell(
                        *(setting for setting in batch if setting.number not in advancing)
                    )
                    batch = [setting for setting in batch if setting.number in advancing]
            case.proposals.tell(*batch)
        if pending:
            raise InputError("there is nothing to search but the default", rule="empty axis")
        case.tested = self._choose(case)
        if case.tested:
            cells_by_setting = [
                self.cells(case, setting.values, self.test_seeds)
                for setting in (default, *case.tested)
            ]
            self.results = yield list(chain.from_iterable(cells_by_setting))

    def _ask(self, case: Case) -> list[TriedSetting]:
        """Propose as many settings as the remaining cells allow."""
        n = case.batch
        while n and race.cost(n, self.goal.seeds) > case.cells_left:
            n -= 1
        tried = {canonical(tried.values): tried for tried in case.tried}
        new = []
        for values in case.proposals.ask(n) if n else ():
            if canonical(values) in tried:  # the default
                case.proposals.tell(tried[canonical(values)])
            else:
                new.append(values)
        case.cells_left -= race.cost(n, self.goal.seeds)
        batch = [
            TriedSetting(len(case.tried) + number, values) for number, values in enumerate(new)
        ]
        case.tried += batch
        return batch

    def _check_default(self, default_cells: Sequence[Cell]) -> None:
        """Reject a search whose default settings fail, or have no such metric."""
        if failed := [cell for cell in default_cells if self.results.failed(cell)]:
            raise InputError(
                f"{cell_text(default_cells[0])} fails with its default settings, to which a search "
                "compares all others: "
                f"{self.results.errors[self.results.key(failed[0])]['message']}",
                rule="failed",
            )
        for name in self.goal.metrics:
            self.results.check_metric("search.metric", name, default_cells)

    def _choose(self, case: Case) -> list[TriedSetting]:
        """Mark and return the best settings among those run on all seeds, unless the default is."""
        complete = [
            t for t in case.tried if t.seeds == self.goal.seeds and np.isfinite(t.scores).all()
        ]
        table = np.array([tried.scores for tried in complete])
        if len(self.goal.metrics) == 1:
            best = complete[int(np.argmin(table[:, 0]))]
            if best.role == "default":
                return []
            best.role = "best"
            return [best]
        for index in race.front(table):
            # of settings with equal results, possibly the default's, only the first counts
            if not (table[:index] == table[index]).all(axis=1).any():
                complete[index].role = complete[index].role or "front"
        new = [tried for tried in complete if tried.role == "front"]
        ranks = [sorted(new, key=lambda t: t.scores[index]) for index in range(table.shape[1])]
        new.sort(key=lambda t: sum(rank.index(t) for rank in ranks))
        return list({t.number: t for rank in (*ranks, new) for t in rank[:1]}.values())


def _corners(parameters: list[Parameter]) -> list[Values]:
    """Return settings that together hold every end and every choice."""
    ends = [p.choices or (p.low, p.high) for p in parameters]
    return [
        {p.key: values[index % len(values)] for p, values in zip(parameters, ends, strict=True)}
        for index in range(max(map(len, ends)))
    ]
