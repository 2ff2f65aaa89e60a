"""Mutation testing of the kernels: ``make mutants SAMPLE=200``, without the JIT.

Each mutant changes one place of ``sim/engine/kernels``, in a process of its own that is forked for
it; no file is written. Random worlds judge it first, whose outcomes the naive simulator gave once
beforehand, then the tests of the engine: of both only those that reach its line (`reach`). A mutant
that takes too long is caught, too: it no longer ends. Survivors are listed with file, line and
change. `equivalent.toml` explains those that change no result, a line of reason each; they are not
counted.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim.base.errors import InputError, PolicyError
from sim.base.jit import JIT, specialised
from tests.mutants.mutate import Mutant, mutants
from tests.mutants.reach import (
    KERNELS,
    ROOT,
    Reach,
    end_after,
    reach_of_calls,
    reach_of_tests,
    run_tests,
)
from tests.sim.engine.compared import kernel_outcome, reference_outcome
from tests.sim.engine.outcome import differences
from tests.sim.engine.random_worlds import draw

EXPLAINED = Path(__file__).parent / "equivalent.toml"
WORLD_LIMIT_S = 20
"""Longest CPU time of a world under a mutant; without one it takes a twentieth of a second."""

Check = Callable[[Mutant], str]
"""Runs something that a mutant may break; returns how it noticed a fault, "" if it did not."""


class World(NamedTuple):
    """A random world and the naive simulator's outcome of it."""

    number: int
    drawn: dict[str, Any]
    expected: dict[str, Any]


def main(arguments: list[str]) -> int:
    """Judge a sample of mutants; return 1 if fewer than the wanted share are caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    parser.add_argument("--worlds", type=int, default=1500, help="(default: %(default)s)")
    parser.add_argument("--files", nargs="*", default=[], metavar="NAME", help="of these kernels")
    parser.add_argument("--jobs", type=int, default=2, help="side by side (default: %(default)s)")
    parser.add_argument("--no-tests", action="store_true", help="judge by worlds alone")
    parser.add_argument("--wanted", type=float, default=0.95, help="share (default: %(default)s)")
    parsed = parser.parse_args(arguments)
    if JIT:
        parser.error("kernels are changed as plain Python: set NUMBA_DISABLE_JIT=1")
    every = list(_every(parsed.files))
    chosen = random.Random(parsed.seed).sample(every, min(parsed.sample, len(every)))
    print(f"{len(chosen)} of {len(every):,} mutants, seed {parsed.seed}", flush=True)
    worlds = list(random_worlds(parsed.worlds))
    reach = reach_of_calls([lambda world=world: notice_of(world) for world in worlds])
    survivors = judge(chosen, lambda mutant: by_worlds(worlds, reach, mutant), parsed.jobs)
    _print_reach(survivors, reach, "worlds")
    if not parsed.no_tests:
        tests = reach_of_tests()
        survivors = judge(survivors, lambda mutant: by_tests(tests, mutant), parsed.jobs)
        _print_reach(survivors, tests, "tests")
    return report(chosen, survivors, parsed.wanted)


def _print_reach(survivors: list[Mutant], reach: Reach, judges: str) -> None:
    for mutant in survivors:
        print(f"{len(reach.names_at(mutant))} {judges} reach {mutant}", flush=True)


def judge(chosen: Iterable[Mutant], check: Check, n_jobs: int) -> list[Mutant]:
    """Return the mutants that a check does not notice, in their order; print each."""
    ordered = list(chosen)
    waiting = ordered[::-1]
    notices: dict[Mutant, str] = {}
    running: dict[int, tuple[Mutant, int]] = {}
    while waiting or running:
        if waiting and len(running) < n_jobs:
            mutant = waiting.pop()
            pid, read = _fork(lambda mutant=mutant: apply(mutant) or check(mutant))
            running[pid] = mutant, read
            continue
        pid, status = os.wait()
        mutant, read = running.pop(pid)
        notices[mutant] = _notice(read, status)
        mark = "caught  " if notices[mutant] else "SURVIVES"
        print(f"{mark} {mutant}  {notices[mutant]}", flush=True)
    return [mutant for mutant in ordered if not notices[mutant]]


def _fork(check: Callable[[], str]) -> tuple[int, int]:
    """Begin a check in a forked process; return the process and where its answer is read."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            notice = check()
        except BaseException as error:  # a mutant may raise anything
            notice = repr(error)
        os.write(write, notice.encode()[:200])
        os._exit(0)
    os.close(write)
    return pid, read


