"""Search for the workload on which a policy loses most: draws, annealing, the smallest instance."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sim.base.errors import InputError
from sim.base.random import stream
from sim.metrics import metric as look_up
from sweep.driver.worlds import World, build_named
from sweep.questions.adversary.anneal import Found, anneal
from sweep.questions.adversary.changes import Bounds, bounds_of, periodic
from sweep.questions.adversary.duel import Duel
from sweep.questions.adversary.instances import Jobs, to_jobs
from sweep.questions.adversary.shrink import shrink
from sweep.questions.adversary.start import worlds

DRAWS, RESTARTS = 16, 4
"""Draws of the generator, and how many of the worst of them the search starts from."""
SHOWN = 0.95
"""Share of the loss, as a logarithm, that the smallest instance still shows."""
EVALUATIONS, SECONDS = 4000, 600.0


@dataclass(frozen=True)
class Question:
    """The question where a policy loses to another.

    Attributes
    ----------
    policy, against : str
        Names of policies, with parameters: ``"las policy.queues=3"``.
    words : sequence of str
        Words of a grid with one trace: a generator, and the intervals of its parameters.
    metric : str
    evaluations : int
        Instances that the draws and the annealing try; the smallest instance takes more.
    seconds : float
        Time after which it ends in any case; a search that this cuts depends on the machine.
    seed : int
    jobs, tasks : int
        Largest numbers of jobs, and of tasks of a stage.
    config_dir : sequence of str
        Folders of options of one's own.
    """

    policy: str
    against: str
    words: Sequence[str]
    metric: str = "jct_mean_s"
    evaluations: int = EVALUATIONS
    seconds: float = SECONDS
    seed: int = 0
    jobs: int = 8
    tasks: int = 10
    config_dir: Sequence[str] = ()


@dataclass(frozen=True)
class Loss:
    """The instance that was found.

    Attributes
    ----------
    jobs : list of dict
        As `Workload.from_jobs` takes them.
    ratio : float
        How many times worse the policy is than the other.
    values : (float, float)
        The metric of both.
    worst_ratio : float
        Ratio before the instance was made small.
    drawn_ratio : float
        Largest ratio on the generator's draws.
    n_runs : int
        Instances on which both ran.
    is_cut : bool
        True if the time was over before the search was.
    duel : Duel
    question : Question
    """

    jobs: Jobs
    ratio: float
    values: tuple[float, float]
    worst_ratio: float
    drawn_ratio: float
    n_runs: int
    is_cut: bool
    seconds: float
    duel: Duel
    question: Question

    @property
    def world(self) -> World:
        """The world whose cluster it is."""
        return self.duel.world


def search(question: Question) -> Loss:
    """Search for the loss.

    Raises
    ------
    InputError
        On a wrong word, or if the two can be compared on no draw of the generator.
    """
    if look_up(question.metric).better is None:
        raise InputError(f"{question.metric} has no better or worse: choose another metric")
    begin = time.monotonic()
    reached = [False]

    def is_over() -> bool:
        reached[0] |= time.monotonic() - begin > question.seconds
        return reached[0]

    starts = _starts(question, is_over)
    drawn = starts[0][0].loss
    best, duel = worst_of(question, starts, is_over)
    is_cut = reached[0]
    threshold = best.loss - (1 - SHOWN) * abs(best.loss)
    jobs = shrink(best.jobs, lambda some: duel.loss(some) >= threshold, is_over)
    values = duel.values(jobs)
    assert values is not None
    return Loss(
        jobs,
        math.exp(duel.loss(jobs)),
        values,
        math.exp(best.loss),
        math.exp(drawn),
        sum(other.n_runs for _, other in starts),
        is_cut,
        time.monotonic() - begin,
        duel,
        question,
    )


def worst_of(
    question: Question, starts: list[tuple[Found, Duel]], is_over: Callable[[], bool]
) -> tuple[Found, Duel]:
    """Return the worst instance that is found from some starts, with its duel.

    A third of the evaluations are periodic instances, a third anneal from the worst of all, and the
    rest from the worst of these.
    """
    n = max(0, question.evaluations - sum(own.n_runs for _, own in starts))
    bounds = [
        bounds_of(start.jobs, own.world.cluster, question.jobs, question.tasks)
        for start, own in starts
    ]
    tried = _Trial(question.seed, bounds, [own for _, own in starts], is_over)
    worst = tried.draw([start for start, _ in starts], n // 3)
    worst = tried.anneal(worst, n // 3, "")
    best, k = tried.anneal(worst[:1], n - 2 * (n // 3), "again ")[0]
    return best, starts[k][1]


@dataclass(frozen=True)
class _Trial:
    """The search from several starts, each with its bounds and its duel."""

    seed: int
    bounds: list[Bounds]
    duels: list[Duel]
    is_over: Callable[[], bool]

    def draw(self, starts: list[Found], n: int) -> list[_Numbered]:
        """Draw periodic instances from the starts in turn; return the worst of all, as many."""
        worst = [(start, k) for k, start in enumerate(starts)]
        rng = stream(self.seed, "adversary parts")
        for number in range(n):
            if self.is_over():
                break
            k = number % len(starts)
            jobs = periodic(starts[k].jobs, self.bounds[k], rng)
            if jobs is starts[k].jobs:
                continue
            new = Found(jobs, self.duels[k].loss(jobs, worst[-1][0].loss))
            if new.loss > worst[-1][0].loss:
                worst = _sorted([*worst[:-1], (new, k)])
        return worst

    def anneal(self, first: list[_Numbered], n: int, stage: str) -> list[_Numbered]:
        """Anneal from each of some instances; return the worst from each, the worst first."""
        ended = []
        for i, (start, k) in enumerate(first):
            rng = stream(self.seed, f"adversary {stage}{i}")
            loss = self.duels[k].loss
            worst = anneal(start, self.bounds[k], loss, n // len(first), rng, self.is_over)
            ended.append((worst, k))
        return _sorted(ended)


_Numbered = tuple[Found, int]
"""An instance, and the number of the start of which it is made."""


def _sorted(instances: list[_Numbered]) -> list[_Numbered]:
    return sorted(instances, key=lambda pair: -pair[0].loss)


def _starts(question: Question, is_over: Callable[[], bool]) -> list[tuple[Found, Duel]]:
    """Return the worst draws of the generator, each with its duel, the worst first."""
    named: Any = build_named([question.policy, question.against], question.config_dir)
    names, chosen = zip(*named, strict=True)
    rng = stream(question.seed, "adversary draws")
    options = question.config_dir
    drawn: list[tuple[Found, Duel]] = []
    for world in worlds(question.words, DRAWS, question.seed, rng, options):
        duel = Duel(world, names, chosen, question.metric)
        jobs = to_jobs(world.workload, question.jobs, question.tasks)
        drawn.append((Found(jobs, duel.loss(jobs)), duel))
        if is_over():
            break
    possible = [pair for pair in drawn if pair[0].loss > -math.inf]
    if not possible:
        _explain(drawn[0][1], drawn[0][0].jobs)
    possible.sort(key=lambda pair: -pair[0].loss)
    return [(start, replace(duel)) for start, duel in possible[:RESTARTS]]


def _explain(duel: Duel, jobs: Jobs) -> None:
    """Raise the error of an instance that can't be compared."""
    duel.runs(jobs)
    raise InputError(
        f"{duel.metric} of {' and '.join(duel.names)} can be compared on no draw: it is 0, "
        "missing, or a job is not done"
    )
