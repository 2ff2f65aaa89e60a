"""Request for expected starts: the draws of each instant, and the past instants that judge them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from sim.base.errors import InputError
from sim.base.parameters import Between, check
from sweep.grid.goal import Goal
from sweep.grid.overrides import Assignment

STARTS, STARTS_JSON = "starts.parquet", "starts.json"
DRAWS, MOMENTS = "starts.draws", "starts.moments"
"""Keys of the command line; the first makes a request one for expected starts."""
DEFAULT_DRAWS, DEFAULT_MOMENTS = 50, 20
AT, ARRIVALS = "evaluator.at_s", "evaluator.arrivals"
NOW = -1.0
"""Value of `AT` for the instant at which the queue was written."""


@dataclass(frozen=True)
class Starts(Goal):
    """Expected starts, with so many draws, held against so many past moments."""

    draws: int
    moments: int
    sweep_name = "starts"
    chooses_cells = False
    needs_jobs = True

    def record(self) -> dict[str, Any]:
        """Return its entry of ``config.yaml``."""
        return {"starts": {"draws": self.draws, "moments": self.moments}}


def take_goal(lines: dict[str, Assignment], defaults: Mapping[str, Any]) -> Starts | None:
    """Remove its keys from a command line's assignments; return the goal, None without.

    Raises
    ------
    InputError
        If anything is swept, or another evaluator chosen.
    """
    settings = {key: lines.pop(key, None) for key in (DRAWS, MOMENTS)}
    line = settings[DRAWS]
    if line is None or line.values == (None,):
        return None
    values = {
        key: entry.value if entry is not None else defaults["starts"][key.partition(".")[2]]
        for key, entry in settings.items()
    }
    check(DRAWS, values[DRAWS], Annotated[int, Between(10)])
    check(MOMENTS, values[MOMENTS], Annotated[int, Between(0)])
    for key, other in lines.items():
        if key in ("evaluator", "target.metric", "search.metric", "seeds"):
            raise InputError(f"{other.text}: expected starts have none; leave {key}= out")
        if key not in (AT, ARRIVALS) and (other.swept or len(other.values) > 1):
            raise InputError(
                f"{other.text}: expected starts are of one queue under one policy; give {key} one "
                "value",
                rule="starts",
            )
    draws = int(values[DRAWS])
    lines["evaluator"] = Assignment("evaluator", ("starts",), False, "set", "evaluator=starts")
    lines["evaluator.draws"] = Assignment(
        "evaluator.draws", (draws,), False, "set", f"evaluator.draws={draws}"
    )
    return Starts(draws, int(values[MOMENTS]))
