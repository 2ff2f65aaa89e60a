from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from sim.base.errors import InputError
from sweep.grid import config_tree

TREE = {"a": {"b": 1, "c": "text", "d": True}, "e": None, "f": "???"}


def test_sets_a_copy() -> None:
    changed = config_tree.with_value(TREE, "a.b", 2)
    assert changed["a"] == {"b": 2, "c": "text", "d": True}
    assert TREE["a"] == {"b": 1, "c": "text", "d": True}


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown key 'a\.bb'; did you mean 'a\.b'"):
        config_tree.with_value(TREE, "a.bb", 2)
    with pytest.raises(InputError, match=r"unknown key 'x\.b'"):
        config_tree.with_value(TREE, "x.b", 2)
    with pytest.raises(InputError, match="no keys inside"):
        config_tree.with_value(TREE, "a.b.c", 2)


def test_adds_only_when_asked_to() -> None:
    assert config_tree.get(config_tree.with_value(TREE, "x.y", 2, add=True), "x.y") == 2


@pytest.mark.parametrize(
    ("key", "value"), [("a.b", "text"), ("a.b", True), ("a.d", 1), ("a.b", [1])]
)
def test_refuses_another_type(key: str, value: object) -> None:
    with pytest.raises(InputError, match="must be"):
        config_tree.with_value(TREE, key, value)


@pytest.mark.parametrize(("key", "value"), [("a.b", 2.5), ("e", "x"), ("f", 3), ("a.b", "${e}")])
def test_takes_what_may_stand_there(key: str, value: object) -> None:
    assert config_tree.get(config_tree.with_value(TREE, key, value), key) == value


def test_deletes() -> None:
    assert "b" not in config_tree.without(TREE, "a.b")["a"]
    with pytest.raises(InputError, match="unknown key"):
        config_tree.without(TREE, "a.x")


def test_resolves_interpolations() -> None:
    assert config_tree.resolved({"seed": 3, "trace": {"seed": "${seed}"}})["trace"] == {"seed": 3}
    assert config_tree.resolved(TREE) is TREE
    with pytest.raises(InputError, match="does not resolve"):
        config_tree.resolved({"a": "${nothing}"})


@pytest.mark.parametrize(
    "part",
    [
        {"a": "${seed}", "b": ["${x.y}", {"c": "${capacity}"}], "d": 1, "e": None},
        {"a": "${x.text}", "b": "${x.nothing}"},
        {"a": "${x}"},
        {"a": "${x.list}"},
        {"a": "n${seed}"},
        {"a": "${x.again}"},
        {"a": "${.b}", "b": 3},
        {"a": "\\${seed}"},
    ],
)
def test_resolves_as_omegaconf_does(part: dict[str, object]) -> None:
    x = {"y": 2, "text": "t", "nothing": None, "list": [1, 2], "again": "${seed}"}
    tree = {"part": part, "seed": 7, "capacity": 0.5, "x": x}
    expected = OmegaConf.to_container(OmegaConf.create(tree), resolve=True)
    assert config_tree.resolved(tree) == expected


def test_very_many_seeds_are_written_as_their_range() -> None:
    assert config_tree.abbreviated(range(1000)) == [*range(1000)]
    assert config_tree.abbreviated(range(3, 1004)) == "range(3,1004)"
    assert config_tree.abbreviated([*range(1000), 2000]) == [*range(1000), 2000]
    assert config_tree.abbreviated([0.5] * 2000) == [0.5] * 2000


@pytest.mark.parametrize("text", ["${nothing}", "${x}", "${x.y.z}"])
def test_what_does_not_resolve_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="does not resolve"):
        config_tree.resolved({"a": text, "x": "???"})
