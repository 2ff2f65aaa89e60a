"""Evaluator of a synthesized workload against the numbers published by its paper."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError, unknown
from sim.evaluators import Evaluation, Simulate
from sim.synth import GENERATORS

MODULES_LOADED = ("sim.synth",)  # so that sim.base.sources knows
MODULES_INSTALLED = ("generators",)
USES_POLICY = False


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Call ``compare_published`` in the module ``statistics`` of the workload's generator.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator; the seed draws the numbers published of more than one workload.

    Returns
    -------
    metrics : dict of str to float
        ``distance_p50``, ``distance_max``: over the numbers that are not 0, of |ours / paper - 1|.
    table : pyarrow.Table
        A row per number: ``figure`` (in the paper), ``what``, ``paper``, ``ours``.

    Raises
    ------
    InputError
        If no numbers are published for the workload.
    """
    name = str(workload.meta.get("name", "")).removeprefix("synth-")
    generators = _generators()
    if name not in generators:
        words = unknown("workload of evaluator=published", name, sorted(generators))
        raise InputError(words, rule="unknown workload")
    rows = sorted(generators[name].compare_published(workload, seed), key=lambda row: str(row[0]))
    columns = dict(zip(("figure", "what", "paper", "ours"), zip(*rows, strict=True), strict=True))
    paper, ours = np.array(columns["paper"], float), np.array(columns["ours"], float)
    distance = np.abs(ours[paper != 0] / paper[paper != 0] - 1)
    metrics = {"distance_p50": float(np.median(distance)), "distance_max": float(distance.max())}
    return metrics, pa.table({key: list(values) for key, values in columns.items()})


def _generators() -> dict[str, ModuleType]:
    """Find the generators whose module ``statistics`` has a function ``compare_published``."""
    modules = {name: GENERATORS.part(name, "statistics") for name in GENERATORS.names()}
    return {
        name: module
        for name, module in modules.items()
        if module is not None and hasattr(module, "compare_published")
    }
