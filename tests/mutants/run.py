"""Mutation testing of the kernels: ``make mutants SAMPLE=120``, without the JIT.

Each mutant changes one place of ``sim/engine/kernels``, in a process of its own that is forked for
it; no file is written. Random worlds judge it first, as long as ``--seconds``: those of a pool,
whose outcomes the naive simulator gave once beforehand, that reach its line (`reach`), then fresh
ones with the mechanisms of these (`worlds`). Then the engine's tests that reach its line judge it,
the shortest first, as many as take ``--test-seconds`` together; then fresh worlds once more, as
long as ``--more-seconds``: some faults show in one world of hundreds. A mutant that takes too long
is caught, too: it no longer ends. Survivors are listed with file, line and change.
`equivalent.toml` explains those that change no result, a line of reason each; worlds judge them,
tests do not, and they are not counted if they survive.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from sim.base.jit import JIT, specialised
from tests.mutants.mutate import Mutant, mutants
from tests.mutants.reach import (
    KERNELS,
    ROOT,
    Reach,
    kept_reach_of_tests,
    reach_of_calls,
    run_tests,
)
from tests.mutants.worlds import by_fresh_worlds, by_worlds, notice_of, random_worlds

EXPLAINED = Path(__file__).parent / "equivalent.toml"
Check = Callable[[Mutant], str]
"""Runs something that a mutant may break; returns how it noticed a fault, "" if it did not."""


def main(arguments: list[str]) -> int:
    """Judge a sample of mutants; return 1 if fewer than the wanted share are caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=__doc__)
    parser.add_argument("--sample", type=int, default=120, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    parser.add_argument("--worlds", type=int, default=1500, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="of worlds for each mutant")
    parser.add_argument("--test-seconds", type=float, default=30, help="of tests, each mutant")
    parser.add_argument("--more-seconds", type=float, default=90, help="of worlds at the end")
    parser.add_argument("--files", nargs="*", default=[], metavar="NAME", help="of these kernels")
    parser.add_argument("--jobs", type=int, default=2, help="side by side (default: %(default)s)")
    parser.add_argument("--wanted", type=float, default=0.95, help="share (default: %(default)s)")
    parsed = parser.parse_args(arguments)
    if JIT:
        parser.error("kernels are changed as plain Python: set NUMBA_DISABLE_JIT=1")
    every = list(_every(parsed.files))
    chosen = random.Random(parsed.seed).sample(every, min(parsed.sample, len(every)))
    print(f"{len(chosen)} of {len(every):,} mutants, seed {parsed.seed}", flush=True)
    worlds = list(random_worlds(parsed.worlds))
    reach = reach_of_calls([lambda world=world: notice_of(world) for world in worlds])

    def check(mutant: Mutant) -> str:
        return by_worlds(worlds, reach, mutant, parsed.seconds)

    def check_again(mutant: Mutant) -> str:
        return by_fresh_worlds(worlds, reach, mutant, parsed.more_seconds, seed=3)

    survivors = judge(chosen, check, parsed.jobs)
    unexplained = [mutant for mutant in survivors if not reason_of(mutant)]
    if parsed.test_seconds and unexplained:
        tests = kept_reach_of_tests()
        for mutant in unexplained:
            names = tests.names_at(mutant)
            n_worlds, n_tests = (
                len(reach.names_at(mutant)),
                len(tests.within(names, parsed.test_seconds)),
            )
            print(f"{n_worlds} worlds reach {mutant}; {n_tests} of {len(names)} tests run")
        caught = {*unexplained} - {
            *judge(unexplained, lambda m: by_tests(tests, m, parsed.test_seconds), parsed.jobs)
        }
        left = [mutant for mutant in unexplained if mutant not in caught]
        caught |= {*left} - {*judge(left, check_again, parsed.jobs)}
        survivors = [mutant for mutant in survivors if mutant not in caught]
    return report(chosen, survivors, parsed.wanted)


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


def by_tests(reach: Reach, mutant: Mutant, seconds: float) -> str:
    """Check a mutant by tests that reach its line, each within five times its time."""
    names = reach.within(reach.names_at(mutant), seconds)
    return run_tests(names, {name: int(30 + 5 * reach.seconds[name]) for name in names})


def report(chosen: list[Mutant], survivors: list[Mutant], min_share: float) -> int:
    """Print survivors, those that are explained apart, and the shares; return 1 if it is less."""
    alive = []
    for mutant in survivors:
        if reason := reason_of(mutant):
            print(f"equivalent: {mutant}  ({reason})")
        else:
            alive.append(mutant)
    for mutant in alive:
        print(f"survives: {mutant}")
    n, n_caught = len(chosen), len(chosen) - len(survivors)
    n_equivalent = len(survivors) - len(alive)
    share = n_caught / (n - n_equivalent) if n > n_equivalent else 1.0
    print(
        f"{n_caught} of {n} mutants caught; {n_equivalent} change no result (equivalent.toml), "
        f"{len(alive)} survive: {share:.1%} of the others caught"
    )
    return int(share < min_share)


def reason_of(mutant: Mutant) -> str:
    """Return the reason that `equivalent.toml` gives for a mutant, "" if it names it not."""
    return next((row["reason"] for row in explanations() if explains(row, mutant)), "")


@cache
def explanations() -> list[dict[str, Any]]:
    """Return the entries of `equivalent.toml`, which says what they name."""
    rows: list[dict[str, Any]] = tomllib.loads(EXPLAINED.read_text())["equivalent"]
    return rows


def explains(row: dict[str, Any], mutant: Mutant) -> bool:
    """Tell whether an entry names a mutant: by its line, or as one of a kind.

    An entry with a place names but one of the equal changes of the line.
    """
    file = str((ROOT / mutant.file).relative_to(KERNELS))
    if "kind" in row:
        is_kind = re.fullmatch(row["kind"], f"{mutant.text} # {mutant.change}") is not None
        return is_kind and row.get("file", file) == file
    is_there = row.get("place", mutant.place) == mutant.place
    named = row["file"], row["line"], row["change"]
    return is_there and named == (file, mutant.text, mutant.change)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
