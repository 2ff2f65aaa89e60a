"""Mutation testing of the kernels: ``make mutants SAMPLE=200``, without the JIT.

Each mutant changes one place of ``sim/engine/kernels``, in a process of its own that is forked for
it; no file is written. Random worlds judge it first, whose outcomes the naive simulator gave once
beforehand, then the tests of the engine. A mutant that takes too long is caught, too: it no longer
ends. Survivors are listed with file, line and change. `equivalent.toml` explains those that change
no result, a line of reason each; they are not counted.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sim.base.errors import InputError, PolicyError
from sim.base.jit import JIT, specialised
from tests.mutants.mutate import Mutant, mutants
from tests.sim.engine.compared import kernel_outcome, reference_outcome
from tests.sim.engine.outcome import differences
from tests.sim.engine.random_worlds import draw

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "sim" / "engine" / "kernels"
EXPLAINED = Path(__file__).parent / "equivalent.toml"
TESTS = (
    *("tests/sim/engine", "tests/sim/metrics/test_batches.py", "-q", "-x"),
    *("--ignore=tests/sim/engine/test_worlds.py",),
    *("-m", "not slow", "-p", "no:cacheprovider", "--no-header", "--tb=no"),
    *("-k", "not pool_of_slots and not in_a_crowd and not pools_of_their_own"),
)
"""Tests of the engine, without three whose crowds take half of the time."""

Check = Callable[[], str]
"""Runs something; returns how it noticed a fault, "" if it did not."""


def main(arguments: list[str]) -> int:
    """Judge a sample of mutants; return 1 if fewer than the wanted share are caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    parser.add_argument("--worlds", type=int, default=1500, help="(default: %(default)s)")
    parser.add_argument("--files", nargs="*", default=[], metavar="NAME", help="of these kernels")
    parser.add_argument("--no-tests", action="store_true", help="judge by worlds alone")
    parser.add_argument("--wanted", type=float, default=0.95, help="share (default: %(default)s)")
    parsed = parser.parse_args(arguments)
    if JIT:
        parser.error("kernels are changed as plain Python: set NUMBA_DISABLE_JIT=1")
    every = list(_every(parsed.files))
    chosen = random.Random(parsed.seed).sample(every, min(parsed.sample, len(every)))
    print(f"{len(chosen)} of {len(every):,} mutants, seed {parsed.seed}", flush=True)
    outcomes = _outcomes(parsed.worlds)
    survivors = judge(chosen, lambda: _by_worlds(outcomes))
    if not parsed.no_tests:
        survivors = judge(survivors, _by_tests)
    return report(chosen, survivors, parsed.wanted)


def judge(chosen: Iterable[Mutant], check: Check) -> list[Mutant]:
    """Return the mutants that a check does not notice; print each."""
    begin = time.monotonic()
    notice = forked(check, limit_s=3600)
    if notice:
        raise SystemExit(f"a fault is noticed without a mutant: {notice}")
    limit_s = int(30 + 5 * (time.monotonic() - begin))
    print(f"time limit of a mutant: {limit_s} s", flush=True)
    alive = []
    for mutant in chosen:
        notice = forked(lambda mutant=mutant: apply(mutant) or check(), limit_s)
        print(f"{'caught  ' if notice else 'SURVIVES'} {mutant}  {notice}", flush=True)
        if not notice:
            alive.append(mutant)
    return alive


def forked(check: Check, limit_s: int) -> str:
    """Run a check in a forked process, at most for some seconds; return how it noticed a fault."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(limit_s)
        os.close(read)
        try:
            notice = check()
        except BaseException as error:  # a mutant may raise anything
            notice = repr(error)
        os.write(write, notice.encode()[:200])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        notice = pipe.read().decode("utf-8", "replace")
    _, status = os.waitpid(pid, 0)
    return notice or (f"no end within {limit_s} s" if os.WIFSIGNALED(status) else "")


def apply(mutant: Mutant) -> None:
    """Put a mutant's code into the functions of its module, which other modules hold, too."""
    module = sys.modules[".".join(mutant.file.with_suffix("").parts)]
    changed: dict[str, Any] = {**vars(module)}
    exec(compile(mutant.source, str(mutant.file), "exec"), changed)
    for name, function in vars(module).items():
        if getattr(function, "__module__", None) == module.__name__ and hasattr(
            function, "__code__"
        ):
            function.__code__ = changed[name].__code__
    specialised.cache_clear()


def _every(names: Iterable[str]) -> Iterable[Mutant]:
    for file in sorted(KERNELS.glob("*.py")):
        if file.stem in names or (not names and file.stem != "conserve"):
            yield from mutants(file.relative_to(ROOT), file.read_text())


def _outcomes(n_worlds: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return worlds that the engine accepts, each with the naive simulator's outcome."""
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    number = 0
    while len(pairs) < n_worlds:
        world = draw(np.random.default_rng([1, number]))
        number += 1
        try:
            kernel_outcome(world)
        except (InputError, PolicyError):
            continue
        pairs.append((world, reference_outcome(world)))
    return pairs


def _by_worlds(outcomes: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    for number, (world, expected) in enumerate(outcomes):
        differing = differences(kernel_outcome(world), expected)
        if differing:
            return f"world {number}: {', '.join(differing)}"
    return ""


def _by_tests() -> str:
    os.chdir(ROOT)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    failed: list[str] = []

    class Failures:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    code = pytest.main(list(TESTS), plugins=[Failures()])
    return failed[0] if failed else f"pytest ends with {code}" if code else ""


def report(chosen: list[Mutant], survivors: list[Mutant], min_share: float) -> int:
    """Print survivors, those that are explained apart, and the share; return 1 if it is less."""
    rows = tomllib.loads(EXPLAINED.read_text())["equivalent"]
    explained = {(row["file"], row["line"], row["change"]): row["reason"] for row in rows}
    equivalent = [mutant for mutant in survivors if key(mutant) in explained]
    alive = [mutant for mutant in survivors if key(mutant) not in explained]
    for mutant in equivalent:
        print(f"equivalent: {mutant}  ({explained[key(mutant)]})")
    for mutant in alive:
        print(f"survives: {mutant}")
    n = len(chosen) - len(equivalent)
    share = (n - len(alive)) / n if n else 1.0
    print(
        f"{n - len(alive)} of {n} mutants caught ({share:.1%}), {len(alive)} survive, "
        f"{len(equivalent)} change no result (equivalent.toml)"
    )
    return int(share < min_share)


def key(mutant: Mutant) -> tuple[str, str, str]:
    """Return the entry of a mutant in `equivalent.toml`: file, text of its line, change."""
    line = (ROOT / mutant.file).read_text().splitlines()[mutant.line - 1].strip()
    return mutant.file.name, line, mutant.change


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
