"""Fixtures and hooks of all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from collections.abc import Generator, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from policies import registry
from sim.base import entry_points
from tests import without

ROOT = Path(__file__).resolve().parent.parent
# a few variants of the event loop for all runs, in this process and in its children, and runs with
# rarer mechanisms in plain Python: the tests use some forty variants, and each would be compiled
os.environ.setdefault("SIM_VARIANTS", "common")
# a slow example is no failure: the machine may be busy
TOO_SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "patient", settings.default, deadline=None, suppress_health_check=TOO_SLOW
)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """Return the folder of real traces beside the checkout; skip the test if it is absent."""
    folder = ROOT.parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("the folder of real traces (../shared/traces) is not here")
    return folder


@pytest.fixture(scope="session")
def shared_real() -> Path:
    """Return the folder of runs of real schedulers; skip the test if it is absent."""
    folder = ROOT.parent / "shared" / "real"
    if not folder.is_dir():
        pytest.skip("the folder of real runs (../shared/real) is not here")
    return folder


@pytest.fixture(autouse=True)
def registry_as_it_was() -> Iterator[None]:
    """Unregister a test's policies, and unload the modules that it imported them from."""
    registry.names()
    before = set(registry._REGISTRY)
    yield
    for name in registry._REGISTRY.keys() - before:
        if name in entry_points.installed(registry.KIND):
            continue  # a system's, imported on its first use
        module = registry._REGISTRY.pop(name).__module__
        if not module.startswith("tests."):
            sys.modules.pop(module, None)


@pytest.fixture(autouse=True)
def exact_variants(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test marked ``exact`` with kernel variants of exactly the needed features."""
    if request.node.get_closest_marker("exact") is not None:
        monkeypatch.setenv("SIM_VARIANTS", "exact")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude imported modules and collected tests from garbage collection.

    A sweep runs it twice, and the tests run hundreds of sweeps in one process: half of their time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


N_BETWEEN = 100
_n_tests = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """Exclude later imports and caches, too, at the end of a file, about every hundred tests."""
    global _n_tests
    yield
    _n_tests += 1
    if _n_tests >= N_BETWEEN and nextitem is not None and nextitem.path != item.path:
        _n_tests = 0
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a test that failed as a room is not here (`tests.without`)."""
    return _skipped_without_a_room((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a module that can't be imported as a room is not here."""
    return _skipped_without_a_room((yield))


R = TypeVar("R", pytest.TestReport, pytest.CollectReport)


def _skipped_without_a_room(report: R) -> R:
    reason = report.failed and without.reason(f"{report.longreprtext}\n{report.capstderr}")
    if reason:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid.partition("::")[0], 0, f"Skipped: {reason}")
    return report


CORE = (
    *("tests/sim/base", "tests/sim/engine", "tests/sim/test_result.py"),
    *("tests/policies/test_base.py", "tests/policies/test_invariants.py"),
    *("tests/sweep/grid", "tests/sweep/store", "tests/sweep/driver"),
)
"""Folders and modules of the core lane: what a change of anything may break."""


def is_core(item: pytest.Item) -> bool:
    """Check that a test is of the core lane: in CORE, quick, and of one policy of each file."""
    path = item.path.relative_to(ROOT)
    if not any(path.is_relative_to(core) for core in CORE):
        return False
    if any(item.get_closest_marker(slow) is not None for slow in ("slow", "e2e", "long")):
        return False
    callspec = getattr(item, "callspec", None)
    name = callspec.params.get("name") if callspec is not None else None
    return name not in registry.names() or name in first_of_each_file()


@cache
def first_of_each_file() -> frozenset[str]:
    """Return the name of one policy of each file of policies, the first."""
    files: dict[str, str] = {}
    for name in registry.names():
        files.setdefault(registry.spec(name).__module__, name)
    return frozenset(files.values())


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Mark the core lane, and distribute files with long tests among the workers."""
    for item in items:
        if is_core(item):
            item.add_marker("core")
    yield  # tests of other lanes are deselected
    n = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if n > 1:
        items[:] = _distributed(items, n)


def _distributed(items: list[pytest.Item], n: int) -> list[pytest.Item]:
    """Return the tests in an order in which files with long ones start each worker's share.

    pytest-xdist gives each worker a contiguous share: one worker would get all end-to-end tests,
    and a slow test near the end would leave the others without work.
    """
    long_files = {
        item.path for item in items if any(map(item.get_closest_marker, ("e2e", "slow", "long")))
    }
    files: dict[Path, list[pytest.Item]] = {path: [] for path in long_files}
    for item in items:
        if item.path in files:
            files[item.path].append(item)
    rest = deque(item for item in items if item.path not in files)
    longest = sorted(files.values(), key=lambda tests: tests[0].nodeid)
    ordered: list[pytest.Item] = []
    for worker in range(n):
        ordered += chain.from_iterable(longest[worker::n])
        end = len(items) * (worker + 1) // n
        ordered += [rest.popleft() for _ in range(min(len(rest), end - len(ordered)))]
    return [*ordered, *rest]
