"""Composed configuration of a request, as Hydra's ``--cfg job`` shows one."""

from __future__ import annotations

import dataclasses
from typing import Any

from sim.base.masking import mask_tree
from sweep.grid import grid
from sweep.grid.config_tree import abbreviated, to_yaml
from sweep.grid.request import Request

_GROUPS = ("policy", "trace", "cluster", "evaluator")


def composed(request: Request) -> str:
    """Write the request and all options that it names as YAML, resolved, secrets masked.

    Of several capacities and seeds the options are shown for the first.
    """
    first = {key: request.axes[key][:1] for key in ("capacity", "seed")}
    cells = grid.build(dataclasses.replace(request, axes=request.axes | first)).cells
    options: dict[str, dict[str, Any]] = {group: {} for group in _GROUPS}
    for cell in cells:
        names = (cell.labels["policy"], *[cell.labels["trace"]] * 2, cell.evaluator["name"])
        parts = (cell.policy, cell.trace, cell.cluster, cell.evaluator)
        for group, name, part in zip(_GROUPS, names, parts, strict=True):
            options[group].setdefault(name, part)
    settings = request.settings
    tree = {
        "axes": {key: abbreviated(values) for key, values in request.axes.items()},
        "baseline": request.baseline,
        "metrics": list(request.metrics),
        "experiment": request.experiment,
        "name": request.name,
        "question": request.question,
        **options,
        "launcher": settings.launcher,
        "tracking": settings.tracking,
        "paths": {"results": str(settings.results), "traces": settings.traces},
        "max_failures": settings.max_failures,
        "cell_timeout_s": settings.cell_timeout_s,
    }
    return to_yaml(mask_tree(tree))
