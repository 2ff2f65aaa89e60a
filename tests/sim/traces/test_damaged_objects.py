"""Objects with any field lost, moved or replaced are read or refused by name, and counted."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sim
from sim.check.account import check_account
from sim.traces import read_trace
from tests.sim.traces.kubernetes_objects import CLUSTER, WORKFLOW
from tests.sim.traces.test_ray import actor, seven

VALUES = [
    None, True, 0, -1, 7, 1e300, 10**400, 2.5, "", "x", "\ud800", "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z", [], {}, [1], [None], {"a": 1}, "1e18", "5Gi", float("nan"),
    float("inf"), "Pod", "Workload", 1e7,
]  # fmt: skip
SAMPLES: dict[str, list[Any]] = {
    "kubernetes": [*CLUSTER],
    "argo": [WORKFLOW, WORKFLOW | {"metadata": WORKFLOW["metadata"] | {"uid": "x", "name": "x"}}],
    "ray": [*seven(), actor(1, "Model.__init__", 0, 100, 200, kind="ACTOR_CREATION_TASK")],
}


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else items:
        yield from paths(inner, (*path, key))


def value_at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def damaged(sample: Any, rng: random.Random) -> Any:
    """Return the sample with some fields deleted, replaced, or copied from elsewhere."""
    sample = copy.deepcopy(sample)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice([p for p in paths(sample) if p])
        owner, key = value_at(sample, path[:-1]), path[-1]
        kind = rng.random()
        if kind < 0.15:
            del owner[key]
        elif kind < 0.3:
            owner[key] = copy.deepcopy(value_at(sample, rng.choice(list(paths(sample)))))
        else:
            owner[key] = rng.choice(VALUES)
    return sample


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_objects_are_counted_or_refused(name: str, tmp_path: Path) -> None:
    rng, outcomes = random.Random(1), set()
    path = tmp_path / "objects.json"
    for _ in range(150):
        path.write_text(json.dumps(damaged(SAMPLES[name], rng)))
        for on_bad_row in ("error", "skip"):
            try:
                check_account(read_trace(name, path, on_bad_row=on_bad_row))
                outcomes.add(f"{on_bad_row}: read")
            except sim.InputError as error:
                outcomes.add(f"{on_bad_row}: refused{'' if error.file else ', no file'}")
    assert outcomes >= {"error: read", "error: refused", "skip: read"}
    assert not [outcome for outcome in outcomes if outcome.endswith("no file")]
