"""When the jobs are due (Ferguson et al., EuroSys 2012, §5.1), minutes after submission."""

from __future__ import annotations

from sim.base.errors import InputError, unknown

SHORT_MIN = {"A": 45.0, "B": 20.0, "C": 30.0, "D": 45.0, "E": 45.0, "F": 45.0, "G": 60.0}
"""Of the seven. Those of E, F and G are the captions' of Fig. 6; the others are chosen
as those are on average: 2.8 times as long as the job takes alone with 100 tokens, in steps of 5."""

LONGER = 2.0
"""The longer of a job's two deadlines over the shorter."""

OTHERS_MIN = 60.0
"""Of the other jobs."""

CHANGES = {"halve": 0.5, "double": 2.0, "triple": 3.0}
CHANGED_AT_MIN = 10.0
"""What a deadline is multiplied by, and when (Fig. 7)."""


def deadline_s(job: str, deadline: str | float) -> float:
    """Return the deadline of a job, s."""
    if isinstance(deadline, str):
        if deadline not in ("short", "long"):
            raise InputError(unknown("deadline", deadline, ("short", "long")), rule="wrong option")
        if job not in SHORT_MIN:
            return 60.0 * OTHERS_MIN
        return 60.0 * SHORT_MIN[job] * (LONGER if deadline == "long" else 1.0)
    if isinstance(deadline, bool) or not 0 < deadline < float("inf"):
        raise InputError(f"a deadline must be a positive number of minutes, not {deadline!r}")
    return 60.0 * float(deadline)


def change_of(change: str | None, before_s: float) -> tuple[float, float]:
    """Return the new deadline and when it comes to hold, s; NaN for neither."""
    if change is None:
        return float("nan"), float("nan")
    if change not in CHANGES:
        raise InputError(unknown("change of the deadline", change, CHANGES), rule="wrong option")
    return CHANGES[change] * before_s, 60.0 * CHANGED_AT_MIN
