"""Heartbeats of long cells: workers post, the driver reads, by Ray's internal key-value store.

The store is not public. A queue or an actor, which are, would be one more process for each sweep,
and gone with its node (decision 18).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

_NAMESPACE = b"sweep"
MAX_NAMED = 3


def post(name: str, entry: Mapping[str, Any] | None) -> None:
    """Write an entry, replacing an older one; None deletes it."""
    from ray.experimental import internal_kv

    if entry is None:
        internal_kv._internal_kv_del(name, namespace=_NAMESPACE)
    else:
        internal_kv._internal_kv_put(name, json.dumps(entry), overwrite=True, namespace=_NAMESPACE)


def read(prefix: str) -> dict[str, dict[str, Any]]:
    """Return the entries whose names begin with a prefix; empty if the store can't be reached."""
    entries = {}
    with contextlib.suppress(Exception):  # heartbeats are optional information
        from ray.experimental import internal_kv

        for name in internal_kv._internal_kv_list(prefix, namespace=_NAMESPACE):
            text = internal_kv._internal_kv_get(name, namespace=_NAMESPACE)
            if text is not None:
                entries[name.decode()] = json.loads(text)
    return entries


def clear(prefix: str) -> None:
    """Delete the entries whose names begin with a prefix."""
    with contextlib.suppress(Exception):
        for name in read(prefix):
            post(name, None)


def describe(entries: Iterable[Mapping[str, Any]], names: Mapping[str, str]) -> str:
    """Describe the longest cells, given the names of cells in flight by key; empty if none is."""
    # finished cells may still be posted
    running = [(e["seconds"], names[e["key"]]) for e in entries if e["key"] in names]
    texts = [f"{name} for {_duration(seconds)}" for seconds, name in sorted(running)[::-1]]
    rest = f" and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return f"still running: {', '.join(texts[:MAX_NAMED])}{rest}" if texts else ""


def _duration(seconds: float) -> str:
    return f"{seconds // 60:.0f} min" if seconds >= 60 else f"{seconds // 10 * 10:.0f} s"
