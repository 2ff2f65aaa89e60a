"""Request for a backtest: the runs of each policy, and what a backtest can't vary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from sim.base.errors import InputError
from sim.base.parameters import Between, check
from sweep.grid.goal import Goal
from sweep.grid.overrides import Assignment

BACKTEST, BACKTEST_JOBS = "backtest.parquet", "backtest_jobs.parquet"
BACKTEST_JSON = "backtest.json"
BACKTEST_GROUPS, STEPS_TABLE = "backtest_groups.parquet", "steps.parquet"
RUNS = "backtest.runs"
"""Key that makes a request a backtest."""
STEPS = "backtest.steps"
"""Key of whether the log is also tried one step at a time."""
DEFAULT_RUNS = 30
_SET_BY_LOG = {
    "cluster.load": "a backtest keeps the log's own arrivals",
    "evaluator": "a backtest simulates",
}


@dataclass(frozen=True)
class Runs(Goal):
    """Runs of each policy that are compared with the log."""

    runs: int
    steps: bool = field(default=False, repr=False)  # another part of the id
    sweep_name = "backtest"
    chooses_cells = False
    needs_jobs = True

    def record(self) -> dict[str, Any]:
        """Return its entry of ``config.yaml``."""
        steps = {"steps": True} if self.steps else {}
        return {"backtest": {"runs": self.runs, **steps}}


def take_runs(lines: dict[str, Assignment], _: Mapping[str, Any]) -> Runs | None:
    """Remove `RUNS` and `STEPS` from a command line; return its goal, None if it is no backtest.

    The remaining assignments sweep over as many seeds.

    Raises
    ------
    InputError
        If anything but policies and their parameters is swept, or the log's arrivals are changed.
    """
    line, steps = lines.pop(RUNS, None), lines.pop(STEPS, None)
    if line is None or line.values == (None,):
        return None
    if steps is not None:
        check(STEPS, steps.value, bool | None)
    if line.swept:
        raise InputError(f"{line.text}: give one number of runs", rule="wrong type")
    check(RUNS, line.value, Annotated[int, Between(2)])
    for key in ("seed", "seeds", "target.metric", "search.metric"):
        if key in lines:
            raise InputError(
                f"{lines[key].text}: a backtest runs each policy {line.value} times, seed=0 and "
                f"on; leave {key}= out, or give runs=N",
                rule="backtest",
            )
    for key, other in lines.items():
        if (other.swept or len(other.values) > 1) and key.partition(".")[0] != "policy":
            raise InputError(
                f"{other.text}: a backtest compares policies on one log and one cluster; give "
                f"{key} one value",
                rule="backtest",
            )
        reason = _SET_BY_LOG.get(key)
        if reason is not None and other.value is not None:
            raise InputError(f"{other.text}: {reason}; leave {key}= out", rule="backtest")
    if "capacity" in lines and lines["capacity"].value != 1:
        message = f"{lines['capacity'].text}: a backtest runs on the cluster of the log"
        raise InputError(f"{message}; cluster.count=N is its size", rule="backtest")
    seeds = tuple(range(line.value))
    lines["seed"] = Assignment("seed", seeds, True, "set", f"seed=range(0,{line.value})")
    return Runs(int(line.value), steps is not None and bool(steps.value))
