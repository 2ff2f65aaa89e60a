"""Fuzz the readers with atheris, the kernel with worlds: ``python -m tests.fuzz.run swf worlds``.

Each target runs in its own process, guided by code coverage. Inputs that cause faults are written
to ``results/fuzz/<target>``, beside the corpus, from which the next run continues. A target that
executed no input failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "fuzz"
MEMORY_MB, INPUT_TIMEOUT_S, MAX_BYTES = 2048, 20, 4096
"""Limits of an input; one may be as large as the target's samples, which are read in whole."""
SEEDED = {"worlds": "tests.fuzz.worlds"}
"""Targets that are no inputs of a reader: a module each, which draws its cases from a seed."""


def main(arguments: list[str]) -> int:
    """Fuzz one target after the other; return 1 if any has a fault, or ran or read no input."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all by default")
    parser.add_argument("--seconds", type=int, default=60, help="for each (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="default: %(default)s")
    parser.add_argument("--counts", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(arguments)
    results = arguments.results.resolve()
    if arguments.counts:
        _fuzz(arguments.targets[0], arguments.seconds, results, arguments.counts)
    from tests.fuzz.targets import TARGETS

    names = (*TARGETS, *SEEDED)
    unknown = [name for name in arguments.targets if name not in names]
    if unknown:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(names)}")
    n_executed, faults, idle, blunt = 0, [], [], []
    for name in arguments.targets or names:
        print(f"== {name}", flush=True)
        if name in SEEDED:
            words = [sys.executable, "-m", SEEDED[name], "--seconds", str(arguments.seconds)]
            faults += [name] if subprocess.run(words, cwd=ROOT, check=False).returncode else []
            continue
        code, n_inputs, n_read = _run(name, arguments.seconds, results)
        print(f"== {name}: {n_inputs:,} inputs executed, of which {n_read:,} were read", flush=True)
        n_executed += n_inputs
        if not n_inputs:
            idle.append(name)
        elif code:
            faults.append(name)
        elif not n_read:
            blunt.append(name)
    parts = [f"{n_executed:,} inputs executed"]
    if idle:
        parts.append(f"none by {', '.join(idle)}, which could not start")
    if blunt:
        parts.append(f"none read by {', '.join(blunt)}, though its samples can be")
    parts.append(f"faults in {', '.join(faults)}: see {results}" if faults else "no faults")
    print("; ".join(parts))
    return int(bool(faults or idle or blunt))


def _run(name: str, seconds: int, results: Path) -> tuple[int, int, int]:
    """Fuzz one target in a process of its own; return its exit code, inputs executed and read.

    Kernels are plain Python there: numba can't compile functions that atheris has instrumented,
    and their branches guide it, too.
    """
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        counts = Path(folder) / "counts"
        np.zeros(2, np.int64).tofile(counts)  # mapped: it outlives a process that is killed
        words = [sys.executable, "-m", "tests.fuzz.run", name, "--seconds", str(seconds)]
        words += ["--results", str(results), "--counts", str(counts)]
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
        code = subprocess.run(words, cwd=ROOT, env=environment, check=False).returncode
        n_inputs, n_read = np.fromfile(counts, np.int64).tolist()
        return code, n_inputs, n_read


def _fuzz(name: str, seconds: int, results: Path, counts: Path) -> None:
    """Fuzz one target in this process, with files beside `counts`; the process ends with it.

    It ends between two inputs, by itself: libFuzzer would run the exit handlers of C++, where Arrow
    waits without end for a thread of its own that waits for Python.
    """
    import atheris

    with atheris.instrument_imports(include=["sim.traces", "policies.wing.lineage", "sweep"]):
        from tests.fuzz.targets import TARGETS, check

    target, folder = TARGETS[name], results / name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for position, sample in enumerate(target.samples):
        (corpus / f"sample-{position}").write_bytes(sample)
    scratch = counts.parent / "files"
    scratch.mkdir()
    executed = np.memmap(counts, np.int64, "r+")

    end_s = time.monotonic() + seconds

    def run_target(content: bytes) -> None:
        if time.monotonic() > end_s:
            sys.stdout.flush()
            os._exit(0)
        executed[0] += 1
        executed[1] += check(target, content, scratch) == "read"

    options = [
        f"-rss_limit_mb={MEMORY_MB}",
        f"-timeout={INPUT_TIMEOUT_S}",
        f"-max_len={max(MAX_BYTES, *(len(sample) for sample in target.samples))}",
        f"-artifact_prefix={folder}/",
        "-verbosity=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], run_target)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
