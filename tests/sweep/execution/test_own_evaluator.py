"""An evaluator that is a module of the user's own."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import sweep
from sim.base.errors import InputError
from sweep.store import sources
from tests.sweep.small import Command

EVALUATOR = """
import pyarrow as pa


def evaluate(run, workload, cluster, policy, seed, factor=1.0):
    result = run(workload, cluster, policy, seed=seed)
    last_s = factor * float(result.job_finish.max())
    return {"last_s": last_s, "odd": 1.0}, pa.table({"last_s": [last_s]})
"""

OF_JOBS = """
import numpy as np
import pyarrow as pa


def evaluate(run, workload, cluster, policy, seed):
    result = run(workload, cluster, policy, seed=seed)
    columns = {"submit_s": result.job_submit, "finish_s": result.job_finish}
    columns |= {"failed": result.job_failed, "is_odd": np.arange(workload.n_jobs) % 2 == 1}
    n = workload.n_jobs
    table = pa.table({**columns, "third": np.arange(n) / 3, "name": ["x"] * n})
    return {**result.metrics, "odd_jobs": float(np.mean(columns["is_odd"]))}, table
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the evaluator and its option, found as long as the test runs."""
    folder = tmp_path / "mine"
    (folder / "evaluator").mkdir(parents=True)
    (folder / "own_evaluator.py").write_text(EVALUATOR)
    (folder / "own_nothing.py").write_text("")
    (folder / "own_jobs.py").write_text(OF_JOBS)
    for option, module in {
        "own": "own_evaluator\nfactor: 1.0",
        "of_jobs": "own_jobs",
        "lost": "own_lost",
        "nothing": "own_nothing",
    }.items():
        (folder / "evaluator" / f"{option}.yaml").write_text(f"name: {option}\nmodule: {module}\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield folder
    sources.forget()
    for module in ("own_evaluator", "own_jobs", "own_nothing"):
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


def test_its_jobs_have_groups_distributions_and_what_ifs(command: Command, mine: Path) -> None:
    """Queue a has the even jobs, b the odd ones."""
    words = ("policy=fifo", "seed=0", "evaluator=of_jobs", f"--config-dir={mine}")
    ran = command(*words, "metrics.by=queue", "metrics=[odd_jobs,is_odd.queue.b]")
    assert ran.code == 0, ran.err
    (row,) = ran.rows
    assert (row["is_odd.queue.a"], row["is_odd.queue.b"], row["odd_jobs"]) == (0.0, 1.0, 0.5)
    assert row["third.queue.b"] == pytest.approx((1 + 3 + 5) / 9)
    assert row["wait_mean_s.queue.a"] >= 0.0
    assert "name.queue.a" not in row
    assert "is_odd.queue.b" in ran.out
    result = sweep.load(ran.folder)
    assert list(result.cdf("is_odd", log=False).data[0].x) == [0.0, 1.0]
    with pytest.raises(InputError, match="jct_s, submit_s, finish_s, failed, is_odd, third"):
        result.cdf("wait_s")
    what_if = command(*words, "what_if.nodes=+1", "metrics=[odd_jobs]", "what_if.restore=odd_jobs")
    assert what_if.code == 0, what_if.err
    assert re.search(r"^what if .* odd_jobs", what_if.out, re.M)
    table = pq.read_table(what_if.folder / "what_if.parquet")
    assert table["odd_jobs"].to_pylist() == [0.5, 0.5]


def test_groups_need_a_run_and_a_verdict_a_direction(command: Command, mine: Path) -> None:
    (mine / "own_nothing.py").write_text(
        "import pyarrow as pa\n\n\ndef evaluate(run, workload, cluster, policy, seed):\n"
        "    return {'x': 1.0}, pa.table({'x': [1.0]})\n"
    )
    words = ("policy=fifo", "seed=0", "evaluator=nothing", f"--config-dir={mine}")
    failed = command(*words, "metrics.by=queue")
    assert failed.code == 1
    assert "ran no simulation of the workload itself" in failed.out + failed.err
    wrong = command(*words, "verdict.metric=x")
    assert wrong.code == 2
    assert "has no direction" in wrong.err
    assert "target.metric=x" in wrong.err
