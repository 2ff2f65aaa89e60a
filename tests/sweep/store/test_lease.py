"""Leases: two processes, or as many as threads here stand for."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sim.base.errors import InputError
from sweep.store.lease import Lease, LeaseLostError
from sweep.store.storage import FolderStorage

NAME = "journal/sweep-1"


def lease(folder: Path, **options: float) -> Lease:
    return Lease(FolderStorage(folder), NAME, **{"beat_s": 0.02, "expires_s": 0.2, **options})


def elsewhere(folder: Path, token: int, beat: int = 0) -> None:
    """Write what a holder of another machine would have written."""
    about = {"id": "other", "process": ["0" * 16, 1, 1], "beat": beat, "released": False}
    FolderStorage(folder).put(f"{NAME}.lease/{token:08d}", json.dumps(about).encode())


def test_one_at_a_time_and_the_token_grows(tmp_path: Path) -> None:
    inside, tokens = [0], []

    def hold() -> None:
        mine = lease(tmp_path, expires_s=60.0)
        mine.take()
        inside[0] += 1
        assert inside[0] == 1
        tokens.append(mine.token)
        time.sleep(0.005)
        inside[0] -= 1
        mine.release()

    threads = [threading.Thread(target=hold) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tokens == [1, 2, 3, 4, 5]
    assert len(FolderStorage(tmp_path).list("journal/")) == 1


def test_a_holder_that_is_gone_is_followed_at_once(tmp_path: Path) -> None:
    run = [sys.executable, "-c", "from sim.base import process; print(*process.current())"]
    machine, pid, start = subprocess.run(
        run, capture_output=True, text=True, check=True
    ).stdout.split()
    about = {"id": "x", "process": [machine, int(pid), int(start)], "beat": 0, "released": False}
    FolderStorage(tmp_path).put(f"{NAME}.lease/00000007", json.dumps(about).encode())
    mine = lease(tmp_path, expires_s=1e9)
    assert not mine.is_held_by_any()
    mine.take()
    assert mine.token == 8
    mine.release()


def test_one_of_another_machine_is_followed_when_its_heart_stops(tmp_path: Path) -> None:
    elsewhere(tmp_path, 3)
    calls: list[str] = []
    begin, beats = time.monotonic(), 10
    mine = lease(tmp_path, expires_s=2.0)

    def beat() -> None:
        for n in range(beats):
            time.sleep(0.05)
            elsewhere(tmp_path, 3, n + 1)

    other = threading.Thread(target=beat)
    other.start()
    mine.take(lambda: calls.append("waits"))
    assert time.monotonic() - begin > 0.05 * beats
    assert calls == ["waits"]
    assert mine.token == 4
    other.join()
    mine.check()  # whatever the other still writes under its own token
    mine.release()


def test_silence_counts_only_while_who_waits_can_look(tmp_path: Path) -> None:
    looks_s: list[float] = []

    class Away(FolderStorage):
        def list(self, prefix: str) -> dict[str, int]:
            if len(looks_s) == 1:
                time.sleep(0.5)
            names = super().list(prefix)
            looks_s.append(time.monotonic())
            return names

    elsewhere(tmp_path, 3)
    mine = Lease(Away(tmp_path), NAME, beat_s=0.02, expires_s=0.4)
    mine.take()
    assert time.monotonic() - looks_s[1] >= mine.expires_s
    mine.release()


def test_who_lost_it_is_told_so(tmp_path: Path) -> None:
    mine = lease(tmp_path, beat_s=60)
    mine.take()
    elsewhere(tmp_path, 2)
    with pytest.raises(LeaseLostError, match="taken over by another process"):
        mine.check()
    mine.release()
    assert FolderStorage(tmp_path).get(f"{NAME}.lease/00000002") is not None


def test_a_place_that_creates_twice_is_refused(tmp_path: Path) -> None:
    class Twice(FolderStorage):
        def put_new(self, name: str, content: bytes) -> bool:
            self.put(name, content)
            return True

    with pytest.raises(InputError, match="creates the same file twice"):
        Lease(Twice(tmp_path), NAME).take()


def test_a_folder_without_links_still_creates_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr("os.link", none)
    folder_storage = FolderStorage(tmp_path)
    assert folder_storage.put_new("a/b", b"one")
    assert not folder_storage.put_new("a/b", b"two")
    assert folder_storage.get("a/b") == b"one"
    assert [*folder_storage.list("a/")] == ["a/b"]
