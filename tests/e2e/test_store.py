"""Results in an object store that fails some requests, with cells run by workers."""

from __future__ import annotations

import collections
import json
import random
from pathlib import Path

import pytest

from sweep.store import shards
from sweep.store.bucket import Bucket
from tests.e2e.conftest import Command
from tests.sweep import s3
from tests.sweep.s3 import RESET, Front, Request

pytestmark = [pytest.mark.e2e, pytest.mark.long]

GRID = ("policy=fifo,las,srpt", "capacity=0.5,1", "seed=range(0,100)", "baseline=fifo")
N_CELLS = 600
FAILED_SHARE = 0.05


def test_no_cell_is_lost_while_requests_fail(command: Command, tmp_path: Path) -> None:
    trace = ("trace=alibaba_synth", "trace.jobs=50", "tracking=none")
    undisturbed = command(*GRID, *trace, "launcher=inline", "paths.results=quiet")
    assert undisturbed.code == 0, undisturbed.err
    draws = random.Random(34)
    statuses: collections.Counter[int] = collections.Counter()

    def fail(_: Request) -> int | None:
        if draws.random() >= FAILED_SHARE / 2:
            return None
        status = draws.choice((500, 503, RESET))
        statuses[status] += 1
        return status

    front = Front(fail, fail)  # half of these are carried out, and their answer is lost
    with s3.serving(front) as endpoint:
        front.refuse = front.lose = Front().refuse
        _, options = s3.bucket(endpoint, "kept")
        address = f"s3://someone:{s3.SECRET}@kept/results?{options}"
        front.refuse = front.lose = fail
        words = (*GRID, *trace, "launcher=local", "launcher.workers=2")
        ran = command(*words, f'paths.results="{address}"', XDG_CACHE_HOME=str(tmp_path / "one"))
        n_requests, n_failed = front.n_requests, front.n_failed
        print(f"{n_requests} requests, {n_failed} failed: {dict(statuses)}")
        print(ran.err)
        front.refuse = front.lose = Front().refuse
        assert ran.code == 0, ran.err
        assert "Traceback" not in ran.err
        assert n_failed > 0.03 * n_requests
        assert all(statuses[status] for status in (500, 503, RESET))
        bucket = Bucket(address)
        name = f"sweeps/{undisturbed.folder.name}"
        for file in ("cells.parquet", "verdict.json", "report.html"):
            assert bucket.get(f"{name}/{file}") == (undisturbed.folder / file).read_bytes(), file
        journal = bucket.get(f"journal/{undisturbed.folder.name}.jsonl") or b""
        events = [json.loads(line) for line in journal.splitlines()]
        rows = [(event["row"], event["status"]) for event in events if event["event"] == "cell"]
        assert sorted(rows) == [(row, "done") for row in range(N_CELLS)]
        assert events[-1]["event"] == "end"
        assert len(_cached_keys(bucket)) == N_CELLS
        again = command(*words, f'paths.results="{address}"', XDG_CACHE_HOME=str(tmp_path / "two"))
        assert "every cell is cached" in again.err


def _cached_keys(bucket: Bucket) -> set[bytes]:
    """Keys of the cells in intact manifests and shards."""
    keys = set()
    for name in bucket.list(shards.MANIFESTS):
        content = bucket.get(name) or b""
        for manifest in shards.read_manifests(name.rpartition("/")[2], content):
            shard = bucket.get(shards.shard_path(manifest.shard)) or b""
            assert shards.digest_name(shard) == manifest.shard
            offsets = range(0, len(manifest.keys), shards.KEY_BYTES)
            keys |= {manifest.keys[offset : offset + shards.KEY_BYTES] for offset in offsets}
    return keys
