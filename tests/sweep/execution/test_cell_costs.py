"""The estimate of a grid's time in ``plan``, and the measured costs that it stands on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import policies
from sim.base import entry_points
from sim.base.entry_points import PROJECT
from sweep.execution import cell_costs
from tests.sweep.small import Command

ROWS = 30
"""Stages and tasks of the small workload: six jobs of two stages and three tasks."""
OWN = """
from dataclasses import dataclass

from policies import Policy, register


@register("mine")
@dataclass(frozen=True)
class Mine(Policy):
    pass
"""


@pytest.fixture(autouse=True)
def costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a cell of srpt take 10 s on the small workload, and other figures be round."""
    content = {
        "workloads": {
            "same": {"n_stages": 12, "n_tasks": ROWS - 12, "seconds": 10.0},
            "large": {"n_stages": 12, "n_tasks": 10**9, "seconds": 1.0},
        },
        "traces": {"slearn_2sigma": {"n_stages": 100, "n_tasks": 200, "jobs": 100}},
        "multiples": {
            "srpt": {"same": 1.0, "large": 1.0},
            "fifo": {"same": 0.4, "large": 0.6, "parquet": 0.5},
            "las": {"same": 1.0, "large": 2.0, "other": 6.0},
            "mil": {},
        },
    }
    monkeypatch.setattr(cell_costs, "measured", lambda: content)
    monkeypatch.setattr(cell_costs, "BEYOND_S", 0.0)


def estimate(fake: Command, *words: str) -> str:
    """Return the estimate of a plan, on two cores."""
    planned = fake("plan", *words)
    assert planned.code == 0, planned.err
    return planned.out.splitlines()[1]


def test_the_time_of_cells_that_are_not_cached(
    fake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fake("policy=srpt").code == 0  # from now on the size of the workload is known
    monkeypatch.setattr(cell_costs, "_n_cores", lambda prepared: 2)
    assert estimate(fake, "policy=srpt", "seed=range(0,41)") == (
        "about 3 min on 2 cores: 40 cells not cached (an estimate, from benchmarks on one machine, "
        "without start and compiling)"
    )
    # half of srpt's on this trace, and twice, the median, where the trace was not measured
    assert estimate(fake, "policy=fifo", "seed=range(0,12)").startswith("about 30 s on 2 cores: 12")
    assert estimate(fake, "policy=las", "seed=range(0,12)").startswith("about 2 min on 2 cores: 12")
    # a cell takes one core
    assert estimate(fake, "policy=las").startswith("about 20 s on 2 cores: 1 cell not cached")


def test_a_policy_without_figures_has_a_stated_multiple(fake: Command, tmp_path: Path) -> None:
    (tmp_path / "own" / "policy").mkdir(parents=True)
    (tmp_path / "own" / "mine_policy.py").write_text(OWN)
    (tmp_path / "own" / "policy" / "mine.yaml").write_text(
        "# Mine.\nname: mine\nmodule: mine_policy\n"
    )
    assert fake("policy=srpt").code == 0
    sentence = estimate(fake, "--config-dir", str(tmp_path / "own"), "policy=mine,mil,srpt")
    assert sentence.startswith("about 2 min on 1 core: 2 cells not cached")
    assert "; mine, mil taken as 5 times srpt)" in sentence


def test_workloads_of_unknown_size_are_not_counted(fake: Command) -> None:
    unknown = "no estimate of the time: sizes of workloads are known once they have been made"
    assert estimate(fake, "policy=srpt") == unknown


def test_a_synthesized_trace_has_its_usual_size_in_proportion(fake: Command) -> None:
    words = ("policy=srpt", "trace=slearn_2sigma", "cluster=slots")
    assert estimate(fake, *words, "trace.jobs=50").startswith("about 50 s on 1 core: 1 cell")
    assert estimate(fake, *words, "trace.jobs=1000").startswith("about 17 min on 1 core: 1 cell")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "1 s"), (1.6, "2 s"), (89.0, "89 s"), (90.0, "2 min"), (7200.0, "2 h"), (2e5, "2 days")],
)
def test_durations_are_in_their_largest_unit(seconds: float, text: str) -> None:
    assert cell_costs.duration(seconds) == text


def test_each_policy_of_a_system_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one of the core may cost what an unknown one does."""
    monkeypatch.undo()
    content = cell_costs.measured()
    entries = entry_points.installed("policies")
    missing = {n for n, e in entries.items() if e.package == PROJECT} - content["multiples"].keys()
    assert not missing, f"run python -m benchmarks.policies for {', '.join(sorted(missing))}"
    assert len(content["multiples"]) >= 62
    assert content["multiples"].keys() <= {*policies.names()}
    assert content["multiples"][cell_costs.REFERENCE] == dict.fromkeys(content["workloads"], 1.0)
    assert all(re.fullmatch("[a-z0-9_]+", name) for name in content["traces"])
