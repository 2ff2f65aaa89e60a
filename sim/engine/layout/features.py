"""Select the features of a run's event loop, rounded so that few variants do, and its registers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I8
from sim.base.errors import InputError, PolicyError
from sim.base.jit import Feature
from sim.cluster.allowed import has_tiers
from sim.cluster.cap_groups import Groups
from sim.cluster.classes import PARTS
from sim.cluster.domains import asks_for_domains
from sim.cluster.fits import has_constraints, has_enforced_limits
from sim.cluster.flavors import has_flavors
from sim.cluster.speeds import class_speeds
from sim.engine.kernels import features as has
from sim.engine.kernels import launch as lag
from sim.engine.kernels import state as register
from sim.engine.layout.caps import has_minutes
from sim.engine.layout.windows import has_windows
from sim.engine.plan import NO_LIMIT, Event, Fit, Order, Plan
from sim.engine.plan.choice import Machine
from sim.engine.plan.preemption import Right, WhenPreempted
from sim.engine.plan.queues import Packing
from sim.workload.elastic import has_elastic

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns

_ORDERS = {has.USAGE, has.DYNAMIC_ORDER, has.SERVICE}
_THRESHOLDS = {has.DYNAMIC_ORDER, has.SERVICE}
_RARE = {has.GANGS, has.INPUTS}
_SINGLY = {has.VARIABLE_ENDS, has.RESERVES, has.REPLANS, has.CHOOSES, has.PINS, has.ELASTIC}
"""Features with which each task moves by itself."""
_WAYS = {str(way) for way in (has.REPLANS, has.STRICT, has.CLASSES, has.SKIP)}
"""Features of which a loop does what the first one says."""
_WIDE_BATCHES = {*_ORDERS, *_RARE, has.COMPONENTS, has.LIMITS, has.LEARNS, has.WORTH}
_WIDE = {*_WIDE_BATCHES, has.VARIABLE_ENDS, has.CHOOSES}
"""Features of wide variants. Those that few runs have are not among them: quotas, speeds by class,
and what sites add."""
_SITE_BATCHES = {has.RELEASES}
_SITE = {
    has.RELEASES,
    has.TIERS,
    has.ENFORCES,
    has.WINDOWS,
    has.PREEMPTS,
    has.CHECKPOINTS,
    has.CAPS,
    has.SPREADS,
}
"""Features that sites add: with one of them a wide variant has all of them."""

_RARER = _SITE | {
    has.COMPONENTS,
    has.REPLANS,
    has.QUOTAS,
    has.FLAVORS,
    has.STRATEGIES,
    has.CLASS_SPEEDS,
    has.TOPOLOGY,
    has.PINS,
    has.ELASTIC,
    has.RUNS_ON,
}
"""Features whose runs are not compiled with SIM_VARIANTS=common."""


def select_features(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    events: Event,
    n_queues: int,
    remote: bool,
    in_pools: bool,
    groups: Groups,
    has_components: bool,
    fit: Fit,
    several_fits: bool,
) -> frozenset[str]:
    """Return the features of a run, rounded up: each other variant costs a compilation.

    `in_pools`: machines are several pools (`sim.engine.layout.classes`). `groups`: jobs with caps.
    `fit`: of all queues, but that with `several_fits` some let jobs pass.
    `has_components`: a gang has unequal slots (`sim.cluster.components`).
    """
    needed = _needed(
        columns, cluster, plan, events, n_queues, remote, in_pools, groups, fit, several_fits
    )
    has_components |= has.TOPOLOGY in needed  # gangs are searched for in the same way
    needed |= {has.COMPONENTS} if has_components else set()
    checks = {has.CHECKS} if is_checked() else set()
    return frozenset(str(feature) for feature in _rounded(needed) | checks)


def may_share(features: frozenset[str], loop: frozenset[str]) -> bool:
    """Check that a loop of more features places tasks in the way of a run with `features`."""
    return features < loop and features & _WAYS == loop & _WAYS


def is_checked() -> bool:
    """Tell whether runs check their accounts after each instant (SIM_CHECKS=1)."""
    return os.environ.get("SIM_CHECKS", "0") not in ("", "0")


def _rounded(needed: set[Feature]) -> set[Feature]:
    """Add features that cost a run little, where another variant would cost a compilation."""
    variants = os.environ.get("SIM_VARIANTS")
    if has.POOL not in needed and needed & {has.REPLANS, has.PLACES}:  # they read gangs' slots
        needed = needed | {has.GANGS}
    if variants == "none" or (variants == "common" and needed & _RARER):
        return needed | {has.INTERPRETED}
    is_wide = variants in ("wide", "common")
    if has.POOL in needed:
        return needed | _ORDERS | {has.WORTH} if is_wide else needed
    if is_wide:
        return needed | (_widest(needed) - (_RARER if variants == "common" else set()))
    if needed >= {has.SCORED, has.VARIABLE_ENDS}:
        needed = needed | {has.OVERBOOK, has.LIMITS}
    if needed & _RARE or (has.VARIABLE_ENDS in needed and needed & _ORDERS):
        needed = needed | {*_RARE, has.LIMITS, has.USAGE}
        return needed | _ORDERS if needed & _THRESHOLDS else needed
    if has.VARIABLE_ENDS not in needed and needed & (_ORDERS | {has.LIMITS}):
        return needed | _ORDERS
    return needed


def _widest(needed: set[Feature]) -> set[Feature]:
    """Return further features of runs on machines, so that each way to fit has two variants.

    One with batches, one without, and of each a second with what sites add. With SIM_VARIANTS=wide
    these, and one of pools, serve most runs, tests for instance; each costs more to compile, and a
    run more time.
    """
    if has.BATCHES in needed:
        return _WIDE_BATCHES | _batches_of_way(needed) | _site(needed, _SITE_BATCHES)
    if has.STRICT in needed:
        return _WIDE | _site(needed, _SITE_BATCHES | {has.ENFORCES, has.CHECKPOINTS, has.SPREADS})
    if has.CLASSES in needed:
        return _WIDE | _site(needed, _SITE)
    if has.SKIP in needed:
        return _WIDE | {has.RESERVES, has.PLACES, has.HOLDS} | _site(needed, _SITE)
    return _WIDE | {has.SCORED, has.OVERBOOK} | _site(needed, _SITE)


def _batches_of_way(needed: set[Feature]) -> set[Feature]:
    if has.SKIP in needed:
        return {has.HOLDS}
    if has.CLASSES in needed:
        return _site(needed, {has.CAPS, *_SITE_BATCHES})
    return set() if has.STRICT in needed else {has.SCORED}


def _site(needed: set[Feature], features: set[Feature]) -> set[Feature]:
    """Return what sites add, if a run has any of it, or plans anew as they do."""
    return features if needed & (features | {has.REPLANS}) else set()


def _needed(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    events: Event,
    n_queues: int,
    remote: bool,
    in_pools: bool,
    groups: Groups,
    fit: Fit,
    several_fits: bool,
) -> set[Feature]:
    queues, jobs = plan.queues, plan.jobs
    quotas, gangs = cluster.queue_mode == "quota", bool(columns.job_min_tasks.any())
    hard = quotas or cluster.queue_mode == "hard"
    shares = bool((queues.order == Order.SHARE).any())
    thresholds = np.isfinite(queues.demote_at).any() or np.isfinite(jobs["service_at"]).any()
    limits = any((jobs[name] < NO_LIMIT).any() for name in ("run_limit", "start_gate"))
    releases = columns.releases.exist
    inputs = releases or bool(columns.job_input_mode.any())
    variable_ends = remote or len(cluster.outages) or len(cluster.slowdowns)
    variable_ends = variable_ends or len(cluster.reservations)
    variable_ends = variable_ends or len(columns.attempt_s) or _leaves_out(cluster, plan)
    preempts = plan.preemption is not None
    spreads = spreads_singly(columns, cluster, plan, events)
    elastic = has_elastic(columns)
    variable_ends = variable_ends or preempts or spreads or elastic  # machines list their tasks
    enforces = has_enforced_limits(columns, cluster)
    per_task = plan.task_priority is not None or plan.task_prefers is not None
    plans = bool(plan.reservations or plan.replan)
    windows = has_windows(columns, cluster, plan)
    flavors = has_flavors(cluster.quotas)
    fit = Fit.SKIP if plans else fit
    if fit in (Fit.STRICT, Fit.PER_CLASS):
        fit = Fit.PER_CLASS if in_pools else Fit.STRICT
    scored = fit == Fit.PACK and (plan.packing != Packing() or per_task)
    overbook = fit == Fit.PACK and plan.packing.overbook and bool(cluster.fungible)
    pool = False
    if plan.preemption and Right.QUOTA in plan.preemption.by and not quotas:
        raise PolicyError(
            "plan.preemption is by quotas, and the cluster has none: set cluster.quotas, or take "
            "room back by shares"
        )
    skips_blocked = fit in (Fit.SKIP, Fit.PACK) and any(row.blocks for row in groups.caps)
    if cluster.unit and not (gangs or scored or plans or preempts or windows or skips_blocked):
        fit = Fit.STRICT  # equal demands: the room of one task fits any other
        rare = (
            limits
            or inputs
            or variable_ends
            or enforces
            or plan.pinned is not None
            or plan.selects_classes
            or events != Event.NONE
            or columns.stage_n_o2o.any()
        )
        in_order = plan.task_order is None and plan.task_prefers is None
        true_durations = bool(np.isnan(plan.stages["expected_s"]).all())
        lags = bool(cluster.launch) or cluster.stage_lag_s > 0 or bool(columns.stage_lag.any())
        simple = cluster.queue_mode == "global" and not lags
        pool = not rare and in_order and true_durations and simple and not groups
    tiers = not cluster.unit and has_tiers(cluster)
    crossed = cluster.topology.slows
    is_reserved = len(cluster.reservations) > 0
    by_bucket = groups or preempts or tiers or is_reserved or plan.selects_classes or flavors
    by_bucket = by_bucket or several_fits
    if fit == Fit.STRICT and by_bucket:
        fit = Fit.PER_CLASS  # of a single pool, or of those that are reserved
    needed = {
        has.POOL: pool,
        has.STRICT: fit == Fit.STRICT,
        has.CLASSES: fit == Fit.PER_CLASS,
        has.SKIP: fit == Fit.SKIP,
        has.HOLDS: fit == Fit.SKIP and plan.held_machines > 0 and not cluster.unit,
        has.SCORED: scored,
        has.OVERBOOK: overbook,
        has.USAGE: quotas or n_queues > 1 or shares or hard or has_minutes(groups),
        has.DYNAMIC_ORDER: bool((queues.order >= Order.REMAINING).any()),
        has.WORTH: plan.weighs_jobs,
        has.SERVICE: bool(thresholds or events & Event.SERVICE),
        has.LIMITS: limits or events != Event.NONE or plan.learning is not None,
        has.LEARNS: plan.learning is not None,
        has.CLASS_SPEEDS: class_speeds(columns, cluster) is not None or (gangs and crossed),
        has.TOPOLOGY: gangs and (crossed or asks_for_domains(columns, cluster)),
        has.GANGS: gangs,
        has.ELASTIC: elastic,
        has.SPREADS: spreads,
        has.INPUTS: inputs,
        has.RELEASES: releases,
        has.VARIABLE_ENDS: bool(variable_ends or overbook or enforces),
        has.ENFORCES: enforces,
        has.PREEMPTS: preempts,
        has.CHECKPOINTS: saves_work(columns, cluster, plan),
        has.WINDOWS: windows,
        has.PINS: plan.pinned is not None,
        has.RESERVES: plan.reservations > 0,
        has.REPLANS: plan.replan is not None,
        has.PLACES: reserves_places(columns, cluster, plan),
        has.RUNS_ON: plan.selects_classes,
        has.CAPS: bool(groups),
        has.TIERS: tiers,
        has.QUOTAS: quotas,
        has.FLAVORS: flavors,
        has.STRATEGIES: several_fits,
        has.CHOOSES: not cluster.unit
        and (
            has_constraints(columns, cluster)
            or plan.choice.machine != Machine.FIRST
            or (plan.replan is not None and len({*cluster.weights}) > 1)
        ),
    }
    singly = any(needed[name] for name in _SINGLY)
    # batches end by turn, others by row: work of several speeds would be added up in another order
    singly = singly or (needed[has.CLASS_SPEEDS] and plan.task_order is not None)
    needed[has.BATCHES] = not singly and plan.task_prefers is None
    return {feature for feature, is_needed in needed.items() if is_needed}


def spreads_singly(columns: Columns, cluster: Cluster, plan: Plan, events: Event) -> bool:
    """Tell whether a job of which no two tasks share a machine may start tasks beside its slots.

    They are more than its slots, or wait in a queue of those beyond a run limit.
    """
    if cluster.unit or plan.reservations or plan.replan is not None:
        return False
    overflows = events != Event.NONE or bool((plan.jobs["overflow_queue"] >= 0).any())
    n_slots = columns.job_min_tasks * (not overflows)
    is_single = columns.job_one_per_node & (columns.job_n_tasks > np.maximum(n_slots, 1))
    return bool(is_single.any())


def reserves_places(columns: Columns, cluster: Cluster, plan: Plan) -> bool:
    """Tell whether reservations name machines, are of several queues, or go by windows."""
    is_pool = cluster.unit and cluster.queue_mode == "global"
    return plan.reservations > 0 and (not is_pool or has_windows(columns, cluster, plan))


def saves_work(columns: Columns, cluster: Cluster, plan: Plan) -> bool:
    """Tell whether attempts that stop may keep a part of their work, or take longer again."""
    fails = len(columns.attempt_s) > 0
    if not (plan.preemption or len(cluster.outages) or fails):
        return False
    has_checkpoints = np.isfinite(columns.job_checkpoint).any() or columns.job_restart.any()
    suspends = plan.jobs["when_preempted"] == WhenPreempted.SUSPEND
    return bool(has_checkpoints or (plan.preemption and suspends.any()))


def _leaves_out(cluster: Cluster, plan: Plan) -> bool:
    """Tell whether a resource does not decide what fits."""
    return bool(plan.fit_resources) and not set(cluster.resources) <= {*plan.fit_resources, PARTS}


def registers(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    events: Event,
    resources: tuple[str, ...],
    record_tasks: bool,
) -> I8:
    """Return the configuration registers of a run."""
    flags = np.zeros(register.N_I, dtype=np.int64)
    flags[register.OPEN_FLAVORS] = -1
    if not -1 <= plan.share < len(cluster.resources):
        raise PolicyError(
            f"plan.share is {plan.share}; valid: -1 (dominant) to {len(cluster.resources) - 1}"
        )
    share = plan.share if plan.share < 0 else resources.index(cluster.resources[plan.share])
    flags[register.SHARE] = share
    flags[register.UNIT] = cluster.unit
    flags[register.EVENTS] = int(events)
    flags[register.DEFERRED] = int(plan.deferred)
    flags[register.RECORD] = record_tasks
    flags[register.HARD_CAPS] = cluster.queue_mode in ("hard", "quota")
    flags[register.BY_SHARE] = plan.by_share
    flags[register.ONE_TO_ONE] = bool(columns.stage_n_o2o.any())
    flags[register.TASK_ORDER] = plan.task_order is not None or plan.task_prefers is not None
    flags[register.BUNDLE] = plan.packing.bundle
    flags[register.PRIORITY] = plan.task_priority is not None
    flags[register.PREFERS] = plan.task_prefers is not None
    flags[register.EXPECTED] = not np.isnan(plan.stages["expected_s"]).all()
    if plan.learning is not None:
        flags[register.LEARNING] = True
        flags[register.ESTIMATES] = plan.learning.estimates
        # a task that fails or is lost changes remaining work, and leaves no trace in the counts
        loses = len(columns.attempt_s) > 0 or len(cluster.outages) > 0
        flags[register.REFINE_ALL] = loses or plan.preemption is not None
    flags[register.OVERBOOKING] = plan.packing.overbook and bool(cluster.fungible)
    flags[register.FAILS] = bool(len(columns.attempt_s))
    flags[register.REBASED] = plan.packing.rebased
    flags[register.ALIGNED] = plan.packing.aligned
    flags[register.PENDING] = plan.fit == Fit.PACK and plan.packing.pending
    flags[register.FIRST_ENDED] = plan.first_ended
    flags[register.RESERVATIONS] = plan.reservations
    if not cluster.unit:
        flags[register.HELD_MACHINES] = min(plan.held_machines, len(cluster.capacity))
    flags[register.BY_PLACE] = reserves_places(columns, cluster, plan)
    if cluster.launch:
        flags[register.LAUNCH] = lag.BETWEEN if cluster.launch.between else lag.DRAWN
    if plan.preemption is not None:
        flags[register.PREEMPTS_BY] = int(plan.preemption.by)
        flags[register.VICTIMS] = int(plan.preemption.victims)
    flags[register.CANCELS] = cluster.unmet_dependencies == "fail"
    flags[register.JOBS_LEFT] = len(columns.job_submit)
    return flags


def event_capacity(events: Event, n_jobs: int, n_stages: int) -> int:
    """Return the largest number of events between two callbacks."""
    if events == Event.NONE:
        return 1
    if n_jobs + n_stages > 2**28:
        raise InputError("too many jobs for a policy with callbacks")
    return 7 * n_jobs + n_stages + 2
