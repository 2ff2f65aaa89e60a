"""The features of runs.

A feature is what a run has, or does without, and then does not compile: in a kernel a condition, by
its bare name: ``if GANGS:``. Each must be worth it, in time to compile or to run; all else is a
register. `sim.engine.layout.features` says which a run has.
"""

from __future__ import annotations

from sim.base.jit import Feature

POOL = Feature("POOL")
"""Slots, and nothing but orders and weights of queues: the hot loops of
`sim.engine.kernels.pool`."""
STRICT = Feature("STRICT")
"""The first in order that does not fit lets its queue wait. Without it they look past it."""
SKIP = Feature("SKIP")
"""The next in order that fits goes first. With neither, machines take what fills them best."""
SCORED = Feature("SCORED")
"""How well it fills them is not all that counts, or they take bundles
(`sim.engine.plan.queues`)."""
OVERBOOK = Feature("OVERBOOK")
"""Full machines take more where that gains more than it costs."""
USAGE = Feature("USAGE")
"""The use of queues and jobs is kept."""
DYNAMIC_ORDER = Feature("DYNAMIC_ORDER")
"""The order of some queue moves with tasks."""
SERVICE = Feature("SERVICE")
"""There may be thresholds of attained service."""
LIMITS = Feature("LIMITS")
"""The policy is called back, or run limits and start gates may bind."""
GANGS = Feature("GANGS")
"""There may be gang jobs."""
INPUTS = Feature("INPUTS")
"""Jobs may look at the inputs that others make."""
VARIABLE_ENDS = Feature("VARIABLE_ENDS")
"""A running task may end at another time than was expected at its start: overbooked or lost
machines, evictions, failures, slow periods, remote inputs."""
RESERVES = Feature("RESERVES")
"""Room may be reserved for the first in order (`sim.engine.kernels.reserve`)."""
EVICTS = Feature("EVICTS")
"""Tasks make way for those of jobs below their run limit."""
CHOOSES = Feature("CHOOSES")
"""Tasks choose among machines, may run on some alone, or take devices
(`sim.engine.kernels.choice`)."""
