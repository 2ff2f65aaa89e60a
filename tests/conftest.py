"""Fixtures that all tests share."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from policies import registry

ROOT = Path(__file__).resolve().parent.parent
# three variants of the event loop for all that is run on machines, here and in what tests start: a
# run of the tests meets some thirty, and each would be compiled
os.environ.setdefault("SIM_VARIANTS", "wide")
# an example that takes long here does on a machine with other work
TOO_SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "patient", settings.default, deadline=None, suppress_health_check=TOO_SLOW
)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """Folder of real traces beside the checkout; a test that needs it skips where it is absent."""
    folder = ROOT.parent / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("the folder of real traces (../shared/traces) is not here")
    return folder


@pytest.fixture(autouse=True)
def registry_as_it_was() -> Iterator[None]:
    """Forget the policies that a test registers, and the modules that it imported them from."""
    registry.names()
    before = set(registry._REGISTRY)
    yield
    for name in registry._REGISTRY.keys() - before:
        module = registry._REGISTRY.pop(name).__module__
        if not module.startswith("tests."):
            sys.modules.pop(module, None)


@pytest.fixture(autouse=True)
def exact_variants(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the runs of a test that is marked so take exactly what they need."""
    if request.node.get_closest_marker("exact") is not None:
        monkeypatch.setenv("SIM_VARIANTS", "exact")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let no collection of garbage look through what is imported and collected here.

    A sweep asks for two, and hundreds are run in the process of the tests: half of all their time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal what waits for other processes among the workers, each at the begin of its share.

    pytest-xdist gives each a share of the items in their order: one would have all that is e2e.
    """
    n = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if n == 1:
        return
    waits: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("e2e") is not None:
            waits.setdefault(item.nodeid.partition("::")[0], []).append(item)
    rest = [item for item in items if item.get_closest_marker("e2e") is None]
    hands = [list(chain.from_iterable(list(waits.values())[at::n])) for at in range(n)]
    ends = [len(items) * (at + 1) // n for at in range(n)]
    dealt: list[pytest.Item] = []
    for hand, end in zip(hands, ends, strict=True):
        dealt += hand
        dealt += [rest.pop(0) for _ in range(min(len(rest), end - len(dealt)))]
    items[:] = dealt + rest
