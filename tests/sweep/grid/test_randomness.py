"""Static check of randomness, compared with the actual behaviour of policies."""

from __future__ import annotations

from pathlib import Path

import pytest

import policies
import policies.registry
import sim
from sim.base.random import Stream
from sim.engine.plan import World
from sweep.grid import grid, randomness
from tests import without
from tests.sweep.small import request, write_workload

FIXED = (
    "conservative", "dagps", "drf", "easy", "fair", "fifo", "las", "ljf",
    "multifactor_conservative", "multifactor_easy", "priority", "scored", "sjf", "srpt", "tetris",
    "tez",
)  # fmt: skip
RIGID = [name for name in policies.names() if policies.spec(name).rigid_jobs]


def test_policies_that_draw_nothing_are_known() -> None:
    random = {name for name in RIGID if randomness.draws_randomly(policies.spec(name))}
    assert {*RIGID} - random <= {*FIXED}, "no job of the test below is rigid"
    assert {*without.present(["slurm"])} <= random
    assert [name for name in FIXED if randomness.draws_randomly(policies.spec(name))] == []
    assert randomness.draws_randomly(policies.spec("random"))


@pytest.mark.parametrize("name", sorted({*policies.names()} - {*RIGID}))
def test_those_that_draw_are_among_those_whose_code_says_so(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    rng = World.rng

    def noted(world: World, purpose: str) -> Stream:
        drawn.append(purpose)
        return rng(world, purpose)

    monkeypatch.setattr(World, "rng", noted)
    workload = sim.Workload.read(write_workload(tmp_path / "trace"))
    sim.simulate(workload, sim.Cluster.slots(4), policies.build(name), seed=0)
    assert not drawn or randomness.draws_randomly(policies.spec(name))


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    return ["trace=parquet", f"trace.path={write_workload(tmp_path / 'trace')}"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["policy=fifo,srpt"], True),
        (["policy=fifo,random"], False),
        (["policy=fifo", "cluster.count=3"], True),
        (["policy=fifo", "cluster.outages={mtbf_s:9,repair_s:1,until_s:9}"], False),
        (["policy=fifo", "cluster.outages=[{machine:0,from_s:5,until_s:9}]"], True),
        (["policy=fifo", "cluster.launch_s=0.5"], True),
        (["policy=fifo", "cluster.launch_s={low:0.5,high:1}"], False),
        (["policy=fifo", "cluster.launch_s=[0.5,1]"], False),
        (["policy=fifo", "+trace.transforms={straggle:{rate:0.1,seed:3}}"], True),
        (["policy=fifo", "+trace.transforms={straggle:{rate:0.1,seed:'${seed}'}}"], False),
        (["policy=fifo", "evaluator=due"], False),
    ],
)
def test_what_changes_nothing(trace: list[str], words: list[str], expected: bool) -> None:
    assert grid.build(request([*words, *trace])).is_fixed is expected


def test_generated_workloads_follow_the_seed() -> None:
    assert not grid.build(request(["policy=fifo", "trace=alibaba_synth"])).is_fixed
    assert grid.build(request(["policy=fifo", "trace=alibaba_synth", "trace.seed=3"])).is_fixed


OWN = """
from dataclasses import dataclass

from policies import Policy, register

{module}

@register("{name}")
@dataclass(frozen=True)
class Own(Policy):
    def prepare(self, world, plan):
        {body}
"""


@pytest.mark.parametrize(
    ("module", "body", "expected"),
    [
        ("", "plan.set_jobs(key=world.columns.job_submit)", False),
        ("", "plan.set_jobs(key=world.rng('mine').random(3))", True),
        ("def keys(w): return [of(s) for s in [w]]\ndef of(w): return w.seed", "keys(world)", True),
        ("import numpy as np", "np.random.default_rng(3)", True),
    ],
)
def test_a_policy_of_ones_own_is_read_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    body: str,
    expected: bool,
) -> None:
    name = f"own_{abs(hash((module, body)))}"
    (tmp_path / f"{name}.py").write_text(OWN.format(module=module, name=name, body=body))
    monkeypatch.syspath_prepend(tmp_path)
    policies.registry.load(name, name)
    try:
        assert randomness.draws_randomly(policies.spec(name)) is expected
    finally:
        policies.registry._REGISTRY.pop(name)
