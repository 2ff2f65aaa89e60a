"""Fixtures of the tests of archives: a good one to change, and a place to verify it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sweep.questions.archive import sandbox
from tests.sweep.questions.archive.entries import Entries
from tests.sweep.questions.archive.sandbox import Listener, Sandbox


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Entries]:
    with sandbox.fake_simulator():
        yield sandbox.export(
            tmp_path_factory.mktemp("good"), "policy=fifo,las", "seed=0,1", "baseline=fifo"
        )


@pytest.fixture
def box(tmp_path: Path, listener: Listener) -> Sandbox:
    (tmp_path / "box").mkdir()
    return Sandbox(tmp_path / "box", listener)
