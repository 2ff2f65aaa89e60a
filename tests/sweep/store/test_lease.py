"""Leases between processes, for which threads stand here."""

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


def make_lease(folder: Path, **options: float) -> Lease:
    return Lease(FolderStorage(folder), NAME, **{"beat_s": 0.02, "expires_s": 0.2, **options})


def write_remote_lease(folder: Path, token: int, beat: int = 0) -> None:
    """Write the lease file of a holder on another machine."""
    holder = {"id": "other", "process": ["0" * 16, 1, 1], "beat": beat, "released": False}
    FolderStorage(folder).put(f"{NAME}.lease/{token:08d}", json.dumps(holder).encode())


def test_one_holder_at_a_time_and_tokens_increase(tmp_path: Path) -> None:
    n_holders, tokens = [0], []

    def hold() -> None:
        lease = make_lease(tmp_path, expires_s=60.0)
        lease.take()
        n_holders[0] += 1
        assert n_holders[0] == 1
        tokens.append(lease.token)
        time.sleep(0.005)
        n_holders[0] -= 1
        lease.release()

    threads = [threading.Thread(target=hold) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tokens == [1, 2, 3, 4, 5]
    assert len(FolderStorage(tmp_path).list("journal/")) == 1


def test_a_dead_holder_of_this_machine_is_replaced_at_once(tmp_path: Path) -> None:
    run = [sys.executable, "-c", "from sim.base import process; print(*process.current())"]
    machine, pid, start = subprocess.run(
        run, capture_output=True, text=True, check=True
    ).stdout.split()
    holder = {"id": "x", "process": [machine, int(pid), int(start)], "beat": 0, "released": False}
    FolderStorage(tmp_path).put(f"{NAME}.lease/00000007", json.dumps(holder).encode())
    lease = make_lease(tmp_path, expires_s=1e9)
    assert not lease.is_held_by_any()
    lease.take()
    assert lease.token == 8
    lease.release()


def test_a_holder_of_another_machine_is_replaced_when_its_heartbeat_stops(tmp_path: Path) -> None:
    messages: list[str] = []
    beat_times_s: list[float] = []

    class BeatingStorage(FolderStorage):
        """Storage in which another machine writes a heartbeat before each of the first reads."""

        def list(self, prefix: str) -> dict[str, int]:
            if len(beat_times_s) < 10:
                time.sleep(0.02)
                beat_times_s.append(time.monotonic())
                write_remote_lease(tmp_path, 3, len(beat_times_s))
            return super().list(prefix)

    lease = Lease(BeatingStorage(tmp_path), NAME, beat_s=0.02, expires_s=0.15)
    lease.take(lambda: messages.append("waits"))
    assert len(beat_times_s) == 10  # in 0.2 s: it does not expire while it beats
    assert time.monotonic() - beat_times_s[-1] >= lease.expires_s
    assert messages == ["waits"]
    assert lease.token == 4
    write_remote_lease(tmp_path, 3, 11)
    lease.check()  # passes: the other's writes under its own, older token do not matter
    lease.release()


def test_expiry_counts_only_time_in_which_the_store_answers(tmp_path: Path) -> None:
    list_times_s: list[float] = []

    class SlowStorage(FolderStorage):
        def list(self, prefix: str) -> dict[str, int]:
            if len(list_times_s) == 1:
                time.sleep(0.5)
            names = super().list(prefix)
            list_times_s.append(time.monotonic())
            return names

    write_remote_lease(tmp_path, 3)
    lease = Lease(SlowStorage(tmp_path), NAME, beat_s=0.02, expires_s=0.4)
    lease.take()
    assert time.monotonic() - list_times_s[1] >= lease.expires_s
    lease.release()


def test_a_holder_learns_that_its_lease_was_taken_over(tmp_path: Path) -> None:
    lease = make_lease(tmp_path, beat_s=60)
    lease.take()
    write_remote_lease(tmp_path, 2)
    with pytest.raises(LeaseLostError, match="taken over by another process"):
        lease.check()
    lease.release()
    assert FolderStorage(tmp_path).get(f"{NAME}.lease/00000002") is not None


def test_a_storage_that_creates_a_file_twice_is_refused(tmp_path: Path) -> None:
    class OverwritingStorage(FolderStorage):
        def put_new(self, name: str, content: bytes) -> bool:
            self.put(name, content)
            return True

    with pytest.raises(InputError, match="creates the same file twice"):
        Lease(OverwritingStorage(tmp_path), NAME).take()


def test_a_folder_without_hard_links_creates_a_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr("os.link", fail)
    storage = FolderStorage(tmp_path)
    assert storage.put_new("a/b", b"one")
    assert not storage.put_new("a/b", b"two")
    assert storage.get("a/b") == b"one"
    assert [*storage.list("a/")] == ["a/b"]
