"""Kueue's order of admission: kueue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.base import FitName, Policy
from policies.knows import Knows
from policies.registry import register
from sim.base.errors import InputError
from sim.engine.plan import Fit, Plan, Share, World


@register("kueue")
@dataclass(frozen=True)
class Kueue(Policy):
    """Kueue's admission (v0.19, 2026, *Cluster queue*): by priority, then creation, within quotas.

    The quotas are those of ``cluster.quotas``: its queues are ClusterQueues, the nodes above them
    cohorts; those by class of machine are of flavors. Of all queues those go first whose first job
    fits within their quota; then those that borrow the least far up the tree; then the job of the
    highest priority that was created first.
    Jobs with ``min_tasks`` are admitted whole, as Kueue admits all; others task by task. Nothing is
    preempted.

    Attributes
    ----------
    queueing_strategy : {"BestEffortFIFO", "StrictFIFO"}
        A job that can't be admitted lets later ones of its queue pass, or blocks them; of queues
        without a ``strategy`` of their own in ``cluster.quotas``.
    fair_sharing : bool
        True: of queues that borrow as far up, from the root down, that with the least dominant
        share over weight goes first. Kueue counts the share that is borrowed, with the job that is
        to be admitted; here all that is used counts, without it.
    fit : {"skip", "strict", "hold", "pack", "per_class"}
        The rule of BestEffortFIFO; StrictFIFO is ``strict``.
    """

    fit: FitName = "skip"
    queueing_strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    fair_sharing: bool = False

    def __post_init__(self) -> None:
        if self.queueing_strategy == "StrictFIFO" and self.fit in ("hold", "pack"):
            raise InputError(
                f"policy kueue: StrictFIFO is fit=strict, not {self.fit!r}, by which others pass; "
                "leave fit out, or take BestEffortFIFO"
            )

    @property
    def knows(self) -> Knows:
        """Declared priorities."""
        return Knows(values="declared")

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its negative priority; the kernel breaks ties by row."""
        if self.queueing_strategy == "StrictFIFO":
            plan.fit = Fit.STRICT
        plan.by_share = self.fair_sharing
        plan.share = Share.DOMINANT
        plan.set_jobs(key=-world.columns.job_priority)
