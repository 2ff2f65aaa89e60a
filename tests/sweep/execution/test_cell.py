from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

import policies
import policies.registry
from sim import Workload
from sim.base.errors import summary_line
from sweep.execution import cell
from sweep.execution.keys import cell_key, policy_text
from sweep.grid import clusters
from sweep.grid.config_tree import canonical
from sweep.store.cell import CellResult, CellSpec
from tests.sweep.small import fake_simulate

SPEC = CellSpec(
    key="k" * 64,
    policy={"name": "fifo", "module": None, "params": {"fit": "strict"}},
    cluster={"shape": "slots", "count": 2, "load": None},
    capacity=1.0,
    evaluator={"name": "simulation"},
    seed=0,
)


@pytest.fixture
def workload() -> Workload:
    return Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0, 2.0]}]}])


def spec(**changes: Any) -> CellSpec:
    return SPEC._replace(**changes)


def run(workload: Workload, spec: CellSpec, simulate: Any = None) -> CellResult:
    built = clusters.build_for(workload, spec.cluster, spec.capacity)
    return cell.run_cell(workload, spec, built, simulate)


def test_gives_metrics_and_a_row_a_job(workload: Workload) -> None:
    result = run(workload, SPEC, fake_simulate)
    assert result.error is None
    assert result.metrics["jct_mean_s"] == 10.0
    assert result.jobs is not None
    assert result.jobs.column_names == [
        "submit_s",
        "start_s",
        "finish_s",
        "failed",
        "estimate_s",
        "slowdown",
        "gap_lb",
        "prediction_error",
    ]
    assert result.jobs.num_rows == 1
    assert result.seconds > 0


def test_the_real_simulator_is_the_default(workload: Workload) -> None:
    result = run(workload, SPEC)
    assert result.error is None
    assert result.jobs is not None
    assert result.jobs["finish_s"].to_pylist() == [2.0]
    assert result.metrics["jct_mean_s"] == 2.0


def test_an_exception_is_part_of_the_result(workload: Workload) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("by nothing")

    result = run(workload, SPEC, broken)
    assert result.error is not None
    assert result.error["stage"] == "simulate"
    assert result.error["type"] == "ZeroDivisionError"
    assert result.error["message"] == "by nothing"
    assert "broken" in result.error["traceback"]
    assert result.jobs is None


def test_even_an_exit(workload: Workload) -> None:
    def leaves(*_: Any, **__: Any) -> None:
        raise SystemExit(3)

    result = run(workload, SPEC, leaves)
    assert result.error is not None
    assert result.error["type"] == "SystemExit"


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"cluster": {**SPEC.cluster, "outages": {"mtbf_s": 1.0}}}, "cluster"),
        ({"policy": {"name": "nobody", "module": None, "params": {}}}, "policy"),
    ],
)
def test_the_error_says_what_it_was_doing(
    workload: Workload, changes: dict[str, Any], stage: str
) -> None:
    result = run(workload, spec(**changes), fake_simulate)
    assert result.error is not None
    assert result.error["stage"] == stage


