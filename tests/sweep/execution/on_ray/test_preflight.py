"""Preflight of a node before it gets cells."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle

from sweep.execution.on_ray import preflight
from sweep.store import sources
from sweep.store.cell import CellSpec

PROJECT = str(Path(__file__).resolve().parents[4])

SPEC = CellSpec("k", {"name": "fifo", "module": None}, {}, 1.0, {"name": "simulate"}, 0)


@pytest.fixture(scope="module")
def environment() -> preflight.Environment:
    return preflight.driver_environment([SPEC, SPEC], [])


def test_here_all_is_well(environment: preflight.Environment) -> None:
    assert preflight.check_node(environment) == []
    assert {"sim.engine.simulate", "policies.registry", *preflight.RUN_TASKS} <= {
        *environment["table"]
    }
    assert "sweep.report" not in environment["table"]
    assert environment["packages"]["numba"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"python": "3.99"}, "the sweep 3.99: start Ray there with that version"),
        ({"packages": {"numpy": "0.1"}}, "(0.1 here): install the packages of requirements.lock"),
        ({"packages": {"nothing-of-it": "1"}}, "nothing-of-it is missing (1 here)"),
    ],
)
def test_what_differs_is_named(
    environment: preflight.Environment, changed: dict[str, Any], message: str
) -> None:
    (wrong,) = preflight.check_node({**environment, **changed})
    assert message in wrong


def test_other_sources_are_named(environment: preflight.Environment) -> None:
    table = {**environment["table"], "policies.registry": "another"}
    (wrong,) = preflight.check_node({**environment, "table": table})
    assert wrong.startswith("other versions of policies.registry: launcher.send_code=true")


def test_kernels_that_can_not_be_kept(
    environment: preflight.Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.base.kernel_cache.cache_dir", lambda: tmp_path / "gone")
    (wrong,) = preflight.check_node(
        {**environment, "cells": [], "table": preflight._module_digests([])}
    )
    assert wrong.startswith(
        f"kernels can't be cached in {tmp_path}/gone (No such file or directory)"
    )


def test_it_runs_where_the_project_is_not(
    environment: preflight.Environment, tmp_path: Path
) -> None:
    cloudpickle.register_pickle_by_value(preflight)
    try:
        sent = cloudpickle.dumps((preflight.check_node, environment))
    finally:
        cloudpickle.unregister_pickle_by_value(preflight)
    (tmp_path / "sent").write_bytes(sent)
    code = (
        f"import sys; sys.path.remove({PROJECT!r})\n"  # as it is installed here
        "import pickle; look, wanted = pickle.load(open('sent', 'rb')); print(look(wanted))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env={}
    )
    assert "the project is not installed (No module named 'policies')" in done.stdout, done.stderr


def test_a_users_module_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "import policies\n\n\n@policies.register('checked')\nclass A(policies.Policy):\n    pass\n"
    )
    (tmp_path / "checked_module.py").write_text(text)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    sources.forget()
    spec = SPEC._replace(policy={"name": "checked", "module": "checked_module"})
    assert "checked_module" in preflight.driver_environment([spec], [str(tmp_path)])["table"]
