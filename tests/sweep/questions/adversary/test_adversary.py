"""The adversary finds known losses, makes them small, and is the same by seed and evaluations."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.base.random import stream
from sim.check.worlds import MACHINES, SLOTS, crowd, rigid_crowd
from sim.workload.workload import Workload
from sweep.driver.worlds import World
from sweep.questions.adversary import answer, search, start
from sweep.questions.adversary.anneal import Found, anneal
from sweep.questions.adversary.changes import MAX_STAGES, bounds_of, change, periodic
from sweep.questions.adversary.duel import FAST, Duel
from sweep.questions.adversary.instances import size, to_jobs, without_stage
from sweep.questions.adversary.search import Question
from sweep.questions.adversary.shrink import reduce, shrink
from tests.sweep.small import Command

SLOT = sim.Cluster.slots(1)


def duel(
    names: tuple[str, str], workload: Workload, cluster: sim.Cluster, metric: str = "jct_mean_s"
) -> Duel:
    built = policies.build(names[0]), policies.build(names[1])
    return Duel(World("test", 0, workload, cluster), names, built, metric)


def never() -> bool:
    return False


def one_slot(n: int) -> Workload:
    rng = np.random.default_rng(0)
    stage = {"durations_s": [1.0]}
    return Workload.from_jobs(
        [{"submit_s": float(t), "stages": [stage]} for t in np.sort(rng.uniform(0, 2 * n, n))]
    )


@pytest.mark.parametrize("metric", FAST)
def test_fast_metrics_are_those_of_the_result(metric: str) -> None:
    result = sim.simulate(crowd(0), SLOTS, policies.build("fifo"))
    assert FAST[metric](result.job_submit, result.job_finish) == pytest.approx(
        result.metrics[metric], rel=1e-12
    )


@pytest.mark.parametrize(
    ("workload", "cluster"), [(crowd(1), MACHINES), (rigid_crowd(0), MACHINES), (one_slot(5), SLOT)]
)
def test_changes_keep_instances_valid(workload: Workload, cluster: sim.Cluster) -> None:
    jobs = first = to_jobs(workload, 6, 5)
    assert Workload.from_jobs(first).n_jobs == min(6, workload.n_jobs)
    bounds = bounds_of(first, cluster, 8, 5)
    rng = stream(3, "test")
    n_other = 0
    for _ in range(50):
        other = (periodic if rng.uniform() < 0.2 else change)(jobs, bounds, rng)
        n_other += other != jobs
        jobs = other
        built = Workload.from_jobs(jobs)  # raises for a broken rule
        assert 1 <= built.n_jobs <= 8
        assert all(1 <= len(s["durations_s"]) <= 5 for job in jobs for s in job["stages"])
        assert all(len(job["stages"]) <= MAX_STAGES for job in jobs)
        durations = built.columns.task_duration
        assert durations.min() >= bounds.low_s or durations.min() in first_durations(first)
        for j, job in enumerate(jobs):
            if job.get("min_tasks"):
                assert job["min_tasks"] <= built.columns.job_n_tasks[j]
    assert n_other > 30


def first_durations(jobs: Sequence[dict]) -> set[float]:
    return {s for job in jobs for stage in job["stages"] for s in stage["durations_s"]}


def test_it_finds_the_loss_of_fifo_on_one_slot() -> None:
    """A long job before five short ones: on n jobs fifo's mean is at most n times sjf's."""
    pair = duel(("fifo", "sjf"), one_slot(6), SLOT)
    jobs = to_jobs(pair.world.workload, 6, 1)
    begin = Found(jobs, pair.loss(jobs))
    bounds = bounds_of(jobs, SLOT, 6, 1)
    worst = anneal(begin, bounds, pair.loss, 60, stream(0, "test"), never)
    assert 1.3 < math.exp(worst.loss) <= 6.0
    again = anneal(begin, bounds, pair.loss, 60, stream(0, "test"), never)
    assert again == worst


def whole_machine(n: int, share: float, shorter_s: float) -> list[dict]:
    """DAGPS's Fig. 18: long tasks wait for short ones that take the whole machine."""
    stages = []
    for i in range(n):
        first = {"name": f"w{i}", "durations_s": [0.01], "parents": {}, "demand": {"cpu": 1.0}}
        length_s = 1.0 - i * shorter_s
        long = {"name": f"l{i}", "durations_s": [length_s], "parents": {f"w{i}": "barrier"}}
        stages += [first, {**long, "demand": {"cpu": share}}]
    return [{"job_id": "a", "submit_s": 0.0, "stages": stages}]


