"""Another value of a policy's parameter: ``what_if.policy.interval_s=60``."""

from __future__ import annotations

import dataclasses

import policies
from sim.base.errors import unknown
from sweep.grid import config_tree
from sweep.grid.changes import Change, Config, NotForPolicyError

HAS_KEYS = True


def check(change: Change) -> None:
    """Accept any value: the policy checks it."""


def apply(parts: Config, change: Change) -> Config:
    """Set the parameter."""
    name = parts["policy"].get("name", "none")
    known = sorted(field.name for field in dataclasses.fields(policies.spec(name)))
    if change.key.partition(".")[0] not in known:
        message = unknown(f"parameter of {name}", change.full_key, [f"policy.{k}" for k in known])
        raise NotForPolicyError(message, rule="unknown parameter")
    changed = config_tree.with_value(parts["policy"], change.key, change.value, add=True)
    return {**parts, "policy": changed}


def phrase(change: Change) -> str:
    """Write ``policy.interval_s=60``."""
    return change.word
