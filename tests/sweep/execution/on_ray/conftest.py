from __future__ import annotations

from typing import Any

import pytest

from sweep.execution.on_ray import heartbeats
from tests.sweep.execution.on_ray.fake_ray import FakeRay, install


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    """Put a stand-in for Ray in its place."""
    ray = FakeRay()
    install(ray, monkeypatch)
    return ray


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Stand in for what workers post."""
    entries: dict[str, dict[str, Any]] = {}

    def read(prefix: str) -> dict[str, dict[str, Any]]:
        return {name: entry for name, entry in entries.items() if name.startswith(prefix)}

    monkeypatch.setattr(heartbeats, "read", read)
    return entries
