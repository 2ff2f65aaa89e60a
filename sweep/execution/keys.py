"""Keys of cells: digests of all that a cell's numbers follow from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sweep.execution.made import wanted_by
from sweep.grid.config_tree import canonical

if TYPE_CHECKING:
    from sweep.store.cell import CellSpec


def named(policy: Mapping[str, Any]) -> str:
    """Write what of a policy stands in a key: not where its module lies."""
    return canonical({"name": policy["name"], "params": policy["params"]})


def key_of(
    policy: str, cluster: str, measure: str, capacity: float, seed: int, workload: str, sources: str
) -> str:
    """SHA-256 of all that a cell's numbers follow from: its configuration and two digests.

    Parts come as canonical texts and stand in the order of names.
    """
    numbers = canonical(capacity), canonical(seed)
    digest: str = digest_of(policy, cluster, measure, *numbers, workload, sources).hexdigest()
    return digest


def digest_of(
    policy: str, cluster: str, measure: str, capacity: str, seed: str, workload: str, sources: str
) -> Any:
    """Return the digest of a key, numbers too as canonical texts."""
    content = (
        f'{{"capacity":{capacity},"cluster":{cluster},"measure":{measure},'
        f'"policy":{policy},"seed":{seed},"sources":"{sources}","workload":"{workload}"}}'
    )
    return hashlib.sha256(content.encode())


def key_by_content(spec: CellSpec, workload: str) -> str:
    """Return the key of a cell whose cluster stands unsized, by the digest of its workload."""
    cluster, capacity = json.loads(wanted_by(spec) or "")
    parts = named(spec.policy), canonical(cluster), canonical(spec.measure)
    return key_of(*parts, capacity, spec.seed, workload, spec.sources)
