"""All benchmarks, one after the other: ``python -m benchmarks``, or those that are named."""

from __future__ import annotations

import subprocess
import sys

ALL = (
    "kernel",
    "maths",
    "machines",
    "sweep",
    "scale",
    "synth",
    "dags",
    "dagps",
    "describe",
    "loading",
    "bounds",
    "slearn",
    "lineage",
    "wing",
    "jockey",
)
WHEN_NAMED = ("soak", "dagps_demands")
"""The one needs root, and takes ten minutes; the other measures no speed."""


def main(names: list[str]) -> int:
    """Run each in a process of its own, so that none disturbs another's memory or caches."""
    known = (*ALL, *WHEN_NAMED)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    codes = [
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode
        for name in names or ALL
    ]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
