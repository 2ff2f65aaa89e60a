"""All the tokens that a job may have, for every job with a deadline (Jockey, §5.1)."""

from __future__ import annotations

from dataclasses import dataclass

from policies.base import Policy
from policies.jockey.loop import share_out, with_deadline
from policies.registry import register
from sim.base.errors import InputError
from sim.engine.plan import Plan, World


@register("max_allocation")
@dataclass(frozen=True)
class MaxAllocation(Policy):
    """Each job with a deadline is guaranteed as many tokens as it may have, from first to last.

    Attributes
    ----------
    max_tokens : int
        How many that is.
    spare : bool
        Whether jobs with a deadline run on spare tokens too, beyond those that are theirs.
    """

    max_tokens: int = 100
    spare: bool = True

    def __post_init__(self) -> None:
        """Raise InputError if there is no token."""
        if self.max_tokens < 1:
            raise InputError(
                f"policy max_allocation: max_tokens must be 1 or more, not {self.max_tokens!r}"
            )

    def prepare(self, world: World, plan: Plan) -> None:
        """Set the run limits."""
        share_out(world, plan, self.spare)
        plan.set_jobs(with_deadline(world), run_limit=self.max_tokens)
