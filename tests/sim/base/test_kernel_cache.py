"""Compiled kernels lie where nobody else can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sim.base.kernel_cache import cache_dir, made_private

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have no numbers here")


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_a_new_folder_is_its_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert made_private(tmp_path / "some" / "new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "some" / "new") == 0o700


def test_a_folder_that_others_could_write_is_closed_to_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert made_private(tmp_path)
    assert mode(tmp_path) == 0o700


def test_a_folder_or_link_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert not made_private(tmp_path)
    assert str(tmp_path) in capsys.readouterr().err


def test_what_is_used_here_is_private() -> None:
    assert mode(cache_dir()) == 0o700
