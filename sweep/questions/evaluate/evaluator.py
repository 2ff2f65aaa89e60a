"""Evaluator: workloads, baseline and kernels in memory, and a candidate at a time."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import sim
from policies.check.unknown import differences
from policies.knows import Knows
from sim.base.errors import DeadlockError, InputError, PolicyError
from sim.base.text import printable
from sim.check.broken import BrokenRuleError
from sim.check.schedule import check_schedule
from sim.metrics import metric as look_up
from sweep.driver.captured_run import Captured, capturing
from sweep.driver.worlds import World, build_named, build_worlds
from sweep.grid import plugins
from sweep.questions.evaluate.evaluation import Evaluation, failed
from sweep.questions.evaluate.processes import Budget, CandidateError, Nursery
from sweep.questions.evaluate.remote import CandidateText, Remote, read_text
from sweep.questions.evaluate.scores import GAP, Outcome, Score, score, score_words
from sweep.questions.evaluate.study import ASKED, FINAL, TRAIN, Study

if TYPE_CHECKING:
    from policies.base import Policy
    from sim.result import Result

Pair = tuple[sim.Workload, sim.Cluster]
Own = Pair | Callable[[int], Pair]
"""A workload of one's own and its cluster, or a function that makes them of a seed."""
HORIZON = 50.0
"""Times the baseline's span after which a run counts as one without an end."""
STUDY = "study.jsonl"
"""Name of a study beside its candidates."""
_TRUTHS = ("durations", "demands", "values", "deadlines")
_FAILURES = (CandidateError, PolicyError, DeadlockError, BrokenRuleError, InputError)


@dataclass
class _Reference:
    """The baseline's run of a world: compared with, and never shown to a candidate."""

    world: World
    captured: Captured
    outcome: Outcome
    horizon_s: float


