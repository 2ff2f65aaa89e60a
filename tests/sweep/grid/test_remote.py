"""Traces in an object store: a server that speaks S3 stands in this process."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from sim.base.errors import InputError
from sweep.execution.inputs import Inputs
from sweep.grid import grid, remote
from tests.sweep import s3
from tests.sweep.s3 import SECRET
from tests.sweep.small import Command, every_file, fake_engine, request, write_workload


class Bucket:
    """A bucket on a server of our own."""

    def __init__(self, endpoint: str) -> None:
        self._fs, options = s3.bucket(endpoint, "traces")
        self.query = f"?{options}"

    def write(self, name: str, content: bytes) -> None:
        with self._fs.open_output_stream(f"traces/{name}") as out:
            out.write(content)

    def write_folder(self, name: str, folder: Path) -> None:
        for file in folder.iterdir():
            self.write(f"{name}/{file.name}", file.read_bytes())

    def uri(self, name: str) -> str:
        return f"s3://someone:{SECRET}@traces/{name}{self.query}"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3.serving() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(server: str) -> Iterator[Bucket]:
    remote_bucket = Bucket(server)
    yield remote_bucket
    remote_bucket._fs.delete_dir_contents("traces")


@pytest.fixture
def command(tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> Command:
    fake_engine(monkeypatch)
    return Command(tmp_path, capfd)


def words(uri: str, kind: str = "parquet") -> tuple[str, ...]:
    return (f"trace={kind}", f'trace.path="{uri}"')


def test_a_folder_gives_what_its_copy_gives(command: Command, bucket: Bucket) -> None:
    bucket.write_folder("workload", command.trace)
    far = command("policy=fifo,sjf", *words(bucket.uri("workload/")))
    assert far.code == 0, far.err
    assert {row["status"] for row in far.rows} == {"done"}
    near = command("policy=fifo,sjf")  # the same cells: their keys hold the content, not the place
    assert {row["status"] for row in near.rows} == {"cached"}


def test_no_secret_is_written(command: Command, bucket: Bucket) -> None:
    bucket.write_folder("workload", command.trace)
    ran = command("policy=fifo,sjf", *words(bucket.uri("workload")))
    assert ran.code == 0, ran.err
    written = every_file(command.results)
    assert [name for name, content in written.items() if SECRET.encode() in content] == []
    assert SECRET not in ran.out + ran.err


def test_a_gzipped_file_of_text(tmp_path: Path, bucket: Bucket) -> None:
    bucket.write("day/log.swf.gz", gzip.compress(b"; a comment\n"))
    copy = remote.download(bucket.uri("day/log.swf.gz"), tmp_path)
    assert copy.name == "log.swf.gz"
    assert gzip.decompress(copy.read_bytes()) == b"; a comment\n"


def test_is_fetched_once(tmp_path: Path, bucket: Bucket) -> None:
    bucket.write("a", b"one")
    copy = remote.download(bucket.uri("a"), tmp_path)
    copy.write_bytes(b"two")  # as long, so that it would be seen if it were fetched again
    assert remote.download(bucket.uri("a"), tmp_path) == copy
    assert copy.read_bytes() == b"two"
    copy.write_bytes(b"o")  # cut short, as by a full disk
    assert remote.download(bucket.uri("a"), tmp_path).read_bytes() == b"one"


def test_what_changed_there_is_fetched_again(tmp_path: Path, bucket: Bucket) -> None:
    bucket.write("a", b"one")
    first = remote.download(bucket.uri("a"), tmp_path)
    bucket.write("a", b"two")  # within the second that times of change are given in
    second = remote.download(bucket.uri("a"), tmp_path)
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://traces/nowhere", "no such file or folder"),
        ("s3://nobucket/file", "no such file or folder"),
        ("ftp://host/file", "unknown scheme 'ftp'"),
        ("s3://bucket", "names no file or folder"),
    ],
)
def test_wrong_addresses(tmp_path: Path, bucket: Bucket, path: str, message: str) -> None:
    query = bucket.query if path.startswith("s3://") else ""
    uri = path.replace("://", f"://someone:{SECRET}@") + query
    with pytest.raises(InputError, match=message) as caught:
        remote.download(uri, tmp_path)
    assert SECRET not in str(caught.value)
    assert path.rpartition("://")[2] in str(caught.value)


@pytest.mark.long
def test_nobody_answers(command: Command) -> None:
    uri = f"s3://someone:{SECRET}@traces/a?endpoint_override=127.0.0.1:1&scheme=http&region=x"
    ran = command(*words(uri))
    assert ran.code == 2
    assert "traces/a" in ran.err
    assert "can't be fetched" in ran.err
    assert "trace.path=FILE" in ran.err
    assert SECRET not in ran.err


def test_errors_in_a_file_name_its_address(command: Command, bucket: Bucket) -> None:
    bucket.write("log.swf", b"1 2 three\n")
    ran = command(*words(bucket.uri("log.swf"), "swf"))
    assert ran.code == 2
    assert "s3://someone:***@traces/log.swf" in ran.err
    assert ":1:" in ran.err
    assert "cache" not in ran.err


def test_no_name_leads_out_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = {"../../evil": fs.FileInfo("b/../../evil", fs.FileType.File, size=1)}
    system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(remote, "_listing", lambda uri: (system, "b", inside))
    monkeypatch.setattr(remote, "_tag", lambda system, info: "")
    with pytest.raises(InputError, match="is not a valid file name"):
        remote.download("s3://b/c", tmp_path / "kept")
    assert not (tmp_path / "evil").exists()


def test_a_file_address_is_a_path(command: Command) -> None:
    ran = command(*words(f"file://{command.trace}"))
    assert ran.code == 0, ran.err
    assert {row["status"] for row in command().rows} == {"cached"}


def test_many_cells_ask_the_store_once(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.write_folder("workload", write_workload(tmp_path / "w"))
    requests: list[str] = []
    listing = remote._listing
    monkeypatch.setattr(remote, "_listing", lambda uri: requests.append(uri) or listing(uri))
    known = Inputs(tmp_path / "results")
    cells = grid.build(
        request(["policy=fifo,sjf", "cluster.count=3,4", *words(bucket.uri("workload"))])
    ).cells
    for cell in cells:
        known.workload_id(cell)
    assert len(requests) == 1
    assert known.describe(known.workload_id(cells[0]))["n_jobs"] == 6
