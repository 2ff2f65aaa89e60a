from __future__ import annotations

import itertools

import numpy as np
import pytest

from sim.base.errors import InputError
from sweep.grid.overrides import Interval
from sweep.questions.search import race
from sweep.questions.search.proposals import Proposals, TriedSetting
from sweep.questions.search.space import Parameter, n_settings, policy_parameters


def test_rungs_and_their_cost() -> None:
    assert race.rungs(8) == (2, 4, 8)
    assert race.rungs(5) == (2, 3, 5)[-3:] or race.rungs(5)[-1] == 5
    assert race.rungs(2) == (1, 2)
    # 8 settings on 2 seeds, 4 of them on 2 more, 2 of those on 4 more
    assert race.cost(8, 8) == 8 * 2 + 4 * 2 + 2 * 4
    assert race.cost(1, 8) == 8
    assert race.cost(0, 8) == 0


def test_ranking_by_one_metric_puts_failures_last() -> None:
    assert race.ranked([[3.0], [1.0], [float("inf")], [2.0]]) == [1, 3, 0, 2]


def test_pareto_front() -> None:
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 6, size=(30, 2)).astype(float)
    expected = [
        index
        for index, (x, y) in enumerate(scores)
        if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in scores)
    ]
    assert race.front(scores) == expected
    order = race.ranked(scores.tolist())
    assert sorted(order) == list(range(30))
    assert set(order[: len(expected)]) == set(expected)
    # the ends of a front come first, the crowded middle of it last
    line = [[0.0, 10.0], [1.0, 9.0], [1.5, 8.5], [2.0, 8.0], [10.0, 0.0]]
    assert set(race.ranked(line)[:2]) == {0, 4}


def test_parameters_of_a_policy_in_a_space() -> None:
    space = {
        "policy.m": Interval(0, 2),
        "policy.bundle": Interval(1, 8),
        "policy.rp": (0.5, 1),
        "policy.queues": (1, 2),
    }
    actual = {p.name: p for p in policy_parameters({"name": "dagps"}, space)}
    assert list(actual) == ["m", "bundle", "rp"]
    assert not actual["m"].is_int
    assert actual["bundle"].is_int
    assert (actual["bundle"].low, actual["bundle"].high) == (1, 8)
    assert actual["m"].tidy(0.123456) == 0.12
    assert actual["m"].tidy(2.4) == 2.0
    assert actual["rp"].choices == (0.5, 1)
    assert n_settings([actual["bundle"], actual["rp"]]) == 16
    assert n_settings([actual["m"], actual["rp"]]) == float("inf")
    log = Parameter("policy.prior_tasks", 0.001, 100, is_log=True)
    assert log.tidy(0.0012345) == 0.00123
    with pytest.raises(InputError, match=r"whole number.*whole ends"):
        policy_parameters({"name": "dagps"}, {"policy.bundle": Interval(1, 2.5)})


def test_a_grid_is_proposed_whole() -> None:
    parameters = [
        Parameter("policy.a", choices=(1, 2, 3)),
        Parameter("policy.b", 0, 1, is_int=True),
    ]
    proposals = Proposals(parameters, 1, seed=0, n_max=6)
    actual = proposals.ask(10)
    assert actual == [
        {"policy.a": a, "policy.b": b} for a, b in itertools.product((1, 2, 3), (0, 1))
    ]
    assert proposals.ask(1) == []
    for values in actual:
        proposals.tell(TriedSetting(1, values, scores=[float(values["policy.a"])]))
    shares = proposals.importance(0)
    assert shares["policy.a"] > 0.9
    assert sum(shares.values()) == pytest.approx(1, abs=0.01)


def test_proposals_are_the_same_again_and_never_twice() -> None:
    parameters = [Parameter("policy.a", 0.0, 1.0), Parameter("policy.b", choices=([1], [2], None))]
    proposed = []
    for _ in range(2):
        proposals = Proposals(parameters, 2, seed=5, n_max=20)
        seen = []
        for _ in range(4):
            batch = proposals.ask(5)
            for values in batch:
                scores = [values["policy.a"], 1 - values["policy.a"]]
                proposals.tell(TriedSetting(1, values, scores=scores))
            seen += batch
        proposed.append(seen)
    assert proposed[0] == proposed[1]
    assert len({str(values) for values in proposed[0]}) == len(proposed[0]) == 20
    assert {str(values["policy.b"]) for values in proposed[0]} == {"[1]", "[2]", "None"}


def test_failed_settings_are_recorded_too() -> None:
    proposals = Proposals([Parameter("policy.a", 0.0, 1.0)], 1, seed=0, n_max=20)
    for _ in range(4):
        for values in proposals.ask(5):
            score = float("inf") if values["policy.a"] > 0.5 else 1.0
            proposals.tell(TriedSetting(1, values, scores=[score]))
    assert len(proposals.ask(5)) == 5
    assert proposals.importance(0) == {}
