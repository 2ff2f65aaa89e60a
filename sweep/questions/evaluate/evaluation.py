"""Evaluation: the answer to "how good is this candidate?", for a program and for people."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any

from sweep.questions.evaluate.scores import WorkloadScore


@dataclass(frozen=True)
class Evaluation:
    """Outcome of a candidate.

    Attributes
    ----------
    score : float
        How many times better than the baseline, by the geometric mean over workloads and seeds; of
        fractions the difference. More is better; NaN where there are errors.
    interval : (float, float)
        Its 95 % interval.
    gap_lb_p50 : float
        Median gap of its jobs to their lower bounds, mean over runs.
    per_workload : dict of str to dict
        Score, interval, value, baseline, gap and seeds of each.
    reasons : tuple of str
        Where it lost most: the jobs, and what they waited for.
    errors : tuple of str
        ``file:line: message`` of what went wrong; empty if it is scored.
    sentence : str
        All of it in a sentence.
    is_final : bool
        True if the numbers are of the test seeds.
    n_final : int
        How many times the test seeds have been asked for, in its study.
    n_evaluations : int
        Evaluations on training seeds in its study.
    seconds : float
        Time that it took.
    candidate_s : float
        Time of these in which its process was waited for.
    """

    score: float
    interval: tuple[float, float]
    gap_lb_p50: float
    per_workload: dict[str, WorkloadScore] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    sentence: str = ""
    is_final: bool = False
    n_final: int = 0
    n_evaluations: int = 0
    seconds: float = 0.0
    candidate_s: float = 0.0

    def as_json(self) -> str:
        """Return one line of JSON, null for NaN."""
        return json.dumps(_finite(dataclasses.asdict(self)))

    def __str__(self) -> str:
        """Return sentence, workloads, reasons and errors, a line each."""
        lines = [self.sentence]
        for name, part in self.per_workload.items():
            low, high = part["interval"]
            interval = "" if math.isnan(low) else f" ({low:.3f} to {high:.3f})"
            gap = (
                "" if math.isnan(part["gap_lb_p50"]) else f", gap {100 * part['gap_lb_p50']:.0f} %"
            )
            lines.append(f"  {name}: {part['score']:.3f}{interval}{gap}")
        lines += [f"  {reason}" for reason in self.reasons]
        return "\n".join([*lines, *self.errors])


def failed(sentence: str, *errors: str, **more: Any) -> Evaluation:
    """Return the evaluation of a candidate that has no score."""
    nan = math.nan
    return Evaluation(nan, (nan, nan), nan, errors=errors, sentence=sentence, **more)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
