"""Runner of a launcher's configuration: in this process, or on Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sweep.execution.compute import InlineRunner, Runner
from sweep.execution.on_ray.pool import RayRunner

if TYPE_CHECKING:
    from sweep.execution.cell import Simulate


def make_runner(
    launcher: Mapping[str, Any],
    python_path: Sequence[str] = (),
    simulate: Simulate | None = None,
    timeout_s: float | None = None,
) -> Runner:
    """Create the runner of a launcher's configuration; nothing is started yet.

    A cell that runs for longer than `timeout_s` is ended.
    """
    if launcher["kind"] == "inline":
        return InlineRunner(simulate, timeout_s)
    return RayRunner(launcher, python_path, simulate, timeout_s)
