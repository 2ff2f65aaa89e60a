"""Multi-resource packing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.base import Policy
from policies.registry import register


@register("tetris")
@dataclass(frozen=True)
class Tetris(Policy):
    """Each machine takes, of the ready tasks that fit, the one with the greatest alignment.

    Grandl et al., *Multi-resource packing for cluster schedulers* (Tetris), SIGCOMM 2014, §3.2:
    the dot product of the task's demand and the machine's free resources, both as fractions of
    the machine. Ties go first come, first served. Its second half, a preference for jobs of
    little remaining work, is left to policies that combine the two.
    """

    fit: Literal["strict", "skip", "pack"] = "pack"
