"""An evaluator that is a module of the user's own."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweep.store import sources
from tests.sweep.small import Command

EVALUATOR = """
import pyarrow as pa


def evaluate(run, workload, cluster, policy, seed, factor=1.0):
    result = run(workload, cluster, policy, seed=seed)
    last_s = factor * float(result.job_finish.max())
    return {"last_s": last_s, "odd": 1.0}, pa.table({"last_s": [last_s]})
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the evaluator and its option, found as long as the test runs."""
    folder = tmp_path / "mine"
    (folder / "evaluator").mkdir(parents=True)
    (folder / "own_evaluator.py").write_text(EVALUATOR)
    (folder / "own_nothing.py").write_text("")
    for option, module in {
        "own": "own_evaluator\nfactor: 1.0",
        "lost": "own_lost",
        "nothing": "own_nothing",
    }.items():
        (folder / "evaluator" / f"{option}.yaml").write_text(f"name: {option}\nmodule: {module}\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield folder
    sources.forget()
    for module in ("own_evaluator", "own_nothing"):
        sys.modules.pop(module, None)


def test_its_numbers_are_columns_and_its_options_can_be_swept(fake: Command, mine: Path) -> None:
    words = ("policy=fifo,sjf", "baseline=fifo", "evaluator=own", "evaluator.factor=1,2")
    ran = fake(*words, "metrics=[last_s,odd]", f"--config-dir={mine}")
    assert ran.code == 0, ran.err
    last_s = {(row["policy"], row["evaluator.factor"]): row["last_s"] for row in ran.rows}
    assert last_s["fifo", 2] == 2 * last_s["fifo", 1] > 0
    assert {row["odd"] for row in ran.rows} == {1.0}
    assert all(math.isnan(row["jct_speedup_mean"]) for row in ran.rows)  # it keeps no jobs
    assert "last_s" in ran.out
    assert "4 cached, 0 to run" in fake(*words, f"--config-dir={mine}").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluator=lost"], "'own_lost' can't be imported"),
        (["evaluator=nothing"], "has no function evaluate(run, workload, cluster, ...)"),
        (["evaluator=own", "+evaluator.facter=2"], "did you mean 'factor'"),
    ],
)
def test_what_is_wrong_is_said(fake: Command, mine: Path, words: list[str], message: str) -> None:
    ran = fake("policy=fifo", *words, f"--config-dir={mine}")
    assert ran.code == 2
    assert message in ran.err


def test_a_metric_that_the_evaluator_never_returns_is_an_error(fake: Command, mine: Path) -> None:
    words = ("policy=fifo", "evaluator=own", f"--config-dir={mine}")
    ran = fake(*words, "metrics=[last_s,od]")
    assert ran.code == 2
    assert (
        "metrics=od: no cell has this metric; did you mean 'odd'? computed: last_s, odd. Return it "
        "from the evaluator, or leave it out of metrics=; finished cells are cached" in ran.err
    )
    ran = fake(*words, "metrics=[last_s,odd]")
    assert ran.code == 0, ran.err
    assert "1 cached, 0 to run" in ran.err


def test_a_missing_metric_hides_no_failure(fake: Command, mine: Path) -> None:
    module = mine / "own_evaluator.py"
    module.write_text(EVALUATOR.replace("last_s = factor", "raise ValueError('odd world')"))
    ran = fake("policy=fifo", "evaluator=own", "metrics=[last_s]", f"--config-dir={mine}")
    assert ran.code == 1
    assert "ValueError" in ran.out
    assert ran.out.count("1 of 1 cells failed") == ran.out.count("failed") == 1
    assert ran.err.count("1 of 1 cells done, 1 failed") == 1


def test_metrics_of_a_plain_simulation_are_checked_still(fake: Command) -> None:
    assert "unknown metric" in fake("policy=fifo", "metrics=[jct_meen_s]").err


@pytest.mark.parametrize(
    ("returned", "kind", "message"),
    [
        (
            '({"a": 1.0}, None)',
            "EvaluatorError",
            "evaluator own returned None for its table; it",
        ),
        ("None", "EvaluatorError", "evaluator own returned None; it must return numbers by name"),
        ('{"a": 1.0}', "EvaluatorError", "evaluator own returned a dict; it must return numbers"),
        ("([1.0], pa.table({}))", "EvaluatorError", "returned a list for its numbers"),
        ('({"a": "x"}, pa.table({}))', "EvaluatorError", "returned a str as 'a'; it must"),
        (
            '({"a": 10**400}, pa.table({}))',
            "EvaluatorError",
            "returned 'a', which is not a float64",
        ),
    ],
)
def test_one_that_returns_something_else_fails_its_cells_alone(
    fake: Command, mine: Path, returned: str, kind: str, message: str
) -> None:
    text = EVALUATOR.replace(
        '    return {"last_s"',
        f'    if seed == 1:\n        return {returned}\n    return {{"last_s"',
    )
    (mine / "own_evaluator.py").write_text(text)
    ran = fake("policy=fifo", "seed=0,1,2", "evaluator=own", f"--config-dir={mine}")
    assert ran.code == 1, ran.err
    assert [row["status"] for row in ran.rows] == ["done", "failed", "done"]
    assert ran.rows[1]["error_type"] == kind
    assert message in ran.rows[1]["error_message"]


def test_a_number_of_its_own_is_never_shown_as_a_resources_share(fake: Command, mine: Path) -> None:
    module = mine / "own_evaluator.py"
    module.write_text(EVALUATOR.replace('"odd"', '"utilization_users"'))
    ran = fake("policy=fifo", "evaluator=own", f"--config-dir={mine}")
    assert ran.code == 1
    assert (
        "returned 'utilization_users', which means the utilization of a resource 'users'" in ran.out
    )
    assert "Rename the metric" in ran.out
