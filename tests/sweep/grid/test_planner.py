"""Keys of a planner, from words to cells."""

from __future__ import annotations

import pytest

from sim.base.errors import InputError
from tests.sweep.grid.test_request import read


@pytest.mark.parametrize("word", ["metrics.by=queue,width", "metrics.by=[queue,width]"])
def test_groups_are_an_option_of_the_simulation(word: str) -> None:
    (line,) = read("policy=fifo", word).fixed
    assert (line.key, line.value, line.text) == ("evaluator.by", ["queue", "width"], word)


def test_other_evaluators_have_no_groups() -> None:
    assert read("policy=fifo", "metrics.by=null").fixed == ()
    with pytest.raises(InputError, match="metrics of its own"):
        read("policy=fifo", "metrics.by=queue", "evaluator=stream")
    with pytest.raises(InputError, match="give keys of jobs"):
        read("policy=fifo", "metrics.by=3")
