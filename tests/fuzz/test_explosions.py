"""Small files that expand to very large content: refused before memory is full.

A child process with an address-space limit of 400 MB above its start reads them: it behaves as on a
machine with that much memory, and the test can't exhaust this one.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sim
from tests.fuzz.targets import _JOB

pytestmark = pytest.mark.long

HEADROOM = 400 << 20
UNPACKED = 180 << 20
MAX_GROWTH = 250 << 20
_SWF = b"1 10 5 60 4 30 100 8 100 200 1 3 1 5 2 -1 -1 -1\n"
_TASK = b'{"id":"a","name":"b","parents":[]},'
_POD = b"a,12000,16384,1,460,,LS,Running,0,12537,5\n"
_COMPLETED = b"JobId=1 SubmitTime=100 StartTime=200 EndTime=300\n"
_PODS = (
    b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    b"deletion_time,scheduled_time\n"
)

# the reader, what the text begins with, and what comes again and again
GZIP = {
    "swf": ("swf", b"", _SWF),
    "swf of one line": ("swf", b"", b"1"),
    "swf of bad lines": ("swf", _SWF, b"a\n"),
    "alibaba2018": ("alibaba2018", b"", b"M1,2,j_1,1,Terminated,100,110,100.0,0.5\n"),
    "google2011": ("google2011", b"", json.dumps(_JOB).encode() + b"\n"),
    "google2011 of lists": ("google2011", b"[", b"[],"),
    "wfcommons": ("wfcommons", b'{"workflow":{"specification":{"tasks":[', _TASK),
    "wfcommons of objects": ("wfcommons", b"[", b'{"a":{}},'),
    "wfcommons of a text": ("wfcommons", b'{"a":"', b"x"),
    "spark_eventlog of one line": ("spark_eventlog", b'{"Event":"', b"x"),
    "spark_tpch": ("spark_tpch", b"[", b"{},"),
    "tpc": ("tpc", b"", b"\n"),
    "slearn_authors": ("slearn_authors", b"[", b"[],"),
    "k8s_gpu2023": ("k8s_gpu2023", _PODS, _POD),
    "slurm_jobcomp": ("slurm_jobcomp", b"", _COMPLETED),
    "table": ("table", b"submit_s,run_s\n", b"1,2\n"),
    "lineage": ("lineage", b"time_s,job,operation,file,n\n", b"1,a,write,f,1\n"),
    "openlineage of a text": ("openlineage", b'{"a":"', b"x"),
    "openlineage of lists": ("openlineage", b'{"a":[', b"[],"),
    "fit": ("fit", b"[", b"[],"),
}

DEPTH = 100_000
DEEP = {
    "google2011": b'{"job":%s}\n',
    "wfcommons": b'{"workflow":%s}',
    "spark_eventlog": b'{"Event":%s}\n',
    "spark_tpch": b'{"2g":%s}',
    "slearn_authors": b'{"job.id":%s}\n',
    "fit": b'{"a":%s}',
}


def gzipped(begin: bytes, again: bytes) -> bytes:
    """Compress a text of `UNPACKED` bytes to a few hundred thousand."""
    pack = zlib.compressobj(1, wbits=31)
    block = again * ((1 << 20) // len(again))
    blocks = (pack.compress(block) for _ in range(UNPACKED // len(block)))
    return b"".join([pack.compress(begin), *blocks, pack.flush()])


def repeat_rows(table: pa.Table, rows: int, **texts: str) -> pa.Table:
    """Repeat the first row; a column of `texts` is one dictionary-encoded text."""
    position = pa.array(np.zeros(rows, np.int32))
    coded = {name: pa.DictionaryArray.from_arrays(position, [text]) for name, text in texts.items()}
    first = {name: table[name].combine_chunks() for name in table.column_names}
    return pa.table({name: coded.get(name, first[name].take(position)) for name in first})


def large_rows(table: pa.Table, path: Path) -> None:
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        part = repeat_rows(table, 1 << 20)
        for _ in range(30):
            writer.write_table(part.cast(table.schema))


def large_texts(name: str) -> Callable[[pa.Table, Path], None]:
    def write(table: pa.Table, path: Path) -> None:
        built = repeat_rows(table, 500, **{name: "x" * (5 << 20)})
        pq.write_table(
            built, path, compression="zstd", store_schema=False, dictionary_pagesize_limit=1 << 30
        )

    return write


def large_lists(table: pa.Table, path: Path) -> None:
    ends = pa.array(np.linspace(0, 60_000_000, table.num_rows + 1).astype(np.int32))
    lists = pa.ListArray.from_arrays(ends, pa.array(np.zeros(60_000_000, np.int8)))
    pq.write_table(table.append_column("extra", lists), path, compression="zstd")


def deep_lists(table: pa.Table, path: Path) -> None:
    """Write a type of nested lists that no reader of Parquet accepts."""
    column = pa.array(np.zeros(table.num_rows))
    for _ in range(2000):
        ends = pa.array(np.arange(table.num_rows + 1, dtype=np.int32))
        column = pa.ListArray.from_arrays(ends, column)
    pq.write_table(table.append_column("deep", column), path)


PARQUET = {
    "rows of jobs": ("jobs", large_rows),
    "rows of tasks": ("tasks", large_rows),
    "texts": ("jobs", large_texts("job_id")),
    "categories": ("jobs", large_texts("user")),
    "lists": ("jobs", large_lists),
    "lists in lists": ("jobs", deep_lists),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Read all files, each in a child of one process; return the reports by name."""
    folder = tmp_path_factory.mktemp("explosions")
    requested = []
    for number, (name, (reader, begin, again)) in enumerate(GZIP.items()):
        file = folder / f"{number}.gz"
        file.write_bytes(gzipped(begin, again))
        assert file.stat().st_size < UNPACKED / 50
        requested.append((name, reader, str(file)))
    for reader, text in DEEP.items():
        file = folder / f"{reader}.json"
        file.write_bytes(text % (b"[" * DEPTH + b"]" * DEPTH))
        requested.append((f"deep {reader}", reader, str(file)))
    jobs = [{"submit_s": 0.0, "user": "u", "stages": [{"durations_s": [1.0]}]}] * 3
    for name, (table, write) in PARQUET.items():
        place = folder / name
        sim.Workload.from_jobs(jobs).write(place)
        for file in place.iterdir():  # as somebody else's, without the digest of the content
            pq.write_table(pq.read_table(file).replace_schema_metadata({}), file)
        write(pq.read_table(place / f"{table}.parquet"), place / f"{table}.parquet")
        requested.append((f"parquet, {name}", "parquet", str(place)))
    words = [sys.executable, "-m", "tests.fuzz.test_explosions"]
    done = subprocess.run(
        words, input=json.dumps(requested), capture_output=True, text=True, check=True, timeout=500
    )
    return {report["name"]: report for report in map(json.loads, done.stdout.splitlines())}


