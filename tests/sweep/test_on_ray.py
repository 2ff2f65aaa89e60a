"""The runner on Ray, as far as it can be told without Ray."""

from __future__ import annotations

import gc
import sys
import weakref
from types import SimpleNamespace

import pytest

from sweep.runner.on_ray import RayRunner


class Ref:
    """Stands for an ObjectRef, in a cycle as a traceback makes them."""

    def __init__(self) -> None:
        self.cycle = self


def test_no_garbage_is_left_to_free_while_ray_shuts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.disable()
    try:
        left = weakref.ref(Ref())
        assert left() is not None
        there: list[bool] = []
        fake = SimpleNamespace(shutdown=lambda: there.append(left() is not None))
        monkeypatch.setitem(sys.modules, "ray", fake)
        RayRunner({"kind": "local"}).close()
        assert there == [False]
    finally:
        gc.enable()
