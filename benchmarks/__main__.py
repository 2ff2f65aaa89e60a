"""Run all benchmarks, or the named ones: ``python -m benchmarks [NAME ...]``."""

from __future__ import annotations

import subprocess
import sys

ALL = (
    "kernel",
    "batches",
    "maths",
    "machines",
    "elastic",
    "gangs",
    "site",
    "policies",
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
    "evaluate",
    "outside",
)
ON_REQUEST = ("soak", "nodes", "dagps_bounds", "dagps_demands", "whole_trace")
"""Run only if named: two need root and take ten minutes; two measure no speed; the last takes half
an hour, 8 GB and a real sample."""


def main(names: list[str]) -> int:
    """Run each benchmark in its own process, so that none affects another's memory or caches."""
    known = (*ALL, *ON_REQUEST)
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
