"""Reach of worlds and tests: the lines of the kernels that each runs, measured by coverage."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import coverage
import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutants.mutate import Mutant

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "mutants"
"""Folder of the tests' reach, by the digest of the sources."""
KERNELS = ROOT / "sim" / "engine" / "kernels"
TESTS = (
    *("tests/sim/engine", "tests/sim/metrics/test_batches.py"),
    *("--ignore=tests/sim/engine/test_worlds.py", "-m", "not slow"),
    *("-k", "not pool_of_slots and not in_a_crowd and not pools_of_their_own"),
)
"""Tests of the engine, without three whose crowds take half of the time."""

PROFILE = "mutants"
settings.register_profile(
    PROFILE,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)  # the same examples each time; a failing one is not made small


@dataclass
class Reach:
    """Worlds or tests by the lines of the kernels that they reach.

    Attributes
    ----------
    names : dict of (file, line) to list of str
        What was run there, by name, the shortest first. Files are relative to the checkout.
    seconds : dict of str to float
        Its time.
    """

    names: dict[tuple[Path, int], list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def names_at(self, mutant: Mutant) -> list[str]:
        """Return what reaches a line of the changed statement, the shortest first."""
        names = {name for line in mutant.lines for name in self.names.get((mutant.file, line), [])}
        return sorted(names, key=lambda name: (self.seconds[name], name))

    def nearest(self, mutant: Mutant) -> list[str]:
        """Return what reaches the line of the mutant's file that is nearest to it."""
        lines = [line for file, line in self.names if file == mutant.file]
        if not lines:
            return []
        return self.names[mutant.file, min(lines, key=lambda line: abs(line - mutant.line))]

    def within(self, names: Iterable[str], seconds: float) -> list[str]:
        """Return as many of these, in their order, as take that much time together."""
        ends = accumulate(self.seconds[name] for name in names)
        return [name for name, end in zip(names, ends, strict=True) if end <= seconds]


def reach_of_calls(calls: Iterable[Callable[[], str]]) -> Reach:
    """Run calls, which are named by their numbers; none may notice a fault."""
    measured = _coverage(None)
    seconds = {}
    with measured.collect():
        for number, call in enumerate(calls):
            measured.switch_context(str(number))
            begin = time.monotonic()
            notice = call()
            seconds[str(number)] = time.monotonic() - begin
            if notice:
                raise SystemExit(f"a fault is noticed without a mutant: {notice}")
    return _reach(measured.get_data(), seconds)


def kept_reach_of_tests() -> Reach:
    """Return the reach of the engine's tests, as it was kept if no source has changed since."""
    digest = hashlib.sha256()
    for folder in ("sim", "policies", "tests/sim/engine"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    file = KEPT / f"{digest.hexdigest()[:16]}.json"
    if file.exists():
        return _from_json(file.read_text())
    print("the engine's tests run once, to see the lines that they reach", flush=True)
    reach = reach_of_tests()
    KEPT.mkdir(parents=True, exist_ok=True)
    file.write_text(_to_json(reach))
    return reach


def _to_json(reach: Reach) -> str:
    """Return a reach as text, with the tests named by their rows."""
    rows = {name: row for row, name in enumerate(reach.seconds)}
    lines = [
        [str(file), n, [rows[name] for name in names]] for (file, n), names in reach.names.items()
    ]
    return json.dumps({"seconds": reach.seconds, "lines": lines})


def _from_json(text: str) -> Reach:
    read = json.loads(text)
    every = [*read["seconds"]]
    names = {(Path(file), n): [every[row] for row in rows] for file, n, rows in read["lines"]}
    return Reach(names, read["seconds"])


def reach_of_tests() -> Reach:
    """Run the tests of the engine in a process of their own; none may fail."""
    with tempfile.TemporaryDirectory() as folder:
        file, times = Path(folder, "coverage"), Path(folder, "seconds")
        pid = os.fork()
        if pid == 0:
            measured = _coverage(file)
            timed = _Timed(measured)
            with measured.collect():
                notice = _pytest(TESTS, timed)
            measured.save()
            times.write_text("\n".join(f"{s} {name}" for name, s in timed.seconds.items()))
            os._exit(bool(notice))
        if os.waitpid(pid, 0)[1]:
            raise SystemExit("a test fails without a mutant: run them, " + " ".join(TESTS))
        rows = [line.split(" ", 1) for line in times.read_text().splitlines()]
        data = coverage.CoverageData(str(file))
        data.read()
        return _reach(data, {name: float(s) for s, name in rows})


def run_tests(names: Iterable[str], limits_s: Mapping[str, int]) -> str:
    """Run tests by name until one fails; return its name, "" if none does.

    The process ends when one takes more time of a CPU than its limit.
    """
    chosen = list(names)
    return _pytest([*chosen, "-x"], _Limited(limits_s)) if chosen else ""


def _pytest(arguments: Iterable[str], *plugins: object) -> str:
    os.chdir(ROOT)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    failed = _Failed()
    options = ("-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "--assert=plain")
    profile = f"--hypothesis-profile={PROFILE}"
    code = pytest.main([*arguments, *options, profile], plugins=[failed, *plugins])
    return failed.names[0] if failed.names else f"pytest ends with {code}" if code else ""


def end_after(seconds: float) -> None:
    """End the process by a signal once it has had that much time of a CPU from now on; 0 for never.

    Of the CPU, not of the clock: how busy the machine is judges no mutant.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)


class _Failed:
    """Remembers the tests that fail."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names.append(report.nodeid)


class _Timed:
    """Names what is measured by the test that runs, and times it."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.seconds: dict[str, float] = {}
        self._measured = measured

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._measured.switch_context(item.nodeid)
        begin = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.monotonic() - begin
        return result


class _Limited:
    """Ends the process when a test takes too long."""

    def __init__(self, limits_s: Mapping[str, int]) -> None:
        self._limits_s = limits_s

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        end_after(self._limits_s[item.nodeid])


def _coverage(file: Path | None) -> coverage.Coverage:
    return coverage.Coverage(
        data_file=None if file is None else str(file),
        config_file=False,
        branch=False,
        include=[f"{KERNELS}/*"],
    )


def _reach(data: coverage.CoverageData, seconds: dict[str, float]) -> Reach:
    reach = Reach(seconds=seconds)
    for file in data.measured_files():
        for line, names in data.contexts_by_lineno(file).items():
            known = [name for name in names if name in seconds]
            reach.names[Path(file).relative_to(ROOT), line] = known
    return reach
