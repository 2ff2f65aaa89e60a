"""The copula's numbers as JSON; and back, checked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.synth.alibaba2018 import histogram_text as text
from sim.synth.alibaba2018.joint import ROLES, Joint, Ranks

_MATRICES = ("job", "root", "pull", "noise")


def show_joint(joint: Joint) -> str:
    """Write the copula as one JSON object."""
    matrices = (f'"{name}": {_rows(getattr(joint, name))}' for name in _MATRICES)
    ranks = (
        f'"{name}": {{"edges": [{text.wrap(text.numbers(np.round(table.edges, 9)))}],\n'
        f' "counts": {_rows(table.counts)}}}'
        for name, table in joint.ranks.items()
    )
    parts = [
        f'"provenance": {json.dumps(joint.provenance, indent=1, ensure_ascii=False)}',
        f'"unequal": {joint.unequal!r}',
        f'"taken_over": {json.dumps(joint.taken_over.tolist())}',
        *matrices,
        '"ranks": {\n' + ",\n".join(ranks) + "}",
    ]
    return "{\n" + ",\n".join(parts) + "}"


def read_joint(raw: Any, metrics: tuple[str, ...], path: text.PathLike) -> Joint:
    """Read what `show_joint` wrote."""
    try:
        ranks = {
            name: Ranks(_array(table["edges"], 1), _array(table["counts"], 2).astype(np.int64))
            for name, table in raw["ranks"].items()
        }
        joint = Joint(
            ranks=ranks,
            **{name: _array(raw[name], 2) for name in _MATRICES},
            taken_over=_array(raw["taken_over"], 1),
            unequal=float(raw["unequal"]),
            provenance=raw.get("provenance", {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"'joint' must hold ranks, {', '.join(_MATRICES)}, taken_over and unequal: {error}",
            file=path,
            rule="bad table",
        ) from error
    n = len(metrics)
    broken = [
        (tuple(ranks) != metrics, f"ranks of {', '.join(metrics)}, in this order"),
        (not 0 <= joint.unequal < 1, "unequal from 0 to below 1"),
        (
            joint.taken_over.shape != (n,)
            or not ((joint.taken_over >= 0) & (joint.taken_over <= 1)).all(),
            f"{n} chances taken_over",
        ),
        *((getattr(joint, m).shape != (n, n), f"{m} of {n} rows and columns") for m in _MATRICES),
        *(
            (
                _wrong_ranks(table),
                f"ranks {name!r} that ascend from 0 to 1, with a count for each bin and role",
            )
            for name, table in ranks.items()
        ),
    ]
    for wrong, what in broken:
        if wrong:
            raise InputError(f"'joint' needs {what}", file=path, rule="bad table")
    return joint


def _wrong_ranks(table: Ranks) -> bool:
    edges, counts = table.edges, table.counts
    good = (
        counts.shape in ((1, len(edges) - 1), (ROLES, len(edges) - 1))
        and edges[0] == 0
        and edges[-1] == 1
        and bool((np.diff(edges) > 0).all())
        and bool((counts >= 0).all() and (counts.sum(axis=1) > 0).all())
    )
    return not good


def _rows(matrix: NDArray[Any]) -> str:
    return "[" + ",\n ".join(text.wrap(json.dumps(row)) for row in matrix.tolist()) + "]"


def _array(raw: Any, n_axes: int) -> F8:
    array = np.asarray(raw, dtype=np.float64)
    if array.ndim != n_axes or not np.isfinite(array).all():
        raise ValueError("a list of finite numbers was expected")
    return array
