"""Policies of one's own that read what they do not declare count as oracles."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweep.execution import undeclared
from sweep.execution.undeclared import find_undeclared
from tests.sweep.small import Command

MODULE = """
from dataclasses import dataclass
import numpy as np
from policies import Knows, Policy, register
from sim.plan import Event, Order, Plan, Queues, World

@register("{name}")
@dataclass(frozen=True)
class Own(Policy):
    share: float = {share}
    knows = Knows({knows})
    events = Event.JOB_ARRIVED

    def prepare(self, world: World, plan: Plan) -> None:
        {prepare}

    def react(self, memory, batch, world: World, plan: Plan) -> None:
        {react}
"""
FINE = "plan.set_jobs(key=world.columns.job_submit)"
DECLARED = "durations='declared'"
DURATIONS, WORK = ("durations",), "world.truth.job_work"
LIMIT = "np.nan_to_num(world.columns.job_requested, nan=9.0)"
READS = "plan.queues = Queues.make(1, order=Order.REMAINING if self.share else Order.KEY)"
COLUMN = "plan.set_jobs(key=world.columns.job_work)"


def own(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    prepare: str = FINE,
    react: str = "pass",
    knows: str = "",
    share: float = 1.0,
) -> dict[str, object]:
    """Write a module with a policy; return the policy's configuration."""
    text = MODULE.format(name=name, prepare=prepare, react=react, knows=knows, share=share)
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    return {"name": name, "module": name, "params": {}}


@pytest.mark.parametrize(
    ("prepare", "react", "knows", "quantities"),
    [
        (READS, "pass", "", ("durations",)),
        (FINE, f"plan.set_jobs(key={WORK})", "", ("durations",)),
        (COLUMN, "pass", "", ()),  # its runs fail
        (READS, "pass", "durations='true'", ()),
        (f"plan.set_jobs(expected_s={LIMIT}); plan.reservations = 1", "pass", DECLARED, ()),
        (
            f"plan.set_jobs(key={WORK}, expected_s={LIMIT}); plan.reservations = 1",
            "pass",
            DECLARED,
            DURATIONS,
        ),
        ("plan.set_jobs(key=world.truth.job_priority)", "pass", "", ("values",)),
        (FINE, "plan.set_jobs(key=-world.view['done_work'])", "", ()),
    ],
)
def test_what_a_policy_reads(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    prepare: str,
    react: str,
    knows: str,
    quantities: tuple[str, ...],
) -> None:
    name = f"reads_{request.node.name.rpartition('quantities')[2].rstrip(']')}"
    policy = own(tmp_path, monkeypatch, name, prepare, react, knows)
    assert find_undeclared([policy]) == ({name: quantities} if quantities else {})
    assert "could not be checked" not in capsys.readouterr().err


@pytest.mark.long
def test_of_several_settings_all_count_and_code_is_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = own(tmp_path, monkeypatch, "own_settings", READS)
    settings = [{**policy, "params": {"share": share}} for share in (0.0, 1.0)]
    assert find_undeclared(settings[:1]) == {}
    assert find_undeclared(settings) == {"own_settings": ("durations",)}

    def never(_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(undeclared, "_run", never)
    assert find_undeclared(settings) == {"own_settings": ("durations",)}
    assert find_undeclared([{"name": "srpt", "module": None, "params": {}}]) == {}


def test_a_policy_that_can_not_be_run_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = own(tmp_path, monkeypatch, "own_broken", "raise ValueError('not today')")
    assert find_undeclared([policy]) == {}
    err = capsys.readouterr().err
    assert "own_broken: what it reads could not be checked" in err
    assert "not today" in err
    policy = own(tmp_path, monkeypatch, "own_dying", "import os; os._exit(3)")
    assert find_undeclared([policy]) == {}
    assert "own_dying: what it reads could not be checked: exit code 3" in capsys.readouterr().err


def test_a_sweep_counts_it_as_an_oracle(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    (folder / "policy").mkdir(parents=True)
    own(folder, monkeypatch, "own_cheat", READS)
    (folder / "policy" / "own_cheat.yaml").write_text("# own\nname: own_cheat\nmodule: own_cheat\n")
    words = ("policy=own_cheat,fifo,las", "baseline=fifo", "capacity=0.5", "seed=range(0,3)")
    ran = command("--config-dir", str(folder), *words)
    flags = {row["policy"]: (row["knows"], row["is_oracle"]) for row in ran.rows}
    assert flags["own_cheat"] == ("undeclared", True)
    assert flags["fifo"] == ("nothing", False)
    assert "own_cheat reads the truth of durations and does not declare it" in ran.err
    assert "which reads a truth that it does not declare, would be" in ran.out.replace("\n", " ")
    assert "undeclared (own_cheat)" in ran.out
    for words in (("report",), ("list",)):
        assert command.verb(*words).code == 0


def test_a_column_that_is_not_declared_fails_a_cell_unless_all_may_be_read(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    (folder / "policy").mkdir(parents=True)
    own(folder, monkeypatch, "own_peek", FINE, COLUMN)
    (folder / "policy" / "own_peek.yaml").write_text("# own\nname: own_peek\nmodule: own_peek\n")
    words = ("policy=own_peek,fifo", "policy.reads=declared,all", "baseline=fifo", "capacity=0.5")
    ran = command("--config-dir", str(folder), *words)
    rows = {(row["policy"], row["policy.reads"]): row for row in ran.rows}
    failed, oracle = (rows["own_peek", reads] for reads in ("declared", "all"))
    assert "own_peek reads world.columns.job_work" in failed["error_message"]
    assert not failed["is_oracle"]
    assert (oracle["knows"], oracle["is_oracle"]) == ("true", True)
    assert "own_peek" in ran.out
    assert "knows all durations, would be" in ran.out.replace("\n", " ")