@dataclass
class Evaluator:
    """Judges candidates on training seeds, and once in a while on test seeds.

    Attributes
    ----------
    workloads : sequence of str, or mapping of str to (Workload, Cluster) or to a function
        Words of a grid, such as ``"trace=training capacity=0.9"``; or workloads of one's own by
        name, and functions that make one of a seed.
    train, test : sequence of int
        Seeds, which must not overlap.
    baseline : str
        A policy, with its parameters.
    metric : str
        The metric that counts.
    budget_s : float
        Time that a candidate's process may take in one evaluation, s.
    memory_mb : float
        Memory that it may take beyond what it starts with.
    study : path, optional
        The ledger; ``study.jsonl`` beside the candidate by default.
    oracle : bool
        True to score candidates that know truths.
    reasons : bool
        False to leave out the reasons.
    config_dir : sequence of str
        Folders of options of one's own.
    """

    workloads: Sequence[str] | Mapping[str, Own]
    train: Sequence[int]
    test: Sequence[int] = ()
    baseline: str = "fifo"
    metric: str = "jct_mean_s"
    budget_s: float = 10.0
    memory_mb: float = 512.0
    study: str | Path | None = None
    oracle: bool = False
    reasons: bool = True
    config_dir: Sequence[str] = ()
    _nursery: Nursery = field(default_factory=Nursery, repr=False)
    _references: list[_Reference] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        """Refuse seeds that are both, and an unknown metric."""
        self.train, self.test = tuple(self.train), tuple(self.test)
        if isinstance(self.workloads, str):
            self.workloads = (self.workloads,)
        if not self.train or not self.workloads:
            raise InputError("an evaluation needs workloads, and seeds to train on")
        both = sorted({*self.train} & {*self.test})
        if both:
            raise InputError(f"seed {both[0]} is a seed of training and of the test: choose others")
        if look_up(self.metric).better is None:
            raise InputError(f"{self.metric} has no better or worse: choose another metric")
        ((_, self._policy),) = build_named([self.baseline], self.config_dir)

    def warm(self) -> None:
        """Build the training workloads, and run the baseline on them."""
        if not self._references:
            self._nursery.start()
            self._references = self._runs_of_baseline(self.train)

    def evaluate(self, file: str | Path, *, final: bool = False) -> Evaluation:
        """Score the candidate in a file, on training seeds, or on test seeds if that is `final`.

        Raises
        ------
        InputError
            If the file can't be read, or there are no test seeds. What is wrong with a candidate
            is in ``errors``.
        """
        if final and not self.test:
            raise InputError(
                "final=True asks for the test seeds, and there are none: test=range(…)"
            )
        begin = time.perf_counter()
        text = _read(file, self.memory_mb)
        study = Study(self.study if self.study is not None else Path(file).parent / STUDY)
        about = {"candidate": hashlib.sha256(text.text.encode()).hexdigest(), "file": text.file}
        test = self._test_digest()
        self.warm()
        if final:
            n_final = study.append(ASKED, test=test, **about)
            references = self._runs_of_baseline(self.test)
        else:
            n_final, references = study.count(ASKED, test), self._references
        budget = Budget(self.budget_s)
        evaluation = self._judge(text, references, budget, is_final=final)
        n_train = study.count(TRAIN)
        if final:
            study.append(FINAL, test=test, score=evaluation.score, **about)
        else:
            n_train = study.append(TRAIN, score=evaluation.score, **about)
        consulted = f" {_consulted(n_final, n_train)}" if final else ""
        return replace(
            evaluation,
            sentence=evaluation.sentence + consulted,
            is_final=final,
            n_final=n_final,
            n_evaluations=n_train,
            seconds=time.perf_counter() - begin,
            candidate_s=budget.used_s,
        )

    def close(self) -> None:
        """End the process that candidates are forked from."""
        self._nursery.close()

    def _test_digest(self) -> str:
        names = [*self.workloads]  # of words, or of one's own
        content = repr((names, [*self.test], self.metric, self.baseline))
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def _worlds(self, seeds: Sequence[int]) -> list[World]:
        if isinstance(self.workloads, Mapping):
            return [
                World(name, seed, *(pair(seed) if callable(pair) else pair))
                for name, pair in self.workloads.items()
                for seed in seeds
            ]
        return build_worlds(self.workloads, seeds, self.config_dir)

    def _runs_of_baseline(self, seeds: Sequence[int]) -> list[_Reference]:
        references = []
        for world in self._worlds(seeds):
            captured = _run(world, self._policy)
            result = captured.result.on_own_clock
            span_s = float(np.nanmax(result.job_finish) - result.job_submit[0])
            outcome = self._outcome(world, captured.result)
            horizon_s = float(result.job_submit[0]) + HORIZON * max(span_s, 1.0)
            references.append(_Reference(world, captured, outcome, horizon_s))
        return references

    def _outcome(self, world: World, result: Result) -> Outcome:
        metrics = result.metrics
        if self.metric not in metrics:
            raise InputError(f"{world.name} has no {self.metric}; it has {', '.join(metrics)}")
        return Outcome(world.name, world.seed, metrics[self.metric], metrics.get(GAP, math.nan))

    def _judge(
        self, text: CandidateText, references: list[_Reference], budget: Budget, *, is_final: bool
    ) -> Evaluation:
        """Run a candidate on all worlds; turn what it does wrong into errors."""
        try:
            runs = self._runs_of_candidate(text, references, budget)
        except _FAILURES as error:
            message = _error(error, text, is_final=is_final)
            return failed(f"No score: {message}", message)
        outcomes = [
            self._outcome(r.world, run.result) for r, run in zip(references, runs, strict=True)
        ]
        result = score(self.metric, outcomes, [r.outcome for r in references])
        sentence = self._sentence(result, len(references), is_final=is_final)
        reasons = self._reasons(runs, references, outcomes) if self.reasons else ()
        return Evaluation(
            result.value, result.interval, result.gap, result.per_workload, reasons, (), sentence
        )

    def _runs_of_candidate(
        self, text: CandidateText, references: list[_Reference], budget: Budget
    ) -> list[Captured]:
        runs: list[Captured] = []
        for reference in references:
            remote = Remote(self._nursery, text, budget, reference.horizon_s)
            try:
                if remote.knows.is_oracle and not self.oracle:
                    raise PolicyError(
                        f"it declares to know {remote.knows}: an oracle, which nobody can run; "
                        "oracle=True scores it all the same"
                    )
                captured = _run(reference.world, remote)
            finally:
                remote.close()
            if not remote.has_own_lag:  # the same workload on the same cluster
                vars(captured.result)["bounds"] = reference.captured.result.bounds
            check_schedule(captured.result)
            _check_done(captured.result, reference.captured.result, self.baseline)
            runs.append(captured)
        self._check_foresight(text, references, runs, budget)
        return runs

    def _check_foresight(
        self,
        text: CandidateText,
        references: list[_Reference],
        runs: list[Captured],
        budget: Budget,
    ) -> None:
        """Check that starts don't depend on jobs to come, and repeat, on the smallest workload."""
        sizes = [reference.world.workload.n_tasks for reference in references]
        i = int(np.argmin(sizes))
        result = runs[i].result
        remote = Remote(self._nursery, text, budget, references[i].horizon_s)
        try:
            knows = remote.knows
            blind = Knows("true", knows.demands, "true", "true")
            submit = result.job_submit
            instant_s = float(np.median(submit[np.isfinite(submit)]))
            n = differences(result, remote, blind, instant_s)
        finally:
            remote.close()
        if n:
            raise PolicyError(
                f"{n} tasks start otherwise if only the demands of jobs change that have not "
                "arrived, or nothing at all: it looks ahead, or does not repeat"
            )

    def _sentence(self, result: Score, n: int, *, is_final: bool) -> str:
        kind, seeds = ("test", self.test) if is_final else ("training", self.train)
        text = score_words(self.metric, result, self.baseline)
        n_workloads = len(result.per_workload)
        gap = f", {100 * result.gap:.0f} % above the bound" if math.isfinite(result.gap) else ""
        return (
            f"{text[0].upper()}{text[1:]}{gap}, on {n_workloads} workload{'s' * (n_workloads != 1)}"
            f" and {len(seeds)} {kind} seed{'s' * (len(seeds) != 1)}."
        )

    def _reasons(
        self, runs: list[Captured], references: list[_Reference], outcomes: list[Outcome]
    ) -> tuple[str, ...]:
        """Say where it fared worst, and why: on one workload and seed."""
        plug_in = plugins.having(plugins.SECTIONS, "explain_runs")
        if plug_in is None:
            return ()
        values = np.array([[o.value for o in outcomes], [r.outcome.value for r in references]])
        worse = values[0] - values[1] if look_up(self.metric).better == "lower" else -values[0]
        i = int(np.argmax(worse / np.maximum(np.abs(values[1]), 1e-12)))
        both = [runs[i], references[i].captured]
        world = references[i].world
        sentences: list[str] = plug_in.explain_runs(both, ["the candidate", self.baseline])
        return (f"Worst on {world.name}, seed {world.seed}:", *sentences)


