"""The variants of the event loop: one for each set of features that runs have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim.base.jit import compiled, is_kept, specialised
from sim.engine.kernels.features import OVERBOOK, PACED, POOL, SCORED
from sim.engine.kernels.run import run


def compiled_variant(features: frozenset[str], state: Any, changed: Any) -> Callable[..., int]:
    """Return the event loop of runs with `features`; say so if it has to be compiled."""
    saying = (
        f"sim: compiling {_words(features)}, once for this version: up to {_most_s(features)} s"
    )
    variant: Callable[..., int] = specialised(run, features)
    return compiled(variant, state, changed, -1, saying=saying)


def is_compiled(features: frozenset[str]) -> bool:
    """Tell whether the event loop of runs with `features` need not be compiled any more."""
    return is_kept(run, features)


def _words(features: frozenset[str]) -> str:
    if POOL in features:
        return "the event loop of a pool of slots"
    rest = sorted(features - {"STRICT"})
    return "the event loop of machines" + (f" ({', '.join(rest).lower()})" if rest else "")


def _most_s(features: frozenset[str]) -> int:
    """Return the budget of a variant, in CPU seconds; most take half of it."""
    if POOL in features:
        return 15
    return 40 if features & {SCORED, OVERBOOK, PACED} else 25
