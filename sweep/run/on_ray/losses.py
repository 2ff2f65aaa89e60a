"""What an exception of Ray's means for the cells of a task."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["lost", "memory", "broken"]


def judge(error: Exception) -> Verdict:
    """Sort an exception: who lost the task, its worker, the memory, or the task itself."""
    from ray import exceptions as ray_errors

    if isinstance(error, ray_errors.OutOfMemoryError):
        return "memory"
    if isinstance(error, ray_errors.RayTaskError):
        cause = error.cause
        if isinstance(cause, MemoryError):
            return "memory"
        return "lost" if isinstance(cause, ray_errors.ObjectLostError) else "broken"
    lost = (
        ray_errors.WorkerCrashedError,
        ray_errors.NodeDiedError,
        ray_errors.LocalRayletDiedError,
        ray_errors.ObjectLostError,
        ray_errors.TaskCancelledError,
        ray_errors.RuntimeEnvSetupError,  # ours holds variables alone: the node's agent is gone
        ray_errors.GetTimeoutError,
        ray_errors.RpcError,
    )
    return "lost" if isinstance(error, lost) else "broken"
