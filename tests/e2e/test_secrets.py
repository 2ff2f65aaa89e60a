"""Passwords on the command line are stored nowhere: not in results, logs or journal."""

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

BUCKET_SECRET, PATH_SECRET, TRACKING_SECRET = (
    "s3cret-of-a-bucket",
    "s3cret-of-a-path",
    "s3cret-of-mlflow",
)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Serve a workload in a bucket; return its address, with a password."""
    with s3.serving() as endpoint:
        bucket, options = s3.bucket(endpoint, "traces")
        for file in write_workload(tmp_path / "one", 5).iterdir():
            with bucket.open_output_stream(f"traces/one/{file.name}") as out:
                out.write(file.read_bytes())
        yield f"s3://someone:{BUCKET_SECRET}@traces/one/?{options}"


def test_secrets_of_inputs_are_stored_nowhere(
    command: Command, tmp_path: Path, address: str
) -> None:
    """Ray's logs are searched, too."""
    local = tmp_path / f"password={PATH_SECRET}"
    write_workload(local, 6)
    ray = Path(tempfile.mkdtemp(prefix="s", dir="/tmp"))  # a short name: sockets lie in there
    output = ""
    # the second run's third trace does not exist and no server listens at the tracking address:
    # the error messages quote both
    for third, code in (("", 1), (f',"{address.replace("/one/", "/two/")}"', 2)):
        ran = command(
            f"--config-dir={command.user}",
            *("policy=fifo,moody", "policy.mood=raises", "seed=0,1", "trace=parquet"),
            f'trace.path="{address}","{local}"{third}',
            f"tracking.uri=http://someone:{TRACKING_SECRET}@127.0.0.1:9",
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
    for secret in (BUCKET_SECRET, PATH_SECRET, TRACKING_SECRET):
        assert secret not in output
        assert [name for name, content in written if secret.encode() in content] == []


def test_secrets_of_the_results_address_are_stored_nowhere(
    command: Command, tmp_path: Path
) -> None:
    ray = Path(tempfile.mkdtemp(prefix="s", dir="/tmp"))
    with s3.serving() as endpoint:
        system, options = s3.bucket(endpoint, "kept")
        address = f"s3://someone:{BUCKET_SECRET}@kept/results?{options}"
        working_folder = remote_results.working_folder(address)
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
    files = [*tmp_path.rglob("*"), *ray.rglob("*"), *working_folder.rglob("*")]
    written += [(str(file), file.read_bytes()) for file in files if file.is_file()]
    shutil.rmtree(ray)
    shutil.rmtree(working_folder)
    assert BUCKET_SECRET not in ran.out + ran.err
    assert [name for name, content in written if BUCKET_SECRET.encode() in content] == []
