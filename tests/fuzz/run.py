"""Fuzz the readers with atheris: ``python -m tests.fuzz.run --seconds 60 swf tpc``.

Each target runs in its own process, guided by code coverage. Inputs that cause faults are written
to ``results/fuzz/<target>``, beside the corpus, from which the next run continues.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "fuzz"
MEMORY_MB, INPUT_TIMEOUT_S, MAX_BYTES = 2048, 20, 4096


def main(arguments: list[str]) -> int:
    """Fuzz one target after the other; return 1 if any has a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all by default")
    parser.add_argument("--seconds", type=int, default=60, help="for each (default: %(default)s)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(arguments)
    if arguments.here:
        _fuzz(arguments.targets[0], arguments.seconds)
    from tests.fuzz.targets import TARGETS

    unknown = [name for name in arguments.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    wrong = []
    for name in arguments.targets or TARGETS:
        print(f"== {name}", flush=True)
        seconds = str(arguments.seconds)
        words = [sys.executable, "-m", "tests.fuzz.run", "--here", "--seconds", seconds]
        if subprocess.run([*words, name], cwd=ROOT, check=False).returncode:
            wrong.append(name)
    print(f"faults in {', '.join(wrong)}: see {RESULTS}" if wrong else "no faults")
    return int(bool(wrong))


def _fuzz(name: str, seconds: int) -> None:
    """Fuzz one target in this process; atheris ends the process."""
    import atheris

    with atheris.instrument_imports(include=["sim.traces", "sim.lineage", "sweep"]):
        from tests.fuzz.targets import TARGETS, check

    target, folder = TARGETS[name], RESULTS / name
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for position, sample in enumerate(target.samples):
        (corpus / f"sample-{position}").write_bytes(sample)
    scratch = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))

    def run_target(content: bytes) -> None:
        check(target, content, scratch)

    options = [
        f"-max_total_time={seconds}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-timeout={INPUT_TIMEOUT_S}",
        f"-max_len={MAX_BYTES}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        "-verbosity=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], run_target)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