def _notice(read: int, status: int) -> str:
    with os.fdopen(read, "rb") as pipe:
        notice = pipe.read().decode("utf-8", "replace")
    return notice or ("no end in time" if os.WIFSIGNALED(status) else "")


def apply(mutant: Mutant) -> None:
    """Put a mutant's code into the functions of its module, which other modules hold, too."""
    module = import_module(".".join(mutant.file.with_suffix("").parts))  # some come late
    changed: dict[str, Any] = {**vars(module)}
    exec(compile(mutant.source, str(mutant.file), "exec"), changed)
    for name, function in vars(module).items():
        if getattr(function, "__module__", None) == module.__name__ and hasattr(
            function, "__code__"
        ):
            function.__code__ = changed[name].__code__
    specialised.cache_clear()


def _every(names: Iterable[str]) -> Iterator[Mutant]:
    for file in sorted(KERNELS.rglob("*.py")):
        if file.stem in names or (not names and file.stem != "conserve"):
            yield from mutants(file.relative_to(ROOT), file.read_text())


def random_worlds(n_worlds: int) -> Iterator[World]:
    """Yield worlds that the engine accepts, each with the naive simulator's outcome."""
    drawn = number = 0
    while drawn < n_worlds:
        world = draw(np.random.default_rng([1, number]))
        number += 1
        try:
            kernel_outcome(world)
        except (InputError, PolicyError):
            continue
        yield World(drawn, world, reference_outcome(world))
        drawn += 1


def notice_of(world: World) -> str:
    """Return how the kernel's outcome of a world differs from the naive simulator's."""
    differing = differences(kernel_outcome(world.drawn), world.expected)
    return f"world {world.number}: {', '.join(differing)}" if differing else ""


def by_worlds(worlds: list[World], reach: Reach, mutant: Mutant) -> str:
    """Check a mutant by the worlds that reach its line, each within its time."""
    for number in reach.names_at(mutant):
        end_after(WORLD_LIMIT_S)  # which counts as noticed
        notice = notice_of(worlds[int(number)])
        if notice:
            return notice
    return ""


def by_tests(reach: Reach, mutant: Mutant) -> str:
    """Check a mutant by the tests that reach its line, each within five times its time."""
    names = reach.names_at(mutant)
    return run_tests(names, {name: int(30 + 5 * reach.seconds[name]) for name in names})


def report(chosen: list[Mutant], survivors: list[Mutant], min_share: float) -> int:
    """Print survivors, those that are explained apart, and the share; return 1 if it is less."""
    rows, alive = explanations(), []
    for mutant in survivors:
        reason = next((row["reason"] for row in rows if explains(row, mutant)), "")
        if reason:
            print(f"equivalent: {mutant}  ({reason})")
        else:
            alive.append(mutant)
    for mutant in alive:
        print(f"survives: {mutant}")
    n_equivalent = len(survivors) - len(alive)
    n = len(chosen) - n_equivalent
    share = (n - len(alive)) / n if n else 1.0
    print(
        f"{n - len(alive)} of {n} mutants caught ({share:.1%}), {len(alive)} survive, "
        f"{n_equivalent} change no result (equivalent.toml)"
    )
    return int(share < min_share)


def explanations() -> list[dict[str, str]]:
    """Return the entries of `equivalent.toml`, which says what they name."""
    rows: list[dict[str, str]] = tomllib.loads(EXPLAINED.read_text())["equivalent"]
    return rows


def explains(row: dict[str, str], mutant: Mutant) -> bool:
    """Tell whether an entry names a mutant: by its place, or as one of a kind."""
    if "kind" in row:
        return re.fullmatch(row["kind"], f"{mutant.text} # {mutant.change}") is not None
    file = str((ROOT / mutant.file).relative_to(KERNELS))
    return (row["file"], row["line"], row["change"]) == (file, mutant.text, mutant.change)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
