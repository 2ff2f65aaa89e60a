"""Worlds of all mechanisms: those that failed once, a few fresh ones, and their reduction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest

from sim.base.errors import InputError
from sim.base.jit import JIT
from sim.cluster.allowed import has_tiers, may_refuse
from sim.cluster.exclusive import exclusive_jobs
from sim.cluster.fits import has_enforced_limits
from sim.cluster.speeds import class_speeds
from tests.examples import COMPILED_WIDE, FEW, examples
from tests.fuzz import worlds
from tests.sim.engine import compared, outcome
from tests.sim.engine.compared import Compared, compare
from tests.sim.engine.random_worlds import MECHANISMS, RARE, build, draw
from tests.sim.engine.shrink import shrink

FILES = sorted(worlds.KEPT.glob("*.json"))
ARCHITECTURE = Path(__file__).parents[3] / "docs" / "architecture.md"


def seeded(number: int, without: Collection[str] = ()):
    return draw(np.random.default_rng([54, number]), without)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_world_that_failed_once_is_equal(file):
    world = json.loads(file.read_text())
    if COMPILED_WIDE and RARE & {*world["mechanisms"]}:
        pytest.skip("in no wide variant")
    assert compare(world) == Compared()


def test_worlds_are_there():
    assert FILES


def test_same_bits_in_worlds_of_all_mechanisms():
    equal, left_out = Counter(), RARE if COMPILED_WIDE else set()
    for number in range(examples(400)):
        world = seeded(number, left_out)
        result = compare(world)
        assert not result.differs, (number, result.differs)
        if not result.refused:
            equal.update(world["mechanisms"])
    if not FEW:
        assert min(equal[name] for name in {*MECHANISMS} - left_out) >= (2 if JIT else 1)


def test_a_world_is_a_function_of_its_seed_and_plain_json():
    for number in range(20):
        world = seeded(number)
        assert world == seeded(number)
        assert json.loads(json.dumps(world)) == world


def test_a_mechanism_that_is_drawn_is_in_the_world():
    """Of the worlds that can be built, at least ten have each."""
    seen = Counter()
    for number in range(400):
        world = seeded(number)
        on = set(world["mechanisms"])
        try:
            workload, cluster, policy = build(world)
        except InputError:
            continue
        seen["pool"] += cluster.unit
        seen["gangs"] += bool(workload.columns.job_min_tasks.any() and "gangs" in on)
        seen["inputs"] += bool(workload.columns.job_input_mode.any())
        seen["dependencies"] += bool(workload.columns.releases.edges[2].any())
        seen["begin times"] += bool(workload.columns.releases.begin_s.any())
        seen["singletons"] += bool(workload.columns.releases.is_singleton.any())
        seen["failures"] += workload.failures.num_rows > 0
        seen["remote"] += bool((workload.columns.stage_remote_factor > 1).any())
        seen["outages"] += len(cluster.outages) > 0
        seen["slow periods"] += len(cluster.slowdowns) > 0
        seen["launch lags"] += bool(cluster.launch)
        seen["stage lags"] += cluster.stage_lag_s > 0
        seen["stages with lags of their own"] += bool(workload.columns.stage_lag.any())
        seen["hard queues"] += cluster.queue_mode == "hard"
        seen["weighted queues"] += cluster.queue_mode == "weighted"
        seen["fungible"] += bool(cluster.fungible)
        seen["devices"] += cluster.devices is not None
        seen["classes"] += len(workload.columns.runs_on) > 1
        seen["speeds"] += class_speeds(workload.columns, cluster) is not None
        seen["limits"] += has_enforced_limits(workload.columns, cluster)
        seen["callbacks"] += getattr(policy, "callbacks", False)
        seen["evictions"] += getattr(policy, "evicts", False)
        seen["holds"] += getattr(policy, "n_held", 0) > 0
        seen["caps"] += bool(cluster.limits)
        seen["quotas"] += cluster.queue_mode == "quota"
        seen["tiers"] += has_tiers(cluster)
        seen["exclusive"] += bool(exclusive_jobs(workload.columns, cluster).any())
        seen["admission"] += may_refuse(cluster)
        seen["one per node"] += bool(workload.columns.job_one_per_node.any())
        seen["choice"] += getattr(policy, "chooses", False)
    assert min(seen.values()) >= 10
    assert len(seen) == 30


def delayed(world):
    """Return the kernel's outcome with submissions an instant later."""
    result = outcome_of_kernel(world)
    result["job_submit"] = np.nextafter(result["job_submit"], np.inf)
    return result


outcome_of_kernel = compared.kernel_outcome


@pytest.mark.skipif(COMPILED_WIDE, reason="it draws mechanisms that are in no wide variant")
def test_a_world_that_fails_is_reduced_kept_and_counted(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(compared, "kernel_outcome", delayed)
    counts = worlds.run(7, 0.5, tmp_path)
    assert counts.equal == 0
    assert counts.failed
    files = list(tmp_path.glob("*.json"))
    assert files
    again = json.loads(files[0].read_text())
    assert again["differs"] == ["job_submit"]
    assert len(again["jobs"]) == 1
    assert compare(again).differs == ("job_submit",)
    monkeypatch.undo()
    assert compare(again) == Compared()
    assert "0 worlds equal" in "\n".join(worlds.report(counts, 7))


def test_an_error_that_is_no_refusal_fails(monkeypatch):
    def raises(world):
        raise IndexError("out of range")

    monkeypatch.setattr(compared, "kernel_outcome", raises)
    assert "IndexError" in compare(seeded(0)).differs[0]


def test_reduction_keeps_what_a_job_reads_and_what_fails():
    world = next(
        world for world in map(seeded, range(500))
        if len(world.get("failures", {}).get("task", ())) > 3 and len(world["jobs"]) > 3
    )  # fmt: skip

    def fails(candidate):
        try:
            return build(candidate)[0].failures.num_rows > 0
        except InputError:  # a job without the parent whose output it finds lost
            return False

    smaller = shrink(world, fails)
    assert len(smaller["jobs"]) == 1
    assert {len(stage["durations_s"]) for stage in smaller["jobs"][0]["stages"]} == {1}
    assert len(smaller["failures"]["task"]) == 1
    workload, _, _ = build(smaller)
    assert workload.failures.num_rows == 1


def test_outcomes_differ_in_one_bit():
    first = {"x": np.array([1.0, np.nan]), "batches": [(0.0, (1,))]}
    other = {"x": np.array([np.nextafter(1.0, 2), np.nan]), "batches": [(0.0, (1,))]}
    assert outcome.differences(first, first) == []
    assert outcome.differences(first, other) == ["x"]
    assert outcome.differences(first, {"x": first["x"]}) == ["batches"]


def test_the_count_in_the_documentation_is_of_these_semantics():
    text = ARCHITECTURE.read_text()
    assert f"(`{worlds.semantics()}`)" in text, (
        "what a run means has changed: run `make fuzz TARGETS=worlds SECONDS=600` and write its "
        "last line into docs/architecture.md"
    )
