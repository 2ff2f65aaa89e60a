"""What should this parameter be? A search through a policy's parameters, raced on paired seeds.

Every policy, trace and capacity is a search of its own. Batch by batch Optuna proposes settings
(`sweep.search.proposals`); they race (`sweep.search.race`), each judged against the default on the
same seeds; at the end the best are compared with the default on seeds that the search has not seen,
as what won a race was lucky, too. What all searches want next is one round.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sweep.execution.inputs import Inputs
from sweep.execution.notes import count
from sweep.grid import goals
from sweep.grid.config_tree import canonical
from sweep.grid.grid import Cell
from sweep.grid.request import Request
from sweep.search import race, settings, space
from sweep.search.cell_factory import CellFactory, search_key
from sweep.search.cell_results import CellResults, where
from sweep.search.proposals import Case, Proposals, TriedSetting
from sweep.search.scores import Scores
from sweep.search.space import Parameter, Values
from sweep.search.strategy import Batches, Search, side_by_side

LEAST_BATCH = 8
N_BATCHES = 8
"""Settings are proposed in about so many batches, so that later ones know of earlier ones."""

MOST_TESTED = 3
"""Settings of a front that are compared with the default."""


class ParameterSearches:
    """All searches of a request."""

    def __init__(self, request: Request) -> None:
        goal = request.goal
        assert isinstance(goal, goals.Search)
        self.request, self.id_part, self.goal = request, goal, goal
        self._points = CellFactory(request)
        self.cases: list[Case] = []
        self.answers = CellResults()
        self.of_search = range(goal.seeds)  # seeds that are searched on
        # those that only the best and the default meet
        self.of_test = range(goal.seeds, goal.seeds + goal.test_seeds)

    def batches(self, inputs: Inputs) -> Batches:
        """Ask for what all searches want next, until the best have been tested."""
        self.cases = self._all_cases()
        searches = [self._search(case) for case in self.cases]
        words = " and ".join(self.goal.metrics)
        return (yield from side_by_side(self.request, searches, words, self._order))

    def tables(self) -> Mapping[str, pa.Table]:
        """Return ``settings.parquet`` and ``importance.parquet``."""
        seeds = self.of_search, self.of_test
        return settings.tables(self.cases, self.goal.metrics, *seeds, self.cells, self.answers)

    def _order(self, cell: Cell) -> Any:
        """Give a cell's place among the rows: by search, setting and seed."""
        for at, case in enumerate(self.cases):
            apart = [p.key for p in case.parameters]
            if search_key(cell, *apart) == search_key(case.cell, *apart):
                values = {key: cell.labels[key] for key in apart}
                known = [canonical(tried.values) for tried in case.tried]
                return at, known.index(canonical(values)), cell.seed
        raise AssertionError(f"no search asked for {cell.labels}")

    def cells(self, case: Case, values: Values, seeds: Sequence[int]) -> list[Cell]:
        """Return the cells of a setting, a seed each."""
        return self._points.cells(case.cell, seeds, **values)

    def _all_cases(self) -> list[Case]:
        """Make a search for each policy, world and capacity that has something to look through."""
        goal, axes = self.goal, self.request.axes | {"seed": (0,)}
        ends = {key: (self._end(key),) for key in goal.space}
        self._points.grid(axes | ends, is_strict=True)
        found = []
        for cell in self._points.grid({k: v for k, v in axes.items() if k not in goal.space}):
            parameters = space.policy_parameters(cell.policy, goal.space)
            if not parameters:
                raise InputError(
                    f"policy={cell.labels['policy']} has none of {', '.join(goal.space)}: leave it "
                    "out, or sweep it beside what was found",
                    rule="unknown parameter",
                )
            for corner in _corners(parameters):
                self._points.cells(cell, (0,), **corner)
            found.append((cell, parameters))
        return [self._case(cell, parameters, len(found)) for cell, parameters in found]

    def _end(self, key: str) -> Any:
        """Return a value of a parameter that some policy takes, whole where that is asked."""
        request = self.request
        for option in request.axes["policy"]:
            policy = request.options.compose(policy=option)["policy"]
            for parameter in space.policy_parameters(policy, {key: self.goal.space[key]}):
                return (parameter.choices or (parameter.low,))[0]
        return None

    def _case(self, cell: Cell, parameters: list[Parameter], n_cases: int) -> Case:
        goal = self.goal
        n_tested = 1 if len(goal.metrics) == 1 else MOST_TESTED
        fixed = goal.seeds + (1 + n_tested) * goal.test_seeds
        left = goal.cells // n_cases - fixed
        each = race.cost(LEAST_BATCH, goal.seeds) / LEAST_BATCH
        batch = max(LEAST_BATCH, 4 * round(left / each / N_BATCHES / 4))
        wanted = min(space.n_settings(parameters), LEAST_BATCH)
        if left < race.cost(int(wanted), goal.seeds):
            least = n_cases * (fixed + race.cost(int(wanted), goal.seeds))
            searches = f"{count(n_cases, 'searches')} (one a policy, trace and capacity)"
            raise InputError(
                f"search.cells={goal.cells} is too few: {searches} on {goal.seeds} seeds, and "
                f"{goal.test_seeds} to test on, need {least} at least",
                rule="range",
            )
        most = max(n for n in range(1, left + 1) if race.cost(n, goal.seeds) <= left)
        digest = hashlib.sha256(search_key(cell, *goal.space).encode()).digest()
        seed = int.from_bytes(digest[:4], "big") % 2**31
        proposals = Proposals(parameters, len(goal.metrics), seed, most)
        if proposals.is_grid:
            batch = int(space.n_settings(parameters))
        zeros = [0.0] * len(goal.metrics)
        default = TriedSetting(0, space.default_values(cell, parameters), 0, zeros, "default")
        like = self._points.cells(cell, (0,), **default.values)[0]
        return Case(like, parameters, proposals, batch, left, [default])

    def _search(self, case: Case) -> Search:
        """Search: batches of settings race until there are no cells left, then the best are tested.

        The first thing it id_part for are the default's cells, and those of the first batch.
        """
        default = case.tried[0]
        base = self.cells(case, default.values, self.of_search)
        ahead = base
        case.proposals.tell(default)
        while batch := self._ask(case):
            for rung in race.rungs(self.goal.seeds):
                seeds = self.of_search[:rung]
                cells = {at.number: self.cells(case, at.values, seeds) for at in batch}
                self.answers = yield [*ahead, *chain.from_iterable(cells.values())]
                if ahead:
                    self._check_default(base)
                    default.seeds, ahead = len(base), []
                scores = Scores(self.answers, self.goal.metrics)
                for at in batch:
                    at.seeds = rung
                    at.scores = scores.against(cells[at.number], base[:rung])
                if rung < self.goal.seeds:
                    order = race.ranked([at.scores for at in batch])[: race.n_kept(len(batch))]
                    going = {batch[at].number for at in order}
                    case.proposals.tell(*(at for at in batch if at.number not in going))
                    batch = [at for at in batch if at.number in going]
            case.proposals.tell(*batch)
        if ahead:
            raise InputError("there is nothing to search but the default", rule="empty axis")
        case.tested = self._choose(case)
        if case.tested:
            both = [self.cells(case, at.values, self.of_test) for at in (default, *case.tested)]
            self.answers = yield list(chain.from_iterable(both))

    def _ask(self, case: Case) -> list[TriedSetting]:
        """Propose settings, as many as there are cells left for."""
        n = case.batch
        while n and race.cost(n, self.goal.seeds) > case.cells_left:
            n -= 1
        known = {canonical(tried.values): tried for tried in case.tried}
        new = []
        for values in case.proposals.ask(n) if n else ():
            if canonical(values) in known:  # the default
                case.proposals.tell(known[canonical(values)])
            else:
                new.append(values)
        case.cells_left -= race.cost(n, self.goal.seeds)
        batch = [TriedSetting(len(case.tried) + at, values) for at, values in enumerate(new)]
        case.tried += batch
        return batch

    def _check_default(self, base: Sequence[Cell]) -> None:
        """Refuse a search whose default fails, or has no such metric."""
        if failed := [cell for cell in base if self.answers.failed(cell)]:
            raise InputError(
                f"{where(base[0])} fails with its default settings, against which a search judges: "
                f"{self.answers.errors[self.answers.key(failed[0])]['message']}",
                rule="failed",
            )
        for name in self.goal.metrics:
            self.answers.check_metric("search.metric", name, base)

    def _choose(self, case: Case) -> list[TriedSetting]:
        """Mark what was best of those that met all seeds, where it is better than the default."""
        whole = [
            t for t in case.tried if t.seeds == self.goal.seeds and np.isfinite(t.scores).all()
        ]
        table = np.array([tried.scores for tried in whole])
        if len(self.goal.metrics) == 1:
            best = whole[int(np.argmin(table[:, 0]))]
            if best.role == "default":
                return []
            best.role = "best"
            return [best]
        for at in race.front(table):
            # of those that came out alike, the default among them, the first stands for all
            if not (table[:at] == table[at]).all(axis=1).any():
                whole[at].role = whole[at].role or "front"
        new = [tried for tried in whole if tried.role == "front"]
        ranks = [sorted(new, key=lambda t: t.scores[at]) for at in range(table.shape[1])]
        new.sort(key=lambda t: sum(rank.index(t) for rank in ranks))
        return list({t.number: t for rank in (*ranks, new) for t in rank[:1]}.values())


def _corners(parameters: list[Parameter]) -> list[Values]:
    """Return settings that together hold every end and every choice."""
    ends = [p.choices or (p.low, p.high) for p in parameters]
    return [
        {p.key: values[at % len(values)] for p, values in zip(parameters, ends, strict=True)}
        for at in range(max(map(len, ends)))
    ]
