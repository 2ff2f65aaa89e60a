"""Public API for your own policy: the plan that it fills, and the world that it reads."""

from sim.engine.plan import (
    NO_LIMIT,
    Batch,
    Event,
    Fit,
    Order,
    Plan,
    Preemption,
    Right,
    Scheduler,
    Victims,
    WhenPreempted,
    World,
)

__all__ = [
    "NO_LIMIT",
    "Batch",
    "Event",
    "Fit",
    "Order",
    "Plan",
    "Preemption",
    "Right",
    "Scheduler",
    "Victims",
    "WhenPreempted",
    "World",
]
