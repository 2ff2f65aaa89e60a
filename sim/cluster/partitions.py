"""Rules of partitions: the tier whose jobs come first, and which jobs they admit.

A partition is a named set of machines (`sim.cluster.classes`); its rules go by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from sim.base.arrays import F8, I4, Mask
from sim.base.errors import InputError, unknown
from sim.base.parameters import Count, Positive, Whole, check, check_keys

Unadmitted = Literal["reject", "error"]
UNADMITTED: tuple[Unadmitted, ...] = ("reject", "error")
MAX_TIER = 65_533
"""Largest tier, that of Slurm's PriorityTier."""


@dataclass(frozen=True)
class Rules:
    """Rules of one partition; use `Rules.parse`.

    Attributes
    ----------
    tier : int
        Waiting jobs of a higher tier come before all of a lower one, whatever the policy, as with
        Slurm's PriorityTier; 1 by default.
    max_time_s : float or None
        The partition does not admit jobs that request more time (``requested_s``), s; None: any.
    default_time_s : float or None
        Requested time, and limit, of jobs that request none, s; None: `max_time_s`.
    min_nodes, max_nodes : int or None
        It admits jobs of so many nodes (``n_nodes``); None: any.
    exclusive : bool
        Each task, or slot of a gang, of its jobs takes a whole machine. False by default.
    """

    tier: int = 1
    max_time_s: float | None = None
    default_time_s: float | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    exclusive: bool = False

    @classmethod
    def parse(cls, row: Any, name: str = "partitions.batch") -> Rules:
        """Build the rules from a mapping of the attributes.

        Raises
        ------
        InputError
            If a key is unknown, or a value out of its range.
        """
        keys = tuple(field.name for field in fields(cls))
        check_keys(name, row, keys, _RULE)
        set_values = {str(key): value for key, value in row.items() if value is not None}
        for key, value in set_values.items():
            check(f"{name}.{key}", value, _TYPES[key])
        rules = cls(**set_values)
        if rules.tier > MAX_TIER:
            raise InputError(
                f"{name}.tier must be at most {MAX_TIER}, not {rules.tier}", rule=_RULE
            )
        for low, high in (("min_nodes", "max_nodes"), ("default_time_s", "max_time_s")):
            if low in set_values and high in set_values and set_values[low] > set_values[high]:
                raise InputError(
                    f"{name}.{low} must be at most {high}, which is {set_values[high]:g}, not "
                    f"{set_values[low]:g}",
                    rule=_RULE,
                )
        return rules

    @property
    def default_s(self) -> float | None:
        """Requested time of jobs that request none, s; None for no limit."""
        return self.max_time_s if self.default_time_s is None else self.default_time_s

    @property
    def may_refuse(self) -> bool:
        """True if it does not admit all jobs."""
        return any(x is not None for x in (self.max_time_s, self.min_nodes, self.max_nodes))

    def admits(self, requested_s: F8 | float, n_nodes: I4) -> Mask:
        """Tell which jobs it admits, by requested times (NaN: none) and numbers of nodes."""
        longest_s = np.inf if self.max_time_s is None else self.max_time_s
        max_nodes = np.inf if self.max_nodes is None else self.max_nodes
        is_too_long = np.greater(requested_s, longest_s)
        return ~is_too_long & (n_nodes >= (self.min_nodes or 0)) & (n_nodes <= max_nodes)

    def limits(self) -> str:
        """Write what it admits, such as ``at most 3600 s, 1 to 4 nodes``."""
        low, high = self.min_nodes, self.max_nodes
        parts = [] if self.max_time_s is None else [f"at most {self.max_time_s:g} s"]
        if low is not None or high is not None:
            parts.append(f"{low or 1} to {high} nodes" if high else f"at least {low} nodes")
        return ", ".join(parts) or "any"


_RULE = "partitions"
_TYPES: dict[str, Any] = {
    "tier": Whole,
    "max_time_s": Positive,
    "default_time_s": Positive,
    "min_nodes": Count,
    "max_nodes": Count,
    "exclusive": bool,
}
NO_RULES = Rules()
"""Rules of a partition that states none, and of jobs that may run anywhere."""


def parse_rules(rows: Any, known: Sequence[str]) -> dict[str, Rules]:
    """Return the rules of each partition that has some; `known` are the cluster's partitions."""
    check("partitions", rows, Mapping[str, Any] | None)
    rules = {
        str(name): Rules.parse(row, f"partitions.{name}") for name, row in (rows or {}).items()
    }
    for name in rules:
        if name not in known:
            raise InputError(
                f"partitions: {unknown('partition', name, known)}; machines name their partitions, "
                "as in {count: 4, cpu: 64, partitions: [gpu]}",
                rule=_RULE,
            )
    return rules
