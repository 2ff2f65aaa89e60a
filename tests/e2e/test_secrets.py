"""Passwords that are given on the command line are nowhere afterwards: results, logs, journal."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from sweep.grid import remote_results
from tests.e2e.conftest import Command
from tests.sweep import s3
from tests.sweep.small import write_workload

pytestmark = [pytest.mark.e2e, pytest.mark.long]

OF_BUCKET, OF_PATH, OF_TRACKING = "s3cret-of-a-bucket", "s3cret-of-a-path", "s3cret-of-mlflow"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Give the address, with a password, of a workload in a bucket of our own."""
    with s3.serving() as endpoint:
        bucket, options = s3.bucket(endpoint, "traces")
        for file in write_workload(tmp_path / "one", 5).iterdir():
            with bucket.open_output_stream(f"traces/one/{file.name}") as out:
                out.write(file.read_bytes())
        yield f"s3://someone:{OF_BUCKET}@traces/one/?{options}"


def test_no_secret_is_left_behind(command: Command, tmp_path: Path, address: str) -> None:
    """Ray's logs are among what is looked through."""
    local = tmp_path / f"password={OF_PATH}"
    write_workload(local, 6)
    ray = Path(tempfile.mkdtemp(prefix="s", dir="/tmp"))  # a short name: sockets lie in there
    output = ""
    # there is no such trace, and nobody is at the server: what is said of them quotes them
    for third, code in (("", 1), (f',"{address.replace("/one/", "/two/")}"', 2)):
        ran = command(
            f"--config-dir={command.user}",
            *("policy=fifo,moody", "policy.mood=raises", "seed=0,1", "trace=parquet"),
            f'trace.path="{address}","{local}"{third}',
            f"tracking.uri=http://someone:{OF_TRACKING}@127.0.0.1:9",
            *("launcher=local", "launcher.workers=1"),
            RAY_TMPDIR=str(ray),
        )
        assert ran.code == code, ran.err
        output += ran.out + ran.err
    output += command("status").out + command("report").out
    shutil.rmtree(local)
    files = [*tmp_path.rglob("*"), *ray.rglob("*")]
    written = [(str(file), file.read_bytes()) for file in files if file.is_file()]
    shutil.rmtree(ray)
    parts = ("results/journal", "results/sweeps", "results/cache", "ray/session")
    assert all(any(f"/{part}" in name for name, _ in written) for part in parts)
    for secret in (OF_BUCKET, OF_PATH, OF_TRACKING):
        assert secret not in output
        assert [name for name, content in written if secret.encode() in content] == []


def test_nor_is_one_of_where_results_lie_which_workers_are_told(
    command: Command, tmp_path: Path
) -> None:
    ray = Path(tempfile.mkdtemp(prefix="s", dir="/tmp"))
    with s3.serving() as endpoint:
        system, options = s3.bucket(endpoint, "kept")
        address = f"s3://someone:{OF_BUCKET}@kept/results?{options}"
        worked_on_in = remote_results.working_folder(address)
        ran = command(
            *(
                f"--config-dir={command.user}",
                "policy=fifo,moody",
                "policy.mood=raises",
                "seed=0,1",
            ),
            *(
                "trace=alibaba_synth",
                "trace.jobs=50",
                f'paths.results="{address}"',
                "tracking=none",
            ),
            *("launcher=local", "launcher.workers=1"),
            RAY_TMPDIR=str(ray),
        )
        assert ran.code == 1, ran.err
        listing = system.get_file_info(fs.FileSelector("kept", recursive=True))
        objects = [info.path for info in listing if info.type == fs.FileType.File]
        assert any("/cache/shards/" in name for name in objects)
        written = [(name, system.open_input_stream(name).read()) for name in objects]
    files = [*tmp_path.rglob("*"), *ray.rglob("*"), *worked_on_in.rglob("*")]
    written += [(str(file), file.read_bytes()) for file in files if file.is_file()]
    shutil.rmtree(ray)
    shutil.rmtree(worked_on_in)
    assert OF_BUCKET not in ran.out + ran.err
    assert [name for name, content in written if OF_BUCKET.encode() in content] == []
