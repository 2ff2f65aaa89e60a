"""Study: the ledger of a search, a line an evaluation; the test seeds are counted in it.

Whoever looks at the test seeds to choose among candidates has trained on them. So each question for
them is entered before it is answered, and the answer says how many there were.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TRAIN, ASKED, FINAL = "train", "asked", "final"


class Study:
    """A file of JSON lines, appended under a lock."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def append(self, kind: str, **entry: Any) -> int:
        """Append an entry; return the number of entries of its kind and test set by now."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = json.dumps({"time": now, "kind": kind, **_finite(entry)})
        with self.path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())
            return self._count(kind, entry.get("test"))

    def count(self, kind: str, test: str | None = None) -> int:
        """Return the number of entries of a kind, of one test set."""
        return self._count(kind, test) if self.path.exists() else 0

    def _count(self, kind: str, test: str | None) -> int:
        n = 0
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # cut off as a machine went down
                continue
            n += entry.get("kind") == kind and test in (None, entry.get("test"))
        return n


def _finite(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with null for NaN, which JSON has not."""
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in entry.items()}
