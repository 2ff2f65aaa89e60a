"""Validation of parameters by their annotations, and its messages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from sim.base.errors import InputError
from sim.base.parameters import (
    Between,
    Count,
    Factor,
    NotNegative,
    Positive,
    Share,
    Whole,
    check,
    checked,
    coerce,
)


@pytest.mark.parametrize(
    ("hint", "good", "bad", "words"),
    [
        (Count, [1, 7, np.int64(3)], [0, -1], "a whole number of at least 1"),
        (Count, [1], [1.0, True, "1", None], "a whole number of at least 1"),
        (Whole, [0], [-1], "a whole number of at least 0"),
        (Positive, [1, 1e-300], [0, -1.0, math.inf, math.nan], "a number above 0"),
        (NotNegative, [0, 2.5], [-1e-300, math.inf], "a number of at least 0"),
        (Factor, [1, 1.5], [0.999], "a number of at least 1"),
        (Share, [0, 1, 0.5, np.float64(0.5)], [-0.1, 1.1, math.nan], "a number from 0 to 1"),
        (Annotated[float, Between(above=0, high=2)], [2], [0, 2.1], "above 0 and at most 2"),
        (Annotated[float, Between(high=2)], [2, -1e9], [3], "a number of at most 2"),
        (Literal["drop", "compress"], ["drop"], ["Drop", 1, True], "'drop' or 'compress'"),
        (Literal["run", "true"], ["true", True], [False, "True"], "'run' or 'true'"),
        (Count | None, [None, 3], [0, "x"], "a whole number of at least 1 or null"),
        (tuple[Share, ...], [[0.5], (), (1,)], [[2], 0.5], "a list, each item a number from 0"),
        (Mapping[str, Positive], [{"a": 1}], [{"a": 0}, [1], {1: 1}], "a mapping from a text to"),
        (Any, [object()], [], ""),
        (bool, [True], [1, "true"], "true or false"),
    ],
)
def test_a_value_is_held_to_its_annotation(hint, good, bad, words):
    for value in good:
        check("key", value, hint)
    for value in bad:
        with pytest.raises(InputError) as raised:
            check("key", value, hint)
        assert str(raised.value).startswith("key must be ")
        assert words in str(raised.value)
        assert repr(value) in str(raised.value)


def test_a_number_out_of_range_and_a_wrong_type_are_other_rules():
    with pytest.raises(InputError) as raised:
        check("share", 2.0, Share)
    assert raised.value.rule == "range"
    with pytest.raises(InputError) as raised:
        check("share", "much", Share)
    assert raised.value.rule == "wrong type"


def test_a_valid_value_is_converted_to_its_type():
    assert isinstance(coerce(1, Share), float)
    assert coerce([1, 2], tuple[float, ...]) == (1.0, 2.0)
    assert isinstance(coerce({"a": 1}, Mapping[str, float])["a"], float)
    assert coerce("x", str) == "x"
    assert coerce(True, Literal["run", "true"]) == "true"
    assert coerce(True, Literal["run", True]) is True


def test_true_is_a_choice_although_yaml_reads_it_as_a_bool():
    check("knowledge", True, Literal["true", "run"])
    assert coerce(True, Literal["true", "run"]) == "true"
    with pytest.raises(InputError, match="knowledge must be 'true' or 'run', not False"):
        check("knowledge", False, Literal["true", "run"])


@checked
def halved(workload: Unknown, jobs: Count, *, share: Share = 0.5) -> float:  # noqa: F821
    """Take one parameter of a type that only type checkers can resolve."""
    return jobs * share


def test_a_checked_function_holds_every_call_to_its_annotations():
    assert halved(None, 4) == 2.0
    assert halved(None, jobs=4, share=1) == 4
    for arguments in ({"jobs": 0}, {"jobs": 2, "share": 1.5}, {"jobs": "x"}):
        with pytest.raises(InputError, match="must be a"):
            halved(None, **arguments)
    with pytest.raises(TypeError):
        halved(None)
