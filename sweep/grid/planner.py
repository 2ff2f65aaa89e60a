"""Keys of a planner: metrics of groups of jobs."""

from __future__ import annotations

from dataclasses import replace

from sim.base.errors import InputError
from sweep.grid.overrides import Assignment

BY = "metrics.by"
"""Key: waits and slowdowns by queue, user, width or another category of jobs, too."""


def take_by(lines: dict[str, Assignment]) -> None:
    """Replace ``metrics.by=queue,user`` by the evaluator's option ``evaluator.by``.

    Raises
    ------
    InputError
        If the evaluator is another than the simulation, which alone has groups.
    """
    line = lines.pop(BY, None)
    if line is None or line.values == (None,):
        return
    if "evaluator" in lines and lines["evaluator"].value != "simulation":
        raise InputError(
            f"{line.text}: evaluator={lines['evaluator'].value} has metrics of its own; groups are "
            "of evaluator=simulation, the default",
            rule="unknown key",
        )
    values = line.values if line.swept or not isinstance(line.value, list) else line.value
    if not all(isinstance(value, str) for value in values):
        raise InputError(
            f"{line.text}: give keys of jobs, such as {BY}=queue or {BY}=[user,width]",
            rule="wrong type",
        )
    lines["evaluator.by"] = replace(line, key="evaluator.by", values=([*values],), swept=False)
