from __future__ import annotations

import pytest
from ray import exceptions as ray_errors

from sweep.execution.on_ray.connection import classify_loss


def raised_in_task(cause: Exception) -> ray_errors.RayTaskError:
    return ray_errors.RayTaskError("run_batch", "traceback", cause)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ray_errors.WorkerCrashedError(), "lost"),
        (ray_errors.NodeDiedError("gone"), "lost"),
        (ray_errors.LocalRayletDiedError(), "lost"),
        (ray_errors.ObjectLostError("ab" * 28, None, ""), "lost"),
        (raised_in_task(ray_errors.ObjectLostError("ab" * 28, None, "")), "lost"),
        (ray_errors.OwnerDiedError("ab" * 28, None, ""), "lost"),
        (ray_errors.ReferenceCountingAssertionError("ab" * 28, None, ""), "lost"),
        (ray_errors.ObjectFetchTimedOutError("ab" * 28, None, ""), "lost"),
        (raised_in_task(ray_errors.OwnerDiedError("ab" * 28, None, "")), "lost"),
        (ray_errors.RuntimeEnvSetupError("no agent"), "lost"),
        (ray_errors.GetTimeoutError("ready, yet not here"), "lost"),
        (ray_errors.TaskCancelledError(), "excluded"),
        (ray_errors.OutOfMemoryError("killed"), "memory"),
        (raised_in_task(MemoryError()), "memory"),
        (raised_in_task(ImportError("no module")), "broken"),
        (raised_in_task(RuntimeError("not by an import")), "broken"),
        (
            raised_in_task(RuntimeError("The remote function failed to import on the worker")),
            "lost",
        ),
        (raised_in_task(ray_errors.RaySystemError("no such module")), "lost"),
        (ray_errors.RaySystemError("what"), "broken"),
    ],
)
def test_sorts_exceptions(error: Exception, verdict: str) -> None:
    assert classify_loss(error) == verdict
