"""Where workers say which cell has run for long, and the driver reads it: Ray's key-value store.

It is an inside of Ray's. What is public, a queue or an actor of one's own, is a process more for
each sweep, and gone with its node (decision 18).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

_ROOM = b"sweep"


def post(name: str, entry: Mapping[str, Any] | None) -> None:
    """Write an entry, in place of the one that was there; None takes it away."""
    from ray.experimental import internal_kv

    if entry is None:
        internal_kv._internal_kv_del(name, namespace=_ROOM)
    else:
        internal_kv._internal_kv_put(name, json.dumps(entry), overwrite=True, namespace=_ROOM)


def read(prefix: str) -> dict[str, dict[str, Any]]:
    """Return the entries whose names begin so; none where they can't be had."""
    found = {}
    with contextlib.suppress(Exception):  # it only adds to what is known
        from ray.experimental import internal_kv

        for name in internal_kv._internal_kv_list(prefix, namespace=_ROOM):
            text = internal_kv._internal_kv_get(name, namespace=_ROOM)
            if text is not None:
                found[name.decode()] = json.loads(text)
    return found


def clear(prefix: str) -> None:
    """Take all those entries away."""
    with contextlib.suppress(Exception):
        for name in read(prefix):
            post(name, None)
