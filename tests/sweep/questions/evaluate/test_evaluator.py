"""Scores, seeds, studies and the verb."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import policies
import sim
import sweep
from sim.base.errors import InputError
from sim.check.worlds import SLOTS, crowd
from sim.transforms import fail_tasks
from sweep.questions.evaluate.evaluator import Evaluator
from sweep.questions.evaluate.scores import Outcome, score
from tests.sweep.questions.evaluate.candidates import write
from tests.sweep.small import Command

SHORT_FIRST = "plan.set_jobs(key=world.columns.job_n_tasks)"


def world(seed: int) -> tuple[sim.Workload, sim.Cluster]:
    return crowd(seed), SLOTS


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    judge = Evaluator({"crowd": world}, train=range(3), test=[7, 8], baseline="las")
    yield judge
    judge.close()


def test_score_is_the_ratio_to_the_baseline_on_the_same_seeds(
    evaluator: Evaluator, tmp_path: Path
) -> None:
    evaluation = evaluator.evaluate(write(tmp_path, prepare=SHORT_FIRST))
    logs = []
    for seed in range(3):
        mean = [
            sim.simulate(*world(seed), policy, seed=seed).metrics["jct_mean_s"]
            for policy in (policies.build("las"), _ShortFirst())
        ]
        logs.append(math.log(mean[0] / mean[1]))
    assert evaluation.errors == ()
    assert evaluation.score == pytest.approx(math.exp(sum(logs) / 3), rel=1e-12)
    assert evaluation.interval[0] < evaluation.score < evaluation.interval[1]
    assert evaluation.per_workload["crowd"]["seeds"] == [0, 1, 2]
    assert "3 training seeds" in evaluation.sentence
    assert evaluation.reasons[0].startswith("Worst on crowd, seed ")
    assert "the candidate" in evaluation.reasons[1]
    assert json.loads(evaluation.as_json())["score"] == evaluation.score


class _ShortFirst(policies.Policy):
    def prepare(self, world: object, plan: object) -> None:
        plan.set_jobs(key=world.columns.job_n_tasks)  # type: ignore[attr-defined]


def test_test_seeds_are_counted_before_they_are_shown(evaluator: Evaluator, tmp_path: Path) -> None:
    file = write(tmp_path)
    first = evaluator.evaluate(file)
    assert (first.n_final, first.n_evaluations, first.is_final) == (0, 1, False)
    for n in (1, 2):
        final = evaluator.evaluate(file, final=True)
        assert (final.n_final, final.n_evaluations, final.is_final) == (n, 1, True)
        assert final.per_workload["crowd"]["seeds"] == [7, 8]
    assert "have been consulted 2 times in this study, after 1 evaluation on" in final.sentence
    lines = [json.loads(line) for line in (tmp_path / "study.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["train", "asked", "final", "asked", "final"]
    assert evaluator.evaluate(file).n_final == 2


def test_failures_of_tasks_are_no_look_ahead(tmp_path: Path) -> None:
    failing = fail_tasks(crowd(3), single=0.2, lost=0.5)
    judge = Evaluator({"failing": (failing, SLOTS)}, train=[0], reasons=False)
    assert judge.evaluate(write(tmp_path, prepare=SHORT_FIRST)).errors == ()
    judge.close()


def test_wrong_questions_are_refused(tmp_path: Path) -> None:
    worlds = {"crowd": world}
    with pytest.raises(InputError, match="seed 3 is a seed of training and of the test"):
        Evaluator(worlds, train=range(5), test=[3])
    with pytest.raises(InputError, match="needs workloads, and seeds"):
        Evaluator({}, train=range(5))
    with pytest.raises(InputError, match="there are none"):
        sweep.evaluate(write(tmp_path), workloads=worlds, train=[0], final=True)
    with pytest.raises(InputError, match="can't be read"):
        sweep.evaluate(tmp_path / "none.py", workloads=worlds, train=[0])


def test_fractions_are_compared_by_differences() -> None:
    own = [Outcome("a", seed, 0.1 + 0.01 * seed, math.nan) for seed in range(3)]
    baseline = [Outcome("a", seed, 0.4, math.nan) for seed in range(3)]
    result = score("deadlines_missed", own, baseline)
    assert not result.is_ratio
    assert result.value == pytest.approx(0.29)
    assert math.isnan(result.gap)


def test_verb_scores_files_and_says_what_it_needs(command: Command, tmp_path: Path) -> None:
    file = str(write(tmp_path))
    for words, message in (
        (("evaluate", file, "trace=training"), "needs seeds to train on"),
        (("evaluate", "trace=training", "train=0"), "takes the files of candidates"),
        (("evaluate", file, "train=0"), "names no trace"),
        (("evaluate", file, "trace=training", "policy=fifo", "train=0"), "leave out policy"),
    ):
        ran = command.bare(*words)
        assert (ran.code, message in ran.err) == (2, True)
    ran = command("evaluate", file, "train=0,1", "baseline=fifo", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["score"] == 1.0
