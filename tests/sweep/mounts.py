"""File systems of a test's own, which are gone when it ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def tmpfs(folder: Path, size: str) -> Iterator[Path]:
    """Mount a small file system in memory; skip the test where that is not allowed."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root and mount (run the tests in a container with CAP_SYS_ADMIN)")
    folder.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(options, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs CAP_SYS_ADMIN to mount a file system: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    """Change what a file system of ours allows, such as ``ro`` or ``size=1m``."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
