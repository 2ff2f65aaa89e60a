"""`sweep.adversary`: the workload on which a policy loses most against another."""

from __future__ import annotations

from typing import Any

from sweep.questions.adversary.search import Loss, Question, search


def adversary(policy: str, against: str, *words: str, **options: Any) -> Loss:
    """Search for the workload on which a policy loses most against another.

    Parameters
    ----------
    policy, against : str
        Names of policies, with parameters: ``"las policy.queues=3"``.
    *words : str
        Words of a grid with one trace, such as ``"trace=training"``; an interval of a parameter,
        ``"trace.every_s=interval(1,600)"``, is searched.
    **options
        See `sweep.questions.adversary.search.Question`: ``metric``, ``evaluations``, ``seconds``,
        ``seed``, ``jobs``, ``tasks``, ``config_dir``.

    Returns
    -------
    Loss
        ``jobs``, ``ratio``, ``values``.
    """
    return search(Question(policy, against, words, **options))