def test_what_the_policys_module_raises_is_the_policys(
    workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    from policies import spec as policy_class

    namespace: dict[str, Any] = {"__name__": policy_class("fifo").__module__}
    exec("def begin(self, world, plan): raise ValueError('no plan')", namespace)
    monkeypatch.setattr(policy_class("fifo"), "begin", namespace["begin"])
    result = run(workload, SPEC)
    assert result.error is not None
    assert (result.error["stage"], result.error["message"]) == ("policy", "no plan (<string>:1)")


MODULE = """
from dataclasses import dataclass

from policies import Policy, register
from sim.plan import Event


@register("said")
@dataclass(frozen=True)
class Said(Policy):
    events = Event.JOB_ARRIVED

    def prepare(self, world, plan):
        {prepare}

    def react(self, memory, batch, world, plan):
        self.help(batch)

    def help(self, batch):
        {react}
"""


@pytest.mark.parametrize(
    ("prepare", "react", "message"),
    [
        (
            "plan.set_jobs(key=[1.0, 2.0, 3.0])",
            "pass",
            "job column 'key' was given 3 values for 1 jobs; give one for each, or one for all of "
            "them ({}:14)",
        ),
        ("pass", "return 1 / len(batch.row[:0])", "division by zero ({}:20)"),
    ],
)
def test_what_a_policy_does_wrong_has_a_column_and_a_line(
    workload: Workload,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prepare: str,
    react: str,
    message: str,
) -> None:
    (tmp_path / "said_wrong.py").write_text(MODULE.format(prepare=prepare, react=react))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "said_wrong", raising=False)
    monkeypatch.delitem(policies.registry._REGISTRY, "said", raising=False)
    text = spec(policy={"name": "said", "module": "said_wrong", "params": {}})
    error = run(workload, text).error
    monkeypatch.chdir(tmp_path)
    short = run(workload, text).error
    assert error is not None
    assert short is not None
    assert error["stage"] == "policy"
    assert error["message"] == message.format(tmp_path / "said_wrong.py")
    assert short["message"] == message.format("said_wrong.py")


def test_what_the_input_lacks_needs_no_line(workload: Workload) -> None:
    wrong = {"name": "las", "module": None, "params": {"queues": -1}}
    error = run(workload, spec(policy=wrong)).error
    assert error is not None
    assert not error["message"].endswith(")")


def test_an_error_of_a_cell_is_fit_for_a_terminal(workload: Workload) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("\x1b[2Jgone")

    error = run(workload, SPEC, broken).error
    assert error is not None
    assert error["message"] == "\\x1b[2Jgone"
    assert "\x1b" not in error["traceback"]


PARTS: dict[str, Any] = {
    "policy": {"name": "las", "module": None, "params": {"queues": 10}},
    "cluster": {"shape": "slots", "load": 0.8},
    "evaluator": {"name": "simulation"},
    "capacity": 0.5,
    "seed": 0,
    "workload": "w",
    "sources": "s",
}


def key(**parts: Any) -> bytes:
    """Return the key of a cell of these parts."""
    names = ("cluster", "evaluator", "capacity", "seed")
    written = {name: canonical(parts[name]) for name in names}
    return cell_key(**{**parts, **written, "policy": policy_text(parts["policy"])})


def test_a_key_is_the_sha256_of_canonical_json() -> None:
    text = (
        '{"capacity":0.5,"cluster":{"load":0.8,"shape":"slots"},"evaluator":{"name":"simulation"},'
        '"policy":{"name":"las","params":{"queues":10}},"seed":0,"sources":"s","workload":"w"}'
    )
    assert key(**PARTS) == hashlib.sha256(text.encode()).digest()


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": {"name": "las", "module": None, "params": {"queues": 5}}},
        {"policy": {"name": "fifo", "module": None, "params": {"queues": 10}}},
        {"cluster": {"shape": "slots", "load": 0.9}},
        {"evaluator": {"name": "another"}},
        {"capacity": 0.6},
        {"seed": 1},
        {"workload": "x"},
        {"sources": "t"},
    ],
)
def test_whatever_matters_changes_the_key(changes: dict[str, Any]) -> None:
    assert key(**{**PARTS, **changes}) != key(**PARTS)


def test_where_a_users_module_lies_does_not() -> None:
    moved = {**PARTS["policy"], "module": "elsewhere.las"}
    assert key(**{**PARTS, "policy": moved}) == key(**PARTS)


def test_canonical_json_does_not_depend_on_order() -> None:
    assert canonical({"b": 1, "a": [1.5, None]}) == '{"a":[1.5,null],"b":1}'


@pytest.mark.parametrize(
    ("error", "message"),
    [(OSError("one\ntwo"), "one"), (MemoryError(), "MemoryError"), (OSError("\n"), "OSError")],
)
def test_an_error_in_a_line_says_something(error: Exception, message: str) -> None:
    assert summary_line(error) == message
