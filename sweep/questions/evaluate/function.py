"""`sweep.evaluate`: score a candidate policy in a file, again and again, in a warm process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sweep.questions.evaluate.evaluation import Evaluation
from sweep.questions.evaluate.evaluator import Evaluator, Own

_WARM: dict[str, Evaluator] = {}


def evaluate(
    file: str | Path,
    *,
    workloads: Sequence[str] | Mapping[str, Own],
    train: Sequence[int],
    test: Sequence[int] = (),
    final: bool = False,
    **options: Any,
) -> Evaluation:
    """Score the candidate policy in a file.

    The first call builds the workloads and runs the baseline; later ones with the same arguments
    find both in memory.

    Parameters
    ----------
    file : path
        A module with one policy.
    workloads, train, test
        See `sweep.questions.evaluate.evaluator.Evaluator`, as of all further options: ``baseline``,
        ``metric``, ``budget_s``, ``memory_mb``, ``study``, ``oracle``, ``reasons``, ``config_dir``.
    final : bool
        True to score it on the test seeds; that is counted in the study.

    Returns
    -------
    Evaluation
        ``score``, ``interval``, ``gap_lb_p50``, ``per_workload``, ``reasons``, ``errors``.
    """
    named = [*workloads.items()] if isinstance(workloads, Mapping) else workloads
    key = repr((named, [*train], [*test], sorted(options.items())))
    if key not in _WARM:
        _WARM[key] = Evaluator(workloads, train, test, **options)
    return _WARM[key].evaluate(file, final=final)
