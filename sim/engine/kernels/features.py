"""Features: the parts of the event loop that a run needs, and that are compiled only then.

A feature is a condition of a kernel by its bare name: ``if GANGS:``. Each must be worth it, in time
to compile or to run; anything else is a register. `sim.engine.layout.features` derives the features
of a run.
"""

from __future__ import annotations

from sim.base.jit import Feature

INTERPRETED = Feature("INTERPRETED")
"""The variant is not compiled: with SIM_VARIANTS=none, or =common where it has a rare mechanism."""
POOL = Feature("POOL")
"""Slots, and nothing but orders and weights of queues: the hot loops of
`sim.engine.kernels.pool`."""
BATCHES = Feature("BATCHES")
"""Like tasks move as one (`sim.engine.kernels.batches`). Without it each task moves by itself."""
STRICT = Feature("STRICT")
"""The first in order that does not fit blocks its queue. Without it stages behind it are tried."""
CLASSES = Feature("CLASSES")
"""The first in order that does not fit blocks the machines on which it can run, and no others
(`sim.engine.kernels.packing.classes`)."""
SKIP = Feature("SKIP")
"""The next in order that fits goes first. With none of these, machines take the tasks that pack
best."""
HOLDS = Feature("HOLDS")
"""Machines are held for the first in order that does not fit
(`sim.engine.kernels.packing.hold`)."""
SCORED = Feature("SCORED")
"""Packing scores beyond alignment, or bundles (`sim.engine.plan.queues`)."""
OVERBOOK = Feature("OVERBOOK")
"""Full machines take one more task where that gains more than it costs."""
USAGE = Feature("USAGE")
"""Accounts of the use of queues and jobs."""
DYNAMIC_ORDER = Feature("DYNAMIC_ORDER")
"""The order of some queue changes as tasks start and end."""
WORTH = Feature("WORTH")
"""Worth of jobs, and work beyond theirs, in remaining work."""
SERVICE = Feature("SERVICE")
"""Thresholds of attained service."""
LIMITS = Feature("LIMITS")
"""Callbacks of the policy, or run limits and start gates that may bind."""
CLASS_SPEEDS = Feature("CLASS_SPEEDS")
"""Tasks run faster on some classes of machines (`sim.engine.kernels.speeds`)."""
GANGS = Feature("GANGS")
"""Gang jobs."""
COMPONENTS = Feature("COMPONENTS")
"""Gangs of unequal slots (`sim.engine.kernels.components`)."""
TOPOLOGY = Feature("TOPOLOGY")
"""Gangs that ask for a domain, or run slower across several (`sim.engine.kernels.domains`)."""
SPREADS = Feature("SPREADS")
"""Tasks start singly of jobs of which no two share a machine (`sim.engine.kernels.spread`)."""
INPUTS = Feature("INPUTS")
"""Jobs that need the outputs of others."""
RELEASES = Feature("RELEASES")
"""Begin times, dependencies on other jobs, singletons (`sim.engine.kernels.release`)."""
ELASTIC = Feature("ELASTIC")
"""Elastic jobs (`sim.engine.kernels.elastic`)."""
VARIABLE_ENDS = Feature("VARIABLE_ENDS")
"""The end of a running task may change after its start: overbooked or lost machines, preemption,
failures, slow periods, remote inputs."""
RESERVES = Feature("RESERVES")
"""Reservations for the first in order (`sim.engine.kernels.rigid.reserve`)."""
LEARNS = Feature("LEARNS")
"""Expected durations are learnt during the run (`sim.engine.kernels.learning.learning`)."""
REPLANS = Feature("REPLANS")
"""A main loop and a planning thread (`sim.engine.kernels.rigid.replan`)."""
PLACES = Feature("PLACES")
"""Reservations name machines, or take from hard shares (`sim.engine.kernels.rigid.places`)."""
WINDOWS = Feature("WINDOWS")
"""Machines are closed to jobs in windows that are known beforehand
(`sim.engine.kernels.windows`)."""
ENFORCES = Feature("ENFORCES")
"""Jobs are ended at their limit of run time (`sim.engine.kernels.time_limits`)."""
PREEMPTS = Feature("PREEMPTS")
"""Running jobs are stopped for waiting ones (`sim.engine.kernels.preemption`)."""
CHECKPOINTS = Feature("CHECKPOINTS")
"""Stopped tasks keep a part of their work (`sim.engine.kernels.faults.work`)."""
CHOOSES = Feature("CHOOSES")
"""Tasks choose among machines, are restricted to some, or take devices
(`sim.engine.kernels.choosing.choice`)."""
CAPS = Feature("CAPS")
"""Caps of groups of jobs (`sim.engine.kernels.caps`); strict order goes by buckets then, as with
CLASSES."""
TIERS = Feature("TIERS")
"""Waiting jobs of partitions of a higher tier come first; strict order goes by buckets, too."""
PINS = Feature("PINS")
"""Jobs are placed as a state says, before the policy places any (`sim.engine.kernels.pins`)."""
RUNS_ON = Feature("RUNS_ON")
"""The policy selects classes of machines for jobs (`sim.engine.kernels.selected`); strict order
goes by buckets, too."""
QUOTAS = Feature("QUOTAS")
"""Queues are a tree of quotas that lend (`sim.engine.kernels.quotas`)."""
FLAVORS = Feature("FLAVORS")
"""Quotas are by class of machine (`sim.engine.kernels.flavors`); strict order goes by buckets."""
STRATEGIES = Feature("STRATEGIES")
"""In some queues a job that can't start blocks those behind it, in others they pass it; all go by
buckets (`sim.engine.kernels.packing.classes`)."""
CHECKS = Feature("CHECKS")
"""After each instant the accounts are summed anew (`sim.engine.kernels.conserve`): SIM_CHECKS=1."""

MODULES_SET = {
    "pinned": ("sim.engine.kernels.pins",),
    "learning": ("sim.engine.kernels.learning.learning",),
    "evict": ("sim.engine.kernels.preemption.preempt",),
    "preemption": ("sim.engine.kernels.preemption.preempt",),
    "held_machines": ("sim.engine.kernels.packing.hold",),
    "packing": ("sim.engine.kernels.packing.bundle", "sim.engine.kernels.packing.overbook"),
    "task_prefers": ("sim.engine.kernels.packing.bundle", "sim.engine.kernels.packing.overbook"),
    "task_priority": ("sim.engine.kernels.packing.bundle", "sim.engine.kernels.packing.overbook"),
    "replan": ("sim.engine.kernels.rigid.replan",),
    "reservations": ("sim.engine.kernels.rigid.reserve",),
}
"""Kernels that no run needs whose plan has the default of an attribute (`sim.engine.plan.Plan`).

Imported late (`sim.base.jit.late`), they are in the keys of those cells alone whose code sets it
(`sim.base.sources`).
"""
