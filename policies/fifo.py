"""First in, first out."""

from __future__ import annotations

from dataclasses import dataclass

from policies.base import Policy
from policies.registry import register


@register("fifo")
@dataclass(frozen=True)
class Fifo(Policy):
    """Jobs in the order of their submission, which is what an untouched plan says.

    The baseline that most studies quote speed-ups against, e.g. SLearn (NSDI 2022, §5.1.4).
    """
