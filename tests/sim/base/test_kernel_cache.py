"""Cache of compiled kernels: a private folder, by version."""

from __future__ import annotations

import errno
import os
from importlib.metadata import version
from pathlib import Path

import pytest

from sim.base import kernel_cache
from sim.base.kernel_cache import cache_dir, digest, exclusive_lock, make_private

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have no numbers here")


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_a_new_folder_is_its_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert make_private(tmp_path / "some" / "new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "some" / "new") == 0o700


def test_a_folder_that_others_could_write_is_closed_to_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert make_private(tmp_path)
    assert mode(tmp_path) == 0o700


def test_a_folder_or_link_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert not make_private(tmp_path)
    assert str(tmp_path) in capsys.readouterr().err


def test_the_cache_folder_is_private() -> None:
    assert mode(cache_dir()) == 0o700


@pytest.mark.parametrize("package", ["numba", "llvmlite", "numpy"])
def test_another_version_uses_another_folder(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(name: str) -> str:
        return "99." * (name == package) + version(name)

    def digest_now() -> str:
        kernel_cache._versions.cache_clear()
        return digest.__wrapped__("sim.base.text")

    before = digest_now()
    monkeypatch.setattr(kernel_cache, "version", other)
    assert digest_now() != before
    monkeypatch.undo()
    assert digest_now() == before


def test_a_patch_of_numpy_or_python_uses_the_same_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest("sim.base.text")
    other = ".".join((*version("numpy").split(".")[:2], "99"))
    monkeypatch.setattr(
        kernel_cache, "version", lambda name: other if name == "numpy" else version(name)
    )
    monkeypatch.setattr("sys.version", "3.x of another day")
    kernel_cache._versions.cache_clear()
    assert digest.__wrapped__("sim.base.text") == before
    kernel_cache._versions.cache_clear()


def test_a_disk_without_locks_is_no_reason_to_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.lockf", refuse)
    with exclusive_lock("a", waits=False) as is_locked:
        assert is_locked
