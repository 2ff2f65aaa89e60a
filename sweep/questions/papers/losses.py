"""Reasons of the losses of a policy: data of an experiment, shown on its page.

The key ``losses`` of a study has them, by workload and objective::

    losses:
      tpcds_stream:
        p99 of JCT: {why: large jobs wait for all small ones, experiment: wserpt/guard}

`experiment` names the page that supports the reason; without one the reason is not tested. Where
the key is the name of an experiment, that one's losses are meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sim.base.errors import InputError
from sim.base.plugins import check_names

KEYS = ("why", "experiment")
NOT_EXPLAINED, NOT_TESTED = "*not explained*", "not tested"
Reasons = Mapping[str, Mapping[str, Mapping[str, str]]]


@dataclass(frozen=True)
class Losses:
    """Reasons by workload and objective."""

    reasons: Reasons = field(default_factory=dict)

    @classmethod
    def read(cls, name: str, studies: Mapping[str, Mapping[str, Any]]) -> Losses:
        """Read the losses of an experiment, or of the one that it names."""
        losses = studies[name].get("losses") or {}
        if isinstance(losses, str):
            losses = studies.get(losses, {}).get("losses") or {}
        return cls(losses)

    def why(self, workload: str, *objectives: str) -> Mapping[str, str]:
        """Return the reason of a loss under the last of the names that has one; else empty."""
        own = self.reasons.get(workload.rpartition("/")[2], {})
        return next((own[name] for name in reversed(objectives) if name in own), {})

    def text(self, workload: str, *objectives: str) -> str:
        """Write the reason of a loss in Markdown, with the experiment that supports it."""
        reason = self.why(workload, *objectives)
        if not reason:
            return NOT_EXPLAINED
        name = reason.get("experiment")
        shown = f"[{name}]({name.replace('/', '-')}.md)" if name else NOT_TESTED
        return f"{reason['why'].strip()} ({shown})"


def check(losses: Any) -> None:
    """Check the key ``losses`` of a study: an experiment's name, or reasons.

    Raises InputError with the place that is not as the module's docstring has it.
    """
    if isinstance(losses, str):
        return
    if not isinstance(losses, Mapping):
        raise InputError(f"losses: give reasons by workload and objective, not {losses!r}")
    for workload, own in losses.items():
        if not isinstance(own, Mapping):
            raise InputError(f"losses.{workload}: give a reason for each objective, not {own!r}")
        for objective, reason in own.items():
            place = f"losses.{workload}.{objective}"
            is_texts = isinstance(reason, Mapping) and all(
                isinstance(v, str) for v in reason.values()
            )
            if not is_texts or "why" not in reason:
                raise InputError(f"{place}: give {' and '.join(KEYS)}, each a text, not {reason!r}")
            check_names(f"key of {place}", map(str, reason), KEYS, rule=None)