def test_copies_of_a_part_lead_to_a_construction_that_no_single_change_reaches() -> None:
    """One pair of Fig. 18 loses nothing; copies of it, each a little shorter, lose a multiple."""
    machine = sim.Cluster.machines(1, cpu=1)
    jobs = whole_machine(1, 0.25, 0.0)
    pair = duel(("critical_path", "bfs"), Workload.from_jobs(jobs), machine, "makespan_s")
    assert pair.loss(jobs) == 0.0
    bounds = bounds_of(jobs, machine, 1, 10)
    rng = stream(0, "test")
    for _ in range(1000):
        stages = change(jobs, bounds, rng)[0]["stages"]
        lengths = [s["durations_s"][0] for s in stages if s["parents"]]
        is_short = stages[0]["durations_s"] == [0.01] and stages[0]["demand"] == {"cpu": 1.0}
        is_apart = all(s["parents"].keys() <= {t["name"]} for t, s in pairwise(stages))
        is_pairs = len(lengths) >= 4 and len(stages) == 2 * len(lengths) and is_apart and is_short
        if is_pairs and not stages[2]["parents"] and lengths[1] < lengths[0]:
            break
    many = [{**jobs[0], "stages": stages}]
    assert pair.loss(many) > math.log(2.5)


def test_periodic_instances_have_a_period() -> None:
    jobs = to_jobs(crowd(1), 6, 5)
    bounds = bounds_of(jobs, MACHINES, 8, 5)
    rng = stream(1, "test")
    for _ in range(30):
        drawn = periodic(jobs, bounds, rng)
        job = drawn[0] if len(drawn) == 1 else next(j for j in drawn if j not in jobs)
        widths = [len(s["durations_s"]) for s in job["stages"]]
        periods = [p for p in (1, 2, 3) if len(widths) % p == 0]
        assert len(widths) > 1
        assert any(widths == widths[:p] * (len(widths) // p) for p in periods)
    assert periodic(jobs, bounds, stream(1, "same")) == periodic(jobs, bounds, stream(1, "same"))


def test_the_worst_of_all_phases_is_the_answer() -> None:
    pair = duel(("fifo", "sjf"), one_slot(4), SLOT)
    jobs = to_jobs(pair.world.workload, 4, 1)
    question = Question("fifo", "sjf", (), evaluations=24, jobs=4, tasks=1)
    starts = [(Found(jobs, pair.loss(jobs)), pair)]
    worst, own = search.worst_of(question, starts, never)
    assert own is pair
    assert worst.loss == pair.loss(worst.jobs) > starts[0][0].loss


def test_an_instance_that_a_bound_excludes_is_not_run_by_the_second_policy() -> None:
    machine = sim.Cluster.machines(1, cpu=1)
    jobs = whole_machine(4, 0.25, 0.02)
    pair = duel(("critical_path", "bfs"), Workload.from_jobs(jobs), machine, "makespan_s")
    exact = pair.loss(jobs)
    for at_least in (0.0, exact - 1e-9):
        assert pair.loss(jobs, at_least) == exact
    broken = replace(pair, policies=(pair.policies[0], None))
    assert broken.loss(jobs, exact + 0.5) == -math.inf  # bfs is near the bound
    with pytest.raises(AttributeError):
        broken.loss(jobs, exact - 0.5)


def test_smallest_instance_still_shows_the_loss() -> None:
    stage = {"durations_s": [1.0, 1.0], "name": "a", "parents": {}, "demand": {"cpu": 1.0}}
    long = {**stage, "durations_s": [97.345, 1.0], "name": "b", "parents": {"a": "barrier"}}
    jobs = [
        {"job_id": "long", "submit_s": 0.0, "stages": [stage, long]},
        *({"job_id": f"s{i}", "submit_s": 0.0, "stages": [stage]} for i in range(5)),
    ]
    pair = duel(("fifo", "sjf"), Workload.from_jobs(jobs), SLOT)
    small = shrink(jobs, lambda some: pair.loss(some) > math.log(1.9), never)
    assert pair.loss(small) > math.log(1.9)
    assert len(small) < len(jobs)
    assert size(small)[2] == 0  # no edge is needed
    assert all(len(s["durations_s"]) == 1 for job in small for s in job["stages"])
    for i in range(len(small)):  # no job can be left out
        assert pair.loss(small[:i] + small[i + 1 :]) <= math.log(1.9) or len(small) == 1


def test_reduce_leaves_what_is_needed() -> None:
    assert [*reduce(range(30), lambda some: {3, 17} <= {*some}, never)] == [3, 17]


def test_stage_that_is_left_out_leaves_its_parents_to_its_children() -> None:
    stage = {"durations_s": [1.0], "demand": {"cpu": 1.0}}
    names = [("a", {}), ("b", {"a": "barrier"}), ("c", {"b": "barrier"})]
    jobs = [{"submit_s": 0.0, "stages": [{**stage, "name": n, "parents": p} for n, p in names]}]
    (job,) = without_stage(jobs, 0, 1)
    assert [stage["parents"] for stage in job["stages"]] == [{}, {"a": "barrier"}]


def test_instances_that_fail_are_no_comparison() -> None:
    pair = duel(("fifo", "sjf"), one_slot(2), SLOT)
    assert pair.loss([{"submit_s": 0.0, "stages": []}]) == -math.inf
    zero = [{"submit_s": 0.0, "stages": [{"durations_s": [0.0]}]}]
    assert pair.loss(zero) == -math.inf
    assert pair.n_runs == 2


def test_intervals_are_drawn() -> None:
    rng = stream(0, "test")
    words = ["trace=training", "trace.jobs=interval(3,5)", "capacity=interval(0.5,1.5)"]
    drawn = [start.draw_words(words, rng) for _ in range(40)]
    assert {words[0] for words in drawn} == {"trace=training"}
    assert {words[1] for words in drawn} == {f"trace.jobs={n}" for n in (3, 4, 5)}
    values = [float(words[2].partition("=")[2]) for words in drawn]
    assert min(values) >= 0.5
    assert max(values) <= 1.5
    assert len({*values}) == 40


@pytest.fixture
def small_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    def worlds(words: object, n: int, seed: int, *_: object) -> list[World]:
        return [World("drawn", seed + k, one_slot(4 + k % 2), SLOT) for k in range(3)]

    monkeypatch.setattr(search, "worlds", worlds)


def test_answer_is_a_workload_and_a_sentence(small_worlds: None, tmp_path: Path) -> None:
    question = Question("fifo", "sjf", ["trace=any"], evaluations=30, jobs=4)
    loss = search.search(question)
    assert loss.ratio > max(1.1, loss.drawn_ratio - 1e-9)
    assert math.log(loss.ratio) >= 0.95 * math.log(loss.worst_ratio) - 1e-12
    paths = answer.write(loss, tmp_path)
    assert paths[0] == tmp_path / "instance"
    workload = Workload.read(paths[0])
    values = [
        sim.simulate(workload, SLOT, policies.build(name)).metrics["jct_mean_s"]
        for name in ("fifo", "sjf")
    ]
    assert values[0] / values[1] == pytest.approx(loss.ratio)
    record = json.loads((tmp_path / "adversary.json").read_text())
    assert record["ratio"] == loss.ratio
    text = answer.sentence(loss)
    assert text == record["sentence"]
    assert text.startswith(f"fifo's mean JCT is {loss.ratio:.3g} times sjf's: ")
    assert "on 1 slot" in text
    cut = search.search(replace(question, seconds=1e-9))
    assert cut.is_cut
    assert "the time was over" in answer.sentence(cut)


def test_where_nothing_can_be_compared_the_reason_is_given(small_worlds: None) -> None:
    with pytest.raises(InputError, match=r"deadlines_missed of fifo and sjf can be compared on no"):
        search.search(Question("fifo", "sjf", [], metric="deadlines_missed", evaluations=5))


def test_verb_prints_the_sentence_and_writes(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "lost"
    words = ("policy=fifo", "against=sjf", "evaluations=5", "jobs=2", "tasks=1", f"out={folder}")
    ran = command("adversary", *words)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[1] == str(folder / "instance")
    assert Workload.read(folder / "instance").n_jobs <= 2
    for words, message in (
        (("policy=fifo",), "needs policy=A and against=B"),
        (("policy=fifo", "against=sjf", "trace=training", "evaluations=0"), "must be positive"),
        (("policy=fifo", "against=sjf", "trace=training", "capacity=1,2"), "no comma lists"),
    ):
        ran = command.bare("adversary", *words)
        assert (ran.code, message in ran.err) == (2, True)
