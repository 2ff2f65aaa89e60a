"""The variants of the event loop that tests compile: few, where each costs seconds.

A run of the tests meets some thirty combinations of features. What a run on machines has is rounded
up to all that may be, so that three variants serve, one a way to fit; pools of slots keep theirs.
Plain Python (`make test-nojit`), sweeps in processes of their own and `make test-long` take exactly
what a run has.
"""

from __future__ import annotations

from sim.base.jit import Feature
from sim.engine.kernels import state as has

ALWAYS = {has.USAGE, has.MOVING, has.SERVICE, has.LIMITS, has.GANGS, has.INPUTS, has.PACED}


def widened(found: set[Feature]) -> set[Feature]:
    """Return the features of the wide variant that serves a run with those `found`."""
    if has.POOL in found:
        return found
    if has.STRICT in found:
        return found | ALWAYS | {has.EVICTS}
    if has.SKIP in found:
        return found | ALWAYS
    return found | ALWAYS | {has.SCORED, has.OVERBOOK}
