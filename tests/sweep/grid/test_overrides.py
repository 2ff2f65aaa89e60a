from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import InputError
from sweep.grid.overrides import Assignment, parse, quote


def parse_one(text: str, names: tuple[str, ...] = ()) -> Assignment:
    (assignment,) = parse([text], lambda _: names)
    return assignment


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("policy=fifo", ("fifo",)),
        ("policy=fifo,sjf", ("fifo", "sjf")),
        ("seed=range(0,3)", (0, 1, 2)),
        ("seed=range(3)", (0, 1, 2)),
        ("capacity=range(0.2,1.0,0.2)", (0.2, 0.4, 0.6, 0.8)),
        ("capacity=choice(0.5,1)", (0.5, 1)),
        ("policy.queues=sort(3,1,2)", (1, 2, 3)),
        ("policy.weights=[1,2],[3]", ([1, 2], [3])),
        ("cluster.shape={cpu:4,mem:8}", ({"cpu": 4, "mem": 8},)),
        ("trace.path='a, b.csv'", ("a, b.csv",)),
        ("trace.path='a b','c'", ("a b", "c")),
        ("baseline=null", (None,)),
    ],
)
def test_reads_hydras_grammar(text: str, values: tuple[Any, ...]) -> None:
    assignment = parse_one(text)
    assert assignment.values == values
    assert [type(v) for v in assignment.values] == [type(v) for v in values]


def test_a_shuffled_sweep_keeps_its_order() -> None:
    assert parse_one("seed=shuffle(1,2,3,4,5,6,7,8)").values == (1, 2, 3, 4, 5, 6, 7, 8)


def test_glob_picks_from_the_groups_options() -> None:
    names = ("las", "las_5", "fifo", "ljf")
    assert parse_one("policy=glob(l*)", names).values == ("las", "las_5", "ljf")
    assert parse_one("policy=glob([l*,f*],exclude=las*)", names).values == ("fifo", "ljf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy", "not in Hydra's grammar"),
        ("policy=(", "not in Hydra's grammar"),
        ("policy=a,,b", r"value 2 of policy is empty; write policy=a,b \["),
        ("policy=a,", r"value 2 of policy is empty; write policy=a \["),
        ("policy=, a", r"value 1 of policy is empty; write policy=a \["),
        ("policy=,", r"value 1 of policy is empty; write policy=VALUE"),
        ("x=[a, ,b]", r"a value of x is empty; write x=\[a,b\]"),
        ("x=choice(a,)", r"a value of x is empty; write x=choice\(a\)"),
        ("x=a=b", "grammar: unexpected '='; write key=value"),
        ("x={a:1", "grammar: it can't be read from '{a:1' on; write key=value"),
        ("=3", "write key=value"),
        ("policy@x=fifo", "write key=value"),
        ("seed=range(5,1)", "has no values to sweep"),
        ("policy=glob(zz*)", "matches none of fifo"),
    ],
)
def test_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_one(text, ("fifo",))
    assert "expecting" not in str(caught.value)  # the parser's tokens


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("trace.path=/données/müller.swf", ("/données/müller.swf",)),
        ("trace.path=/ü/a b.swf", ("/ü/a b.swf",)),
        ("trace.path=~/x#1;2.swf", ("~/x#1;2.swf",)),
        ("trace.path=/ü.swf,/plain.swf, /ä.swf ", ("/ü.swf", "/plain.swf", "/ä.swf")),
        ("trace.path=${paths.traces}/ü.swf", ("${paths.traces}/ü.swf",)),
        ("key=[ü, b]", (["ü", "b"],)),
        ("key={a: ü}", ({"a": "ü"},)),
        ("key='ü, b'", ("ü, b",)),
        ("key=C:/ü", ("C:/ü",)),
    ],
)
def test_a_path_of_any_letters_needs_no_quotes(text: str, values: tuple[Any, ...]) -> None:
    read = parse_one(text)
    assert read.values == values
    assert read.text == text
    assert parse_one(quote(read.key, read.values[0])).values == values[:1]


@pytest.mark.parametrize("text", ["key='ü'x", "key=ü(", "key=ü]", "ü"])
def test_what_is_wrong_otherwise_stays_wrong(text: str) -> None:
    with pytest.raises(InputError, match="not in Hydra's grammar"):
        parse_one(text)


def test_glob_of_a_key_that_is_no_group_is_refused() -> None:
    with pytest.raises(InputError, match="options of a group"):
        parse_one("trace.path=glob(*.csv)")


def test_a_sweep_has_no_single_value() -> None:
    with pytest.raises(InputError, match="can't be swept"):
        _ = parse_one("launcher=inline,local").value


def test_kinds_of_assignment() -> None:
    assert parse_one("+policy.x=1").kind == "add"
    assert parse_one("++policy.x=1").kind == "add"
    assert parse_one("~policy.x").kind == "delete"
    assert parse_one("policy.x=1").kind == "set"


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=12),
)


@given(st.one_of(scalars, st.lists(scalars, max_size=3)))
def test_what_is_quoted_is_read_back(value: Any) -> None:
    assert parse_one(quote("key", value)).values == (value,)


def test_braces_that_the_shell_took_apart_are_to_be_quoted() -> None:
    with pytest.raises(InputError, match=r"quote them: 'cluster.shape=\{cpu:16,mem:64\}'"):
        parse(["cluster.shape=cpu:16", "policy=fifo", "cluster.shape=mem:64"], lambda _: [])
    paths = ["trace.path=s3://a/b", "trace.path=s3://c/d"]
    assert [line.value for line in parse(paths, lambda _: [])] == ["s3://a/b", "s3://c/d"]
