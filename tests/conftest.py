"""Fixtures that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from policies import registry
from sim.base.jit import JIT
from sim.engine.layout import features
from tests import variants

ROOT = Path(__file__).resolve().parent.parent
ROUNDED = features._rounded


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


@pytest.fixture(autouse=True, scope="session")
def few_variants() -> Iterator[None]:
    """Let runs take wide variants of the event loop, where exact ones would be compiled.

    For the session, so that what a module's fixtures run takes them too.
    """
    if os.environ.get("VARIANTS") == "exact" or not JIT:
        yield
        return
    with mock.patch.object(features, "_rounded", variants.widened):
        yield


@pytest.fixture(autouse=True)
def exact_variants(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let the runs of a test that is marked so take exactly what they need."""
    if request.node.get_closest_marker("exact") is None:
        yield
        return
    with mock.patch.object(features, "_rounded", ROUNDED):
        yield