def _run(world: World, policy: Policy | Remote) -> Captured:
    captured: list[Captured] = []
    cluster = world.cluster_for(policy)
    capturing(captured)(world.workload, cluster, policy, seed=world.seed)
    return captured[0]


def _read(file: str | Path, memory_mb: float) -> CandidateText:
    try:
        return read_text(file, memory_mb)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} can't be read: {error}") from None


def _check_done(own: Result, reference: Result, baseline: str) -> None:
    """Refuse a run in which jobs are not done that the baseline does: they would not count."""
    lacks = reference_done(reference) & ~reference_done(own)
    if lacks.any():
        job = own.workload.jobs["job_id"][int(np.flatnonzero(lacks)[0])].as_py()
        raise PolicyError(
            f"{int(lacks.sum())} jobs are not done that are done under {baseline}, first of all "
            f"{job!r}: a mean over the others would be no comparison"
        )


def reference_done(result: Result) -> Any:
    """Return which jobs of a run are done, (J,)."""
    return ~result.job_failed & np.isfinite(result.job_finish)


def _error(error: Exception, text: CandidateText, *, is_final: bool) -> str:
    """Return an error with file and line; on test seeds without what it read there."""
    message = getattr(error, "message", None) or str(error)
    if is_final:
        message = "it fails on the test seeds, whose runs its words could tell of"
    line = getattr(error, "line", None) or 0
    where = f"{text.file}:{line}" if line else text.file
    lines = text.text.splitlines()
    shown = f" ({lines[line - 1].strip()})" if 0 < line <= len(lines) else ""
    return printable(f"{where}: {message}{shown}")


def _consulted(n_final: int, n_train: int) -> str:
    times = "once" if n_final == 1 else f"{n_final} times"
    return (
        f"The test seeds have been consulted {times} in this study, after {n_train:,} "
        f"evaluation{'s' * (n_train != 1)} on training seeds."
    )
