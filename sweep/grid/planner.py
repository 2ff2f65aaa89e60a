"""Keys of a planner: metrics of groups of jobs, draws of one's own log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sim import evaluators
from sim.base.errors import InputError, unknown
from sweep.grid import plugins
from sweep.grid.overrides import Assignment

SIMULATION = "simulation"
"""Default evaluator."""
BY = "metrics.by"
"""Key: waits and slowdowns by queue, user, width or another category of jobs, too."""


def take_by(lines: dict[str, Assignment]) -> None:
    """Replace ``metrics.by=queue,user`` by the evaluator's option ``evaluator.by``.

    Raises
    ------
    InputError
        If the evaluator is one of the project's but for the simulation: these have no groups.
    """
    line = lines.pop(BY, None)
    if line is None or line.values == (None,):
        return
    evaluator = str(lines["evaluator"].value) if "evaluator" in lines else SIMULATION
    if evaluator != SIMULATION and evaluator in evaluators.names():
        raise InputError(
            f"{line.text}: evaluator={evaluator} has metrics of its own; groups are of "
            "evaluator=simulation, the default, and of an evaluator of your own (module:)",
            rule="unknown key",
        )
    values = line.values if line.swept or not isinstance(line.value, list) else line.value
    if not all(isinstance(value, str) for value in values):
        raise InputError(
            f"{line.text}: give keys of jobs, such as {BY}=queue or {BY}=[user,width]",
            rule="wrong type",
        )
    kind = line.kind if evaluator == SIMULATION else "add"  # its option need not have the key
    key = "evaluator.by"
    lines[key] = replace(line, key=key, values=([*values],), swept=False, kind=kind)


SEEDS, BLOCK, BOOTSTRAP = "seeds", "seeds_block", "bootstrap"
N_DRAWS = 10
BLOCKS = ("auto", "week", "day", "hour", "user")


def take_bootstrap(lines: dict[str, Assignment], defaults: Mapping[str, Any]) -> str | None:
    """Remove ``seeds=bootstrap``; return the blocks that its draws are of, None without it.

    The seeds are then numbers of draws (`sim.transforms.draws`): `N_DRAWS`, unless ``seed=``
    names others.
    """
    is_asked = SEEDS in lines and lines[SEEDS].values == (BOOTSTRAP,)
    block_line = lines.pop(BLOCK, None)
    if not is_asked:
        if block_line is not None:
            raise InputError(f"{block_line.text} needs seeds=bootstrap", rule="wrong type")
        return None
    del lines[SEEDS]
    block = defaults[BLOCK] if block_line is None else block_line.value
    if block not in BLOCKS:
        raise InputError(unknown(BLOCK, str(block), BLOCKS), rule="wrong type")
    choose_seeds = plugins.constants(plugins.STRATEGIES, "CHOOSE_SEEDS")
    for key in ("seeds_metric", "seeds_width", "seeds_max", *choose_seeds):
        if key in lines:
            raise InputError(
                f"{lines[key].text} chooses seeds by itself: leave it out, or seeds=bootstrap",
                rule="seeds",
            )
    lines.setdefault(
        "seed", Assignment("seed", tuple(range(N_DRAWS)), True, "set", f"seed=range(0,{N_DRAWS})")
    )
    return str(block)
