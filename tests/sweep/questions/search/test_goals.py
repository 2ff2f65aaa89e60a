from __future__ import annotations

import pytest

from sim.base.errors import InputError
from sweep.grid.overrides import Interval
from sweep.questions.search.goals import Search, Target
from tests.sweep.small import Command

CAPACITY = "capacity=interval(0.3,1.5)"
TARGET = ("target.metric=jct_p99_s", "target.at_most=600")
SEARCH = ("policy=dagps", "search.metric=jct_mean_s")


def test_a_target(command: Command) -> None:
    parsed = command.request("policy=fifo", CAPACITY, *TARGET, "target.tolerance=0.05")
    assert parsed.goal == Target("jct_p99_s", 600.0, True, 0.05, 0.3, 1.5)
    assert parsed.goal.words == "jct_p99_s <= 600"
    assert parsed.axes["capacity"] == (0.3, 1.5)
    assert parsed.axes["seed"] == tuple(range(30))
    assert command.request("policy=fifo", CAPACITY, *TARGET, "seed=4,5").axes["seed"] == (4, 5)
    assert len(command.request("policy=fifo", CAPACITY, *TARGET, "seeds_max=7").axes["seed"]) == 7


def test_a_search(command: Command) -> None:
    words = ("policy.m=interval(0,2)", "policy.rp=0.5,0.8,1", "search.cells=100")
    parsed = command.request(*SEARCH, *words)
    space = {"policy.m": Interval(0, 2), "policy.rp": (0.5, 0.8, 1)}
    assert parsed.goal == Search(("jct_mean_s",), 100, 8, 10, space)
    log = command.request(*SEARCH, "policy.prior_tasks=tag(log,interval(1,100))")
    assert isinstance(log.goal, Search)
    assert log.goal.space == {"policy.prior_tasks": Interval(1, 100, True)}
    two = command.request("policy=dagps", "search.metric=jct_mean_s,jct_p99_s", words[0])
    assert isinstance(two.goal, Search)
    assert two.goal.metrics == ("jct_mean_s", "jct_p99_s")


def test_no_goal(command: Command) -> None:
    assert command.request("policy=fifo").goal is None
    assert command.request("policy=fifo", "target.metric=null").goal is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([CAPACITY], r"add target.metric=jct_p99_s.*range\(start,stop,step\)"),
        (["policy.m=interval(0,2)"], "search.metric=jct_mean_s"),
        (["seed=interval(0,1)"], "an interval has no steps"),
        ([CAPACITY, *TARGET, "search.metric=jct_mean_s"], "use one, then"),
        ([CAPACITY, TARGET[0]], "one of them"),
        ([CAPACITY, *TARGET, "target.at_least=1"], "not both"),
        ([CAPACITY, TARGET[1]], "target.at_most needs target.metric"),
        ([CAPACITY, "target.metric=jct_p98_s", TARGET[1]], "did you mean 'jct_p9"),
        ([CAPACITY, "target.metric=jct_p99_s,jct_mean_s", TARGET[1]], "takes one metric"),
        ([CAPACITY, "target.metric=wait_p95_s.queue.a", TARGET[1]], "give metrics.by=queue too"),
        (
            [CAPACITY, "target.metric=wait_p95_s.queue.a", TARGET[1], "metrics.by=[user,width]"],
            "give metrics.by=user,width,queue too",
        ),
        ([CAPACITY, TARGET[0], "target.at_least=600"], "better lower.*give target.at_most"),
        ([CAPACITY, "target.metric=value_attained", TARGET[1]], "give target.at_least"),
        ([CAPACITY, TARGET[0], "target.at_most=soon"], "must be a number"),
        ([CAPACITY, *TARGET, "target.tolerance=2"], "target.tolerance must be a number"),
        ([CAPACITY, *TARGET, "target.tolerence=2"], "did you mean 'target.tolerance'"),
        ([CAPACITY, *TARGET, "seeds=auto"], "adds seeds by itself"),
        ([CAPACITY, *TARGET, "seeds_max=4"], "at least 5"),
        ([CAPACITY, *TARGET, "seeds_max=7", "seed=1"], "leave seeds_max= out"),
        ([CAPACITY, *TARGET, "policy.m=interval(0,2)"], "searches a capacity"),
        ([*TARGET, "capacity=0.5,1"], "range of capacities to search"),
        (TARGET, "range of capacities to search"),
        (["capacity=interval(0,1)", *TARGET], "capacity must be a number above 0"),
        (["capacity=interval(2,1)", *TARGET], "in that order"),
        ([CAPACITY, "target.metric=jct_speedup_mean", "target.at_least=2"], "a baseline's cells"),
        ([SEARCH[1]], "a search needs parameters"),
        ([SEARCH[1], "policy.m=interval(0,2)", CAPACITY], "searches parameters of policies"),
        ([SEARCH[1], "policy.m=interval(0,2)", "seed=1,2"], "leave seed= out"),
        ([SEARCH[1], "policy.m=interval(0,2)", "search.cells=4"], "at least 40"),
        ([SEARCH[1], "policy.m=interval(0,2)", "search.seeds=1"], "at least 2"),
        ([SEARCH[1], "policy.m=interval(0,2)", "search.test_seeds=3"], "at least 5"),
        (["search.metric=a,b,c", "policy.m=interval(0,2)"], "takes one metric, or two"),
        (["search.cells=100"], "search.cells needs search.metric"),
        (["policy.m=tag(loga,interval(1,2))"], "did you mean 'log'"),
        (["policy.m=tag(log,interval(0,2))"], "begins above 0"),
    ],
)
def test_what_can_not_be_asked(command: Command, words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        command.request("policy=dagps", *words)
