"""A Gymnasium environment of what a sweep's cells simulate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sim.base.extras import require
from sweep.driver.worlds import build_worlds

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.env import SchedulingEnv, SchedulingVectorEnv
    from sim.env.environment import Draw
    from sim.workload.workload import Workload

N_WORLDS = 16
"""Number of workloads that are kept for episodes of the same seeds."""


def environment(
    words: str, *, config_dir: str | Sequence[str] = (), num_envs: int | None = None, **options: Any
) -> SchedulingEnv | SchedulingVectorEnv:
    """Return an environment whose episode of a seed is what a sweep's cell of that seed simulates.

    Parameters
    ----------
    words : str
        Words of the command line without policy and seed: ``"trace=alibaba_synth capacity=0.9"``.
    config_dir : str or sequence of str
        Folders of your own options.
    num_envs : int, optional
        Number of environments side by side; left out: one by itself.
    **options
        Those of `sim.env.SchedulingEnv`, or `sim.env.SchedulingVectorEnv`.

    Raises
    ------
    InputError
        On a wrong word, or if the words stand for several workloads.
    """
    require("gym")
    from sim.env import SchedulingEnv, SchedulingVectorEnv  # need Gymnasium

    draw = draw_from(words, config_dir)
    if num_envs is None:
        return SchedulingEnv(draw, **options)
    return SchedulingVectorEnv(draw, num_envs, **options)


def draw_from(words: str, config_dir: str | Sequence[str] = ()) -> Draw:
    """Return the function from a seed to the workload and the cluster of its cell."""
    folders = [config_dir] if isinstance(config_dir, str) else list(config_dir)

    @lru_cache(N_WORLDS)
    def draw(seed: int) -> tuple[Workload, Cluster]:
        worlds = build_worlds([words], [seed], folders)
        if len(worlds) != 1:
            raise InputError(
                f"{words!r} stands for {len(worlds)} workloads; an environment has one"
            )
        return worlds[0].workload, worlds[0].cluster_for(None)

    return draw
