"""Mutants change one place each; worlds catch one of each kind; explanations are of mutants."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from sim.base.jit import JIT
from tests.mutants import reach as reaches
from tests.mutants import run, worlds
from tests.mutants.mutate import mutants
from tests.mutants.reach import Reach, end_after, run_tests

TEXT = '''
LIMIT = 3


@part
def f(st, i):
    """Do it, 7 times."""
    if i < 4 and not st.x[i]:
        st.n += 1
        touch(st)
    st.y = min(i, -2) * 2.5
    return i == 0 or True
'''

CHANGES = [
    "i < 4 and (not st.x[i]) -> i < 4 or not st.x[i]",
    "i < 4 -> i <= 4",
    "4 -> 5",
    "not st.x[i] -> st.x[i]",
    "st.n += 1 -> st.n -= 1",
    "st.n += 1 -> pass",
    "1 -> 2",
    "touch(st) -> pass",
    "min(i, -2) * 2.5 -> min(i, -2) + 2.5",
    "min(i, -2) -> max(i, -2)",
    "-2 -> 2",
    "-2 -> -3",
    "2.5 -> 3.5",
    "i == 0 or True -> i == 0 and True",
    "i == 0 -> i != 0",
    "0 -> 1",
    "True -> False",
]


def test_each_changes_one_place_of_a_function():
    every = list(mutants(Path("f.py"), TEXT))
    assert sorted(mutant.change for mutant in every) == sorted(CHANGES)
    for mutant in every:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(TEXT))
        assert "LIMIT = 3" in mutant.source
        assert "7 times" in mutant.source
    lines = {mutant.change: mutant.line for mutant in every}
    assert lines["i < 4 -> i <= 4"] == 8
    assert lines["st.n += 1 -> pass"] == 9
    assert {mutant.place for mutant in every} == {1}
    assert {mutant.lines for mutant in every if mutant.line == 8} == {range(8, 9)}


@pytest.mark.skipif(JIT, reason="kernels are changed as plain Python")
@pytest.mark.long
def test_worlds_catch_faults_that_are_not_explained():
    pool = list(worlds.random_worlds(40))
    reach = reaches.reach_of_calls([lambda world=world: worlds.notice_of(world) for world in pool])
    kernels = {file.stem: file for file in reaches.KERNELS.rglob("*.py")}
    changes = {
        "resources": "st.state_mach_free[machine, r] -= amount -> pass",
        "lifecycle": "st.state_job_left[j] -= count -> st.state_job_left[j] += count",
        "heaps": "rank_a != rank_b -> rank_a == rank_b",
    }
    for name, change in changes.items():
        file = kernels[name].relative_to(reaches.ROOT)
        (mutant,) = [m for m in mutants(file, kernels[name].read_text()) if m.change == change]
        assert 0 < len(reach.names_at(mutant)) <= 40
        assert not run.judge([mutant], lambda m: worlds.by_worlds(pool, reach, m, 10), 2), name


def test_a_check_that_does_not_end_is_noticed(capsys):
    def forever(_):
        end_after(0.5)
        while True:
            pass

    mutant = next(run._every(["worth"]))
    assert run.judge([mutant], forever, 1) == []
    assert run.judge([mutant], lambda _: 1 / 0, 1) == []
    assert run.judge([mutant], lambda _: "", 1) == [mutant]
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(mutant.change)[2].strip() for line in lines] == [
        "no end in time",
        "ZeroDivisionError('division by zero')",
        "",
    ]


def test_tests_judge_as_well(capsys):
    mutant = next(run._every(["worth"]))
    name = "tests/sim/engine/test_mend.py::no_such_test"
    passes = "tests/mutants/test_mutants.py::test_each_changes_one_place_of_a_function"
    assert run.judge([mutant], lambda _: run_tests([passes], {passes: 60}), 1) == [mutant]
    assert run.judge([mutant], lambda _: run_tests([name], {name: 60}), 1) == []
    assert "pytest ends with 4" in capsys.readouterr().out


@pytest.mark.long
def test_explanations_are_of_mutants_with_a_reason():
    every = list(run._every([]))
    for row in run.explanations():
        assert any(run.explains(row, mutant) for mutant in every), row
        assert len(row["reason"]) > 10


def test_equal_changes_of_a_line_are_told_apart():
    file = Path("sim/engine/kernels/f.py")
    first, second = mutants(file, "def f():\n    return 5, 5\n")
    assert (str(first), str(second)) == (f"{file}:2: 5 -> 6", f"{file}:2: 5 -> 6 (2)")
    row = {"file": "f.py", "line": "return 5, 5", "change": "5 -> 6"}
    assert [run.explains(row, mutant) for mutant in (first, second)] == [True, True]
    assert [run.explains(row | {"place": 2}, m) for m in (first, second)] == [False, True]
    kind = {"file": "f.py", "kind": "return .* # 5 -> 6"}
    assert run.explains(kind, first)
    assert not run.explains(kind | {"file": "g.py"}, first)


def test_the_share_decides(capsys):
    gang = Path("sim/engine/kernels/rigid/gang.py")
    every = list(mutants(gang, (reaches.ROOT / gang).read_text()))
    assert run.report(every[:20], every[:1], 0.95) == 0
    assert run.report(every[:20], every[:2], 0.95) == 1
    assert (
        "18 of 20 mutants caught; 0 change no result (equivalent.toml), 2 survive: 90.0%"
        in capsys.readouterr().out
    )


@pytest.mark.skipif(JIT, reason="kernels are changed as plain Python")
def test_worlds_like_those_that_reach_a_line_judge_as_well(monkeypatch):
    """Of the pool's worlds, one reaches another line of the file, and it notices nothing."""
    (world,) = worlds.random_worlds(1)
    file = Path("sim/engine/kernels/lifecycle.py")
    reach = Reach({(file, 1): ["0"]}, {"0": 0.1})
    (mutant,) = [
        m for m in mutants(file, (reaches.ROOT / file).read_text())
        if m.change == "st.state_job_left[j] -= count -> pass"
    ]  # fmt: skip
    monkeypatch.setattr(worlds, "notice_of", lambda world: "")
    assert reach.names_at(mutant) == []
    assert not run.judge([mutant], lambda m: worlds.by_worlds([world], reach, m, 10), 1)


def test_tests_run_as_long_as_there_is_time():
    reach = Reach(seconds={"a": 1.0, "b": 2.0, "c": 3.0})
    assert reach.within(["a", "b", "c"], 4.0) == ["a", "b"]
    assert reach.within([], 4.0) == []


def test_the_reach_of_tests_is_kept_until_a_source_changes(monkeypatch, tmp_path):
    calls = []

    def reach_of_tests():
        calls.append(1)
        return Reach(
            {(Path("f.py"), 3): ["b"], (Path("f.py"), 4): ["a", "b"]}, {"a": 1.0, "b": 2.0}
        )

    monkeypatch.setattr(reaches, "reach_of_tests", reach_of_tests)
    monkeypatch.setattr(reaches, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(reaches, "ROOT", tmp_path)
    source = tmp_path / "sim" / "f.py"
    source.parent.mkdir()
    source.write_text("x = 1\n")
    assert reaches.kept_reach_of_tests() == reaches.kept_reach_of_tests() == reach_of_tests()
    assert len(calls) == 2
    source.write_text("x = 2\n")
    reaches.kept_reach_of_tests()
    assert len(calls) == 3
