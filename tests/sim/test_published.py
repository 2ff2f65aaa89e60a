"""Published numbers: one file per paper, read-only, with named errors."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from policies.slearn.recurring.presets import preset
from sim.base.errors import InputError
from sim.published import Definition, Numbers, Printed, numbers, papers


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


@pytest.mark.parametrize("paper", papers())
def test_values_are_numbers_or_strings_with_a_number(paper: str) -> None:
    for value in leaves(numbers(paper)):
        assert isinstance(value, int | float | str)
        assert not isinstance(value, bool)
        if isinstance(value, str):  # YAML 1.1 reads 1e-3 as a text
            assert "e-" not in value
            assert any(letter.isdigit() for letter in value) or value == "in time"


def test_numbers_are_read_once_and_not_written() -> None:
    assert papers() == ["alibaba", "backfill", "dagps", "elastic", "jockey", "slearn", "wing"]
    assert numbers("jockey") is numbers("jockey")
    assert numbers("jockey")["table1"]["all"] == (0.15, 0.28, 0.59, 1.55)
    with pytest.raises(TypeError):
        numbers("jockey")["table1"] = 1  # type: ignore[index]


def test_keys_are_strings() -> None:
    table = Numbers("mine", {0.2: 1, 4: {"a": [1, 2]}})
    assert (table["0.2"], table[0.2], table[4]["a"]) == (1, 1, (1, 2))
    assert list(table) == ["0.2", "4"]
    assert table.get("5", "") == ""


def test_unknown_papers_and_keys_are_errors_with_suggestions() -> None:
    with pytest.raises(InputError, match="unknown paper 'jokey'; did you mean 'jockey'"):
        numbers("jokey")
    with pytest.raises(InputError, match="number of jockey, table1 'al'; did you mean 'all'"):
        numbers("jockey")["table1"]["al"]


def test_importing_reads_no_file() -> None:
    words = "import sys, sim, sim.published; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], check=False).returncode == 0


@pytest.mark.parametrize("name", ["2sigma", "google2019"])
def test_presets_that_are_not_fitted_have_the_printed_numbers(name: str) -> None:
    paper, tables, trace = numbers("slearn"), preset(name), f"slearn_{name}"
    assert tables.load == tuple(map(float, paper["table5"][trace].values()))
    printed = paper["table4"][trace]
    over_time = [float(printed[f"over_time_{tables.history_days}d_{part}"]) for part in PARTS]
    half = 2 if name == "2sigma" else 1  # docs/slearn_workloads.md says why
    assert tables.over_time == pytest.approx([value / half for value in over_time])
    if name == "google2019":
        assert tables.over_space == tuple(float(printed[f"over_space_{p}"]) for p in PARTS)


PARTS = ("p50", "p90")


DEFINED = {
    "of": {"conditions": "c", "population": "jobs"},
    "fig1": {
        "of": {"metric": "share", "place": "Fig. 1"},
        "0.2": {"a": 1, "b": {"value": [2, 3], "of": {"place": "§1", "uncompared": "private"}}},
    },
    "bare": 4,
}


def test_a_definition_holds_for_all_numbers_below_and_a_number_may_have_its_own() -> None:
    table = Numbers("mine", DEFINED)
    assert list(table) == ["fig1", "bare"]  # `of` is no number
    assert (table["fig1"][0.2]["a"], table["fig1"][0.2]["b"]) == (1, (2, 3))
    assert table.definition("fig1", 0.2, "a") == Definition("share", "jobs", "c", "Fig. 1")
    own = table.definition("fig1", "0.2", "b")
    assert own == Definition("share", "jobs", "c", "§1", "private")
    assert table.definition("bare").missing() == ["metric", "place"]
    assert list(table.paths()) == [("fig1", "0.2", "a"), ("fig1", "0.2", "b"), ("bare",)]


def test_a_mistyped_field_is_an_error_that_names_the_right_one() -> None:
    with pytest.raises(InputError, match="of mine, fig1 'popluation'; did you mean 'population'"):
        Numbers("mine", {"fig1": {"of": {"popluation": "jobs"}, "a": 1}})


def test_draws_are_one_or_not_stated() -> None:
    numbers = Numbers("mine", {"of": {"draws": "one"}, "a": 1, "b": {"c": 2}})
    assert (numbers.definition("a").draws, numbers.definition("b", "c").draws) == ("one", "one")
    with pytest.raises(InputError, match="draws of the definition of mine"):
        Numbers("mine", {"of": {"draws": "two"}, "a": 1})


def test_two_files_of_a_paper_are_one_mapping_without_a_common_key() -> None:
    joined = Numbers("mine", {"a": 1}) | Numbers("mine", {"of": {"metric": "m"}, "b": 2})
    assert dict(joined) == {"a": 1, "b": 2}
    assert (joined.definition("a").metric, joined.definition("b").metric) == ("", "m")
    with pytest.raises(InputError, match="mine: a is in both files"):
        joined | Numbers("mine", {"a": 3})


def test_a_printed_number_is_a_text_with_its_keys() -> None:
    printed = Printed("1.50", ("mine", "fig1"))
    assert (printed, float(printed), printed.path) == ("1.50", 1.5, ("mine", "fig1"))
    assert copy.deepcopy(printed).path == printed.path
