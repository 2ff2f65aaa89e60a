"""Rules of partitions: the tier whose jobs come first.

A partition is a named set of machines (`sim.cluster.classes`); its rules go by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sim.base.errors import InputError, unknown
from sim.base.parameters import Whole, check

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
    """

    tier: int = 1

    @classmethod
    def parse(cls, row: Any, name: str = "partitions.batch") -> Rules:
        """Build the rules from a mapping of the attributes.

        Raises
        ------
        InputError
            If a key is unknown, or a value out of its range.
        """
        keys = tuple(field.name for field in fields(cls))
        if not isinstance(row, Mapping):
            raise InputError(f"{name} has the keys {', '.join(keys)}, not {row!r}", rule=_RULE)
        for key in row:
            if key not in keys:
                raise InputError(f"{name}: {unknown('key', str(key), keys)}", rule=_RULE)
        given = {str(key): value for key, value in row.items() if value is not None}
        for key, value in given.items():
            check(f"{name}.{key}", value, _TYPES[key])
        rules = cls(**given)
        if rules.tier > MAX_TIER:
            raise InputError(
                f"{name}.tier must be at most {MAX_TIER}, not {rules.tier}", rule=_RULE
            )
        return rules


_RULE = "partitions"
_TYPES: dict[str, Any] = {"tier": Whole}
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
