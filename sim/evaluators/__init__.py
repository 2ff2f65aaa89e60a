"""Evaluators of a cell: one module each, found by name.

An evaluator is a module of this package with a function ``evaluate(run, workload, cluster, policy,
seed, **options) -> (metrics, table)``: numbers by name, and the table that they were computed from.
``run(workload, cluster, policy, seed=seed)`` simulates (`sim.simulate`). Its other arguments are
the options, so adding an evaluator is adding a file. An evaluator of the workload alone sets
``USES_POLICY = False`` and gets None as its policy. A user's own evaluator is any importable module
with such a function; ``by`` (keys of jobs, `sim.metrics.groups`) is an option of each, which gives
metrics of groups of its last run, and means of the numbers that its table has of each job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsFloat

import pyarrow as pa

from sim.base.errors import EvaluatorError
from sim.base.plugins import Plugins, check_names
from sim.base.plugins import options as options_of
from sim.base.text import is_utf8
from sim.metrics import METRICS, UTILIZATION, groups

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.engine.plan import Scheduler
    from sim.result import Result
    from sim.workload.workload import Workload

NO_POLICY = "none"
"""Name of the policy in cells whose evaluator needs none."""
Simulate = Callable[..., "Result"]
Evaluation = tuple[dict[str, float], pa.Table]

MODULES_FOUND = ("sim.evaluators",)  # so that sim.base.sources knows
MODULES_INSTALLED = ("evaluators",)
EVALUATORS = Plugins(
    "evaluator", __name__, "evaluate", "evaluators", arguments="run, workload, cluster, ..."
)

_N_GIVEN = 5
BY = "by"
"""Option: keys of jobs of which there are groups."""


def names() -> list[str]:
    """Return the names of all evaluators, sorted."""
    return EVALUATORS.names()


def options(name: str, module: str | None = None) -> dict[str, Any]:
    """Return the options of an evaluator with their defaults."""
    own = options_of(EVALUATORS.module(name, module).evaluate, _N_GIVEN)
    return own if module is None else {BY: (), **own}


def uses_policy(name: str, module: str | None = None) -> bool:
    """Test if an evaluator needs a policy."""
    return bool(getattr(EVALUATORS.module(name, module), "USES_POLICY", True))


def evaluate(
    name: str,
    run: Simulate,
    workload: Workload,
    cluster: Cluster,
    policy: Scheduler | None,
    seed: int,
    *,
    module: str | None = None,
    **chosen: Any,
) -> Evaluation:
    """Evaluate a cell by the evaluator of that name.

    Parameters
    ----------
    name : str
        One of `names`, or any with a `module`.
    run : callable
        `sim.simulate`, or a replacement.
    workload, cluster, policy, seed
        Of the run.
    module : str, optional
        The importable module of a user's own evaluator.
    **chosen
        The evaluator's own options.

    Raises
    ------
    InputError
        On an unknown evaluator or option, naming the closest.
    EvaluatorError
        If an evaluator returns anything but numbers by name and a table, or names a number like the
        utilization of an unknown resource.
    """
    check_names(f"option of {name}", chosen, options(name, module))
    evaluator = EVALUATORS.module(name, module)
    by: Sequence[str] = ()
    if BY not in options_of(evaluator.evaluate, _N_GIVEN):
        by = chosen.pop(BY, ())
    groups.check_keys(workload, by)
    runs: list[Result] = []
    simulate = _remembering(run, runs) if by else run
    returned = evaluator.evaluate(simulate, workload, cluster, policy, seed, **chosen)
    result = _check_result(name, returned)
    if by:
        result[0].update(_by_group(name, workload, runs, result[1], by))
    if module is not None:
        _check_shares(name, result[0], (*cluster.resources, *workload.resources))
    return result


def _remembering(run: Simulate, runs: list[Result]) -> Simulate:
    """Return `run` such that its last result, which has times of tasks, is in `runs`."""

    def simulate(*args: Any, **options: Any) -> Result:
        result = run(*args, **{"record": "tasks", **options})
        runs[:] = [result]
        return result

    return simulate


def _by_group(
    name: str, workload: Workload, runs: Sequence[Result], table: pa.Table, by: Sequence[str]
) -> dict[str, float]:
    """Return the metrics of groups of jobs of the last run, and the table's means by group.

    Raises
    ------
    EvaluatorError
        If the last run is not one of the workload.
    """
    if not runs or len(runs[0].job_start) != workload.n_jobs:
        raise EvaluatorError(
            f"evaluator {name} ran no simulation of the workload itself, so there are no groups of "
            "its jobs: leave out metrics.by"
        )
    result = runs[0]
    return groups.compute_by(result.on_own_clock, result.bounds, by) | groups.means_by(
        workload, table, by
    )


def _check_shares(name: str, metrics: Mapping[str, float], resources: Sequence[str]) -> None:
    """Refuse names like ``utilization_users``, which would be shown as a resource's utilization."""
    known = [*METRICS, *(UTILIZATION + resource for resource in resources)]
    resource_names = ", ".join(dict.fromkeys(resources))
    for key in metrics:
        if key.startswith(UTILIZATION) and key not in known:
            raise EvaluatorError(
                f"evaluator {name} returned {key!r}, which means the utilization of a resource "
                f"{key.removeprefix(UTILIZATION)!r}; resources: {resource_names}. Rename the metric"
            )


def _check_result(name: str, result: Any) -> Evaluation:
    """Check the types of an evaluator's result, and convert its numbers to float."""
    expected = "it must return numbers by name and a pyarrow.Table of what they were computed from"
    if not isinstance(result, tuple) or len(result) != 2:
        raise EvaluatorError(f"evaluator {name} returned {_type_name(result)}; {expected}")
    metrics, table = result
    if not isinstance(metrics, Mapping):
        raise EvaluatorError(
            f"evaluator {name} returned {_type_name(metrics)} for its numbers; {expected}"
        )
    if not isinstance(table, pa.Table):
        raise EvaluatorError(
            f"evaluator {name} returned {_type_name(table)} for its table; {expected}"
        )
    for key, value in metrics.items():
        if not isinstance(key, str) or not isinstance(value, SupportsFloat):
            raise EvaluatorError(
                f"evaluator {name} returned {_type_name(value)} as {key!r}; "
                f"{expected}, NaN for none"
            )
        if not key.strip() or not is_utf8(key):
            raise EvaluatorError(
                f"evaluator {name} returned a metric named {key!r}; a name is UTF-8, and not blank"
            )
    return {key: _number(name, key, value) for key, value in metrics.items()}, table


def _number(name: str, key: str, value: Any) -> float:
    """Convert a number that an evaluator returned to float."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise EvaluatorError(
            f"evaluator {name} returned {key!r}, which is not a float64: {error}"
        ) from None


def _type_name(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
