"""Verb ``check``: a module in a folder of options."""

from __future__ import annotations

from pathlib import Path

import pytest

import sim.check
from sim.check import Checked
from tests.sweep.small import Command


def test_a_module_of_a_folder_of_options_is_checked(
    fake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_checked.py").write_text("")
    calls = []

    def check_module(name: str, **more: object) -> list[Checked]:
        calls.append((name, more))
        __import__(name)  # it is on the path
        return [Checked("policy", "a", ()), Checked("policy", "b", ("starts too early",))]

    monkeypatch.setattr(sim.check, "check_module", check_module)
    words = ("check", "own_checked", "--config-dir", str(tmp_path), "--option", "due_s=5")
    ran = fake.bare(*words)
    assert (ran.code, calls) == (1, [("own_checked", {"sample": None, "options": {"due_s": 5}})])
    assert ran.out == "policy a: keeps all rules\npolicy b: broken\n  starts too early\n"
    assert "takes the name of a module" in fake.bare("check").err
    assert "takes the name of a module" in fake.bare("check", "a", "policy=fifo").err
