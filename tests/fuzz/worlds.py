"""Compare the kernel with the naive simulator on random worlds: ``python -m tests.fuzz.worlds``.

Worlds mix all mechanisms (`tests.sim.engine.random_worlds`), drawn from a fresh seed, or from
``--seed`` again. A world that fails is reduced and kept in ``tests/sim/engine/worlds``, where the
tests replay it. The last lines say how many were equal, at which commit and for which semantics:
the digest of the naive simulator, which changes when what a run means does.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests" / "sim" / "engine" / "worlds"


def main(arguments: list[str]) -> int:
    """Run worlds for some seconds; return 1 if any fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.worlds", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, help="(default: a fresh one)")
    parser.add_argument("--keep", type=Path, default=KEPT, help="folder of worlds that fail")
    parsed = parser.parse_args(arguments)
    # with accounts that are checked after each instant;
    # a few wide variants of compiled kernels, as in the tests; any variant as plain Python
    plain = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    os.environ.setdefault("SIM_VARIANTS", "exact" if plain else "wide")
    os.environ.setdefault("SIM_CHECKS", "1")
    seed = secrets.randbits(32) if parsed.seed is None else parsed.seed
    counts = run(seed, parsed.seconds, parsed.keep)
    print("\n".join(report(counts, seed)), flush=True)
    return int(bool(counts.failed))


@dataclass
class Counts:
    """Numbers of worlds: equal ones by mechanism and pair, refused ones by reason, failed ones."""

    equal: int = 0
    mechanisms: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)


def run(seed: int, seconds: float, keep: Path) -> Counts:
    """Compare worlds until the time is over; keep those that fail in a folder."""
    # here, as the environment decides how kernels are compiled
    import numpy as np

    from tests.sim.engine.compared import compare
    from tests.sim.engine.random_worlds import draw

    counts, end, printed = Counts(), time.monotonic() + seconds, time.monotonic()
    for number in itertools.count():
        if time.monotonic() > end or len(counts.failed) >= 20:
            return counts
        if time.monotonic() > printed + 30:
            printed = time.monotonic()
            print(f"{counts.equal:,} worlds equal, {len(counts.failed)} not", flush=True)
        world = draw(np.random.default_rng([seed, number]))
        compared = compare(world)
        if compared.refused:
            counts.refused[_reason(compared.refused)] += 1
        elif compared.differs:
            file = keep_world(world, keep, f"world {number} of seed {seed}")
            counts.failed.append(f"{file}: {', '.join(compared.differs)}")
            print(counts.failed[-1], flush=True)
        else:
            counts.equal += 1
            counts.mechanisms.update(world["mechanisms"])
            counts.pairs.update(itertools.combinations(world["mechanisms"], 2))
    raise AssertionError("numbers do not end")


def keep_world(world: dict[str, Any], folder: Path, origin: str) -> Path:
    """Reduce a world that fails and write it to a file of its own; return the file."""
    from sim.base.files import write_bytes
    from tests.sim.engine.compared import compare
    from tests.sim.engine.shrink import shrink

    smaller = shrink(world, lambda candidate: bool(compare(candidate).differs))
    origin_and_difference = {
        "found": f"{origin}, commit {commit()}",
        "differs": list(compare(smaller).differs),
    }
    content = (json.dumps(origin_and_difference | smaller, indent=1) + "\n").encode()
    file = folder / f"{hashlib.sha256(content).hexdigest()[:12]}.json"
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(file, content)
    return file


def report(counts: Counts, seed: int) -> list[str]:
    """Return the lines that tell what was run."""
    from tests.sim.engine.random_worlds import MECHANISMS

    n_refused = sum(counts.refused.values())
    lines = [f"{n:>9,} refused: {reason}" for reason, n in counts.refused.most_common()]
    rarest = min(MECHANISMS, key=lambda name: counts.mechanisms[name])
    pairs = list(itertools.combinations(sorted(MECHANISMS), 2))
    met = sum(counts.pairs[pair] > 0 for pair in pairs)
    lines.append(
        f"each mechanism in at least {counts.mechanisms[rarest]:,} worlds ({rarest}); "
        f"{met} of {len(pairs)} pairs of mechanisms met"
    )
    lines += [f"failed: {text}" for text in counts.failed]
    lines.append(
        f"{counts.equal:,} worlds equal, {len(counts.failed)} not, {n_refused:,} refused by the "
        f"engine; seed {seed}, commit {commit()}, semantics {semantics()}"
    )
    return lines


def commit() -> str:
    """Return the short name of the checkout's commit, with a + if files have changed since."""
    git = ["git", "-C", str(ROOT)]
    named = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    changed = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return (named.stdout.strip() or "unknown") + ("+" if changed.stdout else "")


def semantics() -> str:
    """Return the digest of the meaning of the naive simulator, without comments and docstrings."""
    from sim.base.sources import digest_table, module_meaning, modules

    names = sorted(f"tests.sim.engine.{file.stem}" for file in KEPT.parent.glob("reference*.py"))
    by_name = {name: modules.find(name) for name in names}
    return digest_table({name: module_meaning(by_name[name]).digest for name in names})[:12]


def _reason(text: str) -> str:
    """Return a refusal's first part without names and numbers, so that like ones are counted."""
    return re.sub(r"'[^']*'|\d+(\.\d+)?", "#", text).partition(";")[0][:100]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
