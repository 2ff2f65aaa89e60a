"""Where a sweep's cells come from: ``config.yaml`` and ``provenance.json`` of its folder."""

from __future__ import annotations

import dataclasses
from typing import Any

from sim.base.masking import mask_tree
from sweep.execution.plan import PreparedGrid
from sweep.grid.config_tree import abbreviated
from sweep.grid.request import Request
from sweep.store import provenance


def request_words(asked: Request) -> dict[str, list[str]]:
    """Return the words of a request and its folders of options, without secrets."""
    words, folders = list(asked.words), [str(folder) for folder in asked.options.user_dirs]
    masked: dict[str, list[str]] = mask_tree({"words": words, "config_dirs": folders})
    return masked


def provenance_record(prepared: PreparedGrid) -> tuple[dict[str, Any], str]:
    """Describe code, packages, machine, seeds and inputs; return too the changes to the code."""
    asked = prepared.grid.request
    names = {planned.input: planned.cell.labels["trace"] for planned in prepared.first}
    inputs = [{"trace": name, **(prepared.inputs.known(key) or {})} for key, name in names.items()]
    words = [*asked.words, *(f"--config-dir={user_dir}" for user_dir in asked.options.user_dirs)]
    return provenance.collect(words, asked.axes["seed"], inputs)


def config_record(prepared: PreparedGrid) -> dict[str, Any]:
    """Describe what was asked for and what it resolved to, for ``config.yaml``."""
    asked = prepared.grid.request
    options: dict[str, dict[str, Any]] = {"policy": {}, "trace": {}, "cluster": {}, "evaluator": {}}
    for cell in (planned.cell for planned in prepared.first):
        options["policy"].setdefault(cell.labels["policy"], cell.policy)
        options["trace"].setdefault(cell.labels["trace"], cell.trace)
        options["cluster"].setdefault(cell.labels["trace"], cell.cluster)
        options["evaluator"].setdefault(cell.evaluator["name"], cell.evaluator)
    config: dict[str, Any] = mask_tree(
        {
            "sweep": prepared.sweep,
            "experiment": asked.experiment,
            "study": asked.study,
            **request_words(asked),
            "axes": {key: abbreviated(values) for key, values in asked.axes.items()},
            "swept": list(prepared.grid.swept),
            "fixed": [assignment.text for assignment in asked.fixed],
            "baseline": asked.baseline,
            "metrics": list(asked.metrics),
            "verdict": {"metric": asked.verdict_metric},
            "is_fixed": prepared.grid.is_fixed,
            **options,
        }
    )
    if asked.goal is not None:
        config["goal"] = dataclasses.asdict(asked.goal)
    if asked.precision is not None:
        wanted = dataclasses.asdict(asked.precision)
        config["seeds"] = {"asked": wanted, "found": dict(asked.seeds or {})}
    return config