NAMES = [*GZIP, *(f"deep {name}" for name in DEEP), *(f"parquet, {name}" for name in PARQUET)]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_refused_before_memory_is_full(
    name: str, reports: dict[str, dict[str, object]]
) -> None:
    report = reports[name]
    assert report["error"] == "InputError", report
    assert report["file"]
    assert "alloc" not in str(report["text"])
    if name in GZIP:
        assert report["line"]
    assert int(str(report["growth"])) < MAX_GROWTH


def test_the_way_out_is_named(reports: dict[str, dict[str, object]]) -> None:
    texts = [str(reports[name]["text"]) for name in ("alibaba2018", "google2011", "parquet, texts")]
    for text in texts:
        assert "GB" in text
        assert re.search("take a part of (it|the file), or a larger machine", text)


def _reader(name: str) -> Callable[[str], object]:
    # here, as the process that is limited imports this module too
    from policies.alibaba.synth.published import _read
    from policies.wing.lineage.files import read_table
    from policies.wing.lineage.openlineage import read_events

    own: dict[str, Callable[[str], object]] = {
        "lineage": lambda path: read_table("operations", path),
        "openlineage": lambda path: read_events(Path(path)),
        "fit": lambda path: _read(Path(path)),
    }
    options = {"on_bad_row": "skip"} if name == "swf" else {}
    return own.get(name, lambda path: sim.read_trace(name, path, **options))


def _bytes(label: str) -> int:
    """Return a memory figure of this process in bytes, such as ``VmHWM``: its peak memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(label))


def _report(name: str, reader: str, path: str) -> dict[str, object]:
    read = _reader(reader)
    Path("/proc/self/clear_refs").write_text("5")  # the most memory counts from here on
    started, limit = _bytes("VmRSS"), _bytes("VmSize") + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    about: dict[str, object] = {"name": name, "error": "", "text": "", "file": "", "line": None}
    try:
        read(path)
    except BaseException as error:  # what is looked at is which
        about |= {"error": type(error).__name__, "text": str(error)}
        about |= {key: getattr(error, key, None) for key in ("file", "line")}
    return about | {"growth": _bytes("VmHWM") - started}


def _main() -> None:

    for name in sim.traces.names():
        sim.traces.options(name)
    for report in json.load(sys.stdin):
        sys.stdout.flush()
        child = os.fork()
        if not child:
            print(json.dumps(_report(*report)), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    _main()
