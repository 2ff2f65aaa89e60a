"""Records of a sweep's origin: ``config.yaml`` and ``provenance.json`` of its folder."""

from __future__ import annotations

import dataclasses
from typing import Any

from sim.base.masking import mask, mask_tree
from sweep.execution.plan import PreparedGrid
from sweep.grid.config_tree import abbreviated
from sweep.grid.overrides import QUESTION
from sweep.grid.request import Request
from sweep.store import own_sources, provenance


def request_words(request: Request) -> dict[str, list[str]]:
    """Return the words of a request and its option folders as recorded, secrets masked."""
    words, folders = list(request.words), list(request.options.recorded_dirs)
    masked: dict[str, list[str]] = mask_tree({"words": words, "config_dirs": folders})
    return masked


def request_location(request: Request) -> dict[str, list[str]]:
    """Return the absolute paths of the option folders on this machine."""
    return {"option_folders": [str(folder) for folder in request.options.user_dirs]}


def provenance_record(prepared: PreparedGrid) -> tuple[dict[str, Any], str]:
    """Describe code, packages, machine, seeds and inputs; return too the diff of the code."""
    request = prepared.grid.request
    names = {planned.workload: planned.cell.labels["trace"] for planned in prepared.representatives}
    inputs = [{"trace": name, **(prepared.inputs.known(key) or {})} for key, name in names.items()]
    words = [
        *request.words,
        *(f"--config-dir={folder}" for folder in request.options.recorded_dirs),
    ]
    cells = (planned.cell for planned in prepared.representatives)
    pairs = [(cell.policy, cell.evaluator) for cell in cells]
    own = own_sources.own_files(pairs, request.study, request.options)
    return provenance.collect(words, request.axes["seed"], inputs, own_sources.records(own))


def config_record(prepared: PreparedGrid) -> dict[str, Any]:
    """Describe the request and the options that it resolved to, for ``config.yaml``."""
    request = prepared.grid.request
    options: dict[str, dict[str, Any]] = {"policy": {}, "trace": {}, "cluster": {}, "evaluator": {}}
    for cell in (planned.cell for planned in prepared.representatives):
        options["policy"].setdefault(cell.labels["policy"], cell.policy)
        options["trace"].setdefault(cell.labels["trace"], cell.trace)
        options["cluster"].setdefault(cell.labels["trace"], cell.cluster)
        options["evaluator"].setdefault(cell.evaluator["name"], cell.evaluator)
    config: dict[str, Any] = mask_tree(
        {
            "sweep": prepared.sweep,
            "experiment": request.experiment,
            "study": request.study,
            **request_words(request),
            "axes": {key: abbreviated(values) for key, values in request.axes.items()},
            "swept": list(prepared.grid.swept),
            "fixed": [assignment.text for assignment in request.fixed],
            "baseline": request.baseline,
            "metrics": list(request.metrics),
            "verdict": {"metric": request.verdict_metric},
            "is_fixed": prepared.grid.is_fixed,
            **options,
        }
    )
    if request.question is not None:
        config[QUESTION] = mask(request.question)
    if request.bootstrap is not None:
        config["bootstrap"] = {"by": request.bootstrap}
    if request.what_if is not None:
        config["what_if"] = dataclasses.asdict(request.what_if)
    if request.goal is not None:
        config |= request.goal.record()
    if request.precision is not None:
        precision = dataclasses.asdict(request.precision)
        config["seeds"] = {"asked": precision, "found": dict(request.seeds or {})}
    return config
