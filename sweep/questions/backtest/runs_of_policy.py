"""The runs of one policy in a backtest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.base.arrays import F8


@dataclass(frozen=True)
class PolicyRuns:
    """The runs of one policy, with its settings."""

    policy: str  # option
    label: str  # the option, with the parameters that tell it from others
    parameters: Mapping[str, Any]  # swept ones by key; None where the policy has none
    config: Mapping[str, Any]  # ``name``, ``module``, ``params``
    start_s: F8  # (R, J) of each run and job of the workload, s
    finish_s: F8
