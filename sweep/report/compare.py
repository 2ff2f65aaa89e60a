"""Two sweeps side by side: what was asked differently, and which cells came out differently."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sim.base.errors import InputError
from sim.base.masking import mask_tree
from sweep.grid import config_tree
from sweep.stats.arrange import AXES, NOT_METRICS, text
from sweep.stats.metric_format import in_order
from sweep.store.folder import SweepFolder

SAME, CHANGED, ONLY_A, ONLY_B = "same", "changed", "only in A", "only in B"
FAILS, MENDED, FAILS_TOO = "fails in B", "failed in A", "fails in both"
_NOT_CONFIG = frozenset(("sweep", "words", "config_dirs"))
_NOT_PROVENANCE = frozenset(("command", "seeds"))


@dataclass(frozen=True)
class Pair:
    """A cell as it is in one sweep or both."""

    labels: Mapping[str, str]  # what it is matched by
    # `SAME` (every bit of every metric), `CHANGED`, `ONLY_A`, `ONLY_B`, or which of them failed
    verdict: str
    same_key: bool  # whether both are one cell of the cache
    # metrics that differ: in A, in B; NaN where one has none
    changes: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Comparison:
    """What `compare` finds; `config` and `provenance` are (what, in A, in B)."""

    a: str
    b: str
    config: list[tuple[str, str, str]]
    provenance: list[tuple[str, str, str]]
    labels: list[str]
    pairs: list[Pair]

    @property
    def counts(self) -> dict[str, int]:
        """Cells by verdict, those that occur."""
        counted = Counter(pair.verdict for pair in self.pairs)
        order = (SAME, CHANGED, FAILS, MENDED, FAILS_TOO, ONLY_A, ONLY_B)
        return {verdict: counted[verdict] for verdict in order if counted[verdict]}

    @property
    def n_same_by_other_means(self) -> int:
        """Cells with the same bits though their sources, inputs or configuration differ."""
        return sum(pair.verdict == SAME and not pair.same_key for pair in self.pairs)


def compare(a: SweepFolder, b: SweepFolder) -> Comparison:
    """Match the cells of two sweeps by policy, trace, capacity, seed and whatever is swept.

    A key that only one of them sweeps is looked up in the other's configuration of the cell where
    it stands there, so that sweeping one more parameter does not part all cells.
    """
    configs = a.config(), b.config()
    swept = list(dict.fromkeys((*configs[0]["swept"], *configs[1]["swept"])))
    labels = [*AXES, *swept]
    mine, theirs = (_by_label(folder, labels) for folder in (a, b))
    order = [*mine, *(key for key in theirs if key not in mine)]
    pairs = [
        _pair(dict(zip(labels, key, strict=True)), mine.get(key), theirs.get(key)) for key in order
    ]
    facts = [_provenance(folder) for folder in (a, b)]
    return Comparison(
        a.sweep,
        b.sweep,
        _differences(*({k: v for k, v in c.items() if k not in _NOT_CONFIG} for c in configs)),
        _differences(*facts),
        labels,
        pairs,
    )


Labels = tuple[str, ...]


def _by_label(folder: SweepFolder, labels: Sequence[str]) -> dict[Labels, dict[str, Any]]:
    rows: dict[Labels, dict[str, Any]] = {}
    for row in folder.cells().to_pylist():
        key = tuple(text(row[name] if name in row else _configured(row, name)) for name in labels)
        if key in rows:
            raise InputError(f"{folder.sweep} has several cells {', '.join(filter(None, key))}")
        rows[key] = row
    return rows


def _configured(row: Mapping[str, Any], name: str) -> Any:
    """Value of a key in a cell's own configuration; None if it is not there."""
    value: Any = json.loads(row.get("config") or "{}")
    head, *rest = name.split(".")
    for part in [head, *(["params"] if head == "policy" else []), *rest]:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, str | int | float | None) else json.dumps(value)


def _pair(
    labels: Mapping[str, str], a: Mapping[str, Any] | None, b: Mapping[str, Any] | None
) -> Pair:
    if a is None or b is None:
        return Pair(labels, ONLY_B if a is None else ONLY_A, False, {})
    same_key = a["key"] == b["key"]
    failed = (a["status"] == "failed", b["status"] == "failed")
    if any(failed):
        verdict = FAILS_TOO if all(failed) else MENDED if failed[0] else FAILS
        return Pair(labels, verdict, same_key, {})
    values = [_metrics(row, labels) for row in (a, b)]
    names = in_order(list(dict.fromkeys((*values[0], *values[1]))))
    changes = {
        name: ends
        for name in names
        if repr((ends := (values[0].get(name, math.nan), values[1].get(name, math.nan)))[0])
        != repr(ends[1])
    }
    return Pair(labels, CHANGED if changes else SAME, same_key, changes)


def _metrics(row: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, float]:
    skip = {*NOT_METRICS, *labels}
    return {
        name: float(value)
        for name, value in row.items()
        if name not in skip and isinstance(value, float)
    }


def _provenance(folder: SweepFolder) -> dict[str, Any]:
    facts = {k: v for k, v in folder.provenance().items() if k not in _NOT_PROVENANCE}
    inputs: dict[str, list[str]] = {}
    for workload in facts.pop("inputs", []):
        inputs.setdefault(workload["trace"], []).append(workload["digest"][:12])
    return facts | {"inputs": inputs}


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Leaves that differ, in the order of A, then of B; secrets masked."""
    mine, theirs = _leaves(mask_tree(a)), _leaves(mask_tree(b))
    return [
        (key, mine.get(key, ""), theirs.get(key, ""))
        for key in dict.fromkeys((*mine, *theirs))
        if mine.get(key, "") != theirs.get(key, "")
    ]


def _leaves(tree: Mapping[str, Any]) -> dict[str, str]:
    """Values by dotted key, as texts."""
    return {
        key: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in config_tree.leaves(tree)
        if value is not None
    }
